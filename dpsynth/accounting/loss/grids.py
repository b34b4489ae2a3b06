"""Privacy losses on a grid: made from divergences, and read in one pass.

dp_accounting composes such distributions by FFT; it makes and reads them one point at a time in Python, which
is what most of an accounting would then take. Here both are array operations.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import Protocol

import numpy as np


class DensePmf(Protocol):
    """What is read of dp_accounting's ``DensePLDPmf``, which has no public way to its numbers."""

    _lower_loss: int
    _infinity_mass: float
    _probs: np.ndarray


class Pmf(Protocol):
    """dp_accounting's ``PLDPmf``, dense or sparse."""

    def to_dense_pmf(self) -> DensePmf:
        """The same on every grid point from the lowest to the highest."""


class Pld(Protocol):
    """dp_accounting's ``PrivacyLossDistribution``: the loss of presence and that of absence."""

    _pmf_remove: Pmf
    _pmf_add: Pmf

    def self_compose(self, count: int) -> Pld:
        """The loss of ``count`` applications."""

    def compose(self, other: Pld) -> Pld:
        """The loss of this and another mechanism."""


#: Longest stretch of the loss over which weights e^loss are summed without rescaling.
_STRETCH = 200.0


def grid_pmf(interval: float, lower: int, deltas: np.ndarray) -> Pmf:
    """Probability mass function on the grid from divergences at its points, by connecting the dots.

    Doroshenko, Ghazi, Kamath, Kumar and Manurangsi 2022, "Connect the dots: tighter discrete approximations
    of privacy loss distributions", Algorithm 1, on the points ``(lower + i) interval``: the result's
    divergence is at least ``deltas`` at every point and at least the true one between them.

    ``lower`` is the first point in units of ``interval``; ``deltas`` has shape (n,), n at least 2.
    """
    from dp_accounting.pld.pld_pmf import DensePLDPmf

    # Rounding may break the order of neighbours in the last digit; up is the private side.
    deltas = np.maximum.accumulate(np.clip(deltas, 0.0, 1.0)[::-1])[::-1]
    steps = np.diff(deltas)
    mass = np.empty_like(deltas)
    mass[0] = 1 - deltas[0] + steps[0] / math.expm1(interval)
    mass[1:-1] = (steps[1:] - steps[:-1] * math.exp(interval)) / math.expm1(interval)
    mass[-1] = steps[-1] / math.expm1(-interval)
    return DensePLDPmf(interval, lower, np.maximum(0.0, mass), float(deltas[-1]), True)


class Tail:
    """The upper tail of a privacy loss on a grid."""

    def __init__(self, pmf: Pmf, interval: float) -> None:
        dense = pmf.to_dense_pmf()
        self.interval = interval
        self.lower = int(dense._lower_loss)
        self.infinite = float(dense._infinity_mass)
        self._mass = np.asarray(dense._probs, dtype=float)
        if not np.isfinite(self._mass).all():  # rounding has eaten the distribution: claim nothing
            self.infinite, self._mass = 1.0, np.zeros(self._mass.size)

    @cached_property
    def beyond(self) -> np.ndarray:
        """Probability of a finite loss beyond each point and the one before the first; shape (n + 1,)."""
        return np.append(np.cumsum(self._mass[::-1])[::-1], 0.0)

    @cached_property
    def excess(self) -> np.ndarray:
        """Divergence less its infinite part at each point and the one before the first; shape (n + 1,).

        With A the tails and C the divergences, C_i = (1 - e^{-h}) A_i + e^{-h} C_{i+1}: a sum of positive
        terms, so that small values keep their digits.
        """
        step = self.interval
        inputs = -math.expm1(-step) * self.beyond[::-1]
        result = np.empty_like(inputs)
        length = max(1, int(_STRETCH / step))
        before = 0.0
        for start in range(0, inputs.size, length):
            part = inputs[start : start + length]
            growth = np.exp(step * np.arange(1, part.size + 1))
            result[start : start + length] = (before + np.cumsum(part * growth)) / growth
            before = float(result[start + part.size - 1])
        return result[::-1]

    def deltas(self, epsilons: np.ndarray) -> np.ndarray:
        """Hockey-stick divergence at each of an array of epsilons of any order and sign."""
        points = np.asarray(epsilons, dtype=float) / self.interval
        # the last grid point at or below epsilon; index 0 is the point in front of the grid
        index = np.clip(np.floor(points) - self.lower + 1, 0, self._mass.size)
        index = np.where(np.isfinite(index), index, self._mass.size).astype(int)
        ahead = np.where(index < self._mass.size, (points - (index + self.lower - 1)) * self.interval, 0.0)
        # sum over the tail of p (1 - e^{epsilon - loss}), epsilon being ``ahead`` of the grid point
        value = self.excess[index] * np.exp(ahead) - self.beyond[index] * np.expm1(ahead)
        return self.infinite + np.maximum(0.0, value)

    def epsilon(self, delta: float) -> float:
        """Smallest epsilon, at least 0, whose divergence is at most ``delta``; infinite if there is none."""
        if self.infinite > delta:
            return math.inf
        fits = np.flatnonzero(self.infinite + self.excess <= delta)
        first = int(fits[0])
        if first == 0:
            return 0.0
        # between two grid points the divergence is linear in e^epsilon
        tail, excess = float(self.beyond[first - 1]), float(self.excess[first - 1])
        ahead = math.log((self.infinite + tail - delta) / (tail - excess))
        return max(0.0, (first - 1 + self.lower - 1) * self.interval + max(0.0, ahead))

    def exceedance(self, epsilon: float) -> float:
        """Probability of a loss beyond the last grid point at or below ``epsilon``."""
        index = math.floor(epsilon / self.interval) - self.lower + 1
        return self.infinite + float(self.beyond[min(max(index, 0), self._mass.size)])

    def quantile(self, probability: float) -> float:
        """Smallest grid point, at least 0, that the loss exceeds with at most this probability."""
        if self.infinite > probability:
            return math.inf
        first = int(np.flatnonzero(self.infinite + self.beyond <= probability)[0])
        return max(0.0, (first + self.lower - 1) * self.interval)
