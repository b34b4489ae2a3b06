"""Distances between records of mixed types, declared by name, and the search of nearest neighbours.

``euclidean``
    On :func:`~dpsynth.evaluation.features.distance_features`: numbers and ranks scaled to [0, 1] by their
    public bounds, categories one-hot, two different categories at distance 1.
``gower``
    Mean over the columns of the scaled |difference| of numbers and ranks, or 0/1 for equal and different
    categories (Gower 1971). Two missing values are at distance 0, a missing and a present one at distance 1.
    Gower leaves such columns out of the mean instead. Then a record with one value present could lie at
    distance 0 from everything, which breaks the triangle inequality.
``hamming``
    Share of the columns whose values differ, after numbers are rounded to the resolution of the schema.
    Missing equals missing. Numbers without a resolution differ unless they are the same.

Each is a :class:`Metric`: how a conformed frame becomes points, and how two blocks of points become a tile of
distances. Only the order of distances matters to nearest neighbours, so the Euclidean tile is squared.

The nearest are exact, ties included. If a metric has Euclidean coordinates, scikit-learn's brute force
(blocked matrix products) proposes the nearest. Its expansion ``x**2 + y**2 - 2 x y`` breaks ties. The
distances of proposed points are therefore computed again from differences. Points that it may have missed
have a bound: none outside the list lies below the distance ``reach``. Callers compare with ``reach`` as well.
If the lists do not settle a comparison, they use all distances (:func:`over_tiles`). Other metrics compute
every distance in tiles.

Error of the expansion: points are shifted to the centre of the set and scaled by a power of two. A sum of
p = d + 2 products, in any order, errs by at most ``p u / (1 - p u)`` times the sum of |terms| (Higham 2002,
section 3.1). Here u is the unit roundoff. For half a squared distance that sum is at most
``|x| |y| + |x|**2/2 + |y|**2/2`` =: s. Rounding the factors adds less than ``4 u s``. The differences that
the result is compared with add less than ``(p + 2) u s``. The error of a squared distance is thus at most
``4 (p + 4) u s``. A last term covers underflow.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from dpsynth.errors import InputError
from dpsynth.evaluation.features import distance_features, one_hot, unit_values
from dpsynth.table.schema import Column, Schema
from dpsynth.table.values import category_codes, stored_numbers

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
    values = stored_numbers(column, series)
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
