"""Closed form of the unbiased nearest-neighbour adversarial accuracy (Pedersen 2022, section 4.1).

A record of a table of n is compared with the n - 1 others of its own table and the m of the other table. As
many neighbours are kept on either side, ``k = min(n - 1, m)``; where one side has more, a uniformly random
subset of k is kept, and the average over all subsets is a ratio of binomial coefficients. For n = m this is
the thesis's "one of the other table left out" (4.5): the *mean* over the record left out. (4.2), (4.6) and
(4.7) as printed mix counts with means, and (4.8) lacks a factor 2.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]

#: a probability below this no longer changes a contribution
_NEGLIGIBLE = 1e-16


def none_kept(total: int, marked: Counts, kept: int) -> Floats:
    """Probability that a uniformly random subset of ``kept`` items avoids every marked one, shape (k,).

    Of N = ``total`` items c are marked: ``marked``, of shape (k,), in [0, N]. ``C(N - c, kept) / C(N, kept)``
    by log-gamma; 0 where fewer than ``kept`` items are unmarked.
    """
    rest = total - np.asarray(marked, dtype=np.int64)
    possible = rest >= kept
    free = np.where(possible, rest, kept)  # keeps gammaln off its poles where the answer is 0
    log_ratio = gammaln(free + 1) - gammaln(free - kept + 1) - gammaln(total + 1) + gammaln(total - kept + 1)
    return np.where(possible, np.exp(np.minimum(log_ratio, 0.0)), 0.0)


def thins_the_other(n: int, m: int) -> bool:
    """Whether a subset of the other table is kept (m >= n - 1), or else of the record's own.

    The distance to the nearest of the side that is kept whole is the limit, and the side that is thinned is
    counted within it.
    """
    return m >= n - 1


def contributions(closer: Counts, closer_or_tied: Counts, n: int, m: int) -> Floats:
    """How probably a record's nearest kept neighbour is of its own table; a tie counts one half.

    Parameters
    ----------
    closer, closer_or_tied : ndarray of int of shape (k,)
        How many of the thinned side lie strictly within, and within or at, the limit.
    n, m : int
        Size of the record's own table and of the other one.

    Returns
    -------
    ndarray of shape (k,)
        In [0, 1].

    Examples
    --------
    The cases ``d_S1 < d_T1 < d_S2`` and ``d_S1 = d_T1 < d_S2`` with n = m = 3: 1/n and (n + 1)/(2n).

    >>> contributions(np.array([1, 0]), np.array([1, 1]), 3, 3).round(4).tolist()
    [0.3333, 0.6667]
    """
    if thins_the_other(n, m):
        return 0.5 * (none_kept(m, closer_or_tied, n - 1) + none_kept(m, closer, n - 1))
    return 1.0 - 0.5 * (none_kept(n - 1, closer, m) + none_kept(n - 1, closer_or_tied, m))


def enough_counted(n: int, m: int) -> int:
    """Count from which on the probability of avoiding all counted is negligible; more changes nothing."""
    total, kept = (m, n - 1) if thins_the_other(n, m) else (n - 1, m)
    # Each further marked item multiplies the probability by at most 1 - kept/total.
    ratio = 1.0 - kept / total
    worst = total - kept + 1
    if ratio <= 0.0:
        return 1
    few = np.arange(min(worst, int(np.ceil(np.log(_NEGLIGIBLE) / np.log(ratio)))) + 1)
    return int(few[none_kept(total, few, kept) < _NEGLIGIBLE].min(initial=few[-1]))
