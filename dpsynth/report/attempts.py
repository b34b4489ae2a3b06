"""How attempts are told: the words for each measure, one table for page and Markdown."""

from __future__ import annotations

from collections.abc import Sequence

from dpsynth.attacks.attempt import Attempt, Measure
from dpsynth.report.formats import between, decimals

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
HEADER = ("attack", "reached", "empty-handed", "proved bound", "tried on")


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
    control = "" if attempt.control is None else f", {decimals(attempt.control.value)} empty-handed"
    return f"{attempt.attack}: {reached(attempt)}{bound}{control}"


def reached(attempt: Attempt) -> str:
    """What was found, with its interval."""
    found = attempt.found
    return between(found.value, found.lower, found.upper)
