"""Synthetic records, and single values, that equal real ones, compared with coincidence.

In a table of few discrete columns synthetic records often equal real ones by chance. A count of copies needs
two others for comparison: copies of held-out records, and copies expected in a fresh sample of the real
distribution.

Suppose that the synthetic table does not depend on the particular training records. Then training and
held-out records are exchangeable given the synthetic table. Every division of the real records into the two
tables was equally likely. The spread of a statistic over such exchanges is its spread by chance. This holds
for any distribution, however discrete, and if synthetic records agree with one real record many times.
Resampling synthetic records alone misses the latter, and gives false alarms on small tables.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpsynth.evaluation.estimates import Estimate, share, share_difference
from dpsynth.evaluation.neighbours.accuracy import none_kept

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
