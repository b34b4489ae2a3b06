"""Samples of a reweighted base model: all columns of all records are drawn anew given the others, many times.

Gibbs sampling (Geman and Geman 1984) of discrete records. The distribution of one column's bin, given the
others, is computed over all its bins. It is the product of the reweighting and of the base model's tables and
rules that hold the column. A sweep visits the columns in random order. Samples of the base model are the
start, so few sweeps are enough if the reweighting is mild. Post-processing: all this is a function of
released numbers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from os import cpu_count

import numpy as np
from numpy.typing import NDArray

from dpsynth.model.base_model.missing_counts import conditional, lacking_bins, missing_values
from dpsynth.model.reweighting.reweighting import Reweighting
from dpsynth.releases.bins import Binning
from dpsynth.releases.features import OUTCOME_WEIGHT, values_of

Floats = NDArray[np.float32]

#: Records that are swept together at most, so that their arrays stay in cache, and number of such blocks that
#: are equally long, for as many cores.
_BLOCK, _ALIKE = 8192, 2


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
        #: For each column the tables that hold it: other columns, their sizes, log conditionals, it first.
        self.tables: list[list[tuple[tuple[int, ...], tuple[int, ...], Floats]]] = [[] for _ in self.last]
        first = np.maximum(binnings[root].probabilities, 1e-12)
        self.tables[root].append(((), (), np.log(first)[:, None].astype(np.float32)))
        tables = [
            ((*parents, child), np.log(conditional(table)).astype(np.float32))
            for parents, child, table in factors
        ]
        for family, logs in (*tables, *rules):
            for place, column in enumerate(family):
                others = family[:place] + family[place + 1 :]
                moved = np.moveaxis(logs, place, 0)
                flat = np.ascontiguousarray(moved.reshape(logs.shape[place], -1))
                self.tables[column].append((others, moved.shape[1:], flat))

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
        blocks = _ALIKE * max(math.ceil(len(draws) / (_ALIKE * _BLOCK)), 1)
        size = max(math.ceil(len(draws) / blocks), 1)
        starts = range(0, len(draws), size)
        seeds = rng.integers(2**63, size=len(starts))

        def work(start: int, seed: int) -> None:
            part = draws[start : start + size]
            _Sweeper(self, reweighting, part, np.random.Generator(np.random.SFC64(seed))).run(times)

        with ThreadPoolExecutor(max_workers=min(cpu_count() or 1, max(len(starts), 1))) as pool:
            for _ in pool.map(work, starts, seeds):
                pass


class _Sweeper:
    """Records in a sweep, one in each column of the arrays, which is faster."""

    def __init__(
        self, bath: HeatBath, reweighting: Reweighting, draws: NDArray[np.int64], rng: np.random.Generator
    ) -> None:
        self.bath, self.reweighting, self.rng = bath, reweighting, rng
        self.draws, self.columns = draws, np.ascontiguousarray(draws.T)
        features = reweighting.features
        self.values = np.ascontiguousarray(features.values(draws).T)
        self.total, self.products, self.outcome = features.sums(draws)
        self.pairs = reweighting.pairs[:, : features.size]
        self.energy = _energy(self.pairs, self.values)
        if features.outcome is not None:
            self.halves = np.ascontiguousarray(values_of(features.halves, draws).T)
            thirds = np.float32(OUTCOME_WEIGHT) * reweighting.pairs[:, features.size :]
            self.thirds, self.halved = thirds[:, : features.size], thirds[:, features.size :]
            #: the outcome's number; a view, which follows the draws
            self.number = self.values[features.ends[features.outcome]]
            #: what an outcome of 1 adds to the energy
            self.per_outcome = _energy(self.thirds, self.values) + _energy(self.halved, self.halves)
            self.energy = self.energy + self.number * self.per_outcome
        self.missing = bath.missing(draws)

    def run(self, times: int) -> None:
        for _ in range(times):
            for column in self.rng.permutation(len(self.bath.last)):
                self.draw(int(column))
        self.draws[:] = self.columns.T

    def draw(self, j: int) -> None:
        """Draw column j of every record given the others, with energies linear in its numbers."""
        features, reweighting = self.reweighting.features, self.reweighting
        here = slice(features.ends[j], features.ends[j + 1])
        table, squares = features.tables[j], features.squares[j]
        slope, total, products = self.pairs[here] @ self.values, self.total, self.products
        if j == features.outcome:
            slope = slope + self.per_outcome
        else:
            left = squares.take(self.columns[j], axis=1)
            total = total - left
            products = products - total * left
        rest = self.energy - (slope * self.values[here]).sum(axis=0)
        slopes, base, thirds = [(table, slope)], rest, self._thirds(j, here)
        if thirds:
            lost = _inner(thirds, here)
            slopes += [(numbers, self.number * third) for numbers, _, third in thirds]
            base = rest - self.number * lost
        logits = self._scales(j, total, products)
        logits *= _linear(slopes, base)
        logits += reweighting.columns[j][:, None]
        for others, sizes, logs in self.bath.tables[j]:
            logits += np.take(logs, self._cells(others, sizes), axis=1) if others else logs
        if j in self.bath.panel:
            without = self.missing - (self.columns[j] == self.bath.last[j])
            logits[self.bath.last[j]] += reweighting.missing[without + 1] - reweighting.missing[without]
        new = draw_logits(logits, self.rng)
        if j in self.bath.panel:
            self.missing = without + (new == self.bath.last[j])
        self.columns[j] = new
        self.values[here] = table.T.take(new, axis=1)
        self.energy = rest + (slope * self.values[here]).sum(axis=0)
        if thirds:
            for numbers, kept, _ in thirds[1:]:
                kept[here] = numbers.T.take(new, axis=1)
            won = _inner(thirds, here) - lost
            self.per_outcome = self.per_outcome + won
            self.energy = self.energy + self.number * won
        if j == features.outcome:
            self.outcome = squares[0].take(new)
        else:
            entered = squares.take(new, axis=1)
            self.total, self.products = total + entered, products + total * entered

    def _thirds(self, j: int, here: slice) -> list[tuple[Floats, Floats, Floats]]:
        """Column j's part of an outcome's energy: its numbers by bin, by record, and their slopes."""
        features = self.reweighting.features
        if features.outcome in (None, j):
            return []
        thirds = [(features.tables[j], self.values, self.thirds[here] @ self.values)]
        if features.halves[j].any():
            thirds.append((features.halves[j], self.halves, self.halved[here] @ self.halves))
        return thirds

    def _scales(self, j: int, total: Floats, products: Floats) -> Floats:
        """Factor of each record, by the bin of column j: squared lengths are linear in its squares.

        ``total``, ``products``, shapes (2, n): of all columns but j and the outcome, see `length_of`.
        """
        features, (square, half) = self.reweighting.features, self.reweighting.features.squares[j][:, :, None]
        weight, outcome = np.float32(OUTCOME_WEIGHT**2), self.outcome
        by_outcome = weight * products.sum(axis=0) + total[0]
        if j == features.outcome:
            scale = _linear([(square, by_outcome[None])], products[0])
        else:
            weighted = weight * outcome * total
            slopes = [(square, (total[0] + outcome + weighted[0])[None]), (half, weighted[1:])]
            scale = _linear(slopes, products[0] + outcome * by_outcome)
        # a vector no longer than the cap stays as it is
        np.maximum(scale, np.float32(features.cap**2), out=scale)
        return np.divide(np.float32(features.cap), np.sqrt(scale, out=scale), out=scale)

    def _cells(self, others: Sequence[int], sizes: Sequence[int]) -> NDArray[np.int64]:
        """Place of each record among the cells of other columns."""
        cell = self.columns[others[0]]
        for column, size in zip(others[1:], sizes[1:], strict=True):
            cell = cell * size + self.columns[column]
        return cell


def _energy(pairs: Floats, values: Floats) -> Floats:
    """Sum over pairs of columns of a_i' T_ij a_j, shape (n,)."""
    return np.asarray(0.5 * ((pairs @ values) * values).sum(axis=0))


def _inner(thirds: Sequence[tuple[Floats, Floats, Floats]], here: slice) -> Floats:
    """Energy from a column's numbers, shape (n,)."""
    return np.asarray(sum((third * kept[here]).sum(axis=0) for _, kept, third in thirds))


def _linear(terms: Sequence[tuple[Floats, Floats]], rest: Floats) -> Floats:
    """Sum of products of (bins, numbers) with (numbers, n), and of what is the same for all bins."""
    tables, slopes = zip(*terms, strict=True)
    one = np.ones((len(tables[0]), 1), dtype=np.float32)
    return np.asarray(np.hstack([*tables, one]) @ np.vstack([*slopes, rest[None]]))


def draw_logits(logits: Floats, rng: np.random.Generator) -> NDArray[np.int64]:
    """Draw one entry of each column in proportion to exp(logit), shape (n,), and overwrite the logits.

    Examples
    --------
    >>> draw_logits(np.array([[0.0, -99.0], [-99.0, 3.0]], np.float32), np.random.default_rng(0))
    array([0, 1])
    """
    logits -= logits.max(axis=0)
    np.exp(logits, out=logits)
    left = rng.random(logits.shape[1], dtype=np.float32) * logits.sum(axis=0)
    # bins are counted in bytes where they can be, which is several times faster
    drawn = np.zeros(len(left), dtype=np.uint8 if len(logits) <= 256 else np.int64)
    for entry in logits[:-1]:
        left -= entry
        np.add(drawn, (left >= 0).view(np.uint8), out=drawn)
    return drawn.astype(np.int64)
