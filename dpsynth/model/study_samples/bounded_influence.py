"""Remarks on what bounded influence may hide of a pre-specified regression, from samples and public bounds.

No record adds more than its bound to a score (`dpsynth.releases.score`). If the regression holds, the
coefficients are the same with and without the bounds. If it does not quite hold, those of the bounded score
are the coefficients of the middle of the records. An interval does not include this difference. If it
may be large, a remark says so. One is about residuals of a linear regression, and one about records far out
in a predictor, such as a skewed count.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.stats import chi2

from dpsynth.checks import together
from dpsynth.model.study_samples.expectations import StandIn
from dpsynth.releases.score import ScorePoint
from dpsynth.studies.design import StudyDesign
from dpsynth.studies.families import RESIDUAL_BOUND, Linear
from dpsynth.studies.newton import bounded_step
from dpsynth.studies.terms import shorter_tails

Floats = NDArray[np.float64]

#: twice the share of a normal distribution beyond the bound of residuals
_NORMAL_BEYOND = 2 * float(chi2.sf(RESIDUAL_BOUND**2, 1))
#: quantiles of a predictor beyond which its effect is supposed to level off
_MIDDLE = (0.05, 0.95)
#: standard errors from which a difference is told. An interval off by as much covers 94 %. Normal predictors
#: with strong effects have up to this
_TOLD = 0.3
#: samples of which it is computed, and Newton's steps
_SAMPLES, _STEPS = 4000, 8


def clipped(draws: StandIn, start: Floats, covariance: Floats) -> tuple[str, ...]:
    """Possible effect of bounded residuals on a linear model, from samples and public bounds.

    Samples have about as many residuals beyond the bound as the records. Noise hides how far out these are:
    on flchain, samples had 0 to 25 % of the difference to least squares. So they are taken to be as far out
    as the outcome's bounds allow.
    """
    design, x = draws.design, draws.x
    if not isinstance(design.family, Linear) or not len(x):
        return ()
    farthest = RESIDUAL_BOUND * design.family.spread
    beyond = float((np.abs(draws.y - draws.rows[:, 0] @ start) > farthest).mean())
    shift = (beyond - _NORMAL_BEYOND) * (design.outcome_range - farthest)
    if shift < np.sqrt(np.diag(covariance)[design.reports]).min():
        return ()
    told = "These are effects on its middle, and those of least squares can be others."
    if not design.terms:
        told = "This is the mean of its middle, and that of all values can be another."
    return (
        f"{design.model.outcome} may have a long tail: {100 * beyond:.1f} % of synthetic records are beyond "
        f"{RESIDUAL_BOUND:g} standard deviations, where a record counts no more. {told} A logarithm or "
        "narrower bounds shorten the tail.",
    )


def far_out(x: Floats, y: Floats, point: ScorePoint, beta: Floats, covariance: Floats) -> tuple[str, ...]:
    """Possible effect of records far out in a predictor, from samples and the estimates.

    ``x``, ``y``, shape (k, p), (k,): of all samples, those far out too.
    ``point``: whose weights the records had.
    """
    design = point.design
    errors = np.sqrt(np.diag(covariance))[design.reports]
    with np.errstate(all="ignore"):  # what overflows says nothing, and the budget is spent
        found = levelled(x[:_SAMPLES], y[:_SAMPLES], point, beta)
        off = {design.terms[j].column: float((np.abs(each) / errors).max()) for j, each in found.items()}
    names = [name for name, size in off.items() if size > _TOLD]
    if not names:
        return ()
    effects = "their effects level" if len(names) > 1 else "its effect levels"
    shorter = shorter_tails([design.schema.column(name) for name in names], design.model.logs)
    return (
        f"Records far out in {together(names)} have a weight below 1. If {effects} off there, the usual fit "
        f"differs by {max(off[name] for name in names):.1f} standard errors or more. The intervals do not "
        f"include this. {shorter}",
    )


def levelled(x: Floats, y: Floats, point: ScorePoint, beta: Floats) -> dict[int, Floats]:
    """By position of a numeric term, how far the reported coefficients are off if its effect levels off.

    The effect is taken to be ``beta`` within the middle 90 % of the samples (`_MIDDLE`), and to be none
    beyond. Samples have expected outcomes. The coefficients of their weighted score are compared with those
    of the plain one.
    """
    design, found = point.design, dict[int, Floats]()
    if not len(x):
        return found
    rows, weights = design.rows(x), point.weights(x)
    for j, term in enumerate(design.terms):
        if term.two_valued or not design.schema.column(term.column).is_numeric:
            continue
        beyond = x[:, j] - np.clip(x[:, j], *np.quantile(x[:, j], _MIDDLE))
        truth = rows @ beta - (beta[design.family.baseline + j] * beyond)[:, None]
        ours, usual = (_solved(design, rows, y, truth, w, beta) for w in (weights, np.ones(len(x))))
        found[j] = (ours - usual)[design.reports]
    return found


def _solved(
    design: StudyDesign, rows: Floats, y: Floats, truth: Floats, weights: Floats, beta: Floats
) -> Floats:
    """Coefficients at which the weighted expected score is 0, if outcomes follow ``truth`` (k, J)."""
    flat, family = rows.reshape(-1, design.size), design.family
    for _ in range(_STEPS):
        eta = rows @ beta
        score = flat.T @ (weights[:, None] * family.shift(truth, eta, y)).ravel()
        information = (flat * (weights[:, None] * family.curvature(eta, y)).reshape(-1, 1)).T @ flat
        least = 1e-6 * max(float(np.trace(information)), 1e-12) * np.eye(design.size)
        beta = beta + bounded_step(np.linalg.solve(information + least, score))
    return beta
