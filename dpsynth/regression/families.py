"""What a regression's score looks like, record by record: residuals, their extremes, and curvature.

A record contributes ``sum_j r_j x_j`` to the gradient of the log likelihood: its rows ``x_j`` (one; for
survival one an interval of time) times residuals ``r_j`` that the outcome and the linear predictor
``eta_j = x_j beta`` decide. Three likelihoods:

* logistic: ``r = y - p``;
* linear: ``r = clip((y - eta) / s, -B, B) / s``, Huber's (1964, "Robust estimation of a location
  parameter"), with the residual's standard deviation s;
* grouped proportional hazards (Prentice and Gloeckler 1978, "Regression analysis of grouped survival data
  with application to breast cancer data", Biometrics 34): a record survives interval j with probability
  ``exp(-exp(eta_j))``, ``eta_j = alpha_j + x beta``. Beta is Cox's log hazard ratio, whatever the intervals.

What one record can add is bounded by its predictors alone: :meth:`Family.extremes` lists the residuals of
*every* outcome that it could have. A weight made from that leaves the score's mean at zero where the model
holds, which a weight that looks at the outcome would not.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

Floats = NDArray[np.float64]

#: standardised residuals of a linear model are clipped here: 3 in 1,000 of normal ones
RESIDUAL_BOUND = 3.0
#: log cumulative hazard of an interval beyond which nobody survives it, and below which everybody does
_HAZARDS = (-30.0, 4.0)


class Family(Protocol):
    """One likelihood. ``y`` has shape (n,), but for survival; ``eta`` has shape (n, J)."""

    @property
    def baseline(self) -> int:
        """How many coefficients come before the slopes: J intercepts."""

    def residuals(self, eta: Floats, y: Floats) -> Floats:
        """Derivative of the log likelihood by each row's linear predictor, shape (n, J)."""

    def extremes(self, eta: Floats) -> Floats:
        """Residuals of every outcome that a record can have, shape (n, outcomes, J)."""

    def curvature(self, eta: Floats, y: Floats) -> Floats:
        """Information of each row, shape (n, J), never negative."""

    def start(self, y: Floats) -> Floats:
        """Intercepts that fit outcomes without predictors, shape (J,)."""

    def draw(self, eta: Floats, rng: np.random.Generator) -> Floats:
        """An outcome for each record."""

    def to_dict(self) -> dict[str, Any]:
        """What is needed to make it again, with its kind."""


@dataclass(frozen=True)
class Logistic:
    """An event or none: ``y`` is 1 or 0."""

    baseline = 1

    def residuals(self, eta: Floats, y: Floats) -> Floats:
        """``y - p``."""
        return y[:, None] - expit(eta)

    def extremes(self, eta: Floats) -> Floats:
        """``-p`` and ``1 - p``."""
        return np.stack([-expit(eta), expit(-eta)], axis=1)

    def curvature(self, eta: Floats, y: Floats) -> Floats:
        """``p (1 - p)``."""
        return np.asarray(expit(eta) * expit(-eta))

    def start(self, y: Floats) -> Floats:
        """Log odds of the event, half an event added to each side."""
        return np.array([np.log((y.sum() + 0.5) / (len(y) - y.sum() + 0.5))])

    def draw(self, eta: Floats, rng: np.random.Generator) -> Floats:
        """1 with probability p."""
        return (rng.random(len(eta)) < expit(eta[:, 0])).astype(np.float64)

    def to_dict(self) -> dict[str, Any]:
        """Its kind."""
        return {"kind": "logistic"}


@dataclass(frozen=True)
class Linear:
    """A number; ``y`` and ``spread``, the residual's standard deviation, are in one unit."""

    spread: float
    baseline = 1

    def residuals(self, eta: Floats, y: Floats) -> Floats:
        """Huber's residual over the spread."""
        clipped = np.clip((y[:, None] - eta) / self.spread, -RESIDUAL_BOUND, RESIDUAL_BOUND)
        return np.asarray(clipped / self.spread)

    def extremes(self, eta: Floats) -> Floats:
        """The two bounds."""
        ends = np.array([-RESIDUAL_BOUND, RESIDUAL_BOUND]) / self.spread
        return np.broadcast_to(ends[None, :, None], (len(eta), 2, 1))

    def curvature(self, eta: Floats, y: Floats) -> Floats:
        """One over the variance."""
        return np.full(eta.shape, 1.0 / self.spread**2)

    def start(self, y: Floats) -> Floats:
        """The median."""
        return np.array([np.median(y)])

    def draw(self, eta: Floats, rng: np.random.Generator) -> Floats:
        """Normal around the linear predictor."""
        return np.asarray(eta[:, 0] + self.spread * rng.standard_normal(len(eta)))

    def to_dict(self) -> dict[str, Any]:
        """Its kind and spread."""
        return {"kind": "linear", "spread": self.spread}


@dataclass(frozen=True)
class GroupedHazards:
    """Survival over J intervals of time.

    ``y`` tells a record's end: ``j`` where it was last seen alive at the end of interval j (0: of none), and
    ``-j`` where the event fell into interval j, counted from 1.
    """

    intervals: int

    @property
    def baseline(self) -> int:
        """An intercept an interval."""
        return self.intervals

    @staticmethod
    def _hazard(eta: Floats) -> Floats:
        return np.exp(np.clip(eta, *_HAZARDS))

    @staticmethod
    def _event(hazard: Floats) -> Floats:
        # e^eta (1 - h) / h with h = 1 - exp(-e^eta)
        return np.asarray(hazard / np.expm1(hazard))

    def _survived(self, y: Floats) -> NDArray[np.bool_]:
        whole = np.where(y < 0, -y - 1, y)
        return whole[:, None] > np.arange(self.intervals)

    def residuals(self, eta: Floats, y: Floats) -> Floats:
        """Minus the cumulative hazard where an interval was survived; what is gained where the event fell."""
        hazard = self._hazard(eta)
        fell = -y[:, None] == np.arange(1, self.intervals + 1)
        return np.asarray(np.where(fell, self._event(hazard), -hazard * self._survived(y)))

    def extremes(self, eta: Floats) -> Floats:
        """An event in each interval, survival to the end of each."""
        ends = np.arange(1, self.intervals + 1)
        outcomes = np.concatenate([-ends, ends]).astype(np.float64)
        each = [self.residuals(eta, np.full(len(eta), outcome)) for outcome in outcomes]
        return np.stack(each, axis=1)

    def curvature(self, eta: Floats, y: Floats) -> Floats:
        """Expected information of the intervals at whose beginning the record was seen alive."""
        hazard = self._hazard(eta)
        seen = self._survived(y) | (-y[:, None] == np.arange(1, self.intervals + 1))
        return np.asarray(seen * hazard * self._event(hazard))

    def start(self, y: Floats) -> Floats:
        """Log cumulative hazard of each interval, half an event added."""
        fell = np.array([(y == -j).sum() for j in range(1, self.intervals + 1)])
        survived = self._survived(y).sum(axis=0)
        share = (fell + 0.5) / (fell + survived + 1.0)
        return np.log(-np.log1p(-share))

    def draw(self, eta: Floats, rng: np.random.Generator) -> Floats:
        """The interval of the event, negative, or J where all are survived."""
        waiting = rng.exponential(size=(len(eta), 1))
        passed = np.cumsum(self._hazard(eta), axis=1)
        reached = (passed < waiting).sum(axis=1)  # intervals survived
        return np.where(reached == self.intervals, reached, -(reached + 1.0)).astype(np.float64)

    def to_dict(self) -> dict[str, Any]:
        """Its kind and number of intervals."""
        return {"kind": "cox", "intervals": self.intervals}


def family_of(record: dict[str, Any]) -> Family:
    """Inverse of ``to_dict``."""
    if record["kind"] == "logistic":
        return Logistic()
    if record["kind"] == "linear":
        return Linear(float(record["spread"]))
    return GroupedHazards(int(record["intervals"]))
