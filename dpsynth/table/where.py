"""Read conditions of conditional sampling, and list the records that can meet a rule at all.

A condition selects a record only where it is true, as WHERE does in SQL. Declared values show whether any
record can be selected, or can obey a constraint. This is checked before a budget is spent.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from typing import Any

import numpy as np
import pandas as pd

from dpsynth.checks import few
from dpsynth.errors import InputError
from dpsynth.table.column import Column
from dpsynth.table.expressions import Expression, parse_rule, read
from dpsynth.table.spelling import Leaf, Piece
from dpsynth.table.values import cast, step_values

#: what conditional sampling takes: rules, or values of columns
Where = str | Sequence[str] | Mapping[str, Any]

#: Combinations of declared values that are tried; a rule over more of them is not decided.
_MOST = 50_000


def parse_where(where: Where | None, columns: Sequence[Column]) -> tuple[Expression, ...]:
    """Read the conditions of conditional sampling.

    They are rules, which must all be true, or a mapping. It gives for each column a value, a range
    ``(low, high)`` with both ends (None: open), a list of values, or None for missing.

    Examples
    --------
    >>> columns = (Column(name="age", kind="integer", lower=18, upper=110),
    ...            Column(name="sex", kind="binary", categories=("F", "M")))
    >>> [rule.text for rule in parse_where({"sex": "F", "age": (65, 80)}, columns)]
    ["sex == 'F'", 'age >= 65', 'age <= 80']
    """
    if where is None:
        return ()
    if isinstance(where, str):
        where = (where,)
    if not isinstance(where, Mapping):
        if not isinstance(where, Sequence):
            raise InputError(f"where must be a rule such as 'age >= 65', rules or a mapping, got {where!r}")
        return tuple(parse_rule(text, columns, "condition") for text in where)
    known = {column.name: column for column in columns}
    return tuple(rule for name, value in where.items() for rule in _conditions(name, value, known))


def _conditions(name: str, value: Any, known: Mapping[str, Column]) -> Iterator[Expression]:
    if name not in known:
        raise InputError(f"where: {name!r} is not a column (columns: {few(known)})")

    def condition(text: str, *pieces: Piece) -> Expression:
        return read(text, (Leaf(name, name, known[name]), *pieces), known)

    try:
        if value is None:
            yield condition(f"{name} is missing", "is", "missing")
        elif isinstance(value, tuple):
            if len(value) != 2:
                raise ValueError(f"a range has two ends, got {value!r}")
            for sign, end in zip((">=", "<="), value, strict=True):
                if end is not None:
                    yield condition(f"{name} {sign} {_leaf(end)}", sign, _leaf(end))
        elif isinstance(value, list | set | frozenset):
            leaves = [_leaf(entry) for entry in value]
            if not leaves:
                raise ValueError("a list of values is empty")
            listed = [piece for leaf in leaves for piece in (",", leaf)][1:]
            yield condition(f"{name} in ({', '.join(map(str, leaves))})", "in", "(", *listed, ")")
        else:
            yield condition(f"{name} == {_leaf(value)}", "==", _leaf(value))
    except ValueError as problem:
        raise InputError(f"where {name!r}: {problem}") from None


def _leaf(value: Any) -> Leaf:
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, str | date):
        return Leaf(repr(str(value)), str(value))
    if isinstance(value, int | float):
        return Leaf(str(value), str(value), number=float(value))
    raise ValueError(f"{value!r} is neither text, a number nor a date")


def combinations(rule: Expression, columns: Sequence[Column]) -> pd.DataFrame | None:
    """All combinations of declared values of the columns that a rule names, missing ones included.

    None if they are too many, or if a column holds real numbers.
    """
    named = sorted((column for column in columns if column.name in rule.columns), key=lambda one: one.name)
    sizes = [column.n_values for column in named]
    if any(size is None for size in sizes) or math.prod(size + 1 for size in sizes if size) > _MOST:
        return None
    lists = [_values(column) for column in named]
    places = np.indices([len(values) for values in lists]).reshape(len(lists), -1)
    return pd.DataFrame(
        {
            column.name: cast(column, values[place])
            for column, values, place in zip(named, lists, places, strict=True)
        }
    )


def _values(column: Column) -> Any:
    if column.is_numeric:
        numbers = step_values(column, np.arange(column.n_values or 0))
        return np.concatenate([numbers, column.special, [np.nan] if column.missing else []])
    values = np.empty(len(column.categories) + column.missing, dtype=object)
    values[: len(column.categories)] = column.categories
    return values
