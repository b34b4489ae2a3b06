"""Rules about use: are models that learned on the table useful, and are studies replicated?

An AUC depends on the order of the records only. The Brier score depends on the probabilities too. Calibration
slope and intercept show the direction of their error (Van Calster et al. 2019, BMC Medicine 17). The rule
uses the loss of Brier score against models trained on real records, as a part of the base rate's score. This
is the loss of "scaled Brier score" (Steyerberg et al. 2010, Epidemiology 21). Slopes and intercepts give the
direction only. Between models trained on two samples of one table of 200 records, they differ by more than
their intervals. The same samples, and those of three larger tables, lose surely at most 0.005 of the base
rate's score.

Private estimates of a pre-specified regression are judged, because people quote them. Any other regression is
judged as fitted to the synthetic table.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from dpsynth.evaluation.effects import regressions_of
from dpsynth.evaluation.results import Evaluation, Measure
from dpsynth.report.verdicts.verdict import Severity, Verdict, basis, get, least, most, number_of
from dpsynth.report.words import decimals, measured, plain, shown, widened
from dpsynth.studies.study import Estimates

#: loss of AUC (or of explained variance) against real training records that is reported
USEFUL_WITHIN = 0.05
#: a Brier score of more than this part of the base rate's says no more than the base rate
BASE_RATE = 0.95
#: a score that exceeds blind guessing by less is as good as blind
BLIND_WITHIN = 0.02
#: columns that a sentence names
_NAMED = 10


def prediction(evaluation: Evaluation) -> Iterator[Verdict]:
    """Is a model that learned on the synthetic table useful on real records?"""
    people = _rarer(evaluation)
    yield from (replace(verdict, people=people) for verdict in _predicted(evaluation))


def _predicted(evaluation: Evaluation) -> Iterator[Verdict]:
    for name, real_name, blind, what in (
        ("auc_mean", "auc_real_mean", 0.5, "AUC"),
        ("r2_mean", "r2_real_mean", 0.0, "explained variance"),
    ):
        synthetic, real = get(evaluation, name), get(evaluation, real_name)
        if synthetic is None:
            continue
        both = basis(m for m in (synthetic, real) if m is not None)
        words = f"{what} {measured(synthetic)} on real records"
        gain = number_of(synthetic) - blind
        useless = gain < BLIND_WITHIN
        blind_words = "Models trained on the synthetic table are no better than blind guessing"
        if real is None:
            if useless:
                yield Verdict("useless", "bad", f"{blind_words}: {words}.", *both)
            continue
        words += f". Models trained on real records reach {measured(real)}"
        possible = number_of(real) - blind
        if (possible if real.lower is None else real.lower - blind) < BLIND_WITHIN:
            sentence = f"Even real records hardly predict the outcome: {words}."
            yield Verdict("unpredictable", "open", sentence, *both)
        elif useless:
            yield Verdict("useless", "bad", f"{blind_words}: {words}.", *both)
        elif gain < possible / 2:
            sentence = f"More than half of what can be learned about the outcome is lost: {words}."
            yield Verdict("useless", "bad", sentence, *both)
        elif gain < possible - USEFUL_WITHIN and (brier := _blind_probabilities(evaluation)) is not None:
            start = "Predicted probabilities are no better than the base rate"
            sentence = f"{start} ({brier}). {words[:1].upper()}{words[1:]}."
            yield Verdict("useless", "bad", sentence, *both)
        elif synthetic.lower is not None and synthetic.lower <= blind:
            sentence = f"There are too few records to see whether models beat blind guessing: {words}."
            yield Verdict("uncertain", "open", sentence, *both)
        elif gain < possible - USEFUL_WITHIN:
            yield Verdict("weaker", "caution", f"Models learn less than from real records: {words}.", *both)
        elif (loss := get(evaluation, f"{name[:-5]}_difference_mean")) and least(loss) < -2 * USEFUL_WITHIN:
            sentence = (
                f"Models may learn nearly as well, or not: {words}. The difference is {measured(loss)}."
            )
            yield Verdict("uncertain", "open", sentence, *both)
        else:
            yield Verdict("useful", "good", f"Models learn nearly as well: {words}.", *both)


def _rarer(evaluation: Evaluation) -> int | None:
    """Held-out records of the rarer outcome, of two. None if there are more outcomes, or none is known."""
    rate, size = get(evaluation, "positive_rate_test"), get(evaluation, "test_records")
    if rate is None or size is None or "accuracy_mean" in evaluation:
        return None
    return round(min(number_of(rate), 1 - number_of(rate)) * number_of(size))


def _blind_probabilities(evaluation: Evaluation) -> str | None:
    """The Brier score beside that of the base rate if it is no better, else None.

    A model that learned nothing may have an AUC far from 1/2. One coefficient that is wrong by chance orders
    all records. Its probabilities are still as good as blind.
    """
    brier, rate = get(evaluation, "brier_mean"), get(evaluation, "positive_rate_test")
    if brier is None or rate is None:
        return None
    base = number_of(rate) * (1 - number_of(rate))
    return (
        f"Brier score {measured(brier)}, {decimals(base)} blind"
        if number_of(brier) > BASE_RATE * base
        else None
    )


def given_away(evaluation: Evaluation) -> Iterator[Verdict]:
    """Does one column alone predict the outcome?"""
    found = [m for m in evaluation.measures if m.name.startswith("outcome_auc[")]
    if found:
        named = ", ".join(f"{m.name[12:-1]} ({_reason(m)})" for m in found[:_NAMED])
        more = f" and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
        sentence = (
            f"One column alone predicts the real outcome: {named}{more}. If it is known only after the "
            "outcome, leave it out. Scores of models say little."
        )
        yield Verdict("given_away", "caution", sentence, *basis(found), tables=("train",))


def collapse(evaluation: Evaluation) -> Iterator[Verdict]:
    """Did the generator lose an outcome?"""
    constant, lost = (get(evaluation, name) for name in ("outcome_constant_synthetic", "mode_collapse"))
    rate = get(evaluation, "positive_rate_synthetic")
    only = ""
    if constant is not None and constant.value == 1:
        only, known = "Every synthetic record has the same outcome", [constant]
    elif constant is None and rate is not None and rate.value in (0, 1):
        only = f"Every synthetic record has the same outcome (positive rate {shown(rate.value)})"
        known = [rate]
    if lost is None and only:
        yield Verdict("mode_collapse", "bad", f"{only}.", *basis(known))
    elif lost is not None and lost.value == 1:
        sentence = "An outcome of the real records is as good as lost among the synthetic ones"
        yield Verdict("mode_collapse", "bad", f"{sentence}: {_reason(lost)}.", *basis([lost]))
    elif lost is not None and only:
        sentence = f"{only}, and the records cannot say whether others got lost: {_reason(lost)}."
        yield Verdict("mode_collapse", "open", sentence, *basis([*known, lost]))


def _reason(measure: Measure) -> str:
    """Return what a measure's words say of this table, after its name."""
    return measure.detail.partition(": ")[2]


#: sure losses, as parts of the base rate's Brier score, that are reported and that are bad
PROBABILITIES_WITHIN, PROBABILITIES_LOST = 0.02, 0.2
#: a loss that is surely less is called about as good
PROBABILITIES_SURE = 0.1


def probabilities(evaluation: Evaluation) -> Iterator[Verdict]:
    """Are the probabilities right that models trained on the table give to real records of two outcomes?"""
    synthetic, real, loss, rate = (
        get(evaluation, name)
        for name in ("brier_mean", "brier_real_mean", "brier_difference_mean", "positive_rate_test")
    )
    # of more than two categories the score is a sum over them, which no base rate of one of them bounds
    if synthetic is None or real is None or loss is None or rate is None or "accuracy_mean" in evaluation:
        return
    base = number_of(rate) * (1 - number_of(rate))
    if base == 0:
        return
    words = (
        f"The Brier score is {measured(synthetic)}, and {measured(real)} for models trained on real records. "
        f"Perfect predictions give 0, and the base rate gives {decimals(base)}."
    )
    known, people = [synthetic, real, loss, rate], _rarer(evaluation)
    start = "The probabilities of models trained on it are"
    if loss.lower is not None and least(loss) > PROBABILITIES_WITHIN * base:
        severity: Severity = "bad" if least(loss) > PROBABILITIES_LOST * base else "caution"
        ways = _ways(evaluation)
        sentence = " ".join([f"{start} off. {words}", *(f"{text}." for text, _ in ways)])
        yield Verdict(
            "probabilities_off", severity, sentence, *basis([*known, *(m for _, m in ways)]), people=people
        )
    elif loss.upper is not None and most(loss) < PROBABILITIES_SURE * base:
        yield Verdict(
            "probabilities_kept", "good", f"{start} about as good. {words}", *basis(known), people=people
        )
    else:
        sentence = (
            "It is uncertain whether the probabilities of models trained on it are off. "
            f"{words} The difference is {measured(loss)}."
        )
        yield Verdict("uncertain", "open", sentence, *basis(known))


_WAYS = {
    ("calibration_intercept", 1): "too low",
    ("calibration_intercept", -1): "too high",
    ("calibration_slope", 1): "too close to one another",
    ("calibration_slope", -1): "too extreme",
}


def _ways(evaluation: Evaluation) -> list[tuple[str, Measure]]:
    """The direction in which probabilities are surely off, and farther than with real training records.

    It is that of the average over the models, or else of the model that is farthest off.
    """
    average: list[tuple[str, Measure]] = []
    single: list[tuple[float, str, Measure]] = []
    for measure in evaluation.measures:
        for score, ideal in (("calibration_intercept", 0.0), ("calibration_slope", 1.0)):
            model = measure.name.removeprefix(f"{score}_")
            if model == measure.name or model.startswith(("real_", "difference_")) or measure.lower is None:
                continue
            side = (least(measure) > ideal) - (most(measure) < ideal)
            reference = get(evaluation, f"{score}_real_{model}")
            worse = reference is None or side * (number_of(measure) - number_of(reference)) > 0
            if not side or not worse:
                continue
            who = "On average they are" if model == "mean" else f"Those of {model.replace('_', ' ')} are"
            label = f"{score.replace('_', ' ')} {measured(measure)}, {plain(ideal)} is ideal"
            text = f"{who} {_WAYS[score, side]} ({label})"
            if model == "mean":
                average.append((text, measure))
            else:
                single.append((abs(number_of(measure) - ideal), text, measure))
    return average or [(text, measure) for _, text, measure in sorted(single, key=lambda way: -way[0])[:1]]


#: share of the effects of a study that must keep their sign
SAME_SIGN = 0.8
#: mean overlap of intervals that says the same study; two samples of one distribution have about 2/3
SAME_SIZE = 0.4
#: intervals so many times as wide as without noise are those of a quarter of the records
WIDE = 2.0


def effects(evaluation: Evaluation) -> Iterator[Verdict]:
    """Is a study replicated? Only effects that are clear in the real records can be lost."""
    if evaluation.settings.get("effects") == [] and evaluation.settings.get("outcome") is not None:
        sentence = "No study was replicated: none was named, and none fits the outcome by itself."
        yield Verdict("no_study", "open", sentence, (), True)
    for each in regressions_of(evaluation):
        if each.model != "mixed":  # which have one verdict for all numbers
            yield from _replicated(each)


def _replicated(each: Any) -> Iterator[Verdict]:
    none = 0.0 if each.measure == "difference" else 1.0
    rows, names = judged(each), (each.regression,)
    clear = [side for real, side in rows if _excludes(real, none)]
    study, where = f"{each.model} model of {each.outcome}", "synthetic ones"
    if each.study is not None:
        study, where = f"{study}, pre-specified as {each.study}", "its private estimates"
    if not rows:
        yield _no_comparison(each, study)
        return
    if not clear:
        sentence = (
            f"None of {len(rows)} effect{'s' * (len(rows) != 1)} is clear in the real records ({study}). "
            f"None can be found again in {where}."
        )
        yield Verdict("effects_unclear", "open", sentence, names, each.confidential)
        return
    same = sum(bool(side.same_sign) for side in clear)
    overlaps = [max(0.0, side.overlap) for side in clear if side.overlap is not None]
    share = same / len(clear)
    severity: Severity = "good" if share >= SAME_SIGN else "caution" if share > 0.5 else "bad"
    sentence = (
        f"{'' if severity == 'good' else 'Only '}{same} of {len(clear)} effect{'s' * (len(clear) > 1)} clear "
        f"in real records {'has' if 1 in (same, len(clear)) else 'have'} the same sign in {where} ({study})"
    )
    if each.separated_real or each.separated_synthetic:
        sentence += ". The model is fitted with a prior distribution, because outcomes separate"
    if severity == "bad" and each.study is not None and not _turned(each, none):
        # an interval that leaves the sign open misleads nobody
        severity, sentence = "caution", f"{sentence}. If the sign differs, the interval leaves it open"
    code = "effects_agree" if severity == "good" else "effects_differ"
    yield Verdict(code, severity, f"{sentence}.", names, each.confidential, people=each.n_real)
    if severity == "good" and overlaps:
        yield effect_sizes(overlaps, f" ({study})", names, each.confidential, each.n_real)


def effect_sizes(
    overlaps: Sequence[float], study: str, names: tuple[str, ...], internal: bool, people: int
) -> Verdict:
    """Have effects, of the right sign, the right size? By the mean overlap of their intervals."""
    overlap = sum(overlaps) / len(overlaps)
    said = f"Their intervals overlap by {decimals(overlap, 2)} on average, where 1 is best{study}."
    if overlap >= SAME_SIZE:
        sentence = f"Effects have about the right size. {said}"
        return Verdict("effect_sizes_agree", "good", sentence, names, internal, people=people)
    sentence = f"Effects have the right direction and another size. {said}"
    return Verdict("effect_sizes_differ", "caution", sentence, names, internal, people=people)


def _turned(each: Any, none: float) -> bool:
    """Whether a private interval excludes the sign that is clear in the real records."""
    return any(
        private.same_sign is False and _excludes(private, none) and _excludes(real, none)
        for real, private in judged(each)
    )


def _no_comparison(each: Any, study: str) -> Verdict:
    """Say why nothing could be compared. It is bad if only the synthetic table is the cause."""
    problems = {"real": each.problem_real, "synthetic": each.problem_synthetic}
    if each.study is not None:  # the synthetic table has no part in the private estimates
        del problems["synthetic"]
    problems = {table: problem for table, problem in problems.items() if problem}
    told_why = [f"in the {table} records, {problem}" for table, problem in problems.items()]
    sides = "both sides" if each.study is not None else "both tables"
    why = " and ".join(told_why) or f"no term can be estimated from {sides}"
    severity: Severity = "bad" if set(problems) == {"synthetic"} else "open"
    sentence = f"A study could not be compared ({study}): {why}."
    return Verdict("effects_unknown", severity, sentence, (each.regression,), each.confidential)


def judge_studies(studies: Sequence[Estimates], *, internal: bool) -> tuple[Verdict, ...]:
    """Return verdicts on the effects of each pre-specified regression from its noisy numbers alone.

    They are internal if no guarantee covers them.
    """
    return tuple(_clear(each, each.no_effect, internal) for each in studies if each.no_effect is not None)


def _clear(estimates: Estimates, none: float, internal: bool) -> Verdict:
    """The number of effects whose direction is clear from the private estimates alone."""
    rows = estimates.effects()
    clear = sum(row["lower"] > none or row["upper"] < none for row in rows)
    said = (
        f"{clear} of {len(rows)} pre-specified effect{'s' * (len(rows) != 1)} of {estimates.study} "
        f"{'is' if clear == 1 else 'are'} clear. A clear effect has an interval without the value of no "
        "effect."
    )
    severity: Severity = "caution" if estimates.widening >= WIDE else "good" if clear else "open"
    start = "Noise makes these intervals wide. " if severity == "caution" else ""
    sentence = f"{start}{said} {widened(estimates).capitalize()}."
    return Verdict("declared_effects", severity, sentence, (f"declared[{estimates.study}]",), internal)


def judged(each: Any) -> list[tuple[Any, Any]]:
    """The real and the judged estimate of each term that has both: the private one of a study if any."""
    side = "synthetic" if each.study is None else "declared"
    pairs = ((of["real"], of[side]) for of in each.terms.values())
    return [(real, other) for real, other in pairs if other is not None and other.same_sign is not None]


def _excludes(effect: Any, none: float) -> bool:
    """Whether the interval of an effect excludes "no effect"."""
    return effect is not None and (effect.lower > none or effect.upper < none)
