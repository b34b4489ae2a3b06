"""Noisy means of products of two columns' numbers, beside the base model's tables."""

from __future__ import annotations

from dataclasses import dataclass

from dpsynth.marginals.features import PairFeatures
from dpsynth.marginals.statistics import PairwiseStatistics, PairwiseStatisticsRelease
from dpsynth.synthesis.parts.base_model import Samples
from dpsynth.synthesis.parts.part import Part, Reading, Statistic
from dpsynth.table.schema import Schema


@dataclass(frozen=True)
class Pairwise(Part[PairwiseStatistics]):
    """Pairwise statistics, to which samples of the base model are reweighted."""

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
