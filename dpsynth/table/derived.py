"""Compute columns from other columns: ``bmi = weight / height ** 2``, exactly, in every record.

A formula (:mod:`dpsynth.table.expressions`) has a value for each record. Units are the user's. The value is
clipped to the column's declared bounds and rounded to its nearest declared step. It is missing where an input
is. The declared bounds of the inputs bound the value beforehand.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import date
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpsynth.checks import few
from dpsynth.errors import InputError, of_records
from dpsynth.table.column import Column
from dpsynth.table.expressions import Expression, Leaf, Piece, parse, parse_rule, read_pieces
from dpsynth.table.kinds.category import category_numbers
from dpsynth.table.kinds.number import step_numbers, step_values
from dpsynth.table.values import Numbers, numbers_of, numeric_values

# ------------------------------------------------------------------------------------------------
# Read conditions of conditional sampling, and list the records that can meet a rule at all.
#
# A condition selects a record only where it is true, as WHERE does in SQL. Declared values show whether any
# record can be selected, or can obey a constraint. This is checked before a budget is spent.

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
        return read_pieces(text, (Leaf(name, name, known[name]), *pieces), known)

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
            column.name: column.series(values[place])
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


Floats = NDArray[np.float64]

#: Computed columns with their formulas.
Formulas = Sequence[tuple[Column, Expression]]


def formulas(columns: Sequence[Column]) -> tuple[tuple[Column, Expression], ...]:
    """Derived columns with their formulas, in an order in which each comes after its inputs.

    ValueError names the column of a formula that cannot be read, refers to something other than a column of
    numbers, or needs itself. A formula must have a value everywhere within the declared bounds, unless the
    column may be missing. Some value must lie within the column's own bounds.
    """
    waiting = _parsed(columns, "derived")
    known = {column.name: column for column in columns}
    ordered: list[tuple[Column, Expression]] = []
    while waiting:
        ready = [name for name, formula in waiting.items() if not set(formula.columns) & waiting.keys()]
        if not ready:
            circle = ", ".join(map(repr, waiting))
            raise ValueError(f"column {next(iter(waiting))!r}: derived columns need one another: {circle}")
        ordered += [(known[name], waiting.pop(name)) for name in ready]
    for column, formula in ordered:
        _check_bounds(column, formula, known, "derived")
    return tuple(ordered)


def readings(columns: Sequence[Column]) -> tuple[tuple[Column, Expression], ...]:
    """Columns that are read as a formula of others, with their formulas, or ValueError as of `formulas`."""
    known, parsed = {column.name: column for column in columns}, _parsed(columns, "read_as")
    for name, formula in parsed.items():
        if other := parsed.keys() & {*formula.columns}:
            raise ValueError(f"column {name!r}: read_as names {min(other)!r}, which is read as a formula too")
        _check_bounds(known[name], formula, known, "read_as")
    return tuple((known[name], formula) for name, formula in parsed.items())


def read_and_modelled(columns: Sequence[Column]) -> tuple[str, ...]:
    """Columns that are read as a formula of others, all of which are modelled: samples break the formula."""
    known = {column.name: column for column in columns}
    return tuple(
        column.name
        for column, formula in readings(columns)
        if all(known[name].derived is None for name in formula.columns)
    )


def _parsed(columns: Sequence[Column], field: str) -> dict[str, Expression]:
    """Formulas of one field, by column."""
    found = {}
    for column in columns:
        text = getattr(column, field)
        if text is None:
            continue
        try:
            formula = found[column.name] = parse(text, columns)
            if formula.dates not in (0, 1):
                raise ValueError("it adds or takes away dates. Subtract one date from another")
            if formula.dates != column.is_date:
                gives = "a number" if column.is_date else "a date"
                raise ValueError(f"it gives {gives}, but the column's kind is {column.kind}")
        except ValueError as problem:
            raise ValueError(f"column {column.name!r}: {field} {text!r}: {problem}") from None
    return found


def add_derived(frame: pd.DataFrame, derived: Formulas, columns: Sequence[Column]) -> pd.DataFrame:
    """Return a conformed frame with the ``derived`` columns computed, all columns in the schema's order."""
    series = {str(name): frame[name] for name in frame.columns}
    numbers = numbers_of(series)
    for column, formula in derived:
        values = snapped(column, formula.value(numbers) / column.unit_size)
        if not column.missing and np.isnan(values).any():
            row = int(np.argmax(np.isnan(values)))
            given = ", ".join(f"{name} = {series[name].iloc[row]}" for name in formula.columns)
            raise of_records(
                f"column {column.name!r}, row {row + 1}: {formula.text} has no value for {given}"
            )
        series[column.name] = column.series(values, frame.index)
    return pd.DataFrame(series, index=frame.index, columns=[column.name for column in columns])


def derived_values(name: str, frame: pd.DataFrame, derived: Formulas) -> Floats:
    """Values of one derived column in a conformed frame of the others, shape (n,).

    NaN where an input is missing or there is no value: never an error, which would disclose a record. A
    column of the frame under its own name is not read.
    """
    column = next(column for column, _ in derived if column.name == name)
    return derived_numbers(numbers_of(frame), derived)(column)


def derived_numbers(numbers: Numbers, derived: Formulas) -> Numbers:
    """Numbers of ``derived`` columns by their formulas, and of all others as they are given."""
    if not derived:
        return numbers
    of = {column.name: formula for column, formula in derived}

    def found(column: Column) -> Floats:
        if column.name not in of:
            return numbers(column)
        return snapped(column, of[column.name].value(found) / column.unit_size)

    return found


def inputs_of(name: str, derived: Formulas) -> set[str]:
    """All columns that a derived column needs, directly or through others."""
    of = {column.name: formula for column, formula in derived}
    found: set[str] = set()
    waiting = [name]
    while waiting:  # a column may be read off another that is computed from it
        formula = of.get(waiting.pop())
        new = set() if formula is None else set(formula.columns) - found
        found |= new
        waiting += new
    return found


def modelled_inputs(names: Collection[str], derived: Formulas) -> set[str]:
    """The columns that are not derived, among ``names`` and all that these need."""
    of = {column.name for column, _ in derived}
    return {part for name in names for part in ({name} | inputs_of(name, derived)) if part not in of}


def with_derived(frame: pd.DataFrame, names: Collection[str], derived: Formulas) -> pd.DataFrame:
    """A conformed frame with those of ``names`` that it lacks, missing where they have no value."""
    known = {column.name: column for column, _ in derived}
    for name in sorted(set(names) - set(frame.columns)):
        values = derived_values(name, frame, derived)
        frame = frame.assign(**{name: known[name].series(values, frame.index)})
    return frame


def snapped(column: Column, values: Floats) -> Floats:
    """Clip numbers to a numeric column's bounds and round to the nearest declared step. NaN stays."""
    lower, upper = column.bounds
    if column.resolution is None:
        return np.clip(values, lower, upper)
    absent = np.isnan(values)
    steps = step_numbers(column, np.where(absent, lower, values))
    return np.where(absent, np.nan, step_values(column, steps))


def deviations(frame: pd.DataFrame, column: Column, formula: Expression) -> Floats:
    """Values of a derived column in a conformed frame, less what its formula gives, shape (n,).

    NaN where either is missing. For real records the answer is private and confidential.
    """
    computed = snapped(column, formula.value(numbers_of(frame)) / column.unit_size)
    return numeric_values(column, frame[column.name]) - computed


def agreement(
    frame: pd.DataFrame, column: Column, formula: Expression
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Which records hold the value of a derived column that its formula gives, and which another one.

    Each has shape (n,). Values within one step of the formula's agree, since inputs were rounded too. Without
    a step, a thousandth of its size counts. A record where either is missing is in neither. For real records
    the answer is private and confidential.
    """
    off = deviations(frame, column, formula)
    near = column.resolution or np.abs(numeric_values(column, frame[column.name]) - off) * 1e-3
    limit = near * (1 + 1e-9)
    return np.abs(off) <= limit, np.abs(off) > limit


def _check_bounds(column: Column, formula: Expression, known: Mapping[str, Column], field: str) -> None:
    label = f"column {column.name!r}: {field} {formula.text!r}"
    absent = [name for name in formula.columns if known[name].incomplete]
    if absent and not column.missing:
        raise ValueError(
            f"{label}: {absent[0]!r} may be missing or a special code, so declare missing: true here too"
        )
    lower, upper = column.bounds
    try:
        low, high = formula.interval({name: _range(known[name]) for name in formula.columns})
    except ValueError as problem:
        if column.missing:
            return
        raise ValueError(
            f"{label}: {problem}. Change the bounds, or set missing: true to allow empty values"
        ) from None
    low, high = low / column.unit_size, high / column.unit_size
    if high < lower or low > upper:
        gives, declared = map(column.shown, (low, high)), map(column.shown, (lower, upper))
        raise ValueError(
            f"{label}: it gives {' to '.join(gives)}, but the declared bounds are {' and '.join(declared)}. "
            "Are the units right?"
        )


def _range(column: Column) -> tuple[float, float]:
    if column.is_numeric:
        lower, upper = column.bounds
        return lower * column.unit_size, upper * column.unit_size
    numbers = category_numbers(column)
    return min(numbers), max(numbers)
