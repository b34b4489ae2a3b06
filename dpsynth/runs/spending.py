"""The ledger of a folder's runs: where its file is, and what a run must count before it reads a record.

A folder's ledger stands in a file beside it, unless the configuration or ``DPSYNTH_LEDGER`` names that of a
data set. The file outlives the folder, which may be replaced, and every run that failed or was killed. So
what was released from the folder's records goes on into its next ledger.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path

from dpsynth.errors import DataError, PrivacyError
from dpsynth.files.storage import read_json, unsealed
from dpsynth.privacy.ledger import Ledger
from dpsynth.privacy.ledger_file import Cost

_CHECKPOINTS = ("checkpoint.json", "checkpoint.used.json")


def ledger_beside(out: str | Path) -> Path:
    """Path of the ledger of a folder for which none is named.

    Examples
    --------
    >>> ledger_beside("runs/demo").name
    'demo.ledger'
    """
    path = Path(out)
    return path.with_name(f"{path.name}.ledger")


@contextlib.contextmanager
def ledger_of_run(
    named: str | Path | None,
    cost: Cost,
    out: Path,
    *,
    resumed: Ledger | None = None,
    say: Callable[[str], None],
) -> Iterator[Ledger]:
    """Give the ledger of a run of ``out``, with its cost reserved, before a record is read.

    ``named`` is the file that the configuration names, ``resumed`` the ledger of the checkpoint that the run
    goes on from. ``say`` gets what earlier runs cost, and this one if it fails. Raises PrivacyError as
    :meth:`Ledger.reserved` does, or if the folder or its checkpoint holds statistics that the ledger does not
    count.
    """
    ledger = Ledger.named(None if named is None else str(named))
    if ledger is None:
        ledger = Ledger.open(ledger_beside(out), make=True)
    assert ledger.file is not None
    file = ledger.file.path
    for path in _places(out):
        if not ledger.counts(_read(path)):
            raise PrivacyError(
                f"{path} holds noisy statistics that the ledger {file} does not count. Name the ledger that "
                "counts them (ledger: in the configuration, or DPSYNTH_LEDGER), or another folder"
            )
    if earlier := len(ledger.entries):
        one = "1 earlier noisy statistic. It counts"
        several = f"{earlier} earlier noisy statistics. They count"
        say(f"the ledger {file} holds {one if earlier == 1 else several} as well")
    with ledger.reserved(cost, str(out.absolute()), resumed=resumed):
        try:
            yield ledger
        except BaseException:
            if spent := ledger.spent():
                say(f"the run stopped after {spent}. Later runs count this cost, which stands in {file}")
            raise


def give_up(checkpoint: Path) -> None:
    """Mark a checkpoint as used, so nothing continues from it. Its cost stays in the ledger."""
    waiting, used = (checkpoint / name for name in _CHECKPOINTS)
    if waiting.exists():
        os.replace(waiting, used)


def is_waiting(checkpoint: Path) -> bool:
    """Whether a run can go on from a checkpoint."""
    return (checkpoint / _CHECKPOINTS[0]).is_file()


def checkpoint_ledger(checkpoint: Path) -> Ledger:
    """The ledger in a checkpoint."""
    return _read(next(checkpoint / name for name in _CHECKPOINTS if (checkpoint / name).is_file()))


def _places(out: Path) -> list[Path]:
    """Files that hold a ledger of ``out``: one of a finished folder, and those of its checkpoint."""
    finished = [out / "ledger.json", out / "model.json", out / "model" / "model.json"]
    checkpoint = [out.with_name(f"{out.name}.checkpoint") / name for name in _CHECKPOINTS]
    first = next((path for path in finished if path.is_file()), None)
    return [path for path in (first, *checkpoint) if path is not None and path.is_file()]


def _read(path: Path) -> Ledger:
    if path.name == "ledger.json":
        return Ledger.load(path)
    record = unsealed(read_json(path), f"cannot read the ledger in {path}")
    try:
        return Ledger.from_dict(record["ledger"])
    except (KeyError, TypeError) as problem:
        raise DataError(f"{path} holds no ledger ({problem})") from None
    except DataError as problem:
        raise DataError(f"{path}: {problem}") from None
