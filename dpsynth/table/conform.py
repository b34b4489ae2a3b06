"""Make a frame fit its schema: check columns, make dtypes canonical, bring numbers to bounds and steps.

The result has exactly the declared columns, dtypes and values, and later code relies on that. Clipping and
rounding each record by public facts changes neighbouring tables record by record, so it costs nothing. The
*count* of clipped values is private (sensitivity 1 a column) and confidential.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpsynth.checks import few, given_twice
from dpsynth.errors import DataError, of_records
from dpsynth.table.cells import distinct_cells, plain_table, spoken, unescape
from dpsynth.table.column import EXACT_INTEGERS, Column
from dpsynth.table.csv_cells import csv_line
from dpsynth.table.csv_format import CsvFile
from dpsynth.table.dates import moment, series_moments, text_moments
from dpsynth.table.values import cast, is_special, step_numbers, step_values, stored_numbers


@dataclass(frozen=True)
class Conformed:
    """A frame that fits its schema, and the number of values outside the bounds in each numeric column.

    ``frame`` has canonical columns, order and dtypes. ``clipped`` is confidential.
    """

    frame: pd.DataFrame
    clipped: dict[str, int]


class NotAllowed(DataError):
    """Cells of a frame are not what the schema allows. ``rows`` says in which rows such cells were found.

    They are the first kind of such cells in each column, so other rows may hold some of another kind.
    """

    def __init__(self, message: str, rows: NDArray[np.bool_]) -> None:
        super().__init__(message)
        self.rows = rows


def conform_columns(
    columns: Sequence[Column],
    frame: pd.DataFrame,
    path: str | Path | CsvFile | None,
    *,
    ignored: Sequence[str] | None,
    missing_words: Sequence[str],
    clip: bool,
) -> Conformed:
    """Check, convert and clip the columns of ``frame``, see :meth:`dpsynth.table.schema.Schema.conform`.

    ``ignored`` are others that it may have. None: any. With ``clip``, numbers are on their declared steps.
    """
    frame = _named(columns, plain_table(frame))
    _check_names([column.name for column in columns], frame, ignored)
    series: dict[str, pd.Series] = {}
    clipped: dict[str, int] = {}
    problems: list[str] = []
    refused = np.zeros(len(frame), dtype=bool)
    for column in columns:
        try:
            series[column.name] = _checked(column, frame[column.name], missing_words)
        except _BadCells as bad:
            # finding the line of a row reads the file again
            problems.append(bad.told(path) if len(problems) < _MOST_TOLD else "")
            refused |= bad.bad
    if problems:
        raise NotAllowed(str(of_records(_together(problems))), refused)
    for column in columns if clip else ():
        if column.is_numeric:
            series[column.name], clipped[column.name] = _clipped(column, series[column.name])
    found = pd.DataFrame(series, index=frame.index, columns=[column.name for column in columns])
    return Conformed(round_frame(columns, found) if clip else found, clipped)


def _clipped(column: Column, values: pd.Series) -> tuple[pd.Series, int]:
    """Numbers within the bounds, and how many were not."""
    numbers, (lower, upper) = stored_numbers(column, values), column.bounds
    # comparisons with NaN are false: a missing value is never clipped
    outside = ((numbers < lower) | (numbers > upper)) & ~is_special(column, numbers)
    if not outside.any():
        return values, 0
    within = np.where(outside, np.clip(numbers, lower, upper), numbers)
    return cast(column, within, values.index), int(outside.sum())


def round_frame(columns: Sequence[Column], frame: pd.DataFrame) -> pd.DataFrame:
    """Round the numbers of a frame in canonical dtypes to their declared steps.

    Columns without a step stay as they are. The given frame is not changed.
    """
    rounded = {}
    for column in columns:
        if column.is_numeric and column.resolution is not None:
            numbers = stored_numbers(column, frame[column.name])
            apart = np.isnan(numbers) | is_special(column, numbers)
            filled = np.where(apart, float(column.lower or 0.0), numbers)
            on_steps = step_values(column, step_numbers(column, filled))
            rounded[column.name] = cast(column, np.where(apart, numbers, on_steps), frame.index)
    return frame.assign(**rounded)


def _named(columns: Sequence[Column], frame: pd.DataFrame) -> pd.DataFrame:
    """Restore the names of columns that our CSV writer escaped."""
    escaped = {name: unescape(name) for name in map(str, frame.columns) if unescape(name) != name}
    known = {column.name for column in columns}
    ours = {name: plain for name, plain in escaped.items() if name not in known and plain in known}
    return frame.rename(columns=ours) if ours else frame


#: columns that an error names
_MOST_TOLD = 5


class _BadCells(Exception):
    """Cells of a column that the schema does not allow."""

    def __init__(self, column: Column, bad: NDArray[np.bool_], value: Any, why: str) -> None:
        super().__init__(why)
        self.column, self.bad, self.value, self.why = column, bad, value, why

    def told(self, path: str | Path | CsvFile | None) -> str:
        """The first of them, and how many there are."""
        row, cells = int(np.argmax(self.bad)), int(self.bad.sum())
        value = self.value.item() if isinstance(self.value, np.generic) else self.value
        shown = "the value" if value is None else repr(value)
        line = csv_line(path, row) if path is not None else None
        place = f"row {row + 1}" if line is None else f"row {row + 1} ({path}, line {line})"
        more = f" ({cells:,} such cells)" if cells > 1 else ""
        return f"column {self.column.name!r}, {place}: {shown} {self.why}{more}"


def _together(problems: Sequence[str]) -> str:
    if len(problems) == 1:
        return problems[0]
    named = ". ".join(f"{text[:1].upper()}{text[1:]}" for text in problems[:_MOST_TOLD])
    more = len(problems) - _MOST_TOLD
    return f"{len(problems):,} columns have cells that the schema does not allow. {named}" + (
        f". And {more:,} more" if more > 0 else ""
    )


def _checked(column: Column, given: pd.Series, missing_words: Sequence[str]) -> pd.Series:
    """The column in its dtype, or _BadCells."""
    values = only_values(column, given, missing_words)
    present = values.notna().to_numpy()
    if not column.missing and not present.all():
        raise _BadCells(column, ~present, None, "is missing, and the schema does not allow that")
    read = _dates if column.is_date else _numbers
    found = read(column, values, present) if column.is_numeric else _categories(column, values)
    return cast(column, found, given.index)


def only_values(column: Column, values: pd.Series, missing_words: Sequence[str] = ()) -> pd.Series:
    """Take the words and codes for "no value" out of a column as it came.

    Words that the column declares as values of their own stay. A number counts by its value, however it is
    written. A reader decides from all cells whether a column is numbers or text, and one record must not
    decide how the others are read.
    """
    if column.is_date and column.missing_codes:
        codes_of_dates = [moment(code, column.kind) for code in column.missing_codes]
        coded = np.isin(date_numbers(column, values), codes_of_dates)
        values = values.mask(coded, None) if coded.any() else values
    words = (*missing_words, *map(spoken, column.missing_codes))
    absent = set(words) - {spoken(value) for value in (*column.categories, *column.special)}
    if not absent or pd.api.types.is_datetime64_any_dtype(values.dtype):
        return values
    read = {number for word in absent if (number := _as_number(word)) is not None} - {*column.special}
    numbers = {stored for number in read for stored in _as_stored(number, values)}
    codes, uniques = distinct_cells(values)
    said = [
        (value.strip() if isinstance(value, str) else spoken(value)) in absent
        or (column.is_numeric and _as_number(value) in numbers)
        for value in uniques
    ]
    if not any(said):
        return values
    return values.astype(object).mask(np.array([*said, False])[codes], None)


def _as_number(value: Any) -> float | None:
    try:
        return float(value)
    except (TypeError, ValueError):
        return None


def _check_names(names: Sequence[str], frame: pd.DataFrame, ignored: Sequence[str] | None) -> None:
    given = [str(name) for name in frame.columns]
    if (twice := given_twice(given)) is not None:
        raise DataError(f"the table has the column {twice!r} more than once")
    absent = [name for name in names if name not in given]
    if absent:
        raise DataError(f"the table lacks the column(s) {few(map(repr, absent))} that the schema declares")
    known = {*names, *(given if ignored is None else ignored)}
    extra = [name for name in given if name not in known]
    if extra:
        raise DataError(
            f"the table has the column(s) {few(map(repr, extra))} that the schema does not declare. "
            "Leave them out, name them under 'ignored' in the schema, or write other_columns: ignore there"
        )


def cell_numbers(column: Column, values: pd.Series) -> NDArray[np.float64]:
    """Numbers of a numeric column as it came, NaN where a cell holds none, shape (n,).

    Dates are in the unit of the column's bounds. Special codes are exact.
    """
    if column.is_date:
        return date_numbers(column, values)
    if pd.api.types.is_numeric_dtype(values.dtype):
        numbers = values.to_numpy(dtype=np.float64, na_value=np.nan)
    else:
        # float() reads text exactly as Python writes it; pandas' own parser may be off in the last digit
        numbers = np.full(len(values), np.nan)
        cells = values.to_numpy(dtype=object)
        for row in np.flatnonzero(values.notna().to_numpy()):
            # Python reads 1_000 as a number; nobody else does
            read = None if "_" in str(cells[row]) else _as_number(cells[row])
            numbers[row] = np.nan if read is None else read
    for code in column.special:
        numbers = np.where(np.isin(numbers, _as_stored(code, values)), code, numbers)
    return numbers


def _as_stored(code: float, values: pd.Series) -> tuple[float, ...]:
    """A code, and what a file of float32 holds for it: with decimals, a number that nobody else writes."""
    return (code, float(np.float32(code))) if code % 1 or values.dtype == np.float32 else (code,)


def _numbers(column: Column, values: pd.Series, present: np.ndarray) -> np.ndarray:
    """Return the column as float64, NaN where missing, or raise _BadCells where it is no finite number."""
    numbers = cell_numbers(column, values)
    _refuse(column, present & np.isnan(numbers), values, "is not a number")
    _refuse(column, np.isinf(numbers), values, "is infinite")
    if column.kind == "integer":
        _refuse(column, present & (numbers != np.rint(numbers)), values, "is not a whole number")
        _refuse(column, np.abs(numbers) > EXACT_INTEGERS, values, "is too large for an exact whole number")
    return numbers


def _dates(column: Column, values: pd.Series, present: np.ndarray) -> np.ndarray:
    """Return a column of dates as numbers, NaN where missing, or raise _BadCells where it is no date."""
    numbers = date_numbers(column, values)
    how = f"the format {column.format}" if column.format else "the form 2010-01-31"
    why = f"is no date in {how}. Say in the schema how dates are written, such as format: '%d/%m/%Y'"
    _refuse(column, present & np.isnan(numbers), values, why)
    if column.kind == "date":
        _refuse(column, numbers % 1 > 0, values, "has a time of day. Its kind is datetime")
    return numbers


def date_numbers(column: Column, values: pd.Series) -> NDArray[np.float64]:
    """Numbers of dates as a table writes them, in the bounds' unit, NaN where there is none."""
    if pd.api.types.is_datetime64_any_dtype(values.dtype):
        return series_moments(values, column.kind)
    codes, uniques = distinct_cells(values)
    texts = pd.Series([spoken(cell).strip() for cell in uniques], dtype=object)
    return np.append(text_moments(texts, column.kind, column.format), np.nan)[codes]


def _refuse(column: Column, bad: NDArray[np.bool_], values: pd.Series, why: str) -> None:
    if bad.any():
        raise _BadCells(column, bad, values.iloc[int(np.argmax(bad))], why)


def _categories(column: Column, values: pd.Series) -> np.ndarray:
    """Return the column as an object array of declared categories, None where missing, or raise _BadCells."""
    codes, uniques = distinct_cells(values)
    words = {*column.categories} if isinstance(column.categories[0], str) else set()
    # Most words are a category as they stand, and there may be 300,000 of them.
    match = CategoryMatcher.of(column)
    known = (value if isinstance(value, str) and value in words else match(value) for value in uniques)
    matched = np.array([*known, None], dtype=object)[codes]
    unknown = (codes >= 0) & pd.isna(matched)
    if unknown.any():
        why = f"is not one of the declared categories {few(map(repr, column.categories))}"
        raise _BadCells(column, unknown, uniques[codes[int(np.argmax(unknown))]], why)
    return matched


@dataclass(frozen=True)
class CategoryMatcher:
    """Gives the declared category that a cell holds, or None.

    Readers without a schema turn codes into other types: ``1`` into ``"1"``, or into ``1.0`` beside a missing
    value. So text and number are compared as they are written.
    """

    equal: dict[Any, Any]
    spoken: dict[str, Any]

    @classmethod
    def of(cls, column: Column) -> CategoryMatcher:
        """Match the categories of a column."""
        equal = {category: category for category in column.categories}
        return cls(equal, {spoken(category): category for category in reversed(column.categories)})

    def __call__(self, value: Any) -> Any:
        """Return the category that a cell holds, None where it holds none."""
        value = value.strip() if isinstance(value, str) else value
        first = next(iter(self.equal))
        with contextlib.suppress(TypeError):  # a list in a cell
            if value in self.equal and isinstance(value, bool) == isinstance(first, bool):
                return self.equal[value]
        if isinstance(value, str | Decimal) and not isinstance(first, str | bool):
            with contextlib.suppress(ValueError):
                value = float(value)
        word = spoken(value)
        if word in self.spoken:
            return self.spoken[word]
        if isinstance(value, str) and unescape(value) != value:
            return self(unescape(value))  # our own CSV files keep spreadsheets from running formulas
        flag = _FLAGS.get(word.lower())
        if flag is not None and self.equal.keys() == {False, True}:  # 0 and 1 equal these
            return self.equal[flag]
        return None


_FLAGS = {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}
