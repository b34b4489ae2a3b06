"""The exact practical membership privacy of the Gaussian mechanism on the mean of one number a record.

Lowy and others 2024, "Why does differential privacy with large epsilon defend against practical membership
inference attacks?", Lemma 11: delta is the larger hockey-stick divergence between two mixtures of Gaussians,
one component for each half of the parent set with the record and one for each half without. The paper bounds
it (Proposition 12); for a small parent set it can be computed.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from dpsynth.checks import in_range
from dpsynth.errors import InputError, of_records
from dpsynth.research.papers.lowy.gaussian import finite_sigma, values_of
from dpsynth.research.papers.lowy.halves import halves_of

_MOST_RECORDS = 16
_MOST_EVALUATIONS = 2**28
#: Range of the values in units of sigma, beyond which rounding moves a component by more than 1e-7 sigma.
_WIDEST = 1e9
_REACH = 9.0  # standard deviations; the mass beyond is below 1e-18
_CELL = 1 / 128  # of a standard deviation
_BLOCK = 2**21
_BISECTIONS = 40
#: Log ratios are known to about this much, so that a smaller excess over epsilon is none.
_NOISE = 1e-12


def gaussian_pmp_exact_delta(values: ArrayLike, sigma: float, epsilon: float) -> float:
    """Smallest delta for which the Gaussian mechanism on a mean is (epsilon, delta)-PMP.

    Parameters
    ----------
    values : array or DataFrame, shape (2n,) or (2n, 1)
        g(x) for each record of the parent set, at most 16 records.
    sigma : float
        Standard deviation of the noise on the mean, in units of g, finite.
    epsilon : float
        In [0, 700].

    Returns
    -------
    float
        In [0, 1], to within about 1e-8.

    Raises
    ------
    InputError
        If an argument is out of range or NaN; if there are more than 16 records or values of several
        dimensions; or if sigma is so small beside the values that the integral would take too long.

    Notes
    -----
    Both sides of Definition 2 have the same delta here. The positive part of p - e^epsilon q is integrated
    piece by piece: its zeros are bracketed on a grid of 1/128 sigma and bisected, and between them both
    mixtures are sums of normal distribution functions. Only a piece within one grid cell is missed.
    """
    points = values_of(values)
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
    mask = halves_of(points).mask
    means = mask @ scaled / (len(points) // 2)
    grid = _grid(means, sigma)
    excess = _log_ratios(grid, means, mask) - epsilon
    # One side of Definition 2 is enough: the records not in a half with x are a half without x, whose mean
    # lies as far on the other side of the parent set's, so that one mixture is the mirror image of the other.
    return max(
        _divergence(grid, column, means, mask[:, record], epsilon) for record, column in enumerate(excess.T)
    )


def _grid(means: np.ndarray, sigma: float) -> np.ndarray:
    """Points around the components, in units of sigma; between far components there is nothing to see."""
    centres = np.unique(means)
    breaks = np.flatnonzero(np.diff(centres) > 2 * _REACH)
    starts = np.concatenate([centres[:1], centres[breaks + 1]]) - _REACH
    ends = np.concatenate([centres[breaks], centres[-1:]]) + _REACH
    counts = np.ceil((ends - starts) / _CELL)
    if counts.sum() * len(means) > _MOST_EVALUATIONS:
        raise InputError(
            f"sigma {sigma:g} is too small beside the values for the exact delta: use gaussian_pmp_delta"
        )
    return np.concatenate(
        [
            np.linspace(start, end, int(count) + 1)
            for start, end, count in zip(starts, ends, counts, strict=True)
        ]
    )


def _log_ratios(points: np.ndarray, means: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """Log density with each record (columns) less that without it, at each point (rows)."""
    size = max(1, _BLOCK // len(means))
    sides = np.concatenate([mask, ~mask], axis=1).astype(float)
    rows = []
    for start in range(0, len(points), size):
        exponents = -0.5 * (points[start : start + size, None] - means) ** 2
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
