"""The terms of a regression, one for each coefficient, fixed by the public schema, and their values.

Numeric columns enter per increment, or as logarithms of x or of 1 + x, per doubling of it. Categories enter
by treatment coding against the *first declared* category. Ordinal columns enter as a linear trend over ranks
0, 1, 2 and so on.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpsynth.checks import few
from dpsynth.studies.model import EffectsModel, logarithms, suiting_log
from dpsynth.studies.model_text import Entry, Log
from dpsynth.table.derived import derived_values
from dpsynth.table.schema import Column, Schema
from dpsynth.table.values import numeric_values

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
        str(Entry(column.name, suiting_log(column)))
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
