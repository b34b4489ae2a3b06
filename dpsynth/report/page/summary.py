"""The first lines of a page: both verdicts, who is covered, and examples of the guarantee.

Every sentence is generated from numbers. Bounds of the guarantee are rounded up. Measured numbers come with
their intervals. Sentences that state a number of real records say that they are internal.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from dpsynth.accounting.guarantee import NOT_PRIVATE, UNIT, Guarantee
from dpsynth.accounting.measures import percent
from dpsynth.accounting.normal_form import ADD_REMOVE
from dpsynth.accounting.profile import Profile
from dpsynth.checks import about_patients
from dpsynth.report.formats import hundredths, once_in, round_up, shown
from dpsynth.report.page.blocks import Item, Sentence
from dpsynth.report.run_report import RunReport
from dpsynth.report.verdicts.verdict import ORDER, Severity, Verdict, get, number_of, worst
from dpsynth.report.wording import division, is_stratified, none_passed

#: how each severity is marked in a list, and in a bar
LABELS: dict[Severity, str] = {
    "bad": "✕ Bad:",
    "caution": "! Caution:",
    "open": "? No verdict:",
    "good": "✓ Good:",
}


def items(verdicts: Iterable[Verdict]) -> tuple[Item, ...]:
    """Return verdicts as lines that unfold: the headline first, then the sentence and what it rests on."""
    return tuple(
        Item(
            verdict.severity,
            LABELS[verdict.severity],
            verdict.headline,
            (
                Sentence(verdict.sentence, verdict.internal),
                Sentence(f"Rule {verdict.code}, from {', '.join(verdict.rests_on)}."),
            )
            if verdict.rests_on
            else (Sentence(verdict.sentence, verdict.internal),),
        )
        for verdict in verdicts
    )


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
    texts = (f"{_promise(report.guarantee)} {_attacked(report, risks)}", _quality(trust))
    first, second = map(about_patients, texts) if report.of_patients else texts
    return (
        Bar("verdict", worst(risks), f"Privacy: {first}", any(v.internal for v in risks)),
        Bar("quality-verdict", worst(trust), f"Quality: {second}", any(v.internal for v in trust)),
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
    signs = {
        "memorises": "There are signs of memorisation.",
        "too_close": "Records are too close to real ones.",
    }
    signs |= {"other_people": "Held-out records are no control."}
    warned = "".join(f" {text}" for code, text in signs.items() if code in codes)
    if codes & {"bound_passed", "average_passed"}:
        return f"An attack passed a proved bound.{warned}"
    bounded = [attempt for attempt in report.attempts if attempt.proved is not None]
    if not bounded:
        return f"{'No bound is known' if report.attempts else 'No attack is on this page'}.{warned}"
    above = any(a.found.value > a.proved for a in bounded if a.proved is not None)
    return f"{none_passed(bounded)}{' beyond chance' * above}.{warned}"


def _quality(found: Iterable[Verdict]) -> str:
    grades = [verdict.severity for verdict in found]
    if not grades:
        return "not measured."
    named = {"open": "without a verdict"}
    counts = ((grades.count(grade), named.get(grade, grade)) for grade in ORDER)
    return f"{', '.join(f'{number} {grade}' for number, grade in counts if number)}."


def covered(report: RunReport) -> tuple[Sentence, ...]:
    """Return who is covered, in sentences. The first one is for the summary. Empty where nothing is known.

    Examples
    --------
    >>> for sentence in covered(RunReport(config={"split": {"method": "none", "test_fraction": 0.5}})):
    ...     print(sentence.text)
    About 50 in 100 real records trained the model. The others were held out, and nothing was published ...
    """
    trained, held_out = (get(report.measured, name) for name in ("train_records", "test_records"))
    split = report.config.get("split")
    split = split if isinstance(split, Mapping) else {}
    fraction, others = split.get("test_fraction"), "and nothing was published about them"
    if is_stratified(report):
        others = "and their outcomes took part in the division"
    internal = any(measure is not None and measure.internal for measure in (trained, held_out))
    if trained is not None:
        of = "" if held_out is None else f" of {shown(int(number_of(trained) + number_of(held_out)))}"
        text = f"{shown(trained.value)}{of} real records trained the model"
        if held_out is not None and split:
            text += f". The other {shown(held_out.value)} tested it, {others}"
        elif held_out is not None:
            text += f". As far as is known, the other {shown(held_out.value)} had no part in it"
        first = Sentence(f"{text}.", internal)
    elif isinstance(fraction, int | float):
        first = Sentence(
            f"About {hundredths(1 - fraction)} in 100 real records trained the model. "
            f"The others were held out, {others}."
        )
    else:
        return ()
    return (first, *_more(report, measured=internal))


def _more(report: RunReport, *, measured: bool) -> list[Sentence]:
    sentences = list(division(report))
    if report.guarantee is not None and report.guarantee.with_all_rows and report.guarantee.private:
        sentences.append(
            "The guarantee is for each training patient with all rows. It is for each person only if nobody "
            "has two identifiers."
        )
    elif report.guarantee is not None and report.guarantee.private:
        sentences.append(
            "The guarantee is for each training record. It is for each person only if nobody has more "
            "than one. Several records of one person are covered at a much weaker level."
        )
    if measured:
        sentences.append(
            "The numbers that are marked confidential were computed from the training records and from the "
            "held-out ones. No guarantee covers these numbers, for either."
        )
    return [Sentence(text) for text in sentences]


#: probability of a decision, without a person's row, in the example of the page
_DECISION = 0.1


def promises(guarantee: Guarantee, profile: Profile) -> tuple[tuple[str, Sentence], ...]:
    """Return what a guarantee means, as names and sentences: to whom, ε and δ, an attacker, two examples."""
    who, added = guarantee.who, guarantee.adjacency == ADD_REMOVE
    facts = [
        ("For whom", _unit(guarantee)),
        ("ε and δ", _parameters(guarantee, who, added)),
        ("Attack accuracy", _accuracy(profile.attack_accuracy(), who, added)),
    ]
    decision, named = percent(float(profile.tpr(_DECISION))), percent(float(profile.tpr(0.01)))
    if decision != "100":
        rows, be = ("rows", "are") if guarantee.with_all_rows else ("row", "is")
        absent = f"{be} not in the data" if added else f"{be} replaced by another one"
        facts.append(
            (
                "Example: a decision",
                f"A person’s {rows} {absent}, and an insurer refuses the person with a probability of "
                f"{percent(_DECISION)} %. With the {rows} in the data, the probability is at most {decision} "
                "%.",
            )
        )
    if named != "100":
        facts.append(
            (
                "Example: a search",
                f"A test names 1 of 100 {who}s that were not in the data. It names at most {named} of 100 "
                "that were.",
            )
        )
    facts.append(("Worst case", unluckiest(profile, guarantee.delta)))
    return tuple((name, Sentence(text)) for name, text in facts)


def _unit(guarantee: Guarantee) -> str:
    if guarantee.unit == UNIT:
        return (
            "Each row of the training table. The ledger does not say what a row is. A person is protected "
            "only if nobody has more than one row."
        )
    if guarantee.with_all_rows:
        unit = guarantee.unit.removeprefix("one ")
        return f"Each {unit} in the training table. A person is protected if nobody has two identifiers."
    what = guarantee.unit.removeprefix(f"{UNIT} = ")
    return f"Each row of the training table. One row is {what}."


def _parameters(guarantee: Guarantee, who: str, added: bool) -> str:
    others = "without it" if added else "with another one in its place"
    epsilon, delta = guarantee.epsilon, guarantee.delta
    rarely = f"1 in {math.floor((1 + 1e-12) / delta):,}" if delta else "0"
    many = epsilon > math.log(1e6)
    times = "perhaps more than a million" if many else f"at most {round_up(math.exp(epsilon), 3)}"
    return (
        f"ε = {round_up(epsilon)}, δ = {round_up(delta)}. With one {who} in the data, any event is {times} "
        f"times as probable as {others}, plus at most {rarely}."
    )


def _accuracy(accuracy: float, who: str, added: bool) -> str:
    question = f"whether a {who} was in the data" if added else f"which of two {who}s was in the data"
    right = percent(accuracy)
    most = "every guess may be correct" if right == "100" else f"at most {right} of 100 guesses are correct"
    return (
        f"An attacker guesses {question}. If both answers are equally likely, {most}. Random guessing gives "
        "50. This holds even if the attacker knows all other records."
    )


def unluckiest(profile: Profile, delta: float) -> str:
    """Say how sure an attacker may become after one output: a proved bound for every record.

    Examples
    --------
    >>> from dpsynth.accounting import gaussian_event
    >>> print(unluckiest(Profile([gaussian_event(1.6)]), 1e-5))
    Attack accuracy (62.3 of 100) is an average over all possible outputs. After a single one, an attacker is
    at most 92.9 % sure. Greater certainty: once in 5,200 times or less often.
    """
    belief = percent(profile.belief(delta))
    beyond = profile.belief_exceedance(delta)
    rarely = once_in(beyond) if beyond else "never"
    if float(belief) >= 100:
        sure = "After a single one, an attacker may be almost certain."
    elif beyond > 0.5:
        sure = "No limit is proved for how sure an attacker is after a single one."
    else:
        sure = f"After a single one, an attacker is at most {belief} % sure. Greater certainty: {rarely}."
    right = percent(profile.attack_accuracy())
    accuracy = "Attack accuracy" if right == "100" else f"Attack accuracy ({right} of 100)"
    return f"{accuracy} is an average over all possible outputs. {sure}"
