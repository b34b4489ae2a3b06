"""Differences of one column's distribution between two tables, what chance alone gives, and intervals.

Three distances: total variation over cells (every column), Kolmogorov-Smirnov and Wasserstein-1 over ordered
values (numeric columns; ordinal ones by rank). Two samples of one distribution never agree, so that each
distance stands beside the value that two samples of these sizes from the pooled table would have on average.

All three are norms of the difference of two distributions. The distance of the samples therefore differs
from that of the populations by at most the distance of each sample from its own population (the triangle
inequality), and the interval is the sample's distance plus and minus the quantile of that sum over
multinomial resamples of both tables. Such an interval is wide but holds near 0 too, where a bootstrap
percentile interval of a distance does not. Resampling touches counts of at most some hundred cells, so that
its time does not grow with the tables.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpsynth.errors import InputError
from dpsynth.evaluation.estimates import Estimate, check_level, share, share_difference
from dpsynth.evaluation.features import unit_values
from dpsynth.evaluation.similarity.resemblance import cell_counts
from dpsynth.table.column import Column

Floats = NDArray[np.float64]

#: cells over which Wasserstein and Kolmogorov-Smirnov distances are resampled; the distances themselves are
#: exact
_CELLS = 200
_DRAWS = 200


@dataclass(frozen=True)
class Difference:
    """One distance between two samples.

    Attributes
    ----------
    estimate : Estimate
        Of the distance between the populations; the interval is conservative.
    chance : float
        Its mean over two samples of these sizes from the pooled sample.
    """

    estimate: Estimate
    chance: float


@dataclass(frozen=True)
class ColumnDifference:
    """How the distributions of one column differ.

    Attributes
    ----------
    column : str
    tvd : Difference
        Total variation distance over the cells of
        :func:`~dpsynth.evaluation.similarity.resemblance.one_way_tvd`, missing values being one.
    ks : Difference or None
        Largest difference of the distribution functions of present values; None for categories without
        order, and where a table has no present value.
    wasserstein : Difference or None
        Mean distance by which present values must be moved, as a share of the public range (of the ranks of
        an ordinal column).
    missing_real, missing_synthetic : float or None
        Share of missing values; None where the schema allows none.
    missing_difference : Estimate or None
        Synthetic minus real; Newcombe's interval from two Clopper-Pearson ones.
    """

    column: str
    tvd: Difference
    ks: Difference | None
    wasserstein: Difference | None
    missing_real: float | None
    missing_synthetic: float | None
    missing_difference: Estimate | None


def compare_column(
    real: pd.Series[Any],
    synthetic: pd.Series[Any],
    column: Column,
    *,
    rng: np.random.Generator,
    level: float = 0.95,
) -> ColumnDifference:
    """Compare one column of two tables.

    Parameters
    ----------
    real, synthetic : pandas.Series of shape (n,), (m,)
        Conformed values, at least one each.
    column : Column
    rng : numpy.random.Generator
        For the multinomial resamples: records of both tables taken as independent, cells held fixed.
    level : float

    Returns
    -------
    ColumnDifference
        Internal.

    Examples
    --------
    >>> age = Column(name="age", kind="integer", lower=0, upper=100)
    >>> real, made = pd.Series([10, 20, 30, 40]), pd.Series([20, 30, 40, 50])
    >>> found = compare_column(real, made, age, rng=np.random.default_rng(0))
    >>> found.ks.estimate.value, round(found.wasserstein.estimate.value, 12)
    (0.25, 0.1)
    """
    check_level(level)
    if not len(real) or not len(synthetic):
        raise InputError(f"both tables must have records, got {len(real)} and {len(synthetic)}")
    tvd = _difference(cell_counts(real, synthetic, column), _total_variation, None, rng, level)
    ks = wasserstein = None
    if not column.is_categorical:
        a, b = (unit_values(column, series) for series in (real, synthetic))
        a, b = a[~np.isnan(a)], b[~np.isnan(b)]
        if len(a) and len(b):
            ks, wasserstein = _ordered(a, b, rng, level)
    missing: tuple[Estimate, Estimate] | None = None
    if column.missing:
        first, second = (share(int(s.isna().sum()), len(s), level) for s in (synthetic, real))
        missing = first, second
    return ColumnDifference(
        column.name,
        tvd,
        ks,
        wasserstein,
        missing[1].value if missing else None,
        missing[0].value if missing else None,
        share_difference(*missing) if missing else None,
    )


def ks_distance(a: Floats, b: Floats) -> float:
    """Kolmogorov-Smirnov distance of two samples: the largest difference of their distribution functions.

    Examples
    --------
    >>> ks_distance(np.array([0.0, 0.5]), np.array([0.5, 1.0]))
    0.5
    """
    points = np.unique(np.concatenate([a, b]))
    return float(np.abs(_distribution(a, points) - _distribution(b, points)).max())


def wasserstein_distance(a: Floats, b: Floats) -> float:
    """Wasserstein-1 distance of two samples: the area between their distribution functions.

    Examples
    --------
    >>> wasserstein_distance(np.array([0.0, 0.5]), np.array([0.25, 0.75]))
    0.25
    """
    points = np.unique(np.concatenate([a, b]))
    gap = np.abs(_distribution(a, points) - _distribution(b, points))
    return float(gap[:-1] @ np.diff(points))


def _distribution(sample: Floats, points: Floats) -> Floats:
    return np.searchsorted(np.sort(sample), points, side="right") / len(sample)


def _ordered(a: Floats, b: Floats, rng: np.random.Generator, level: float) -> tuple[Difference, Difference]:
    pooled = np.unique(np.concatenate([a, b]))
    if len(pooled) > _CELLS:
        pooled = np.unique(np.quantile(np.concatenate([a, b]), np.linspace(0, 1, _CELLS + 1)))
    # Cell k ends at the k-th point; the distribution function at a point is a cumulative sum of cells.
    counts = [
        np.bincount(np.searchsorted(pooled, sample, side="left"), minlength=len(pooled)) for sample in (a, b)
    ]
    widths = np.append(np.diff(pooled), 0.0)

    def largest(gap: Floats) -> Floats:
        return np.abs(np.cumsum(gap, axis=-1)).max(axis=-1)

    def area(gap: Floats) -> Floats:
        return np.abs(np.cumsum(gap, axis=-1)) @ widths

    return (
        _difference(counts, largest, ks_distance(a, b), rng, level),
        _difference(counts, area, wasserstein_distance(a, b), rng, level),
    )


def _total_variation(gap: Floats) -> Floats:
    return 0.5 * np.abs(gap).sum(axis=-1)


def _difference(
    counts: Sequence[NDArray[np.int64]],
    norm: Callable[[Floats], Floats],
    value: float | None,
    rng: np.random.Generator,
    level: float,
) -> Difference:
    """Distance of two samples from their counts (or as given), with its interval and its chance value."""
    sizes = [int(count.sum()) for count in counts]
    shares = [count / size for count, size in zip(counts, sizes, strict=True)]
    pooled = (counts[0] + counts[1]) / sum(sizes)
    distance = float(norm(shares[0] - shares[1])) if value is None else value
    own = [
        norm(rng.multinomial(size, p, size=_DRAWS) / size - p) for size, p in zip(sizes, shares, strict=True)
    ]
    stray = float(np.quantile(own[0] + own[1], level, method="higher"))
    one, other = (rng.multinomial(size, pooled, size=_DRAWS) / size for size in sizes)
    chance = float(norm(one - other).mean())
    return Difference(Estimate(distance, max(distance - stray, 0.0), min(distance + stray, 1.0)), chance)
