"""One column's histogram over public bins, to draw tables above one another.

The bins come from the schema alone, never from records, so that a synthetic table's histogram may be shown
wherever the table itself may.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpsynth.evaluation.records import Detail
from dpsynth.table.column import Column
from dpsynth.table.grid import Grid

#: a numeric column with at most so many declared values has a bin for each
_MAX_VALUES = 40

#: bins of other numeric columns
_BINS = 30


def marginal(frame: pd.DataFrame, column: Column, table: str) -> Detail:
    """Count a column of one table over its public bins.

    Parameters
    ----------
    frame : pandas.DataFrame of shape (n, columns)
        Conformed; at least one record.
    table : str
        ``"synthetic"``, ``"train"`` or ``"test"``; all but the first are internal.

    Returns
    -------
    Detail
        Of kind ``"marginal"``: shares of *all* records, so that they, ``missing`` and ``special`` (of all
        special codes together) sum to 1. Bins of a column recorded in steps hold whole steps; edges lie half
        a step outside the recorded values.
    """
    # A number of cells that the schema gives is meant for the prior and may be too many to draw.
    plain = column.model_copy(update={"cells": None})
    grid = Grid.from_column(plain, max_values=_MAX_VALUES, default_cells=_BINS)
    counts = np.bincount(grid.encode(frame[column.name]), minlength=grid.size)
    shares = [float(count) / len(frame) for count in counts]
    data: dict[str, object] = {"column": column.name, "table": table}
    if column.is_numeric:
        data |= {"type": "numeric", "edges": [float(edge) for edge in _edges(grid)]}
    else:
        data |= {"type": "categories", "labels": [str(category) for category in column.categories]}
    data |= {
        "share": shares[: grid.present],
        "missing": shares[-1] if column.missing else None,
        "special": sum(shares[grid.present :][: len(column.special)]) if column.special else None,
        "unit": column.unit,
        "log": column.scale == "log",
        "zero": column.has_zero_cell,
    }
    return Detail("marginal", f"marginal[{column.name}].{table}", table != "synthetic", data)


def _edges(grid: Grid) -> NDArray[np.float64]:
    if grid.starts is None:
        assert grid.edges is not None
        return grid.edges
    column = grid.column
    assert column.lower is not None and column.resolution is not None
    edges = column.lower + (grid.starts - 0.5) * column.resolution
    if column.scale == "log":
        # Half a step lower may not be positive; the cell of zeros is drawn below the smallest value.
        edges[0] = edges[1] / 2 if column.has_zero_cell else column.lower
    return edges
