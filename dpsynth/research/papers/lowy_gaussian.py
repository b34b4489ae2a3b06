"""Practical membership privacy of the Gaussian mechanism on a mean.

Lowy and others 2024, "Why does differential privacy with large epsilon defend against practical membership
inference attacks?", Lemmas 10 and 11, Proposition 12 and "Our approach". The mechanism publishes the mean of
g(x) over the data D, a random half of the 2n records of the parent set, plus ``N(0, sigma^2 I)``. There are
three deltas, each at most the next. The first is exact (Lemma 11). The bound of Proposition 12 averages over
the record x' which replaces x. DP restricted to the parent set takes the worst x' (the paper's epsilon_X). DP
over all data is beside them (Lemma 10): Theorem 8 of Balle and Wang 2018, "Improving the Gaussian mechanism
for differential privacy". All of it is under replace-one adjacency.

The numbers are computed from the values of the parent set itself. If that set is private they are
confidential, and PMP does not compose (see :mod:`dpsynth.research.papers.lowy`). ``values`` are g(x) for each
record, shape (2n,) or (2n, d). ``sigma`` is the standard deviation of the noise on the mean, in units of g,
above 0 and finite. Arguments out of range or NaN raise InputError by name.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import ArrayLike

from dpsynth.checks import in_range, inside, whole
from dpsynth.errors import InputError, of_records
from dpsynth.privacy.gaussian_loss import GaussianLoss, gaussian_deltas
from dpsynth.research.papers.lowy import halves_of_parents, row_blocks

#: Relative tolerance of the inverses that are not calibrations.
ROOT_TOLERANCE = 1e-10
_LARGEST_VALUE = 1e300
_LARGEST_MU = 1e100
# of the exact delta
_MOST_RECORDS = 16
_MOST_EVALUATIONS = 2**28
#: Range of the values in units of sigma, beyond which rounding moves a component by more than 1e-7 sigma.
_WIDEST = 1e9
_REACH = 9.0  # standard deviations; the mass beyond is below 1e-18
_CELL = 1 / 128  # of a standard deviation
_BISECTIONS = 40
#: Log ratios are known to about this much, so that a smaller excess over epsilon is none.
_NOISE = 1e-12


def gaussian_parent_delta(values: ArrayLike, sigma: float, epsilon: float) -> float:
    """Delta of DP restricted to adjacent halves of the parent set: Lemma 10 at its largest D."""
    epsilon = in_range("epsilon", epsilon, 0.0, math.inf, high_open=True)
    return float(gaussian_deltas(largest_distance(checked_values(values)) / finite_sigma(sigma), epsilon))


def gaussian_parent_epsilon(values: ArrayLike, sigma: float, delta: float) -> float:
    """Epsilon at which :func:`gaussian_parent_delta` is ``delta`` (the paper's epsilon_X)."""
    delta = in_range("delta", delta, 0.0, 1.0)
    return single_epsilon(largest_distance(checked_values(values)), finite_sigma(sigma), delta)


def gaussian_dp_delta(value_range: float, n: int, sigma: float, epsilon: float) -> float:
    """Delta of DP for the mean of n values, whatever the data: Lemma 10 at ``D = value_range / n``.

    ``value_range`` is the largest distance between two values g can take, finite. It is twice the clip
    threshold if norms are clipped. ``n`` is half the number of records of the parent set.
    """
    epsilon = in_range("epsilon", epsilon, 0.0, math.inf, high_open=True)
    return float(gaussian_deltas(_sensitivity(value_range, n) / finite_sigma(sigma), epsilon))


def gaussian_dp_sigma(value_range: float, n: int, epsilon: float, delta: float) -> float:
    """Smallest noise on the mean of n values that is (epsilon, delta)-DP under replace-one adjacency.

    It is within 1e-10 of the smallest and on its private side. ``delta`` lies inside (0, 1).
    """
    # Corollary 4: with n = 1, PMP is DP, and the mean of one of two values is that value.
    return gaussian_pmp_sigma([0.0, _sensitivity(value_range, n)], epsilon, delta, rtol=ROOT_TOLERANCE)


def _sensitivity(value_range: float, n: int) -> float:
    return inside("value_range", value_range, 0.0, math.inf) / whole("n", n)


def checked_values(parent: ArrayLike) -> np.ndarray:
    """Return values g(x) of the records of a parent set as an array of shape (2n, d), after checking them."""
    try:
        values = np.asarray(parent, dtype=float)
    except (TypeError, ValueError):
        raise InputError("values must be numbers, one row for each record") from None
    if values.ndim == 1:
        values = values[:, None]
    if values.ndim != 2 or values.shape[1] == 0 or not np.all(np.abs(values) <= _LARGEST_VALUE):
        raise InputError("values must be finite numbers of shape (2n,) or (2n, d), of at most 1e300")
    if len(values) < 2 or len(values) % 2:
        raise InputError(
            f"values must have one row for each of an even number of records, not {len(values)} rows"
        )
    return values


def gaussian_pmp_delta(values: ArrayLike, sigma: float, epsilon: float) -> float:
    """Bound on delta of practical membership privacy, averaged over the record that replaces the target.

    Proposition 12 with "Our approach": the largest, over records x, mean over x' != x of ``Phi(D/(2 sigma) -
    epsilon sigma/D) - e^epsilon Phi(-D/(2 sigma) - epsilon sigma/D)`` with ``D = |g(x) - g(x')| / n``. It
    decreases in epsilon (at least 0 and finite) and in sigma. Time grows with the square of the number of
    records.
    """
    epsilon = in_range("epsilon", epsilon, 0.0, math.inf, high_open=True)
    return _averaged(checked_values(values), finite_sigma(sigma), epsilon)


def gaussian_pmp_epsilon(values: ArrayLike, sigma: float, delta: float) -> float:
    """Smallest epsilon at which :func:`gaussian_pmp_delta` is at most ``delta``, rounded up.

    At delta 0 epsilon is infinite unless all values are equal. The delta at the result was computed and is at
    most ``delta``.
    """
    points, sigma = checked_values(values), finite_sigma(sigma)
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
    """Smallest noise, within ``rtol``, for which :func:`gaussian_pmp_delta` is at most ``delta``, in (0, 1).

    The delta at this sigma was computed and is at most ``delta``. InputError if any noise however small meets
    the target because so many values are equal.
    """
    points = checked_values(values)
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

    ``excess`` is how far the cost exceeds the target, ``excess(good) <= 0 < excess(bad)``. Both points are
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
    """Proposition 12 for a mean. The record itself is at distance 0 and adds nothing to the sum."""
    largest = max(gaussian_deltas(block / sigma, epsilon).sum(axis=1).max() for block in _distances(points))
    return float(largest) / (len(points) - 1)


def _distances(points: np.ndarray) -> Iterator[np.ndarray]:
    """D between some records (rows) and all records (columns), block by block."""
    from scipy.spatial.distance import cdist

    # Squares of values far from 1 leave the range of floats, and a distance lost in that is a privacy claim.
    unit = float(np.abs(points).max()) or 1.0
    scaled, factor = points / unit, unit / (len(points) // 2)
    return (cdist(scaled[block], scaled) * factor for block in row_blocks(len(points), len(points)))


def _log(delta: float) -> float:
    return math.log(max(delta, 5e-324))


def gaussian_pmp_exact_delta(values: ArrayLike, sigma: float, epsilon: float) -> float:
    """Smallest delta for which the Gaussian mechanism on a mean of single numbers is (epsilon, delta)-PMP.

    By Lemma 11 delta is the larger hockey-stick divergence between two mixtures of Gaussians. One has a
    component for each half with the record, the other for each half without. Both sides of Definition 2 have
    the same delta here. The positive part of p - e^epsilon q is integrated piece by piece. Its zeros are
    bracketed on a grid of 1/128 sigma and bisected. Between them both mixtures are sums of normal
    distribution functions. Only a piece within one grid cell is missed. The result is right to within about
    1e-8. ``epsilon`` lies in [0, 700].

    Raises
    ------
    InputError
        If there are more than 16 records or values of several dimensions. Also if sigma is so small beside
        the values that the integral would take too long.
    """
    points = checked_values(values)
    sigma = finite_sigma(sigma)
    epsilon = in_range("epsilon", epsilon, 0.0, 700.0)
    if points.shape[1] != 1:
        raise InputError("values must be one number a record for the exact delta")
    if len(points) > _MOST_RECORDS:
        raise of_records(
            f"values has {len(points)} records, more than {_MOST_RECORDS}: the exact delta would take too "
            "long, use gaussian_pmp_delta"
        )
    with np.errstate(over="ignore"):
        scaled = (points[:, 0] - points[:, 0].min()) / sigma
    if not scaled.max() <= _WIDEST:
        raise InputError(f"sigma {sigma:g} is too small beside the values for the exact delta")
    mask = halves_of_parents(points).mask
    means = mask @ scaled / (len(points) // 2)
    grid = _grid(means, sigma)
    excess = _log_ratios(grid, means, mask) - epsilon
    # One side of Definition 2 is enough: the records not in a half with x are a half without x, whose mean
    # lies as far on the other side of the parent set's, so that one mixture is the mirror image of the other.
    return max(
        _divergence(grid, column, means, mask[:, record], epsilon) for record, column in enumerate(excess.T)
    )


def _grid(means: np.ndarray, sigma: float) -> np.ndarray:
    """Points around the components, in units of sigma. Between far components there is no mass."""
    centres = np.unique(means)
    breaks = np.flatnonzero(np.diff(centres) > 2 * _REACH)
    starts = np.concatenate([centres[:1], centres[breaks + 1]]) - _REACH
    ends = np.concatenate([centres[breaks], centres[-1:]]) + _REACH
    counts = np.ceil((ends - starts) / _CELL)
    if counts.sum() * len(means) > _MOST_EVALUATIONS:
        raise InputError(
            f"sigma {sigma:g} is too small beside the values for the exact delta: use gaussian_pmp_delta"
        )
    pieces = zip(starts, ends, counts, strict=True)
    return np.concatenate([np.linspace(start, end, int(count) + 1) for start, end, count in pieces])


def _log_ratios(points: np.ndarray, means: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """Log density with each record (columns) less that without it, at each point (rows)."""
    sides = np.concatenate([mask, ~mask], axis=1).astype(float)
    rows = []
    for block in row_blocks(len(points), len(means)):
        exponents = -0.5 * (points[block, None] - means) ** 2
        sums = np.exp(exponents - exponents.max(axis=1, keepdims=True)) @ sides
        with np.errstate(divide="ignore"):
            logs = np.log(sums)
        rows.append(logs[:, : mask.shape[1]] - logs[:, mask.shape[1] :])
    return np.concatenate(rows)


def _divergence(
    grid: np.ndarray, excess: np.ndarray, means: np.ndarray, member: np.ndarray, epsilon: float
) -> float:
    """Lemma 11 for one record: the integral of the positive part of p - e^epsilon q, p with the record."""
    positive = excess > _NOISE
    if not positive.any():
        return 0.0
    cells = np.flatnonzero(positive[1:] != positive[:-1])
    low, high = grid[cells], grid[cells + 1]
    column = member[:, None]
    for _ in range(_BISECTIONS if len(cells) else 0):
        middle = (low + high) / 2
        inside = _log_ratios(middle, means, column)[:, 0] - epsilon > _NOISE
        same = inside == positive[cells]
        low, high = np.where(same, middle, low), np.where(same, high, middle)
    edges = np.array([-np.inf] * bool(positive[0]) + high.tolist() + [np.inf] * bool(positive[-1]))
    difference = _mass(edges, means[member]) - np.exp(epsilon) * _mass(edges, means[~member])
    return float(np.clip(difference.sum(), 0.0, 1.0))


def _mass(edges: np.ndarray, means: np.ndarray) -> np.ndarray:
    """Probability of each interval (every second gap between the edges) under the mixture."""
    from scipy.special import ndtr

    low, high = edges[0::2, None] - means, edges[1::2, None] - means
    # on the right of a component the upper tails are the small numbers, and so the accurate ones
    right = low > 0.0
    return (ndtr(np.where(right, -low, high)) - ndtr(np.where(right, -high, low))).mean(axis=1)
