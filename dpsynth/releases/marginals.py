"""Noisy counts of every column's values: the first statistic of a run, used by all others.

Every column is counted on its public grid (`dpsynth.table.grid`), and one of many values also value by value.
With more than a million values, blocks of neighbouring values are counted instead, and residues: the places
of values in their blocks. Residues are also last digits and times of day.
A column of dates is also counted by weekday, month and hour, where its schema asks for that.
If three columns or more may be missing, the number of missing values a record is one more histogram.
Adjacency is add/remove one record throughout. A record lies in exactly one cell of each histogram, so all
counts together have L2 sensitivity ``sqrt(histograms)``. One Gaussian mechanism covers them.
`dpsynth.model.columns.marginals` makes distributions of the counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpsynth.errors import ConfigError
from dpsynth.releases.bins import CycleAxis, GridAxis, MissingAxis, ResidueAxis
from dpsynth.releases.gaussian import Array, GaussianRelease, Ints
from dpsynth.releases.records import Axes, Records
from dpsynth.table.column import Column
from dpsynth.table.grid import Grid
from dpsynth.table.marginals import Counting, make_grids
from dpsynth.table.schema import Schema

#: With fewer columns that may be missing there is no panel.
_FEWEST_COLUMNS = 3


def panel_of(grids: Sequence[Grid]) -> tuple[int, ...]:
    """Columns whose missing values are counted together: all that may be missing, if they are three or more.

    Examples
    --------
    >>> from dpsynth.table.column import Column
    >>> lab = Column(name="lab", kind="continuous", lower=0, upper=1, missing=True)
    >>> panel_of([Grid.from_column(lab)] * 3), panel_of([Grid.from_column(lab)] * 2)
    ((0, 1, 2), ())
    """
    columns = tuple(j for j, grid in enumerate(grids) if grid.column.missing)
    return columns if len(columns) >= _FEWEST_COLUMNS else ()


def _in_blocks(column: Column, width: int) -> Grid:
    values = column.n_values or 0
    return Grid(column, np.append(np.arange(0, values, width), values), None)


@dataclass(frozen=True, kw_only=True)
class MarginalsRelease(GaussianRelease[list[Array]]):
    """Every column's histogram, and the number of missing values a record.

    ``n``: ``schema.n_public`` or a noisy count, never the length of a table.
    ``n_std``: standard deviation of the noise of ``n``, 0 if it is public.
    ``counted``: how an earlier release counted. The default is a rule on public numbers.

    Examples
    --------
    >>> import pandas as pd
    >>> from dpsynth.accounting import Ledger
    >>> from dpsynth.releases.records import FrameRecords
    >>> from dpsynth.table.schema import Column
    >>> schema = Schema(columns=(Column(name="sex", kind="binary", categories=("F", "M")),))
    >>> frame = schema.conform(pd.DataFrame({"sex": ["F"] * 30 + ["M"] * 10})).frame
    >>> release = MarginalsRelease(schema=schema, n=40, noise_multiplier=None)
    >>> exact = Ledger().run(release, FrameRecords(frame), np.random.default_rng(0))
    >>> exact
    [array([30., 10.])]
    """

    schema: Schema
    n: float
    n_std: float = 0.0
    counted: Counting | None = None
    name = "single-column counts"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.n > 0:
            raise ConfigError(f"n is {self.n}, but must be greater than 0")
        if not self.n_std >= 0:
            raise ConfigError(f"n_std is {self.n_std}, but cannot be negative")

    @cached_property
    def counting(self) -> Counting:
        """How numeric columns are counted where the schema does not specify it."""
        return self.counted or Counting.of(self.schema, self.n, self.noise_multiplier or 0.0)

    @cached_property
    def grids(self) -> tuple[Grid, ...]:
        """Public cells of each column."""
        return make_grids(self.schema, self.counting)

    @cached_property
    def by_value(self) -> tuple[Grid | None, ...]:
        """Every value of each column that is counted twice, or its blocks of neighbouring values."""
        return tuple(
            _in_blocks(column, self.counting.width(column)) if self.counting.counts_twice(column) else None
            for column in self.schema.columns
        )

    @cached_property
    def residues(self) -> tuple[ResidueAxis, ...]:
        """Places in blocks, last digits and times of day that are counted."""
        counted = ((column, self.counting.residues(column)) for column in self.schema.columns)
        return tuple(ResidueAxis(column, *residue) for column, residues in counted for residue in residues)

    @property
    def cycles(self) -> tuple[CycleAxis, ...]:
        """Weekdays, months and hours of columns of dates that are counted."""
        return tuple(CycleAxis(column, cycle) for column in self.schema.columns for cycle in column.cycles)

    @property
    def panel(self) -> tuple[int, ...]:
        """Columns whose missing values are counted together."""
        return panel_of(self.grids)

    @property
    def sensitivity_squared(self) -> int:
        """Squared L2 sensitivity of all counts together: the number of cells that hold one record.

        Examples
        --------
        >>> from dpsynth.table.schema import Column
        >>> columns = (Column(name="a", kind="binary", categories=("n", "y")),
        ...            Column(name="b", kind="integer", lower=0, upper=100_000))
        >>> release = MarginalsRelease(schema=Schema(columns=columns), n=5000, noise_multiplier=2.0)
        >>> release.sensitivity_squared
        4
        >>> print(release.sensitivity)
        sqrt(4) (a record is in 4 counts: 1 in each of 2 columns, 1 more where 1 column has many values,
        1 for last digits, times of day or places in blocks)
        """
        twice = sum(grid is not None for grid in self.by_value)
        return len(self.schema) + twice + len(self.residues) + len(self.cycles) + bool(self.panel)

    @property
    def l2_sensitivity(self) -> float:
        """Square root of the number of cells that hold one record."""
        return float(np.sqrt(self.sensitivity_squared))

    @property
    def sensitivity(self) -> str:
        """In words, for the ledger."""
        columns = len(self.schema)
        parts = [f"1 in each of {columns} columns" if columns > 1 else "1 in the column"]
        twice = sum(grid is not None for grid in self.by_value)
        many = "1 column has" if twice == 1 else f"{twice} columns have"
        parts += [f"1 more where {many} many values"] if twice else []
        residues = len(self.residues)
        parts += [f"{residues} for last digits, times of day or places in blocks"] if residues else []
        parts += [f"{len(self.cycles)} for weekdays, months or hours"] if self.cycles else []
        parts += ["1 for its number of missing values"] if self.panel else []
        number = self.sensitivity_squared
        counts = "1 count" if number == 1 else f"{number} counts"
        return f"sqrt({number}) (a record is in {counts}: {', '.join(parts)})"

    @property
    def detail(self) -> str:
        """The noise in the words of somebody who reads a table of counts."""
        of_columns = f"histogram of {len(self.schema)} columns"
        if self.noise_multiplier is None:
            return f"{of_columns}, no noise"
        return (
            f"{of_columns}, Gaussian noise: a count is off by about {self.noise_std:.3g} of {self.n:,.0f} "
            f"records ({100 * self.noise_std / self.n:.2g} %)"
        )

    def query(self, records: Records) -> list[Ints]:
        """Exact counts: a private quantity, never to be shown.

        Returns list of arrays: first, for each column, the counts of its cells. Then the counts of the values
        or blocks of those that are counted twice, those of residues, and those of weekdays, months and hours.
        Last, with a panel, the records with 0, 1, 2, ... missing values.
        """
        axes: list[Axes] = [(GridAxis(grid),) for grid in (*self.grids, *self.by_value) if grid is not None]
        axes += [(axis,) for axis in self.residues]
        axes += [(axis,) for axis in self.cycles]
        names = tuple(self.schema.names[j] for j in self.panel)
        return list(records.counts([*axes, (MissingAxis(names),)] if self.panel else axes))

    def finish(self, noisy: Sequence[Array]) -> list[Array]:
        """The noisy counts, in the order of `query`."""
        return list(noisy)
