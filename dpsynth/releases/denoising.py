"""Histograms of ordered columns estimated from their noisy counts: post-processing, free of privacy cost.

Cutting noisy counts at zero keeps the positive half of the noise in every empty cell, so that the tails of a
laboratory value become noise. The noise's standard deviation is public, so its law can be used instead: the
counts are a smooth density (`dpsynth.releases.logspline`) with habits and overdispersed cells.

- Habits of writing numbers down (tens, halves, multiples of four) multiply the density by a factor for each
  residue of the value's number; the period is the one of greatest evidence among public ones.
- A cell's count deviates from the density by Poisson variance and more (heaping, rounding); how much more is
  estimated, and each cell keeps that part of its noisy deviation which is not noise (the posterior mean
  under Gaussian laws). A cell that stands out by more than four standard deviations is a point mass and
  keeps its count.

It reads the noisy counts, the public grid, the public noise and the released number of records, nothing else.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from dpsynth.releases.logspline import Array, Design, Fitted, fit, start
from dpsynth.releases.projection import norm_sub
from dpsynth.table.grid import Grid

#: Ordered columns with fewer cells are projected as they are: there is nothing to be smooth among.
_FEWEST_CELLS = 8
#: Periods of habits, in steps of the column, tried where every value has a cell of its own.
_PERIODS = (2, 4, 5, 10, 20, 25, 50, 100)
#: A habit is believed when it adds more than this to the logarithm of the evidence.
_HABIT_EVIDENCE = 1.0
#: Periods whose sums deviate by this many standard deviations are fitted, so many of them at most.
_SHOWN, _FITTED = 2.0, 3
#: Weights of the smoothness penalty and of the ridge on habits that are tried.
_SMOOTHNESS = 10.0 ** np.arange(4.0, -3.1, -1.0)
_SAMENESS = np.array([0.3, 3.0, 30.0])
#: Cells stand out of the noise, in sums of 1 to 8 neighbours, above this many standard deviations.
_RESOLVED = 4.0
#: A cell further from the density than this many standard deviations is a point mass.
_POINT_MASS = 4.0
#: Most variance beyond Poisson, as a multiple of the squared mean.
_MOST_DISPERSION = 2.0


def denoise(grid: Grid, noisy: Array, std: float, n: float) -> Array:
    """Estimate a column's counts from noisy ones.

    Parameters
    ----------
    grid : Grid
    noisy : array, shape (grid.size,)
        Counts with independent Gaussian noise.
    std : float
        Standard deviation of that noise; 0 where there is none.
    n : float
        Public or released number of records.

    Returns
    -------
    array, shape (grid.size,)
        Non-negative, sum n. Without noise, without order or with fewer than 8 cells this is `norm_sub`.

    Examples
    --------
    >>> from dpsynth.table.column import Column
    >>> grid = Grid.from_column(Column(name="age", kind="integer", lower=0, upper=99))
    >>> true = 4000 * np.exp(-((np.arange(100) - 40) ** 2) / 200) / 25.066
    >>> noisy = true + 10 * np.random.default_rng(0).standard_normal(100)
    >>> def error(counts):
    ...     return np.abs(counts - true).sum()
    >>> bool(error(denoise(grid, noisy, 10.0, 4000)) < error(norm_sub(noisy, 4000)) / 2)
    True
    """
    if not std > 0 or not grid.ordered or not grid.column.is_numeric or grid.present < _FEWEST_CELLS:
        return norm_sub(noisy, n)
    # Zeros below a logarithmic scale and missing values are no part of a density.
    scaled = slice(int(grid.column.has_zero_cell), grid.present)
    apart = np.ones(grid.size, dtype=bool)
    apart[scaled] = False
    counts = np.where(apart, noisy.clip(0.0, n), 0.0)
    total = n - float(counts.sum())
    if total <= 0:
        return norm_sub(noisy, n)
    counts[scaled] = _present(grid, noisy[scaled], std, total)
    return counts


def _present(grid: Grid, noisy: Array, std: float, total: float) -> Array:
    """Counts of the cells on the column's scale, which sum to ``total``."""
    design = Design.of(*scaled_cells(grid), total, _resolved(noisy, std))
    # How well the total is known: by one noisy cell (the missing one) or better, and to a hundredth.
    known = (total, std**2 + 1e-4 * total)
    rough = _rough(noisy, std, total)
    variance = std**2 + rough
    fitted = fit(
        design,
        noisy,
        variance,
        known,
        start(design, rough),
        smoothness=_SMOOTHNESS,
        sameness=_SAMENESS,
    )
    design, fitted = _with_habit(grid, design, fitted, noisy, variance, known)
    dispersion = 0.0
    for around in (np.array([0.1, 0.3, 1.0, 3.0, 10.0]), np.ones(1)):
        dispersion = _dispersion(noisy, fitted.means, std)
        variance = std**2 + fitted.means + dispersion * fitted.means**2
        # Cells beyond two standard deviations count less and less: point masses must not bend the density.
        beyond = np.maximum(np.abs(noisy - fitted.means) / np.sqrt(variance) - 2.0, 0.0)
        trust = 1.0 / (1.0 + beyond**2)
        fitted = fit(
            design,
            noisy,
            variance / trust,
            known,
            fitted.coefficients,
            smoothness=fitted.smoothness * around,
            sameness=np.array([fitted.sameness]),
        )
    means = fitted.means * (total / fitted.means.sum())
    own = means + dispersion * means**2
    kept = own / (own + std**2)
    kept[np.abs(noisy - means) > _POINT_MASS * np.sqrt(own + std**2)] = 1.0
    counts = np.maximum(means + kept * (noisy - means), 0.0)
    return counts * (total / counts.sum()) if counts.sum() > 0 else means


def _with_habit(
    grid: Grid,
    design: Design,
    fitted: Fitted,
    noisy: Array,
    variance: Array,
    known: tuple[float, float],
) -> tuple[Design, Fitted]:
    """The design with the period that the counts show, if they show one."""
    if grid.starts is None or grid.values_per_cell.max() > 1:
        return design, fitted
    best, bar = (design, fitted), fitted.evidence + _HABIT_EVIDENCE
    periods = [period for period in _PERIODS if 4 * period <= grid.present]
    away = {period: _deviance(_residues(grid, period), noisy - fitted.means, variance) for period in periods}
    for period in sorted(periods, key=lambda period: -away[period])[:_FITTED]:
        if away[period] < _SHOWN:
            break
        tried = dataclasses.replace(design, residues=_residues(grid, period))
        found = fit(
            tried,
            noisy,
            variance,
            known,
            np.concatenate([fitted.coefficients, np.zeros(period)]),
            smoothness=np.array([fitted.smoothness]),
            sameness=_SAMENESS,
        )
        if found.evidence > bar:
            best, bar = (tried, found), found.evidence
    return best


def _deviance(residues: Array, deviations: Array, variance: Array) -> float:
    """How far sums over residues are from zero: chi-squared, in standard deviations above its mean."""
    squares = (residues.T @ deviations) ** 2 / (residues.T @ variance)
    return float((squares.sum() - len(squares)) / np.sqrt(2.0 * len(squares)))


def scaled_cells(grid: Grid) -> tuple[Array, Array]:
    """Middles and widths of the cells on the column's own scale, from 0 to 1; without a cell of zeros."""
    column = grid.column
    if grid.starts is not None:
        assert column.lower is not None and column.resolution is not None
        # A value stands for what is rounded to it: half a step to either side.
        first = grid.starts[int(column.has_zero_cell) :]
        ends = column.lower + (first - 0.5) * column.resolution
        floor = (column.lower or column.resolution) / 2
    else:
        assert grid.edges is not None
        ends, floor = grid.edges.astype(np.float64), float(grid.edges[0])
    if column.scale == "log":
        ends = np.log(np.maximum(ends, floor))
    ends = (ends - ends[0]) / (ends[-1] - ends[0])
    return (ends[1:] + ends[:-1]) / 2, np.diff(ends)


def _residues(grid: Grid, period: int) -> Array:
    """Indicators of the residues of the cells' values, counted in steps from zero, shape (cells, period)."""
    assert grid.starts is not None and grid.column.resolution is not None
    first = round(float(grid.column.lower or 0.0) / grid.column.resolution)
    return np.eye(period)[(first + grid.starts[:-1]) % period]


def _rough(noisy: Array, std: float, total: float) -> Array:
    """A first guess of the means: the counts averaged over neighbours, less the noise left in the average."""
    size = len(noisy)
    away = np.arange(size)[:, None] - np.arange(size)
    weights = np.exp(-0.5 * (away / max(2.0, size / 24)) ** 2)
    weights /= weights.sum(axis=1, keepdims=True)
    noise = std * np.sqrt((weights**2).sum(axis=1))
    rough = np.maximum(weights @ np.maximum(noisy, 0.0) - noise, 0.0) + 0.02 * total / size
    return rough * (total / rough.sum())


def _resolved(noisy: Array, std: float) -> tuple[int, int]:
    """First and last cell that sums of neighbours lift out of the noise; the highest sum if none do."""
    first, last = len(noisy), -1
    for length in (1, 2, 4, 8):
        if length > len(noisy):
            break
        sums = np.convolve(noisy, np.ones(length), "valid")
        high = np.flatnonzero(sums > _RESOLVED * std * np.sqrt(length))
        if len(high):
            first, last = min(first, int(high[0]) + (length - 1) // 2), max(last, int(high[-1]) + length // 2)
    if last < 0:
        length = max(1, len(noisy) // 8)
        first = last = int(np.convolve(noisy, np.ones(length), "valid").argmax()) + length // 2
    return first, min(last, len(noisy) - 1)


def _dispersion(noisy: Array, means: Array, std: float) -> float:
    """Variance of the cells beyond noise and Poisson, in squared means (method of moments)."""
    weight = (means / (std**2 + means)) ** 2
    beyond = ((noisy - means) ** 2 - std**2 - means) * weight
    return float(np.clip(beyond.sum() / max((means**2 * weight).sum(), 1e-9), 0.0, _MOST_DISPERSION))
