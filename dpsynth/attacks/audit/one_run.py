"""An audit with one run: many canaries, each in the table by a coin of its own, and guesses about them.

Steinke, Nasr, Jagielski (2023), "Privacy auditing with one (1) training run", Theorem 5.2: whoever guesses r
of m fair coins from the output of an (epsilon, 0)-differentially private mechanism under add/remove is right
no oftener than a binomial of r draws with probability ``e^epsilon / (1 + e^epsilon)``; delta adds

    2 m delta max_i P[v > B >= v - i] / i

to the probability of at least v right guesses. Which coins are guessed may depend on the output, but not how
many: r is fixed in advance. Independent runs with one coin each are the same experiment, so that the bound
also reads the trials of :mod:`dpsynth.attacks.audit.trials`.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from dpsynth.checks import in_range, whole
from dpsynth.errors import InputError

#: How close to the root the lower bound of epsilon stops, below it.
_CLOSE = 1e-6
#: Above this no audit tells anything apart.
_MOST = 60.0


def right_guesses(scores: ArrayLike, included: ArrayLike, guesses: int) -> int:
    """How many of so many guesses are right: the largest scores are taken for "in", the smallest for "out".

    Parameters
    ----------
    scores : array_like of shape (m,)
        One a canary, higher for "in".
    included : array_like of bool, shape (m,)
        Its coin.
    guesses : int
        r, even or odd, at most m, fixed in advance; one more is "in" where it is odd.

    Raises
    ------
    InputError
        If the shapes differ, a score is NaN, or there are more guesses than canaries.

    Examples
    --------
    >>> right_guesses([5.0, -4.0, 0.1, 3.0], [True, False, False, False], 3)
    2
    """
    values, coins = np.asarray(scores, dtype=np.float64), np.asarray(included, dtype=bool)
    if values.ndim != 1 or values.shape != coins.shape or np.isnan(values).any():
        raise InputError("scores and included must be one number and one coin a canary")
    if not 1 <= guesses <= len(values):
        raise InputError(f"guesses must lie in [1, {len(values)}], got {guesses}")
    order = np.argsort(values, kind="stable")
    lowest, highest = order[: guesses // 2], order[len(order) - (guesses - guesses // 2) :]
    return int((~coins[lowest]).sum() + coins[highest].sum())


def p_value(canaries: int, guesses: int, right: int, epsilon: float, delta: float) -> float:
    """Largest probability of so many right guesses under (epsilon, delta); Theorem 5.2.

    Parameters
    ----------
    canaries, guesses, right : int
        m, r and v with v <= r <= m.
    epsilon : float
        At least 0.
    delta : float
        In [0, 1].

    Raises
    ------
    InputError
        If a number is out of range.

    Examples
    --------
    >>> round(p_value(1000, 100, 80, 1.0, 0.0), 5), round(p_value(1000, 100, 80, 1.0, 1e-5), 5)
    (0.07156, 0.07301)
    """
    from scipy.stats import binom

    _check(canaries, guesses, right)
    in_range("epsilon", epsilon, 0.0, math.inf)
    in_range("delta", delta, 0.0, 1.0)
    truth = 1.0 / (1.0 + math.exp(-epsilon))
    p = float(binom.sf(right - 1, guesses, truth))
    if delta > 0.0 and right > 0:
        steps = np.arange(1, right + 1)
        # P[v > B >= v - i], i = 1 ... v
        below = np.cumsum(binom.pmf(right - steps, guesses, truth)) / steps
        p += 2.0 * canaries * delta * float(below.max())
    return min(p, 1.0)


def epsilon_lower(canaries: int, guesses: int, right: int, delta: float, level: float = 0.95) -> float:
    """Lower bound of epsilon at ``delta``, with confidence ``level``; 0 where the guesses tell nothing.

    Examples
    --------
    >>> round(epsilon_lower(1000, 100, 80, 1e-5), 3), epsilon_lower(1000, 100, 50, 1e-5)
    (0.955, 0.0)
    """
    in_range("level", level, 0.0, 1.0, low_open=True, high_open=True)

    def refuted(epsilon: float) -> bool:
        return p_value(canaries, guesses, right, epsilon, delta) < 1.0 - level

    if not refuted(0.0):
        return 0.0
    low, high = 0.0, 1.0
    while refuted(high):
        low, high = high, 2.0 * high
        if low > _MOST:
            return low
    while high - low > _CLOSE:
        middle = 0.5 * (low + high)
        low, high = (middle, high) if refuted(middle) else (low, middle)
    return low


def _check(canaries: int, guesses: int, right: int) -> None:
    for name, number in (("canaries", canaries), ("guesses", guesses)):
        whole(name, number)
    if not 0 <= right <= guesses <= canaries:
        raise InputError(
            f"right, guesses, canaries must not decrease in this order, got {right}, {guesses}, {canaries}"
        )
