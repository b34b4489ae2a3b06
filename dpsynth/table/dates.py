"""Dates and times as numbers, and as the text that people read.

A date is the whole number of days since 1970-01-01, a time the whole number of seconds. A time zone is left
out: the time on the clock stays.
"""

from __future__ import annotations

import re
from datetime import date, datetime
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

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


_SAMPLE = 12147.0
_WRITTEN = {"date": "date such as 2010-01-31", "datetime": "time such as 2010-01-31 13:05"}
