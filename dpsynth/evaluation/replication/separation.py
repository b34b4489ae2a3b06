"""Where the outcomes of a logistic regression separate: how that is found, and what is fitted instead.

Under separation the likelihood grows without end and no maximum exists (Albert and Anderson 1984). A normal
prior on every slope then gives estimates in its place: ridge regression (le Cessie and van Houwelingen 1992,
"Ridge estimators in logistic regression", Applied Statistics 41), with a scale that says little, 2.5 log odds
a standard deviation (Gelman, Jakulin, Pittau and Su 2008, "A weakly informative default prior distribution
for logistic and other regression models", Annals of Applied Statistics 2, with a Cauchy of that scale). The
intercept is free.

Why not Firth's penalised likelihood: it is not concave. With the 30 terms of breast_cancer and its first 285
records, fits of it ended in twelve different maxima from twelve starts. With a normal prior there is one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from dpsynth.evaluation.replication.design_matrix import Design

Floats = NDArray[np.float64]

#: standard deviation of the prior of a slope, in log odds a standard deviation of its term
PRIOR_STD = 2.5


def separated(x: Floats, y: Floats) -> bool:
    """Whether some direction of the predictors tells the outcome of some records and is wrong for none.

    A linear program (Konis 2007, "Linear programming algorithms for detecting separated data in binary
    logistic regression models"): maximise ``sum_i s_i x_i w`` over ``s_i x_i w >= 0`` and ``|w_j| <= 1``,
    where ``s_i`` is 1 or -1 by the outcome. The logistic likelihood has a maximum if and only if the optimum
    is 0. ``x``, of shape (n, p), holds the intercept; ``y`` is 0 and 1.
    """
    from scipy.optimize import linprog

    signed = np.where(y > 0, 1.0, -1.0)[:, None] * x
    found = linprog(-signed.sum(axis=0), A_ub=-signed, b_ub=np.zeros(len(x)), bounds=(-1, 1), method="highs")
    return bool(found.success and -found.fun > 1e-6)


def slope_priors(data: Design) -> dict[str, float]:
    """Return the standard deviation of the prior of each slope, in log odds a unit of the term."""
    scales = data.x.std(axis=0)
    return {
        name: PRIOR_STD / float(scale)
        for name, scale in zip(data.names, scales, strict=True)
        if name and scale
    }


def precisions(names: tuple[str, ...], scale: Floats, priors: Mapping[str, float]) -> Floats:
    """Precision of the prior of each slope of *standardised* terms; of the scale 2.5 where none is given."""
    known = (priors.get(name, PRIOR_STD / s) * s for name, s in zip(names, scale, strict=True))
    return np.array([1.0 / std**2 for std in known])


class Likelihood(Protocol):
    """A log likelihood with its derivatives at a point of shape (p,), as statsmodels' models have them."""

    def loglike(self, params: Floats, /) -> float:
        """Logarithm of the likelihood."""

    def score(self, params: Floats, /) -> Floats:
        """Its gradient."""

    def hessian(self, params: Floats, /) -> Floats:
        """Its second derivatives."""


@dataclass(frozen=True)
class Ridge:
    """A likelihood of statsmodels times the normal priors of the slopes; the first coefficient is free.

    Parameters
    ----------
    model : a model with ``loglike``, ``score`` and ``hessian``
    precision : ndarray of shape (p,)
        Of each slope.
    """

    model: Likelihood
    precision: Floats

    def loglike(self, point: Floats) -> float:
        """Logarithm of the likelihood times the priors, without their constant."""
        return float(self.model.loglike(point)) - 0.5 * float(self.precision @ point[1:] ** 2)

    def score(self, point: Floats) -> Floats:
        """Its gradient."""
        return np.asarray(self.model.score(point)) - np.append(0.0, self.precision * point[1:])

    def hessian(self, point: Floats) -> Floats:
        """Its second derivatives."""
        return np.asarray(self.model.hessian(point)) - np.diag(np.append(0.0, self.precision))
