"""What a guarantee allows an attacker: trade-off curve, ROC bound, advantage, and delta over epsilon.

Everything here is public: it can be recomputed from ``ledger.json``.

The waterfall of epsilon: what each reading of the private table adds to the cost of those before it.

Everything here is public: it can be recomputed from ``ledger.json``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from dpsynth.accounting.guarantee import round_up
from dpsynth.accounting.profile import Profile
from dpsynth.accounting.record import EntryCost
from dpsynth.report.drawing import style
from dpsynth.report.drawing.svg import Plot, to_plot

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def plot_curves(profile: Profile, delta: float) -> tuple[Plot, ...]:
    """Draw error rates, ROC, advantage, and delta over epsilon (a dot at ``delta``); nothing if void."""
    if not profile.private:
        return ()
    fpr = np.unique(np.concatenate([np.linspace(0, 1, 161), np.geomspace(1e-4, 1e-2, 15)]))
    fnr = np.clip(np.asarray(profile.fnr(fpr), dtype=float), 0.0, 1.0)
    tv, epsilon = profile.tv(), profile.epsilon(delta)
    member_share = round_up(100 * float(profile.tpr(0.01)), 3)
    at = f"at a false positive rate of 1 % it finds at most {member_share} % of members"
    drawn = [
        to_plot(
            lambda: _rates(fpr, fnr, "false negative rate", (1, 0)),
            f"Trade-off curve: smallest false negative rate of any membership test over its false positive "
            f"rate, below the diagonal of blind guessing; {at}.",
            "Trade-off: no membership test has error rates below the curve",
        ),
        to_plot(
            lambda: _rates(fpr, 1 - fnr, "true positive rate", (0, 1)),
            f"ROC bound: largest true positive rate of any membership test over its false positive rate, "
            f"above the diagonal of blind guessing; {at}.",
            "ROC bound: no membership test lies above the curve",
        ),
        to_plot(
            lambda: _advantage(fpr, fnr, tv),
            f"Largest advantage of a membership test over its false positive rate; its maximum is the total "
            f"variation, {round_up(tv)}.",
            f"Advantage: true minus false positive rate; at most the total variation, {round_up(tv)}",
        ),
    ]
    if math.isfinite(epsilon):
        drawn.append(
            to_plot(
                lambda: _deltas(profile, delta, epsilon),
                f"delta over epsilon on a logarithmic scale: from {round_up(tv)} at epsilon 0 to "
                f"{round_up(delta)} at epsilon {round_up(epsilon)}.",
                f"δ for each ε; the dot is ε = {round_up(epsilon)} at δ = {round_up(delta)}",
            )
        )
    return tuple(drawn)


def _rates(fpr: np.ndarray, rate: np.ndarray, label: str, blind: tuple[float, float]) -> Figure:
    figure, (axis,) = style.panels(height=3.0)
    axis.fill_between(fpr, rate, blind if len(fpr) == 2 else np.interp(fpr, [0, 1], blind), alpha=0.15)
    axis.plot(fpr, rate, label="any test, at best", **style.line(0))
    axis.plot([0, 1], blind, color="black", linewidth=0.8, linestyle=":", label="blind guessing")
    axis.set(xlabel="false positive rate", ylabel=label, aspect="equal")
    axis.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02))
    style.legend_below(figure, axis, columns=2)
    return figure


def _advantage(fpr: np.ndarray, fnr: np.ndarray, tv: float) -> Figure:
    figure, (axis,) = style.panels(height=2.6)
    axis.plot(fpr, np.maximum(1 - fpr - fnr, 0), label="advantage, at best", **style.line(0))
    axis.axhline(tv, label="total variation", **style.line(1))
    axis.set(xlabel="false positive rate", ylabel="TPR − FPR", xlim=(0, 1))
    axis.set_ylim(0, max(1.15 * tv, 1e-9))
    style.legend_below(figure, axis, columns=2)
    return figure


def _deltas(profile: Profile, delta: float, epsilon: float) -> Figure:
    figure, (axis,) = style.panels(height=2.6)
    grid = np.linspace(0.0, max(1.3 * epsilon, 0.1), 121)
    values = np.array([profile.delta(float(e)) for e in grid])
    positive = values > 0
    axis.plot(grid[positive], values[positive], **style.line(0))
    if delta > 0:
        axis.plot([epsilon], [delta], "o", color=style.COLOURS[1])
        axis.set_ylim(bottom=delta / 30, top=1.5)
    axis.set_yscale("log")
    style.plain_ticks(axis.yaxis)
    axis.set(xlabel="ε", ylabel="δ", xlim=(0, grid[-1]))
    return figure


# Bars of one panel of the waterfall: more would not fit a printed page at a size that can be read.
_BARS = 25
# Up to here bars carry the names of their entries, above their numbers in the table.
_NAMED = 10


def plot_costs(entries: Sequence[EntryCost], delta: float) -> tuple[Plot, ...]:
    """Draw epsilon entry by entry: each bar reaches from the cost before it to the cost with it.

    ``entries`` are those of ``Ledger.summary(delta)``; epsilons may be infinite. A plot has at most 25.
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
            f"{place + 1}, {entries[place]['name']}: from {epsilon_text(before[place])} to "
            f"{epsilon_text(before[place + 1])}"
            for place in rows
        ]
        which = "" if len(parts) == 1 else f", entries {rows[0] + 1} to {rows[-1] + 1}"
        drawn.append(
            to_plot(
                partial(_bars, entries, before, rows, reach, named),
                f"Waterfall of epsilon at delta {round_up(delta)}{which}. {'; '.join(said)}.",
                f"What each reading adds to ε (bars), and what it would cost alone (dots){which}",
            )
        )
    return tuple(drawn)


def _bars(
    entries: Sequence[EntryCost], before: Sequence[float], rows: range, reach: float, named: bool
) -> Figure:
    from matplotlib.transforms import blended_transform_factory

    step = 0.42 if named else 0.2
    figure, (axis,) = style.panels(height=0.75 + step * len(rows))
    unbounded = any(math.isinf(before[place + 1]) for place in rows)
    end = reach * (1.3 if unbounded else 1.16)
    beside = blended_transform_factory(axis.transAxes, axis.transData)
    for row, place in enumerate(rows):
        low, high = min(before[place], reach * 1.02), before[place + 1]
        endless = math.isinf(high)
        top = end if endless else high
        fill, edge = ("white", style.COLOURS[1]) if endless else (style.COLOURS[0], style.COLOURS[0])
        hatch = "////" if endless else None
        # with an edge, so that the thinnest bar is seen
        axis.barh(row, top - low, left=low, height=0.55, color=fill, edgecolor=edge, hatch=hatch)
        axis.text(min(top, reach) + 0.035 * reach, row, epsilon_text(high), va="center", fontsize=8)
        alone = entries[place]["epsilon_alone"]
        if math.isfinite(alone):
            axis.plot([alone], [row], "o", color="white", markeredgecolor="black", markersize=4)
        if named:
            name = style.clipped(entries[place]["name"], 44)
            axis.text(0.01, row - 0.32, name, transform=beside, va="bottom", fontsize=8)
    axis.set_yticks(range(len(rows)), [str(place + 1) for place in rows])
    axis.set_ylim(len(rows) - 0.5, -0.8 if named else -0.6)
    axis.set_xlim(0, end)
    axis.grid(axis="y", visible=False)
    axis.set_xlabel("ε so far")
    return figure


def epsilon_text(value: float) -> str:
    """An epsilon as people read it, rounded up.

    Examples
    --------
    >>> epsilon_text(1.00041), epsilon_text(math.inf)
    ('1.001', '∞')
    """
    return "∞" if math.isinf(value) else round_up(value)
