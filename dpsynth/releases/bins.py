"""Coarse bins of every column, as what was released before decides them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from dpsynth.errors import ConfigError
from dpsynth.releases.axes import BinAxis
from dpsynth.releases.binning import Binning, default_bins, make_binning
from dpsynth.table.grid import Grid
from dpsynth.table.marginals import Marginals


@dataclass(frozen=True, eq=False)
class Bins:
    """The axes of a prior's tables; make them with `Bins.of`.

    Parameters
    ----------
    grids : tuple of Grid
    binnings : tuple of Binning
    n : float
        Public or released number of records.
    """

    grids: tuple[Grid, ...]
    binnings: tuple[Binning, ...]
    n: float

    @classmethod
    def of(
        cls,
        marginals: Marginals,
        *,
        root: int | None,
        classes: int,
        noise_std: float,
        n_bins: int | None = None,
    ) -> Bins:
        """Bins from released marginals and public numbers.

        Parameters
        ----------
        marginals : Marginals
        root : int or None
            A column that keeps all its cells: the outcome.
        classes : int
            Cells of the outcome where every table has it as an axis, else 1.
        noise_std : float
            Of a cell of the tables.
        n_bins : int, optional
            Most bins of an ordered column; by default `default_bins`, a rule that reads no records.

        Raises
        ------
        ConfigError
            If ``n_bins`` is less than 1.
        """
        if n_bins is not None and n_bins < 1:
            raise ConfigError(f"n_bins is {n_bins}, but must be at least 1")
        most = n_bins or default_bins(marginals.n, noise_std, classes)
        columns = enumerate(zip(marginals.grids, marginals.probabilities, strict=True))
        binnings = tuple(make_binning(grid, p, most, keep=j == root) for j, (grid, p) in columns)
        return cls(marginals.grids, binnings, marginals.n)

    @cached_property
    def axes(self) -> tuple[BinAxis, ...]:
        """One axis a column."""
        pairs = zip(self.grids, self.binnings, strict=True)
        return tuple(BinAxis(grid, binning.labels) for grid, binning in pairs)
