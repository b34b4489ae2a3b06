"""Exact trade-off curves that the figures of several papers show: FNR over FPR of the best test.

Dong, Roth and Su 2019, "Gaussian differential privacy", Definition 2.6 and equation 6.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from dpsynth.accounting.events import event_class
from dpsynth.accounting.gaussian import GaussianLoss
from dpsynth.accounting.profile import Profile

Curve = NDArray[np.float64]

#: Grid coarser than for reported results: quicker, pessimistic, and off by less than a line's width.
COARSENESS = 4.0


def gaussian_fnr(fpr: Curve, mu: float) -> Curve:
    """Trade-off curve of Gaussian noise, with sensitivity ``mu`` times its std."""
    return np.asarray(GaussianLoss(mu).fnr(fpr))


def laplace_fnr(fpr: Curve, epsilon: float) -> Curve:
    """Trade-off curve of Laplace noise, with sensitivity ``epsilon`` times its scale."""
    # F(F^-1(1 - fpr) - epsilon) with the Laplace distribution function F, piece by piece
    shrink = math.exp(-epsilon)
    middle = shrink / (4 * np.maximum(fpr, shrink / 2))
    return np.select([fpr < shrink / 2, fpr <= 0.5], [1 - fpr / shrink, middle], shrink * (1 - fpr))


def composed_laplace_fnr(fpr: Curve, epsilon: float, count: int) -> Curve:
    """Trade-off curve of ``count`` releases with Laplace noise, from their privacy-loss distribution."""
    releases = event_class("SelfComposedDpEvent")(event_class("LaplaceDpEvent")(1 / epsilon), count)
    return np.asarray(Profile([releases], coarseness=COARSENESS).fnr(fpr))
