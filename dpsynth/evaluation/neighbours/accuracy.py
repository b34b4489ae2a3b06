"""Unbiased nearest-neighbour adversarial accuracy (Pedersen 2022, section 4.1).

Is a record nearer to the others of its own table than to the records of the other table? If two tables come
from one distribution, the accuracy is 1/2. Copied records push it towards 0, records unlike the real ones
towards 1.

A record of a table of n is compared with the n - 1 others of its own table and the m of the other table.
Either side keeps as many neighbours, ``k = min(n - 1, m)``. The side with more keeps a uniformly random
subset of k, and the average over all subsets is a ratio of binomial coefficients. For n = m this leaves out
one record of the other table, and the expectation is exactly 1/2 (Theorem 4.1.1). Strict and non-strict
comparisons are averaged for ties (4.5). As printed, (4.2), (4.6) and (4.7) mix counts with means, and (4.8)
lacks a factor 2.

Every record needs the distance to its nearest in one table, which is the limit. It also needs the number of
records of the other table within the limit, with ties apart. Both come from lists of the k nearest. Records
that these do not settle use all distances. Counts beyond the number that can change the result are not
resolved.

Comparisons use distances computed from differences, never as ``x**2 + y**2 - 2 x y``, whose rounding breaks
ties. Distances that agree within ``tie_tolerance`` (relative) are ties. Columns scaled by their bounds make
equal distances differ in their last digits.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaln

from dpsynth.checks import in_range
from dpsynth.errors import InputError, of_records
from dpsynth.evaluation.neighbours.search import (
    Floats,
    Integers,
    Metric,
    Nearest,
    metric_named,
    nearest,
    over_tiles,
)

Counts = NDArray[np.int64]

#: a probability below this no longer changes a contribution
_NEGLIGIBLE = 1e-16


def none_kept(total: int, marked: Counts, kept: int) -> Floats:
    """Probability that a uniformly random subset of ``kept`` of ``total`` items avoids every marked one.

    ``C(N - c, kept) / C(N, kept)`` by log-gamma, 0 if fewer than ``kept`` items are unmarked.
    """
    rest = total - np.asarray(marked, dtype=np.int64)
    possible = rest >= kept
    free = np.where(possible, rest, kept)  # keeps gammaln off its poles where the answer is 0
    log_ratio = gammaln(free + 1) - gammaln(free - kept + 1) - gammaln(total + 1) + gammaln(total - kept + 1)
    return np.where(possible, np.exp(np.minimum(log_ratio, 0.0)), 0.0)


def thins_the_other(n: int, m: int) -> bool:
    """Whether a subset of the other table is kept (m >= n - 1), or else of the record's own.

    The distance to the nearest of the side that is kept whole is the limit, and the side that is thinned is
    counted within it.
    """
    return m >= n - 1


def contributions(closer: Counts, closer_or_tied: Counts, n: int, m: int) -> Floats:
    """Probability that a record's nearest kept neighbour is of its own table. A tie counts one half.

    ``closer`` and ``closer_or_tied`` count the thinned side strictly within, and within or at, the limit.

    Examples
    --------
    The cases ``d_S1 < d_T1 < d_S2`` and ``d_S1 = d_T1 < d_S2`` with n = m = 3: 1/n and (n + 1)/(2n).

    >>> contributions(np.array([1, 0]), np.array([1, 1]), 3, 3).round(4).tolist()
    [0.3333, 0.6667]
    """
    if thins_the_other(n, m):
        return 0.5 * (none_kept(m, closer_or_tied, n - 1) + none_kept(m, closer, n - 1))
    return 1.0 - 0.5 * (none_kept(n - 1, closer, m) + none_kept(n - 1, closer_or_tied, m))


def enough_counted(n: int, m: int) -> int:
    """Count above which the probability of avoiding all counted is negligible: more changes nothing."""
    total, kept = (m, n - 1) if thins_the_other(n, m) else (n - 1, m)
    # Each further marked item multiplies the probability by at most 1 - kept/total.
    ratio = 1.0 - kept / total
    worst = total - kept + 1
    if ratio <= 0.0:
        return 1
    few = np.arange(min(worst, int(np.ceil(np.log(_NEGLIGIBLE) / np.log(ratio)))) + 1)
    return int(few[none_kept(total, few, kept) < _NEGLIGIBLE].min(initial=few[-1]))


#: distances (squared ones of the Euclidean metric) that differ by at most this part of the larger one are
#: tied: columns scaled by their bounds make equal distances differ in their last digits
TIE_TOLERANCE = 1e-9


@dataclass(frozen=True)
class Side:
    """The records of one table (n), with their nearest in it, themselves left out, and in the other (m)."""

    own: Nearest
    other: Nearest
    n: int
    m: int
    contribution: Floats  # shape (n,); of which the mean is the accuracy of this side


def one_side(
    own: Floats,
    other: Floats,
    metric: Metric,
    *,
    k: int = 8,
    near: Nearest | None = None,
    tie_tolerance: float = TIE_TOLERANCE,
) -> Side:
    """Compare every record of ``own`` with its neighbours in ``own`` and in ``other``, listed ``k`` at least.

    Examples
    --------
    >>> from dpsynth.evaluation.neighbours.search import metric_named
    >>> own, other = np.array([[0.0], [1.0], [2.5], [4.0]]), np.array([[0.2], [1.3], [2.0], [7.0]])
    >>> one_side(own, other, metric_named("euclidean")).contribution.round(4).tolist()
    [0.25, 0.0, 0.0, 1.0]
    """
    n, m = len(own), len(other)
    length = max(k, min(enough_counted(n, m) + 4, 64))
    # Lists of another length, which other sizes can need, are found anew.
    here = near if near is not None and near.distance.shape[1] == min(length, n - 1) else None
    if here is None:
        here = nearest(own, own, metric, length, itself=np.arange(n))
    far = nearest(own, other, metric, length)
    closer, tied, open_rows = _counts(here, far, n, m, tie_tolerance)
    if len(open_rows):
        closer[open_rows], tied[open_rows] = _count_all(own, other, open_rows, metric, tie_tolerance)
    enough = enough_counted(n, m)
    value = contributions(np.minimum(closer, enough), np.minimum(tied, enough), n, m)
    return Side(here, far, n, m, value)


def tie_band(limit: Floats, tolerance: float) -> tuple[Floats, Floats]:
    """Distances strictly below the first end are closer than ``limit``, those up to the second are tied.

    Two are tied iff the larger exceeds the smaller by at most a factor 1/(1 - tolerance). The relation is
    symmetric in the two, so the measure stays exactly unbiased.
    """
    return limit * (1.0 - tolerance), limit / (1.0 - tolerance)


def ranks(distances: Floats, limits: Floats, tolerance: float) -> tuple[Integers, Integers]:
    """How many of each row of ascending distances lie strictly within, and within or at, each of its limits.

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
    """Number of marked entries among the first c of each row, for c = 0 to k, shape (n, k + 1).

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
        Mean of the two. Its expectation is 1/2 if both tables come from the same distribution.
    n_real, n_synthetic : int
        Number of records on each side.
    per_real, per_synthetic : ndarray of shape (n_real,), (n_synthetic,)
        Contribution of each record, for confidence intervals over records. ``aa_real`` and ``aa_synthetic``
        are the means.
    """

    aa_real: float
    aa_synthetic: float
    aa: float
    n_real: int
    n_synthetic: int
    per_real: Floats = field(repr=False, compare=False)
    per_synthetic: Floats = field(repr=False, compare=False)


def adversarial_accuracy(
    real: ArrayLike,
    synthetic: ArrayLike,
    *,
    tie_tolerance: float = TIE_TOLERANCE,
    metric: str | Metric = "euclidean",
) -> AdversarialAccuracy:
    """Compute the unbiased nearest-neighbour adversarial accuracy with ties and unequal sizes.

    Parameters
    ----------
    real : array_like of shape (n, d)
        Real records T as finite numbers, n at least 2.
    synthetic : array_like of shape (m, d)
        Synthetic records S, m at least 2.
    tie_tolerance : float
        Two distances are tied if they differ by at most this part of the larger one. Euclidean ones are
        compared as squares. 0 compares the floating-point distances as they are.
    metric : {"euclidean", "gower", "hamming"} or Metric
        Between rows as they are: for Gower distances give
        :func:`~dpsynth.evaluation.neighbours.search.gower_points`.

    Returns
    -------
    AdversarialAccuracy
        Confidential if ``real`` holds private records, because no noise is added.

    Raises
    ------
    InputError
        If an array is not two-dimensional, has fewer than two rows or no column, holds NaN or infinity, or
        if the numbers of columns differ.

    Notes
    -----
    Let n be the real and m >= n - 1 the synthetic records. Let ``c_<`` and ``c_<=`` count the synthetic
    records closer than, and at most as far as, the nearest other real record of record i. Then

    ``AA_i = [C(m - c_<=, n - 1) + C(m - c_<, n - 1)] / (2 C(m, n - 1))``.

    For m < n - 1 the other real records are thinned to m instead. For n = m this is the mean over the
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
    chosen = metric_named(metric)
    t, s = two_tables(real, synthetic)
    in_range("tie_tolerance", tie_tolerance, 0.0, 1.0, high_open=True)
    return compared(*two_sides(t, s, chosen, tie_tolerance=tie_tolerance))


def two_sides(
    real: Floats,
    synthetic: Floats,
    metric: Metric,
    *,
    k: int = 8,
    near_synthetic: Nearest | None = None,
    tie_tolerance: float = TIE_TOLERANCE,
) -> tuple[Side, Side]:
    """Return the real records among their neighbours, and the synthetic ones among theirs.

    ``near_synthetic``: lists of the synthetic records among themselves, from another comparison.
    """
    sided = partial(one_side, metric=metric, k=k, tie_tolerance=tie_tolerance)
    return sided(real, synthetic), sided(synthetic, real, near=near_synthetic)


def compared(real: Side, synthetic: Side) -> AdversarialAccuracy:
    """Return the accuracy that two sides add up to."""
    aa_real, aa_synthetic = float(real.contribution.mean()), float(synthetic.contribution.mean())
    return AdversarialAccuracy(
        aa_real=aa_real,
        aa_synthetic=aa_synthetic,
        aa=(aa_real + aa_synthetic) / 2,
        n_real=real.n,
        n_synthetic=synthetic.n,
        per_real=real.contribution,
        per_synthetic=synthetic.contribution,
    )


def two_tables(
    real: ArrayLike, synthetic: ArrayLike, *, names: tuple[str, str] = ("real", "synthetic")
) -> tuple[Floats, Floats]:
    """Return two arrays of points, checked: finite, at least two rows each, equally many columns."""
    t, s = (_points(values, name) for values, name in zip((real, synthetic), names, strict=True))
    if t.shape[1] != s.shape[1]:
        raise InputError(
            f"{names[0]} and {names[1]} must have the same number of columns, "
            f"got {t.shape[1]} and {s.shape[1]}"
        )
    return t, s


def _points(values: ArrayLike, name: str) -> Floats:
    try:
        points = np.ascontiguousarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} must be an array of numbers: {error}") from None
    if points.ndim != 2:
        raise InputError(f"{name} must have shape (records, columns), got {points.ndim} dimension(s)")
    if points.shape[0] < 2:
        raise of_records(f"{name} must have at least 2 records, got {points.shape[0]}")
    if points.shape[1] < 1:
        raise InputError(f"{name} must have at least 1 column, got 0")
    if not np.isfinite(points).all():
        row, column = np.argwhere(~np.isfinite(points))[0]
        raise of_records(f"{name} must be finite, got {points[row, column]} in row {row}, column {column}")
    return points
