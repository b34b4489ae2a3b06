"""Compose (epsilon, delta)-DP exactly, together with the total variation (TV) of the mechanism.

Ghazi and Issa 2024, "Total variation meets differential privacy": Theorem 2 (composition), Proposition 1
(subsampling), Theorem 3 (Gaussian limit) and section VI-D (noisy gradient descent). Section VII on local
privacy is :mod:`dpsynth.research.papers.ghazi_issa_local`. Remark 1, the largest TV, is
:func:`dpsynth.privacy.conversions.largest_tv`. The staircase mechanism (section VI-C, appendix K) is in
:mod:`dpsynth.privacy.profile`. Kairouz, Oh and Viswanath 2015, "The composition theorem for differential
privacy", is the case of the largest TV. Neighbouring tables are those of whatever symmetric relation the
parameters were stated for. Arguments out of range or NaN raise InputError by name.

One mechanism is the worst. With probability ``delta`` it gives the table away. Otherwise it erases its output
with the probability of :func:`erasure_probability`. Else it answers by randomised response with odds
``e^epsilon``. The privacy loss of its k-fold composition is thus ``epsilon`` times the difference of right
and wrong answers. The difference is a sum of k samples from a distribution on {-1, 0, 1}.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from dpsynth.checks import in_range, whole
from dpsynth.errors import InputError
from dpsynth.privacy.conversions import amplified, largest_tv
from dpsynth.privacy.gaussian_loss import GaussianLoss
from dpsynth.research.papers.trade_off import Pair, strongest

#: A tv computed in another way may exceed the largest by rounding.
_SLACK = 1e-9


class Parameters(NamedTuple):
    """An (epsilon, delta)-DP mechanism with total variation at most ``tv``."""

    epsilon: float
    delta: float
    tv: float


def erasure_probability(epsilon: float, delta: float, tv: float) -> float:
    """Probability ``a`` with which the worst mechanism erases its output when it does not give all away.

    ``epsilon`` is at least 0 and finite, ``delta`` in [0, 1), ``tv`` from ``delta`` to
    :func:`~dpsynth.privacy.conversions.largest_tv`. A smaller tv is refused, because the mechanism is then
    (0, tv)-DP: pass ``delta=tv``. A larger one says nothing. ``a`` is 0 at the largest tv, 1 where ``tv ==
    delta`` and at epsilon 0.
    """
    return 1 - _response_probability(*_triple(epsilon, delta, tv))


def compose(epsilon: float, delta: float, tv: float, k: int) -> tuple[Pair, ...]:
    """Exact guarantee of ``k`` adaptive uses of mechanisms with the same parameters (Theorem 2).

    Returns ``(j epsilon, delta_j)`` for j = 0..k, all of which the composition satisfies at once. ``delta_0``
    is its total variation. Ranges are as in :func:`erasure_probability`. Relative errors are below 1e-11,
    those of tiny deltas too. Time and memory grow as k.

    Theorem 2 prints a sum over the counts n0 of right and n1 of wrong answers. Only their difference d enters
    the last factor. So it is a sum over d of ``P(d) (1 - e^-((d - j) epsilon))``. P is the distribution of d
    when the answers are right with odds e^epsilon.

    Examples
    --------
    >>> import math
    >>> [(pair.epsilon, round(pair.delta, 6)) for pair in compose(1.0, 0.0, 1 - math.exp(-0.5), 2)]
    [(0.0, 0.451919), (1.0, 0.244919), (2.0, 0.0)]
    """
    epsilon, delta, tv = _triple(epsilon, delta, tv)
    k = whole("k", k)
    law = difference_law(_response_probability(epsilon, delta, tv), epsilon, k)
    # Equation (5), without subtraction: 1 - e^(-n epsilon) = (1 - e^-epsilon) sum_{i < n} e^(-i epsilon), so
    # delta_j = (1 - e^-epsilon) P(d > j) + e^-epsilon delta_{j + 1}.
    gain, keep = -math.expm1(-epsilon), math.exp(-epsilon)
    deltas = [0.0] * (k + 1)
    above = 0.0
    for j in range(k - 1, -1, -1):
        above += law[j + 1]
        deltas[j] = gain * above + keep * deltas[j + 1]
    return tuple(Pair(j * epsilon, total) for j, total in enumerate(_with_leak(deltas, delta, k)))


def kairouz(epsilon: float, delta: float, k: int) -> tuple[Pair, ...]:
    """Exact guarantee of ``k`` adaptive (epsilon, delta)-DP mechanisms whose TV is not known (equation 6).

    It is :func:`compose` at the largest tv (Kairouz, Oh and Viswanath 2015, Theorem 3.3). Only epsilons ``j
    epsilon`` with j of the parity of k are kept, in ascending order. Without erasures the others add nothing.
    """
    epsilon, delta = _checked(epsilon, delta)
    return compose(epsilon, delta, largest_tv(epsilon, delta), k)[k % 2 :: 2]


def subsampled(epsilon: float, delta: float, tv: float, sampling_prob: float) -> Parameters:
    """Parameters ``(log(1 + q (e^epsilon - 1)), q delta, q tv)`` on a random part (Proposition 1).

    There are two kinds of parts, with sampling probability q. One is a uniformly drawn subset of this share
    of the table, of fixed size. Neighbours then differ in the value of one record (as in the paper). In the
    other each record joins independently. Neighbours then differ in the presence of one record (Balle, Barthe
    and Gaboardi 2018, Theorem 8).
    """
    epsilon, delta, tv = _triple(epsilon, delta, tv)
    q = in_range("sampling_prob", sampling_prob, 0.0, 1.0)
    if q == 0.0:
        return Parameters(0.0, 0.0, 0.0)
    return Parameters(amplified(epsilon, q), q * delta, q * tv)


def gaussian_limit(epsilons: ArrayLike, tvs: ArrayLike) -> float:
    """``mu = sqrt(2 sum_i epsilon_i tv_i)`` of Gaussian DP to which small mechanisms compose (Theorem 3).

    ``epsilons`` and ``tvs`` (up to the largest, tanh(epsilon / 2)) are those of each mechanism, with delta 0.
    They are broadcast against each other. It is a limit for the largest epsilon going to 0 while the sum
    converges, not a bound at finite k. :func:`compose` is exact.
    """
    try:
        epsilon, tv = np.broadcast_arrays(np.asarray(epsilons, float), np.asarray(tvs, float))
    except ValueError as error:
        raise InputError(f"epsilons and tvs must be numbers in arrays of one shape: {error}") from None
    if not np.all(np.isfinite(epsilon) & (epsilon >= 0)):
        raise InputError("epsilons must be finite numbers of at least 0")
    largest = np.tanh(epsilon / 2)
    if not np.all((tv >= 0) & (tv <= largest * (1 + _SLACK))):
        raise InputError("tvs must lie between 0 and the largest tv of their epsilons, tanh(epsilon / 2)")
    return math.sqrt(2 * float(np.sum(epsilon * tv)))


def _checked(epsilon: float, delta: float) -> tuple[float, float]:
    return (
        in_range("epsilon", epsilon, 0.0, math.inf, high_open=True),
        in_range("delta", delta, 0.0, 1.0, high_open=True),
    )


def _triple(epsilon: float, delta: float, tv: float) -> Parameters:
    epsilon, delta = _checked(epsilon, delta)
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
    return Parameters(epsilon, delta, tv)


def _response_probability(epsilon: float, delta: float, tv: float) -> float:
    """Probability 1 - a of an answer that is not erased, from checked arguments."""
    spare = (1 - delta) * math.tanh(epsilon / 2)
    if tv == delta or spare == 0.0:
        return 0.0
    return min(1.0, max(1e-290, (tv - delta) / spare))  # no smaller, so that its powers can be scaled


def _with_leak(deltas: list[float], delta: float, k: int) -> list[float]:
    """1 - (1 - delta)^k (1 - delta_j), the second term of Theorem 2, without cancellation."""
    leak = -math.expm1(k * math.log1p(-delta))
    return [min(1.0, leak + (1 - leak) * later) for later in deltas]


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


def noisy_sgd(
    mu: float, steps: int, sampling_prob: float = 1.0, epsilons: Iterable[float] | None = None
) -> tuple[Pair, ...]:
    """Guarantee of noisy gradient descent: Gaussian steps on random batches (section VI-D).

    Each step on its batch is mu-Gaussian DP, with mu its sensitivity over noise std. Hence it is (epsilon,
    delta(epsilon))-DP for every epsilon, with TV ``2 Phi(mu / 2) - 1`` (equations 17 and 18). For each
    epsilon chosen (by default 25, spread so that the deltas of all steps sum to 1e-12 ... 1), Proposition 1
    samples and Theorem 2 composes. All their regions hold at once. Returned are those pairs that no other
    pair implies, in ascending epsilon. They hold for every number of steps, and are looser than the exact
    :class:`~dpsynth.privacy.profile.Profile`.

    Examples
    --------
    >>> from dpsynth.research.papers.trade_off import fnr
    >>> pairs = noisy_sgd(1 / 1.3, 3516, 256 / 60000)
    >>> round(fnr(pairs, 0.1), 2)
    0.75
    """
    mu = in_range("mu", mu, 0.0, math.inf, high_open=True)
    steps = whole("steps", steps)
    q = in_range("sampling_prob", sampling_prob, 0.0, 1.0)
    if mu == 0.0 or q == 0.0:
        return (Pair(0.0, 0.0),)
    loss = GaussianLoss(mu)
    tv = loss.delta(0.0)  # equation (18)
    chosen = _spread(loss, q * steps) if epsilons is None else list(epsilons)
    if not chosen:
        raise InputError("epsilons must hold at least one epsilon")
    pairs: list[Pair] = []
    for epsilon in chosen:
        epsilon = in_range("epsilons", epsilon, 0.0, math.inf, high_open=True)
        delta = loss.delta(epsilon)  # equation (17)
        if delta == 1.0:  # so little noise that nothing is hidden: the pair says nothing
            continue
        pairs.extend(compose(*subsampled(epsilon, delta, max(tv, delta), q), steps))
    return strongest(pairs) if pairs else (Pair(0.0, 1.0),)


def _spread(loss: GaussianLoss, expected_batches: float) -> list[float]:
    """Epsilons at which the deltas of all steps sum to a range of totals."""
    most = loss.delta(0.0) / 2
    per_step = {min(float(total) / expected_batches, most) for total in np.geomspace(1e-12, 1.0, 25)}
    return [loss.epsilon(delta) for delta in sorted(per_step)]
