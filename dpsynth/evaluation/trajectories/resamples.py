"""Patients drawn with replacement: intervals of numbers that rows of one patient determine together.

Rows of a patient are not independent. So whole patients are drawn, never rows (cluster bootstrap: Davison and
Hinkley 1997, "Bootstrap methods and their application", section 3.8). Each number is a function of sums over
patients. A resample changes only how often a patient counts in the sums.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpsynth.evaluation.estimates import Estimate
from dpsynth.table.histories import Floats, Histories

#: resamples behind an interval
RESAMPLES = 200


@dataclass(frozen=True)
class Resampled:
    """Histories of N patients, and how often each counts: shape (1 + resamples, N).

    The first row of ``weights`` holds ones. So the first of any 1 + resamples numbers is that of the table.
    """

    histories: Histories
    weights: Floats

    @classmethod
    def of(cls, histories: Histories, rng: np.random.Generator, resamples: int = RESAMPLES) -> Resampled:
        """Draw the resamples."""
        n = len(histories.rows)
        drawn = (np.bincount(rng.integers(n, size=n), minlength=n) for _ in range(resamples))
        return cls(histories, np.vstack([np.ones(n), *drawn]).astype(np.float64))

    def sums(self, *values: Floats) -> Floats:
        """Sums over patients of k numbers each, shape (k, 1 + resamples)."""
        return np.asarray((self.weights @ np.stack(values, axis=1)).T)


@dataclass(frozen=True)
class Cells:
    """Events of patients in numbered cells of two tables, such as gaps by length.

    ``cell`` and ``patient`` have one entry an event, for each of the two tables.
    """

    cell: tuple[NDArray[np.int64], NDArray[np.int64]]
    patient: tuple[NDArray[np.int64], NDArray[np.int64]]
    size: int

    @classmethod
    def of(cls, first: Floats, second: Floats) -> tuple[Cells, Floats]:
        """The cells of all different values of two tables (N, k), without NaN, and these values in order."""
        patients, _ = zip(*(np.nonzero(~np.isnan(values)) for values in (first, second)), strict=True)
        flat = [values[~np.isnan(values)] for values in (first, second)]
        levels, cell = np.unique(np.concatenate(flat), return_inverse=True)
        cells = (cell[: len(flat[0])], cell[len(flat[0]) :])
        return cls(cells, patients, len(levels)), levels

    def distances(
        self, real: Resampled, synthetic: Resampled, distance: Callable[[Floats, Floats], float]
    ) -> Floats:
        """A distance of the shares of events over the cells, in each resample that both tables have.

        NaN where a table has no event.
        """
        if not all(map(len, self.cell)):
            return np.full(len(real.weights), np.nan)
        found = []
        for pair in zip(real.weights, synthetic.weights, strict=False):
            counts = (
                np.bincount(cell, weights=weights[patient], minlength=self.size)
                for cell, patient, weights in zip(self.cell, self.patient, pair, strict=True)
            )
            found.append(distance(*(count / max(count.sum(), 1e-300) for count in counts)))
        return np.array(found)


def total_variation(first: Floats, second: Floats) -> float:
    """Total variation distance of two vectors of shares."""
    return 0.5 * float(np.abs(first - second).sum())


def kolmogorov_smirnov(first: Floats, second: Floats) -> float:
    """Largest difference of the cumulated shares of values in ascending order."""
    return float(np.abs(np.cumsum(first - second)).max())


def interval(values: Floats, level: float) -> Estimate:
    """The first number with the quantiles of the others, which are resamples."""
    tail = (1.0 - level) / 2
    if np.isnan(values[1:]).all():
        return Estimate(float(values[0]), np.nan, np.nan)
    lower, upper = np.nanquantile(values[1:], (tail, 1.0 - tail))
    return Estimate(float(values[0]), float(lower), float(upper))


def distance_interval(values: Floats, level: float) -> Estimate:
    """The same for a distance in [0, 1], by reflected quantiles.

    Chance makes a distance larger in a sample, and in a resample once more. Reflection takes that back.
    """
    plain = interval(values, level)
    lower, upper = (float(np.clip(2 * plain.value - end, 0.0, 1.0)) for end in (plain.upper, plain.lower))
    return Estimate(plain.value, lower, max(upper, plain.value))
