"""Sections of the page: the card, the guarantee, subgroups, and development over time."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from dpsynth.checks import Counted, together
from dpsynth.evaluation.results import Evaluation, Measure, any_confidential, frame_rows
from dpsynth.evaluation.tables import sampled
from dpsynth.files.text import dump_yaml
from dpsynth.privacy.guarantee import Guarantee
from dpsynth.privacy.profile import Profile, meanings
from dpsynth.privacy.profile import measures_of as ledger_measures
from dpsynth.privacy.release import CountRelease
from dpsynth.privacy.stages import Summary
from dpsynth.report.blocks import (
    Block,
    Bullets,
    Cell,
    Code,
    Facts,
    Heading,
    Items,
    Plots,
    Section,
    Sentence,
    TableBlock,
    column_tables,
    covered,
    items,
    measure_tables,
    number_cell,
    paragraph,
    promises,
    section_measures,
    table,
)
from dpsynth.report.plots import OVER_TIME, plot_costs, plot_curves, plots_of_frames
from dpsynth.report.run_report import RunReport
from dpsynth.report.verdicts import patients
from dpsynth.report.verdicts.rules import answers
from dpsynth.report.verdicts.utility import mixed_effects, mixed_sizes
from dpsynth.report.words import (
    between,
    bound,
    decimals,
    in_percent,
    level_text,
    round_up,
    seconds_text,
    shown,
    shown_with_interval,
    wording,
)

# ------------------------------------------------------------------------------------------------
# The model card, with facts about the table and how it was made, and the glossary.


def card_section(report: RunReport) -> Section:
    """Return the model card."""
    blocks: list[Block] = [Facts(tuple(_facts(report)))]
    if report.config:
        blocks.append(Code("Configuration", dump_yaml(dict(report.config)).rstrip("\n")))
    return Section("card", "Model card", tuple(blocks))


def _facts(report: RunReport) -> list[tuple[str, Sentence]]:
    table, measured = report.table, report.measured
    facts: list[tuple[str, Sentence]] = []

    def add(name: str, value: object, internal: bool = False) -> None:
        if value is not None and value != "":
            facts.append((name, Sentence(shown(value) if isinstance(value, int) else str(value), internal)))

    add("Data set", table.get("name"))
    published = {} if report.ledger is None else report.ledger.published
    add("Data owner", published.get("data_owner"))
    add("Contact", published.get("contact"))
    add("Made on", report.day)
    add("Columns", table.get("columns"))
    add("Outcome", table.get("outcome"))
    add("Schema (SHA-256)", table.get("schema_sha256"))
    records = report.counted
    add(f"Public number of training {records}", table.get("n_public"))
    synthetic = table.get("synthetic_records")
    for name, label in (
        ("synthetic_records", f"Synthetic {records} evaluated" if synthetic else f"Synthetic {records}"),
        ("train_records", f"Real training {records}"),
        ("test_records", f"Real held-out {records}"),
    ):
        if name in measured and not (name == "synthetic_records" and measured[name].value == synthetic):
            exact = name == "synthetic_records" and report.exact_size
            add(label, measured[name].value, measured[name].internal or exact)
    for part in ("training", "held-out"):
        name = f"{'train' if part == 'training' else 'test'}_rows"
        if name in measured:
            add(f"Rows of {part} patients that are used", measured[name].value, True)
    add("Random parts", " ".join(sampled(measured)), True)
    add(f"Synthetic {records}", synthetic, report.exact_size)
    add("Their rows", table.get("synthetic_rows"), report.exact_size)
    add("SHA-256 of synthetic.csv", published.get("synthetic_sha256"))
    add("Guarantee", report.guarantee or "None is known.")
    add("Beyond the base model", _refinement(report))
    add("WGAN critic", _critic(report))
    add("Seeds", _seeds(report))
    add("Versions", ", ".join(f"{name} {version}" for name, version in report.versions.items()))
    add("Wall time", seconds_text(report.seconds), True)
    return facts


def _refinement(report: RunReport) -> str | None:
    """The statistics beside the base model, or why there are none."""
    entries = () if report.ledger is None else report.ledger.entries
    names = [entry.name.removeprefix("WGAN ") for entry in entries]  # as ledgers of older versions have it
    if "base model tables" not in names:
        return None
    rounds = names.count("further tables")
    further = "further tables" if rounds > 1 else "one further" if rounds else "no further"
    pairwise = "pairwise" if "pairwise statistics" in names else "no pairwise"
    codes = ["codes"] if "counts of codes and of pairs of codes" in names else []
    return " ".join(report.say(name, rounds=rounds) for name in (pairwise, further, *codes))


def _critic(report: RunReport) -> str | None:
    """One sentence on the work of the WGAN critic for this table."""
    if report.ledger is None:
        return None
    entries = {entry.name.removeprefix("WGAN "): entry for entry in report.ledger.entries}
    steps, base_model = entries.get("critic steps"), "base model tables" in entries
    if steps is None:
        if not base_model:
            return None
        return report.say("no critic")
    return report.say("matched points" if "random critic" in steps.sensitivity else "trained critic")


def _seeds(report: RunReport) -> str | None:
    if report.ledger is None:
        return None
    if report.ledger.not_private:
        return "Statistics without a guarantee have no noise."
    if report.ledger.seeded:
        return report.say("known seed")
    if not report.ledger.generators:
        return "The ledger does not say which generator made the noise."
    drawn = f"The noise was drawn by {together(report.ledger.generators)}."
    weak = any("not cryptographic" in name for name in report.ledger.generators)
    return drawn if weak else f"{drawn} {report.say('no key')}"


def glossary_section(report: RunReport, *, internal: bool) -> Section:
    """Return sentences on each word. Words about numbers that the page does not show are left out."""
    shown = {
        "guarantees": True,
        "studies": bool(report.studies),
        "levels": report.counted is Counted.PATIENTS,
        "effects": internal or bool(report.studies),
        "measures": internal,
    }
    glossary = wording("glossary", report.counted)
    words = [entry for part, there in shown.items() if there for entry in glossary[part].items()]
    facts = Facts(tuple((word, Sentence(text)) for word, text in words))
    return Section("glossary", "Words", (paragraph(report.say("glossary of")), facts))


# ------------------------------------------------------------------------------------------------
# Errors by subgroup: is each group there in its real share, and do predictions hold in it? All internal.


def subgroup_section(report: RunReport) -> Section | None:
    """Return the section. None where no column makes subgroups."""
    frames = report.measured.groups("subgroups")
    if not frames:
        return None
    rows, scores = frame_rows(frames[0]), _scores(report.measured)
    data, status = rows[0], Cell("", internal=any_confidential(*frames))
    blocks: list[Block] = [paragraph(report.say("share of subgroups", level=level_text(data.level)))]
    blocks.append(Bullets(tuple(_worst(report, rows, scores, any_confidential(*frames)))))
    shares = ((_name(row), *(_share(row, of) for of in ("real", "synthetic", "difference"))) for row in rows)
    header = ("subgroup", "real", "synthetic", "difference")
    blocks.append(table(f"Subgroups: share of the {report.counted}", header, shares, status=status))
    if data.note:
        blocks.append(paragraph(data.note))
    if data.event is not None and data.model is not None:
        model, event = data.model.replace("_", " "), data.event
        blocks.append(
            paragraph(report.say("scores of subgroups", model=model, event=event, fewest=data.fewest))
        )
        blocks += [_score_table(report, rows, scores, what, status) for what in ("AUC", "Calibration")]
    return Section("subgroups", "Subgroups", tuple(blocks))


#: AUC and calibration by column, subgroup, table that a model learned from, and score
_Scores = Mapping[tuple[str, str, str, str], Any]


def _scores(evaluation: Evaluation) -> _Scores:
    rows = (row for frame in evaluation.groups("subgroup_scores") for row in frame_rows(frame))
    return {(row.column, row.subgroup, row.trained_on, row.score): row for row in rows}


def _worst(report: RunReport, rows: Sequence[Any], scores: _Scores, internal: bool) -> Iterator[Sentence]:
    """The subgroups whose share, and whose AUC, differ most."""
    row = max(rows, key=lambda row: abs(row.difference))
    text = report.say(
        "furthest share",
        name=_name(row),
        real=in_percent(row.real),
        synthetic=in_percent(row.synthetic),
        beyond=sum(not row.difference_lower <= 0 <= row.difference_upper for row in rows),
        of=len(rows),
    )
    yield Sentence(text, internal)
    losses = []
    for row in rows:
        both = (scores.get((row.column, row.subgroup, arm, "auc")) for arm in ("synthetic", "train"))
        made, real = (None if score is None else score.value for score in both)
        if made is not None and real is not None and made < real:
            losses.append((_name(row), made, real))
    if losses:
        name, *ends = max(losses, key=lambda loss: loss[2] - loss[1])
        made, real = map(decimals, ends)
        yield Sentence(report.say("furthest score", name=name, made=made, real=real), internal)


def _score_table(
    report: RunReport, rows: Sequence[Any], scores: _Scores, what: str, status: Cell
) -> TableBlock:
    arms = list(dict.fromkeys(arm for _, _, arm, _ in scores))
    told = (
        (
            _name(row),
            f"{row.records:,.0f} ({row.events:,.0f})",
            *(_score(scores.get((row.column, row.subgroup, arm, what.lower())), what) for arm in arms),
        )
        for row in rows
    )
    learned = {"synthetic": "from synthetic", "train": "from real"}
    header = ("subgroup", f"{report.counted} (events)", *(learned[arm] for arm in arms))
    return table(f"Subgroups: {what} in held-out {report.counted}", header, told, status=status)


def _score(score: Any, what: str) -> str:
    if score is None or score.value is None:
        return "n/a" if score is None else score.why or "n/a"
    ends = (score.value, score.lower, score.upper)
    return between(*ends) if what == "AUC" else _points(*ends)


def _name(row: Any) -> str:
    return f"{row.column}: {row.subgroup}"


def _share(row: Any, of: str) -> str:
    value, lower, upper = (getattr(row, f"{of}{end}") for end in ("", "_lower", "_upper"))
    if of == "difference":
        return _points(value, lower, upper)
    return f"{in_percent(value)} ({100 * lower:.1f} to {100 * upper:.1f})"


def _points(*ends: float) -> str:
    return between(*ends, say=lambda end: decimals(100 * end, 1))


# ------------------------------------------------------------------------------------------------
# The section on patients with several rows: paths, rows a patient, gaps, and measures of both tables.

_ASKED = (patients.whole_patients, patients.over_time, patients.rows_and_gaps, mixed_effects, mixed_sizes)
#: a number of one table, or the difference of both, of a column or of none
_SIDE = re.compile(r"(?P<name>[^\[]+)_(?P<side>synthetic|train|difference)(?P<of>\[.*\])?", re.DOTALL)


def over_time_section(report: RunReport) -> Section | None:
    """Return the section. None where patients have one row."""
    evaluation = report.measured
    measures = section_measures(evaluation, "patients")
    plots = plots_of_frames(evaluation, *OVER_TIME)
    if not measures and not plots:
        return None
    intro = paragraph(report.say("over time"))
    blocks: list[Block] = [*_findings(evaluation), intro, *_sides(measures)]
    paths = tuple(plot for name, plot in plots.items() if name.startswith("paths["))
    others = tuple(plot for name, plot in plots.items() if not name.startswith("paths["))
    blocks += [Plots(drawn) for drawn in (paths, others) if drawn]
    rest = [measure for measure in measures if not _SIDE.fullmatch(measure.name)]
    features = [measure for measure in rest if measure.name.startswith("patient_auc_loss[")]
    rest = [measure for measure in rest if measure not in features]
    blocks += measure_tables(rest) + column_tables(rest, "Patients over time")
    blocks += column_tables(features, "Features of patients")
    return Section("over-time", "Patients over time", tuple(blocks))


def _findings(evaluation: Evaluation) -> list[Block]:
    found = answers(evaluation, *_ASKED)
    return [Bullets(tuple(Sentence(v.sentence, v.internal) for v in found))] if found else []


def _sides(measures: list[Measure]) -> list[Block]:
    """One table of numbers with a value for each table, a line each."""
    lines: dict[tuple[str, str], dict[str, Measure]] = {}
    for measure in measures:
        if match := _SIDE.fullmatch(measure.name):
            lines.setdefault((match["name"], match["of"] or ""), {})[match["side"]] = measure
    if not lines:
        return []
    sides = [
        side for side in ("train", "synthetic", "difference") if any(side in own for own in lines.values())
    ]
    rows = []
    for (name, of), own in lines.items():
        what = own["synthetic"].detail.removesuffix(", synthetic") if "synthetic" in own else name
        # a number that is not defined says why
        lacking = next((measure for measure in own.values() if measure.value is None), None)
        first = Cell(what) if lacking is None else Cell(lacking.detail, internal=lacking.internal)
        if of:
            first = replace(first, text=f"{of[1:-1]}: {first.text}")
        cells = [number_cell(_text(own.get(side)), side in own and own[side].internal) for side in sides]
        rows.append((first, *cells, Cell(f"{name}{of}", quiet=True)))
    words = {"train": "real", "synthetic": "synthetic", "difference": "difference"}
    header = ("what it is", *(words[side] for side in sides), "name")
    return [TableBlock("Rows of patients", header, tuple(rows), folded=len(rows) > 15)]


def _text(measure: Measure | None) -> str:
    if measure is None:
        return ""
    return shown(measure.value) if measure.lower is None else shown_with_interval(measure)


# ------------------------------------------------------------------------------------------------
# Two sections on the guarantee: what it means in plain words, and in full with the privacy ledger.
#
# Everything here follows from ``ledger.json`` and may be shared with it.


def guarantee_section(report: RunReport) -> Section:
    """Return the section in plain words. Without a ledger, it says so."""
    guarantee, profile = report.guarantee, report.profile
    blocks: list[Block] = []
    if guarantee is None or profile is None:
        blocks.append(paragraph(report.say("nothing known")))
    elif not guarantee.private:
        blocks.append(paragraph(report.say("nothing guaranteed")))
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
        paragraph(f"Neighbouring datasets ({guarantee.adjacency}): {report.say(guarantee.adjacency)}"),
    ]
    who = covered(report)
    blocks += [Heading("Who is covered"), paragraph(*who)] if who else []
    blocks += [Heading("Cost"), *_ledger(report, summary)]
    if guarantee.private:
        blocks += [Heading("Limits for an attacker"), _meanings(profile, guarantee)]
        blocks += [paragraph(*_loose(report))] if _loose(report) else []
        drawn = plot_curves(profile, guarantee.delta)
        blocks += [Plots(drawn)] if drawn else []
    return Section("ledger", "Privacy ledger", tuple(blocks))


def _loose(report: RunReport) -> tuple[str, ...]:
    """Why limits of several stages are loose, and how to avoid it. Empty for one stage."""
    stages = () if report.ledger is None else report.ledger.stages
    if report.ledger is None or len(stages) < 2:
        return ()
    said = (report.say("stages", stages=len(stages)),)
    counted = report.ledger.entries[0].name == CountRelease.name
    return (*said, report.say("saved stage")) if counted else said


def _ledger(report: RunReport, summary: Summary) -> list[Block]:
    if not summary["entries"]:
        return [paragraph("The ledger has no entry: no noisy statistic is recorded.")]
    rows = tuple(
        (
            Cell(f"{place}. {entry['name']}"),
            number_cell(bound(entry["epsilon_alone"])),
            number_cell(bound(entry["epsilon_cumulative"])),
            Cell(entry["event"]),
            Cell(entry["sensitivity"]),
            Cell(entry["detail"]),
        )
        for place, entry in enumerate(summary["entries"], start=1)
    )
    header = ("noisy statistic", "ε alone", "ε so far", "event", "sensitivity", "detail")
    return [
        paragraph(report.say("cost", delta=round_up(summary["delta"]))),
        Plots(plot_costs(summary["entries"], summary["delta"])),
        TableBlock("The ledger, entry by entry", header, rows, folded=len(rows) > 12),
    ]


def _meanings(profile: Profile, guarantee: Guarantee) -> TableBlock:
    rows = tuple(
        (Cell(name), Cell(value), Cell(meaning))
        for name, value, meaning in meanings(ledger_measures(profile, guarantee.delta), guarantee.who)
    )
    return TableBlock(
        f"Measures of the guarantee, for one {guarantee.who}", ("measure", "bound", "meaning"), rows
    )
