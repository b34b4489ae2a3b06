"""A pre-specified regression, with its units.

It is public: columns, increments and boundaries of time are chosen from clinical knowledge or a protocol. Its
terms for a table follow from the schema alone.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Annotated, Any, Literal, Self, TypedDict

import numpy as np
from numpy.typing import NDArray
from pydantic import BeforeValidator, Field, ValidationError, field_validator

from dpsynth.checks import few, inside
from dpsynth.errors import InputError
from dpsynth.files.codec import OptionGroup, listed, record
from dpsynth.files.text import one_sentence
from dpsynth.patients.schema import Patients, patients_of
from dpsynth.studies.estimation import SurvivalCurve
from dpsynth.studies.model import MAX_TERMS, EffectsModel, Log, ModelText, model_terms, suiting_log
from dpsynth.table.derived import inputs_of
from dpsynth.table.expressions import parse_rule
from dpsynth.table.schema import Schema, TableSchema

# ------------------------------------------------------------------------------------------------
# An effect with its interval as people read it: as many decimals as the interval's width deserves.

#: significant digits of a number that stands alone
_ALONE = 3
#: decimals beyond which, and size from which, a number is written with an exponent
_MOST_DECIMALS, _LARGE = 6, 1e7
#: nobody means numbers beyond this, or ratios below its inverse
_BOUNDLESS = 1e30
#: ends this many times apart have no digits in common
_APART = 1000.0


def interval_texts(estimate: float, lower: float, upper: float) -> tuple[str, str, str]:
    """Estimate and ends of its interval, all with the same decimals.

    The largest has three digits at least. Twice the interval's shorter side has two. If both ends have one
    sign, the one near 0 has one. If they are too far apart for that, each number has three digits of its own.
    Values that are no number are "n/a".

    Examples
    --------
    >>> interval_texts(1.0040, 0.9979, 1.0101)
    ('1.004', '0.998', '1.010')
    >>> interval_texts(14.21, 3.71, 54.4), interval_texts(251234.0, 245000.0, 257468.0)
    (('14.2', '3.7', '54.4'), ('251,234', '245,000', '257,468'))
    >>> interval_texts(1.0, 1e-4, 1e4), interval_texts(0.3, 1e-60, 1e60)
    (('1', '0.0001', '1e+04'), ('0.3', '0', '∞'))
    """
    decimals = _decimals(estimate, lower, upper)
    return _text(estimate, decimals), _text(lower, decimals), _text(upper, decimals)


def effect_texts(told: Mapping[str, Any]) -> tuple[str, str, str]:
    """The same, of a record with ``estimate``, ``lower`` and ``upper``."""
    return interval_texts(told["estimate"], told["lower"], told["upper"])


def p_text(p: float | None) -> str:
    """A p-value with three decimals and no leading zero, empty if there is none.

    >>> p_text(0.0004), p_text(0.048), p_text(1.0)
    ('<.001', '.048', '1.000')
    """
    if p is None:
        return ""
    return "<.001" if p < 0.001 else f"{p:.3f}".lstrip("0")


def aligned(rows: Sequence[Sequence[str]], sides: str) -> list[str]:
    """Rows of a table as lines of text, with each column at the left (``<``) or at the right (``>``)."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    places = [f"{{:{side}{width}}}" for side, width in zip(sides, widths, strict=True)]
    return ["  ".join(places).format(*row).rstrip() for row in rows]


def _decimals(estimate: float, lower: float, upper: float) -> int | None:
    """Number of decimals for all three, None if there is no such number."""
    finite = [abs(v) for v in (estimate, lower, upper) if math.isfinite(v)]
    sides = [side for side in (estimate - lower, upper - estimate) if math.isfinite(side) and side > 0]
    if not sides or max(finite) >= _LARGE:
        return None
    decimals = max(0, 2 - math.floor(math.log10(max(finite))), 1 - math.floor(math.log10(2.0 * min(sides))))
    if lower > 0 or upper < 0:
        if max(finite) > _APART * min(finite):
            return None
        # an end that is not zero is not written as zero
        decimals = max(decimals, -math.floor(math.log10(min(finite))))
    return decimals if decimals <= _MOST_DECIMALS else None


def _text(value: float, decimals: int | None) -> str:
    if math.isnan(value):
        return "n/a"
    if abs(value) >= _BOUNDLESS:
        return "∞" if value > 0 else "-∞"
    if 0 < value <= 1 / _BOUNDLESS:
        return "0"
    return f"{value:z.{_ALONE}g}" if decimals is None else f"{value:z,.{decimals}f}"


# ------------------------------------------------------------------------------------------------
# Private estimates of a pre-specified regression: coefficients with their covariance.
#
# All numbers here are functions of private releases and public values, and may be shared. The covariance
# includes the sampling of the records *and* the noise for privacy. An interval is about the population.

Floats = NDArray[np.float64]

#: names of the coefficients of each kind, on the scale that studies report
MEASURES: dict[str, str] = {
    "logistic": "odds ratio",
    "linear": "difference",
    "cox": "hazard ratio",
    "share": "share",
    "mean": "mean",
}
#: kind of the estimate of a regression without predictors, by the regression's kind
ALONE: dict[str, str] = {"logistic": "share", "linear": "mean"}


class TermEffect(TypedDict):
    """One term: its effect on the scale of `Estimates.measure`, with an interval.

    A share or a mean has no p-value.
    """

    term: str
    estimate: float
    lower: float
    upper: float
    p_value: float | None


@record
@dataclass(frozen=True, eq=False)
class Estimates:
    """The private estimates of one pre-specified regression.

    Attributes
    ----------
    formula : str
        The regression as text.
    terms : tuple of str
        Names of the p coefficients, without the intercept. Without predictors, the outcome.
    coefficients, covariance : ndarray of shape (p,), (p, p)
        On the additive scale: log odds, log hazard, or the outcome's unit.
    widening : float
        Width of the intervals over their width without noise: the median over the terms.
    survival : SurvivalCurve, optional
        Survival of all records of a survival study, whatever their predictors.
    remarks : tuple of str
        Cautions for a reader of the intervals.

    Examples
    --------
    >>> found = Estimates("mortality", "logistic", "logistic: died ~ age", "died", ("age (per 10 years)",),
    ...                   np.array([0.5]), np.array([[0.01]]), 1.2)
    >>> print(found)
    mortality: logistic: died ~ age
    term                odds ratio  95 % interval     p
    age (per 10 years)        1.65  1.36 to 2.01  <.001
    Intervals include sampling error and privacy noise: 1.2 times as wide as without noise.
    """

    study: str
    kind: str
    formula: str
    outcome: str
    terms: tuple[str, ...]
    coefficients: Floats
    covariance: Floats
    widening: float
    survival: SurvivalCurve | None = None
    remarks: tuple[str, ...] = ()

    @property
    def measure(self) -> str:
        """Kind of effect: odds ratio, difference or hazard ratio. Share or mean without predictors."""
        return MEASURES[self.kind]

    @property
    def no_effect(self) -> float | None:
        """Value of no effect on the scale of :attr:`measure`. None for a share or a mean."""
        return None if self.kind in ALONE.values() else self._shown(0.0)

    @property
    def std_errors(self) -> Floats:
        """Standard errors on the additive scale, shape (p,)."""
        return np.sqrt(np.diag(self.covariance))

    @property
    def widened(self) -> str:
        """Cost of the noise, in words, never less than 1."""
        return f"{max(1.0, self.widening):.1f} times as wide as without noise"

    def effects(self, level: float = 0.95) -> list[TermEffect]:
        """Every term's effect with a normal interval, on the scale of :attr:`measure`.

        Raises
        ------
        InputError
            If ``level`` is not in (0, 1).
        """
        from scipy import stats

        half = float(stats.norm.ppf(0.5 + inside("level", level, 0.0, 1.0) / 2))
        rows: list[TermEffect] = []
        for term, value, error in zip(self.terms, self.coefficients, self.std_errors, strict=True):
            values = (value, value - half * error, value + half * error)
            estimate, lower, upper = (self._shown(float(v)) for v in values)
            p = None if self.no_effect is None else 2.0 * float(stats.norm.sf(abs(value) / error))
            rows.append({"term": term, "estimate": estimate, "lower": lower, "upper": upper, "p_value": p})
        return rows

    def _shown(self, value: float) -> float:
        if self.kind in {"linear", "mean"}:
            return value
        # beyond exp(700) there is no float
        ratio = math.exp(min(max(value, -700.0), 700.0))
        return ratio / (1.0 + ratio) if self.kind == "share" else ratio

    def __str__(self) -> str:
        rows = [("term", self.measure, "95 % interval", "p")]
        for row in self.effects():
            estimate, lower, upper = effect_texts(row)
            rows.append((row["term"], estimate, f"{lower} to {upper}", p_text(row["p_value"])))
        lines = [f"{self.study}: {self.formula}", *aligned(rows, "<><>")]
        lines += [f"Intervals include sampling error and privacy noise: {self.widened}.", *self.remarks]
        return "\n".join(lines if self.survival is None else [*lines, str(self.survival)])


#: boundaries of time; work and memory grow with their square
_MOST_BOUNDARIES = 20


@record
class Study(OptionGroup):
    """A regression declared before the fit.

    If patients have several rows, it is of rows if it names a column that changes from row to row. Otherwise
    it is of patients.

    Parameters
    ----------
    model : str
        As text, such as ``"logistic: death ~ age + log(creatinine)"``: see
        :meth:`dpsynth.studies.model.EffectsModel.parse`. Numeric predictors whose column is on the log
        scale enter as logarithms of x, or of 1 + x if it can be 0. ``transforms`` can say otherwise.
        ``death ~ age where sex == 'F'`` is of a subgroup. ``death ~ 1`` estimates a share, or a mean.
    name : str, optional
        One line of text. The default is the outcome's name.
    units : mapping of str to float
        Increment of a coefficient. ``{"age": 10}`` gives the effect of ten years. For a logarithm,
        ``{"creatinine": 10}`` gives that of ten times as much, or for ``log1p(x)`` of ten times 1 + x.
    transforms : mapping of str to {"log", "log1p", "linear"}
        How numeric predictors enter.
    intervals : sequence of float, optional
        For Cox models, boundaries of time, in the duration's unit: greater than 0, increasing, and inside the
        duration's public bounds.

    Raises
    ------
    InputError
        One sentence that names the key.

    Examples
    --------
    >>> from dpsynth import Column
    >>> urea = Column(name="urea", kind="continuous", lower=1, upper=300, scale="log")
    >>> schema = Schema(columns=(urea, Column(name="age", kind="integer", lower=18, upper=99),
    ...                          Column(name="death", kind="binary", categories=(0, 1))))
    >>> study = Study(model="death ~ age + urea", units={"age": 10})
    >>> study.label, study.effects(schema).formula(schema)
    ('death', 'logistic: death ~ age + log(urea)')
    """

    model: str
    name: str | None = None
    units: dict[str, Annotated[float, Field(gt=0)]] = Field(default_factory=dict)
    transforms: dict[str, Literal[Log, "linear"]] = Field(default_factory=dict)
    intervals: Annotated[tuple[float, ...] | None, BeforeValidator(listed)] = None

    def __init__(self, **fields: Any) -> None:
        try:
            super().__init__(**fields)
        except ValidationError as problem:
            raise InputError(one_sentence(problem, tuple(type(self).model_fields))) from None

    @field_validator("model")
    @classmethod
    def _is_read(cls, model: str) -> str:
        ModelText.read(model)
        return model

    @field_validator("name")
    @classmethod
    def _is_one_line(cls, name: str | None) -> str | None:
        # a name stands in tables, in headings and as a key of reports
        if name is not None and not (name.strip() == name and name and name.isprintable()):
            raise ValueError(f"must be one line of text without blanks around it, got {name!r}")
        return name

    @field_validator("intervals")
    @classmethod
    def _increase(cls, intervals: tuple[float, ...] | None) -> tuple[float, ...] | None:
        if intervals is not None and not intervals:
            raise ValueError("at least one boundary of time is needed")
        if intervals is not None and len(intervals) > _MOST_BOUNDARIES:
            raise ValueError(f"there are at most {_MOST_BOUNDARIES} boundaries of time, got {len(intervals)}")
        if intervals is not None and not all(a < b for a, b in pairwise((0.0, *intervals))):
            shown = ", ".join(f"{boundary:g}" for boundary in intervals)
            raise ValueError(f"boundaries must be greater than 0 and increase, got {shown}")
        return intervals

    @classmethod
    def read(cls, given: object) -> Self:
        """Study from a text, a mapping with the keys of a study, or a study. InputError names the wrong key.

        >>> Study.read("death ~ age") == Study.read({"model": "death ~ age"})
        True
        """
        if isinstance(given, cls):
            return given
        if isinstance(given, str):
            return cls(model=given)
        if isinstance(given, Mapping) and all(isinstance(key, str) for key in given):
            return cls(**given)
        raise InputError(f"a study must be a text, a mapping of keys or a Study, got {given!r:.80}")

    def to_dict(self) -> dict[str, Any]:
        """Return the keys that were given a value, as :meth:`read` takes them.

        >>> Study(model="death ~ age", units={"age": 10}).to_dict()
        {'model': 'death ~ age', 'units': {'age': 10.0}}
        """
        return self.model_dump(mode="json", exclude_defaults=True)

    @property
    def label(self) -> str:
        """Its name, by default that of the outcome."""
        return ModelText.read(self.model).outcome.column if self.name is None else self.name

    @property
    def is_survival(self) -> bool:
        """Whether its outcome is a time until an event."""
        return ModelText.read(self.model).duration is not None

    @property
    def where(self) -> str | None:
        """The rule of its subgroup, None for all records."""
        return ModelText.read(self.model).where

    def clusters(self, schema: TableSchema) -> Patients:
        """Return the patients whose rows the regression is of, None for a regression of one row per patient.

        A regression is of rows if it, or its condition, names a column that changes from row to row.
        """
        if (patients := patients_of(schema)) is None:
            return None
        text, levels = ModelText.read(self.model), schema.levels
        named = [text.outcome.column, text.duration, *(entry.column for entry in text.predictors or ())]
        if any(name in schema.names and name not in levels.names for name in named):
            return patients
        try:
            return None if text.where is None or parse_rule(text.where, levels.columns) else patients
        except InputError:  # a column of rows, or a fault that is named where the rows are read
            return patients

    def table(self, schema: TableSchema) -> Schema:
        """Return the schema that the regression is of: records, patients' levels or patients' rows."""
        patients = self.clusters(schema)
        return schema.levels if patients is None else patients.table

    def effects(self, schema: TableSchema) -> EffectsModel:
        """Return the regression for a schema, checked against it.

        Raises
        ------
        InputError
            If a column, unit, transform, interval or condition does not fit the schema or the text. Also if
            the outcome or the duration is derived, if a predictor is computed from them, or without a term or
            with more than ``MAX_TERMS``. Also for a Cox model of patients' rows.
        """
        try:
            patients, schema = self.clusters(schema), self.table(schema)
            if patients is not None and self.is_survival:
                raise InputError(
                    "a cox model has one row per patient, but the text names a column that changes from row "
                    f"to row. Name columns of {few(patients.levels.names)}"
                )
            model = self._transformed(EffectsModel.parse(self.model, schema), schema)
            self._check(model, schema)
        except InputError as problem:
            raise InputError(f"study {self.label!r}: {problem}") from None
        return model

    def _transformed(self, model: EffectsModel, schema: Schema) -> EffectsModel:
        """The model with its units, and with logarithms where the scale or ``transforms`` ask for them."""
        numeric = {column.name: column for column in model.columns(schema) if column.is_numeric}
        for name, transform in self.transforms.items():
            schema.column(name)
            if name not in numeric:
                raise InputError(f"transforms name {name!r}, which is not a numeric predictor of the model")
            if name in model.logs and transform != model.logs[name]:
                raise InputError(f"the model says {model.logs[name]}({name}), and transforms say {transform}")
        scales = {name: suiting_log(column) for name, column in numeric.items() if column.scale == "log"}
        asked = {name: log for name, log in self.transforms.items() if log != "linear"}
        logs = {**{k: v for k, v in scales.items() if k not in self.transforms}, **asked, **model.logs}
        return replace(model, logs=logs, units=self.units)

    def _check(self, model: EffectsModel, schema: Schema) -> None:
        told = {name for name in (model.outcome, model.duration) if name is not None}
        for name in told:
            if schema.column(name).derived is not None:
                raise InputError(
                    f"{name!r} is a derived column, which can only be a predictor. Declare it without a "
                    "formula, as a column of the table"
                )
        for column in model.columns(schema):
            used = sorted(inputs_of(column.name, schema.formulas) & told)
            if used:
                raise InputError(
                    f"{column.name!r} is computed from {used[0]!r}, which the model explains. Leave it out"
                )
        model.check(schema)
        size = len(model_terms(schema, model))
        if size > MAX_TERMS or not (size or model.predictors == ()):
            raise InputError(f"the model must have from 1 to {MAX_TERMS} terms, got {size:,}")
        if self.intervals is None:
            return
        if model.duration is None:
            raise InputError(f"intervals are for cox models only, got a {model.kind} model")
        duration = schema.column(model.duration)
        lower, upper = float(duration.lower or 0.0), float(duration.upper or 0.0)
        outside = [boundary for boundary in self.intervals if not lower < boundary < upper]
        if outside:
            raise InputError(
                f"intervals must lie between the bounds {lower:g} and {upper:g} of {model.duration!r}, "
                f"got {outside[0]:g}"
            )


def read_studies(given: Sequence[object], schema: Schema | None = None) -> tuple[Study, ...]:
    """Studies from a list of texts, mappings and studies, each checked against ``schema`` if it is given.

    Raises InputError if one cannot be read or does not fit, or two have the same label.

    >>> found = read_studies(["death ~ age", {"model": "death ~ age + sex", "name": "adjusted"}])
    >>> [study.label for study in found]
    ['death', 'adjusted']
    """
    if not isinstance(given, list | tuple):
        raise InputError(f"studies must be a list of studies, got {given!r:.80}")
    studies: list[Study] = []
    for number, entry in enumerate(given, start=1):
        try:
            study = Study.read(entry)
        except InputError as problem:
            raise InputError(f"study {number}: {problem}") from None
        if study.label in [other.label for other in studies]:
            raise InputError(f"two studies are called {study.label!r}. Give one of them another name")
        if schema is not None:
            study.effects(schema)
        studies.append(study)
    return tuple(studies)
