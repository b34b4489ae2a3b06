"""Residuals, their extremes and the curvature of three likelihoods, record by record.

A record contributes ``sum_j r_j x_j`` to the gradient of the log likelihood. It has one row ``x_j``, or for
survival one for each interval of time. The residuals ``r_j`` are functions of the outcome and of the linear
predictor ``eta_j = x_j beta``:

* logistic: ``r = y - p``.
* linear: ``r = clip((y - eta) / s, -B, B) / s`` (Huber 1964, "Robust estimation of a location parameter",
  with the residual's scale s of proposal 2 there).
* piecewise exponential survival (Friedman 1982, "Piecewise exponential models for survival data with
  covariates", Annals of Statistics 10). The hazard in interval j is ``exp(eta_j)`` a length of the interval.
  Here ``eta_j = alpha_j + x beta``, and beta is Cox's log hazard ratio. ``r_j`` is 1 for an event less the
  hazard times the observed part of the interval.

:meth:`Family.extremes` lists the residuals of *every* possible outcome, so a bound on one record depends on
its predictors alone. Weights made from it keep the score's mean at zero if the model holds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from dpsynth.files.codec import record

Floats = NDArray[np.float64]

#: standardised residuals of a linear model are clipped here: 3 in 1,000 of normal ones
RESIDUAL_BOUND = 3.0
#: log hazards of an interval: below, everybody survives it, and above, nobody
_LOG_HAZARDS = (-30.0, 5.0)


class Family(Protocol):
    """One likelihood. ``y`` has shape (n,) except for survival, ``eta`` has shape (n, J)."""

    kind: ClassVar[str]

    @property
    def baseline(self) -> int:
        """How many coefficients come before the slopes: J intercepts."""

    def residuals(self, eta: Floats, y: Floats) -> Floats:
        """Derivative of the log likelihood by each row's linear predictor, shape (n, J)."""

    def extremes(self, eta: Floats) -> Floats:
        """Residuals of every outcome that a record can have, shape (n, outcomes, J)."""

    def shift(self, truth: Floats, eta: Floats, y: Floats) -> Floats:
        """Expected residuals at ``eta`` if outcomes follow ``truth``. ``y`` gives only the time seen."""

    def curvature(self, eta: Floats, y: Floats) -> Floats:
        """Information of each row: the slope of `shift` by the truth, shape (n, J), never negative."""

    def start(self, y: Floats) -> Floats:
        """Intercepts that fit outcomes without predictors, shape (J,)."""

    def draw(self, eta: Floats, rng: np.random.Generator) -> Floats:
        """An outcome for each record."""


@record
@dataclass(frozen=True)
class Logistic(Family):
    """An event or none: ``y`` is 1 or 0."""

    kind = "logistic"
    baseline = 1

    def residuals(self, eta: Floats, y: Floats) -> Floats:
        """``y - p``."""
        return y[:, None] - expit(eta)

    def extremes(self, eta: Floats) -> Floats:
        """``-p`` and ``1 - p``."""
        return np.stack([-expit(eta), expit(-eta)], axis=1)

    def shift(self, truth: Floats, eta: Floats, y: Floats) -> Floats:
        """Difference of the probabilities."""
        return np.asarray(expit(truth) - expit(eta))

    def curvature(self, eta: Floats, y: Floats) -> Floats:
        """``p (1 - p)``."""
        return np.asarray(expit(eta) * expit(-eta))

    def start(self, y: Floats) -> Floats:
        """Log odds of the event, half an event added to each side."""
        return np.array([np.log((y.sum() + 0.5) / (len(y) - y.sum() + 0.5))])

    def draw(self, eta: Floats, rng: np.random.Generator) -> Floats:
        """1 with probability p."""
        return (rng.random(len(eta)) < expit(eta[:, 0])).astype(np.float64)


@record
@dataclass(frozen=True)
class Linear(Family):
    """A number. ``y`` and ``spread``, the residual's standard deviation, are in one unit."""

    spread: float
    kind = "linear"
    baseline = 1

    def residuals(self, eta: Floats, y: Floats) -> Floats:
        """Huber's residual over the spread."""
        clipped = np.clip((y[:, None] - eta) / self.spread, -RESIDUAL_BOUND, RESIDUAL_BOUND)
        return np.asarray(clipped / self.spread)

    def extremes(self, eta: Floats) -> Floats:
        """The two bounds."""
        ends = np.array([-RESIDUAL_BOUND, RESIDUAL_BOUND]) / self.spread
        return np.broadcast_to(ends[None, :, None], (len(eta), 2, 1))

    def shift(self, truth: Floats, eta: Floats, y: Floats) -> Floats:
        """Difference of the means over the variance: what clipping takes of it is left out."""
        return np.asarray((truth - eta) / self.spread**2)

    def curvature(self, eta: Floats, y: Floats) -> Floats:
        """One over the variance."""
        return np.full(eta.shape, 1.0 / self.spread**2)

    def start(self, y: Floats) -> Floats:
        """The median."""
        return np.array([np.median(y)])

    def draw(self, eta: Floats, rng: np.random.Generator) -> Floats:
        """Normal around the linear predictor."""
        return np.asarray(eta[:, 0] + self.spread * rng.standard_normal(len(eta)))


@record
@dataclass(frozen=True)
class PiecewiseHazards(Family):
    """Survival over J intervals of time.

    ``y`` is the observed time in intervals (1.5 is half of the second), negative if the event ended it.
    """

    intervals: int
    kind = "cox"

    @property
    def baseline(self) -> int:
        """An intercept an interval."""
        return self.intervals

    @staticmethod
    def _hazard(eta: Floats) -> Floats:
        return np.exp(np.clip(eta, *_LOG_HAZARDS))

    def _lived(self, y: Floats) -> Floats:
        """Part of each interval that was lived through."""
        return np.clip(np.abs(y)[:, None] - np.arange(self.intervals), 0.0, 1.0)

    def _fell(self, y: Floats) -> NDArray[np.bool_]:
        """Interval of the event, if there was one."""
        last = np.maximum(np.ceil(-y[:, None]), 1.0)
        return np.asarray((np.signbit(y)[:, None]) & (last == np.arange(1, self.intervals + 1)))

    def residuals(self, eta: Floats, y: Floats) -> Floats:
        """Event less hazard times time."""
        return np.asarray(self._fell(y) - self._hazard(eta) * self._lived(y))

    def extremes(self, eta: Floats) -> Floats:
        """An event at the beginning and at the end of each interval, and none by its end.

        The squared length of a score is convex in the time lived, so that no time between is farther.
        """
        ends = np.arange(1.0, self.intervals + 1)
        hazard = self._hazard(eta)[:, None, :]
        lived = ends[:, None] > np.arange(self.intervals)
        fell = np.eye(self.intervals)
        none, late = -hazard * lived, fell - hazard * lived
        return np.concatenate([none, late, late + hazard * fell], axis=1)

    def shift(self, truth: Floats, eta: Floats, y: Floats) -> Floats:
        """Difference of the hazards times time."""
        return (self._hazard(truth) - self._hazard(eta)) * self._lived(y)

    def curvature(self, eta: Floats, y: Floats) -> Floats:
        """Hazard times time."""
        return self._hazard(eta) * self._lived(y)

    def start(self, y: Floats) -> Floats:
        """Log hazard of each interval, half an event and a whole interval added."""
        events = self._fell(y).sum(axis=0)
        return np.asarray(np.log((events + 0.5) / (self._lived(y).sum(axis=0) + 1.0)))

    def draw(self, eta: Floats, rng: np.random.Generator) -> Floats:
        """When the event falls, negative, or J where all intervals are survived."""
        hazard = self._hazard(eta)
        passed = np.cumsum(hazard, axis=1)
        waiting = rng.exponential(size=len(eta))
        whole = (passed < waiting[:, None]).sum(axis=1)
        place = np.minimum(whole, self.intervals - 1)[:, None]
        spent = np.take_along_axis(passed - hazard, place, axis=1)[:, 0]
        part = (waiting - spent) / np.take_along_axis(hazard, place, axis=1)[:, 0]
        return np.where(whole == self.intervals, float(self.intervals), -(whole + part))
