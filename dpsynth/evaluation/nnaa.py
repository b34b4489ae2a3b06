"""Unbiased nearest-neighbour adversarial accuracy (Pedersen 2022, section 4.1).

Is a record nearer to the others of its own table than to the records of the other table? If two tables come
from one distribution, the answer is a fair coin: the accuracy is 1/2. Copied records push it towards 0,
records that look nothing like the real ones towards 1.

The thesis compares each point's nearest neighbour among the ``n - 1`` others of its own table with its
nearest neighbour among the ``n`` records of the other table *with one left out*, which makes the expectation
exactly 1/2 (Theorem 4.1.1), and averages strict and non-strict comparisons for ties (4.5). Here the closed
form per point is the *mean* over the left-out record; (4.2), (4.6) and (4.7) as printed mix counts with means
and (4.8) lacks a factor 2. Tables of unequal sizes are compared by leaving out a uniformly random subset of
the larger side, averaged exactly over all subsets by counting them.

Distances are Euclidean and computed from differences, never as ``x**2 + y**2 - 2 x y``, whose rounding breaks
ties. Squared distances that agree within ``tie_tolerance`` (relative) are ties, because columns scaled by
their bounds make equal distances differ in their last digits; the rule is symmetric in the two distances, so
the measure stays exactly unbiased.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.spatial.distance import cdist
from scipy.special import gammaln

from dpsynth.errors import InputError

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]


@dataclass(frozen=True)
class AdversarialAccuracy:
    """Nearest-neighbour adversarial accuracy of a real and a synthetic table.

    Attributes
    ----------
    aa_real : float
        Mean over the real records, in [0, 1]: how often a real record is nearer to another real record than
        to a synthetic one.
    aa_synthetic : float
        The same with the roles exchanged.
    aa : float
        Mean of the two; 1/2 in expectation when both tables come from the same distribution.
    n_real, n_synthetic : int
        Number of records on each side.
    per_real, per_synthetic : ndarray of shape (n_real,), (n_synthetic,)
        Contribution of each record, of which ``aa_real`` and ``aa_synthetic`` are the means; for confidence
        intervals over records.
    """

    aa_real: float
    aa_synthetic: float
    aa: float
    n_real: int
    n_synthetic: int
    per_real: Floats = field(repr=False, compare=False)
    per_synthetic: Floats = field(repr=False, compare=False)


def adversarial_accuracy(
    real: ArrayLike, synthetic: ArrayLike, *, block_size: int = 1024, tie_tolerance: float = 1e-9
) -> AdversarialAccuracy:
    """Compute the unbiased nearest-neighbour adversarial accuracy with ties and unequal sizes.

    Parameters
    ----------
    real : array_like of shape (n, d)
        Real records T as finite numbers, n at least 2.
    synthetic : array_like of shape (m, d)
        Synthetic records S, m at least 2.
    block_size : int
        Distances are formed in tiles of ``block_size`` by ``block_size``; bounds the memory, never changes
        the result.
    tie_tolerance : float
        Two squared distances are tied when they differ by at most this part of the larger one; 0 compares
        the floating-point distances as they are.

    Returns
    -------
    AdversarialAccuracy
        Internal when ``real`` holds private records: nothing here is paid for.

    Raises
    ------
    InputError
        If an array is not two-dimensional, has fewer than two rows or no column, holds NaN or infinity, or
        if the numbers of columns differ.

    Notes
    -----
    With n real and m >= n - 1 synthetic records, and ``c_<``, ``c_<=`` the number of synthetic records
    closer than, and at most as far as, the nearest other real record of record i,

    ``AA_i = [C(m - c_<=, n - 1) + C(m - c_<, n - 1)] / (2 C(m, n - 1))``;

    for m < n - 1 the other real records are thinned to m instead. For n = m this is the mean over the
    left-out record of definition (4.5).

    References
    ----------
    Pedersen (2022), section 4.1, definition (4.5), corrected as the module says.

    Examples
    --------
    >>> result = adversarial_accuracy([[0.0], [1.0], [2.5], [4.0]], [[0.2], [1.3], [2.0], [7.0]])
    >>> round(result.aa_real, 12), round(result.aa_synthetic, 12)
    (0.3125, 0.125)
    """
    t, s = _points(real, "real"), _points(synthetic, "synthetic")
    if t.shape[1] != s.shape[1]:
        raise InputError(
            f"real and synthetic must have the same number of columns, got {t.shape[1]} and {s.shape[1]}"
        )
    if not block_size >= 1:
        raise InputError(f"block_size must be at least 1, got {block_size!r}")
    if not 0 <= tie_tolerance < 1:
        raise InputError(f"tie_tolerance must lie in [0, 1), got {tie_tolerance!r}")
    per_real = _contributions(t, s, int(block_size), float(tie_tolerance))
    per_synthetic = _contributions(s, t, int(block_size), float(tie_tolerance))
    aa_real, aa_synthetic = float(per_real.mean()), float(per_synthetic.mean())
    return AdversarialAccuracy(
        aa_real=aa_real,
        aa_synthetic=aa_synthetic,
        aa=(aa_real + aa_synthetic) / 2,
        n_real=len(t),
        n_synthetic=len(s),
        per_real=per_real,
        per_synthetic=per_synthetic,
    )


def none_kept(total: int, marked: Counts, kept: int) -> Floats:
    """Probability that a uniformly random subset avoids every marked item.

    Parameters
    ----------
    total : int
        Number of items, N.
    marked : ndarray of int of shape (k,)
        Number of marked items c, in [0, N].
    kept : int
        Size of the random subset, in [0, N].

    Returns
    -------
    ndarray of shape (k,)
        ``C(N - c, kept) / C(N, kept)`` by log-gamma; 0 where fewer than ``kept`` items are unmarked.

    Examples
    --------
    >>> none_kept(4, np.array([0, 1, 2]), 3).round(12).tolist()
    [1.0, 0.25, 0.0]
    """
    rest = total - np.asarray(marked, dtype=np.int64)
    possible = rest >= kept
    free = np.where(possible, rest, kept)  # keeps gammaln off its poles where the answer is 0
    log_ratio = gammaln(free + 1) - gammaln(free - kept + 1) - gammaln(total + 1) + gammaln(total - kept + 1)
    return np.where(possible, np.exp(np.minimum(log_ratio, 0.0)), 0.0)


def _contributions(own: Floats, other: Floats, block_size: int, tolerance: float) -> Floats:
    """AA_i of every record of ``own`` against ``other``; shape (len(own),)."""
    n_others, m = len(own) - 1, len(other)
    if m >= n_others:
        # theory: keep n - 1 of the m records of the other table; P(nearest kept one is farther than d_TT).
        closer, closer_or_tied = _counts(
            own, other, _nearest(own, own, True, block_size), False, block_size, tolerance
        )
        return 0.5 * (none_kept(m, closer_or_tied, n_others) + none_kept(m, closer, n_others))
    # The other table is the smaller: keep m of the n - 1 other records of the own table instead.
    closer, closer_or_tied = _counts(
        own, own, _nearest(own, other, False, block_size), True, block_size, tolerance
    )
    return 1.0 - 0.5 * (none_kept(n_others, closer, m) + none_kept(n_others, closer_or_tied, m))


def _nearest(points: Floats, others: Floats, same: bool, block_size: int) -> Floats:
    """Squared distance of each point to the nearest of ``others``, itself excluded when ``same``."""
    nearest = np.full(len(points), np.inf)
    for rows, _, squared in _tiles(points, others, same, block_size):
        np.minimum(nearest[rows], squared.min(axis=1), out=nearest[rows])
    return nearest


def _counts(
    points: Floats, others: Floats, limit: Floats, same: bool, block_size: int, tolerance: float
) -> tuple[Counts, Counts]:
    """Count the ``others`` strictly within, and within or tied with, each point's squared ``limit``."""
    # Tied iff the larger of the two squared distances exceeds the smaller by at most a factor 1/(1 - tol):
    # the same relation whichever of the two is called the limit.
    below, above = limit * (1.0 - tolerance), limit / (1.0 - tolerance)
    closer = np.zeros(len(points), dtype=np.int64)
    closer_or_tied = np.zeros(len(points), dtype=np.int64)
    for rows, _, squared in _tiles(points, others, same, block_size):
        closer[rows] += np.count_nonzero(squared < below[rows, None], axis=1)
        closer_or_tied[rows] += np.count_nonzero(squared <= above[rows, None], axis=1)
    return closer, closer_or_tied


def _tiles(
    points: Floats, others: Floats, same: bool, block_size: int
) -> Iterator[tuple[slice, slice, Floats]]:
    """Yield tiles of squared distances; a point's distance to itself is infinite when ``same``."""
    for top in range(0, len(points), block_size):
        rows = slice(top, min(top + block_size, len(points)))
        for left in range(0, len(others), block_size):
            columns = slice(left, min(left + block_size, len(others)))
            squared = cdist(points[rows], others[columns], "sqeuclidean")
            if same and rows == columns:
                np.fill_diagonal(squared, np.inf)
            yield rows, columns, squared


def _points(values: ArrayLike, name: str) -> Floats:
    try:
        points = np.ascontiguousarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} must be an array of numbers: {error}") from None
    if points.ndim != 2:
        raise InputError(f"{name} must have shape (records, columns), got {points.ndim} dimension(s)")
    if points.shape[0] < 2:
        raise InputError(f"{name} must have at least 2 records, got {points.shape[0]}")
    if points.shape[1] < 1:
        raise InputError(f"{name} must have at least 1 column, got 0")
    if not np.isfinite(points).all():
        row, column = np.argwhere(~np.isfinite(points))[0]
        raise InputError(f"{name} must be finite, got {points[row, column]} in row {row}, column {column}")
    return points
