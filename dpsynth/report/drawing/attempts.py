"""Plot of attacks beside their baselines and their proved bounds."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from dpsynth.attacks.attempt import Attempt
from dpsynth.report.drawing import style
from dpsynth.report.drawing.style import Plot
from dpsynth.report.wording import in_words

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_CONTROL: Any = {
    "marker": "D",
    "color": style.COLOURS[1],
    "markerfacecolor": "white",
    "markersize": 5,
    "linestyle": "none",
}


def plot_attempts(attempts: Sequence[Attempt], what: str) -> Plot:
    """Draw attempts of one measure: a dot with its interval, the control, and the bound as a bar's end.

    ``what`` names the measure. Attempts without a bound have no bar.
    """
    said = ". ".join(in_words(attempt) for attempt in attempts)

    def draw() -> Figure:
        names = ["\n".join(wrap(attempt.attack, 26, max_lines=3, placeholder=" …")) for attempt in attempts]
        lines = max(name.count("\n") + 1 for name in names)
        figure, (axis,) = style.panels(height=1.0 + (0.16 + 0.14 * lines) * len(attempts))
        for place, attempt in enumerate(attempts):
            first = place == 0
            if attempt.proved is not None:
                axis.barh(place, attempt.proved, height=0.62, color=style.COLOURS[0], alpha=0.18, linewidth=0)
                axis.plot([attempt.proved] * 2, [place - 0.31, place + 0.31], color=style.COLOURS[0])
            found = attempt.found
            axis.plot([found.lower, found.upper], [place] * 2, color="black", linewidth=1.6)
            axis.plot(
                [found.value], [place], "o", color="black", markersize=5, label="reached" if first else None
            )
            if attempt.control is not None:
                axis.plot([attempt.control.value], [place], **_CONTROL)
        if any(attempt.proved is not None for attempt in attempts):
            axis.plot(
                [],
                [],
                color=style.COLOURS[0],
                linewidth=5,
                alpha=0.4,
                label="proved: no attack passes its end",
            )
        if any(attempt.control is not None for attempt in attempts):
            axis.plot([], [], label="baseline attack", **_CONTROL)
        axis.set_yticks(range(len(attempts)), names)
        axis.set_ylim(len(attempts) - 0.5, -0.5)
        axis.set_xlim(left=min(0.0, *(attempt.found.lower for attempt in attempts)))
        axis.grid(axis="y", visible=False)
        axis.set_xlabel(what.lower())
        style.legend_below(figure, axis, columns=1)
        return figure

    caption = f"{what}: what attacks reached, with intervals, and what is proved"
    return Plot(draw, f"{what}. {said}.", caption, internal=any(a.internal for a in attempts))
