"""The distribution of a column of more than a million values, from its noisy counts (post-processing).

Such a column is counted in intervals, in blocks of neighbouring values, and by residues: the places of values
in their blocks.

- A value that is frequent makes one block stand out of its neighbours, and one residue of all residues. The
  residue is its place in the block. It keeps a cell of its own.
- An interval of which few blocks are full, such as some years in thousands, is estimated block by block.
- All other records follow the density of the intervals, with the habit that the residues show.

A false pair of block and residue moves records within their block only.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dpsynth.model.columns.cells import stands_out
from dpsynth.model.columns.density import denoise
from dpsynth.model.columns.habits import Array, with_habit
from dpsynth.releases.bins import ResidueAxis
from dpsynth.table.column import Column
from dpsynth.table.grid import Grid

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
