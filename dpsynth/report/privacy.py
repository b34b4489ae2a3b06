"""Sections on privacy: both bars, the guarantee and its ledger, attacks beside their bounds, the checklist.

Every sentence follows from numbers. Bounds of the guarantee are rounded up. The guarantee and the ledger may
be shared. Sentences that state a number of real records say that they are internal.

The checklist has the hazards of NIST SP 800-226, "Guidelines for Evaluating Differential Privacy Guarantees"
(2025). Each entry is *handled*, *yours to decide* or *not covered*, by the facts of this run alone. Nothing
is called handled where no guarantee holds. The three risks are those of the Article 29 Data Protection
Working Party: singling out, linkability and inference (Opinion 05/2014, WP216, section 2.2). Nothing
here decides the legal status of a table.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from dpsynth.attacks.attempt import Attempt, passing
from dpsynth.attacks.risk import BEYOND
from dpsynth.checks import Counted, together
from dpsynth.evaluation.results import any_confidential
from dpsynth.evaluation.tables import sampled
from dpsynth.files.text import dump_yaml
from dpsynth.privacy.guarantee import NOT_PRIVATE, STRATIFIED, UNIT, Guarantee
from dpsynth.privacy.loss import ADD_REMOVE
from dpsynth.privacy.profile import Profile, meanings, percent
from dpsynth.privacy.profile import measures_of as ledger_measures
from dpsynth.privacy.release import CountRelease
from dpsynth.privacy.risk import RiskLimit
from dpsynth.privacy.stages import Summary
from dpsynth.report import words
from dpsynth.report.blocks import (
    LABELS,
    Block,
    Bullets,
    Cell,
    Code,
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
)  # fmt: skip
from dpsynth.report.run_report import RunReport
from dpsynth.report.verdicts import ORDER, Severity, Verdict, get, number_of, worst
from dpsynth.report.verdicts.rules import WEAK_EPSILON
from dpsynth.report.words import bounds_in_words, decimals, measured, round_up, shown, wording

# ------------------------------------------------------------------------------------------------
# The first lines of the page: both verdicts.


@dataclass(frozen=True)
class Bar:
    """The verdict on one matter in one line. ``anchor`` is its place on the page."""

    anchor: str
    severity: Severity
    text: str
    internal: bool

    @property
    def mark(self) -> str:
        """Its mark and severity, such as ``✓ Good``."""
        return LABELS[self.severity].rstrip(":")


def bars(report: RunReport) -> tuple[Bar, Bar]:
    """Return the verdict on privacy and the verdict on quality, each as bad as its worst finding.

    Findings without a verdict count only if there is no other.

    Examples
    --------
    >>> for bar in bars(RunReport()):
    ...     print(bar.mark, bar.text)
    ! Caution Privacy: no guarantee is known. No attack is on this page.
    ? No verdict Quality: not measured.
    """
    risks, trust = ([v for v in report.findings if v.about == about] for about in ("risk", "trust"))
    privacy = f"Privacy: {_promise(report.guarantee)} {_attacked(report, risks)}"
    return (
        Bar("verdict", worst(risks), privacy, any(v.internal for v in risks)),
        Bar("quality-verdict", worst(trust), f"Quality: {_counts(trust)}", any(v.internal for v in trust)),
    )


def _promise(guarantee: Guarantee | None) -> str:
    if guarantee is None:
        return "no guarantee is known."
    if not guarantee.private:
        return f"{NOT_PRIVATE}: nothing is guaranteed."
    but = ", with exceptions" if guarantee.excluded else ""
    return f"guaranteed for each {guarantee.who}{but}: ε = {round_up(guarantee.epsilon)}."


def _attacked(report: RunReport, risks: Iterable[Verdict]) -> str:
    codes = {verdict.code for verdict in risks if verdict.severity != "open"}
    warned = "".join(f" {said}" for code, said in report.words("warnings").items() if code in codes)
    if codes & {"bound_passed", "average_passed"}:
        return f"An attack passed a proved bound.{warned}"
    bounded = [attempt for attempt in report.attempts if attempt.proved is not None]
    if not bounded:
        return f"{'No bound is known' if report.attempts else 'No attack is on this page'}.{warned}"
    return f"{bounds_in_words(bounded, report.counted)}.{warned}"


def _counts(found: Sequence[Verdict]) -> str:
    grades, named = [verdict.severity for verdict in found], {"open": "without a verdict"}
    counts = ((grades.count(grade), named.get(grade, grade)) for grade in ORDER)
    return (
        ", ".join(f"{number} {grade}" for number, grade in counts if number) + "."
        if found
        else "not measured."
    )


# ------------------------------------------------------------------------------------------------
# The guarantee: in plain words, who is covered, and in full with the privacy ledger.


def guarantee_section(report: RunReport) -> Section:
    """Return the section in plain words. Without a ledger, it says so."""
    guarantee, profile = report.guarantee, report.profile
    blocks: list[Block] = []
    if guarantee is None or profile is None:
        blocks.append(paragraph(report.say("nothing known")))
    elif not guarantee.private:
        blocks.append(paragraph(report.say("nothing guaranteed")))
    else:
        blocks.append(Facts((*_asked(report, profile), *promises(guarantee, profile))))
        blocks += [paragraph(*_loose(report))] if _loose(report) else []
    if guarantee is not None and guarantee.excluded:
        left_out = tuple(Sentence(reason) for reason in guarantee.excluded)
        blocks += [paragraph("The guarantee does not cover:"), Bullets(left_out)]
    if who := covered(report):
        blocks.append(paragraph(who[0]))
    weak = [v for v in report.findings if v.rests_on == ("ledger",) and v.code == "weak_guarantee"]
    blocks += [Items(items(weak))] if weak else []
    return Section("guarantee", "Guarantee", tuple(blocks), ("ledger",))


def _asked(report: RunReport, profile: Profile) -> tuple[tuple[str, Sentence], ...]:
    """The risk for which epsilon was chosen, as a fact."""
    asked = report.config.get("risk")
    if not isinstance(asked, Mapping):
        return ()
    risk = RiskLimit.of(**asked)
    end = "This guarantee keeps it." if risk.kept(profile) else "This guarantee allows more."
    return (("Asked for", Sentence(f"Of every attack, {risk}. {end}")),)


#: probability of a decision, without a person's row, in the example of the page
_DECISION = 0.1


def promises(guarantee: Guarantee, profile: Profile) -> tuple[tuple[str, Sentence], ...]:
    """Return what a guarantee means, as names and sentences: to whom, ε and δ, an attacker, two examples."""
    who, added, rows = guarantee.who, guarantee.adjacency == ADD_REMOVE, guarantee.with_all_rows
    epsilon, delta, right = guarantee.epsilon, guarantee.delta, percent(profile.attack_accuracy())
    decision, named = percent(float(profile.tpr(_DECISION))), percent(float(profile.tpr(0.01)))
    be = "are" if rows else "is"
    facts = {
        "unit unknown": guarantee.unit == UNIT,
        "all rows": rows,
        "unit": guarantee.unit.removeprefix("one " if rows else f"{UNIT} = "),
        "who": who,
        "counted": Counted.of(guarantee.unit),
        "epsilon": round_up(epsilon),
        "delta": round_up(delta),
        "times": f"at most {round_up(math.exp(epsilon), 3)}"
        if epsilon <= math.log(1e6)
        else "perhaps more than a million",
        "others": "without it" if added else "with another one in its place",
        "rarely": f"1 in {math.floor((1 + 1e-12) / delta):,}" if delta else "0",
        "question": f"whether a {who} was in the data" if added else f"which of two {who}s was in the data",
        "certain": right == "100",
        "right": right,
        "rows": "rows" if rows else "row",
        "absent": f"{be} not in the data" if added else f"{be} replaced by another one",
        "limited decision": decision != "100",
        "decision": decision,
        "decided": percent(_DECISION),
        "limited search": named != "100",
        "named": named,
        "unluckiest": unluckiest(profile, delta),
    }
    said = {name: words.first_case(cases, facts)[1] for name, cases in wording("promises").items()}
    return tuple((name, Sentence(text)) for name, text in said.items() if text)


def unluckiest(profile: Profile, delta: float) -> str:
    """Say how sure an attacker may become after one output: a proved bound for every record.

    Examples
    --------
    >>> from dpsynth.privacy import gaussian_event
    >>> print(unluckiest(Profile([gaussian_event(1.6)]), 1e-5))
    Attack accuracy (62.3 of 100) is an average over all possible outputs. After a single one, an attacker is
    at most 92.9 % sure. Greater certainty: once in 5,200 times or less often.
    """
    belief = percent(profile.belief(delta))
    beyond = profile.belief_exceedance(delta)
    rarely = words.once_in(beyond) if beyond else "never"
    if float(belief) >= 100:
        sure = "After a single one, an attacker may be almost certain."
    elif beyond > 0.5:
        sure = "No limit is proved for how sure an attacker is after a single one."
    else:
        sure = f"After a single one, an attacker is at most {belief} % sure. Greater certainty: {rarely}."
    right = percent(profile.attack_accuracy())
    accuracy = "Attack accuracy" if right == "100" else f"Attack accuracy ({right} of 100)"
    return f"{accuracy} is an average over all possible outputs. {sure}"


def covered(report: RunReport) -> tuple[Sentence, ...]:
    """Return who is covered, in sentences. The first one is for the summary. Empty where nothing is known.

    Examples
    --------
    >>> for sentence in covered(RunReport(config={"split": {"method": "none", "test_fraction": 0.5}})):
    ...     print(sentence.text)
    About 50 in 100 real records trained the model. The others were held out, and nothing was published ...
    """
    trained, held_out = (get(report.measured, name) for name in ("train_records", "test_records"))
    split = _split_of(report)
    fraction, others = split.get("test_fraction"), "and nothing was published about them"
    if is_stratified(report):
        others = "and their outcomes took part in the division"
    internal = any(measure is not None and measure.internal for measure in (trained, held_out))
    if trained is not None:
        of = "" if held_out is None else f" of {shown(int(number_of(trained) + number_of(held_out)))}"
        text = f"{shown(trained.value)}{of} real {report.counted} trained the model"
        if held_out is not None and split:
            text += f". The other {shown(held_out.value)} tested it, {others}"
        elif held_out is not None:
            text += f". As far as is known, the other {shown(held_out.value)} had no part in it"
    elif isinstance(fraction, int | float):
        text = f"About {words.hundredths(1 - fraction)} in 100 real {report.counted} trained the model. "
        text += f"The others were held out, {others}"
    else:
        return ()
    more = division(report)
    if report.guarantee is not None and report.holds:
        more.append(report.say(f"for each {'patient' if report.guarantee.with_all_rows else 'row'}"))
    more += [report.say("for nobody")] if internal else []
    return (Sentence(f"{text}.", internal), *map(Sentence, more))


def is_stratified(report: RunReport) -> bool:
    """Whether a stratified split divided the records, by the run's configuration or by its ledger."""
    by_ledger = report.guarantee is not None and STRATIFIED in report.guarantee.of_division
    return by_ledger or _split_of(report).get("method") == "stratified"


def division(report: RunReport) -> list[str]:
    """Return how the records were divided, and what follows for the guarantee. Empty if nothing says how."""
    named = report.words(f"division of {report.counted}")
    if is_stratified(report):
        said = report.say("stratified", read=named["read"]).splitlines()
        return [*said, report.say("stratified guarantee")] if report.holds else said
    if _split_of(report).get("method") != "independent":
        return []
    return report.say("independent", **named).splitlines()


def _split_of(report: RunReport) -> Mapping[str, object]:
    split = report.config.get("split")
    return split if isinstance(split, Mapping) else {}


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
    blocks += [Heading("Cost"), *_cost(report, summary)]
    if guarantee.private:
        rows = tuple(
            tuple(map(Cell, row))
            for row in meanings(ledger_measures(profile, guarantee.delta), guarantee.who)
        )
        caption = f"Measures of the guarantee, for one {guarantee.who}"
        measures = TableBlock(caption, ("measure", "bound", "meaning"), rows)
        blocks += [Heading("Limits for an attacker"), measures]
        blocks += [paragraph(*_loose(report))] if _loose(report) else []
        drawn = report.drawn("trade_off", "roc_bound", "advantage", "privacy_profile")
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


def _cost(report: RunReport, summary: Summary) -> list[Block]:
    if not summary["entries"]:
        return [paragraph("The ledger has no entry: no noisy statistic is recorded.")]
    rows = tuple(
        (
            Cell(f"{place}. {entry['name']}"),
            number_cell(words.bound(entry["epsilon_alone"])),
            number_cell(words.bound(entry["epsilon_cumulative"])),
            *(Cell(entry[name]) for name in ("event", "sensitivity", "detail")),
        )
        for place, entry in enumerate(summary["entries"], start=1)
    )
    header = ("noisy statistic", "ε alone", "ε so far", "event", "sensitivity", "detail")
    return [
        paragraph(report.say("cost", delta=round_up(summary["delta"]))),
        Plots(report.drawn("costs")),
        TableBlock("The ledger, entry by entry", header, rows, folded=len(rows) > 12),
    ]


# ------------------------------------------------------------------------------------------------
# The limits of the table, and a checklist of what may go wrong with a guarantee.


def limits_section(report: RunReport) -> Section:
    """Return what no synthetic table of this kind gives."""
    sentences = report.say("limits").splitlines()
    if noisy := report.table.get("mostly_noise"):
        sentences.append(f"Noise has left little of these columns, by their released counts: {noisy}.")
    if rare := report.table.get("outcome_noise"):
        sentences.append(f"{str(rare)[:1].upper()}{str(rare)[1:]}.")
    return Section("limits", "Limits", (Bullets(tuple(map(Sentence, sentences))),))


#: heading, colour and mark of each status, in the order of the page
_STATUS = {
    "open": ("Not covered", "bad", "✕"),
    "yours": ("Yours to decide", "caution", "?"),
    "handled": ("Handled", "good", "✓"),
}


@dataclass(frozen=True)
class Hazard:
    """One entry of the checklist: what may go wrong, whether it is handled, and what shows it."""

    name: str
    status: str
    said: str
    #: numbers of real records, for the owner alone
    confidential: Sentence | None = None

    @property
    def sentences(self) -> tuple[Sentence, ...]:
        """All sentences, the last of which may be for the owner alone."""
        first = Sentence(self.said)
        return (first,) if self.confidential is None else (first, self.confidential)


def checklist_section(report: RunReport, shown: Collection[str] = ()) -> Section:
    """Return the checklist. ``shown`` are the anchors of the other sections on the page."""
    found = [*hazards(report, shown)]
    lists = []
    for status, (heading, colour, mark) in _STATUS.items():
        lines = tuple(Item(colour, mark, h.name, h.sentences) for h in found if h.status == status)
        lists += [Items(lines, heading)] if lines else []
    intro = paragraph("Hazards of NIST SP 800-226, as in this run.")
    return Section("checklist", "Checklist", (intro, Lists(tuple(lists))))


def hazards(report: RunReport, shown: Collection[str] = ()) -> Iterator[Hazard]:
    """Return every entry of the table ``hazards`` in ``words.yaml``, in its order.

    An entry that a guarantee alone can handle is open if none holds, or if one of its exceptions concerns it.

    Examples
    --------
    >>> {hazard.status for hazard in hazards(RunReport())} <= {"open", "yours"}
    True
    """
    guarantee, facts = report.guarantee, _facts(report, shown)
    for entry in report.words("hazards"):
        concerns = entry.get("exceptions")
        if concerns and not report.holds:
            if "needs" not in entry:
                yield Hazard(entry["name"], "open", report.say("void" if guarantee else "no ledger"))
            continue
        status, said = words.first_case(entry["cases"], facts)
        about = () if guarantee is None or concerns in (None, "own") else guarantee.excluded
        if guarantee is not None and concerns == "but division":
            about = tuple(reason for reason in about if reason not in guarantee.of_division)
        if status != "handled" or not about:
            rare = facts["rare"] if entry["name"].startswith("Bounds") else None
            yield Hazard(entry["name"], status, said, rare)
        else:
            yield Hazard(entry["name"], "open", report.say("excluded", reasons=together(about)))


def _facts(report: RunReport, shown: Collection[str]) -> dict[str, Any]:
    """What decides the entries of the checklist, and the values in their sentences."""
    ledger, measured, n = report.ledger, report.measured, report.table.get("n_public")
    generators = () if ledger is None else ledger.generators
    bounded = [attempt for attempt in report.attempts if attempt.proved is not None]
    passed = passing(bounded)
    marked = any(m.internal for m in measured.measures) or any_confidential(*measured.details.values())
    guarantee = report.guarantee
    facts: dict[str, Any] = {
        "holds": report.holds,
        "void": guarantee is not None and not guarantee.private,
        "covered": guarantee is not None and guarantee.status == "private" and not guarantee.excluded,
        "confidential": report.seconds or marked or any(attempt.internal for attempt in report.attempts),
        "subgroups": "subgroups" in shown,
        "seeded": ledger is not None and ledger.seeded,
        "unknown generator": not generators,
        "weak generator": any("not cryptographic" in generator for generator in generators),
        "generators": _listed(generators),
        "passed": passed[0].attack if passed else "",
        "bounds": bounds_in_words(bounded, report.counted) if bounded else "",
        "exact noise": report.holds and ledger is not None and not words.has_floating_noise(ledger),
        "entries": 0 if ledger is None else len(ledger.entries),
        "stages": "" if ledger is None else f"{len(ledger.stages)} stage{'s' * (len(ledger.stages) != 1)}",
    }
    if guarantee is None or not guarantee.private:
        return facts
    epsilon, delta = guarantee.epsilon, guarantee.delta
    marker = "rare_categories["
    rare = [m for m in measured.measures if m.name.startswith(marker) and m.value is not None]
    counts = ". ".join(f"{m.name[len(marker) : -1]}: {m.detail}" for m in rare)
    unreviewed = ("schema fields that nobody reviewed",) if report.fact("unreviewed") else ()
    both = (1 + math.exp(min(epsilon, 700.0))) * delta
    return facts | {
        "unit unknown": guarantee.unit == UNIT,
        "of a patient": guarantee.who == "patient",
        "unit": guarantee.unit,
        "adjacency": guarantee.adjacency,
        "public size": n is not None,
        "n": n,
        "stratified": is_stratified(report),
        "division": " ".join(division(report)),
        "division excluded": _listed(guarantee.of_division),
        "epsilon": round_up(epsilon),
        "delta": round_up(delta),
        "expected": report.say("delta of all", n=n, expected=words.plain(delta * n, 2))
        if isinstance(n, int)
        else "",
        "weak": epsilon > WEAK_EPSILON,
        "weakest": WEAK_EPSILON,
        "all rows": guarantee.with_all_rows,
        "two together": report.say("two together", epsilon=round_up(2 * epsilon), delta=round_up(both))
        if epsilon < math.log(1e6)
        else "",
        "schema excluded": _listed(guarantee.of_schema or unreviewed),
        "repeated": report.say("repeated"),
        "unconfirmed": report.fact("unconfirmed"),
        "unknown lists": report.fact("unconfirmed") is None,
        "rare": Sentence(f"{counts}.", True) if rare else None,
    }


def _listed(names: Sequence[str]) -> str:
    return together(names) if names else ""


# ------------------------------------------------------------------------------------------------
# Attacks beside the proved bounds, in one table and in full, and the three risks.

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
            caption = f"{caption}, {words.levels_text(a.level for a in rows)} intervals"
            cells = tuple(_short_row(a, report.attempts) for a in rows[:_MOST])
            header = ("attack", "reached", "control", "bound")
            # one table is in full view, that of real records if there is one
            blocks.append(TableBlock(caption, header, cells, bool(blocks), phone="narrow", internal=internal))
    if blocks:
        what = "right guesses beyond the control" if chosen[0].measure in _EXCESS else "see the attack's name"
        blocks = [paragraph(report.say("attempts", reached=what, passed=words.PASSED)), *blocks]
    else:
        blocks.append(paragraph("No attack is on this page."))
    found = [v for v in report.findings if v.about == "risk" and v.rests_on != ("ledger",)]
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
        name = f"{name} ({words.WORDS[attempt.measure][0].lower()})"
    say, found = partial(decimals, places=2), attempt.found
    said = words.between(found.value, found.lower, found.upper, say=say, to="\u00a0to\u00a0")
    known = ("none" if value is None else say(value) for value in (control, attempt.proved))
    return (Cell(name), number_cell(said), *map(number_cell, known))


def bounds_section(report: RunReport) -> Section | None:
    """Return all attempts in full, by measure. None where nothing was tried."""
    if not report.attempts:
        return None
    on_table = any(attempt.one_table for attempt in report.attempts)
    levels = words.levels_text(attempt.level for attempt in report.attempts)
    said = [report.say("bounds", levels=levels), *([report.say("one table attacked")] if on_table else [])]
    blocks: list[Block] = [paragraph(*said)]
    header = ("attack", "reached", "baseline attack", "proved bound", "tried on")
    for (measure, attempts), plot in zip(
        words.by_measure(report.attempts), report.drawn("attempts"), strict=True
    ):
        name, meaning = words.WORDS[measure]
        blocks += [
            Heading(name),
            paragraph(f"{meaning[:1].upper()}{meaning[1:]}."),
            Plots((plot,)),
            TableBlock(f"{name}: proved and attempted", header, tuple(map(_row, attempts))),
            *(paragraph(Sentence(*told)) for told in words.closers(attempts)),
        ]
    return Section("bounds", "All attacks", tuple(blocks))


def _row(attempt: Attempt) -> tuple[Cell, ...]:
    control = "" if attempt.control is None else decimals(attempt.control.value)
    return (
        Cell(attempt.attack),
        number_cell(words.reached(attempt), attempt.internal),
        number_cell(control, attempt.internal and bool(control)),
        number_cell("none" if attempt.proved is None else decimals(attempt.proved)),
        Cell(attempt.about, internal=attempt.internal and bool(attempt.about)),
    )


def risks_section(report: RunReport) -> Section:
    """Return the section on the three risks."""
    blocks: list[Block] = [paragraph(report.say("three risks"))]
    numbers = _bounds(report)
    for risk in report.words("risks"):
        bound = numbers if isinstance(numbers, str) else risk["bound"].format(**numbers) + numbers["but"]
        facts = [("Meaning", Sentence(risk["meaning"])), ("The guarantee", Sentence(bound))]
        names = risk["measures"]
        tried = [m for name in names if (m := get(report.measured, name)) is not None]
        said = [f"{names[m.name]}: {measured(m)}" for m in tried]
        facts += [("Tried on this table", _joined(said, any(m.internal for m in tried)))] if tried else []
        attacked = [
            f"{attempt.attack}: {words.reached(attempt)} right"
            + (
                ""
                if attempt.control is None
                else f", {decimals(attempt.control.value)} for the baseline attack"
            )
            for attempt in report.attempts
            if attempt.measure == "rate" and attempt.attack.startswith(tuple(risk["attacks"]))
        ]
        if attacked:
            facts.append(("Attacks", _joined([*attacked, "More is under All attacks"], True)))
        elif tried:
            facts.append(("Not tried", Sentence(risk["untried"])))
        blocks += [Heading(risk["title"]), Facts(tuple(facts))]
    return Section("risks", "Three risks", tuple(blocks))


def _bounds(report: RunReport) -> dict[str, str] | str:
    """The numbers and words of the bounds that the guarantee gives on each risk, or why there is none."""
    guarantee, profile = report.guarantee, report.profile
    if guarantee is None or profile is None:
        return "None is known."
    if not guarantee.private:
        return "It is void: nothing is promised."
    named: dict[str, str] = report.words(f"bounds of a {guarantee.who}")
    otherwise = named["without" if guarantee.adjacency == ADD_REMOVE else "replaced"]
    return named | {
        "points": percent(guarantee.tv),
        "right": percent(profile.attack_accuracy()),
        "members": percent(float(profile.tpr(0.01))),
        "otherwise": f"{otherwise} in training",
        "but": named["but"] + (named["exceptions"] if guarantee.excluded else ""),
    }


def _joined(sentences: Sequence[str], internal: bool) -> Sentence:
    return Sentence(". ".join(sentence[:1].upper() + sentence[1:] for sentence in sentences) + ".", internal)


# ------------------------------------------------------------------------------------------------
# The model card, with facts about the table and how it was made, and the glossary.


def card_section(report: RunReport) -> Section:
    """Return the model card."""
    blocks: list[Block] = [Facts(tuple(_card(report)))]
    if report.config:
        blocks.append(Code("Configuration", dump_yaml(dict(report.config)).rstrip("\n")))
    return Section("card", "Model card", tuple(blocks))


def _card(report: RunReport) -> Iterator[tuple[str, Sentence]]:
    table, measured, records = report.table, report.measured, report.counted
    published = {} if report.ledger is None else report.ledger.published
    synthetic, exact = table.get("synthetic_records"), report.exact_size
    sizes: list[tuple[str, object, bool]] = []
    for name, label in (
        ("synthetic_records", f"Synthetic {records} evaluated" if synthetic else f"Synthetic {records}"),
        ("train_records", f"Real training {records}"),
        ("test_records", f"Real held-out {records}"),
        ("train_rows", "Rows of training patients that are used"),
        ("test_rows", "Rows of held-out patients that are used"),
    ):
        made = name == "synthetic_records"
        if name in measured and not (made and measured[name].value == synthetic):
            sizes.append((label, measured[name].value, measured[name].internal or (made and exact)))
    for name, value, internal in (
        ("Data set", table.get("name"), False),
        ("Data owner", published.get("data_owner"), False),
        ("Contact", published.get("contact"), False),
        ("Made on", report.day, False),
        ("Columns", table.get("columns"), False),
        ("Outcome", table.get("outcome"), False),
        ("Schema (SHA-256)", table.get("schema_sha256"), False),
        (f"Public number of training {records}", table.get("n_public"), False),
        *sizes,
        ("Random parts", " ".join(sampled(measured)), True),
        (f"Synthetic {records}", synthetic, exact),
        ("Their rows", table.get("synthetic_rows"), exact),
        ("SHA-256 of synthetic.csv", published.get("synthetic_sha256"), False),
        ("Guarantee", report.guarantee or "None is known.", False),
        ("Beyond the base model", _statistics(report, "Beyond the base model"), False),
        ("WGAN critic", _statistics(report, "WGAN critic"), False),
        ("Seeds", _statistics(report, "Seeds"), False),
        (
            "Versions",
            ", ".join(f"{package} {version}" for package, version in report.versions.items()),
            False,
        ),
        ("Wall time", words.seconds_text(report.seconds), True),
    ):
        if value is not None and value != "":
            yield name, Sentence(shown(value) if isinstance(value, int) else str(value), internal)


def _statistics(report: RunReport, fact: str) -> str:
    """What a ledger says of the statistics beside the base model, of the critic, or of the noise."""
    ledger = report.ledger
    if ledger is None:
        return ""
    # as ledgers of older versions have it
    entries = {entry.name.removeprefix("WGAN "): entry for entry in ledger.entries}
    names = [entry.name.removeprefix("WGAN ") for entry in ledger.entries]
    rounds, steps = names.count("further tables"), entries.get("critic steps")
    facts = {
        "no base model": "base model tables" not in names,
        "pairwise statistics": "pairwise statistics" in names,
        "rounds": rounds,
        "several rounds": rounds > 1,
        "codes": "counts of codes and of pairs of codes" in names,
        "steps": steps is not None,
        "matched": steps is not None and "random critic" in steps.sensitivity,
        "not private": ledger.not_private,
        "seeded": ledger.seeded,
        "unknown generator": not ledger.generators,
        "weak generator": any("not cryptographic" in generator for generator in ledger.generators),
        "generators": _listed(ledger.generators),
    }
    said = (words.first_case(cases, facts)[1] for cases in report.words("card")[fact])
    return " ".join(filter(None, said))


def glossary_section(report: RunReport, *, internal: bool) -> Section:
    """Return sentences on each word. Words about numbers that the page does not show are left out."""
    shown = {
        "guarantees": True,
        "studies": bool(report.studies),
        "levels": report.counted is Counted.PATIENTS,
        "effects": internal or bool(report.studies),
        "measures": internal,
    }
    glossary = report.words("glossary")
    entries = [entry for part, there in shown.items() if there for entry in glossary[part].items()]
    facts = Facts(tuple((word, Sentence(text)) for word, text in entries))
    return Section("glossary", "Words", (paragraph(report.say("glossary of")), facts))
