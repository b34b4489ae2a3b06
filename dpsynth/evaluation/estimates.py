"""Estimates with confidence intervals that several evaluators share: a share, a quantile, an AUC.

DeLong's variance is written here because scipy and scikit-learn have none. Each function says what it treats
as a sample. Estimates from private records are confidential (``internal``).

References
----------
DeLong, DeLong, Clarke-Pearson (1988), "Comparing the areas under two or more correlated receiver operating
characteristic curves", Biometrics 44.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpsynth.checks import in_range
from dpsynth.errors import InputError

Floats = NDArray[np.float64]

#: pages about tables that remember nobody on which any alarm is raised: at most this share. Half of it is for
#: the signs of memorisation, half for attacks that pass a proved bound
FALSE_ALARMS = 0.01
#: what rests on fewer people is no verdict
FEWEST = 30


@dataclass(frozen=True)
class Estimate:
    """A number with the ends of its confidence interval."""

    value: float
    lower: float
    upper: float


def sure_end(found: Estimate, level: float, tests: int) -> float:
    """Lower end of an interval that holds for so many tests of a page together, at half of FALSE_ALARMS.

    The distance to the end at ``level`` is stretched by the ratio of the logarithms of both errors. This is
    right for exponential tails, and so on the safe side for lighter ones, normal ones included.

    Examples
    --------
    >>> round(sure_end(Estimate(0.6, 0.5, 0.7), 0.95, 10), 3)
    0.394
    """
    wider = max(math.log(FALSE_ALARMS / 2 / max(tests, 1)) / math.log((1 - level) / 2), 1.0)
    if math.isinf(found.value):  # an epsilon of right guesses alone: its end falls as log(-log(error))
        return found.lower - math.log(wider)
    return found.value - wider * (found.value - found.lower)


@dataclass(frozen=True)
class Clustered:
    """Numbers in ascending order, shape (n,), and that of the unit that each belongs to.

    Units are independent, such as patients. Values of one unit, such as its rows, are not.

    References
    ----------
    Korn, Graubard (1998), "Confidence intervals for proportions with small expected number of positive counts
    estimated from survey data", Survey Methodology 24: exact intervals with the effective number of values.
    """

    numbers: Floats
    unit: NDArray[np.int64]

    @classmethod
    def of(cls, values: Floats, unit: NDArray[np.int64] | None = None) -> Clustered:
        """Sort values without NaN. Each is a unit of its own by default."""
        order = np.argsort(values, kind="stable")
        return cls(values[order], np.arange(len(values)) if unit is None else unit[order])

    @property
    def units(self) -> int:
        """Number of units that have a value."""
        return len(np.unique(self.unit))

    def variance(self, influence: Floats) -> float:
        """Variance of the mean of n numbers of mean 0, one a value: their sums by unit, squared."""
        return float((np.bincount(self.unit, influence) ** 2).sum()) / len(influence) ** 2

    def effective(self, counted: NDArray[np.bool_]) -> float:
        """Number of independent values that would say as much about the share that is counted.

        A share of 0 or 1 has no variance that could say how alike a unit's values are. Then they count once.
        """
        portion = float(counted.mean())
        variance = self.variance(counted - portion)
        return min(portion * (1.0 - portion) / variance, len(counted)) if variance > 0.0 else self.units

    def share(self, counted: NDArray[np.bool_], level: float = 0.95) -> Estimate:
        """Share of the values that are counted, with its interval."""
        trials = self.effective(counted)
        return share(float(counted.mean()) * trials, trials, level)


def share(
    successes: float, trials: float, level: float = 0.95, *, method: Literal["exact", "wilson"] = "exact"
) -> Estimate:
    """Share with its confidence interval: independent trials of equal probability.

    Parameters
    ----------
    successes, trials : float
        Whole numbers. The exact method also takes effective numbers, see :class:`Clustered`.
    method : {"exact", "wilson"}
        Clopper and Pearson's interval, which covers every probability at least so often, or Wilson's, which
        is shorter and covers it so often on average.
    """
    from scipy.special import betaincinv

    if not 0 <= successes <= trials or trials < 1:
        raise InputError(f"successes must lie in [0, trials], trials at least 1, got {successes}, {trials}")
    tail, failures = (1 - _checked(level)) / 2, trials - successes
    if method == "wilson":
        from scipy.stats import binomtest

        low, high = binomtest(int(successes), int(trials)).proportion_ci(level, method)
    else:  # the ends are quantiles of beta distributions; scipy's test finds the same by a search
        low = betaincinv(successes, failures + 1, tail) if successes else 0.0
        high = betaincinv(successes + 1, failures, 1 - tail) if failures else 1.0
    value = successes / trials
    # rounding leaves an end a few ulp on the wrong side of the share itself
    return Estimate(value, min(float(low), value), max(float(high), value))


def share_difference(first: Estimate, second: Estimate) -> Estimate:
    """Difference of two independent shares, its interval from both intervals by Newcombe's squares.

    Each interval must have the level wanted for the difference.

    References
    ----------
    Newcombe (1998), "Interval estimation for the difference between independent proportions", method 10,
    with whatever intervals the shares have.
    """
    value = first.value - second.value
    below = float(np.hypot(first.value - first.lower, second.upper - second.value))
    above = float(np.hypot(first.upper - first.value, second.value - second.lower))
    return Estimate(value, max(value - below, -1.0), min(value + above, 1.0))


def quantile(values: ArrayLike, q: float, level: float = 0.95) -> Estimate:
    """Sample quantile with the interval of order statistics: independent values of any distribution.

    The ends are the order statistics whose ranks the binomial distribution gives. If the sample is too small
    for an end, it is the smallest or the largest value.
    """
    from scipy.stats import quantile_test

    ordered = np.sort(np.asarray(values, dtype=np.float64))
    if not len(ordered):
        raise InputError("values must hold at least one number, got none")
    ends = quantile_test(ordered, p=q).confidence_interval(_checked(level))
    lower = ordered[0] if np.isnan(ends.low) else ends.low
    upper = ordered[-1] if np.isnan(ends.high) else ends.high
    return Estimate(float(np.quantile(ordered, q)), float(lower), float(upper))


def delong(positive: ArrayLike, negative: ArrayLike) -> tuple[float, float]:
    """Area under the ROC curve of scores, with DeLong's variance, ties counted as one half.

    Parameters
    ----------
    positive, negative : array_like of shape (n,), (m,)
        Scores, higher for the positive class, at least one of each. They may be infinite, not NaN.

    Notes
    -----
    ``V10(i)`` is the share of negatives below positive i, ``V01(j)`` the share of positives above negative
    j. The variance is ``var(V10) / n + var(V01) / m``. Both come from midranks, in n log n.
    """
    from scipy.stats import rankdata

    x, y = (np.asarray(scores, dtype=np.float64) for scores in (positive, negative))
    n, m = len(x), len(y)
    if not n or not m:
        raise InputError(f"both classes must have scores, got {n} positive and {m} negative")
    # Ranks take infinite scores too, once they are replaced by their place in the order.
    _, order = np.unique(np.concatenate([x, y]), return_inverse=True)
    ranks = rankdata(order)
    v10 = (ranks[:n] - rankdata(order[:n])) / m
    v01 = 1.0 - (ranks[n:] - rankdata(order[n:])) / n
    variance = sum(float(v.var(ddof=1)) / len(v) if len(v) > 1 else 0.25 for v in (v10, v01))
    return float(v10.mean()), variance


def auc_interval(auc: float, variance: float, pairs: int, level: float = 0.95) -> Estimate:
    """Interval of an AUC on the logit scale, which keeps it within [0, 1].

    Parameters
    ----------
    pairs : int
        The smaller number of records of the two classes. If the estimate is 0 or 1, its variance vanishes:
        as many disjoint pairs agreed. The interval is Clopper and Pearson's for them.
    """
    from scipy.stats import norm

    _checked(level)
    if auc <= 0.0 or auc >= 1.0:
        return share(pairs if auc >= 1.0 else 0, pairs, level)
    if variance <= 0.0:  # scores that are all the same tell nothing about their own error
        among = share(round(auc * pairs), pairs, level)
        return Estimate(auc, min(auc, among.lower), max(auc, among.upper))
    logit = np.log(auc / (1.0 - auc))
    reach = norm.isf((1.0 - level) / 2) * np.sqrt(variance) / (auc * (1.0 - auc))
    # 1/(1 + e^x) of huge arguments is 0 or 1, by tanh without overflow
    lower, upper = (float(0.5 * (1.0 + np.tanh(0.5 * end))) for end in (logit - reach, logit + reach))
    return Estimate(auc, lower, upper)


def auc(positive: ArrayLike, negative: ArrayLike, level: float = 0.95) -> Estimate:
    """Area under the ROC curve with DeLong's interval on the logit scale."""
    value, variance = delong(positive, negative)
    return auc_interval(value, variance, min(np.size(positive), np.size(negative)), level)


def _checked(level: float) -> float:
    return in_range("level", level, 0.0, 1.0, low_open=True, high_open=True)
