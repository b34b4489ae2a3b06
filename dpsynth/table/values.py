"""Convert values of one column to numbers and back, for rules, formulas, grids and evaluators."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpsynth.table.column import Column
from dpsynth.table.dates import SECONDS, from_moments, series_moments

#: Gives a column's `coded_values`, shape (n,).
Numbers = Callable[[Column], NDArray[np.float64]]


def category_codes(column: Column, series: pd.Series[Any]) -> NDArray[np.int64]:
    """Position of each conformed value among the declared categories, shape (n,), -1 where missing."""
    coded = pd.Categorical(series.astype(object), categories=pd.Index(list(column.categories), dtype=object))
    return np.asarray(coded.codes, dtype=np.int64)


def stored_numbers(column: Column, series: pd.Series[Any]) -> NDArray[np.float64]:
    """Numbers of a numeric column with its special codes, NaN where missing, shape (n,).

    Dates are numbers in the unit of the column's bounds. Numbers of a column of dates stay as they are.
    """
    if pd.api.types.is_datetime64_any_dtype(series.dtype):
        return series_moments(series, column.kind)
    return series.to_numpy(dtype=np.float64, na_value=np.nan)


def numeric_values(column: Column, series: pd.Series[Any]) -> NDArray[np.float64]:
    """Numbers of a numeric column, positions among the categories of any other.

    NaN where a value is missing or a special code: a code is no number.

    Examples
    --------
    >>> grade = Column(name="grade", kind="ordinal", categories=("low", "high"), missing=True)
    >>> numeric_values(grade, pd.Series(["high", None])).tolist()
    [1.0, nan]
    """
    return quantities(column, coded_values(column, series))


def quantities(column: Column, coded: NDArray[np.float64]) -> NDArray[np.float64]:
    """Make special codes missing among a column's `coded_values`."""
    return np.where(is_special(column, coded), np.nan, coded) if column.special else coded


def coded_values(column: Column, series: pd.Series[Any]) -> NDArray[np.float64]:
    """Numbers with special codes, or positions among the categories, NaN where missing, shape (n,)."""
    if column.is_numeric:
        return stored_numbers(column, series)
    codes = category_codes(column, series)
    return np.where(codes < 0, np.nan, codes.astype(np.float64))


def numbers_of(frame: pd.DataFrame | Mapping[str, pd.Series[Any]]) -> Numbers:
    """Read columns of a conformed frame, each once."""
    found: dict[str, NDArray[np.float64]] = {}

    def numbers(column: Column) -> NDArray[np.float64]:
        if column.name not in found:
            found[column.name] = coded_values(column, frame[column.name])
        return found[column.name]

    return numbers


def positions(numbers: NDArray[np.float64]) -> NDArray[np.int64]:
    """Positions among categories as whole numbers, -1 where missing, of any shape."""
    return np.nan_to_num(numbers, nan=-1.0).astype(np.int64)


def categories_at(column: Column, numbers: NDArray[np.float64]) -> NDArray[np.object_]:
    """The categories at positions, None where missing: the inverse of :func:`numeric_values`.

    Examples
    --------
    >>> grade = Column(name="grade", kind="ordinal", categories=("low", "high"), missing=True)
    >>> categories_at(grade, np.array([1.0, np.nan])).tolist()
    ['high', None]
    """
    return np.array([*column.categories, None], dtype=object)[positions(numbers)]


def category_numbers(column: Column) -> list[float]:
    """Number of each category: the category itself, or its position if they are text."""
    categories = column.categories
    return [float(i if isinstance(category, str) else category) for i, category in enumerate(categories)]


def days(column: Column) -> float:
    """The unit of a column's numbers in the unit of :func:`amounts`: 1, and days where they are dates."""
    return SECONDS[column.kind] / SECONDS["date"] if column.is_date else 1.0


def amounts(column: Column, series: pd.Series) -> NDArray[np.float64]:
    """Numbers of a column, positions of its categories if they are text, NaN where missing.

    Dates are days since 1970-01-01, with or without a time of day: their differences are days.
    """
    return amounts_of(column, coded_values(column, series))


def amounts_of(column: Column, coded: NDArray[np.float64]) -> NDArray[np.float64]:
    """The same of a column's `coded_values`."""
    if column.is_numeric:
        return quantities(column, coded) * days(column)
    return np.array([*category_numbers(column), np.nan])[positions(coded)]


def is_special(column: Column, numbers: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Which numbers are special codes of the column, shape (n,)."""
    return np.isin(numbers, column.special)


def step_numbers(column: Column, numbers: NDArray[np.float64]) -> NDArray[np.int64]:
    """Rounded number of declared steps from the lower bound to each number, shape (n,). None may be missing.

    Numbers outside the bounds count as the nearest bound.
    """
    lower, resolution, count = column.lower, column.resolution, column.n_values
    assert lower is not None and resolution is not None and count is not None
    return np.rint((numbers - lower) / resolution).clip(0, count - 1).astype(np.int64)


def step_values(column: Column, index: NDArray[np.int64] | NDArray[np.float64]) -> NDArray[np.float64]:
    """The numbers that lie ``index`` declared steps above the lower bound, shape (n,). NaN stays.

    Rounding turns 0.1 + 2 * 0.1 back into the decimal 0.3 that a file holds.
    """
    lower, resolution = column.lower, column.resolution
    assert lower is not None and resolution is not None
    # most decimal places among the shortest decimal forms of the two
    decimals = max(0, *(-int(Decimal(repr(float(x))).as_tuple().exponent) for x in (lower, resolution)))
    return np.round(lower + index * resolution, decimals)


def cast(column: Column, values: Any, index: pd.Index | None = None) -> pd.Series:
    """Make a Series of the column's canonical dtype from values that already fit it."""
    dtype = column.dtype
    if column.is_numeric:
        numbers = np.asarray(values, dtype=np.float64)
        if column.is_date:
            return pd.Series(from_moments(numbers, column.kind), index=index, name=column.name)
        if dtype == "Int64":
            absent = np.isnan(numbers)
            whole = np.where(absent, 0, np.rint(numbers)).astype(np.int64)
            return pd.Series(pd.arrays.IntegerArray(whole, absent), index=index, name=column.name)
        if dtype == "int64":
            return pd.Series(np.rint(numbers).astype(np.int64), index=index, name=column.name)
        return pd.Series(numbers, index=index, name=column.name)
    cells = np.asarray(values, dtype=object)
    return pd.Series(cells, index=index, name=column.name, dtype=object).astype(dtype)
