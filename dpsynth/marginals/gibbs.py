"""Samples of a reweighted base model: all columns of all records are drawn anew given the others, many times.

Gibbs sampling (Geman and Geman 1984) of discrete records. The distribution of one column's bin, given the
others, is computed over all its bins. It is the product of the reweighting and of the base model's tables and
rules that hold the column. A sweep visits the columns in random order. Samples of the base model are the
start, so few sweeps are enough if the reweighting is mild. Post-processing: all this is a function of
released numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpsynth.files.codec import record
from dpsynth.marginals.binning import Binning
from dpsynth.marginals.factors import conditional, lacking_bins, missing_values
from dpsynth.marginals.features import OUTCOME_WEIGHT, PairFeatures
from dpsynth.parallel import in_blocks

# ------------------------------------------------------------------------------------------------
# A reweighting: how likely each record is, compared with the base model.
#
# The distribution of a reweighted base model is
#
#     q(x)  ~  p(x) exp(s(x) sum over i < j of r_ij(x) + sum of h_j(x_j) + m(k(x)))
#
# with ``r_ij(x) = a_i(x_i)' (T_ij + w y U_ij) a_j(x_j) + w y b_i(x_i) V_ij b_j(x_j)``. Here p is the base
# model, a_j the numbers of a column's bin and b_j its half. The outcome has number y and weight w. The
# scaling s is that of `dpsynth.marginals.features`, and k is the number of missing values. Among all
# distributions with its mean features it is nearest to the base model in Kullback-Leibler divergence
# (Csiszar 1975, "I-divergence geometry"). The terms h and m keep single-column counts and the distribution
# of missing values as released.

Floats = NDArray[np.float32]


@record
@dataclass(frozen=True, eq=False)
class Reweighting:
    """Factors of the base model.

    ``pairs``, shape of ``features.products``: T, with U and V beside it if there is an outcome, symmetric and
        zero within a column.
    ``columns``, shapes (bins,): h.
    ``missing``, shape (panel + 1,): m, by the number of missing values.
    ``mean``, of the same shape, and ``noise_std``: the pairwise statistics that it was fitted to, and the
        noise in an entry.
    """

    features: PairFeatures
    pairs: Floats
    columns: tuple[Floats, ...]
    missing: Floats
    mean: Floats
    noise_std: float

    @classmethod
    def of_columns(cls, binnings: Sequence[Binning], panel: Sequence[int]) -> Reweighting:
        """One without any products, whose factors are all 1."""
        sizes = [binning.size for binning in binnings]
        features = PairFeatures(tuple(np.zeros((size, 0), np.float32) for size in sizes), 1.0)
        columns = tuple(np.zeros(size, np.float32) for size in sizes)
        missing = np.zeros(len(panel) + 1, np.float32)
        nothing = np.zeros((0, 0), np.float32)
        return cls(features, nothing, columns, missing, nothing, 0.0)


#: Records that are swept together at most, so that their arrays stay in cache.
_BLOCK = 8192
#: Columns whose products are made together.
_TOGETHER = 10
#: A product with no more rows is faster row by row: with more, BLAS first copies the other matrix.
_FEW_ROWS = 8


class HeatBath:
    """Sweeps over records of a base model.

    ``panel``: columns whose missing values are counted together, or none.
    ``still``, shape (panel + 1,), optional: numbers of missing values of records that stay as they are.
    ``rules``: columns of each rule and, by their bins, the log share of records that obey it.
    """

    def __init__(
        self,
        binnings: Sequence[Binning],
        root: int,
        factors: Sequence[tuple[tuple[int, ...], int, NDArray[np.float64]]],
        panel: Sequence[int],
        still: NDArray[np.bool_] | None = None,
        rules: Sequence[tuple[tuple[int, ...], Floats]] = (),
    ) -> None:
        self.panel, self.still = list(panel), still
        #: bin of missing values, of the panel's columns
        self.last = lacking_bins(binnings)
        #: For each column the tables that hold it: other columns, their sizes, log conditionals, it last.
        self.tables: list[list[tuple[tuple[int, ...], tuple[int, ...], Floats]]] = [[] for _ in self.last]
        first = np.maximum(binnings[root].probabilities, 1e-12)
        self.tables[root].append(((), (), np.log(first)[None].astype(np.float32)))
        tables = [
            ((*parents, child), np.log(conditional(table)).astype(np.float32))
            for parents, child, table in factors
        ]
        for family, logs in (*tables, *rules):
            for place, column in enumerate(family):
                others = family[:place] + family[place + 1 :]
                moved = np.moveaxis(logs, place, -1)
                flat = np.ascontiguousarray(moved.reshape(-1, logs.shape[place]))
                self.tables[column].append((others, moved.shape[:-1], flat))

    def missing(self, draws: NDArray[np.int64]) -> NDArray[np.int64]:
        """Number of missing values of each record among the panel's columns, shape (n,)."""
        return missing_values(draws, self.panel, self.last)

    def sweep(
        self, draws: NDArray[np.int64], reweighting: Reweighting, rng: np.random.Generator, times: int = 1
    ) -> None:
        """Draw every column of every record anew, ``times`` times, in place.

        ``draws``, shape (n, columns): Bins.
        """
        if self.still is not None and self.still.any():
            moving = np.flatnonzero(~self.still[self.missing(draws)])
            if len(moving) < len(draws):
                swept = np.asfortranarray(draws[moving])
                self.sweep(swept, reweighting, rng, times)
                draws[moving] = swept
                return
        energies = _Energies(reweighting)

        def work(part: slice, own: np.random.Generator) -> None:
            _Sweeper(self, energies, draws[part], own).run(times)

        in_blocks(work, len(draws), _BLOCK, rng)


class _Column(NamedTuple):
    """Terms of the energy of a column's bins. Its rows are its numbers, and its halves that count.

    ``rows``, shape (rows,): places among the rows of all columns.
    ``numbers``, shape (rows, bins).
    ``linear``, shape (bins, 1 + rows): the same beside ones.
    ``lengths``, shape (bins, 3): ones and squares by which a vector's length grows, compared with the cap.
    ``pairs``: energies of products with all numbers, then of those that the outcome multiplies.
    ``halved``: energies of products with all halves, which the outcome multiplies.
    """

    rows: NDArray[np.int64]
    numbers: Floats
    linear: Floats
    lengths: Floats
    pairs: Floats
    halved: Floats


class _Energies:
    """A reweighting by rows: the numbers of all columns, then those of their halves that count.

    ``plain``, ``thirds``, ``halved``: energies of products, and of those that the outcome multiplies, by
        numbers and halves. The last two are empty without an outcome.
    """

    def __init__(self, reweighting: Reweighting) -> None:
        features = self.features = reweighting.features
        self.reweighting, size, outcome = reweighting, features.size, features.outcome
        counts = np.concatenate(
            [half.any(axis=0) & (outcome not in (None, j)) for j, half in enumerate(features.halves)]
        )
        self.plain, thirds, halves = (reweighting.pairs[:, k * size : (k + 1) * size] for k in range(3))
        weight = np.float32(OUTCOME_WEIGHT)
        self.thirds = weight * thirds
        self.halved = weight * halves[np.ix_(counts, counts)] if halves.size else halves[:0]
        places = size + np.cumsum(counts) - 1
        #: rows of all columns
        self.size = size + int(counts.sum())
        self.columns: list[_Column] = []
        cap = np.float32(features.cap**2)
        for j, (table, half) in enumerate(zip(features.tables, features.halves, strict=True)):
            here = slice(features.ends[j], features.ends[j + 1])
            kept = counts[here]
            own = np.hstack([table, half[:, kept]])
            ones, multiplied = np.ones((len(table), 1), np.float32), bool(self.thirds.size) and j != outcome
            self.columns.append(
                _Column(
                    np.concatenate([np.arange(size)[here], places[here][kept]]),
                    np.ascontiguousarray(own.T),
                    np.hstack([ones, own]),
                    np.hstack([ones, features.squares[j].T]) / cap,
                    np.vstack([self.plain[here], self.thirds[here]]) if multiplied else self.plain[here],
                    self.halved[places[here][kept] - size] if multiplied else self.halved[:0],
                )
            )


class _Sweeper:
    """Records in a sweep, one in each column of the arrays, which is faster."""

    def __init__(
        self, bath: HeatBath, energies: _Energies, draws: NDArray[np.int64], rng: np.random.Generator
    ) -> None:
        self.bath, self.energies, self.rng = bath, energies, rng
        self.draws, self.columns = draws, np.ascontiguousarray(draws.T)
        self.values = np.empty((energies.size, len(draws)), np.float32)
        for column, bins in zip(energies.columns, self.columns, strict=True):
            self.values[column.rows] = column.numbers.take(bins, axis=1)
        features = energies.features
        self.total, self.products, self.outcome = features.sums(draws)
        numbers, halves = np.split(self.values, [features.size])
        self.energy = _energy(energies.plain, numbers)
        if features.outcome is not None:
            #: the outcome's number; a view, which follows the draws
            self.number = self.values[features.ends[features.outcome]]
            #: what an outcome of 1 adds to the energy
            self.per_outcome = _energy(energies.thirds, numbers) + _energy(energies.halved, halves)
            self.energy += self.number * self.per_outcome
        self.missing = bath.missing(draws)
        self.ones = np.ones(len(draws), np.float32)

    def run(self, times: int) -> None:
        for _ in range(times):
            order = self.rng.permutation(len(self.bath.last)).tolist()
            for start in range(0, len(order), _TOGETHER):
                self.draw(order[start : start + _TOGETHER])
        self.draws[:] = self.columns.T

    def draw(self, group: Sequence[int]) -> None:
        """Draw columns of every record, one after the other, each given all others.

        Their products with all numbers are made together. Those with columns drawn meanwhile are corrected.
        """
        ends, numbers = self.energies.features.ends, self.values[: self.energies.features.size]
        pairs = [self.energies.columns[j].pairs for j in group]
        products = np.split(np.vstack(pairs) @ numbers, np.cumsum([len(by) for by in pairs]))
        rows = np.concatenate([np.arange(ends[j], ends[j + 1]) for j in group])
        moved, done = numbers[rows], 0
        for j, by, slopes in zip(group, pairs, products, strict=False):
            slopes -= _times(by[:, rows[:done]], moved[:done])
            self._draw(j, slopes)
            now = slice(done, done + ends[j + 1] - ends[j])
            moved[now] -= numbers[rows[now]]
            done = now.stop

    def _draw(self, j: int, slopes: Floats) -> None:
        """Draw column j given the others, with energies linear in its numbers.

        ``slopes``, shape (rows of its pairs, n): how the energy grows with its numbers.
        """
        energies, features, total, products = self.energies, self.energies.features, self.total, self.products
        column, squares = energies.columns[j], features.squares[j]
        own = self.values[column.rows]
        slopes, thirds = np.split(slopes, [features.ends[j + 1] - features.ends[j]])
        thirds = np.vstack([thirds, _times(column.halved, self.values[features.size :])])
        if j == features.outcome:
            slopes += self.per_outcome
        else:
            left = squares.take(self.columns[j], axis=1)
            total = total - left
            products = products - total * left
            if len(thirds):
                plain, slopes = slopes, self.number * thirds
                slopes[: len(plain)] += plain
        rest = self.energy - _inner(slopes, own)
        logits: Floats = column.linear @ np.vstack([rest, slopes])
        logits /= self._lengths(j, total, products)
        logits += self._logs(j).T
        if j in self.bath.panel:
            missing = self.energies.reweighting.missing
            without = self.missing - (self.columns[j] == self.bath.last[j])
            logits[self.bath.last[j]] += missing[without + 1] - missing[without]
        new = draw_logits(logits, self.rng)
        if j in self.bath.panel:
            self.missing = without + (new == self.bath.last[j])
        self.columns[j] = new
        entered = column.numbers.take(new, axis=1)
        self.energy = rest + _inner(slopes, entered)
        if len(thirds):
            self.per_outcome += _inner(thirds, entered - own)
        self.values[column.rows] = entered
        if j == features.outcome:
            self.outcome = squares[0].take(new)
        else:
            entered = squares.take(new, axis=1)
            self.total, self.products = total + entered, products + total * entered

    def _lengths(self, j: int, total: Floats, products: Floats) -> Floats:
        """Length of each record by the bin of column j, compared with the longest, at least 1.

        ``total``, ``products``, shapes (2, n): of all columns but j and the outcome, see `length_of`.
        """
        weight, outcome = np.float32(OUTCOME_WEIGHT**2), self.outcome
        by_outcome = weight * products.sum(axis=0) + total[0]
        if j == self.energies.features.outcome:
            parts = [products[0], by_outcome, np.zeros_like(by_outcome)]
        else:
            weighted = weight * outcome * total
            parts = [products[0] + outcome * by_outcome, total[0] + outcome + weighted[0], weighted[1]]
        # squared lengths are linear in the squares of column j
        length: Floats = self.energies.columns[j].lengths @ np.vstack(parts)
        np.maximum(length, self.ones, out=length)  # an array of ones is faster than the number
        return np.sqrt(length, out=length)

    def _logs(self, j: int) -> Floats:
        """Sum of column j's terms and of its tables' log conditionals, shape (n, bins)."""
        for k, (others, sizes, logs) in enumerate(self.bath.tables[j]):
            cell = self.columns[others[0]] if others else np.zeros(len(self.ones), np.int64)
            for column, size in zip(others[1:], sizes[1:], strict=True):
                cell = cell * size + self.columns[column]
            if k == 0:
                found = (logs + self.energies.reweighting.columns[j]).take(cell, axis=0)
            else:
                found += logs.take(cell, axis=0)
        return found


def _times(matrix: Floats, values: Floats) -> Floats:
    """Product of a matrix with one of many columns, row by row if rows are few."""
    if len(matrix) > _FEW_ROWS:
        return matrix @ values
    product = np.empty((len(matrix), values.shape[1]), np.float32)
    for row, out in zip(matrix, product, strict=True):
        np.dot(row, values, out=out)
    return product


def _energy(pairs: Floats, values: Floats) -> Floats:
    """Sum over pairs of columns of a_i' T_ij a_j, shape (n,)."""
    return _inner(pairs @ values, values) / np.float32(2.0)


def _inner(one: Floats, other: Floats) -> Floats:
    """Inner product of each record's two vectors, shape (n,)."""
    return np.asarray(np.einsum("kn,kn->n", one, other))


def draw_logits(logits: Floats, rng: np.random.Generator) -> NDArray[np.int64]:
    """Draw one entry of each column in proportion to exp(logit), shape (n,), and overwrite the logits.

    Examples
    --------
    >>> draw_logits(np.array([[0.0, -99.0], [-99.0, 3.0]], np.float32), np.random.default_rng(0))
    array([0, 1])
    """
    logits -= logits.max(axis=0)
    np.exp(logits, out=logits)
    for below, own in pairwise(logits):  # NumPy's sums along the first axis are many times slower
        own += below
    passed = logits[:-1] <= rng.random(logits.shape[1], dtype=np.float32) * logits[-1]
    # bins are counted in bytes where they can be, which is several times faster
    dtype = np.uint8 if len(logits) <= 256 else np.int64
    return passed.view(np.uint8).sum(axis=0, dtype=dtype).astype(np.int64)
