"""Dots with intervals beside a line of reference: scores of models, attacks against a coin."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from dpsynth.evaluation.records import Measure
from dpsynth.report.drawing import style
from dpsynth.report.drawing.svg import Plot, to_plot
from dpsynth.report.formats import shown, shown_with_interval

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def plot_intervals(
    measures: Sequence[tuple[str, str, Measure]],
    *,
    what: str,
    caption: str,
    reference: float,
    axis_label: str,
) -> Plot:
    """Draw measures as dots with their intervals, beside a vertical line at ``reference``.

    ``measures`` are (label, table, measure): those of one label share a row, and the table, "synthetic" or
    "train", gives the look. Measures without a value are left out.
    """
    known = [(label, table, m) for label, table, m in measures if m.value is not None]
    labels = list(dict.fromkeys(label for label, _, _ in known))
    tables = list(dict.fromkeys(table for _, table, _ in known))
    paired = len(tables) > 1
    said = [
        label + (f", {style.NAMES[table]}: " if paired else " ") + shown_with_interval(m)
        for label, table, m in known
    ]

    def draw() -> Figure:
        figure, (axis,) = style.panels(height=0.75 + (0.36 if paired else 0.28) * max(len(labels), 1))
        axis.axvline(reference, color="black", linewidth=1, linestyle=":")
        for label, table, m in known:
            place = labels.index(label) + ((tables.index(table) - 0.5) * 0.36 if paired else 0.0)
            look = style.TABLES[table]
            if m.lower is not None and m.upper is not None:
                axis.plot([m.lower, m.upper], [place, place], linewidth=2, **look)
            real = table == "train"
            axis.plot(
                [float(m.value or 0.0)],
                [place],
                marker="o" if real else "D",
                markersize=5,
                markerfacecolor=look["color"] if real else "white",
                color=look["color"],
                linestyle=look["linestyle"],
                label=None if label != labels[-1] else f"trained on {style.NAMES[table]}",
            )
        axis.set_yticks(range(len(labels)), [style.clipped(label, 26) for label in labels])
        axis.set_ylim(len(labels) - 0.5, -0.5)
        axis.grid(axis="y", visible=False)
        axis.set_xlabel(axis_label)
        style.legend_of_curves(figure, axis, len(tables), columns=1)
        return figure

    alt = f"{what}: {'; '.join(said)}. The line stands at {shown(reference)}."
    return to_plot(draw, alt, caption, internal=any(m.internal for _, _, m in known))
