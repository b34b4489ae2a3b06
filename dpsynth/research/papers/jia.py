"""Jia, Tan, Liu, Li, Liu, Lv and Dong 2023, "Total variation distance privacy": what no run needs.

The paper's full title goes on: "Accurately measuring inference attacks and improving utility".
:mod:`dpsynth.privacy.profile` has the parts that the command ``account`` needs: accuracy and advantage of
attacks (Proposition 1, Theorems 14 and 15, section 4.2), and bounds from KL (Theorem 7, section 5.1). Here
are rates and precision of attacks, mechanisms and their composition in closed form, and how well releases of
one total variation (TV) can compose.

Arguments have the ranges stated in :mod:`dpsynth.privacy.profile`. Others, and NaN, raise InputError by name.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from dpsynth.attacks.closed_forms import (
    Rate,
    checked_guarantee,
    checked_prior,
    checked_rates,
    checked_tv,
    in_the_form_of,
    times_exp,
    tpr_bound,
)
from dpsynth.checks import in_range, positive, whole
from dpsynth.errors import InputError
from dpsynth.privacy.conversions import largest_tv, tv_of_mu
from dpsynth.research.papers.ghazi_issa import compose
from dpsynth.research.papers.trade_off import Pair

# ------------------------------------------------------------------------------------------------
# Sections 3, 4.1, 4.2 and 5.3, Theorems 3, 4, 16 and 17: bounds on the rates of membership attacks.


def ppv(fpr: Rate, tpr: Rate, prior: float) -> Rate:
    """Positive predictive value ``TPR / (TPR + rho FPR)`` with ``rho = (1 - prior) / prior`` (section 5.3).

    If both rates are 0, nobody is called a member and the value is undefined. The result is then 1, which
    bounds it.
    """
    members = checked_prior(prior, low_open=True) * checked_rates("tpr", tpr)
    called = members + (1 - prior) * checked_rates("fpr", fpr)
    return in_the_form_of(fpr, np.where(called > 0.0, members / np.where(called > 0.0, called, 1.0), 1.0))


def dp_fnr(fpr: Rate, epsilon: float, delta: float) -> Rate:
    """Smallest FNR that (epsilon, delta)-DP leaves an attack at a given FPR (Theorem 3).

    It is max(0, 1 - delta - e^epsilon fpr, e^-epsilon (1 - delta - fpr)).
    """
    rates = checked_rates("fpr", fpr)
    epsilon, delta = checked_guarantee(epsilon, delta)
    # the larger of the two lines, each kept to its own precision
    steep, flat = 1 - delta - times_exp(rates, epsilon), math.exp(-epsilon) * (1 - delta - rates)
    return in_the_form_of(fpr, np.maximum(0.0, np.maximum(steep, flat)))


def tv_fnr(fpr: Rate, tv: float) -> Rate:
    """Smallest FNR that a total variation leaves an attack: max(0, 1 - tv - fpr) (Theorem 4)."""
    return in_the_form_of(fpr, np.maximum(0.0, 1 - checked_tv(tv) - checked_rates("fpr", fpr)))


def dp_tpr(fpr: Rate, epsilon: float, delta: float) -> Rate:
    """Largest TPR under (epsilon, delta)-DP at a given FPR, the ROC curve's bound: 1 - :func:`dp_fnr`."""
    return in_the_form_of(fpr, tpr_bound(checked_rates("fpr", fpr), *checked_guarantee(epsilon, delta)))


def tv_tpr(fpr: Rate, tv: float) -> Rate:
    """Largest TPR at a given FPR and total variation, the ROC curve's bound: min(1, fpr + tv)."""
    return in_the_form_of(fpr, np.minimum(1.0, checked_rates("fpr", fpr) + checked_tv(tv)))


def dp_ppv(fpr: Rate, epsilon: float, delta: float, prior: float) -> Rate:
    """Largest positive predictive value under (epsilon, delta)-DP at a given FPR (Theorem 16).

    At FPR 0 it is the limit: 1 if delta > 0, else e^epsilon / (e^epsilon + rho).
    """
    rates = checked_rates("fpr", fpr)
    epsilon, delta = checked_guarantee(epsilon, delta)
    limit = checked_prior(prior, low_open=True) / (prior + (1 - prior) * math.exp(-epsilon))
    return in_the_form_of(fpr, _ppv_bound(rates, tpr_bound(rates, epsilon, delta), prior, limit))


def tv_ppv(fpr: Rate, tv: float, prior: float) -> Rate:
    """Largest positive predictive value at a given FPR and total variation (Theorem 17).

    The printed bound lets fpr + tv, a bound on the TPR, exceed 1. Here it does not. At FPR 0 it is the limit:
    1 if tv > 0, else ``prior``.
    """
    rates = checked_rates("fpr", fpr)
    return in_the_form_of(fpr, _ppv_bound(rates, np.minimum(1.0, rates + checked_tv(tv)), prior, prior))


def _ppv_bound(
    fpr: NDArray[np.float64], tpr: NDArray[np.float64], prior: float, limit: float
) -> NDArray[np.float64]:
    """PPV at these rates, and ``limit`` where they start from 0 together."""
    return np.where(tpr == 0.0, limit, ppv(fpr, tpr, prior))


# ------------------------------------------------------------------------------------------------
# Sections 4.3 and 4.5, Theorems 6 and 11 to 13: mechanisms and their composition in closed form.


def laplace_tv(scale: float) -> float:
    """TV of one number of sensitivity 1 released with Laplace noise: 1 - e^(-1 / (2 scale)) (Theorem 11)."""
    return -math.expm1(-0.5 / positive("scale", scale))


def gaussian_tv(sigma: float) -> float:
    """TV of numbers released with Gaussian noise: 2 Phi(1 / (2 sigma)) - 1 (Theorems 12 and 13).

    ``sigma`` is over the l2 sensitivity. How many numbers there are does not matter: only the component along
    the change separates the tables.
    """
    return tv_of_mu(1 / positive("sigma", sigma))


def naive_composition(tvs: Iterable[float]) -> float:
    """TV of several mechanisms on one table: 1 - prod(1 - tv_i) (Theorem 6).

    Reached by mechanisms that reveal the record with probability tv_i and output nothing otherwise.
    """
    checked = [in_range("each of tvs", tv, 0.0, 1.0) for tv in tvs]
    return -math.expm1(math.fsum(-math.inf if tv == 1.0 else math.log1p(-tv) for tv in checked))


# ------------------------------------------------------------------------------------------------
# Section 6.1: how well releases of one total variation can compose.

_LARGEST_COUNT = 100_000


def optimal_composition(tv: float, count: int) -> tuple[Pair, ...]:
    """Composition of ``count`` releases that are each as good as a release of this TV can be (Theorem 18).

    It is the best case among all mechanisms of TV ``tv`` (in [0, 1)), reached by randomised response of
    ``epsilon = ln((1 + tv) / (1 - tv))``. The paper's proof leaves out the logarithm, and (6) prints ``(1 +
    epsilon)^count`` for ``(1 + e^epsilon)^count``. It is **never a guarantee for a given mechanism**. With tv
    0.1 and count 10 its TV is 0.243. A mechanism that reveals the record with probability 0.1 has 0.651
    (:func:`naive_composition`).

    Returns
    -------
    tuple of Pair
        As of :func:`~dpsynth.research.papers.ghazi_issa.compose`: the first delta is the total variation.
    """
    tv = in_range("tv", tv, 0.0, 1.0, high_open=True)
    if whole("count", count) > _LARGEST_COUNT:
        raise InputError(f"count must be at most {_LARGEST_COUNT}, not {count}")
    epsilon = math.log1p(tv) - math.log1p(-tv)
    return compose(epsilon, 0.0, largest_tv(epsilon), count)
