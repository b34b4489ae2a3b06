"""Distances between records of mixed types, declared by name.

``euclidean``
    On :func:`~dpsynth.evaluation.features.distance_features`: numbers and ranks scaled to [0, 1] by their
    public bounds, categories one-hot, two different categories at distance 1.
``gower``
    Mean over the columns of the scaled |difference| of numbers and ranks, or 0/1 for equal and different
    categories (Gower 1971). Two missing values are at distance 0, a missing and a present one at distance 1.
    Gower leaves such columns out of the mean instead; then a record with one value present could lie at
    distance 0 from everything, and the distance would not obey the triangle inequality.
``hamming``
    Share of the columns whose values differ, after numbers are rounded to the resolution of the schema;
    missing equals missing. Numbers without a resolution differ unless they are the same.

Each is a :class:`Metric`: how a conformed frame becomes points, and how two blocks of points become a tile of
distances. Only the order of distances matters to nearest neighbours, so the Euclidean tile is squared.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from dpsynth.errors import InputError
from dpsynth.evaluation.features import category_codes, distance_features, one_hot, unit_values
from dpsynth.table.schema import Column, Schema

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Metric:
    """A distance between records.

    Attributes
    ----------
    name : str
    encode : callable
        From a frame conformed to a schema, and the schema, to points of shape (n, d), never NaN.
    tile : callable
        From points of shape (n, d) and (m, d) to distances of shape (n, m), monotone in the named distance.
    embed : callable, optional
        From points to coordinates whose squared Euclidean distances are those of the tile up to rounding, so
        that matrix products can propose the nearest.
    pairs : callable, optional
        With ``embed``: from points of shape (n, d), a set and positions in it of shape (n, k), to the
        distances of these pairs, those of the tile to the last bit.
    """

    name: str
    encode: Callable[[pd.DataFrame, Schema], Floats]
    tile: Callable[[Floats, Floats], Floats]
    embed: Callable[[Floats], Floats] | None = None
    pairs: Callable[[Floats, Floats, NDArray[np.int64]], Floats] | None = None


def metric_named(name: str | Metric) -> Metric:
    """Return the metric of that name; a :class:`Metric` is returned as it is.

    Raises
    ------
    InputError
        If there is none of that name.
    """
    if isinstance(name, Metric):
        return name
    if name not in METRICS:
        raise InputError(f"metric must be one of {', '.join(METRICS)}, got {name!r}")
    return METRICS[name]


def gower_points(frame: pd.DataFrame, schema: Schema) -> Floats:
    """Encode a conformed frame so that city-block distances are Gower distances, shape (n, d).

    A number v in [0, 1] becomes (v, 1 - v, 0)/2 and a missing one (0, 0, 1)/2, so that two numbers lie at
    |v - w| and a missing one at distance 1 from all of them; categories become one-hot halves. All is divided
    by the number of columns.

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
            blocks.append(one_hot(column, frame[column.name])[0])
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
    """Encode a conformed frame as one code a column; equal codes are equal values at the public resolution.

    Category codes, steps above the lower bound, or values where there is no step, shape (n, columns); missing
    is -1 for codes and the float below the lower bound for values.
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


def _squared(x: Floats, y: Floats) -> Floats:
    return np.asarray(cdist(x, y, "sqeuclidean"))


def _cityblock(x: Floats, y: Floats) -> Floats:
    return np.asarray(cdist(x, y, "cityblock"))


def _mismatches(x: Floats, y: Floats) -> Floats:
    # cdist divides the whole number of differing columns by d; rounding that back keeps equal shares equal.
    return np.rint(cdist(x, y, "hamming") * x.shape[1]) / x.shape[1]


#: the metrics that can be asked for by name
METRICS: dict[str, Metric] = {
    metric.name: metric
    for metric in (
        Metric(
            "euclidean",
            lambda frame, schema: distance_features(frame, schema).points,
            _squared,
            embed=lambda points: points,
            pairs=squared_pairs,
        ),
        Metric("gower", gower_points, _cityblock),
        Metric("hamming", hamming_points, _mismatches),
    )
}
