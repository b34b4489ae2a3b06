"""Bounds on attacks in closed form, from (epsilon, delta) and from total variation, and total variations.

`dpsynth account` shows them beside a profile. No guarantee rests on them.
"""

from __future__ import annotations

import math
from typing import Literal, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from dpsynth.checks import in_range, inside, one_of, positive, whole
from dpsynth.errors import InputError

# ------------------------------------------------------------------------------------------------
# Bounds on membership attacks in closed form, from (epsilon, delta) and from total variation.
#
# `dpsynth account` shows them beside a profile. No guarantee rests on them. They are from Jia et al. 2023,
# "Total variation distance privacy", sections 3, 4.1, 4.2 and 5.2: Theorems 3, 14 and 15. An attack sees an
# output and calls its target a member or not. TPR is the probability that it calls a member a member, FPR
# that it calls a non-member one. FNR is 1 - TPR, and the advantage is TPR - FPR. If both guarantees hold, so
# does the smaller bound. :mod:`dpsynth.research.papers.jia` has the other theorems.
#
# Arguments of every function: ``fpr`` and ``tpr`` are rates in [0, 1], a number or an array. The result has
# their shape. ``epsilon`` is at least 0 (infinite claims nothing), ``delta`` in [0, 1) and ``tv`` in [0, 1].
# ``prior``, the probability that the target is a member, is in [0, 1]. InputError names what is out of range
# or NaN.


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


# ------------------------------------------------------------------------------------------------
# Total variation distance (TVD) privacy in closed form: training runs, and staircase noise.
#
# Jia, Tan, Liu, Li, Liu, Lv and Dong 2023, "Total variation distance privacy: Accurately measuring inference
# attacks and improving utility", sections 2.4, 4.3 and 5.1. For the staircase mechanism: Geng and Viswanath
# 2014, "The optimal mechanism in differential privacy". Ghazi and Issa 2024, "Total variation meets
# differential privacy", section VI-C and appendix K. The exact TV of a composed mechanism is
# :meth:`dpsynth.privacy.Profile.tv`, beside these bounds. Show none of them without epsilon (Example 1).
# Every TV is a number in [0, 1]. Arguments out of range or NaN raise InputError by name.
#
# Two of the paper's theorems need care, and no run uses them. Theorem 8 (parallel composition) fails if a
# replaced record can move from one part to another. Theorem 9 (a mechanism that reads another's output)
# needs the second mechanism's TV over all pairs of inputs (the Dobrushin coefficient), not over neighbours.


#: Up to this noise multiplier the two Gaussians of a sampled release have no common mass in double precision.
_SEPARATED = 0.01


class KlPair(NamedTuple):
    """Kullback-Leibler divergences, in nats, between the outputs with and without one record.

    The paper uses the larger (Definition 4). TV(P, Q) = TV(Q, P), so the smaller, which is sharper, bounds it
    too.
    """

    present_absent: float
    absent_present: float


def sampled_gaussian_kl(noise_multiplier: float, sampling_prob: float) -> KlPair:
    """KL divergences of Gaussian noise on a Poisson sample, under add/remove one record (section 5.1).

    They are between N(0, z^2) and (1 - q) N(0, z^2) + q N(1, z^2). The relative error is 1e-10 for noise
    multipliers z from 0.1 to 1000 and sampling probabilities q from 1e-6 to 1. Over adaptive mechanisms each
    direction adds up.
    """
    from scipy.special import gammainc

    z = positive("noise_multiplier", noise_multiplier)
    q = in_range("sampling_prob", sampling_prob, 0.0, 1.0)
    if q == 0.0 or math.isinf(z):
        return KlPair(0.0, 0.0)
    mu = 1 / z
    if q == 1.0:
        return KlPair(mu * mu / 2, mu * mu / 2)
    if z <= _SEPARATED:
        # The loss is log(1 - q) around 0 and log(q) + mu t - mu^2 / 2 around mu; between them lies nothing.
        absent = -math.log1p(-q)
        return KlPair(q * (mu * mu / 2 + math.log(q)) - (1 - q) * absent, absent)
    # Trapezoidal rule in t = x / z. The integrands are analytic in a strip of half-width pi z (where the loss
    # has its singularities), so a step of z / 4 errs by exp(-8 pi^2); their mass lies around 0, mu and 2 mu.
    step = min(0.125, z / 4)
    t = step * np.arange(math.floor(-12.0 / step), math.ceil((2 * mu + 12.0) / step) + 1)
    loss = _sampled_loss(mu * t - mu * mu / 2, q)
    # With L the loss and E the mean without the record, E[e^L - 1] = 0, so the divergences are
    # E[e^L L - (e^L - 1)] and E[(e^L - 1) - L], whose terms are never negative. With s = |L| each term is
    # e^max(L, 0) times 1 - (1 + s) e^-s or s - (1 - e^-s): no overflow, no cancellation.
    s = np.abs(loss)
    lower = gammainc(2.0, s)
    upper = -s * np.expm1(-s) - lower
    weight = step / math.sqrt(2 * math.pi) * np.exp(np.maximum(loss, 0.0) - t * t / 2)
    return KlPair(
        float(weight @ np.where(loss > 0.0, upper, lower)), float(weight @ np.where(loss > 0.0, lower, upper))
    )


def pinsker(kl: float) -> float:
    """Pinsker's bound sqrt(kl / 2) on the TV (section 2.4), which may exceed 1, unlike :func:`kl_tv`."""
    return math.sqrt(in_range("kl", kl, 0.0, math.inf) / 2)


def bretagnolle_huber(kl: float) -> float:
    """Bretagnolle and Huber's bound sqrt(1 - e^-kl) on the TV (section 2.4)."""
    return math.sqrt(-math.expm1(-in_range("kl", kl, 0.0, math.inf)))


def kl_tv(kl: float) -> float:
    """Bound on the TV from a KL divergence in either direction, summed over the mechanisms (Theorem 7).

    It is the smaller of Pinsker's and Bretagnolle and Huber's, so never above 1. The paper changes from one
    to the other at 2, but they cross at 1.594.
    """
    return min(pinsker(kl), bretagnolle_huber(kl))


def sampled_gaussian_tv(
    noise_multiplier: float,
    sampling_prob: float,
    steps: int,
    *,
    direction: Literal["smallest", "largest"] = "smallest",
) -> float:
    """Bound on the TV of a training run from the KL divergence of a step (Theorem 7, section 5.1).

    The smallest divergence is valid and sharper (:class:`KlPair`), the largest is the paper's.
    ``Profile([training_event(z, q, steps)]).tv()`` is exact and smaller than both.
    """
    one_of("direction", direction, ("smallest", "largest"))
    kl = sampled_gaussian_kl(noise_multiplier, sampling_prob)
    return kl_tv(whole("steps", steps) * (min(kl) if direction == "smallest" else max(kl)))


def _sampled_loss(exponent: NDArray[np.float64], q: float) -> NDArray[np.float64]:
    """Return log(1 - q + q e^exponent), accurate where it is small, for q inside (0, 1)."""
    near = np.log1p(q * np.expm1(np.minimum(exponent, 600.0)))
    far = np.logaddexp(math.log1p(-q), math.log(q) + exponent)
    return np.where(exponent < 600.0, near, far)


def staircase_tv(epsilon: float, gamma: float) -> float:
    """TV between staircase noise and the same noise shifted by the sensitivity (appendix K1).

    The density f is even and falls with the distance from 0, so f(x) exceeds f(x - 1) if x < 1/2. The TV is
    then the mass of (-1/2, 1/2). It is the largest possible, ``tanh(epsilon / 2)``, at gamma = 1/2.
    """
    epsilon, gamma = _checked_staircase(epsilon, gamma)
    u = math.exp(-epsilon)
    if gamma == 0.0:
        return -math.expm1(-epsilon) / 2
    height = -math.expm1(-epsilon) / (2 * (gamma + u * (1 - gamma)))
    near = min(gamma, 0.5)
    return 2 * height * (near + u * (0.5 - near))


def _checked_staircase(epsilon: float, gamma: float) -> tuple[float, float]:
    return (inside("epsilon", epsilon, 0.0, math.inf), in_range("gamma", gamma, 0.0, 1.0))
