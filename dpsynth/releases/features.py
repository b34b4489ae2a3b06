"""Features of pairs of columns: what one record adds to the moments that are released at once.

Each column has a few numbers that say where a record lies in it: the rank of an ordered column's bin, an
indicator of each category and of a missing value, centred and divided by their standard deviation under the
released marginals. A pair of columns has their products. A record's features, all pairs in one vector, are
scaled down to a length that half of the prior's draws have: long ones are those of rare values, and noise is
in proportion to the longest.

Bins, standard deviations and length come from what was released before.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dpsynth.releases.binning import Binning
from dpsynth.releases.bins import Bins

Floats = NDArray[np.float64]

#: A rare value's indicator is divided by no less: one record of it would be longer than all others together.
_LEAST_DEVIATION = 0.15
#: No vector counts as shorter: where all columns are constant, all are rounding.
_SHORTEST = 1e-3
#: Of the products with the outcome: at half of it they add an eighth to the noise of the others.
OUTCOME_WEIGHT = 0.5


@dataclass(frozen=True, eq=False)
class PairFeatures:
    """Products of the columns' numbers, one vector a record; make them with `PairFeatures.of`.

    Parameters
    ----------
    tables : tuple of float32 arrays, shapes (bins, numbers)
        The numbers of each bin, column by column.
    cap : float
        Longest vector; others are scaled down to it.
    outcome : int, optional
        A column of one number, by which the products of all others are multiplied once more.
    """

    tables: tuple[NDArray[np.float32], ...]
    cap: float
    outcome: int | None = None

    @classmethod
    def of(cls, bins: Bins, draws: NDArray[np.int64], outcome: int | None = None) -> PairFeatures:
        """Features of binned columns.

        Parameters
        ----------
        bins : Bins
            With released probabilities.
        draws : int array, shape (m, columns)
            Bins of the prior's draws: half of them keep their length.
        outcome : int, optional
            Which column the outcome is; it counts only where it has one number.
        """
        tables = tables_of(bins)
        known = None if outcome is None or tables[outcome].shape[1] > 1 else outcome
        free = cls(tables, np.inf, known)
        return cls(tables, max(float(np.median(free.lengths(draws))), _SHORTEST), known)

    @cached_property
    def ends(self) -> tuple[int, ...]:
        """Where the numbers of each column begin, and where the last end."""
        return (0, *(int(end) for end in np.cumsum([table.shape[1] for table in self.tables])))

    @property
    def size(self) -> int:
        """Numbers of all columns together."""
        return self.ends[-1]

    @cached_property
    def products(self) -> NDArray[np.bool_]:
        """Which products there are, symmetric in each block; shape (size, size) or (size, 2 size).

        The first block has products of two different columns, the second those of two columns other than the
        outcome, times the outcome.
        """
        column = np.repeat(np.arange(len(self.tables)), np.diff(self.ends))
        different = column[:, None] != column[None, :]
        if self.outcome is None:
            return different
        other = column != self.outcome
        return np.hstack([different, different & other[:, None] & other[None, :]])

    @cached_property
    def places(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Rows and columns of the products, each once, as a vector has them."""
        row, column = np.indices(self.products.shape)
        rows, columns = np.nonzero(self.products & (row < column % self.size))
        return rows, columns

    @cached_property
    def squares(self) -> tuple[NDArray[np.float32], ...]:
        """Squared length of each bin's numbers, column by column."""
        return tuple((table**2).sum(axis=1) for table in self.tables)

    def values(self, draws: NDArray[np.int64]) -> NDArray[np.float32]:
        """The numbers of each record, shape (m, size)."""
        return values_of(self.tables, draws)

    def partners(self, values: NDArray[np.floating]) -> NDArray[np.floating]:
        """What a record's numbers are multiplied by: themselves, and themselves times the outcome."""
        if self.outcome is None:
            return values
        outcome = values[:, [self.ends[self.outcome]]]
        return np.hstack([values, OUTCOME_WEIGHT * outcome * values])

    def sums(
        self, draws: NDArray[np.int64]
    ) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.float32]]:
        """What `length_of` takes, by record, shapes (m,)."""
        squares = np.stack([square[draws[:, j]] for j, square in enumerate(self.squares)], axis=1)
        if self.outcome is None:
            return squares.sum(axis=1), (squares**2).sum(axis=1), np.zeros(len(squares), squares.dtype)
        others = np.delete(squares, self.outcome, axis=1)
        return others.sum(axis=1), (others**2).sum(axis=1), squares[:, self.outcome]

    def lengths(self, draws: NDArray[np.int64]) -> NDArray[np.float32]:
        """Length of each record's vector of products before it is scaled, shape (m,)."""
        return length_of(*self.sums(draws))

    def scale(self, draws: NDArray[np.int64]) -> NDArray[np.float32]:
        """What each record's vector is multiplied by, shape (m,)."""
        return np.minimum(np.float32(1.0), np.float32(self.cap) / self.lengths(draws))

    def moments(self, draws: NDArray[np.int64]) -> tuple[Floats, Floats]:
        """Mean and variance of each product over records, of the shape of ``products``."""
        values, scale = self.values(draws), self.scale(draws)[:, None]
        partners = self.partners(values)
        mean = np.where(self.products, (values * scale).T @ partners, 0.0) / len(draws)
        squares = np.where(self.products, ((values * scale) ** 2).T @ partners**2, 0.0) / len(draws)
        return mean, np.maximum(squares - mean**2, 0.0)

    def total(self, draws: NDArray[np.int64]) -> Floats:
        """Sum of the records' vectors, each divided by the cap: one record adds at most length 1.

        Lengths are computed anew, in double precision and by sums of positive numbers alone: those of
        `lengths` are off by a ten-millionth, and by more where one column is far longer than all others.
        """
        values = self.values(draws).astype(np.float64)
        squares = np.add.reduceat(values**2, self.ends[:-1], axis=1)
        outcome = np.zeros(len(squares)) if self.outcome is None else squares[:, self.outcome]
        others = squares if self.outcome is None else np.delete(squares, self.outcome, axis=1)
        pairs = (others[:, 1:] * np.cumsum(others, axis=1)[:, :-1]).sum(axis=1)
        square = pairs * (1 + OUTCOME_WEIGHT**2 * outcome) + others.sum(axis=1) * outcome
        lengths = np.sqrt(np.maximum(square, _SHORTEST**2))
        weights = np.minimum(1.0, self.cap / lengths) / self.cap
        return np.asarray(((values * weights[:, None]).T @ self.partners(values))[self.places])

    def matrix(self, vector: Floats) -> Floats:
        """A vector of products, of the shape of ``products`` and symmetric in each block."""
        matrix = np.zeros(self.products.shape)
        matrix[self.places] = vector
        blocks = [matrix[:, start : start + self.size] for start in range(0, matrix.shape[1], self.size)]
        return np.hstack([block + block.T for block in blocks])


def length_of(
    total: NDArray[np.floating], squared: NDArray[np.floating], outcome: NDArray[np.floating]
) -> NDArray[np.floating]:
    """Length of a vector of products.

    With q the squared lengths of the columns' numbers but for the outcome's, Q and R the sums of q and of
    q^2, y^2 the outcome's and w its weight: sqrt((Q^2 - R) / 2 (1 + w^2 y^2) + Q y^2).

    Examples
    --------
    >>> q = np.array([4.0, 9.0, 1.0])  # numbers 2, 3, 1: products 6, 2, 3
    >>> float(length_of(q.sum(), (q**2).sum(), np.zeros(())))
    7.0
    """
    pairs = np.maximum((total**2 - squared) / 2, 0)
    return np.sqrt(np.maximum(pairs * (1 + OUTCOME_WEIGHT**2 * outcome) + total * outcome, _SHORTEST**2))


def tables_of(bins: Bins) -> tuple[NDArray[np.float32], ...]:
    """The numbers of each bin, column by column, shapes (bins, numbers): see `numbers`."""
    return tuple(
        numbers(binning, grid.ordered, grid.ordered and grid.column.missing)
        for grid, binning in zip(bins.grids, bins.binnings, strict=True)
    )


def values_of(tables: Sequence[NDArray[np.float32]], draws: NDArray[np.int64]) -> NDArray[np.float32]:
    """The numbers of each record, shape (m, numbers of all columns)."""
    return np.hstack([table[draws[:, j]] for j, table in enumerate(tables)])


def numbers(binning: Binning, ordered: bool, missing: bool) -> NDArray[np.float32]:
    """The numbers of each bin of one column, of mean 0 and variance 1 under the released probabilities.

    Parameters
    ----------
    binning : Binning
    ordered : bool
        One number, the rank; otherwise an indicator of each category, or of the second of two.
    missing : bool
        Whether the last bin of an ordered column is of missing values: it has a number of its own.

    Returns
    -------
    float32 array, shape (bins, numbers)

    Examples
    --------
    >>> binning = Binning(np.arange(3), np.array([0.25, 0.5, 0.25]))
    >>> [round(float(rank), 2) for rank in numbers(binning, ordered=True, missing=False)[:, 0]]
    [-1.41, 0.0, 1.41]
    """
    p = np.maximum(binning.probabilities, 1e-9)
    p = p / p.sum()
    if ordered:
        present = p[:-1] if missing else p
        ranks = (2 * np.cumsum(present) - present) / present.sum() - 1.0
        table = ranks[:, None]
        if missing:
            table = np.vstack([np.column_stack([table, np.zeros(len(ranks))]), [0.0, 1.0]])
    else:
        table = np.eye(len(p))[:, 1:] if len(p) == 2 else np.eye(len(p))
    table = table - p @ table  # ranks are centred already: of a missing value they are 0
    deviation = np.maximum(np.sqrt(p @ table**2), _LEAST_DEVIATION)
    # Indicators of many categories say little each.
    return (table / deviation / (np.sqrt(2.0) if table.shape[1] > 2 else 1.0)).astype(np.float32)
