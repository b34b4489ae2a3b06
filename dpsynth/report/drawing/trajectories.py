"""Patients over time, real beside synthetic: paths of a few patients, rows a patient, gaps, correlations.

Paths of both tables share one scale, so that slopes and spreads compare by eye.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from dpsynth.evaluation.details import OverTime, Paths
from dpsynth.evaluation.records import Detail, Evaluation, any_internal
from dpsynth.report.drawing import style
from dpsynth.report.drawing.style import Plot
from dpsynth.report.formats import decimals, in_percent, plain

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: real ones on the left, and the first curve
_ORDER = ("train", "test", "synthetic")


def plots_over_time(evaluation: Evaluation) -> dict[str, Plot]:
    """Every plot by name: ``paths[COLUMN]``, ``rows``, ``gaps``, ``lags[COLUMN]`` and ``events[COLUMN]``."""
    drawn: dict[str, Plot] = {}
    by_column: dict[str, list[Detail[Paths]]] = {}
    for detail in _ordered(evaluation.of(Paths)):
        by_column.setdefault(detail.data.column, []).append(detail)
    drawn |= {f"paths[{column}]": plot_paths(details) for column, details in by_column.items()}
    tables = _ordered(evaluation.of(OverTime))
    if not tables:
        return drawn
    drawn["rows"] = plot_rows(tables)
    if any(detail.data.gaps for detail in tables):
        drawn["gaps"] = plot_gaps(tables)
    columns = dict.fromkeys(column for detail in tables for column in detail.data.lags)
    for column in columns:
        known = [d for d in tables if any(value is not None for value in d.data.lags.get(column, ()))]
        if known:
            drawn[f"lags[{column}]"] = plot_lags(known, column)
    events = dict.fromkeys(column for detail in tables for column in detail.data.events)
    return drawn | {f"events[{column}]": plot_event(tables, column) for column in events}


def _ordered(details: Iterable[Detail]) -> list[Detail]:
    return sorted(details, key=lambda detail: _ORDER.index(detail.data.table))


def plot_paths(details: Sequence[Detail[Paths]]) -> Plot:
    """Draw one number of a few patients over the time since their first row, a panel for each table."""
    tables = [detail.data for detail in details]
    first = tables[0]

    def draw() -> Figure:
        figure, axes = style.panels(columns=len(tables), height=2.6)
        for axis, data in zip(axes, tables, strict=True):
            axis.sharex(axes[0])
            axis.sharey(axes[0])
            for place, path in enumerate(data.paths):
                axis.plot(path.times, path.values, marker="o", markersize=2, lw=0.9, **style.line(place))
            axis.set_title(_patients(data))
            axis.set_xlabel(style.clipped(f"{first.clock}, since the first row", 44))
        axes[0].set_ylabel(style.clipped(f"{first.column}, {first.unit}" if first.unit else first.column, 30))
        return figure

    said = []
    for data in tables:
        values = [value for path in data.paths for value in path.values]
        between = f", from {plain(min(values), 4)} to {plain(max(values), 4)}" if values else ""
        said.append(f"{_patients(data)}{between}")
    caption = f"{first.column} of random patients, one line each"
    if len(tables) > 1:
        caption += ". Both panels have one scale"
    alt = f"{first.column} over time: {'. '.join(said)}."
    return Plot(draw, alt, caption, internal=any_internal(details))


def _patients(data: Paths) -> str:
    return f"{len(data.paths)} {'synthetic' if data.table == 'synthetic' else 'real'} patients"


def plot_rows(details: Sequence[Detail[OverTime]]) -> Plot:
    """Draw the shares of patients by their number of rows."""
    tables = [detail.data for detail in details]

    def draw() -> Figure:
        figure, (axis,) = style.panels(height=2.1)
        for data in tables:
            edges = np.arange(len(data.rows) + 1) + 0.5
            axis.stairs(data.rows, edges, label=_name(data), linewidth=1.6, **style.TABLES[data.table])
        axis.set_ylim(bottom=0)
        axis.set(xlabel="rows a patient", ylabel="share of patients")
        style.legend_of_curves(figure, axis, len(tables))
        return figure

    said = [
        f"Most frequent in {_name(data)}: {1 + int(np.argmax(data.rows))} ({in_percent(max(data.rows))})"
        for data in tables
    ]
    alt = f"Share of patients over their number of rows. {'. '.join(said)}."
    return Plot(draw, alt, "Rows a patient", internal=any_internal(details))


def plot_gaps(details: Sequence[Detail[OverTime]]) -> Plot:
    """Draw the cumulated shares of the times between rows."""
    tables = [detail.data for detail in details if detail.data.gaps]
    ends = [data.gaps[-1] for data in tables]

    def draw() -> Figure:
        figure, (axis,) = style.panels(height=2.1)
        for data in tables:
            shares = np.linspace(0.0, 1.0, len(data.gaps))
            axis.plot(data.gaps, shares, label=_name(data), **style.TABLES[data.table])
        axis.set_ylim(-0.02, 1.02)
        # Most gaps are short, and a few are very long.
        longest = max(*ends, 1e-9)
        axis.set_xscale("symlog", linthresh=longest / 100)
        axis.set_xlim(0.0, longest)
        style.plain_ticks(axis.xaxis)
        axis.set(xlabel=style.clipped(f"time between rows ({tables[0].clock})", 44), ylabel="share of gaps")
        style.legend_of_curves(figure, axis, len(tables))
        return figure

    said = [f"{_name(data)} {plain(data.gaps[len(data.gaps) // 2], 4)}" for data in tables]
    alt = f"Cumulated share of the times between rows. Medians: {', '.join(said)}."
    return Plot(draw, alt, "Times between a patient's rows", internal=any_internal(details))


def plot_lags(details: Sequence[Detail[OverTime]], column: str) -> Plot:
    """Draw how a number goes with the patient's own later values."""
    tables = [(detail.data, detail.data.lags[column]) for detail in details]

    def draw() -> Figure:
        figure, (axis,) = style.panels(height=2.1)
        for data, lags in tables:
            values = [np.nan if value is None else value for value in lags]
            places = range(1, len(values) + 1)
            label = _name(data)
            axis.plot(places, values, marker="o", markersize=3, label=label, **style.TABLES[data.table])
        axis.set_ylim(min(-0.02, *axis.get_ylim()), 1.02)
        axis.set(xlabel="values later", ylabel="correlation")
        style.legend_of_curves(figure, axis, len(tables))
        return figure

    said = [
        f"{_name(data)} {', '.join('n/a' if value is None else decimals(value, 2) for value in lags)}"
        for data, lags in tables
    ]
    caption = f"{column}: correlation with the patient's later values"
    return Plot(draw, f"{caption}. {'. '.join(said)}.", caption, internal=any_internal(details))


def plot_event(details: Sequence[Detail[OverTime]], column: str) -> Plot:
    """Draw the share of patients without a terminal event over the time since their first row."""
    tables = [(detail.data, detail.data.events[column]) for detail in details]

    def draw() -> Figure:
        figure, (axis,) = style.panels(height=2.1)
        for data, curve in tables:
            times, values = [0.0, *curve.times], [1.0, *curve.values]
            axis.step(times, values, where="post", label=_name(data), **style.TABLES[data.table])
        axis.set_ylim(-0.02, 1.02)
        axis.set_xlabel(style.clipped(f"{tables[0][0].clock}, since the first row", 44))
        axis.set_ylabel("share, no event")
        style.legend_of_curves(figure, axis, len(tables))
        return figure

    said = [f"{_name(data)} {in_percent(curve.values[-1])}" for data, curve in tables]
    caption = f"{column}: share of patients without the event (Kaplan-Meier)"
    return Plot(draw, f"{caption}. At the end: {', '.join(said)}.", caption, internal=any_internal(details))


def _name(data: OverTime) -> str:
    return "synthetic patients" if data.table == "synthetic" else "real patients"
