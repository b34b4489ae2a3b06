"""Compose (epsilon, delta)-DP exactly, together with the total variation (TV) of the mechanism.

Ghazi and Issa 2024, "Total variation meets differential privacy", Theorem 2. Proposition 1 (subsampling) and
Remark 1 (the largest TV) are in :mod:`dpsynth.accounting.conversions`, the staircase mechanism (section VI-C,
appendix K) in :mod:`dpsynth.accounting.tv_bounds`. Kairouz, Oh and Viswanath 2015, "The composition theorem
for differential privacy", is the case of the largest TV. Neighbouring tables are those of whatever symmetric
relation the parameters were stated for. Arguments out of range or NaN raise InputError by name.

One mechanism is the worst. With probability ``delta`` it gives the table away. Otherwise it erases its output
with the probability of :func:`erasure_probability`. Else it answers by randomised response with odds
``e^epsilon``. The privacy loss of its k-fold composition is thus ``epsilon`` times the difference of right
and wrong answers. The difference is a sum of k samples from a distribution on {-1, 0, 1}.
"""

from __future__ import annotations

import math

import numpy as np

from dpsynth.checks import in_range, whole
from dpsynth.errors import InputError
from dpsynth.research.papers.trade_off import Pair

#: A tv computed in another way may exceed the largest by rounding.
_SLACK = 1e-9


def erasure_probability(epsilon: float, delta: float, tv: float) -> float:
    """Probability ``a`` with which the worst mechanism erases its output when it does not give all away.

    ``epsilon`` is at least 0 and finite, ``delta`` in [0, 1), ``tv`` from ``delta`` to
    :func:`~dpsynth.accounting.conversions.largest_tv`. A smaller tv is refused, because the mechanism is then
    (0, tv)-DP: pass ``delta=tv``. A larger one says nothing. ``a`` is 0 at the largest tv, 1 where ``tv ==
    delta`` and at epsilon 0.
    """
    return 1 - _checked(epsilon, delta, tv)[2]


def compose(epsilon: float, delta: float, tv: float, k: int) -> tuple[Pair, ...]:
    """Exact guarantee of ``k`` adaptive uses of mechanisms with the same parameters (Theorem 2).

    Returns ``(j epsilon, delta_j)`` for j = 0..k, all of which the composition satisfies at once. ``delta_0``
    is its total variation. Ranges are as in :func:`erasure_probability`. Relative errors are below 1e-11,
    those of tiny deltas too. Time and memory grow as k. At the largest tv it is the guarantee of mechanisms
    whose TV is not known (equation 6, and Theorem 3.3 of Kairouz et al. 2015).

    Theorem 2 prints a sum over the counts n0 of right and n1 of wrong answers. Only their difference d enters
    the last factor. So it is a sum over d of ``P(d) (1 - e^-((d - j) epsilon))``. P is the distribution of d
    when the answers are right with odds e^epsilon.

    Examples
    --------
    >>> import math
    >>> [(pair.epsilon, round(pair.delta, 6)) for pair in compose(1.0, 0.0, 1 - math.exp(-0.5), 2)]
    [(0.0, 0.451919), (1.0, 0.244919), (2.0, 0.0)]
    """
    epsilon, delta, respond = _checked(epsilon, delta, tv)
    k = whole("k", k)
    law = difference_law(respond, epsilon, k)
    # Equation (5), without subtraction: 1 - e^(-n epsilon) = (1 - e^-epsilon) sum_{i < n} e^(-i epsilon), so
    # delta_j = (1 - e^-epsilon) P(d > j) + e^-epsilon delta_{j + 1}.
    gain, keep = -math.expm1(-epsilon), math.exp(-epsilon)
    deltas = [0.0] * (k + 1)
    above = 0.0
    for j in range(k - 1, -1, -1):
        above += law[j + 1]
        deltas[j] = gain * above + keep * deltas[j + 1]
    # 1 - (1 - delta)^k (1 - delta_j), the second term of Theorem 2, without cancellation
    leak = -math.expm1(k * math.log1p(-delta))
    return tuple(Pair(j * epsilon, min(1.0, leak + (1 - leak) * total)) for j, total in enumerate(deltas))


def _checked(epsilon: float, delta: float, tv: float) -> tuple[float, float, float]:
    """Return epsilon, delta and the probability 1 - a of an answer that is not erased."""
    epsilon = in_range("epsilon", epsilon, 0.0, math.inf, high_open=True)
    delta = in_range("delta", delta, 0.0, 1.0, high_open=True)
    tv = in_range("tv", tv, 0.0, 1.0)
    if tv < delta:
        raise InputError(
            f"tv must be at least delta = {delta:.10g}, not {tv:.10g}: a mechanism with this tv is "
            "(0, tv)-DP, so a delta above it says nothing. Pass delta=tv"
        )
    spare = (1 - delta) * math.tanh(epsilon / 2)
    if tv - delta > spare * (1 + _SLACK) + 1e-15:
        raise InputError(
            f"tv must be at most {delta + spare:.10g}, the largest of an ({epsilon:g}, {delta:g})-DP "
            f"mechanism, not {tv:.10g}"
        )
    if tv == delta or spare == 0.0:
        return epsilon, delta, 0.0
    return epsilon, delta, min(1.0, max(1e-290, (tv - delta) / spare))  # powers of no less can be scaled


def difference_law(respond: float, epsilon: float, k: int) -> list[float]:
    """Probabilities of d = 0..k more right than wrong answers among k, each to a relative 1e-12.

    ``respond`` is the probability that an answer is given and not erased: 0, or from 1e-290 to 1. ``epsilon``
    is the log odds of a right answer among those given.

    Let p, q and a be the probabilities of right, wrong and erased. The coefficients c_d of (p x + a + q /
    x)^k obey ``a d c_d = p (k - d + 1) c_{d-1} - q (k + d + 1) c_{d+1}`` (differentiate the power, compare
    coefficients). Solved for c_{d-1} and run down from c_k, all terms are positive. So nothing cancels and
    the tail keeps its relative accuracy. A fast Fourier transform would leave noise of 1e-16.

    Examples
    --------
    >>> [round(probability, 4) for probability in difference_law(0.5, math.log(3), 2)]
    [0.3438, 0.375, 0.1406]
    """
    if respond == 0.0:
        return [1.0] + [0.0] * k
    right = 1 / (1 + math.exp(-epsilon))
    odds = math.exp(-epsilon)  # of wrong against right answers
    erased = 1 - respond
    mantissa, exponent = np.zeros(k + 1), np.zeros(k + 1, dtype=np.int32)
    mantissa[k] = value = 0.5
    shift = 0
    if erased == 0.0:  # only every other difference is possible
        for d in range(k, 1, -2):
            value, change = math.frexp(value * (odds * (k + d) / (k - d + 2)))
            shift += change
            mantissa[d - 2], exponent[d - 2] = value, shift
    else:
        p = respond * right
        product = p * p * odds  # p q
        # ratio = p (k - d + 1) c_{d-1} / c_d
        ratio = math.inf
        for d in range(k, 0, -1):
            ratio = erased * d + product * (k + d + 1) * (k - d) / ratio
            value, change = math.frexp(value * (ratio / p) / (k - d + 1))
            shift += change
            mantissa[d - 1], exponent[d - 1] = value, shift
    # An impossible difference has mantissa 0; its exponent must not set the scale.
    scaled = np.ldexp(mantissa, np.where(mantissa > 0, exponent - exponent[mantissa > 0].max(), 0))
    # c_{-d} = e^(-d epsilon) c_d: the law of all differences sums to 1
    mirrored = scaled[1:] * np.exp(-epsilon * np.arange(1, k + 1))
    return (scaled / (scaled[0] + math.fsum(scaled[1:]) + math.fsum(mirrored))).tolist()
