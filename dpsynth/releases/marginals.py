"""Private one-way histograms: the first thing bought and the base of encoder, prior and post-processing.

Every column is counted on its public grid (`dpsynth.table.grid`), Gaussian noise is added, and the counts
are projected on the simplex scaled to the number of records ("norm-sub", theory of section 1.8); those of
numeric columns are first estimated with the noise's law in view (`dpsynth.releases.denoising`). Fine ordered
grids can be counted as a dyadic tree with least-squares consistency instead (Hay et al. 2010).

Where three columns or more may be missing, the number of missing values a record is one more histogram
(`dpsynth.releases.panels`). Adjacency is add/remove one record throughout. A record lies in exactly one cell
of each histogram (one node of each level for a tree), so all counts together have L2 sensitivity
``sqrt(sum of levels)``, which is ``sqrt(histograms)`` without trees; one Gaussian mechanism releases them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from dpsynth.errors import ConfigError
from dpsynth.releases.axes import GridAxis, MissingAxis
from dpsynth.releases.denoising import denoise
from dpsynth.releases.gaussian import Array, GaussianRelease
from dpsynth.releases.hierarchy import consistent, levels_of, nonnegative_leaves, tree_counts
from dpsynth.releases.panels import panel_of
from dpsynth.releases.projection import norm_sub
from dpsynth.releases.records import Records
from dpsynth.table.grid import Grid
from dpsynth.table.marginals import Marginals, make_grids, public_sizes
from dpsynth.table.schema import Schema

#: Ordered grids with more cells than this are counted as a tree under ``method="hierarchical"``; below it
#: the tree's extra noise (a factor of its levels) costs more than its ranges save.
TREE_FROM_CELLS = 64
Method = Literal["histogram", "hierarchical"]


@dataclass(frozen=True, kw_only=True)
class MarginalsRelease(GaussianRelease[Marginals]):
    """Every column's histogram, and the number of missing values a record.

    Parameters
    ----------
    schema : Schema
    n : float
        The number of records that the projection scales to: ``schema.n_public`` or a noisy count, never the
        length of a table.
    method : {"histogram", "hierarchical"}
        "hierarchical" counts ordered grids of more than 64 cells as dyadic trees.
    counted_in : (int, int), optional
        Cells and values of an earlier release whose grids are kept; by default a rule on public numbers.

    Raises
    ------
    ConfigError
        If ``noise_multiplier`` or ``n`` is not positive, or ``method`` is unknown.

    References
    ----------
    Wang et al. (2020), section 4.3 (norm-sub); Hay et al. (2010), Theorem 3.

    Examples
    --------
    >>> import pandas as pd
    >>> from dpsynth.accounting import Ledger
    >>> from dpsynth.releases.records import FrameRecords
    >>> from dpsynth.table.schema import Column
    >>> schema = Schema(columns=(Column(name="sex", kind="binary", categories=("F", "M")),))
    >>> frame = schema.conform(pd.DataFrame({"sex": ["F"] * 30 + ["M"] * 10})).frame
    >>> release = MarginalsRelease(schema=schema, n=40, noise_multiplier=None)
    >>> exact = Ledger().run(release, FrameRecords(frame), np.random.default_rng(0))
    >>> exact.probabilities[0]
    array([0.75, 0.25])
    """

    schema: Schema
    n: float
    method: Method = "histogram"
    counted_in: tuple[int, int] | None = None
    name = "one-way marginals"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.n > 0:
            raise ConfigError(f"n is {self.n}, but must be greater than 0")
        if self.method not in ("histogram", "hierarchical"):
            raise ConfigError(f"method is {self.method!r}, but must be 'histogram' or 'hierarchical'")

    @cached_property
    def sizes(self) -> tuple[int, int]:
        """Cells and values of numeric columns whose schema does not say, from public numbers."""
        return self.counted_in or public_sizes(self.schema, self.n, self.noise_multiplier or 0.0)

    @cached_property
    def grids(self) -> tuple[Grid, ...]:
        """Public cells of each column."""
        return make_grids(self.schema, *self.sizes)

    @property
    def panel(self) -> tuple[int, ...]:
        """Columns whose missing values are counted together."""
        return panel_of(self.grids)

    @property
    def sensitivity_squared(self) -> int:
        """Squared L2 sensitivity of all counts together: the number of cells that hold one record.

        Examples
        --------
        >>> from dpsynth.table.schema import Column
        >>> columns = (Column(name="a", kind="binary", categories=("n", "y")),
        ...            Column(name="b", kind="continuous", lower=0, upper=1, cells=1024))
        >>> flat = MarginalsRelease(schema=Schema(columns=columns), n=500, noise_multiplier=2.0)
        >>> tree = MarginalsRelease(
        ...     schema=Schema(columns=columns), n=500, noise_multiplier=2.0, method="hierarchical"
        ... )
        >>> flat.sensitivity_squared, tree.sensitivity_squared
        (2, 11)
        """
        columns = sum(levels_of(g.present) if self._is_tree(g) else 1 for g in self.grids)
        return columns + bool(self.panel)

    @property
    def l2_sensitivity(self) -> float:
        """Square root of the number of cells that hold one record."""
        return float(np.sqrt(self.sensitivity_squared))

    @property
    def sensitivity(self) -> str:
        """In words, for the ledger."""
        histograms = len(self.schema) + bool(self.panel)
        base = f"sqrt({histograms}) (one count in each of {len(self.schema)} columns"
        base += " and one in the number of missing values)" if self.panel else ")"
        return base if self.method == "histogram" else f"{base}, with a count in every level of a tree"

    @property
    def detail(self) -> str:
        """The noise in the words of somebody who reads a table of counts."""
        of_columns = f"{self.method} of {len(self.schema)} columns"
        if self.noise_multiplier is None:
            return f"{of_columns}, no noise"
        return (
            f"{of_columns}, Gaussian noise: a count is off by about {self.noise_std:.3g} of {self.n:,.0f} "
            f"records ({100 * self.noise_std / self.n:.2g} %)"
        )

    def query(self, records: Records) -> list[Array]:
        """Exact counts: a private quantity, never to be shown.

        Returns
        -------
        list of arrays
            For each column its levels, from the root's children down to the leaves, then its missing cell;
            last the records with 0, 1, ... missing values, where there is a panel.
        """
        axes = [(GridAxis(grid),) for grid in self.grids]
        names = tuple(self.schema.names[j] for j in self.panel)
        counted = records.counts([*axes, (MissingAxis(names),)] if self.panel else axes)
        counts: list[Array] = []
        for grid, histogram in zip(self.grids, counted, strict=False):
            if self._is_tree(grid):
                counts.extend(tree_counts(histogram[: grid.present]))
                counts.append(histogram[grid.present :])
            else:
                counts.append(histogram)
        return [*counts, *counted[len(self.grids) :]]

    def finish(self, noisy: Sequence[Array]) -> Marginals:
        """Non-negative counts that sum to ``n``, column by column."""
        probabilities, at = [], 0
        for grid in self.grids:
            if self._is_tree(grid):
                depth = levels_of(grid.present)
                counts = _tree_histogram(
                    list(noisy[at : at + depth]), noisy[at + depth], self.n, grid.present
                )
                at += depth + 1
            else:
                counts = denoise(grid, noisy[at], self.noise_std, self.n)
                at += 1
            probabilities.append(counts / counts.sum())
        law = norm_sub(noisy[at], self.n) / self.n if self.panel else None
        cells, values = self.sizes
        return Marginals(
            grids=self.grids,
            probabilities=tuple(probabilities),
            n=float(self.n),
            noise_multiplier=self.noise_multiplier,
            cells=cells,
            values=values,
            missing_law=law,
            method=self.method,
        )

    def _is_tree(self, grid: Grid) -> bool:
        return self.method == "hierarchical" and grid.ordered and grid.present > TREE_FROM_CELLS


def _tree_histogram(
    levels: list[NDArray[np.float64]], missing: NDArray[np.float64], n: float, cells: int
) -> NDArray[np.float64]:
    """Turn noisy tree levels and the noisy missing cell into non-negative cell counts with sum n."""
    # Two top nodes and the missing cell share n; the top nodes' own sum is the least noisy split of it.
    split = norm_sub(np.concatenate([[levels[0].sum()], missing]), n)
    real = [np.arange(len(level)) * 2 ** (len(levels) - 1 - i) < cells for i, level in enumerate(levels)]
    tree = consistent(
        [np.where(r, level, 0.0) for r, level in zip(real, levels, strict=True)], float(split[0])
    )
    return np.concatenate([nonnegative_leaves(tree, float(split[0]), cells), split[1:]])
