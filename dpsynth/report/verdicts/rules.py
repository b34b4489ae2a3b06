"""What rules on risk read (memorisation, the guarantee, attacks beside bounds), and what asks all rules."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from dpsynth.attacks.attempt import Attempt, passing
from dpsynth.checks import Counted, few, together
from dpsynth.evaluation.estimates import FALSE_ALARMS, Estimate, sure_end
from dpsynth.evaluation.results import Evaluation, Measure
from dpsynth.privacy.guarantee import Guarantee
from dpsynth.privacy.profile import Profile
from dpsynth.report.verdicts import (
    TABLES,
    Evidence,
    Named,
    Rule,
    Verdict,
    column_of,
    get,
    least,
    most,
    number_of,
    of_columns,
    otherwise,
    risk,
    verdicts,
    within_few,
)
from dpsynth.report.verdicts.similarity import SIMILARITY
from dpsynth.report.verdicts.utility import EFFECTS, STUDIES, USE
from dpsynth.report.words import PASSED, attempt_in_words, bounds_in_words, measured, percent, round_up, shown
from dpsynth.studies.study import Estimates

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
    "copies_excess": _Sign(
        0.0, 0.01, "More {records} copy a training {record} than a new one, by a share of"
    ),
    "dcr_closer_to_train": _Sign(
        0.5, 0.6, "The share of {records} nearer to training than to new ones is", 0.55
    ),
    "membership_auc": _Sign(0.5, 0.6, "An attack by distance has an AUC of", 0.55),
    "membership_auc_calibrated": _Sign(0.5, 0.6, "An attack by compared distances has an AUC of", 0.55),
    "membership_tpr_at_1pct": _Sign(
        0.0, 0.05, "An attack that suspects 1 in 100 new {records} finds a share of training {records} of"
    ),
}
#: of a column: the share of training records among those whose lone value is repeated, 0.5 by chance
_LONE = "lone_values_train["
_LONE_CLEAR = 0.6
#: part of the copies of training records up to which their excess is a trace: the others are coincidence
_FEW_OF_COPIES = 0.1


def remembered(evaluation: Evaluation) -> list[Measure]:
    """The sizes of the signs that are beyond chance, at one p-value for all signs and columns together."""
    tested = [column_of(m) for m in of_columns(evaluation, "memory_p[") if number_of(m) <= REMEMBERS]
    return [measure for name in tested if (measure := get(evaluation, name)) is not None]


def memory(evaluation: Evaluation) -> Iterator[Evidence]:
    """Copies, lone values, distances and membership inference: are training records memorised?

    The test is of all signs together and exact. A table that is independent of which real records trained is
    suspected with a probability of at most 0.005. It is bad if a sign is large, good if all are traces, and
    else a caution.
    """
    together = get(evaluation, "memory_p")
    if together is None:
        return
    signs = remembered(evaluation)
    differ, coincide = get(evaluation, "nn_train_test_p"), get(evaluation, "copies_expected_share")
    coincide = coincide if coincide is not None and least(coincide) > COINCIDE else None
    matched, by_chance = get(evaluation, "matched_train"), get(evaluation, "matched_test")
    same = matched is not None and number_of(matched) > SAME_TABLE
    same = same and by_chance is not None and number_of(by_chance) < SAME_TABLE
    trace = bool(signs) and not same and all(_is_trace(m, evaluation) for m in signs)
    many_copies = any(m.name == "copies_excess" and least(m) > MANY_COPIES for m in signs)
    counted = evaluation.counted
    reasons = [*_told(signs, counted), f"Chance explains so much in at most 1 in {1 / REMEMBERS:.0f} tables."]
    if same and matched is not None:
        reasons.insert(0, f"A share of {measured(matched)} equals training {counted} one to one.")
    yield Evidence(
        found=number_of(together) <= REMEMBERS and not (trace and coincide is not None),
        trace=trace,
        shifted=differ is not None and number_of(differ) < DIFFERENT and not many_copies,
        large=same or any(_large(m) for m in signs),
        signs=signs,
        together=together,
        differ=differ,
        coincide=coincide,
        reasons=" ".join(reasons),
        # held-out records of other people say nothing of a table that equals the training one
        sizes=" ".join(reasons[same:]),
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


def _told(signs: Sequence[Measure], counted: Counted) -> list[str]:
    """A sentence for each sign, and one for all columns of lone values."""
    known = [(m, _SIGNS[m.name]) for m in signs if m.name in _SIGNS]
    said = [f"{counted.fill(sign.words)} {measured(m)}." for m, sign in known if number_of(m) > sign.chance]
    lone = sorted((m for m in signs if m.name.startswith(_LONE)), key=number_of, reverse=True)
    if lone:
        named = [f"{column_of(m)} ({measured(m)})" for m in lone]
        said.append(
            "The table repeats values that only one real person has. This person is a training one more "
            f"often than by chance (0.5). Columns: {few(named, 3)}."
        )
    return said


def copies(evaluation: Evaluation) -> Iterator[Evidence]:
    """Without held-out records: copies beyond those of training records among each other."""
    copied, expected = get(evaluation, "copies_train_share"), get(evaluation, "copies_expected_share")
    if get(evaluation, "memory_p") is None and copied is not None:
        by_chance = 0.0 if expected is None else most(expected)
        beside = "" if expected is None else f", where coincidence explains {measured(expected)}"
        yield Evidence(copied=copied, expected=expected, beyond=least(copied) - by_chance, beside=beside)


def too_close(evaluation: Evaluation) -> Iterator[Evidence]:
    """Without held-out records: records that are too close to training ones."""
    accuracy, p = get(evaluation, "nn_accuracy_train"), get(evaluation, "nn_copies_p")
    if get(evaluation, "memory_p") is None and accuracy is not None and p is not None:
        yield Evidence(accuracy=accuracy, p=p, close=most(accuracy) < TOO_CLOSE and number_of(p) <= REMEMBERS)


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
        f"These {evaluation.counted} reveal who trained: {_ADVANTAGES[worst.name]} is "
        f"{measured(worst)}, beyond the proved bound. The proof or the code is wrong. Share nothing, and "
        "report it."
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
_LEDGER = Named("ledger")


def exceptions(guarantee: Guarantee | None, profile: Profile | None) -> Iterator[Evidence]:
    """What a guarantee does not cover."""
    if guarantee is not None and guarantee.private and guarantee.excluded:
        yield Evidence(left_out=together(guarantee.excluded), basis=_LEDGER)


def promise(guarantee: Guarantee | None, profile: Profile | None) -> Iterator[Evidence]:
    """Is there a guarantee, and is it strong enough to rely on?"""
    if guarantee is None or profile is None:
        yield Evidence(known=False, basis=_LEDGER)
        return
    if not guarantee.private:
        yield Evidence(known=True, private=False, void=str(guarantee), basis=_LEDGER)
        return
    accuracy, epsilon = profile.attack_accuracy(), guarantee.epsilon
    right = percent(accuracy)
    million = math.log(1e6)
    yield Evidence(
        known=True,
        private=True,
        accuracy=accuracy,
        epsilon=epsilon,
        whole=not guarantee.excluded,
        shown=round_up(epsilon),
        factor=f"{math.ceil(math.exp(epsilon)):,}" if epsilon < million else "more than a million",
        often=f"right {right} times in 100" if right != "100" else "always right",
        basis=_LEDGER,
    )


def passed_bounds(attempts: Sequence[Attempt], counted: Counted) -> Iterator[Evidence]:
    """Attacks that passed their bound, beyond chance. One table may pass a bound on the average over tables.

    That is said only if no other attack passed its bound.
    """
    passed = passing(attempts)
    wrong = [attempt for attempt in passed if not attempt.one_table]
    for attempt in wrong or passed:
        source = Named(f"attempts: {attempt.attack}", attempt.internal)
        yield Evidence(one_table=attempt.one_table, said=attempt_in_words(attempt), basis=source)


def held_bounds(attempts: Sequence[Attempt], counted: Counted) -> Iterator[Evidence]:
    """Attacks none of which passed its bound. A result above its bound that chance explains is no verdict."""
    bounded = [attempt for attempt in attempts if attempt.proved is not None]
    if not bounded or passing(bounded):
        return
    beyond = [attempt.found.value - (attempt.proved or 0.0) for attempt in bounded]
    above = [attempt for attempt, excess in zip(bounded, beyond, strict=True) if excess > 0]
    internal = any(attempt.internal for attempt in bounded)
    yield Evidence(
        bounds=bounds_in_words(bounded, counted),
        results=f"{len(bounded)} result{'' if len(bounded) == 1 else 's'}",
        above=[Named(f"attempts: {attempt.attack}", internal) for attempt in above],
        furthest=attempt_in_words(bounded[beyond.index(max(beyond))]),
        passed=PASSED,
        basis=Named("attempts", internal),
    )


#: rules on memorisation
MEMORY = (
    risk("no_memory_found", memory, good=lambda f: f.found and f.trace, rests_on=("together", "signs"),
         said="no_memory_found, a trace"),
    risk("other_people", memory, caution=lambda f: f.found and f.shifted, rests_on=("together", "signs",
         "differ")),
    risk("memorises", memory, bad=lambda f: f.found and f.large, rests_on=("together", "signs"),
         said="memorises, surely"),
    risk("memorises", memory, caution=lambda f: f.found, rests_on=("together", "signs"),
         said="memorises, perhaps"),
    risk("no_baseline", memory, open=lambda f: f.coincide is not None, rests_on=("coincide",)),
    risk("no_memory_found", memory, good=otherwise, rests_on=("together",), said="no_memory_found, none"),
    risk("copies", copies, open=lambda f: f.beyond > COPIED, rests_on=("copied", "expected")),
    risk("too_close", too_close, caution=lambda f: f.close, rests_on=("accuracy", "p")),
)  # fmt: skip


#: rules on a guarantee and the profile behind it
GUARANTEE = (
    risk("excluded", exceptions, caution=otherwise),
    risk("no_guarantee", promise, caution=lambda f: not f.known),
    risk("not_private", promise, bad=lambda f: not f.private),
    risk("weak_guarantee", promise, bad=lambda f: f.epsilon > WEAK_EPSILON,
         said="weak_guarantee, next to nothing"),
    risk("weak_guarantee", promise, caution=lambda f: f.accuracy > WEAK_ACCURACY,
         said="weak_guarantee, weak"),
    risk("guaranteed", promise, good=lambda f: f.whole),
)  # fmt: skip


#: rules on attacks beside their proved bounds
ATTEMPTS = (
    risk("bound_passed", passed_bounds, bad=lambda f: not f.one_table),
    risk("average_passed", passed_bounds, caution=otherwise),
    risk("bounds_open", held_bounds, open=lambda f: f.above, rests_on=("above",)),
    risk("bounds_held", held_bounds, good=otherwise),
)  # fmt: skip


#: below so many records of a table, intervals are too wide for most verdicts
FEW_RECORDS = 100


def few_records(evaluation: Evaluation) -> Iterator[Evidence]:
    """Are there too few records for sure results?"""
    known = [measure for table in TABLES if (measure := get(evaluation, f"{table}_records")) is not None]
    few = [measure for measure in known if number_of(measure) < FEW_RECORDS]
    counted = evaluation.counted
    sizes = (f"{shown(m.value)} {m.name.removesuffix('_records')} {counted}" for m in few)
    yield Evidence(basis=few, sizes=", ".join(sizes))


_FEW = Rule("too_few", few_records, open=lambda f: f.basis)

#: rules on an evaluation
RULES = (*MEMORY, *USE, *EFFECTS, *SIMILARITY, _FEW)


def judge(evaluation: Evaluation, guarantee: Guarantee | None = None) -> tuple[Verdict, ...]:
    """Return what the rules say about an evaluation, of any generator's table.

    With a ``guarantee`` of the table, a finding of memorisation says what it allows.

    Rules whose measures are absent or undefined say nothing.

    Examples
    --------
    >>> from dpsynth.evaluation.results import Measure
    >>> copies = Measure("Memorisation", "copies_excess", 0.4, True, lower=0.35, upper=0.45)
    >>> p_values = [Measure("Memorisation", f"memory_p{of}", 0.001, True) for of in ("", "[copies_excess]")]
    >>> [(v.code, v.severity) for v in judge(Evaluation((copies, *p_values)))]
    [('memorises', 'bad')]
    """
    counted = evaluation.counted
    return tuple(
        within_few(beside(guarantee, verdict, evaluation), smallest(evaluation, verdict.tables), counted)
        for verdict in verdicts(RULES, evaluation, counted=counted)
    )


def answers(evaluation: Evaluation, *readers: Callable[..., Iterable[Evidence]]) -> tuple[Verdict, ...]:
    """Return what the rules of some readers say about an evaluation, whatever its size."""
    rules = [rule for rule in RULES if rule.of in readers]
    return tuple(verdicts(rules, evaluation, counted=evaluation.counted))


def judge_guarantee(guarantee: Guarantee | None, profile: Profile | None) -> tuple[Verdict, ...]:
    """Return what the rules say about a guarantee and the profile behind it, or about their absence."""
    return tuple(verdicts(GUARANTEE, guarantee, profile))


def judge_attempts(attempts: Sequence[Attempt], counted: Counted = Counted.RECORDS) -> tuple[Verdict, ...]:
    """Return what the rules say: bounds that were passed, beyond chance, or that none was.

    A result above its bound that chance explains is no verdict. Good is said only of results below.
    """
    return tuple(verdicts(ATTEMPTS, attempts, counted))


def judge_studies(studies: Sequence[Estimates], *, internal: bool) -> tuple[Verdict, ...]:
    """Return verdicts on the effects of each pre-specified regression from its noisy numbers alone.

    They are internal if no guarantee covers them.
    """
    return tuple(verdicts(STUDIES, studies, internal))


def smallest(evaluation: Evaluation, tables: Sequence[str] = TABLES) -> int | None:
    """The number of records of the smallest of some tables. None if nothing says it."""
    records = [get(evaluation, f"{table}_records") for table in tables]
    return min((int(number_of(measure)) for measure in records if measure is not None), default=None)
