"""What a guarantee allows an attacker: trade-off curve, ROC bound, advantage, and delta over epsilon.

Everything here is public: it can be recomputed from ``ledger.json``.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from dpsynth.accounting.ledger.guarantee import round_up
from dpsynth.accounting.profile import Profile
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
