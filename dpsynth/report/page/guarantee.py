"""Two sections on the guarantee: what it means in plain words, and in full with the privacy ledger.

Everything here follows from ``ledger.json`` and may be shared with it.
"""

from __future__ import annotations

from dpsynth.accounting.measures import meanings, measures_of
from dpsynth.accounting.profile import Profile
from dpsynth.accounting.record import Summary
from dpsynth.releases.count import CountRelease
from dpsynth.report.drawing.curves import plot_costs, plot_curves
from dpsynth.report.formats import bound, round_up
from dpsynth.report.page.blocks import (
    Block,
    Bullets,
    Cell,
    Facts,
    Grid,
    Heading,
    Items,
    Plots,
    Section,
    Sentence,
    number,
    paragraph,
)
from dpsynth.report.page.summary import covered, items, promises
from dpsynth.report.run_report import RunReport

_ADJACENCY = {
    "add/remove": "two tables that differ by one record more or less.",
    "replace-one": "two tables in which one record is different.",
}


def section(report: RunReport) -> Section:
    """Return the section in plain words. Without a ledger, it says so."""
    guarantee, profile = report.guarantee, report.profile
    blocks: list[Block] = []
    if guarantee is None or profile is None:
        blocks.append(
            paragraph(
                "Nothing is guaranteed to the people in the training table.",
                "No privacy ledger came with this table, and nothing says how it was made.",
                "Attacks are no substitute. They show what they found, not what others may find.",
            )
        )
    elif not guarantee.private:
        blocks.append(
            paragraph(
                "Nothing is guaranteed to the people in the training table.",
                "Protect the synthetic table, and everything beside it, as you protect their records.",
            )
        )
    else:
        blocks.append(Facts(promises(guarantee, profile)))
        blocks += [paragraph(*_loose(report))] if _loose(report) else []
    if guarantee is not None and guarantee.excluded:
        left_out = tuple(Sentence(reason) for reason in guarantee.excluded)
        blocks += [paragraph("The guarantee does not cover:"), Bullets(left_out)]
    if who := covered(report):
        blocks.append(paragraph(who[0]))
    weak = [v for v in report.findings if v.rests_on == ("ledger",) and v.code == "weak_guarantee"]
    blocks += [Items(items(weak))] if weak else []
    return Section("guarantee", "Guarantee", tuple(blocks), ("ledger",))


def ledger_section(report: RunReport) -> Section | None:
    """Return the section in full. None without a ledger."""
    guarantee, profile, summary = report.guarantee, report.profile, report.summary
    if guarantee is None or profile is None or summary is None:
        return None
    blocks: list[Block] = [
        paragraph(str(guarantee)),
        paragraph(f"Neighbouring datasets ({guarantee.adjacency}): {_ADJACENCY[guarantee.adjacency]}"),
    ]
    who = covered(report)
    blocks += [Heading("Who is covered"), paragraph(*who)] if who else []
    blocks += [Heading("Cost"), *_ledger(summary)]
    if guarantee.private:
        blocks += [Heading("Limits for an attacker"), _meanings(profile, guarantee.delta)]
        blocks += [paragraph(*_loose(report))] if _loose(report) else []
        drawn = plot_curves(profile, guarantee.delta)
        blocks += [Plots(drawn)] if drawn else []
    return Section("ledger", "Privacy ledger", tuple(blocks))


def _loose(report: RunReport) -> tuple[str, ...]:
    """Why limits of several stages are loose, and how to avoid it. Empty for one stage."""
    stages = () if report.ledger is None else report.ledger.stages
    if report.ledger is None or len(stages) < 2:
        return ()
    said = (
        f"The costs of {len(stages)} stages were added. The true limits are lower than those stated here, "
        "above all for a search, for a small false positive rate (FPR) and for mu."
    )
    if report.ledger.entries[0].name != CountRelease.name:
        return (said,)
    return said, "A public number of records (n_public in the schema) saves the stage of the count."


def _ledger(summary: Summary) -> list[Block]:
    if not summary["entries"]:
        return [paragraph("The ledger has no entry: no noisy statistic is recorded.")]
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
    header = ("noisy statistic", "ε alone", "ε so far", "event", "sensitivity", "detail")
    return [
        paragraph(
            "Each noisy statistic of the real table is an entry. Within a stage, costs are composed exactly. "
            "The costs of several stages add up.",
            f"ε alone: the ε of this statistic at δ = {round_up(summary['delta'])}, without the others. A "
            "stage is counted at a δ of its own, so its ε can differ.",
        ),
        Plots(plot_costs(summary["entries"], summary["delta"])),
        Grid("The ledger, entry by entry", header, rows, folded=len(rows) > 12),
    ]


def _meanings(profile: Profile, delta: float) -> Grid:
    rows = tuple(
        (Cell(name), Cell(value), Cell(meaning))
        for name, value, meaning in meanings(measures_of(profile, delta))
    )
    return Grid("Measures of the guarantee, for one patient", ("measure", "bound", "meaning"), rows)
