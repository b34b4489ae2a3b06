"""Journal of a folder: the noisy statistics of its table that no run of the same folder may lose.

A folder that is replaced may have been shared. A run that was given up, failed or was killed may have read
the table. So the ledger of a run is kept in a *journal* beside its folder. It is there from before the first
statistic until the folder with the final ledger is complete. A new run continues from the journal, from the
folder that it replaces and from a checkpoint that it gives up. A stage in several of them counts once. A
failed run costs what its last stage was promised, since when it stopped may depend on noisy statistics.
Two runs of one folder may have read different tables. This is not checked: adding up is always right.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path

from dpsynth.accounting.guarantee import FORGOTTEN
from dpsynth.accounting.ledger import Ledger
from dpsynth.errors import DataError, DpsynthError
from dpsynth.files.atomic import read_json, unsealed

_CHECKPOINTS = ("checkpoint.json", "checkpoint.used.json")


def journal_file(out: str | Path) -> Path:
    """Path of a folder's journal: a hidden file, which no user's file is mistaken for.

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
    """Give the ledger that a run or fit of ``out`` continues from, with a journal until the block ends.

    ``named`` holds the noisy statistics that the user names. With ``forget`` the ledger begins from ``named``
    alone although there is more, and says so. If the block raises, the journal stays, and ``say`` gets what
    it cost.
    """
    ledger, journal = Ledger(), journal_file(out)
    if named is not None:
        ledger.join(named)
    if forget:
        if not all(_is_in(path, ledger) for path in _places(out)):
            ledger.exclude(FORGOTTEN)
    else:
        for path in _places(out):
            try:
                earlier = _read(path)
            except DpsynthError as problem:
                raise type(problem)(
                    f"{problem}. Correct the file, or add --forget-earlier to continue without any earlier "
                    "ledger of the folder"
                ) from None
            new = ledger.join(earlier)
            if new:
                say(f"{new} earlier noisy statistics taken over from {path}. The new ledger counts them too")
    ledger.journal = journal
    before = len(ledger.entries)
    try:
        yield ledger
    except BaseException:
        if journal.exists() and len(ledger.entries) > before:
            say(
                f"the run stopped after {ledger.spent_since(before)}. "
                f"The next run of {out} counts this cost, which stands in {journal}"
            )
        raise
    journal.unlink(missing_ok=True)


def give_up(checkpoint: Path) -> None:
    """Mark a checkpoint as used, so nothing continues from it, but its ledger still counts."""
    waiting, used = (checkpoint / name for name in _CHECKPOINTS)
    if waiting.exists():
        os.replace(waiting, used)


def is_waiting(checkpoint: Path) -> bool:
    """Whether a run can go on from a checkpoint."""
    return (checkpoint / _CHECKPOINTS[0]).is_file()


def checkpoint_ledger(checkpoint: Path) -> Ledger:
    """The ledger in a checkpoint."""
    return _read(next(checkpoint / name for name in _CHECKPOINTS if (checkpoint / name).is_file()))


def _is_in(path: Path, ledger: Ledger) -> bool:
    try:
        return ledger.holds(_read(path))
    except DpsynthError:  # what cannot be read cannot be known to be nothing
        return False


def _places(out: Path) -> list[Path]:
    """Files that hold a ledger of ``out``, one of a finished folder."""
    finished = [out / "ledger.json", out / "model.json", out / "model" / "model.json"]
    checkpoint = [out.with_name(f"{out.name}.checkpoint") / name for name in _CHECKPOINTS]
    first = next((path for path in finished if path.is_file()), None)
    return [path for path in (first, journal_file(out), *checkpoint) if path is not None and path.is_file()]


def _read(path: Path) -> Ledger:
    if path.name.endswith(("ledger.json", "journal.json")):
        return Ledger.load(path)
    record = unsealed(read_json(path), f"cannot read the ledger in {path}")
    try:
        return Ledger.from_dict(record["ledger"])
    except (KeyError, TypeError) as problem:
        raise DataError(f"{path} holds no ledger ({problem})") from None
    except DataError as problem:
        raise DataError(f"{path}: {problem}") from None
