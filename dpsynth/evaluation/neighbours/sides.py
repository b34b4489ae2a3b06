"""Counting within the limit of each record, from lists of nearest neighbours.

:mod:`dpsynth.evaluation.neighbours.closed_form` needs, for every record, the distance to its nearest in one
table (the limit) and how many of the other table lie within it, ties told apart. Both are read off lists of
the k nearest: first found with a single-precision filter, for the records that this leaves open with a
double-precision one, and over all distances for what is still open. Counts beyond the number that can change
the result are not resolved. Every count equals that over the full matrix of distances.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsynth.evaluation.neighbours import search
from dpsynth.evaluation.neighbours.closed_form import contributions, enough_counted, thins_the_other
from dpsynth.evaluation.neighbours.metrics import Metric
from dpsynth.evaluation.neighbours.search import Floats, Integers, Nearest, Searcher, in_threads
from dpsynth.evaluation.progress import Progress, silent, within

#: distances (squared ones of the Euclidean metric) that differ by at most this part of the larger one are
#: tied: columns scaled by their bounds make equal distances differ in their last digits
TIE_TOLERANCE = 1e-9
#: records whose lists tell whether the single-precision filter is worth a try
_PILOT = 256


@dataclass(frozen=True)
class Side:
    """The records of one table among their neighbours.

    Attributes
    ----------
    own, other : Nearest
        The nearest in the record's own table, itself left out, and in the other table.
    n, m : int
        Size of the own and of the other table.
    contribution : ndarray of shape (n,)
        Of which the mean is the accuracy of this side.
    """

    own: Nearest
    other: Nearest
    n: int
    m: int
    contribution: Floats


def one_side(
    own: Floats,
    other: Floats,
    metric: Metric,
    *,
    k: int = 8,
    near: Nearest | None = None,
    tie_tolerance: float = TIE_TOLERANCE,
    block_size: int = 1024,
    progress: Progress = silent,
) -> Side:
    """Compare every record of ``own`` with its neighbours in ``own`` and in ``other``.

    Parameters
    ----------
    own : ndarray of shape (n, d)
    other : ndarray of shape (m, d)
    metric : Metric
    k : int
        Length of the lists kept, at least; longer where unequal sizes need higher counts.
    near : Nearest, optional
        Lists of the nearest in ``own``, where another comparison has found them already.
    tie_tolerance : float
        Distances (squared ones of the Euclidean metric) are tied when they differ by at most this part of
        the larger.
    block_size : int
        Upper limit of the rows and columns of a tile.
    progress : callable, optional

    Returns
    -------
    Side

    Examples
    --------
    >>> from dpsynth.evaluation.neighbours.metrics import metric_named
    >>> own, other = np.array([[0.0], [1.0], [2.5], [4.0]]), np.array([[0.2], [1.3], [2.0], [7.0]])
    >>> one_side(own, other, metric_named("euclidean")).contribution.round(4).tolist()
    [0.25, 0.0, 0.0, 1.0]
    """
    n, m = len(own), len(other)
    length = max(k, min(enough_counted(n, m) + 4, 64))
    everyone = np.arange(n)
    # Lists of another length, which other sizes can need, are found anew.
    known = near if near is not None and near.distance.shape[1] == min(length, n - 1) else None

    def lists(rows: Integers, double: bool, told: Progress = silent) -> tuple[Nearest, Nearest]:
        settings: Any = {"double": double, "block_size": block_size}
        if known is not None and not double:
            first = known.at(rows)
        else:
            first = Searcher(own, metric, length, **settings).find(
                own[rows], itself=rows, progress=within(told, 0.0, 0.5)
            )
        return first, Searcher(other, metric, length, **settings).find(
            own[rows], progress=within(told, 0.5, 1.0)
        )

    double, filtered = False, metric.expands and max(n, m) >= search.FILTER_FROM
    if filtered:
        pilot = everyone[:: -(-n // _PILOT)]
        double = len(_counts(*lists(pilot, False), n, m, tie_tolerance)[2]) > len(pilot) / 4
    here, far = lists(everyone, double, progress)
    closer, tied, open_rows = _counts(here, far, n, m, tie_tolerance)
    if filtered and not double and len(open_rows):
        again = lists(open_rows, True)
        here.put(open_rows, again[0])
        far.put(open_rows, again[1])
        closer[open_rows], tied[open_rows], still = _counts(*again, n, m, tie_tolerance)
        open_rows = open_rows[still]
    if len(open_rows):
        closer[open_rows], tied[open_rows] = _count_all(
            own, other, open_rows, metric, tie_tolerance, block_size
        )
    progress(1.0)
    enough = enough_counted(n, m)
    value = contributions(np.minimum(closer, enough), np.minimum(tied, enough), n, m)
    return Side(here, far, n, m, value)


def tie_band(limit: Floats, tolerance: float) -> tuple[Floats, Floats]:
    """Distances strictly below the first end are closer than ``limit``, those up to the second are tied.

    Tied iff the larger of the two exceeds the smaller by at most a factor 1/(1 - tolerance): the same
    relation whichever of the two is called the limit, so that the measure stays exactly unbiased.
    """
    return limit * (1.0 - tolerance), limit / (1.0 - tolerance)


def ranks(distances: Floats, limits: Floats, tolerance: float) -> tuple[Integers, Integers]:
    """How many of each row of ascending distances lie strictly within, and within or at, each of its limits.

    Parameters
    ----------
    distances, limits : ndarray of shape (n, k), (n, j)
    tolerance : float

    Returns
    -------
    two ndarray of int of shape (n, j)

    Examples
    --------
    >>> [found.tolist() for found in ranks(np.array([[1.0, 2.0, 2.0]]), np.array([[2.0, 3.0]]), 0.0)]
    [[[1, 3]], [[3, 3]]]
    """
    below, above = tie_band(limits, tolerance)
    rows = range(len(limits))
    return (
        np.array([np.searchsorted(distances[i], below[i], "left") for i in rows]),
        np.array([np.searchsorted(distances[i], above[i], "right") for i in rows]),
    )


def running_counts(marks: NDArray[np.bool_], dtype: type[np.signedinteger[Any]]) -> NDArray[Any]:
    """How many of the first c entries of each row are marked, for c = 0 to k; shape (n, k + 1).

    Examples
    --------
    >>> running_counts(np.array([[True, False, True]]), np.int8).tolist()
    [[0, 1, 1, 2]]
    """
    counts = np.zeros((len(marks), marks.shape[1] + 1), dtype=dtype)
    np.cumsum(marks, axis=1, dtype=dtype, out=counts[:, 1:])
    return counts


def _counts(
    near: Nearest, far: Nearest, n: int, m: int, tolerance: float
) -> tuple[Integers, Integers, NDArray[np.intp]]:
    """Counts within the limit, and the rows in which the lists do not settle them."""
    limits, counted = (near, far) if thins_the_other(n, m) else (far, near)
    enough = enough_counted(n, m)
    most = limits.distance[:, 0]
    least = np.minimum(most, limits.reach)
    below, above = tie_band(most, tolerance)
    surely_below, surely_above = tie_band(least, tolerance)
    inside = counted.distance
    closer = np.count_nonzero(inside < surely_below[:, None], axis=1)
    tied = np.count_nonzero(inside <= surely_above[:, None], axis=1)
    at_most_closer = np.count_nonzero(inside < below[:, None], axis=1)
    at_most_tied = np.count_nonzero(inside <= above[:, None], axis=1)
    # Whatever is not listed lies at `reach` or farther.
    known_closer = (closer == at_most_closer) & (counted.reach >= below)
    known_tied = (tied == at_most_tied) & (counted.reach > above)
    settled = (known_closer | (closer >= enough)) & (known_tied | (tied >= enough))
    return closer, tied, np.flatnonzero(~settled)


def _count_all(
    own: Floats, other: Floats, rows: NDArray[np.intp], metric: Metric, tolerance: float, block_size: int
) -> tuple[Integers, Integers]:
    """Counts over all distances, for some records of ``own``."""
    limit_own = thins_the_other(len(own), len(other))

    def tiles(from_own: bool) -> list[tuple[int, int]]:
        total = len(own) if from_own else len(other)
        return [(left, min(left + block_size, total)) for left in range(0, total, block_size)]

    def tile(chosen: NDArray[np.intp], from_own: bool, edges: tuple[int, int]) -> Floats:
        left, right = edges
        found = metric.tile(own[chosen], (own if from_own else other)[left:right])
        if from_own:
            inside = np.flatnonzero((chosen >= left) & (chosen < right))
            found[inside, chosen[inside] - left] = np.inf
        return found

    def block(start: int) -> tuple[Integers, Integers]:
        chosen = rows[start : start + block_size]
        limit = np.full(len(chosen), np.inf)
        for edges in tiles(limit_own):
            np.minimum(limit, tile(chosen, limit_own, edges).min(axis=1), out=limit)
        below, above = tie_band(limit, tolerance)
        closer, tied = np.zeros(len(chosen), dtype=np.int64), np.zeros(len(chosen), dtype=np.int64)
        for edges in tiles(not limit_own):
            found = tile(chosen, not limit_own, edges)
            closer += np.count_nonzero(found < below[:, None], axis=1)
            tied += np.count_nonzero(found <= above[:, None], axis=1)
        return closer, tied

    parts = list(in_threads(block, range(0, len(rows), block_size)))
    return np.concatenate([part[0] for part in parts]), np.concatenate([part[1] for part in parts])
