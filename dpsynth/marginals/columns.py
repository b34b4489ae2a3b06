"""Distributions of single columns, from their noisy counts: cycles, blocks of values, all columns."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from dpsynth.marginals.cells import stands_out, with_habit
from dpsynth.marginals.denoising import denoised
from dpsynth.marginals.density import denoise
from dpsynth.marginals.statistics import MarginalsRelease
from dpsynth.privacy.records import ResidueAxis
from dpsynth.privacy.release import Array
from dpsynth.table.column import Column
from dpsynth.table.grid import Grid, Marginals
from dpsynth.table.kinds.date import CYCLES, cycle_places
from dpsynth.table.kinds.number import step_values
from dpsynth.table.simplex import norm_sub

# ------------------------------------------------------------------------------------------------
# Weekdays, months and hours of dates, from their noisy counts (post-processing).
#
# The distribution of a column of dates is raked (Deming and Stephan 1940). Its values are weighted until
# weekdays, months and hours have their released shares. Each share is first moved towards what the
# distribution gives, by the part of the difference that is noise. Cells of several values are cut where
# months begin. Weekdays and hours become a habit within the cells (:mod:`dpsynth.table.grid`).

#: Rounds of raking.
_ROUNDS = 5
#: Least share of a weekday, a month or an hour, as a part of what the distribution gives.
_LEAST = 1e-3


def with_cycles(grid: Grid, counts: Array, noisy: Mapping[str, Array], std: float) -> tuple[Grid, Array]:
    """Cells and counts whose weekdays, months and hours follow their noisy counts.

    ``counts``, shape (grid.size,): not negative.
    ``noisy``: by cycle, the counts of its places and then of missing values, with noise of deviation ``std``.
    """
    assert grid.starts is not None
    column, apart = grid.column, counts[grid.present :]
    numbers = step_values(column, np.arange(grid.starts[-1]))
    places = {cycle: cycle_places(numbers, column.kind, cycle) for cycle in noisy}
    starts, single = grid.starts, grid.present == grid.starts[-1]
    if "month" in places and not single:
        starts = np.union1d(starts, np.flatnonzero(np.diff(places["month"])) + 1)
    size = np.diff(grid.starts)
    weight = np.repeat(counts[: grid.present] / size, size)
    if grid.habit is not None:
        whole = np.diff(grid.cumulative(grid.starts)) / size
        weight *= np.resize(grid.habit, len(weight)) / np.repeat(whole, size)
    total = float(weight.sum())
    if total <= 0:
        return grid, counts
    goals = {
        cycle: _shrunk(
            np.bincount(place, weight, CYCLES[cycle]).astype(np.float64), noisy[cycle][: CYCLES[cycle]], std
        )
        for cycle, place in places.items()
    }
    factors = {cycle: np.ones(CYCLES[cycle]) for cycle in places}
    for _ in range(_ROUNDS):
        for cycle, place in places.items():
            now = np.bincount(place, weight, CYCLES[cycle])
            factor = np.divide(goals[cycle], now, out=np.zeros_like(now), where=now > 0)
            factors[cycle] *= factor
            weight *= factor[place]
    present = np.add.reduceat(weight, starts[:-1])
    present *= total / present.sum()
    habit = None if single else _habit(grid, numbers, factors)
    return dataclasses.replace(grid, starts=starts, habit=habit), np.concatenate([present, apart])


def _shrunk(expected: Array, noisy: Array, std: float) -> Array:
    """Noisy counts of a cycle's places, moved towards the expected ones as far as noise explains."""
    total = float(expected.sum())
    found = norm_sub(noisy, total)
    known = expected > 0
    gap = np.where(known, found / np.where(known, expected, 1.0) - 1.0, 0.0)
    noise = np.where(known, (std / np.where(known, expected, 1.0)) ** 2, 0.0)
    spread = max(float((gap[known] ** 2).mean() - noise[known].mean()), 0.0)
    kept = np.divide(spread, spread + noise, out=np.zeros_like(noise), where=spread + noise > 0)
    goal = expected * np.maximum(1.0 + kept * gap, _LEAST)
    return goal * (total / goal.sum())


def _habit(grid: Grid, numbers: Array, factors: Mapping[str, Array]) -> Array | None:
    """Relative frequency of the values within cells, by the residue of their number."""
    step = round(float(grid.column.resolution or 1.0) * grid.column.seconds)
    whole = {"weekday": 604_800, "hour": 86_400}
    period = max((whole[cycle] // step for cycle in factors if cycle in whole), default=0)
    if not period:
        return grid.habit
    if grid.habit is not None:
        period = int(np.lcm(period, len(grid.habit)))
    # Beyond the column's last value numbers go on.
    first = numbers[0] + np.arange(period) * float(grid.column.resolution or 1.0)
    habit = np.ones(period) if grid.habit is None else np.resize(grid.habit, period)
    for cycle in whole.keys() & factors.keys():
        habit = habit * factors[cycle][cycle_places(first, grid.column.kind, cycle)]
    return habit / habit.mean() if habit.sum() > 0 else grid.habit


# ------------------------------------------------------------------------------------------------
# The distribution of a column of more than a million values, from its noisy counts (post-processing).
#
# Such a column is counted in intervals, in blocks of neighbouring values, and by residues: the places of
# values in their blocks.
#
# - A value that is frequent makes one block stand out of its neighbours, and one residue of all residues.
# The residue is its place in the block. It keeps a cell of its own. - An interval of which few blocks are
# full, such as some years in thousands, is estimated block by block. - All other records follow the density
# of the intervals, with the habit that the residues show.
#
# A false pair of block and residue moves records within their block only.

Ints = NDArray[np.int64]

#: Frequent values that are looked for, at most.
_MOST = 256
#: Noise deviations of a block's excess over its neighbours.
_EXCESS_NOISE = 1.2
#: Noise deviations between a block's excess and a residue's, which are then taken for one number.
_AGREE = 4.0
#: Intervals of fewer blocks are not estimated block by block.
_FEWEST_BLOCKS = 8


def denoise_blocks(
    grid: Grid,
    noisy: Array,
    blocks: tuple[Grid, Array],
    residues: Sequence[tuple[ResidueAxis, Array]],
    std: float,
    n: float,
) -> tuple[Grid, Array]:
    """Estimate a column's distribution from noisy counts of intervals, of blocks and of residues.

    ``noisy``: counts of ``grid``, the public intervals.
    ``blocks``: cells of neighbouring values, equally many in each, and their counts.
    ``residues``: of parts of blocks, then of parts of these. The last are of single values.

    Returns grid and counts as `denoise`.
    """
    column, starts = grid.column, blocks[0].starts
    assert starts is not None and grid.starts is not None
    counts, noisy = blocks[1][: len(starts) - 1].copy(), noisy.copy()
    spikes, sizes = _frequent(starts, counts, residues, std)
    sizes *= min(1.0, 0.999 * n / max(float(sizes.sum()), 1e-9))
    np.subtract.at(counts, spikes // starts[1], sizes)
    np.subtract.at(noisy, np.searchsorted(grid.starts, spikes, side="right") - 1, sizes)
    found, estimate = denoise(grid, noisy, std, n - float(sizes.sum()))
    found, estimate = _cut(found, estimate, starts, counts, std)
    axis, rest = residues[-1][0], residues[-1][1][:-1].copy()
    np.subtract.at(rest, spikes % axis.modulus, sizes)
    alone = np.bincount(spikes % axis.modulus, minlength=axis.modulus)
    found = with_habit(found, estimate, rest, std**2 * (1.0 + alone))
    assert found.starts is not None
    cut = Grid(column, np.unique(np.concatenate([found.starts, spikes, spikes + 1])), None, found.habit)
    estimate = found.summed(estimate, cut)
    assert cut.starts is not None
    np.add.at(estimate, np.searchsorted(cut.starts, spikes, side="right") - 1, sizes)
    return cut, estimate


def _frequent(
    starts: Ints, counts: Array, residues: Sequence[tuple[ResidueAxis, Array]], std: float
) -> tuple[Ints, Array]:
    """Numbers of frequent values, and how many records have each."""
    near = np.stack([np.pad(counts, 2, mode="reflect")[at : at + len(counts)] for at in (0, 1, 3, 4)])
    around = np.maximum(np.median(near, axis=0), 0.0)
    width, firsts, excess = int(starts[1]), starts[:-1], counts - around
    full = np.flatnonzero(excess > _EXCESS_NOISE * std)
    firsts, excess = firsts[full], excess[full]
    for axis, noisy in residues:
        if width > axis.width:
            firsts, excess = _narrowed(firsts, width, excess, axis, noisy[: axis.modulus], std)
            width = axis.width
    inside = firsts < starts[-1]
    return firsts[inside], excess[inside]


def _narrowed(
    firsts: Ints, width: int, excess: Array, axis: ResidueAxis, noisy: Array, std: float
) -> tuple[Ints, Array]:
    """Parts of blocks, and their excess, of the residues that stand out.

    ``firsts``, ``excess``: first value of each block, and its records beyond what its neighbours have.
    """
    level = np.full(len(noisy), max(float(np.median(noisy)), 0.0))
    above = noisy - level
    peaks = np.flatnonzero(stands_out(noisy, level, std))
    parts: list[int] = []
    sizes: list[float] = []
    excess, clear = excess.copy(), _EXCESS_NOISE * std * (np.sqrt(2.0 * np.log(max(len(excess), 2))) + 1.0)
    for residue in peaks[np.argsort(-above[peaks])][:_MOST]:
        place = (residue - firsts // axis.width) % axis.modulus
        while above[residue] > 0 and len(parts) < _MOST:
            # A residue may be that of many values, such as midnights, so a block may hold a part of them.
            fits = (place < width // axis.width) & (excess > np.minimum(above[residue] / 2, clear))
            if not fits.any():
                break
            block = int(np.argmin(np.where(fits, np.abs(excess - above[residue]), np.inf)))
            size = min(excess[block], above[residue])
            if abs(excess[block] - above[residue]) < _AGREE * std:
                size = above[residue]
            parts.append(int(firsts[block] + place[block] * axis.width))
            sizes.append(float(size))
            excess[block] -= size
            above[residue] -= size
    order = np.argsort(parts)
    return np.array(parts, dtype=np.int64)[order], np.array(sizes, dtype=np.float64)[order]


def _cut(grid: Grid, estimate: Array, starts: Ints, counts: Array, std: float) -> tuple[Grid, Array]:
    """Intervals of which few blocks are full, estimated block by block."""
    assert grid.starts is not None
    firsts = np.searchsorted(starts, grid.starts[:-1], side="left")
    lasts = np.searchsorted(starts, grid.starts[1:], side="right") - 1
    cuts: list[Ints] = []
    parts: list[Array] = []
    for cell, (first, last) in enumerate(zip(firsts, lasts, strict=True)):
        total, own = float(estimate[cell]), counts[first:last]
        number = len(own)
        if number >= _FEWEST_BLOCKS and stands_out(own, np.full(number, total / number), std).any():
            column = Column(name="block", kind="integer", lower=0, upper=number - 1)
            found, sums = denoise(Grid(column, np.arange(number + 1), None), own, max(std, 1.0), total)
            assert found.starts is not None
            inner = starts[first + found.starts[1:-1]]
            cuts.append(np.append(grid.starts[cell], inner))
            parts.append(sums)
        else:
            cuts.append(grid.starts[cell : cell + 1])
            parts.append(estimate[cell : cell + 1])
    ends = np.concatenate([*cuts, grid.starts[-1:]])
    return Grid(grid.column, ends, None), np.concatenate([*parts, estimate[grid.present :]])


# ------------------------------------------------------------------------------------------------
# Distributions of all columns, from their noisy counts (post-processing).
#
# Counts of categories are projected on the simplex scaled to the number of records ("norm-sub", theory of
# section 1.8). With a tree, counts that are mostly noise are moved towards those of their smallest group
# (empirical Bayes), whose sum stays. Those of numbers become a distribution (`dpsynth.marginals.density`).
# Each histogram's sum is one more measurement of the number of records. If that is not public, it is
# estimated from all of them, so its error falls on all values in proportion.


def estimate_marginals(
    release: MarginalsRelease, noisy: Sequence[Array], onto: Sequence[Grid] | None = None
) -> Marginals:
    """Distributions of all columns, which belong to one number of records.

    ``onto``: cells of an earlier estimate, to which the distributions are summed up.

    Source: Wang et al. (2020), section 4.3 (norm-sub).

    Examples
    --------
    >>> from dpsynth.table.schema import Column, Schema
    >>> schema = Schema(columns=(Column(name="sex", kind="binary", categories=("F", "M")),))
    >>> release = MarginalsRelease(schema=schema, n=40, noise_multiplier=2.0)
    >>> estimate_marginals(release, [np.array([31.0, 11.0])]).probabilities[0]
    array([0.75, 0.25])
    """
    n, std = _records(release, noisy), release.noise_std
    law = norm_sub(noisy[-1], n) / n if release.panel else None
    more = iter(noisy[len(release.grids) :])
    by_value = [None if grid is None else next(more) for grid in release.by_value]
    residues: dict[str, list[tuple[ResidueAxis, Array]]] = {}
    for residue in release.residues:
        residues.setdefault(residue.column.name, []).append((residue, next(more)))
    cycles: dict[str, dict[str, Array]] = {}
    for axis in release.cycles:
        cycles.setdefault(axis.column.name, {})[axis.cycle] = next(more)
    grids, probabilities = [], []
    for j, (grid, values) in enumerate(zip(release.grids, by_value, strict=True)):
        own, cells = residues.get(grid.column.name, []), release.by_value[j]
        if cells is not None and values is not None and cells.values_per_cell.max() > 1:
            found, counts = denoise_blocks(grid, noisy[j], (cells, values), own, std, n)
        else:
            digits = own[-1][1][:-1] if own else None
            found, counts = denoise(grid, noisy[j], std, n, values, digits)
            counts = within_groups(grid.column.tree_levels[:1] if std else (), counts, noisy[j], std)
            if digits is not None and values is None and grid.values_per_cell.max() > 1:
                found = with_habit(found, counts, digits, np.full(len(digits), std**2))
        if places := cycles.get(grid.column.name):
            found, counts = with_cycles(found, counts, places, std)
        if onto is not None:
            found, counts = onto[j], found.summed(counts, onto[j])
        grids.append(found)
        probabilities.append(counts / counts.sum())
    shown = zip(release.grids, grids, probabilities, strict=True)
    flat = (found.column.name for grid, found, p in shown if _flattened(grid, n * p, std))
    return Marginals(
        grids=tuple(grids),
        probabilities=tuple(probabilities),
        flattened=tuple(flat),
        n=n,
        noise_multiplier=release.noise_multiplier,
        counting=release.counting,
        missing_law=law,
    )


def within_groups(levels: Sequence[Ints], counts: Array, noisy: Array, std: float) -> Array:
    """Counts without what noise explains of their departures from an equal share of their group.

    ``levels``: groups of one level, or none. ``counts``, shape (cells,): those of `norm_sub`. Sums of groups
    stay.

    Examples
    --------
    >>> noisy = np.array([8.0, 1.0, 3.0, 100.0])
    >>> within_groups([np.array([0, 0, 0, 1])], norm_sub(noisy, 112.0), noisy, 10.0)
    array([ 4.,  4.,  4., 100.])
    """
    found = counts.copy()
    for groups in levels:
        for group in np.unique(groups):
            own = np.flatnonzero(groups == group)
            total = float(counts[own].sum())
            found[own] = norm_sub(denoised(noisy[own], np.full(len(own), total / len(own)), std)[0], total)
    return found


def _flattened(grid: Grid, counts: Array, std: float) -> bool:
    """Whether noise of two deviations hides most categories' records, or a quarter of the numbers."""
    if grid.ordered:
        return bool(counts.sum() / 4 < 2 * std * np.sqrt(grid.present / 4))
    return bool(counts[counts > 2 * std].sum() < counts.sum() / 2)


def _records(release: MarginalsRelease, noisy: Sequence[Array]) -> float:
    """The number of records, from its own count and the sums of all histograms, by their precision."""
    n, n_std, std = release.n, release.n_std, release.noise_std
    if not n_std or not std:
        return float(n)
    precisions = [n_std**-2.0, *(1.0 / (len(counts) * std**2) for counts in noisy)]
    sums = [n, *(float(counts.sum()) for counts in noisy)]
    return max(1.0, float(np.rint(np.average(sums, weights=precisions))))
