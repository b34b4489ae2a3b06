"""The classical formula for Gaussian noise, (2.1) of MOSAICrOWN deliverable D5.3, "Identifiability bounds".

Dwork and Roth 2014, Theorem A.1. It adds too much noise for small epsilon and too little for large ones
(beyond 8.8 at delta = 1e-6); :mod:`dpsynth.accounting.calibration.gaussian_noise` has the least noise.
Arguments out of range or NaN raise InputError by name.
"""

from __future__ import annotations

import math
import warnings

from dpsynth.checks import in_range, inside


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
        If epsilon is 1 or more: too little noise for large epsilon, see
        :func:`~dpsynth.accounting.calibration.gaussian_noise.analytic_sigma`.

    Examples
    --------
    >>> from dpsynth.accounting.calibration.gaussian_noise import analytic_sigma
    >>> round(classical_sigma(0.5, 1e-5), 4), round(analytic_sigma(0.5, 1e-5), 4)
    (9.6896, 7.0318)
    """
    epsilon = in_range("epsilon", epsilon, 0.0, math.inf)
    delta = in_range("delta", delta, 0.0, 1.0, high_open=True)
    sensitivity = inside("sensitivity", sensitivity, 0.0, math.inf)
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
    """Factor ``sqrt(2 ln(1.25 / delta))`` of formula (2.1), for a delta inside (0, 1)."""
    delta = inside("delta", delta, 0.0, 1.0)
    return math.sqrt(2 * (math.log(1.25) - math.log(delta)))  # 1.25 / delta overflows for the least deltas
