"""The distribution of a numeric column, estimated from its noisy counts (post-processing, free of cost).

A column with few declared values is counted value by value, one with more twice: in intervals, and value by
value. Either count gives

- a smooth density (`dpsynth.model.columns.logspline`), fitted to cells that are as fine as the noise allows
  (`dpsynth.model.columns.cells`), on the scale of greatest evidence.
- point masses: values that stand out of the density further than noise reaches among so many values. They
  keep their own count.
- a habit of writing numbers down (`dpsynth.model.columns.habits`).
- overdispersion: how much single values deviate from all this beyond noise. Each keeps that part of its noisy
  deviation which is not noise (the posterior mean of Gaussians).

It reads the noisy counts, the public grid, the public noise and the released number of records, nothing else.
"""

from __future__ import annotations

import dataclasses

import numpy as np
from numpy.typing import NDArray

from dpsynth.model.columns.cells import Cells, stands_out
from dpsynth.model.columns.habits import Residues, find_habit
from dpsynth.model.columns.logspline import Array, Design, Fitted, fit, start
from dpsynth.model.columns.projection import norm_sub
from dpsynth.table.grid import Grid
from dpsynth.table.marginals import MOST_CELLS, intervals

#: Columns with fewer cells are projected as they are: there is nothing to be smooth among.
_FEWEST_CELLS = 8
#: Columns with at most so many values get a released cell for each.
MOST_SINGLE = 4096
#: Weights of the smoothness penalty that are tried.
_SMOOTHNESS = 10.0 ** np.arange(4.0, -3.1, -1.0)
#: Most variance beyond Poisson, as a multiple of the squared mean.
_MOST_DISPERSION = 2.0
#: Rounds of finding more point masses and fitting what is left.
_ROUNDS = 2


def denoise(
    grid: Grid,
    noisy: Array,
    std: float,
    n: float,
    values: Array | None = None,
    residues: Array | None = None,
) -> tuple[Grid, Array]:
    """Estimate a column's distribution from noisy counts.

    ``noisy``, shape (grid.size,): counts with independent Gaussian noise.
    ``std``: standard deviation of that noise, 0 if there is none.
    ``values``, shape (declared values + special codes + missing,), optional: counts of every declared value,
        with independent noise of the same deviation.
    ``residues``, shape (modulus,), optional: counts of values by the residue of their number, with the same
        noise, in a column that is counted value by value.

    Returns grid : Grid: cells that the estimate is on, without ``values`` those of the public grid. Also
    counts : array, shape (grid.size,): non-negative, sum n. Without order, with fewer than 8 cells, or
    without noise and ``values``, these are those of `norm_sub`.

    Examples
    --------
    >>> from dpsynth.table.column import Column
    >>> grid = Grid.from_column(Column(name="age", kind="integer", lower=0, upper=99))
    >>> true = 4000 * np.exp(-((np.arange(100) - 40) ** 2) / 200) / 25.066
    >>> noisy = true + 10 * np.random.default_rng(0).standard_normal(100)
    >>> def error(counts):
    ...     return np.abs(counts - true).sum()
    >>> _, counts = denoise(grid, noisy, 10.0, 4000)
    >>> bool(error(counts) < error(norm_sub(noisy, 4000)) / 2)
    True
    """
    if not grid.column.is_numeric or (values is None and (not std > 0 or grid.present < _FEWEST_CELLS)):
        return grid, norm_sub(noisy, n)
    apart = noisy[grid.present :]
    if values is not None:
        apart = (apart + values[len(values) - len(apart) :]) / 2
    apart = apart.clip(0.0, n)
    total = n - float(apart.sum())
    if total <= 0:
        return grid, norm_sub(noisy, n)
    present: Array | None = noisy[: grid.present]
    if values is None and _zeros_stand_out(grid, noisy, std):
        # They are no part of a density, which would have its only place there.
        zeros = min(float(noisy[0]), 0.999 * total)
        assert grid.starts is not None
        rest = dataclasses.replace(grid, starts=grid.starts[1:])
        counts = _Column(Cells.of(rest, noisy[1 : grid.present], None, std), std, total - zeros).counts()
        return grid, np.concatenate([[zeros], counts, apart])
    if values is not None:
        values = values[: len(values) - len(apart)]
    elif grid.starts is not None and grid.values_per_cell.max() == 1:
        # Every value has a cell: its intervals are sums.
        present, values, grid = None, present, intervals(grid.column, MOST_CELLS)
    found = _Column(Cells.of(grid, present, values, std), std, total, residues)
    if values is None:
        return grid, np.concatenate([found.counts(), apart])
    starts, counts, habit = found.released()
    return Grid(grid.column, starts, None, habit), np.concatenate([counts, apart])


def _zeros_stand_out(grid: Grid, noisy: Array, std: float) -> bool:
    """Whether the first of several intervals is one value that holds far more than its neighbours do."""
    if grid.starts is None or grid.starts[1] > 1 or grid.values_per_cell.max() == 1:
        return False
    around = float(noisy[1:9].clip(0.0).sum() / (grid.starts[9] - 1)) if grid.present > 8 else 0.0
    return bool(noisy[0] > around + max(_reach(grid.present) * std, around))


class _Column:
    """A fitted column, with ``total`` records that have a value."""

    def __init__(self, cells: Cells, std: float, total: float, residues: Array | None = None) -> None:
        self.cells, self.values, self.std, self.total = cells, cells.values, std, total
        self.residues = residues
        self.factor = np.ones(1)
        self._fit()
        for _ in range(_ROUNDS):
            if self.values is None or not self._more_point_masses(self.values):
                break
            self._fit()

    def _fit(self) -> None:
        """Fit the density of what is no point mass, with its habit, on the scale of greatest evidence."""
        cells, total = self.cells, max(self.total - self.cells.heavy_total, 1e-3 * self.total)
        # How well the total is known: by one noisy cell (the missing one) or better, and to a hundredth.
        known = (total, self.std**2 + 1e-4 * total)
        rough = cells.rough(total)
        variance = cells.variance + rough
        best: tuple[Design, Fitted] | None = None
        for places in cells.scales():
            design = Design.of(places, cells.widths, rough)
            fitted = fit(design, cells.counts, variance, known, start(design, rough), _SMOOTHNESS)
            if best is None or fitted.evidence > best[1].evidence:
                best = design, fitted
        assert best is not None
        design, fitted = best
        if self.values is not None:
            self.factor = self._habit(fitted.means, self.values)
            if len(self.factor) > 1:
                parts = len(design.offset) // len(cells.counts)
                habit = np.repeat(np.log(cells.average(self.factor)), parts)
                design = dataclasses.replace(design, offset=design.offset + habit)
        for around in (np.array([0.1, 0.3, 1.0, 3.0, 10.0]), np.ones(1)):
            dispersion = _dispersion(cells.counts, fitted.means, cells.variance)
            variance = cells.variance + fitted.means + dispersion * fitted.means**2
            # Cells beyond two deviations count less and less: point masses must not bend the density.
            beyond = np.maximum(np.abs(cells.counts - fitted.means) / np.sqrt(variance) - 2.0, 0.0)
            trusted = variance * (1.0 + beyond**2)
            smoothness = fitted.smoothness * around
            fitted = fit(design, cells.counts, trusted, known, fitted.coefficients, smoothness)
        self.means = fitted.means * (total / fitted.means.sum())
        self.fine = fitted.fine

    def _habit(self, means: Array, values: Array) -> Array:
        """Factors of the residues of the values' numbers, without point masses."""
        column, heavy = self.cells.grid.column, self.cells.heavy
        mu = np.where(heavy, 0.0, self.cells.by_value(means))
        sources = [Residues.of_values(column, mu, values, self.std)]
        if self.residues is not None:
            modulus = len(self.residues)
            residue = np.arange(len(values)) % modulus
            expected, apart, masses = (
                np.bincount(residue, weights, modulus).astype(np.float64)
                for weights in (mu, heavy, values * heavy)
            )
            variance = self.std**2 * (1.0 + apart)
            sources.append(Residues.of_counts(column, expected, self.residues - masses, variance))
        return find_habit(column, sources)

    def _by_value(self) -> Array:
        """The density's mean of each value, 0 at point masses."""
        means = self.cells.by_value(self.means / np.maximum(self.cells.average(self.factor), 1e-12))
        return np.where(self.cells.heavy, 0.0, means * self.cells.residues(self.factor))

    def _more_point_masses(self, values: Array) -> bool:
        before = self.cells.heavy
        heavy = before | stands_out(values, self._by_value(), self.std)
        self.cells = self.cells.with_heavy(heavy)
        return bool((heavy != before).any())

    def counts(self) -> Array:
        """Counts of the cells, which sum to the total."""
        return _scaled(_kept(self.cells.counts, self.means, self.cells.variance), self.total)

    def released(self) -> tuple[NDArray[np.int64], Array, Array | None]:
        """Starts of the released cells, their counts, and the habit within them."""
        assert self.values is not None
        heavy = self.cells.heavy
        if len(self.values) <= MOST_SINGLE:
            means = self._by_value()
            counts = _kept(self.values, means, np.full(len(means), self.std**2))
            counts = np.where(heavy, np.maximum(self.values, 0.0), counts)
            return np.arange(len(counts) + 1), _scaled(counts, self.total), None
        cuts, slant = self.cells.parts(self.fine)
        masses = np.flatnonzero(heavy)
        starts = np.unique(np.concatenate([self.cells.starts, masses, masses + 1, cuts]))
        body = np.append(0.0, np.cumsum(np.where(heavy, 0.0, slant * self.cells.residues(self.factor))))
        cells = np.searchsorted(self.cells.starts, starts[:-1], side="right") - 1
        whole = np.diff(body[self.cells.starts])
        kept = _kept(self.cells.counts, self.means, self.cells.variance)
        density = np.divide(kept, whole, out=np.zeros_like(kept), where=whole > 0)
        counts = density[cells] * np.diff(body[starts])
        counts += np.where(heavy[starts[:-1]], np.maximum(self.values[starts[:-1]], 0.0), 0.0)
        return starts, _scaled(counts, self.total), self.factor if len(self.factor) > 1 else None


def _scaled(counts: Array, total: float) -> Array:
    mass = counts.sum()
    return counts * (total / mass) if mass > 0 else np.full(len(counts), total / len(counts))


def _kept(noisy: Array, means: Array, variance: Array) -> Array:
    """The means, with that part of each noisy deviation from them which is not noise."""
    own = means + _dispersion(noisy, means, variance) * means**2
    kept = own / np.maximum(own + variance, 1e-300)
    far = np.abs(noisy - means) > _reach(len(noisy)) * np.sqrt(own + variance)
    return np.maximum(means + np.where(far, 1.0, kept) * (noisy - means), 0.0)


def _reach(size: int) -> float:
    """Standard deviations that the largest of so many Gaussian draws hardly passes."""
    return float(np.sqrt(2.0 * np.log(size)) + 1.0)


def _dispersion(noisy: Array, means: Array, variance: Array) -> float:
    """Variance of the cells beyond noise and Poisson, in squared means (method of pairwise statistics)."""
    weight = (means / np.maximum(variance + means, 1e-300)) ** 2
    beyond = ((noisy - means) ** 2 - variance - means) * weight
    return float(np.clip(beyond.sum() / max((means**2 * weight).sum(), 1e-9), 0.0, _MOST_DISPERSION))
