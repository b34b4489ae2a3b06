"""Private one-way histograms: the first thing bought and the base of encoder, prior and post-processing.

Every column is counted on its public grid (`dpsynth.table.grid`), Gaussian noise is added, and the counts
are projected on the simplex scaled to the number of records ("norm-sub", theory of section 1.8); those of
numeric columns are first estimated with the noise's law in view (`dpsynth.releases.denoise`). Fine ordered
grids can be counted as a dyadic tree with least-squares consistency instead (Hay et al. 2010).

Where three columns or more may be missing, the number of missing values a record is one more histogram
(`dpsynth.releases.panels`). Adjacency is add/remove one record throughout. A record lies in exactly one cell
of each histogram (one node of each level for a tree), so all counts together have L2 sensitivity ``sqrt(sum
of levels)``, which is ``sqrt(histograms)`` without trees; one Gaussian mechanism releases them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpsynth.accounting.events import events
from dpsynth.errors import ConfigError
from dpsynth.releases.denoise import denoise
from dpsynth.releases.hierarchy import consistent, levels_of, nonnegative_leaves, tree_counts
from dpsynth.releases.panels import missing_counts, panel_of
from dpsynth.releases.projection import norm_sub
from dpsynth.table.grid import Grid
from dpsynth.table.schema import Schema

if TYPE_CHECKING:
    from dp_accounting.dp_event import DpEvent

#: Cells of a numeric column that does not say, at most; without noise, exactly.
MOST_CELLS = 64
#: Values of a numeric column that may have a cell each, at most.
MOST_VALUES = 1024
#: Ordered grids with more cells than this are counted as a tree under ``method="hierarchical"``; below it
#: the tree's extra noise (a factor of its levels) costs more than its ranges save.
TREE_FROM_CELLS = 64


@dataclass(frozen=True, eq=False)
class Marginals:
    """Released one-way probabilities of every column; make them with `release_marginals`.

    Attributes
    ----------
    grids : tuple of Grid
        Public cells of each column, in the schema's order.
    probabilities : tuple of arrays, shapes (grid.size,)
        Non-negative, each sums to 1.
    n : float
        Number of records they stand for: public, or itself a noisy count; never a length.
    noise_multiplier : float or None
        Noise standard deviation over sensitivity; None: exact, and so not private.
    cells, values : int
        Of numeric columns whose schema does not say (see `make_grids`).
    missing_law : array, shape (k + 1,), or None
        Released probabilities of 0 to k missing values among the k columns that may be missing; None where
        they are fewer than three.
    """

    grids: tuple[Grid, ...]
    probabilities: tuple[NDArray[np.float64], ...]
    n: float
    noise_multiplier: float | None
    cells: int
    values: int = 2 * MOST_CELLS
    missing_law: NDArray[np.float64] | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """Column names, in the schema's order."""
        return tuple(grid.column.name for grid in self.grids)

    def to_state(self) -> tuple[dict[str, Any], dict[str, NDArray]]:
        """Return a JSON-able description and the arrays."""
        meta = {
            "n": self.n,
            "noise_multiplier": self.noise_multiplier,
            "cells": self.cells,
            "values": self.values,
        }
        arrays = {f"probabilities_{i}": p for i, p in enumerate(self.probabilities)}
        if self.missing_law is not None:
            arrays["missing_law"] = self.missing_law
        return meta, arrays

    @classmethod
    def from_state(cls, schema: Schema, meta: Mapping[str, Any], arrays: Mapping[str, NDArray]) -> Marginals:
        """Rebuild what `to_state` described."""
        cells = int(meta["cells"])
        values = int(meta.get("values", 2 * cells))  # models saved before values were a number of their own
        grids = make_grids(schema, cells, values)
        probabilities = tuple(np.asarray(arrays[f"probabilities_{i}"]) for i in range(len(grids)))
        for grid, p in zip(grids, probabilities, strict=True):
            if p.shape != (grid.size,):
                raise ConfigError(
                    f"column {grid.column.name!r} has {p.size} saved cells, the schema's grid {grid.size}"
                )
        law = arrays.get("missing_law")
        return cls(grids, probabilities, float(meta["n"]), meta["noise_multiplier"], cells, values, law)


def default_cells(n: float, noise_std: float) -> int:
    """Cells of a numeric column by a rule that reads no records.

    Wide cells blur a distribution by about 1 / k, noise of standard deviation s in k cells by about
    ``s k / n``; together they are smallest near ``k ~ sqrt(n / s)``. The factor 3.5 is from experience.

    Parameters
    ----------
    n : float
        Public or released number of records.
    noise_std : float
        Standard deviation of the noise in a cell; 0 without noise.

    Returns
    -------
    int, from 8 to `MOST_CELLS`

    Examples
    --------
    >>> default_cells(285, 17.0), default_cells(4000, 10.0), default_cells(4000, 0.0)
    (14, 64, 64)
    """
    return int(np.clip(round(3.5 * np.sqrt(n / max(noise_std, 1.0))), 8, MOST_CELLS))


def default_values(n: float, noise_std: float) -> int:
    """Most values of a column that get a cell each, by a rule that reads no records.

    A cell of its own shows how often a value is written down (tens, halves: habits that intervals spread
    evenly), but noise adds up over cells; cells whose average count is the noise's deviation or more are
    worth it.

    Parameters
    ----------
    n, noise_std : float
        As in `default_cells`.

    Returns
    -------
    int, from twice `default_cells` to `MOST_VALUES`

    Examples
    --------
    >>> default_values(285, 17.0), default_values(4500, 15.0), default_values(20_000, 10.0)
    (28, 300, 1024)
    """
    fewest = 2 * default_cells(n, noise_std)
    return int(np.clip(n / max(noise_std, 1.0), fewest, MOST_VALUES))


def public_sizes(schema: Schema, n: float, noise_multiplier: float) -> tuple[int, int]:
    """The ``cells`` and ``values`` of `make_grids` that a release of this noise uses."""
    noise_std = noise_multiplier * float(np.sqrt(len(schema)))
    return default_cells(n, noise_std), default_values(n, noise_std)


def make_grids(schema: Schema, cells: int = MOST_CELLS, values: int = 2 * MOST_CELLS) -> tuple[Grid, ...]:
    """Public grids of all columns.

    Parameters
    ----------
    schema : Schema
    cells : int
        Cells of a numeric column that declares neither ``cells`` nor few values.
    values : int
        Most values that get a cell each; on a logarithmic scale, where intervals at the lower end hold single
        values anyway, at most twice ``cells``.
    """
    return tuple(
        Grid.from_column(column, values if column.scale == "linear" else min(values, 2 * cells), cells)
        for column in schema.columns
    )


def query(
    frame: pd.DataFrame, grids: tuple[Grid, ...], method: str = "histogram"
) -> list[NDArray[np.float64]]:
    """Exact counts that `release_marginals` adds noise to: a private quantity, never to be shown.

    Adjacency add/remove one record; L2 sensitivity ``sqrt(sensitivity_squared(grids, method))``.

    Parameters
    ----------
    frame : DataFrame, shape (n, columns)
        Conformed to the schema.
    grids : tuple of Grid
        Of every column, from `make_grids`.
    method : {"histogram", "hierarchical"}

    Returns
    -------
    list of arrays
        For each column its levels, from the root's children down to the leaves, then its missing cell; last
        the records with 0, 1, ... missing values, where there is a panel.
    """
    counts: list[NDArray[np.float64]] = []
    for grid in grids:
        cells = grid.encode(frame[grid.column.name])
        histogram = np.bincount(cells, minlength=grid.size).astype(np.float64)
        if _is_tree(grid, method):
            counts.extend(tree_counts(histogram[: grid.present]))
            counts.append(histogram[grid.present :])
        else:
            counts.append(histogram)
    panel = panel_of(grids)
    return [*counts, missing_counts(frame, grids, panel)] if panel else counts


def sensitivity_squared(grids: tuple[Grid, ...], method: str = "histogram") -> int:
    """Squared L2 sensitivity of all counts together: the number of cells that hold one record.

    Examples
    --------
    >>> from dpsynth.table.schema import Column
    >>> columns = (Column(name="a", kind="binary", categories=("n", "y")),
    ...            Column(name="b", kind="continuous", lower=0, upper=1, cells=1024))
    >>> grids = make_grids(Schema(columns=columns))
    >>> sensitivity_squared(grids), sensitivity_squared(grids, "hierarchical")
    (2, 11)
    """
    _check_method(method)
    columns = sum(levels_of(g.present) if _is_tree(g, method) else 1 for g in grids)
    return columns + bool(panel_of(grids))


def release_marginals(
    frame: pd.DataFrame,
    schema: Schema,
    *,
    noise_multiplier: float | None,
    n: float,
    rng: np.random.Generator,
    method: str = "histogram",
) -> Marginals:
    """Release every column's histogram under differential privacy.

    Adjacency add/remove one record; L2 sensitivity `sensitivity_squared`, square root: of the number of
    histograms, or of released levels with ``method="hierarchical"``; costs ``marginals_event(...)``.

    Parameters
    ----------
    frame : DataFrame, shape (n, columns)
        Conformed to the schema.
    schema : Schema
    noise_multiplier : float or None
        Noise standard deviation over sensitivity. None releases exact counts: **not private**.
    n : float
        The number of records that the projection scales to: ``schema.n_public`` or a noisy count
        (`release_count`), never the length of the frame.
    rng : numpy Generator
        Source of the noise; seeded by the operating system where privacy matters.
    method : {"histogram", "hierarchical"}
        "hierarchical" counts ordered grids of more than 64 cells as dyadic trees.

    Returns
    -------
    Marginals

    Raises
    ------
    ConfigError
        If ``noise_multiplier`` or ``n`` is not positive, or ``method`` is unknown.

    References
    ----------
    Wang et al. (2020), section 4.3 (norm-sub); Hay et al. (2010), Theorem 3.

    Examples
    --------
    >>> from dpsynth.table.schema import Column
    >>> schema = Schema(columns=(Column(name="sex", kind="binary", categories=("F", "M")),))
    >>> frame = schema.conform(pd.DataFrame({"sex": ["F"] * 30 + ["M"] * 10})).frame
    >>> exact = release_marginals(frame, schema, noise_multiplier=None, n=40, rng=np.random.default_rng(0))
    >>> exact.probabilities[0]
    array([0.75, 0.25])
    """
    check_noise(noise_multiplier)
    if not n > 0:
        raise ConfigError(f"n is {n}, but must be greater than 0")
    _check_method(method)
    multiplier = 0.0 if noise_multiplier is None else noise_multiplier
    cells, values = public_sizes(schema, n, multiplier)
    grids = make_grids(schema, cells, values)
    scale = multiplier * np.sqrt(sensitivity_squared(grids, method))
    noisy = [c + scale * rng.standard_normal(c.shape) for c in query(frame, grids, method)]
    probabilities, at = [], 0
    for grid in grids:
        if _is_tree(grid, method):
            depth = levels_of(grid.present)
            counts = _tree_histogram(noisy[at : at + depth], noisy[at + depth], n, grid.present)
            at += depth + 1
        else:
            counts = denoise(grid, noisy[at], scale, n)
            at += 1
        probabilities.append(counts / counts.sum())
    law = norm_sub(noisy[at], n) / n if panel_of(grids) else None
    return Marginals(grids, tuple(probabilities), float(n), noise_multiplier, cells, values, law)


def marginals_event(schema: Schema, noise_multiplier: float | None, method: str = "histogram") -> DpEvent:
    """Event of `release_marginals`: one Gaussian mechanism; sensitivity is part of its noise."""
    _check_method(method)
    return gaussian_event(noise_multiplier)


def release_count(frame: pd.DataFrame, noise_multiplier: float | None, rng: np.random.Generator) -> float:
    """Release the number of records: sensitivity 1 under add/remove, costs `count_event`; at least 1.

    Examples
    --------
    >>> release_count(pd.DataFrame({"a": [1, 2, 3]}), None, np.random.default_rng(0))
    3.0
    """
    check_noise(noise_multiplier)
    noise = 0.0 if noise_multiplier is None else noise_multiplier * rng.standard_normal()
    return float(max(1.0, len(frame) + noise))


def count_event(noise_multiplier: float | None) -> DpEvent:
    """Event of `release_count`."""
    return gaussian_event(noise_multiplier)


def gaussian_event(noise_multiplier: float | None) -> DpEvent:
    """Gaussian event of a multiplier; the non-private event for None."""
    check_noise(noise_multiplier)
    if noise_multiplier is None:
        return events.non_private_event()
    return events.gaussian_event(noise_multiplier)


def check_noise(noise_multiplier: float | None) -> None:
    """Refuse a noise multiplier that is neither None nor a positive finite number."""
    if noise_multiplier is not None and not (np.isfinite(noise_multiplier) and noise_multiplier > 0):
        raise ConfigError(f"noise_multiplier is {noise_multiplier}, but must be greater than 0, or None")


def _check_method(method: str) -> None:
    if method not in ("histogram", "hierarchical"):
        raise ConfigError(f"method is {method!r}, but must be 'histogram' or 'hierarchical'")


def _is_tree(grid: Grid, method: str) -> bool:
    return method == "hierarchical" and grid.ordered and grid.present > TREE_FROM_CELLS


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
