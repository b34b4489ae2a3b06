"""Private one-way histograms: the first thing bought and the base of encoder, prior and post-processing.

Every column is counted on its public grid (`dpsynth.table.grid`), and one of many values also value by value.
Gaussian noise is added. Counts of categories are projected on the simplex scaled to the number of records
("norm-sub", theory of section 1.8); those of numbers become a distribution (`dpsynth.releases.denoising`).

Where three columns or more may be missing, the number of missing values a record is one more histogram
(`dpsynth.releases.panels`). Adjacency is add/remove one record throughout. A record lies in exactly one cell
of each histogram, so that all counts together have L2 sensitivity ``sqrt(histograms)``. One Gaussian
mechanism releases them.

Each histogram's sum is one more measurement of the number of records. Where that is not public, it is
estimated from all of them, so that its error falls on all values in proportion.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpsynth.errors import ConfigError
from dpsynth.releases.axes import GridAxis, MissingAxis
from dpsynth.releases.denoising import denoise
from dpsynth.releases.gaussian import Array, GaussianRelease
from dpsynth.releases.panels import panel_of
from dpsynth.releases.projection import norm_sub
from dpsynth.releases.records import Records
from dpsynth.table.grid import Grid
from dpsynth.table.marginals import Counting, Marginals, make_grids
from dpsynth.table.schema import Schema


@dataclass(frozen=True, kw_only=True)
class MarginalsRelease(GaussianRelease[Marginals]):
    """Every column's histogram, and the number of missing values a record.

    Parameters
    ----------
    schema : Schema
    n : float
        ``schema.n_public`` or a noisy count, never the length of a table.
    n_std : float
        Standard deviation of the noise of ``n``; 0 where it is public.
    counted : Counting, optional
        How an earlier release counted; by default a rule on public numbers.
    onto : tuple of Grid, optional
        Released cells of an earlier release, to which the distributions are summed up.

    Raises
    ------
    ConfigError
        If ``noise_multiplier`` or ``n`` is not positive, or ``n_std`` is negative.

    References
    ----------
    Wang et al. (2020), section 4.3 (norm-sub).

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
    >>> exact.probabilities[0]
    array([0.75, 0.25])
    """

    schema: Schema
    n: float
    n_std: float = 0.0
    counted: Counting | None = None
    onto: tuple[Grid, ...] | None = None
    name = "one-way marginals"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.n > 0:
            raise ConfigError(f"n is {self.n}, but must be greater than 0")
        if not self.n_std >= 0:
            raise ConfigError(f"n_std is {self.n_std}, but cannot be negative")

    @cached_property
    def counting(self) -> Counting:
        """How numeric columns are counted whose schema does not say."""
        return self.counted or Counting.of(self.schema, self.n, self.noise_multiplier or 0.0)

    @cached_property
    def grids(self) -> tuple[Grid, ...]:
        """Public cells of each column."""
        return make_grids(self.schema, self.counting)

    @cached_property
    def by_value(self) -> tuple[Grid | None, ...]:
        """Every value of each column that is counted twice."""
        return tuple(
            Grid(column, np.arange((column.n_values or 0) + 1), None)
            if self.counting.counts_twice(column)
            else None
            for column in self.schema.columns
        )

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
        3
        """
        return len(self.schema) + sum(grid is not None for grid in self.by_value) + bool(self.panel)

    @property
    def l2_sensitivity(self) -> float:
        """Square root of the number of cells that hold one record."""
        return float(np.sqrt(self.sensitivity_squared))

    @property
    def sensitivity(self) -> str:
        """In words, for the ledger."""
        parts = [f"one count in each of {len(self.schema)} columns"]
        twice = sum(grid is not None for grid in self.by_value)
        parts += [f"one more in {twice} with many values"] if twice else []
        parts += ["one in the number of missing values"] if self.panel else []
        return f"sqrt({self.sensitivity_squared}) ({' and '.join(parts)})"

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

    def query(self, records: Records) -> list[Array]:
        """Exact counts: a private quantity, never to be shown.

        Returns
        -------
        list of arrays
            For each column the counts of its cells; then the counts of the values of those that are counted
            twice; last the records with 0, 1, ... missing values, where there is a panel.
        """
        axes = [(GridAxis(grid),) for grid in (*self.grids, *self.by_value) if grid is not None]
        names = tuple(self.schema.names[j] for j in self.panel)
        return list(records.counts([*axes, (MissingAxis(names),)] if self.panel else axes))

    def finish(self, noisy: Sequence[Array]) -> Marginals:
        """Distributions of each column, which belong to one number of records."""
        n = self._records(noisy)
        law = norm_sub(noisy[-1], n) / n if self.panel else None
        by_value = iter(noisy[len(self.grids) :])
        grids, probabilities = [], []
        for j, (grid, fine) in enumerate(zip(self.grids, self.by_value, strict=True)):
            values = None if fine is None else next(by_value)
            found, counts = denoise(grid, noisy[j], self.noise_std, n, values)
            if self.onto is not None:
                found, counts = self.onto[j], found.summed(counts, self.onto[j])
            grids.append(found)
            probabilities.append(counts / counts.sum())
        shown = zip(self.grids, grids, probabilities, strict=True)
        flat = (found.column.name for grid, found, p in shown if self._flattened(grid, n * p))
        return Marginals(
            grids=tuple(grids),
            probabilities=tuple(probabilities),
            flattened=tuple(flat),
            n=n,
            noise_multiplier=self.noise_multiplier,
            counting=self.counting,
            missing_law=law,
        )

    def _flattened(self, grid: Grid, counts: Array) -> bool:
        """Whether noise of two deviations hides most categories' records, or a quarter of the numbers."""
        if grid.ordered:
            return bool(counts.sum() / 4 < 2 * self.noise_std * np.sqrt(grid.present / 4))
        return bool(counts[counts > 2 * self.noise_std].sum() < counts.sum() / 2)

    def _records(self, noisy: Sequence[Array]) -> float:
        """The number of records, from its own count and the sums of all histograms, by their precision."""
        if not self.n_std or not self.noise_std:
            return float(self.n)
        precisions = [self.n_std**-2.0, *(1.0 / (len(counts) * self.noise_std**2) for counts in noisy)]
        sums = [self.n, *(float(counts.sum()) for counts in noisy)]
        return max(1.0, float(np.average(sums, weights=precisions)))
