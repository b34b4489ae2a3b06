"""Columns computed from other columns: ``bmi = weight / height ** 2``, exactly, in every record.

Their formulas are those of :mod:`dpsynth.table.formula`. Units are the user's: kilograms over square metres,
if that is what the columns hold. The result is brought within the column's declared bounds and to its nearest
declared step, and is missing where an input is.

What a formula can give is bounded beforehand, by interval arithmetic on the declared bounds of its inputs, so
that a division by zero or a wrong unit is found when the schema is read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpsynth.errors import of_records
from dpsynth.table.column import Column
from dpsynth.table.conform import cast
from dpsynth.table.formula import Formula, parse_formula
from dpsynth.table.values import category_codes, numeric_values

Floats = NDArray[np.float64]


def formulas(columns: Sequence[Column]) -> tuple[tuple[Column, Formula], ...]:
    """Derived columns with their formulas, in an order in which each comes after its inputs.

    Raises
    ------
    ValueError
        One sentence that names the column: for a formula that cannot be read, names what is no column of
        numbers, goes round in a circle, has no value somewhere within the declared bounds (unless the column
        may be missing), or none within the column's own bounds.
    """
    known = {column.name: column for column in columns}
    words = {column.name: column.categories for column in columns if _holds_text(column)}
    waiting = {}
    for column in columns:
        if column.derived is None:
            continue
        try:
            waiting[column.name] = parse_formula(column.derived, list(known), words)
        except ValueError as problem:
            raise ValueError(f"column {column.name!r}: derived {column.derived!r}: {problem}") from None
    ordered: list[tuple[Column, Formula]] = []
    while waiting:
        ready = [name for name, formula in waiting.items() if not set(formula.inputs) & waiting.keys()]
        if not ready:
            circle = ", ".join(map(repr, waiting))
            raise ValueError(f"column {next(iter(waiting))!r}: derived columns need one another: {circle}")
        ordered += [(known[name], waiting.pop(name)) for name in ready]
    for column, formula in ordered:
        _check_bounds(column, formula, known)
    return tuple(ordered)


def add_derived(
    frame: pd.DataFrame, derived: Sequence[tuple[Column, Formula]], columns: Sequence[Column]
) -> pd.DataFrame:
    """Return a conformed frame with its derived columns computed, all columns in the schema's order.

    Parameters
    ----------
    frame : DataFrame, shape (n, columns that are not computed)
    derived : sequence of (Column, Formula)
        What is computed, in an order that `formulas` gives.
    columns : sequence of Column
        All columns.

    Raises
    ------
    DataError
        If a value cannot be computed and the column may not be missing: column and row are named.
    """
    known = {column.name: column for column in columns}
    series = {str(name): frame[name] for name in frame.columns}
    for column, formula in derived:
        inputs = {name: _numbers(known[name], series[name]) for name in formula.inputs}
        values = snapped(column, formula.values(inputs))
        if not column.missing and np.isnan(values).any():
            row = int(np.argmax(np.isnan(values)))
            given = ", ".join(f"{name} = {series[name].iloc[row]}" for name in formula.inputs)
            raise of_records(
                f"column {column.name!r}, row {row + 1}: {formula.text} has no value for {given}"
            )
        series[column.name] = cast(column, values, frame.index)
    return pd.DataFrame(series, index=frame.index, columns=[column.name for column in columns])


def derived_values(
    name: str, frame: pd.DataFrame, derived: Sequence[tuple[Column, Formula]], columns: Sequence[Column]
) -> Floats:
    """Values of one derived column in a conformed frame of the others, shape (n,).

    NaN where an input is missing or there is no value: never an error, which would tell of a record. Whatever
    the frame holds under its name is not read.
    """
    known, of = {column.name: column for column in columns}, {column.name: entry for column, entry in derived}
    inputs = {
        part: derived_values(part, frame, derived, columns)
        if part in of
        else _numbers(known[part], frame[part])
        for part in of[name].inputs
    }
    return snapped(known[name], of[name].values(inputs))


def inputs_of(name: str, derived: Sequence[tuple[Column, Formula]]) -> set[str]:
    """The columns that a derived column needs, those that these need among them."""
    of = {column.name: formula for column, formula in derived}
    found = set(of[name].inputs) if name in of else set()
    return found.union(*(inputs_of(part, derived) for part in found))


def snapped(column: Column, values: Floats) -> Floats:
    """Numbers within a numeric column's bounds, at the nearest declared step; NaN stays."""
    assert column.lower is not None and column.upper is not None
    inside = np.clip(values, column.lower, column.upper)
    step = column.resolution
    if step is None:
        return inside
    digits = max(0, *(-int(Decimal(repr(float(x))).as_tuple().exponent) for x in (column.lower, step)))
    # Rounding turns 0.1 + 2 * 0.1 back into the decimal 0.3 that a file holds.
    return np.round(column.lower + np.rint((inside - column.lower) / step) * step, digits)


def differing(frame: pd.DataFrame, column: Column, formula: Formula, columns: Sequence[Column]) -> NDArray:
    """Which records hold another value of a derived column than its formula gives, shape (n,).

    Values within one step of the formula's (a thousandth of its size where there is no step) agree, since
    inputs were rounded too; so do those where either is missing.

    Parameters
    ----------
    frame : DataFrame, shape (n, columns)
        Conformed. Of real records the answer is private, and internal.
    """
    known = {entry.name: entry for entry in columns}
    inputs = {name: _numbers(known[name], frame[name]) for name in formula.inputs}
    expected = snapped(column, formula.values(inputs))
    given = _numbers(column, frame[column.name])
    near = np.abs(expected) * 1e-3 if column.resolution is None else column.resolution
    return np.abs(given - expected) > near * (1 + 1e-9)


def _holds_text(column: Column) -> bool:
    return not column.is_numeric and isinstance(column.categories[0], str)


def _check_bounds(column: Column, formula: Formula, known: Mapping[str, Column]) -> None:
    label = f"column {column.name!r}: derived {formula.text!r}"
    absent = [name for name in formula.inputs if known[name].incomplete]
    if absent and not column.missing:
        raise ValueError(
            f"{label}: {absent[0]!r} may be missing or a special code, so declare missing: true here too"
        )
    assert column.lower is not None and column.upper is not None
    try:
        low, high = formula.bounds({name: _range(known[name]) for name in formula.inputs})
    except ValueError as problem:
        if column.missing:
            return
        raise ValueError(
            f"{label}: {problem}; mend the bounds, or declare missing: true (missing where it has no value)"
        ) from None
    if high < column.lower or low > column.upper:
        raise ValueError(
            f"{label}: it gives {low:g} to {high:g}, but the declared bounds are {column.lower:g} and "
            f"{column.upper:g}; are the units right?"
        )


def _range(column: Column) -> tuple[float, float]:
    if column.is_numeric:
        assert column.lower is not None and column.upper is not None
        return column.lower, column.upper
    numbers = _category_numbers(column)
    return min(numbers), max(numbers)


def _category_numbers(column: Column) -> list[float]:
    """What stands for each category: the number that it is, or its position if they are text."""
    categories = column.categories
    return [float(i if isinstance(category, str) else category) for i, category in enumerate(categories)]


def _numbers(column: Column, series: pd.Series) -> Floats:
    """Values of a column of numbers or categories that are numbers, positions of text; NaN where missing."""
    if column.is_numeric:
        return numeric_values(column, series)
    numbers = np.array([*_category_numbers(column), np.nan])
    return numbers[category_codes(column, series)]
