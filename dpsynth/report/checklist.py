"""The limits of the table, and a checklist of what may go wrong with a guarantee.

The list follows the hazards of NIST SP 800-226, "Guidelines for Evaluating Differential Privacy Guarantees"
(2025). Each entry is *handled*, *yours to decide* or *not covered*, by the facts of this run alone. These are
its ledger, options, schema and attacks, and the parts of the page. Nothing is called handled where no
guarantee holds.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
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
    items,
    number_cell,
    paragraph,
    texts,
)
from dpsynth.report.intervals import plot_attempts
from dpsynth.report.run_report import RunReport
from dpsynth.report.verdicts.privacy import WEAK_EPSILON
from dpsynth.report.verdicts.verdict import get
from dpsynth.report.words import (
    HEADER,
    PASSED,
    REPEATED,
    WORDS,
    attempt_row,
    bounds_in_words,
    by_measure,
    closers,
    decimals,
    division,
    has_floating_noise,
    is_stratified,
    levels_text,
    measured,
    percent,
    plain,
    reached,
)

Status = Literal["open", "yours", "handled"]

#: heading, colour and mark of each status, in the order of the page
_STATUS: dict[Status, tuple[str, str, str]] = {
    "open": ("Not covered", "bad", "✕"),
    "yours": ("Yours to decide", "caution", "?"),
    "handled": ("Handled", "good", "✓"),
}


_SCHEMA = "Bounds, categories and schema"
_DIVISION = "Training and held-out records"
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
    sentences = [
        "Conclusions about people in general are not hidden. If smoking harms, the table may show it.",
        "A single record may be implausible. A small group may be absent.",
        "Intervals and p-values of this table alone are too small, unless pre-specified.",
        "Repeat important results on real records.",
    ]
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
    guarantee = report.guarantee
    holds = guarantee is not None and guarantee.private
    if guarantee is None or not holds:
        said = "No privacy ledger is known." if guarantee is None else "The guarantee is void."
        for name in _PROMISED:
            yield Hazard(name, "open", said)
    else:
        for hazard in _of_guarantee(report, guarantee):
            yield _with_exceptions(hazard, guarantee)
    yield _randomness(report)
    yield _proof(report)
    yield _budget(report, holds)
    yield Hazard(
        "Choice of options",
        "yours",
        "Rules from public facts or the noisy count chose the noisy statistics. "
        "A choice of options, or of the best of several fits, uses privacy budget too.",
    )
    yield Hazard(
        "Access to the real table",
        "yours",
        "dpsynth reads the real table without noise. Protect the machine, the files and the logs.",
    )
    yield _page(report)
    yield _subgroups(shown)
    yield _rounding(report, holds)
    yield Hazard(
        "Side channels",
        "open",
        "Time, memory and power use while the table was made are not covered.",
    )


def _with_exceptions(hazard: Hazard, guarantee: Guarantee) -> Hazard:
    """A handled entry is open if an exception of the guarantee concerns it."""
    if hazard.status != "handled" or hazard.name in (_DIVISION, _SCHEMA):
        return hazard  # these two look at their own exceptions
    about = guarantee.excluded
    if hazard.name not in _DIVIDED:
        about = tuple(reason for reason in about if reason not in guarantee.of_division)
    if not about:
        return hazard
    return Hazard(hazard.name, "open", f"The guarantee does not cover: {together(about)}.")


def _of_guarantee(report: RunReport, guarantee: Guarantee) -> Iterator[Hazard]:
    entries = guarantee.entries
    if guarantee.unit == UNIT:
        unit = "The ledger does not say what a row is. Check that nobody has more than one row."
        yield Hazard("Privacy unit", "yours", unit)
    elif guarantee.who == "patient":
        yield Hazard("Privacy unit", "handled", f"The ledger says: {guarantee.unit}.")
    else:
        unit = f"The ledger says: {guarantee.unit}. Decide whether this protects the person you mean."
        yield Hazard("Privacy unit", "yours", unit)
    n = report.table.get("n_public")
    public = "" if n is None else f" The number of training records ({n}) is treated as public."
    yield Hazard(
        "Neighbouring datasets",
        "handled" if n is None else "yours",
        f"All {entries} entries of the ledger use {guarantee.adjacency}.{public}",
    )
    yield _division(report, guarantee)
    yield _parameters(guarantee, n)
    yield Hazard(
        "Intermediate results",
        "handled",
        f"All {entries} noisy statistics count in full. Each one may be seen, with the model and the ledger.",
    )
    yield Hazard(
        "Prior knowledge of attackers",
        "handled",
        "The bounds hold even if the attacker knows all other records. The table of measures shows them.",
    )
    yield _related(guarantee)
    yield Hazard(
        "Outliers",
        "handled",
        "Values outside the schema's bounds are clipped. The ledger's sensitivity holds for every record.",
    )
    yield _schema(report, guarantee)


def _schema(report: RunReport, guarantee: Guarantee) -> Hazard:
    """Bounds and categories: handled only if the owner confirmed each list of categories or codes by name."""
    unreviewed, unconfirmed = report.fact("unreviewed"), report.fact("unconfirmed")
    marker = "rare_categories["
    rare = [m for m in report.measured.measures if m.name.startswith(marker) and m.value is not None]
    counted = ". ".join(f"{m.name[len(marker) : -1]}: {m.detail}" for m in rare)
    more = Sentence(f"{counted}.", True) if rare else None
    if guarantee.of_schema or unreviewed:
        repeated = report.counted.fill(REPEATED)
        reasons = together(guarantee.of_schema or ("schema fields that nobody reviewed",))
        return Hazard(_SCHEMA, "open", f"The guarantee does not cover: {reasons}. {repeated}", more)
    if unconfirmed:
        said = (
            f"Nobody confirmed the lists of categories or codes of these columns: {unconfirmed}. A list that "
            "was copied from a draft repeats values of real records. Write reviewed: true in the column if "
            "it is public. Until then only you can read the files of this run."
        )
        return Hazard(_SCHEMA, "yours", said, more)
    if unconfirmed is None:
        said = "Nothing here says whether lists of categories or codes are public. A draft copies them."
        return Hazard(_SCHEMA, "yours", said, more)
    said = "The owner declared the schema reviewed, and confirmed each list of categories or codes."
    return Hazard(_SCHEMA, "handled", f"{said} The ledger excludes nothing of it.")


def _division(report: RunReport, guarantee: Guarantee) -> Hazard:
    said = " ".join(division(report))
    if reasons := guarantee.of_division:
        said = f"The guarantee does not cover: {together(reasons)}. {said}".strip()
        return Hazard(_DIVISION, "open", said)
    if is_stratified(report):
        return Hazard(_DIVISION, "open", said)
    if said:
        return Hazard(_DIVISION, "handled", said)
    said = "Nothing here says how the training records were chosen. The guarantee is about these records."
    return Hazard(_DIVISION, "yours", said)


def _parameters(guarantee: Guarantee, n: object) -> Hazard:
    said = f"ε = {round_up(guarantee.epsilon)} and δ = {round_up(guarantee.delta)}."
    if isinstance(n, int):
        said += f" δ times {n} records is {plain(guarantee.delta * n, 2)}. It should be far below 1."
    if guarantee.epsilon > WEAK_EPSILON:
        return Hazard("Size of ε and δ", "open", f"{said} An ε above {WEAK_EPSILON:g} promises little.")
    return Hazard("Size of ε and δ", "yours", f"{said} Decide whether the attack accuracy is acceptable.")


def _related(guarantee: Guarantee) -> Hazard:
    said = "Records of relatives, or several records of one person, can reveal more together."
    if guarantee.with_all_rows:
        said = "Rows of relatives can reveal more together."
    if guarantee.epsilon < math.log(1e6):
        delta = (1 + math.exp(guarantee.epsilon)) * guarantee.delta
        said += f" For two records, ε is {round_up(2 * guarantee.epsilon)} and δ is {round_up(delta)}."
    return Hazard("Related people", "open", said)


def _randomness(report: RunReport) -> Hazard:
    name, ledger = "Random numbers", report.ledger
    if ledger is not None and ledger.seeded:
        return Hazard(name, "open", "The noise follows a seed. Anyone who knows the seed can remove it.")
    if ledger is None or not ledger.generators:
        return Hazard(name, "open", "Nothing says which generator made the noise.")
    drawn = together(ledger.generators)
    if any("not cryptographic" in generator for generator in ledger.generators):
        return Hazard(name, "open", f"The ledger says: {drawn}.")
    return Hazard(name, "handled", f"The ledger says: {drawn}. The key was not kept.")


def _rounding(report: RunReport, holds: bool) -> Hazard:
    name, ledger = "Floating-point noise", report.ledger
    if ledger is None or not holds:
        return Hazard(name, "open", "No guarantee says how much noise there is.")
    if has_floating_noise(ledger):
        return Hazard(
            name,
            "open",
            "Attacks on the rounding of WGAN critic steps (Mironov 2012) are not covered. "
            "Other noise is exact.",
        )
    return Hazard(
        name, "handled", "This version's noise on counts and sums is whole numbers of a public step."
    )


def _proof(report: RunReport) -> Hazard:
    name = "Errors in proof or code"
    bounded = [attempt for attempt in report.attempts if attempt.proved is not None]
    passed = passing(bounded)
    if passed:
        return Hazard(name, "open", f"An attack passed its bound: {passed[0].attack}.")
    if not bounded:
        return Hazard(name, "open", "No attack with a proved bound is on this page.")
    return Hazard(
        name, "yours", f"{bounds_in_words(bounded, report.counted)}. This finds large errors alone."
    )


def _budget(report: RunReport, holds: bool) -> Hazard:
    name = "Other tables from the same records"
    if report.ledger is None or not holds:
        return Hazard(name, "open", "No guarantee adds up over tables.")
    stages = len(report.ledger.stages)
    said = f"This ledger has {len(report.ledger.entries)} entries in {stages} stage{'s' * (stages != 1)}."
    return Hazard(name, "yours", f"{said} Add the ε of every other table from the same records.")


def _page(report: RunReport) -> Hazard:
    measured = report.measured
    marked = any(m.internal for m in measured.measures) or any_confidential(*measured.details.values())
    if report.seconds or marked or any(attempt.internal for attempt in report.attempts):
        said = (
            "This page has numbers from real records without noise. Share release.html instead, made by "
            "dpsynth report --mode release."
        )
        return Hazard("This page", "yours", said)
    guarantee = report.guarantee
    if guarantee is not None and not guarantee.private:
        return Hazard("This page", "open", "The table was made without protection. So was this page.")
    whole = guarantee is not None and guarantee.status == "private" and not guarantee.excluded
    said = "No number on this page comes from real records without noise."
    if not whole:
        said += " It may show what the guarantee does not cover."
    return Hazard("This page", "handled" if whole else "yours", said)


def _subgroups(shown: Collection[str]) -> Hazard:
    name = "Errors by subgroup"
    if "subgroups" in shown:
        return Hazard(name, "yours", "See the table of subgroups. Decide whether the errors are acceptable.")
    return Hazard(name, "open", "This page does not show errors by sex, age or other groups.")


# ------------------------------------------------------------------------------------------------
# Attacks beside the proved bounds, in one table and in full, and the three risks.
#
# The Article 29 Data Protection Working Party judges anonymisation by singling out, linkability and
# inference (Opinion 05/2014, WP216, section 2.2). Nothing here decides the legal status of a table.


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


_OF_PATIENTS = {
    "who": "patient",
    "theirs": "theirs",
    "held": "a patient's record",
    "own": "their own record",
    "without": "without their record",
    "replaced": "with another record in place of theirs",
}
_OF_ROWS = {
    "who": "row",
    "theirs": "it",
    "held": "a row",
    "own": "it",
    "without": "without the row",
    "replaced": "with another row in its place",
}


def _bounds(report: RunReport, words: Sequence[str]) -> list[str]:
    """The bounds that the guarantee gives on each risk, in these words."""
    guarantee, profile = report.guarantee, report.profile
    if guarantee is None or profile is None:
        return ["None is known."] * len(words)
    if not guarantee.private:
        return ["It is void: nothing is promised."] * len(words)
    added = guarantee.adjacency == ADD_REMOVE
    words_of = _OF_PATIENTS if guarantee.who == "patient" else _OF_ROWS
    numbers = words_of | {
        "points": percent(guarantee.tv),
        "right": percent(profile.attack_accuracy()),
        "members": percent(float(profile.tpr(0.01))),
        "otherwise": f"{words_of['without' if added else 'replaced']} in training",
    }
    but = "" if guarantee.who == "patient" else " This is about one row, and a person may have several."
    but += " The exceptions of the guarantee are not covered." if guarantee.excluded else ""
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
            blocks.append(TableBlock(caption, header, cells, bool(blocks), narrow=True, internal=internal))
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
    return (Cell(name), number_cell(f"{decimals(found.value, 2)} ({ends})"), *map(number_cell, known))


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
