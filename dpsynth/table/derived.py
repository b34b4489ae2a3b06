"""Compute columns from other columns: ``bmi = weight / height ** 2``, exactly, in every record.

A formula is arithmetic over columns of numbers (and of categories that are numbers or true/false)::

    +  -  *  /  **  ( )  numbers  column  `column`  abs  exp  floor  log  max  min  sqrt
    (column == 'category')  (column != 'category')

A comparison is 1 where it holds and 0 elsewhere. Dates are days: a date less a date is a number of days, and
a date moved by a number is a date. A date in quotes stands for itself, as in ``born - '1900-01-01'``.
Python's own parser reads formulas, and all but these parts is refused. Nothing is run as code. Units are the
user's. The result is clipped to the column's declared bounds and rounded to its nearest declared step. It is
missing where an input is.

Interval arithmetic on the declared bounds of the inputs bounds the result beforehand. So a division by zero
or a wrong unit is found when the schema is read.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import keyword
import math
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpsynth.checks import few
from dpsynth.errors import of_records
from dpsynth.table.column import Column
from dpsynth.table.dates import moment_days
from dpsynth.table.values import (
    Numbers,
    amounts,
    amounts_of,
    cast,
    category_numbers,
    days,
    numbers_of,
    numeric_values,
    step_numbers,
    step_values,
)

Floats = NDArray[np.float64]

#: characters, and parts: they bound the depth of nested brackets
_LONGEST, _MOST_PARTS = 500, 150
_QUOTED = re.compile(r"`([^`]*)`")
_OPERATORS: dict[type[ast.AST], Callable[..., Any]] = {
    ast.Add: np.add,
    ast.Sub: np.subtract,
    ast.Mult: np.multiply,
    ast.Div: np.divide,
    ast.Pow: np.power,
    ast.UAdd: np.positive,
    ast.USub: np.negative,
}
_FUNCTIONS: dict[str, tuple[Callable[..., Any], bool]] = {  # function, whether it takes several numbers
    "abs": (np.abs, False),
    "exp": (np.exp, False),
    "floor": (np.floor, False),
    "log": (np.log, False),
    "max": (np.maximum, True),
    "min": (np.minimum, True),
    "sqrt": (np.sqrt, False),
}


@dataclass(frozen=True)
class Formula:
    """A formula read from text, and the columns that it reads. Make it with :func:`parse_formula`."""

    text: str
    inputs: tuple[str, ...]
    _tree: ast.expr
    _names: Mapping[str, str]
    _words: Mapping[str, Sequence[Any]]

    def values(self, inputs: Mapping[str, Floats]) -> Floats:
        """Evaluate in float64, shape (n,), with NaN where an input is NaN or the result is not finite."""
        with np.errstate(all="ignore"):
            result = np.asarray(self._value(self._tree, inputs), dtype=np.float64)
        return np.where(np.isfinite(result), result, np.nan)

    def _value(self, node: ast.expr, inputs: Mapping[str, Floats]) -> Any:
        if isinstance(node, ast.Constant):
            return np.float64(_number(node.value))
        if isinstance(node, ast.Name):
            return inputs[self._names[node.id]]
        if isinstance(node, ast.Compare):
            name, given = self._compared(node)
            same = (inputs[name] == given) == isinstance(node.ops[0], ast.Eq)
            return np.where(np.isnan(inputs[name]), np.nan, same.astype(np.float64))
        function, parts = _operation(node)
        done = [self._value(part, inputs) for part in parts]
        result = _applied(function, done)
        # In floating point nan ** 0 is 1 and 1 / (1 / 0) is 0; here a part without value has none after it.
        known = np.isfinite(result)
        for part in done:
            known = known & ~np.isnan(part)
        return np.where(known, result, np.nan)

    def _compared(self, node: ast.Compare) -> tuple[str, float]:
        """The column of a comparison, and the number that stands for what it is compared with."""
        name, given = self._names[node.left.id], node.comparators[0].value  # type: ignore[attr-defined]
        return name, float(self._words[name].index(given)) if name in self._words else _number(given)

    def dates(self, columns: Collection[str]) -> int:
        """1 if the result is a date, 0 if it is a number, where these columns hold dates.

        ValueError if dates are used as numbers.
        """
        found = self._dates(self._tree, columns)
        if found not in (0, 1):
            raise ValueError("it adds or takes away dates. Subtract one date from another")
        return found

    def _dates(self, node: ast.expr, columns: Collection[str]) -> int:
        if isinstance(node, ast.Constant | ast.Compare):
            return int(isinstance(node, ast.Constant) and isinstance(node.value, str))
        if isinstance(node, ast.Name):
            return int(self._names[node.id] in columns)
        function, parts = _operation(node)
        found = [self._dates(part, columns) for part in parts]
        if function in (np.add, np.subtract, np.positive, np.negative):
            return int(_applied(function, found))
        if function in (np.maximum, np.minimum) and len(set(found)) == 1:
            return found[0]
        if any(found):
            raise ValueError(
                f"{_written(node, self._names)} uses a date as a number. Subtract one date from another"
            )
        return 0

    def bounds(self, inputs: Mapping[str, tuple[float, float]]) -> tuple[float, float]:
        """Lowest and highest value over all inputs within their bounds, ValueError if some have no value."""
        with np.errstate(all="ignore"):
            return self._interval(self._tree, inputs)

    def _interval(self, node: ast.expr, inputs: Mapping[str, tuple[float, float]]) -> tuple[float, float]:
        if isinstance(node, ast.Constant):
            return _number(node.value), _number(node.value)
        if isinstance(node, ast.Name):
            return inputs[self._names[node.id]]
        if isinstance(node, ast.Compare):
            return 0.0, 1.0
        function, parts = _operation(node)
        ranges = [self._interval(part, inputs) for part in parts]
        shown = [_written(part, self._names) for part in parts]
        if function is np.divide and ranges[1][0] <= 0 <= ranges[1][1]:
            raise ValueError(f"it divides by {shown[1]}, which the declared bounds allow to be 0")
        if function is np.log and ranges[0][0] <= 0:
            raise ValueError(f"it takes the logarithm of {shown[0]}, which can be {ranges[0][0]:g}")
        if function is np.sqrt and ranges[0][0] < 0:
            raise ValueError(f"it takes the square root of {shown[0]}, which can be {ranges[0][0]:g}")
        # Every function here rises or falls in each of its numbers, but for these two, which turn at 0.
        ends: list[tuple[float, ...]] = (
            list(product(*ranges)) if len(ranges) < 3 else list(zip(*ranges, strict=True))
        )
        if function is np.abs and ranges[0][0] < 0 < ranges[0][1]:
            ends.append((0.0,))
        if function is np.power:
            ends += _inner_powers(ranges, shown)
        found = [float(_applied(function, [np.float64(x) for x in end])) for end in ends]
        if not all(map(math.isfinite, found)):
            raise ValueError(f"{_written(node, self._names)} can be too large to compute")
        return min(found), max(found)


def parse_formula(
    text: str, names: Sequence[str], words: Mapping[str, Sequence[Any]] | None = None
) -> Formula:
    """Read a formula over these columns. A ValueError says in one clause what is wrong.

    ``words`` are the categories of the columns that hold text. Their values are given as positions among
    these categories.

    Examples
    --------
    >>> bmi = parse_formula("weight / height ** 2", ("weight", "height"))
    >>> bmi.values({"weight": np.array([81.0, 60.0]), "height": np.array([1.8, 2.0])}).round(1).tolist()
    [25.0, 15.0]
    >>> bmi.bounds({"weight": (30, 250), "height": (1.0, 2.0)})
    (7.5, 250.0)
    >>> tested = parse_formula("(hba1c != 'none') * age", ("hba1c", "age"), {"hba1c": ("none", "high")})
    >>> tested.values({"hba1c": np.array([0.0, 1.0]), "age": np.array([60.0, 70.0])}).tolist()
    [0.0, 70.0]
    """
    if len(text) > _LONGEST:
        raise ValueError(f"it has {len(text)} characters. At most {_LONGEST} are read")
    quoted: dict[str, str] = {}

    def placeholder(match: re.Match[str]) -> str:
        quoted[f"_quoted_{len(quoted)}_"] = match[1]
        return list(quoted)[-1]

    plain = _QUOTED.sub(placeholder, text.strip())
    reserved = [name for name in names if keyword.iskeyword(name)]  # lambda, say, the light chain
    if reserved:
        plain = re.sub(rf"(?<![\w.])({'|'.join(reserved)})(?![\w.])", placeholder, plain)
    try:
        tree = ast.parse(plain, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise ValueError(
            "it cannot be read. Write arithmetic such as weight / height ** 2, and names with blanks or "
            "other signs between backquotes"
        ) from None
    if sum(isinstance(node, ast.expr) for node in ast.walk(tree)) > _MOST_PARTS:
        raise ValueError(f"it has more than {_MOST_PARTS} parts")
    found: dict[str, str] = {}
    known = words or {}
    _check(tree, quoted, names, known, found)
    if not found:
        raise ValueError("it names no column")
    return Formula(text, tuple(dict.fromkeys(found.values())), tree, found, known)


def _check(
    node: ast.expr,
    quoted: Mapping[str, str],
    names: Sequence[str],
    words: Mapping[str, Sequence[Any]],
    found: dict[str, str],
) -> None:
    """Refuse all parts of a parsed formula outside the grammar, and note its columns in ``found``."""
    if isinstance(node, ast.Compare):
        left, given = node.left, node.comparators[0]
        plain = isinstance(left, ast.Name) and isinstance(given, ast.Constant) and len(node.ops) == 1
        if not plain or not isinstance(node.ops[0], ast.Eq | ast.NotEq):
            raise ValueError("a comparison is between a column and one category, as in (sex == 'F')")
        assert isinstance(left, ast.Name) and isinstance(given, ast.Constant)
        name = quoted.get(left.id, left.id)
        if name in words and given.value not in words[name]:
            listed = ", ".join(map(repr, words[name]))
            raise ValueError(f"{given.value!r} is no category of {name!r} (categories: {listed})")
        _check(given if name not in words else left, quoted, names, {}, found)
        _check(left, quoted, names, {}, found)
        return
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        with contextlib.suppress(ValueError):
            moment_days(node.value)
            return
    if isinstance(node, ast.Constant) and type(node.value) in (int, float):
        try:
            finite = math.isfinite(float(node.value))  # type: ignore[arg-type]
        except OverflowError:
            finite = False
        if not finite:
            raise ValueError("a number in it is too large")
        return
    if isinstance(node, ast.Name):
        name = quoted.get(node.id, node.id)
        if name not in names:
            raise ValueError(f"{name!r} is not a column (columns: {few(names)})")
        if name in words:
            raise ValueError(
                f"{name!r} holds text, not numbers. Compare it, as in ({name} == {words[name][0]!r})"
            )
        found[node.id] = name
        return
    for part in _operation(node)[1]:
        _check(part, quoted, names, words, found)


def _number(value: Any) -> float:
    """The number of a constant: days since 1970-01-01 for a date."""
    return moment_days(value) if isinstance(value, str) else float(value)


def _operation(node: ast.expr) -> tuple[Callable[..., Any], list[ast.expr]]:
    """The function that a node applies, and to what."""
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        return _OPERATORS[type(node.op)], [node.left, node.right]
    if isinstance(node, ast.UnaryOp) and type(node.op) in _OPERATORS:
        return _OPERATORS[type(node.op)], [node.operand]
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _FUNCTIONS:
        function, several = _FUNCTIONS[node.func.id]
        plain = not node.keywords and not any(isinstance(part, ast.Starred) for part in node.args)
        if not plain or not (node.args if several else len(node.args) == 1):
            raise ValueError(
                f"{node.func.id} takes {'numbers' if several else 'one number'} between brackets"
            )
        return function, node.args
    raise ValueError(
        f"{ast.unparse(node)!r} is no arithmetic. It may use columns, numbers, + - * / ** and "
        f"{', '.join(_FUNCTIONS)}"
    )


def _applied(function: Callable[..., Any], numbers: Sequence[Any]) -> Any:
    """The function of one or two numbers, or max and min of any number, applied one after the other."""
    if function in (np.maximum, np.minimum):
        return functools.reduce(function, numbers)
    return function(*numbers)


def _inner_powers(ranges: Sequence[tuple[float, float]], shown: Sequence[str]) -> list[tuple[float, float]]:
    """Places inside the ranges where a power may be smallest or largest. Refuse powers without value."""
    (low, high), (least, most) = ranges
    whole = least == most and least == round(least)
    if low < 0 and not whole:
        raise ValueError(f"it takes a power of {shown[0]}, which can be {low:g}, with an exponent not whole")
    if low <= 0 <= high and least < 0:
        raise ValueError(f"it divides by a power of {shown[0]}, which the declared bounds allow to be 0")
    return [(0.0, least), (0.0, most)] if low < 0 < high else []


def _written(node: ast.expr, names: Mapping[str, str]) -> str:
    text = ast.unparse(node)
    for placeholder, name in names.items():
        text = text.replace(placeholder, name) if placeholder != name else text
    return text


def formulas(columns: Sequence[Column]) -> tuple[tuple[Column, Formula], ...]:
    """Derived columns with their formulas, in an order in which each comes after its inputs.

    ValueError names the column of a formula that cannot be read, refers to something other than a column of
    numbers, or needs itself. A formula must have a value everywhere within the declared bounds, unless the
    column may be missing. Some value must lie within the column's own bounds.
    """
    waiting = _parsed(columns, "derived")
    known = {column.name: column for column in columns}
    ordered: list[tuple[Column, Formula]] = []
    while waiting:
        ready = [name for name, formula in waiting.items() if not set(formula.inputs) & waiting.keys()]
        if not ready:
            circle = ", ".join(map(repr, waiting))
            raise ValueError(f"column {next(iter(waiting))!r}: derived columns need one another: {circle}")
        ordered += [(known[name], waiting.pop(name)) for name in ready]
    for column, formula in ordered:
        _check_bounds(column, formula, known, "derived")
    return tuple(ordered)


def readings(columns: Sequence[Column]) -> tuple[tuple[Column, Formula], ...]:
    """Columns that are read as a formula of others, with their formulas, or ValueError as of `formulas`."""
    known, parsed = {column.name: column for column in columns}, _parsed(columns, "read_as")
    for name, formula in parsed.items():
        if other := parsed.keys() & {*formula.inputs}:
            raise ValueError(f"column {name!r}: read_as names {min(other)!r}, which is read as a formula too")
        _check_bounds(known[name], formula, known, "read_as")
    return tuple((known[name], formula) for name, formula in parsed.items())


def _parsed(columns: Sequence[Column], field: str) -> dict[str, Formula]:
    """Formulas of one field, by column."""
    names = [column.name for column in columns]
    words = {column.name: column.categories for column in columns if _holds_text(column)}
    dates = [column.name for column in columns if column.is_date]
    found = {}
    for column in columns:
        text = getattr(column, field)
        if text is None:
            continue
        try:
            found[column.name] = parse_formula(text, names, words)
            if found[column.name].dates(dates) != column.is_date:
                gives = "a number" if column.is_date else "a date"
                raise ValueError(f"it gives {gives}, but the column's kind is {column.kind}")
        except ValueError as problem:
            raise ValueError(f"column {column.name!r}: {field} {text!r}: {problem}") from None
    return found


def add_derived(
    frame: pd.DataFrame, derived: Sequence[tuple[Column, Formula]], columns: Sequence[Column]
) -> pd.DataFrame:
    """Return a conformed frame with the ``derived`` columns computed, all columns in the schema's order."""
    known = {column.name: column for column in columns}
    series = {str(name): frame[name] for name in frame.columns}
    for column, formula in derived:
        inputs = {name: amounts(known[name], series[name]) for name in formula.inputs}
        values = snapped(column, formula.values(inputs) / days(column))
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

    NaN where an input is missing or there is no value: never an error, which would disclose a record. A
    column of the frame under its own name is not read.
    """
    column = next(column for column in columns if column.name == name)
    return derived_numbers(numbers_of(frame), derived, columns)(column)


def derived_numbers(
    numbers: Numbers, derived: Sequence[tuple[Column, Formula]], columns: Sequence[Column]
) -> Numbers:
    """Numbers of ``derived`` columns by their formulas, and of all others as they are given."""
    if not derived:
        return numbers
    known, of = {column.name: column for column in columns}, {column.name: entry for column, entry in derived}

    def found(column: Column) -> Floats:
        if column.name not in of:
            return numbers(column)
        formula = of[column.name]
        inputs = {name: amounts_of(known[name], found(known[name])) for name in formula.inputs}
        return snapped(column, formula.values(inputs) / days(column))

    return found


def inputs_of(name: str, derived: Sequence[tuple[Column, Formula]]) -> set[str]:
    """All columns that a derived column needs, directly or through others."""
    of = {column.name: formula for column, formula in derived}
    found: set[str] = set()
    waiting = [name]
    while waiting:  # a column may be read off another that is computed from it
        formula = of.get(waiting.pop())
        new = set() if formula is None else set(formula.inputs) - found
        found |= new
        waiting += new
    return found


def modelled_inputs(names: Collection[str], derived: Sequence[tuple[Column, Formula]]) -> set[str]:
    """The columns that are not derived, among ``names`` and all that these need."""
    of = {column.name for column, _ in derived}
    return {part for name in names for part in ({name} | inputs_of(name, derived)) if part not in of}


def with_derived(
    frame: pd.DataFrame,
    names: Collection[str],
    derived: Sequence[tuple[Column, Formula]],
    columns: Sequence[Column],
) -> pd.DataFrame:
    """A conformed frame with those of ``names`` that it lacks, missing where they have no value."""
    known = {column.name: column for column in columns}
    for name in sorted(set(names) - set(frame.columns)):
        values = derived_values(name, frame, derived, columns)
        frame = frame.assign(**{name: cast(known[name], values, frame.index)})
    return frame


def snapped(column: Column, values: Floats) -> Floats:
    """Clip numbers to a numeric column's bounds and round to the nearest declared step. NaN stays."""
    lower, upper = column.bounds
    if column.resolution is None:
        return np.clip(values, lower, upper)
    absent = np.isnan(values)
    steps = step_numbers(column, np.where(absent, lower, values))
    return np.where(absent, np.nan, step_values(column, steps))


def deviations(frame: pd.DataFrame, column: Column, formula: Formula, columns: Sequence[Column]) -> Floats:
    """Values of a derived column in a conformed frame, less what its formula gives, shape (n,).

    NaN where either is missing. For real records the answer is private and confidential.
    """
    known = {entry.name: entry for entry in columns}
    inputs = {name: amounts(known[name], frame[name]) for name in formula.inputs}
    return numeric_values(column, frame[column.name]) - snapped(column, formula.values(inputs) / days(column))


def agreement(
    frame: pd.DataFrame, column: Column, formula: Formula, columns: Sequence[Column]
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Which records hold the value of a derived column that its formula gives, and which another one.

    Each has shape (n,). Values within one step of the formula's agree, since inputs were rounded too. Without
    a step, a thousandth of its size counts. A record where either is missing is in neither. For real records
    the answer is private and confidential.
    """
    off = deviations(frame, column, formula, columns)
    near = column.resolution or np.abs(numeric_values(column, frame[column.name]) - off) * 1e-3
    limit = near * (1 + 1e-9)
    return np.abs(off) <= limit, np.abs(off) > limit


def _holds_text(column: Column) -> bool:
    return not column.is_numeric and isinstance(column.categories[0], str)


def _check_bounds(column: Column, formula: Formula, known: Mapping[str, Column], field: str) -> None:
    label = f"column {column.name!r}: {field} {formula.text!r}"
    absent = [name for name in formula.inputs if known[name].incomplete]
    if absent and not column.missing:
        raise ValueError(
            f"{label}: {absent[0]!r} may be missing or a special code, so declare missing: true here too"
        )
    lower, upper = column.bounds
    try:
        low, high = formula.bounds({name: _range(known[name]) for name in formula.inputs})
    except ValueError as problem:
        if column.missing:
            return
        raise ValueError(
            f"{label}: {problem}. Change the bounds, or set missing: true to allow empty values"
        ) from None
    low, high = low / days(column), high / days(column)
    if high < lower or low > upper:
        gives, declared = map(column.shown, (low, high)), map(column.shown, (lower, upper))
        raise ValueError(
            f"{label}: it gives {' to '.join(gives)}, but the declared bounds are {' and '.join(declared)}. "
            "Are the units right?"
        )


def _range(column: Column) -> tuple[float, float]:
    if column.is_numeric:
        lower, upper = column.bounds
        return lower * days(column), upper * days(column)
    numbers = category_numbers(column)
    return min(numbers), max(numbers)
