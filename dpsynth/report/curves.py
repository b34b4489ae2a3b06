"""Scores with their intervals, curves of classifiers and of survival, and the bounds of a guarantee.

Curves of a guarantee are public: they can be recomputed from ``ledger.json``. The waterfall of epsilon shows
the cost that each noisy statistic adds to those before it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from dpsynth.evaluation.results import (
    Calibration,
    Detail,
    Evaluation,
    Measure,
    OverTime,
    Paths,
    Roc,
    any_internal,
)
from dpsynth.privacy.profile import Profile
from dpsynth.report import plots
from dpsynth.report.plots import Plot
from dpsynth.report.words import (
    bound,
    decimals,
    in_percent,
    level_text,
    percent,
    plain,
    round_up,
    shown,
    shown_with_interval,
)
from dpsynth.studies.estimation import SurvivalCurve

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
        label + (f", {plots.NAMES[table]}: " if paired else " ") + shown_with_interval(m)
        for label, table, m in known
    ]

    def draw() -> Figure:
        figure, (axis,) = plots.panels(height=0.75 + (0.36 if paired else 0.28) * max(len(labels), 1))
        axis.axvline(reference, color="black", linewidth=1, linestyle=":")
        for label, table, m in known:
            place = labels.index(label) + ((tables.index(table) - 0.5) * 0.36 if paired else 0.0)
            look = plots.TABLES[table]
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
                label=None if label != labels[-1] else f"trained on {plots.NAMES[table]}",
            )
        axis.set_yticks(range(len(labels)), [plots.clipped_text(label, 26) for label in labels])
        axis.set_ylim(len(labels) - 0.5, -0.5)
        axis.grid(axis="y", visible=False)
        axis.set_xlabel(axis_label)
        plots.legend_of_curves(figure, axis, len(tables), columns=1)
        return figure

    alt = f"{what}. {'. '.join(said)}. The line stands at {shown(reference)}."
    return Plot(draw, alt, caption, internal=any(m.internal for _, _, m in known))


def plot_roc(details: Sequence[Detail[Roc]]) -> Plot:
    """Draw the receiver operating characteristic of one classifier on held-out records."""
    curves = [detail.data for detail in details]

    def draw() -> Figure:
        axes = ("false positive rate", "true positive rate")
        return _unit_square(curves, [(c.fpr, c.tpr) for c in curves], axes, marker="")

    model = _words(curves[0])
    said = ", ".join(f"{shown(c.auc)} trained on {plots.NAMES[c.trained_on]}" for c in curves)
    alt = f"ROC of the {model} on held-out real records. AUC {said}."
    return Plot(draw, alt, f"{model}: AUC {said}", internal=any_internal(details))


def plot_calibration(details: Sequence[Detail[Calibration]]) -> Plot:
    """Draw observed over predicted risks of one classifier."""
    curves = [detail.data for detail in details]

    def draw() -> Figure:
        axes = ("predicted risk", "observed share")
        return _unit_square(curves, [(c.predicted, c.observed) for c in curves], axes, marker="o")

    model = _words(curves[0])
    alt = f"Calibration of the {model}: observed share of the outcome over the predicted risk. " + " ".join(
        f"Trained on {plots.NAMES[c.trained_on]}: "
        + ", ".join(f"{shown(p)} to {shown(o)}" for p, o in zip(c.predicted, c.observed, strict=False))
        + "."
        for c in curves
    )
    return Plot(draw, alt, f"{model}: calibration", internal=any_internal(details))


def _unit_square(
    curves: Sequence[Roc | Calibration],
    points: Sequence[tuple[Sequence[float], Sequence[float]]],
    axes: tuple[str, str],
    marker: str,
) -> Figure:
    """Draw the points of each curve beside the diagonal."""
    figure, (axis,) = plots.panels(height=3.0)
    axis.plot([0, 1], [0, 1], color="black", linewidth=0.8, linestyle=":")
    for curve, (across, up) in zip(curves, points, strict=True):
        table = curve.trained_on
        label = f"trained on {plots.NAMES[table]}"
        axis.plot(across, up, label=label, marker=marker, markersize=4, **plots.TABLES[table])
    axis.set(xlabel=axes[0], ylabel=axes[1], aspect="equal")
    axis.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02))
    plots.legend_of_curves(figure, axis, 2, columns=1)
    return figure


def _words(curve: Roc | Calibration) -> str:
    return curve.model.replace("_", " ")


def plot_survival(curve: SurvivalCurve, study: str, *, internal: bool) -> Plot:
    """Draw a survival curve for a page, with a few of its times in words."""
    band = f"{level_text(curve.level)} band"
    alt = f"Survival curve of regression {study} with its {band}. {'. '.join(str(curve).splitlines())}."
    caption = (
        f"Pre-specified regression {study}: survival with its {band} at each time, whatever the predictors"
    )
    return Plot(lambda: draw_survival(curve), alt, caption, internal=internal)


def draw_survival(curve: SurvivalCurve) -> Figure:
    """Draw a survival curve: all are alive at 0, and each value holds until the next time."""
    figure, (axis,) = plots.panels(width=4.5, height=2.8)
    # the last is seen a little longer than its time
    times = np.r_[0.0, curve.times, 1.03 * curve.times[-1]]
    survival, lower, upper = (np.r_[1.0, v, v[-1]] for v in (curve.survival, curve.lower, curve.upper))
    colour = plots.COLOURS[6]
    axis.fill_between(times, lower, upper, step="post", color=colour, alpha=0.15, linewidth=0)
    for end in (lower, upper):
        axis.step(times, end, where="post", color=colour, linewidth=0.7, linestyle="--")
    axis.step(times, survival, where="post", color=colour)
    unit = f" ({curve.unit})" if curve.unit else ""
    axis.set(xlabel=f"time{unit}", ylabel="survival", xlim=(0.0, times[-1]), ylim=(-0.02, 1.02))
    return figure


def plot_curves(profile: Profile, delta: float) -> tuple[Plot, ...]:
    """Draw error rates, ROC, advantage, and delta over epsilon (a dot at ``delta``). Nothing if void."""
    if not profile.private:
        return ()
    fpr = np.unique(np.concatenate([np.linspace(0, 1, 161), np.geomspace(1e-4, 1e-2, 15)]))
    fnr = np.clip(np.asarray(profile.fnr(fpr), dtype=float), 0.0, 1.0)
    tv, epsilon = profile.tv(), profile.epsilon(delta)
    member_share = percent(float(profile.tpr(0.01)))
    at = f"At a false positive rate of 1 % it finds at most {member_share} % of members"
    drawn = [
        Plot(
            lambda: _rates(fpr, fnr, "false negative rate", (1, 0)),
            f"Trade-off curve: smallest false negative rate of any membership test over its false positive "
            f"rate, below the diagonal of blind guessing. {at}.",
            "Trade-off: no membership test has error rates below the curve",
        ),
        Plot(
            lambda: _rates(fpr, 1 - fnr, "true positive rate", (0, 1)),
            f"ROC bound: largest true positive rate of any membership test over its false positive rate, "
            f"above the diagonal of blind guessing. {at}.",
            "ROC bound: no membership test lies above the curve",
        ),
        Plot(
            lambda: _advantage(fpr, fnr, tv),
            f"Largest advantage of a membership test over its false positive rate. Its maximum is the total "
            f"variation, {round_up(tv)}.",
            f"Advantage: true minus false positive rate, at most the total variation, {round_up(tv)}",
        ),
    ]
    if math.isfinite(epsilon):
        drawn.append(
            Plot(
                lambda: _deltas(profile, delta, epsilon),
                f"delta over epsilon on a logarithmic scale: from {round_up(tv)} at epsilon 0 to "
                f"{round_up(delta)} at epsilon {round_up(epsilon)}.",
                f"δ for each ε (dot: ε = {round_up(epsilon)} at δ = {round_up(delta)})",
            )
        )
    return tuple(drawn)


def _rates(fpr: np.ndarray, rate: np.ndarray, label: str, blind: tuple[float, float]) -> Figure:
    figure, (axis,) = plots.panels(height=3.0)
    axis.fill_between(fpr, rate, blind if len(fpr) == 2 else np.interp(fpr, [0, 1], blind), alpha=0.15)
    axis.plot(fpr, rate, label="any test, at best", **plots.line(0))
    axis.plot([0, 1], blind, color="black", linewidth=0.8, linestyle=":", label="blind guessing")
    axis.set(xlabel="false positive rate", ylabel=label, aspect="equal")
    axis.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02))
    plots.legend_below(figure, axis, columns=2)
    return figure


def _advantage(fpr: np.ndarray, fnr: np.ndarray, tv: float) -> Figure:
    figure, (axis,) = plots.panels(height=2.6)
    axis.plot(fpr, np.maximum(1 - fpr - fnr, 0), label="advantage, at best", **plots.line(0))
    axis.axhline(tv, label="total variation", **plots.line(1))
    axis.set(xlabel="false positive rate", ylabel="TPR − FPR", xlim=(0, 1))
    axis.set_ylim(0, max(1.15 * tv, 1e-9))
    plots.legend_below(figure, axis, columns=2)
    return figure


def _deltas(profile: Profile, delta: float, epsilon: float) -> Figure:
    figure, (axis,) = plots.panels(height=2.6)
    grid = np.linspace(0.0, max(1.3 * epsilon, 0.1), 121)
    values = np.array([profile.delta(float(e)) for e in grid])
    positive = values > 0
    axis.plot(grid[positive], values[positive], **plots.line(0))
    if delta > 0:
        axis.plot([epsilon], [delta], "o", color=plots.COLOURS[1])
        axis.set_ylim(bottom=delta / 30, top=1.5)
    axis.set_yscale("log")
    plots.plain_ticks(axis.yaxis)
    axis.set(xlabel="ε", ylabel="δ", xlim=(0, grid[-1]))
    return figure


# Bars of one panel of the waterfall: more would not fit a printed page at a size that can be read.
_BARS = 25
# Up to here bars carry the names of their entries, above their numbers in the table.
_NAMED = 10


def plot_costs(entries: Sequence[Mapping[str, Any]], delta: float) -> tuple[Plot, ...]:
    """Draw epsilon entry by entry: each bar reaches from the cost before it to the cost with it.

    ``entries`` are those of ``Ledger.summary(delta)``. Epsilons may be infinite. A plot has at most 25.
    """
    before = [0.0, *(entry["epsilon_cumulative"] for entry in entries)]
    finite = [
        value
        for entry in entries
        for value in (entry["epsilon_cumulative"], entry["epsilon_alone"])
        if math.isfinite(value)
    ]
    reach = max([*finite, 0.0]) or 1.0
    parts = [range(start, min(start + _BARS, len(entries))) for start in range(0, len(entries), _BARS)]
    named = len(entries) <= _NAMED
    drawn = []
    for rows in parts:
        said = [
            f"{place + 1}, {entries[place]['name']}: from {bound(before[place])} to "
            f"{bound(before[place + 1])}"
            for place in rows
        ]
        which = "" if len(parts) == 1 else f", entries {rows[0] + 1} to {rows[-1] + 1}"
        drawn.append(
            Plot(
                partial(_bars, entries, before, rows, reach, named),
                f"Waterfall of epsilon at delta {round_up(delta)}{which}. {'. '.join(said)}.",
                f"Each noisy statistic: ε that it adds (bars), and its ε alone (dots){which}",
            )
        )
    return tuple(drawn)


def _bars(
    entries: Sequence[Mapping[str, Any]], before: Sequence[float], rows: range, reach: float, named: bool
) -> Figure:
    from matplotlib.transforms import blended_transform_factory

    step = 0.42 if named else 0.2
    figure, (axis,) = plots.panels(height=0.75 + step * len(rows))
    unbounded = any(math.isinf(before[place + 1]) for place in rows)
    end = reach * (1.3 if unbounded else 1.16)
    beside = blended_transform_factory(axis.transAxes, axis.transData)
    for row, place in enumerate(rows):
        low, high = min(before[place], reach * 1.02), before[place + 1]
        endless = math.isinf(high)
        top = end if endless else high
        fill, edge = ("white", plots.COLOURS[1]) if endless else (plots.COLOURS[0], plots.COLOURS[0])
        hatch = "////" if endless else None
        # with an edge, so that the thinnest bar is seen
        axis.barh(row, top - low, left=low, height=0.55, color=fill, edgecolor=edge, hatch=hatch)
        axis.text(min(top, reach) + 0.035 * reach, row, bound(high), va="center", fontsize=8)
        alone = entries[place]["epsilon_alone"]
        if math.isfinite(alone):
            axis.plot([alone], [row], "o", color="white", markeredgecolor="black", markersize=4)
        if named:
            name = plots.clipped_text(entries[place]["name"], 44)
            axis.text(0.01, row - 0.32, name, transform=beside, va="bottom", fontsize=8)
    axis.set_yticks(range(len(rows)), [str(place + 1) for place in rows])
    axis.set_ylim(len(rows) - 0.5, -0.8 if named else -0.6)
    axis.set_xlim(0, end)
    axis.grid(axis="y", visible=False)
    axis.set_xlabel("ε so far")
    return figure


# ------------------------------------------------------------------------------------------------
# Patients over time, real beside synthetic: paths of a few patients, rows a patient, gaps, correlations.
#
# Paths of both tables share one scale, so that slopes and spreads compare by eye.

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
        figure, axes = plots.panels(columns=len(tables), height=2.6)
        for axis, data in zip(axes, tables, strict=True):
            axis.sharex(axes[0])
            axis.sharey(axes[0])
            for place, path in enumerate(data.paths):
                axis.plot(path.times, path.values, marker="o", markersize=2, lw=0.9, **plots.line(place))
            axis.set_title(_patients(data))
            axis.set_xlabel(plots.clipped_text(f"{first.clock}, since the first row", 44))
        axes[0].set_ylabel(
            plots.clipped_text(f"{first.column}, {first.unit}" if first.unit else first.column, 30)
        )
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
        figure, (axis,) = plots.panels(height=2.1)
        for data in tables:
            edges = np.arange(len(data.rows) + 1) + 0.5
            axis.stairs(data.rows, edges, label=_name(data), linewidth=1.6, **plots.TABLES[data.table])
        axis.set_ylim(bottom=0)
        axis.set(xlabel="rows a patient", ylabel="share of patients")
        plots.legend_of_curves(figure, axis, len(tables))
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
        figure, (axis,) = plots.panels(height=2.1)
        for data in tables:
            shares = np.linspace(0.0, 1.0, len(data.gaps))
            axis.plot(data.gaps, shares, label=_name(data), **plots.TABLES[data.table])
        axis.set_ylim(-0.02, 1.02)
        # Most gaps are short, and a few are very long.
        longest = max(*ends, 1e-9)
        axis.set_xscale("symlog", linthresh=longest / 100)
        axis.set_xlim(0.0, longest)
        plots.plain_ticks(axis.xaxis)
        axis.set(
            xlabel=plots.clipped_text(f"time between rows ({tables[0].clock})", 44), ylabel="share of gaps"
        )
        plots.legend_of_curves(figure, axis, len(tables))
        return figure

    said = [f"{_name(data)} {plain(data.gaps[len(data.gaps) // 2], 4)}" for data in tables]
    alt = f"Cumulated share of the times between rows. Medians: {', '.join(said)}."
    return Plot(draw, alt, "Times between a patient's rows", internal=any_internal(details))


def plot_lags(details: Sequence[Detail[OverTime]], column: str) -> Plot:
    """Draw how a number goes with the patient's own later values."""
    tables = [(detail.data, detail.data.lags[column]) for detail in details]

    def draw() -> Figure:
        figure, (axis,) = plots.panels(height=2.1)
        for data, lags in tables:
            values = [np.nan if value is None else value for value in lags]
            places = range(1, len(values) + 1)
            label = _name(data)
            axis.plot(places, values, marker="o", markersize=3, label=label, **plots.TABLES[data.table])
        axis.set_ylim(min(-0.02, *axis.get_ylim()), 1.02)
        axis.set(xlabel="values later", ylabel="correlation")
        plots.legend_of_curves(figure, axis, len(tables))
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
        figure, (axis,) = plots.panels(height=2.1)
        for data, curve in tables:
            times, values = [0.0, *curve.times], [1.0, *curve.values]
            axis.step(times, values, where="post", label=_name(data), **plots.TABLES[data.table])
        axis.set_ylim(-0.02, 1.02)
        axis.set_xlabel(plots.clipped_text(f"{tables[0][0].clock}, since the first row", 44))
        axis.set_ylabel("share, no event")
        plots.legend_of_curves(figure, axis, len(tables))
        return figure

    said = [f"{_name(data)} {in_percent(curve.values[-1])}" for data, curve in tables]
    caption = f"{column}: share of patients without the event (Kaplan-Meier)"
    return Plot(draw, f"{caption}. At the end: {', '.join(said)}.", caption, internal=any_internal(details))


def _name(data: OverTime) -> str:
    return "synthetic patients" if data.table == "synthetic" else "real patients"
