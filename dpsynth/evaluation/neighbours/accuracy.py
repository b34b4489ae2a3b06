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

Whatever decides a comparison is a distance computed from differences, never as ``x**2 + y**2 - 2 x y``, whose
rounding breaks ties. Distances that agree within ``tie_tolerance`` (relative) are ties, because columns
scaled by their bounds make equal distances differ in their last digits; the rule is symmetric in the two
distances, so the measure stays exactly unbiased.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from dpsynth.checks import in_range
from dpsynth.errors import InputError, of_records
from dpsynth.evaluation.neighbours.closed_form import none_kept
from dpsynth.evaluation.neighbours.metrics import Floats, Metric, metric_named
from dpsynth.evaluation.neighbours.search import Nearest
from dpsynth.evaluation.neighbours.sides import TIE_TOLERANCE, Side, one_side
from dpsynth.evaluation.progress import Progress, silent, within

__all__ = ["AdversarialAccuracy", "adversarial_accuracy", "compared", "none_kept", "two_sides"]


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
    real: ArrayLike,
    synthetic: ArrayLike,
    *,
    tie_tolerance: float = TIE_TOLERANCE,
    metric: str | Metric = "euclidean",
    progress: Progress = silent,
) -> AdversarialAccuracy:
    """Compute the unbiased nearest-neighbour adversarial accuracy with ties and unequal sizes.

    Parameters
    ----------
    real : array_like of shape (n, d)
        Real records T as finite numbers, n at least 2.
    synthetic : array_like of shape (m, d)
        Synthetic records S, m at least 2.
    tie_tolerance : float
        Two distances (of the Euclidean metric: squared distances) are tied when they differ by at most this
        part of the larger one; 0 compares the floating-point distances as they are.
    metric : {"euclidean", "gower", "hamming"} or Metric
        Between rows as they are: for Gower distances give
        :func:`~dpsynth.evaluation.neighbours.metrics.gower_points`.
    progress : callable, optional
        Called with the share done, in [0, 1].

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
    chosen = metric_named(metric)
    t, s = two_tables(real, synthetic)
    in_range("tie_tolerance", tie_tolerance, 0.0, 1.0, high_open=True)
    sides = two_sides(t, s, chosen, tie_tolerance=tie_tolerance, progress=progress)
    return compared(*sides)


def two_sides(
    real: Floats,
    synthetic: Floats,
    metric: Metric,
    *,
    k: int = 8,
    near_synthetic: Nearest | None = None,
    tie_tolerance: float = TIE_TOLERANCE,
    progress: Progress = silent,
) -> tuple[Side, Side]:
    """Return the real records among their neighbours, and the synthetic ones among theirs.

    Parameters
    ----------
    real, synthetic : ndarray of shape (n, d), (m, d)
    k : int
        How many neighbours the lists hold, at least.
    near_synthetic : Nearest, optional
        Lists of the synthetic records among themselves, from another comparison.
    tie_tolerance, progress
        As in :func:`adversarial_accuracy`.
    """
    share = len(real) / (len(real) + len(synthetic))
    sided = partial(one_side, metric=metric, k=k, tie_tolerance=tie_tolerance)
    return (
        sided(real, synthetic, progress=within(progress, 0.0, share)),
        sided(synthetic, real, near=near_synthetic, progress=within(progress, share, 1.0)),
    )


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
