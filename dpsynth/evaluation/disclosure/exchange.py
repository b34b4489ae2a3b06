"""What chance does to a comparison of training with held-out records: an exchange of the two tables' labels.

If the synthetic table owes nothing to the particular training records, training and held-out records are
exchangeable given the synthetic table: any way of sharing the real records out over the two tables was as
likely as the one that happened. The spread of a statistic over such exchanges is therefore the spread that
chance gives it, whatever the distribution, however discrete, and however often synthetic records agree with
the same real one. Resampling synthetic records alone misses just that, and cries wolf on small tables.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from dpsynth.evaluation.estimates import Estimate

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
    draws: int = DRAWS,
) -> Floats:
    """Values of a statistic over random ways to share real records out over two tables.

    Parameters
    ----------
    statistic : callable
        From a bool array of shape (relevant,), whether each record on which the statistic depends is in the
        first table, to a number.
    relevant : int
        How many records it depends on, at most ``total``.
    total : int
        Records of both tables.
    first : int
        Records of the first table.

    Returns
    -------
    ndarray of shape (draws,)
    """
    values = np.empty(draws)
    for i in range(draws):
        labels = np.zeros(relevant, dtype=np.bool_)
        labels[: rng.hypergeometric(relevant, total - relevant, first) if relevant else 0] = True
        rng.shuffle(labels)
        values[i] = statistic(labels)
    return values


def reach(null: Floats, centre: float, level: float = 0.95) -> float:
    """Return how far from ``centre`` the null values stray at most, all but ``1 - level`` of them."""
    strayed = np.sort(np.abs(null - centre))
    # The observed value counts as one more draw: the rank ceil(level (draws + 1)) makes the test exact.
    rank = min(math.ceil(level * (len(strayed) + 1) - 1e-9), len(strayed))
    return float(strayed[rank - 1])


def closer_share(weights: Floats, n_train: int, level: float, *, rng: np.random.Generator) -> Estimate:
    """Share of a synthetic table that lies closest to training records, and what chance allows.

    Parameters
    ----------
    weights : ndarray of shape (2 n_train,)
        The share of the synthetic records whose nearest real record is each training record, then each
        held-out record; ties split evenly. Sums to 1.
    n_train : int
        As many training as held-out records.

    Returns
    -------
    Estimate
        The value and the value minus and plus the reach of the exchange distribution: 1/2 lies outside the
        interval in at most a share ``1 - level`` of the tables that owe the training records nothing.
    """
    value = min(float(weights[:n_train].sum()), 1.0)  # a sum of shares may round to more
    nearest = np.flatnonzero(weights)
    mass = weights[nearest]
    null = exchanged(lambda labels: float(mass[labels].sum()), len(mass), len(weights), n_train, rng=rng)
    stray = reach(null, 0.5, level)
    return Estimate(value, max(value - stray, 0.0), min(value + stray, 1.0))
