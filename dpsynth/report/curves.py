"""Scores with their intervals, curves of classifiers and of survival, and the bounds of a guarantee.

Curves of a guarantee are public: they can be recomputed from ``ledger.json``. The waterfall of epsilon shows
the cost that each noisy statistic adds to those before it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from dpsynth.evaluation.results import Evaluation, Measure, any_confidential, frame_rows, plain_cells
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


def plot_roc(frame: pd.DataFrame) -> Plot:
    """Draw the receiver operating characteristic of one classifier on held-out records."""
    curves = _by_training(frame)

    def draw() -> Figure:
        axes = ("false positive rate", "true positive rate")
        return _unit_square({on: (c["fpr"], c["tpr"]) for on, c in curves.items()}, axes, marker="")

    model = _words(frame)
    aucs = {on: plain_cells(curve["auc"])[0] for on, curve in curves.items()}
    said = ", ".join(f"{shown(auc)} trained on {plots.NAMES[on]}" for on, auc in aucs.items())
    alt = f"ROC of the {model} on held-out real records. AUC {said}."
    return Plot(draw, alt, f"{model}: AUC {said}", internal=any_confidential(frame))


def plot_calibration(frame: pd.DataFrame) -> Plot:
    """Draw observed over predicted risks of one classifier."""
    curves = {on: (c["predicted"], c["observed"]) for on, c in _by_training(frame).items()}

    def draw() -> Figure:
        return _unit_square(curves, ("predicted risk", "observed share"), marker="o")

    model = _words(frame)
    alt = f"Calibration of the {model}: observed share of the outcome over the predicted risk. " + " ".join(
        f"Trained on {plots.NAMES[on]}: "
        + ", ".join(f"{shown(p)} to {shown(o)}" for p, o in zip(predicted, observed, strict=True))
        + "."
        for on, (predicted, observed) in curves.items()
    )
    return Plot(draw, alt, f"{model}: calibration", internal=any_confidential(frame))


def _by_training(frame: pd.DataFrame) -> dict[str, pd.DataFrame]:
    return {str(table): part for table, part in frame.groupby("trained_on", sort=False)}


def _unit_square(
    curves: Mapping[str, tuple[pd.Series, pd.Series]], axes: tuple[str, str], marker: str
) -> Figure:
    """Draw the points of each curve beside the diagonal."""
    figure, (axis,) = plots.panels(height=3.0)
    axis.plot([0, 1], [0, 1], color="black", linewidth=0.8, linestyle=":")
    for table, (across, up) in curves.items():
        label = f"trained on {plots.NAMES[table]}"
        axis.plot(across, up, label=label, marker=marker, markersize=4, **plots.TABLES[table])
    axis.set(xlabel=axes[0], ylabel=axes[1], aspect="equal")
    axis.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02))
    plots.legend_of_curves(figure, axis, 2, columns=1)
    return figure


def _words(curves: pd.DataFrame) -> str:
    return str(curves["model"].iloc[0]).replace("_", " ")


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
    drawn = {
        f"paths[{_first(paths, 'column')}]": plot_paths(paths)
        for paths in evaluation.groups("paths", "column")
    }
    for name, plot in (("rows_per_patient", plot_rows), ("gaps", plot_gaps)):
        drawn |= {name.removesuffix("_per_patient"): plot(frame) for frame in evaluation.groups(name)}
    for lags in evaluation.groups("lags", "column"):
        known = lags.groupby("table", sort=False).filter(lambda own: bool(own["correlation"].notna().any()))
        if len(known):
            drawn[f"lags[{_first(known, 'column')}]"] = plot_lags(known)
    events = evaluation.groups("events", "event")
    return drawn | {f"events[{_first(curves, 'event')}]": plot_event(curves) for curves in events}


def _first(frame: pd.DataFrame, column: str) -> str:
    return str(frame[column].iloc[0])


def _by_table(frame: pd.DataFrame) -> dict[str, pd.DataFrame]:
    tables = dict(iter(frame.groupby("table", sort=False)))
    return {table: tables[table] for table in _ORDER if table in tables}


def plot_paths(frame: pd.DataFrame) -> Plot:
    """Draw one number of a few patients over the time since their first row, a panel for each table."""
    tables = _by_table(frame)
    first, *_ = frame_rows(frame)

    def draw() -> Figure:
        figure, axes = plots.panels(columns=len(tables), height=2.6)
        for axis, (table, paths) in zip(axes, tables.items(), strict=True):
            axis.sharex(axes[0])
            axis.sharey(axes[0])
            for place, (_, path) in enumerate(paths.groupby("patient")):
                look = plots.line(place)
                axis.plot(path["time"], path["value"], marker="o", markersize=2, lw=0.9, **look)
            axis.set_title(_patients(table, paths))
            axis.set_xlabel(plots.clipped_text(f"{first.clock}, since the first row", 44))
        axes[0].set_ylabel(
            plots.clipped_text(f"{first.column}, {first.unit}" if first.unit else first.column, 30)
        )
        return figure

    said = []
    for table, paths in tables.items():
        low, high = (plain(end, 4) for end in (paths["value"].min(), paths["value"].max()))
        said.append(f"{_patients(table, paths)}, from {low} to {high}")
    caption = f"{first.column} of random patients, one line each"
    if len(tables) > 1:
        caption += ". Both panels have one scale"
    alt = f"{first.column} over time: {'. '.join(said)}."
    return Plot(draw, alt, caption, internal=any_confidential(frame))


def _patients(table: str, paths: pd.DataFrame) -> str:
    return f"{paths['patient'].nunique()} {_name(table)}"


def plot_rows(frame: pd.DataFrame) -> Plot:
    """Draw the shares of patients by their number of rows."""
    tables = _by_table(frame)

    def draw() -> Figure:
        figure, (axis,) = plots.panels(height=2.1)
        for table, own in tables.items():
            edges = np.arange(len(own) + 1) + 0.5
            shares, label = own["share"].to_numpy(), _name(table)
            axis.stairs(shares, edges, label=label, linewidth=1.6, **plots.TABLES[table])
        axis.set_ylim(bottom=0)
        axis.set(xlabel="rows a patient", ylabel="share of patients")
        plots.legend_of_curves(figure, axis, len(tables))
        return figure

    said = [
        f"Most frequent in {_name(table)}: {own['rows'].iloc[int(np.argmax(own['share']))]} "
        f"({in_percent(own['share'].max())})"
        for table, own in tables.items()
    ]
    alt = f"Share of patients over their number of rows. {'. '.join(said)}."
    return Plot(draw, alt, "Rows a patient", internal=any_confidential(frame))


def plot_gaps(frame: pd.DataFrame) -> Plot:
    """Draw the cumulated shares of the times between rows."""
    tables = _by_table(frame)

    def draw() -> Figure:
        figure, (axis,) = plots.panels(height=2.1)
        for table, own in tables.items():
            axis.plot(own["gap"], own["share"], label=_name(table), **plots.TABLES[table])
        axis.set_ylim(-0.02, 1.02)
        # Most gaps are short, and a few are very long.
        longest = max(float(frame["gap"].max()), 1e-9)
        axis.set_xscale("symlog", linthresh=longest / 100)
        axis.set_xlim(0.0, longest)
        plots.plain_ticks(axis.xaxis)
        clock = _first(frame, "clock")
        axis.set(xlabel=plots.clipped_text(f"time between rows ({clock})", 44), ylabel="share of gaps")
        plots.legend_of_curves(figure, axis, len(tables))
        return figure

    said = [f"{_name(table)} {plain(own['gap'].iloc[len(own) // 2], 4)}" for table, own in tables.items()]
    alt = f"Cumulated share of the times between rows. Medians: {', '.join(said)}."
    return Plot(draw, alt, "Times between a patient's rows", internal=any_confidential(frame))


def plot_lags(frame: pd.DataFrame) -> Plot:
    """Draw how one number goes with the patient's own later values."""
    tables = _by_table(frame)

    def draw() -> Figure:
        figure, (axis,) = plots.panels(height=2.1)
        for table, own in tables.items():
            values = own["correlation"].astype(float)
            axis.plot(own["lag"], values, marker="o", markersize=3, label=_name(table), **plots.TABLES[table])
        axis.set_ylim(min(-0.02, *axis.get_ylim()), 1.02)
        axis.set(xlabel="values later", ylabel="correlation")
        plots.legend_of_curves(figure, axis, len(tables))
        return figure

    said = [
        f"{_name(table)} {', '.join('n/a' if lag is None else decimals(lag, 2) for lag in values)}"
        for table, values in ((table, plain_cells(own["correlation"])) for table, own in tables.items())
    ]
    caption = f"{_first(frame, 'column')}: correlation with the patient's later values"
    return Plot(draw, f"{caption}. {'. '.join(said)}.", caption, internal=any_confidential(frame))


def plot_event(frame: pd.DataFrame) -> Plot:
    """Draw the share of patients without a terminal event over the time since their first row."""
    tables = _by_table(frame)

    def draw() -> Figure:
        figure, (axis,) = plots.panels(height=2.1)
        for table, curve in tables.items():
            times, shares = [0.0, *curve["time"]], [1.0, *curve["share"]]
            axis.step(times, shares, where="post", label=_name(table), **plots.TABLES[table])
        axis.set_ylim(-0.02, 1.02)
        axis.set_xlabel(plots.clipped_text(f"{_first(frame, 'clock')}, since the first row", 44))
        axis.set_ylabel("share, no event")
        plots.legend_of_curves(figure, axis, len(tables))
        return figure

    said = [f"{_name(table)} {in_percent(curve['share'].iloc[-1])}" for table, curve in tables.items()]
    caption = f"{_first(frame, 'event')}: share of patients without the event (Kaplan-Meier)"
    return Plot(draw, f"{caption}. At the end: {', '.join(said)}.", caption, internal=any_confidential(frame))


def _name(table: str) -> str:
    return "synthetic patients" if table == "synthetic" else "real patients"
