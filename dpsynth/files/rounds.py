"""Many independent rounds of one experiment, in parallel, each kept in a file when it ends.

A round's file is complete or absent. The same call on the same folder carries out the missing rounds, after
an interruption or with more rounds than before. A folder of another experiment is refused.
"""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from dpsynth.errors import DataError, DpsynthError, InputError, RunError
from dpsynth.files.atomic import dump_json, locked, make_folder, read_json, write_text
from dpsynth.files.storage import parents_made, require_free_folder

#: what a folder of rounds was begun with, and the folder of the rounds inside it
STARTED, ROUNDS = "started.json", "rounds"
#: called with how many rounds are there, how many there will be, the last one's label and its seconds
OnRound = Callable[[int, int, str, float], None]
Work = Callable[[Any], Mapping[str, Any]]


def silent(done: int, total: int, label: str, seconds: float) -> None:
    """Print nothing."""


def carry_out(
    work: Work,
    tasks: Mapping[str, Any],
    *,
    folder: str | Path | None = None,
    settings: Mapping[str, Any] | None = None,
    jobs: int = 1,
    on_round: OnRound = silent,
) -> dict[str, dict[str, Any]]:
    """Carry out the rounds that are missing, and return all of them in the order of ``tasks``.

    ``work(task)`` returns plain data. With several jobs it and the tasks are sent to other processes, so both
    must be picklable. Randomness is in the task. The label of a task names the round's file in ``folder``.
    ``settings`` are plain data that every round depends on, kept beside the rounds. The number of rounds is
    not one of them.

    Examples
    --------
    >>> carry_out(lambda x: {"square": x * x}, {"a": 2, "b": 3})
    {'a': {'square': 4}, 'b': {'square': 9}}
    """
    with ExitStack() as held:
        rounds, kept = None, {}
        if folder is not None:
            # workers of an earlier call are used again, and may stand in the folder of that time
            out = Path(folder).absolute()
            held.enter_context(parents_made(out))
            held.enter_context(locked(out))
            _begin(out, dict(settings or {}))
            rounds = out / ROUNDS
            kept = {label: _read(path) for label in tasks if (path := round_file(rounds, label)).is_file()}
        missing = {label: task for label, task in tasks.items() if label not in kept}
        done = side_by_side(work, missing, rounds=rounds, jobs=jobs)
        for number, (label, record, seconds) in enumerate(done, start=len(kept) + 1):
            kept[label] = record
            on_round(number, len(tasks), label, seconds)
        return {label: kept[label] for label in tasks}


def side_by_side(
    work: Work, tasks: Mapping[str, Any], *, rounds: Path | None, jobs: int
) -> Iterator[tuple[str, dict[str, Any], float]]:
    """Carry out rounds, each kept in a file of the folder ``rounds`` if there is one."""
    from joblib import Parallel, delayed

    if jobs < 1:
        raise InputError(f"jobs must be at least 1, got {jobs}")
    with warnings.catch_warnings():
        # joblib replaces workers that have grown, as TensorFlow's do, and need not say so
        warnings.filterwarnings("ignore", message="A worker stopped", module="joblib")
        parallel = Parallel(n_jobs=jobs, return_as="generator_unordered", pre_dispatch=jobs)
        done: Iterator[tuple[str, str, float]] = parallel(
            delayed(_carried_out)(work, label, task, None if rounds is None else round_file(rounds, label))
            for label, task in tasks.items()
        )
        for label, text, seconds in done:
            yield label, json.loads(text), seconds


def round_file(rounds: Path, label: str) -> Path:
    """The file of a round in the folder of rounds."""
    return rounds / f"{label}.json"


def _carried_out(work: Work, label: str, task: Any, path: Path | None) -> tuple[str, str, float]:
    """Carry out a round and write its file, in a process of its own if there are several."""
    from threadpoolctl import threadpool_limits

    start = time.perf_counter()
    try:
        with threadpool_limits(1):
            text = dump_json(work(task))
    except DpsynthError as problem:
        raise RunError(f"{label}: {problem}") from None
    except Exception as problem:
        raise RunError(f"{label} failed ({type(problem).__name__}: {problem})") from problem
    if path is not None:
        write_text(path, text + "\n")
    return label, text, time.perf_counter() - start


def _begin(out: Path, settings: dict[str, Any]) -> None:
    """Make the folder, or see that it holds rounds of these settings."""
    text = dump_json({"settings": settings})
    if (out / STARTED).is_file():
        if read_json(out / STARTED) != json.loads(text):
            raise InputError(f"{out} holds rounds of other settings or records. Name another folder")
        return
    require_free_folder(out, force=False, mark=STARTED)
    make_folder(out)
    make_folder(out / ROUNDS)
    write_text(out / STARTED, text + "\n")


def _read(path: Path) -> dict[str, Any]:
    record = read_json(path)
    if not isinstance(record, dict):
        raise DataError(
            f"{path} is no record of a round. Remove it, and the same command carries it out anew"
        )
    return record
