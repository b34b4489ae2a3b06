"""Practical membership privacy: how well an attacker who knows only the parent set can tell members apart.

Lowy and others 2024, "Why does differential privacy with large epsilon defend against practical membership
inference attacks?", Definition 2, Lemmas 3, 6 and 14, Proposition 5. A parent set X has 2n records and the
data D are a uniformly random half of it. A mechanism A is (epsilon, delta)-PMP with respect to X if for every
record x of X and every event S ``P(A(D) in S | x in D) <= e^epsilon P(A(D) in S | x not in D) + delta``, and
the same with the two sides exchanged. Under replace-one adjacency epsilon-DP implies epsilon-PMP; with n = 1
they are the same.

PMP does not compose, and a number computed from a private parent set is a function of that set for which no
budget was spent: it is for internal use and does not enter the ledger.

This module has the definition for any mechanism with finitely many outputs. The two mechanisms of the paper
are in :mod:`dpsynth.research.papers.lowy.exponential` and :mod:`dpsynth.research.papers.lowy.gaussian`.
Arguments out of range or NaN raise InputError by name.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dpsynth.checks import in_range
from dpsynth.errors import InputError
from dpsynth.research.papers.lowy.halves import (
    HalfTable,
    Halves,
    adjacent_gap,
    halves_of,
    record_log_ratios,
    sampled_gap,
    tabulated,
)


@dataclass(frozen=True)
class PracticalMembershipPrivacy:
    """What an attacker who knows the parent set, and nothing else, can learn about membership.

    Parameters
    ----------
    epsilon_pmp : float
        Smallest epsilon for which the mechanism is epsilon-PMP with respect to the parent set: the largest of
        ``record_epsilons``. From random halves it is an estimate, on average too large.
    standard_error : float
        Error bar of ``epsilon_pmp``; 0 if exact.
    record_epsilons : tuple of float
        For each record, the largest ``|log ratio|`` over outputs, in the order of the parent set.
    epsilon_parent : float
        Epsilon of DP restricted to the parent set (the paper's epsilon_X): the largest ``|log ratio|``
        between two halves that differ in one record. From random halves it is a lower estimate.
    halves : int
        How many halves were used.
    exact : bool
        Whether those were all of them.
    """

    epsilon_pmp: float
    standard_error: float
    record_epsilons: tuple[float, ...]
    epsilon_parent: float
    halves: int
    exact: bool

    @property
    def attack_accuracy(self) -> float:
        """Bound on the accuracy of every attack of this kind (Lemma 6); an estimate if not ``exact``."""
        return attack_accuracy(self.epsilon_pmp)


def attack_accuracy(epsilon: float, delta: float = 0.0) -> float:
    """Largest accuracy of any membership attack on an (epsilon, delta)-PMP mechanism.

    ``epsilon`` is at least 0 and may be infinite, ``delta`` is in [0, 1], the result in [1/2, 1].

    Notes
    -----
    Lowy and others 2024, Lemma 6: ``(e^epsilon + delta) / (1 + e^epsilon)``. Half the parent set are members,
    so guessing alone is right with probability 1/2.
    """
    epsilon = in_range("epsilon", epsilon, 0.0, math.inf)
    delta = in_range("delta", delta, 0.0, 1.0)
    small = math.exp(-epsilon)
    return (1.0 + delta * small) / (1.0 + small)  # Lemma 6, divided by e^epsilon


def mechanism_pmp(
    parent: Any,
    probabilities: Callable[[Any], ArrayLike],
    *,
    halves: int | None = None,
    rng: np.random.Generator | None = None,
) -> PracticalMembershipPrivacy:
    """Practical membership privacy of a mechanism with finitely many outputs.

    Parameters
    ----------
    parent : DataFrame or array
        The parent set, one record a row; an even number of rows. Equal rows count as different people.
    probabilities : callable
        Takes n rows of ``parent``, in their order there, and returns the probability of each output, shape
        (m,), of the same outputs in the same order for any rows.
    halves : int, optional
        Number of random halves (at least 100); by default all halves are enumerated.
    rng : numpy.random.Generator, optional
        Draws the halves; by default it is seeded by the operating system.

    Raises
    ------
    InputError
        If the parent set has an odd number of rows or too many halves to enumerate, or ``probabilities``
        returns no distribution.

    Notes
    -----
    Lowy and others 2024, Definition 2 with delta = 0. For discrete outputs it is enough to look at single
    outputs (Lemma 3). An output that only halves with a record can have makes its epsilon infinite.

    Examples
    --------
    Whether the sum of two of four numbers is odd says nothing about any one of them, although two adjacent
    halves give themselves away for certain (Proposition 5: PMP without DP):

    >>> result = mechanism_pmp(np.arange(4), lambda records: np.eye(2)[records.sum() % 2])
    >>> result.epsilon_pmp, result.epsilon_parent
    (0.0, inf)
    """
    design = halves_of(parent, halves, rng)

    def log_probabilities(records: Any) -> np.ndarray:
        row = np.asarray(probabilities(records), dtype=float)
        if row.ndim != 1 or not np.all(row >= 0.0) or abs(row.sum() - 1.0) > 1e-9:
            raise InputError("probabilities must return numbers of at least 0 whose sum is 1, shape (m,)")
        with np.errstate(divide="ignore"):
            return np.log(row)

    logs = tabulated(parent, design.mask, log_probabilities)
    if design.swapped is None:
        gap = adjacent_gap(design.mask, logs(slice(None)))
    else:
        gap = sampled_gap(len(design.mask), logs, tabulated(parent, design.swapped, log_probabilities))
    return summarised(design, logs, gap)


def summarised(design: Halves, logs: HalfTable, epsilon_parent: float) -> PracticalMembershipPrivacy:
    """Compare each record's halves with the others.

    ``logs`` has the log probabilities of the outputs on the halves of ``design``; ``epsilon_parent`` is as in
    the result.

    Notes
    -----
    The largest of many noisy ratios is on average too large, and the pair of record and output that should
    have been the largest need not be the one that was. So the error bar is the largest standard error among
    all pairs that come within three of their own standard errors of the maximum. It says nothing where a few
    halves carry nearly all the weight of an output, which shows as a bar of about 1 or more.
    """
    exact = design.swapped is None
    ratios, errors = record_log_ratios(design.mask, logs, sampled=not exact)
    sizes = np.abs(ratios)
    largest = float(sizes.max())
    error = float(errors[sizes + 3.0 * errors >= largest].max()) if math.isfinite(largest) else math.inf
    per_record = tuple(sizes.max(axis=1).tolist())
    return PracticalMembershipPrivacy(
        largest, 0.0 if exact else error, per_record, epsilon_parent, len(design.mask), exact
    )
