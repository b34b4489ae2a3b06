"""Convert values of one column to numbers and back, for rules, formulas, grids and evaluators."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from dpsynth.checks import few, given_twice
from dpsynth.errors import DataError, of_records
from dpsynth.table.cells import distinct_cells, plain_table, spoken, unescape
from dpsynth.table.column import (
    EXACT_INTEGERS,
    SECONDS,
    Column,
    from_moments,
    moment,
    series_moments,
    text_moments,
)
from dpsynth.table.csv import csv_line
from dpsynth.table.csv_format import CsvFile

#: Gives a column's `coded_values`, shape (n,).
Numbers = Callable[[Column], NDArray[np.float64]]


def category_codes(column: Column, series: pd.Series[Any]) -> NDArray[np.int64]:
    """Position of each conformed value among the declared categories, shape (n,), -1 where missing."""
    declared = pd.Index(list(column.categories), dtype=object)
    return declared.get_indexer(pd.Index(series.to_numpy(dtype=object), dtype=object)).astype(np.int64)


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


# ------------------------------------------------------------------------------------------------
# Conditional samples in even numbers: sampling from tables with little sampling noise.
#
# Records of a group share their parents' values and so one conditional distribution. In a group of c
# records, each takes a uniform from a different c-th part of [0, 1), in random order. Each record still has
# exactly the group's distribution. The group's counts lie closer to their expectations than with independent
# uniforms. So the sample stays closer to the released tables at no cost.


class Uniforms(Protocol):
    """Independent uniform numbers, as of a NumPy generator."""

    def random(self, size: int, /) -> NDArray[np.float64]:
        """Numbers in [0, 1), shape (size,)."""
        ...


class RowUniforms:
    """Uniform numbers that belong to rows of a table: the same however the table is cut.

    Each call of `random` gives one more number for each of the rows, at most ``columns`` times.

    Examples
    --------
    >>> whole, part = RowUniforms(7, 0, 5, 2), RowUniforms(7, 3, 2, 2)
    >>> bool((whole.random(5)[3:] == part.random(2)).all())
    True
    """

    def __init__(self, seed: int, first: int, rows: int, columns: int) -> None:
        stream = np.random.PCG64DXSM(seed)
        stream.advance(first * columns)
        self._numbers = iter(np.random.Generator(stream).random((rows, columns)).T)

    def random(self, size: int, /) -> NDArray[np.float64]:
        """The next number of each row. ``size`` is the number of rows."""
        return next(self._numbers)


def draw_conditional(
    tables: ArrayLike, groups: NDArray[np.int64], rng: np.random.Generator, *, even: bool = True
) -> NDArray[np.int64]:
    """Draw one entry from 0 to k - 1 for each record from the distribution of its group.

    ``tables`` holds the weights of the entries in each group, shape (n_groups, k). A group without weight is
    uniform. ``groups`` is the group of each record, shape (n,). Uniforms are spread evenly over each group's
    records, or independent if not ``even``.

    Examples
    --------
    >>> entries = draw_conditional([[1, 3]], np.zeros(8, dtype=np.int64), np.random.default_rng(0))
    >>> np.bincount(entries)
    array([2, 6])
    """
    weights = np.array(tables, dtype=np.float64)
    weights[weights.sum(axis=1) <= 0] = 1.0
    n_groups, size = weights.shape
    ends = np.cumsum(weights, axis=1)
    ends /= ends[:, -1:]
    if even:
        counts = even_counts(ends, np.bincount(groups, minlength=n_groups), rng)
        entries = np.empty(len(groups), dtype=np.int64)
        # Uniforms that ascend within a group need no search: its entries follow each other in their numbers.
        entries[grouped(groups, n_groups, rng)] = np.repeat(
            np.tile(np.arange(size), n_groups), counts.ravel()
        )
        return entries
    # One ascending list of all groups' ends, group g shifted by g, lets a single search serve all records.
    shifted = (ends + np.arange(n_groups)[:, None]).ravel()
    found = np.searchsorted(shifted, groups + rng.random(len(groups)), side="right") - groups * size
    return np.clip(found, 0, size - 1)


def grouped(groups: NDArray[np.int64], n_groups: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Rows in the order of their groups, those of a group in random order, shape (n,)."""
    shuffled = rng.permutation(len(groups))
    if n_groups <= 1:
        return shuffled
    # Sorting 16-bit keys is a radix sort, several times faster than a comparison sort.
    keys = groups.astype(np.uint16) if n_groups <= 2**16 else groups
    return shuffled[np.argsort(keys[shuffled], kind="stable")]


def even_counts(
    ends: NDArray[np.float64], totals: NDArray[np.int64], rng: np.random.Generator
) -> NDArray[np.int64]:
    """Number of a group's even uniforms in each entry, shape (n_groups, k).

    A group of c records, c in ``totals``, has one uniform in each c-th part of [0, 1). An entry takes those
    between the previous entry's end and its own. ``ends`` are cumulative probabilities along each row.

    Examples
    --------
    >>> even_counts(np.array([[0.25, 0.5, 1.0]]), np.array([8]), np.random.default_rng(0))
    array([[2, 2, 4]])
    """
    reach = ends * totals[:, None]
    part = np.floor(reach)
    # Ends in the same part of [0, 1) are compared with the same uniform.
    fresh = np.ones(part.shape, dtype=bool)
    fresh[:, 1:] = part[:, 1:] != part[:, :-1]
    place = np.cumsum(fresh.ravel()).reshape(part.shape) - 1
    uniform = rng.random(int(place[-1, -1]) + 1)[place] if place.size else np.zeros(part.shape)
    below = (part + (uniform < reach - part)).astype(np.int64)
    return np.diff(below, axis=1, prepend=0)


def draw_entry(weights: ArrayLike, rng: np.random.Generator) -> NDArray[np.int64]:
    """Draw one entry of each row in proportion to its weights.

    ``weights`` has shape (n, k): negative ones count as zero, and a row without positive weight as uniform.
    The result has shape (n,), from 0 to k - 1.
    """
    # Entry by entry: sums along short rows are many times slower than whole columns.
    ends = np.maximum(np.asarray(weights).T, 0.0, dtype=np.float64, order="C")
    np.cumsum(ends, axis=0, out=ends)
    empty = ends[-1] <= 0
    if empty.any():
        ends[:, empty] = np.arange(1.0, len(ends) + 1.0)[:, None]
    mark = rng.random(ends.shape[1]) * ends[-1]
    label = np.zeros(ends.shape[1], dtype=np.int64)
    for end in ends[:-1]:
        label += mark >= end
    return label


# ------------------------------------------------------------------------------------------------
# Make a frame fit its schema: check columns, make dtypes canonical, bring numbers to bounds and steps.
#
# The result has exactly the declared columns, dtypes and values, and later code relies on that. Clipping and
# rounding each record by public facts changes neighbouring tables record by record, so it costs nothing. The
# *count* of clipped values is private (sensitivity 1 a column) and confidential.


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
