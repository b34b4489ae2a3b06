"""Counts of groups of yes/no columns: of each column, of each pair, and beside the other columns.

Of a record with more ones than its group may have, some are read as zeros, by a lot that depends on the
record alone. A record with K ones in all adds 1 to K counts of columns and to K (K - 1) / 2 counts of pairs,
however many columns there are. So all these counts together have L2 sensitivity sqrt(K (K + 1) / 2).

The columns outside of groups have numbers, which come from earlier noisy statistics
(`dpsynth.marginals.features`). A record's vector of them is scaled down to a length that half of the base
model's samples have. Each code adds this vector to its sums: their sensitivity is sqrt(K) times the length.
The outcome has sums of its own.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dpsynth.files.codec import record
from dpsynth.marginals.binning import Bins
from dpsynth.marginals.features import NUMBER_STEP, SCALE_STEP, SHORTEST, tables_of
from dpsynth.privacy.records import Records
from dpsynth.privacy.release import Adaptive, GaussianRelease
from dpsynth.table.coded import CodedTable
from dpsynth.table.grid import Grid
from dpsynth.table.schema import Schema

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

#: Square of what a record counts for in the counts of single columns, where it is 1 in those of pairs.
_SINGLE = 2.0
#: The same of the sums beside the outcome, and beside the other columns, whose vectors have length 1.
_OUTCOME, _OTHERS = 1.0, 2.0
#: Step of these vectors.
STEP = NUMBER_STEP * SCALE_STEP
#: Records whose products are summed at once: their sums are exact in single precision.
_BLOCK = 8192


@record
@dataclass(frozen=True, eq=False)
class OtherColumns:
    """Numbers of the columns outside of groups, made with `OtherColumns.of`.

    ``tables``, shapes (cells, numbers): the numbers of each cell of a column's grid, in steps.
    ``outcome``: the column that has a vector of its own.
    ``caps``: longest vectors of the outcome and of the others, as far as there are any. Longer ones are
        scaled down to these.
    """

    tables: tuple[Ints, ...]
    outcome: int | None
    caps: tuple[float, ...]

    @classmethod
    def of(cls, bins: Bins, draws: Ints, outcome: int | None) -> OtherColumns:
        """Numbers of binned columns. ``draws``, shape (m, columns): bins of the base model's samples."""
        tables = [np.rint(table / NUMBER_STEP).astype(np.int64) for table in tables_of(bins)]
        fine = tuple(table[binning.labels] for table, binning in zip(tables, bins.binnings, strict=True))
        free = cls(tuple(tables), outcome, ())
        caps = [float(np.median(free._lengths(draws, block))) for block in free._blocks]
        return cls(fine, outcome, tuple(max(cap, SHORTEST) for cap in caps))

    @property
    def _blocks(self) -> list[list[int]]:
        columns = range(len(self.tables))
        blocks = ([j for j in columns if (j == self.outcome) is alone] for alone in (True, False))
        return [block for block in blocks if block]

    def _numbers(self, cells: Ints, block: Sequence[int]) -> Ints:
        """The numbers of a block's columns in steps, shape (n, numbers)."""
        return np.concatenate([self.tables[j][cells[:, j]] for j in block], axis=1)

    def _lengths(self, cells: Ints, block: Sequence[int]) -> Floats:
        return np.asarray(NUMBER_STEP * np.sqrt((self._numbers(cells, block) ** 2).sum(axis=1)))

    def vectors(self, cells: Ints) -> list[Ints]:
        """The outcome's and the others' vectors of records, shapes (n, numbers), in steps of `STEP`.

        ``cells``, shape (n, columns): of the columns' grids.
        """
        found = []
        for block, cap in zip(self._blocks, self.caps, strict=True):
            # Smaller by more than a length is rounded, and rounded down.
            lengths = np.maximum(self._lengths(cells, block), SHORTEST**2)
            scale = np.floor(np.minimum(1.0, cap * (1.0 - 2.0**-40) / lengths) / SCALE_STEP)
            found.append(self._numbers(cells, block) * scale.astype(np.int64)[:, None])
        return found

    def values(self, cells: Ints) -> Floats:
        """Both vectors as numbers of length 1 at most, shape (n, numbers of both)."""
        pairs = zip(self.vectors(cells), self.caps, strict=True)
        return np.concatenate([vectors * (STEP / cap) for vectors, cap in pairs], axis=1)


@record
@dataclass(frozen=True, eq=False)
class GroupSums:
    """Noisy counts of codes.

    ``single``, shape (codes,), and ``pairs``, shape (codes (codes - 1) / 2,) in the order of
    ``np.triu_indices``: records. ``beside``, shape (codes, numbers): sums of `OtherColumns.values`.
    ``single_std``, ``pair_std``, and ``beside_std``, shape (numbers,): of their noise.
    """

    others: OtherColumns
    n: float
    single: Floats
    pairs: Floats
    beside: Floats
    single_std: float
    pair_std: float
    beside_std: Floats


@dataclass(frozen=True, eq=False)
class Beside:
    """What the sums are read with: the other columns' grids, their numbers, and the number of records."""

    grids: tuple[Grid, ...]
    others: OtherColumns
    n: float


@dataclass(frozen=True, kw_only=True)
class GroupsRelease(Adaptive[Beside], GaussianRelease[GroupSums]):
    """The counts of all groups of a schema together."""

    schema: Schema
    name = "counts of codes and of pairs of codes"

    @property
    def most(self) -> int:
        """Most ones of a record, in all groups together."""
        return sum(min(group.at_most, len(columns)) for group, columns in self.schema.group_columns)

    @cached_property
    def squares(self) -> tuple[float, ...]:
        """Square of what a record counts for: single columns, pairs, beside the outcome, other columns."""
        outside = self.schema.ungrouped.modelled
        outcome = outside.outcome is not None
        beside = ((_OUTCOME, outcome), (_OTHERS, len(outside) > outcome))
        return _SINGLE, 1.0, *(square for square, there in beside if there)

    @property
    def l2_sensitivity(self) -> float:
        """Length of what a record with the most ones adds."""
        single, pairs, *beside = self.squares
        most = self.most
        return math.sqrt(pairs * most * (most - 1) / 2 + (single + sum(beside)) * most)

    @property
    def sensitivity(self) -> str:
        """In words, for the ledger."""
        single, _, *beside = self.squares
        most, own = self.most, single + sum(beside)
        return (
            f"sqrt({most * (most - 1) // 2} + {own * most:g}) for at most {most} codes of a {{record}}, of "
            f"more some by lot: 1 for a pair, sqrt({own:g}) for a code by itself and beside other columns"
        )

    @property
    def weights(self) -> Iterable[float]:
        """Factor of each array, one over the longest vector."""
        single, pairs, *beside = map(math.sqrt, self.squares)
        caps = self.given.others.caps
        return [single, pairs, *(weight / cap for weight, cap in zip(beside, caps, strict=True))]

    @property
    def steps(self) -> Iterable[float]:
        """Counts of records, and sums of vectors."""
        return [1.0, 1.0, *(STEP for _ in self.given.others.caps)]

    def query(self, records: Records) -> list[Ints]:
        """Exact sums: a private quantity, never to be shown."""
        return records.sums(self._sums)

    def _sums(self, table: CodedTable) -> list[Ints]:
        codes = sum(len(columns) for _, columns in self.schema.group_columns)
        together = np.zeros((codes, codes), np.int64)
        beside = [
            np.zeros((codes, vectors.shape[1]), np.int64) for vectors in self._vectors(table.block(0, 0))
        ]
        for start in range(0, len(table), _BLOCK):
            block = table.block(start, start + _BLOCK)
            ones = self._ones(block).astype(np.float32)
            together += np.rint(ones.T @ ones).astype(np.int64)
            # Fewer than 2^53 steps in all: exact in double precision.
            wide = ones.T.astype(np.float64)
            for total, vectors in zip(beside, self._vectors(block), strict=True):
                total += np.rint(wide @ vectors).astype(np.int64)
        return [np.diag(together).copy(), together[np.triu_indices(codes, 1)], *beside]

    def _ones(self, table: CodedTable) -> NDArray[np.bool_]:
        """The codes of each record after thinning, shape (n, codes)."""
        found = []
        for group, columns in self.schema.group_columns:
            ones = np.stack([table.codes(column).number == 1 for column in columns], axis=1)
            found.append(thinned(ones, group.at_most))
        return np.concatenate(found, axis=1)

    def _vectors(self, table: CodedTable) -> list[Ints]:
        grids, others = self.given.grids, self.given.others
        return others.vectors(np.stack([grid.cells(table.codes(grid.column)) for grid in grids], axis=1))

    def finish(self, noisy: Sequence[Floats]) -> GroupSums:
        """The noisy counts, the sums in units of the longest vectors."""
        single, pairs, *sums = noisy
        given, (single_weight, pair_weight, *beside) = self.given, self.weights
        caps, sizes = given.others.caps, [each.shape[1] for each in sums]
        of_each = [self.noise_std / (w * cap) for w, cap in zip(beside, caps, strict=True)]
        return GroupSums(
            given.others,
            given.n,
            single,
            pairs,
            np.concatenate([each / cap for each, cap in zip(sums, caps, strict=True)], axis=1),
            self.noise_std / single_weight,
            self.noise_std / pair_weight,
            np.repeat(of_each, sizes),
        )


def thinned(ones: NDArray[np.bool_], most: int) -> NDArray[np.bool_]:
    """Records with at most so many ones, shape (n, codes): of more, some are left out by lot.

    The lot is a function of the record's own ones, by the mixing of SplitMix64 (Steele, Lea and Flood 2014).
    So what a record adds depends on no other record, on no order and on no block.

    Examples
    --------
    >>> ones = np.ones((2, 5), dtype=bool)
    >>> thinned(ones, 2).sum(axis=1).tolist(), bool((thinned(ones, 2)[0] == thinned(ones, 2)[1]).all())
    ([2, 2], True)
    """
    over = np.flatnonzero(ones.sum(axis=1) > most)
    if not len(over):
        return ones
    some, places = ones[over], _mixed(np.arange(1, ones.shape[1] + 1, dtype=np.uint64))
    own = np.where(some, places, np.uint64(0)).sum(axis=1, dtype=np.uint64)
    # a lot for each code, and those without one last
    lots = np.where(some, _mixed(own[:, None] ^ places) >> np.uint64(1), np.uint64(2**63))
    kept = np.zeros_like(some)
    np.put_along_axis(kept, np.argsort(lots, axis=1, kind="stable")[:, :most], True, axis=1)
    found = ones.copy()
    found[over] = kept
    return found


def _mixed(numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Finaliser of SplitMix64: a permutation of the numbers of 64 bits that looks random."""
    mixed = numbers * np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    return mixed ^ (mixed >> np.uint64(31))
