"""Numbers that rows of patients determine: lags, spread, shares of rows, correlations within a row.

Each function takes a table with its resamples. It returns one number a resample, the table's own first, and
the number of patients that it rests on. A value is NaN where the numbers do not vary.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpsynth.evaluation.trajectories.resamples import Resampled
from dpsynth.table.histories import Floats, Standardised, packed


class Statistic(NamedTuple):
    """A number of a table and of its resamples, shape (1 + resamples,), and how many patients it rests on."""

    numbers: Floats
    patients: int


def mean_rows(table: Resampled) -> Statistic:
    """Mean number of rows a patient."""
    rows = table.histories.rows
    return _ratio(table, rows.astype(np.float64), np.ones(len(rows)))


def measured_share(table: Resampled, name: str) -> Statistic:
    """Share of rows with a value."""
    measured = (~np.isnan(table.histories.numbers[name])).sum(axis=1)
    return _ratio(table, measured.astype(np.float64), table.histories.rows.astype(np.float64))


def falling_share(table: Resampled, name: str) -> Statistic:
    """Share of steps from one value to the next that fall."""
    steps = np.diff(packed(table.histories.numbers[name])[0], axis=1)
    known = (~np.isnan(steps)).sum(axis=1)
    return _ratio(table, (steps < 0).sum(axis=1).astype(np.float64), known.astype(np.float64))


def short_gaps(table: Resampled, order: str, longest: float) -> Statistic:
    """Share of gaps up to a length."""
    gaps = gaps_of(table.histories.numbers[order])
    short = (gaps <= longest).sum(axis=1)
    return _ratio(table, short.astype(np.float64), (~np.isnan(gaps)).sum(axis=1).astype(np.float64))


def gap_quantiles(table: Resampled, order: str, probabilities: Sequence[float]) -> list[Statistic]:
    """The smallest gaps up to which so many lie."""
    gaps = gaps_of(table.histories.numbers[order])
    patient, place = np.nonzero(~np.isnan(gaps))
    lengths = gaps[patient, place]
    if not len(lengths):
        return [Statistic(np.full(len(table.weights), np.nan), 0) for _ in probabilities]
    by_length = np.argsort(lengths, kind="stable")
    patient, lengths = patient[by_length], lengths[by_length]
    found = []
    for weights in table.weights:
        cumulated = np.cumsum(weights[patient])
        wanted = np.array(probabilities) * cumulated[-1]
        # Sums of shares lose a digit where a gap ends them exactly.
        place = np.searchsorted(cumulated, wanted * (1.0 - 1e-12))
        found.append(lengths[np.minimum(place, len(lengths) - 1)])
    patients = len(np.unique(patient))
    return [Statistic(numbers, patients) for numbers in np.array(found).T]


def changed_share(table: Resampled, name: str) -> Statistic:
    """Share of patients with more than one category, of those with at least two values."""
    values = table.histories.numbers[name]
    several = (~np.isnan(values)).sum(axis=1) > 1
    filled = np.where(several[:, None], values, 0.0)
    changed = several & (np.nanmax(filled, axis=1) > np.nanmin(filled, axis=1))
    return _ratio(table, changed.astype(np.float64), several.astype(np.float64))


def lag_correlation(table: Resampled, name: str, lag: int) -> Statistic:
    """Correlation of a number with the patient's value ``lag`` values later."""
    (values,) = packed(table.histories.numbers[name])
    return _correlation(table, values[:, :-lag], values[:, lag:])


def row_correlation(table: Resampled, first: str, second: str) -> Statistic:
    """Correlation, within a row, of the distances of two numbers from the patient's own means."""
    return _correlation(table, *(deviations(table.histories.numbers[name]) for name in (first, second)))


def between_sd(table: Resampled, name: str) -> Statistic:
    """Standard deviation of patients' means."""
    own = Standardised.of(table.histories.numbers[name])
    has = own.count > 0
    centre = own.mean[has].mean() if has.any() else 0.0
    mean = np.where(has, own.mean - centre, 0.0)
    n, total, squares = table.sums(has.astype(np.float64), mean, mean * mean)
    with np.errstate(all="ignore"):
        return Statistic(np.sqrt(np.maximum(squares / n - (total / n) ** 2, 0.0)), int(has.sum()))


def within_sd(table: Resampled, name: str) -> Statistic:
    """Standard deviation around patients' means, with one degree of freedom less for each patient."""
    own = Standardised.of(table.histories.numbers[name])
    count, has = (part.astype(np.float64) for part in (own.count, own.count > 0))
    squares, freedom = table.sums(count * own.sd**2, count - has)
    with np.errstate(all="ignore"):
        return Statistic(np.sqrt(squares / freedom), int((own.count > 1).sum()))


def deviations(values: Floats) -> Floats:
    """Distance of each value from its history's mean, NaN where there is only one value."""
    own = Standardised.of(values)
    return np.where((own.count > 1)[:, None], values - own.mean[:, None], np.nan)


def gaps_of(times: Floats) -> Floats:
    """Times between consecutive rows, shape (N, most - 1), NaN behind the last row."""
    return np.diff(times, axis=1)


def transitions(values: Floats, categories: int) -> Floats:
    """Each category and the next one as one number, ``from * categories + to``, NaN behind the last."""
    (codes,) = packed(values)
    return codes[:, :-1] * categories + codes[:, 1:]


def transition_distance(origin: NDArray[np.int64], first: Floats, second: Floats) -> float:
    """Mean total variation distance of the next category given the last, by the shares of the first table.

    ``origin`` is the category before, of each cell. If the second table lacks a category, its distance is 1.
    """
    rows = [np.bincount(origin, weights=share) for share in (first, second)]
    given = [
        share / np.where(row > 0, row, 1.0)[origin] for share, row in zip((first, second), rows, strict=True)
    ]
    apart = 0.5 * np.bincount(origin, weights=np.abs(given[0] - given[1]))
    return float((rows[0] * np.where(rows[1] > 0, apart, 1.0)).sum())


def _ratio(table: Resampled, above: Floats, below: Floats) -> Statistic:
    total, of = table.sums(above, below)
    with np.errstate(all="ignore"):
        return Statistic(total / np.where(of > 0, of, np.nan), int((below > 0).sum()))


def _correlation(table: Resampled, first: Floats, second: Floats) -> Statistic:
    """Pearson's correlation of all pairs without NaN, from sums by patient."""
    both = ~np.isnan(first) & ~np.isnan(second)
    if not both.any():
        return Statistic(np.full(len(table.weights), np.nan), 0)
    a, b = (_standardised(values, both) for values in (first, second))
    parts = (both.astype(np.float64), a, b, a * a, b * b, a * b)
    n, x, y, xx, yy, xy = table.sums(*(part.sum(axis=1) for part in parts))
    with np.errstate(all="ignore"):
        spread = np.maximum(xx / n - (x / n) ** 2, 0.0) * np.maximum(yy / n - (y / n) ** 2, 0.0)
        found = (xy / n - x * y / n**2) / np.sqrt(np.where(spread > 1e-12, spread, np.nan))
    return Statistic(found, int(both.any(axis=1).sum()))


def _standardised(values: Floats, known: NDArray[np.bool_]) -> Floats:
    """Mean 0 and standard deviation 1: sums of squares lose digits far from 0. Equal values become zeros."""
    mean, sd = values[known].mean(), values[known].std()
    scale = sd if sd > 1e-9 * max(abs(mean), 1e-300) else np.inf
    return np.where(known, (values - mean) / scale, 0.0)
