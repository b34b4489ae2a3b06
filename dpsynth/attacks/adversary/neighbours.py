"""Which record differs: the one, or the pair, that lies or moves the furthest.

MOSAICrOWN D5.3: *dataset sensitivity* (Definition 6) compares records, *local sensitivity* (Definition 3) the
query's values. Both are the same search, over records or over what each record adds to the query. The
document compares images by their structural similarity; here records are points, compared by Euclidean
distance, the only distance by which a replaced record moves a sum of gradients.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpsynth.errors import InputError, of_records

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Neighbour:
    """A differing record.

    Attributes
    ----------
    index : int
        The record of D that D' lacks or has another in place of.
    replacement : int or None
        Which record of the pool D' has in its place.
    distance : float
        How far D and D' are apart.
    """

    index: int
    replacement: int | None
    distance: float


def removals(points: Floats, count: int = 1, *, nearest: bool = False) -> list[Neighbour]:
    """Records by how far they lie from all others: D' lacks one of them.

    Parameters
    ----------
    points : ndarray (n, d)
        Records of D; at least two.
    count : int
        How many to return, in [1, n], furthest first.
    nearest : bool
        The nearest ones instead, nearest first.

    Returns
    -------
    list of Neighbour
        ``distance`` is the mean distance to the other records (the document removes the image that is least
        similar to all others).

    Examples
    --------
    >>> removals(np.array([[0.0], [1.0], [5.0]]))
    [Neighbour(index=2, replacement=None, distance=4.5)]
    """
    points = _checked("points", points)
    if len(points) < 2:
        raise of_records(f"points must hold at least two records, got {len(points)}")
    means = np.concatenate([block.sum(axis=1) for block in _distances(points, points)]) / (len(points) - 1)
    order = np.argsort(means if nearest else -means, kind="stable")[:count]
    return [Neighbour(int(i), None, float(means[i])) for i in order]


def largest(moves: Floats, count: int = 1) -> list[Neighbour]:
    """Records by how far each alone moves the query: local sensitivity where D' lacks a record.

    Parameters
    ----------
    moves : ndarray (n, P)
        What each record adds to the query.
    """
    norms = np.linalg.norm(_checked("moves", moves), axis=1)
    return [Neighbour(int(i), None, float(norms[i])) for i in np.argsort(-norms, kind="stable")[:count]]


def replacements(points: Floats, pool: Floats, count: int = 1, *, nearest: bool = False) -> list[Neighbour]:
    """Pairs of a record of D and one of a pool by their distance: D' has the second in place of the first.

    With points it is dataset sensitivity, with what each record adds to the query local sensitivity.

    Parameters
    ----------
    points : ndarray (n, d)
        Of the records of D.
    pool : ndarray (m, d)
        Of records that are not in D.
    count : int
        How many pairs of different records of D to return, furthest first.
    nearest : bool
        The nearest ones instead, nearest first.

    Examples
    --------
    >>> replacements(np.array([[0.0], [1.0]]), np.array([[2.0], [-0.5]]))
    [Neighbour(index=0, replacement=0, distance=2.0)]
    """
    points, pool = _checked("points", points), _checked("pool", pool)
    if not len(pool) or points.shape[1] != pool.shape[1]:
        raise InputError(f"pool must hold records of {points.shape[1]} numbers, got shape {pool.shape}")
    found: list[tuple[float, int]] = []
    for block in _distances(points, pool):
        best = block.argmin(axis=1) if nearest else block.argmax(axis=1)
        found += [(float(row[j]), int(j)) for row, j in zip(block, best, strict=True)]
    ends = np.array([distance for distance, _ in found])
    order = np.argsort(ends if nearest else -ends, kind="stable")[:count]
    return [Neighbour(int(i), found[i][1], found[i][0]) for i in order]


def _distances(points: Floats, pool: Floats, rows: int = 256) -> Iterator[Floats]:
    """Euclidean distances, some rows at a time; exact, not from the expansion of the square."""
    from scipy.spatial.distance import cdist

    for start in range(0, len(points), rows):
        yield cdist(points[start : start + rows], pool)


def _checked(name: str, points: Floats) -> Floats:
    points = np.asarray(points, dtype=np.float64)
    if points.ndim != 2 or not len(points) or not np.isfinite(points).all():
        raise InputError(f"{name} must be finite numbers, one row a record, got shape {points.shape}")
    return points
