"""Coefficients with a covariance from noisy scores, by Newton's method.

Near the maximum, a score ``U`` at a point b with information H satisfies ``U + H b = H beta + error``. The
error is the records' sampling, of variance H, and the noise, of variance N. Several scores are averaged by
their noise. With a normal prior of precision L

    P = L + H' (J + N)^-1 H,    beta = P^-1 H' (J + N)^-1 y,    covariance P^-1,

for y the average, H its information, N its noise, and J the sampling variance of the last score. J is the
information, unless the regression is of patients' rows. H is not inverted. Under the prior distribution, one
standard deviation of any combination of the predictors moves eta by a normal number of standard deviation
2.5. The scale is that of Gelman, Jakulin, Pittau and Su (2008), "A weakly informative default prior
distribution", Annals of Applied Statistics 2. They apply it to each predictor separately, which is too little
for collinear ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.stats import chi2

from dpsynth.studies.design import StudyDesign
from dpsynth.studies.families import RESIDUAL_BOUND, Linear

Floats = NDArray[np.float64]

#: standard deviations of the priors: of a slope, in the unit of eta a standard deviation of its combination
#: of predictors, and of an intercept
SLOPE_PRIOR, INTERCEPT_PRIOR = 2.5, 10.0
#: variance below which a combination of predictors is taken to be that of none
_LEAST_SPREAD = 1e-3
#: standard deviation of an unknown standardised slope, if it is not even known how much its predictor
#: varies beside the others
UNKNOWN_SLOPE = SLOPE_PRIOR / _LEAST_SPREAD**0.5
#: longest step, in standardised coefficients
LONGEST_STEP = 3.0
_STEPS = 100
#: mean square of a standard normal number that is clipped at the residuals' bound
_BOUNDED_SQUARE = float(chi2.cdf(RESIDUAL_BOUND**2, 3) + RESIDUAL_BOUND**2 * chi2.sf(RESIDUAL_BOUND**2, 1))


@dataclass(frozen=True, eq=False)
class Observation:
    """One noisy score (d,) at ``beta``, with its information and the covariance of its noise, both (d, d).

    ``sampling``, shape (d, d): its covariance over samples of records, by default the information.
    """

    beta: Floats
    score: Floats
    information: Floats
    noise: Floats
    sampling: Floats | None = None


def posterior(observed: Sequence[Observation], precision: Floats) -> tuple[Floats, Floats]:
    """Mean (d,) and covariance (d, d) of the coefficients, given scores and the prior precision."""
    weights = [np.linalg.inv(seen.noise) for seen in observed]
    noise = np.linalg.inv(np.sum(weights, axis=0))
    pairs = list(zip(weights, observed, strict=True))
    information = noise @ np.sum([weight @ seen.information for weight, seen in pairs], axis=0)
    each = [weight @ (seen.score + seen.information @ seen.beta) for weight, seen in pairs]
    last = observed[-1]
    sampling = last.information if last.sampling is None else last.sampling
    gain = np.linalg.solve(sampling + noise, information).T
    total = precision + gain @ information
    covariance = np.linalg.inv((total + total.T) / 2)
    return covariance @ gain @ noise @ np.sum(each, axis=0), covariance


def prior_precision(design: StudyDesign, x: Floats) -> Floats:
    """Prior precision L, shape (d, d), for predictors ``x`` of shape (k, p)."""
    j, p = design.family.baseline, len(design.terms)
    spread = np.cov(x.T).reshape(p, p) if p and len(x) > 1 else np.eye(p)
    precision = np.eye(design.size) / INTERCEPT_PRIOR**2
    precision[j:, j:] = (spread + _LEAST_SPREAD * np.eye(p)) / SLOPE_PRIOR**2
    return precision


def bounded_step(step: Floats) -> Floats:
    """A step, shortened where a coefficient would go farther than the quadratic can be trusted."""
    return step * min(1.0, LONGEST_STEP / max(float(np.abs(step).max()), 1e-300))


def mode(design: StudyDesign, x: Floats, y: Floats, share: float) -> tuple[Floats, StudyDesign]:
    """The most probable coefficients, given records in memory, by Fisher's scoring.

    Each record counts ``share`` times. The returned design has the spread of its family, if any.
    """
    prior = prior_precision(design, x)
    beta = np.zeros(design.size)
    if not len(x):
        return beta, design
    beta[: design.family.baseline] = design.family.start(y)
    rows = design.rows(x)
    flat = rows.reshape(-1, design.size)
    damping = 1.0
    last = np.inf
    for _ in range(_STEPS):
        eta = rows @ beta
        if isinstance(design.family, Linear):
            design = replace(design, family=Linear(_spread(y - eta[:, 0])))
        score = share * (flat.T @ design.family.residuals(eta, y).ravel()) - prior @ beta
        curvature = share * design.family.curvature(eta, y).ravel()
        step = np.linalg.solve((flat * curvature[:, None]).T @ flat + prior, score)
        # Newton's decrement falls on the way to the maximum; where a step went too far, the next are shorter
        decrement = float(score @ step)
        damping = min(1.0, 2.0 * damping) if decrement < last else max(damping / 4.0, 1e-3)
        last = decrement
        beta = beta + damping * bounded_step(step)
        if np.abs(step).max() < 1e-8:
            break
    return beta, design


def _spread(residuals: Floats) -> float:
    """The scale s at which bounded residuals have the mean square of normal ones (Huber 1964, proposal 2).

    The variance of a score then equals its information, whatever the distribution of the residuals.
    """
    size = np.abs(residuals)
    widest = float(np.sqrt((size**2).mean()))

    def excess(s: float) -> float:
        return float((np.minimum(size / s, RESIDUAL_BOUND) ** 2).mean()) - _BOUNDED_SQUARE

    least = 1e-6 * widest
    if not least or excess(least) <= 0:  # nearly all of them are 0
        return widest or 1.0
    return float(brentq(excess, least, 1.01 * widest, rtol=1e-10))
