"""Values of columns as numbers, for rules, formulas, grids and evaluators."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpsynth.table.column import Column
from dpsynth.table.kinds.number import without_special

#: Gives a column's codes (`Column.code`), shape (n,).
Numbers = Callable[[Column], NDArray[np.float64]]


def numeric_values(column: Column, series: pd.Series[Any]) -> NDArray[np.float64]:
    """Numbers of a numeric column, positions among the categories of any other.

    NaN where a value is missing or a special code: a code is no number.

    Examples
    --------
    >>> grade = Column(name="grade", kind="ordinal", categories=("low", "high"), missing=True)
    >>> numeric_values(grade, pd.Series(["high", None])).tolist()
    [1.0, nan]
    """
    return without_special(column, column.code(series))


def numbers_of(frame: pd.DataFrame | Mapping[str, pd.Series[Any]]) -> Numbers:
    """Read columns of a conformed frame, each once."""
    found: dict[str, NDArray[np.float64]] = {}

    def numbers(column: Column) -> NDArray[np.float64]:
        if column.name not in found:
            found[column.name] = column.code(frame[column.name])
        return found[column.name]

    return numbers
