"""Exact nearest neighbours in blocks, with matrix products as a filter only.

The k nearest of a set are kept for each point. For Euclidean distances, tiles of x.y products say which pairs
can be among them; the distances of those pairs are then computed again from differences, since the expansion
``x**2 + y**2 - 2 x y`` breaks ties. What the filter may have missed is bounded: ``reach`` is a distance that
no point outside the list lies below. Whoever decides by these lists compares with ``reach`` as well, and asks
again in double precision, or over all points, where the lists do not settle the matter.

The bound of the error is derived in :mod:`dpsynth.evaluation.neighbours.distance_filter`.

Memory is bounded by the tile and the lists; blocks of rows run on as many threads as there are cores, since
products, comparisons and sorts release the interpreter's lock.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsynth.evaluation.neighbours.distance_filter import DistanceFilter
from dpsynth.evaluation.neighbours.metrics import Metric
from dpsynth.evaluation.progress import Progress, silent

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

#: rows that one thread handles at a time, and columns of a tile
_ROWS, _COLUMNS = 1024, 1024
#: sets smaller than this are searched by exact distances, which then take less time than setting up a filter
FILTER_FROM = 2048


@dataclass(frozen=True)
class Nearest:
    """The nearest of a set, for each of n points.

    Attributes
    ----------
    distance : ndarray of shape (n, k)
        Ascending, as :attr:`Metric.tile` computes them.
    index : ndarray of int32 of shape (n, k)
        Positions in the set.
    reach : ndarray of shape (n,)
        No member of the set outside the list is nearer than this; infinite where all are listed.
    """

    distance: Floats
    index: NDArray[np.int32]
    reach: Floats

    def at(self, rows: Integers) -> Nearest:
        """Return a copy of the lists of some points."""
        return Nearest(self.distance[rows], self.index[rows], self.reach[rows])

    def put(self, rows: Integers, part: Nearest) -> None:
        """Write the lists of some points in place; both have the same k."""
        self.distance[rows], self.index[rows], self.reach[rows] = part.distance, part.index, part.reach


class Searcher:
    """Finds the nearest members of one set.

    Parameters
    ----------
    others : ndarray of shape (m, d)
        The set.
    metric : Metric
    k : int
        Length of the lists; at most m, and m - 1 where a point is itself a member.
    double : bool
        Whether the filter works in double precision: slower, with a margin 5e8 times smaller.
    block_size : int
        Upper limit of the rows and of the columns of a tile.

    Examples
    --------
    >>> from dpsynth.evaluation.neighbours.metrics import metric_named
    >>> line = np.array([[0.0], [1.0], [3.0]])
    >>> found = Searcher(line, metric_named("euclidean"), 1).find(line, itself=np.arange(3))
    >>> found.distance.ravel().tolist(), found.index.ravel().tolist()
    ([1.0, 1.0, 4.0], [1, 0, 1])
    """

    def __init__(
        self, others: Floats, metric: Metric, k: int, *, double: bool = False, block_size: int = _ROWS
    ) -> None:
        self._others, self._metric, self._k = others, metric, k
        self._rows, self._columns = min(block_size, _ROWS), max(min(block_size, _COLUMNS), 1)
        m = len(others)
        tiles = -(-m // self._columns)
        # Each tile is spread over the whole set, so that the first one already gives a fair threshold however
        # the records are sorted.
        self._order = np.concatenate([np.arange(start, m, tiles) for start in range(tiles)])
        self._edges = np.cumsum([0] + [len(range(start, m, tiles)) for start in range(tiles)])
        self._place = np.empty(m, dtype=np.int64)
        self._place[self._order] = np.arange(m)
        filtered = metric.expands and m >= FILTER_FROM
        self._filter = DistanceFilter.of(others, self._order, double) if filtered else None
        self._transposed = np.ascontiguousarray(others.T) if self._filter is not None else None

    def find(
        self,
        points: Floats,
        *,
        itself: Integers | None = None,
        progress: Progress = silent,
    ) -> Nearest:
        """Return the lists of ``points``.

        Parameters
        ----------
        points : ndarray of shape (n, d)
        itself : ndarray of int of shape (n,), optional
            The position of each point in the set, which is left out of its list.
        progress : callable, optional
            Called with the share done.
        """
        n = len(points)
        k = min(self._k, len(self._others) - (itself is not None))
        found = Nearest(np.empty((n, k)), np.empty((n, k), dtype=np.int32), np.empty(n))

        def one(top: int) -> int:
            rows = slice(top, min(top + self._rows, n))
            own = None if itself is None else self._place[itself[rows]]
            found.distance[rows], found.index[rows], found.reach[rows] = self._block(points[rows], own, k)
            return rows.stop

        for done in in_threads(one, range(0, n, self._rows)):
            progress(done / n)
        return found

    def _block(self, points: Floats, own: Integers | None, k: int) -> tuple[Floats, NDArray[Any], Floats]:
        left, margin, scale = None, np.zeros(len(points)), 1.0
        if self._filter is not None:
            left, margin, scale = self._filter.rows(points)
        keep = _Smallest(len(points), k)
        # One tile for all products: fresh memory for each would cost as much time as the product.
        room = None if left is None else np.empty(len(points) * self._columns, dtype=left.dtype)
        for start, stop in zip(self._edges[:-1], self._edges[1:], strict=True):
            if left is None or self._filter is None:
                tile = self._metric.tile(points, self._others[self._order[start:stop]])
            else:
                here = room[: len(points) * (stop - start)].reshape(len(points), -1)  # type: ignore[index]
                tile = np.matmul(left, self._filter.right[:, start:stop], out=here)
            if own is not None:
                inside = np.flatnonzero((own >= start) & (own < stop))
                tile[inside, own[inside] - start] = np.inf
            keep.add(tile, int(start))
        values, places = keep.result()
        index = self._order[places]
        everything = k == len(self._others) - (own is not None)
        reach = np.maximum(values[:, -1].astype(np.float64) * scale - margin, 0.0)
        if everything:
            reach = np.full(len(points), np.inf)
        distance = self._exact(points, index) if left is not None else values.astype(np.float64)
        order = np.argsort(distance, axis=1, kind="stable")
        return (
            np.take_along_axis(distance, order, axis=1),
            np.take_along_axis(index, order, axis=1).astype(np.int32),
            reach,
        )

    def _exact(self, points: Floats, index: Integers) -> Floats:
        """Squared distances summed column by column, which is how cdist sums: the same to the last bit."""
        total = np.zeros(index.shape)
        for i, column in enumerate(self._transposed):  # type: ignore[arg-type]
            difference = column[index]
            np.subtract(points[:, i, None], difference, out=difference)
            np.multiply(difference, difference, out=difference)
            total += difference
        return total


class _Smallest:
    """The k smallest entries of each row of a matrix that comes in tiles."""

    def __init__(self, n: int, k: int) -> None:
        self._n, self._k = n, k
        self._values: NDArray[Any] | None = None
        self._places: Integers = np.empty((n, 0), dtype=np.int64)
        self._waiting: list[tuple[Integers, Integers, NDArray[Any]]] = []
        self._count = 0

    def add(self, tile: NDArray[Any], start: int) -> None:
        if self._values is None or self._values.shape[1] < self._k:
            self._widen(tile, start)
            return
        width = tile.shape[1]
        hits = np.flatnonzero(tile < self._values[:, -1:])
        if len(hits):
            rows, columns = np.divmod(hits, width)
            self._waiting.append((rows, columns + start, tile.ravel()[hits]))
            self._count += len(hits)
            if self._count >= self._n * self._k:
                self._merge()

    def result(self) -> tuple[NDArray[Any], Integers]:
        self._merge()
        if self._values is None:
            raise ValueError("no tile was added")
        return self._values, self._places

    def _widen(self, tile: NDArray[Any], start: int) -> None:
        places = np.broadcast_to(np.arange(start, start + tile.shape[1]), tile.shape)
        if self._values is not None:
            tile, places = np.hstack([self._values, tile]), np.hstack([self._places, places])
        k = min(self._k, tile.shape[1])
        if k < tile.shape[1]:
            chosen = np.argpartition(tile, k - 1, axis=1)[:, :k]
            tile, places = np.take_along_axis(tile, chosen, 1), np.take_along_axis(places, chosen, 1)
        order = np.argsort(tile, axis=1)
        self._values = np.take_along_axis(tile, order, 1)
        self._places = np.take_along_axis(places, order, 1)

    def _merge(self) -> None:
        if not self._waiting or self._values is None:
            return
        kept = np.repeat(np.arange(self._n), self._k)
        rows = np.concatenate([kept, *(part[0] for part in self._waiting)])
        places = np.concatenate([self._places.ravel(), *(part[1] for part in self._waiting)])
        values = np.concatenate([self._values.ravel(), *(part[2] for part in self._waiting)])
        order = np.lexsort((values, rows))
        starts = np.cumsum(np.bincount(rows, minlength=self._n)) - np.bincount(rows, minlength=self._n)
        # Sorted by row and then by value; every row has at least its k old entries.
        first = order[(starts[:, None] + np.arange(self._k)).ravel()]
        self._values = values[first].reshape(self._n, self._k)
        self._places = places[first].reshape(self._n, self._k)
        self._waiting, self._count = [], 0


def in_threads(work: Callable[[Any], Any], items: Iterable[Any]) -> Iterator[Any]:
    """Yield ``work(item)`` in order, on all cores, with BLAS held to one thread per worker."""
    items = list(items)
    if len(items) < 2:
        yield from map(work, items)
        return
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]  # comes with scikit-learn

    with threadpool_limits(1, user_api="blas"), ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        yield from pool.map(work, items)
