"""Run a study from its protocol to a folder: trials in parallel, each kept when it is done, then tables.

A trial is a round of :func:`dpsynth.files.storage.carry_out`. The same command on the same folder carries out
missing trials, after an interruption or with more seeds. A folder of other trials, or of other records, is
refused.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from dpsynth import datasets
from dpsynth.datasets.cohorts.definitions import find_study
from dpsynth.datasets.cohorts.extraction import extract
from dpsynth.datasets.table import Table, training_schema
from dpsynth.errors import ConfigError, DataError, InputError
from dpsynth.files.storage import (
    ROUNDS,
    STARTED,
    carry_out,
    dump_json,
    locked,
    make_folder,
    parents_made,
    read_json,
    require_free_folder,
    round_file,
    write_text,
)
from dpsynth.files.text import read_yaml
from dpsynth.research.replications.arms import Arm, arms_of
from dpsynth.research.replications.protocol import Protocol
from dpsynth.research.replications.results import Results
from dpsynth.research.replications.trial import Task, Trial, run_trial
from dpsynth.research.replications.writing import study_page
from dpsynth.research.writing import write_results
from dpsynth.synthesis.fit import total_delta
from dpsynth.table.schema import Schema

#: names in the folder: the protocol, and that of the first command
PROTOCOL, FIRST = "protocol.yaml", "first-protocol.yaml"
_CHANGED = (
    "The findings are not those that the first trials were begun with: they were changed when results could "
    "be known."
)
#: what may be changed between two commands on one folder: a trial does not depend on it
_FREE = ("title", "citation", "question", "seeds", "epsilons", "findings", "aucs", "coverage")


def protocol_schema(protocol: Protocol) -> Schema:
    """Return the schema of a protocol's table, without a look at its records."""
    if protocol.dataset is not None:
        return datasets.card(protocol.dataset).table
    return find_study(str(protocol.cohort)).schema


def _check_data(protocol: Protocol, data: Path | None) -> None:
    """Refuse a location of records that a protocol has no use for, or lacks."""
    if protocol.dataset is not None and data is not None:
        raise InputError(f"--data is for studies on MIMIC-III. {protocol.name} is on {protocol.dataset}")
    if protocol.dataset is None and data is None:
        raise InputError(
            f"{protocol.name} needs records of MIMIC-III: give --data, the folder of its files, or the "
            f"table that `dpsynth cohort {protocol.cohort}` made"
        )


def _load(protocol: Protocol, data: Path | None) -> Table:
    """Return the table with a public number of records, which studies print."""
    if data is None:
        table = datasets.load(str(protocol.dataset))
    elif data.is_dir():
        cohort = extract(find_study(str(protocol.cohort)), data)
        table = Table(cohort.frame.reset_index(drop=True), cohort.study.schema, cohort.study.name)
    else:
        table = datasets.open_table(data, protocol_schema(protocol), protocol.cohort)
    if table.schema.n_public is not None:
        return table
    return replace(table, schema=table.schema.with_n_public(len(table.frame)))


@dataclass(frozen=True)
class Finished:
    """A study that was run: its folder, its files, the numbers of earlier and of new trials."""

    out: Path
    files: tuple[str, ...]
    results: Results
    kept: int
    carried_out: int


def tasks(protocol: Protocol, compared: Sequence[Arm]) -> tuple[Task, ...]:
    """All trials of a study, seed by seed. Resamples come last, of private fits alone.

    Examples
    --------
    >>> told = Protocol(name="a", title="A", citation="c", question="q", dataset="flchain", seeds=2,
    ...                 epsilons=[3])
    >>> [task.label for task in tasks(told, arms_of(told, 1e-5))][:2]
    ['real.split-0.restart-0', 'epsilon-3.split-0.restart-0']
    """
    found = [
        Task(arm.name, "split", seed, restart)
        for seed in range(protocol.seeds)
        for arm in compared
        for restart in range(arm.restarts)
    ]
    if protocol.coverage is not None:
        private = [arm for arm in compared if arm.whole]
        found += [
            Task(arm.name, "resample", repetition)
            for repetition in range(protocol.coverage.repetitions)
            for arm in private
        ]
    return tuple(found)


def run_study(
    protocol: Protocol,
    out: str | Path,
    *,
    data: Path | None = None,
    jobs: int = 1,
    force: bool = False,
    log: Callable[[str], None] = lambda line: None,
) -> Finished:
    """Carry out the missing trials of a study and write its tables.

    Parameters
    ----------
    protocol : Protocol
        Protocol of the study.
    out : path
        Receives ``results.md``, ``results.html``, ``results.json``, ``tables/``, ``protocol.yaml``,
        ``rounds/``.
    data : Path, optional
        Records of a study on MIMIC-III: the folder of its files, or a cohort that was made from them before.
    jobs : int
        Trials at a time, each in a process of its own, at least 1.
    force : bool
        Whether a folder of another study or of other records may be replaced.
    log : callable, optional
        Receives one line at the end of each trial.

    Raises
    ------
    InputError, DataError
        If the protocol does not fit the table, the table cannot be had, or ``out`` must not be written to.
        All are raised before a record is read, except for faults of the records.
    RunError
        If a trial failed. The others stay.

    Notes
    -----
    Privacy: each private fit posts to a ledger of its own, in its trial's file. Measures read real records
    without using privacy budget, so the folder as a whole is confidential.
    """
    out = Path(out)
    _check_data(protocol, data)
    protocol.check(protocol_schema(protocol))
    settings: dict[str, Any] = {"protocol": _fixed(protocol)}
    with parents_made(out), locked(out):
        _begin(out, settings, force=force)
        table = protocol.table(_load(protocol, data))
        settings["records"] = _digest(table)
        _begin(out, settings, force=force)
        first = _first(out, protocol)
        write_text(out / PROTOCOL, protocol.to_yaml())
        fitted = training_schema(table.schema, protocol.test_fraction)
        compared = arms_of(protocol, total_delta(fitted, protocol.model))
        wanted = {task.label: task for task in tasks(protocol, compared)}
        carried_out = 0

        def on_round(done: int, total: int, label: str, seconds: float) -> None:
            nonlocal carried_out
            carried_out += 1
            log(f"{done} of {total}: {label} in {seconds:.1f} s")

        work = partial(_trial, protocol, {arm.name: arm for arm in compared}, table)
        records = carry_out(work, wanted, folder=out, settings=settings, jobs=jobs, on_round=on_round)
        trials = tuple(_read(out, task, records[label]) for label, task in wanted.items())
        unit = table.schema.unit or "one row"
        remarks = () if protocol.findings == first.findings else (_CHANGED,)
        source = f"{protocol.records}: {table.card.title if table.card else data}"
        results = Results(protocol, compared, trials, source, unit, table.schema, remarks)
        write_results(study_page(results), out)
    files = tuple(sorted(entry.name for entry in out.iterdir()))
    return Finished(out, files, results, len(wanted) - carried_out, carried_out)


def _trial(protocol: Protocol, by_name: Mapping[str, Arm], table: Table, task: Task) -> dict[str, Any]:
    """Carry out a trial, as its file has it."""
    return run_trial(protocol, by_name[task.arm], task, table).to_dict()


def _read(out: Path, task: Task, record: Mapping[str, Any]) -> Trial:
    try:
        trial = Trial.from_dict(record)
        if trial.task == task:
            return trial
    except (KeyError, TypeError):
        pass
    path = round_file(out / ROUNDS, task.label)
    raise DataError(f"{path} is no record of that trial. Remove it, and the same command carries it out anew")


def _fixed(protocol: Protocol) -> dict[str, Any]:
    """Everything that trials depend on."""
    return {name: value for name, value in protocol.to_dict().items() if name not in _FREE}


def _begin(out: Path, settings: Mapping[str, Any], *, force: bool) -> None:
    """Refuse a folder of other settings as far as they are known, or clear it if it may be replaced."""
    if not (out / STARTED).is_file():
        require_free_folder(out, force=force, mark=STARTED)
    else:
        try:
            earlier = read_json(out / STARTED)["settings"]
            other = [name for name, value in settings.items() if earlier[name] != value]
        except (LookupError, TypeError):
            other = ["protocol"]
        except DataError:
            if not force:
                raise
            other = ["protocol"]
        if not other:
            return
        if not force:
            what = "other records" if other == ["records"] else "another protocol"
            raise InputError(
                f"{out} holds trials of {what}. Name another folder, or add --force to replace it"
            )
        for folder in (ROUNDS, "tables"):
            shutil.rmtree(out / folder, ignore_errors=True)
        for name in (PROTOCOL, FIRST, "results.md", "results.html", "results.json"):
            (out / name).unlink(missing_ok=True)
    if "records" in settings:
        make_folder(out)
        make_folder(out / ROUNDS)
        write_text(out / STARTED, dump_json({"settings": settings}) + "\n")


def _first(out: Path, protocol: Protocol) -> Protocol:
    """The protocol of the first command on a folder, whose findings were concluded before any result."""
    if not (out / FIRST).is_file():
        write_text(out / FIRST, protocol.to_yaml())
    return read_yaml(out / FIRST, Protocol.from_dict, error=ConfigError)


def _digest(table: Table) -> str:
    rows = pd.util.hash_pandas_object(table.frame.astype(str), index=False).to_numpy()
    return hashlib.sha256(table.schema.digest().encode() + rows.tobytes()).hexdigest()
