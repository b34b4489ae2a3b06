"""Distributions of one column, synthetic over real, of distances between records, and associations of pairs.

Numbers have steps, categories bars, pairs squares. A panel is as wide as a phone. The name of the column
stands in the caption, where it can wrap.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from dpsynth.evaluation.details import Distances, Marginal
from dpsynth.evaluation.records import Detail, any_internal
from dpsynth.report.drawing import style
from dpsynth.report.drawing.style import Plot
from dpsynth.report.formats import column_value, in_percent, plain, shown
from dpsynth.table.dates import SECONDS

if TYPE_CHECKING:
    from matplotlib.figure import Figure


# Rows of a bar chart that a phone shows readably.
_MOST_BARS = 20


def plot_marginals(details: Sequence[Detail[Marginal]]) -> Plot:
    """Draw one column's distribution, of one table or of several over each other, with the same bins."""
    tables = [detail.data for detail in details]
    first = tables[0]
    numeric = first.type == "numeric"
    unit = first.unit if first.unit not in SECONDS else None
    caption = str(first.column) + (f" ({unit})" if unit else "")
    missing = [(d.table, d.missing) for d in tables]
    special = [(d.table, d.special) for d in tables]
    for what, apart in (("missing", missing), ("special codes", special)):
        shares = [f"{style.NAMES[table]} {in_percent(share)}" for table, share in apart if share is not None]
        if shares:
            caption += f". {what.capitalize()}: {', '.join(shares)}"
    if not numeric and len(first.labels) > _MOST_BARS:
        caption += f". The first {_MOST_BARS} of {len(first.labels)} categories"
    names = " and ".join(style.NAMES[d.table] for d in tables)
    alt = f"Share of records over {first.column}, {names}. " + " ".join(_peak(d) for d in tables)
    draw = _numeric if numeric else _categories
    return Plot(lambda: draw(tables), alt, caption, internal=any_internal(details))


def _peak(data: Marginal) -> str:
    share = data.share
    if not share or max(share) <= 0:
        return f"No {data.table} value."
    place = int(np.argmax(share))
    if place == 0 and data.zero:
        where = "0"
    elif data.unit in SECONDS:
        # bins end half a step outside
        first, last = _days(data)[place : place + 2]
        first, last = math.ceil(first), math.floor(last)
        where = column_value(first, "date") + (f" to {column_value(last, 'date')}" if last > first else "")
    elif data.type == "numeric":
        first, last = data.edges[place], data.edges[place + 1]
        if all(edge % 1 == 0.5 for edge in data.edges):  # bins of whole numbers end half a step outside
            first, last = first + 0.5, last - 0.5
        where = plain(first, 4) + (f" to {plain(last, 4)}" if last > first else "")
    else:
        where = str(data.labels[place])
    name = style.NAMES[data.table]
    return f"Most frequent in {name}: {where} ({in_percent(share[place])})."


def _numeric(tables: Sequence[Marginal]) -> Figure:
    figure, (axis,) = style.panels(height=2.1)
    log = bool(tables[0].log) and min(tables[0].edges, default=0) > 0
    is_date = tables[0].unit in SECONDS
    edges = _days(tables[0]) if is_date else np.asarray(tables[0].edges, dtype=float)
    scale = _to_equal_widths(np.log(edges) if log else edges)
    for data in tables:
        share = np.asarray(data.share, dtype=float) * scale
        look = style.TABLES[data.table]
        axis.stairs(share, edges, label=style.NAMES[data.table], linewidth=1.6, **look)
        if data.table == "synthetic":
            axis.stairs(share, edges, fill=True, color=look["color"], alpha=0.18, linewidth=0)
    if log:
        axis.set_xscale("log")
        style.plain_ticks(axis.xaxis)
    axis.set_ylim(bottom=0)
    axis.set_ylabel("share" if np.all(scale == 1) else "share by width")
    if is_date:
        style.date_ticks(axis.xaxis)
    axis.set_xlabel(style.clipped(tables[0].unit or "value", 40))
    style.legend_of_curves(figure, axis, len(tables))
    return figure


def _days(data: Marginal) -> np.ndarray:
    """Edges of dates as days since 1970-01-01."""
    return np.asarray(data.edges, dtype=float) * (SECONDS[str(data.unit)] / SECONDS["date"])


def _to_equal_widths(edges: np.ndarray) -> np.ndarray:
    """Factors that make heights comparable where bins differ in width, as those of whole numbers do.

    A bin of the median width keeps its height. All are 1 where widths agree.
    """
    widths = np.diff(edges)
    if len(widths) == 0 or widths.min() <= 0 or widths.max() < 1.01 * widths.min():
        return np.ones(len(widths))
    return np.asarray(np.median(widths) / widths)


def _categories(tables: Sequence[Marginal]) -> Figure:
    labels = [str(label) for label in tables[0].labels][:_MOST_BARS]
    count = max(len(labels), 1)
    figure, (axis,) = style.panels(height=0.75 + count * (0.16 + 0.09 * len(tables)))
    width = 0.8 / len(tables)
    for place, data in enumerate(tables):
        look = style.TABLES[data.table]
        rows = np.arange(len(labels)) + (place - (len(tables) - 1) / 2) * width
        share = list(data.share)[: len(labels)]
        hatch = None if data.table == "synthetic" else "////"
        # hatched as well, since print may have no colours
        axis.barh(
            rows,
            share,
            height=width,
            color=look["color"] if hatch is None else "white",
            edgecolor=look["color"],
            hatch=hatch,
            label=style.NAMES[data.table],
        )
    axis.set_yticks(range(len(labels)), [style.clipped(label, 16) for label in labels])
    axis.set_ylim(len(labels) - 0.4, -0.6)
    axis.set_xlim(left=0)
    axis.set_xlabel("share")
    axis.grid(axis="y", visible=False)
    style.legend_of_curves(figure, axis, len(tables))
    return figure


def plot_distances(detail: Detail[Distances]) -> Plot:
    """Draw how far synthetic and held-out records lie from their nearest training record."""
    data = detail.data
    series = [("synthetic", data.synthetic_to_train)]
    if (held_out := data.test_to_train) is not None:
        series.append(("test", held_out))

    def draw() -> Figure:
        figure, (axis,) = style.panels(height=2.6)
        for table, share in series:
            label = f"{style.NAMES[table]} to training"
            axis.stairs(share, data.edges, label=label, linewidth=1.6, **style.TABLES[table])
        axis.set_ylim(bottom=0)
        axis.set(xlabel=f"distance ({data.space})", ylabel="share of records")
        style.legend_of_curves(figure, axis, 2, columns=1)
        return figure

    medians = [f"{style.NAMES[table]} {shown(_median(data.edges, share))}" for table, share in series]
    alt = f"Distances to the nearest training record. Medians about: {', '.join(medians)}."
    return Plot(draw, alt, "Distance to the nearest training record", internal=detail.internal)


def _median(edges: Sequence[float], share: Sequence[float]) -> float:
    total = np.cumsum(share)
    if not len(total) or total[-1] <= 0:
        return float(edges[0])
    place = int(np.searchsorted(total, total[-1] / 2))
    return float((edges[place] + edges[place + 1]) / 2)


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

    return Plot(draw, f"{what}. {_strongest(values, columns)}", caption, internal=internal)


def _strongest(values: np.ndarray, columns: Sequence[str]) -> str:
    pairs = np.abs(np.where(np.tri(len(values), k=-1).astype(bool), values, np.nan))
    if not np.isfinite(pairs).any():
        return "No pair is defined."
    row, column = np.unravel_index(int(np.nanargmax(pairs)), pairs.shape)
    return f"Largest: {columns[int(column)]} and {columns[int(row)]}, {shown(float(values[row, column]))}."
