"""Values that are missing together: a noisy histogram of the number per record.

Laboratory panels are taken or not taken as a whole. A base model of few tables ties a column's missing values
to those of one other column only. Its records lack about the same number each, while real ones lack none or a
whole panel. So one more histogram measures the number of missing values per record. A record lies in exactly
one of its cells. Records are drawn with this distribution and each column's own share of missing values
(`dpsynth.model.base_model.missing_count_tree`).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from dpsynth.model.columns.projection import norm_sub
from dpsynth.releases.bins import Binning

Array = NDArray[np.float64]


def lacking_bins(binnings: Sequence[Binning]) -> NDArray[np.int64]:
    """The bin of each column's last cell, which is that of missing values where there are any.

    It is not always the last bin: rare categories share one that comes after it.

    Examples
    --------
    >>> lacking_bins([Binning(np.array([0, 2, 1]), np.array([0.9, 0.08, 0.02]))])
    array([1])
    """
    return np.array([binning.labels[-1] for binning in binnings])


def missing_values(
    draws: NDArray[np.int64], panel: Sequence[int], last: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Number of missing values of each record among the panel's columns, shape (n,).

    ``draws``, shape (n, columns): Bins.
    ``last``, shape (columns,): bin of each column's last cell, which is that of missing values in the
        panel's.
    """
    columns = list(panel)
    return np.asarray((draws[:, columns] == last[columns]).sum(axis=1))


def choose(
    weights: Array, n: int, rng: np.random.Generator, columns: Sequence[NDArray[np.int64]] = ()
) -> NDArray[np.int64]:
    """``n`` rows in proportion to their weights, in random order (systematic sampling).

    Marks are set at even distances along the rows sorted by ``columns``, the first before the others. This
    keeps the share of each of their values, and of their combinations as far as the sorting reaches.
    """
    order = rng.permutation(len(weights))
    for column in reversed(columns):
        # 16-bit keys, as bins are, are sorted by radix.
        keys = column.astype(np.uint16) if column.max(initial=0) < 2**16 else column
        order = order[np.argsort(keys[order], kind="stable")]
    ends = np.cumsum(weights[order])
    marks = (np.arange(n) + rng.random()) * (ends[-1] / max(n, 1))
    rows = order[np.minimum(np.searchsorted(ends, marks, side="right"), len(order) - 1)]
    return rows[rng.permutation(n)]


def with_mean(law: Array, mean: float) -> Array:
    """The distribution of a number 0, 1, ... that has this mean and is nearest to another one, in squares.

    A noisy distribution's mean adds up the noise of its cells times their number. The columns' shares give a
    more precise mean of a panel's missing values. Numbers that the distribution does not have stay without
    probability, unless the mean lies outside of those that it has.

    ``law``, shape (numbers,): not negative, with sum 1.
    ``mean``: brought within the numbers.

    Examples
    --------
    >>> with_mean(np.array([0.5, 0.0, 0.1, 0.4]), 1.2).round(3)
    array([0.571, 0.   , 0.086, 0.343])
    >>> with_mean(np.array([0.97, 0.03, 0.0]), 0.0)
    array([1., 0., 0.])
    """
    numbers = np.flatnonzero(law)
    if not numbers[0] <= mean <= numbers[-1]:
        numbers = np.arange(len(law))
    mean = min(max(mean, numbers[0]), numbers[-1])
    near = np.zeros_like(law)
    if len(numbers) == 1:
        near[numbers] = 1.0
        return near

    def reweighted(slope: float) -> Array:
        """The nearest distribution of those with its own mean: a straight line is added, and cut at zero."""
        return norm_sub(law[numbers] + slope * numbers, 1.0)

    # from a slope of 2 on, either way, the first or the last number takes all
    slope = brentq(lambda slope: float(reweighted(slope) @ numbers) - mean, -2.0, 2.0, xtol=1e-15)
    near[numbers] = reweighted(slope)
    return near
