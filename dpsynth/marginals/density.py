"""The distribution of a numeric column, estimated from its noisy counts (post-processing, free of cost).

A column with few declared values is counted value by value, one with more twice: in intervals, and value by
value. Either count gives

- a smooth density (`dpsynth.marginals.density`), fitted to cells that are as fine as the noise allows
  (`dpsynth.marginals.cells`), on the scale of greatest evidence.
- point masses: values that stand out of the density further than noise reaches among so many values. They
  keep their own count.
- a habit of writing numbers down (`dpsynth.marginals.cells`).
- overdispersion: how much single values deviate from all this beyond noise. Each keeps that part of its noisy
  deviation which is not noise (the posterior mean of Gaussians).

It reads the noisy counts, the public grid, the public noise and the released number of records, nothing else.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.interpolate import BSpline

from dpsynth.marginals.cells import Cells, Residues, find_habit, stands_out
from dpsynth.table.grid import MOST_CELLS, Grid, intervals
from dpsynth.table.simplex import norm_sub

# ------------------------------------------------------------------------------------------------
# Smooth densities from noisy counts: a penalised spline of the logarithm, weighted by the evidence.
#
# Cell i of a histogram has a count of mean mu_i and is seen with variance v_i. Its parts have means that add
# up to mu_i. Each is ``exp((X b)_k + offset_k)``, and X holds cubic B-splines of the part's place (Eilers
# and Marx 1996). The penalty on third differences of the spline's coefficients (Silverman 1982) leaves a
# Gaussian if the counts show nothing more. No cell outside the places from 0 to 1 stands out of the noise.
# There the logarithm is a straight line: an exponential tail. An asymmetric penalty (Eilers 2005) makes it
# fall at least half as steeply as the density falls from its median to the tail. A flatter one would spread
# over all cells far out what noise adds to their sum.
#
# Source: Eilers and Marx (1996), "Flexible smoothing with B-splines and penalties", section 2. Silverman
# (1982), "On the estimation of a probability density function by the maximum penalized likelihood method",
# section 3. Eilers (2005), "Unimodal smoothing". MacKay (1992), "Bayesian interpolation", section 4 (the
# evidence).

Array = NDArray[np.float64]

#: B-splines at most; a bump narrower than about two of their spacings is left to single cells.
_MOST_SPLINES = 24
#: Order of the differences that are penalised: 3 leaves log-quadratic densities free.
_ORDER = 3
#: A tail falls at least so steeply, as a part of the mean slope from the median to where the tail begins.
_LEAST_FALL = 0.5
#: Weight of the penalty on a tail that falls less, which forbids it in effect.
_TURN = 1e4
#: Keeps the coefficients finite where neither counts nor penalties constrain them.
_RIDGE = 1e-4
#: Range of a mean's logarithm: beyond it a mean is none, and numbers near the end of their range are slow.
_LOGS = (-40.0, 30.0)


@dataclass(frozen=True, eq=False)
class DensityDesign:
    """Design of a density, from public values and from which cells stand out.

    ``basis``, shape (cells * parts, splines).
    ``offset``, shape (cells * parts,): logarithm of a part's mean count under an even density.
    ``penalty``, shape (splines, splines): of third differences.
    ``tails``, shape (splines,): slopes of the tails there are, as they rise away from the resolved cells, in
        the coefficients.
    """

    basis: Array
    offset: Array
    penalty: Array
    tails: tuple[Array, ...]

    @classmethod
    def of(cls, places: Array, widths: Array, rough: Array) -> DensityDesign:
        """Design of cells at ``places``, of which those outside 0 to 1 are in the tails.

        ``widths`` are those of an even density, and sum to 1. ``rough`` is a first guess of the means. There
        are as many places for each cell as it has parts.
        """
        parts = len(places) // len(widths)
        widths, rough = (np.repeat(of_cells / parts, parts) for of_cells in (widths, rough))
        inside = places.clip(0.0, 1.0)
        resolved = ((places >= 0) & (places <= 1)).sum() // parts
        size = int(np.clip(resolved, _ORDER + 3, _MOST_SPLINES))
        spacing = 1.0 / (size - 3)
        splines = BSpline(spacing * np.arange(-3, size + 1), np.eye(size), 3)
        slope = splines.derivative()
        basis = splines(inside) + slope(inside) * (places - inside)[:, None]
        third = np.diff(np.eye(size), _ORDER, axis=0)
        rising = [-slope(0.0)] if places[0] < 0 else []
        rising += [slope(1.0)] if places[-1] > 1 else []
        level = np.log(rough / widths)
        median = int(np.searchsorted(np.cumsum(rough), rough.sum() / 2))
        offset = np.log(widths * rough.sum())
        for edge, outward in ((0.0, -places), (1.0, places - 1.0)):
            away = max(abs(edge - places[median]), spacing)
            fall = max(level[median] - float(np.interp(edge, places, level)), 0.0) / away
            # Quadratic inside, where third differences do not see it, and straight in the tail.
            offset -= _LEAST_FALL * fall * ((inside - 1.0 + edge) ** 2 / 2 + np.maximum(outward, 0.0))
        return cls(basis, offset, third.T @ third, tuple(rising))

    @property
    def size(self) -> int:
        """Number of splines."""
        return self.basis.shape[1]

    def shape_penalty(self, b: Array) -> Array:
        """Penalty of the tails that rise at coefficients ``b``, shape (splines, splines)."""
        rising = [tail for tail in self.tails if tail @ b > 0]
        return _TURN * sum((np.outer(tail, tail) for tail in rising), np.zeros((self.size, self.size)))


@dataclass(frozen=True, eq=False)
class Fitted:
    """A fitted density.

    ``coefficients``, shape (splines,).
    ``means``, shape (cells,).
    ``fine``, shape (cells, parts): their parts.
    ``evidence``: logarithm, up to a constant that designs of the same counts share.
    ``smoothness``: weight of the third differences.
    """

    coefficients: Array
    means: Array
    fine: Array
    evidence: float
    smoothness: float


def start(design: DensityDesign, means: Array) -> Array:
    """Coefficients whose density is about ``means`` (positive), shape (splines,)."""
    basis = design.basis
    parts = len(basis) // len(means)
    means = np.repeat(means / parts, parts)
    normal = basis.T @ basis + 1e-3 * design.penalty + 1e-6 * np.eye(design.size)
    return np.linalg.solve(normal, basis.T @ (np.log(means) - design.offset))


def fit_density(
    design: DensityDesign,
    counts: Array,
    variance: Array,
    total: tuple[float, float],
    b: Array,
    smoothness: Array,
) -> Fitted:
    """The density of greatest evidence among penalty weights.

    ``counts``, ``variance``, shape (cells,): noisy counts, and their variance around the density's means.
    ``total``: known sum of the means, and the variance with which it is known.
    ``b``, shape (splines,): coefficients to start from.
    """
    best: Fitted | None = None
    current = b
    for smooth in smoothness:
        fixed = smooth * design.penalty + _RIDGE * np.eye(design.size)
        for _ in range(2):  # the tails' penalties are those that the fit before them broke
            penalty = fixed + design.shape_penalty(current)
            current, fine, loss, curvature = _newton(design, counts, variance, total, penalty, current)
        # Laplace: log evidence = -loss - log det(curvature) / 2 + log det(penalty) / 2. Without the tails'
        # penalties: a slope at its limit is fitted too, and would count as known beforehand.
        free = curvature - penalty + fixed
        evidence = -loss - (np.linalg.slogdet(free)[1] - np.linalg.slogdet(fixed)[1]) / 2
        if best is None or evidence > best.evidence:
            best = Fitted(current, fine.sum(axis=1), fine, float(evidence), float(smooth))
    assert best is not None
    return best


def _newton(
    design: DensityDesign,
    counts: Array,
    variance: Array,
    total: tuple[float, float],
    penalty: Array,
    b: Array,
) -> tuple[Array, Array, float, Array]:
    """Least squares under a quadratic penalty (Levenberg-Marquardt): coefficients, parts, loss, curvature."""
    columns = design.basis
    precision = 1.0 / variance

    def loss_of(b: Array) -> tuple[float, Array]:
        fine = np.exp(np.clip(columns @ b + design.offset, *_LOGS)).reshape(len(counts), -1)
        means = fine.sum(axis=1)
        misfit = ((counts - means) ** 2 * precision).sum() + (means.sum() - total[0]) ** 2 / total[1]
        return float(misfit + b @ penalty @ b) / 2, fine

    def curved(fine: Array) -> tuple[Array, Array, Array]:
        slope = (columns * fine.reshape(-1, 1)).reshape(*fine.shape, len(b)).sum(axis=1)
        whole = slope.sum(axis=0)
        curvature = slope.T @ (slope * precision[:, None]) + np.outer(whole, whole) / total[1] + penalty
        return slope, whole, curvature

    loss, fine = loss_of(b)
    damping = 1e-3
    for _ in range(30):
        (slope, whole, curvature), means = curved(fine), fine.sum(axis=1)
        gradient = slope.T @ ((means - counts) * precision) + whole * (means.sum() - total[0]) / total[1]
        gradient += penalty @ b
        scale = np.diag(np.diag(curvature) + 1e-9)
        for _ in range(12):
            step = np.linalg.solve(curvature + damping * scale, -gradient)
            tried, tried_fine = loss_of(b + step)
            if tried < loss:
                break
            damping *= 4.0
        else:
            break
        gain, b, loss, fine, damping = loss - tried, b + step, tried, tried_fine, max(damping / 5, 1e-8)
        if gain < 1e-4 * (1.0 + abs(loss)):
            break
    return b, fine, loss, curved(fine)[2]


# ------------------------------------------------------------------------------------------------
# Projection of noisy counts on the scaled simplex ("norm-sub") and fits to known margins.
#
# Norm-sub subtracts one number from all counts and cuts at zero, with the known total as the sum. It is the
# Euclidean projection on ``{x >= 0, sum x = total}`` (Wang et al. 2020, "Locally differentially private
# frequency estimation with consistency", section 4.3). Iterative proportional fitting (Deming and Stephan
# 1940) scales a positive table to given margins and is the I-projection on them. Both read released numbers
# only: post-processing, free of privacy cost.


def fit_margins(
    table: ArrayLike,
    margins: Sequence[tuple[tuple[int, ...], ArrayLike]],
    *,
    iterations: int = 60,
    tolerance: float = 1e-6,
) -> NDArray[np.float64]:
    """Scale a positive table until it has the given margins (iterative proportional fitting).

    ``table``, shape (k_1, ..., k_d): strictly positive wherever a margin is positive.
    ``margins``: the axes kept by a margin, ascending, and its values, shape ``(k_axis for axis in axes)``.
        All targets must have the same sum. If they contradict each other the last one holds exactly.
    ``tolerance``: stop when a pass changes no margin by more than this fraction of the total.

    Returns array, shape (k_1, ..., k_d).

    Source: Deming and Stephan (1940); Csiszar (1975), Theorem 3.2.

    Examples
    --------
    >>> fitted = fit_margins(np.ones((2, 2)), [((0,), [3.0, 1.0]), ((1,), [2.0, 2.0])])
    >>> fitted
    array([[1.5, 1.5],
           [0.5, 0.5]])
    """
    fitted = np.array(table, dtype=np.float64)
    steps = []
    for axes, target in margins:
        goal = np.asarray(target, dtype=np.float64)
        others = tuple(a for a in range(fitted.ndim) if a not in axes)
        shape = tuple(fitted.shape[a] if a in axes else 1 for a in range(fitted.ndim))
        steps.append((others, goal.reshape(shape)))
    for _ in range(iterations):
        largest = 0.0
        for others, goal in steps:
            current = fitted.sum(axis=others, keepdims=True)
            largest = max(largest, float(np.abs(current - goal).max(initial=0.0)))
            fitted *= np.divide(goal, current, out=np.zeros_like(goal), where=current > 0)
        if largest <= tolerance * max(float(fitted.sum()), 1e-300):
            break
    return fitted


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
        best: tuple[DensityDesign, Fitted] | None = None
        for places in cells.scales():
            design = DensityDesign.of(places, cells.widths, rough)
            fitted = fit_density(design, cells.counts, variance, known, start(design, rough), _SMOOTHNESS)
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
            fitted = fit_density(design, cells.counts, trusted, known, fitted.coefficients, smoothness)
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
