"""Practical membership privacy of the Gaussian mechanism on a mean.

Lowy and others 2024, "Why does differential privacy with large epsilon defend against practical membership
inference attacks?", Lemmas 10 and 11, Proposition 12 and "Our approach". The mechanism publishes the mean of
g(x) over the data D, a random half of the 2n records of the parent set, plus ``N(0, sigma^2 I)``. There are
three deltas, each at most the next: the exact one (:mod:`dpsynth.research.papers.lowy.mixture`), the bound of
Proposition 12 that averages over the record x' which replaces x (here), and DP restricted to the parent set,
which takes the worst x' (:mod:`dpsynth.research.papers.lowy.gaussian`).

All of them are computed from the values of the parent set itself; where that set is private they are for
internal use only, and PMP does not compose (see :mod:`dpsynth.research.papers.lowy.definition`). Arguments
out of range or NaN raise InputError by name.

What the Gaussian mechanism on a mean costs in the worst case: over a parent set, and over all data.

Lowy and others 2024, "Why does differential privacy with large epsilon defend against practical membership
inference attacks?", Lemma 10, which is Theorem 8 of Balle and Wang 2018, "Improving the Gaussian mechanism
for differential privacy". :mod:`dpsynth.research.papers.lowy.gaussian` is compared with these two: DP
restricted to halves of the parent set that differ in one record (the paper's epsilon_X), and DP, both under
replace-one adjacency. Arguments out of range or NaN raise InputError by name.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dpsynth.accounting.gaussian import GaussianLoss, gaussian_deltas
from dpsynth.checks import in_range, inside, whole
from dpsynth.errors import InputError
from dpsynth.research.papers.lowy.halves import blocks


def gaussian_parent_delta(values: ArrayLike, sigma: float, epsilon: float) -> float:
    """Delta of DP restricted to adjacent halves of the parent set, the worst case over its records.

    It is Lemma 10 (Balle and Wang 2018, Theorem 8) at the largest D of the parent set, and at least
    :func:`gaussian_pmp_delta`, whose parameters it takes.
    """
    epsilon = in_range("epsilon", epsilon, 0.0, math.inf, high_open=True)
    return float(gaussian_deltas(largest_distance(values_of(values)) / finite_sigma(sigma), epsilon))


def gaussian_parent_epsilon(values: ArrayLike, sigma: float, delta: float) -> float:
    """Smallest epsilon at which :func:`gaussian_parent_delta` is at most ``delta`` (the paper's epsilon_X).

    Parameters and errors are those of :func:`gaussian_pmp_epsilon`.
    """
    delta = in_range("delta", delta, 0.0, 1.0)
    return single_epsilon(largest_distance(values_of(values)), finite_sigma(sigma), delta)


def gaussian_dp_delta(value_range: float, n: int, sigma: float, epsilon: float) -> float:
    """Delta of DP for the mean of n values, the worst case over all data.

    Parameters
    ----------
    value_range : float
        Largest distance between two values g can take, in units of g, finite; twice the clip threshold where
        norms are clipped.
    n : int
        Number of records in the data, half that of the parent set.
    sigma, epsilon
        As in :func:`gaussian_pmp_delta`.

    Returns
    -------
    float
        In [0, 1].

    Notes
    -----
    Lowy and others 2024, Lemma 10 (Balle and Wang 2018, Theorem 8) at ``D = value_range / n``.
    """
    epsilon = in_range("epsilon", epsilon, 0.0, math.inf, high_open=True)
    return float(gaussian_deltas(_sensitivity(value_range, n) / finite_sigma(sigma), epsilon))


def gaussian_dp_sigma(value_range: float, n: int, epsilon: float, delta: float) -> float:
    """Smallest noise on the mean of n values that is (epsilon, delta)-DP under replace-one adjacency.

    Parameters
    ----------
    value_range, n
        As in :func:`gaussian_dp_delta`.
    epsilon, delta : float
        The target: epsilon at least 0 and finite, delta in (0, 1).

    Returns
    -------
    float
        Standard deviation of the noise, within 1e-10 of the smallest and on its private side.
    """
    # Corollary 4: with n = 1, PMP is DP, and the mean of one of two values is that value.
    return gaussian_pmp_sigma([0.0, _sensitivity(value_range, n)], epsilon, delta, rtol=ROOT_TOLERANCE)


def _sensitivity(value_range: float, n: int) -> float:
    return inside("value_range", value_range, 0.0, math.inf) / whole("n", n)


#: Relative tolerance of the inverses that are not calibrations.
ROOT_TOLERANCE = 1e-10
_LARGEST_VALUE = 1e300
_LARGEST_MU = 1e100


def values_of(parent: ArrayLike, function: Callable[[Any], ArrayLike] | None = None) -> np.ndarray:
    """Values g(x) of the records of a parent set, which the other functions of this module take.

    Parameters
    ----------
    parent : DataFrame or array
        The parent set, one record a row; an even number of rows.
    function : callable, optional
        Takes the parent set and returns g(x) for each row, shape (2n,) or (2n, d); by default the rows are
        the values.

    Returns
    -------
    ndarray, shape (2n, d)

    Raises
    ------
    InputError
        If the values are not finite numbers of one of these shapes, or the number of records is odd.
    """
    try:
        values = np.asarray(parent if function is None else function(parent), dtype=float)
    except (TypeError, ValueError):
        raise InputError("values must be numbers, one row for each record") from None
    if values.ndim == 1:
        values = values[:, None]
    if values.ndim != 2 or values.shape[1] == 0 or not np.all(np.abs(values) <= _LARGEST_VALUE):
        raise InputError("values must be finite numbers of shape (2n,) or (2n, d), of at most 1e300")
    if (
        len(values) < 2
        or len(values) % 2
        or (function is not None and np.shape(parent)[:1] != (len(values),))
    ):
        raise InputError(
            f"values must have one row for each of an even number of records, not {len(values)} rows"
        )
    return values


def gaussian_pmp_delta(values: ArrayLike, sigma: float, epsilon: float) -> float:
    """Bound on delta of practical membership privacy, averaged over the record that replaces the target.

    Parameters
    ----------
    values : array or DataFrame, shape (2n,) or (2n, d)
        g(x) for each record of the parent set.
    sigma : float
        Standard deviation of the noise on the mean, in units of g, finite.
    epsilon : float
        At least 0 and finite.

    Returns
    -------
    float
        In [0, 1]; decreasing in epsilon and in sigma.

    Notes
    -----
    Lowy and others 2024, Proposition 12 with "Our approach": the largest, over records x, mean over x' != x
    of ``Phi(D/(2 sigma) - epsilon sigma/D) - e^epsilon Phi(-D/(2 sigma) - epsilon sigma/D)`` with
    ``D = |g(x) - g(x')| / n``. Time grows with the square of the number of records.

    Examples
    --------
    >>> values = [0, 0.1, 0.3, 0.35, 0.6, 1]
    >>> [round(gaussian_pmp_delta(values, 0.4, epsilon), 6) for epsilon in (0.0, 0.25, 1.0)]
    [0.238145, 0.15405, 0.030064]
    """
    epsilon = in_range("epsilon", epsilon, 0.0, math.inf, high_open=True)
    return _averaged(values_of(values), finite_sigma(sigma), epsilon)


def gaussian_pmp_epsilon(values: ArrayLike, sigma: float, delta: float) -> float:
    """Smallest epsilon at which :func:`gaussian_pmp_delta` is at most ``delta``, rounded up.

    ``values`` and ``sigma`` are as in :func:`gaussian_pmp_delta`; ``delta`` is in [0, 1], and at 0 epsilon is
    infinite unless all values are equal. The delta at the result was computed and is at most ``delta``.
    """
    points, sigma = values_of(values), finite_sigma(sigma)
    delta = in_range("delta", delta, 0.0, 1.0)
    if _averaged(points, sigma, 0.0) <= delta:
        return 0.0
    # The average is at most its largest term, whose epsilon is known.
    high = single_epsilon(largest_distance(points), sigma, delta)
    if math.isinf(high):
        return math.inf

    def excess(epsilon: float) -> float:
        return _log(_averaged(points, sigma, epsilon)) - math.log(delta)

    low, high = 1e-12 * high, (1 + 1e-9) * high
    return low if excess(low) <= 0.0 else private_root(excess, high, low, ROOT_TOLERANCE)


def gaussian_pmp_sigma(values: ArrayLike, epsilon: float, delta: float, *, rtol: float = 1e-3) -> float:
    """Smallest noise for which :func:`gaussian_pmp_delta` is at most a target.

    Parameters
    ----------
    values : array or DataFrame, shape (2n,) or (2n, d)
        g(x) for each record of the parent set.
    epsilon, delta : float
        The target: epsilon at least 0 and finite, delta in (0, 1).
    rtol : float
        Relative tolerance of the result, in (0, 0.1].

    Returns
    -------
    float
        Standard deviation of the noise on the mean, in units of g. The delta at this sigma was computed and
        is at most ``delta``.

    Raises
    ------
    InputError
        If an argument is out of range, or any noise however small meets the target because so many values are
        equal.
    """
    points = values_of(values)
    epsilon = in_range("epsilon", epsilon, 0.0, math.inf, high_open=True)
    delta = inside("delta", delta, 0.0, 1.0)
    rtol = in_range("rtol", rtol, 0.0, 0.1, low_open=True)
    if delta >= max(float((row > 0.0).sum(axis=1).max()) for row in _distances(points)) / (len(points) - 1):
        raise InputError(
            f"values: so many are equal that any noise meets delta {delta:g}, so there is no smallest sigma"
        )

    def excess(sigma: float) -> float:
        return _log(_averaged(points, sigma, epsilon)) - math.log(delta)

    good = bad = largest_distance(points)
    while excess(good) > 0.0:
        good, bad = 2 * good, good
    while excess(bad) <= 0.0:
        good, bad = bad, bad / 2
    return private_root(excess, good, bad, rtol)


def largest_distance(points: np.ndarray) -> float:
    """Return the largest D of two records."""
    return max(float(block.max()) for block in _distances(points))


def finite_sigma(sigma: float) -> float:
    """Return ``sigma`` after checking that it is greater than 0 and finite."""
    return inside("sigma", sigma, 0.0, math.inf)


def single_epsilon(distance: float, sigma: float, delta: float) -> float:
    """Return epsilon of one Gaussian release whose mean moves by ``distance``."""
    mu = distance / sigma
    # Beyond these the square of mu is no number; both roundings are to the private side.
    mu = math.inf if mu > _LARGEST_MU else max(mu, 1 / _LARGEST_MU) if mu > 0.0 else 0.0
    return GaussianLoss(mu).epsilon(delta)


def private_root(excess: Callable[[float], float], good: float, bad: float, rtol: float) -> float:
    """Return a root of ``excess`` between two points, within ``rtol`` of it and where it is at most 0.

    ``excess`` is how far the cost exceeds the target, ``excess(good) <= 0 < excess(bad)``; both points are
    greater than 0, and either may be the larger.
    """
    from scipy.optimize import brentq

    root = float(brentq(excess, good, bad, xtol=1e-300, rtol=max(rtol / 4, 1e-14)))
    step = max(rtol / 4, 1e-15)
    while excess(root) > 0.0:
        # brentq ends on either side; walk towards the good one
        moved = root + math.copysign(step * root, good - root)
        if abs(moved - root) >= abs(good - root):
            return good
        root, step = moved, 2 * step
    return root


def _averaged(points: np.ndarray, sigma: float, epsilon: float) -> float:
    """Proposition 12 for a mean; the record itself is at distance 0 and adds nothing to the sum."""
    largest = max(gaussian_deltas(block / sigma, epsilon).sum(axis=1).max() for block in _distances(points))
    return float(largest) / (len(points) - 1)


def _distances(points: np.ndarray) -> Iterator[np.ndarray]:
    """D between some records (rows) and all records (columns), block by block."""
    from scipy.spatial.distance import cdist

    # Squares of values far from 1 leave the range of floats, and a distance lost in that is a privacy claim.
    unit = float(np.abs(points).max()) or 1.0
    scaled, factor = points / unit, unit / (len(points) // 2)
    return (cdist(scaled[block], scaled) * factor for block in blocks(len(points), len(points)))


def _log(delta: float) -> float:
    return math.log(max(delta, 5e-324))
