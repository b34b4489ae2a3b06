"""Tables of all pairs of axes with few cells at once: a product of matrices of indicators counts them.

Of each axis all cells but the first have an indicator, and a column of ones stands for all records. What an
axis's other cells leave is in its first one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from dpsynth.table.coded import CodedTable

Ints = NDArray[np.int64]

#: Records whose indicators are multiplied at once. Their counts are exact in single precision (below 2^24).
_ONCE = 1 << 13


class Partition(Protocol):
    """An axis of tables, as `dpsynth.privacy.records` has them."""

    @property
    def size(self) -> int:
        """Number of cells."""
        ...

    def cells(self, table: CodedTable) -> Ints:
        """Cell of each record."""
        ...


def count_products(table: CodedTable, axes: Sequence[Partition]) -> list[Ints]:
    """Records that have both of two indicators, shape (1 + indicators,) twice. They add up over parts."""
    size = 1 + sum(axis.size - 1 for axis in axes)
    total = np.zeros((size, size), np.int64)
    cells = [(axis.cells(table)[:, None], np.arange(1, axis.size)) for axis in axes]
    for start in range(0, len(table), _ONCE):
        part = slice(start, start + _ONCE)
        some = [own[part] == each for own, each in cells]
        ones = np.hstack([np.ones((len(some[0]), 1), dtype=bool), *some]).astype(np.float32)
        total += (ones.T @ ones).astype(np.int64)
    return [total]


def pair_tables(products: Ints, sizes: Sequence[int]) -> Ints:
    """Tables of all pairs side by side, shape (cells of all axes,) twice.

    >>> products = np.array([[9, 4, 3], [4, 4, 1], [3, 1, 3]])
    >>> pair_tables(products, [2, 2])[:2, 2:].tolist()
    [[3, 2], [3, 1]]
    """
    blocks = [np.vstack([-np.ones((1, size - 1)), np.eye(size - 1)]) for size in sizes]
    every = np.zeros((sum(sizes), 1))
    every[np.cumsum(sizes) - sizes] = 1.0
    spread = sparse.hstack([every, sparse.block_diag(blocks)]).tocsr().astype(np.int64)
    return np.asarray(spread @ (spread @ products).T)
