"""Private checkpoints of an interrupted training run: JSON and arrays, usable once."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from dpsynth import storage
from dpsynth.errors import DataError
from dpsynth.gan.settings import TrainingSettings
from dpsynth.gan.training import TrainingState
from dpsynth.mechanism.plan import Plan

_NOTE = "PRIVATE: this folder holds the state of an unfinished run. Keep it with the data; do not share it.\n"


def write_checkpoint(
    path: str | Path,
    record: dict[str, Any],
    arrays: dict[str, np.ndarray],
    state: TrainingState,
    plan: Plan,
    settings: TrainingSettings,
) -> None:
    """Write everything that `take_checkpoint` gives back, atomically."""
    flat = [np.asarray(a) for a in tf.nest.flatten(state.arrays)]
    full = {
        **record,
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
        (folder / "README.txt").write_text(_NOTE, encoding="utf-8")

    storage.write_folder(path, fill, replace=True)


def take_checkpoint(
    path: str | Path,
) -> tuple[dict[str, Any], dict[str, np.ndarray], TrainingState, Plan, TrainingSettings]:
    """Read a checkpoint and mark it as used.

    Raises
    ------
    DataError
        If the folder holds no checkpoint, a damaged one or one that has been used already.
    """
    path = Path(path)
    if (path / "checkpoint.used.json").exists() and not (path / "checkpoint.json").exists():
        raise DataError(
            f"{path} has been resumed before; a second continuation would release more than the ledger says"
        )
    record, arrays = storage.read_state(path, "checkpoint")
    try:
        training = record["training"]
        settings = TrainingSettings.from_dict(training["settings"])
        plan = Plan.from_dict(training["plan"])
        stored = storage.under("state", arrays)
        flat = [stored[key] for key in sorted(stored)]
        state = TrainingState(_nest(flat, settings), int(training["step"]), training["history"])
    except (KeyError, TypeError, IndexError, ValueError) as problem:
        raise storage.damaged(path, "checkpoint", problem) from None
    os.replace(path / "checkpoint.json", path / "checkpoint.used.json")
    return record, arrays, state, plan, settings


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
