"""Which regression a study fits: its kind, outcome and predictors, given one by one or as a line of text.

Three kinds that clinical studies report: logistic regression (odds ratios), linear regression (differences)
and Cox's proportional hazards (hazard ratios). A model is public: it names columns of the schema and reads no
record.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, cast, get_args

from dpsynth.errors import InputError
from dpsynth.table.schema import Column, Schema

Kind = Literal["logistic", "linear", "cox"]

#: what the coefficients of each kind are called, once back on the scale that studies report
MEASURES: dict[str, str] = {"logistic": "odds ratio", "linear": "difference", "cox": "hazard ratio"}

#: a name in backticks, which may hold any sign, or one without signs that mean something in the text
_NAME = r"(?:`[^`]+`|[^`~+(),]+)"
_COX_SIDE = re.compile(rf"\(\s*({_NAME}),\s*({_NAME})\)")
_ONE_NAME = re.compile(_NAME)


@dataclass(frozen=True)
class EffectsModel:
    """A frozen description of one regression.

    Parameters
    ----------
    kind : {"logistic", "linear", "cox"}
    outcome : str
        ``logistic``: a column of two categories, of which the last declared one is the event. ``linear``: a
        numeric column. ``cox``: as ``logistic``; whether the event was observed at the end of ``duration``.
    predictors : sequence of str, optional
        All other columns of the schema by default.
    duration : str, optional
        ``cox`` only, and required there: the numeric column of times to the event or to the end of
        observation; never negative.
    units : mapping of str to float, optional
        For numeric predictors, the increment that a coefficient is for: ``{"age": 10}`` gives the odds ratio
        of ten years. Otherwise see :func:`dpsynth.evaluation.replication.design_matrix.default_increment`.
    sparing : bool
        Whether predictors may be left out, because too many values of theirs are missing; of the usual study
        only, which nobody chose.

    Raises
    ------
    InputError
        If the kind or an increment is not one of these, or ``duration`` is absent or out of place.

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

    def __post_init__(self) -> None:
        check_kind(self.kind)
        if self.predictors is not None:
            if isinstance(self.predictors, str):
                raise InputError(f"predictors must be a sequence of columns, got {self.predictors!r}")
            object.__setattr__(self, "predictors", tuple(self.predictors))
        if self.kind == "cox" and self.duration is None:
            raise InputError("a cox model must name the column of the duration, got duration=None")
        if self.kind != "cox" and self.duration is not None:
            raise InputError(f"duration is for cox models only, got {self.duration!r} for {self.kind!r}")
        for name, increment in self.units.items():
            if not (math.isfinite(increment) and increment > 0):
                raise InputError(f"the increment of {name!r} must be greater than 0, got {increment!r}")

    @classmethod
    def parse(cls, text: str, schema: Schema) -> EffectsModel:
        """Read a model from one line and check it against the schema.

        Parameters
        ----------
        text : str
            ``"kind: outcome ~ predictor + predictor"``; for Cox models ``"cox: (duration, event) ~ ..."``. A
            point stands for all other columns. Names with one of ``~ + ( ) , :`` stand in backticks. Without
            a kind it is the one that fits the outcome.
        schema : Schema

        Returns
        -------
        EffectsModel

        Raises
        ------
        InputError
            One sentence that names the column or the word.

        Examples
        --------
        >>> schema = Schema(columns=(Column(name="days", kind="integer", lower=0, upper=999),
        ...                          Column(name="x", kind="continuous", lower=0, upper=1),
        ...                          Column(name="death", kind="binary", categories=(0, 1))))
        >>> EffectsModel.parse("cox: (days, death) ~ .", schema).duration
        'days'
        >>> EffectsModel.parse("cox: (days, death) ~ dose", schema)
        Traceback (most recent call last):
        dpsynth.errors.SchemaError: 'dose' is not a column (columns: days, x, death)
        """
        sides = _split(text, "~")
        if len(sides) != 2:
            raise InputError(f"a model is written 'kind: outcome ~ predictors', got {text!r}")
        kind, outcome, duration = _left_side(sides[0], schema)
        model = cls(cast(Kind, kind), outcome, _right_side(sides[1]), duration)
        model.check(schema)
        return model

    @classmethod
    def default(cls, schema: Schema, outcome: str) -> EffectsModel | None:
        """Return the regression on all other columns that fits the outcome.

        Returns
        -------
        EffectsModel or None
            Logistic for an outcome of two categories, linear for a number. None for one of one or more than
            two categories, for which no single coefficient a predictor exists, and where there is no other
            column.
        """
        kind = _kind_for(schema.column(outcome))
        return None if kind is None or len(schema) < 2 else cls(kind, outcome, sparing=True)

    def columns(self, schema: Schema) -> tuple[Column, ...]:
        """Return the columns of the predictors; by default no derived ones, which repeat others."""
        names: Sequence[str] = schema.modelled.names if self.predictors is None else self.predictors
        return tuple(schema.column(name) for name in names if name not in (self.outcome, self.duration))

    def formula(self, schema: Schema) -> str:
        """Return the model as the text that :meth:`parse` reads."""
        left = _quoted(self.outcome)
        if self.duration is not None:
            left = f"({_quoted(self.duration)}, {left})"
        return f"{self.kind}: {left} ~ {' + '.join(_quoted(column.name) for column in self.columns(schema))}"

    def check(self, schema: Schema) -> None:
        """Check the model against a schema.

        Raises
        ------
        InputError
            If a column is not one of the schema's, is named twice, or is of a kind that the model cannot
            take.
        """
        outcome = schema.column(self.outcome)
        if self.kind == "linear":
            if not outcome.is_numeric:
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
        if not columns:
            raise InputError(f"no predictor is left for the outcome {self.outcome!r}")
        for name in self.units:
            if not schema.column(name).is_numeric or name not in {column.name for column in columns}:
                raise InputError(f"units name {name!r}, which is not a numeric predictor of the model")


def check_kind(kind: str) -> None:
    """Refuse a kind of model that there is not."""
    if kind not in get_args(Kind):
        raise InputError(f"the kind of a model must be one of {', '.join(get_args(Kind))}, got {kind!r}")


def _kind_for(outcome: Column) -> Kind | None:
    if outcome.is_numeric:
        return "linear"
    return "logistic" if len(outcome.categories) == 2 else None


def _left_side(text: str, schema: Schema) -> tuple[str, str, str | None]:
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
        return "cox", _unquoted(pair[2]), _unquoted(pair[1])
    if kind == "cox":
        raise InputError(f"the left side of a cox model is written '(duration, event)', got {side!r}")
    if not _ONE_NAME.fullmatch(side):
        raise InputError(f"the left side of a model is the name of one column, got {side!r}")
    outcome = _unquoted(side)
    found = kind or _kind_for(schema.column(outcome))
    if found is None:
        raise InputError(f"no model fits the outcome {outcome!r}, which has more or less than two categories")
    return found, outcome, None


def _right_side(text: str) -> tuple[str, ...] | None:
    """Return the predictors, None for all."""
    names = [name.strip() for name in _split(text, "+")]
    if not all(names):
        raise InputError(f"a predictor is missing beside '+' or '~' in {text.strip()!r}")
    if names == ["."]:
        return None
    for name in names:
        if not _ONE_NAME.fullmatch(name):
            raise InputError(f"the right side of a model is 'column + column' or '.', got {text.strip()!r}")
    return tuple(_unquoted(name) for name in names)


def _split(text: str, sign: str) -> list[str]:
    """Split at a sign, wherever it does not stand in backticks."""
    # an even number of backticks follows
    return re.split(rf"{re.escape(sign)}(?=[^`]*(?:`[^`]*`[^`]*)*$)", text)


def _unquoted(name: str) -> str:
    name = name.strip()
    return name[1:-1] if name.startswith("`") else name


def _quoted(name: str) -> str:
    return f"`{name}`" if name == "." or re.search(r"[~+(),:]", name) else name
