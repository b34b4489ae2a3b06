"""The section that puts what attacks reached beside what is proved.

What attacks reached, on one scale with what is proved and what an attacker with empty hands reaches.
"""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from dpsynth.attacks.attempt import Attempt
from dpsynth.report.attempts import HEADER, WORDS, cells, closers, grouped, in_words
from dpsynth.report.drawing import style
from dpsynth.report.drawing.svg import Plot, to_plot
from dpsynth.report.formats import levels_text
from dpsynth.report.page.blocks import Block, Cell, Grid, Heading, Plots, Section, Sentence, number, paragraph
from dpsynth.report.run_report import RunReport

if TYPE_CHECKING:
    from matplotlib.figure import Figure


_CONTROL: Any = {
    "marker": "D",
    "color": style.COLOURS[1],
    "markerfacecolor": "white",
    "markersize": 5,
    "linestyle": "none",
}


def plot_attempts(attempts: Sequence[Attempt], *, what: str, axis_label: str) -> Plot:
    """Draw attempts of one measure: a dot with its interval, the control, and the bound as a bar's end.

    Attempts without a bound have no bar.
    """
    said = "; ".join(in_words(attempt) for attempt in attempts)

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
            axis.plot([], [], label="reached empty-handed", **_CONTROL)
        axis.set_yticks(range(len(attempts)), names)
        axis.set_ylim(len(attempts) - 0.5, -0.5)
        axis.set_xlim(left=min(0.0, *(attempt.found.lower for attempt in attempts)))
        axis.grid(axis="y", visible=False)
        axis.set_xlabel(axis_label)
        style.legend_below(figure, axis, columns=1)
        return figure

    caption = f"{what}: what attacks reached, with intervals, and what is proved"
    return to_plot(draw, f"{what}. {said}.", caption, internal=any(a.internal for a in attempts))


def section(report: RunReport) -> Section | None:
    """Return the section; None where nothing was tried."""
    if not report.attempts:
        return None
    on_table = any(attempt.one_table for attempt in report.attempts)
    where = "this very table, or on the releases it was made with," if on_table else "the releases behind it"
    levels = levels_text(attempt.level for attempt in report.attempts)
    blocks: list[Block] = [
        paragraph(
            "What is proved holds against every attacker, whatever they know and compute. What is attempted "
            f"is what attacks on {where} have reached; intervals are of {levels}. "
            "Empty-handed is what an attacker reaches who has nothing of it.",
            "An attempt that stays below its bound proves nothing by itself: below each table stands what "
            "would have to be true for it to come closer. An audit that passes its bound shows that the "
            "proof, or the code, is wrong."
            + (
                " One table may pass a bound by bad luck: it holds on average over tables."
                if on_table
                else ""
            ),
        )
    ]
    for measure, attempts in grouped(report.attempts):
        name, meaning = WORDS[measure]
        rows = tuple(_row(attempt) for attempt in attempts)
        plot = plot_attempts(attempts, what=name, axis_label=name.lower())
        blocks += [
            Heading(name),
            paragraph(f"{meaning[:1].upper()}{meaning[1:]}."),
            Plots((plot,)),
            Grid(f"{name}: proved and attempted", HEADER, rows),
            *(paragraph(Sentence(*told)) for told in closers(attempts)),
        ]
    return Section("attempts", "Proved and attempted", tuple(blocks))


def _row(attempt: Attempt) -> tuple[Cell, ...]:
    name, found, control, proved, about = cells(attempt)
    return (
        Cell(name),
        number(found, attempt.internal),
        number(control, attempt.internal and bool(control)),
        number(proved),
        Cell(about, internal=attempt.internal and bool(about)),
    )
