"""The limits of the table, and a checklist of what may go wrong with a guarantee.

The list follows the hazards of NIST SP 800-226, "Guidelines for Evaluating Differential Privacy Guarantees"
(2025). Each entry is *handled*, *yours to decide* or *not covered*, by the facts of this run alone. These are
its ledger, options, schema and attacks, and the parts of the page. Nothing is called handled where no
guarantee holds.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

from dpsynth.attacks.attempt import Attempt, passing
from dpsynth.attacks.risk import BEYOND
from dpsynth.checks import together
from dpsynth.evaluation.results import Evaluation, any_confidential
from dpsynth.privacy.guarantee import UNIT, Guarantee, round_up
from dpsynth.privacy.loss import ADD_REMOVE
from dpsynth.report.blocks import (
    Block,
    Bullets,
    Cell,
    Facts,
    Heading,
    Item,
    Items,
    Lists,
    Plots,
    Section,
    Sentence,
    TableBlock,
    division,
    is_stratified,
    items,
    number_cell,
    paragraph,
)
from dpsynth.report.intervals import plot_attempts
from dpsynth.report.run_report import RunReport
from dpsynth.report.verdicts.privacy import WEAK_EPSILON
from dpsynth.report.verdicts.verdict import get
from dpsynth.report.words import (
    HEADER,
    PASSED,
    WORDS,
    attempt_row,
    between,
    bounds_in_words,
    by_measure,
    closers,
    decimals,
    has_floating_noise,
    levels_text,
    measured,
    percent,
    plain,
    reached,
    wording,
)

Status = Literal["open", "yours", "handled"]

#: heading, colour and mark of each status, in the order of the page
_STATUS: dict[Status, tuple[str, str, str]] = {
    "open": ("Not covered", "bad", "✕"),
    "yours": ("Yours to decide", "caution", "?"),
    "handled": ("Handled", "good", "✓"),
}


_SCHEMA = "Bounds, categories and schema"
_DIVISION = "Training and held-out {records}"
#: entries that exceptions about the division of the records concern
_DIVIDED = ("Neighbouring datasets", "Prior knowledge of attackers")
#: entries that only a guarantee can handle
_PROMISED = (
    "Privacy unit",
    "Neighbouring datasets",
    _DIVISION,
    "Size of ε and δ",
    "Intermediate results",
    "Prior knowledge of attackers",
    "Outliers",
    _SCHEMA,
)


@dataclass(frozen=True)
class Hazard:
    """One entry of the checklist: what may go wrong, whether it is handled, and what shows it."""

    name: str
    status: Status
    said: str
    #: numbers of real records, for the owner alone
    confidential: Sentence | None = None

    @property
    def sentences(self) -> tuple[Sentence, ...]:
        """All sentences, the last of which may be for the owner alone."""
        first = Sentence(self.said)
        return (first,) if self.confidential is None else (first, self.confidential)


def limits_section(report: RunReport) -> Section:
    """Return what no synthetic table of this kind gives."""
    sentences = report.say("limits").splitlines()
    if noisy := report.table.get("mostly_noise"):
        sentences.append(f"Noise has left little of these columns, by their released counts: {noisy}.")
    if rare := report.table.get("outcome_noise"):
        sentences.append(f"{str(rare)[:1].upper()}{str(rare)[1:]}.")
    return Section("limits", "Limits", (Bullets(tuple(map(Sentence, sentences))),))


def checklist_section(report: RunReport, shown: Collection[str] = ()) -> Section:
    """Return the checklist. ``shown`` are the anchors of the other sections on the page."""
    found = tuple(hazards(report, shown))
    lists = tuple(
        Items(
            tuple(
                Item(colour, mark, hazard.name, hazard.sentences)
                for hazard in found
                if hazard.status == status
            ),
            heading,
        )
        for status, (heading, colour, mark) in _STATUS.items()
        if any(hazard.status == status for hazard in found)
    )
    intro = paragraph("Hazards of NIST SP 800-226, as in this run.")
    return Section("checklist", "Checklist", (intro, Lists(lists)))


def hazards(report: RunReport, shown: Collection[str] = ()) -> Iterator[Hazard]:
    """Return every entry, in a fixed order.

    Examples
    --------
    >>> {hazard.status for hazard in hazards(RunReport())} <= {"open", "yours"}
    True
    """
    for hazard in (*_of_guarantee(report), *_of_run(report, shown)):
        yield replace(hazard, name=report.counted.fill(hazard.name))


def _of_run(report: RunReport, shown: Collection[str]) -> Iterator[Hazard]:
    """The entries that the guarantee does not decide."""
    yield _randomness(report)
    yield _proof(report)
    yield _budget(report)
    yield Hazard("Choice of options", "yours", report.say("options"))
    yield Hazard("Access to the real table", "yours", report.say("access"))
    yield _page(report)
    name = "Errors by subgroup"
    if "subgroups" in shown:
        yield Hazard(name, "yours", report.say("subgroups"))
    else:
        yield Hazard(name, "open", report.say("no subgroups"))
    yield _rounding(report)
    yield Hazard("Side channels", "open", report.say("side channels"))


def _of_guarantee(report: RunReport) -> Iterator[Hazard]:
    """The entries that only a guarantee can handle, open if one of its exceptions concerns them."""
    guarantee = report.guarantee
    if guarantee is None or not guarantee.private:
        said = report.say("void" if guarantee else "no ledger")
        yield from (Hazard(name, "open", said) for name in _PROMISED)
        return
    for hazard in _promised(report, guarantee):
        about = guarantee.excluded
        if hazard.name not in _DIVIDED:
            about = tuple(reason for reason in about if reason not in guarantee.of_division)
        # two entries look at their own exceptions
        if hazard.status != "handled" or hazard.name in (_DIVISION, _SCHEMA) or not about:
            yield hazard
        else:
            yield Hazard(hazard.name, "open", report.say("excluded", reasons=together(about)))


def _promised(report: RunReport, guarantee: Guarantee) -> Iterator[Hazard]:
    entries = guarantee.entries
    if guarantee.unit == UNIT:
        yield Hazard("Privacy unit", "yours", report.say("unit unknown"))
    elif guarantee.who == "patient":
        yield Hazard("Privacy unit", "handled", report.say("unit of a patient", unit=guarantee.unit))
    else:
        yield Hazard("Privacy unit", "yours", report.say("unit of a row", unit=guarantee.unit))
    n = report.table.get("n_public")
    said = report.say("neighbours", entries=entries, adjacency=guarantee.adjacency)
    if n is None:
        yield Hazard("Neighbouring datasets", "handled", said)
    else:
        yield Hazard("Neighbouring datasets", "yours", said + report.say("public size", n=n))
    yield _division(report, guarantee)
    yield _parameters(report, guarantee, n)
    yield Hazard("Intermediate results", "handled", report.say("results", entries=entries))
    yield Hazard("Prior knowledge of attackers", "handled", report.say("attackers"))
    said = report.say("related rows" if guarantee.with_all_rows else "related people")
    if guarantee.epsilon < math.log(1e6):
        delta = (1 + math.exp(guarantee.epsilon)) * guarantee.delta
        said += report.say("two together", epsilon=round_up(2 * guarantee.epsilon), delta=round_up(delta))
    yield Hazard("Related people", "open", said)
    yield Hazard("Outliers", "handled", report.say("outliers"))
    yield _schema(report, guarantee)


def _schema(report: RunReport, guarantee: Guarantee) -> Hazard:
    """Bounds and categories: handled only if the owner confirmed each list of categories or codes by name."""
    unreviewed, unconfirmed = report.fact("unreviewed"), report.fact("unconfirmed")
    marker = "rare_categories["
    rare = [m for m in report.measured.measures if m.name.startswith(marker) and m.value is not None]
    counts = ". ".join(f"{m.name[len(marker) : -1]}: {m.detail}" for m in rare)
    more = Sentence(f"{counts}.", True) if rare else None
    if guarantee.of_schema or unreviewed:
        reasons = together(guarantee.of_schema or ("schema fields that nobody reviewed",))
        said = f"{report.say('excluded', reasons=reasons)} {report.say('repeated')}"
        return Hazard(_SCHEMA, "open", said, more)
    if unconfirmed:
        return Hazard(_SCHEMA, "yours", report.say("unconfirmed lists", columns=unconfirmed), more)
    if unconfirmed is None:
        return Hazard(_SCHEMA, "yours", report.say("unknown lists"), more)
    return Hazard(_SCHEMA, "handled", report.say("confirmed lists"))


def _division(report: RunReport, guarantee: Guarantee) -> Hazard:
    said = " ".join(division(report))
    if reasons := guarantee.of_division:
        said = f"{report.say('excluded', reasons=together(reasons))} {said}".strip()
        return Hazard(_DIVISION, "open", said)
    if is_stratified(report):
        return Hazard(_DIVISION, "open", said)
    return Hazard(_DIVISION, *(("handled", said) if said else ("yours", report.say("unknown division"))))


def _parameters(report: RunReport, guarantee: Guarantee, n: object) -> Hazard:
    name = "Size of ε and δ"
    said = report.say("sizes", epsilon=round_up(guarantee.epsilon), delta=round_up(guarantee.delta))
    if isinstance(n, int):
        said += report.say("delta of all", n=n, expected=plain(guarantee.delta * n, 2))
    if guarantee.epsilon > WEAK_EPSILON:
        return Hazard(name, "open", said + report.say("weak epsilon", weak=f"{WEAK_EPSILON:g}"))
    return Hazard(name, "yours", said + report.say("strong enough"))


def _randomness(report: RunReport) -> Hazard:
    name, ledger = "Random numbers", report.ledger
    if ledger is not None and ledger.seeded:
        return Hazard(name, "open", report.say("seeded"))
    if ledger is None or not ledger.generators:
        return Hazard(name, "open", report.say("unknown generator"))
    drawn = together(ledger.generators)
    if any("not cryptographic" in generator for generator in ledger.generators):
        return Hazard(name, "open", report.say("weak generator", drawn=drawn))
    return Hazard(name, "handled", report.say("generator", drawn=drawn))


def _rounding(report: RunReport) -> Hazard:
    name = "Floating-point noise"
    if report.ledger is None or not report.holds:
        return Hazard(name, "open", report.say("unknown noise"))
    if has_floating_noise(report.ledger):
        return Hazard(name, "open", report.say("rounded noise"))
    return Hazard(name, "handled", report.say("exact noise"))


def _proof(report: RunReport) -> Hazard:
    name = "Errors in proof or code"
    bounded = [attempt for attempt in report.attempts if attempt.proved is not None]
    passed = passing(bounded)
    if passed:
        return Hazard(name, "open", report.say("passed", attack=passed[0].attack))
    if not bounded:
        return Hazard(name, "open", report.say("untested"))
    return Hazard(name, "yours", report.say("tested", bounds=bounds_in_words(bounded, report.counted)))


def _budget(report: RunReport) -> Hazard:
    name = "Other tables from the same {records}"
    if report.ledger is None or not report.holds:
        return Hazard(name, "open", report.say("no sum"))
    stages = f"{len(report.ledger.stages)} stage{'s' * (len(report.ledger.stages) != 1)}"
    return Hazard(name, "yours", report.say("one table", entries=len(report.ledger.entries), stages=stages))


def _page(report: RunReport) -> Hazard:
    name, measured = "This page", report.measured
    marked = any(m.internal for m in measured.measures) or any_confidential(*measured.details.values())
    if report.seconds or marked or any(attempt.internal for attempt in report.attempts):
        return Hazard(name, "yours", report.say("internal page"))
    guarantee = report.guarantee
    if guarantee is not None and not guarantee.private:
        return Hazard(name, "open", report.say("void page"))
    if guarantee is not None and guarantee.status == "private" and not guarantee.excluded:
        return Hazard(name, "handled", report.say("page"))
    return Hazard(name, "yours", report.say("page") + report.say("page with exceptions"))


# ------------------------------------------------------------------------------------------------
# Attacks beside the proved bounds, in one table and in full, and the three risks.
#
# The Article 29 Data Protection Working Party judges anonymisation by singling out, linkability and
# inference (Opinion 05/2014, WP216, section 2.2). Nothing here decides the legal status of a table.


def risks_section(report: RunReport) -> Section:
    """Return the section on the three risks."""
    blocks: list[Block] = [paragraph(report.say("three risks"))]
    numbers = _bounds(report)
    for risk in wording("risks", report.counted):
        bound = numbers if isinstance(numbers, str) else risk["bound"].format(**numbers) + numbers["but"]
        facts = [("Meaning", Sentence(risk["meaning"])), ("The guarantee", Sentence(bound))]
        attacked = _attacked(report.attempts, tuple(risk["attacks"]))
        if tried := [*_tried(report.measured, risk["measures"]), *attacked]:
            facts += tried if attacked else [*tried, ("Not tried", Sentence(risk["untried"]))]
        blocks += [Heading(risk["title"]), Facts(tuple(facts))]
    return Section("risks", "Three risks", tuple(blocks))


def _bounds(report: RunReport) -> dict[str, str] | str:
    """The numbers and words of the bounds that the guarantee gives on each risk, or why there is none."""
    guarantee, profile = report.guarantee, report.profile
    if guarantee is None or profile is None:
        return "None is known."
    if not guarantee.private:
        return "It is void: nothing is promised."
    words = wording(f"bounds of a {guarantee.who}", report.counted)
    otherwise = words["without" if guarantee.adjacency == ADD_REMOVE else "replaced"]
    return words | {
        "points": percent(guarantee.tv),
        "right": percent(profile.attack_accuracy()),
        "members": percent(float(profile.tpr(0.01))),
        "otherwise": f"{otherwise} in training",
        "but": words["but"] + (words["exceptions"] if guarantee.excluded else ""),
    }


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
    for caption, internal in ((f"Real {report.counted}", True), (f"Simulated {report.counted}", False)):
        rows = [a for a in chosen if a.internal == internal]
        if rows:
            caption = f"{caption}, {levels_text(a.level for a in rows)} intervals"
            cells = tuple(_short_row(a, report.attempts) for a in rows[:_MOST])
            header = ("attack", "reached", "control", "bound")
            # one table is in full view, that of real records if there is one
            blocks.append(TableBlock(caption, header, cells, bool(blocks), narrow=True, internal=internal))
    if blocks:
        what = "right guesses beyond the control" if chosen[0].measure in _EXCESS else "see the attack's name"
        blocks = [paragraph(report.say("attempts", reached=what, passed=PASSED)), *blocks]
    else:
        blocks.append(paragraph("No attack is on this page."))
    found = [verdict for verdict in report.findings if verdict.about == "risk"]
    found = [verdict for verdict in found if verdict.rests_on != ("ledger",)]
    blocks += [Items(items(found))] if found else []
    blocks.append(paragraph(report.say("no evidence")))
    return Section("attempts", "Attacks", tuple(blocks), ("bounds", "risks"))


def _short_row(attempt: Attempt, attempts: Sequence[Attempt]) -> tuple[Cell, ...]:
    """The cells of an attempt. An excess stands beside the share that was right on the control."""
    name = attempt.attack.partition(BEYOND)[0]
    of = next((a for a in attempts if a.measure == "rate" and a.attack == name != attempt.attack), None)
    control = None if attempt.control is None else attempt.control.value
    if of is not None:
        control = of.found.value - attempt.found.value
    if attempt.measure not in _EXCESS:
        name = f"{name} ({WORDS[attempt.measure][0].lower()})"
    say, found = partial(decimals, places=2), attempt.found
    said = between(found.value, found.lower, found.upper, say=say, to="\u00a0to\u00a0")
    known = ("none" if value is None else say(value) for value in (control, attempt.proved))
    return (Cell(name), number_cell(said), *map(number_cell, known))


def bounds_section(report: RunReport) -> Section | None:
    """Return all attempts in full, by measure. None where nothing was tried."""
    if not report.attempts:
        return None
    on_table = any(attempt.one_table for attempt in report.attempts)
    levels = levels_text(attempt.level for attempt in report.attempts)
    said = [report.say("bounds", levels=levels), *([report.say("one table attacked")] if on_table else [])]
    blocks: list[Block] = [paragraph(*said)]
    for measure, attempts in by_measure(report.attempts):
        name, meaning = WORDS[measure]
        rows = tuple(_row(attempt) for attempt in attempts)
        plot = plot_attempts(attempts, name)
        blocks += [
            Heading(name),
            paragraph(f"{meaning[:1].upper()}{meaning[1:]}."),
            Plots((plot,)),
            TableBlock(f"{name}: proved and attempted", HEADER, rows),
            *(paragraph(Sentence(*told)) for told in closers(attempts)),
        ]
    return Section("bounds", "All attacks", tuple(blocks))


def _row(attempt: Attempt) -> tuple[Cell, ...]:
    name, found, control, proved, about = attempt_row(attempt)
    return (
        Cell(name),
        number_cell(found, attempt.internal),
        number_cell(control, attempt.internal and bool(control)),
        number_cell(proved),
        Cell(about, internal=attempt.internal and bool(about)),
    )
