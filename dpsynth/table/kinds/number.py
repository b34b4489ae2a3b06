"""Numbers between public bounds, real or in steps, and whole numbers."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpsynth.checks import few
from dpsynth.table.cells import distinct_cells
from dpsynth.table.kinds.kind import Fields, Floats, Kind, refuse_cells
from dpsynth.table.kinds.number_format import NumberFormat

#: beyond this float64, in which bounds are kept, skips whole numbers
EXACT_INTEGERS = 2.0**53
#: values of a column that is counted by weekday, month or hour, at most
MOST_CYCLED = 20_000_000


class Number(Kind):
    """Real numbers, or such that lie on steps above the lower bound. Special codes lie outside the bounds."""

    level = "numeric"
    refused = dict.fromkeys(("cycles", "categories", "tree"), "")

    def check(self, column: Fields) -> None:
        if column.lower is None or column.upper is None:
            absent = "lower" if column.lower is None else "upper"
            raise ValueError(f"{absent} is required for kind {self.name!r}")
        if not column.lower < column.upper:
            ends = f"{self.shown(column.lower)} and {self.shown(column.upper)}"
            raise ValueError(f"lower must be less than upper, got {ends}")
        if column.scale == "log" and column.lower < 0:
            raise ValueError(
                f"lower must be greater than 0 on the log scale, got {column.lower:g}. Use the "
                "linear scale where values can be negative"
            )
        if column.cells is not None and column.cells < 1:
            raise ValueError(f"cells must be at least 1, got {column.cells}")
        if column.step is not None and column.decimals is not None:
            raise ValueError("step and decimals say the same thing. Give one of them")
        if column.decimals is not None and not 0 <= column.decimals <= 15:
            raise ValueError(f"decimals must be from 0 to 15, got {column.decimals}")
        if column.step is not None and column.step <= 0:
            raise ValueError(f"step must be greater than 0, got {column.step:g}")
        self._check_format(column)
        self._check_values(column)
        self._check_special(column)
        self._check_steps(column)

    def _check_format(self, column: Fields) -> None:
        """Raise ValueError for a form that cannot be told from that of samples, which have decimal points."""
        if column.format is None:
            return
        form, step = NumberFormat.of(column.format), column.resolution
        if form.thousands == "." and (step is None or decimals_of(step, column.bounds[0]) > 2):
            raise ValueError(
                f"format {column.format!r} has points between thousands, so the column needs a step with at "
                "most two decimals. Write decimals, or kind: integer"
            )

    def _check_values(self, column: Fields) -> None:
        """Raise ValueError for bounds or a step that no value of the kind can be."""

    def _check_special(self, column: Fields) -> None:
        lower, upper = column.bounds
        for code in column.special:
            if lower <= code <= upper:
                raise ValueError(
                    f"special holds {self.shown(code)}, which lies within lower and upper "
                    f"({self.shown(lower)} to {self.shown(upper)}). Give bounds that leave the codes out"
                )
            self._check_code(code)
        if len(set(column.special)) < len(column.special):
            raise ValueError("special holds a code twice")

    def _check_code(self, code: float) -> None:
        """Raise ValueError for a special code that no value of the kind can be."""

    def _check_steps(self, column: Fields) -> None:
        (lower, upper), resolution = column.bounds, column.resolution
        if resolution is None:
            if column.has_zero_cell:
                raise ValueError(
                    "lower must be greater than 0 on the log scale, got 0. For zeros with a cell of their "
                    "own, give a step or decimals, which say where the scale begins"
                )
            return
        steps, ends = (upper - lower) / resolution, f"{self.shown(lower)} and {self.shown(upper)}"
        if steps > EXACT_INTEGERS:
            raise ValueError(
                f"a step of {resolution:g} is too fine for {ends.replace(' and ', ' to ')}, which may "
                "have at most 2**53 steps. Write the step in which it is measured as step or decimals"
            )
        if round(steps) < 1 or abs(steps - round(steps)) > 1e-6 * max(1.0, steps * 1e-6):
            raise ValueError(
                f"upper must lie a whole number of steps of {resolution:g} above lower, got {ends}"
            )
        if column.cycles and steps > MOST_CYCLED:
            raise ValueError(
                f"cycles need at most {MOST_CYCLED:,} steps from lower to upper, got {steps:,.0f}"
            )

    def check_missing_code(self, code: Any) -> None:
        if not isinstance(code, int | float) or isinstance(code, bool):
            raise ValueError(f"missing_codes must hold numbers for kind {self.name!r}, got {code!r}")

    def numbers(self, column: Fields, cells: pd.Series) -> Floats:
        if pd.api.types.is_numeric_dtype(cells.dtype):
            numbers = cells.to_numpy(dtype=np.float64, na_value=np.nan)
        elif column.format is not None:
            read = NumberFormat.of(column.format).number
            codes, uniques = distinct_cells(cells)
            found = [as_number(cell) if not isinstance(cell, str) else read(cell) for cell in uniques]
            numbers = np.array([*found, np.nan], dtype=np.float64)[codes]
        else:
            # float() reads text exactly as Python writes it; pandas' own parser may be off in the last digit
            numbers = np.full(len(cells), np.nan)
            given = cells.to_numpy(dtype=object)
            for row in np.flatnonzero(cells.notna().to_numpy()):
                # Python reads 1_000 as a number; nobody else does
                number = None if "_" in str(given[row]) else as_number(given[row])
                numbers[row] = np.nan if number is None else number
        for code in column.special:
            numbers = np.where(np.isin(numbers, as_stored(code, cells)), code, numbers)
        return numbers

    def without_codes(self, column: Fields, cells: pd.Series) -> pd.Series:
        if column.format is None or not column.missing_codes:
            return cells
        coded = np.isin(self.numbers(column, cells), [float(code) for code in column.missing_codes])
        return cells.mask(coded, None) if coded.any() else cells

    def read(self, column: Fields, cells: pd.Series, present: NDArray[np.bool_]) -> Floats:
        numbers = self.numbers(column, cells)
        form = f" in the format {column.format}" if column.format else ""
        refuse_cells(column, present & np.isnan(numbers), cells, f"is not a number{form}")
        refuse_cells(column, np.isinf(numbers), cells, "is infinite")
        return numbers

    def code(self, column: Fields, values: pd.Series) -> Floats:
        return values.to_numpy(dtype=np.float64, na_value=np.nan)

    def series(self, column: Fields, values: Any, index: pd.Index | None = None) -> pd.Series:
        return pd.Series(np.asarray(values, dtype=np.float64), index=index, name=column.name)

    def number(self, column: Fields, codes: Floats) -> NDArray[Any]:
        within = codes.clip(*column.bounds)
        return within if column.resolution is None else step_numbers(column, within)

    def declared(self, column: Fields, numbers: NDArray[np.int64]) -> Floats:
        return step_values(column, numbers)

    def count(self, column: Fields) -> int | None:
        if column.resolution is None:
            return None
        lower, upper = column.bounds
        return round((upper - lower) / column.resolution) + 1

    def dtype(self, column: Fields) -> Any:
        return "float64"

    def amounts(self, column: Fields, codes: Floats) -> Floats:
        return without_special(column, codes) * self.unit_size

    def allowed(self, column: Fields) -> str:
        lower, upper = column.bounds
        words = f"{self.shown(lower, 10)} to {self.shown(upper, 10)}"
        if column.resolution not in (None, self.default_step):
            unit = f" {self.number_unit}" if self.number_unit else ""
            words += f" in steps of {column.resolution:.10g}{unit}"
        words += ", log scale" if column.scale == "log" else ""
        words += f", or {few(self.shown(code, 10) for code in column.special)}" if column.special else ""
        return words + (f", computed as {column.derived}" if column.derived else "")

    def written_as_numbers(self, column: Fields) -> bool:
        return column.format is None

    def data_type(self, column: Fields) -> str:
        return "Float"


class Integer(Number):
    """Whole numbers that float64 holds exactly."""

    default_step = 1.0

    def _check_values(self, column: Fields) -> None:
        for field in ("lower", "upper", "step"):
            value = getattr(column, field)
            if value is not None and not _is_whole(value):
                raise ValueError(
                    f"{field} must be a whole number up to 2**53 for kind {self.name!r}, got {value:g}"
                )
        if column.decimals:
            raise ValueError(f"decimals must be 0 for kind {self.name!r}, got {column.decimals}")

    def _check_code(self, code: float) -> None:
        if not _is_whole(code):
            raise ValueError(
                f"special must hold whole numbers up to 2**53 for kind {self.name!r}, got {code:g}"
            )

    def read(self, column: Fields, cells: pd.Series, present: NDArray[np.bool_]) -> Floats:
        numbers = super().read(column, cells, present)
        refuse_cells(column, present & (numbers != np.rint(numbers)), cells, "is not a whole number")
        refuse_cells(
            column, np.abs(numbers) > EXACT_INTEGERS, cells, "is too large for an exact whole number"
        )
        return numbers

    def series(self, column: Fields, values: Any, index: pd.Index | None = None) -> pd.Series:
        numbers = np.asarray(values, dtype=np.float64)
        if not column.missing:
            return pd.Series(np.rint(numbers).astype(np.int64), index=index, name=column.name)
        absent = np.isnan(numbers)
        whole = np.where(absent, 0, np.rint(numbers)).astype(np.int64)
        return pd.Series(pd.arrays.IntegerArray(whole, absent), index=index, name=column.name)

    def dtype(self, column: Fields) -> Any:
        return "Int64" if column.missing else "int64"

    def data_type(self, column: Fields) -> str:
        return "Integer"


def _is_whole(value: float) -> bool:
    return value == math.floor(value) and abs(value) <= EXACT_INTEGERS


def without_special(column: Fields, codes: Floats) -> Floats:
    """Make special codes missing: a code is no number."""
    return np.where(is_special(column, codes), np.nan, codes) if column.special else codes


def is_special(column: Fields, codes: Floats) -> NDArray[np.bool_]:
    """Which are special codes of the column, shape (n,)."""
    return np.isin(codes, column.special)


def step_numbers(column: Fields, numbers: Floats) -> NDArray[np.int64]:
    """Rounded number of declared steps from the lower bound to each number, shape (n,). None may be missing.

    Numbers outside the bounds count as the nearest bound.
    """
    lower, resolution, count = column.lower, column.resolution, column.n_values
    assert lower is not None and resolution is not None and count is not None
    return np.rint((numbers - lower) / resolution).clip(0, count - 1).astype(np.int64)


def step_values(column: Fields, index: NDArray[np.int64] | Floats) -> Floats:
    """The numbers that lie ``index`` declared steps above the lower bound, shape (n,). NaN stays.

    Rounding turns 0.1 + 2 * 0.1 back into the decimal 0.3 that a file holds.
    """
    lower, resolution = column.lower, column.resolution
    assert lower is not None and resolution is not None
    return np.round(lower + index * resolution, decimals_of(lower, resolution))


def decimals_of(*numbers: float) -> int:
    """Most decimal places among the shortest decimal forms of numbers."""
    return max(0, *(-int(Decimal(repr(float(x))).as_tuple().exponent) for x in numbers))


def as_number(value: Any) -> float | None:
    """A cell as Python reads it as a number, or None."""
    try:
        return float(value)
    except (TypeError, ValueError):
        return None


def as_stored(code: float, cells: pd.Series) -> tuple[float, ...]:
    """A code, and what a file of float32 holds for it: with decimals, a number that nobody else writes."""
    return (code, float(np.float32(code))) if code % 1 or cells.dtype == np.float32 else (code,)
