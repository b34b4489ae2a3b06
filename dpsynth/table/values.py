"""Values of one column as numbers: what rules, formulas and evaluators compute with."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpsynth.table.column import Column
from dpsynth.table.conform import is_special


def category_codes(column: Column, series: pd.Series[Any]) -> NDArray[np.int64]:
    """Position of each conformed value among the declared categories, shape (n,); -1 where it is missing."""
    coded = pd.Categorical(series.astype(object), categories=pd.Index(list(column.categories), dtype=object))
    return np.asarray(coded.codes, dtype=np.int64)


def numeric_values(column: Column, series: pd.Series[Any]) -> NDArray[np.float64]:
    """Numbers of a numeric column, positions among the categories of any other.

    NaN where a value is missing or a special code: a code is no number.

    Examples
    --------
    >>> grade = Column(name="grade", kind="ordinal", categories=("low", "high"), missing=True)
    >>> numeric_values(grade, pd.Series(["high", None])).tolist()
    [1.0, nan]
    """
    if column.is_numeric:
        numbers = series.to_numpy(dtype=np.float64, na_value=np.nan)
        return np.where(is_special(column, numbers), np.nan, numbers) if column.special else numbers
    codes = category_codes(column, series)
    return np.where(codes < 0, np.nan, codes.astype(np.float64))
