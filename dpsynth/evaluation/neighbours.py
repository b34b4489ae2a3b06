"""Nearest neighbours: the search, and unbiased adversarial accuracy (Pedersen 2022, section 4.1)."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.spatial.distance import cdist
from scipy.special import gammaln

from dpsynth.checks import in_range
from dpsynth.errors import InputError, of_records
from dpsynth.evaluation.tables import distance_features, one_hot, unit_values
from dpsynth.table.kinds.category import category_codes
from dpsynth.table.schema import Column, Schema

# ------------------------------------------------------------------------------------------------
# Distances between records of mixed types, declared by name, and the search of nearest neighbours.
#
# ``euclidean``
#     On :func:`~dpsynth.evaluation.tables.distance_features`: numbers and ranks scaled to [0, 1] by their
#     public bounds, categories one-hot, two different categories at distance 1.
# ``gower``
#     Mean over the columns of the scaled |difference| of numbers and ranks, or 0/1 for equal and different
#     categories (Gower 1971). Two missing values are at distance 0, a missing and a present one at distance
#       1.
#     Gower leaves such columns out of the mean instead. Then a record with one value present could lie at
#     distance 0 from everything, which breaks the triangle inequality.
# ``hamming``
#     Share of the columns whose values differ, after numbers are rounded to the resolution of the schema.
#     Missing equals missing. Numbers without a resolution differ unless they are the same.
#
# Each is a :class:`Metric`: how a conformed frame becomes points, and how two blocks of points become a tile
# of distances. Only the order of distances matters to nearest neighbours, so the Euclidean tile is squared.
#
# The nearest are exact, ties included. If a metric has Euclidean coordinates, scikit-learn's brute force
# (blocked matrix products) proposes the nearest. Its expansion ``x**2 + y**2 - 2 x y`` breaks ties. The
# distances of proposed points are therefore computed again from differences. Points that it may have missed
# have a bound: none outside the list lies below the distance ``reach``. Callers compare with ``reach`` as
# well. If the lists do not settle a comparison, they use all distances (:func:`over_tiles`). Other metrics
# compute every distance in tiles.
#
# Error of the expansion: points are shifted to the centre of the set and scaled by a power of two. A sum of
# p = d + 2 products, in any order, errs by at most ``p u / (1 - p u)`` times the sum of |terms| (Higham
# 2002, section 3.1). Here u is the unit roundoff. For half a squared distance that sum is at most ``|x| |y|
# + |x|**2/2 + |y|**2/2`` =: s. Rounding the factors adds less than ``4 u s``. The differences that the
# result is compared with add less than ``(p + 2) u s``. The error of a squared distance is thus at most ``4
# (p + 4) u s``. A last term covers underflow.

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Metric:
    """A distance between records.

    Attributes
    ----------
    encode : callable
        From a frame conformed to a schema, and the schema, to points of shape (n, d), never NaN.
    tile : callable
        From points of shape (n, d) and (m, d) to distances of shape (n, m), monotone in the named distance.
    embed : callable, optional
        From points to coordinates whose squared Euclidean distances are those of the tile up to rounding.
        Matrix products can then propose the nearest.
    pairs : callable, optional
        From points of shape (n, d), a set and positions in it of shape (n, k), to their distances. These
        equal the tile to the last bit. Required with ``embed``.
    """

    name: str
    encode: Callable[[pd.DataFrame, Schema], Floats]
    tile: Callable[[Floats, Floats], Floats]
    embed: Callable[[Floats], Floats] | None = None
    pairs: Callable[[Floats, Floats, NDArray[np.int64]], Floats] | None = None


def metric_named(name: str | Metric) -> Metric:
    """Return the metric of that name. A :class:`Metric` is returned as it is."""
    if isinstance(name, Metric):
        return name
    if name not in METRICS:
        raise InputError(f"metric must be one of {', '.join(METRICS)}, got {name!r}")
    return METRICS[name]


def gower_points(frame: pd.DataFrame, schema: Schema) -> Floats:
    """Encode a conformed frame so that city-block distances are Gower distances, shape (n, d).

    A number v in [0, 1] becomes (v, 1 - v, 0)/2 and a missing one (0, 0, 1)/2. Two numbers then lie at
    distance abs(v - w), and a missing one at distance 1 from all of them. Categories become one-hot halves.
    All is divided by the number of columns.

    Examples
    --------
    >>> schema = Schema(columns=(Column(name="age", kind="integer", lower=0, upper=100, missing=True),
    ...                          Column(name="sex", kind="binary", categories=("F", "M"))))
    >>> frame = pd.DataFrame({"age": [30, 50, None], "sex": ["F", "M", "M"]})
    >>> metric_named("gower").tile(*[gower_points(frame, schema)] * 2).round(3).tolist()
    [[0.0, 0.6, 1.0], [0.6, 0.0, 0.5], [1.0, 0.5, 0.0]]
    """
    blocks = []
    for column in schema.columns:
        if column.is_categorical:
            blocks.append(one_hot(column, frame[column.name]))
        else:
            unit = unit_values(column, frame[column.name])
            if column.incomplete:
                absent = np.isnan(unit)
                value = np.where(absent, 0.0, unit)
                blocks.append(np.stack([value, np.where(absent, 0.0, 1.0 - unit), absent], axis=1))
            else:
                blocks.append(2.0 * unit[:, None])
    return np.hstack(blocks) / (2.0 * len(schema.columns))


def hamming_points(frame: pd.DataFrame, schema: Schema) -> Floats:
    """Encode a conformed frame as one code a column: equal codes are equal at the public resolution.

    Return category codes, steps above the lower bound, or values if there is no step, shape (n, columns).
    Missing is -1 for codes and the float below the lower bound for values.
    """
    return np.stack([_codes(column, frame[column.name]) for column in schema.columns], axis=1)


def _codes(column: Column, series: pd.Series) -> Floats:
    if not column.is_numeric or column.lower is None:
        return category_codes(column, series).astype(np.float64)
    values = column.code(series)
    if column.resolution is None:
        return np.where(np.isnan(values), np.nextafter(column.lower, -np.inf), values)
    steps = np.rint((values - column.lower) / column.resolution)
    for code, number in enumerate(column.special):
        steps[values == number] = -2.0 - code
    return np.where(np.isnan(steps), -1.0, steps)


def squared_pairs(points: Floats, others: Floats, index: NDArray[np.int64]) -> Floats:
    """Squared distances of pairs summed column by column, which is how cdist sums: the same to the last bit.

    Examples
    --------
    >>> squared_pairs(np.array([[0.0]]), np.array([[1.0], [3.0]]), np.array([[1, 0]])).tolist()
    [[9.0, 1.0]]
    """
    total = np.zeros(index.shape)
    for x, y in zip(points.T, np.ascontiguousarray(others.T), strict=True):
        difference = y[index]
        np.subtract(x[:, None], difference, out=difference)
        np.multiply(difference, difference, out=difference)
        total += difference
    return total


def _mismatches(x: Floats, y: Floats) -> Floats:
    # cdist divides the whole number of differing columns by d; rounding that back keeps equal shares equal.
    return np.rint(cdist(x, y, "hamming") * x.shape[1]) / x.shape[1]


#: the metrics that can be asked for by name
METRICS: dict[str, Metric] = {
    metric.name: metric
    for metric in (
        Metric(
            "euclidean",
            distance_features,
            lambda x, y: np.asarray(cdist(x, y, "sqeuclidean")),
            embed=lambda points: points,
            pairs=squared_pairs,
        ),
        Metric("gower", gower_points, lambda x, y: np.asarray(cdist(x, y, "cityblock"))),
        Metric("hamming", hamming_points, _mismatches),
    )
}


Integers = NDArray[np.int64]
Item = TypeVar("Item")
Result = TypeVar("Result")

#: distances of a tile, and points searched at once
_TILE, _ROWS = 1 << 22, 8192
#: farther from the set than this, in its own scale, squares could overflow: every distance is computed
_FAR = 1e100


@dataclass(frozen=True)
class Nearest:
    """Distances to the nearest of a set, ascending, and their positions in it, shape (n, k).

    No member of the set outside the list is nearer than ``reach``, which is infinite where all are listed.
    """

    distance: Floats
    index: NDArray[np.int32]
    reach: Floats


def nearest(
    points: Floats,
    others: Floats,
    metric: Metric,
    k: int,
    *,
    itself: Integers | None = None,
) -> Nearest:
    """Find the k nearest members of a set, fewer where it has fewer.

    ``itself`` holds the position of each point in the set, which is left out of its list.
    """
    n, members = len(points), len(others) - (itself is not None)
    k = min(k, members)
    found = Nearest(np.empty((n, k)), np.empty((n, k), dtype=np.int32), np.full(n, np.inf))
    embed, pairs = metric.embed, metric.pairs
    propose = None if embed is None else _proposer(embed(points), embed(others))

    def search(rows: slice) -> None:
        own = None if itself is None else itself[rows]
        if propose is not None and pairs is not None:
            index, reach = propose(rows, k, own)
            distance = pairs(points[rows], others, index)
        else:
            every = _without(metric.tile(points[rows], others), own)
            index = np.argpartition(every, k - 1, axis=1)[:, :k]
            distance = np.take_along_axis(every, index, axis=1)
            reach = distance.max(axis=1)
        order = np.argsort(distance, axis=1, kind="stable")
        found.distance[rows] = np.take_along_axis(distance, order, axis=1)
        found.index[rows] = np.take_along_axis(index, order, axis=1)
        if k < members:
            found.reach[rows] = reach

    if propose is None:
        list(in_threads(search, _blocks(n, _TILE // len(others))))
    else:
        for rows in _blocks(n, _ROWS):  # scikit-learn has threads of its own
            search(rows)
    return found


def over_tiles(
    work: Callable[[slice, Floats], Result],
    points: Floats,
    others: Floats,
    metric: Metric,
    itself: Integers | None = None,
) -> list[Result]:
    """Return ``work(rows, distances)`` of all distances, a tile of rows at a time.

    The distances of a tile are to the whole set, infinite to the points themselves. Results of ``work`` are
    kept, and should be small.
    """

    def one(rows: slice) -> Result:
        own = None if itself is None else itself[rows]
        return work(rows, _without(metric.tile(points[rows], others), own))

    return list(in_threads(one, _blocks(len(points), _TILE // len(others))))


def in_threads(work: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
    """Yield ``work(item)`` in order, on all cores, with BLAS held to one thread per worker."""
    items = list(items)
    if len(items) < 2:
        yield from map(work, items)
        return
    from threadpoolctl import threadpool_limits  # comes with scikit-learn

    with threadpool_limits(1, user_api="blas"), ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        yield from pool.map(work, items)


def _blocks(n: int, size: int) -> Iterator[slice]:
    size = max(size, 1)
    return (slice(top, min(top + size, n)) for top in range(0, n, size))


def _without(tile: Floats, own: Integers | None) -> Floats:
    if own is not None:
        tile[np.arange(len(tile)), own] = np.inf
    return tile


def _proposer(
    points: Floats, others: Floats
) -> Callable[[slice, int, Integers | None], tuple[Integers, Floats]] | None:
    """Search by scikit-learn, None if squares could overflow."""
    from sklearn.neighbors import NearestNeighbors

    with np.errstate(over="ignore", invalid="ignore"):
        centre = others.mean(axis=0)
        spread = float(np.abs(others - centre).max())
        # A power of two, so that scaling rounds nothing.
        scale = float(2.0 ** -np.ceil(np.log2(spread))) if spread > 1e-140 else 1.0
        moved, left = ((part - centre) * scale for part in (others, points))
        if not (np.abs(moved).max() < _FAR and np.abs(left).max() < _FAR):
            return None
    brute = NearestNeighbors(algorithm="brute", metric="sqeuclidean").fit(moved)
    largest = float(np.sqrt(np.einsum("ij,ij->i", moved, moved).max()))
    terms, numbers = points.shape[1] + 2, np.finfo(np.float64)

    def propose(rows: slice, k: int, own: Integers | None) -> tuple[Integers, Floats]:
        """Return positions of shape (n, k), and a distance that no other member is nearer than."""
        squared, index = brute.kneighbors(left[rows], n_neighbors=k + (own is not None))
        size = np.sqrt(np.einsum("ij,ij->i", left[rows], left[rows]))
        total = size * largest + 0.5 * size**2 + 0.5 * largest**2
        margin = 4.0 * (terms + 4) * (numbers.eps / 2) * total * (1.0 + 1e-3) + 64.0 * terms * numbers.tiny
        reach = np.maximum(squared[:, -1] - margin, 0.0) / scale**2
        if own is not None:
            drop = index == own[:, None]
            drop[~drop.any(axis=1), -1] = True  # many others coincide with the point
            index = index[~drop].reshape(len(index), k)
        return index, reach

    return propose


# ------------------------------------------------------------------------------------------------
# Unbiased nearest-neighbour adversarial accuracy (Pedersen 2022, section 4.1).
#
# Is a record nearer to the others of its own table than to the records of the other table? If two tables
# come from one distribution, the accuracy is 1/2. Copied records push it towards 0, records unlike the real
# ones towards 1.
#
# A record of a table of n is compared with the n - 1 others of its own table and the m of the other table.
# Either side keeps as many neighbours, ``k = min(n - 1, m)``. The side with more keeps a uniformly random
# subset of k, and the average over all subsets is a ratio of binomial coefficients. For n = m this leaves
# out one record of the other table, and the expectation is exactly 1/2 (Theorem 4.1.1). Strict and
# non-strict comparisons are averaged for ties (4.5). As printed, (4.2), (4.6) and (4.7) mix counts with
# means, and (4.8) lacks a factor 2.
#
# Every record needs the distance to its nearest in one table, which is the limit. It also needs the number
# of records of the other table within the limit, with ties apart. Both come from lists of the k nearest.
# Records that these do not settle use all distances. Counts beyond the number that can change the result are
# not resolved.
#
# Comparisons use distances computed from differences, never as ``x**2 + y**2 - 2 x y``, whose rounding
# breaks ties. Distances that agree within ``tie_tolerance`` (relative) are ties. Columns scaled by their
# bounds make equal distances differ in their last digits.

Counts = NDArray[np.int64]

#: a probability below this no longer changes a contribution
_NEGLIGIBLE = 1e-16


def none_kept(total: int, marked: Counts, kept: int) -> Floats:
    """Probability that a uniformly random subset of ``kept`` of ``total`` items avoids every marked one.

    ``C(N - c, kept) / C(N, kept)`` by log-gamma, 0 if fewer than ``kept`` items are unmarked.
    """
    rest = total - np.asarray(marked, dtype=np.int64)
    possible = rest >= kept
    free = np.where(possible, rest, kept)  # keeps gammaln off its poles where the answer is 0
    log_ratio = gammaln(free + 1) - gammaln(free - kept + 1) - gammaln(total + 1) + gammaln(total - kept + 1)
    return np.where(possible, np.exp(np.minimum(log_ratio, 0.0)), 0.0)


def thins_the_other(n: int, m: int) -> bool:
    """Whether a subset of the other table is kept (m >= n - 1), or else of the record's own.

    The distance to the nearest of the side that is kept whole is the limit, and the side that is thinned is
    counted within it.
    """
    return m >= n - 1


def contributions(closer: Counts, closer_or_tied: Counts, n: int, m: int) -> Floats:
    """Probability that a record's nearest kept neighbour is of its own table. A tie counts one half.

    ``closer`` and ``closer_or_tied`` count the thinned side strictly within, and within or at, the limit.

    Examples
    --------
    The cases ``d_S1 < d_T1 < d_S2`` and ``d_S1 = d_T1 < d_S2`` with n = m = 3: 1/n and (n + 1)/(2n).

    >>> contributions(np.array([1, 0]), np.array([1, 1]), 3, 3).round(4).tolist()
    [0.3333, 0.6667]
    """
    if thins_the_other(n, m):
        return 0.5 * (none_kept(m, closer_or_tied, n - 1) + none_kept(m, closer, n - 1))
    return 1.0 - 0.5 * (none_kept(n - 1, closer, m) + none_kept(n - 1, closer_or_tied, m))


def enough_counted(n: int, m: int) -> int:
    """Count above which the probability of avoiding all counted is negligible: more changes nothing."""
    total, kept = (m, n - 1) if thins_the_other(n, m) else (n - 1, m)
    # Each further marked item multiplies the probability by at most 1 - kept/total.
    ratio = 1.0 - kept / total
    worst = total - kept + 1
    if ratio <= 0.0:
        return 1
    few = np.arange(min(worst, int(np.ceil(np.log(_NEGLIGIBLE) / np.log(ratio)))) + 1)
    return int(few[none_kept(total, few, kept) < _NEGLIGIBLE].min(initial=few[-1]))


#: distances (squared ones of the Euclidean metric) that differ by at most this part of the larger one are
#: tied: columns scaled by their bounds make equal distances differ in their last digits
TIE_TOLERANCE = 1e-9


@dataclass(frozen=True)
class Side:
    """The records of one table (n), with their nearest in it, themselves left out, and in the other (m)."""

    own: Nearest
    other: Nearest
    n: int
    m: int
    contribution: Floats  # shape (n,); of which the mean is the accuracy of this side


def one_side(
    own: Floats,
    other: Floats,
    metric: Metric,
    *,
    k: int = 8,
    near: Nearest | None = None,
    tie_tolerance: float = TIE_TOLERANCE,
) -> Side:
    """Compare every record of ``own`` with its neighbours in ``own`` and in ``other``, listed ``k`` at least.

    Examples
    --------
    >>> from dpsynth.evaluation.neighbours import metric_named
    >>> own, other = np.array([[0.0], [1.0], [2.5], [4.0]]), np.array([[0.2], [1.3], [2.0], [7.0]])
    >>> one_side(own, other, metric_named("euclidean")).contribution.round(4).tolist()
    [0.25, 0.0, 0.0, 1.0]
    """
    n, m = len(own), len(other)
    length = max(k, min(enough_counted(n, m) + 4, 64))
    # Lists of another length, which other sizes can need, are found anew.
    here = near if near is not None and near.distance.shape[1] == min(length, n - 1) else None
    if here is None:
        here = nearest(own, own, metric, length, itself=np.arange(n))
    far = nearest(own, other, metric, length)
    closer, tied, open_rows = _counts(here, far, n, m, tie_tolerance)
    if len(open_rows):
        closer[open_rows], tied[open_rows] = _count_all(own, other, open_rows, metric, tie_tolerance)
    enough = enough_counted(n, m)
    value = contributions(np.minimum(closer, enough), np.minimum(tied, enough), n, m)
    return Side(here, far, n, m, value)


def tie_band(limit: Floats, tolerance: float) -> tuple[Floats, Floats]:
    """Distances strictly below the first end are closer than ``limit``, those up to the second are tied.

    Two are tied iff the larger exceeds the smaller by at most a factor 1/(1 - tolerance). The relation is
    symmetric in the two, so the measure stays exactly unbiased.
    """
    return limit * (1.0 - tolerance), limit / (1.0 - tolerance)


def ranks(distances: Floats, limits: Floats, tolerance: float) -> tuple[Integers, Integers]:
    """How many of each row of ascending distances lie strictly within, and within or at, each of its limits.

    Examples
    --------
    >>> [found.tolist() for found in ranks(np.array([[1.0, 2.0, 2.0]]), np.array([[2.0, 3.0]]), 0.0)]
    [[[1, 3]], [[3, 3]]]
    """
    below, above = tie_band(limits, tolerance)
    rows = range(len(limits))
    return (
        np.array([np.searchsorted(distances[i], below[i], "left") for i in rows]),
        np.array([np.searchsorted(distances[i], above[i], "right") for i in rows]),
    )


def running_counts(marks: NDArray[np.bool_], dtype: type[np.signedinteger[Any]]) -> NDArray[Any]:
    """Number of marked entries among the first c of each row, for c = 0 to k, shape (n, k + 1).

    Examples
    --------
    >>> running_counts(np.array([[True, False, True]]), np.int8).tolist()
    [[0, 1, 1, 2]]
    """
    counts = np.zeros((len(marks), marks.shape[1] + 1), dtype=dtype)
    np.cumsum(marks, axis=1, dtype=dtype, out=counts[:, 1:])
    return counts


def _counts(
    near: Nearest, far: Nearest, n: int, m: int, tolerance: float
) -> tuple[Integers, Integers, NDArray[np.intp]]:
    """Counts within the limit, and the rows in which the lists do not settle them."""
    limits, counted = (near, far) if thins_the_other(n, m) else (far, near)
    enough = enough_counted(n, m)
    most = limits.distance[:, 0]
    least = np.minimum(most, limits.reach)
    below, above = tie_band(most, tolerance)
    surely_below, surely_above = tie_band(least, tolerance)
    inside = counted.distance
    closer = np.count_nonzero(inside < surely_below[:, None], axis=1)
    tied = np.count_nonzero(inside <= surely_above[:, None], axis=1)
    at_most_closer = np.count_nonzero(inside < below[:, None], axis=1)
    at_most_tied = np.count_nonzero(inside <= above[:, None], axis=1)
    # Whatever is not listed lies at `reach` or farther.
    known_closer = (closer == at_most_closer) & (counted.reach >= below)
    known_tied = (tied == at_most_tied) & (counted.reach > above)
    settled = (known_closer | (closer >= enough)) & (known_tied | (tied >= enough))
    return closer, tied, np.flatnonzero(~settled)


def _count_all(
    own: Floats, other: Floats, rows: NDArray[np.intp], metric: Metric, tolerance: float
) -> tuple[Integers, Integers]:
    """Counts over all distances, for some records of ``own``."""
    sets = (own, rows), (other, None)
    limiting, counted = sets if thins_the_other(len(own), len(other)) else reversed(sets)
    limit = np.concatenate(
        over_tiles(lambda _, tile: tile.min(axis=1), own[rows], limiting[0], metric, limiting[1])
    )
    below, above = tie_band(limit, tolerance)

    def counts(part: slice, tile: Floats) -> Integers:
        ends = below[part, None], above[part, None]
        return np.stack([np.count_nonzero(tile < ends[0], axis=1), np.count_nonzero(tile <= ends[1], axis=1)])

    closer, tied = np.concatenate(over_tiles(counts, own[rows], counted[0], metric, counted[1]), axis=1)
    return closer, tied


@dataclass(frozen=True)
class AdversarialAccuracy:
    """Nearest-neighbour adversarial accuracy of a real and a synthetic table.

    Attributes
    ----------
    aa_real : float
        Mean over the real records, in [0, 1]: how often a real record is nearer to another real record than
        to a synthetic one.
    aa_synthetic : float
        The same with the roles exchanged.
    aa : float
        Mean of the two. Its expectation is 1/2 if both tables come from the same distribution.
    n_real, n_synthetic : int
        Number of records on each side.
    per_real, per_synthetic : ndarray of shape (n_real,), (n_synthetic,)
        Contribution of each record, for confidence intervals over records. ``aa_real`` and ``aa_synthetic``
        are the means.
    """

    aa_real: float
    aa_synthetic: float
    aa: float
    n_real: int
    n_synthetic: int
    per_real: Floats = field(repr=False, compare=False)
    per_synthetic: Floats = field(repr=False, compare=False)


def adversarial_accuracy(
    real: ArrayLike,
    synthetic: ArrayLike,
    *,
    tie_tolerance: float = TIE_TOLERANCE,
    metric: str | Metric = "euclidean",
) -> AdversarialAccuracy:
    """Compute the unbiased nearest-neighbour adversarial accuracy with ties and unequal sizes.

    Parameters
    ----------
    real : array_like of shape (n, d)
        Real records T as finite numbers, n at least 2.
    synthetic : array_like of shape (m, d)
        Synthetic records S, m at least 2.
    tie_tolerance : float
        Two distances are tied if they differ by at most this part of the larger one. Euclidean ones are
        compared as squares. 0 compares the floating-point distances as they are.
    metric : {"euclidean", "gower", "hamming"} or Metric
        Between rows as they are: for Gower distances give
        :func:`~dpsynth.evaluation.neighbours.gower_points`.

    Returns
    -------
    AdversarialAccuracy
        Confidential if ``real`` holds private records, because no noise is added.

    Raises
    ------
    InputError
        If an array is not two-dimensional, has fewer than two rows or no column, holds NaN or infinity, or
        if the numbers of columns differ.

    Notes
    -----
    Let n be the real and m >= n - 1 the synthetic records. Let ``c_<`` and ``c_<=`` count the synthetic
    records closer than, and at most as far as, the nearest other real record of record i. Then

    ``AA_i = [C(m - c_<=, n - 1) + C(m - c_<, n - 1)] / (2 C(m, n - 1))``.

    For m < n - 1 the other real records are thinned to m instead. For n = m this is the mean over the
    left-out record of definition (4.5).

    References
    ----------
    Pedersen (2022), section 4.1, definition (4.5), corrected as the module says.

    Examples
    --------
    >>> result = adversarial_accuracy([[0.0], [1.0], [2.5], [4.0]], [[0.2], [1.3], [2.0], [7.0]])
    >>> round(result.aa_real, 12), round(result.aa_synthetic, 12)
    (0.3125, 0.125)
    """
    chosen = metric_named(metric)
    t, s = two_tables(real, synthetic)
    in_range("tie_tolerance", tie_tolerance, 0.0, 1.0, high_open=True)
    return total_accuracy(*two_sides(t, s, chosen, tie_tolerance=tie_tolerance))


def two_sides(
    real: Floats,
    synthetic: Floats,
    metric: Metric,
    *,
    k: int = 8,
    near_synthetic: Nearest | None = None,
    tie_tolerance: float = TIE_TOLERANCE,
) -> tuple[Side, Side]:
    """Return the real records among their neighbours, and the synthetic ones among theirs.

    ``near_synthetic``: lists of the synthetic records among themselves, from another comparison.
    """
    sided = partial(one_side, metric=metric, k=k, tie_tolerance=tie_tolerance)
    return sided(real, synthetic), sided(synthetic, real, near=near_synthetic)


def total_accuracy(real: Side, synthetic: Side) -> AdversarialAccuracy:
    """Return the accuracy that two sides add up to."""
    aa_real, aa_synthetic = float(real.contribution.mean()), float(synthetic.contribution.mean())
    return AdversarialAccuracy(
        aa_real=aa_real,
        aa_synthetic=aa_synthetic,
        aa=(aa_real + aa_synthetic) / 2,
        n_real=real.n,
        n_synthetic=synthetic.n,
        per_real=real.contribution,
        per_synthetic=synthetic.contribution,
    )


def two_tables(
    real: ArrayLike, synthetic: ArrayLike, *, names: tuple[str, str] = ("real", "synthetic")
) -> tuple[Floats, Floats]:
    """Return two arrays of points, checked: finite, at least two rows each, equally many columns."""
    t, s = (_points(values, name) for values, name in zip((real, synthetic), names, strict=True))
    if t.shape[1] != s.shape[1]:
        raise InputError(
            f"{names[0]} and {names[1]} must have the same number of columns, "
            f"got {t.shape[1]} and {s.shape[1]}"
        )
    return t, s


def _points(values: ArrayLike, name: str) -> Floats:
    try:
        points = np.ascontiguousarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} must be an array of numbers: {error}") from None
    if points.ndim != 2:
        raise InputError(f"{name} must have shape (records, columns), got {points.ndim} dimension(s)")
    if points.shape[0] < 2:
        raise of_records(f"{name} must have at least 2 records, got {points.shape[0]}")
    if points.shape[1] < 1:
        raise InputError(f"{name} must have at least 1 column, got 0")
    if not np.isfinite(points).all():
        row, column = np.argwhere(~np.isfinite(points))[0]
        raise of_records(f"{name} must be finite, got {points[row, column]} in row {row}, column {column}")
    return points
