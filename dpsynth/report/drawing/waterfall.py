"""The waterfall of epsilon: what each reading of the private table adds to the cost of those before it.

Everything here is public: it can be recomputed from ``ledger.json``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from dpsynth.accounting.ledger.guarantee import round_up
from dpsynth.accounting.ledger.summary import EntryCost
from dpsynth.report.drawing import style
from dpsynth.report.drawing.svg import Plot, to_plot

if TYPE_CHECKING:
    from matplotlib.figure import Figure

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
