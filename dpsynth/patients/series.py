"""Values of patients' rows in order, as arrays of shape (N, most), NaN where there is no value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
#: Names of the classes of a share of rows.
SHARE_CLASSES = ("none", "up to a fifth", "up to half", "more than half", "all")
#: Names of the classes of the rows in which something is there.
PRESENCE_CLASSES = (SHARE_CLASSES[0], "one", *SHARE_CLASSES[1:])
#: Middles of the same classes, -1 for a single row.
PRESENCE_SHARES = (0.0, -1.0, 0.1, 0.35, 0.75, 1.0)
#: Upper ends of the classes of a share of rows.
_SHARES = (0.0, 0.2, 0.5, 0.999)
#: Rows with a value below which trend and roughness are not defined.
_FEWEST = 3
#: Rows since the last value: 0 for the row before, up to 5 or more, 6 for none yet.
SINCE = 7
#: Ends of the intervals of steps over a history's mean step.
RATIOS: Floats = np.geomspace(1 / 300, 20, 19)


def packed_to(has: NDArray[np.bool_], values: Any) -> Any:
    """Values of the rows that have one moved to the left, the others behind them."""
    return np.take_along_axis(values, np.argsort(~has, axis=1, kind="stable"), axis=1)


def packed(values: Floats, *others: Floats) -> list[Floats]:
    """The measured values of each history moved to the left, and the others taken at the same rows."""
    has = ~np.isnan(values)
    return [packed_to(has, np.where(has, array, np.nan)) for array in (values, *others)]


def presence_class(own: NDArray[np.bool_], of: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Class of the rows ``own`` among the rows ``of`` each history, -1 without rows.

    A number of :data:`PRESENCE_CLASSES`.
    """
    some, count = own.sum(axis=1), of.sum(axis=1)
    share = share_class(some / np.maximum(count, 1))
    found = np.where((some == 1) & (count > 1), 1, share + (share > 0))
    return np.where(count > 0, found, -1)


@dataclass(frozen=True)
class Standardised:
    """Values of each history (N, most) with mean 0 and standard deviation 1, and what they were."""

    scores: Floats
    mean: Floats
    sd: Floats
    count: NDArray[np.int64]

    @classmethod
    def of(cls, values: Floats) -> Standardised:
        """Standardise each row over its values that are not NaN. A constant row becomes zeros."""
        count = (~np.isnan(values)).sum(axis=1)
        mean = np.nansum(values, axis=1) / np.maximum(count, 1)
        away = values - mean[:, None]
        sd = np.sqrt(np.nansum(away**2, axis=1) / np.maximum(count, 1))
        return cls(away / np.where(sd > 1e-9, sd, 1.0)[:, None], mean, sd, count)

    @property
    def moves(self) -> NDArray[np.bool_]:
        """Whether a history has enough values, not all equal, for a trend and a roughness."""
        return (self.count >= _FEWEST) & (self.sd > 1e-9)

    @property
    def roughness(self) -> Floats:
        """Mean absolute step from one value to the next."""
        steps = np.nansum(np.abs(np.diff(self.scores, axis=1)), axis=1)
        return steps / np.maximum(self.count - 1, 1)


def trend(values: Standardised, times: Standardised) -> Floats:
    """Correlation of values and times, for each history."""
    products = np.nansum(values.scores * times.scores, axis=1) / np.maximum(values.count, 1)
    return np.clip(products, -1.0, 1.0)


def share_class(share: Floats) -> NDArray[np.int64]:
    """Class of a share of rows, a number of :data:`SHARE_CLASSES`."""
    return np.searchsorted(_SHARES, share, side="left")


def risen(values: Floats) -> Floats:
    """The values of each history, moved to the left, of which none is below one before it."""
    (ahead,) = packed(values)
    return np.where(np.isnan(ahead), np.nan, np.fmax.accumulate(ahead, axis=1))


def interval_numbers(values: Floats, edges: Floats) -> Ints:
    """Interval of each value, -1 where it is missing. The outer intervals take what lies beyond."""
    found = np.clip(np.searchsorted(edges, values, side="right") - 1, 0, len(edges) - 2)
    return np.where(np.isnan(values), -1, found)


def before(bins: Ints, size: int) -> Ints:
    """The bin of the row before, ``size`` for the first row."""
    first = np.full((len(bins), 1), size)
    return np.concatenate([first, bins[:, :-1]], axis=1)


def rows_since(measured: NDArray[np.bool_]) -> Ints:
    """For each row, how many rows before it the last value was."""
    last = last_before(measured)
    row = np.arange(measured.shape[1])
    return np.where(last < 0, SINCE - 1, np.minimum(row - 1 - last, SINCE - 2))


def last_before(measured: NDArray[np.bool_]) -> Ints:
    """For each row, the number of the last measured row before it, -1 for none."""
    row = np.arange(measured.shape[1])
    return before(np.maximum.accumulate(np.where(measured, row, -1), axis=1), -1)


def is_last(rows: Ints, most: int) -> NDArray[np.bool_]:
    """Whether each row is the patient's last, shape (N, most)."""
    return np.arange(most) == rows[:, None] - 1


def measured_before(measured: Sequence[NDArray[np.bool_]], shape: tuple[int, ...]) -> Ints:
    """For each row, which of the presences before are there: 0 none, 1 some, 2 the last of them."""
    if not measured:
        return np.zeros(shape, np.int64)
    return np.where(measured[-1], 2, np.logical_or.reduce(measured).astype(np.int64))


def changes(values: Floats) -> Floats:
    """Difference of each value from the one before, NaN for the first."""
    return np.diff(values, axis=1, prepend=np.nan)


def step_ratios(values: Floats, edges: Floats = RATIOS) -> tuple[Ints, Ints]:
    """Steps over the history's mean step, as intervals, and the intervals of the steps before."""
    count = (~np.isnan(values)).sum(axis=1)
    mean = np.nansum(changes(values), axis=1) / np.maximum(count - 1, 1)
    ratios = interval_numbers(changes(values) / np.where(mean > 0, mean, np.nan)[:, None], edges)
    first = np.arange(values.shape[1]) == 1
    return np.where(first, len(edges) - 1, before(ratios, len(edges) - 1)), ratios
