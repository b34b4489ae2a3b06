"""Practical membership privacy (PMP): can an attacker who has only the parent set recognise members?

Lowy and others 2024, "Why does differential privacy with large epsilon defend against practical membership
inference attacks?", Definitions 2 and 7, Lemmas 3, 6 and 14, Propositions 5 and 9. A parent set X has 2n
records and the data D are a uniformly random half of it. A mechanism A is (epsilon, delta)-PMP with respect
to X if for every record x and event S ``P(A(D) in S | x in D) <= e^epsilon P(A(D) in S | x not in D) +
delta``. The same must hold with the two sides exchanged. Under replace-one adjacency epsilon-DP implies
epsilon-PMP. With n = 1 they are the same.

PMP does not compose. A number computed from a private parent set spends no privacy budget. It is confidential
and does not enter the ledger.

Here are any mechanism with finitely many outputs (:func:`mechanism_pmp`) and the exponential mechanism. The
Gaussian mechanism on a mean is in :mod:`dpsynth.research.papers.lowy_gaussian`. All halves are enumerated.
Everything is in logarithms.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dpsynth.checks import in_range, inside
from dpsynth.errors import InputError

#: Most halves that are enumerated: all of a parent set of 24 records.
MOST_HALVES = 3_000_000
#: Most numbers in a table with one row for each half and one column for each output (256 MiB).
MOST_CELLS = 2**25


def halves_of(parent: Any) -> np.ndarray:
    """Return which records each half of a parent set has, in lexicographic order, shape (halves, 2n)."""
    if np.ndim(parent) not in (1, 2):
        raise InputError("parent must be a table or an array with one record a row")
    records = len(parent)
    if records < 2 or records % 2:
        raise InputError(f"parent must have an even number of records, at least 2, not {records}")
    count = math.comb(records, records // 2)
    if count > MOST_HALVES:
        raise InputError(
            f"parent has {records} records and so more than the {MOST_HALVES} halves that can be enumerated: "
            "take at most 24 of them"
        )
    mask = np.zeros((count, records), dtype=bool)
    for row, half in zip(mask, combinations(range(records), records // 2), strict=True):
        row[list(half)] = True
    return mask


@dataclass(frozen=True)
class PracticalMembershipPrivacy:
    """Bounds on what an attacker who has the parent set, and nothing else, can learn about membership.

    ``epsilon_pmp`` is the smallest epsilon for which the mechanism is epsilon-PMP with respect to the parent
    set. It is the largest of ``record_epsilons``: for each record the largest ``|log ratio|`` over outputs.
    ``epsilon_parent`` is epsilon of DP restricted to the parent set (the paper's epsilon_X). It is the
    largest ``|log ratio|`` between two halves that differ in one record.
    """

    epsilon_pmp: float
    record_epsilons: tuple[float, ...]
    epsilon_parent: float

    @property
    def attack_accuracy(self) -> float:
        """Bound on the accuracy of every attack of this kind (Lemma 6)."""
        return attack_accuracy(self.epsilon_pmp)


def attack_accuracy(epsilon: float, delta: float = 0.0) -> float:
    """Largest accuracy of any membership attack on an (epsilon, delta)-PMP mechanism, in [1/2, 1] (Lemma 6).

    It is ``(e^epsilon + delta) / (1 + e^epsilon)``: half the parent set are members, so guessing alone is
    right with probability 1/2.
    """
    epsilon = in_range("epsilon", epsilon, 0.0, math.inf)
    delta = in_range("delta", delta, 0.0, 1.0)
    small = math.exp(-epsilon)
    return (1.0 + delta * small) / (1.0 + small)  # Lemma 6, divided by e^epsilon


def mechanism_pmp(parent: Any, probabilities: Callable[[Any], ArrayLike]) -> PracticalMembershipPrivacy:
    """Practical membership privacy of a mechanism with finitely many outputs (Definition 2 with delta 0).

    For discrete outputs it is enough to look at single outputs (Lemma 3). An output that only halves with a
    record can have makes its epsilon infinite.

    Parameters
    ----------
    parent : DataFrame or array
        The parent set, one record a row, an even number of rows, at most 24. Equal rows count as different
        people.
    probabilities : callable
        Takes n rows of ``parent``, in their order there. Returns the probability of each output, shape (m,),
        with the same outputs in the same order for any rows.

    Examples
    --------
    Whether the sum of two of four numbers is odd says nothing about any one of them, although two adjacent
    halves give themselves away for certain (Proposition 5: PMP without DP):

    >>> result = mechanism_pmp(np.arange(4), lambda records: np.eye(2)[records.sum() % 2])
    >>> result.epsilon_pmp, result.epsilon_parent
    (0.0, inf)
    """

    def log_probabilities(records: Any) -> np.ndarray:
        row = np.asarray(probabilities(records), dtype=float)
        if row.ndim != 1 or not np.all(row >= 0.0) or abs(row.sum() - 1.0) > 1e-9:
            raise InputError("probabilities must return numbers of at least 0 whose sum is 1, shape (m,)")
        with np.errstate(divide="ignore"):
            return np.log(row)

    mask = halves_of(parent)
    return _compared(mask, _tabulated(parent, mask, log_probabilities))


def exponential_pmp(
    parent: Any, loss: Callable[[Any, Any], ArrayLike], outputs: Any, epsilon: float, *, sensitivity: float
) -> PracticalMembershipPrivacy:
    """Practical membership privacy of the exponential mechanism on a parent set (Proposition 9).

    With data D the mechanism chooses output w with a probability ``p_D(w)`` proportional to ``exp(-epsilon
    loss(D, w) / (2 sensitivity))`` (Definition 7). This epsilon_PMP compares the sum of ``p_D(w)`` over the
    halves with a record with the sum over those without: ``epsilon_pmp <= epsilon_parent <= epsilon``.

    Parameters
    ----------
    parent
        As in :func:`mechanism_pmp`.
    loss : callable
        ``loss(records, outputs)`` is the loss of n records at each output, shape (m,).
    outputs : array, DataFrame or sequence
        The choices of the mechanism. Only ``loss`` looks at them.
    epsilon : float
        Epsilon of the mechanism, at least 0 and finite, under replace-one adjacency.
    sensitivity : float
        Largest change of the loss at any output when one record is replaced, over all data. InputError if the
        loss moves more than that on this parent set.

    Examples
    --------
    >>> ages = np.array([0.0, 0.1, 0.3, 0.35, 0.6, 1.0])
    >>> result = exponential_pmp(
    ...     ages, lambda records, outputs: np.abs(records.mean() - outputs), np.linspace(0, 1, 5), 5.0,
    ...     sensitivity=1 / 3,
    ... )
    >>> round(result.epsilon_pmp, 6), round(result.epsilon_parent, 4), round(result.attack_accuracy, 4)
    (1.870415, 2.8396, 0.8665)
    """
    from scipy.special import log_softmax

    epsilon = in_range("epsilon", epsilon, 0.0, math.inf, high_open=True)
    mask = halves_of(parent)
    sensitivity = inside("sensitivity", sensitivity, 0.0, math.inf)
    scale = epsilon / sensitivity / 2

    def losses(records: Any) -> np.ndarray:
        row = np.asarray(loss(records, outputs), dtype=float)
        if row.ndim != 1 or not row.size or not np.all(np.isfinite(row)):
            raise InputError("loss must return finite numbers of shape (m,), with at least one output")
        return row

    table = _tabulated(parent, mask, losses)
    if not math.isfinite(2 * scale * float(np.abs(table).max())):
        raise InputError(f"epsilon * loss / sensitivity overflows at epsilon {epsilon:g}")
    found = _compared(mask, log_softmax(-scale * table, axis=1))  # Definition 7
    if found.epsilon_parent > epsilon * (1 + 1e-9) + 1e-9:
        raise InputError(
            f"sensitivity is {sensitivity:g}, but this loss changes by more when one record of the parent "
            f"set is replaced. Epsilon is then at least {found.epsilon_parent:g}, not {epsilon:g}"
        )
    return found


def _tabulated(parent: Any, mask: np.ndarray, function: Callable[[Any], np.ndarray]) -> np.ndarray:
    """Call a function on the records of each half, which returns shape (m,). Shape (halves, m)."""
    taken = parent.iloc if hasattr(parent, "iloc") else np.asarray(parent)
    table = np.empty((0, 0))
    for row, half in enumerate(mask):
        values = function(taken[np.flatnonzero(half)])
        if row == 0:
            if values.size * len(mask) > MOST_CELLS:
                raise InputError(
                    f"{len(mask)} halves of {values.size} outputs each are more than the {MOST_CELLS} "
                    "numbers that are kept. Pass fewer records or fewer outputs"
                )
            table = np.empty((len(mask), values.size))
        if values.shape != table.shape[1:]:
            raise InputError("the function of the records must return the same outputs for every half")
        table[row] = values
    return table


def _compared(mask: np.ndarray, log_p: np.ndarray) -> PracticalMembershipPrivacy:
    """Compare the halves with each record with those without it, and the halves that differ in one record.

    ``log_p`` has the log probability of each output on each half, shape (halves, m).
    """
    from scipy.special import logsumexp

    # Proposition 9. As many halves have a record as have not, so that sums compare like means.
    record_epsilons = [
        float(_gap(logsumexp(log_p[having], axis=0), logsumexp(log_p[~having], axis=0))) for having in mask.T
    ]
    # Lexicographic order of the halves is the order of their masks read as binary numbers, and it does not
    # depend on two fixed digits: the halves with only the first record and those with only the second come
    # in the same order of their other records, so that equal positions are adjacent halves.
    parent = max(
        _gap(log_p[first & ~second], log_p[second & ~first]) for first, second in combinations(mask.T, 2)
    )
    return PracticalMembershipPrivacy(max(record_epsilons), tuple(record_epsilons), float(parent))


def _gap(left: np.ndarray, right: np.ndarray) -> np.floating[Any]:
    """Largest ``|left - right|``. An output that is impossible on both sides counts for nothing."""
    with np.errstate(invalid="ignore"):
        difference = np.where(np.isneginf(left) & np.isneginf(right), 0.0, left - right)
    return np.abs(difference).max()
