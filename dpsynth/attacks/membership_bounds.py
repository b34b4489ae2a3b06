"""Bounds on membership attacks in closed form, from (epsilon, delta) and from total variation.

`dpsynth account` shows them beside a profile. No guarantee rests on them. They are from Jia et al. 2023,
"Total variation distance privacy", sections 3, 4.1, 4.2 and 5.2: Theorems 3, 14 and 15. An attack sees an
output and calls its target a member or not. TPR is the probability that it calls a member a member, FPR that
it calls a non-member one. FNR is 1 - TPR, and the advantage is TPR - FPR. If both guarantees hold, so does
the smaller bound. :mod:`dpsynth.research.papers.jia` has the other theorems.

Arguments of every function: ``fpr`` and ``tpr`` are rates in [0, 1], a number or an array. The result has
their shape. ``epsilon`` is at least 0 (infinite claims nothing), ``delta`` in [0, 1) and ``tv`` in [0, 1].
``prior``, the probability that the target is a member, is in [0, 1]. InputError names what is out of range
or NaN.
"""

from __future__ import annotations

import math
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from dpsynth.checks import in_range
from dpsynth.errors import InputError

#: A rate, or an array of rates.
Rate = TypeVar("Rate", float, NDArray[np.float64])


def dp_accuracy(epsilon: float, delta: float, prior: float = 0.5) -> float:
    """Largest accuracy of an attack under (epsilon, delta)-DP (Eq. 1, for every ``prior``).

    The rates that the guarantee allows form a polygon, and accuracy is linear in them, so a corner is best.
    At FPR = FNR it is (e^epsilon + delta) / (1 + e^epsilon), for any ``prior``. If one rate is 0, it is
    P0 + P1 delta, see :func:`tv_accuracy`. At 1/2 the first is never the smaller.
    """
    epsilon, delta = checked_guarantee(epsilon, delta)
    middle = 1 - (1 - delta) * math.exp(-epsilon) / (1 + math.exp(-epsilon))
    return max(middle, tv_accuracy(delta, prior))


def tv_accuracy(tv: float, prior: float = 0.5) -> float:
    """Largest accuracy of an attack at a total variation: P0 + P1 tv (Proposition 1).

    P0 is the larger of ``prior`` and its complement, P1 the smaller.
    """
    larger = max(checked_prior(prior), 1 - prior)
    return larger + min(prior, 1 - prior) * checked_tv(tv)


def dp_advantage(fpr: Rate, epsilon: float, delta: float) -> Rate:
    """Largest membership advantage under (epsilon, delta)-DP at a given FPR (Theorem 14)."""
    rates = checked_rates("fpr", fpr)
    return in_the_form_of(fpr, tpr_bound(rates, *checked_guarantee(epsilon, delta)) - rates)


def tv_advantage(fpr: Rate, tv: float) -> Rate:
    """Largest membership advantage at a given FPR and total variation: min(1 - fpr, tv) (Theorem 15)."""
    return in_the_form_of(fpr, np.minimum(1 - checked_rates("fpr", fpr), checked_tv(tv)))


def tv_sharper_interval(epsilon: float, delta: float, tv: float) -> tuple[float, float] | None:
    """FPRs between which the total variation bounds an attack more sharply than (epsilon, delta)-DP, or None.

    None if tv >= (e^epsilon - 1 + 2 delta) / (e^epsilon + 1).

    Examples
    --------
    >>> low, high = tv_sharper_interval(1.0, 1e-5, 0.38292)
    >>> round(low, 5), round(high, 5)
    (0.22284, 0.39424)
    >>> tv_sharper_interval(1.0, 1e-5, 0.5) is None
    True
    """
    epsilon, delta = checked_guarantee(epsilon, delta)
    tv = checked_tv(tv)
    low, high = 0.0, 1 - tv
    if tv >= delta:
        # 1 - tv - fpr > 1 - delta - e^epsilon fpr above low = (tv - delta) / (e^epsilon - 1), and it exceeds
        # e^-epsilon (1 - delta - fpr) below (e^epsilon (1 - tv) - 1 + delta) / (e^epsilon - 1), which is
        # 1 - tv - low; the paper prints - delta there (section 4.2).
        if epsilon == 0.0:
            return None
        low = (tv - delta) * math.exp(-epsilon) / -math.expm1(-epsilon)
        high -= low
    return (low, high) if low < high else None


def tpr_bound(fpr: NDArray[np.float64], epsilon: float, delta: float) -> NDArray[np.float64]:
    """One minus Theorem 3's f, with its full precision where it is small."""
    steep = delta + times_exp(fpr, epsilon)
    flat = -math.expm1(-epsilon) + math.exp(-epsilon) * (delta + fpr)  # 1 - e^-epsilon (1 - delta - fpr)
    return np.minimum(1.0, np.minimum(steep, flat))


def times_exp(fpr: NDArray[np.float64], epsilon: float) -> NDArray[np.float64]:
    """Return min(1, e^epsilon fpr), or 1 if epsilon is infinite."""
    if math.isinf(epsilon):
        return np.ones_like(fpr)
    if epsilon < 700.0:
        return np.minimum(1.0, math.exp(epsilon) * fpr)
    with np.errstate(divide="ignore"):
        return np.exp(np.minimum(0.0, epsilon + np.log(fpr)))


def checked_guarantee(epsilon: float, delta: float) -> tuple[float, float]:
    """Epsilon of at least 0 and delta below 1, or InputError."""
    return in_range("epsilon", epsilon, 0.0, math.inf), in_range("delta", delta, 0.0, 1.0, high_open=True)


def checked_prior(prior: float, low_open: bool = False) -> float:
    """A prior probability from 0 to 1, or InputError."""
    return in_range("prior", prior, 0.0, 1.0, low_open=low_open)


def checked_tv(tv: float) -> float:
    """A total variation from 0 to 1, or InputError."""
    return in_range("tv", tv, 0.0, 1.0)


def checked_rates(name: str, value: object) -> NDArray[np.float64]:
    """Return the rates as an array after checking that all lie in [0, 1]."""
    if not isinstance(value, np.ndarray):
        return np.asarray(in_range(name, value, 0.0, 1.0))
    rates = value.astype(np.float64)
    if not np.all((rates >= 0.0) & (rates <= 1.0)):
        raise InputError(f"{name} must lie in [0, 1] everywhere")
    return rates


def in_the_form_of(given: Rate, values: NDArray[np.float64]) -> Rate:
    """Return an array if one was given, else a float."""
    if isinstance(given, np.ndarray):
        return values
    return float(values)
