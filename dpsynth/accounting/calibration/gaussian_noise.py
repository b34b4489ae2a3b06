"""How much Gaussian noise an epsilon and a delta ask for: the classical formula and the least noise.

Balle and Wang 2018, "Improving the Gaussian mechanism for differential privacy: Analytical calibration and
optimal denoising", Theorem 8 and Algorithm 1, give the least noise that is (epsilon, delta)-DP. The older
formula is (2.1) of MOSAICrOWN deliverable D5.3, "Identifiability bounds" (Dwork and Roth 2014, Theorem A.1):
it adds too much noise for small epsilon and too little for large ones (beyond 8.8 at delta = 1e-6). Arguments
out of range or NaN raise InputError by name.
"""

from __future__ import annotations

import math
import warnings

from dpsynth.accounting.loss.gaussian import GaussianLoss
from dpsynth.checks import in_range


class OutOfRangeWarning(UserWarning):
    """A formula was used outside the range for which it is proved."""


def classical_sigma(epsilon: float, delta: float, sensitivity: float = 1.0) -> float:
    """Gaussian noise std of formula (2.1): ``sqrt(2 ln(1.25 / delta)) sensitivity / epsilon``.

    Parameters
    ----------
    epsilon : float
        At least 0, may be infinite; at 0 no finite noise suffices. Proved for less than 1 (Dwork and Roth
        2014, Theorem A.1).
    delta : float
        In [0, 1); at 0 no finite noise suffices.
    sensitivity : float
        L2 sensitivity, greater than 0 and finite.

    Warns
    -----
    OutOfRangeWarning
        If epsilon is 1 or more: too little noise for large epsilon, see :func:`analytic_sigma`.

    Examples
    --------
    >>> round(classical_sigma(0.5, 1e-5), 4), round(analytic_sigma(0.5, 1e-5), 4)
    (9.6896, 7.0318)
    """
    epsilon = in_range("epsilon", epsilon, 0.0, math.inf)
    delta = in_range("delta", delta, 0.0, 1.0, high_open=True)
    sensitivity = in_range("sensitivity", sensitivity, 0.0, math.inf, low_open=True, high_open=True)
    if epsilon >= 1.0:
        warnings.warn(
            f"classical_sigma is proved for epsilon < 1 only, not {epsilon:g}; analytic_sigma is for all",
            OutOfRangeWarning,
            stacklevel=2,
        )
    if delta == 0.0 or epsilon == 0.0:
        return math.inf
    return classical_factor(delta) * sensitivity / epsilon


def classical_factor(delta: float) -> float:
    """Factor ``sqrt(2 ln(1.25 / delta))`` of formula (2.1), for a delta inside (0, 1).

    Examples
    --------
    >>> round(classical_factor(1e-5), 4)
    4.8448
    """
    delta = in_range("delta", delta, 0.0, 1.0, low_open=True, high_open=True)
    return math.sqrt(2 * (math.log(1.25) - math.log(delta)))  # 1.25 / delta overflows for the least deltas


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

    Examples
    --------
    >>> round(analytic_sigma(1.0, 1e-5), 6), round(analytic_sigma(0.0, 0.38292492), 6)
    (3.730632, 1.0)
    """
    from scipy.special import erfinv, ndtri

    epsilon = in_range("epsilon", epsilon, 0.0, math.inf)
    delta = in_range("delta", delta, 0.0, 1.0, high_open=True)
    sensitivity = in_range("sensitivity", sensitivity, 0.0, math.inf, low_open=True, high_open=True)
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
