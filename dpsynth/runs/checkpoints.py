"""The private checkpoint that an interrupt of the training leaves beside a run's folder."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dpsynth.accounting.journal import checkpoint_ledger
from dpsynth.accounting.ledger import Ledger
from dpsynth.errors import ConfigError, DataError, InputError
from dpsynth.files import storage
from dpsynth.runs.config import RunConfig, keys_of_fit

# Put into a checkpoint, so that it is resumed by the run that left it.
_RUN = "run.json"


def checkpoint_folder(out: str | Path) -> Path:
    """Return the folder beside ``out`` where an interrupt leaves the private checkpoint."""
    path = Path(out)
    return path.with_name(f"{path.name}.checkpoint")


def waits(checkpoint: Path) -> bool:
    """Return whether a run can go on from the checkpoint."""
    return (checkpoint / "checkpoint.json").is_file()


@contextmanager
def marked(checkpoint: Path, config: RunConfig) -> Iterator[None]:
    """Write into a checkpoint that an interrupt of the block leaves which run it is of."""
    try:
        yield
    except KeyboardInterrupt:
        if waits(checkpoint):
            (checkpoint / _RUN).write_text(json.dumps(config.to_dict()), encoding="utf-8")
        raise


def check_checkpoint(checkpoint: Path, config: RunConfig, *, resume: bool, force: bool) -> None:
    """Refuse to resume what is not there or another run's, and to give up a checkpoint without ``force``."""
    if not resume:
        if waits(checkpoint) and not force:
            raise InputError(
                f"{checkpoint} holds the private checkpoint of an interrupted run; go on with --resume, or "
                "give it up with --force"
            )
        return
    if not waits(checkpoint):
        raise DataError(f"there is no checkpoint to resume in {checkpoint}")
    saved = checkpoint / _RUN
    if not saved.exists() or keys_of_fit(json.loads(saved.read_text(encoding="utf-8"))) != config.of_fit():
        raise ConfigError(f"{checkpoint} was left by a run of another configuration")


def continued(
    checkpoint: Path, named: Ledger | None, path: str | Path | None, forget_earlier: bool
) -> Ledger:
    """The checkpoint's ledger; one that the interrupted run did not go on from is refused, not lost."""
    if forget_earlier:
        raise InputError("--forget-earlier does not go with --resume: the interrupted run has its ledger")
    ledger = checkpoint_ledger(checkpoint)
    if named is not None and not ledger.holds(named):
        raise InputError(
            f"the run that left {checkpoint} did not go on from the ledger {path}: give the checkpoint up "
            "(--force without --resume) and begin anew with that ledger, or resume without it if it is about "
            "another table"
        )
    return ledger


def remove(checkpoint: Path) -> None:
    """Remove a checkpoint and what killed processes left of it; the caller holds the folder's lock."""
    for rest in (checkpoint, *storage.leftovers(checkpoint)):
        if rest.exists():
            shutil.rmtree(rest)
