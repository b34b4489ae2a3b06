"""Cells of one column: where its histogram is counted, and what its values are drawn from.

A public grid depends on the schema alone. Columns with few declared values (categories, ordinals, integers,
numbers recorded in steps) have a cell for each value. Others are cut into intervals, of equal width or, if
the schema says so, of equal ratio (zeros then have a cell of their own). A refined grid has the ends of both.
Intervals of a column recorded in steps hold whole steps. Special codes have one more cell each, and missing
values the last one.

A grid made from released counts (`dpsynth.marginals.density`) has other cells. It may hold a habit:
some values of a cell are recorded more often than others.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from dpsynth.errors import ConfigError
from dpsynth.files.codec import record
from dpsynth.table.coded import Codes
from dpsynth.table.column import Column
from dpsynth.table.draws import Uniforms
from dpsynth.table.kinds.date import WEEK
from dpsynth.table.schema import Schema

#: Width of the finest interval around 0 of a column of real numbers, as a part of its range.
_FINEST = 1e-5


@record
@dataclass(frozen=True, eq=False)
class Grid:
    """Cells of one column. `Grid.from_column` makes a public grid.

    Parameters
    ----------
    starts : int array, shape (present + 1,), or None
        Columns of countable values: the k-th cell holds the values number ``starts[k]`` to
        ``starts[k + 1] - 1``.
    edges : float array, shape (present + 1,), or None
        Columns of real numbers: the ends of the intervals.
    habit : float array, shape (period,), optional
        Relative frequency of values, by the residue of their number modulo the period. None: all alike.

    Examples
    --------
    >>> grid = Grid.from_column(Column(name="age", kind="integer", lower=18, upper=90))
    >>> grid.size, grid.decode([0, 72], [0.5, 0.5]).tolist()
    (73, [18, 90])
    """

    column: Column
    starts: NDArray[np.int64] | None
    edges: NDArray[np.float64] | None
    habit: NDArray[np.float64] | None = None

    @classmethod
    def from_column(cls, column: Column, max_values: int = 128, default_cells: int = 64) -> Grid:
        """Make the public grid of a column.

        A numeric column with at most ``max_values`` declared values gets a cell for each, others
        ``default_cells`` intervals, unless ``column.cells`` says otherwise.
        """
        if max_values < 1 or default_cells < 1:
            raise ConfigError(
                f"max_values is {max_values} and default_cells is {default_cells}. Both must be at least 1"
            )
        if not column.is_numeric:
            return cls(column, np.arange(len(column.categories) + 1), None)
        lower, upper = column.bounds
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

    def refined(self, cells: int) -> Grid:
        """Cut the intervals of a number further, at the ends of ``cells`` intervals of equal ratio around 0.

        One record is in one cell of either grid, so more cells cost nothing. They resolve a column whose
        values fill a small part of wide bounds.
        """
        lower, upper = self.column.bounds
        zero = min(max(0.0, lower), upper)
        away = max(upper - zero, zero - lower)
        if self.starts is not None:
            step = float(self.column.resolution or 1.0)
            ratio = step * np.geomspace(1.0, max(away / step, 1.0), cells + 1)
            both = np.concatenate([[zero, zero + step], zero + ratio, zero - ratio + step])
            count = int(self.starts[-1])
            first = np.rint((both - lower) / step).clip(0, count).astype(np.int64)
            return dataclasses.replace(self, starts=np.unique(np.concatenate([self.starts, first])))
        assert self.edges is not None
        ratio = away * np.geomspace(_FINEST, 1.0, cells + 1)
        both = np.concatenate([self.edges, zero + ratio, zero - ratio]).clip(lower, upper)
        edges = np.unique(both)
        # Ends that rounding alone tells apart are one.
        apart = np.diff(edges, prepend=-np.inf) > 1e-9 * (upper - lower)
        edges = edges[apart]
        edges[-1] = upper
        return dataclasses.replace(self, edges=edges)

    @property
    def _ends(self) -> NDArray:
        ends = self.starts if self.starts is not None else self.edges
        assert ends is not None
        return ends

    @property
    def present(self) -> int:
        """Number of cells of values in their order: without those of special codes and missing values."""
        return len(self._ends) - 1

    @property
    def size(self) -> int:
        """Number of cells, those of special codes and missing values included."""
        return self.present + len(self.column.special) + int(self.column.missing)

    @property
    def ordered(self) -> bool:
        """Whether neighbouring cells hold neighbouring values (numeric and ordinal columns)."""
        return bool(self.column.is_numeric or self.column.is_ordinal)

    @property
    def values_per_cell(self) -> NDArray[np.int64]:
        """Number of values in each cell, shape (size,): 1 for an interval of real numbers."""
        counts = np.ones(self.size, dtype=np.int64)
        if self.starts is not None:
            counts[: self.present] = np.diff(self.starts)
        return counts

    @property
    def middles(self) -> NDArray[np.float64] | None:
        """Middles of the cells of a numeric column, shape (present,). None for dates and words."""
        column = self.column
        if not column.is_numeric or column.written_apart:
            return None
        if self.edges is not None:
            return (self.edges[:-1] + self.edges[1:]) / 2
        assert self.starts is not None
        numbers = (self.starts[:-1] + self.starts[1:] - 1) / 2
        return column.bounds[0] + numbers * float(column.resolution or 1.0)

    def cells(self, codes: Codes) -> NDArray[np.int64]:
        """Cell of each value, shape (n,): the nearest cell for numbers outside the bounds."""
        numbers, apart = codes.number, codes.apart.astype(np.int64)
        if self.starts is None or self.present < self.starts[-1]:  # some cells hold several values
            numbers = np.clip(np.searchsorted(self._ends, numbers, side="right") - 1, 0, self.present - 1)
        return np.where(apart < 0, numbers, self.present + apart)

    def encode(self, series: pd.Series) -> NDArray[np.int64]:
        """Cells of a column that nothing else reads: it is coded for this alone."""
        return self.cells(Codes.of(self.column, series))

    def position(self, codes: Codes, cells: NDArray[np.int64], rng: Uniforms | None) -> NDArray[np.float64]:
        """Place of each value within its cell of `cells`, shape (n,), in [0, 1).

        Each countable value owns a share of its cell, in which the place is drawn uniformly (its middle if
        ``rng`` is None). Special codes and missing values get a uniform draw (the middle).
        """
        present = codes.apart < 0
        where = np.where(present, cells, 0)
        spread = np.full(len(codes), 0.5) if rng is None else rng.random(len(codes))
        if self.starts is not None:
            left, right = self._shares(where, codes.number)
            place = left + spread * (right - left)
        else:
            left, right = self._real_edges(where)
            place = (self._warp(codes.number) - left) / (right - left)
        return np.clip(np.where(present, place, spread), 0.0, np.nextafter(1.0, 0.0))

    def shares(
        self, codes: NDArray[np.int64], t: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Ends, from 0 to 1, of the part of its cell that the value at place ``t`` owns, shapes (n,).

        The whole cell for a column of real numbers, for special codes and for missing values.
        """
        if self.starts is None:
            return np.zeros(len(codes)), np.ones(len(codes))
        where = np.minimum(codes, self.present - 1)
        left, right = self._shares(where, self._located(where, t))
        whole = codes >= self.present
        return np.where(whole, 0.0, left), np.where(whole, 1.0, right)

    def decode(self, codes: ArrayLike, t: ArrayLike) -> pd.Series:
        """Declared values at places ``t`` in [0, 1) of cells ``codes``, both of shape (n,)."""
        cells = np.asarray(codes, dtype=np.int64)
        place = np.asarray(t, dtype=np.float64)
        where = np.where(cells < self.present, cells, 0)
        if self.starts is not None:
            return self._from_index(self._located(where, place), cells - self.present)
        left, right = self._real_edges(where)
        values = left + place * (right - left)
        values = np.exp(values) if self.column.scale == "log" else values
        lower, upper = self.column.bounds
        return self._with_apart(values.clip(lower, upper), cells - self.present)

    def cumulative(self, index: NDArray[np.int64]) -> NDArray[np.float64]:
        """Sum of the habit's weights of the values before number ``index``, or ``index`` without a habit."""
        if self.habit is None:
            return np.asarray(index, dtype=np.float64)
        before = np.concatenate([[0.0], np.cumsum(self.habit)])
        rounds, rest = np.divmod(index, len(self.habit))
        return rounds * before[-1] + before[rest]

    def summed(self, counts: NDArray[np.float64], onto: Grid) -> NDArray[np.float64]:
        """Counts of these cells, as those of another grid of the same column, shape (onto.size,).

        A cell that lies across several others is divided as its values are.
        """
        if self.starts is not None and onto.starts is not None:
            ends, others = self.cumulative(self.starts), self.cumulative(onto.starts)
        else:
            assert self.edges is not None and onto.edges is not None
            ends, others = self._warp(self.edges), self._warp(onto.edges)
        cell = (np.searchsorted(ends, others, side="right") - 1).clip(0, self.present - 1)
        part = (others - ends[cell]) / (ends[cell + 1] - ends[cell])
        below = np.concatenate([[0.0], np.cumsum(counts[: self.present])])
        reached = below[cell] + part.clip(0.0, 1.0) * counts[cell]
        return np.concatenate([np.maximum(np.diff(reached), 0.0), counts[self.present :]])

    def _located(self, cells: NDArray[np.int64], place: NDArray[np.float64]) -> NDArray[np.int64]:
        """Number of the value at a place of a cell."""
        assert self.starts is not None
        first, last = self.starts[cells], self.starts[cells + 1]
        if self.habit is None:
            return np.minimum(first + np.floor(place * (last - first)).astype(np.int64), last - 1)
        left, right = self.cumulative(first), self.cumulative(last)
        before = np.concatenate([[0.0], np.cumsum(self.habit)])
        rounds, rest = np.divmod(left + place * (right - left), before[-1])
        within = np.searchsorted(before, rest, side="right") - 1
        index = rounds.astype(np.int64) * len(self.habit) + within
        return index.clip(first, last - 1)

    def _shares(
        self, cells: NDArray[np.int64], index: NDArray[np.int64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Ends of the part of its cell that value number ``index`` owns."""
        assert self.starts is not None
        first, last = self.cumulative(self.starts[cells]), self.cumulative(self.starts[cells + 1])
        index = index.clip(self.starts[cells], self.starts[cells + 1] - 1)
        width = last - first
        return (self.cumulative(index) - first) / width, (self.cumulative(index + 1) - first) / width

    def _with_apart(self, values: NDArray[Any], apart: NDArray[np.int64]) -> pd.Series:
        """Values, with special codes and missing values where ``apart`` is not negative."""
        beyond = np.array([*self.column.special, _absent(values)], dtype=values.dtype)
        return self.column.series(np.where(apart < 0, values, beyond[np.maximum(apart, 0)]))

    def _from_index(self, index: NDArray[np.int64], apart: NDArray[np.int64]) -> pd.Series:
        """Turn numbers of values into values of the schema's data type."""
        column = self.column
        assert self.starts is not None
        count = int(self.starts[-1])
        if count > len(index):
            return self._with_apart(column.declared(index), apart)
        # Every declared value is converted once, and then taken as often as it occurs.
        declared = column.declared(np.arange(count))
        absent = [_absent(declared)] if column.missing else []
        declared = np.append(declared, np.array([*column.special, *absent], dtype=declared.dtype))
        values = column.series(declared).array.take(np.where(apart < 0, index, count + apart))
        return pd.Series(values, name=column.name, copy=False)

    def _real_edges(self, cells: NDArray[np.int64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        assert self.edges is not None
        ends = self._warp(self.edges)
        return ends[cells], ends[cells + 1]

    def _warp(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.log(values) if self.column.scale == "log" else values


def _absent(values: NDArray[Any]) -> float | None:
    """What stands for a missing value among such values."""
    return None if values.dtype == object else np.nan


def _spaced(lower: float, upper: float, cells: int, scale: str) -> NDArray[np.float64]:
    if scale == "log":
        edges = np.exp(np.linspace(np.log(lower), np.log(upper), cells + 1))
        edges[0], edges[-1] = lower, upper
        return edges
    return np.linspace(lower, upper, cells + 1)


# ------------------------------------------------------------------------------------------------
# Single-column counts: released probabilities of each column over the cells of its public grid.
#
# Encoder, base model and post-processing use them. The number of a column's cells follows from public
# numbers.

#: Cells of a numeric column that does not say, at most; without noise, exactly.
MOST_CELLS = 64
#: Values of a numeric column that may have a cell each, at most, and of one that is counted twice.
MOST_VALUES, MOST_TWICE = 1024, 2**20
#: Part of the records that a value's count must be able to show for values to be counted beside intervals.
#: The same of a block and a place in it (without them, all is spread over the bounds), and of last digits.
_SHOWN, _SHOWN_MORE = 0.1, 0.2
#: Blocks of neighbouring values that a column of more than `MOST_TWICE` values is cut into, at least, and
#: their number for each record that noise equals.
_FEWEST_BLOCKS, _BLOCKS = 4096, 64
#: Residues for each place in a block, so that another block's frequent value is rarely taken for its own.
#: Places in one block, at most: there are further residues for those of a larger one.
_RESIDUES, _MOST_PLACES = 16, 2**16
#: Noise deviations that records at one last digit exceed where they are clear.
_CLEAR = 4.0
#: Last digits are those of period 10, 20 or 100 in a column of at least so many values.
_DIGITS = {100: 10_000, 20: 80, 10: 40}
#: Digits of steps in which people write numbers down: others, such as a hundredth of a range, are computed.
_WRITTEN = ((1,), (2,), (5,), (2, 5))


@record
@dataclass(frozen=True)
class Counting:
    """Cells of numeric columns whose schema does not say, from public numbers.

    A column of many values has ``cells`` intervals. One of at most ``values`` values has a cell for each
    instead. One of at most ``twice`` values (0: none) is counted value by value as well. One of more than
    ``wide`` values is counted in about ``blocks`` blocks of neighbouring values (0: none), and by places in
    them. Last digits or times of day of a column of more than ``digits`` values are counted (0: never).
    """

    cells: int = MOST_CELLS
    values: int = 2 * MOST_CELLS
    twice: int = 0
    blocks: int = 0
    digits: int = 0
    wide: int = MOST_TWICE

    @classmethod
    def of(cls, schema: Schema, n: float, noise_multiplier: float) -> Counting:
        """Choose as many cells as the noise leaves meaningful (`default_cells`, `default_values`).

        A column's m values are counted besides its intervals if one with a tenth of the records stands out.
        It must exceed the noise by sqrt(2 ln m) + 1 deviations. Blocks are counted if one with a fifth of the
        records stands out. Less noise allows more blocks, so that a few years stand out among thousands.
        Last digits are counted under two conditions. In the sum of the counts of all values with one digit,
        noise would hide a fifth of the records. In a count of their own, a tenth is clear.
        """
        noise_std = noise_multiplier * cls()._length(schema)
        cells, values = default_cells(n, noise_std), default_values(n, noise_std)
        most = cls(cells, values, MOST_TWICE, MOST_TWICE)
        noise_std = max(noise_multiplier * most._length(schema), 1.0)
        reach = max(_SHOWN * n / noise_std - 1.0, 0.0)
        twice = round(np.exp(min(reach**2 / 2, np.log(MOST_TWICE)))) if reach > 0 else 0
        blocks = int(np.clip(_BLOCKS * n / noise_std, _FEWEST_BLOCKS, MOST_TWICE))
        if _SHOWN_MORE * n / noise_std - 1.0 < np.sqrt(2.0 * np.log(_MOST_PLACES)):
            blocks = 0
        most = cls(cells, values, twice, blocks, digits=1)
        clear = n / (_CLEAR * max(noise_multiplier * most._length(schema), 1.0))
        hidden = max(round(10 * (_SHOWN_MORE * clear) ** 2), min(_DIGITS.values()) - 1)
        return cls(cells, values, twice, blocks, hidden if _SHOWN * clear > 1 else 0)

    def _length(self, schema: Schema) -> float:
        """Length of what a record adds to the counts of all columns."""
        counts = (
            1 + len(column.cycles) + self.counts_twice(column) + len(self.residues(column))
            for column in schema.columns
        )
        return float(np.sqrt(sum(counts)))

    def counts_twice(self, column: Column) -> bool:
        """Whether a column is counted in intervals, and value by value or in blocks."""
        values = column.n_values if column.is_numeric and not column.cells else None
        if values is None or values <= self.values:
            return False
        return values <= self.twice or (self.blocks > 0 and values > self.wide)

    def width(self, column: Column) -> int:
        """Number of neighbouring values in a cell of the second count, a power of two where that is large."""
        values = column.n_values or 1
        width = -(-values // self.blocks) if self.blocks and values > self.wide else 1
        return width if width <= _MOST_PLACES else 1 << (width - 1).bit_length()

    def places(self, column: Column) -> tuple[tuple[int, int], ...]:
        """Widths and moduli of the residues that show places in blocks: of parts of a block, then of these.

        A value's number is divided by the width, and counted modulo the modulus.
        """
        width, period, found = self.width(column), habit_period(column) or 1, []
        while width > 1 and self.counts_twice(column):
            inner = max(1, width // _MOST_PLACES)
            modulus = _RESIDUES * (width // inner)
            found.append((inner, modulus if inner > 1 else -(-modulus // period) * period))
            width = inner
        return tuple(found)

    def residues(self, column: Column) -> tuple[tuple[int, int], ...]:
        """Widths and moduli of all residues that are counted. The last is of last digits or of times of day.

        Examples
        --------
        >>> cost = Column(name="cost", kind="continuous", lower=0, upper=1e6, decimals=2)
        >>> Counting(twice=MOST_TWICE, blocks=5000, digits=100).residues(cost)
        ((1, 320100), (1, 100))
        >>> Counting().residues(cost)
        ()
        """
        places, period, values = self.places(column), habit_period(column), column.n_values or 0
        known = places[-1][1] if places else values
        pays = 0 < self.digits < known and period > 0 and not column.cells and column.rhythm != WEEK
        return (*places, (1, period)) if pays else places

    def grid(self, column: Column) -> Grid:
        """Public cells of a column."""
        values = column.n_values
        if not column.is_numeric or column.cells or (values is not None and values <= self.values):
            return Grid.from_column(column, self.values, self.cells)
        return intervals(column, self.cells)


@record
@dataclass(frozen=True, eq=False)
class Marginals:
    """Released probabilities of every column, made by `dpsynth.marginals.statistics`.

    Attributes
    ----------
    grids, probabilities : tuples of Grid, and of arrays of shape (grid.size,)
        Released cells of each column, in the schema's order. Probabilities sum to 1.
    n : float
        Number of records they stand for: public, or estimated from noisy counts, never a length.
    noise_multiplier : float or None
        Noise standard deviation over sensitivity. None: exact, and so not private.
    missing_law : array, shape (k + 1,), or None
        Released probabilities of 0 to k missing values among the k columns that may be missing. None if they
        are fewer than three.
    flattened : tuple of str
        Columns nearly flattened by noise, from public and released numbers.
    """

    grids: tuple[Grid, ...]
    probabilities: tuple[NDArray[np.float64], ...]
    n: float
    noise_multiplier: float | None
    counting: Counting
    missing_law: NDArray[np.float64] | None = None
    flattened: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for grid, probabilities in zip(self.grids, self.probabilities, strict=True):
            if probabilities.shape != (grid.size,):
                name, size = grid.column.name, probabilities.size
                raise ConfigError(f"column {name!r} has {size} probabilities for {grid.size} cells")

    @property
    def names(self) -> tuple[str, ...]:
        """Column names, in the schema's order."""
        return tuple(grid.column.name for grid in self.grids)

    @property
    def noise_share(self) -> float:
        """Standard deviation of the noise in one count, at least, as a share of the records.

        A record is in at least one count of each column. 0 without noise.
        """
        return (self.noise_multiplier or 0.0) * float(np.sqrt(len(self.grids))) / self.n


def habit_period(column: Column) -> int:
    """Period of the habits that residues of a column may show: last digits, the day, the week. 0: none.

    Examples
    --------
    >>> habit_period(Column(name="seen", kind="datetime", lower="2020-01-01", upper="2021-01-01"))
    1440
    """
    values = column.n_values if column.is_numeric else None
    if values is None:
        return 0
    if column.rhythm is None:
        digits = Decimal(repr(float(column.resolution or 1.0))).normalize().as_tuple().digits
        if digits not in _WRITTEN:
            return 0
        return next((period for period, least in _DIGITS.items() if values >= least), 0)
    length, places = column.rhythm
    whole, step = length * places, column.resolution or 1.0
    return round(whole / step) if whole % step == 0 and whole > step else 0


def default_cells(n: float, noise_std: float) -> int:
    """Cells of a numeric column, 8 to `MOST_CELLS`, by a rule that reads no records.

    Wide cells blur a distribution by about 1 / k. Noise of standard deviation s in k cells blurs it by about
    ``s k / n``. The sum is smallest near ``k ~ sqrt(n / s)``. The factor 3.5 is from experience.

    Examples
    --------
    >>> default_cells(285, 17.0), default_cells(4000, 10.0), default_cells(4000, 0.0)
    (14, 64, 64)
    """
    return int(np.clip(round(3.5 * np.sqrt(n / max(noise_std, 1.0))), 8, MOST_CELLS))


def default_values(n: float, noise_std: float) -> int:
    """Most values of a column that get a cell each, at most `MOST_VALUES`, by a rule that reads no records.

    With a cell each, one histogram shows all of a column, if the average count of a cell is at least the
    noise's deviation. For more values, intervals are counted as well, or alone.

    Examples
    --------
    >>> default_values(285, 17.0), default_values(4500, 15.0), default_values(20_000, 10.0)
    (28, 300, 1024)
    """
    fewest = 2 * default_cells(n, noise_std)
    return int(np.clip(n / max(noise_std, 1.0), fewest, MOST_VALUES))


def intervals(column: Column, cells: int) -> Grid:
    """Public intervals of a numeric column: ``cells`` of equal width, cut further around 0 but for dates."""
    grid = Grid.from_column(column, 1, cells)
    logarithmic = grid.edges is not None and column.scale == "log"
    return grid if column.cells or column.written_apart or logarithmic else grid.refined(cells)


def make_grids(schema: Schema, counting: Counting | None = None) -> tuple[Grid, ...]:
    """Public grids of all columns."""
    counting = counting or Counting()
    return tuple(counting.grid(column) for column in schema.columns)
