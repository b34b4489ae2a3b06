"""Habits of writing numbers down, from counts by residue (post-processing, free of cost).

Tens, halves, prices that end in 99, whole hours, midnights: some residues of a value's number occur more
often than others. Each residue has a factor, pooled over all values, for the period of greatest evidence. The
evidence is what the counts of all values show, and released counts of residues where there are any.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpsynth.table.column import Column
from dpsynth.table.dates import SECONDS
from dpsynth.table.grid import Grid

Array = NDArray[np.float64]

#: Periods of habits, in steps of the column. Those of dates are the hour, the day and the week.
_PERIODS = (2, 4, 5, 10, 20, 25, 50, 100)
#: A habit is believed when it adds more than this to the logarithm of the evidence.
_HABIT_EVIDENCE = 3.0
#: Least factor of a residue.
_LEAST_FACTOR = 1e-3
#: Median of a squared standard normal draw.
_MEDIAN = 0.455
#: Rounds of setting residues apart that are far from all others, and their part of all residues at most.
_ROUNDS, _EXCEPTIONS = 5, 0.1


class Residues(NamedTuple):
    """Estimates of each residue's factor, by residue of the number in steps from zero.

    ``expected``: records without a habit. ``precision``: inverse variance of the factor.
    ``pull``: precision times the deviation of the factor from 1.
    """

    expected: Array
    precision: Array
    pull: Array

    @classmethod
    def of_values(cls, column: Column, mu: Array, values: Array, std: float) -> Residues:
        """From the counts of all values: least squares, ``sum(mu y) / sum(mu^2)``.

        ``mu``, shape (values,): expected records, 0 for values that are left out.
        """
        noise = np.maximum(std**2 + mu, 1e-12)
        modulus = max(_periods(column), default=1)
        residue = (first_number(column) + np.arange(len(mu))) % modulus
        sums = (mu, mu**2 / noise, mu * (values - mu) / noise)
        return cls(*(np.bincount(residue, weights, modulus).astype(np.float64) for weights in sums))

    @classmethod
    def of_counts(cls, column: Column, expected: Array, noisy: Array, variance: Array) -> Residues:
        """From counts of residues, all three by the residue from the column's first value on.

        The sum of the counts is that of the expected ones, which is better known.
        """
        noisy = noisy + (expected.sum() - noisy.sum()) * variance / max(float(variance.sum()), 1e-12)
        noise = np.maximum(variance + expected, 1e-12)
        sums = (expected, expected**2 / noise, expected * (noisy - expected) / noise)
        return cls(*(np.roll(part, first_number(column) % len(part)) for part in sums))


def first_number(column: Column) -> int:
    """Number of a column's first value in steps from zero."""
    assert column.lower is not None and column.resolution is not None
    return round(column.lower / column.resolution)


def find_habit(column: Column, sources: Sequence[Residues]) -> Array:
    """Factors of the residues of values, from the column's first value on, one if there is no habit.

    Either each residue has a factor, or each greatest common divisor with the period: multiples of ten, of
    five, of two, and the rest. Factors are shrunk by the variance that all show, but for few that are far
    from all others.
    """
    best, bar = np.ones(1), _HABIT_EVIDENCE
    for period, kind in _kinds(column):
        usable = [source for source in sources if len(source.expected) % period == 0]
        if not usable:
            continue
        expected, precision, pull = np.sum(
            [[np.bincount(np.resize(kind, len(part)), part) for part in source] for source in usable], axis=0
        )
        if precision.min() <= 0:
            continue
        gap, evidence = _shrunk(pull / precision, precision)
        if evidence > bar:
            factor = np.maximum(1.0 + gap, _LEAST_FACTOR)
            best, bar = (factor * (expected.sum() / (expected @ factor)))[kind], evidence
    return np.roll(best, -(first_number(column) % len(best))) if len(best) > 1 else best


def with_habit(grid: Grid, estimate: Array, noisy: Array, variance: Array) -> Grid:
    """The same cells with the habit that counts of residues show.

    ``estimate``, shape (grid.size,): records of each cell.
    ``noisy``, ``variance``, shape (modulus,): counts by the residue from the column's first value on.
    """
    assert grid.starts is not None
    modulus, size = len(noisy), np.diff(grid.starts)
    density = estimate[: grid.present] / size
    rounds, rest = np.divmod(size, modulus)
    first, steps = grid.starts[:-1] % modulus, np.zeros(2 * modulus + 1)
    np.add.at(steps, first, density)
    np.add.at(steps, first + rest, -density)
    partial = np.cumsum(steps)[:-1]
    expected = partial[:modulus] + partial[modulus:] + float(density @ rounds)
    factor = find_habit(grid.column, [Residues.of_counts(grid.column, expected, noisy, variance)])
    return dataclasses.replace(grid, habit=factor if len(factor) > 1 else None)


def _kinds(column: Column) -> Iterator[tuple[int, NDArray[np.int64]]]:
    """Periods of a column of enough values, and the kind of each residue: first by divisors, then its own."""
    periods = [period for period in _periods(column) if (column.n_values or 0) >= 4 * period]
    for period in periods:
        yield period, np.unique(np.gcd(np.arange(period), period), return_inverse=True)[1]
    for period in periods:
        yield period, np.arange(period)


def _shrunk(gap: Array, precision: Array) -> tuple[Array, float]:
    """Deviations from 1 without their noise, and the logarithm of the evidence for them."""
    spread = max(float(np.median(gap**2) / _MEDIAN - (1.0 / precision).mean()), 0.0)
    reach, centre = np.sqrt(2.0 * np.log(len(gap))) + 1.0, 0.0
    far = np.zeros(len(gap), dtype=bool)
    for _ in range(_ROUNDS):
        far = np.abs(gap - centre) > reach * np.sqrt(spread + 1.0 / precision)
        if far.mean() > _EXCEPTIONS:
            far[:] = False
        centre = float(np.average(gap[~far], weights=precision[~far])) if far.any() else 0.0
        spread = max(float(((gap[~far] - centre) ** 2).mean() - (1.0 / precision[~far]).mean()), 0.0)
    kept = spread * precision / (1.0 + spread * precision)
    left = precision * (gap - centre) ** 2
    gain = np.where(far, -2.0 * np.log(len(gap)), left * (kept - 1.0) - np.log1p(spread * precision))
    return np.where(far, gap, centre + kept * (gap - centre)), float((precision * gap**2 + gain).sum()) / 2


def _periods(column: Column) -> tuple[int, ...]:
    """Periods of a column's habits in its steps."""
    if not column.is_date:
        return _PERIODS
    step = round((column.resolution or 1.0) * SECONDS[column.kind])
    return tuple(whole // step for whole in (3_600, 86_400, 604_800) if whole % step == 0 and whole > step)
