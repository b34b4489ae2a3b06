"""Features of records: products of pairs of columns.

Each column has a few numbers that place a record in it. An ordered column has the rank of its bin. Other
columns have an indicator of each category. A missing value has one too. The numbers are centred and divided
by their standard deviation under the released marginals. These numbers and the length below come from earlier
noisy statistics.

A pair of columns has the products of their numbers. If the outcome is one number, these products are also
multiplied by the outcome. A record's products form one vector. It is scaled down to a length that half of
the base model's samples have. Long vectors belong to rare values, and noise is in proportion to the longest.

Numbers are rounded to a public step. Sums of products of them are then exact, in any order of the records.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dpsynth.files.codec import record
from dpsynth.marginals.binning import Binning, Bins

Floats = NDArray[np.float64]

#: A rare value's indicator is divided by no less: one record of it would be longer than all others together.
_LEAST_DEVIATION = 0.15
#: No vector counts as shorter: where all columns are constant, all are rounding.
SHORTEST = 1e-3
#: Of the products with the outcome: they add an eighth to the noise of the others.
OUTCOME_WEIGHT = 0.5
#: Steps of the columns' numbers, of factors that scale vectors down, and of products.
NUMBER_STEP, SCALE_STEP = 2.0**-12, 2.0**-10
PRODUCT_STEP = NUMBER_STEP**2 * SCALE_STEP
#: Records whose products are summed at once: 512 of length 1,024 have no more than 2^53 steps.
_EXACT = 512


@record
@dataclass(frozen=True, eq=False)
class PairFeatures:
    """Products of the columns' numbers, one vector a record, made with `PairFeatures.of`.

    ``tables``, shapes (bins, numbers): the numbers of each bin, column by column.
    ``cap``: longest vector. Longer ones are scaled down to it.
    ``outcome``: A column of one number, by which the products of all others are multiplied once more.
    """

    tables: tuple[NDArray[np.float32], ...]
    cap: float
    outcome: int | None = None

    @classmethod
    def of(cls, bins: Bins, draws: NDArray[np.int64], outcome: int | None = None) -> PairFeatures:
        """Features of binned columns.

        ``draws``, shape (m, columns): bins of the base model's samples. Half of them keep their length.
        ``outcome``: index of the outcome. It counts only if it has one number.
        """
        tables = tables_of(bins)
        known = None if outcome is None or tables[outcome].shape[1] > 1 else outcome
        free = cls(tables, np.inf, known)
        return cls(tables, max(float(np.median(free.lengths(draws))), SHORTEST), known)

    @cached_property
    def ends(self) -> tuple[int, ...]:
        """First index of the numbers of each column, and the end of the last."""
        return (0, *(int(end) for end in np.cumsum([table.shape[1] for table in self.tables])))

    @property
    def size(self) -> int:
        """Numbers of all columns together."""
        return self.ends[-1]

    @cached_property
    def products(self) -> NDArray[np.bool_]:
        """Mask of the products, symmetric in each block, shape (size, size) or (size, 2 size).

        The first block has products of two different columns. The second has those of two columns other than
        the outcome, times the outcome.
        """
        column = np.repeat(np.arange(len(self.tables)), np.diff(self.ends))
        different = column[:, None] != column[None, :]
        if self.outcome is None:
            return different
        other = column != self.outcome
        return np.hstack([different, different & other[:, None] & other[None, :]])

    @cached_property
    def kinds(self) -> NDArray[np.int64]:
        """Kind of each product, of the shape of ``products``.

        0: two columns, 1: a column and the outcome, 2: two columns, times the outcome. All have kind 0 if the
        outcome is not one number.
        """
        kinds = np.full(self.products.shape, 2)
        kinds[:, : self.size] = 0
        if self.outcome is not None:
            number = self.ends[self.outcome]
            kinds[number, : self.size] = kinds[:, number] = 1
        return kinds

    @cached_property
    def places(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Rows and columns of the products, each once, as a vector has them."""
        row, column = np.indices(self.products.shape)
        rows, columns = np.nonzero(self.products & (row < column % self.size))
        return rows, columns

    @cached_property
    def squares(self) -> tuple[NDArray[np.float32], ...]:
        """Squared length of each bin's numbers, column by column, shapes (bins,)."""
        return self._squares(np.float32)

    def _squares(self, dtype: type[np.floating]) -> tuple[NDArray, ...]:
        return tuple((table.astype(dtype) ** 2).sum(axis=1) for table in self.tables)

    def values(self, draws: NDArray[np.int64]) -> NDArray[np.float32]:
        """The numbers of each record, shape (m, size)."""
        return values_of(self.tables, draws)

    def sums(
        self, draws: NDArray[np.int64], dtype: type[np.floating] = np.float32
    ) -> tuple[NDArray, NDArray, NDArray]:
        """Arguments of `length_of`, shapes (m,).

        The first are sums of squared lengths over all columns but the outcome. The second are those of
        products over pairs of them. The last is the squared outcome, 0 without one. All terms are positive,
        so nothing cancels.
        """
        total = np.zeros(len(draws), dtype=dtype)
        pairs, outcome = np.zeros_like(total), np.zeros(len(draws), dtype=dtype)
        for j, squares in enumerate(self.squares if dtype is np.float32 else self._squares(dtype)):
            square = squares[draws[:, j]]
            if j == self.outcome:
                outcome = square
            else:
                pairs += total * square
                total += square
        return total, pairs, outcome

    def lengths(self, draws: NDArray[np.int64]) -> NDArray[np.float32]:
        """Length of each record's vector of products before it is scaled, shape (m,)."""
        return length_of(*self.sums(draws))

    def scale(self, draws: NDArray[np.int64], dtype: type[np.floating] = np.float32) -> NDArray[np.floating]:
        """Factor of each record's vector, shape (m,): in steps, rounded down."""
        lengths = length_of(*self.sums(draws, dtype))
        # Smaller by more than a length is rounded.
        factors = np.minimum(1.0, self.cap * (1.0 - 2.0**-40) / lengths)
        return np.asarray(np.floor(factors / SCALE_STEP) * SCALE_STEP, dtype=dtype)

    def factors(
        self, draws: NDArray[np.int64], dtype: type[np.floating]
    ) -> list[tuple[NDArray[np.floating], NDArray[np.floating]]]:
        """Numbers whose products each block has, by record, shapes (m, size)."""
        values = self.values(draws).astype(dtype)
        if self.outcome is None:
            return [(values, values)]
        outcome = OUTCOME_WEIGHT * values[:, [self.ends[self.outcome]]]
        return [(values, values), (values, outcome * values)]

    def mean_and_variance(self, draws: NDArray[np.int64]) -> tuple[Floats, Floats]:
        """Mean and variance of each product over records, of the shape of ``products``."""
        scale, factors = self.scale(draws)[:, None], self.factors(draws, np.float32)
        mean = np.hstack([(one * scale).T @ other for one, other in factors])
        squares = np.hstack([((one * scale) ** 2).T @ other**2 for one, other in factors])
        mean, squares = (np.where(self.products, sums, 0.0) / len(draws) for sums in (mean, squares))
        return mean, np.maximum(squares - mean**2, 0.0)

    def total(self, draws: NDArray[np.int64]) -> NDArray[np.int64]:
        """Sum of the records' vectors, whole numbers of `PRODUCT_STEP`: one adds at most the cap's length.

        Lengths are computed in double precision: those of `lengths` are off by a ten-millionth. A block's
        products are multiples of the step, and too few for a rounded sum.
        """
        total = np.zeros(len(self.places[0]), np.int64)
        for start in range(0, len(draws), _EXACT):
            part = draws[start : start + _EXACT]
            scale = self.scale(part, np.float64)[:, None]
            # Products with the outcome are rounded to the step of numbers, towards zero.
            sums = [
                (one * scale).T @ (np.trunc(other / NUMBER_STEP) * NUMBER_STEP)
                for one, other in self.factors(part, np.float64)
            ]
            total += np.rint(np.hstack(sums)[self.places] / PRODUCT_STEP).astype(np.int64)
        return total

    def matrix(self, vector: Floats) -> Floats:
        """A vector of products, of the shape of ``products`` and symmetric in each block."""
        matrix = np.zeros(self.products.shape)
        matrix[self.places] = vector
        blocks = [matrix[:, start : start + self.size] for start in range(0, matrix.shape[1], self.size)]
        return np.hstack([block + block.T for block in blocks])


def length_of(
    total: NDArray[np.floating], pairs: NDArray[np.floating], outcome: NDArray[np.floating]
) -> NDArray[np.floating]:
    """Length of a vector of products.

    It is sqrt(P + y^2 (w^2 P + Q)). Q is the sum of the squared lengths of the columns' numbers, without the
    outcome's. P is that of their products by pairs. y^2 is the outcome's, and w its weight.

    ``total``, ``pairs``, ``outcome``, of one shape: Q, P and y^2.

    Examples
    --------
    >>> float(length_of(np.array(14.0), np.array(49.0), np.zeros(())))  # numbers 2, 3, 1: products 6, 2, 3
    7.0
    """
    square = pairs + outcome * (OUTCOME_WEIGHT**2 * pairs + total)
    return np.sqrt(np.maximum(square, SHORTEST**2))


def tables_of(bins: Bins) -> tuple[NDArray[np.float32], ...]:
    """The numbers of each bin, column by column, shapes (bins, numbers): see `bin_numbers`."""
    return tuple(
        bin_numbers(binning, grid.ordered, grid.size - grid.present if grid.ordered else 0)
        for grid, binning in zip(bins.grids, bins.binnings, strict=True)
    )


def values_of(tables: Sequence[NDArray[np.float32]], draws: NDArray[np.int64]) -> NDArray[np.float32]:
    """The numbers of each record, shape (m, numbers of all columns)."""
    # each number of all records after another, which is several times faster
    return np.vstack([table.T.take(draws[:, j], axis=1) for j, table in enumerate(tables)]).T


def bin_numbers(binning: Binning, ordered: bool, apart: int) -> NDArray[np.float32]:
    """The numbers of each bin of one column, of mean 0 and variance 1 under the released probabilities.

    ``ordered``: one number, the rank. Otherwise an indicator of each category, or of the second of two.
    ``apart``: last bins of an ordered column, those of special codes or missing values. Each has its own
        number.

    Returns float32 array, shape (bins, numbers).

    Examples
    --------
    >>> binning = Binning(np.arange(3), np.array([0.25, 0.5, 0.25]))
    >>> [round(float(rank), 2) for rank in bin_numbers(binning, ordered=True, apart=0)[:, 0]]
    [-1.41, 0.0, 1.41]
    """
    p = np.maximum(binning.probabilities, 1e-9)
    p = p / p.sum()
    if ordered:
        present = p[: len(p) - apart]
        ends = 2 * np.append(0.0, np.cumsum(present)) / present.sum() - 1.0
        ranks = (ends[:-1] + ends[1:]) / 2
        table = np.zeros((len(p), 1 + apart))
        table[: len(ranks), 0], table[len(ranks) :, 1:] = ranks, np.eye(apart)
    else:
        table = np.eye(len(p))[:, 1:] if len(p) == 2 else np.eye(len(p))
    table = table - p @ table  # ranks are centred already: of a missing value they are 0
    deviation = np.maximum(np.sqrt(p @ table**2), _LEAST_DEVIATION)
    # Each of many categories' indicators holds little.
    table = table / deviation / (np.sqrt(2.0) if table.shape[1] > 2 else 1.0)
    return (np.rint(table / NUMBER_STEP) * NUMBER_STEP).astype(np.float32)
