"""Atoms: the mechanisms whose composed privacy loss is computed on a grid.

Each atom knows its privacy-loss distribution (PLD) and the size of its privacy loss, from which the grid is
chosen. Which events become which atoms, under which adjacency, is told in
:mod:`dpsynth.accounting.events.normal_form`.
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from dpsynth.accounting.conversions import amplified, tv_of_mu
from dpsynth.accounting.loss.gaussian import gaussian_deltas
from dpsynth.accounting.loss.grids import Pld, grid_pmf

#: A normal distribution has less mass than e^-50 beyond this many stds.
REACH = 9.7


@dataclass(frozen=True)
class LossSize:
    """Size of one application's privacy loss: its mean, its std, and the width of its support.

    ``rounded`` says that the grid moves the loss up to its next point instead of splitting it between two.
    """

    mean: float
    std: float
    width: float
    rounded: bool = False


class Atom(Hashable, Protocol):
    """A mechanism that can be composed numerically."""

    @property
    def pure_epsilon(self) -> float:
        """Largest finite loss; infinite if there is none."""

    @property
    def pure_delta(self) -> float:
        """Probability of an infinite loss."""

    @property
    def tv(self) -> float:
        """Total variation of one application, exact or a bound."""

    def size(self) -> LossSize:
        """Approximate size of the privacy loss."""

    def pld(self, interval: float) -> Pld:
        """Pessimistic PLD of one application on the grid of multiples of ``interval``."""


@dataclass(frozen=True, order=True)
class GaussianAtom:
    """Gaussian noise of ``noise_multiplier`` on a Poisson sample (all records if ``sampling_prob`` is 1)."""

    noise_multiplier: float
    sampling_prob: float = 1.0
    pure_epsilon = math.inf
    pure_delta = 0.0

    @property
    def tv(self) -> float:
        """See :class:`Atom`: q (2 Phi(1 / (2 z)) - 1)."""
        return self.sampling_prob * tv_of_mu(1 / self.noise_multiplier)

    def size(self) -> LossSize:
        """Moments by quadrature of the loss that a record's presence causes (Mironov, Talwar and Zhang 2019).

        It is log(1 - q + q exp((2x - 1) / (2 z^2))) under (1 - q) N(0, z^2) + q N(1, z^2).
        """
        z, q = self.noise_multiplier, self.sampling_prob
        if q == 1.0:
            return LossSize(mean=0.5 / z**2, std=1 / z, width=20 / z)
        t = np.linspace(-10.0, 10.0, 801)
        weight = np.exp(-(t**2) / 2)
        weight /= weight.sum()
        x = np.concatenate([z * t, 1 + z * t])
        weight = np.concatenate([(1 - q) * weight, q * weight])
        loss = np.logaddexp(math.log1p(-q), math.log(q) + (2 * x - 1) / (2 * z**2))
        mean = float(weight @ loss)
        return LossSize(mean, math.sqrt(max(0.0, float(weight @ (loss - mean) ** 2))), float(np.ptp(loss)))

    def pld(self, interval: float) -> Pld:
        """See :class:`Atom`; built from the divergences of both directions."""
        from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution

        z, q = self.noise_multiplier, self.sampling_prob
        # Losses of presence at outputs REACH stds beyond either mean; e^-50 of the mass lies further out.
        ends = np.array([-REACH * z, 1 + REACH * z])
        with np.errstate(divide="ignore"):  # log(1 - q) where q is 1
            low, high = np.logaddexp(np.log1p(-q), math.log(q) + (2 * ends - 1) / (2 * z**2))
        lower, upper = math.floor(low / interval), math.ceil(high / interval)
        grid = np.arange(lower, upper + 1) * interval
        present = grid_pmf(interval, lower, self.deltas(grid))
        if q == 1.0:
            return PrivacyLossDistribution(present)
        return PrivacyLossDistribution(
            present, grid_pmf(interval, -upper, self.deltas_of_absence(-grid[::-1]))
        )

    def deltas(self, epsilons: np.ndarray) -> np.ndarray:
        """Divergence of presence from absence: q times the Gaussian's at log(1 + (e^epsilon - 1) / q).

        Balle, Barthe and Gaboardi 2018, Theorem 2, which is an identity here.
        """
        q = self.sampling_prob
        # below log(1 - q) no output has a smaller loss: H = 1 - e^epsilon
        reached, level = _unsampled(epsilons, q)
        below = -np.expm1(np.minimum(epsilons, 0.0))
        return np.where(reached, q * gaussian_deltas(1 / self.noise_multiplier, level), below)

    def deltas_of_absence(self, epsilons: np.ndarray) -> np.ndarray:
        """Divergence of absence from presence: q e^{epsilon + l} times the Gaussian's at -l.

        Here l = log(1 + (e^-epsilon - 1) / q), and beyond -log(1 - q) the divergence is 0.
        """
        q = self.sampling_prob
        reached, level = _unsampled(-epsilons, q)
        deltas = gaussian_deltas(1 / self.noise_multiplier, -level)
        return np.where(reached, q * np.exp(epsilons + level) * deltas, 0.0)


@dataclass(frozen=True, order=True)
class LaplaceAtom:
    """Laplace noise of ``noise_multiplier`` on a Poisson sample (all records if ``sampling_prob`` is 1)."""

    noise_multiplier: float
    sampling_prob: float = 1.0
    pure_delta = 0.0

    @property
    def pure_epsilon(self) -> float:
        """See :class:`Atom`."""
        return amplified(1 / self.noise_multiplier, self.sampling_prob)

    @property
    def tv(self) -> float:
        """See :class:`Atom`: q (1 - e^{-1 / (2 b)})."""
        return self.sampling_prob * -math.expm1(-0.5 / self.noise_multiplier)

    def size(self) -> LossSize:
        """See :class:`Atom`."""
        largest = self.pure_epsilon
        return LossSize(largest * math.tanh(largest / 2), min(largest, self.sampling_prob), 2 * largest)

    def pld(self, interval: float) -> Pld:
        """See :class:`Atom`."""
        from dp_accounting.pld import privacy_loss_distribution

        return privacy_loss_distribution.from_laplace_mechanism(
            self.noise_multiplier,
            sampling_prob=self.sampling_prob,
            value_discretization_interval=interval,
        )


@dataclass(frozen=True, order=True)
class ApproxTvAtom:
    """The worst mechanism with a largest loss, a probability of an infinite one, and a total variation.

    With probability ``pure_delta`` it gives the record away; else it says nothing with the erasure
    probability, or answers by randomised response (Ghazi and Issa 2024, section III-C and appendix F). Where
    the total variation is the largest that (epsilon, delta) allows, nothing is erased: Kairouz, Oh and
    Viswanath 2015, section 3.
    """

    pure_epsilon: float
    pure_delta: float
    tv: float

    def size(self) -> LossSize:
        """See :class:`Atom`."""
        largest = self.pure_epsilon
        # The probability of a loss other than 0 is tv / tanh(epsilon / 2) where delta is 0.
        share = min(1.0, self.tv / math.tanh(largest / 2)) if largest > 0.0 else 0.0
        return LossSize(
            share * largest * math.tanh(largest / 2), math.sqrt(share) * largest, 2 * largest, rounded=True
        )

    def pld(self, interval: float) -> Pld:
        """PLD with epsilon rounded up to the grid first, so that -epsilon lies on it and is not rounded."""
        from dp_accounting.pld import pld_pmf
        from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution

        steps = math.ceil(self.pure_epsilon / interval)
        revealed = self.pure_delta
        probabilities = {}
        if steps > 0 and revealed < 1.0:
            answered = min(1.0 - revealed, (self.tv - revealed) / math.tanh(steps * interval / 2))
            # e^epsilon / (1 + e^epsilon) and 1 / (1 + e^epsilon), without overflow
            true = 1 / (1 + math.exp(-steps * interval))
            probabilities[steps] = answered * true
            probabilities[-steps] = answered * (1 - true)
            erased = 1.0 - revealed - answered
        else:
            erased = 1.0 - revealed
        if erased > 0.0:
            probabilities[0] = erased
        return PrivacyLossDistribution(
            pld_pmf.create_pmf(probabilities, interval, revealed, pessimistic_estimate=True)
        )


def most_noise(noise_multiplier: float, sampling_prob: float) -> float:
    """The noise that is accounted for: a loss below about 1e-12 is too small for a grid of its own.

    Less noise than there is errs on the private side.
    """
    return min(noise_multiplier, max(1e3, 1e12 * sampling_prob), 1e9)


def _unsampled(epsilons: np.ndarray, q: float) -> tuple[np.ndarray, np.ndarray]:
    """Where log(1 + (e^epsilon - 1) / q) exists, and its value (0 elsewhere), at epsilons of any size."""
    # Above 30 in the form epsilon - log(q) + log(1 - (1 - q) e^-epsilon), since e^epsilon overflows.
    inner = np.expm1(np.minimum(epsilons, 30.0)) / q
    reached = inner > -1.0
    small = np.log1p(np.where(reached, inner, 0.0))
    large = epsilons - math.log(q) + np.log1p(-(1 - q) * np.exp(-np.maximum(epsilons, 30.0)))
    return reached, np.where(epsilons > 30.0, large, small)
