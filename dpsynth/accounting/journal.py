"""What was released about a folder's table before: no run of the same folder may lose it.

A folder that is replaced may have been shared, and a run that was given up, failed or was killed may have
read the table. So the ledger of a run is kept in a *journal* beside its folder from before the first reading
until the folder with the final ledger is complete. A new run of that folder goes on from the journal, from
the folder that it replaces and from a checkpoint that it gives up. A stage that is in several of them counts
once. Whether two runs of one folder read the same table is not asked: to add up is always right.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path

from dpsynth.accounting.ledger import Ledger
from dpsynth.errors import DataError, DpsynthError
from dpsynth.files.atomic import read_json

_CHECKPOINTS = ("checkpoint.json", "checkpoint.used.json")


def journal_file(out: str | Path) -> Path:
    """The journal of a folder: a hidden file, so that nothing that somebody put there is taken for it.

    Examples
    --------
    >>> journal_file("runs/demo").name
    '.demo.journal.json'
    """
    path = Path(out)
    return path.with_name(f".{path.name}.journal.json")


@contextlib.contextmanager
def journalled(
    out: Path, named: Ledger | None, *, forget: bool, say: Callable[[str], None]
) -> Iterator[Ledger]:
    """Give the ledger that a run or fit of ``out`` goes on from; its journal ends with the block.

    ``named`` is what the user says was released before. With ``forget`` the ledger begins from ``named``
    alone although there is more, and says so. Where the block raises, the journal stays, and ``say`` is told
    where.
    """
    ledger, journal = Ledger(), journal_file(out)
    if named is not None:
        ledger.join(named)
    if forget:
        _forget(out, ledger)
    else:
        for path in _places(out):
            try:
                earlier = _read(path)
            except DpsynthError as problem:
                raise type(problem)(
                    f"{problem}; mend it, or add --forget-earlier to go on without it"
                ) from None
            new = ledger.join(earlier)
            if new:
                say(f"{new} earlier releases taken over from {path}; the new ledger counts them as well")
    ledger.journal = journal
    before = len(ledger.entries)
    try:
        yield ledger
    except BaseException:
        if journal.exists() and len(ledger.entries) > before:
            say(f"what was posted stands in {journal} and counts in the next run of {out}")
        raise
    journal.unlink(missing_ok=True)


def give_up(checkpoint: Path) -> None:
    """Mark a checkpoint as used, so that nothing goes on from it; its ledger still counts."""
    waiting, used = (checkpoint / name for name in _CHECKPOINTS)
    if waiting.exists():
        os.replace(waiting, used)


def checkpoint_ledger(checkpoint: Path) -> Ledger:
    """The ledger in a checkpoint."""
    return _read(next(checkpoint / name for name in _CHECKPOINTS if (checkpoint / name).is_file()))


def _forget(out: Path, ledger: Ledger) -> None:
    """Say in the ledger that something is left out, if there is something that it does not hold."""
    if not all(_is_in(path, ledger) for path in _places(out)):
        ledger.exclude("earlier releases from the same folder, left out on request (--forget-earlier)")


def _is_in(path: Path, ledger: Ledger) -> bool:
    try:
        return ledger.holds(_read(path))
    except DpsynthError:  # what cannot be read cannot be known to be nothing
        return False


def _places(out: Path) -> list[Path]:
    """Files that hold a ledger of ``out``; of a finished folder one is enough."""
    finished = [out / "ledger.json", out / "model.json", out / "model" / "model.json"]
    checkpoint = [out.with_name(f"{out.name}.checkpoint") / name for name in _CHECKPOINTS]
    first = next((path for path in finished if path.is_file()), None)
    return [path for path in (first, journal_file(out), *checkpoint) if path is not None and path.is_file()]


def _read(path: Path) -> Ledger:
    if path.name.endswith(("ledger.json", "journal.json")):
        return Ledger.load(path)
    record = read_json(path)
    try:
        return Ledger.from_dict(record["ledger"])
    except (KeyError, TypeError) as problem:
        raise DataError(f"{path} holds no ledger ({problem})") from None
    except DataError as problem:
        raise DataError(f"{path}: {problem}") from None
