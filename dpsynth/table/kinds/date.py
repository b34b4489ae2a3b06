"""Dates and times as numbers, and as the text that people read.

A date is the whole number of days since 1970-01-01, a time the whole number of seconds. A time zone is left
out: the time on the clock stays.
"""

from __future__ import annotations

import math
import re
from datetime import date, datetime
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpsynth.table.cells import TextCells, distinct_cells, spoken, stand_apart
from dpsynth.table.kinds.kind import Fields, Floats, refuse_cells
from dpsynth.table.kinds.number import Number
from dpsynth.table.remarks import LISTED, Answer, Remarks, n_cells

#: Seconds in the unit of each kind's numbers.
SECONDS = {"date": 86_400, "datetime": 1}
#: Number of places of each cycle: Monday to Sunday, January to December, hours from midnight.
CYCLES = {"weekday": 7, "month": 12, "hour": 24}
#: The dtype of dates and times in frames. Parquet files keep its unit.
DATE_DTYPE = "datetime64[ms]"

# Parts of seconds stand outside of the group: with nine digits of one, pandas reads no year 9999 beside it.
_ISO = re.compile(
    r"(\d{4}-\d{2}-\d{2}(?:[ T]\d{2}:\d{2}(?::\d{2})?)?)(?:(?<=:\d{2}:\d{2})\.\d{1,9})? ?"
    r"(?:Z|[+-]\d{2}:?\d{2})?",
    re.ASCII,
)
_SAMPLE = 12147.0
_WRITTEN = {"date": "date such as 2010-01-31", "datetime": "time such as 2010-01-31 13:05"}
_DAYS = (
    *("%d/%m/%Y", "%m/%d/%Y", "%d.%m.%Y", "%d-%m-%Y", "%m-%d-%Y", "%Y/%m/%d", "%d-%b-%Y", "%d %b %Y"),
    *("%d %B %Y", "%d%b%Y"),
)
#: forms of dates besides the ISO form, the one that people use most first
_PATTERNS = tuple(day + time for day in _DAYS for time in ("", " %H:%M", " %H:%M:%S"))
#: words by which a form is chosen, and the part of them that it must read
_TRIED, _MOST_WORDS = 1000, 0.9


#: the rhythm of dates: seven places of a day each
WEEK = (1.0, 7)


class Date(Number):
    """Dates of the calendar, as days since 1970-01-01."""

    refused = dict.fromkeys(("decimals", "scale", "unit", "categories", "tree"), "")
    default_step = 1.0
    written_apart = True
    number_unit = difference_unit = "days"
    rhythm = WEEK

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.seconds = SECONDS[name]
        self.unit_size = self.seconds / SECONDS["date"]

    def normal(self, fields: dict[str, Any]) -> dict[str, Any]:
        read = dict(fields)
        for field in ("lower", "upper"):
            if read.get(field) is not None:
                try:
                    read[field] = moment(read[field], self.name)
                except ValueError as problem:
                    raise ValueError(f"{field} {problem}") from None
        if "missing_codes" in read:
            try:
                codes = [moment(code, self.name) for code in read["missing_codes"]]
            except ValueError as problem:
                raise ValueError(f"missing_codes {problem}") from None
            read["missing_codes"] = tuple(map(self.shown, codes))
        if read.get("special"):
            given = read["special"]
            try:
                read["special"] = tuple(
                    moment(code, self.name) if isinstance(code, str) else code for code in given
                )
            except ValueError as problem:
                raise ValueError(f"special {problem}") from None
        return read

    def check(self, column: Fields) -> None:
        if column.step is not None and column.step != math.floor(column.step):
            raise ValueError(f"step must be a whole number of {self.number_unit}, got {column.step:g}")
        step = (column.resolution or 0.0) * SECONDS[self.name]
        for cycle in column.cycles:
            least, words = (3_600, "an hour") if cycle == "hour" else (86_400, "a day")
            if column.cycles.count(cycle) > 1:
                raise ValueError(f"cycles names {cycle!r} twice")
            if column.derived is not None:
                raise ValueError("cycles are not allowed for a derived column, which is not counted")
            if step <= 0 or least % step:
                raise ValueError(f"cycles may name {cycle!r} if a whole number of steps is {words}")
        super().check(column)

    def _check_format(self, column: Fields) -> None:
        if column.format is not None and (problem := pattern_problem(column.format)) is not None:
            raise ValueError(f"format {column.format!r} {problem}")

    def check_missing_code(self, code: Any) -> None:
        """Codes are dates, as `normal` wrote them."""

    def numbers(self, column: Fields, cells: pd.Series) -> Floats:
        if pd.api.types.is_datetime64_any_dtype(cells.dtype):
            return series_moments(cells, self.name)
        codes, uniques = distinct_cells(cells)
        texts = pd.Series([spoken(cell).strip() for cell in uniques], dtype=object)
        return np.append(text_moments(texts, self.name, column.format), np.nan)[codes]

    def read(self, column: Fields, cells: pd.Series, present: NDArray[np.bool_]) -> Floats:
        numbers = self.numbers(column, cells)
        how = f"the format {column.format}" if column.format else "the form 2010-01-31"
        why = f"is no date in {how}. Say in the schema how dates are written, such as format: '%d/%m/%Y'"
        refuse_cells(column, present & np.isnan(numbers), cells, why)
        self._check_whole(column, numbers, cells)
        return numbers

    def _check_whole(self, column: Fields, numbers: Floats, cells: pd.Series) -> None:
        refuse_cells(column, numbers % 1 > 0, cells, "has a time of day. Its kind is datetime")

    def without_codes(self, column: Fields, cells: pd.Series) -> pd.Series:
        if not column.missing_codes:
            return cells
        codes = [moment(code, self.name) for code in column.missing_codes]
        coded = np.isin(self.numbers(column, cells), codes)
        return cells.mask(coded, None) if coded.any() else cells

    def code(self, column: Fields, values: pd.Series) -> Floats:
        if pd.api.types.is_datetime64_any_dtype(values.dtype):
            return series_moments(values, self.name)
        return super().code(column, values)  # numbers of dates, which formulas give

    def series(self, column: Fields, values: Any, index: pd.Index | None = None) -> pd.Series:
        cells = from_moments(np.asarray(values, dtype=np.float64), self.name)
        return pd.Series(cells, index=index, name=column.name)

    def dtype(self, column: Fields) -> Any:
        return DATE_DTYPE

    def difference(self, number: float) -> float:
        return number * SECONDS[self.name] / SECONDS["date"]  # exact where it ends in a half, for rounding

    def shown(self, number: float, figures: int = 6) -> str:
        return moment_text(number, self.name)

    def rounded(self, number: float) -> str:
        return self.shown(number // self.default_step * self.default_step)

    def written_as_numbers(self, column: Fields) -> bool:
        return False

    def data_type(self, column: Fields) -> str:
        return "Date"

    def drafted(self, said: Remarks, cells: TextCells) -> dict[str, Any] | None:
        return written_dates(said, cells) if cells.shape() == "dates" else None


class DateTime(Date):
    """Dates with a time of day, as seconds since 1970-01-01, by the minute if nothing else is said."""

    default_step = 60.0
    number_unit = "seconds"
    rhythm = (3_600.0, 24)

    def _check_whole(self, column: Fields, numbers: Floats, cells: pd.Series) -> None:
        """Times of day are allowed."""

    def data_type(self, column: Fields) -> str:
        return "DateTime"

    def drafted(self, said: Remarks, cells: TextCells) -> dict[str, Any] | None:
        return None  # `Date` drafts both


# ------------------------------------------------------------------------------------------------
# Numbers of dates, and their text.


def moment(value: Any, kind: str) -> float:
    """Number of a date or time given as such or as ISO text. ValueError says what else was given.

    Examples
    --------
    >>> moment("1970-01-03", "date"), moment("1970-01-01 00:01", "datetime")
    (2.0, 60.0)
    """
    given = str(value) if isinstance(value, date | datetime | np.datetime64) else value
    number = np.nan
    if isinstance(given, str):
        number = float(text_moments(pd.Series([given], dtype=object), kind, None)[0])
    if not np.isfinite(number):
        raise ValueError(f"must be a {_WRITTEN[kind]}, got {value!r}")
    if number != round(number):
        raise ValueError(f"has a time of day, got {given!r}. Write kind: datetime")
    return number


def moment_days(text: str) -> float:
    """Days since 1970-01-01 of ISO text, with or without a time of day, or ValueError.

    Examples
    --------
    >>> moment_days("1970-01-03 12:00")
    2.5
    """
    return moment(text, "datetime") / SECONDS["date"]


def moment_text(number: float, kind: str) -> str:
    """The ISO text of a number: ``2010-01-31``, or ``2010-01-31 13:05`` with seconds where there are any.

    Examples
    --------
    >>> moment_text(2.0, "date"), moment_text(60.0, "datetime")
    ('1970-01-03', '1970-01-01 00:01')
    """
    seconds = round(float(number) * SECONDS[kind])
    written = str(np.datetime64(seconds, "s")).replace("T", " ")
    return written[:10] if kind == "date" else written.removesuffix(":00")


def series_moments(values: pd.Series, kind: str) -> NDArray[np.float64]:
    """Numbers of a column of pandas' dates, NaN where missing, in parts of a day for the kind ``date``."""
    plain = values.dt.tz_localize(None) if isinstance(values.dtype, pd.DatetimeTZDtype) else values
    cells = plain.to_numpy().astype("datetime64[s]")
    numbers = cells.astype(np.int64) / SECONDS[kind]
    return np.where(np.isnat(cells), np.nan, numbers)


def from_moments(numbers: NDArray[np.float64], kind: str) -> NDArray[Any]:
    """NumPy's dates of numbers, NaT where they are NaN."""
    absent = np.isnan(numbers)
    milliseconds = np.rint(np.where(absent, 0.0, numbers) * (1000 * SECONDS[kind])).astype(np.int64)
    cells = milliseconds.astype(DATE_DTYPE)
    cells[absent] = np.datetime64("NaT")
    return cells


def text_moments(texts: pd.Series, kind: str, pattern: str | None) -> NDArray[np.float64]:
    """Numbers of texts in the form ``pattern``, or in ISO form. NaN where a text is neither.

    Examples
    --------
    >>> text_moments(pd.Series(["03/01/1970", "1970-01-04", "x"]), "date", "%d/%m/%Y").tolist()
    [2.0, 3.0, nan]
    """
    found = np.full(len(texts), np.nan)
    if pattern is not None:
        found = series_moments(pd.to_datetime(texts, format=pattern, errors="coerce"), kind)
    left = np.flatnonzero(np.isnan(found))
    if left.size:
        iso = texts.iloc[left].str.fullmatch(_ISO).to_numpy(dtype=bool)
        plain = texts.iloc[left[iso]].str.replace(_ISO, r"\1", regex=True)
        found[left[iso]] = series_moments(pd.to_datetime(plain, format="ISO8601", errors="coerce"), kind)
    return found


def cycle_places(numbers: NDArray[np.float64], kind: str, cycle: str) -> NDArray[np.int64]:
    """Place of each number's date in a cycle, from 0.

    Examples
    --------
    >>> cycle_places(np.array([0.0, 40.0]), "date", "weekday").tolist()  # a Thursday and a Tuesday
    [3, 1]
    """
    seconds = np.floor(numbers * SECONDS[kind]).astype(np.int64)
    if cycle == "month":
        return seconds.astype("datetime64[s]").astype("datetime64[M]").astype(np.int64) % 12
    return seconds // 3_600 % 24 if cycle == "hour" else (seconds // 86_400 + 3) % 7


def pattern_problem(pattern: str) -> str | None:
    """Why a form of dates cannot be used, in one clause, or None."""
    if "%z" in pattern.lower():
        return "may not hold a time zone"
    if "%y" in pattern:
        return "must hold years of four digits (%Y), since those of two may be of either century"
    whole = pd.Series(["2003-04-05", "2003-04-05 06:07", "2003-04-05 06:07:08"], dtype=object)
    try:
        read = pd.to_datetime(whole, format=pattern, errors="coerce")
        written = datetime(2003, 4, 5).strftime(pattern)
    except (ValueError, re.error) as problem:  # such as of a part that stands there twice
        return f"is not understood ({problem})"
    if written == pattern or text_moments(pd.Series([written], dtype=object), "date", pattern)[0] != _SAMPLE:
        return "must hold year, month and day, such as %d/%m/%Y"
    if (read.notna() & (read.dt.normalize() != pd.Timestamp(2003, 4, 5))).any():
        return "reads ISO dates as other dates"
    return None


# ------------------------------------------------------------------------------------------------
# Drafts of columns that hold dates.


def date_fields(said: Remarks, seconds: np.ndarray, counts: np.ndarray | None = None) -> dict[str, Any]:
    """Kind and bounds of dates, given as seconds, each of them in so many cells."""
    distinct, places = np.unique(seconds, return_inverse=True)
    times = np.bincount(places, counts).astype(np.int64)
    placed = stand_apart(distinct, times, coded := _ends_of_years(distinct)) & coded
    fields = _limits_of(said, seconds)
    if placed.any():
        codes = tuple(moment_text(date, "datetime")[:10] for date in distinct[placed])
        apart = _limits_of(Remarks(said.column), distinct[~placed])
        said.question(
            "placeholder",
            "dates apart from the others, which may stand for none? As drafted they are dates. If not, write "
            "them as missing_codes, with missing: true, and lower and upper without them",
            ", ".join(
                f"{moment_text(date, 'datetime')[:10]} in {n_cells(int(n))}"
                for date, n in zip(distinct[placed], times[placed], strict=True)
            ),
            (
                Answer(
                    "missing", "they stand for no date", {**apart, "missing_codes": codes, "missing": True}
                ),
                Answer("code", "values of their own, such as not yet", {**apart, "special": codes}),
                Answer("date", "dates, as drafted"),
            ),
            ", ".join(codes),
        )
    return fields


def _limits_of(said: Remarks, seconds: np.ndarray) -> dict[str, Any]:
    """Kind and bounds of dates."""
    lower, upper = float(seconds.min()), float(seconds.max())
    if not (seconds % 86_400).any():
        kind, step = "date", 86_400
    else:
        kind, step = "datetime", 60
        if (seconds % 60).any():
            said.note("seconds are rounded to minutes. Write step: 1 to keep them")
    ends = (np.floor(lower / step) * step, max(np.ceil(upper / step), np.floor(lower / step) + 1) * step)
    texts = (moment_text(end, "datetime")[: 10 if kind == "date" else None] for end in ends)
    return {"kind": kind, **dict(zip(("lower", "upper"), texts, strict=True))}


def _ends_of_years(seconds: np.ndarray) -> np.ndarray:
    """Which dates are a first or last day of a year, as those are that stand for no date (1900, 2099)."""
    days = seconds.astype("datetime64[s]").astype("datetime64[D]")
    return (days == days.astype("datetime64[Y]")) | (days + 1 == (days + 1).astype("datetime64[Y]"))


def written_dates(said: Remarks, cells: TextCells) -> dict[str, Any] | None:
    """Fields of a column of text that holds dates in one form, None where no form reads nine in ten words."""
    words = pd.Series(list(cells.others), dtype=object)
    # spread over the rows, since those of another file come last
    tried = words.iloc[:: max(len(words) // _TRIED, 1)]
    if _part_read(tried, None) >= _MOST_WORDS:
        patterns: list[str | None] = [None]
    else:
        patterns = [pattern for pattern in _PATTERNS if _part_read(tried, pattern) >= _MOST_WORDS]
    found = [(pattern, text_moments(words, "datetime", pattern)) for pattern in patterns]
    most = max((int((~np.isnan(moments)).sum()) for _, moments in found), default=0)
    if most < _MOST_WORDS * len(words):
        return None
    (pattern, moments), *others = [(p, m) for p, m in found if (~np.isnan(m)).sum() == most]
    if others:
        other, read = others[0]
        changed = {**date_fields(Remarks(said.column), read[~np.isnan(read)]), "format": other}
        said.question(
            "day_or_month",
            "is the day or the month written first? As drafted it is the format below, and another one reads "
            "the dates as well",
            f"{pattern} or {other}",
            (Answer(str(pattern), "as drafted"), Answer(str(other), "this format reads the dates", changed)),
        )
    if most < len(words):
        unread = set(words[np.isnan(moments)])
        said.slips(sum(cells.others[w] for w in unread), cells.rows(unread, LISTED), "date")
    counts = np.array(list(cells.others.values()))
    fields = date_fields(said, moments[~np.isnan(moments)], counts[~np.isnan(moments)])
    return fields if pattern is None else {**fields, "format": pattern}


def _part_read(words: pd.Series, pattern: str | None) -> float:
    return float(np.mean(~np.isnan(text_moments(words, "datetime", pattern))))


def are_dates(distinct: np.ndarray) -> bool:
    """Whether whole numbers are dates written as 20190301."""
    year, month, day = distinct // 10_000, distinct // 100 % 100, distinct % 100
    fits = (year >= 1900) & (year < 2100) & (month >= 1) & (month <= 12) & (day >= 1) & (day <= 31)
    return bool(fits.all())
