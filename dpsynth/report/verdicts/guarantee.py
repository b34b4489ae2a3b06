"""Rules about the guarantee: is there one, does it leave something out, is it worth its name?

Rules about attempts: has an attack passed what is proved?
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from dpsynth.accounting.guarantee import Guarantee, round_up
from dpsynth.accounting.measures import percent
from dpsynth.accounting.profile import Profile
from dpsynth.attacks.attempt import Attempt
from dpsynth.report.attempts import in_words
from dpsynth.report.verdicts.verdict import Severity, Verdict

#: a bound on an attack's accuracy that leaves little of a promise
WEAK_ACCURACY = 0.9
#: an epsilon above which next to nothing is promised: tier 3 of Ponomareva et al. 2023, "How to DP-fy ML",
#: Journal of Artificial Intelligence Research 77
WEAK_EPSILON = 10.0


def judge_guarantee(guarantee: Guarantee | None, profile: Profile | None) -> tuple[Verdict, ...]:
    """Return what the rules say about a guarantee and the profile behind it, or about their absence."""
    if guarantee is None or profile is None:
        return (_risk("no_guarantee", "caution", "No guarantee is known for this table: nothing says what an "
                      "attack that was not tried can find."),)  # fmt: skip
    if not guarantee.private:
        return (_risk("not_private", "bad", str(guarantee)),)
    verdicts = []
    if guarantee.excluded:
        left_out = "; ".join(guarantee.excluded)
        verdicts.append(_risk("excluded", "caution", f"The guarantee leaves something out: {left_out}."))
    accuracy, epsilon = profile.attack_accuracy(), guarantee.epsilon
    right = percent(accuracy)
    often = f"right {right} times in 100" if right != "100" else "always right"
    room = f"it leaves room for a guess that is {often}"
    if epsilon > WEAK_EPSILON:
        million = math.log(1e6)
        factor = f"{math.ceil(math.exp(epsilon)):,}" if epsilon < million else "more than a million"
        sentence = (
            f"The guarantee is too weak to rely on: ε is {round_up(epsilon)}, so that an event may be "
            f"{factor} times as probable with a patient as without, and {room}. An ε above 10 is "
            "commonly held to be a weak promise or none."
        )
        verdicts.append(_risk("weak_guarantee", "bad", sentence))
    elif accuracy > WEAK_ACCURACY:
        verdicts.append(_risk("weak_guarantee", "caution", f"The guarantee is weak: {room}."))
    elif not verdicts:
        sentence = "The guarantee holds against every attack, whatever its maker knows."
        verdicts.append(_risk("guaranteed", "good", sentence))
    return tuple(verdicts)


def _risk(code: str, severity: Severity, sentence: str) -> Verdict:
    return Verdict(code, severity, sentence, ("ledger",), False, "risk")


def judge_attempts(attempts: Sequence[Attempt]) -> tuple[Verdict, ...]:
    """Return what the rules say: each contradiction by itself, or that no bound was passed.

    Examples
    --------
    >>> from dpsynth.evaluation.estimates import Estimate
    >>> [v.code for v in judge_attempts([Attempt("guess", "tv", Estimate(0.3, 0.29, 0.31), proved=0.2)])]
    ['bound_passed']
    """
    bounded = [attempt for attempt in attempts if attempt.proved is not None]
    passed = [attempt for attempt in bounded if attempt.contradicts]
    if passed:
        return tuple(
            Verdict(
                "bound_passed",
                "bad",
                f"An attack passed what is proved ({in_words(attempt)}): the proof, or the code that carries "
                "it out, is wrong. Release nothing, and report it.",
                (f"attempts: {attempt.attack}",),
                attempt.internal,
                "risk",
            )
            for attempt in passed
        )
    unlucky = [attempt for attempt in bounded if attempt.passes]
    if unlucky:
        return tuple(
            Verdict(
                "average_passed",
                "caution",
                "An attack reached more on this table than it may on average over tables "
                f"({in_words(attempt)}): the table is an unlucky one, or the proof is wrong. Shadow models, "
                "which fit again many times, tell which.",
                (f"attempts: {attempt.attack}",),
                attempt.internal,
                "risk",
            )
            for attempt in unlucky
        )
    if not bounded:
        return ()
    plural = "" if len(bounded) == 1 else "s"
    sentence = (
        f"Of {len(bounded)} result{plural} of attacks beside a proved bound none passed it. That proves "
        "nothing, but a gross error would have shown."
    )
    internal = any(attempt.internal for attempt in bounded)
    return (Verdict("bounds_held", "good", sentence, ("attempts",), internal, "risk"),)
