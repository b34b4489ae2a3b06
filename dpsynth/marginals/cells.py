"""Cells that a column's density is fitted to, as fine as the noise of its counts allows (post-processing).

A column of many values is counted in intervals and value by value. An interval's count is known from both,
and is split into parts where the values' counts stand out of their noise. Values of point masses are left
out of their interval.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpsynth.table.column import Column
from dpsynth.table.grid import Grid

# ------------------------------------------------------------------------------------------------
# Habits of writing numbers down, from counts by residue (post-processing, free of cost).
#
# Tens, halves, prices that end in 99, whole hours, midnights: some residues of a value's number occur more
# often than others. Each residue has a factor, pooled over all values, for the period of greatest evidence.
# The evidence is what the counts of all values show, and released counts of residues where there are any.

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
_HABIT_ROUNDS, _EXCEPTIONS = 5, 0.1


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
    for _ in range(_HABIT_ROUNDS):
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
    step = round((column.resolution or 1.0) * column.seconds)
    return tuple(whole // step for whole in (3_600, 86_400, 604_800) if whole % step == 0 and whole > step)


#: Cells stand out of the noise, in sums of so many neighbours.
_LENGTHS = (1, 2, 4, 8)
#: A part of a cell has at least so many deviations of its noise, on average; all cells have at most so many.
_SPLIT, _MOST_CELLS = 2.0, 512
#: Equal parts of a cell, over which its density is summed.
_PARTS = 4
#: A cell is cut into its parts where one has so many times the density of another.
_UNEVEN = 1.2
#: Scales around zero that are tried, as parts of the median's distance from it.
_AROUND_ZERO = (0.5, 0.1)
#: Cells farther out, in widths of the resolved ones, are taken to lie there: beyond, equations are singular.
_FARTHEST = 1e4
#: Rounds in which point masses are looked for against their interval's level.
_ROUNDS = 20


def stands_out(values: Array, level: Array, std: float) -> NDArray[np.bool_]:
    """Values above their level by more than the largest noise among so many, and by the level itself.

    Examples
    --------
    >>> stands_out(np.array([3.0, 90.0, 5.0]), np.full(3, 4.0), 10.0).tolist()
    [False, True, False]
    """
    reach = np.sqrt(2.0 * np.log(max(len(values), 2))) + 1.0
    return np.asarray(values - level > np.maximum(reach * np.sqrt(std**2 + level + 1.0), level))


def _slower(beyond: Array, edge: float) -> Array:
    """Distances beyond an edge, away from zero, as their square root grows: of the same slope at the edge."""
    if edge <= 0:
        return beyond
    return np.sign(beyond) * 2.0 * edge * (np.sqrt(1.0 + np.abs(beyond) / edge) - 1.0)


@dataclass(frozen=True, eq=False)
class Cells:
    """Cells of one column, made with `Cells.of`.

    ``starts``, shape (cells + 1,): first value of each cell, or for real numbers the number of the cell.
    ``counts``, ``variance``, shape (cells,): noisy number of records without point masses, and its variance.
    ``heavy``, shape (values,): which values are point masses. Empty without counts of values.
    """

    grid: Grid
    starts: NDArray[np.int64]
    counts: Array
    variance: Array
    heavy: NDArray[np.bool_]
    std: float
    coarse: Array | None
    values: Array | None

    @classmethod
    def of(cls, grid: Grid, coarse: Array | None, values: Array | None, std: float) -> Cells:
        """Cells from noisy counts of the grid's present cells, of each value, or of both.

        ``coarse``, shape (grid.present,), or None.
        ``values``, shape (declared values,), or None.
        ``std``: standard deviation of the noise of either.
        """
        starts = grid.starts if grid.starts is not None else np.arange(grid.present + 1)
        heavy = np.zeros(0 if values is None else len(values), dtype=bool)
        known = np.zeros(grid.present) if coarse is None else coarse
        cells = cls(grid, starts, known, np.full(grid.present, std**2), heavy, std, coarse, values)
        return cells if values is None else cells.with_heavy(cells._heavy())

    @property
    def heavy_total(self) -> float:
        """Noisy number of records of all point masses."""
        return 0.0 if self.values is None else float(self.values[self.heavy].clip(0.0).sum())

    def _heavy(self) -> NDArray[np.bool_]:
        """Point masses, against the level of their interval or the higher of its neighbours."""
        assert self.values is not None
        starts = self.starts
        size, owner = np.diff(starts), np.repeat(np.arange(len(starts) - 1), np.diff(starts))
        total = np.add.reduceat(self.values, starts[:-1]) if self.coarse is None else self.coarse
        heavy = self.heavy
        for _ in range(_ROUNDS):
            inside = np.add.reduceat(self.values * heavy, starts[:-1])
            rest = np.maximum(size - np.add.reduceat(heavy, starts[:-1], dtype=np.int64), 1)
            level = np.maximum(total - inside, 0.0) / rest
            around = np.maximum(np.append(level[1], level[:-1]), np.append(level[1:], level[-2]))
            found = stands_out(self.values, np.minimum(level, around)[owner], self.std)
            if (found == heavy).all():
                break
            heavy = found
        return heavy

    def with_heavy(self, heavy: NDArray[np.bool_]) -> Cells:
        """The same counts with these point masses left out, and intervals split as the noise allows."""
        assert self.values is not None and self.grid.starts is not None
        public, std = self.grid.starts, max(self.std, 1e-9)
        light = np.where(heavy, 0.0, self.values)
        many = np.diff(public).astype(np.float64)
        out = np.add.reduceat(heavy, public[:-1], dtype=np.int64)
        sums = np.add.reduceat(light, public[:-1])
        total, whole = sums, std**2 * (many - out)
        if self.coarse is not None:
            of_coarse, of_values = std**2 * (1.0 + out), whole
            body = self.coarse - np.add.reduceat(self.values - light, public[:-1])
            total = (body * of_values + sums * of_coarse) / (of_coarse + of_values)
            whole = of_coarse * of_values / (of_coarse + of_values)
        # A part has the values' noise: sqrt(values in it) deviations.
        parts = np.floor((total.clip(0.0) / (_SPLIT * std)) ** 2 / many)
        parts *= min(1.0, _MOST_CELLS / max(parts.sum(), 1.0))
        parts = parts.clip(1.0, many).astype(np.int64)
        first = np.repeat(public[:-1], parts)
        within = np.arange(parts.sum()) - np.repeat(np.cumsum(parts) - parts, parts)
        inside = within * np.repeat(np.diff(public), parts) // np.repeat(parts, parts)
        starts = np.append(first + inside, public[-1])
        owner = np.repeat(np.arange(len(parts)), parts)
        size = np.diff(starts) - np.add.reduceat(heavy, starts[:-1], dtype=np.int64)
        share = size / np.maximum(many - out, 1.0)[owner]
        counts = np.add.reduceat(light, starts[:-1]) + (total - sums)[owner] * share
        variance = np.where((parts == 1)[owner], whole[owner], std**2 * size)
        variance = np.maximum(variance, 1e-6 * std**2)
        return dataclasses.replace(self, starts=starts, counts=counts, variance=variance, heavy=heavy)

    @property
    def ends(self) -> Array:
        """Ends of the cells on the column's own scale, half a step below each first value, (cells + 1,)."""
        column = self.grid.column
        if self.grid.edges is not None:
            return np.log(self.grid.edges) if column.scale == "log" else self.grid.edges
        assert column.lower is not None and column.resolution is not None
        return column.lower / column.resolution + self.starts - 0.5

    @property
    def widths(self) -> Array:
        """Width of each cell: countable values that are no point masses, shape (cells,), sum 1."""
        widths = np.diff(self.ends)
        if self.values is not None:
            widths = widths - np.add.reduceat(self.heavy, self.starts[:-1], dtype=np.int64)
        widths = np.maximum(widths, 1e-3 * np.diff(self.ends))
        return widths / widths.sum()

    @property
    def numbers(self) -> NDArray[np.int64]:
        """Number of each value in steps from zero, shape (values,)."""
        column = self.grid.column
        assert column.lower is not None and column.resolution is not None
        return round(column.lower / column.resolution) + np.arange(len(self.heavy))

    @property
    def light(self) -> NDArray[np.int64]:
        """Number of values in each cell that are no point masses, shape (cells,)."""
        return np.diff(self.starts) - np.add.reduceat(self.heavy, self.starts[:-1], dtype=np.int64)

    def by_value(self, of_cells: Array) -> Array:
        """Equal parts of each cell for its values that are no point masses, shape (values,)."""
        return np.repeat(of_cells / np.maximum(self.light, 1), np.diff(self.starts))

    def residues(self, factor: Array) -> Array:
        """Factor of each value by its residue, from the column's first value on, shape (values,)."""
        return np.resize(factor, len(self.heavy))

    def average(self, factor: Array) -> Array:
        """Mean factor of the values in each cell that are no point masses, shape (cells,)."""
        if len(factor) == 1:
            return np.ones(len(self.counts))
        of_values = np.where(self.heavy, 0.0, self.residues(factor))
        sums = np.add.reduceat(of_values, self.starts[:-1])
        return np.where(self.light > 0, sums / np.maximum(self.light, 1), 1.0)

    def parts(self, fine: Array) -> tuple[NDArray[np.int64], Array]:
        """Cuts of cells whose density is uneven, and each value's share of it, shape (values,).

        ``fine`` are the means of each cell's parts, shape (cells, parts).
        """
        size = np.diff(self.starts)
        uneven = (fine.max(axis=1) > _UNEVEN * fine.min(axis=1)) & (size >= _PARTS**2)
        firsts = self.starts[:-1, None] + np.arange(_PARTS) * size[:, None] // _PARTS
        sizes = np.diff(np.append(firsts.ravel(), self.starts[-1]))
        return firsts[uneven].ravel(), np.repeat(np.where(uneven[:, None], fine, 1.0).ravel(), sizes)

    @property
    def resolved(self) -> tuple[int, int]:
        """First and last cell that sums of neighbours lift out of the noise, or the highest sum if none."""
        size = len(self.counts)
        first, last = size, -1
        high = np.sqrt(2.0 * np.log(len(_LENGTHS) * size)) + 0.5
        for length in _LENGTHS:
            if length > size:
                break
            sums, variance = (np.convolve(x, np.ones(length), "valid") for x in (self.counts, self.variance))
            found = np.flatnonzero(sums > high * np.sqrt(variance))
            if len(found):
                first = min(first, int(found[0]) + (length - 1) // 2)
                last = max(last, int(found[-1]) + length // 2)
        if last < 0:
            length = max(1, size // 8)
            first = last = int(np.convolve(self.counts, np.ones(length), "valid").argmax()) + length // 2
        return first, min(last, size - 1)

    def rough(self, total: float) -> Array:
        """A first guess of the means: counts averaged over neighbours, less the noise left in the average."""
        size = len(self.counts)
        away = np.arange(size)[:, None] - np.arange(size)
        weights = np.exp(-0.5 * (away / max(2.0, size / 24)) ** 2)
        weights /= weights.sum(axis=1, keepdims=True)
        noise = np.sqrt(weights**2 @ self.variance)
        rough = np.maximum(weights @ np.maximum(self.counts, 0.0) - noise, 0.0) + 0.02 * total / size
        return rough * (total / rough.sum())

    def scales(self) -> Iterator[Array]:
        """Places of all cells' parts on scales on which the density may be smooth, each (cells * parts,).

        The resolved cells lie between 0 and 1, on the column's own scale or on one that is logarithmic away
        from zero. Outside of them all scales are in proportion to the column's own.
        """
        ends, (first, last) = self.ends, self.resolved
        low, high = ends[max(first - 1, 0)], ends[min(last + 2, len(ends) - 1)]
        mass = np.cumsum(self.counts.clip(0.0))
        median = float(ends[int(np.searchsorted(mass, mass[-1] / 2))])
        least = 1e-9 * (ends[-1] - ends[0])
        cuts = np.arange(_PARTS * len(self.counts) + 1) / _PARTS
        ends = np.interp(cuts, np.arange(len(ends)), ends)
        for around in (np.inf, *(max(abs(median) * part, least) for part in _AROUND_ZERO)):
            if np.isinf(around):
                scale, (at_low, at_high) = ends.clip(low, high), np.ones(2)
            else:
                scale = np.arcsinh(ends.clip(low, high) / around)
                at_low, at_high = 1.0 / np.hypot(np.array([low, high]), around)
            start, whole = scale[0], scale[-1] - scale[0]
            below, above = np.minimum(ends - low, 0.0), np.maximum(ends - high, 0.0)
            if np.isfinite(around):
                below, above = _slower(below, -low), _slower(above, high)
            scale = scale + at_low * below + at_high * above
            scale = (scale - start) / whole
            yield ((scale[1:] + scale[:-1]) / 2).clip(-_FARTHEST, _FARTHEST)
