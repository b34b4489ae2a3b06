"""Bounds on membership attacks from (epsilon, delta), from total variation, and where each is the sharper.

Jia et al. 2023, "Total variation distance privacy", sections 3, 4.1, 4.2, 5.2 and 5.3: Theorems 3, 4 and 14
to 17. An attack sees an output and calls its target a member or not. TPR is the probability that it calls a
member a member, FPR that it calls a non-member one. FNR is 1 - TPR, and the advantage is TPR - FPR. PPV is
the probability that a target called a member is one. If both guarantees hold, so does the smaller bound.

Arguments of every function: ``fpr`` and ``tpr`` are rates in [0, 1], a number or an array. The result has
their shape. ``epsilon`` is at least 0 (infinite claims nothing), ``delta`` in [0, 1) and ``tv`` in [0, 1].
``prior``, the probability that the target is a member, is in [0, 1], and greater than 0 for the PPV.
InputError names what is out of range or NaN.
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


def ppv(fpr: Rate, tpr: Rate, prior: float) -> Rate:
    """Positive predictive value ``TPR / (TPR + rho FPR)`` with ``rho = (1 - prior) / prior`` (section 5.3).

    If both rates are 0, nobody is called a member and the value is undefined. The result is then 1, which
    bounds it.
    """
    members = _prior(prior, low_open=True) * _rates("tpr", tpr)
    called = members + (1 - prior) * _rates("fpr", fpr)
    return _like(fpr, np.where(called > 0.0, members / np.where(called > 0.0, called, 1.0), 1.0))


def dp_fnr(fpr: Rate, epsilon: float, delta: float) -> Rate:
    """Smallest FNR that (epsilon, delta)-DP leaves an attack at a given FPR (Theorem 3).

    It is max(0, 1 - delta - e^epsilon fpr, e^-epsilon (1 - delta - fpr)).
    """
    rates = _rates("fpr", fpr)
    epsilon, delta = _guarantee(epsilon, delta)
    # the larger of the two lines, each kept to its own precision
    steep, flat = 1 - delta - _times_exp(rates, epsilon), math.exp(-epsilon) * (1 - delta - rates)
    return _like(fpr, np.maximum(0.0, np.maximum(steep, flat)))


def tv_fnr(fpr: Rate, tv: float) -> Rate:
    """Smallest FNR that a total variation leaves an attack: max(0, 1 - tv - fpr) (Theorem 4)."""
    return _like(fpr, np.maximum(0.0, 1 - _tv(tv) - _rates("fpr", fpr)))


def dp_tpr(fpr: Rate, epsilon: float, delta: float) -> Rate:
    """Largest TPR under (epsilon, delta)-DP at a given FPR, the ROC curve's bound: 1 - :func:`dp_fnr`."""
    return _like(fpr, _dp_tpr(_rates("fpr", fpr), *_guarantee(epsilon, delta)))


def tv_tpr(fpr: Rate, tv: float) -> Rate:
    """Largest TPR at a given FPR and total variation, the ROC curve's bound: min(1, fpr + tv)."""
    return _like(fpr, np.minimum(1.0, _rates("fpr", fpr) + _tv(tv)))


def dp_accuracy(epsilon: float, delta: float, prior: float = 0.5) -> float:
    """Largest accuracy of an attack under (epsilon, delta)-DP (Eq. 1, for every ``prior``).

    The rates that the guarantee allows form a polygon, and accuracy is linear in them, so a corner is best.
    At FPR = FNR it is (e^epsilon + delta) / (1 + e^epsilon), for any ``prior``. If one rate is 0, it is
    P0 + P1 delta, see :func:`tv_accuracy`. At 1/2 the first is never the smaller.
    """
    epsilon, delta = _guarantee(epsilon, delta)
    middle = 1 - (1 - delta) * math.exp(-epsilon) / (1 + math.exp(-epsilon))
    return max(middle, tv_accuracy(delta, prior))


def tv_accuracy(tv: float, prior: float = 0.5) -> float:
    """Largest accuracy of an attack at a total variation: P0 + P1 tv (Proposition 1).

    P0 is the larger of ``prior`` and its complement, P1 the smaller.
    """
    larger = max(_prior(prior), 1 - prior)
    return larger + min(prior, 1 - prior) * _tv(tv)


def dp_advantage(fpr: Rate, epsilon: float, delta: float) -> Rate:
    """Largest membership advantage under (epsilon, delta)-DP at a given FPR (Theorem 14)."""
    rates = _rates("fpr", fpr)
    return _like(fpr, _dp_tpr(rates, *_guarantee(epsilon, delta)) - rates)


def tv_advantage(fpr: Rate, tv: float) -> Rate:
    """Largest membership advantage at a given FPR and total variation: min(1 - fpr, tv) (Theorem 15)."""
    return _like(fpr, np.minimum(1 - _rates("fpr", fpr), _tv(tv)))


def dp_ppv(fpr: Rate, epsilon: float, delta: float, prior: float) -> Rate:
    """Largest positive predictive value under (epsilon, delta)-DP at a given FPR (Theorem 16).

    At FPR 0 it is the limit: 1 if delta > 0, else e^epsilon / (e^epsilon + rho).
    """
    rates = _rates("fpr", fpr)
    epsilon, delta = _guarantee(epsilon, delta)
    limit = _prior(prior, low_open=True) / (prior + (1 - prior) * math.exp(-epsilon))
    return _like(fpr, _ppv_bound(rates, _dp_tpr(rates, epsilon, delta), prior, limit))


def tv_ppv(fpr: Rate, tv: float, prior: float) -> Rate:
    """Largest positive predictive value at a given FPR and total variation (Theorem 17).

    The printed bound lets fpr + tv, a bound on the TPR, exceed 1. Here it does not. At FPR 0 it is the limit:
    1 if tv > 0, else ``prior``.
    """
    rates = _rates("fpr", fpr)
    return _like(fpr, _ppv_bound(rates, np.minimum(1.0, rates + _tv(tv)), prior, prior))


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
    epsilon, delta = _guarantee(epsilon, delta)
    tv = _tv(tv)
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


def _dp_tpr(fpr: NDArray[np.float64], epsilon: float, delta: float) -> NDArray[np.float64]:
    """One minus Theorem 3's f, with its full precision where it is small."""
    steep = delta + _times_exp(fpr, epsilon)
    flat = -math.expm1(-epsilon) + math.exp(-epsilon) * (delta + fpr)  # 1 - e^-epsilon (1 - delta - fpr)
    return np.minimum(1.0, np.minimum(steep, flat))


def _times_exp(fpr: NDArray[np.float64], epsilon: float) -> NDArray[np.float64]:
    """Return min(1, e^epsilon fpr), or 1 if epsilon is infinite."""
    if math.isinf(epsilon):
        return np.ones_like(fpr)
    if epsilon < 700.0:
        return np.minimum(1.0, math.exp(epsilon) * fpr)
    with np.errstate(divide="ignore"):
        return np.exp(np.minimum(0.0, epsilon + np.log(fpr)))


def _ppv_bound(
    fpr: NDArray[np.float64], tpr: NDArray[np.float64], prior: float, limit: float
) -> NDArray[np.float64]:
    """PPV at these rates, and ``limit`` where they start from 0 together."""
    return np.where(tpr == 0.0, limit, ppv(fpr, tpr, prior))


def _guarantee(epsilon: float, delta: float) -> tuple[float, float]:
    return in_range("epsilon", epsilon, 0.0, math.inf), in_range("delta", delta, 0.0, 1.0, high_open=True)


def _prior(prior: float, low_open: bool = False) -> float:
    return in_range("prior", prior, 0.0, 1.0, low_open=low_open)


def _tv(tv: float) -> float:
    return in_range("tv", tv, 0.0, 1.0)


def _rates(name: str, value: object) -> NDArray[np.float64]:
    """Return the rates as an array after checking that all lie in [0, 1]."""
    if not isinstance(value, np.ndarray):
        return np.asarray(in_range(name, value, 0.0, 1.0))
    rates = value.astype(np.float64)
    if not np.all((rates >= 0.0) & (rates <= 1.0)):
        raise InputError(f"{name} must lie in [0, 1] everywhere")
    return rates


def _like(given: Rate, values: NDArray[np.float64]) -> Rate:
    """Return an array if one was given, else a float."""
    if isinstance(given, np.ndarray):
        return values
    return float(values)
