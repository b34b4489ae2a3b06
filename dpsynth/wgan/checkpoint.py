"""Private checkpoints of an interrupted training run: JSON and arrays, usable once."""

from __future__ import annotations

import hashlib
import os
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpsynth.errors import DataError, InputError
from dpsynth.files import codec, storage
from dpsynth.files.storage import write_text
from dpsynth.privacy.records import Records
from dpsynth.privacy.release import Plan
from dpsynth.table.coded import CodedTable
from dpsynth.wgan.settings import TrainingSettings

if TYPE_CHECKING:
    from dpsynth.wgan.training import TrainingState

_NAME, _USED = "checkpoint.json", "checkpoint.used.json"
_NOTE = "PRIVATE: this folder holds the state of an unfinished run. Keep it with the data; do not share it.\n"


@codec.record
@dataclass(frozen=True, eq=False)
class Interrupted:
    """An unfinished training.

    ``table``: salt and digest of its records.
    ``step``: generator steps so far.
    ``state``: weights and Adam averages, flattened in the order of their names, as `_nest` reads them.
    ``ledger``: the file in which its fit posted, if it has one.
    """

    table: dict[str, str]
    plan: Plan
    settings: TrainingSettings
    step: int
    state: tuple[NDArray[np.float32], ...]
    ledger: str | None = None

    @classmethod
    def of(
        cls, state: TrainingState, plan: Plan, settings: TrainingSettings, table: dict[str, str]
    ) -> Interrupted:
        """The part of a training that is kept beside its history. ``table``: its `recognised`."""
        import tensorflow as tf

        flat = tuple(np.asarray(a) for a in tf.nest.flatten(state.arrays))
        return cls(table, plan, settings, state.step, flat)

    def state_with(self, history: list[dict[str, float]]) -> TrainingState:
        """The state to go on from."""
        from dpsynth.wgan.training import TrainingState

        return TrainingState(_nest(self.state, self.settings), self.step, history)


class Saved(Protocol):
    """A fit as a checkpoint holds it."""

    @property
    def interrupted(self) -> Interrupted | None:
        """Its training."""


Fit = TypeVar("Fit", bound=Saved)


def check_target(path: str | Path) -> None:
    """Refuse a folder that a checkpoint would replace although it is not an earlier checkpoint."""
    path = Path(path)
    if path.is_file():
        raise InputError(f"checkpoint {path} is a file: name a folder")
    if path.is_dir() and any(path.iterdir()) and not any((path / name).exists() for name in (_NAME, _USED)):
        raise InputError(f"checkpoint {path} holds other files: name a new folder")


def table_digest(records: Records, salt: str) -> str:
    """Salted SHA-256 of records that are open, to recognise the table of a private checkpoint.

    Examples
    --------
    >>> from dpsynth.privacy.records import FrameRecords
    >>> with (records := FrameRecords(pd.DataFrame({"a": [1, 2]}))).opened():
    ...     table_digest(records, "x") == table_digest(records, "x"), len(table_digest(records, "y"))
    (True, 64)
    """
    return hashlib.sha256(salt.encode() + records.rows(_hashes).tobytes()).hexdigest()


def recognised(records: Records) -> dict[str, str]:
    """Salt and digest by which a checkpoint recognises open records."""
    salt = secrets.token_hex(16)
    return {"salt": salt, "digest": table_digest(records, salt)}


def _hashes(table: CodedTable, first: int) -> NDArray[np.uint64]:
    return np.asarray(pd.util.hash_pandas_object(table.frame, index=False), np.uint64)


def write_checkpoint(path: str | Path, saved: Saved) -> None:
    """Write a fit with its `Interrupted` training, atomically."""

    def fill(folder: Path) -> None:
        codec.write(folder, "checkpoint", saved)
        write_text(folder / "README.txt", _NOTE)

    storage.write_folder(path, fill, replace=True)


def read_checkpoint(path: str | Path, kind: type[Fit]) -> tuple[Fit, Interrupted]:
    """Read a checkpoint that is not used up, and its training, and leave it as it is."""
    path = Path(path)
    if (path / _USED).exists() and not (path / _NAME).exists():
        raise DataError(
            f"{path} has been resumed before: a second continuation would cost more than the ledger says"
        )
    saved = codec.read(path, "checkpoint", kind)
    if saved.interrupted is None:
        raise storage.damaged(path, "checkpoint", "its training is absent")
    return saved, saved.interrupted


def take_checkpoint(
    path: str | Path, kind: type[Fit], conform: Callable[[Fit], Records]
) -> tuple[Fit, Interrupted, Records]:
    """Read a checkpoint, see that it is of this table, and mark it as used.

    ``conform`` gives the conformed records. An error in it leaves the checkpoint unused.
    """
    path = Path(path)
    saved, left = read_checkpoint(path, kind)
    records = conform(saved)
    with records.opened():  # compared with what is as private
        digest = table_digest(records, left.table["salt"])
    if digest != left.table["digest"]:
        raise DataError(
            f"{path} was left by a run on another table: resume with the same records in their order"
        )
    os.replace(path / _NAME, path / _USED)
    return saved, left, records


def _nest(flat: tuple[NDArray[np.float32], ...], settings: TrainingSettings) -> dict[str, Any]:
    """The nested state from its flat list (dictionaries are flattened in the order of their keys)."""
    import tensorflow as tf

    n_critic = 2 * len(settings.critic_hidden) + 1
    n_generator = 2 * len(settings.generator_hidden) + 2

    def moments(n: int) -> dict[str, Any]:
        zeros = [np.float32(0)] * n
        return {"count": np.float32(0), "first": zeros, "second": zeros}

    shape = {
        "critic": [np.float32(0)] * n_critic,
        "critic_adam": moments(n_critic),
        "generator": [np.float32(0)] * n_generator,
        "generator_adam": moments(n_generator),
        "average": [np.float32(0)] * n_generator,
    }
    nested: dict[str, Any] = tf.nest.pack_sequence_as(shape, list(flat))
    return nested
