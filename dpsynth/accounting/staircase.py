"""The staircase mechanism: its density and its total variation (TV).

Geng and Viswanath 2014, "The optimal mechanism in differential privacy"; Ghazi and Issa 2024, "Total
variation meets differential privacy", section VI-C and appendix K. The noise on one number has a symmetric
density that falls by ``e^-epsilon`` at the distances ``gamma, 1 + gamma, 2 + gamma, ...`` (in units of the
sensitivity). Its trade-off curve is that of the worst mechanism with this epsilon and TV (appendix K2), so
that :func:`dpsynth.research.papers.ghazi_issa.compose` is exact for it. Arguments out of range or
NaN raise InputError by name.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpsynth.checks import in_range, inside


def staircase_density(
    x: ArrayLike, epsilon: float, gamma: float, sensitivity: float = 1.0
) -> float | NDArray[np.float64]:
    """Density of staircase noise (equation 16).

    Parameters
    ----------
    x : float or array_like
        Where; finite.
    epsilon : float
        Greater than 0 and finite.
    gamma : float
        Share of each step that stands at its upper height, in [0, 1].
    sensitivity : float
        Largest change of the number between neighbouring tables, greater than 0 and finite.

    Returns
    -------
    float or ndarray of the shape of ``x``
    """
    epsilon, gamma = _checked(epsilon, gamma)
    width = inside("sensitivity", sensitivity, 0.0, math.inf)
    distance = np.abs(np.asarray(x, dtype=float)) / width
    step = np.floor(distance)
    drops = step + (distance - step >= gamma)
    u = math.exp(-epsilon)
    if gamma == 0.0:  # the first drop is at 0: one drop less of a height that is e^epsilon times as large
        height, drops = -math.expm1(-epsilon) / 2, drops - 1
    else:
        height = -math.expm1(-epsilon) / (2 * (gamma + u * (1 - gamma)))
    density = height / width * np.exp(-epsilon * drops)
    return density if density.ndim else float(density)


def staircase_tv(epsilon: float, gamma: float) -> float:
    """TV between staircase noise and the same noise shifted by the sensitivity (appendix K1).

    It is the largest possible, ``tanh(epsilon / 2)``, at gamma = 1/2. The parameters are those of
    :func:`staircase_density`.

    Notes
    -----
    The density f is even and falls with the distance from 0, so f(x) exceeds f(x - 1) where x < 1/2, and the
    TV is the mass of (-1/2, 1/2).
    """
    epsilon, gamma = _checked(epsilon, gamma)
    u = math.exp(-epsilon)
    if gamma == 0.0:
        return -math.expm1(-epsilon) / 2
    height = -math.expm1(-epsilon) / (2 * (gamma + u * (1 - gamma)))
    near = min(gamma, 0.5)
    return 2 * height * (near + u * (0.5 - near))


def _checked(epsilon: float, gamma: float) -> tuple[float, float]:
    return (
        inside("epsilon", epsilon, 0.0, math.inf),
        in_range("gamma", gamma, 0.0, 1.0),
    )
