"""The plots of a report that are drawn from measures and details: small panels, each readable by itself.

A panel is as wide as a phone. Real records are blue and solid, synthetic ones orange and dashed, here as in
the forest plot. Names of columns stand in the caption, where they can wrap, not in the drawing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dpsynth.evaluation.records import Measure, shown, shown_with_interval
from dpsynth.report.drawing import style
from dpsynth.report.drawing.svg import to_plot
from dpsynth.report.page.blocks import Plot

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

#: of each table, everywhere on a page
LINES: dict[str, dict[str, Any]] = {
    "synthetic": {"color": style.COLOURS[1], "linestyle": "--"},
    "train": {"color": style.COLOURS[0], "linestyle": "-"},
    "test": {"color": style.COLOURS[2], "linestyle": "-."},
}
#: the same in words
NAMES = {"synthetic": "synthetic records", "train": "real records", "test": "real, held out"}
#: columns whose names fit beside a heat map; if there are more, they are numbered
MOST_NAMES = 10


def heat_map(matrix: Sequence[Sequence[float | None]], columns: Sequence[str], *, what: str, caption: str,
             internal: bool, signed: bool = False) -> Plot:  # fmt: skip
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
            names = [clipped(name, 12) for name in columns]
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


def intervals(
    measures: Sequence[tuple[str, str, Measure]],
    *,
    what: str,
    caption: str,
    reference: float,
    axis_label: str,
) -> Plot:
    """Draw measures as dots with their intervals, beside a vertical line at ``reference``.

    Parameters
    ----------
    measures : sequence of (label, table, Measure)
        Those of one label share a row; the table, "synthetic" or "train", gives the look. Measures without a
        value are left out.
    """
    known = [(label, table, m) for label, table, m in measures if m.value is not None]
    labels = list(dict.fromkeys(label for label, _, _ in known))
    tables = list(dict.fromkeys(table for _, table, _ in known))
    paired = len(tables) > 1
    said = [
        label + (f", {NAMES[table]}: " if paired else " ") + shown_with_interval(m)
        for label, table, m in known
    ]

    def draw() -> Figure:
        figure, (axis,) = style.panels(height=0.75 + (0.36 if paired else 0.28) * max(len(labels), 1))
        axis.axvline(reference, color="black", linewidth=1, linestyle=":")
        for label, table, m in known:
            place = labels.index(label) + ((tables.index(table) - 0.5) * 0.36 if paired else 0.0)
            look = LINES[table]
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
                label=None if label != labels[-1] else f"trained on {NAMES[table]}",
            )
        axis.set_yticks(range(len(labels)), [clipped(label, 26) for label in labels])
        axis.set_ylim(len(labels) - 0.5, -0.5)
        axis.grid(axis="y", visible=False)
        axis.set_xlabel(axis_label)
        legend(figure, axis, len(tables), columns=1)
        return figure

    alt = f"{what}: {'; '.join(said)}. The line stands at {shown(reference)}."
    return to_plot(draw, alt, caption, internal=any(m.internal for _, _, m in known))


def roc(details: Sequence[Mapping[str, Any]], *, internal: bool) -> Plot:
    """Draw the ROC of one classifier, trained on the synthetic and on the real table."""

    def draw() -> Figure:
        return _unit_square(details, ("fpr", "false positive rate"), ("tpr", "true positive rate"))

    model = _words(details[0]["model"])
    said = ", ".join(f"{shown(d.get('auc'))} trained on {NAMES[d['trained_on']]}" for d in details)
    alt = f"ROC of the {model} on held-out real records. AUC {said}."
    return to_plot(draw, alt, f"{model}: AUC {said}", internal=internal)


def calibration(details: Sequence[Mapping[str, Any]], *, internal: bool) -> Plot:
    """Draw observed over predicted risks of one classifier."""

    def draw() -> Figure:
        across, up = ("predicted", "predicted risk"), ("observed", "observed share")
        return _unit_square(details, across, up, marker="o", markersize=4)

    model = _words(details[0]["model"])
    alt = f"Calibration of the {model}: observed share of the outcome over the predicted risk. " + " ".join(
        f"Trained on {NAMES[d['trained_on']]}: "
        + ", ".join(f"{shown(p)} to {shown(o)}" for p, o in zip(d["predicted"], d["observed"], strict=False))
        + "."
        for d in details
    )
    return to_plot(draw, alt, f"{model}: calibration", internal=internal)


def _unit_square(
    details: Sequence[Mapping[str, Any]], across: tuple[str, str], up: tuple[str, str], **look: Any
) -> Figure:
    """Draw a curve of each detail beside the diagonal; each axis is a key of its data and a label."""
    figure, (axis,) = style.panels(height=3.0)
    axis.plot([0, 1], [0, 1], color="black", linewidth=0.8, linestyle=":")
    for data in details:
        label = f"trained on {NAMES[data['trained_on']]}"
        axis.plot(data[across[0]], data[up[0]], label=label, **look, **LINES.get(data["trained_on"], {}))
    axis.set(xlabel=across[1], ylabel=up[1], aspect="equal")
    axis.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02))
    legend(figure, axis, 2, columns=1)
    return figure


def distances(data: Mapping[str, Any], *, internal: bool) -> Plot:
    """Draw how far synthetic and held-out records lie from their nearest training record."""
    series = [("synthetic", data["synthetic_to_train"]), ("test", data.get("test_to_train"))]
    series = [(table, share) for table, share in series if share is not None]

    def draw() -> Figure:
        figure, (axis,) = style.panels(height=2.6)
        for table, share in series:
            axis.stairs(
                share, data["edges"], label=f"{NAMES[table]} to training", linewidth=1.6, **LINES[table]
            )
        axis.set_ylim(bottom=0)
        axis.set(xlabel=f"distance ({data.get('space', 'encoded')})", ylabel="share of records")
        legend(figure, axis, 2, columns=1)
        return figure

    medians = [f"{NAMES[table]} {shown(_median(data['edges'], share))}" for table, share in series]
    alt = f"Distances to the nearest training record; medians about: {', '.join(medians)}."
    return to_plot(draw, alt, "Distance to the nearest training record", internal=internal)


def _median(edges: Sequence[float], share: Sequence[float]) -> float:
    total = np.cumsum(share)
    if not len(total) or total[-1] <= 0:
        return float(edges[0])
    place = int(np.searchsorted(total, total[-1] / 2))
    return float((edges[place] + edges[place + 1]) / 2)


def plain_ticks(axis: Axis) -> None:
    """Label a logarithmic axis with plain numbers: the default labels are formulas."""
    from matplotlib.ticker import FuncFormatter, NullLocator

    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_locator(NullLocator())


def legend(figure: Figure, axis: Axes, curves: int, columns: int = 3) -> None:
    """Put a legend under a panel of more than one curve."""
    if curves > 1:
        style.legend_below(figure, axis, columns=columns)


def _words(name: object) -> str:
    return str(name).replace("_", " ")


def clipped(text: object, longest: int) -> str:
    """Return a text of at most so many characters, for a place where it cannot wrap.

    Examples
    --------
    >>> clipped("nearest neighbours", 8)
    'nearest…'
    """
    text = " ".join(str(text).split())
    return text if len(text) <= longest else text[: longest - 1] + "…"
