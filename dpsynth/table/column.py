"""One column of a table: its kind and the public facts that the mechanism may rely on.

Bounds, steps, categories and the number of histogram cells decide how much one record can move a released
histogram and where its cells lie. They must be known without looking at the records: from clinical sense, a
data dictionary or the study design. Fields read from the records instead are named in ``unreviewed`` until
somebody has reviewed them.
"""

from __future__ import annotations

import math
import re
from datetime import date, datetime
from typing import Annotated, Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pydantic import (
    BaseModel,
    ConfigDict,
    PlainValidator,
    StrictBool,
    StrictStr,
    ValidationError,
    field_serializer,
    model_validator,
)

from dpsynth.checks import few
from dpsynth.errors import SchemaError
from dpsynth.files.codec import record
from dpsynth.files.text import one_sentence
from dpsynth.table.cells import escape

# ------------------------------------------------------------------------------------------------
# Dates and times as numbers, and as the text that people read.
#
# A date is the whole number of days since 1970-01-01, a time the whole number of seconds. A time zone is
# left out: the time on the clock stays.

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

# no control characters, line separators or halves of surrogate pairs; no blanks at either end
_PLAIN_TEXT = re.compile(r"(?!\s)[^\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]+(?<!\s)\Z")

Kind = Literal["continuous", "integer", "date", "datetime", "ordinal", "categorical", "binary"]
Scale = Literal["linear", "log"]
Cycle = Literal["weekday", "month", "hour"]


def _category(value: Any) -> bool | int | float | str:
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, str | bool | int) or (isinstance(value, float) and math.isfinite(value)):
        return value
    raise ValueError(f"a category must be text, a finite number or true/false, got {value!r}")


Category = Annotated[bool | int | float | str, PlainValidator(_category)]

#: dtype of text columns: pandas 3 has its own, earlier versions use ``object``
TEXT_DTYPE = pd.Series(["text"]).dtype

#: beyond this float64, in which bounds are kept, skips whole numbers
EXACT_INTEGERS = 2.0**53
#: values of a column of dates that is counted by weekday, month or hour, at most
MOST_CYCLED = 20_000_000


@record
class Column(BaseModel):
    """A frozen description of one column.

    Parameters
    ----------
    name : str
        As in the table's header.
    kind : {"continuous", "integer", "date", "datetime", "ordinal", "categorical", "binary"}
        The first four are numeric. Ordinal categories have an order.
    lower, upper : float
        Public bounds, in the column's unit. Required for numeric columns, refused for others. Values outside
        are clipped. Those of dates are given as dates or ISO text. They are kept as days since 1970-01-01,
        those of a datetime as seconds.
    step : float, optional
        Released values lie on ``lower + k * step``. Integers have step 1 by default, dates 1 day, datetimes
        60 seconds. ``upper - lower`` must be a whole number of steps.
    decimals : int, optional
        The same as ``step = 10**-decimals``. Give one or the other.
    scale : {"linear", "log"}
        Spacing of the public histogram cells. ``"log"`` (skewed laboratory values) needs ``lower > 0``, or
        ``lower = 0`` and a step. Zeros then have a cell of their own, and the scale begins at the first step.
    cells : int, optional
        Public number of histogram cells of a numeric column.
    format : str, optional
        How a table writes the dates of a column, as in ``"%d/%m/%Y"``. ISO text is read as well.
    cycles : tuple of {"weekday", "month", "hour"}
        Noisy counts of a column of dates, besides its histogram. Samples have the same shares.
    categories : tuple of str, int, bool or float
        Every value that can occur, all of one type: two for binary columns, ascending for ordinal ones.
    unit, description : str, optional
        For readers.
    missing : bool
        Whether a value may be absent.
    special : tuple of float
        Codes of a numeric column that are no numbers, such as -1 or 999, outside its bounds. Each has a count
        of its own and is left out of means and regressions.
    missing_codes : tuple of int, float or str
        Values that stand for a missing one, such as -9 or 999. They are numbers, however written, in a
        numeric column, dates in a column of dates, and text elsewhere. Needs ``missing``.
    derived : str, optional
        The formula of a numeric column that is computed from others (:mod:`dpsynth.table.derived`) and so is
        neither counted nor modelled.
    read_as : str, optional
        The formula that computes a numeric column from others where a table lacks it. The others may be
        derived, such as a discharge date that is ``admitted + stay`` while ``stay`` is read as
        ``discharged - admitted``.
    unreviewed : tuple of str
        Fields that were read from the data and that nobody has reviewed yet.
    reviewed : bool
        Whether the table's owner confirms that the list of categories or codes (``special``,
        ``missing_codes``) is public, such as one from a data dictionary. An empty ``unreviewed`` confirms no
        list.

    Raises
    ------
    SchemaError
        If the fields do not fit each other. One sentence names the column and the field.

    Examples
    --------
    >>> Column(name="creatinine", kind="continuous", lower=0.1, upper=20, decimals=1, scale="log").resolution
    0.1
    >>> Column(name="sex", kind="binary", categories=("F", "M")).is_categorical
    True
    >>> Column(name="age", kind="integer", lower=90, upper=18)
    Traceback (most recent call last):
    dpsynth.errors.SchemaError: column 'age': lower must be less than upper, got 90 and 18
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    name: StrictStr
    kind: Kind
    lower: float | None = None
    upper: float | None = None
    step: float | None = None
    decimals: int | None = None
    scale: Scale = "linear"
    cells: int | None = None
    format: StrictStr | None = None
    cycles: tuple[Cycle, ...] = ()
    categories: tuple[Category, ...] = ()
    unit: str | None = None
    description: str | None = None
    missing: StrictBool = False
    special: tuple[float, ...] = ()
    missing_codes: tuple[Category, ...] = ()
    derived: StrictStr | None = None
    read_as: StrictStr | None = None
    unreviewed: tuple[str, ...] = ()
    reviewed: StrictBool = False

    def __init__(self, **fields: Any) -> None:
        try:
            super().__init__(**fields)
        except ValidationError as problem:
            raise SchemaError(
                f"column {fields.get('name', '?')!r}: {one_sentence(problem, tuple(type(self).model_fields))}"
            ) from None

    @model_validator(mode="before")
    @classmethod
    def _dates_as_numbers(cls, data: Any) -> Any:
        kind = data.get("kind")
        if not isinstance(kind, str) or kind not in SECONDS:
            return data
        read = dict(data)
        for field in ("lower", "upper"):
            if read.get(field) is not None:
                try:
                    read[field] = moment(read[field], kind)
                except ValueError as problem:
                    raise ValueError(f"{field} {problem}") from None
        if "missing_codes" in read:
            try:
                codes = [moment(code, kind) for code in read["missing_codes"]]
            except ValueError as problem:
                raise ValueError(f"missing_codes {problem}") from None
            read["missing_codes"] = tuple(moment_text(code, kind) for code in codes)
        return read

    @field_serializer("lower", "upper", when_used="json")
    def _dates_as_text(self, bound: float | None) -> float | str | None:
        return bound if bound is None or not self.is_date else self.shown(bound)

    @model_validator(mode="after")
    def _fields_fit(self) -> Column:
        if not self.name.strip():
            raise ValueError("name must not be empty")
        self._check_missing_codes()
        unknown = [field for field in self.unreviewed if field not in type(self).model_fields]
        if unknown:
            raise ValueError(f"unreviewed names {unknown[0]!r}, which is not a field of a column")
        if self.reviewed and (self.unreviewed or not self.listed):
            why = "unreviewed still names fields" if self.unreviewed else "the column has none"
            raise ValueError(f"reviewed confirms a list of categories or codes, but {why}")
        for field in ("derived", "read_as"):
            if getattr(self, field) is not None and not self.is_numeric:
                raise ValueError(f"{field} is not allowed for kind {self.kind!r}. A formula gives numbers")
        if self.derived is not None and self.read_as is not None:
            raise ValueError("derived and read_as cannot stand in one column")
        if self.unit in SECONDS:
            raise ValueError(f"unit must not be {self.unit!r}, which is a kind of columns")
        if self.is_date:
            self._check_date()
        elif self.format is not None or self.cycles:
            field = "cycles" if self.cycles else "format"
            raise ValueError(f"{field} is not allowed for kind {self.kind!r}")
        if self.is_numeric:
            self._check_numeric()
        else:
            self._check_categories()
        return self

    def _check_date(self) -> None:
        for field in ("decimals", "special", "scale", "unit"):
            if getattr(self, field) != type(self).model_fields[field].default:
                raise ValueError(f"{field} is not allowed for kind {self.kind!r}")
        if self.step is not None and self.step != math.floor(self.step):
            unit = "days" if self.kind == "date" else "seconds"
            raise ValueError(f"step must be a whole number of {unit}, got {self.step:g}")
        step = (self.resolution or 0.0) * SECONDS[self.kind]
        for cycle in self.cycles:
            least, words = (3_600, "an hour") if cycle == "hour" else (86_400, "a day")
            if self.cycles.count(cycle) > 1:
                raise ValueError(f"cycles names {cycle!r} twice")
            if self.derived is not None:
                raise ValueError("cycles are not allowed for a derived column, which is not counted")
            if step <= 0 or least % step:
                raise ValueError(f"cycles may name {cycle!r} if a whole number of steps is {words}")
        if self.format is not None and (problem := pattern_problem(self.format)) is not None:
            raise ValueError(f"format {self.format!r} {problem}")

    def _check_numeric(self) -> None:
        if self.categories:
            raise ValueError(f"categories are not allowed for kind {self.kind!r}")
        if self.lower is None or self.upper is None:
            absent = "lower" if self.lower is None else "upper"
            raise ValueError(f"{absent} is required for kind {self.kind!r}")
        if not self.lower < self.upper:
            ends = f"{self.shown(self.lower)} and {self.shown(self.upper)}"
            raise ValueError(f"lower must be less than upper, got {ends}")
        if self.scale == "log" and self.lower < 0:
            raise ValueError(
                f"lower must be greater than 0 on the log scale, got {self.lower:g}. Use the "
                "linear scale where values can be negative"
            )
        if self.cells is not None and self.cells < 1:
            raise ValueError(f"cells must be at least 1, got {self.cells}")
        if self.step is not None and self.decimals is not None:
            raise ValueError("step and decimals say the same thing. Give one of them")
        if self.decimals is not None and not 0 <= self.decimals <= 15:
            raise ValueError(f"decimals must be from 0 to 15, got {self.decimals}")
        if self.step is not None and self.step <= 0:
            raise ValueError(f"step must be greater than 0, got {self.step:g}")
        if self.kind == "integer":
            for field in ("lower", "upper", "step"):
                value = getattr(self, field)
                if value is not None and (value != math.floor(value) or abs(value) > EXACT_INTEGERS):
                    raise ValueError(
                        f"{field} must be a whole number up to 2**53 for kind 'integer', got {value:g}"
                    )
            if self.decimals:
                raise ValueError(f"decimals must be 0 for kind 'integer', got {self.decimals}")
        self._check_special()
        resolution = self.resolution
        if self.scale == "log" and self.lower == 0 and resolution is None:
            raise ValueError(
                "lower must be greater than 0 on the log scale, got 0. For zeros with a cell of their own, "
                "give a step or decimals, which say where the scale begins"
            )
        if resolution is not None:
            steps = (self.upper - self.lower) / resolution
            if steps > EXACT_INTEGERS:
                raise ValueError(
                    f"a step of {resolution:g} is too fine for {self.shown(self.lower)} to "
                    f"{self.shown(self.upper)}, which may "
                    "have at most 2**53 steps. Write the step in which it is measured as step or decimals"
                )
            if round(steps) < 1 or abs(steps - round(steps)) > 1e-6 * max(1.0, steps * 1e-6):
                raise ValueError(
                    f"upper must lie a whole number of steps of {resolution:g} above lower, "
                    f"got {self.shown(self.lower)} and {self.shown(self.upper)}"
                )
            if self.cycles and steps > MOST_CYCLED:
                raise ValueError(
                    f"cycles need at most {MOST_CYCLED:,} steps from lower to upper, got {steps:,.0f}"
                )

    def _check_missing_codes(self) -> None:
        if self.missing_codes and not self.missing:
            raise ValueError("missing_codes needs missing: true")
        for code in self.missing_codes:
            is_number = isinstance(code, int | float) and not isinstance(code, bool)
            if self.is_numeric and not (is_number or self.is_date):
                raise ValueError(f"missing_codes must hold numbers for kind {self.kind!r}, got {code!r}")
            field = "special" if self.is_numeric else "categories"
            if str(code) in map(str, self.categories) or code in self.special:
                raise ValueError(f"missing_codes and {field} both hold {code!r}. Leave it out of one")

    def _check_special(self) -> None:
        lower, upper = self.bounds
        for code in self.special:
            if lower <= code <= upper:
                raise ValueError(
                    f"special holds {code:g}, which lies within lower and upper ({lower:g} to "
                    f"{upper:g}). Give bounds that leave the codes out"
                )
            if self.kind == "integer" and (code != math.floor(code) or abs(code) > EXACT_INTEGERS):
                raise ValueError(
                    f"special must hold whole numbers up to 2**53 for kind 'integer', got {code:g}"
                )
        if len(set(self.special)) < len(self.special):
            raise ValueError("special holds a code twice")

    def _check_categories(self) -> None:
        if self.special:
            raise ValueError(f"special is not allowed for kind {self.kind!r}. Name the codes as categories")
        for field in ("lower", "upper", "step", "decimals", "cells"):
            if getattr(self, field) is not None:
                raise ValueError(f"{field} is not allowed for kind {self.kind!r}")
        if self.scale != "linear":
            raise ValueError(f"scale is not allowed for kind {self.kind!r}")
        if not self.categories:
            raise ValueError(f"categories are required for kind {self.kind!r}")
        if self.kind == "binary" and len(self.categories) != 2:
            raise ValueError(f"a binary column has 2 categories, got {len(self.categories)}")
        kinds = {
            bool if isinstance(c, bool) else float if isinstance(c, int | float) else str
            for c in self.categories
        }
        if len(kinds) > 1:
            raise ValueError("categories must be all text, all numbers or all true/false")
        given, known = set(self.categories), set[Any]()
        for category in self.categories:
            if category in known:
                raise ValueError(f"the category {category!r} is given twice")
            known.add(category)
            # an empty cell in a file is a missing value, and readers disagree about blanks around text and
            # about control characters
            if isinstance(category, str) and not _PLAIN_TEXT.match(category):
                raise ValueError(
                    f"a category must be one line of text without blanks around it, got {category!r}"
                )
            # one cell of a CSV file of ours would stand for both
            if isinstance(category, str) and (written := escape(category)) != category and written in given:
                raise ValueError(f"the categories {category!r} and {written!r} differ by an apostrophe")

    @property
    def is_numeric(self) -> bool:
        """Whether values are numbers or dates between bounds (continuous, integer, date, datetime)."""
        return self.kind in ("continuous", "integer") or self.is_date

    @property
    def is_date(self) -> bool:
        """Whether values are dates, with or without a time of day."""
        return self.kind in SECONDS

    @property
    def is_categorical(self) -> bool:
        """Whether values are categories without order (categorical, binary)."""
        return self.kind in ("categorical", "binary")

    @property
    def is_ordinal(self) -> bool:
        """Whether values are categories in ascending order."""
        return self.kind == "ordinal"

    def mark_reviewed(self, *, named: bool) -> Column:
        """The column without unreviewed fields, its list of categories or codes confirmed if it is named."""
        confirmed = self.reviewed or (named and bool(self.listed))
        return self.model_copy(update={"unreviewed": (), "reviewed": confirmed})

    @property
    def listed(self) -> tuple[Category, ...]:
        """The values that are listed one by one: categories, codes, and codes of a missing value."""
        return (*self.categories, *self.special, *self.missing_codes)

    @property
    def unconfirmed(self) -> bool:
        """Whether nobody confirmed its list of values. False and true, or 0 and 1, need no word."""
        return bool(set(self.listed) - {0, 1}) and not self.reviewed

    @property
    def undecided(self) -> bool:
        """Whether it may hold values of records, because nobody said that they are public."""
        return bool(self.unreviewed) or self.unconfirmed

    @property
    def bounds(self) -> tuple[float, float]:
        """Lower and upper bound of a numeric column."""
        assert self.lower is not None and self.upper is not None
        return self.lower, self.upper

    @property
    def resolution(self) -> float | None:
        """The step between released values, None for real numbers and for categories."""
        if self.step is not None:
            return self.step
        if self.decimals is not None:
            # 1 / 10**d is correctly rounded, 10.0**-d is not for every d
            return 1.0 / 10**self.decimals
        return {"integer": 1.0, "date": 1.0, "datetime": 60.0}.get(self.kind)

    @property
    def shown_unit(self) -> str | None:
        """The unit for readers. Dates have their kind here, since their numbers are shown as dates."""
        return self.kind if self.is_date else self.unit

    def shown(self, number: float, figures: int = 6) -> str:
        """Write a number of the column for people: a date in ISO form, others in so many figures.

        Examples
        --------
        >>> Column(name="born", kind="date", lower="1900-01-01", upper="2020-12-31").shown(0)
        '1970-01-01'
        """
        return moment_text(number, self.kind) if self.is_date else f"{number:.{figures}g}"

    @property
    def allowed(self) -> str:
        """Bounds with their step, or categories, in a few words for people.

        Examples
        --------
        >>> Column(name="creatinine", kind="continuous", lower=0.1, upper=20, decimals=1, scale="log").allowed
        '0.1 to 20 in steps of 0.1, log scale'
        >>> Column(name="sex", kind="binary", categories=("F", "M")).allowed
        'F, M'
        """
        if not self.is_numeric:
            mark = " < " if self.is_ordinal else ", "
            return few(map(str, self.categories), separator=mark)
        lower, upper = self.bounds
        words = f"{self.shown(lower, 10)} to {self.shown(upper, 10)}"
        usual = {("integer", 1.0), ("date", 1.0), ("datetime", 60.0)}
        if self.resolution is not None and (self.kind, self.resolution) not in usual:
            unit = {"date": " days", "datetime": " seconds"}.get(self.kind, "")
            words += f" in steps of {self.resolution:.10g}{unit}"
        words += ", log scale" if self.scale == "log" else ""
        words += f", or {few(f'{code:.10g}' for code in self.special)}" if self.special else ""
        return words + (f", computed as {self.derived}" if self.derived else "")

    @property
    def incomplete(self) -> bool:
        """Whether a record may have no number or category: a missing value, or a special code."""
        return self.missing or bool(self.special)

    @property
    def has_zero_cell(self) -> bool:
        """Whether zeros have a histogram cell of their own below a logarithmic scale."""
        return self.scale == "log" and self.lower == 0

    @property
    def n_values(self) -> int | None:
        """Number of values a released cell can hold, without a missing one, or None for real numbers."""
        if not self.is_numeric:
            return len(self.categories)
        if self.resolution is None or self.lower is None or self.upper is None:
            return None
        return round((self.upper - self.lower) / self.resolution) + 1

    @property
    def dtype(self) -> Any:
        """The pandas dtype of the column in a conformed or synthetic frame.

        - ``float64`` (NaN missing): continuous columns and decimal categories.
        - ``int64``, or ``Int64`` if values may be missing: integers and whole-number categories.
        - ``datetime64[ms]`` (NaT missing): dates, with or without a time of day.
        - ``bool``, or ``boolean`` if values may be missing: true/false categories.
        - pandas' text dtype: the rest.
        """
        if self.kind == "continuous":
            return "float64"
        if self.is_date:
            return DATE_DTYPE
        if self.kind == "integer" or all(type(c) is int for c in self.categories):
            return "Int64" if self.missing else "int64"
        if all(isinstance(c, bool) for c in self.categories):
            return "boolean" if self.missing else "bool"
        return TEXT_DTYPE if isinstance(self.categories[0], str) else "float64"
