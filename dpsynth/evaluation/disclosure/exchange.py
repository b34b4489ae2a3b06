"""Is a training record nearer to the synthetic table than a held-out one? All signs in one exact test.

Suppose that the synthetic table does not depend on which real records trained. Then every division of the
pooled real records into training and held-out ones was equally likely, given the synthetic table. Each sign
gives every pooled record a weight that does not depend on the division. Such weights are its share of the
copies, its rank by distance, and whether the table holds a value that it alone has. The sign is the sum of
the training records' weights, in standard deviations of that sum over all divisions.

The signs of one random division are compared together. The p-value of a sign is the share of divisions whose
*largest* sign is at least as large. So all p-values are valid together, for any number of signs, however
discrete, dependent or skewed they are.

References
----------
Westfall, Young (1993), "Resampling-based multiple testing", section 2.3 (single-step maxT).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpsynth.evaluation.disclosure.copies import row_ids
from dpsynth.evaluation.disclosure.distances import Closest, density_ratio
from dpsynth.evaluation.estimates import FEWEST, Estimate, share, share_difference
from dpsynth.evaluation.neighbours.search import Metric, nearest

Floats = NDArray[np.float64]
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
