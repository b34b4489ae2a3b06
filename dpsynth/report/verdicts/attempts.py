"""Rules about attempts: has an attack passed what is proved?"""

from __future__ import annotations

from collections.abc import Sequence

from dpsynth.attacks.attempt import Attempt
from dpsynth.report.attempts import in_words
from dpsynth.report.verdicts.verdict import Verdict


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
