"""A worker of a fit that several processes share: ``python shared_fit.py FOLDER``, with TF_CONFIG set."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import tensorflow as tf

import dpsynth
from dpsynth.errors import DataError
from dpsynth.model.wgan import training
from dpsynth.model.wgan.settings import TrainingSettings
from dpsynth.table.schema import Column, Schema

SCHEMA = Schema(
    columns=(
        Column(name="age", kind="integer", lower=18, upper=90),
        Column(name="stage", kind="categorical", categories=("I", "II", "III")),
        Column(name="died", kind="binary", categories=("no", "yes")),
    ),
    n_public=400,
)
SMALL = TrainingSettings(critic_hidden=(8,), generator_hidden=(8,), latent=3)


def fitted(seed: int | None, steps: int, *, reverse: bool = False) -> dpsynth.DPWGANGP:
    rng = np.random.default_rng(0)
    age = rng.integers(18, 91, 400)
    frame = pd.DataFrame(
        {
            "age": age,
            "stage": rng.choice(["I", "II", "III"], 400),
            "died": np.where(rng.random(400) < age / 100, "yes", "no"),
        }
    )
    model = dpsynth.DPWGANGP(
        1.0, 1e-5, training_steps=steps, training=SMALL, pairwise_statistics=False, random_state=seed
    )
    return model.fit(frame[::-1] if reverse else frame, schema=SCHEMA)


def other_critic(*arguments: Any, **options: Any) -> training.TrainingState:
    """A start from which a worker with a WGAN critic of its own would go another way."""
    state = initial_state(*arguments, **options)
    state.arrays["critic"] = [array + np.float32(0.1) for array in state.arrays["critic"]]
    return state


if __name__ == "__main__":
    folder, strategy = Path(sys.argv[1]), tf.distribute.MultiWorkerMirroredStrategy()
    rank = strategy.cluster_resolver.task_id
    initial_state = training.initial_state
    with strategy.scope():
        if rank == 1:
            training.initial_state = other_critic
        for name, seed, steps in (("seeded", 5, 40), ("secret", None, 0)):
            fitted(seed, steps).save(folder / f"{name}-{rank}")
        for what, seed, reverse in (("tables", 5, rank == 1), ("runs", 5 + rank, False)):
            try:
                fitted(seed, 5, reverse=reverse)
            except DataError as problem:
                (folder / f"{what}-{rank}.txt").write_text(str(problem))
