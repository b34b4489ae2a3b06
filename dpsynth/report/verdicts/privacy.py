"""Rules about privacy: is there a guarantee, has an attack passed it, are training records known?"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from dpsynth.attacks.attempt import Attempt, passing
from dpsynth.checks import few, together
from dpsynth.evaluation.estimates import FALSE_ALARMS, Estimate, sure_end
from dpsynth.evaluation.results import Evaluation, Measure
from dpsynth.privacy.guarantee import Guarantee
from dpsynth.privacy.profile import Profile
from dpsynth.report.verdicts.verdict import Severity, Verdict, basis, get, least, most, number_of
from dpsynth.report.words import PASSED, attempt_in_words, measured, none_passed, percent, round_up

_NONE_FOUND = "The attacks that were tried found no memorisation of training records. Others may find it."
#: p-value below which held-out records are no baseline, and the share of copies that is memorisation even so
DIFFERENT, MANY_COPIES = 0.01, 0.1
#: share of held-out records that equal a training one, above which copies may be coincidence
COINCIDE = 0.5
#: p-value, of all signs together, below which memorisation is reported: half of the false alarms of a page.
#: Without held-out records the test of too close records has this p-value for itself
REMEMBERS = FALSE_ALARMS / 2
#: nearest-neighbour accuracy that surely lies below is that of copies
TOO_CLOSE = 0.45
#: share of records that equal training ones one to one, above which the table is the training table
SAME_TABLE = 0.95
#: without held-out records, a share of copies beyond coincidence that is reported
COPIED = 0.01


@dataclass(frozen=True)
class _Sign:
    """A sign of memorisation: its size by chance, the size from which it is bad, words, the largest trace.

    Every useful table is a little nearer to its training records than to new ones. With many records this is
    beyond chance.
    """

    chance: float
    clear: float
    words: str
    trace: float = -math.inf


_SIGNS = {
    "copies_excess": _Sign(0.0, 0.01, "More records copy a training record than a new one, by a share of"),
    "dcr_closer_to_train": _Sign(
        0.5, 0.6, "The share of records nearer to training than to new ones is", 0.55
    ),
    "membership_auc": _Sign(0.5, 0.6, "An attack by distance has an AUC of", 0.55),
    "membership_auc_calibrated": _Sign(0.5, 0.6, "An attack by compared distances has an AUC of", 0.55),
    "membership_tpr_at_1pct": _Sign(
        0.0, 0.05, "An attack that suspects 1 in 100 new records finds a share of training records of"
    ),
}
#: of a column: the share of training records among those whose lone value is repeated, 0.5 by chance
_LONE = "lone_values_train["
_LONE_CLEAR = 0.6
#: part of the copies of training records up to which their excess is a trace: the others are coincidence
_FEW_OF_COPIES = 0.1


def remembered(evaluation: Evaluation) -> list[Measure]:
    """The sizes of the signs that are beyond chance, at one p-value for all signs and columns together."""
    tested = [m for m in evaluation.measures if m.name.startswith("memory_p[") and m.value is not None]
    names = [m.name[len("memory_p[") : -1] for m in tested if number_of(m) <= REMEMBERS]
    return [measure for name in names if (measure := get(evaluation, name)) is not None]


def memory(evaluation: Evaluation) -> Iterator[Verdict]:
    """Copies, lone values, distances and membership inference: are training records memorised?

    The test is of all signs together and exact. A table that is independent of which real records trained is
    suspected with a probability of at most 0.005. It is bad if a sign is large, good if all are traces, and
    else a caution.
    """
    together = get(evaluation, "memory_p")
    if together is None:
        yield from _without_held_out(evaluation)
        return
    signs = remembered(evaluation)
    differ, coincide = get(evaluation, "nn_train_test_p"), get(evaluation, "copies_expected_share")
    coincide = coincide if coincide is not None and least(coincide) > COINCIDE else None
    matched, by_chance = get(evaluation, "matched_train"), get(evaluation, "matched_test")
    same = matched is not None and number_of(matched) > SAME_TABLE
    same = same and by_chance is not None and number_of(by_chance) < SAME_TABLE
    trace = bool(signs) and not same and all(_is_trace(m, evaluation) for m in signs)
    if number_of(together) <= REMEMBERS and not (trace and coincide is not None):
        reasons = " ".join(
            [*_told(signs), f"Chance explains so much in at most 1 in {1 / REMEMBERS:.0f} tables."]
        )
        if trace:
            yield Verdict(
                "no_memory_found",
                "good",
                f"{_NONE_FOUND} The table shows a trace of who trained, as tables that follow their records "
                f"do. {reasons}",
                *basis([together, *signs]),
                "risk",
            )
            return
        shifted = differ is not None and number_of(differ) < DIFFERENT
        if shifted and not any(m.name == "copies_excess" and least(m) > MANY_COPIES for m in signs):
            yield Verdict(
                "other_people",
                "caution",
                "Held-out records differ from training ones. This difference can look like memorisation. "
                f"{reasons}",
                *basis([together, *signs, *([differ] if differ else [])]),
                "risk",
            )
            return
        if same and matched is not None:
            reasons = f"A share of {measured(matched)} equals training records one to one. {reasons}"
        large = same or any(_large(m) for m in signs)
        start = "Training records are memorised" if large else "There are signs of memorised training records"
        severity: Severity = "bad" if large else "caution"
        yield Verdict("memorises", severity, f"{start}. {reasons}", *basis([together, *signs]), "risk")
    elif coincide is not None:
        yield Verdict(
            "no_baseline",
            "open",
            f"Many held-out records equal a training record: a share of {measured(coincide)}. They are the "
            "same people, or the table has few different records. Copies and coincidence look alike.",
            *basis([coincide]),
            "risk",
        )
    else:
        yield Verdict(
            "no_memory_found",
            "good",
            _NONE_FOUND,
            *basis([together]),
            "risk",
        )


def _is_trace(measure: Measure, evaluation: Evaluation) -> bool:
    """Whether a sign is as small as in a sound table. It never is for values of one person, or 1 in 50."""
    if measure.name == "copies_excess":
        copies = get(evaluation, "copies_train_share")
        return copies is not None and number_of(measure) <= _FEW_OF_COPIES * number_of(copies)
    return measure.name in _SIGNS and number_of(measure) <= _SIGNS[measure.name].trace


def _large(measure: Measure) -> bool:
    clear = _LONE_CLEAR if measure.name.startswith(_LONE) else _SIGNS[measure.name].clear
    return number_of(measure) > clear


def _told(signs: Sequence[Measure]) -> list[str]:
    """A sentence for each sign, and one for all columns of lone values."""
    known = [(m, _SIGNS[m.name]) for m in signs if m.name in _SIGNS]
    said = [f"{sign.words} {measured(m)}." for m, sign in known if number_of(m) > sign.chance]
    lone = sorted((m for m in signs if m.name.startswith(_LONE)), key=number_of, reverse=True)
    if lone:
        named = [f"{m.name[len(_LONE) : -1]} ({measured(m)})" for m in lone]
        said.append(
            "The table repeats values that only one real person has. This person is a training one more "
            f"often than by chance (0.5). Columns: {few(named, 3)}."
        )
    return said


def _without_held_out(evaluation: Evaluation) -> Iterator[Verdict]:
    """Copies beyond those of training records among each other, and records that are too close."""
    copied, expected = get(evaluation, "copies_train_share"), get(evaluation, "copies_expected_share")
    by_chance = 0.0 if expected is None else most(expected)
    if copied is not None and least(copied) > by_chance + COPIED:
        beside = "" if expected is None else f", where coincidence explains {measured(expected)}"
        yield Verdict(
            "copies",
            "open",
            f"Some synthetic records equal a training record: a share of {measured(copied)}{beside}. Without "
            "held-out records, memorisation and coincidence look alike.",
            *basis([copied, *([expected] if expected else [])]),
            "risk",
        )
    accuracy, p = get(evaluation, "nn_accuracy_train"), get(evaluation, "nn_copies_p")
    if accuracy is not None and p is not None and most(accuracy) < TOO_CLOSE and number_of(p) <= REMEMBERS:
        yield Verdict(
            "too_close",
            "caution",
            "Synthetic records lie closer to training records than these to one another. The "
            f"nearest-neighbour accuracy (0.5 is best) is {measured(accuracy)}.",
            *basis([accuracy, p]),
            "risk",
        )


def beside(guarantee: Guarantee | None, verdict: Verdict, evaluation: Evaluation) -> Verdict:
    """A finding of memorisation with what the guarantee allows, and whether sharing is covered.

    It "reveals" records only if an attacker's advantage lies beyond the proved bound by its whole interval.
    One record in the training part exchanged for another is two steps, so the bound is twice the total
    variation.
    """
    if verdict.code != "memorises" or guarantee is None or not guarantee.private:
        return verdict
    bound = min(2 * guarantee.tv, 1.0)
    said = [
        verdict.sentence,
        "The guarantee limits the advantage of every membership test to "
        f"{round_up(guarantee.tv)} (0 is a random guess, 1 is certainty).",
        f"It does not cover: {together(guarantee.excluded)}."
        if guarantee.excluded
        else "It covers the sharing of the table.",
    ]
    level = float(evaluation.settings.get("level", 0.95))
    passed = [m for m in evaluation.measures if m.name in _ADVANTAGES and _advantage(m, level) > bound]
    if not passed:
        return replace(verdict, sentence=" ".join([*said, "No attack here surely passes this limit."]))
    worst = max(passed, key=number_of)
    said.append(
        f"These records reveal who trained: {_ADVANTAGES[worst.name]} is {measured(worst)}, beyond the "
        "proved bound. The proof or the code is wrong. Share nothing, and report it."
    )
    names = tuple(dict.fromkeys((*verdict.rests_on, worst.name)))
    return replace(verdict, severity="bad", sentence=" ".join(said), rests_on=names)


#: measures of an advantage that the total variation bounds, and AUC, whose advantage is twice its excess
_ADVANTAGES = {
    "copies_advantage": "the advantage of an attack by copies",
    "lone_values_advantage": "the advantage of an attack by values of one person",
    "membership_auc": "the AUC of an attack by distance",
    "membership_auc_calibrated": "the AUC of an attack by compared distances",
}


def _advantage(measure: Measure, level: float) -> float:
    """The least advantage of an attacker, by an interval that holds for all of them together."""
    found = Estimate(number_of(measure), least(measure), most(measure))
    end = sure_end(found, level, len(_ADVANTAGES))
    return 2 * end - 1 if "auc" in measure.name else end


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
    """Return what the rules say: bounds that were passed, beyond chance, or that none was.

    A result above its bound that chance explains is no verdict. Good is said only of results below.
    """
    bounded = [attempt for attempt in attempts if attempt.proved is not None]
    passed = passing(bounded)
    wrong = [attempt for attempt in passed if not attempt.one_table]
    if passed:
        return tuple(
            Verdict(
                "bound_passed",
                "bad",
                f"An attack passed its proved bound ({attempt_in_words(attempt)}). The proof or the code is "
                "wrong. Publish nothing, and report it.",
                (f"attempts: {attempt.attack}",),
                attempt.internal,
                "risk",
            )
            if attempt in wrong
            else Verdict(
                "average_passed",
                "caution",
                "An attack reached more on this table than it may on average over tables "
                f"({attempt_in_words(attempt)}). The table is an unlucky one, or the proof is wrong. Shadow "
                "models, which fit again many times, show which.",
                (f"attempts: {attempt.attack}",),
                attempt.internal,
                "risk",
            )
            for attempt in (wrong or passed)
        )
    if not bounded:
        return ()
    internal = any(attempt.internal for attempt in bounded)
    results = f"{len(bounded)} result{'' if len(bounded) == 1 else 's'}"
    above = [a for a in bounded if a.proved is not None and a.found.value > a.proved]
    if above:
        furthest = max(above, key=lambda a: a.found.value - (a.proved or 0.0))
        said = f"{len(above)} of {results} lie{'s' * (len(above) == 1)} above the bound"
        lie = f"{said} ({attempt_in_words(furthest)})"
        sentence = f"{none_passed(bounded)} beyond chance, but {lie}. {PASSED} More tries would decide."
        names = tuple(f"attempts: {attempt.attack}" for attempt in above)
        return (Verdict("bounds_open", "open", sentence, names, internal, "risk"),)
    sentence = (
        f"{none_passed(bounded)} ({results}). {PASSED} This proves nothing, but a gross error would have "
        "shown."
    )
    return (Verdict("bounds_held", "good", sentence, ("attempts",), internal, "risk"),)
