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
from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike

from dpsynth.accounting.gaussian import gaussian_deltas
from dpsynth.checks import in_range, inside, whole
from dpsynth.errors import InputError, of_records
from dpsynth.research.papers.lowy import halves_of

_LARGEST_VALUE = 1e300
_BLOCK_CELLS = 2**21
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
    epsilon, sigma = _checked(epsilon, sigma)
    largest = max(float(block.max()) for block in _distances(values_of(values)))
    return float(gaussian_deltas(largest / sigma, epsilon))


def gaussian_dp_delta(value_range: float, n: int, sigma: float, epsilon: float) -> float:
    """Delta of DP for the mean of n values, whatever the data: Lemma 10 at ``D = value_range / n``.

    ``value_range`` is the largest distance between two values g can take, finite. It is twice the clip
    threshold if norms are clipped. ``n`` is half the number of records of the parent set.
    """
    epsilon, sigma = _checked(epsilon, sigma)
    distance = inside("value_range", value_range, 0.0, math.inf) / whole("n", n)
    return float(gaussian_deltas(distance / sigma, epsilon))


def gaussian_pmp_delta(values: ArrayLike, sigma: float, epsilon: float) -> float:
    """Bound on delta of practical membership privacy, averaged over the record that replaces the target.

    Proposition 12 with "Our approach": the largest, over records x, mean over x' != x of ``Phi(D/(2 sigma) -
    epsilon sigma/D) - e^epsilon Phi(-D/(2 sigma) - epsilon sigma/D)`` with ``D = |g(x) - g(x')| / n``. It
    decreases in epsilon (at least 0 and finite) and in sigma. Time grows with the square of the number of
    records.
    """
    epsilon, sigma = _checked(epsilon, sigma)
    points = values_of(values)
    # the record itself is at distance 0 and adds nothing to the sum
    largest = max(gaussian_deltas(block / sigma, epsilon).sum(axis=1).max() for block in _distances(points))
    return float(largest) / (len(points) - 1)


def values_of(parent: ArrayLike) -> np.ndarray:
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


def _checked(epsilon: float, sigma: float) -> tuple[float, float]:
    epsilon = in_range("epsilon", epsilon, 0.0, math.inf, high_open=True)
    return epsilon, inside("sigma", sigma, 0.0, math.inf)


def _distances(points: np.ndarray) -> Iterator[np.ndarray]:
    """D between some records (rows) and all records (columns), block by block."""
    from scipy.spatial.distance import cdist

    # Squares of values far from 1 leave the range of floats, and a distance lost in that is a privacy claim.
    unit = float(np.abs(points).max()) or 1.0
    scaled, factor = points / unit, unit / (len(points) // 2)
    return (cdist(scaled[block], scaled) * factor for block in _blocks(len(points), len(points)))


def _blocks(rows: int, columns: int) -> Iterator[slice]:
    """Cut rows into blocks small enough to work on."""
    size = max(1, _BLOCK_CELLS // max(1, columns))
    return (slice(start, start + size) for start in range(0, rows, size))


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
    points = values_of(values)
    sigma = inside("sigma", sigma, 0.0, math.inf)
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
    mask = halves_of(points)
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
    for block in _blocks(len(points), len(means)):
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
