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

The nearest are exact, ties included: every distance is computed, a tile of records at a time. Records of a
schema have the Euclidean distance of :func:`record_distance`, which compares categories as codes.
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
from dpsynth.table.values import category_codes

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
    """

    name: str
    encode: Callable[[pd.DataFrame, Schema], Floats]
    tile: Callable[[Floats, Floats], Floats]


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
    values = series.to_numpy(dtype=np.float64, na_value=np.nan)
    if column.resolution is None:
        return np.where(np.isnan(values), np.nextafter(column.lower, -np.inf), values)
    steps = np.rint((values - column.lower) / column.resolution)
    for code, number in enumerate(column.special):
        steps[values == number] = -2.0 - code
    return np.where(np.isnan(steps), -1.0, steps)


def _mismatches(x: Floats, y: Floats) -> Floats:
    # cdist divides the whole number of differing columns by d; rounding that back keeps equal shares equal.
    return np.rint(cdist(x, y, "hamming") * x.shape[1]) / x.shape[1]


#: the metrics that can be asked for by name
METRICS: dict[str, Metric] = {
    metric.name: metric
    for metric in (
        Metric("euclidean", distance_features, lambda x, y: np.asarray(cdist(x, y, "sqeuclidean"))),
        Metric("gower", gower_points, lambda x, y: np.asarray(cdist(x, y, "cityblock"))),
        Metric("hamming", hamming_points, _mismatches),
    )
}


def record_distance(schema: Schema) -> Metric:
    """Squared distances of ``distance_features``, but with categories as codes: exact whole counts."""
    numbers = sum(not column.is_categorical for column in schema.columns)

    def encode(frame: pd.DataFrame, schema: Schema) -> Floats:
        values, codes = [], []
        for column in schema.columns:
            if column.is_categorical:
                codes.append(category_codes(column, frame[column.name]).astype(np.float64))
                continue
            unit = unit_values(column, frame[column.name])
            absent = np.isnan(unit)
            values.append(np.where(absent, 0.5, unit))
            if column.incomplete:
                codes.append(absent.astype(np.float64))
        return np.stack([*values, *codes], axis=1)

    def tile(x: Floats, y: Floats) -> Floats:
        codes = x.shape[1] - numbers
        if not codes:
            return np.asarray(cdist(x, y, "sqeuclidean"))
        # counts of differing codes, exactly
        squared = np.rint(cdist(x[:, numbers:], y[:, numbers:], "hamming") * codes)
        return squared + cdist(x[:, :numbers], y[:, :numbers], "sqeuclidean") if numbers else squared

    return Metric("records", encode, tile)


Integers = NDArray[np.int64]
Item = TypeVar("Item")
Result = TypeVar("Result")

#: distances of a tile
_TILE = 1 << 22


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

    def search(rows: slice, distances: Floats) -> None:
        index = np.argpartition(distances, k - 1, axis=1)[:, :k]
        listed = np.take_along_axis(distances, index, axis=1)
        order = np.argsort(listed, axis=1, kind="stable")
        found.distance[rows] = np.take_along_axis(listed, order, axis=1)
        found.index[rows] = np.take_along_axis(index, order, axis=1)
        if k < members:
            found.reach[rows] = found.distance[rows, -1]

    over_tiles(search, points, others, metric, itself)
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
    size = max(_TILE // len(others), 1)

    def one(top: int) -> Result:
        rows = slice(top, min(top + size, len(points)))
        tile = metric.tile(points[rows], others)
        if itself is not None:
            tile[np.arange(len(tile)), itself[rows]] = np.inf
        return work(rows, tile)

    return list(in_threads(one, range(0, len(points), size)))


def in_threads(work: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
    """Yield ``work(item)`` in order, on all cores, with BLAS held to one thread per worker."""
    items = list(items)
    if len(items) < 2:
        yield from map(work, items)
        return
    from threadpoolctl import threadpool_limits  # comes with scikit-learn

    with threadpool_limits(1, user_api="blas"), ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        yield from pool.map(work, items)
