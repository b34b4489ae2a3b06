"""The section on the guarantee: its sentence, what it leaves out, the ledger, and what it allows an attacker.

Everything here follows from ``ledger.json`` and may be shared with it.
"""

from __future__ import annotations

from dpsynth.accounting.explain import meanings
from dpsynth.accounting.measures import measures_of
from dpsynth.accounting.profile import Profile
from dpsynth.report.drawing import privacy_curves as curves
from dpsynth.report.load import ReportSource
from dpsynth.report.page.blocks import (
    Block,
    Bullets,
    Cell,
    Grid,
    Heading,
    Plots,
    Section,
    Sentence,
    number,
    paragraph,
)
from dpsynth.report.page.coverage import covered
from dpsynth.report.page.plain import unluckiest

_ADJACENCY = {
    "add/remove": "neighbouring tables differ by one record more or less.",
    "replace-one": "neighbouring tables differ in one record, which is another patient's.",
}


def guarantee(source: ReportSource) -> Section:
    """Return the section; where no ledger is known, it says so."""
    if source.guarantee is None or source.ledger is None or source.delta is None:
        text = paragraph(
            "No ledger came with this table, so nothing is known of a guarantee.",
            "Measured attacks are no substitute: they show what they found, not what others may find.",
        )
        return Section("guarantee", "What is guaranteed", (text,))
    adjacency = source.ledger.adjacency
    blocks: list[Block] = [
        paragraph(str(source.guarantee)),
        paragraph(f"Adjacency: {adjacency}; {_ADJACENCY[adjacency]}"),
    ]
    if source.ledger.excluded:
        left_out = tuple(Sentence(reason) for reason in source.ledger.excluded)
        blocks += [paragraph("The guarantee does not cover:"), Bullets(left_out)]
    who = covered(source)
    blocks += [Heading("Who is covered"), paragraph(*who)] if who else []
    blocks += _ledger(source)
    if source.profile is not None and source.guarantee.private:
        blocks += [
            Heading("What it allows an attacker"),
            _average(source),
            _meanings(source.profile, source.delta),
        ]
        drawn = curves.curves(source.profile, source.delta)
        blocks += [Plots(drawn)] if drawn else []
    return Section("guarantee", "What is guaranteed", tuple(blocks))


def _ledger(source: ReportSource) -> list[Block]:
    summary = source.summary
    if summary is None or source.ledger is None:
        return []
    made: list[Block] = [Heading("What it cost")]
    if not summary["entries"]:
        return [*made, paragraph("The ledger has no entry: no reading of the private table was paid for.")]
    rows = tuple(
        (
            Cell(f"{place}. {entry['name']}"),
            number(curves.epsilon_text(entry["epsilon_alone"])),
            number(curves.epsilon_text(entry["epsilon_cumulative"])),
            Cell(entry["event"]),
            Cell(entry["sensitivity"]),
            Cell(entry["detail"]),
        )
        for place, entry in enumerate(summary["entries"], start=1)
    )
    header = ("reading", "ε alone", "ε so far", "event", "sensitivity", "detail")
    made += [
        paragraph(
            "Each reading of the private table is an entry. Their costs are composed exactly, so together "
            "they are at most their sum."
        ),
        Plots(curves.waterfall(summary)),
        Grid("The ledger, entry by entry", header, rows, folded=len(rows) > 12),
    ]
    return made


def _average(source: ReportSource) -> Block:
    """Why an accuracy of 64 and a belief of 95 in 100 stand in one table."""
    if source.profile is None or source.delta is None:
        return paragraph()
    return paragraph(
        "Two of these numbers are about the same guesser: the attack accuracy is how often they are right, "
        "on average over all that could have come out; the posterior belief is how sure they may become: "
        f"{unluckiest(source.profile, source.delta)}."
    )


def _meanings(profile: Profile, delta: float) -> Grid:
    rows = tuple(
        (Cell(name), Cell(value), Cell(meaning))
        for name, value, meaning in meanings(measures_of(profile, delta))
    )
    return Grid("Measures of the guarantee, for one patient", ("measure", "bound", "meaning"), rows)
