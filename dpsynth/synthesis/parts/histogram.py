"""Noisy counts of records by their nearest group of samples, and noisy random Fourier features."""

from __future__ import annotations

from dataclasses import dataclass

from dpsynth.marginals.features import FourierFeatures
from dpsynth.marginals.statistics import (
    Groups,
    NeighbourHistogram,
    NeighbourHistogramRelease,
    group_count,
)
from dpsynth.synthesis.parts.base_model import Samples
from dpsynth.synthesis.parts.part import Part, Reading, Redrawing, Statistic


@dataclass(frozen=True)
class Histogram(Part[NeighbourHistogram]):
    """The nearest-neighbour histogram, by which samples of the base model are weighted."""

    @property
    def release(self) -> NeighbourHistogramRelease:
        """The counts with their noise."""
        return NeighbourHistogramRelease(noise_multiplier=self.noise, stage=self.stage)

    @property
    def statistics(self) -> tuple[Statistic, ...]:
        """One release."""
        release = self.release
        return (Statistic("nearest-neighbour histogram", (release.event,), noise_std=release.noise_std),)

    def read(self, reading: Reading) -> NeighbourHistogram:
        """Make groups and features of samples of the base model, and count the records."""
        release, samples, rng = self.release, Samples.of(reading), reading.rng
        bins = samples.bins
        groups = Groups.of(bins, samples.draws, group_count(bins.n, release.noise_std), rng)
        features = FourierFeatures.of(groups.tables, rng)
        found: NeighbourHistogram = reading.run(release.at((bins, groups, features)))
        return found

    def redraw(self, reading: Redrawing) -> NeighbourHistogram:
        """The same groups and features. Features that were of no use stay away."""
        before = reading.released.base_model
        assert before is not None and before.weighting is not None  # the part was read
        features = None if before.weighting.fourier is None else before.weighting.fourier.features
        given = Samples.of(reading).bins, before.weighting.groups, features
        found: NeighbourHistogram = reading.run(self.release.at(given))
        return found
