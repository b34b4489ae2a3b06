"""Do two tables come from the same distribution? A permutation test with nearest-neighbour accuracy.

If both tables are samples of one distribution, the labels "real" and "synthetic" of the pooled records are
exchangeable: every way to deal them out is equally probable. The accuracy under random labels is therefore
the exact reference, for any sizes, dimensions and ties (Schilling, "Multivariate two-sample tests based on
nearest neighbors", JASA 81, 1986, and Henze 1988 test so with a fixed number of neighbours). Small accuracies
speak for copies of records, large ones for a different distribution.

The neighbours of the pooled records do not depend on the labels and are found once. A list of the nearest is
long enough that nearly always it holds the first neighbour of either label and settles the counts; the few
records for which it does not are compared with all others.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpsynth.evaluation.neighbours.accuracy import (
    TIE_TOLERANCE,
    contributions,
    enough_counted,
    ranks,
    running_counts,
    thins_the_other,
    tie_band,
    two_tables,
)
from dpsynth.evaluation.neighbours.search import Floats, Metric, metric_named, nearest, over_tiles
from dpsynth.evaluation.tables import random_rows

#: pooled distances are kept in memory up to this many records (8 bytes each, squared)
_KEPT = 6000
#: accuracies that differ by less are equal: sums of the same terms in another order
_ROUNDING = 1e-11


@dataclass(frozen=True)
class SameDistribution:
    """Result of the permutation test."""

    accuracy: float  # nearest-neighbour accuracy of the records used
    p_value: float  # two-sided: how often random labels are at least as far from 1/2
    p_close: float  # one-sided: how often random labels give so small an accuracy. Small for copied records.
    p_apart: float  # one-sided: how often so large an accuracy. Small for different distributions.
    n_real: int  # records used
    n_synthetic: int
    permutations: int


def same_distribution(
    real: ArrayLike,
    synthetic: ArrayLike,
    *,
    rng: np.random.Generator,
    permutations: int = 200,
    limit: int = 2000,
    metric: str | Metric = "euclidean",
) -> SameDistribution:
    """Test whether two tables come from the same distribution.

    At most ``limit`` records of each table are used, a random part of it. p-values are
    ``(1 + #) / (1 + permutations)``, which is valid at any number of permutations. They presume independent
    records in each table; those of a synthetic table made to match marginals are not quite.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> real = rng.normal(size=(100, 2))
    >>> same_distribution(real, rng.normal(size=(100, 2)) + 1, rng=rng).p_value < 0.01
    True
    >>> copies = same_distribution(real, real, rng=rng)
    >>> copies.p_close < 0.01, copies.p_apart
    (True, 1.0)
    """
    t, s = (table[random_rows(len(table), limit, rng)] for table in two_tables(real, synthetic))
    pooled = _Pooled(np.vstack([t, s]), len(t), metric_named(metric))
    labels = np.arange(len(t) + len(s)) < len(t)
    observed = pooled.accuracy(labels)
    null = np.array([pooled.accuracy(rng.permutation(labels)) for _ in range(permutations)])

    def share(extreme: NDArray[np.bool_]) -> float:
        return float((1 + np.count_nonzero(extreme)) / (1 + permutations))

    return SameDistribution(
        accuracy=observed,
        p_value=share(np.abs(null - 0.5) >= abs(observed - 0.5) - _ROUNDING),
        p_close=share(null <= observed + _ROUNDING),
        p_apart=share(null >= observed - _ROUNDING),
        n_real=len(t),
        n_synthetic=len(s),
        permutations=int(permutations),
    )


class _Pooled:
    """Pooled records with their nearest, ready for any labels."""

    def __init__(self, points: Floats, n: int, metric: Metric) -> None:
        total = len(points)
        self._points, self._metric = points, metric
        self._sizes = {True: (n, total - n), False: (total - n, n)}
        self._enough = {side: enough_counted(*sizes) for side, sizes in self._sizes.items()}
        rarer = min(n, total - n) / total
        # Without the rarer label once in a million lists.
        length = int(np.ceil(np.log(1e-6) / np.log1p(-rarer)))
        length = min(max(length, 2 * max(self._enough.values())), 256, total - 1)
        found = nearest(points, points, metric, length, itself=np.arange(total))
        self._index, self._reach, self._distance = found.index, found.reach, found.distance
        self._closer, self._tied = ranks(found.distance, found.distance, TIE_TOLERANCE)
        self._matrix = self._distances(np.arange(total)) if total <= _KEPT and length < total - 1 else None

    def accuracy(self, labels: NDArray[np.bool_]) -> float:
        """Mean of both sides, for labels that are true for the first table."""
        return (self._side(labels, True) + self._side(labels, False)) / 2.0

    def _side(self, labels: NDArray[np.bool_], side: bool) -> float:
        rows = np.flatnonzero(labels == side)
        n, m = self._sizes[side]
        # Labels that give the limit: the row's own where the other table is thinned.
        limiting = side if thins_the_other(n, m) else not side
        gives = labels[self._index[rows]] == limiting
        found = gives.any(axis=1)
        first = np.where(found, gives.argmax(axis=1), 0)
        seen = running_counts(~gives, np.int16)
        line = np.arange(len(rows))
        closer = seen[line, self._closer[rows, first]].astype(np.int64)
        tied = seen[line, self._tied[rows, first]].astype(np.int64)
        _, above = tie_band(self._distance[rows, first], TIE_TOLERANCE)
        # Everything closer than a listed neighbour is listed; what is tied with it may not be.
        cut_off = (self._reach[rows] <= above) & (tied < self._enough[side])
        open_rows = np.flatnonzero(~found | cut_off)
        for start in range(0, len(open_rows), 1024):
            some = open_rows[start : start + 1024]
            closer[some], tied[some] = self._count_all(rows[some], labels, limiting)
        enough = self._enough[side]
        return float(contributions(np.minimum(closer, enough), np.minimum(tied, enough), n, m).mean())

    def _count_all(
        self, rows: NDArray[np.intp], labels: NDArray[np.bool_], limiting: bool
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        distances = self._distances(rows) if self._matrix is None else self._matrix[rows]
        limit = distances[:, labels == limiting].min(axis=1)
        below, above = tie_band(limit, TIE_TOLERANCE)
        counted = distances[:, labels != limiting]
        return (
            np.count_nonzero(counted < below[:, None], axis=1),
            np.count_nonzero(counted <= above[:, None], axis=1),
        )

    def _distances(self, rows: NDArray[np.intp]) -> Floats:
        points = self._points
        return np.concatenate(over_tiles(lambda _, tile: tile, points[rows], points, self._metric, rows))
