"""The trade-off curve, FNR over FPR of the best test, that several (epsilon, delta) pairs allow at once.

Kairouz, Oh and Viswanath 2015, "The composition theorem for differential privacy", Theorem 2.1: a pair is two
lines that the trade-off curve does not go below. Ghazi and Issa 2024, "Total variation meets differential
privacy", Theorem 1 and Corollary 1: a total variation is the pair (0, tv).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpsynth.errors import InputError

_BLOCK = 2_000_000


class Pair(NamedTuple):
    """An (epsilon, delta) that a mechanism satisfies. Several pairs hold at once."""

    epsilon: float
    delta: float


def strongest(pairs: Iterable[tuple[float, float]]) -> tuple[Pair, ...]:
    """Those of many pairs that no other pair implies, in ascending epsilon and descending delta.

    Examples
    --------
    >>> strongest([(1.0, 0.1), (0.0, 0.3), (2.0, 0.1)])
    (Pair(epsilon=0.0, delta=0.3), Pair(epsilon=1.0, delta=0.1))
    """
    kept: list[Pair] = []
    for pair in sorted(pairs):
        if not kept or pair[1] < kept[-1].delta:
            kept.append(Pair(*pair))
    return tuple(kept)


def fnr(pairs: Sequence[tuple[float, float]], fpr: ArrayLike) -> float | NDArray[np.float64]:
    """Smallest false negative rate that a set of (epsilon, delta) pairs allows at each false positive rate.

    The pairs hold at once, with the two tables in either order. It is the largest over the pairs of ``max(0,
    1 - delta - e^epsilon fpr, e^-epsilon (1 - delta - fpr))``, of the shape of ``fpr``.
    """
    both = np.asarray(pairs, dtype=float)
    if both.ndim != 2 or both.shape[0] == 0 or both.shape[1] != 2:
        raise InputError("pairs must be a sequence of at least one (epsilon, delta)")
    epsilon, delta = both.T
    if not (np.all(epsilon >= 0) and np.all((delta >= 0) & (delta <= 1))):
        raise InputError("pairs must have epsilons of at least 0 and deltas in [0, 1]")
    rates = np.asarray(fpr, dtype=float)
    if not np.all((rates >= 0) & (rates <= 1)):
        raise InputError("fpr must lie in [0, 1]")
    flat = rates.ravel()
    lowest = np.zeros(flat.shape)
    size = max(1, _BLOCK // epsilon.size)
    with np.errstate(divide="ignore"):
        log_fpr = np.log(flat)
    for start in range(0, flat.size, size):
        block = slice(start, start + size)
        # e^epsilon fpr in logarithms, because e^epsilon overflows; beyond 1 the line is below 0 anyway
        steep = 1 - delta - np.exp(np.minimum(log_fpr[block, None] + epsilon, 1.0))
        flatter = np.exp(-epsilon) * (1 - delta - flat[block, None])
        lowest[block] = np.maximum(lowest[block], np.maximum(steep, flatter).max(axis=1))
    return lowest.reshape(rates.shape) if rates.ndim else float(lowest[0])
