"""Gaussian noise on a Poisson sample, when one record is replaced by another.

Let a record join a batch with probability q, and let noise of std z cover sums in which one record moves by a
vector of norm at most 1. If the record is replaced, the two outputs are the mixtures

    P = (1 - q) N(0, z^2 I) + q N(g, z^2 I)   and   Q = (1 - q) N(0, z^2 I) + q N(g', z^2 I)

with g and g' in the unit ball. The worst case is one-dimensional with g = 1 and g' = -1. Proof, for every
order gamma >= 1 of the hockey-stick divergence H: by advanced joint convexity (Balle, Barthe and Gaboardi
2018, Theorem 2), H_{1 + q (gamma - 1)}(P, Q) = q H_gamma(N(g), (1 - b) N(0) + b N(g')) for a weight b that
does not depend on g and g'. Under N(g) the two likelihood ratios U = N(0) / N(g) and U' = N(g') / N(g) are
lognormal with mean 1 and log-variances |g|^2 / z^2 and |g - g'|^2 / z^2, and H is the expectation of a convex
function of (1 - b) U + b U'. Such an expectation is largest when U and U' are comonotone, and for comonotone
summands it grows with each summand in convex order, that is with the log-variances; g' = -g with |g| = 1
makes them comonotone and both variances largest. Orders below 1 follow by exchanging P and Q, which the worst
pair allows by symmetry. A pair that is worst at every order dominates, also under adaptive composition (Zhu,
Dong and Wang 2022, Theorem 10).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpsynth.accounting.conversions import tv_of_mu
from dpsynth.accounting.loss.atoms import REACH, LossSize
from dpsynth.accounting.loss.grids import Pld, grid_pmf


@dataclass(frozen=True, order=True)
class ReplacedGaussianAtom:
    """Gaussian noise on a Poisson sample under replace-one adjacency.

    ``noise_multiplier`` is in units of the add/remove sensitivity, as in the event, and ``sampling_prob`` is
    less than 1.
    """

    noise_multiplier: float
    sampling_prob: float
    pure_epsilon = math.inf
    pure_delta = 0.0

    @property
    def tv(self) -> float:
        """Total variation of the pair: q (2 Phi(1 / z) - 1)."""
        return self.sampling_prob * tv_of_mu(2 / self.noise_multiplier)

    def size(self) -> LossSize:
        """Moments of the loss under P, by quadrature."""
        z, q = self.noise_multiplier, self.sampling_prob
        t = np.linspace(-REACH, REACH, 801)
        weight = np.exp(-(t**2) / 2)
        weight /= weight.sum()
        loss = self.loss(np.concatenate([z * t, 1 + z * t]))
        weight = np.concatenate([(1 - q) * weight, q * weight])
        mean = float(weight @ loss)
        return LossSize(mean, math.sqrt(max(0.0, float(weight @ (loss - mean) ** 2))), float(np.ptp(loss)))

    def loss(self, x: np.ndarray) -> np.ndarray:
        """Privacy loss log(P(x) / Q(x)): odd and increasing in the output ``x``, of any shape."""
        z, q = self.noise_multiplier, self.sampling_prob
        stay, join = math.log1p(-q), math.log(q) - 0.5 / z**2
        return np.logaddexp(stay, join + x / z**2) - np.logaddexp(stay, join - x / z**2)

    def output(self, loss: np.ndarray) -> np.ndarray:
        """Inverse of :meth:`loss`: z^2 (l / 2 + arsinh((1 - q) sinh(l / 2) e^{1 / (2 z^2)} / q))."""
        z, q = self.noise_multiplier, self.sampling_prob
        half = np.abs(loss) / 2
        with np.errstate(divide="ignore"):  # log(0) where the loss is 0
            # log of the argument of arsinh, with sinh(h) = e^h (1 - e^{-2 h}) / 2
            log = math.log1p(-q) - math.log(q) + 0.5 / z**2 + half + np.log(-np.expm1(-2 * half) / 2)
        inner = np.where(log > 40.0, log + math.log(2.0), np.arcsinh(np.exp(np.minimum(log, 40.0))))
        return np.sign(loss) * z**2 * (half + inner)

    def deltas(self, epsilons: np.ndarray) -> np.ndarray:
        """Hockey-stick divergence at each of an array of orders ``e^epsilon``, negative epsilons included."""
        from scipy.special import ndtr

        z, q = self.noise_multiplier, self.sampling_prob
        size = np.abs(epsilons)
        x = self.output(size)
        upper = (1 - q) * ndtr(-x / z) + q * ndtr((1 - x) / z)  # P(L > epsilon)
        lower = (1 - q) * ndtr(-x / z) + q * ndtr((-1 - x) / z)  # Q(L > epsilon)
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            product = np.where(lower > 0.0, np.exp(size + np.log(lower)), 0.0)
        # delta(-e) = 1 - e^{-e} + e^{-e} delta(e), by symmetry of the pair
        delta = np.clip(upper - product, 0.0, 1.0)
        return np.where(epsilons < 0.0, -np.expm1(-size) + np.exp(-size) * delta, delta)

    def pld(self, interval: float) -> Pld:
        """See :class:`~dpsynth.accounting.loss.atoms.Atom`."""
        from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution

        largest = float(self.loss(np.asarray(1 + REACH * self.noise_multiplier)))
        reach = math.ceil(largest / interval)
        grid = np.arange(-reach, reach + 1) * interval
        return PrivacyLossDistribution(grid_pmf(interval, -reach, self.deltas(grid)))
