"""The section on the guarantee: its sentence, what it leaves out, the ledger, and what it allows an attacker.

Everything here follows from ``ledger.json`` and may be shared with it.
"""

from __future__ import annotations

from dpsynth.accounting.measures import meanings, measures_of
from dpsynth.accounting.profile import Profile
from dpsynth.accounting.record import Summary
from dpsynth.report.drawing.curves import plot_costs, plot_curves
from dpsynth.report.formats import bound
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
from dpsynth.report.page.summary import covered, unluckiest
from dpsynth.report.run_report import RunReport

_ADJACENCY = {
    "add/remove": "neighbouring tables differ by one record more or less.",
    "replace-one": "neighbouring tables differ in one record, which is another patient's.",
}


def section(report: RunReport) -> Section:
    """Return the section; where no ledger is known, it says so."""
    guarantee, profile, summary = report.guarantee, report.profile, report.summary
    if guarantee is None or profile is None or summary is None:
        text = paragraph(
            "No ledger came with this table, so nothing is known of a guarantee.",
            "Measured attacks are no substitute: they show what they found, not what others may find.",
        )
        return Section("guarantee", "What is guaranteed", (text,))
    blocks: list[Block] = [
        paragraph(str(guarantee)),
        paragraph(f"Adjacency: {guarantee.adjacency}; {_ADJACENCY[guarantee.adjacency]}"),
    ]
    if guarantee.excluded:
        left_out = tuple(Sentence(reason) for reason in guarantee.excluded)
        blocks += [paragraph("The guarantee does not cover:"), Bullets(left_out)]
    who = covered(report)
    blocks += [Heading("Who is covered"), paragraph(*who)] if who else []
    blocks += [Heading("What it cost"), *_ledger(summary)]
    if guarantee.private:
        blocks += [
            Heading("What it allows an attacker"),
            _average(profile, guarantee.delta),
            _meanings(profile, guarantee.delta),
        ]
        drawn = plot_curves(profile, guarantee.delta)
        blocks += [Plots(drawn)] if drawn else []
    return Section("guarantee", "What is guaranteed", tuple(blocks))


def _ledger(summary: Summary) -> list[Block]:
    if not summary["entries"]:
        return [paragraph("The ledger has no entry: no reading of the private table was paid for.")]
    rows = tuple(
        (
            Cell(f"{place}. {entry['name']}"),
            number(bound(entry["epsilon_alone"])),
            number(bound(entry["epsilon_cumulative"])),
            Cell(entry["event"]),
            Cell(entry["sensitivity"]),
            Cell(entry["detail"]),
        )
        for place, entry in enumerate(summary["entries"], start=1)
    )
    header = ("reading", "ε alone", "ε so far", "event", "sensitivity", "detail")
    return [
        paragraph(
            "Each reading of the private table is an entry. Their costs are composed exactly, so together "
            "they are at most their sum."
        ),
        Plots(plot_costs(summary["entries"], summary["delta"])),
        Grid("The ledger, entry by entry", header, rows, folded=len(rows) > 12),
    ]


def _average(profile: Profile, delta: float) -> Block:
    """Why an accuracy of 64 and a belief of 95 in 100 stand in one table."""
    return paragraph(
        "Two of these numbers are about the same guesser: the attack accuracy is how often they are right, "
        "on average over all that could have come out; the posterior belief is how sure they may become: "
        f"{unluckiest(profile, delta)}."
    )


def _meanings(profile: Profile, delta: float) -> Grid:
    rows = tuple(
        (Cell(name), Cell(value), Cell(meaning))
        for name, value, meaning in meanings(measures_of(profile, delta))
    )
    return Grid("Measures of the guarantee, for one patient", ("measure", "bound", "meaning"), rows)
