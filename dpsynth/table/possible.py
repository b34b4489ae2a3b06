"""Is there any record at all that obeys a rule? Asked of the declared values, before a budget is spent."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd

from dpsynth.table.column import Column, Columns
from dpsynth.table.conform import cast
from dpsynth.table.derived import snapped
from dpsynth.table.rules import Rule

#: Combinations of declared values that are tried; a rule over more of them is not decided.
_MOST = 50_000


def combinations(rule: Rule, schema: Columns) -> pd.DataFrame | None:
    """All combinations of declared values of the columns that a rule names, missing ones included.

    None where they are too many, or where a column holds real numbers.

    Examples
    --------
    >>> from dpsynth.table.rules import parse_rule
    >>> from dpsynth.table.schema import Schema
    >>> schema = Schema(columns=(Column(name="age", kind="integer", lower=18, upper=90),))
    >>> rule = parse_rule("age > 200", schema)
    >>> bool(rule.selected(combinations(rule, schema)).any())
    False
    """
    columns = [schema.column(name) for name in sorted(rule.columns)]
    sizes = [column.n_values for column in columns]
    if any(size is None for size in sizes) or math.prod(size + 1 for size in sizes if size) > _MOST:
        return None
    lists = [_values(column) for column in columns]
    places = np.indices([len(values) for values in lists]).reshape(len(lists), -1)
    return pd.DataFrame(
        {
            column.name: cast(column, values[place])
            for column, values, place in zip(columns, lists, places, strict=True)
        }
    )


def _values(column: Column) -> Any:
    if column.is_numeric:
        assert column.lower is not None and column.resolution is not None and column.n_values is not None
        numbers = snapped(column, column.lower + np.arange(column.n_values) * column.resolution)
        return np.concatenate([numbers, column.special, [np.nan] if column.missing else []])
    values = np.empty(len(column.categories) + column.missing, dtype=object)
    values[: len(column.categories)] = column.categories
    return values
