"""Total variation distance (TVD) privacy in closed form: training runs, and staircase noise.

Jia, Tan, Liu, Li, Liu, Lv and Dong 2023, "Total variation distance privacy: Accurately measuring inference
attacks and improving utility", sections 2.4, 4.3 and 5.1. For the staircase mechanism: Geng and Viswanath
2014, "The optimal mechanism in differential privacy". Ghazi and Issa 2024, "Total variation meets
differential privacy", section VI-C and appendix K. The exact TV of a composed mechanism is
:meth:`dpsynth.privacy.Profile.tv`, beside these bounds. Show none of them without epsilon (Example 1). Every
TV is a number in [0, 1]. Arguments out of range or NaN raise InputError by name.

Two of the paper's theorems need care, and no run uses them. Theorem 8 (parallel composition) fails if a
replaced record can move from one part to another. Theorem 9 (a mechanism that reads another's output) needs
the second mechanism's TV over all pairs of inputs (the Dobrushin coefficient), not over neighbours.
"""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpsynth.checks import in_range, inside, one_of, positive, whole

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
    epsilon, gamma = _checked(epsilon, gamma)
    u = math.exp(-epsilon)
    if gamma == 0.0:
        return -math.expm1(-epsilon) / 2
    height = -math.expm1(-epsilon) / (2 * (gamma + u * (1 - gamma)))
    near = min(gamma, 0.5)
    return 2 * height * (near + u * (0.5 - near))


def _checked(epsilon: float, gamma: float) -> tuple[float, float]:
    return (inside("epsilon", epsilon, 0.0, math.inf), in_range("gamma", gamma, 0.0, 1.0))
