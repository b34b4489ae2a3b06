"""Single-column counts: released probabilities of each column over the cells of its public grid.

Encoder, base model and post-processing use them. The number of a column's cells follows from public numbers.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsynth.errors import ConfigError
from dpsynth.table.column import Column
from dpsynth.table.grid import Grid
from dpsynth.table.schema import Schema

#: Cells of a numeric column that does not say, at most; without noise, exactly.
MOST_CELLS = 64
#: Values of a numeric column that may have a cell each, at most, and of one that is counted twice.
MOST_VALUES, MOST_TWICE = 1024, 2**20
#: Part of the records that a value's count must be able to show for values to be counted beside intervals.
_SHOWN = 0.1


@dataclass(frozen=True)
class Counting:
    """Cells of numeric columns whose schema does not say, from public numbers.

    A column of many values has ``cells`` intervals. One of at most ``values`` values has a cell for each
    instead. One of at most ``twice`` values (0: none) is counted value by value as well.
    """

    cells: int = MOST_CELLS
    values: int = 2 * MOST_CELLS
    twice: int = 0

    @classmethod
    def of(cls, schema: Schema, n: float, noise_multiplier: float) -> Counting:
        """Choose as many cells as the noise leaves meaningful (`default_cells`, `default_values`).

        A column's m values are counted besides its intervals if one with a tenth of the records stands out.
        It must exceed the noise by sqrt(2 ln m) + 1 deviations.
        """
        histograms = len(schema) + sum(len(column.cycles) for column in schema.columns)
        noise_std = noise_multiplier * float(np.sqrt(histograms))
        counting = cls(default_cells(n, noise_std), default_values(n, noise_std), MOST_TWICE)
        more = sum(counting.counts_twice(column) for column in schema.columns)
        reach = _SHOWN * n / max(noise_multiplier * float(np.sqrt(histograms + more)), 1.0) - 1.0
        values = np.exp(min(max(reach, 0.0) ** 2 / 2, np.log(MOST_TWICE)))
        return cls(counting.cells, counting.values, round(values) if reach > 0 else 0)

    def counts_twice(self, column: Column) -> bool:
        """Whether a column is counted in intervals and value by value."""
        values = column.n_values if column.is_numeric and not column.cells else None
        return values is not None and self.values < values <= self.twice

    def grid(self, column: Column) -> Grid:
        """Public cells of a column."""
        values = column.n_values
        if not column.is_numeric or column.cells or (values is not None and values <= self.values):
            return Grid.from_column(column, self.values, self.cells)
        return intervals(column, self.cells)


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

    def to_state(self) -> tuple[dict[str, Any], dict[str, NDArray]]:
        """Return a JSON-able description and the arrays."""
        meta = {
            "n": self.n,
            "noise_multiplier": self.noise_multiplier,
            "counting": dataclasses.asdict(self.counting),
            "flattened": list(self.flattened),
        }
        arrays = {f"probabilities_{i}": p for i, p in enumerate(self.probabilities)}
        for i, grid in enumerate(self.grids):
            parts = (("starts", grid.starts), ("edges", grid.edges), ("habit", grid.habit))
            arrays |= {f"{name}_{i}": np.asarray(part) for name, part in parts if part is not None}
        if self.missing_law is not None:
            arrays["missing_law"] = self.missing_law
        return meta, arrays

    @classmethod
    def from_state(cls, schema: Schema, meta: Mapping[str, Any], arrays: Mapping[str, NDArray]) -> Marginals:
        """Rebuild what `to_state` described."""
        grids, probabilities = [], []
        for i, column in enumerate(schema.columns):
            parts = (arrays.get(f"{name}_{i}") for name in ("starts", "edges", "habit"))
            grids.append(Grid(column, *parts))
            probabilities.append(np.asarray(arrays[f"probabilities_{i}"]))
            if probabilities[i].shape != (grids[i].size,):
                raise ConfigError(
                    f"column {column.name!r} has {probabilities[i].size} saved probabilities for "
                    f"{grids[i].size} cells"
                )
        return cls(
            tuple(grids),
            tuple(probabilities),
            float(meta["n"]),
            meta["noise_multiplier"],
            Counting(**meta["counting"]),
            arrays.get("missing_law"),
            tuple(meta["flattened"]),
        )


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
