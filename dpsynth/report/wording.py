"""How attempts and declared studies are told: rows of their tables, and sentences.

A regression is declared before the fit, part of the budget buys its score, and the released estimates come
with intervals that hold both errors.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from dpsynth.accounting.guarantee import Guarantee
from dpsynth.attacks.attempt import Attempt, Measure
from dpsynth.report.formats import between, decimals, level_text, p_value
from dpsynth.studies.digits import effect_texts
from dpsynth.studies.estimates import Estimates
from dpsynth.studies.life_table import SurvivalCurve


class Studied(Protocol):
    """A report with private estimates of studies."""

    @property
    def studies(self) -> tuple[Estimates, ...]:
        """The estimates."""

    @property
    def guarantee(self) -> Guarantee | None:
        """What the ledger promises."""

    @property
    def withheld(self) -> str:
        """Why they may not be shared; empty where they may."""


#: what each measure is called, what it says, and its axis
WORDS: dict[Measure, tuple[str, str]] = {
    "accuracy": ("Right guesses", "share of right guesses from even odds: 0.5 is a coin, 1 is certainty"),
    "advantage": ("Advantage", "true positive minus false positive rate: 0 is a coin, 1 is certainty"),
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
    """What would have to be true for attempts to come closer, each once; whether it is internal.

    Where not all attempts share one, it names those that it is about.

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
        whose = "" if len(among) == len(attempts) else f" ({'; '.join(attempt.attack for attempt in among)})"
        told.append((f"To come closer{whose}: {closer}.", any(attempt.internal for attempt in among)))
    return told


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
    """What was found, with its interval."""
    found = attempt.found
    return between(found.value, found.lower, found.upper)


#: of every interval here
LEVEL = 0.95
#: how an analyst uses these numbers, and which others not to use
GUIDE = (
    "These intervals hold both the sampling of the records and the noise that was added for privacy: they "
    "can be quoted as those of a published study are, with what is remarked on them.",
    "The same regression fitted to the synthetic table itself (a naive analysis) gives intervals that are "
    "too short, since it takes synthetic records for observed ones.",
    "For an analysis of your own, draw several tables with sample_many(m, study=...), analyse each, and put "
    "their estimates together with dpsynth.combine.",
)
#: what stands beside an estimate that may be shared
PAID = "paid for"


def guidance(report: Studied) -> tuple[str, ...]:
    """Return what a reader of the estimates must know, a sentence each.

    Where they may not be shared it is that, and nothing about quoting them; where the guarantee leaves
    something out, that comes last.
    """
    if report.withheld:
        return (report.withheld,)
    if report.guarantee is not None and report.guarantee.excluded:
        left_out = "; ".join(report.guarantee.excluded)
        return (*GUIDE, f"The guarantee leaves something out, for these estimates as well: {left_out}.")
    return GUIDE


def described(estimates: Estimates) -> str:
    """What was fitted, what its noise costs, and what else a reader of the intervals should know."""
    first = f"Declared before the fit as {estimates.formula}; {widened(estimates)}."
    return " ".join((first, *estimates.remarks))


def surviving(curve: SurvivalCurve) -> str:
    """What a survival curve is, in one sentence."""
    unit = f" ({curve.unit})" if curve.unit else ""
    held = f"bands of {level_text(curve.level)} at each time hold sampling and noise"
    return f"Survival by time{unit}, whatever the predictors; {held}."


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
