"""Rules about privacy: is there a guarantee, has an attack passed it, are training records known?"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist

from dpsynth.accounting.guarantee import Guarantee
from dpsynth.accounting.profile import Profile
from dpsynth.attacks.attempt import Attempt
from dpsynth.checks import few, together
from dpsynth.evaluation.records import Evaluation, Measure
from dpsynth.report.formats import measured, percent, round_up
from dpsynth.report.verdicts.verdict import Severity, Verdict, basis, get, least, number_of
from dpsynth.report.wording import PASSED, in_words, none_passed

#: p-value below which held-out records are no baseline, and the share of copies that is memorisation even so
DIFFERENT, MANY_COPIES = 0.01, 0.1
#: share of held-out records that equal a training one, above which copies may be coincidence
COINCIDE = 0.5
#: a guess of who was in the training table counts when it surely exceeds chance by this much
MEMBERSHIP_MARGIN = 0.02
#: without held-out records, a share of copies that is reported
COPIED = 0.01


@dataclass(frozen=True)
class _Sign:
    """A sign of memorisation: the level of a table without it, a level that is clear, and words."""

    floor: float
    clear: float
    words: str


_SIGNS = {
    "copies_excess": _Sign(0.0, 0.01, "More records copy a training record than a new one, by a share of"),
    "dcr_closer_to_train": _Sign(
        0.5 + MEMBERSHIP_MARGIN, 0.6, "The share of records nearer to training than to new ones is"
    ),
    "membership_auc": _Sign(0.5 + MEMBERSHIP_MARGIN, 0.6, "An attack by distance has an AUC of"),
    "membership_auc_calibrated": _Sign(
        0.5 + MEMBERSHIP_MARGIN, 0.6, "An attack by compared distances has an AUC of"
    ),
    "membership_tpr_at_1pct": _Sign(
        1.0, 0.05, "An attack that suspects 1 in 100 new records finds a share of training records of"
    ),
    "privacy_loss": _Sign(
        MEMBERSHIP_MARGIN, 0.1, "Nearest-neighbour accuracy rises from training to new records by"
    ),
}


def _floor(evaluation: Evaluation, name: str) -> float:
    """The level that a sign must surely exceed: that of chance, if it is measured."""
    chance = get(evaluation, f"{name}_chance")
    return _SIGNS[name].floor if chance is None else number_of(chance)


def _surely(measure: Measure, level: float, signs: int) -> float:
    """The lower end at which so many signs together exceed their floors by chance at a rate of 1 - level.

    Bonferroni's level for one-sided tests, by the width of a normal distribution. An end is never raised.
    """
    normal = NormalDist()
    wider = normal.inv_cdf(1 - (1 - level) / max(signs, 2)) / normal.inv_cdf(1 - (1 - level) / 2)
    return number_of(measure) - wider * (number_of(measure) - least(measure))


def memory(evaluation: Evaluation) -> Iterator[Verdict]:
    """Copies, membership inference and privacy loss: are training records memorised?

    Each sign is tested at a level for all signs together. A table that is independent of its training records
    is suspected at most as often as one interval misses.
    """
    level = float(evaluation.settings.get("level", 0.95))
    known = [measure for name in _SIGNS if (measure := get(evaluation, name)) is not None]
    judged = [measure for measure in known if measure.lower is not None]
    caught = [m for m in judged if _surely(m, level, len(judged)) > _floor(evaluation, m.name)]
    # without an interval, only clear signs are reported
    suspected = [m for m in known if m.lower is None and number_of(m) > _SIGNS[m.name].clear]
    differ, coincide = get(evaluation, "nn_train_test_p"), get(evaluation, "copies_expected_share")
    if caught or suspected:
        bad = any(number_of(m) > _SIGNS[m.name].clear for m in caught)
        signs = caught + suspected
        reasons = " ".join(f"{_SIGNS[m.name].words} {measured(m)}." for m in signs)
        shifted = differ is not None and number_of(differ) < DIFFERENT
        if shifted and not any(m.name == "copies_excess" and least(m) > MANY_COPIES for m in signs):
            yield Verdict(
                "no_baseline",
                "caution",
                "Held-out records differ from training ones. This difference can look like memorisation. "
                f"{reasons}",
                *basis(signs),
                "risk",
            )
            return
        start = "Training records are memorised" if bad else "Training records may be memorised"
        severity: Severity = "bad" if bad else "caution"
        chance = (
            f"At most 1 in {1 / (1 - level):.0f} tables that are independent of their training records are "
            "suspected by chance."
        )
        reasons += f" {chance}" if caught else ""
        yield Verdict("memorises", severity, f"{start}. {reasons}", *basis(signs), "risk")
    elif judged and coincide is not None and least(coincide) > COINCIDE:
        yield Verdict(
            "no_baseline",
            "caution",
            f"Many held-out records equal a training record: a share of {measured(coincide)}. They are the "
            "same people, or the table has few different records. Memorisation and coincidence look alike.",
            *basis([coincide]),
            "risk",
        )
    elif judged:
        yield Verdict(
            "no_memory_found",
            "good",
            "The attacks that were tried found no memorisation of training records. Others may find it.",
            *basis(judged),
            "risk",
        )
    copied = get(evaluation, "copies_train_share")
    if copied is not None and not known and least(copied) > COPIED:
        yield Verdict(
            "copies",
            "caution",
            f"Some synthetic records equal a training record: a share of {measured(copied)}. Without "
            "held-out records, memorisation and coincidence look alike.",
            *basis([copied]),
            "risk",
        )


def beside(guarantee: Guarantee | None, verdict: Verdict) -> Verdict:
    """A finding of memorisation with what the guarantee allows, and whether sharing is covered."""
    if verdict.code not in ("memorises", "values_remembered") or guarantee is None or not guarantee.private:
        return verdict
    said = [
        verdict.sentence,
        "The guarantee limits the advantage of every membership test to "
        f"{round_up(guarantee.tv)} (0 is a random guess, 1 is certainty).",
        f"It does not cover: {together(guarantee.excluded)}."
        if guarantee.excluded
        else "It covers the sharing of the table.",
    ]
    if verdict.severity == "bad":
        said.append("An attack far above this limit shows an error of proof or code. Share nothing then.")
    return replace(verdict, sentence=" ".join(said))


def lone_values(evaluation: Evaluation) -> Iterator[Verdict]:
    """Which columns repeat values of only one training record? Their intervals are simultaneous."""
    differ = get(evaluation, "nn_train_test_p")
    if differ is not None and number_of(differ) < DIFFERENT:
        return
    known = [m for m in evaluation.measures if m.name.startswith("lone_values_train[")]
    caught = [m for m in known if m.lower is not None and m.lower > 0.5 + MEMBERSHIP_MARGIN]
    if caught:
        caught.sort(key=number_of, reverse=True)
        named = [f"{m.name[m.name.index('[') + 1 : -1]} ({measured(m)})" for m in caught]
        sentence = (
            "Rare single values reveal training records. A synthetic record may have a value that only one "
            "real person has. This person is a training one more often than by chance (0.5). "
            f"Columns: {few(named, 3)}."
        )
        yield Verdict("values_remembered", "bad", sentence, *basis(caught), "risk")


#: a bound on an attack's accuracy that leaves little of a promise
WEAK_ACCURACY = 0.9
#: an epsilon above which next to nothing is promised: tier 3 of Ponomareva et al. 2023, "How to DP-fy ML",
#: Journal of Artificial Intelligence Research 77
WEAK_EPSILON = 10.0


def judge_guarantee(guarantee: Guarantee | None, profile: Profile | None) -> tuple[Verdict, ...]:
    """Return what the rules say about a guarantee and the profile behind it, or about their absence."""
    if guarantee is None or profile is None:
        sentence = "No guarantee is known for this table. Nothing limits attacks that were not tried."
        return (_risk("no_guarantee", "caution", sentence),)
    if not guarantee.private:
        return (_risk("not_private", "bad", str(guarantee)),)
    verdicts = []
    if guarantee.excluded:
        left_out = together(guarantee.excluded)
        verdicts.append(_risk("excluded", "caution", f"The guarantee has exceptions: {left_out}."))
    accuracy, epsilon = profile.attack_accuracy(), guarantee.epsilon
    right = percent(accuracy)
    often = f"right {right} times in 100" if right != "100" else "always right"
    room = f"A guess may be {often}"
    if epsilon > WEAK_EPSILON:
        million = math.log(1e6)
        factor = f"{math.ceil(math.exp(epsilon)):,}" if epsilon < million else "more than a million"
        sentence = (
            f"The guarantee is too weak to rely on: ε is {round_up(epsilon)}. An event may be {factor} times "
            f"as probable with a patient as without. {room}. An ε above 10 is commonly held to be a weak "
            "promise or none."
        )
        verdicts.append(_risk("weak_guarantee", "bad", sentence))
    elif accuracy > WEAK_ACCURACY:
        verdicts.append(_risk("weak_guarantee", "caution", f"The guarantee is weak. {room}."))
    elif not verdicts:
        sentence = "The guarantee holds against every attack, whatever the attacker knows."
        verdicts.append(_risk("guaranteed", "good", sentence))
    return tuple(verdicts)


def _risk(code: str, severity: Severity, sentence: str) -> Verdict:
    return Verdict(code, severity, sentence, ("ledger",), False, "risk")


def judge_attempts(attempts: Sequence[Attempt]) -> tuple[Verdict, ...]:
    """Return what the rules say: each contradiction by itself, or that no bound was passed."""
    bounded = [attempt for attempt in attempts if attempt.proved is not None]
    passed = [attempt for attempt in bounded if attempt.contradicts]
    if passed:
        return tuple(
            Verdict(
                "bound_passed",
                "bad",
                f"An attack passed its proved bound ({in_words(attempt)}). The proof or the code is wrong. "
                "Publish nothing, and report it.",
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
                f"({in_words(attempt)}). The table is an unlucky one, or the proof is wrong. Shadow models, "
                "which fit again many times, show which.",
                (f"attempts: {attempt.attack}",),
                attempt.internal,
                "risk",
            )
            for attempt in unlucky
        )
    if not bounded:
        return ()
    sentence = (
        f"{none_passed(bounded)} ({len(bounded)} result{'' if len(bounded) == 1 else 's'}). {PASSED} This "
        "proves nothing, but a gross error would have shown."
    )
    internal = any(attempt.internal for attempt in bounded)
    return (Verdict("bounds_held", "good", sentence, ("attempts",), internal, "risk"),)
