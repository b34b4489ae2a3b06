"""Distance to the closest record (DCR), and membership by distance.

A synthetic record may lie close to a training record because it is a copy, or because such records are
common. Held-out records separate the two cases. Distances are Euclidean on
:func:`~dpsynth.evaluation.tables.distance_features`. They are formed from differences: the distance of
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

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from dpsynth.evaluation.estimates import FEWEST, Estimate, auc, share, share_difference
from dpsynth.evaluation.neighbours import (
    TIE_TOLERANCE,
    Metric,
    Nearest,
    nearest,
    none_kept,
    over_tiles,
    squared_pairs,
    tie_band,
)
from dpsynth.evaluation.tables import unit_values
from dpsynth.table.kinds.category import category_codes
from dpsynth.table.schema import Schema

# ------------------------------------------------------------------------------------------------
# Synthetic records, and single values, that equal real ones, compared with coincidence.
#
# In a table of few discrete columns synthetic records often equal real ones by chance. A count of copies
# needs two others for comparison: copies of held-out records, and copies expected in a fresh sample of the
# real distribution.
#
# Suppose that the synthetic table does not depend on the particular training records. Then training and
# held-out records are exchangeable given the synthetic table. Every division of the real records into the
# two tables was equally likely. The spread of a statistic over such exchanges is its spread by chance. This
# holds for any distribution, however discrete, and if synthetic records agree with one real record many
# times. Resampling synthetic records alone misses the latter, and gives false alarms on small tables.

Floats = NDArray[np.float64]

#: with 999 exchanges the 95 % point is the 950th of them, exactly
DRAWS = 999


def exchanged(
    statistic: Callable[[NDArray[np.bool_]], float],
    relevant: int,
    total: int,
    first: int,
    *,
    rng: np.random.Generator,
) -> Floats:
    """Values of a statistic over random divisions of real records into two tables.

    ``statistic`` depends on ``relevant`` of ``total`` records. For each of these it takes whether the record
    is in the first table, which has ``first`` records.
    """
    values = np.empty(DRAWS)
    for i in range(DRAWS):
        labels = np.zeros(relevant, dtype=np.bool_)
        labels[: rng.hypergeometric(relevant, total - relevant, first) if relevant else 0] = True
        rng.shuffle(labels)
        values[i] = statistic(labels)
    return values


def reach(null: Floats, centre: float, level: float = 0.95) -> float:
    """Return the distance from ``centre`` that only a share ``1 - level`` of the null values exceed."""
    strayed = np.sort(np.abs(null - centre))
    # The observed value counts as one more draw: the rank ceil(level (draws + 1)) makes the test exact.
    rank = min(math.ceil(level * (len(strayed) + 1) - 1e-9), len(strayed))
    return float(strayed[rank - 1])


def closer_share(weights: Floats, n_train: int, level: float, *, rng: np.random.Generator) -> Estimate:
    """Share of a synthetic table that lies closest to training records, and its range by chance.

    ``weights``, of shape (2 n_train,), sums to 1. It is the share of the synthetic records whose nearest real
    record is each training record, then each held-out record. Ties split evenly. The interval is the value
    minus and plus the reach of the exchange distribution. For a table independent of its training records,
    1/2 lies outside with probability at most ``1 - level``.
    """
    value = min(float(weights[:n_train].sum()), 1.0)  # a sum of shares may round to more
    nearest = np.flatnonzero(weights)
    mass = weights[nearest]
    null = exchanged(lambda labels: float(mass[labels].sum()), len(mass), len(weights), n_train, rng=rng)
    stray = reach(null, 0.5, level)
    return Estimate(value, max(value - stray, 0.0), min(value + stray, 1.0))


Ids = NDArray[np.int64]


@dataclass(frozen=True)
class Copies:
    """Counts of equal records."""

    synthetic: int
    train: int  # synthetic records that equal some training record
    train_share: Estimate  # Clopper-Pearson's interval over synthetic records, the training table held fixed
    #: the same of a fresh draw: the share of held-out records that equal some training record or, without
    #: held-out records, of training records that equal another one; None of a single record
    expected_share: Estimate | None
    test: int | None  # synthetic records that equal some held-out record, whatever the sizes
    size: int | None  # number of training and of held-out records that excess compares
    #: shares that equal one of ``size`` records: exact means over all random parts of the larger table
    equal_train: float | None
    equal_test: float | None
    excess: Estimate | None  # their difference


def row_ids(frames: Sequence[pd.DataFrame]) -> list[Ids]:
    """Number the distinct records of several conformed frames of one schema. Missing values are equal.

    Examples
    --------
    >>> a, b = pd.DataFrame({"x": [1.0, 2.0, None]}), pd.DataFrame({"x": [None, 2.0]})
    >>> [ids.tolist() for ids in row_ids([a, b])]
    [[0, 1, 2], [2, 1]]
    """
    sizes = [len(frame) for frame in frames]
    ids = np.zeros(sum(sizes), dtype=np.int64)
    for name in frames[0].columns:
        values = pd.concat([frame[name] for frame in frames], ignore_index=True)
        codes = np.asarray(pd.factorize(values, use_na_sentinel=False)[0], dtype=np.int64)
        # Both factors are below the number of records: the product stays far from 2**63.
        ids = np.asarray(pd.factorize(ids * (codes.max(initial=0) + 1) + codes)[0], dtype=np.int64)
    return np.split(ids, np.cumsum(sizes)[:-1])


def count_copies(
    synthetic: pd.DataFrame,
    train: pd.DataFrame,
    test: pd.DataFrame | None,
    *,
    rng: np.random.Generator,
    level: float = 0.95,
) -> Copies:
    """Count the synthetic records that equal real ones.

    A larger table holds more coincidences, so the excess compares ``k = min(n, h)`` records of each. A
    synthetic record with c equals among n has one among a random part of k with probability ``1 - C(n - c, k)
    / C(n, k)``. The interval of the excess adds the squares of two sources. One is which real records were
    the training ones, by exchange. The other is which synthetic records were drawn, by Newcombe's interval.
    """
    frames = [synthetic, train] if test is None else [synthetic, train, test]
    made, real, *held = row_ids(frames)
    distinct = int(max(ids.max() for ids in (made, real, *held))) + 1
    per_id = np.bincount(made, minlength=distinct)
    in_train = np.bincount(real, minlength=distinct)
    m, n = len(made), len(real)
    matched = int(per_id[in_train > 0].sum())
    train_share = share(matched, m, level)
    if test is None:
        repeated = int((in_train[real] > 1).sum())
        expected = share(repeated, n, level) if n > 1 else None
        return Copies(m, matched, train_share, expected, None, None, None, None, None)

    in_test = np.bincount(held[0], minlength=distinct)
    h = len(held[0])
    k = min(n, h)
    found_train, found_test = _found(n, k, int(in_train.max())), _found(h, k, int(in_test.max()))
    equal = [float(per_id @ found_train[in_train]) / m, float(per_id @ found_test[in_test]) / m]
    expected = share(int((in_train[held[0]] > 0).sum()), h, level)

    # Only real records that some synthetic one equals count.
    wanted = per_id > 0
    place = np.cumsum(wanted) - 1
    pooled = np.concatenate([real, held[0]])
    relevant = place[pooled[wanted[pooled]]]
    weight = per_id[wanted] / m
    times = (in_train + in_test)[wanted]
    found_train, found_test = _found(n, k, int(times.max())), _found(h, k, int(times.max()))

    def difference(labels: NDArray[np.bool_]) -> float:
        chosen = np.bincount(relevant[labels], minlength=len(weight))
        return float(weight @ (found_train[chosen] - found_test[times - chosen]))

    null = exchanged(difference, len(relevant), n + h, n, rng=rng)
    drawn = share_difference(*(share(round(value * m), m, level) for value in equal))
    value, stray = equal[0] - equal[1], reach(null, 0.0, level)
    excess = Estimate(
        value,
        max(value - float(np.hypot(stray, drawn.value - drawn.lower)), -1.0),
        min(value + float(np.hypot(stray, drawn.upper - drawn.value)), 1.0),
    )
    matched_test = int(per_id[in_test > 0].sum())
    return Copies(m, matched, train_share, expected, matched_test, k, equal[0], equal[1], excess)


def _found(n: int, k: int, most: int) -> NDArray[np.float64]:
    """Probability that a random part of k of n records holds one of c marked ones, for c = 0 ... most."""
    found = 1.0 - none_kept(n, np.arange(most + 1), k)
    found[0] = 0.0  # exactly, where rounding may leave 1e-12
    return found


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
        tpr={rate: membership_tpr(members, others, rate, level) for rate in rates},
        tpr_by_chance={rate: chance_tpr(len(members), len(others), rate, level) for rate in rates},
        n_members=len(members),
        n_non_members=len(others),
    )


def membership_tpr(members: Floats, non_members: Floats, rate: float, level: float = 0.95) -> Estimate | None:
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
    """Return the bound on :func:`membership_tpr` that holds with probability ``level`` for random scores.

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


# ------------------------------------------------------------------------------------------------
# Is a training record nearer to the synthetic table than a held-out one? All signs in one exact test.
#
# Suppose that the synthetic table does not depend on which real records trained. Then every division of the
# pooled real records into training and held-out ones was equally likely, given the synthetic table. Each
# sign gives every pooled record a weight that does not depend on the division. Such weights are its share of
# the copies, its rank by distance, and whether the table holds a value that it alone has. The sign is the
# sum of the training records' weights, in standard deviations of that sum over all divisions.
#
# The signs of one random division are compared together. The p-value of a sign is the share of divisions
# whose *largest* sign is at least as large. So all p-values are valid together, for any number of signs,
# however discrete, dependent or skewed they are.
#
# References ---------- Westfall, Young (1993), "Resampling-based multiple testing", section 2.3 (single-step
# maxT).

Bools = NDArray[np.bool_]

#: random divisions; with 1,999 a p-value of 0.005 is that of the tenth
DIVISIONS = 1999
#: part of the pooled records that are called nearest
NEAREST = 0.02
#: real records whose distances to the others are compared with those to the synthetic table
REFERENCES = 5_000
#: divisions that are summed at once
_AT_ONCE = 64


@dataclass(frozen=True)
class Pooled:
    """Training records, then held-out ones, in random order.

    The distances of the first ``size`` of both kinds are known. Records are exchanged within this part and
    outside it.
    """

    n_train: int
    n_test: int
    size: int

    @property
    def training(self) -> Bools:
        """Which records trained."""
        return np.arange(self.n_train + self.n_test) < self.n_train

    @property
    def part(self) -> Bools:
        """Which records have known distances."""
        place = np.arange(self.n_train + self.n_test)
        return (place < self.size) | ((place >= self.n_train) & (place < self.n_train + self.size))


def exchange_p_values(
    signs: Mapping[str, Floats], pooled: Pooled, rng: np.random.Generator
) -> dict[str, float]:
    """Return the p-value of each sign, valid for all together. Signs that no division changes are left out.

    ``signs`` hold one weight for each pooled record, larger if the record looks like a training one.
    """
    strata = [np.flatnonzero(pooled.part), np.flatnonzero(~pooled.part)]
    strata = [places for places in strata if len(places)]
    known: dict[str, tuple[Floats, float, float]] = {}
    for name, weights in signs.items():
        mean = variance = 0.0
        for places in strata:
            own, size, chosen = weights[places], len(places), int(pooled.training[places].sum())
            mean += chosen * float(own.mean())
            if size > 1:
                variance += chosen * (size - chosen) / size * float(own.var(ddof=1))
        if variance > 1e-18 * max(1.0, mean**2):
            known[name] = (weights, mean, variance**0.5)
    if not known:
        return {}
    weights, means, spreads = (np.array([entry[i] for entry in known.values()]) for i in range(3))
    observed = (weights @ pooled.training - means) / spreads
    # records that no sign weighs are only counted
    heavy = [places[(weights[:, places] != 0).any(axis=0)] for places in strata]
    largest = np.full(DIVISIONS, np.inf)
    for start in range(0, DIVISIONS, _AT_ONCE):
        count = min(_AT_ONCE, DIVISIONS - start)
        sums = np.zeros((len(known), count))
        for places, own in zip(strata, heavy, strict=True):
            chosen = int(pooled.training[places].sum())
            if not len(own):
                continue
            labels = np.zeros((len(own), count), dtype=np.float32)
            for j, k in enumerate(rng.hypergeometric(len(own), len(places) - len(own), chosen, size=count)):
                labels[rng.permutation(len(own))[:k], j] = 1.0
            sums += weights[:, own] @ labels
        largest[start : start + count] = ((sums - means[:, None]) / spreads[:, None]).max(axis=0)
    # an observed sign that equals one of a division up to rounding counts as reached
    reached = (largest[:, None] >= observed - 1e-9).sum(axis=0)
    return {name: float(1 + times) / (1 + DIVISIONS) for name, times in zip(known, reached, strict=True)}


def distance_signs(
    near: Closest, real: Floats, metric: Metric, rng: np.random.Generator
) -> dict[str, Floats]:
    """Signs by distance of k training and k held-out records, shape (2 k,) each.

    ``real`` holds their points, in this order. ``membership_auc_calibrated`` compares the distance to the
    synthetic table with that to other real records, of both kinds.
    """
    from scipy.stats import rankdata

    assert near.weights is not None and near.test_synthetic is not None
    to_made = np.concatenate([near.train_synthetic, near.test_synthetic])
    signs = {"dcr_closer_to_train": near.weights, "membership_auc": rankdata(-to_made)}
    # as its size: records at one distance are suspected together, or not at all if they are too many
    limit = np.sort(to_made)[max(int(NEAREST * len(real)), 1)]
    signs["membership_tpr_at_1pct"] = (to_made < limit).astype(np.float64)
    others = np.sort(rng.permutation(len(real))[:REFERENCES])
    if len(others) > 1:
        found = nearest(real, real[others], metric, 2).distance
        # of a reference, itself or an equal record comes first
        to_others = np.sqrt(np.where(np.isin(np.arange(len(real)), others), found[:, 1], found[:, 0]))
        _, order = np.unique(density_ratio(to_made, to_others), return_inverse=True)
        signs["membership_auc_calibrated"] = rankdata(order)
    return signs


def copy_sign(synthetic: pd.DataFrame, train: pd.DataFrame, test: pd.DataFrame) -> Floats:
    """Share of the synthetic records that equal each real record, shared among equal real ones."""
    made, *real = row_ids([synthetic, train, test])
    pooled = np.concatenate(real)
    distinct = int(max(made.max(), pooled.max())) + 1
    times, equal = np.bincount(made, minlength=distinct), np.bincount(pooled, minlength=distinct)
    return np.asarray(times[pooled] / equal[pooled] / len(made))


def one_to_one(synthetic: pd.DataFrame, real: pd.DataFrame) -> float:
    """Share of the synthetic records that equal real ones, each by its own, if sizes are made equal.

    This is 1 minus the total variation of both tables. It is 1 for a copy, however few different records
    there are. Another sample has less.
    """
    ids = row_ids([synthetic, real])
    shares = [np.bincount(own, minlength=len(synthetic) + len(real)) / len(own) for own in ids]
    return float(np.minimum(*shares).sum())


def lone_values(synthetic: pd.DataFrame, train: pd.DataFrame, test: pd.DataFrame) -> dict[str, Floats]:
    """For each column, which real records have a value that no other real one has and the table holds.

    A column on a fine scale, such as a time of admission, or a rare code may identify a person by itself.
    Columns with fewer than 30 such records, such as most categories and coarse numbers, are absent.
    """
    found = {}
    for name in train.columns:
        real = pd.concat([train[name], test[name]], ignore_index=True)
        lone = (~real.duplicated(keep=False) & real.notna()).to_numpy()
        repeated = lone & real.isin(synthetic[name].dropna().unique()).to_numpy()
        if repeated.sum() >= FEWEST:
            found[str(name)] = repeated.astype(np.float64)
    return found


def lone_value_shares(columns: Mapping[str, Floats], pooled: Pooled, level: float) -> dict[str, Estimate]:
    """Share of training records among those whose lone value the table holds, as if both were equally many.

    Clopper and Pearson's intervals, valid for all columns together (Bonferroni). By chance the share is 1/2.
    """
    odds = pooled.n_train / pooled.n_test

    def rescaled(part: float) -> float:
        return part / (part + odds * (1.0 - part)) if part > 0 else 0.0

    found = {}
    for name, repeated in columns.items():
        named = int(repeated[: pooled.n_train].sum())
        exact = share(named, int(repeated.sum()), 1 - (1 - level) / len(columns))
        found[name] = Estimate(*map(rescaled, (exact.value, exact.lower, exact.upper)))
    return found


def named_more_often(repeated: Bools, pooled: Pooled, level: float) -> Estimate:
    """Advantage of an attacker who calls these records training ones: true minus false positive rate."""
    rates = (
        share(int(repeated[place].sum()), int(place.sum()), level)
        for place in (pooled.training, ~pooled.training)
    )
    return share_difference(*rates)
