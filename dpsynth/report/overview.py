"""The first pictures of a page: columns, associations, what models learn, and attacks beside their bounds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from dpsynth.attacks.risk import BEYOND
from dpsynth.evaluation.results import Evaluation, any_confidential, plain_cells
from dpsynth.report.blocks import Plots, Section
from dpsynth.report.plots import (
    TABLES,
    Plot,
    clipped_text,
    finished,
    matrix_of,
    names_of,
    panels,
    plot_attempts,
)
from dpsynth.report.run_report import RunReport

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: tables that are drawn, and their order
_TABLES = ("synthetic", "train")
#: columns of the first picture, and categories of each
_COLUMNS, _CATEGORIES = 4, 6
#: inches of a picture, four of which stand side by side
_WIDTH, _HEIGHT = 3.4, 3.2


def overview_section(report: RunReport) -> Section | None:
    """Return the section, of those pictures that the report has. None if it has none.

    A report with patients' rows has paths of a few patients as well.
    """
    evaluation = report.measured
    plots = [
        plot_columns(evaluation),
        plot_associations(evaluation),
        *report.drawn("auc", "r2")[:1],
        plot_attacks(report),
        *report.drawn("paths")[:1],
    ]
    found = tuple(plot for plot in plots if plot is not None)
    return Section("overview", "At a glance", (Plots(found, small=True),)) if found else None


def plot_columns(evaluation: Evaluation) -> Plot | None:
    """Draw the outcome and the columns that go most with it in the synthetic table, or its first columns."""
    frames = {str(frame["column"].iloc[0]): frame for frame in evaluation.groups("marginal", "column")}
    chosen = _with_outcome(evaluation, list(frames))[:_COLUMNS]
    if not chosen:
        return None
    shown = {name: _same_bins(frames[name]) for name in chosen}
    tables = [table for table in _TABLES if any(table in own for own in shown.values())]
    names = names_of(evaluation.counted)
    alt = f"Distributions of {', '.join(chosen)}: {' and '.join(names[table] for table in tables)}."
    outcome = evaluation.settings.get("outcome")
    caption = f"{outcome} and the columns that go most with it" if outcome == chosen[0] else "First columns"
    internal = any(any_confidential(part) for own in shown.values() for part in own.values())
    return Plot(partial(_draw_columns, shown, names), alt, caption, internal)


def _with_outcome(evaluation: Evaluation, columns: list[str]) -> list[str]:
    """The outcome first, then the other columns by their association with it in the synthetic table."""
    outcome = evaluation.settings.get("outcome")
    if outcome not in columns:
        return columns
    strength = dict.fromkeys(columns, 0.0)
    for frame in evaluation.groups("association", "table"):
        if frame["table"].iloc[0] == "synthetic":
            names, matrix = matrix_of(frame)
            if outcome in names:
                strength |= zip(names, np.nan_to_num(np.abs(matrix[names.index(outcome)])), strict=True)
    others = sorted((name for name in columns if name != outcome), key=lambda name: -strength[name])
    return [outcome, *others]


def _same_bins(frame: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """The bars of each table, of real records only if both have the same."""
    bars = frame[frame["cell"].isin(("zero", "bin", "category"))]
    parts = {str(table): part for table, part in bars.groupby("table", sort=False)}
    kept = {table: parts[table] for table in _TABLES if table in parts}
    if len({tuple(map(str, plain_cells(part["upper"]))) for part in kept.values()}) > 1:
        del kept["train"]
    return kept


def _draw_columns(shown: Mapping[str, Mapping[str, pd.DataFrame]], names: Mapping[str, str]) -> Figure:
    rows = (len(shown) + 1) // 2
    axes = panels(2, rows=rows, sharex=False, width=_WIDTH / 2, height=_HEIGHT)
    for axis, (column, tables) in zip(axes, shown.items(), strict=False):
        first = next(iter(tables.values()))
        draw = _categories if (first["cell"] == "category").any() else _numbers
        draw(axis, tables, names)
        axis.set_title(clipped_text(column, 20), fontsize=8)
        axis.tick_params(labelsize=7)
    for axis in axes[len(shown) :]:
        axis.set_axis_off()
    return finished(axes[0], legend=2)


def _numbers(axis: Axes, tables: Mapping[str, pd.DataFrame], names: Mapping[str, str]) -> None:
    for table, bars in tables.items():
        edges = np.append(bars["lower"], bars["upper"].iloc[-1]).astype(float)
        width = np.diff(np.log(edges) if bars["scale"].iloc[0] == "log" and edges.min() > 0 else edges)
        share = bars["share"].to_numpy(dtype=float)
        axis.stairs(
            share * np.median(width) / np.maximum(width, 1e-12), edges, label=names[table], **TABLES[table]
        )
        if bars["scale"].iloc[0] == "log" and edges.min() > 0:
            axis.set_xscale("log")
    axis.set_yticks([])


def _categories(axis: Axes, tables: Mapping[str, pd.DataFrame], names: Mapping[str, str]) -> None:
    labels = [clipped_text(label, 9) for label in next(iter(tables.values()))["label"][:_CATEGORIES]]
    width = 0.8 / len(tables)
    for place, (table, bars) in enumerate(tables.items()):
        rows = np.arange(len(labels)) + (place - (len(tables) - 1) / 2) * width
        colour, real = TABLES[table]["color"], table != "synthetic"
        look = {"color": "white", "hatch": "////"} if real else {"color": colour}
        share = bars["share"].to_numpy()[: len(labels)]
        axis.barh(rows, share, height=width, edgecolor=colour, label=names[table], **look)
    axis.set(yticks=range(len(labels)), yticklabels=labels, ylim=(len(labels) - 0.4, -0.6), xlim=(0, None))
    axis.grid(axis="y", visible=False)


def plot_associations(evaluation: Evaluation) -> Plot | None:
    """Draw the associations of all pairs of columns in both tables, and their difference."""
    frames = {str(frame["table"].iloc[0]): frame for frame in evaluation.groups("association", "table")}
    found = {table: matrix_of(frames[table]) for table in _TABLES if table in frames}
    if not found:
        return None
    drawn = {names_of(evaluation.counted)[table]: matrix for table, (_, matrix) in found.items()}
    if len(found) == 2 and found["synthetic"][0] == found["train"][0]:
        drawn["synthetic minus real"] = found["synthetic"][1] - found["train"][1]
        most = float(np.nanmax(np.abs(drawn["synthetic minus real"]), initial=0.0))
        said = f" The largest difference is {most:.2f}."
    else:
        said = ""
    alt = f"Associations of pairs of columns: {', '.join(drawn)}.{said}"
    internal = any(any_confidential(frames[table]) for table in found)
    return Plot(partial(_draw_matrices, drawn), alt, f"Associations of pairs of columns.{said}", internal)


def _draw_matrices(drawn: Mapping[str, np.ndarray]) -> Figure:
    from matplotlib import colormaps

    if len(drawn) == 1:
        (axis,) = panels(width=_WIDTH, height=_HEIGHT)
        axis.imshow(np.ma.masked_invalid(*drawn.values()), cmap="Blues", vmin=0.0, vmax=1.0)
        axis.grid(visible=False)
        return finished(axis, xticks=[], yticks=[], title=next(iter(drawn)))
    axes = panels(2, rows=2, sharex=False, width=_WIDTH / 2, height=_HEIGHT)
    images = []
    for axis, (title, matrix) in zip(axes, drawn.items(), strict=False):
        signed = title.startswith("synthetic minus")
        colours = colormaps["RdBu_r" if signed else "Blues"].with_extremes(bad="#cccccc")
        cells = np.ma.masked_invalid(matrix)
        images.append(axis.imshow(cells, cmap=colours, vmin=-1.0 if signed else 0.0, vmax=1.0))
        axis.grid(visible=False)
        axis.set(xticks=[], yticks=[])
        axis.set_title(title, fontsize=8)
    for axis in axes[len(drawn) :]:
        axis.set_axis_off()
    bars = [(images[0], [0.0, 1.0])] + ([(images[2], [-1.0, 0.0, 1.0])] if len(images) == 3 else [])
    for place, (image, ticks) in enumerate(bars):
        place_of = axes[3].inset_axes((0.05, 0.65 - 0.45 * place, 0.9, 0.12))
        axes[3].figure.colorbar(image, cax=place_of, orientation="horizontal", ticks=ticks)
        place_of.tick_params(labelsize=7)
    return finished(axes[0])


def plot_attacks(report: RunReport) -> Plot | None:
    """Draw what attacks on real records reached beyond the control, beside bounds, or else audits."""
    excess = [a for a in report.attempts if a.measure == "advantage" and a.internal and a.proved]
    if excess:
        named = [replace(attempt, attack=attempt.attack.partition(BEYOND)[0]) for attempt in excess]
        return plot_attempts(named, "Right beyond the control")
    return next(iter(report.drawn("attempts")), None)
