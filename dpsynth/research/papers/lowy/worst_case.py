"""What the Gaussian mechanism on a mean costs in the worst case: over a parent set, and over all data.

Lowy and others 2024, "Why does differential privacy with large epsilon defend against practical membership
inference attacks?", Lemma 10, which is Theorem 8 of Balle and Wang 2018, "Improving the Gaussian mechanism
for differential privacy". :mod:`dpsynth.research.papers.lowy.gaussian` is compared with these two: DP
restricted to halves of the parent set that differ in one record (the paper's epsilon_X), and DP, both under
replace-one adjacency. Arguments out of range or NaN raise InputError by name.
"""

from __future__ import annotations

import math

from numpy.typing import ArrayLike

from dpsynth.accounting.loss.gaussian import gaussian_deltas
from dpsynth.checks import in_range, inside, whole
from dpsynth.research.papers.lowy.gaussian import (
    ROOT_TOLERANCE,
    finite_sigma,
    gaussian_pmp_sigma,
    largest_distance,
    single_epsilon,
    values_of,
)


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
