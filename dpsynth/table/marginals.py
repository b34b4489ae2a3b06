"""What is known of each column alone: released probabilities over the cells of its public grid.

The base of encoder, prior and post-processing. How many cells a column has follows from public numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsynth.errors import ConfigError
from dpsynth.table.grid import Grid
from dpsynth.table.schema import Schema

#: Cells of a numeric column that does not say, at most; without noise, exactly.
MOST_CELLS = 64
#: Values of a numeric column that may have a cell each, at most.
MOST_VALUES = 1024


@dataclass(frozen=True, eq=False)
class Marginals:
    """Released one-way probabilities of every column; made by `dpsynth.releases.marginals`.

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
    method : str or None
        How they were counted; None in models saved before it was kept.
    """

    grids: tuple[Grid, ...]
    probabilities: tuple[NDArray[np.float64], ...]
    n: float
    noise_multiplier: float | None
    cells: int
    values: int = 2 * MOST_CELLS
    missing_law: NDArray[np.float64] | None = None
    method: str | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """Column names, in the schema's order."""
        return tuple(grid.column.name for grid in self.grids)

    @property
    def sizes(self) -> tuple[int, int]:
        """What the grids were made with, besides the schema: ``cells`` and ``values``."""
        return self.cells, self.values

    def to_state(self) -> tuple[dict[str, Any], dict[str, NDArray]]:
        """Return a JSON-able description and the arrays."""
        meta = {
            "n": self.n,
            "noise_multiplier": self.noise_multiplier,
            "cells": self.cells,
            "values": self.values,
            "method": self.method,
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
        n, noise, method = float(meta["n"]), meta["noise_multiplier"], meta.get("method")
        return cls(grids, probabilities, n, noise, cells, values, law, method)


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
