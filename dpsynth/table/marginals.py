"""Single-column counts: released probabilities of each column over the cells of its public grid.

Encoder, base model and post-processing use them. The number of a column's cells follows from public numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

import numpy as np
from numpy.typing import NDArray

from dpsynth.errors import ConfigError
from dpsynth.files.codec import record
from dpsynth.table.column import Column
from dpsynth.table.dates import SECONDS
from dpsynth.table.grid import Grid
from dpsynth.table.schema import Schema

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
        pays = 0 < self.digits < known and period > 0 and column.kind != "date" and not column.cells
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
    """Released probabilities of every column, made by `dpsynth.releases.marginals`.

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
    if not column.is_date:
        digits = Decimal(repr(float(column.resolution or 1.0))).normalize().as_tuple().digits
        if digits not in _WRITTEN:
            return 0
        return next((period for period, least in _DIGITS.items() if values >= least), 0)
    step = round((column.resolution or 1.0) * SECONDS[column.kind])
    whole = 604_800 if column.kind == "date" else 86_400
    return whole // step if whole % step == 0 and whole > step else 0


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
    return grid if column.cells or column.is_date or logarithmic else grid.refined(cells)


def make_grids(schema: Schema, counting: Counting | None = None) -> tuple[Grid, ...]:
    """Public grids of all columns."""
    counting = counting or Counting()
    return tuple(counting.grid(column) for column in schema.columns)
