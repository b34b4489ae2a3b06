"""Private checkpoints of a training run, from which it goes on bit for bit: JSON and arrays, usable once."""

from __future__ import annotations

import hashlib
import os
import platform
import secrets
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol, TypeVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpsynth.errors import DataError, InputError
from dpsynth.files import codec, storage
from dpsynth.files.storage import write_text
from dpsynth.privacy.records import Records
from dpsynth.privacy.release import Plan
from dpsynth.table.coded import CodedTable
from dpsynth.wgan.history import TrainingHistory
from dpsynth.wgan.state import TrainingState, by_place, nested

# The second is what `dpsynth.runs.spending` makes of the first when it is given up.
_NAME, _USED = "checkpoint.json", "checkpoint.used.json"
# Variables by which TensorFlow chooses its number of threads and its kernels.
_ROUNDING = ("TF_NUM_INTRAOP_THREADS", "TF_ENABLE_ONEDNN_OPTS", "XLA_FLAGS")
_NOTE = (
    "PRIVATE: this folder holds the state of a training and of the generator of its noise. Whoever reads it "
    "can take the noise away. Keep it with the data. Do not share it. Delete it when the model is saved.\n"
)
#: what a run writes into the folder beside a checkpoint, and what stays when the checkpoint is replaced
MARK = "run.json"


@codec.record
@dataclass(frozen=True, eq=False)
class Interrupted:
    """An unfinished training, or one that is finished.

    ``table``: salt and digest of its records.
    ``step``: iterations so far.
    ``state``: the arrays of its `TrainingState` by their places.
    ``start``, ``noise``: states of the noise's generator before the records were encoded, and now. With them
        the training goes on as if it had not stopped. They are secret. None if no noise is to come.
    ``computer``: where it ran. Elsewhere products round differently, and noise must not come twice for sums
        that differ.
    ``ended``: whether nothing is left to do.
    ``ledger``: the file in which its fit posted, if it has one.
    """

    table: dict[str, str]
    plan: Plan
    step: int
    state: dict[str, NDArray[np.float32]]
    start: str | None = None
    noise: str | None = None
    computer: str = ""
    ended: bool = False
    ledger: str | None = None

    @classmethod
    def of(
        cls, state: TrainingState, plan: Plan, table: dict[str, str], start: str, *, ended: bool = False
    ) -> Interrupted:
        """The part of a training that is kept beside its history. ``table``: its `recognised`."""
        return cls(
            table,
            plan,
            state.step,
            by_place(state.arrays),
            start=start if state.awaits_noise else None,
            noise=state.noise if state.awaits_noise else None,
            computer=this_computer(),
            ended=ended,
        )

    def state_with(self, history: TrainingHistory) -> TrainingState:
        """The state to go on from."""
        awaits, layers = self.start is not None, history.layers
        state = TrainingState(nested(self.state), self.step, history.frame, self.noise, layers, awaits)
        return replace(state, snapshots=history.snapshots)


def this_computer() -> str:
    """Machine, cores, libraries and their settings, which decide how sums are rounded.

    A sum that more threads share is rounded otherwise.
    """
    import tensorflow as tf

    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    kinds = [device.device_type for device in tf.config.list_physical_devices()]
    threads = tf.config.threading.get_intra_op_parallelism_threads()
    given = [os.environ.get(name, "") for name in _ROUNDING]
    libraries = f"{np.__version__} {tf.__version__}"
    return f"{platform.node()} {platform.machine()} {cores} {kinds} {libraries} {threads} {given}"


class Saved(Protocol):
    """A fit as a checkpoint holds it."""

    @property
    def interrupted(self) -> Interrupted | None:
        """Its training."""


Fit = TypeVar("Fit", bound=Saved)


def check_target(path: str | Path) -> None:
    """Refuse a folder that is no earlier checkpoint, or that of a training that has not ended."""
    path = Path(path)
    if path.is_file():
        raise InputError(f"checkpoint {path} is a file: name a folder")
    if not path.is_dir():
        return
    names = {entry.name for entry in path.iterdir()}
    if not names & {_NAME, _USED} and names - {MARK}:
        raise InputError(f"checkpoint {path} holds other files: name a new folder")
    if _NAME in names and _is_unfinished(path):
        raise InputError(
            f"checkpoint {path} holds a training that has not ended. Go on with `resume`, or name another "
            "folder"
        )


def _is_unfinished(path: Path) -> bool:
    record = storage.read_json(path / _NAME)
    left = record.get("interrupted") if isinstance(record, dict) else None
    return not isinstance(left, dict) or left.get("ended") is not True


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
    """Write a fit with its `Interrupted` training, atomically, in the place of an earlier one."""
    mark = Path(path) / MARK

    def fill(folder: Path) -> None:
        codec.write(folder, "checkpoint", saved)
        write_text(folder / "README.txt", _NOTE)
        if mark.is_file():
            write_text(folder / MARK, mark.read_text(encoding="utf-8"))

    storage.write_folder(path, fill, replace=True)


def read_checkpoint(path: str | Path, kind: type[Fit]) -> tuple[Fit, Interrupted]:
    """Read a checkpoint that nobody has given up, and its training."""
    path = Path(path)
    if (path / _USED).exists() and not (path / _NAME).exists():
        raise DataError(f"{path} was given up: nothing goes on from it any more")
    saved = codec.read(path, "checkpoint", kind)
    if saved.interrupted is None:
        raise storage.damaged(path, "checkpoint", "its training is absent")
    return saved, saved.interrupted


def take_checkpoint(
    path: str | Path, kind: type[Fit], conform: Callable[[Fit], Records]
) -> tuple[Fit, Interrupted, Records]:
    """Read a checkpoint, and see that it is of this table.

    The caller holds the folder's lock. So nobody else goes on from it until there is a new one in its place.
    ``conform`` gives the conformed records.
    """
    saved, left = read_checkpoint(path, kind)
    records = conform(saved)
    with records.opened():  # compared with what is as private
        digest = table_digest(records, left.table["salt"])
    if digest != left.table["digest"]:
        raise DataError(
            f"{path} was left by a run on another table: resume with the same records in their order"
        )
    return saved, left, records
