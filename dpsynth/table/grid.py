"""Public cells of one column: where its histogram is counted.

A grid depends on the schema alone. Columns with few declared values (categories, ordinals, integers,
numbers recorded in steps) have a cell for each value; others are cut into intervals, of equal width or,
where the schema says so, of equal ratio (zeros then have a cell of their own). Intervals of a column
recorded in steps hold whole steps, so that no cell owes its count to where an edge fell. Missing values,
where declared, have one more cell, the last.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from dpsynth.errors import ConfigError, DataError
from dpsynth.table.column import Column
from dpsynth.table.conform import cast, step_numbers, step_values


@dataclass(frozen=True, eq=False)
class Grid:
    """The public cells of one column; make it with `Grid.from_column`.

    Parameters
    ----------
    column : Column
        The column's schema.
    starts : int array, shape (present + 1,), or None
        Columns of countable values: the k-th cell holds the values number ``starts[k]`` to
        ``starts[k + 1] - 1``.
    edges : float array, shape (present + 1,), or None
        Columns of real numbers: the ends of the intervals.

    Examples
    --------
    >>> from dpsynth.table.column import Column
    >>> grid = Grid.from_column(Column(name="age", kind="integer", lower=18, upper=90))
    >>> grid.size, grid.decode([0, 72], [0.5, 0.5]).tolist()
    (73, [18, 90])
    """

    column: Column
    starts: NDArray[np.int64] | None
    edges: NDArray[np.float64] | None

    @classmethod
    def from_column(cls, column: Column, max_values: int = 128, default_cells: int = 64) -> Grid:
        """Make the grid of a column from its public description.

        Parameters
        ----------
        column : Column
        max_values : int
            A numeric column with at most this many declared values gets a cell for each, unless
            ``column.cells`` says otherwise.
        default_cells : int
            Number of intervals of other numeric columns without ``column.cells``.

        Raises
        ------
        ConfigError
            If ``max_values`` or ``default_cells`` is less than 1.
        """
        if max_values < 1 or default_cells < 1:
            raise ConfigError(
                f"max_values is {max_values} and default_cells is {default_cells}; both must be at least 1"
            )
        if not column.is_numeric:
            return cls(column, np.arange(len(column.categories) + 1), None)
        lower, upper = _bounds(column)
        if column.resolution is None:
            cells = column.cells or default_cells
            return cls(column, None, _spaced(lower, upper, cells, column.scale))
        count = column.n_values
        assert count is not None
        cells = column.cells or (count if count <= max_values else default_cells)
        if cells >= count:
            return cls(column, np.arange(count + 1), None)
        if column.scale == "log":
            zero = int(column.has_zero_cell)
            inner = _spaced(lower + zero * column.resolution, upper, max(cells - zero, 1), "log")[1:-1]
            starts = np.ceil((inner - lower) / column.resolution - 1e-9).astype(np.int64)
            starts = np.unique(np.concatenate([[0, zero], starts.clip(1, count - 1), [count]]))
        else:
            starts = np.round(np.arange(cells + 1) * (count / cells)).astype(np.int64)
        return cls(column, starts, None)

    @property
    def present(self) -> int:
        """Number of cells without the one for missing values."""
        ends = self.starts if self.starts is not None else self.edges
        assert ends is not None
        return len(ends) - 1

    @property
    def size(self) -> int:
        """Number of cells, the one for missing values included."""
        return self.present + int(self.column.missing)

    @property
    def ordered(self) -> bool:
        """Whether neighbouring cells hold neighbouring values (numeric and ordinal columns)."""
        return bool(self.column.is_numeric or self.column.is_ordinal)

    @property
    def values_per_cell(self) -> NDArray[np.int64]:
        """Number of values in each cell, shape (size,); 1 for an interval of real numbers."""
        counts = np.ones(self.size, dtype=np.int64)
        if self.starts is not None:
            counts[: self.present] = np.diff(self.starts)
        return counts

    def encode(self, series: pd.Series) -> NDArray[np.int64]:
        """Cell of each value, shape (n,); numbers outside the bounds go to the nearest cell.

        Raises
        ------
        DataError
            If a value is missing in a column declared complete, or is not a declared category.
        """
        index, missing = self._value_index(series)
        if self.starts is not None:
            codes = np.searchsorted(self.starts, index, side="right") - 1
        else:
            assert self.edges is not None
            codes = np.searchsorted(self.edges, index, side="right") - 1
        codes = np.clip(codes, 0, self.present - 1).astype(np.int64)
        codes[missing] = self.present
        return codes

    def position(
        self, series: pd.Series, codes: NDArray[np.int64], rng: np.random.Generator | None
    ) -> NDArray[np.float64]:
        """Place of each value within its cell, shape (n,), in [0, 1).

        Countable values own an equal share of their cell, in which the place is drawn uniformly (its
        middle if ``rng`` is None), so that values spread evenly over a cell give uniform places. Missing
        values get a uniform draw (the middle).
        """
        index, missing = self._value_index(series)
        where = np.where(missing, 0, codes)
        spread = np.full(len(index), 0.5) if rng is None else rng.random(len(index))
        if self.starts is not None:
            first, last = self.starts[where], self.starts[where + 1]
            place = (index - first + spread) / (last - first)
        else:
            left, right = self._real_edges(where)
            place = (self._warp(index) - left) / (right - left)
        return np.clip(np.where(missing, spread, place), 0.0, np.nextafter(1.0, 0.0))

    def decode(self, codes: ArrayLike, t: ArrayLike) -> pd.Series:
        """Values at place ``t`` of cells ``codes``, in the schema's data type.

        Parameters
        ----------
        codes : int array, shape (n,)
        t : float array, shape (n,)
            Place in the cell, in [0, 1).

        Returns
        -------
        Series, length n
            Declared values only: exact categories, exact steps, numbers within the bounds.
        """
        cells = np.asarray(codes, dtype=np.int64)
        place = np.asarray(t, dtype=np.float64)
        missing = cells >= self.present
        where = np.where(missing, 0, cells)
        if self.starts is not None:
            first, last = self.starts[where], self.starts[where + 1]
            index = np.minimum(first + np.floor(place * (last - first)).astype(np.int64), last - 1)
            return self._from_index(index, missing)
        left, right = self._real_edges(where)
        values = self._unwarp(left + place * (right - left))
        lower, upper = _bounds(self.column)
        return cast(self.column, np.where(missing, np.nan, values.clip(lower, upper)))

    def _value_index(self, series: pd.Series) -> tuple[NDArray, NDArray[np.bool_]]:
        """Number of each value (or the value itself in a real column) and where values are missing."""
        column = self.column
        missing = series.isna().to_numpy()
        if missing.any() and not column.missing:
            row = int(np.flatnonzero(missing)[0])
            raise DataError(f"column {column.name!r}, row {row + 1}: the value is missing, and may not be")
        if not column.is_numeric:
            labels = pd.Index(series.to_numpy(dtype=object), dtype=object)
            index = pd.Index(list(column.categories), dtype=object).get_indexer(labels)
            if (index[~missing] < 0).any():
                row = int(np.flatnonzero((index < 0) & ~missing)[0])
                raise DataError(
                    f"column {column.name!r}, row {row + 1}: {labels[row]!r} is not a declared category"
                )
            return np.where(missing, 0, index).astype(np.int64), missing
        lower, upper = _bounds(column)
        values = series.to_numpy(dtype=np.float64, na_value=np.nan)
        values = np.where(missing, lower, values).clip(lower, upper)
        if self.starts is None:
            return values, missing
        return step_numbers(column, values), missing

    def _from_index(self, index: NDArray[np.int64], missing: NDArray[np.bool_]) -> pd.Series:
        """Turn numbers of values into values of the schema's data type."""
        column = self.column
        assert self.starts is not None
        count = int(self.starts[-1])
        if column.is_numeric and count > len(index):
            return cast(column, np.where(missing, np.nan, step_values(column, index)))
        # Every declared value is converted once, and then taken as often as it occurs.
        declared: NDArray
        if column.is_numeric:
            declared = step_values(column, np.arange(count))
        else:
            declared = np.empty(count, dtype=object)
            declared[:] = column.categories
        if column.missing:
            declared = np.append(declared, np.array([None if declared.dtype == object else np.nan]))
            index = np.where(missing, count, index)
        values = cast(column, declared).array.take(index)
        return pd.Series(values, name=column.name, copy=False)

    def _real_edges(self, cells: NDArray[np.int64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        assert self.edges is not None
        ends = self._warp(self.edges)
        return ends[cells], ends[cells + 1]

    def _warp(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.log(values) if self.column.scale == "log" else values

    def _unwarp(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.exp(values) if self.column.scale == "log" else values


def _bounds(column: Column) -> tuple[float, float]:
    assert column.lower is not None and column.upper is not None
    return float(column.lower), float(column.upper)


def _spaced(lower: float, upper: float, cells: int, scale: str) -> NDArray[np.float64]:
    if scale == "log":
        edges = np.exp(np.linspace(np.log(lower), np.log(upper), cells + 1))
        edges[0], edges[-1] = lower, upper
        return edges
    return np.linspace(lower, upper, cells + 1)
