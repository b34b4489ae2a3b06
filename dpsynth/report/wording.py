"""Rows and sentences about attempts, pre-specified regressions and the division of the records.

A regression is named before the fit, and part of the budget goes into its score. The intervals of its
estimates include sampling error and privacy noise.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from dpsynth.accounting.guarantee import STRATIFIED, Guarantee
from dpsynth.accounting.ledger import Ledger
from dpsynth.attacks.attempt import Attempt, Measure
from dpsynth.checks import together
from dpsynth.evaluation.estimates import FALSE_ALARMS
from dpsynth.report.formats import between, decimals, level_text, p_value
from dpsynth.studies.digits import effect_texts
from dpsynth.studies.estimates import Estimates
from dpsynth.studies.life_table import SurvivalCurve


class Report(Protocol):
    """The facts of a report that the words here need."""

    @property
    def config(self) -> Mapping[str, object]:
        """The configuration of the run."""

    @property
    def guarantee(self) -> Guarantee | None:
        """The promise of the ledger."""

    @property
    def of_patients(self) -> bool:
        """Whether patients have several rows."""

    @property
    def withheld(self) -> str:
        """Why estimates of studies may not be shared. Empty where they may."""


#: what repeats fields of a schema that were read off the records
REPEATED = (
    "The synthetic table and the fitted model (model/) repeat such values of real records: category names "
    "and bounds."
)


def has_floating_noise(ledger: Ledger) -> bool:
    """Whether some noise is in floating point, so that its last digits can be attacked (Mironov 2012).

    Noise of gradients at random critics is exact, and their entry says so. Entries of earlier versions do
    not.
    """
    steps = (entry for entry in ledger.entries if entry.name.endswith("critic steps"))
    return not all(entry.sensitivity.endswith("exact noise") for entry in steps)


def is_stratified(report: Report) -> bool:
    """Whether a stratified split divided the records, by the run's configuration or by its ledger."""
    told = report.guarantee is not None and STRATIFIED in report.guarantee.of_division
    return told or _split_of(report).get("method") == "stratified"


def division(report: Report) -> tuple[str, ...]:
    """Return how the records were divided, and what follows for the guarantee. Empty if nothing says how."""
    if is_stratified(report):
        read = "outcome of every record"
        if report.of_patients:
            read = "number of patients, and the outcome of each if there is one,"
        said = (
            "The records were divided into training and held-out parts in exact numbers, and in proportion "
            "to the outcome if there is one.",
            f"This division read the {read} without privacy budget.",
            "One more record in the table can move many others from one part to the other.",
        )
        if report.guarantee is None or not report.guarantee.private:
            return said
        return (
            *said,
            "The guarantee compares two training parts that differ in one record. It does not hold for two "
            "whole tables that differ in one record.",
        )
    if _split_of(report).get("method") == "independent" and report.of_patients:
        return (
            "A hash of the identifier assigned each patient, with all rows, to training or test.",
            "One more patient in the table is at most one more patient in training.",
            "The key of the hash is no secret. Anyone who knows an identifier can compute the part of the "
            "patient, and the division adds no secrecy.",
        )
    if _split_of(report).get("method") == "independent":
        return (
            "A hash of its values assigned each record to training or test, and equal records were numbered.",
            "One more record in the table is at most one more record in training.",
            "The key of the hash is no secret. Anyone who knows a record can compute its part, and the "
            "division adds no secrecy.",
        )
    return ()


def _split_of(report: Report) -> Mapping[str, object]:
    split = report.config.get("split")
    return split if isinstance(split, Mapping) else {}


#: what each measure is called, what it says, and its axis
WORDS: dict[Measure, tuple[str, str]] = {
    "accuracy": ("Right guesses", "share of right guesses from even odds: 0.5 is random, 1 is certainty"),
    "advantage": ("Advantage", "true positive minus false positive rate: 0 is random, 1 is certainty"),
    "tpr": ("Members named", "share of members named at a small share of others wrongly suspected"),
    "tv": ("Total variation", "how much more often one table's outcomes come out than its neighbour's"),
    "epsilon": ("Epsilon", "how many times as probable an event is with a patient as without: e to the ε"),
    "belief": ("Belief", "how sure the adversary became, from even odds"),
    "exceedance": ("Beliefs beyond the limit", "share of runs after which the adversary is surer than that"),
    "rate": ("Attacks on the table", "share of attacks that were right"),
}
HEADER = ("attack", "reached", "baseline attack", "proved bound", "tried on")


def grouped(attempts: Sequence[Attempt]) -> list[tuple[Measure, list[Attempt]]]:
    """Attempts by measure, in the order of :data:`WORDS`."""
    groups = [(measure, [a for a in attempts if a.measure == measure]) for measure in WORDS]
    return [(measure, group) for measure, group in groups if group]


def cells(attempt: Attempt) -> tuple[str, str, str, str, str]:
    """The row of an attempt under :data:`HEADER`."""
    control = "" if attempt.control is None else decimals(attempt.control.value)
    proved = "none" if attempt.proved is None else decimals(attempt.proved)
    return attempt.attack, reached(attempt), control, proved, attempt.about


def closers(attempts: Sequence[Attempt]) -> list[tuple[str, bool]]:
    """Return how attempts could come closer, each once, and whether it is internal.

    If this is not about all attempts, one that it is about is named.

    Examples
    --------
    >>> from dpsynth.evaluation.estimates import Estimate
    >>> closers([Attempt(name, "tv", Estimate(0.3, 0.25, 0.35), closer="more trials") for name in "ab"])
    [('To come closer: more trials.', True)]
    """
    found: dict[str, list[Attempt]] = {}
    for attempt in attempts:
        if attempt.closer:
            found.setdefault(attempt.closer, []).append(attempt)
    told = []
    for closer, among in found.items():
        text = f"To come closer: {closer}."
        if len(among) < len(attempts):
            which = among[0].attack
            some = f"{len(among)} of {len(attempts)} results, such as {which}" if len(among) > 1 else which
            text += f" This concerns {some}."
        told.append((text, any(attempt.internal for attempt in among)))
    return told


#: when an attack passes its bound
PASSED = (
    "An attack passes its bound if an interval that holds for all attacks together lies above it. By chance "
    f"this happens on at most 1 in {2 / FALSE_ALARMS:.0f} pages."
)


def none_passed(attempts: Sequence[Attempt]) -> str:
    """Say that no bound was passed, and what was attacked. ``attempts`` are those with a bound.

    Examples
    --------
    >>> from dpsynth.evaluation.estimates import Estimate
    >>> none_passed([Attempt("audit: counts", "tv", Estimate(0.3, 0.25, 0.35), 0.4, internal=False)])
    'No test of the noise code on made-up records passed its bound'
    """
    real = any(attempt.internal for attempt in attempts)
    return f"No {'attack' if real else 'test of the noise code on made-up records'} passed its bound"


def in_words(attempt: Attempt) -> str:
    """An attempt in one phrase.

    Examples
    --------
    >>> from dpsynth.evaluation.estimates import Estimate
    >>> in_words(Attempt("guess", "tv", Estimate(0.3, 0.25, 0.35), proved=0.4))
    'guess: 0.300 (0.250 to 0.350) of at most 0.400'
    """
    bound = "" if attempt.proved is None else f" of at most {decimals(attempt.proved)}"
    control = (
        "" if attempt.control is None else f", {decimals(attempt.control.value)} for the baseline attack"
    )
    return f"{attempt.attack}: {reached(attempt)}{bound}{control}"


def reached(attempt: Attempt) -> str:
    """The value that was found, with its interval."""
    found = attempt.found
    return between(found.value, found.lower, found.upper)


#: of every interval here
LEVEL = 0.95
#: how an analyst uses these numbers, and which others not to use
GUIDE = (
    "These intervals include sampling error and privacy noise. They can be quoted as those of a published "
    "study, with the remarks below.",
    "The same regression fitted to the synthetic table itself (a naive analysis) gives intervals that are "
    "too short. It treats synthetic records as observed ones.",
    "For an analysis of your own, generate several tables with sample_many(m, study=...). Analyse each, and "
    "combine their estimates with dpsynth.combine.",
)
#: what stands beside an estimate that may be shared
PAID = "covered"


def guidance(report: Report) -> tuple[str, ...]:
    """Return what a reader of the estimates must know, a sentence each.

    If they may not be shared, the sentence says so, and nothing about quoting them. The last sentence names
    what the guarantee does not cover.
    """
    if report.withheld:
        return (report.withheld,)
    if report.guarantee is not None and report.guarantee.excluded:
        left_out = together(report.guarantee.excluded)
        return (*GUIDE, f"The guarantee, also that of these estimates, does not cover: {left_out}.")
    return GUIDE


def described(estimates: Estimates) -> str:
    """The formula, the cost of the noise, and remarks for a reader of the intervals."""
    first = f"Formula, named before the fit: {estimates.formula}."
    return " ".join((first, f"{widened(estimates).capitalize()}.", *estimates.remarks))


def surviving(curve: SurvivalCurve) -> str:
    """A survival curve in words."""
    unit = f" ({curve.unit})" if curve.unit else ""
    level = level_text(curve.level)
    return f"Survival by time{unit}, whatever the predictors. Its {level} bands include sampling and noise."


def widened(estimates: Estimates) -> str:
    """How much the noise widens the intervals, in words."""
    return f"intervals are {estimates.widened}"


def rows(estimates: Estimates) -> list[tuple[str, str, str, str]]:
    """Term, effect, interval and p-value of each term, as text."""
    found = []
    for effect in estimates.effects(LEVEL):
        estimate, lower, upper = effect_texts(effect)
        found.append((effect["term"], estimate, f"{lower} to {upper}", p_value(effect["p_value"])))
    return found
