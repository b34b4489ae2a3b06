"""The exact privacy curve of Gaussian releases, in closed form.

Balle and Wang 2018, "Improving the Gaussian mechanism for differential privacy", Theorem 8; any number of
Gaussian releases with multipliers z_i is one release with ``mu**2 = sum(1 / z_i**2)`` (Dong, Roth and Su
2019, "Gaussian differential privacy", Corollary 3.3), whether or not a later one depends on an earlier one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass


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
        # Theorem 8: Phi(-epsilon / mu + mu / 2) - e^epsilon Phi(-epsilon / mu - mu / 2)
        from scipy.special import log_ndtr

        if self.mu == 0.0 or math.isinf(epsilon):
            return 0.0
        if math.isinf(self.mu):
            return 1.0
        upper = float(log_ndtr(-epsilon / self.mu + self.mu / 2))
        lower = float(log_ndtr(-epsilon / self.mu - self.mu / 2))
        # In logarithms, because e^epsilon overflows and both terms vanish long before delta does.
        return math.exp(upper) * max(0.0, -math.expm1(min(0.0, epsilon + lower - upper)))

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
            low, high = (middle, high) if self.delta(middle) > delta else (low, middle)
        return high

    def deltas(self, epsilons: list[float]) -> list[float]:
        """:meth:`delta` at each of an ascending list of epsilons."""
        return [self.delta(epsilon) for epsilon in epsilons]
