"""Public bars of a column, over which its distribution is drawn."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dpsynth.table.column import Column
from dpsynth.table.grid import Grid

#: A numeric column with at most so many declared values has a bar for each.
_MAX_VALUES = 40
#: Bars of other numeric columns.
_BARS = 30


def bar_grid(column: Column) -> Grid:
    """The cells that are bars: they depend on the schema alone."""
    # A number of cells that the schema gives is meant for the base model and may be too many to draw.
    plain = column.model_copy(update={"cells": None})
    return Grid.from_column(plain, max_values=_MAX_VALUES, default_cells=_BARS)


def bar_edges(grid: Grid) -> NDArray[np.float64]:
    """Ends of the bars of a numeric column, shape (present + 1,).

    Bars of a column recorded in steps hold whole steps, and end half a step outside the recorded values.

    Examples
    --------
    >>> bar_edges(bar_grid(Column(name="children", kind="integer", lower=0, upper=3))).tolist()
    [-0.5, 0.5, 1.5, 2.5, 3.5]
    """
    if grid.starts is None:
        assert grid.edges is not None
        return grid.edges
    column = grid.column
    assert column.lower is not None and column.resolution is not None
    edges = column.lower + (grid.starts - 0.5) * column.resolution
    if column.scale == "log":
        # Half a step lower may not be positive; the cell of zeros is drawn below the smallest value.
        edges[0] = edges[1] / 2 if column.has_zero_cell else column.lower
    return np.asarray(edges, dtype=np.float64)
