"""Distance to the closest record (DCR), and membership by distance.

A synthetic record may lie close to a training record because it is a copy, or because such records are
common. Held-out records separate the two cases. Distances are Euclidean on
:func:`~dpsynth.evaluation.features.distance_features`. They are formed from differences: the distance of
equal records is exactly 0. Two different categories lie at distance 1 there, so they are compared as codes.

The attacker holds the synthetic table and a record, and says "member" if the record lies close to a
synthetic one. Members are training records, non-members held-out ones, as many of each. The area under the
ROC curve is 1/2 if nothing is disclosed. The true positive rate at a small false positive rate says whether
*some* records can be named with confidence. An average over all records does not show that.

References
----------
Zhao et al. (2021), "CTAB-GAN", section 4.4, for DCR; the share closer to training than to held-out
records as in Platzer and Reutterer (2021), "Holdout-based empirical assessment of mixed-type synthetic data".
Chen et al. (2020), "GAN-Leaks", for membership by distance; Carlini et al. (2022), "Membership inference
attacks from first principles", for true positive rates at low false positive rates; van Breugel et al.
(2023), "Membership inference attacks against synthetic data through overfitting detection" (DOMIAS), for the
calibrated score.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from dpsynth.evaluation.estimates import Estimate, auc, share
from dpsynth.evaluation.features import unit_values
from dpsynth.evaluation.neighbours.accuracy import TIE_TOLERANCE, tie_band
from dpsynth.evaluation.neighbours.search import Metric, Nearest, nearest, over_tiles, squared_pairs
from dpsynth.table.schema import Schema
from dpsynth.table.values import category_codes

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
    """Distances of m synthetic, k training and k held-out records to the nearest of another table.

    The references are the first ``k // 2`` held-out records. Training records and the other held-out ones
    have distances to them. ``weights``, of shape (2 k,), is the share of the synthetic records whose nearest
    real record is each training, then each held-out record. Ties split evenly.
    """

    synthetic_train: Floats
    train_synthetic: Floats
    synthetic_test: Floats | None = None
    test_synthetic: Floats | None = None
    test_train: Floats | None = None
    train_reference: Floats | None = None
    test_reference: Floats | None = None
    weights: Floats | None = None


def closest(synthetic: Floats, train: Floats, test: Floats | None = None, *, metric: Metric) -> Closest:
    """Measure how close synthetic records lie to training and to equally many held-out records, shuffled.

    The tiles of ``metric`` hold squared distances, such as those of :func:`record_distance`.
    """

    def shortest(points: Floats, others: Floats, near: Nearest | None = None) -> Floats:
        near = near or nearest(points, others, metric, LISTED)
        values = near.distance[:, 0].copy()
        open_rows = np.flatnonzero(near.reach < values)
        if len(open_rows):
            parts = over_tiles(lambda _, tile: tile.min(axis=1), points[open_rows], others, metric)
            values[open_rows] = np.concatenate(parts)
        return np.sqrt(values)

    to_train = nearest(synthetic, train, metric, LISTED)
    found = Closest(shortest(synthetic, train, to_train), shortest(train, synthetic))
    if test is None:
        return found
    to_test = nearest(synthetic, test, metric, LISTED)
    half = len(test) // 2
    return replace(
        found,
        synthetic_test=shortest(synthetic, test, to_test),
        test_synthetic=shortest(test, synthetic),
        test_train=shortest(test, train),
        train_reference=shortest(train, test[:half]) if half else None,
        test_reference=shortest(test[half:], test[:half]) if half else None,
        weights=_weights(synthetic, train, test, metric, to_train, to_test),
    )


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


@dataclass(frozen=True)
class Membership:
    """Success of the distance attack. Intervals are over real records, the synthetic table held fixed.

    The calibrated score compares the distance with that to the nearest of some reference records. It
    separates a copied record from one among many similar ones, and estimates the ratio of the two densities.
    Half of the held-out records are the references and the other half the non-members. References that were
    members or non-members themselves would tie all scores together. ``tpr_by_chance`` is the limit of the
    rates in a share ``level`` of the tables that disclose nothing. A threshold set by few non-members is
    uncertain. The interval of the rate leaves that out.
    """

    auc: Estimate  # score: minus the distance to the nearest synthetic record
    auc_calibrated: Estimate | None
    tpr: dict[float, Estimate | None]  # by false positive rate; None with too few non-members to measure it
    tpr_by_chance: dict[float, float | None]
    n_members: int
    n_non_members: int


def membership(
    train_synthetic: Floats,
    test_synthetic: Floats,
    train_reference: Floats | None = None,
    test_reference: Floats | None = None,
    *,
    rates: tuple[float, ...] = (0.01, 0.001),
    level: float = 0.95,
) -> Membership:
    """Attack with the distance of each member and of each non-member to its nearest synthetic record.

    ``train_reference``, ``test_reference``: the distance of each member, and of each of the last non-members,
    to its nearest reference record. ``rates`` are false positive rates. Each needs 1/rate non-members.
    """
    members, others = -train_synthetic, -test_synthetic
    calibrated = None
    if train_reference is not None and test_reference is not None:
        tested = test_synthetic[len(test_synthetic) - len(test_reference) :]
        ratios = density_ratio(train_synthetic, train_reference), density_ratio(tested, test_reference)
        calibrated = auc(*ratios, level)
    return Membership(
        auc=auc(members, others, level),
        auc_calibrated=calibrated,
        tpr={rate: tpr_at_fpr(members, others, rate, level) for rate in rates},
        tpr_by_chance={rate: chance_tpr(len(members), len(others), rate, level) for rate in rates},
        n_members=len(members),
        n_non_members=len(others),
    )


def tpr_at_fpr(members: Floats, non_members: Floats, rate: float, level: float = 0.95) -> Estimate | None:
    """Share of members scored above all but a share ``rate`` of the non-members. None with too few of these.

    The threshold is the score of the non-member number ``floor(rate m) + 1`` from the top. It is held fixed
    in the interval. Only scores strictly above it count. Tied scores are all called members, or none if that
    would exceed the rate.
    """
    m, allowed = len(non_members), _allowed(len(non_members), rate)
    if allowed < 1 or not len(members):
        return None
    threshold = np.sort(non_members)[m - allowed - 1] if allowed < m else -np.inf
    return share(int((members > threshold).sum()), len(members), level)


def chance_tpr(n_members: int, n_non_members: int, rate: float, level: float = 0.95) -> float | None:
    """Return the bound on :func:`tpr_at_fpr` that holds with probability ``level`` for random scores.

    The number of members above a given non-member is then negative hypergeometric (a beta-binomial). Every
    order of members and non-members has equal probability. Ties only make the rate smaller.
    """
    from scipy.stats import betabinom

    allowed = _allowed(n_non_members, rate)
    if allowed < 1 or not n_members:
        return None
    return float(betabinom.ppf(level, n_members, allowed + 1, n_non_members - allowed)) / n_members


def _allowed(n_non_members: int, rate: float) -> int:
    # The products 0.01 * 100 and 0.001 * 1000 must count as 1.
    return int(np.floor(rate * n_non_members + 1e-9))


def density_ratio(to_synthetic: Floats, to_reference: Floats) -> Floats:
    """Distance to reference over distance to synthetic records: 1 if both are 0, infinite if the latter is.

    It increases with the ratio of the densities that the nearest neighbour estimates.
    """
    positive = to_synthetic > 0
    ratio = to_reference / np.where(positive, to_synthetic, 1.0)
    return np.where(positive, ratio, np.where(to_reference > 0, np.inf, 1.0))
