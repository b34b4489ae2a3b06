"""Public cells: equal for every peer that wants categories, from what the schema says of a column alone.

A numeric column is cut into at most 32 cells of equal width on its declared scale (linear, or logarithmic
for skewed laboratory values), no more than it has values; a missing value has a cell of its own, the last.
Runs in every peer's environment: nothing but NumPy and pandas, nothing of ours.
"""

import numpy as np
import pandas as pd

CELLS = 32


def edges(column, cells=CELLS):
    """Edges of a numeric column's cells; where steps are declared, half way between two of them."""
    lower, upper, step = column["lower"], column["upper"], column.get("step")
    log = column.get("scale") == "log"
    if not step:
        return np.geomspace(lower, upper, cells + 1) if log else np.linspace(lower, upper, cells + 1)
    last = round((upper - lower) / step)
    # a logarithmic scale that starts at 0 begins at the first step; zeros join its first cell
    low = lower - step / 2 if lower > step / 2 or not log else step / 2
    spaced = np.geomspace if log else np.linspace
    cuts = spaced(low, upper + step / 2, min(cells, last + 1) + 1)
    places = np.round((cuts - lower) / step + 0.5)
    places[0], places[-1] = 0, last + 1
    return lower + (np.unique(places) - 0.5) * step


def size(column, cells=CELLS):
    """How many codes a column has, that of missing values included."""
    plain = column["size"] if column.get("size") else len(edges(column, cells)) - 1
    return plain + bool(column.get("missing"))


def to_codes(frame, columns, cells=CELLS):
    """Every column as whole numbers from 0 to its size less 1."""
    coded = {}
    for column in columns:
        values = frame[column["name"]].to_numpy(dtype=float)
        absent = np.isnan(values)
        if column.get("size"):
            codes = np.where(absent, 0, values).astype(int)
        else:
            cuts = edges(column, cells)
            codes = np.clip(
                np.searchsorted(cuts, np.where(absent, cuts[0], values), side="right") - 1, 0, None
            )
            codes = np.minimum(codes, len(cuts) - 2)
        coded[column["name"]] = np.where(absent, size(column, cells) - 1, codes)
    return pd.DataFrame(coded)


def from_codes(coded, columns, rng, cells=CELLS):
    """Values drawn uniformly on the scale inside each cell, at the declared steps; NaN where missing."""
    frame = {}
    for column in columns:
        codes = coded[column["name"]].to_numpy().astype(int)
        last = size(column, cells) - 1
        absent = (codes == last) if column.get("missing") else np.zeros(len(codes), dtype=bool)
        if column.get("size"):
            values = codes.astype(float)
        else:
            cuts = edges(column, cells)
            inside = np.minimum(codes, len(cuts) - 2)
            values = _between(cuts[inside], cuts[inside + 1], column, rng)
        frame[column["name"]] = np.where(absent, np.nan, values)
    return pd.DataFrame(frame)


def at_steps(values, column):
    """Values clipped to the bounds and moved to the nearest declared step."""
    if column.get("step"):
        values = column["lower"] + np.round((values - column["lower"]) / column["step"]) * column["step"]
    return np.clip(values, column["lower"], column["upper"])


def _between(low, high, column, rng):
    share = rng.random(len(low))
    log = (column.get("scale") == "log") & (low > 0)
    drawn = np.where(
        log, np.maximum(low, 1e-300) * (high / np.where(log, low, 1.0)) ** share, low + (high - low) * share
    )
    return at_steps(drawn, column)
