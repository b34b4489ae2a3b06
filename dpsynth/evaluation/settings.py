"""Options of an evaluation, declared once for call, command and YAML file.

A :class:`Settings` is public and reads no record. Its methods apply the options to a schema: which column is
predicted, which regressions are replicated, which rules must hold.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated, Literal, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pydantic import BeforeValidator, Field, InstanceOf

from dpsynth.errors import InputError
from dpsynth.evaluation.models import Model, check_outcome
from dpsynth.evaluation.tables import Most
from dpsynth.files.codec import OptionGroup, listed
from dpsynth.studies.model import EffectsModel
from dpsynth.table.expressions import Expression
from dpsynth.table.kinds.category import category_codes
from dpsynth.table.pairs import read_rule
from dpsynth.table.schema import Column, Schema
from dpsynth.table.values import numeric_values


def _named(models: object) -> object:
    """Say what a list of models lacks."""
    if models is None or isinstance(models, Mapping):
        return models
    raise ValueError(
        "models must map names to Model (dpsynth.evaluation.models), such as "
        "{'forest': Model(lambda seed: RandomForestClassifier(random_state=seed))}, "
        f"got {type(models).__name__}"
    )


#: columns of more categories make no subgroups
MOST_CATEGORIES = 20
#: where bands of an age begin, in years
AGES = (18, 40, 65, 80)


@dataclass(frozen=True)
class Grouping:
    """A column and its subgroups. ``starts`` are the first ages of all bands but the lowest."""

    column: Column
    names: tuple[str, ...]
    starts: tuple[int, ...] = ()

    @classmethod
    def of(cls, column: Column) -> Grouping:
        """Return the subgroups of a column. Raise InputError if it has none.

        Examples
        --------
        >>> Grouping.of(Column(name="age", kind="integer", lower=18, upper=79, unit="years")).names
        ('below 40', '40 to 64', '65 and over')
        """
        more = ("missing",) if column.incomplete else ()
        if column.is_numeric:
            if not is_age(column):
                raise InputError(
                    f"groups: {column.name!r} holds numbers. Name a column of categories, or an age in years"
                )
            lower, upper = column.bounds
            starts = tuple(start for start in AGES if lower < start <= upper)
            names = [f"below {starts[0]}"] if starts else ["all"]
            names += [f"{start} to {end - 1}" for start, end in pairwise(starts)]
            names += [f"{starts[-1]} and over"] if starts else []
            return cls(column, (*names, *more), starts)
        if len(column.categories) > MOST_CATEGORIES:
            raise InputError(
                f"groups: {column.name!r} has {len(column.categories)} categories. Name a column of at most "
                f"{MOST_CATEGORIES}"
            )
        return cls(column, (*map(str, column.categories), *more))

    def codes(self, frame: pd.DataFrame) -> NDArray[np.int64]:
        """Return the place in ``names`` of the subgroup of each record, shape (n,)."""
        series = frame[self.column.name]
        if self.column.is_numeric:
            values = numeric_values(self.column, series)
            codes = np.where(np.isnan(values), -1, np.searchsorted(self.starts, values, side="right"))
        else:
            codes = category_codes(self.column, series)
        return np.where(codes < 0, len(self.names) - 1, codes)


def groupings(schema: Schema, asked: Sequence[str] | None, outcome: str | None) -> tuple[Grouping, ...]:
    """Return the columns that make subgroups: those asked for, or by default sex and age, by their names.

    Raises
    ------
    InputError
        If a column that is asked for makes no subgroups, or is the outcome.
    SchemaError
        If there is no such column.
    """
    if asked is not None:
        if outcome in asked:
            raise InputError(f"groups: {outcome!r} is the outcome. Name another column")
        return tuple(Grouping.of(schema.column(name)) for name in dict.fromkeys(asked))
    return tuple(
        Grouping.of(column)
        for column in schema.columns
        if column.name != outcome and (is_age(column) or _is_named(column, "sex", "gender", "age"))
    )


def is_age(column: Column) -> bool:
    """Whether a column is an age in years, as its name and unit say."""
    return column.is_numeric and "age" in _words(column) and column.unit in (None, "year", "years")


def _is_named(column: Column, *words: str) -> bool:
    few = not column.is_numeric and len(column.categories) <= MOST_CATEGORIES
    return few and not _words(column).isdisjoint(words)


def _words(column: Column) -> set[str]:
    return set(re.findall(r"[a-z]+", column.name.casefold()))


class Settings(OptionGroup):
    """Options of an evaluation: measures, precision and number of records.

    Parameters
    ----------
    seed : int, optional
        For subsampling, resampling and the models. The default comes from the operating system.
    reference : bool
        Whether the models are trained on the real training records as well.
    records : int, "all" or None
        Records of each table that the slow measures read: models, the real-versus-synthetic classifier,
        neighbours, distances. A random part represents a larger table, and the added error is stated. By
        default :mod:`~dpsynth.evaluation.tables` chooses, for about two minutes on two cores.
    effects : list of str or EffectsModel, optional
        Regressions to fit on real and on synthetic records, such as ``"logistic: death ~ age + sex"``. The
        default are the pre-specified ones, see :meth:`replicating`. Without any, it is one of the outcome on
        all other columns: logistic if binary, linear if numeric. An empty list asks for none.
    constraints : list of str
        Rules that records should obey beside the schema's own, such as ``"diastolic <= systolic"``.
        Records that break them are counted, also of rules that names and units suggest.
    metric : {"euclidean", "gower", "hamming"}
        Distance of nearest-neighbour accuracy.
    groups : list of str, optional
        Columns whose subgroups are compared: categories, or an age in years. By default columns whose names
        say sex, gender or age. An empty list asks for none.
    level : float
        Level of all confidence intervals, in (0, 1).
    outcome : str, optional
        Column that models predict, by default the schema's own outcome. Without one, no utility.
    models : mapping of str to Model, optional
        Predictors in place of the three built-in ones. They cannot be written into a file.

    Raises
    ------
    pydantic.ValidationError
        If an option is unknown, of the wrong type or out of range. :meth:`of` says it in one sentence.

    Examples
    --------
    >>> Settings.of(records="all").records
    'all'
    >>> Settings.of(level=1.0)
    Traceback (most recent call last):
    dpsynth.errors.InputError: level must be less than 1, got 1.0
    """

    seed: int | None = Field(default=None, ge=0)
    reference: bool = True
    records: Literal["all"] | Annotated[int, Field(ge=2)] | None = None
    effects: Annotated[tuple[str | InstanceOf[EffectsModel], ...] | None, BeforeValidator(listed)] = None
    constraints: Annotated[tuple[str, ...], BeforeValidator(listed)] = ()
    metric: Literal["euclidean", "gower", "hamming"] = "euclidean"
    groups: Annotated[tuple[str, ...] | None, BeforeValidator(listed)] = None
    level: float = Field(default=0.95, gt=0, lt=1)
    outcome: str | None = None
    models: Annotated[Mapping[str, InstanceOf[Model]] | None, BeforeValidator(_named)] = Field(
        default=None, exclude=True
    )

    def most(self, schema: Schema, usual: Most) -> int:
        """Return the most records of each table that a step may read.

        Examples
        --------
        >>> from dpsynth.evaluation.tables import COMPARED
        >>> from dpsynth.table.schema import Column
        >>> schema = Schema(columns=(Column(name="sex", kind="binary", categories=("F", "M")),))
        >>> Settings().most(schema, COMPARED), Settings(records=500).most(schema, COMPARED)
        (10000, 500)
        """
        if self.records is None:
            return usual.of(schema)
        return sys.maxsize if self.records == "all" else self.records

    def predicted(self, schema: Schema) -> str | None:
        """Return the column that models predict, or None. Raise InputError if no model could."""
        chosen = schema.outcome if self.outcome is None else self.outcome
        if chosen is not None:
            check_outcome(schema, chosen)
        return chosen

    def studies(self, schema: Schema) -> tuple[EffectsModel, ...]:
        """Return the regressions to replicate. Raise InputError, naming the text that cannot be read."""
        if self.effects is None:
            outcome = self.predicted(schema)
            usual = EffectsModel.default(schema, outcome) if outcome is not None else None
            return () if usual is None else (usual,)
        return tuple(_study(study, schema) for study in self.effects)

    def replicating(self, studies: Sequence[str | EffectsModel]) -> Self:
        """Return the settings with these regressions as ``effects``, unless others were asked for.

        The text of a formula holds no increments. A regression with some of its own is an EffectsModel.

        Examples
        --------
        >>> Settings().replicating(["logistic: death ~ age"]).effects
        ('logistic: death ~ age',)
        >>> Settings.of(effects=["linear: sbp ~ age"]).replicating(["logistic: death ~ age"]).effects
        ('linear: sbp ~ age',)
        """
        if self.effects is not None or not studies:
            return self
        return self.model_copy(update={"effects": tuple(studies)})

    def rules(self, schema: Schema) -> tuple[Expression, ...]:
        """Return the rules that records should obey, the schema's first. Raise InputError if one is wrong."""
        return tuple(
            read_rule(given, schema.columns)
            for given in dict.fromkeys((*schema.constraints, *self.constraints))
        )

    def grouped(self, schema: Schema) -> tuple[Grouping, ...]:
        """Return the columns that make subgroups. Raise InputError, naming the one that cannot."""
        return groupings(schema, self.groups, self.predicted(schema))

    def check(self, schema: Schema) -> None:
        """Raise InputError, naming the option, unless all of them fit the schema. Needs no records."""
        self.predicted(schema)
        self.studies(schema)
        self.rules(schema)
        self.grouped(schema)


def _study(study: str | EffectsModel, schema: Schema) -> EffectsModel:
    if isinstance(study, EffectsModel):
        study.check(schema)
        model = study
    else:
        try:
            model = EffectsModel.parse(study, schema)
        except InputError as problem:
            raise InputError(f"effects {study!r}: {problem}") from None
    if model.predictors == ():
        raise InputError(
            f"effects '{model.formula(schema)}': name predictors. Without them there is no effect"
        )
    return model
