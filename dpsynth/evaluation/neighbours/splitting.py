"""Confidence intervals by splitting tables into halves and quarters, for statistics of nearest neighbours.

A bootstrap over records is wrong for them: a record drawn twice has itself at distance 0, and records become
their own copies. The jackknife is wrong too: an accuracy of nearest neighbours is not a smooth function of
the records. Under equal distributions a single record has no first-order effect, what remains are
interactions of neighbours, and leaving out records (one by one or in groups) overstates the variance, about
2.6 times in two dimensions. Nor are records independent terms, since those that are nearest to each other
score together.

What holds without linearity: if each table is a sample of independent records, two disjoint halves of all
tables are independent, so half the squared difference of their statistics has the variance of the statistic
at half size as its expectation, whatever the statistic. It is averaged over random splits. From quarters
comes the variance at a quarter of the size, and the variance at full size follows at the same rate:
``V(n) = V(n/2) * V(n/2) / V(n/4)``. (The rate is 1/2 for continuous records; for records that often coincide
the variance falls faster, as cells fill up.) The interval is the estimate and a t quantile, its degrees of
freedom from the spread over splits and from the number of records.

Resampled: which records are in the tables. Held fixed: the generator and its training. Rows of a synthetic
table that was post-processed to match marginals are not quite independent, but taken so. Records copied from
the other table are separated by a split: where each record is a copy by chance, coverage is about right;
where the *number* of copies is fixed, the interval is too wide (about 98 % instead of 95 % at 30 % copies).
It is also too wide, though narrow, where nearly every record coincides with many others: the variance then
falls faster than by a constant rate.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpsynth.checks import in_range, whole
from dpsynth.evaluation.neighbours.search import in_threads

#: a quarter must hold two records
SMALLEST = 8
_THREADS_FROM = 10_000

Floats = NDArray[np.float64]
Labels = NDArray[np.int8]


@dataclass(frozen=True)
class Interval:
    """An estimate with its confidence interval.

    Attributes
    ----------
    value : float
    lower, upper : float or None
        None where a table has fewer than 8 records.
    standard_error : float or None
    level : float
        Of confidence.
    """

    value: float
    lower: float | None
    upper: float | None
    standard_error: float | None
    level: float


def split_intervals(
    values: Sequence[float],
    statistic: Callable[[Sequence[Labels], int], Floats],
    sizes: Sequence[int],
    *,
    rng: np.random.Generator,
    level: float,
    splits: int,
) -> list[Interval]:
    """Return intervals of statistics of several tables of independent records.

    Parameters
    ----------
    values : sequence of q floats
        The statistics on the whole tables.
    statistic : callable
        From the part of each record of each table (0 to parts - 1, -1 for none) and the number of parts, to
        the statistics on every part, of shape (parts, q).
    sizes : sequence of int
        Number of records of each table.
    level : float
        Of confidence, in (0, 1).
    splits : int
        At least 10.
    """
    from scipy.stats import t as student

    in_range("level", level, 0.0, 1.0, low_open=True, high_open=True)
    whole("splits", splits, 10)
    if min(sizes) < SMALLEST:
        return [Interval(float(value), None, None, None, level) for value in values]

    def spreads(labels: Sequence[Labels]) -> tuple[Floats, Floats]:
        # Quarters 0 and 1 make a half, 2 and 3 the other; -1 stays -1.
        half = statistic([part // 2 for part in labels], 2)
        return np.var(half, axis=0, ddof=1), np.var(statistic(labels, 4), axis=0, ddof=1)

    drawn = [[_quarters(size, rng) for size in sizes] for _ in range(splits)]
    # Threads cost more than they save on small tables.
    done = list(in_threads(spreads, drawn) if sum(sizes) > _THREADS_FROM else map(spreads, drawn))
    half, quarter = np.stack([pair[0] for pair in done]), np.stack([pair[1] for pair in done])
    at_half, at_quarter = half.mean(axis=0), quarter.mean(axis=0)
    found = []
    for i, value in enumerate(values):
        if at_half[i] <= 0.0 or at_quarter[i] <= 0.0:
            # All halves agree (tables apart, or constant): the variance at half size, 0, is all there is.
            spread, freedom = at_half[i] / 2.0, float(min(sizes) - 1)
        else:
            spread = at_half[i] * np.clip(at_half[i] / at_quarter[i], 0.25, 1.0)
            # Delta method for log V(n), over splits.
            noise = np.var(2.0 * half[:, i] / at_half[i] - quarter[:, i] / at_quarter[i], ddof=1) / splits
            freedom = 1.0 / (noise / 2.0 + 1.0 / (min(sizes) - 1))
        error = float(np.sqrt(spread))
        reach = float(student.ppf(0.5 + level / 2.0, freedom)) * error
        found.append(Interval(float(value), float(value) - reach, float(value) + reach, error, level))
    return found


def clipped(interval: Interval, lowest: float, highest: float) -> Interval:
    """Return the interval within the range that its value can have."""
    if interval.lower is None or interval.upper is None:
        return interval
    ends = max(interval.lower, lowest), min(interval.upper, highest)
    return Interval(interval.value, *ends, interval.standard_error, interval.level)


def _quarters(size: int, rng: np.random.Generator) -> Labels:
    """Four random parts of one size; up to three records are left over."""
    labels = np.arange(size) % 4
    labels[4 * (size // 4) :] = -1
    return rng.permutation(labels).astype(np.int8)
