"""Utility under local differential privacy together with the total variation (TV) of the channel.

Ghazi and Issa 2024, "Total variation meets differential privacy", section VII: Definitions 6 and 7,
Proposition 2 and Theorems 4 to 7. Row x of a channel K is the distribution of reports for the input x. It is
epsilon-LDP if no two entries of a column differ by more than the factor ``e^epsilon``. Its TV is the largest
distance between two rows. Under two distributions P and Q of the input the reports have the distributions PK
and QK. The utility is how far apart these stay. An f-divergence is ``D_f(P || Q) = sum Q f(P / Q)`` with f
convex and f(1) = 0.

``epsilon`` is at least 0 and finite, ``tv`` from 0 to :func:`~dpsynth.privacy.conversions.largest_tv`.
Arguments out of range or NaN raise InputError by name.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpsynth.checks import in_range, whole
from dpsynth.errors import InputError
from dpsynth.privacy.conversions import largest_tv
from dpsynth.research.papers.ghazi_issa import erasure_probability


def checked_channel(channel: ArrayLike) -> NDArray[np.float64]:
    """Return a channel as an array (inputs, outputs) after checking that its rows are distributions."""
    rows = np.asarray(channel, dtype=float)
    if rows.ndim != 2 or rows.size == 0:
        raise InputError(f"channel must be a matrix of inputs by outputs, not of shape {rows.shape}")
    if not np.all(np.isfinite(rows) & (rows >= 0)):
        raise InputError("channel must hold finite probabilities of at least 0")
    wrong = np.flatnonzero(np.abs(rows.sum(axis=1) - 1) > 1e-9)
    if wrong.size:
        raise InputError(
            f"channel must have rows that sum to 1. Row {wrong[0]} sums to {rows[wrong[0]].sum():g}"
        )
    return rows


def channel_epsilon(channel: ArrayLike) -> float:
    """Smallest epsilon for which a channel is epsilon-LDP (Definition 6). Infinite if there is none."""
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
    """Channel of k-ary randomised response (35): the truth with odds ``e^epsilon`` to each other value."""
    k, odds = whole("k", k, 2), math.exp(-_finite(epsilon))
    return np.where(np.eye(k, dtype=bool), 1.0, odds) / (1 + (k - 1) * odds)


def randomised_response_tv(k: int, epsilon: float) -> float:
    """TV of k-ary randomised response, ``(e^epsilon - 1) / (e^epsilon + k - 1)``. Smaller for larger k.

    With it, :func:`kl_contraction` is ``(e^epsilon - 1)^2 / ((e^epsilon + k - 1) (e^epsilon + 1))`` (equation
    36), while epsilon alone would give its value at k = 2 for every k.
    """
    k, epsilon = whole("k", k, 2), _finite(epsilon)
    return -math.expm1(-epsilon) / (1 + (k - 1) * math.exp(-epsilon))


def erase(channel: ArrayLike, probability: float) -> NDArray[np.float64]:
    """Channel that erases the report of another one, last column, with this probability (Theorem 7).

    The epsilon stays, and the TV and every f-divergence between reports are multiplied by ``1 -
    probability``. With :func:`~dpsynth.research.papers.ghazi_issa.erasure_probability` any epsilon-LDP
    channel gets a TV of at most ``tv`` and keeps the share :func:`utility_factor` of its utility.
    """
    rows = checked_channel(channel)
    probability = in_range("probability", probability, 0.0, 1.0)
    return np.hstack([(1 - probability) * rows, np.full((rows.shape[0], 1), probability)])


def _finite(epsilon: float) -> float:
    return in_range("epsilon", epsilon, 0.0, math.inf, high_open=True)


#: Divergences that :func:`largest_f_divergence` knows by name, with their f.
DIVERGENCES = {
    "kl": "t log t",
    "chi2": "(t - 1)^2",
    "tv": "|t - 1| / 2",
    "hellinger2": "(sqrt(t) - 1)^2",
}


def binary_mechanism_with_erasure(
    p: ArrayLike, q: ArrayLike, epsilon: float, tv: float
) -> NDArray[np.float64]:
    """Channel of Proposition 2, which separates two distributions best among those of this TV.

    It reports whether the input is likelier under ``p`` or ``q``, by randomised response, and erases the
    report with :func:`~dpsynth.research.papers.ghazi_issa.erasure_probability`. Columns: reported ``p``,
    erased, reported ``q``. The two distributions of the report have the total variation ``tv * TV(p, q)``,
    which no channel with these parameters exceeds.
    """
    first, second = _law("p", p), _law("q", q)
    if first.shape != second.shape:
        raise InputError(f"p and q must have one length, not {first.size} and {second.size}")
    erased = erasure_probability(epsilon, 0.0, tv)
    right = (1 - erased) / (1 + math.exp(-epsilon))
    wrong = 1 - erased - right
    likelier = (first >= second)[:, None]
    return np.where(likelier, [right, erased, wrong], [wrong, erased, right])  # equation (31)


def largest_f_divergence(f: str | Callable[[float], float], epsilon: float, tv: float) -> float:
    """Largest f-divergence between two reports of an epsilon-LDP channel of this TV (Theorem 4).

    ``f`` is one of :data:`DIVERGENCES`, or a convex function with f(1) = 0 (only the value at 1 is checked).
    For a function ``epsilon`` is at most 700. The worst mechanism reaches ``tv / (e^epsilon - 1)
    (f(e^epsilon) + e^epsilon f(e^-epsilon))``. For chi2 this is infinite beyond the largest double.
    """
    tv = _tv(epsilon, tv)
    # Theorem 4 simplified for each f, without overflow or cancellation
    match f:
        case "kl":
            return tv * epsilon
        case "tv":
            return tv
        case "hellinger2":
            return 2 * tv * math.tanh(epsilon / 4)
        case "chi2":
            return 2 * tv * math.sinh(epsilon) if epsilon < 700.0 else (math.inf if tv else 0.0)
        case str():
            raise InputError(f"f must be one of {', '.join(DIVERGENCES)}, or a function, not {f!r}")
    if not abs(f(1.0)) <= 1e-12:
        raise InputError(f"f must be 0 at 1, not {f(1.0)!r}")
    odds = math.exp(in_range("epsilon", epsilon, 0.0, 700.0))
    if tv == 0.0:
        return 0.0
    return tv / math.expm1(epsilon) * (f(odds) + odds * f(1 / odds))  # equation (32)


def kl_contraction(epsilon: float, tv: float) -> float:
    """Largest KL contraction coefficient, ``tv (e^epsilon - 1) / (e^epsilon + 1)`` (Theorem 5).

    ``KL(PK || QK)`` of the reports is at most this times ``KL(P || Q)`` of the inputs.
    """
    return _tv(epsilon, tv) * math.tanh(epsilon / 2)  # equation (33)


def kl_bound(epsilon: float, tv: float, input_tv: float) -> float:
    """Bound of the KL divergence between the reports of two distributions (in place of Theorem 6).

    It is ``tv min(epsilon t, (e^epsilon - 1) t^2)`` nats with t the total variation between the two inputs.
    It is finite even if the divergence of the inputs is not.

    Notes
    -----
    Equation (40) is lost in the text this was written from, so this was proved anew. Write P - Q = t (U - V)
    with distributions U and V, and A, B for the reports under U and V. Rows, and so their mixtures, differ by
    at most the factor e^epsilon, and TV(A, B) <= tv.

    *Linear.* P and Q are t U + (1 - t) W and t V + (1 - t) W with one W. KL is jointly convex, so
    KL(PK || QK) <= t KL(A || B) <= t tv epsilon (Theorem 4).

    *Square.* Let C_s be the reports under Q + s (P - Q). Taylor's theorem in s gives
    KL(PK || QK) = int_0^1 (1 - s) sum t^2 (A - B)^2 / C_s ds. As |A - B| <= (1 - e^-epsilon) max(A, B)
    <= (e^epsilon - 1) C_s, the sum is at most t^2 (e^epsilon - 1) 2 TV(A, B), and the integral half of that.

    The constant of the square cannot be improved for tv <= (e^epsilon - 1) / (e^epsilon + 2): 3-ary
    randomised response with erasure, U and V on two values and W on the third, reaches it as t goes to 0.
    """
    tv, t = _tv(epsilon, tv), in_range("input_tv", input_tv, 0.0, 1.0)
    return tv * t * min(epsilon, _growth(epsilon) * t)


def chi2_bound(epsilon: float, tv: float, input_tv: float) -> float:
    """Bound ``tv min((e^epsilon - e^-epsilon) t, 2 (e^epsilon - 1) t^2)`` of chi-squared divergence.

    The proof is that of :func:`kl_bound`, without the integral. A square bound with the constant of the
    linear one, ``(e^epsilon - e^-epsilon) tv t^2``, would be false for every epsilon: the example there
    exceeds it.
    """
    linear = largest_f_divergence("chi2", epsilon, tv)
    t = in_range("input_tv", input_tv, 0.0, 1.0)
    return min(linear * t, 2 * tv * t * _growth(epsilon) * t) if tv > 0.0 < t else 0.0


def utility_factor(epsilon: float, tv: float) -> float:
    """Share ``tv / largest_tv(epsilon)`` of the best f-divergence that is kept when the TV is ``tv``.

    It is a lower bound for every f (equation 42), and 1 at epsilon 0, where nothing can be lost.
    """
    tv = _tv(epsilon, tv)
    largest = largest_tv(epsilon)
    return tv / largest if largest > 0.0 else 1.0


def _tv(epsilon: float, tv: float) -> float:
    """Check both, and return the tv, which rounding may have left above the largest."""
    erasure_probability(epsilon, 0.0, tv)
    return min(float(tv), largest_tv(epsilon))


def _growth(epsilon: float) -> float:
    return math.expm1(epsilon) if epsilon < 700.0 else math.inf


def _law(name: str, values: ArrayLike) -> NDArray[np.float64]:
    law = np.asarray(values, dtype=float)
    if law.ndim != 1 or not np.all(np.isfinite(law) & (law >= 0)) or abs(float(law.sum()) - 1) > 1e-9:
        raise InputError(f"{name} must be a list of probabilities that sum to 1")
    return law
