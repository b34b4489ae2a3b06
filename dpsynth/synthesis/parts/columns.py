"""Noisy counts of single columns, which all else rests on."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from dpsynth.marginals.columns import estimate_marginals
from dpsynth.marginals.statistics import MarginalsRelease
from dpsynth.synthesis.parts.part import Part, Reading, Redrawing, Statistic
from dpsynth.table.grid import Marginals
from dpsynth.table.schema import Schema


@dataclass(frozen=True)
class Columns(Part[Marginals]):
    """Single-column counts.

    ``n``, ``n_std``: public or privately counted number of records, and the standard deviation of its noise.
    """

    schema: Schema
    n: float
    n_std: float = 0.0

    @property
    def release(self) -> MarginalsRelease:
        """The counts with their noise."""
        return MarginalsRelease(
            noise_multiplier=self.noise, stage=self.stage, schema=self.schema, n=self.n, n_std=self.n_std
        )

    @property
    def statistics(self) -> tuple[Statistic, ...]:
        """The counts."""
        release = self.release
        std = release.noise_std
        means = {
            grid.column.name: std / self.n * float(np.linalg.norm(middles - middles.mean()))
            for grid in release.grids
            if (middles := grid.middles) is not None
        }
        return (
            Statistic("single-column counts", (release.event,), noise_std=std, column_std=std, means=means),
        )

    def read(self, reading: Reading) -> Marginals:
        """Count, and estimate each column's distribution."""
        return estimate_marginals(self.release, reading.run(self.release))

    def redraw(self, reading: Redrawing) -> Marginals:
        """The same counts on the same cells. A noisy number of records stays."""
        before = reading.marginals
        release = replace(self.release, n=before.n, n_std=0.0, counted=before.counting)
        return estimate_marginals(release, reading.run(release), before.grids)
