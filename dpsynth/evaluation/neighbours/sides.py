"""Counting within the limit of each record, from lists of nearest neighbours.

:mod:`dpsynth.evaluation.neighbours.closed_form` needs, for every record, the distance to its nearest in one
table (the limit) and how many of the other table lie within it, ties told apart. Both are read off lists of
the k nearest and, for the records that these leave open, off all distances. Counts beyond the number that
can change the result are not resolved. Every count equals that over the full matrix of distances.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsynth.evaluation.neighbours.closed_form import contributions, enough_counted, thins_the_other
from dpsynth.evaluation.neighbours.metrics import Metric
from dpsynth.evaluation.neighbours.search import Floats, Integers, Nearest, nearest, over_tiles
from dpsynth.evaluation.progress import Progress, silent, within

#: distances (squared ones of the Euclidean metric) that differ by at most this part of the larger one are
#: tied: columns scaled by their bounds make equal distances differ in their last digits
TIE_TOLERANCE = 1e-9


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
    progress: Progress = silent,
) -> Side:
    """Compare every record of ``own`` with its neighbours in ``own`` and in ``other``.

    Parameters
    ----------
    own : ndarray of shape (n, d)
    other : ndarray of shape (m, d)
    k : int
        Length of the lists kept, at least; longer where unequal sizes need higher counts.
    tie_tolerance : float
        Distances (squared ones of the Euclidean metric) are tied when they differ by at most this part of
        the larger.

    Examples
    --------
    >>> from dpsynth.evaluation.neighbours.metrics import metric_named
    >>> own, other = np.array([[0.0], [1.0], [2.5], [4.0]]), np.array([[0.2], [1.3], [2.0], [7.0]])
    >>> one_side(own, other, metric_named("euclidean")).contribution.round(4).tolist()
    [0.25, 0.0, 0.0, 1.0]
    """
    n, m = len(own), len(other)
    length = max(k, min(enough_counted(n, m) + 4, 64))
    # Lists of another length, which other sizes can need, are found anew.
    here = near if near is not None and near.distance.shape[1] == min(length, n - 1) else None
    if here is None:
        here = nearest(own, own, metric, length, itself=np.arange(n), progress=within(progress, 0.0, 0.5))
    far = nearest(own, other, metric, length, progress=within(progress, 0.5, 1.0))
    closer, tied, open_rows = _counts(here, far, n, m, tie_tolerance)
    if len(open_rows):
        closer[open_rows], tied[open_rows] = _count_all(own, other, open_rows, metric, tie_tolerance)
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
    own: Floats, other: Floats, rows: NDArray[np.intp], metric: Metric, tolerance: float
) -> tuple[Integers, Integers]:
    """Counts over all distances, for some records of ``own``."""
    sets = (own, rows), (other, None)
    limiting, counted = sets if thins_the_other(len(own), len(other)) else reversed(sets)
    limit = np.concatenate(
        over_tiles(lambda _, tile: tile.min(axis=1), own[rows], limiting[0], metric, limiting[1])
    )
    below, above = tie_band(limit, tolerance)

    def counts(part: slice, tile: Floats) -> Integers:
        ends = below[part, None], above[part, None]
        return np.stack([np.count_nonzero(tile < ends[0], axis=1), np.count_nonzero(tile <= ends[1], axis=1)])

    closer, tied = np.concatenate(over_tiles(counts, own[rows], counted[0], metric, counted[1]), axis=1)
    return closer, tied
