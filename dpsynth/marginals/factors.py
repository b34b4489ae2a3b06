"""From noisy tables to the factors of a base model: post-processing, free of privacy cost.

Tables are made non-negative (norm-sub) and fitted to the released single-column counts. For a table of the
outcome and two columns, two-way tables with the outcome are more precise. They come from tables of their own
and from sums of all that hold the column, weighted by their precision. The three-way table then adds only how
the two columns depend on each other, which is nearly the same in each class. Most of its content beyond the
two-way tables is noise (Bishop, Fienberg and Holland 1975, "Discrete multivariate analysis", section 3.5:
without three-factor interaction). It is kept by the positive-part rule of James and Stein (1961). This is the
part of its sum of squares beyond that of noise and of sampled independent columns. The rule is rough. Noise
of the two-way tables adds up to half as much again if the outcome is rare.

Noise that is cut at zero leaves records all over a table. Two ordered columns that are nearly functions of
each other have hardly any in most cells, so these would be most of their spread. A Gaussian copula of their
strength says which cells these are (`dpsynth.marginals.coupling`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from dpsynth.marginals.binning import Bins
from dpsynth.marginals.coupling import Scored, tight_law
from dpsynth.marginals.density import fit_margins
from dpsynth.marginals.statistics import OUTCOME_SHARE, Family
from dpsynth.table.simplex import norm_sub

Array = NDArray[np.float64]
#: Parent columns, child column and the table of counts whose axes are the parents' bins and then the child's.
Factor = tuple[tuple[int, ...], int, Array]

#: Before it is fitted every cell of a table keeps this fraction of an even share, so that fits and draws stay
#: defined.
_LEAST_CELL = 1e-4
#: Least probability of a bin given others.
_RAREST = 1e-12
#: Of a tight pair, the cells of least probability that hold together at most this part of the records.
_HARDLY = 0.002
#: Deviations of noise that their sum loses.
_SURE = 1.64


def fit_factors(
    families: Sequence[Family], counts: Mapping[Family, Array], bins: Bins, noise_std: float
) -> tuple[Factor, ...]:
    """The factors of a base model.

    ``counts``: noisy tables. With three-way ones also those of the root and each column alone, to which they
        are fitted.
    ``noise_std``: standard deviation of the noise in a cell of a three-way table.
    """
    pairs: dict[int, Array] = {}
    if any(len(family) > 2 for family in families):
        pairs = {
            child: _clean(_with_outcome(root, child, counts), (root, child), bins)
            for root, *_, child in families
        }

    def fitted(family: Family) -> Array:
        if not pairs:
            return _pair(counts[family], family, bins, noise_std)[0]
        if len(family) == 2:
            return pairs[family[1]]
        return _three_way(counts[family], family, pairs, bins, noise_std)

    return tuple((family[:-1], family[-1], fitted(family)) for family in families)


def _clean(noisy: Array, family: Sequence[int], bins: Bins) -> Array:
    """Project a noisy table on the simplex and fit it to the released single-column counts."""
    return _fitted(norm_sub(noisy.ravel(), bins.n).reshape(noisy.shape), family, bins)


def _fitted(table: Array, family: Sequence[int], bins: Bins) -> Array:
    margins = [((axis,), bins.n * bins.binnings[j].probabilities) for axis, j in enumerate(family)]
    return fit_margins(np.maximum(table, _LEAST_CELL * bins.n / table.size), margins)


def _pair(
    noisy: Array, family: Sequence[int], bins: Bins, noise_std: float
) -> tuple[Array, NDArray[np.bool_]]:
    """A table of two columns, and its cells where a Gaussian copula of a tight pair has hardly any record.

    They are read together: what their sum has beyond noise stays. Cells that stand out of it are none.
    """
    found = _clean(noisy, family, bins)
    few = _hardly_any(found, [_scored(bins, j) for j in family], noise_std / bins.n)
    few &= noisy < (1.0 + math.sqrt(2.0 * math.log(noisy.size))) * noise_std
    if not few.any():
        return found, few
    beyond = float(noisy[few].sum()) - _SURE * noise_std * math.sqrt(few.sum())
    held = min(max(beyond, 0.0), bins.n)
    counts = np.empty(noisy.shape)
    counts[few], counts[~few] = norm_sub(noisy[few], held), norm_sub(noisy[~few], bins.n - held)
    return _fitted(counts, family, bins), few


def _hardly_any(table: Array, scored: Sequence[Scored | None], noise: float) -> NDArray[np.bool_]:
    """The cells of a tight pair's table that hold hardly a record by their correlation. None of another."""
    few = np.zeros(table.shape, dtype=bool)
    one, other = scored
    if one is None or other is None or not noise:
        return few
    law = tight_law(table[: one.size, : other.size], one, other, noise)
    if law is not None:
        order = np.argsort(law, axis=None)
        least = order[np.cumsum(law.ravel()[order]) < _HARDLY]
        few[np.unravel_index(least, law.shape)] = True
    return few


def _scored(bins: Bins, column: int) -> Scored | None:
    """The bins of an ordered column."""
    grid, binning = bins.grids[column], bins.binnings[column]
    size = int(binning.labels[: grid.present].max()) + 1 if grid.ordered else 0
    return Scored.of(binning.probabilities[:size]) if size > 1 else None


def _with_outcome(root: int, column: int, counts: Mapping[Family, Array]) -> Array:
    """Noisy counts of the root and one column, from all tables that hold both."""
    precision = OUTCOME_SHARE
    total = precision * counts[root, column]
    for family, table in counts.items():
        if len(family) > 2 and column in family[1:]:
            third = 3 - family.index(column)
            total = total + table.sum(axis=third) / table.shape[third]
            precision += 1.0 / table.shape[third]
    return total / precision


def _three_way(
    noisy: Array, family: Family, pairs: Mapping[int, Array], bins: Bins, noise_std: float
) -> Array:
    """A table of the root and two columns, which keeps the two-way tables of the root."""
    with_root = [((0, 1), pairs[family[1]]), ((0, 2), pairs[family[2]])]
    together, few = _pair(noisy.sum(axis=0), family[1:], bins, noise_std * math.sqrt(len(noisy)))
    without = fit_margins(np.ones_like(noisy), [*with_root, ((1, 2), together)])
    gap = noisy - without
    beyond = gap
    for axis in range(3):
        beyond = beyond - beyond.mean(axis=axis, keepdims=True)
    # one bin holds everything, and rounding may make its probability more than 1
    spread = [max(1.0 - float((bins.binnings[j].probabilities ** 2).sum()), 0.0) for j in family]
    sampled = bins.n * np.prod(spread)
    expected = np.prod([size - 1 for size in noisy.shape]) * noise_std**2 + sampled
    square = float((beyond**2).sum())
    believed = 1.0 - expected / square if square > expected else 0.0
    found = norm_sub((without + believed * np.where(few, 0.0, gap)).ravel(), bins.n).reshape(noisy.shape)
    return fit_margins(np.maximum(found, _LEAST_CELL * bins.n / noisy.size), with_root)


def conditional(table: Array) -> Array:
    """Distribution of a table's last axis given the others, uniform where the table is empty."""
    total = table.sum(axis=-1, keepdims=True)
    even = np.full(table.shape, 1.0 / table.shape[-1])
    return np.maximum(np.divide(table, total, out=even, where=total > 0), _RAREST)
