"""The plots of a report by kind: curves, bars, paths and matrices, each with its words.

Curves of a guarantee are public: they can be recomputed from ``ledger.json``. Any other plot is internal if
one of its numbers is. A panel is as wide as a phone. Its column's name stands in the caption, which wraps.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd

from dpsynth.checks import Counted
from dpsynth.evaluation.results import Evaluation, any_confidential, frame_rows, plain_cells
from dpsynth.privacy.profile import Profile
from dpsynth.report.figure import (
    COLOURS,
    TABLES,
    Plot,
    clipped_text,
    date_ticks,
    finished,
    line,
    names_of,
    panels,
    styled,
)  # fmt: skip
from dpsynth.report.words import (
    bound,
    column_value,
    decimals,
    in_percent,
    level_text,
    percent,
    plain,
    round_up,
    shown,
)  # fmt: skip
from dpsynth.studies.estimation import SurvivalCurve
from dpsynth.table.kinds import kind_of_unit

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from numpy.typing import ArrayLike


# ------------------------------------------------------------------------------------------------
# Curves of tables over each other, a line of a table for each kind of curve.

#: in the order of the curves, real ones first
_PATIENTS = {"train": "real patients", "test": "real patients", "synthetic": "synthetic patients"}
_WHOLE = (-0.02, 1.02)
#: the diagonal of tests that know nothing
_KNOWS_NOTHING: Any = {"color": "black", "linewidth": 0.8, "linestyle": ":"}
_UNIT_SQUARE: dict[str, Any] = {"aspect": "equal", "xlim": _WHOLE, "ylim": _WHOLE}


@dataclass(frozen=True)
class _Curves:
    """How the tables of a frame are drawn over each other, and their words.

    In ``alt``, ``caption`` and labels of ``axes``, braces stand for a cell of the first row, and ``said`` for
    what ``each`` says of every table: its ``name``, and the text of ``words``.
    """

    caption: str
    alt: str
    each: str
    words: Callable[[pd.DataFrame], str]
    points: Callable[[pd.DataFrame], tuple[ArrayLike, ArrayLike]]  #: (x, y), or heights and ends of bins
    axes: Mapping[str, Any]
    look: Mapping[str, Any] = field(default_factory=dict)
    kind: Literal["plot", "stairs"] = "plot"
    between: str = ", "
    names: Callable[[Counted], Mapping[str, str]] = lambda counted: _PATIENTS
    by: str = "table"
    legend: str = "{}"
    columns: int = 3
    fewest: int = 2
    height: float = 2.1
    diagonal: bool = False
    limits: Callable[[Axes, pd.DataFrame], object] = lambda axis, frame: None

    def __call__(self, frame: pd.DataFrame, counted: Counted) -> Plot:
        """Return the plot of one frame."""
        names = self.names(counted)
        tables = _tables(frame, names, self.by)
        facts = {name: str(cell) for name, cell in vars(frame_rows(frame.head(1))[0]).items()}
        if "model" in facts:
            facts["model"] = facts["model"].replace("_", " ")
        facts["said"] = self.between.join(
            self.each.format(name=names[table], said=self.words(own)) for table, own in tables.items()
        )
        facts["caption"] = counted.fill(self.caption, **facts)
        axes = {
            name: clipped_text(counted.fill(value, **facts), 44) if isinstance(value, str) else value
            for name, value in self.axes.items()
        }
        draw = partial(self.draw, frame, tables, names, axes)
        return Plot(draw, counted.fill(self.alt, **facts), facts["caption"], any_confidential(frame))

    def draw(
        self,
        frame: pd.DataFrame,
        tables: Mapping[str, pd.DataFrame],
        names: Mapping[str, str],
        axes: Mapping[str, Any],
    ) -> Figure:
        """Draw the curve of each table."""
        (axis,) = panels(height=self.height)
        if self.diagonal:
            axis.plot([0, 1], [0, 1], **_KNOWS_NOTHING)
        for table, own in tables.items():
            look = {"linewidth": 1.6, **TABLES[table], **self.look}
            label = self.legend.format(names[table])
            getattr(axis, self.kind)(*map(np.asarray, self.points(own)), label=label, **look)
        axis.set(**axes)
        self.limits(axis, frame)
        return finished(axis, legend=self.columns, fewest=self.fewest)


def _tables(frame: pd.DataFrame, names: Iterable[str], by: str = "table") -> dict[str, pd.DataFrame]:
    tables = dict(iter(frame.groupby(by, sort=False)))
    return {table: tables[table] for table in names if table in tables}


def _edges(bars: pd.DataFrame) -> np.ndarray:
    """Ends of the bins of one table."""
    return np.append(bars["lower"], bars["upper"].iloc[-1]).astype(float)


def _median(bars: pd.DataFrame) -> float:
    edges, total = _edges(bars), np.cumsum(bars["share"].to_numpy())
    if total[-1] <= 0:
        return float(edges[0])
    return float(edges[np.searchsorted(total, total[-1] / 2) :][:2].mean())


def _mode(rows: pd.DataFrame) -> str:
    most = rows.iloc[int(np.argmax(rows["share"]))]
    return f"{int(most['rows'])} ({in_percent(most['share'])})"


def _long_gaps(axis: Axes, frame: pd.DataFrame) -> None:
    """Most gaps are short, and a few are very long."""
    longest = max(float(frame["gap"].max()), 1e-9)
    axis.set_xscale("symlog", linthresh=longest / 100)
    axis.set_xlim(0.0, longest)


_OF_MODELS: dict[str, Any] = {"names": names_of, "by": "trained_on", "legend": "trained on {}", "columns": 1}
_OF_MODELS |= {"fewest": 1, "height": 3.0, "diagonal": True}
plot_roc = _Curves(
    "{model}: AUC {said}",
    "ROC of the {model} on held-out real {records}. AUC {said}.",
    "{said} trained on {name}",
    lambda own: shown(plain_cells(own["auc"])[0]),
    lambda own: (own["fpr"], own["tpr"]),
    {"xlabel": "false positive rate", "ylabel": "true positive rate", **_UNIT_SQUARE},
    **_OF_MODELS,
)
plot_calibration = _Curves(
    "{model}: calibration",
    "Calibration of the {model}: observed share of the outcome over the predicted risk. {said}",
    "Trained on {name}: {said}.",
    lambda own: ", ".join(
        f"{shown(p)} to {shown(o)}" for p, o in zip(own["predicted"], own["observed"], strict=True)
    ),
    lambda own: (own["predicted"], own["observed"]),
    {"xlabel": "predicted risk", "ylabel": "observed share", **_UNIT_SQUARE},
    {"marker": "o", "markersize": 4},
    between=" ",
    **_OF_MODELS,
)
plot_distances = _Curves(
    "Distance to the nearest training {record}",
    "Distances to the nearest training {record}. Medians about: {said}.",
    "{name} {said}",
    lambda own: shown(_median(own)),
    lambda own: (own["share"], _edges(own)),
    {"xlabel": "distance ({space})", "ylabel": "share of {records}", "ylim": (0, None)},
    kind="stairs",
    height=2.6,
    names=names_of,
    legend="{} to training",
    columns=1,
    fewest=1,
)
plot_rows = _Curves(
    "Rows a patient",
    "Share of patients over their number of rows. {said}.",
    "Most frequent in {name}: {said}",
    _mode,
    lambda own: (own["share"], np.arange(len(own) + 1) + 0.5),
    {"xlabel": "rows a patient", "ylabel": "share of patients", "ylim": (0, None)},
    kind="stairs",
    between=". ",
)
plot_gaps = _Curves(
    "Times between a patient's rows",
    "Cumulated share of the times between rows. Medians: {said}.",
    "{name} {said}",
    lambda own: plain(own["gap"].iloc[len(own) // 2], 4),
    lambda own: (own["gap"], own["share"]),
    {"xlabel": "time between rows ({clock})", "ylabel": "share of gaps", "ylim": _WHOLE},
    limits=_long_gaps,
)
plot_lags = _Curves(
    "{column}: correlation with the patient's later values",
    "{caption}. {said}.",
    "{name} {said}",
    lambda own: ", ".join(
        "n/a" if lag is None else decimals(lag, 2) for lag in plain_cells(own["correlation"])
    ),
    lambda own: (own["lag"], own["correlation"].astype(float)),
    {"xlabel": "values later", "ylabel": "correlation"},
    {"marker": "o", "markersize": 3},
    between=". ",
    limits=lambda axis, _: axis.set_ylim(min(-0.02, *axis.get_ylim()), 1.02),
)
plot_event = _Curves(
    "{event}: share of patients without the event (Kaplan-Meier)",
    "{caption}. At the end: {said}.",
    "{name} {said}",
    lambda own: in_percent(own["share"].iloc[-1]),
    lambda own: ([0.0, *own["time"]], [1.0, *own["share"]]),
    {"xlabel": "{clock}, since the first row", "ylabel": "share, no event", "ylim": _WHOLE},
    {"drawstyle": "steps-post"},
)


# ------------------------------------------------------------------------------------------------
# Distributions of one column, synthetic over real. Numbers have steps, categories bars.

# Rows of a bar chart that a phone shows readably.
_MOST_BARS = 20


def plot_marginals(frame: pd.DataFrame, counted: Counted) -> Plot:
    """Draw one column's distribution, of one table or of several over each other, with the same bins."""
    (first, *_), names = frame_rows(frame), names_of(counted)
    caption = str(first.column)
    caption += f" ({first.unit})" if first.unit and kind_of_unit(first.unit) is None else ""
    for cell, what in (("missing", "Missing"), ("special", "Special codes")):
        apart = frame_rows(frame[frame["cell"] == cell])
        said = ", ".join(f"{names[row.table]} {in_percent(row.share)}" for row in apart)
        caption += f". {what}: {said}" if apart else ""
    bars = frame[frame["cell"].isin(("zero", "bin", "category"))]
    tables = {str(table): part for table, part in bars.groupby("table", sort=False)}
    categories = int(((bars["cell"] == "category") & (bars["table"] == first.table)).sum())
    if categories > _MOST_BARS:
        caption += f". The first {_MOST_BARS} of {categories} categories"
    alt = f"Share of {counted} over {first.column}, {' and '.join(names[table] for table in tables)}. "
    alt += " ".join(_peak(bars, names) for bars in tables.values())
    draw = _categories if categories else _numeric
    return Plot(partial(draw, tables, names), alt, caption, any_confidential(frame))


def _peak(bars: pd.DataFrame, names: Mapping[str, str]) -> str:
    """Where most records of one table are, in words."""
    most = frame_rows(bars)[int(np.argmax(bars["share"]))]
    if most.share <= 0:
        return f"No {most.table} value."
    low, high = most.lower, most.upper
    text: Callable[..., str] = partial(plain, figures=4)
    if most.cell != "bin":
        low, high, text = most.label if most.cell == "category" else 0, math.nan, str
    elif _is_calendar(most.unit):  # bins end half a step outside
        low, high = _days([low, high], most.unit)
        low, high, text = math.ceil(low), math.floor(high), partial(column_value, unit="date")
    elif all(edge % 1 == 0.5 for edge in _edges(bars)):  # those of whole numbers as well
        low, high = low + 0.5, high - 0.5
    where = text(low) + (f" to {text(high)}" if most.cell == "bin" and high > low else "")
    return f"Most frequent in {names[most.table]}: {where} ({in_percent(most.share)})."


def _is_calendar(unit: str | None) -> bool:
    kind = kind_of_unit(unit)
    return kind is not None and kind.seconds is not None


def _days(edges: ArrayLike, unit: str) -> np.ndarray:
    """Dates as days since 1970-01-01."""
    kind = kind_of_unit(unit)
    assert kind is not None
    return np.asarray(edges, dtype=float) * kind.unit_size


def _numeric(tables: Mapping[str, pd.DataFrame], names: Mapping[str, str]) -> Figure:
    (axis,), bars = panels(height=2.1), next(iter(tables.values()))
    edges, unit = _edges(bars), plain_cells(bars["unit"])[0]
    log = bars["scale"].iloc[0] == "log" and edges.min() > 0
    if _is_calendar(unit):
        edges = _days(edges, unit)
        date_ticks(axis.xaxis)
    scale = _to_equal_widths(np.log(edges) if log else edges)
    for table, own in tables.items():
        share, look = own["share"].to_numpy(dtype=float) * scale, TABLES[table]
        axis.stairs(share, edges, label=names[table], linewidth=1.6, **look)
        if table == "synthetic":
            axis.stairs(share, edges, fill=True, color=look["color"], alpha=0.18, linewidth=0)
    if log:
        axis.set_xscale("log")
    ylabel = "share" if np.all(scale == 1) else "share by width"
    xlabel = clipped_text(unit or "value", 40)
    return finished(axis, legend=3, ylim=(0, None), xlabel=xlabel, ylabel=ylabel)


def _to_equal_widths(edges: np.ndarray) -> np.ndarray:
    """Factors that make heights comparable where bins differ in width, as those of whole numbers do.

    A bin of the median width keeps its height. All are 1 where widths agree.
    """
    widths = np.diff(edges)
    if len(widths) == 0 or widths.min() <= 0 or widths.max() < 1.01 * widths.min():
        return np.ones(len(widths))
    return np.asarray(np.median(widths) / widths)


def _categories(tables: Mapping[str, pd.DataFrame], names: Mapping[str, str]) -> Figure:
    labels = [clipped_text(label, 16) for label in next(iter(tables.values()))["label"][:_MOST_BARS]]
    (axis,) = panels(height=0.75 + len(labels) * (0.16 + 0.09 * len(tables)))
    width = 0.8 / len(tables)
    for place, (table, bars) in enumerate(tables.items()):
        rows = np.arange(len(labels)) + (place - (len(tables) - 1) / 2) * width
        colour = TABLES[table]["color"]
        # hatched as well, since print may have no colours
        look: dict[str, Any] = (
            {"color": colour} if table == "synthetic" else {"color": "white", "hatch": "////"}
        )
        look |= {"edgecolor": colour, "label": names[table]}
        axis.barh(rows, bars["share"].to_numpy()[: len(labels)], height=width, **look)
    limits: dict[str, Any] = {"xlim": (0, None), "ylim": (len(labels) - 0.4, -0.6)}
    return finished(axis, rows=labels, legend=3, xlabel="share", **limits)


# ------------------------------------------------------------------------------------------------
# Patients over time: paths of a few, and survival.


def plot_paths(frame: pd.DataFrame, counted: Counted) -> Plot:
    """Draw one number of a few patients over the time since their first row, a panel for each table.

    Paths of both tables share one scale, so that slopes and spreads compare by eye.
    """
    tables = _tables(frame, _PATIENTS)
    first, *_ = frame_rows(frame)
    titles = {table: f"{own['patient'].nunique()} {_PATIENTS[table]}" for table, own in tables.items()}

    def draw() -> Figure:
        axes = panels(len(tables), height=2.6)
        for axis, (table, paths) in zip(axes, tables.items(), strict=True):
            axis.sharex(axes[0])
            axis.sharey(axes[0])
            for place, (_, path) in enumerate(paths.groupby("patient")):
                axis.plot(path["time"], path["value"], marker="o", markersize=2, lw=0.9, **line(place))
            axis.set(title=titles[table], xlabel=clipped_text(f"{first.clock}, since the first row", 44))
        unit = f", {first.unit}" if first.unit else ""
        return finished(axes[0], ylabel=clipped_text(f"{first.column}{unit}", 30))

    said = [
        f"{titles[table]}, from {plain(own['value'].min(), 4)} to {plain(own['value'].max(), 4)}"
        for table, own in tables.items()
    ]
    caption = f"{first.column} of random patients, one line each"
    caption += ". Both panels have one scale" if len(tables) > 1 else ""
    alt = f"{first.column} over time: {'. '.join(said)}."
    return Plot(draw, alt, caption, any_confidential(frame))


def plot_survival(curve: SurvivalCurve, study: str, *, internal: bool) -> Plot:
    """Draw a survival curve for a page, with a few of its times in words."""
    band = f"{level_text(curve.level)} band"
    alt = f"Survival curve of regression {study} with its {band}. {'. '.join(str(curve).splitlines())}."
    caption = (
        f"Pre-specified regression {study}: survival with its {band} at each time, whatever the predictors"
    )
    return Plot(lambda: draw_survival(curve), alt, caption, internal)


def draw_survival(curve: SurvivalCurve) -> Figure:
    """Draw a survival curve: all are alive at 0, and each value holds until the next time."""
    (axis,) = panels(width=4.5, height=2.8)
    # the last is seen a little longer than its time
    times = np.r_[0.0, curve.times, 1.03 * curve.times[-1]]
    survival, lower, upper = (np.r_[1.0, v, v[-1]] for v in (curve.survival, curve.lower, curve.upper))
    colour = COLOURS[6]
    axis.fill_between(times, lower, upper, step="post", color=colour, alpha=0.15, linewidth=0)
    for end in (lower, upper):
        axis.step(times, end, where="post", color=colour, linewidth=0.7, linestyle="--")
    axis.step(times, survival, where="post", color=colour)
    unit = f" ({curve.unit})" if curve.unit else ""
    return finished(axis, xlabel=f"time{unit}", ylabel="survival", xlim=(0.0, times[-1]), ylim=_WHOLE)


# ------------------------------------------------------------------------------------------------
# What a guarantee costs and allows: curves, and bars of epsilon, entry by entry.


def plot_curves(profile: Profile, delta: float) -> tuple[Plot, ...]:
    """Draw error rates, ROC, advantage, and delta over epsilon (a dot at ``delta``). Nothing if void."""
    if not profile.private:
        return ()
    fpr = np.unique(np.concatenate([np.linspace(0, 1, 161), np.geomspace(1e-4, 1e-2, 15)]))
    fnr = np.clip(np.asarray(profile.fnr(fpr), dtype=float), 0.0, 1.0)
    tv, epsilon = profile.tv(), profile.epsilon(delta)
    at = f"At a false positive rate of 1 % it finds at most {percent(float(profile.tpr(0.01)))} % of members"
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
        Plot(
            lambda: _deltas(profile, delta, epsilon),
            f"delta over epsilon on a logarithmic scale: from {round_up(tv)} at epsilon 0 to "
            f"{round_up(delta)} at epsilon {bound(epsilon)}.",
            f"δ for each ε (dot: ε = {bound(epsilon)} at δ = {round_up(delta)})",
        ),
    ]
    return tuple(drawn if math.isfinite(epsilon) else drawn[:-1])


def _rates(fpr: np.ndarray, rate: np.ndarray, label: str, blind: tuple[float, float]) -> Figure:
    (axis,) = panels(height=3.0)
    axis.fill_between(fpr, rate, np.interp(fpr, [0, 1], blind), alpha=0.15)
    axis.plot(fpr, rate, label="any test, at best", **line(0))
    axis.plot([0, 1], blind, label="blind guessing", **_KNOWS_NOTHING)
    return finished(axis, legend=2, xlabel="false positive rate", ylabel=label, **_UNIT_SQUARE)


def _advantage(fpr: np.ndarray, fnr: np.ndarray, tv: float) -> Figure:
    (axis,) = panels(height=2.6)
    axis.plot(fpr, np.maximum(1 - fpr - fnr, 0), label="advantage, at best", **line(0))
    axis.axhline(tv, label="total variation", **line(1))
    limits: dict[str, Any] = {"xlim": (0, 1), "ylim": (0, max(1.15 * tv, 1e-9))}
    return finished(axis, legend=2, xlabel="false positive rate", ylabel="TPR − FPR", **limits)


def _deltas(profile: Profile, delta: float, epsilon: float) -> Figure:
    (axis,) = panels(height=2.6)
    grid = np.linspace(0.0, max(1.3 * epsilon, 0.1), 121)
    values = np.array([profile.delta(float(e)) for e in grid])
    axis.plot(grid[values > 0], values[values > 0], **line(0))
    limits: dict[str, Any] = {"xlim": (0, grid[-1])}
    if delta > 0:
        axis.plot([epsilon], [delta], "o", color=COLOURS[1])
        limits |= {"ylim": (delta / 30, 1.5)}
    return finished(axis, yscale="log", xlabel="ε", ylabel="δ", **limits)


# Bars of one panel of the waterfall: more would not fit a printed page at a size that can be read.
_BARS = 25
# Up to here bars carry the names of their entries, above their numbers in the table.
_NAMED = 10


def plot_costs(entries: Sequence[Mapping[str, Any]], delta: float) -> tuple[Plot, ...]:
    """Draw epsilon entry by entry: each bar reaches from the cost before it to the cost with it.

    ``entries`` are those of ``Ledger.summary(delta)``. Epsilons may be infinite. A plot has at most 25.
    """
    bars = pd.DataFrame(entries, columns=["name", "epsilon_alone", "epsilon_cumulative"])
    bars["before"] = bars["epsilon_cumulative"].shift(fill_value=0.0)
    bars["place"] = range(1, len(bars) + 1)
    ends = bars[["epsilon_cumulative", "epsilon_alone"]].to_numpy(dtype=float)
    reach = float(np.max(ends, initial=0.0, where=np.isfinite(ends))) or 1.0
    drawn = []
    for start in range(0, len(bars), _BARS):
        part = bars.iloc[start : start + _BARS]
        said = [
            f"{row.place}, {row.name}: from {bound(row.before)} to {bound(row.epsilon_cumulative)}"
            for row in frame_rows(part)
        ]
        which = "" if len(part) == len(bars) else f", entries {start + 1} to {start + len(part)}"
        drawn.append(
            Plot(
                partial(_bars, part, reach, len(bars) <= _NAMED),
                f"Waterfall of epsilon at delta {round_up(delta)}{which}. {'. '.join(said)}.",
                f"Each noisy statistic: ε that it adds (bars), and its ε alone (dots){which}",
            )
        )
    return tuple(drawn)


def _bars(bars: pd.DataFrame, reach: float, named: bool) -> Figure:
    (axis,) = panels(height=0.75 + (0.42 if named else 0.2) * len(bars))
    end = reach * (1.16 if np.isfinite(bars["epsilon_cumulative"]).all() else 1.3)
    for place, row in enumerate(frame_rows(bars)):
        low, top = min(row.before, reach * 1.02), min(row.epsilon_cumulative, end)
        look: dict[str, Any] = {"color": COLOURS[0], "edgecolor": COLOURS[0]}
        if math.isinf(row.epsilon_cumulative):
            look = {"color": "white", "edgecolor": COLOURS[1], "hatch": "////"}
        # with an edge, so that the thinnest bar is seen
        axis.barh(place, top - low, left=low, height=0.55, **look)
        said = bound(row.epsilon_cumulative)
        axis.text(min(top, reach) + 0.035 * reach, place, said, va="center", fontsize=8)
        if math.isfinite(row.epsilon_alone):
            axis.plot(row.epsilon_alone, place, "o", color="white", markeredgecolor="black", markersize=4)
        if named:
            across = axis.get_yaxis_transform()
            name = clipped_text(row.name, 44)
            axis.text(0.01, place - 0.32, name, transform=across, va="bottom", fontsize=8)
    limits: dict[str, Any] = {"xlim": (0, end), "ylim": (len(bars) - 0.5, -0.8 if named else -0.6)}
    return finished(axis, rows=[*map(str, bars["place"])], xlabel="ε so far", **limits)


def draw_groups(groups: Sequence[tuple[float, int]], *, of: str) -> Figure:
    """Draw the smallest groups (epsilon, number) that survive the noise. Without any, the panel is empty."""
    with styled():
        (axis,) = panels()
        if not groups:
            return finished(axis)
        epsilons, sizes = zip(*groups, strict=True)
        axis.plot(epsilons, sizes, marker="o", markersize=5, **line(1))
        axis.set(xscale="log", yscale="log", xticks=epsilons, yticks=sorted(set(sizes)), xlabel="ε")
        title = "Count within 30 % in 95 of 100 repeats"
        return finished(axis, ylabel=f"Smallest group, of {of}", title=title)


# ------------------------------------------------------------------------------------------------
# Associations of pairs of columns, as squares.

#: columns whose names fit beside a heat map; if there are more, they are numbered
MOST_NAMES = 10


def matrix_of(frame: pd.DataFrame) -> tuple[list[str], np.ndarray]:
    """Return the columns of one table's associations, and their matrix, NaN where it is not defined."""
    columns = [str(name) for name in dict.fromkeys(frame["first"])]
    places = {name: place for place, name in enumerate(columns)}
    matrix = np.full((len(columns), len(columns)), np.nan)
    matrix[frame["first"].map(places), frame["second"].map(places)] = frame["value"].astype(float)
    return columns, matrix


def plot_matrix(
    values: np.ndarray,
    columns: Sequence[str],
    *,
    what: str,
    caption: str,
    internal: bool,
    signed: bool = False,
) -> Plot:
    """Draw a matrix of associations in [0, 1], or of differences in [-1, 1] if ``signed``."""

    def draw() -> Figure:
        from matplotlib import colormaps

        named = len(columns) <= MOST_NAMES
        (axis,) = panels(height=3.3 if named else 2.9)
        colours = colormaps["RdBu_r" if signed else "Blues"].with_extremes(bad="#cccccc")
        low = -1.0 if signed else 0.0
        cells = np.ma.masked_invalid(values)
        image = axis.imshow(cells, cmap=colours, vmin=low, vmax=1.0, interpolation="none")
        axis.grid(visible=False)
        if named:
            ticks, names = [*range(len(columns))], [clipped_text(name, 12) for name in columns]
            axis.tick_params(axis="x", labelrotation=90)
        else:
            ticks = [i for i in range(len(columns)) if i == 0 or (i + 1) % 5 == 0]
            names = [str(i + 1) for i in ticks]
        axis.figure.colorbar(image, ax=axis, shrink=0.8, ticks=[low, (low + 1) / 2, 1])
        return finished(axis, xticks=ticks, yticks=ticks, xticklabels=names, yticklabels=names)

    return Plot(draw, f"{what}. {_strongest(values, columns)}", caption, internal)


def _strongest(values: np.ndarray, columns: Sequence[str]) -> str:
    pairs = np.abs(np.where(np.tri(len(values), k=-1).astype(bool), values, np.nan))
    if not np.isfinite(pairs).any():
        return "No pair is defined."
    row, column = np.unravel_index(int(np.nanargmax(pairs)), pairs.shape)
    return f"Largest: {columns[int(column)]} and {columns[int(row)]}, {shown(float(values[row, column]))}."


# ------------------------------------------------------------------------------------------------
# The plots of an evaluation that read one frame each.

#: by name: the frame, the column that tells several apart, the plot, and what a table must have a value of
_OF_FRAMES: dict[str, tuple[str, tuple[str, ...], Callable[[pd.DataFrame, Counted], Plot], str | None]] = {
    "roc": ("roc", ("model",), plot_roc, None),
    "calibration": ("calibration", ("model",), plot_calibration, None),
    "distances": ("distances", (), plot_distances, None),
    "paths": ("paths", ("column",), plot_paths, None),
    "rows": ("rows_per_patient", (), plot_rows, None),
    "gaps": ("gaps", (), plot_gaps, None),
    "lags": ("lags", ("column",), plot_lags, "correlation"),
    "events": ("events", ("event",), plot_event, None),
}
#: those of patients with several rows
OVER_TIME = ("paths", "rows", "gaps", "lags", "events")


def plots_of_frames(evaluation: Evaluation, *names: str) -> dict[str, Plot]:
    """Return the plots of these names that the evaluation has, such as ``gaps`` and ``lags[COLUMN]``."""
    drawn = {}
    for name in names:
        source, columns, plot, known = _OF_FRAMES[name]
        for frame in evaluation.groups(source, *columns):
            if known is not None:
                frame = frame[frame[known].notna().groupby(frame["table"]).transform("any")]
            if len(frame):
                of = "".join(f"[{frame[column].iloc[0]}]" for column in columns)
                drawn[f"{name}{of}"] = plot(frame, evaluation.counted)
    return drawn
