"""Estimates of pre-specified regressions: Newton steps, families, outcomes, designs and life tables."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, Protocol

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq
from scipy.special import expit
from scipy.stats import chi2

from dpsynth.checks import Counted, inside
from dpsynth.files.codec import record
from dpsynth.patients.histories import rows_of
from dpsynth.patients.schema import Patients
from dpsynth.studies.model import (
    EffectsModel,
    Regressor,
    Term,
    column_values,
    logarithms,
    model_terms,
    term_values,
)
from dpsynth.table.column import Column
from dpsynth.table.conform import round_frame
from dpsynth.table.schema import Schema
from dpsynth.table.values import numeric_values

# ------------------------------------------------------------------------------------------------
# A survival curve and its pointwise bands from a noisy life table.
#
# The estimate is the product of Kaplan and Meier (1958, "Nonparametric estimation from incomplete
# observations", JASA 53, section 3) at the ends of intervals. Records last seen within an interval count
# half at risk in it (Cutler and Ederer 1958, "Maximum utilization of the life table method"). Records last
# seen *at* its end count whole: follow-up often ends on one day for everybody.
#
# Bands are those of a basic bootstrap (Davison and Hinkley 1997, "Bootstrap methods and their application",
# section 5.2) on plain differences. The usual log(-log S) is undefined here, because a noisy estimate can be
# 1 or more. Values are cut to [0, 1] only at the end: cutting noise cell by cell would turn it into events.

Floats = NDArray[np.float64]


#: how a record's time ends in an interval: with the event; last seen within it, or at its very end
ENDS = 3
_EVENT, _WITHIN, _AT_END = range(ENDS)
#: of the bootstrap
_REDRAWS = 1000
#: standard deviations of noise that must be at risk in an interval for an estimate
_TOLD = 2.0
#: standard deviations of noise by which the counts' sum may be off a public number of records
_OFF = 3.0


def survival_curve(
    counts: ArrayLike,
    times: ArrayLike,
    noise_std: float,
    rng: np.random.Generator,
    *,
    total: float | None = None,
    level: float = 0.95,
    unit: str = "",
) -> SurvivalCurve:
    """Survival at the ends of intervals, with pointwise bands that include sampling and noise.

    Parameters
    ----------
    counts : array of shape (3 J + 1,)
        Noisy counts: for each interval the events, those last seen within it and those last seen at its end.
        Then the records whose time or event is not known.
    times : array of shape (J,)
        Ends of the intervals.
    noise_std : float
        Standard deviation of the noise on each count, 0 without noise.
    total : float, optional
        Public number of records, which reduces noise. It is ignored if the counts disagree with it.

    Examples
    --------
    >>> counts = [10.0, 0.0, 0.0, 10.0, 10.0, 70.0, 0.0]
    >>> print(survival_curve(counts, [30, 90], 0.0, np.random.default_rng(0), unit="days"))
    Survival at 30 days: 0.90 (0.84 to 0.96)
    Survival at 90 days: 0.79 (0.72 to 0.88)
    """
    tail = (1.0 - inside("level", level, 0.0, 1.0)) / 2.0
    noisy = np.asarray(counts, dtype=np.float64)
    if total is not None and abs(noisy.sum() - total) > _OFF * noise_std * np.sqrt(noisy.size):
        total = None
    cells = _adjusted(noisy, total)
    ends = np.asarray(times, dtype=np.float64)
    floor = np.maximum(1.0, _TOLD * noise_std * _life_table_spread(len(ends), total))
    told = np.logical_and.accumulate(at_risk(cells) >= floor)
    found = _product(cells, floor, told)

    expected = _expected(cells)
    size = expected.sum()
    redrawn = rng.multinomial(round(size), expected / size, _REDRAWS).astype(np.float64)
    redrawn += noise_std * rng.standard_normal(redrawn.shape)
    again = _product(_adjusted(redrawn, None if total is None else size), floor, told)
    # the basic bootstrap: an estimate is as far from the truth as a redrawn one from what it was drawn from
    differences = np.quantile(again - _product(expected, floor, told), [tail, 1.0 - tail], axis=0)
    upper, lower = np.maximum(found - differences[0], found), np.minimum(found - differences[1], found)
    lower = np.where(told, lower, 0.0)
    # survival is no more than before, so an upper end holds for all that follows: a tail of few, whose own
    # end is near 1, says nothing of the years before it
    curve = _monotone(found)
    return SurvivalCurve(ends, curve, _least(lower), np.maximum(_least(upper), curve), level, unit)


def at_risk(cells: Floats) -> Floats:
    """Records at risk in each interval, half of those lost sight of within it, shape (..., J)."""
    table = _table(cells)
    left = np.cumsum(table.sum(axis=-1)[..., ::-1], axis=-1)[..., ::-1]
    return np.asarray(left - table[..., _WITHIN] / 2.0)


def _table(cells: Floats) -> Floats:
    return cells[..., :-1].reshape(*cells.shape[:-1], -1, ENDS)


def _product(cells: Floats, floor: Floats, told: NDArray[np.bool_]) -> Floats:
    """The product, not cut to [0, 1], and constant from the first interval with too few at risk."""
    hazard = _table(cells)[..., _EVENT] / np.maximum(at_risk(cells), floor)
    return np.cumprod(1.0 - np.where(told, np.clip(hazard, -1.0, 1.0), 0.0), axis=-1)


def _adjusted(cells: Floats, total: float | None) -> Floats:
    """The nearest cells that sum to a known total. A record lies in exactly one."""
    if total is None:
        return cells
    return np.asarray(cells - (cells.sum(axis=-1, keepdims=True) - total) / cells.shape[-1])


def _life_table_spread(size: int, total: float | None) -> Floats:
    """Standard deviation of the number at risk in each interval for noise of 1 on each cell."""
    weights = at_risk(_adjusted(np.eye(ENDS * size + 1), None if total is None else 0.0))
    return np.asarray(np.sqrt((weights**2).sum(axis=0)))


def _expected(cells: Floats) -> Floats:
    """Nonnegative cells of the same total to redraw from, with one more event: a band needs a width."""
    positive = np.maximum(cells, 0.0)
    kept = positive * (max(cells.sum(), 0.0) / max(positive.sum(), 1e-9))
    kept[_EVENT] += 1.0
    return np.asarray(kept)


def _least(values: Floats) -> Floats:
    """The highest curve below that never increases, in [0, 1]."""
    return np.clip(np.minimum.accumulate(values), 0.0, 1.0)


def _monotone(values: Floats) -> Floats:
    """The nearest curve in [0, 1] that never increases: half between bounds below and above."""
    above = np.clip(np.maximum.accumulate(values[::-1])[::-1], 0.0, 1.0)
    return np.asarray((_least(values) + above) / 2.0)


@record
@dataclass(frozen=True, eq=False)
class SurvivalCurve:
    """Share of the population without the event by each time, with pointwise bands.

    Attributes
    ----------
    times : ndarray of shape (J,)
        In the duration's unit, increasing.
    survival, lower, upper : ndarray of shape (J,)
        In [0, 1], never increasing. ``lower`` is 0 once too few records are left.
    unit : str
        Unit of the times, empty if the schema names none.
    """

    times: Floats
    survival: Floats
    lower: Floats
    upper: Floats
    level: float = 0.95
    unit: str = ""

    def quarters(self) -> list[int]:
        """Places of three boundaries, about the quartiles of follow-up where boundaries are its quantiles."""
        size = len(self.times)
        return sorted({min(round(size * part), size) - 1 for part in (0.25, 0.5, 0.75) if round(size * part)})

    def rows(self) -> list[tuple[str, str, str]]:
        """Time, survival and band at every boundary, as text."""
        return [
            (f"{time:g}", f"{told:.2f}", f"{low:.2f} to {high:.2f}")
            for time, told, low, high in zip(self.times, self.survival, self.lower, self.upper, strict=True)
        ]

    def __str__(self) -> str:
        unit, rows = f" {self.unit}" if self.unit else "", self.rows()
        shown = self.quarters() or list(range(len(rows)))
        return "\n".join(f"Survival at {rows[j][0]}{unit}: {rows[j][1]} ({rows[j][2]})" for j in shown)


# ------------------------------------------------------------------------------------------------
# Residuals, their extremes and the curvature of three likelihoods, record by record.
#
# A record contributes ``sum_j r_j x_j`` to the gradient of the log likelihood. It has one row ``x_j``, or
# for survival one for each interval of time. The residuals ``r_j`` are functions of the outcome and of the
# linear predictor ``eta_j = x_j beta``:
#
# * logistic: ``r = y - p``.
# * linear: ``r = clip((y - eta) / s, -B, B) / s`` (Huber 1964, "Robust estimation of a location parameter",
#   with the residual's scale s of proposal 2 there).
# * piecewise exponential survival (Friedman 1982, "Piecewise exponential models for survival data with
#   covariates", Annals of Statistics 10). The hazard in interval j is ``exp(eta_j)`` a length of the
#     interval.
#   Here ``eta_j = alpha_j + x beta``, and beta is Cox's log hazard ratio. ``r_j`` is 1 for an event less the
#   hazard times the observed part of the interval.
#
# :meth:`Family.extremes` lists the residuals of *every* possible outcome, so a bound on one record depends
# on its predictors alone. Weights made from it keep the score's mean at zero if the model holds.


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


# ------------------------------------------------------------------------------------------------
# Turn records into the standardised rows and outcomes of a pre-specified regression.
#
# Locations and scales come from synthetic records, which are released. Predictors are centred at the median
# and scaled by ``(q90 - q10) / 2.56`` (a normal's standard deviation, robust to tails), two-valued terms by
# mean and standard deviation. Records outside the regression's subgroup, or that lack a value of it, are
# left out.


#: intervals of time where the declaration names none
INTERVALS = 5
#: a term of two values is scaled by no less than this; one of them may be absent from the draws
_LEAST_SCALE = 0.05
#: standard deviations between a normal's 10th and 90th percentile
TENTHS = 2.5631


@record
@dataclass(frozen=True, eq=False)
class StudyDesign:
    """The standardisation of a pre-specified regression.

    Attributes
    ----------
    centre, scale : ndarray of shape (p,)
        Location and scale of the terms' values.
    outcome : tuple of (float, float)
        Centre and scale of a linear model's outcome, (0, 1) for others.
    boundaries : ndarray of shape (J,)
        Ends of the intervals of time, the last the upper bound. Empty unless survival is modelled.
    patients : Patients
        Whose rows the regression is of, if patients have several. ``schema`` is then that of their rows.
    """

    schema: Schema
    model: EffectsModel
    centre: Floats
    scale: Floats
    outcome: tuple[float, float]
    boundaries: Floats
    family: Family
    patients: Patients = None

    @property
    def counted(self) -> Counted:
        """What the records of the regression are called."""
        return (self.patients or self.schema).counted

    @classmethod
    def of(
        cls,
        schema: Schema,
        model: EffectsModel,
        draws: pd.DataFrame,
        intervals: Sequence[float] | None = None,
        patients: Patients = None,
    ) -> StudyDesign:
        """Make a design from synthetic records. ``intervals`` lack the last end, the duration's bound."""
        draws = draws[model.included(draws, schema)]
        every = model_terms(schema, model)
        values = term_values(schema, every, draws)
        centre, scale = np.zeros(len(every)), np.ones(len(every))
        for j, term in enumerate(every):
            centre[j], scale[j] = _location(values[:, j], indicator=term.two_valued)
        outcome, boundaries = (0.0, 1.0), np.empty(0)
        family: Family = Logistic()
        if model.kind == "linear":
            outcome, family = _location(_outcomes(schema, model, draws), indicator=False), Linear(1.0)
        elif model.duration is not None:
            last = float(schema.column(model.duration).upper or 1.0)
            boundaries = np.unique([*(intervals or _quantiles(schema, model, draws)), last])
            family = PiecewiseHazards(len(boundaries))
        return cls(schema, model, centre, scale, outcome, boundaries, family, patients)

    @cached_property
    def terms(self) -> tuple[Term, ...]:
        """The p slopes."""
        return model_terms(self.schema, self.model)

    @property
    def size(self) -> int:
        """Number of coefficients d: intercepts and slopes."""
        return self.family.baseline + len(self.terms)

    @property
    def reports(self) -> slice:
        """Coefficients that are reported: the slopes, or the only intercept if there are none."""
        return slice(self.family.baseline if self.terms else 0, None)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the reported coefficients: terms, or the outcome if there are none."""
        if self.terms:
            return tuple(term.name for term in self.terms)
        column = self.schema.column(self.model.outcome)
        if not column.is_numeric:
            return (f"{column.name}: {column.categories[-1]}",)
        return (str(Regressor(column.name, self.model.logs.get(column.name))),)

    @property
    def outcome_range(self) -> float:
        """Distance of the public bounds of a linear model's outcome, standardised."""
        column = self.schema.column(self.model.outcome)
        ends = pd.DataFrame({column.name: [column.lower, column.upper]})
        return float(np.ptp(_outcomes(self.schema, self.model, ends))) / self.outcome[1]

    @property
    def inputs(self) -> set[str] | None:
        """Columns of the records that are read. None: all, where the regression is of patients' rows."""
        return self.model.inputs(self.schema) if self.patients is None else None

    def read(self, frame: pd.DataFrame) -> tuple[Floats, Floats]:
        """Standardised predictors (k, p) and outcomes (k,) of the k records that take part."""
        x, y, complete = self.all(frame)
        return x[complete], y[complete]

    def all(self, frame: pd.DataFrame) -> tuple[Floats, Floats, NDArray[np.bool_]]:
        """Predictors (n, p) and outcomes (n,) of all records, and which of them take part.

        These are in the subgroup and lack nothing.
        """
        x = (term_values(self.schema, self.terms, frame) - self.centre) / self.scale
        y = (_outcomes(self.schema, self.model, frame) - self.outcome[0]) / self.outcome[1]
        if self.model.duration is not None:
            y = lived(column_values(self.schema, self.model.duration, frame), y, self.boundaries)
        complete = np.isfinite(y) & np.isfinite(x).all(axis=1)
        return x, y, complete & self.model.included(frame, self.schema)

    def weighted(self, frame: pd.DataFrame) -> tuple[Floats, Floats, Floats]:
        """As `read`, with the weight (k,) of each: 1 for a record, and with sum 1 for the rows of a patient.

        A frame of patients is that of :meth:`dpsynth.patients.histories.Histories.to_frame`.
        """
        if self.patients is None:
            x, y = self.read(frame)
            return x, y, np.ones(len(y))
        rows, patient = rows_of(frame, self.patients)
        x, y, complete = self.all(rows)
        return x[complete], y[complete], shares(patient[complete])

    def rows(self, x: Floats) -> Floats:
        """Rows of the design with their intercepts, shape (k, J, d)."""
        j = self.family.baseline
        intercepts = np.broadcast_to(np.eye(j), (len(x), j, j))
        return np.concatenate([intercepts, np.broadcast_to(x[:, None, :], (len(x), j, x.shape[1]))], axis=2)

    def reported(self, beta: Floats, covariance: Floats) -> tuple[Floats, Floats]:
        """Coefficients of standardised terms and their covariance, in the units in which they are reported.

        Without terms, these are the intercept's.
        """
        units = self.outcome[1] / (self.scale if self.terms else np.ones(1))
        zero = 0.0 if self.terms else self.outcome[0]
        told = covariance[self.reports, self.reports] * np.outer(units, units)
        return zero + beta[self.reports] * units, told


def shares(patient: NDArray[np.int64]) -> Floats:
    """Weights of rows, with sum 1 for each patient, whose number (k,) is given.

    >>> shares(np.array([0, 2, 2])).tolist()
    [1.0, 0.5, 0.5]
    """
    return 1.0 / np.bincount(patient)[patient]


def lived(times: Floats, events: Floats, boundaries: Floats) -> Floats:
    """Time seen, counted in intervals and negative if an event ended it, as in `PiecewiseHazards`.

    >>> times, events = np.array([5.0, 5.0, 15.0, 99.0]), np.array([1.0, 0.0, 0.0, 1.0])
    >>> lived(times, events, np.array([10.0, 20.0])).tolist()
    [-0.5, 0.5, 1.5, 2.0]
    """
    counted = np.interp(times, np.r_[0.0, boundaries], np.arange(len(boundaries) + 1.0))
    within = (events > 0) & (times <= boundaries[-1])
    y = np.where(within, -np.maximum(counted, 1e-9), counted)
    return np.where(np.isnan(times) | np.isnan(events), np.nan, y)


def _outcomes(schema: Schema, model: EffectsModel, frame: pd.DataFrame) -> Floats:
    return column_values(schema, model.outcome, frame, log=model.logs.get(model.outcome))


def _location(values: Floats, *, indicator: bool) -> tuple[float, float]:
    """Centre and scale of a term's values in samples."""
    known = values[np.isfinite(values)]
    if not len(known):
        return 0.0, 1.0
    mean, std = float(known.mean()), float(known.std())
    if indicator:
        return mean, max(std, _LEAST_SCALE)
    low, middle, high = np.quantile(known, [0.1, 0.5, 0.9])
    spread = float(high - low) / TENTHS
    return float(middle), spread or std or 1.0


def _quantiles(schema: Schema, model: EffectsModel, draws: pd.DataFrame) -> list[float]:
    """Times that divide the samples' events into about equal parts."""
    times = column_values(schema, str(model.duration), draws)
    fell = times[(_outcomes(schema, model, draws) > 0) & (times > 0)]
    return list(np.quantile(fell, np.arange(1, INTERVALS) / INTERVALS)) if len(fell) else []


# ------------------------------------------------------------------------------------------------
# Coefficients with a covariance from noisy scores, by Newton's method.
#
# Near the maximum, a score ``U`` at a point b with information H satisfies ``U + H b = H beta + error``. The
# error is the records' sampling, of variance H, and the noise, of variance N. Several scores are averaged by
# their noise. With a normal prior of precision L
#
#     P = L + H' (J + N)^-1 H,    beta = P^-1 H' (J + N)^-1 y,    covariance P^-1,
#
# for y the average, H its information, N its noise, and J the sampling variance of the last score. J is the
# information, unless the regression is of patients' rows. H is not inverted. Under the prior distribution,
# one standard deviation of any combination of the predictors moves eta by a normal number of standard
# deviation 2.5. The scale is that of Gelman, Jakulin, Pittau and Su (2008), "A weakly informative default
# prior distribution", Annals of Applied Statistics 2. They apply it to each predictor separately, which is
# too little for collinear ones.


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


# ------------------------------------------------------------------------------------------------
# Draw outcomes from a pre-specified regression, for synthetic records with given predictors.
#
# Records that lack a value of the model keep their outcome. In a survival model, ends of observation are
# drawn from the synthetic records' own Kaplan-Meier estimate, independently of the predictors.
#
# Residuals of a linear model are resampled from the synthetic records themselves, which keeps a skewed
# outcome skewed. A residual that leaves the column's bounds is cut. Residuals of the other sign are then
# shrunk, so the mean stays on the line. Without it, slopes were 0.89 times those of the regression. With it
# they are 1.00 and 1.01 times (medians of 20 fits to 2,000 records of a lognormal outcome, epsilon 3).

#: records a coefficient from which the residuals' law is read off them; normal with fewer
RECORDS = 10
#: share of the records beyond which it is said that the line itself leaves the bounds
_FEW = 0.005


def redrawn(design: StudyDesign, beta: Floats, frame: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    """A copy of the frame of n synthetic records with outcomes (and times) drawn anew.

    ``beta`` has shape (d,): coefficients of the standardised terms, intercepts first.
    """
    x, y, complete = design.all(frame)
    if not complete.any():
        return frame
    column = design.schema.column(design.model.outcome)
    eta = design.rows(x[complete]) @ beta
    if design.model.kind == "linear":
        drawn = _around(design, x[complete], y[complete], eta, rng)
        values = design.outcome[0] + design.outcome[1] * drawn
        log = design.model.logs.get(column.name)
        if log is not None:
            back = np.expm1 if log == "log1p" else np.exp
            values = back(np.minimum(values, 700.0))
        return frame.assign(**{column.name: _numbers(column, frame, complete, values)})
    drawn = events = design.family.draw(eta, rng)
    changed = {}
    if design.model.duration is not None:
        duration = design.schema.column(design.model.duration)
        times, events = _ends(design, duration, frame, complete, drawn, rng)
        changed[duration.name] = _numbers(duration, frame, complete, times)
    codes = np.asarray(frame[column.name], dtype=object).copy()
    categories = np.array(column.categories, dtype=object)
    codes[complete] = categories[events.astype(np.int64)]
    return frame.assign(**changed, **{column.name: column.series(codes, frame.index)})


def _around(design: StudyDesign, x: Floats, y: Floats, eta: Floats, rng: np.random.Generator) -> Floats:
    """Standardised outcomes around the line, within the column's bounds and on the line in the mean."""
    if len(y) < RECORDS * design.size:
        return design.family.draw(eta, rng)
    fitted, _ = mode(design, x, y, 1.0)
    residuals = y - design.rows(x)[:, 0] @ fitted
    middle, (low, high) = eta[:, 0] + residuals.mean(), _bounds(design)
    residuals = (residuals - residuals.mean()) * np.sqrt(len(y) / (len(y) - design.size))
    outside = float(((middle < low) | (middle > high)).mean())
    if outside > _FEW:
        warnings.warn(
            f"the regression of {design.model.outcome!r} leaves the column's declared bounds in about "
            f"{100 * outside:.0f} % of the synthetic {design.counted}. They are cut to the bounds, so "
            "effects in these tables are smaller than those of the regression",
            stacklevel=2,
        )
    room = np.maximum(middle - low, 0.0), np.maximum(high - middle, 0.0)
    drawn = rng.choice(residuals, len(middle))
    below, above = (_mean_cut(part, end) for part, end in zip((-residuals, residuals), room, strict=True))
    # what is cut on one side is taken off the other
    own = np.where(drawn < 0, below, above)
    kept = np.divide(np.minimum(below, above), own, out=np.zeros_like(own), where=own > 0)
    return np.asarray(np.clip(middle, low, high) + kept * np.clip(drawn, -room[0], room[1]))


def _mean_cut(distances: Floats, room: Floats) -> Floats:
    """Mean of ``min(max(distance, 0), room)`` over the distances, for each room."""
    ordered = np.sort(np.maximum(distances, 0.0))
    sums = np.r_[0.0, np.cumsum(ordered)]
    within = np.searchsorted(ordered, room)
    return np.asarray((sums[within] + (len(ordered) - within) * room) / len(ordered))


def _bounds(design: StudyDesign) -> Floats:
    """The outcome's public bounds as the regression has it, shape (2,)."""
    column = design.schema.column(design.model.outcome)
    ends = np.array([column.lower, column.upper], dtype=np.float64)
    ends = logarithms(column, ends, design.model.logs.get(column.name))
    return np.asarray((ends - design.outcome[0]) / design.outcome[1])


def _numbers(column: Column, frame: pd.DataFrame, complete: NDArray[np.bool_], values: Floats) -> pd.Series:
    """A numeric column with other values in some records, inside its bounds and on its steps."""
    numbers = frame[column.name].to_numpy(dtype=np.float64, na_value=np.nan).copy()
    numbers[complete] = np.clip(values, column.lower, column.upper)
    changed = pd.DataFrame({column.name: column.series(numbers, frame.index)})
    return round_frame((column,), changed)[column.name]


def _ends(
    design: StudyDesign,
    duration: Column,
    frame: pd.DataFrame,
    complete: NDArray[np.bool_],
    drawn: Floats,
    rng: np.random.Generator,
) -> tuple[Floats, Floats]:
    """Time last seen, and whether an event was, of each complete record."""
    ends = np.r_[0.0, design.boundaries]
    event_times = np.where(drawn < 0, np.interp(-drawn, np.arange(len(ends)), ends), np.inf)
    times = numeric_values(duration, frame[duration.name])[complete]
    outcome = design.schema.column(design.model.outcome)
    censored = numeric_values(outcome, frame[outcome.name])[complete] == 0
    ends_seen = last_seen(times, censored, rng)
    return np.minimum(event_times, ends_seen), (event_times <= ends_seen).astype(np.float64)


def last_seen(times: Floats, censored: NDArray[np.bool_], rng: np.random.Generator) -> Floats:
    """As many ends of observation as ``times`` (n,), from their Kaplan-Meier estimate: events censor them."""
    order = np.argsort(times, kind="stable")
    at_risk = len(times) - np.arange(len(times))
    seen = np.cumprod(1.0 - censored[order] / at_risk)
    place = np.searchsorted(-seen, -rng.random(len(times)), side="right")
    return times[order][np.minimum(place, len(times) - 1)]
