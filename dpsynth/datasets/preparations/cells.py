"""Cells of text as numbers, and columns that must be there."""

from __future__ import annotations

from collections.abc import Iterable

import pandas as pd

from dpsynth.errors import DataError


def require(raw: pd.DataFrame, columns: Iterable[str]) -> None:
    """Refuse a file that lacks a column, naming it.

    Raises
    ------
    DataError
    """
    for name in columns:
        if name not in raw.columns:
            raise DataError(f"the column {name!r} is absent from the file")


def numbers(values: pd.Series) -> pd.Series:
    """Text as numbers, NaN where a value is absent.

    Raises
    ------
    DataError
        If a cell is not a number, naming column and row.
    """
    read = pd.to_numeric(values, errors="coerce")
    wrong = values[read.isna() & values.notna()]
    if len(wrong):
        raise DataError(f"column {values.name!r}, row {wrong.index[0]}: {wrong.iloc[0]!r} is not a number")
    return read
