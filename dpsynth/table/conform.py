"""Make a frame fit its schema: check columns, make dtypes canonical, bring numbers to bounds and steps.

The result has exactly the declared columns, dtypes and values, and later code relies on that. Clipping and
rounding each record by public facts changes neighbouring tables record by record, so it costs nothing. The
*count* of clipped values is private (sensitivity 1 a column) and confidential.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpsynth.checks import few, given_twice
from dpsynth.errors import DataError, of_records
from dpsynth.table.cells import distinct_cells, plain_table, spoken, unescape
from dpsynth.table.column import Column
from dpsynth.table.csv import csv_line
from dpsynth.table.csv_format import CsvFile
from dpsynth.table.kinds.kind import BadCells
from dpsynth.table.kinds.number import as_number, as_stored, is_special, step_numbers, step_values


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
        except BadCells as bad:
            # finding the line of a row reads the file again
            problems.append(_told(bad, path) if len(problems) < _MOST_TOLD else "")
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
    numbers, (lower, upper) = column.code(values), column.bounds
    # comparisons with NaN are false: a missing value is never clipped
    outside = ((numbers < lower) | (numbers > upper)) & ~is_special(column, numbers)
    if not outside.any():
        return values, 0
    within = np.where(outside, np.clip(numbers, lower, upper), numbers)
    return column.series(within, values.index), int(outside.sum())


def round_frame(columns: Sequence[Column], frame: pd.DataFrame) -> pd.DataFrame:
    """Round the numbers of a frame in canonical dtypes to their declared steps.

    Columns without a step stay as they are. The given frame is not changed.
    """
    rounded = {}
    for column in columns:
        if column.is_numeric and column.resolution is not None:
            numbers = column.code(frame[column.name])
            apart = np.isnan(numbers) | is_special(column, numbers)
            filled = np.where(apart, float(column.lower or 0.0), numbers)
            on_steps = step_values(column, step_numbers(column, filled))
            rounded[column.name] = column.series(np.where(apart, numbers, on_steps), frame.index)
    return frame.assign(**rounded)


def _named(columns: Sequence[Column], frame: pd.DataFrame) -> pd.DataFrame:
    """Restore the names of columns that our CSV writer escaped."""
    escaped = {name: unescape(name) for name in map(str, frame.columns) if unescape(name) != name}
    known = {column.name for column in columns}
    ours = {name: plain for name, plain in escaped.items() if name not in known and plain in known}
    return frame.rename(columns=ours) if ours else frame


#: columns that an error names
_MOST_TOLD = 5


def _told(bad: BadCells, path: str | Path | CsvFile | None) -> str:
    """The first of the bad cells, and how many there are."""
    row, cells = int(np.argmax(bad.bad)), int(bad.bad.sum())
    value = bad.value.item() if isinstance(bad.value, np.generic) else bad.value
    shown = "the value" if value is None else repr(value)
    line = csv_line(path, row) if path is not None else None
    place = f"row {row + 1}" if line is None else f"row {row + 1} ({path}, line {line})"
    more = f" ({cells:,} such cells)" if cells > 1 else ""
    return f"column {bad.column.name!r}, {place}: {shown} {bad.why}{more}"


def _together(problems: Sequence[str]) -> str:
    if len(problems) == 1:
        return problems[0]
    named = ". ".join(f"{text[:1].upper()}{text[1:]}" for text in problems[:_MOST_TOLD])
    more = len(problems) - _MOST_TOLD
    return f"{len(problems):,} columns have cells that the schema does not allow. {named}" + (
        f". And {more:,} more" if more > 0 else ""
    )


def _checked(column: Column, given: pd.Series, missing_words: Sequence[str]) -> pd.Series:
    """The column in its dtype, or `BadCells`."""
    values = only_values(column, given, missing_words)
    present = values.notna().to_numpy()
    if not column.missing and not present.all():
        raise BadCells(column, ~present, None, "is missing, and the schema does not allow that")
    return column.series(column.read(values, present), given.index)


def only_values(column: Column, values: pd.Series, missing_words: Sequence[str] = ()) -> pd.Series:
    """Take the words and codes for "no value" out of a column as it came, and read its aliases.

    Words that the column declares as values of their own stay. A number counts by its value, however it is
    written. A reader decides from all cells whether a column is numbers or text, and one record must not
    decide how the others are read.
    """
    values = _read_aliases(column, column.without_codes(values))
    words = (*missing_words, *map(spoken, column.missing_codes))
    absent = set(words) - {spoken(value) for value in (*column.categories, *column.special)}
    if not absent or pd.api.types.is_datetime64_any_dtype(values.dtype):
        return values
    read = {number for word in absent if (number := as_number(word)) is not None} - {*column.special}
    numbers = {stored for number in read for stored in as_stored(number, values)}
    codes, uniques = distinct_cells(values)
    said = [
        (value.strip() if isinstance(value, str) else spoken(value)) in absent
        or (column.is_numeric and as_number(value) in numbers)
        for value in uniques
    ]
    if not any(said):
        return values
    return values.astype(object).mask(np.array([*said, False])[codes], None)


def _read_aliases(column: Column, values: pd.Series) -> pd.Series:
    """The column with each alias in place of the value that it stands for. Other cells stay as they are."""
    aliases = dict(column.aliases)
    if not aliases:
        return values
    codes, uniques = distinct_cells(values)
    read = [
        aliases.get(value.strip() if isinstance(value, str) else spoken(value), value) for value in uniques
    ]
    if all(new is old for new, old in zip(read, uniques, strict=True)):
        return values
    made = np.empty(len(read) + 1, dtype=object)
    made[:] = [*read, None]
    return pd.Series(made[codes], index=values.index, name=values.name, dtype=object)


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
