"""Releases run on frames through a ledger of their own, in one call."""

from __future__ import annotations

import numpy as np
import pandas as pd

from dpsynth.marginals.columns import estimate_marginals
from dpsynth.marginals.network import BaseModelReleases, BayesianNetwork
from dpsynth.marginals.statistics import MarginalsRelease
from dpsynth.privacy import Ledger
from dpsynth.privacy.records import FrameRecords
from dpsynth.privacy.release import CountRelease
from dpsynth.table.grid import Marginals
from dpsynth.table.schema import Schema


def release_marginals(
    frame: pd.DataFrame, schema: Schema, *, rng: np.random.Generator, **options: object
) -> Marginals:
    release = MarginalsRelease(schema=schema, **options)
    return estimate_marginals(release, Ledger().run(release, FrameRecords(frame), rng))


def release_count(frame: pd.DataFrame, noise_multiplier: float | None, rng: np.random.Generator) -> float:
    return Ledger().run(CountRelease(noise_multiplier=noise_multiplier), FrameRecords(frame), rng)


def fit_base_model(
    frame: pd.DataFrame,
    schema: Schema,
    marginals: Marginals,
    *,
    kind: str,
    noise_multiplier: float | None,
    selection_epsilon: float | None,
    rng: np.random.Generator,
) -> BayesianNetwork:
    releases = BaseModelReleases.plan(
        schema, kind, noise_multiplier=noise_multiplier, epsilon=selection_epsilon
    )
    return releases.run(Ledger(), FrameRecords(frame), marginals, rng)


def read(release: object, frame: pd.DataFrame) -> list[np.ndarray]:
    """What a release counts, exact."""
    records = FrameRecords(frame)
    with records.opened():
        return [array * step for array, step in zip(release.query(records), release.steps, strict=False)]
