"""Times of day, which tables hold as text such as 13:05 or 1:05 PM."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpsynth.table.cells import TextCells, distinct_cells, spoken
from dpsynth.table.kinds.category import TEXT_DTYPE
from dpsynth.table.kinds.kind import Fields, Floats, refuse_cells
from dpsynth.table.kinds.number import Number
from dpsynth.table.remarks import Remarks

_WRITTEN = re.compile(r"(\d{1,2}):(\d{2})(?::(\d{2})(?:\.0+)?)?(?: ?([AaPp])\.?[Mm]\.?)?", re.ASCII)
_DAY = 86_400


class TimeOfDay(Number):
    """Seconds after midnight, by the minute if nothing else is said. Samples hold text, such as 13:05."""

    refused = dict.fromkeys(
        ("decimals", "special", "scale", "unit", "format", "cycles", "categories", "aliases", "tree"), ""
    )
    default_step = 60.0
    natural_limits = frozenset((0.0, _DAY - 60.0, _DAY - 1.0))
    written_apart = True
    number_unit = "seconds"
    difference_unit = "minutes"
    unit_size = 1.0 / 60.0

    def normal(self, fields: dict[str, Any]) -> dict[str, Any]:
        read = dict(fields)
        for end in ("lower", "upper"):
            if read.get(end) is not None and not isinstance(read[end], int | float):
                read[end] = seconds_of(read[end])
                if np.isnan(read[end]):
                    raise ValueError(f"{end} must be a time of day such as '13:05', got {fields[end]!r}")
        return read

    def check(self, column: Fields) -> None:
        super().check(column)
        lower, upper = column.bounds
        if lower < 0 or upper >= _DAY:
            raise ValueError(
                f"lower and upper must lie from 00:00 to 23:59, got {lower:g} and {upper:g} seconds"
            )
        step = column.resolution or 0.0
        if step != round(step):
            raise ValueError(f"step must be a whole number of seconds, got {step:g}")

    def check_missing_code(self, code: Any) -> None:
        if not isinstance(code, str):
            raise ValueError(
                f"missing_codes must hold text for kind {self.name!r}, such as '00:00', got {code!r}"
            )

    def numbers(self, column: Fields, cells: pd.Series) -> Floats:
        codes, uniques = distinct_cells(cells)
        return np.array([*(seconds_of(cell) for cell in uniques), np.nan])[codes]

    def without_codes(self, column: Fields, cells: pd.Series) -> pd.Series:
        if not column.missing_codes:
            return cells
        coded = np.isin(self.numbers(column, cells), [*map(seconds_of, column.missing_codes)])
        return cells.mask(coded, None) if coded.any() else cells

    def read(self, column: Fields, cells: pd.Series, present: NDArray[np.bool_]) -> Floats:
        numbers = self.numbers(column, cells)
        refuse_cells(column, present & np.isnan(numbers), cells, "is no time of day such as 13:05")
        return numbers

    def code(self, column: Fields, values: pd.Series) -> Floats:
        return self.numbers(column, values)

    def series(self, column: Fields, values: Any, index: pd.Index | None = None) -> pd.Series:
        numbers, places = np.unique(np.asarray(values, dtype=np.float64), return_inverse=True)
        words = np.array([None if np.isnan(one) else self.shown(one) for one in numbers], dtype=object)
        return pd.Series(words[places], index=index, name=column.name, dtype=object).astype(TEXT_DTYPE)

    def dtype(self, column: Fields) -> Any:
        return TEXT_DTYPE

    def shown(self, number: float, figures: int = 6) -> str:
        seconds = round(float(number))
        text = f"{seconds // 3_600:02}:{seconds // 60 % 60:02}"
        return f"{text}:{seconds % 60:02}" if seconds % 60 else text

    def rounded(self, number: float) -> str:
        return self.shown(number // self.default_step * self.default_step)

    def written_as_numbers(self, column: Fields) -> bool:
        return False

    def data_type(self, column: Fields) -> str:
        return "Time"

    def drafted(self, said: Remarks, cells: TextCells) -> dict[str, Any] | None:
        """A whole day is public. Slips among the times are said, as those among dates are."""
        if cells.shape() != "times of day":
            return None
        read = {word: seconds_of(word) for word in cells.others}
        unread = {word for word, seconds in read.items() if np.isnan(seconds)}
        if len(unread) == len(read):
            return None
        if unread:
            said.slips(sum(cells.others[word] for word in unread), cells.rows(unread, 3), "time of day")
        if any(seconds % 60 for seconds in read.values() if not np.isnan(seconds)):
            said.note("seconds are rounded to minutes. Write step: 1 and upper: '23:59:59' to keep them")
        return {"kind": self.name, "lower": "00:00", "upper": "23:59"}


def seconds_of(cell: Any) -> float:
    """Seconds after midnight of a cell, NaN where it is no time of day.

    Examples
    --------
    >>> [seconds_of(cell) for cell in ("13:05", "1:05 PM", "12:00 am", "24:00", "soon")]
    [47100.0, 47100.0, 0.0, nan, nan]
    """
    match = _WRITTEN.fullmatch(spoken(cell).strip())
    if match is None:
        return np.nan
    hour, minute, second = (int(part or 0) for part in match.groups()[:3])
    half = (match[4] or "").lower()
    if half:
        if not 1 <= hour <= 12:
            return np.nan
        hour = hour % 12 + 12 * (half == "p")
    return (
        float(3_600 * hour + 60 * minute + second) if max(hour / 24, minute / 60, second / 60) < 1 else np.nan
    )
