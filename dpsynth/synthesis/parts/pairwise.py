"""Noisy means of products of two columns' numbers, beside the base model's tables."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from dpsynth.marginals.features import PairFeatures
from dpsynth.marginals.statistics import PairwiseStatistics, PairwiseStatisticsRelease
from dpsynth.synthesis.parts.base_model import Samples
from dpsynth.synthesis.parts.part import Part, Reading, Redrawing, Statistic
from dpsynth.table.schema import Schema


@dataclass(frozen=True)
class Pairwise(Part[PairwiseStatistics]):
    """Pairwise statistics, to which the chain is fitted beside its tables."""

    schema: Schema

    @property
    def release(self) -> PairwiseStatisticsRelease:
        """The statistics with their noise."""
        return PairwiseStatisticsRelease(noise_multiplier=self.noise, stage=self.stage)

    @property
    def statistics(self) -> tuple[Statistic, ...]:
        """One release."""
        return (Statistic("pairwise statistics", (self.release.event,)),)

    def read(self, reading: Reading) -> PairwiseStatistics:
        """Choose features by samples of the base model, and read their means."""
        schema, samples = self.schema, Samples.of(reading)
        outcome = None if schema.outcome is None else schema.names.index(schema.outcome)
        features = PairFeatures.of(samples.bins, samples.draws, outcome)
        found: PairwiseStatistics = reading.run(self.release.at((samples.bins, features)))
        return found

    def redraw(self, reading: Redrawing) -> PairwiseStatistics:
        """The same features, around the released means of pairs of columns that no table holds.

        Records of the released model lack what its fit has shrunk. Fits to these would shrink it twice.
        """
        chain = reading.released.chain
        assert chain is not None and chain.pairs is not None and reading.pool is not None
        features, bins = chain.pairs.features, Samples.of(reading).bins
        found: PairwiseStatistics = reading.run(self.release.at((bins, features)))
        counted = np.zeros((len(features.tables),) * 2, dtype=bool)
        further = (cells.columns for grown in chain.grown for cells in grown)
        for family in (*chain.network.families, *further):
            counted[np.ix_(family, family)] = True
        column = np.repeat(np.arange(len(features.tables)), np.diff(features.ends))
        times = features.products.shape[1] // max(features.size, 1)
        outside = np.tile(~counted[np.ix_(column, column)], times)
        shrunk = chain.pairs.mean - features.mean_and_variance(chain.bins(reading.pool))[0]
        return replace(found, mean=found.mean + np.where(outside, shrunk, 0.0))
