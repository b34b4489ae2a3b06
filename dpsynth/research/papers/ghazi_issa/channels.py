"""Channels of local privacy as matrices: their epsilon and total variation (TV), responses and erasure.

Ghazi and Issa 2024, "Total variation meets differential privacy", section VII. Row x of a channel is the law
of what is reported for the input x. It is epsilon-LDP if no two entries of a column differ by more than the
factor ``e^epsilon``, and its TV is the largest distance between two rows (Definitions 6 and 7). Arguments out
of range or NaN raise InputError by name.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpsynth.checks import in_range, whole
from dpsynth.errors import InputError


def checked_channel(channel: ArrayLike) -> NDArray[np.float64]:
    """Return a channel as an array of shape (inputs, outputs) after checking that its rows are laws.

    Raises
    ------
    InputError
        If it is no matrix, has an entry that is negative or not finite, or a row that does not sum to 1.
    """
    rows = np.asarray(channel, dtype=float)
    if rows.ndim != 2 or rows.size == 0:
        raise InputError(f"channel must be a matrix of inputs by outputs, not of shape {rows.shape}")
    if not np.all(np.isfinite(rows) & (rows >= 0)):
        raise InputError("channel must hold finite probabilities of at least 0")
    wrong = np.flatnonzero(np.abs(rows.sum(axis=1) - 1) > 1e-9)
    if wrong.size:
        raise InputError(
            f"channel must have rows that sum to 1; row {wrong[0]} sums to {rows[wrong[0]].sum():g}"
        )
    return rows


def channel_epsilon(channel: ArrayLike) -> float:
    """Smallest epsilon for which a channel is epsilon-LDP (Definition 6); infinite if there is none."""
    rows = checked_channel(channel)
    seen = rows[:, rows.max(axis=0) > 0]
    least = seen.min(axis=0)
    if np.any(least == 0):
        return math.inf
    return float(np.max(np.log(seen.max(axis=0)) - np.log(least)))


def channel_tv(channel: ArrayLike) -> float:
    """Largest total variation distance between two rows of a channel (Definition 7)."""
    rows = checked_channel(channel)
    return min(1.0, max(float(np.abs(rows - row).sum(axis=1).max()) / 2 for row in rows))


def randomised_response(k: int, epsilon: float) -> NDArray[np.float64]:
    """Channel of k-ary randomised response (equation 35).

    It reports the truth with odds ``e^epsilon`` to each other value.

    ``k`` is at least 2, ``epsilon`` at least 0 and finite; the result has shape (k, k).

    Examples
    --------
    >>> import math
    >>> randomised_response(3, math.log(2)).round(4).tolist()
    [[0.5, 0.25, 0.25], [0.25, 0.5, 0.25], [0.25, 0.25, 0.5]]
    """
    k, odds = whole("k", k, 2), math.exp(-_finite(epsilon))
    return np.where(np.eye(k, dtype=bool), 1.0, odds) / (1 + (k - 1) * odds)


def randomised_response_tv(k: int, epsilon: float) -> float:
    """TV of k-ary randomised response, ``(e^epsilon - 1) / (e^epsilon + k - 1)``; smaller for larger k.

    With it, :func:`~dpsynth.research.papers.ghazi_issa.local.kl_contraction` is
    ``(e^epsilon - 1)^2 / ((e^epsilon + k - 1) (e^epsilon + 1))`` (equation 36), while epsilon alone would
    give its value at k = 2 for every k.

    Raises
    ------
    InputError
        If k is below 2, or epsilon is negative, infinite or NaN.
    """
    k, epsilon = whole("k", k, 2), _finite(epsilon)
    return -math.expm1(-epsilon) / (1 + (k - 1) * math.exp(-epsilon))


def erase(channel: ArrayLike, probability: float) -> NDArray[np.float64]:
    """Channel that erases the report of another one with this probability (Theorem 7).

    The epsilon stays, and the TV and every f-divergence between reports are multiplied by ``1 -
    probability``. With :func:`~dpsynth.research.papers.ghazi_issa.approx_tv.erasure_probability` any
    epsilon-LDP channel gets a TV of at most ``tv`` and keeps the share
    :func:`~dpsynth.research.papers.ghazi_issa.local.utility_factor` of its utility.

    Takes shape (inputs, outputs) and returns (inputs, outputs + 1), the last column of which is the erasure;
    ``probability`` lies in [0, 1].

    Raises
    ------
    InputError
        If it is no channel, or the probability is out of range or NaN.
    """
    rows = checked_channel(channel)
    probability = in_range("probability", probability, 0.0, 1.0)
    return np.hstack([(1 - probability) * rows, np.full((rows.shape[0], 1), probability)])


def _finite(epsilon: float) -> float:
    return in_range("epsilon", epsilon, 0.0, math.inf, high_open=True)
