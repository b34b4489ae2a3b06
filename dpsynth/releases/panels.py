"""Values that are missing together: the number of missing values a record, bought and kept.

Laboratory panels are taken or not taken as a whole. A prior of few tables ties a column's missing values to
those of one other column only, so that records lack about the same number each, where real ones lack none or
a whole panel. One more histogram, of the number of missing values a record, says how it is; a record lies in
exactly one of its cells. When records are drawn, more than needed are made, weighted until they have this
law and each column's own share of missing values (raking, Deming and Stephan 1940), and chosen by weight.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dpsynth.table.grid import Grid

Array = NDArray[np.float64]

#: With fewer columns that may be missing there is no panel to speak of.
_FEWEST_COLUMNS = 3
#: Records drawn for each one that is kept.
CANDIDATES = 2
_ROUNDS = 50


def panel_of(grids: Sequence[Grid]) -> tuple[int, ...]:
    """Columns whose missing values are counted together: all that may be missing, if they are three or more.

    Examples
    --------
    >>> from dpsynth.table.column import Column
    >>> lab = Column(name="lab", kind="continuous", lower=0, upper=1, missing=True)
    >>> panel_of([Grid.from_column(lab)] * 3), panel_of([Grid.from_column(lab)] * 2)
    ((0, 1, 2), ())
    """
    columns = tuple(j for j, grid in enumerate(grids) if grid.column.missing)
    return columns if len(columns) >= _FEWEST_COLUMNS else ()


def missing_values(
    draws: NDArray[np.int64], panel: Sequence[int], last: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Number of missing values of each record among the panel's columns, shape (n,).

    Parameters
    ----------
    draws : int array, shape (n, columns)
        Bins.
    panel : sequence of int
        Columns.
    last : int array, shape (columns,)
        Last bin of each column, which is that of missing values in the panel's.
    """
    columns = list(panel)
    return np.asarray((draws[:, columns] == last[columns]).sum(axis=1))


def rake(missing: NDArray[np.bool_], law: Array, shares: Array) -> Array:
    """Weights under which records have a law of the number of missing values, and shares column by column.

    Parameters
    ----------
    missing : bool array, shape (m, k)
    law : array, shape (k + 1,)
        Probabilities of 0, 1, ..., k missing values.
    shares : array, shape (k,)
        Probability of each column to be missing. Where law and shares contradict each other, the law holds.

    Returns
    -------
    array, shape (m,)
        Not negative, of mean 1.

    Examples
    --------
    >>> both = np.array([[True, True], [True, False], [False, True], [False, False]])
    >>> rake(both, np.array([0.5, 0.0, 0.5]), np.array([0.5, 0.5]))
    array([2., 0., 0., 2.])
    """
    pattern, kinds, times = _patterns(missing)
    number = kinds.sum(axis=1)
    # Records that lack the same values have the same weight throughout.
    weights = np.ones(len(kinds))
    for _ in range(_ROUNDS):
        for absent, share in zip(kinds.T, shares, strict=True):
            mass = weights * times
            have = mass[absent].sum() / max(mass.sum(), 1e-300)
            if 0.0 < have < 1.0:
                weights *= np.where(absent, share / have, (1.0 - share) / (1.0 - have))
        level = np.bincount(number, weights=weights * times, minlength=len(law))
        factor = np.divide(law, level, out=np.zeros_like(law), where=level > 0)
        before, weights = weights, weights * factor[number]
        weights *= len(missing) / max((weights * times).sum(), 1e-300)
        if np.abs(weights - before).max() < 1e-6:
            break
    return weights[pattern] if (weights * times).sum() > 0 else np.ones(len(missing))


def _patterns(missing: NDArray[np.bool_]) -> tuple[NDArray[np.int64], NDArray[np.bool_], NDArray[np.int64]]:
    """Pattern of each record, the different patterns, shape (patterns, k), and how often they occur."""
    pattern = np.zeros(len(missing), dtype=np.int64)
    for start in range(0, missing.shape[1], 30):
        for column in missing[:, start : start + 30].T:
            pattern = 2 * pattern + column
        pattern = np.unique(pattern, return_inverse=True)[1].reshape(-1)
    first, times = np.unique(pattern, return_index=True, return_counts=True)[1:]
    return pattern, missing[first], times


def choose(
    weights: Array, n: int, rng: np.random.Generator, columns: Sequence[NDArray[np.int64]] = ()
) -> NDArray[np.int64]:
    """``n`` rows in proportion to their weights, in random order (systematic sampling).

    Marks are set at even distances along the rows sorted by ``columns``, the first before the others, so that
    the share of each of their values, and of their combinations as far as the sorting reaches, is kept.
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
