"""Distance to the closest record (DCR) and nearest-neighbour distance ratio (NNDR), against held-out records.

A synthetic record may lie close to a training record because it was copied from there or because records
like it are common; held-out records tell the two apart. Distances are Euclidean on
:func:`~dpsynth.evaluation.features.distance_features`, formed from differences, so that the distance of equal
records is exactly 0; two different categories lie at distance 1 there, so that they are compared as codes.

References
----------
Zhao et al. (2021), "CTAB-GAN: effective table data synthesizing", section 4.4, for DCR and NNDR; the share
closer to training than to held-out records as in Platzer and Reutterer (2021), "Holdout-based empirical
assessment of mixed-type synthetic data".
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from dpsynth.evaluation.features import category_codes, unit_values
from dpsynth.evaluation.neighbours.metrics import Metric, squared_pairs
from dpsynth.evaluation.neighbours.search import Nearest, nearest, over_tiles
from dpsynth.evaluation.neighbours.sides import TIE_TOLERANCE, tie_band
from dpsynth.evaluation.progress import Progress, silent, within
from dpsynth.table.schema import Schema

Floats = NDArray[np.float64]

#: neighbours listed; where more of them are tied, all distances are looked at
LISTED = 8


def record_distance(schema: Schema) -> Metric:
    """Squared distances of ``distance_features``, but with categories as codes: exact whole counts."""
    numbers = [column for column in schema.columns if not column.is_categorical]
    a = len(numbers)

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
        b = x.shape[1] - a
        if not b:
            return np.asarray(cdist(x, y, "sqeuclidean"))
        # counts of differing codes, exactly
        squared = np.rint(cdist(x[:, a:], y[:, a:], "hamming") * b)
        return np.asarray(squared + cdist(x[:, :a], y[:, :a], "sqeuclidean")) if a else squared

    def embed(points: Floats) -> Floats:
        blocks = [points[:, :a]]
        for width, codes in zip(widths, points[:, a:].T, strict=True):
            blocks.append((codes[:, None] == np.arange(-1.0, width)) / np.sqrt(2.0))
        return np.ascontiguousarray(np.hstack(blocks))

    widths = [
        len(c.categories) if c.is_categorical else 2
        for c in schema.columns
        if c.is_categorical or c.incomplete
    ]

    def pairs(points: Floats, others: Floats, index: NDArray[np.int64]) -> Floats:
        differing = np.zeros(index.shape)
        for x, y in zip(points[:, a:].T, np.ascontiguousarray(others[:, a:].T), strict=True):
            differing += x[:, None] != y[index]
        return differing + squared_pairs(points[:, :a], others[:, :a], index)

    return Metric("records", encode, tile, embed, pairs)


@dataclass(frozen=True)
class Closest:
    """Distances between synthetic records and k training (and k held-out) records.

    Attributes
    ----------
    synthetic_train, synthetic_test : ndarray of shape (m, 2), or None
        Distances of each synthetic record to its nearest and second nearest training (held-out) record;
        infinite where there is no second one.
    train_synthetic, test_synthetic : ndarray of shape (k,), or None
        Distance of each real record to its nearest synthetic record.
    test_train : ndarray of shape (k, 2), or None
        Distances of each held-out record to its two nearest training records.
    train_reference, test_reference : ndarray of shape (k,), (k - k // 2,), or None
        Distance of each training record, and of each held-out record of the second half, to its nearest one
        among the first ``k // 2`` held-out records; None for k = 1.
    weights : ndarray of shape (2 k,), or None
        Share of the synthetic records whose nearest real record is each of the training, then of the
        held-out records; a tie is split evenly among the tied records.
    """

    synthetic_train: Floats
    train_synthetic: Floats
    synthetic_test: Floats | None = None
    test_synthetic: Floats | None = None
    test_train: Floats | None = None
    train_reference: Floats | None = None
    test_reference: Floats | None = None
    weights: Floats | None = None


def closest(
    synthetic: Floats,
    train: Floats,
    test: Floats | None = None,
    *,
    metric: Metric,
    progress: Progress = silent,
) -> Closest:
    """Measure how close synthetic records lie to training and to as many held-out records. Internal.

    Parameters
    ----------
    synthetic, train : ndarray of shape (m, d), (k, d)
        As ``metric`` encodes them.
    test : ndarray of shape (k, d), optional
        As many records as ``train``: the nearest of more records is nearer. In random order.
    metric : Metric
        Whose tiles hold squared distances, such as that of :func:`record_distance`.
    """

    def smallest(points: Floats, others: Floats, count: int, near: Nearest | None = None) -> Floats:
        return np.sqrt(
            _smallest(points, others, metric, count, near or nearest(points, others, metric, LISTED))
        )

    to_train = nearest(synthetic, train, metric, LISTED, progress=within(progress, 0.0, 0.2))
    synthetic_train = smallest(synthetic, train, 2, to_train)
    train_synthetic = smallest(train, synthetic, 1)[:, 0]
    if test is None:
        return Closest(synthetic_train, train_synthetic)
    to_test = nearest(synthetic, test, metric, LISTED, progress=within(progress, 0.4, 0.6))
    half = len(test) // 2
    found = Closest(
        synthetic_train=synthetic_train,
        train_synthetic=train_synthetic,
        synthetic_test=smallest(synthetic, test, 2, to_test),
        test_synthetic=smallest(test, synthetic, 1)[:, 0],
        test_train=smallest(test, train, 2),
        train_reference=smallest(train, test[:half], 1)[:, 0] if half else None,
        test_reference=smallest(test[half:], test[:half], 1)[:, 0] if half else None,
        weights=_weights(synthetic, train, test, metric, to_train, to_test),
    )
    progress(1.0)
    return found


def distance_ratio(nearest: Floats) -> Floats:
    """Nearest-neighbour distance ratio of each record: nearest over second nearest distance, in [0, 1].

    ``nearest``, of shape (n, 2), is as in :class:`Closest`. Two equal nearest records, at distance 0 as well,
    have ratio 1.
    """
    first, second = nearest.T
    return np.where(second > 0, first / np.where(second > 0, second, 1.0), 1.0)


def _smallest(points: Floats, others: Floats, metric: Metric, count: int, near: Nearest) -> Floats:
    """The smallest distances of each point in ascending order, shape (n, count); infinite beyond the set."""
    values = np.full((len(points), count), np.inf)
    listed = near.distance[:, :count]
    values[:, : listed.shape[1]] = listed
    open_rows = np.flatnonzero(near.reach < values[:, -1])
    if len(open_rows):
        parts = over_tiles(
            lambda _, tile: np.partition(tile, count - 1, axis=1)[:, :count],
            points[open_rows],
            others,
            metric,
        )
        values[open_rows] = np.concatenate(parts)
    return values


def _weights(
    synthetic: Floats, train: Floats, test: Floats, metric: Metric, to_train: Nearest, to_test: Nearest
) -> Floats:
    """Share of the synthetic records whose nearest is each real record, training ones first."""
    band = tie_band(np.minimum(to_train.distance[:, 0], to_test.distance[:, 0]), TIE_TOLERANCE)[1]
    distance = np.hstack([to_train.distance, to_test.distance])
    index = np.hstack([to_train.index, to_test.index + len(train)])
    settled = np.minimum(to_train.reach, to_test.reach) > band
    real = np.vstack([train, test])

    def shared(tied: NDArray[np.bool_], places: NDArray[np.int32]) -> Floats:
        shares: Floats = (tied / tied.sum(axis=1, keepdims=True))[tied]
        return np.bincount(places[tied], shares, len(real)).astype(np.float64)

    def whole(_: slice, tile: Floats) -> Floats:
        nearest_real = tile.min(axis=1, keepdims=True)
        places = np.broadcast_to(np.arange(len(real), dtype=np.int32), tile.shape)
        return shared(tile <= tie_band(nearest_real, TIE_TOLERANCE)[1], places)

    weights = shared(distance[settled] <= band[settled, None], index[settled])
    if not settled.all():
        weights = weights + np.sum(over_tiles(whole, synthetic[~settled], real, metric), axis=0)
    return weights / len(synthetic)
