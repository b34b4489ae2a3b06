"""How well releases of one total variation (TV) can compose: a best case, and no guarantee.

Jia, Tan, Liu, Li, Liu, Lv and Dong 2023, "Total variation distance privacy: Accurately measuring inference
attacks and improving utility", section 6.1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from dpsynth.checks import in_range, whole
from dpsynth.errors import InputError

_LARGEST_COUNT = 100_000


@dataclass(frozen=True, eq=False)
class OptimalComposition:
    """Composed privacy of the mechanism of one TV that composes best.

    Parameters
    ----------
    epsilon : float
        Of each release, at delta 0.
    epsilons, log_deltas : numpy.ndarray
        The composition's corners, from the largest epsilon down: it is (epsilons[i], e^log_deltas[i])-DP and
        no better. Shape (count // 2 + 1,).
    tv : float
        Of the composition.
    """

    epsilon: float
    epsilons: NDArray[np.float64] = field(repr=False)
    log_deltas: NDArray[np.float64] = field(repr=False)
    tv: float

    @property
    def deltas(self) -> NDArray[np.float64]:
        """The deltas themselves, 0 where they underflow."""
        return np.exp(self.log_deltas)


def optimal_composition(tv: float, count: int) -> OptimalComposition:
    """Composition of ``count`` releases that are each as good as a release of this TV can be (Theorem 18).

    It is the best case among all mechanisms of TV ``tv``, reached by randomised response, and **never a
    guarantee for a given mechanism**: with tv 0.1 and count 10 it is 0.243, while a mechanism that reveals
    the record with probability 0.1 has 0.651 (:func:`~dpsynth.accounting.tv_bounds.naive_composition`).

    Parameters
    ----------
    tv : float
        TV of each release, in [0, 1): at 1 every epsilon is infinite.
    count : int
        Number of releases, from 1 to 100,000.
    """
    from scipy.special import gammaln

    tv = in_range("tv", tv, 0.0, 1.0, high_open=True)
    count = whole("count", count)
    if count > _LARGEST_COUNT:
        raise InputError(f"count must be at most {_LARGEST_COUNT}, not {count}")
    epsilon = math.log1p(tv) - math.log1p(-tv)  # the paper's proof leaves out the logarithm
    flips = np.arange(count // 2 + 1)
    epsilons = (count - 2 * flips) * epsilon
    if tv == 0.0:
        return OptimalComposition(0.0, epsilons, np.full(len(flips), -np.inf), 0.0)
    # Probability of l lies with the record: choose(count, l) e^((count - l) epsilon) / (1 + e^epsilon)^count,
    # where (6) prints (1 + epsilon)^count. Without the record it is e^-((count - 2 l) epsilon) times that.
    log_choose = gammaln(count + 1) - gammaln(flips + 1) - gammaln(count - flips + 1)
    log_truth, log_lie = math.log1p(tv) - math.log(2), math.log1p(-tv) - math.log(2)
    log_present = log_choose + (count - flips) * log_truth + flips * log_lie
    # (6): delta_i = sum_{l<i} present_l (1 - r^(i-l)) with r = e^(-2 epsilon), that is
    # delta_{i+1} = r delta_i + (1 - r) sum_{l<=i} present_l, a sum of positive terms taken in logarithms.
    log_r, log_rest = -2 * epsilon, math.log(-math.expm1(-2 * epsilon))
    steps = np.logaddexp.accumulate(log_present[:-1]) + log_rest - flips[1:] * log_r
    log_deltas = np.concatenate([[-np.inf], np.logaddexp.accumulate(steps) + flips[1:] * log_r])
    # TV(B(count, (1 + tv) / 2), B(count, (1 - tv) / 2)): all outcomes with a positive loss
    composed = math.fsum(np.exp(log_present) * -np.expm1(-epsilons))
    return OptimalComposition(epsilon, epsilons, np.minimum(log_deltas, 0.0), min(1.0, composed))
