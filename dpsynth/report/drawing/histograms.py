"""The distribution of one column, synthetic over real: steps for numbers, bars for categories."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dpsynth.report.drawing import style
from dpsynth.report.drawing.plots import LINES, NAMES, clipped, legend, plain_ticks
from dpsynth.report.drawing.svg import to_plot
from dpsynth.report.page.blocks import Plot

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Rows of a bar chart that a phone shows readably.
_MOST_BARS = 20


def marginal(details: Sequence[Mapping[str, Any]], *, internal: bool) -> Plot:
    """Draw one column's distribution, of one table or of several over each other.

    Parameters
    ----------
    details : sequence of dict
        ``Detail.data`` of kind "marginal", of one column and of the same bins.
    internal : bool
        Whether a real table is among them.
    """
    first = details[0]
    numeric = first["type"] == "numeric"
    missing = [
        f"{NAMES.get(d['table'], d['table'])} {100 * d['missing']:.1f} %"
        for d in details
        if d.get("missing") is not None
    ]
    caption = str(first["column"]) + (f" ({first['unit']})" if first.get("unit") else "")
    if missing:
        caption += f"; missing: {', '.join(missing)}"
    if not numeric and len(first["labels"]) > _MOST_BARS:
        caption += f"; the first {_MOST_BARS} of {len(first['labels'])} categories"
    tables = " and ".join(NAMES.get(d["table"], d["table"]) for d in details)
    alt = f"Share of records over {first['column']}, {tables}. " + " ".join(_peak(d) for d in details)
    draw = _numeric if numeric else _categories
    return to_plot(lambda: draw(details), alt, caption, internal=internal)


def _peak(data: Mapping[str, Any]) -> str:
    share = data["share"]
    if not share or max(share) <= 0:
        return f"No {data['table']} value."
    place = int(np.argmax(share))
    if place == 0 and data.get("zero"):
        where = "0"
    elif data["type"] == "numeric":
        where = f"{_tick(data['edges'][place])} to {_tick(data['edges'][place + 1])}"
    else:
        where = str(data["labels"][place])
    name = NAMES.get(data["table"], data["table"])
    return f"Most frequent in {name}: {where} ({100 * share[place]:.1f} %)."


def _numeric(details: Sequence[Mapping[str, Any]]) -> Figure:
    figure, (axis,) = style.panels(height=2.1)
    log = bool(details[0].get("log")) and min(details[0]["edges"], default=0) > 0
    edges = np.asarray(details[0]["edges"], dtype=float)
    scale = _to_equal_widths(np.log(edges) if log else edges)
    for data in details:
        share = np.asarray(data["share"], dtype=float) * scale
        look = LINES.get(data["table"], {"color": "black"})
        axis.stairs(share, edges, label=NAMES.get(data["table"]), linewidth=1.6, **look)
        if data["table"] == "synthetic":
            axis.stairs(share, edges, fill=True, color=look["color"], alpha=0.18, linewidth=0)
    if log:
        axis.set_xscale("log")
        plain_ticks(axis.xaxis)
    axis.set_ylim(bottom=0)
    axis.set_ylabel("share" if np.all(scale == 1) else "share by width")
    axis.set_xlabel(clipped(details[0].get("unit") or "value", 40))
    legend(figure, axis, len(details))
    return figure


def _to_equal_widths(edges: np.ndarray) -> np.ndarray:
    """Factors that make heights comparable where bins differ in width, as those of whole numbers do.

    A bin of the median width keeps its height; all are 1 where widths agree.
    """
    widths = np.diff(edges)
    if len(widths) == 0 or widths.min() <= 0 or widths.max() < 1.01 * widths.min():
        return np.ones(len(widths))
    return np.asarray(np.median(widths) / widths)


def _categories(details: Sequence[Mapping[str, Any]]) -> Figure:
    labels = [str(label) for label in details[0]["labels"]][:_MOST_BARS]
    count = max(len(labels), 1)
    figure, (axis,) = style.panels(height=0.75 + count * (0.16 + 0.09 * len(details)))
    width = 0.8 / len(details)
    for place, data in enumerate(details):
        look = LINES.get(data["table"], {"color": "black"})
        rows = np.arange(len(labels)) + (place - (len(details) - 1) / 2) * width
        share = list(data["share"])[: len(labels)]
        hatch = None if data["table"] == "synthetic" else "////"
        # hatched as well, since print may have no colours
        axis.barh(
            rows,
            share,
            height=width,
            color=look["color"] if hatch is None else "white",
            edgecolor=look["color"],
            hatch=hatch,
            label=NAMES.get(data["table"]),
        )
    axis.set_yticks(range(len(labels)), [clipped(label, 16) for label in labels])
    axis.set_ylim(len(labels) - 0.4, -0.6)
    axis.set_xlim(left=0)
    axis.set_xlabel("share")
    axis.grid(axis="y", visible=False)
    legend(figure, axis, len(details))
    return figure


def _tick(value: float) -> str:
    return f"{value:.4g}"
