"""Draw games against A_DI beside the curves that bound them, their steps and their accuracies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dpsynth.attacks.trials import Game
from dpsynth.evaluation.estimates import Estimate
from dpsynth.privacy.conversions import epsilon_of_belief, posterior_belief
from dpsynth.report.plots import COLOURS, legend_below, line, panels
from dpsynth.research.adversary.playing import legend_columns

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from dpsynth.privacy.profile import Profile

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Point:
    """A game on the axis of epsilon: its advantage, and what a record at the bound would reach."""

    epsilon: float
    found: Estimate
    exact: float


def draw_bounds(
    points: Mapping[str, Sequence[Point]], games: Mapping[str, Game], profile: Profile, limit: float
) -> Figure:
    """Draw advantage against the epsilon of the noise, and exceedance of any limit under one noise.

    Labels of ``points`` (left) and ``games`` (right) name games that are not private. ``profile`` is that of
    one run of each game. ``limit`` is rho_beta.
    """
    figure, (left, right) = panels(1, 2, width=3.7, height=3.2)
    exact = sorted({(point.epsilon, point.exact) for known in points.values() for point in known})
    left.plot(*zip(*exact, strict=True), color="black", label="exact total variation, ρ$_a$")
    width = (exact[-1][0] - exact[0][0]) / 100
    for number, (label, known) in enumerate(points.items()):
        offset = (number - (len(points) - 1) / 2) * width
        _intervals(left, [p.epsilon + offset for p in known], [p.found for p in known], number, label)
    left.set(xlabel="ε of the belief ρ$_β$", ylabel="advantage")
    left.set_ylim(bottom=min(0.0, left.get_ylim()[0]))
    levels = np.linspace(0.0, 1.25 * epsilon_of_belief(limit), 51)
    right.plot(
        levels, [profile.exceedance(e) for e in levels], color="black", label="exact, record at the bound"
    )
    most = [profile.largest_exceedance(e) for e in levels]
    right.plot(levels, most, color="black", linestyle=":", label="passed by no observer")
    for number, (label, game) in enumerate(games.items()):
        found = [game.exceedance(posterior_belief(e)) for e in levels]
        colour = COLOURS[number % len(COLOURS)]
        right.plot(levels, [f.value for f in found], label=label, **line(number))
        ends = [f.lower for f in found], [f.upper for f in found]
        right.fill_between(levels, *ends, color=colour, alpha=0.15, linewidth=0)
    right.axvline(epsilon_of_belief(limit), color="black", linewidth=0.8, linestyle="--")
    right.set(xlabel="ε", ylabel="runs with log-odds above ε", yscale="log", ylim=(5e-4, 1.0))
    handles: dict[str, Any] = {}
    for axis in (left, right):
        for handle, label in zip(*axis.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    figure.legend(list(handles.values()), list(handles), loc="outside lower center", ncols=2)
    return figure


def draw_steps(curves: Mapping[str, Floats], ylabel: str, title: str = "") -> Figure:
    """Draw curves along the steps of a run, such as the distance of the two tables (figures 5.1 (b), 5.3)."""
    figure, (axis,) = panels(width=5.0, height=3.6)
    for number, (label, curve) in enumerate(curves.items()):
        axis.plot(np.arange(1, len(curve) + 1), curve, label=label, **line(number))
    axis.set(xlabel="step", ylabel=ylabel, title=title)
    axis.set_ylim(bottom=0.0)
    legend_below(figure, axis, columns=legend_columns(curves))
    return figure


def draw_accuracies(accuracies: Mapping[str, Floats], title: str = "") -> Figure:
    """Draw the distribution of test accuracy over runs, one box a game (figure 5.2). Whiskers hold 90 %."""
    figure, (axis,) = panels(width=5.0, height=0.8 + 0.45 * len(accuracies))
    axis.boxplot(
        list(accuracies.values()),
        orientation="horizontal",
        whis=(5, 95),
        showfliers=False,
        widths=0.6,
        medianprops={"color": COLOURS[1]},
    )
    axis.set_yticks(range(1, len(accuracies) + 1), list(accuracies))
    axis.invert_yaxis()
    axis.set(xlabel="accuracy on other records", title=title)
    return figure


def _intervals(axis: Axes, places: list[float], found: list[Estimate], number: int, label: str) -> None:
    values = np.array([estimate.value for estimate in found])
    below = values - [estimate.lower for estimate in found]
    above = np.array([estimate.upper for estimate in found]) - values
    colour = COLOURS[number % len(COLOURS)]
    axis.errorbar(
        places, values, yerr=[below, above], fmt="o", markersize=3.5, linewidth=1.1, color=colour, label=label
    )
