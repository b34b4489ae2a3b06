"""The smallest group that survives the noise, at several epsilons."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from dpsynth.report.drawing import style

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw_groups(groups: Sequence[tuple[float, int]], *, records: int) -> Figure:
    """Draw group sizes (epsilon, records) against epsilon. Without any, the panel is empty."""
    with style.styled():
        figure, (axis,) = style.panels()
        if groups:
            epsilons, sizes = zip(*groups, strict=True)
            axis.plot(epsilons, sizes, marker="o", markersize=5, **style.line(1))
            axis.set_yscale("log")
            style.plain_ticks(axis.yaxis)
            axis.set_yticks(sorted(set(sizes)))
            axis.set_ylabel(f"Smallest group, of {records:,} records")
            axis.set_title("Count within 30 % in 95 of 100 repeats", fontsize=9)
            axis.set_xscale("log")
            style.plain_ticks(axis.xaxis)
            axis.set_xticks(epsilons)
            axis.set_xlabel("ε")
    return figure
