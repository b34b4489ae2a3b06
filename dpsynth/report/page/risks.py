"""Attacks beside the proved bounds, in one table and in full, and the three risks.

The Article 29 Data Protection Working Party judges anonymisation by singling out, linkability and inference
(Opinion 05/2014, WP216, section 2.2). Nothing here decides the legal status of a table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dpsynth.accounting.normal_form import ADD_REMOVE
from dpsynth.attacks.attempt import Attempt
from dpsynth.attacks.synthetic.risk import BEYOND
from dpsynth.evaluation.records import Evaluation
from dpsynth.report.drawing.attempts import plot_attempts
from dpsynth.report.formats import decimals, levels_text, measured, percent
from dpsynth.report.page.blocks import (
    Block,
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
    texts,
)
from dpsynth.report.page.summary import items
from dpsynth.report.run_report import RunReport
from dpsynth.report.verdicts.verdict import get
from dpsynth.report.wording import HEADER, PASSED, WORDS, cells, closers, grouped, reached


def risks_section(report: RunReport) -> Section:
    """Return the section on the three risks."""
    told = texts("risks.yaml")
    blocks: list[Block] = [paragraph(told["intro"])]
    bounds = _bounds(report, [risk["bound"] for risk in told["risks"]])
    for risk, bound in zip(told["risks"], bounds, strict=True):
        facts = [("Meaning", Sentence(risk["meaning"])), ("The guarantee", Sentence(bound))]
        attacked = _attacked(report.attempts, tuple(risk["attacks"]))
        if tried := [*_tried(report.measured, risk["measures"]), *attacked]:
            facts += tried if attacked else [*tried, ("Not tried", Sentence(risk["untried"]))]
        blocks += [Heading(risk["title"]), Facts(tuple(facts))]
    return Section("risks", "Three risks", tuple(blocks))


def _bounds(report: RunReport, words: Sequence[str]) -> list[str]:
    """The bounds that the guarantee gives on each risk, in these words."""
    guarantee, profile = report.guarantee, report.profile
    if guarantee is None or profile is None:
        return ["None is known."] * len(words)
    if not guarantee.private:
        return ["It is void: nothing is promised."] * len(words)
    added = guarantee.adjacency == ADD_REMOVE
    other = "without their record" if added else "with another record in place of theirs"
    numbers = {
        "points": percent(guarantee.tv),
        "right": percent(profile.attack_accuracy()),
        "members": percent(float(profile.tpr(0.01))),
        "otherwise": f"{other} in training",
    }
    but = " The exceptions of the guarantee are not covered." if guarantee.excluded else ""
    return [text.format(**numbers) + but for text in words]


def _attacked(attempts: Sequence[Attempt], begins: tuple[str, ...]) -> list[tuple[str, Sentence]]:
    """Results of attacks whose names begin so, each beside its baseline attack."""
    told = [
        f"{attempt.attack}: {reached(attempt)} right"
        + ("" if attempt.control is None else f", {decimals(attempt.control.value)} for the baseline attack")
        for attempt in attempts
        if attempt.measure == "rate" and attempt.attack.startswith(begins)
    ]
    return [("Attacks", Sentence(f"{_joined(told)}. More is under All attacks.", True))] if told else []


def _tried(evaluation: Evaluation, names: Mapping[str, str]) -> list[tuple[str, Sentence]]:
    known = {name: measure for name in names if (measure := get(evaluation, name)) is not None}
    said = _joined([f"{names[name]}: {measured(measure)}" for name, measure in known.items()])
    internal = any(measure.internal for measure in known.values())
    return [("Tried on this table", Sentence(f"{said}.", internal))] if known else []


def _joined(sentences: Sequence[str]) -> str:
    return ". ".join(sentence[:1].upper() + sentence[1:] for sentence in sentences)


#: measures that say how much more is right than for the control; the total variation bounds them
_EXCESS = ("advantage", "tv")
#: rows of each table that stands before the folds; all are in the full list
_MOST = 10


def attempts_section(report: RunReport) -> Section:
    """Return what attacks reached, each beside its control and its proved bound, in one table."""
    blocks: list[Block] = []
    chosen = [a for a in report.attempts if a.measure in _EXCESS] or list(report.attempts)
    for caption, internal in (("Real records", True), ("Simulated records", False)):
        rows = [a for a in chosen if a.internal == internal]
        if rows:
            caption = f"{caption}, {levels_text(a.level for a in rows)} intervals"
            cells = tuple(_short_row(a, report.attempts) for a in rows[:_MOST])
            header = ("attack", "reached", "control", "bound")
            # one table is in full view, that of real records if there is one
            blocks.append(Grid(caption, header, cells, bool(blocks), narrow=True, internal=internal))
    if blocks:
        what = "right guesses beyond the control" if chosen[0].measure in _EXCESS else "see the attack's name"
        blocks = [
            paragraph(
                "Each attack tries to learn about single records. The proved bound limits all attacks, known "
                "or unknown.",
                f"Reached: {what}.",
                "Control: the same attack on people outside the data, or without the table.",
                PASSED,
            ),
            *blocks,
        ]
    else:
        blocks.append(paragraph("No attack is on this page."))
    found = [verdict for verdict in report.findings if verdict.about == "risk"]
    found = [verdict for verdict in found if verdict.rests_on != ("ledger",)]
    blocks += [Items(items(found))] if found else []
    blocks.append(
        paragraph(
            "Similarity of records is no evidence of privacy.",
            "A table that looks different can still reveal a person.",
        )
    )
    return Section("attempts", "Attacks", tuple(blocks), ("bounds", "risks"))


def _short_row(attempt: Attempt, attempts: Sequence[Attempt]) -> tuple[Cell, ...]:
    """The cells of an attempt. An excess stands beside the share that was right on the control."""
    name = attempt.attack.removesuffix(BEYOND)
    of = next((a for a in attempts if a.measure == "rate" and a.attack == name != attempt.attack), None)
    control = None if attempt.control is None else attempt.control.value
    if of is not None:
        control = of.found.value - attempt.found.value
    if attempt.measure not in _EXCESS:
        name = f"{name} ({WORDS[attempt.measure][0].lower()})"
    found = attempt.found
    ends = "\u00a0to\u00a0".join(decimals(end, 2) for end in (found.lower, found.upper))
    known = ("none" if value is None else decimals(value, 2) for value in (control, attempt.proved))
    return (Cell(name), number(f"{decimals(found.value, 2)} ({ends})"), *map(number, known))


def bounds_section(report: RunReport) -> Section | None:
    """Return all attempts in full, by measure. None where nothing was tried."""
    if not report.attempts:
        return None
    on_table = any(attempt.one_table for attempt in report.attempts)
    levels = levels_text(attempt.level for attempt in report.attempts)
    blocks: list[Block] = [
        paragraph(
            "The proved bound holds against every attacker, whatever they know and compute. "
            f"Intervals are of {levels}. A baseline attack is made without the table.",
            "An attack below its bound proves nothing. Below each table stands what would bring the attack "
            "closer. An audit that passes its bound shows that the proof, or the code, is wrong."
            + (
                " One table may pass a bound by bad luck. The bound holds on average over tables."
                if on_table
                else ""
            ),
        )
    ]
    for measure, attempts in grouped(report.attempts):
        name, meaning = WORDS[measure]
        rows = tuple(_row(attempt) for attempt in attempts)
        plot = plot_attempts(attempts, name)
        blocks += [
            Heading(name),
            paragraph(f"{meaning[:1].upper()}{meaning[1:]}."),
            Plots((plot,)),
            Grid(f"{name}: proved and attempted", HEADER, rows),
            *(paragraph(Sentence(*told)) for told in closers(attempts)),
        ]
    return Section("bounds", "All attacks", tuple(blocks))


def _row(attempt: Attempt) -> tuple[Cell, ...]:
    name, found, control, proved, about = cells(attempt)
    return (
        Cell(name),
        number(found, attempt.internal),
        number(control, attempt.internal and bool(control)),
        number(proved),
        Cell(about, internal=attempt.internal and bool(about)),
    )
