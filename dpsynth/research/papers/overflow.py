"""Poisson batches of fixed capacity: the delta that a possible overflow costs.

A compiled training loop holds batches of a fixed capacity, but a Poisson sample of n records has no largest
size. A run whose every sample fits is exactly the run that its events describe; let p bound the probability,
on either of two neighbouring tables, that some sample does not fit. Whatever the run does then,

    P(M'(D) in S) <= P(M(D) in S) + p <= e^eps P(M(D') in S) + delta + p
                  <= e^eps P(M'(D') in S) + delta + (1 + e^eps) p,

so delta grows by ``(1 + e^epsilon) p`` (project theory, section 1.6). The binomial tail is exact, in
logarithms; nothing here reads a record. Arguments out of range or NaN raise InputError by name.
"""

from __future__ import annotations

import math
import sys

from dpsynth.checks import in_range, inside, whole


def overflow_probability(n_bound: int, sampling_prob: float, capacity: int, steps: int) -> float:
    """Probability that any of ``steps`` Poisson samples of ``n_bound`` records exceeds ``capacity``.

    Parameters
    ----------
    n_bound : int
        Largest number of records of either neighbouring table, at least 0: a public number (for a public
        table size n under add/remove, n + 1), never the length of a private table. The probability grows
        with the number of records, so it bounds that of every smaller table.
    sampling_prob : float
        In (0, 1].
    capacity : int
        Most records that a batch holds, at least 0.
    steps : int
        Number of independent samples, at least 1.
    """
    n_bound, capacity = whole("n_bound", n_bound, 0), whole("capacity", capacity, 0)
    steps = whole("steps", steps)
    sampling_prob = in_range("sampling_prob", sampling_prob, 0.0, 1.0, low_open=True)
    log_tail = _log_tail(n_bound, sampling_prob, capacity)
    if log_tail >= 0.0:
        return 1.0
    # 1 - (1 - tail)^steps: the samples are independent.
    return -math.expm1(steps * math.log1p(-math.exp(log_tail)))


def overflow_delta(n_bound: int, sampling_prob: float, capacity: int, steps: int, epsilon: float) -> float:
    """Delta to add for batches of fixed capacity: ``(1 + e^epsilon) P(overflow anywhere)``, at most 1.

    Parameters are those of :func:`overflow_probability`, and the epsilon (at least 0) of the guarantee.
    """
    probability = overflow_probability(n_bound, sampling_prob, capacity, steps)
    epsilon = in_range("epsilon", epsilon, 0.0, math.inf)
    if probability == 0.0:
        return 0.0
    return min(1.0, (1 + math.exp(min(epsilon, 700.0))) * probability)


def capacity_for(
    n_bound: int, sampling_prob: float, steps: int, epsilon: float, delta: float, fraction: float = 1e-3
) -> int:
    """Smallest capacity whose :func:`overflow_delta` is at most ``fraction * delta``.

    Parameters
    ----------
    n_bound, sampling_prob, steps, epsilon
        As in :func:`overflow_delta`; a larger epsilon needs a larger capacity.
    delta : float
        Delta of the whole guarantee, in [0, 1); 0 gives ``n_bound``, which never overflows.
    fraction : float
        Part of delta that may be spent on overflow, in (0, 1).

    Examples
    --------
    >>> capacity_for(10_000, 0.01, 2000, epsilon=1.0, delta=1e-5)
    177
    """
    allowed = in_range("delta", delta, 0.0, 1.0, high_open=True)
    allowed *= inside("fraction", fraction, 0.0, 1.0)
    fails, holds = -1, whole("n_bound", n_bound, 0)
    overflow_delta(n_bound, sampling_prob, holds, steps, epsilon)  # refuses arguments that are out of range
    while holds - fails > 1:
        middle = (fails + holds) // 2
        if overflow_delta(n_bound, sampling_prob, middle, steps, epsilon) <= allowed:
            holds = middle
        else:
            fails = middle
    return holds


def _log_tail(n: int, q: float, capacity: int) -> float:
    """log P(Binomial(n, q) > capacity), rounded up to the smallest normal number where it underflows."""
    from scipy.stats import binom

    if capacity >= n:
        return -math.inf
    return max(float(binom.logsf(capacity, n, q)), math.log(sys.float_info.min))
