"""The least Gaussian noise that is (epsilon, delta)-DP.

Balle and Wang 2018, "Improving the Gaussian mechanism for differential privacy: Analytical calibration and
optimal denoising", Theorem 8 and Algorithm 1. dp_accounting's ``get_smallest_gaussian_noise`` is not used: it
is right to 1e-4 of the noise, this to 1e-10, and on the private side. Arguments out of range or NaN raise
InputError by name.
"""

from __future__ import annotations

import math

from dpsynth.accounting.loss.gaussian import GaussianLoss
from dpsynth.checks import in_range, inside


def analytic_sigma(epsilon: float, delta: float, sensitivity: float = 1.0) -> float:
    """Least Gaussian noise std that is (epsilon, delta)-DP (Balle and Wang 2018, Theorem 8).

    Parameters
    ----------
    epsilon : float
        At least 0; at infinity no noise is needed.
    delta : float
        In [0, 1); at 0 no finite noise suffices.
    sensitivity : float
        L2 sensitivity, greater than 0 and finite.

    Returns
    -------
    float
        Rounded up, by less than 1e-10 of itself for epsilon from 1e-3 to 50 and delta from 1e-15; infinite
        where no finite noise suffices.
    """
    from scipy.special import erfinv, ndtri

    epsilon = in_range("epsilon", epsilon, 0.0, math.inf)
    delta = in_range("delta", delta, 0.0, 1.0, high_open=True)
    sensitivity = inside("sensitivity", sensitivity, 0.0, math.inf)
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
    return (1 + 1e-15) * sensitivity / low


def _is_private(mu: float, epsilon: float, delta: float) -> bool:
    # The closed form subtracts two nearly equal terms, whose rounding errors grow with the square of the
    # argument of Phi; without an allowance for them a tiny delta would be met by rounding alone.
    loss, argument = GaussianLoss(mu), epsilon / mu + mu / 2
    rounding = 4e-16 * (4 + argument * argument) * loss.exceedance(epsilon) + 5e-324
    return loss.delta(epsilon) + rounding <= delta
