"""The exact privacy curve of Gaussian releases, in closed form.

Balle and Wang 2018, "Improving the Gaussian mechanism for differential privacy", Theorem 8; any number of
Gaussian releases with multipliers z_i is one release with ``mu**2 = sum(1 / z_i**2)`` (Dong, Roth and Su
2019, "Gaussian differential privacy", Corollary 3.3), whether or not a later one depends on an earlier one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np


def gaussian_deltas(mu: float, epsilons: np.ndarray) -> np.ndarray:
    """Hockey-stick divergence of a ``mu``-GDP Gaussian release at each epsilon, of any sign and shape.

    Balle and Wang 2018, Theorem 8: Phi(-epsilon / mu + mu / 2) - e^epsilon Phi(-epsilon / mu - mu / 2).

    Examples
    --------
    >>> gaussian_deltas(1.0, np.array([0.0, 1.0])).round(5)
    array([0.38292, 0.12694])
    """
    from scipy.special import log_ndtr

    with np.errstate(over="ignore"):  # epsilon / mu of next to no release
        upper = log_ndtr(-epsilons / mu + mu / 2)
        lower = log_ndtr(-epsilons / mu - mu / 2)
    # In logarithms, because e^epsilon overflows and both terms vanish long before delta does.
    gap = np.subtract(lower, upper, out=np.zeros_like(upper), where=np.isfinite(upper))
    return np.exp(upper) * np.maximum(0.0, -np.expm1(np.minimum(0.0, epsilons + gap))) + 0.0  # not -0.0


@dataclass(frozen=True)
class GaussianLoss:
    """Privacy loss of Gaussian releases that together are ``mu``-GDP.

    Parameters
    ----------
    mu : float
        Sensitivity over noise std of the joint release; 0 is a release that depends on no record.

    Examples
    --------
    >>> round(GaussianLoss(1.0).delta(0.0), 5)  # the total variation 2 Phi(mu / 2) - 1
    0.38292
    """

    mu: float

    def delta(self, epsilon: float) -> float:
        """Smallest delta at ``epsilon`` (at least 0)."""
        if self.mu == 0.0 or math.isinf(epsilon):
            return 0.0
        if math.isinf(self.mu):
            return 1.0
        if epsilon == 0.0:  # 2 Phi(mu / 2) - 1 without a difference of almost equal numbers
            return math.erf(self.mu / math.sqrt(8))
        return float(gaussian_deltas(self.mu, np.asarray(epsilon)))

    def epsilon(self, delta: float) -> float:
        """Smallest epsilon at ``delta`` (in [0, 1]), rounded up so that its delta is at most ``delta``."""
        if delta >= self.delta(0.0):
            return 0.0
        if delta == 0.0 or math.isinf(self.mu):
            return math.inf
        low, high = 0.0, 1.0
        while self.delta(high) > delta:
            low, high = high, 2 * high
        while high - low > 1e-13 * high:
            middle = (low + high) / 2
            if not low < middle < high:  # neighbouring numbers, next to 0
                break
            low, high = (middle, high) if self.delta(middle) > delta else (low, middle)
        return high

    def deltas(self, epsilons: list[float], direction: str = "any") -> list[float]:
        """:meth:`delta` at each of an ascending list of epsilons; both directions are the same."""
        if not 0.0 < self.mu < math.inf:
            return [self.delta(epsilon) for epsilon in epsilons]
        return gaussian_deltas(self.mu, np.asarray(epsilons)).tolist()

    def fnr(self, fpr: float | np.ndarray) -> float | np.ndarray:
        """Smallest false negative rate at a false positive rate: Phi(Phi^{-1}(1 - fpr) - mu)."""
        # Dong, Roth and Su 2019, Definition 2.6
        from scipy.special import ndtr, ndtri

        if math.isinf(self.mu):
            return np.zeros_like(fpr, dtype=float) if np.ndim(fpr) else 0.0
        value = ndtr(-ndtri(np.asarray(fpr, dtype=float)) - self.mu)
        return value if np.ndim(fpr) else float(value)

    def exceedance(self, epsilon: float) -> float:
        """Probability that the privacy loss, which is N(mu^2 / 2, mu^2), exceeds ``epsilon``."""
        from scipy.special import ndtr

        if self.mu == 0.0 or math.isinf(epsilon):
            return 0.0
        return 1.0 if math.isinf(self.mu) else float(ndtr(self.mu / 2 - epsilon / self.mu))

    def quantile(self, probability: float) -> float:
        """Smallest level, at least 0, that the loss exceeds with at most this probability."""
        from scipy.special import ndtri

        if self.mu == 0.0 or probability >= self.exceedance(0.0):
            return 0.0
        if probability == 0.0 or math.isinf(self.mu):
            return math.inf
        level = self.mu**2 / 2 - self.mu * float(ndtri(probability))
        while self.exceedance(level) > probability:  # the last digit, to the private side
            level *= 1 + 1e-15
        return level
