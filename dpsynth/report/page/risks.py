"""The section on singling out, linkability and inference.

These are the three risks by which the Article 29 Data Protection Working Party judges a technique of
anonymisation (Opinion 05/2014, WP216, of 10 April 2014, section 2.2). Of each: what it is, what the guarantee
says about it, what was tried on this table, and what was not. Nothing here decides what a table is in law.
"""

from __future__ import annotations

from collections.abc import Sequence

from dpsynth.accounting.guarantee import round_up
from dpsynth.accounting.normal_form import ADD_REMOVE
from dpsynth.attacks.attempt import Attempt
from dpsynth.evaluation.records import Evaluation
from dpsynth.report.attempts import number, reached
from dpsynth.report.page.blocks import Block, Facts, Heading, Section, Sentence, paragraph
from dpsynth.report.run_report import RunReport
from dpsynth.report.verdicts.verdict import get, told

#: what the names of attacks begin with, by risk
_PREFIXES = {
    "Singling out": ("singling out",),
    "Linkability": ("linkability", "membership"),
    "Inference": ("inference",),
}
_SINGLED = (
    (
        "copies_excess",
        "share of synthetic records that equal a training record, less those that equal a new one",
    ),
    ("dcr_closer_to_train", "share of them nearer to a training than to a new record, 0.5 is a coin"),
)
_LINKED = (
    ("membership_auc", "AUC of telling training from new records by distance, 0.5 is a coin"),
    ("membership_auc_calibrated", "the same with compared distances"),
    ("membership_tpr_at_1pct", "share of training records named where 1 in 100 new ones is suspected"),
)
_INFERRED = (
    ("privacy_loss", "how much nearer synthetic records are to training than to new ones, 0 or less is best"),
    ("auc_mean", "AUC of models that learn the outcome from the table, for people who had no part in it"),
    ("r2_mean", "the same for an outcome that is a number, as a share of its variance"),
)


def section(report: RunReport) -> Section:
    """Return the section."""
    blocks: list[Block] = [
        paragraph(
            "European data protection authorities ask of anonymised data whether a person can still be "
            "singled out, linked, or have something inferred about them (Article 29 Working Party, Opinion "
            "05/2014). This page speaks to each; it does not decide whether the table is anonymous in law, "
            "for which all means that are reasonably likely to be used count, other tables included."
        )
    ]
    bounds = _bounds(report)
    parts = (
        (
            "Singling out",
            "To isolate the record of one person: here, a synthetic record that is a patient's own, or a "
            "description that fits one patient alone.",
            _SINGLED,
            "Whether few columns together, such as a rare diagnosis and an age, fit one real patient alone; "
            "single columns are told below, where values occur that one real person alone has.",
        ),
        (
            "Linkability",
            "To link two records of one person, in one table or in two: here, to tell with a record from "
            "elsewhere that its owner is among the training records.",
            _LINKED,
            "To link two other tables through the synthetic one; to use more than distances between records.",
        ),
        (
            "Inference",
            "To deduce a value of a person from other values of theirs.",
            _INFERRED,
            "An attack that guesses a hidden value of a training record, against the same attack on a new "
            "one. What holds of patients in general can be inferred of everybody, by design.",
        ),
    )
    for (title, meaning, names, untried), bound in zip(parts, bounds, strict=True):
        facts = [("What it is", Sentence(meaning)), ("The guarantee", Sentence(bound))]
        attacked = _attacked(report.attempts, title)
        if tried := [*_tried(report.measured, names), *attacked]:
            facts += tried if attacked else [*tried, ("Not tried", Sentence(untried))]
        blocks += [Heading(title), Facts(tuple(facts))]
    return Section("risks", "Singling out, linkability, inference", tuple(blocks))


def _bounds(report: RunReport) -> tuple[str, str, str]:
    """What the guarantee says about each risk."""
    guarantee, profile = report.guarantee, report.profile
    if guarantee is None or profile is None:
        return ("None is known.",) * 3
    if not guarantee.private:
        return ("It is void: nothing is promised.",) * 3
    points, right = round_up(100 * guarantee.tv, 3), round_up(100 * profile.attack_accuracy(), 3)
    members = round_up(100 * float(profile.tpr(0.01)), 3)
    added = guarantee.adjacency == ADD_REMOVE
    otherwise = f"{'without their record' if added else 'with another record in place of theirs'} in training"
    but = " That is but for what the guarantee leaves out." if guarantee.excluded else ""
    return (
        "Whatever would single a patient out, such as a synthetic record that equals theirs, is more "
        f"probable by at most {points} points in 100 than {otherwise}.{but}",
        "Whoever holds a patient's record and asks whether it was among the training records is right at "
        f"most {right} times in 100 from even odds; a test that suspects 1 in 100 others wrongly finds at "
        f"most {members} in 100 of those who were.{but}",
        "No deduction about a patient becomes more probable by more than "
        f"{points} points in 100 through their own record. What follows from the other records, about this "
        f"patient as about any other, is not limited.{but}",
    )


def _attacked(attempts: Sequence[Attempt], title: str) -> list[tuple[str, Sentence]]:
    """What attacks of this risk reached, each beside what it reaches empty-handed."""
    prefixes = _PREFIXES[title]
    told = [
        f"{attempt.attack}: {reached(attempt)} right"
        + ("" if attempt.control is None else f", {number(attempt.control.value)} empty-handed")
        for attempt in attempts
        if attempt.measure == "rate" and attempt.attack.startswith(prefixes)
    ]
    if not told:
        return []
    text = ". ".join(sentence[:1].upper() + sentence[1:] for sentence in told)
    return [("Attacks", Sentence(f"{text}. More is under Proved and attempted.", True))]


def _tried(evaluation: Evaluation, names: Sequence[tuple[str, str]]) -> list[tuple[str, Sentence]]:
    known = [(get(evaluation, name), what) for name, what in names]
    said = [
        Sentence(f"{what}: {told(measure)}", measure.internal)
        for measure, what in known
        if measure is not None
    ]
    if not said:
        return []
    text = ". ".join(sentence.text[:1].upper() + sentence.text[1:] for sentence in said)
    return [("Tried on this table", Sentence(f"{text}.", any(sentence.internal for sentence in said)))]
