"""Gaussian mechanisms in closed form: their exact privacy curve, and the least noise that meets a target.

Balle and Wang 2018, "Improving the Gaussian mechanism for differential privacy: Analytical calibration and
optimal denoising", Theorem 8 and Algorithm 1. Gaussian mechanisms with multipliers z_i are together one with
``mu**2 = sum(1 / z_i**2)``, whether or not a later one depends on an earlier one. Source: Dong, Roth and Su
2019, "Gaussian differential privacy", Corollary 3.3.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpsynth.checks import in_range
from dpsynth.privacy.conversions import tv_of_mu

#: two units of rounding, and the least number above 0
_UNITS, _LEAST = 2.0**-52, 5e-324


def gaussian_deltas(mu: float | np.ndarray, epsilons: float | np.ndarray) -> np.ndarray:
    """Hockey-stick divergence of ``mu``-GDP Gaussian mechanisms at epsilons of any sign.

    Balle and Wang 2018, Theorem 8: Phi(-epsilon / mu + mu / 2) - e^epsilon Phi(-epsilon / mu - mu / 2).

    ``mu`` is at least 0, may be infinite, and is broadcast against the finite ``epsilons``.

    Examples
    --------
    >>> gaussian_deltas(1.0, np.array([0.0, 1.0])).round(5).tolist()
    [0.38292, 0.12694]
    >>> gaussian_deltas(np.array([0.0, 1e-200, 1.0, np.inf]), 1.0).round(5).tolist()
    [0.0, 0.0, 0.12694, 1.0]
    """
    from scipy.special import log_ndtr

    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        mu, epsilons = np.broadcast_arrays(mu, epsilons)
        threshold = np.where(mu > 0.0, epsilons / mu, np.where(epsilons < 0.0, -np.inf, np.inf))
        upper = log_ndtr(mu / 2 - threshold)
        # In logarithms, because e^epsilon overflows and both terms vanish long before delta does.
        ratio = np.minimum(0.0, epsilons + log_ndtr(-mu / 2 - threshold) - upper)
        return np.where(np.isfinite(upper), np.exp(upper) * -np.expm1(ratio), 0.0) + 0.0  # not -0.0


@dataclass(frozen=True)
class GaussianLoss:
    """Privacy loss of Gaussian mechanisms that together are ``mu``-GDP.

    Every result is rounded to the private side, by what floating-point numbers may take from its closed form.
    ``mu`` is sensitivity over noise std of the joint mechanism, which depends on no record if ``mu`` is 0.
    """

    mu: float

    def delta(self, epsilon: float) -> float:
        """Smallest delta at ``epsilon`` (at least 0)."""
        if self.mu == 0.0 or math.isinf(epsilon):
            return 0.0
        if math.isinf(self.mu):
            return 1.0
        return self.deltas([epsilon])[0]

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

    def deltas(self, epsilons: list[float]) -> list[float]:
        """:meth:`delta` at each of a list of epsilons."""
        from scipy.special import log_ndtr

        if not 0.0 < self.mu < math.inf:
            return [self.delta(epsilon) for epsilon in epsilons]
        points = np.asarray(epsilons, dtype=float)
        # The closed form subtracts two nearly equal terms, whose errors grow with the square of the argument
        # of Phi. 2 Phi(mu / 2) - 1, which no delta exceeds, has no difference of almost equal numbers.
        with np.errstate(over="ignore", invalid="ignore"):
            beyond = np.exp(log_ndtr(self.mu / 2 - points / self.mu))
            rounding = 2 * _UNITS * (4 + (points / self.mu + self.mu / 2) ** 2) * beyond
        values = gaussian_deltas(self.mu, points) + np.where(beyond > 0.0, rounding, 0.0) + _LEAST
        return np.minimum(values, min(1.0, tv_of_mu(self.mu) * (1 + 4 * _UNITS))).tolist()

    def fnr(self, fpr: float | np.ndarray) -> float | np.ndarray:
        """Smallest false negative rate at a false positive rate: Phi(Phi^{-1}(1 - fpr) - mu)."""
        # Dong, Roth and Su 2019, Definition 2.6
        return self._rate(fpr, -1.0)

    def tpr(self, fpr: float | np.ndarray) -> float | np.ndarray:
        """Largest true positive rate at a false positive rate, exact where ``1 - fnr`` has no digits left."""
        return self._rate(fpr, 1.0)

    def _rate(self, fpr: float | np.ndarray, sign: float) -> float | np.ndarray:
        from scipy.special import ndtr, ndtri

        rates = np.asarray(fpr, dtype=float)
        # at rate 0 the sum would be no number
        reached = np.full(rates.shape, np.inf) if math.isinf(self.mu) else ndtri(rates) + self.mu
        value = ndtr(sign * reached)
        # an error of the argument x moves Phi(x) by at most |x| + 1 times as much of itself
        square = np.where(np.isfinite(reached), ndtri(rates) ** 2 + reached**2 + self.mu**2, 0.0)
        value = np.clip(value * (1 + sign * 4 * _UNITS * (4 + square)), 0.0, 1.0)
        return value if np.ndim(fpr) else float(value)

    def exceedance(self, epsilon: float) -> float:
        """Probability that the privacy loss, which is N(mu^2 / 2, mu^2), exceeds ``epsilon``."""
        from scipy.special import log_ndtr

        if self.mu == 0.0 or math.isinf(epsilon):
            return 0.0
        # In logarithms, as delta is, which it is never below: ndtr is 0 where floats are not yet.
        if math.isinf(self.mu):
            return 1.0
        argument = self.mu / 2 - epsilon / self.mu
        logarithm = float(log_ndtr(argument))
        units = 4 * _UNITS * (4 + 2 * min(-logarithm, 1e4))  # beyond, the result is 0
        return min(1.0, math.exp(logarithm) * (1 + units) + _LEAST)

    def quantile(self, probability: float) -> float:
        """Smallest level, at least 0, that the loss exceeds with at most this probability."""
        from scipy.special import ndtri

        if self.mu == 0.0 or probability >= self.exceedance(0.0):
            return 0.0
        if probability == 0.0 or math.isinf(self.mu):
            return math.inf
        level = self.mu**2 / 2 - self.mu * float(ndtri(probability))
        step = 1e-15 * (1e-300 + abs(level))
        while level < 0.0 or self.exceedance(level) > probability:  # the last digits, to the private side
            level, step = level + step, 2 * step
        return level


def analytic_sigma(epsilon: float, delta: float) -> float:
    """Least Gaussian noise std over L2 sensitivity that is (epsilon, delta)-DP.

    Rounded up, by less than 1e-10 of itself for epsilon from 1e-3 to 50 and delta from 1e-15. Infinite if no
    finite noise suffices, as for ``delta`` 0. ``epsilon`` is at least 0 and may be infinite, ``delta`` is in
    [0, 1). (dp_accounting's ``get_smallest_gaussian_noise`` is right to 1e-4.)
    """
    from scipy.special import erfinv, ndtri

    epsilon = in_range("epsilon", epsilon, 0.0, math.inf)
    delta = in_range("delta", delta, 0.0, 1.0, high_open=True)
    if delta == 0.0:
        return math.inf
    if math.isinf(epsilon):
        return 0.0
    # Two multipliers that are private for certain: delta(epsilon) <= delta(0), and delta(epsilon) is at most
    # the probability that the loss exceeds epsilon. Algorithm 1 brackets the root the same way, by doubling.
    tail, reach = float(ndtri(delta)), math.sqrt(2) * math.sqrt(epsilon)
    span = math.hypot(tail, reach)
    by_tail = tail + span if tail > 0.0 else reach * (reach / (span - tail)) if reach > 0.0 else 0.0
    low = (1 - 1e-12) * max(math.sqrt(8) * float(erfinv(delta)), by_tail)
    if low == 0.0:
        return math.inf  # the noise would be beyond the largest number
    high = 2 * low
    while _is_private(high, epsilon, delta):
        low, high = high, 2 * high
    for _ in range(44):  # to 2^-44 of the value
        middle = (low + high) / 2
        low, high = (middle, high) if _is_private(middle, epsilon, delta) else (low, middle)
    return (1 + 1e-15) / low


def _is_private(mu: float, epsilon: float, delta: float) -> bool:
    return GaussianLoss(mu).delta(epsilon) <= delta
