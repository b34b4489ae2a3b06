"""Expected results of a fit at several epsilons: AUC loss and the smallest group that survives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from dpsynth.report.drawing import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def draw_plan(
    losses: Sequence[tuple[float, float, float, float]],
    groups: Sequence[tuple[float, int]],
    *,
    records: int,
    tables: int,
    limit: float,
) -> Figure:
    """Draw AUC loss (epsilon, mean, smallest, largest) and group size (epsilon, records) against epsilon.

    A panel without values is left out. ``limit`` is the largest AUC loss that is called small.
    """
    with style.styled():
        figure, axes = style.panels(columns=max(bool(losses) + bool(groups), 1))
        panels = iter(axes)
        if losses:
            axis = next(panels)
            epsilons, means, lowest, highest = zip(*losses, strict=True)
            axis.axhline(limit, color="black", linewidth=1, linestyle=":")
            errors = [
                [mean - low for mean, low in zip(means, lowest, strict=True)],
                [high - mean for mean, high in zip(means, highest, strict=True)],
            ]
            axis.errorbar(epsilons, means, errors, marker="o", markersize=5, capsize=3, **style.line(0))
            axis.set_ylim(bottom=min(0.0, *lowest))
            axis.set_ylabel("AUC loss (real minus synthetic)")
            axis.set_title(f"Mean and range of {tables} simulated tables", fontsize=9)
            _epsilon_axis(axis, epsilons)
        if groups:
            axis = next(panels)
            epsilons, sizes = zip(*groups, strict=True)
            axis.plot(epsilons, sizes, marker="o", markersize=5, **style.line(1))
            axis.set_yscale("log")
            style.plain_ticks(axis.yaxis)
            axis.set_yticks(sorted(set(sizes)))
            axis.set_ylabel(f"Smallest group, of {records:,} records")
            axis.set_title("Count within 30 % in 95 of 100 repeats", fontsize=9)
            _epsilon_axis(axis, epsilons)
    return figure


def _epsilon_axis(axis: Axes, epsilons: Sequence[float]) -> None:
    axis.set_xscale("log")
    style.plain_ticks(axis.xaxis)
    axis.set_xticks(epsilons)
    axis.set_xlabel("ε")
