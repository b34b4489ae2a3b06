"""Conditional samples in even numbers: sampling from tables with little sampling noise.

Records of a group share their parents' values and so one conditional distribution. In a group of c records,
each takes a uniform from a different c-th part of [0, 1), in random order. Each record still has exactly the
group's distribution. The group's counts lie closer to their expectations than with independent uniforms. So
the sample stays closer to the released tables at no cost.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray


class Uniforms(Protocol):
    """Independent uniform numbers, as of a NumPy generator."""

    def random(self, size: int, /) -> NDArray[np.float64]:
        """Numbers in [0, 1), shape (size,)."""
        ...


class RowUniforms:
    """Uniform numbers that belong to rows of a table: the same however the table is cut.

    Each call of `random` gives one more number for each of the rows, at most ``columns`` times.

    Examples
    --------
    >>> whole, part = RowUniforms(7, 0, 5, 2), RowUniforms(7, 3, 2, 2)
    >>> bool((whole.random(5)[3:] == part.random(2)).all())
    True
    """

    def __init__(self, seed: int, first: int, rows: int, columns: int) -> None:
        stream = np.random.PCG64DXSM(seed)
        stream.advance(first * columns)
        self._numbers = iter(np.random.Generator(stream).random((rows, columns)).T)

    def random(self, size: int, /) -> NDArray[np.float64]:
        """The next number of each row. ``size`` is the number of rows."""
        return next(self._numbers)


def draw_conditional(
    tables: ArrayLike, groups: NDArray[np.int64], rng: np.random.Generator, *, even: bool = True
) -> NDArray[np.int64]:
    """Draw one entry from 0 to k - 1 for each record from the distribution of its group.

    ``tables`` holds the weights of the entries in each group, shape (n_groups, k). A group without weight is
    uniform. ``groups`` is the group of each record, shape (n,). Uniforms are spread evenly over each group's
    records, or independent if not ``even``.

    Examples
    --------
    >>> entries = draw_conditional([[1, 3]], np.zeros(8, dtype=np.int64), np.random.default_rng(0))
    >>> np.bincount(entries)
    array([2, 6])
    """
    weights = np.array(tables, dtype=np.float64)
    weights[weights.sum(axis=1) <= 0] = 1.0
    n_groups, size = weights.shape
    ends = np.cumsum(weights, axis=1)
    ends /= ends[:, -1:]
    if even:
        counts = even_counts(ends, np.bincount(groups, minlength=n_groups), rng)
        entries = np.empty(len(groups), dtype=np.int64)
        # Uniforms that ascend within a group need no search: its entries follow each other in their numbers.
        entries[grouped(groups, n_groups, rng)] = np.repeat(
            np.tile(np.arange(size), n_groups), counts.ravel()
        )
        return entries
    # One ascending list of all groups' ends, group g shifted by g, lets a single search serve all records.
    shifted = (ends + np.arange(n_groups)[:, None]).ravel()
    found = np.searchsorted(shifted, groups + rng.random(len(groups)), side="right") - groups * size
    return np.clip(found, 0, size - 1)


def grouped(groups: NDArray[np.int64], n_groups: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Rows in the order of their groups, those of a group in random order, shape (n,)."""
    shuffled = rng.permutation(len(groups))
    if n_groups <= 1:
        return shuffled
    # Sorting 16-bit keys is a radix sort, several times faster than a comparison sort.
    keys = groups.astype(np.uint16) if n_groups <= 2**16 else groups
    return shuffled[np.argsort(keys[shuffled], kind="stable")]


def even_counts(
    ends: NDArray[np.float64], totals: NDArray[np.int64], rng: np.random.Generator
) -> NDArray[np.int64]:
    """Number of a group's even uniforms in each entry, shape (n_groups, k).

    A group of c records, c in ``totals``, has one uniform in each c-th part of [0, 1). An entry takes those
    between the previous entry's end and its own. ``ends`` are cumulative probabilities along each row.

    Examples
    --------
    >>> even_counts(np.array([[0.25, 0.5, 1.0]]), np.array([8]), np.random.default_rng(0))
    array([[2, 2, 4]])
    """
    reach = ends * totals[:, None]
    part = np.floor(reach)
    # Ends in the same part of [0, 1) are compared with the same uniform.
    fresh = np.ones(part.shape, dtype=bool)
    fresh[:, 1:] = part[:, 1:] != part[:, :-1]
    place = np.cumsum(fresh.ravel()).reshape(part.shape) - 1
    uniform = rng.random(int(place[-1, -1]) + 1)[place] if place.size else np.zeros(part.shape)
    below = (part + (uniform < reach - part)).astype(np.int64)
    return np.diff(below, axis=1, prepend=0)


def draw_entry(weights: ArrayLike, rng: np.random.Generator) -> NDArray[np.int64]:
    """Draw one entry of each row in proportion to its weights.

    ``weights`` has shape (n, k): negative ones count as zero, and a row without positive weight as uniform.
    The result has shape (n,), from 0 to k - 1.
    """
    # Entry by entry: sums along short rows are many times slower than whole columns.
    ends = np.maximum(np.asarray(weights).T, 0.0, dtype=np.float64, order="C")
    np.cumsum(ends, axis=0, out=ends)
    empty = ends[-1] <= 0
    if empty.any():
        ends[:, empty] = np.arange(1.0, len(ends) + 1.0)[:, None]
    mark = rng.random(ends.shape[1]) * ends[-1]
    label = np.zeros(ends.shape[1], dtype=np.int64)
    for end in ends[:-1]:
        label += mark >= end
    return label
