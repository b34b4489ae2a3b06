"""A worker of a fit that several processes share: ``python shared_fit.py FOLDER``, with TF_CONFIG set."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pandas as pd
import tensorflow as tf

import dpsynth
from dpsynth.errors import DataError
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


if __name__ == "__main__":
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    rank = strategy.cluster_resolver.task_id
    with strategy.scope():
        for name, seed, steps in (("seeded", 5, 40), ("secret", None, 0)):
            fitted(seed, steps).save(Path(sys.argv[1]) / f"{name}-{rank}")
        try:
            fitted(5, 0, reverse=rank == 1)
        except DataError as problem:
            (Path(sys.argv[1]) / f"refused-{rank}.txt").write_text(str(problem))
