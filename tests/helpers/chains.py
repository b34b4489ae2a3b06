"""Chains fitted to statistics of a frame, in one call."""

from __future__ import annotations

import numpy as np
import pandas as pd
from releases import fit_base_model

from dpsynth.marginals.binning import Bins
from dpsynth.marginals.chain import Chain
from dpsynth.marginals.chain_fit import ChainFit
from dpsynth.marginals.features import PairFeatures
from dpsynth.marginals.statistics import PairwiseStatistics, PairwiseStatisticsRelease
from dpsynth.privacy import Ledger
from dpsynth.privacy.records import FrameRecords
from dpsynth.table.grid import Marginals
from dpsynth.table.schema import Schema


def chain_of(
    frame: pd.DataFrame,
    schema: Schema,
    marginals: Marginals,
    rng: np.random.Generator,
    *,
    kind: str = "tan",
    noise: float | None = 1.0,
    pairs: float | None = None,
) -> Chain:
    """A chain of tables and, with noise ``pairs``, of pairwise statistics."""
    network = fit_base_model(
        frame, schema, marginals, kind=kind, noise_multiplier=noise, selection_epsilon=0.5, rng=rng
    )
    released: PairwiseStatistics | None = None
    if pairs is not None:
        bins = Bins(marginals.grids, network.binnings, marginals.n)
        outcome = None if schema.outcome is None else network.root
        features = PairFeatures.of(bins, network.sample(4000, rng), outcome=outcome)
        release = PairwiseStatisticsRelease(noise_multiplier=pairs).at((bins, features))
        released = Ledger().run(release, FrameRecords(frame), rng)
    return ChainFit(network, marginals, released, rng, schema).chain
