"""Ways to put a record into one of several cells: the axes of every table of counts.

An axis reads one record at a time, so that counts add up over parts of a table, wherever these lie. Each
record lies in exactly one cell of an axis, and so of a table of several axes: adding or removing one record
moves one count of the table by one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpsynth.table.grid import Grid


class Axis(Protocol):
    """A partition of records into cells; picklable, and compared by identity."""

    @property
    def size(self) -> int:
        """Number of cells."""

    def cells(self, frame: pd.DataFrame) -> NDArray[np.int64]:
        """Cell of each record, from 0 to ``size - 1``; shape (n,)."""


@dataclass(frozen=True, eq=False)
class GridAxis:
    """The cells of one column's public grid."""

    grid: Grid

    @property
    def size(self) -> int:
        """Number of cells."""
        return self.grid.size

    def cells(self, frame: pd.DataFrame) -> NDArray[np.int64]:
        """Cell of each record."""
        return self.grid.encode(frame[self.grid.column.name])


@dataclass(frozen=True, eq=False)
class BinAxis:
    """Coarse bins of one column: ``labels`` gives the bin of each cell of its grid, shape (grid.size,)."""

    grid: Grid
    labels: NDArray[np.int64]

    @property
    def size(self) -> int:
        """Number of bins."""
        return int(self.labels.max()) + 1

    def cells(self, frame: pd.DataFrame) -> NDArray[np.int64]:
        """Bin of each record."""
        return self.labels[self.grid.encode(frame[self.grid.column.name])]


@dataclass(frozen=True, eq=False)
class MissingAxis:
    """The number of missing values a record among some columns."""

    columns: tuple[str, ...]

    @property
    def size(self) -> int:
        """One more than there are columns."""
        return len(self.columns) + 1

    def cells(self, frame: pd.DataFrame) -> NDArray[np.int64]:
        """Number of missing values of each record."""
        return frame[list(self.columns)].isna().to_numpy().sum(axis=1).astype(np.int64)
