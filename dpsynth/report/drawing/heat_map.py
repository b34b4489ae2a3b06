"""Heat maps: one coloured square for each pair of columns, of associations or of their differences."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from dpsynth.report.drawing import style
from dpsynth.report.drawing.svg import Plot, to_plot
from dpsynth.report.formats import shown

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: columns whose names fit beside a heat map; if there are more, they are numbered
MOST_NAMES = 10


def plot_matrix(
    matrix: Sequence[Sequence[float | None]],
    columns: Sequence[str],
    *,
    what: str,
    caption: str,
    internal: bool,
    signed: bool = False,
) -> Plot:
    """Draw a matrix of associations in [0, 1], or of differences in [-1, 1] if ``signed``."""
    values = np.array([[math.nan if v is None else v for v in row] for row in matrix], dtype=float)

    def draw() -> Figure:
        from matplotlib import colormaps

        named = len(columns) <= MOST_NAMES
        figure, (axis,) = style.panels(height=3.3 if named else 2.9)
        colours = colormaps["RdBu_r" if signed else "Blues"].with_extremes(bad="#cccccc")
        shown_values = np.ma.masked_invalid(values)
        low = -1.0 if signed else 0.0
        image = axis.imshow(shown_values, cmap=colours, vmin=low, vmax=1.0, interpolation="none")
        axis.grid(visible=False)
        if named:
            names = [style.clipped(name, 12) for name in columns]
            axis.set_xticks(range(len(columns)), names, rotation=90)
            axis.set_yticks(range(len(columns)), names)
        else:
            ticks = [i for i in range(len(columns)) if i == 0 or (i + 1) % 5 == 0]
            for direction in (axis.xaxis, axis.yaxis):
                direction.set_ticks(ticks, [str(i + 1) for i in ticks])
        figure.colorbar(image, ax=axis, shrink=0.8, ticks=[low, (low + 1) / 2, 1])
        return figure

    return to_plot(draw, f"{what}. {_strongest(values, columns)}", caption, internal=internal)


def _strongest(values: np.ndarray, columns: Sequence[str]) -> str:
    pairs = np.abs(np.where(np.tri(len(values), k=-1).astype(bool), values, np.nan))
    if not np.isfinite(pairs).any():
        return "No pair is defined."
    row, column = np.unravel_index(int(np.nanargmax(pairs)), pairs.shape)
    return f"Largest: {columns[int(column)]} and {columns[int(row)]}, {shown(float(values[row, column]))}."
