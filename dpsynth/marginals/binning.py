"""Coarse bins of every column, made from released single-column counts.

Tables of several columns need few cells, or noise drowns them. Ordered columns are cut into bins of about
equal released mass (quantiles of the private distribution). Equal-width bins would waste most of their cells
on skewed laboratory values. Rare categories share bins (`dpsynth.marginals.pooling`), unless they stand out
of the noise. Missing values and special codes keep one of their own each.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpsynth.files.codec import record
from dpsynth.marginals.pooling import pool_rare
from dpsynth.privacy.records import GridAxis
from dpsynth.table.coded import CodedTable
from dpsynth.table.grid import Grid, Marginals

#: Categories rarer than this fraction of an even share, 1/n_bins, share a bin if noise would hide them.
_RARE = 0.25
#: A category stands out from so many deviations of the noise in its row on, and from this probability on.
_STANDS, _RAREST = 2.0, 1 / 500
#: Expected absolute noise of a table of two ordered columns, as a part of the records.
_NOISE = 0.23


@record
@dataclass(frozen=True, eq=False)
class Binning:
    """Bins of one column.

    ``labels``, shape (cells,): bin of each fine grid cell.
    ``probabilities``, shape (size,): released probability of each bin.
    """

    labels: NDArray[np.int64]
    probabilities: NDArray[np.float64]

    @classmethod
    def from_labels(cls, labels: ArrayLike, cells: ArrayLike) -> Binning:
        """Bins with these labels, 0 to size - 1, over cells of these probabilities."""
        label = np.asarray(labels, dtype=np.int64)
        weights = np.asarray(cells, dtype=np.float64)
        return cls(label, np.bincount(label, weights=weights).astype(np.float64))

    @property
    def size(self) -> int:
        """Number of bins."""
        return len(self.probabilities)


def equal_mass(probabilities: ArrayLike, n_bins: int) -> NDArray[np.int64]:
    """Label neighbouring cells so that bins hold about equal mass.

    A cell that holds a bin's share gets a bin of its own, as long as there are bins left.

    ``probabilities``, shape (cells,): not negative. Without any mass all cells count alike.

    Examples
    --------
    >>> equal_mass([0.6, 0.05, 0.05, 0.1, 0.2], 3)
    array([0, 1, 1, 1, 2])
    """
    mass = np.asarray(probabilities, dtype=np.float64)
    mass = mass if mass.sum() > 0 else np.ones_like(mass)
    heavy = mass >= mass.sum() / n_bins
    labels = np.zeros(len(mass), dtype=np.int64)
    current, filled, remaining = 0, 0.0, float(mass.sum())
    # What is left is shared by the bins that are left, so that a heavy cell does not starve its neighbours.
    share = remaining / n_bins
    for cell, weight in enumerate(mass):
        alone = heavy[cell] or (cell > 0 and heavy[cell - 1])
        if filled > 0 and (alone or filled + weight / 2 > share) and current < n_bins - 1:
            remaining -= filled
            current, filled = current + 1, 0.0
            share = remaining / (n_bins - current)
        labels[cell] = current
        filled += weight
    return labels


def make_binning(
    grid: Grid, probabilities: NDArray[np.float64], n_bins: int, *, keep: bool = False, rarest: float = 1.0
) -> Binning:
    """Bins of one column from its released probabilities.

    ``probabilities``, shape (grid.size,).
    ``n_bins``: most bins of present values of an ordered column, at least 1.
    ``keep``: keep every cell apart (the outcome).
    ``rarest``: a category of this probability keeps a bin of its own, however few bins there are.
    """
    if keep:
        labels = np.arange(grid.size)
    elif grid.ordered:
        labels = equal_mass(probabilities[: grid.present], n_bins)
        labels = np.append(labels, labels[-1] + np.arange(1, grid.size - grid.present + 1))
    else:
        least = min(_RARE / n_bins, rarest)
        rare = probabilities < least
        rare[grid.present :] = False
        labels = pool_rare(probabilities, rare, least, grid.column.tree_levels)
    return Binning.from_labels(labels, probabilities)


def default_bins(n: float, noise_std: float, classes: int = 1) -> int:
    """Number of bins of an ordered column by a rule that reads no records.

    A classifier of real and synthetic records finds the blur of wide bins, but hardly the noise
    (docs/explanation/method.md). The expected absolute noise in the ``classes * k**2`` cells of a table is
    sqrt(2 / pi) * s * classes * k**2, with s its standard deviation. It is to be 23 hundredths of the
    records. The nearest even number of bins puts an edge at the median if no heavy cell lies across it. There
    are 3 at least.

    ``noise_std``: standard deviation of the noise in a cell. At least 1 is assumed, because sampling itself
        is noisy.
    ``classes``: number of outcome values in a three-way table.

    Examples
    --------
    >>> default_bins(4500, 10.0, 2), default_bins(4500, 20.0, 2), default_bins(1e6, 1.0)
    (8, 6, 24)
    """
    finest = np.sqrt(_NOISE * n / (np.sqrt(2.0 / np.pi) * classes * max(noise_std, 1.0)))
    return int(np.clip(2 * round(finest / 2), 3, 24))


@dataclass(frozen=True, eq=False)
class Bins:
    """The axes of a base model's tables, made with `Bins.of`."""

    grids: tuple[Grid, ...]
    binnings: tuple[Binning, ...]
    n: float

    @classmethod
    def of(cls, marginals: Marginals, *, root: int | None, classes: int, noise_std: float) -> Bins:
        """Bins from released marginals and public numbers.

        ``root``: A column that keeps all its cells: the outcome.
        ``classes``: cells of the outcome where every table has it as an axis, else 1.
        ``noise_std``: standard deviation of the noise in a cell of the tables, see `default_bins`.
        """
        most = default_bins(marginals.n, noise_std, classes)
        # a row of so many cells has noise of this size
        row_std = max(noise_std, 1.0) * (classes * most) ** 0.5
        rarest = max(_STANDS * row_std / marginals.n, _RAREST)
        columns = enumerate(zip(marginals.grids, marginals.probabilities, strict=True))
        binnings = tuple(
            make_binning(grid, p, most, keep=j == root, rarest=rarest) for j, (grid, p) in columns
        )
        return cls(marginals.grids, binnings, marginals.n)

    @cached_property
    def axes(self) -> tuple[GridAxis, ...]:
        """One axis a column."""
        pairs = zip(self.grids, self.binnings, strict=True)
        return tuple(GridAxis(grid, binning.labels) for grid, binning in pairs)

    def cells(self, table: CodedTable) -> NDArray[np.int64]:
        """Bins of each record, shape (n, columns)."""
        return np.stack([axis.cells(table) for axis in self.axes], axis=1)
