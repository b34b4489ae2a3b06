"""The section that puts what attacks reached beside what is proved."""

from __future__ import annotations

from dpsynth.attacks.attempt import Attempt
from dpsynth.report.attempts import HEADER, WORDS, cells, closers, grouped, levels
from dpsynth.report.drawing.attempts import plot_attempts
from dpsynth.report.page.blocks import Block, Cell, Grid, Heading, Plots, Section, Sentence, number, paragraph
from dpsynth.report.run_report import RunReport


def section(report: RunReport) -> Section | None:
    """Return the section; None where nothing was tried."""
    if not report.attempts:
        return None
    on_table = any(attempt.one_table for attempt in report.attempts)
    where = "this very table, or on the releases it was made with," if on_table else "the releases behind it"
    blocks: list[Block] = [
        paragraph(
            "What is proved holds against every attacker, whatever they know and compute. What is attempted "
            f"is what attacks on {where} have reached; intervals are of {levels(report.attempts)}. "
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
