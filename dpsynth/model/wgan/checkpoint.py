"""Private checkpoints of an interrupted training run: JSON and arrays, usable once."""

from __future__ import annotations

import dataclasses
import hashlib
import os
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import tensorflow as tf
from numpy.typing import NDArray

from dpsynth.errors import DataError, InputError
from dpsynth.files import storage
from dpsynth.files.atomic import write_text
from dpsynth.mechanism.plan import Plan
from dpsynth.model.wgan.settings import TrainingSettings
from dpsynth.model.wgan.training import TrainingState
from dpsynth.releases.records import Records

_NAME, _USED = "checkpoint.json", "checkpoint.used.json"
_NOTE = "PRIVATE: this folder holds the state of an unfinished run. Keep it with the data; do not share it.\n"


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
    >>> from dpsynth.releases.records import FrameRecords
    >>> with (records := FrameRecords(pd.DataFrame({"a": [1, 2]}))).opened():
    ...     table_digest(records, "x") == table_digest(records, "x"), len(table_digest(records, "y"))
    (True, 64)
    """
    return hashlib.sha256(salt.encode() + records.rows(_hashes).tobytes()).hexdigest()


def recognised(records: Records) -> dict[str, str]:
    """Salt and digest by which a checkpoint recognises open records."""
    salt = secrets.token_hex(16)
    return {"salt": salt, "digest": table_digest(records, salt)}


def _hashes(frame: pd.DataFrame, first: int) -> NDArray[np.uint64]:
    return np.asarray(pd.util.hash_pandas_object(frame, index=False), np.uint64)


def write_checkpoint(
    path: str | Path,
    record: dict[str, Any],
    arrays: dict[str, np.ndarray],
    state: TrainingState,
    plan: Plan,
    settings: TrainingSettings,
    table: dict[str, str],
) -> None:
    """Write everything that `take_checkpoint` gives back, atomically. ``table``: its `recognised`."""
    flat = [np.asarray(a) for a in tf.nest.flatten(state.arrays)]
    full = {
        **record,
        "table": table,
        "training": {
            "step": state.step,
            "history": state.history,
            "plan": plan.to_dict(),
            "settings": dataclasses.asdict(settings),
        },
    }
    stored = arrays | storage.prefixed("state", {f"{i:03d}": a for i, a in enumerate(flat)})

    def fill(folder: Path) -> None:
        storage.write_state(folder, "checkpoint", full, stored)
        write_text(folder / "README.txt", _NOTE)

    storage.write_folder(path, fill, replace=True)


def read_checkpoint(path: str | Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Read record and arrays of a checkpoint that is not used up, and leave it as it is."""
    path = Path(path)
    if (path / _USED).exists() and not (path / _NAME).exists():
        raise DataError(
            f"{path} has been resumed before: a second continuation would cost more than the ledger says"
        )
    return storage.read_state(path, "checkpoint")


def take_checkpoint(
    path: str | Path, conform: Callable[[dict[str, Any]], Records]
) -> tuple[dict[str, Any], dict[str, np.ndarray], Records, TrainingState, Plan, TrainingSettings]:
    """Read a checkpoint, see that it is of this table, and mark it as used.

    ``conform`` gives the conformed records from the checkpoint's record. An error in it leaves the checkpoint
    unused.
    """
    path = Path(path)
    record, arrays = read_checkpoint(path)
    try:
        training = record["training"]
        settings = TrainingSettings.from_dict(training["settings"])
        plan = Plan.from_dict(training["plan"])
        stored = storage.under("state", arrays)
        flat = [stored[key] for key in sorted(stored)]
        state = TrainingState(_nest(flat, settings), int(training["step"]), training["history"])
    except (KeyError, TypeError, IndexError, ValueError) as problem:
        raise storage.damaged(path, "checkpoint", problem) from None
    records = conform(record)
    with records.opened():  # compared with what is as private
        digest = table_digest(records, record["table"]["salt"])
    if digest != record["table"]["digest"]:
        raise DataError(
            f"{path} was left by a run on another table: resume with the same records in their order"
        )
    os.replace(path / _NAME, path / _USED)
    return record, arrays, records, state, plan, settings


def _nest(flat: list[np.ndarray], settings: TrainingSettings) -> dict[str, Any]:
    """The nested state from its flat list (dictionaries are flattened in the order of their keys)."""
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
    return tf.nest.pack_sequence_as(shape, flat)
