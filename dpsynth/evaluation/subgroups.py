"""Columns that divide records into subgroups by the public schema: categories, or an age in bands."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpsynth.errors import InputError
from dpsynth.table.kinds.category import category_codes
from dpsynth.table.schema import Column, Schema
from dpsynth.table.values import numeric_values

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
