"""Distributions of all columns, from their noisy counts (post-processing).

Counts of categories are projected on the simplex scaled to the number of records ("norm-sub", theory of
section 1.8). Those of numbers become a distribution (`dpsynth.model.columns.density`). Each histogram's sum
is one more measurement of the number of records. If that is not public, it is estimated from all of them, so
its error falls on all values in proportion.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dpsynth.model.columns.blocks import denoise_blocks
from dpsynth.model.columns.cycles import with_cycles
from dpsynth.model.columns.density import denoise
from dpsynth.model.columns.habits import with_habit
from dpsynth.model.columns.projection import norm_sub
from dpsynth.releases.bins import ResidueAxis
from dpsynth.releases.gaussian import Array
from dpsynth.releases.marginals import MarginalsRelease
from dpsynth.table.grid import Grid
from dpsynth.table.marginals import Marginals


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
