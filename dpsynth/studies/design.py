"""Turn records into the standardised rows and outcomes of a pre-specified regression.

Locations and scales come from synthetic records, which are released. Predictors are centred at the median
and scaled by ``(q90 - q10) / 2.56`` (a normal's standard deviation, robust to tails), two-valued terms by
mean and standard deviation. Records outside the regression's subgroup, or that lack a value of it, are left
out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpsynth.files.codec import record
from dpsynth.studies.families import Family, Linear, Logistic, PiecewiseHazards
from dpsynth.studies.model import EffectsModel
from dpsynth.studies.model_text import Entry
from dpsynth.studies.terms import Term, column_values, model_terms, term_values
from dpsynth.table.histories import rows_of
from dpsynth.table.patients import PatientSchema
from dpsynth.table.schema import Schema

Floats = NDArray[np.float64]

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
    patients : PatientSchema or None
        Whose rows the regression is of, if patients have several. ``schema`` is then that of their rows.
    """

    schema: Schema
    model: EffectsModel
    centre: Floats
    scale: Floats
    outcome: tuple[float, float]
    boundaries: Floats
    family: Family
    patients: PatientSchema | None = None

    @classmethod
    def of(
        cls,
        schema: Schema,
        model: EffectsModel,
        draws: pd.DataFrame,
        intervals: Sequence[float] | None = None,
        patients: PatientSchema | None = None,
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
        return (str(Entry(column.name, self.model.logs.get(column.name))),)

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

        A frame of patients is that of :meth:`dpsynth.table.histories.Histories.to_frame`.
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
