"""A regression: kind, outcome and predictors, checked against a schema.

Logistic regression (odds ratios), linear regression (differences) or Cox's proportional hazards (hazard
ratios). A model is public: it names columns of the schema and reads no record.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Self, cast, get_args

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpsynth.checks import few
from dpsynth.errors import InputError
from dpsynth.files.codec import record
from dpsynth.table.derived import combinations, derived_values, inputs_of, modelled_inputs, with_derived
from dpsynth.table.expressions import Expression, parse_rule
from dpsynth.table.schema import Column, Schema
from dpsynth.table.values import numeric_values

# ------------------------------------------------------------------------------------------------
# Read and write a regression as one line: ``"kind: outcome ~ predictor + log(predictor) where rule"``.
#
# :class:`~dpsynth.studies.model.EffectsModel` checks the names against a schema.

Kind = Literal["logistic", "linear", "cox"]
#: logarithms that a column may enter by: of x, or of 1 + x, which has a value at 0
Log = Literal["log", "log1p"]

#: a name in backticks, which may hold any sign, or one without signs that mean something in the text
_NAME = r"(?:`[^`]+`|[^`~+(),]+)"
_COX_SIDE = re.compile(rf"\(\s*({_NAME})\s*,\s*({_NAME})\s*\)")
_ENTRY = re.compile(rf"({_NAME})|(log|log1p)\s*\(\s*({_NAME})\s*\)")
#: a word that ends the predictors, wherever it does not stand in backticks
_WHERE = re.compile(r"\s+where\s+(?=[^`]*(?:`[^`]*`[^`]*)*$)")
#: the right side of a regression without predictors
_NOTHING = "1"


@dataclass(frozen=True)
class Regressor:
    """A column as it enters a regression: as it is, or as a logarithm.

    >>> str(Regressor("age")), str(Regressor("a+b", "log")), str(Regressor("nodes", "log1p"))
    ('age', 'log(`a+b`)', 'log1p(nodes)')
    """

    column: str
    log: Log | None = None

    def __str__(self) -> str:
        """As text that is read back, in backticks where the name needs them."""
        signs = self.column in {".", _NOTHING} or re.search(r"[~+(),:]|\swhere\s", self.column)
        name = f"`{self.column}`" if signs else self.column
        return f"{self.log}({name})" if self.log else name


@dataclass(frozen=True)
class ModelText:
    """The parts of a line.

    ``kind`` is None if not given. ``predictors`` is None for all other columns, and empty for ``1``.
    ``where`` is the rule of a subgroup, None for all records.

    >>> text = ModelText.read("cox: (days, death) ~ age + log(creatinine) where sex == 'F'")
    >>> text.outcome.column, text.predictors[1], text.where
    ('death', Regressor(column='creatinine', log='log'), "sex == 'F'")
    >>> str(text)
    "cox: (days, death) ~ age + log(creatinine) where sex == 'F'"
    """

    kind: Kind | None
    outcome: Regressor
    duration: str | None
    predictors: tuple[Regressor, ...] | None
    where: str | None = None

    @classmethod
    def read(cls, text: str) -> Self:
        """Read a line. Raise InputError, with the part that cannot be read, if it is no model."""
        model, *where = _WHERE.split(text, maxsplit=1)
        sides = _split(model, "~")
        if len(sides) != 2:
            raise InputError(f"a model is written 'kind: outcome ~ predictors', got {text!r}")
        return cls(*_left_side(sides[0]), _right_side(sides[1]), where[0].strip() if where else None)

    def __str__(self) -> str:
        left = str(self.outcome)
        if self.duration is not None:
            left = f"({Regressor(self.duration)}, {left})"
        right = "." if self.predictors is None else " + ".join(map(str, self.predictors)) or _NOTHING
        where = f" where {self.where}" if self.where else ""
        return f"{f'{self.kind}: ' if self.kind else ''}{left} ~ {right}{where}"


def check_kind(kind: str) -> None:
    """Refuse a kind of model that there is not."""
    if kind not in get_args(Kind):
        raise InputError(f"the kind of a model must be one of {', '.join(get_args(Kind))}, got {kind!r}")


def _left_side(text: str) -> tuple[Kind | None, Regressor, str | None]:
    """Kind, outcome and duration of what stands before the tilde."""
    *kinds, side = (part.strip() for part in _split(text, ":"))
    if len(kinds) > 1:
        raise InputError(f"the left side of a model has one colon, got {text.strip()!r}")
    kind = kinds[0] if kinds else ""
    if kind:
        check_kind(kind)
    pair = _COX_SIDE.fullmatch(side)
    if pair:
        if kind and kind != "cox":
            raise InputError(f"the outcome of a {kind} model is one column, got {side!r}")
        return "cox", Regressor(_unquoted(pair[2])), _unquoted(pair[1])
    if kind == "cox":
        raise InputError(f"the left side of a cox model is written '(duration, event)', got {side!r}")
    outcome = _entry(side)
    if outcome is None:
        raise InputError(f"the left side of a model is the name of one column, got {side!r}")
    return cast("Kind", kind) if kind else None, outcome, None


def _right_side(text: str) -> tuple[Regressor, ...] | None:
    """Return the predictors, None for all, empty for none."""
    names = [name.strip() for name in _split(text, "+")]
    if not all(names):
        raise InputError(f"a predictor is missing beside '+' or '~' in {text.strip()!r}")
    if names == ["."]:
        return None
    if names == [_NOTHING]:
        return ()
    found = []
    for name in names:
        entry = _entry(name)
        if entry is None:
            raise InputError(
                "the right side of a model is 'column + log(column) + log1p(column)' or '.', "
                f"got {text.strip()!r}. "
                "Interactions and other functions are not read"
            )
        found.append(entry)
    return tuple(found)


def _entry(text: str) -> Regressor | None:
    found = _ENTRY.fullmatch(text)
    if found is None:
        return None
    return Regressor(_unquoted(found[1] or found[3]), cast("Log | None", found[2]))


def _split(text: str, sign: str) -> list[str]:
    """Split at a sign, wherever it does not stand in backticks."""
    # an even number of backticks follows
    return re.split(rf"{re.escape(sign)}(?=[^`]*(?:`[^`]*`[^`]*)*$)", text)


def _unquoted(name: str) -> str:
    name = name.strip()
    return name[1:-1] if name.startswith("`") else name


#: parts of a column's declared range that a coefficient may be for
_LEAST_UNIT, _MOST_UNIT = 1e-12, 10.0


@record
@dataclass(frozen=True)
class EffectsModel:
    """A frozen description of one regression. Raises InputError if its arguments contradict one another.

    Parameters
    ----------
    outcome : str
        ``logistic``: a column of two categories, of which the last declared one is the event. ``linear``: a
        numeric column. ``cox``: as ``logistic``, whether the event was observed at the end of ``duration``.
    predictors : sequence of str, optional
        All other columns of the schema by default. None at all estimate the outcome's share or mean.
    duration : str, optional
        ``cox`` only, and required there: time to the event or to the end of observation, never negative.
    units : mapping of str to float, optional
        Increment of a coefficient: ``{"age": 10}`` gives the odds ratio of ten years. The default is
        :func:`dpsynth.studies.model.default_increment`. For logarithms it is the fold, 2 by default.
    sparing : bool
        Whether predictors with too many missing values may be left out. For the default model only.
    logs : mapping of str to {"log", "log1p"}
        Numeric predictors, and the outcome of a linear model, that enter as logarithms of x or of 1 + x.
        The lower bound of x must be above 0, and for 1 + x at least 0. A predictor's coefficient is per
        doubling of x or of 1 + x. An outcome is in natural logarithms.
    where : str, optional
        Rule of a subgroup, such as ``"age >= 65 and sex == 'F'"``. Records for which it is not true take no
        part, also if a missing value leaves it open.

    Examples
    --------
    >>> schema = Schema(columns=(Column(name="age", kind="integer", lower=18, upper=99),
    ...                          Column(name="sex", kind="binary", categories=("F", "M")),
    ...                          Column(name="death", kind="binary", categories=(0, 1))))
    >>> EffectsModel.parse("logistic: death ~ age + sex", schema).predictors
    ('age', 'sex')
    >>> EffectsModel.default(schema, "death").formula(schema)
    'logistic: death ~ age + sex'
    """

    kind: Kind
    outcome: str
    predictors: Sequence[str] | None = None
    duration: str | None = None
    units: Mapping[str, float] = field(default_factory=dict)
    sparing: bool = False
    logs: Mapping[str, Log] = field(default_factory=dict)
    where: str | None = None

    def __post_init__(self) -> None:
        check_kind(self.kind)
        if self.predictors is not None:
            if isinstance(self.predictors, str):
                raise InputError(f"predictors must be a sequence of columns, got {self.predictors!r}")
            object.__setattr__(self, "predictors", tuple(self.predictors))
        if not isinstance(self.logs, Mapping) or not set(self.logs.values()) <= set(get_args(Log)):
            raise InputError(f"logs must map columns to one of {', '.join(get_args(Log))}, got {self.logs!r}")
        if self.kind == "cox" and self.duration is None:
            raise InputError("a cox model must name the column of the duration, got duration=None")
        if self.kind != "cox" and self.duration is not None:
            raise InputError(f"duration is for cox models only, got {self.duration!r} for {self.kind!r}")
        for name, increment in self.units.items():
            if not (math.isfinite(increment) and increment > 0):
                raise InputError(f"the increment of {name!r} must be greater than 0, got {increment!r}")
            if name in self.logs and increment <= 1:
                raise InputError(
                    f"{name!r} enters as its logarithm, so that its increment is a number of times and must "
                    f"be greater than 1, got {increment!r}"
                )

    @classmethod
    def parse(cls, text: str, schema: Schema) -> EffectsModel:
        """Read a model from one line and check it against the schema.

        ``"kind: outcome ~ predictor + predictor"``, for Cox models ``"cox: (duration, event) ~ ..."``. A
        point stands for all other columns. ``log(predictor)``, or ``log(outcome)`` of a linear model, enters
        as its logarithm, and ``log1p(...)`` as that of 1 + x. A ``1`` stands for no predictor. ``where`` and
        a rule may follow, for a subgroup.
        Names with one of ``~ + ( ) , :`` stand in backticks. The default kind is the one that fits the
        outcome. InputError names the wrong column or word.

        >>> schema = Schema(columns=(Column(name="days", kind="integer", lower=0, upper=999),
        ...                          Column(name="x", kind="continuous", lower=0, upper=1),
        ...                          Column(name="death", kind="binary", categories=(0, 1))))
        >>> EffectsModel.parse("cox: (days, death) ~ .", schema).duration
        'days'
        >>> EffectsModel.parse("cox: (days, death) ~ dose", schema)
        Traceback (most recent call last):
        dpsynth.errors.SchemaError: 'dose' is not a column (columns: days, x, death)
        """
        written = ModelText.read(text)
        _refuse_operators(written, schema)
        outcome, entries = written.outcome, written.predictors
        kind = written.kind or _kind_for(schema.column(outcome.column))
        if kind is None:
            raise InputError(
                f"no model fits the outcome {outcome.column!r}, which has more or less than two categories"
            )
        model = cls(
            kind,
            outcome.column,
            None if entries is None else tuple(entry.column for entry in entries),
            written.duration,
            logs={entry.column: entry.log for entry in (outcome, *(entries or ())) if entry.log},
            where=written.where,
        )
        model.check(schema)
        return model

    @classmethod
    def default(cls, schema: Schema, outcome: str) -> EffectsModel | None:
        """Regression of the outcome on all other columns: logistic for two categories, linear for a number.

        None for other outcomes, which have no single coefficient a predictor, or if there is no other column.
        """
        kind = _kind_for(schema.column(outcome))
        model = None if kind is None else cls(kind, outcome, sparing=True)
        return model if model is not None and model.columns(schema) else None

    def columns(self, schema: Schema) -> tuple[Column, ...]:
        """Return the columns of the predictors. The default has no dates, times and derived ones.

        Derived columns repeat others.
        """
        names: Sequence[str] | None = self.predictors
        if names is None:
            names = [column.name for column in schema.modelled.columns if not column.written_apart]
        return tuple(schema.column(name) for name in names if name not in (self.outcome, self.duration))

    def formula(self, schema: Schema) -> str:
        """Return the model as the text that :meth:`parse` reads."""
        predictors = tuple(self._entry(column.name) for column in self.columns(schema))
        return str(ModelText(self.kind, self._entry(self.outcome), self.duration, predictors, self.where))

    def _entry(self, name: str) -> Regressor:
        return Regressor(name, self.logs.get(name))

    def named(self, schema: Schema) -> set[str]:
        """Return the columns that the regression reads: outcome, duration, predictors and condition."""
        rule = self._group(schema)
        names = [self.outcome, self.duration, *(column.name for column in self.columns(schema))]
        return {name for name in (*names, *(rule.columns if rule else ())) if name is not None}

    def inputs(self, schema: Schema) -> set[str]:
        """Return the columns of a conformed frame that the regression reads. None of them is derived."""
        return modelled_inputs(self.named(schema), schema.formulas)

    def included(self, frame: pd.DataFrame, schema: Schema) -> NDArray[np.bool_]:
        """Return which records of a conformed frame the regression is of, shape (n,): its subgroup."""
        rule = self._group(schema)
        if rule is None:
            return np.ones(len(frame), dtype=bool)
        return rule.selected(with_derived(frame, rule.columns, schema.formulas))

    def _group(self, schema: Schema) -> Expression | None:
        return None if self.where is None else parse_rule(self.where, schema.columns, "condition")

    def check(self, schema: Schema) -> None:
        """Raise InputError if a column, logarithm, unit or condition does not fit the schema."""
        outcome = schema.column(self.outcome)
        for name in filter(None, (self.outcome, self.duration, *(self.predictors or ()))):
            if schema.column(name).is_date:
                raise InputError(
                    f"{name!r} is a date and cannot stand in a regression. Declare an age or a number of "
                    "days as a derived column, and name that"
                )
        if self.kind == "linear":
            if not outcome.is_numeric or outcome.written_apart:
                raise InputError(
                    f"the outcome {self.outcome!r} of a linear model must be numeric, "
                    f"got kind {outcome.kind!r}"
                )
        elif outcome.is_numeric or len(outcome.categories) != 2:
            got = f"kind {outcome.kind!r}" if outcome.is_numeric else f"{len(outcome.categories)} categories"
            raise InputError(
                f"the outcome {self.outcome!r} of a {self.kind} model must have two categories, got {got}"
            )
        if self.duration is not None:
            duration = schema.column(self.duration)
            if not duration.is_numeric:
                raise InputError(
                    f"the duration {self.duration!r} must be numeric, got kind {duration.kind!r}"
                )
            if duration.lower is not None and duration.lower < 0:
                raise InputError(
                    f"the duration {self.duration!r} must not be negative, got lower bound {duration.lower:g}"
                )
            if self.duration == self.outcome:
                raise InputError(f"{self.outcome!r} cannot be both the outcome and the duration")
        for name in self.predictors or ():
            schema.column(name)
            if name in (self.outcome, self.duration):
                role = "outcome" if name == self.outcome else "duration"
                raise InputError(f"{name!r} is the {role} and cannot be a predictor too")
            if list(self.predictors or ()).count(name) > 1:
                raise InputError(f"the predictor {name!r} is given twice")
        columns = self.columns(schema)
        if not columns and (self.predictors is None or self.kind == "cox"):
            raise InputError(f"no predictor is left for the outcome {self.outcome!r}")
        self._check_group(schema)
        numeric = {column.name for column in columns if column.is_numeric}
        for name in self.units:
            schema.column(name)
            if name not in numeric:
                raise InputError(f"units name {name!r}, which is not a numeric predictor of the model")
        for name, log in self.logs.items():
            column = schema.column(name)
            if name not in numeric and not (self.kind == "linear" and name == self.outcome):
                raise InputError(
                    f"{name!r} cannot enter as its logarithm: it is neither a numeric predictor nor the "
                    "outcome of a linear model"
                )
            _check_logarithm(column, log)
        for name, increment in self.units.items():
            column = schema.column(name)
            span, step = float(column.upper or 0.0) - float(column.lower or 0.0), increment
            if name in self.logs:
                ends = logarithms(column, np.array([column.lower, column.upper], float), self.logs[name])
                span, step = float(np.ptp(ends)), math.log(step)
            if not _LEAST_UNIT * span <= step <= _MOST_UNIT * span:
                raise InputError(
                    f"units.{name} is out of all proportion to the declared range {column.lower:g} to "
                    f"{column.upper:g} of {name!r}, got {increment:g}. Give a step that a reader can think of"
                )

    def _check_group(self, schema: Schema) -> None:
        """Refuse conditions on the outcome, that no record meets, or that leave a predictor constant."""
        rule = self._group(schema)
        if rule is None:
            return
        for name in sorted(rule.columns):
            if {self.outcome, self.duration} & {name, *inputs_of(name, schema.formulas)}:
                raise InputError(
                    f"condition {rule.text!r}: {name!r} is what the model explains, or is computed from it. "
                    "Name other columns"
                )
        every = combinations(rule, schema.columns)
        if every is None:
            return
        inside = every[rule.selected(every)]
        if inside.empty:
            raise InputError(f"condition {rule.text!r}: no declared values fulfil it")
        for column in self.columns(schema):
            trend = column.is_numeric or column.is_ordinal
            if column.name not in rule.columns:
                continue
            left = inside[column.name].dropna().unique().tolist()
            if len(left) < (2 if trend else len(column.categories)):
                raise InputError(
                    f"condition {rule.text!r}: it leaves {few(map(repr, left))} of the predictor "
                    f"{column.name!r} alone. Name predictors without it"
                )


def _refuse_operators(written: ModelText, schema: Schema) -> None:
    """Refuse the interactions, powers and intercepts of other formula languages."""
    for entry in written.predictors or ():
        if entry.column in {"0", "1"} - set(schema.names):
            raise InputError(
                f"{entry.column!r} is no column: a model has an intercept always, and it is not named"
            )
        if entry.column not in schema.names and " - " in entry.column:
            raise InputError(f"{entry.column!r} is no column: leave a predictor out by not naming it")
        if entry.column not in schema.names and (found := re.search(r"[*:^|/%]", entry.column)):
            raise InputError(
                f"{entry.column!r} is no column, and {found[0]!r} is not read: a model has no interactions "
                "and no powers. Declare the product as a derived column of the schema, and name that"
            )


def _kind_for(outcome: Column) -> Kind | None:
    if outcome.is_numeric:
        return "linear"
    return "logistic" if len(outcome.categories) == 2 else None


def suiting_log(column: Column) -> Log:
    """The logarithm of a numeric column that is never negative: of 1 + x if x can be 0."""
    return "log" if float(column.lower or 0.0) > 0 else "log1p"


def _check_logarithm(column: Column, log: Log) -> None:
    """Refuse the logarithm of a number that the schema allows to have none, as derived columns do."""
    lower = float(column.lower or 0.0)
    if lower > 0 or (lower == 0 and log == "log1p"):
        return
    why, way = ("below 0", "Declare") if lower else ("and 0 has none", "Write {}, or declare")
    least = "above 0" if log == "log" else "of 0 or more"
    raise InputError(
        f"{column.name!r} cannot enter as its logarithm: its lower bound is {lower:g}, {why}. "
        f"{way.format(Regressor(column.name, 'log1p'))} a lower bound {least}"
    )


def logarithms(column: Column, numbers: NDArray[np.float64], log: Log | None) -> NDArray[np.float64]:
    """A column's numbers as they enter a regression, of the same shape, NaN where missing.

    These are natural logarithms of x or of 1 + x, or for None the numbers themselves.

    >>> nodes = Column(name="nodes", kind="integer", lower=0, upper=50)
    >>> logarithms(nodes, np.array([0.0, 1.0, 3.0]), "log1p") / np.log(2)
    array([0., 1., 2.])
    """
    if log is None:
        return numbers
    return np.log1p(numbers) if log == "log1p" else np.log(numbers)


# ------------------------------------------------------------------------------------------------
# The terms of a regression, one for each coefficient, fixed by the public schema, and their values.
#
# Numeric columns enter per increment, or as logarithms of x or of 1 + x, per doubling of it. Categories
# enter by treatment coding against the *first declared* category. Ordinal columns enter as a linear trend
# over ranks 0, 1, 2 and so on.

Floats = NDArray[np.float64]

#: more coefficients than this are not fitted: neither the table nor the plot could be read
MAX_TERMS = 200

#: public bounds apart by this factor leave room for a long tail
_LONG = 10.0
#: what a coefficient of a logarithm is for: twice as much
DOUBLING = 2.0


@dataclass(frozen=True)
class Term:
    """One coefficient of a regression.

    Attributes
    ----------
    name : str
        As shown, for instance ``"age (per 10 years)"``, ``"creatinine (per doubling)"``, ``"1 + nodes (per
        doubling)"`` or ``"sex: M vs F"``.
    category : int or None
        Position of the category among the declared ones. None for a numeric or ordinal column.
    increment : float
        Unit of the coefficient, in the column's unit. For a logarithm, the fold.
    """

    name: str
    column: str
    category: int | None = None
    increment: float = 1.0
    log: Log | None = None
    two_valued: bool = False

    def values(self, numbers: Floats) -> Floats:
        """Values of the term from those of :func:`column_values`, of the same shape, NaN if missing."""
        if self.category is not None:
            return np.where(np.isnan(numbers), np.nan, numbers == self.category)
        return numbers / (math.log(self.increment) if self.log else self.increment)


def default_increment(column: Column) -> float:
    """Unit of a numeric column's coefficient: one of its own units if the range is 2 to 150 of them.

    Otherwise it is the power of ten at or below a tenth of the public range.

    >>> default_increment(Column(name="age", kind="integer", lower=18, upper=110, unit="years"))
    1.0
    >>> default_increment(Column(name="platelets", kind="continuous", lower=0, upper=1e6))
    100000.0
    """
    span = float(column.upper or 0.0) - float(column.lower or 0.0)
    if 2.0 <= span <= 150.0 or (column.kind == "integer" and span < 2.0):
        return 1.0
    return 10.0 ** math.floor(math.log10(span / 10.0) + 1e-9)


def model_terms(schema: Schema, model: EffectsModel) -> tuple[Term, ...]:
    """Every coefficient of a model but the intercept, from the public schema alone.

    >>> schema = Schema(columns=(Column(name="creatinine", kind="continuous", lower=0.1, upper=20),
    ...                          Column(name="sex", kind="binary", categories=("F", "M")),
    ...                          Column(name="death", kind="binary", categories=(0, 1))))
    >>> model = EffectsModel.parse("death ~ log(creatinine) + sex", schema)
    >>> [term.name for term in model_terms(schema, model)]
    ['creatinine (per doubling)', 'sex: M vs F']
    """
    found: list[Term] = []
    for column in model.columns(schema):
        if column.is_numeric:
            log = model.logs.get(column.name)
            increment = float(model.units.get(column.name, DOUBLING if log else default_increment(column)))
            name = _log_name(column, increment, log) if log else _numeric_name(column, increment)
            found.append(Term(name, column.name, None, increment, log, _is_two_valued(column)))
        elif column.is_ordinal:
            two_valued = len(column.categories) == 2
            found.append(Term(f"{column.name} (per rank)", column.name, two_valued=two_valued))
        else:
            reference = column.categories[0]
            found += [
                Term(f"{column.name}: {category} vs {reference}", column.name, code, two_valued=True)
                for code, category in enumerate(column.categories)
                if code
            ]
    return tuple(found)


def column_values(schema: Schema, name: str, frame: pd.DataFrame, *, log: Log | None = None) -> Floats:
    """Numbers, natural logarithms or category positions of a column, shape (n,), NaN if missing.

    The frame conforms to ``schema``. It may lack other columns, and the column itself if it is derived.
    """
    column = schema.column(name)
    if column.derived is not None and name not in frame.columns:
        numbers = derived_values(name, frame, schema.formulas)
    else:
        numbers = numeric_values(column, frame[name])
    return logarithms(column, numbers, log)


def term_values(schema: Schema, terms: Sequence[Term], frame: pd.DataFrame) -> Floats:
    """Values of p terms without an intercept, shape (n, p): increments, ranks, or 0 and 1, NaN if missing.

    >>> schema = Schema(columns=(Column(name="creatinine", kind="continuous", lower=0.5, upper=20),
    ...                          Column(name="sex", kind="binary", categories=("F", "M"), missing=True)))
    >>> found = [Term("creatinine (per doubling)", "creatinine", None, 2.0, "log"),
    ...          Term("sex: M vs F", "sex", 1)]
    >>> term_values(schema, found, pd.DataFrame({"creatinine": [1.0, 8.0], "sex": ["M", None]})).round(9)
    array([[ 0.,  1.],
           [ 3., nan]])
    """
    of = {(t.column, t.log): column_values(schema, t.column, frame, log=t.log) for t in terms}
    values = np.empty((len(frame), len(terms)))
    for position, term in enumerate(terms):
        values[:, position] = term.values(of[term.column, term.log])
    return values


def may_have_long_tail(column: Column) -> bool:
    """Whether the public bounds of a numeric column leave room for a long tail: 0, or a factor of ten.

    >>> may_have_long_tail(Column(name="nodes", kind="integer", lower=0, upper=50))
    True
    >>> may_have_long_tail(Column(name="age", kind="integer", lower=18, upper=99))
    False
    """
    lower, upper = float(column.lower or 0.0), float(column.upper or 0.0)
    return not _is_two_valued(column) and (lower <= 0 or upper >= _LONG * lower)


def shorter_tails(columns: Sequence[Column], logs: Mapping[str, Log]) -> str:
    """Advice on the long tails of predictors, in one sentence. ``logs``: logarithms that they have already.

    >>> shorter_tails([Column(name="nodes", kind="integer", lower=0, upper=50)], {})
    'log1p(nodes) or narrower bounds shorten the tail.'
    """
    found = [
        str(Regressor(column.name, suiting_log(column)))
        for column in columns
        if column.name not in logs and float(column.lower or 0.0) >= 0
    ]
    tail = "tails" if len(columns) > 1 else "tail"
    return f"{f'{few(found)} or narrower' if found else 'Narrower'} bounds shorten the {tail}."


def _is_two_valued(column: Column) -> bool:
    """Whether a numeric column takes two values."""
    span = float(column.upper or 0.0) - float(column.lower or 0.0)
    return column.kind == "integer" and span == (column.step or 1.0)


def _numeric_name(column: Column, increment: float) -> str:
    if increment == 1.0:
        return f"{column.name} ({column.unit})" if column.unit else column.name
    # 10 of a unit like 1000/mm3 would read as one number
    times = " ×" if column.unit and column.unit[0].isdigit() else ""
    unit = f"{times} {column.unit}" if column.unit else ""
    return f"{column.name} (per {increment:,.10g}{unit})"


def _log_name(column: Column, fold: float, log: Log) -> str:
    counted = f"1 + {column.name}" if log == "log1p" else column.name
    return f"{counted} (per {'doubling' if fold == DOUBLING else f'{fold:,.10g}-fold'})"
