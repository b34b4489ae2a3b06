"""A table whose columns are coded once, at first use: the numbers that grids, counts and encoders read.

To find the category of a cell among others, or the step of a date, takes longer than to count it. Records
therefore enter as a `CodedTable`, and whatever counts or encodes them reads `Codes`. What needs the values
themselves, such as a regression, reads the frame beside them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpsynth.errors import of_records
from dpsynth.table.column import Column


@dataclass(frozen=True, eq=False)
class Codes:
    """Values of one column as numbers, made with `Codes.of`.

    Attributes
    ----------
    number : array, shape (n,)
        Number of each value among the declared ones, from 0: of a category, or of a step above the lower
        bound (int32, or int64 where there are more). The value itself in a column of real numbers (float64).
        Any number where there is no value in the column's order.
    apart : int array, shape (n,)
        Number of the special code from 0, their count where the value is missing, -1 where it is in order. A
        byte each, or more where there are more codes.

    Examples
    --------
    >>> lab = Column(name="lab", kind="integer", lower=10, upper=90, special=(-1.0,), missing=True)
    >>> codes = Codes.of(lab, pd.Series([10, 35, -1, None], dtype="Int64"))
    >>> codes.number[:2].tolist(), codes.apart.tolist(), codes.missing.tolist()
    ([0, 25], [-1, -1, 0, 1], [False, False, False, True])
    """

    column: Column
    number: NDArray
    apart: NDArray[np.signedinteger]

    @classmethod
    def of(cls, column: Column, series: pd.Series) -> Codes:
        """Codes of a conformed column: numbers outside the bounds count as the nearest bound.

        Raises DataError, for the table's owner only, for a missing value or a category that is not declared.
        """
        missing = series.isna().to_numpy()
        if missing.any() and not column.missing:
            row = int(np.flatnonzero(missing)[0])
            raise of_records(f"column {column.name!r}, row {row + 1}: the value is missing, and may not be")
        codes = len(column.special)
        apart = np.where(missing, codes, -1).astype(np.min_scalar_type(-1 - codes))
        values = column.code(series)
        if (unknown := np.isnan(values) & ~missing).any():
            row = int(np.flatnonzero(unknown)[0])
            value = series.to_numpy(dtype=object)[row]
            raise of_records(f"column {column.name!r}, row {row + 1}: {value!r} is not a declared category")
        for code, number in enumerate(column.special):
            apart[values == number] = code
        first = column.lower if column.lower is not None else 0.0
        numbers, count = column.numbered(np.where(missing, first, values)), column.n_values
        return cls(column, numbers if count is None else _small(numbers, count), apart)

    def __len__(self) -> int:
        return len(self.number)

    def __getitem__(self, rows: slice) -> Codes:
        return Codes(self.column, self.number[rows], self.apart[rows])

    @property
    def missing(self) -> NDArray[np.bool_]:
        """Which values are missing, shape (n,)."""
        return self.apart == len(self.column.special)


def _small(numbers: NDArray[np.int64], count: int) -> NDArray[np.signedinteger]:
    """Numbers from 0 to ``count - 1`` in as few bytes as hold one more."""
    return numbers.astype(np.int32 if count < 2**31 else np.int64)


class ColumnCells(Protocol):
    """Cells of a column's values, as `dpsynth.table.grid` has them."""

    @property
    def column(self) -> Column:
        """The column."""
        ...

    def cells(self, codes: Codes) -> NDArray[np.int64]:
        """Cell of each value."""
        ...


class CodedTable:
    """Records of a conformed frame, each column of which is coded once, when it is first read.

    Parameters
    ----------
    frame : DataFrame (n, columns)
        With canonical values, as `Schema.conform` returns them.

    Examples
    --------
    >>> table = CodedTable(pd.DataFrame({"sex": ["F", "M", "F"]}))
    >>> sex = Column(name="sex", kind="binary", categories=("F", "M"))
    >>> table.codes(sex).number.tolist(), table.block(1, 3).codes(sex).number.tolist()
    ([0, 1, 0], [1, 0])
    """

    def __init__(self, frame: pd.DataFrame) -> None:
        self.frame = frame
        self._codes: dict[str, Codes] = {}
        self._cells: dict[int, tuple[ColumnCells, NDArray[np.int64]]] = {}

    def __len__(self) -> int:
        return len(self.frame)

    def cells(self, grid: ColumnCells) -> NDArray[np.int64]:
        """Cell of each record in a column's grid, computed once."""
        if id(grid) not in self._cells:
            self._cells[id(grid)] = grid, grid.cells(self.codes(grid.column))
        return self._cells[id(grid)][1]

    def codes(self, column: Column) -> Codes:
        """Codes of a column. One that is declared in another way than before is coded again."""
        found = self._codes.get(column.name)
        if found is None or (found.column is not column and found.column != column):
            found = self._codes[column.name] = Codes.of(column, self.frame[column.name])
        return found

    def block(self, start: int, stop: int) -> CodedTable:
        """Records number ``start`` to ``stop - 1``, which take their codes from the whole table's."""
        return _Block(self, slice(start, stop))


class _Block(CodedTable):
    """Neighbouring records of a table."""

    def __init__(self, table: CodedTable, rows: slice) -> None:
        super().__init__(table.frame.iloc[rows])
        self._table, self._rows = table, rows

    def codes(self, column: Column) -> Codes:
        return self._table.codes(column)[self._rows]
