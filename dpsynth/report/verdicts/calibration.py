"""Rule about predicted probabilities: do models that learned on the table mean what they say?

An AUC looks at the order of the records only; a risk of 20 % that should be 40 % leaves it as it is. The
Brier score, the mean squared error of the probabilities, sees both; the calibration slope and intercept say
which way they are off (Van Calster et al. 2019, BMC Medicine 17). Judged is the loss of Brier score against
models trained on real records, on the same test records, as a part of the base rate's score: that is the loss
of "scaled Brier score" (Steyerberg et al. 2010, Epidemiology 21). Slopes and intercepts only tell the
direction: of models trained on two samples of one table of 200 records they differ by more than their
intervals say, for these hold the trained models fixed. The same samples, and those of three larger tables,
lose surely at most .005 of the base rate's score.
"""

from __future__ import annotations

from collections.abc import Iterator

from dpsynth.evaluation.records import Evaluation, Measure
from dpsynth.report.verdicts.verdict import Severity, Verdict, basis, get, least, most, number_of, told

#: sure losses, as parts of the base rate's Brier score, that are worth a word and that are bad
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
        f"Brier score {told(synthetic)} against {told(real)} for models trained on real ones (0 is perfect, "
        f"{base:.3f} is the base rate's)"
    )
    known = [synthetic, real, loss, rate]
    start = "The probabilities of models trained on it are"
    if loss.lower is not None and least(loss) > PROBABILITIES_WITHIN * base:
        severity: Severity = "bad" if least(loss) > PROBABILITIES_LOST * base else "caution"
        ways = _ways(evaluation)
        sentence = "; ".join([f"{start} off: {words}", *(text for text, _ in ways)]) + "."
        yield Verdict("probabilities_off", severity, sentence, *basis([*known, *(m for _, m in ways)]))
    elif loss.upper is not None and most(loss) < PROBABILITIES_SURE * base:
        yield Verdict("probabilities_kept", "good", f"{start} about as good: {words}.", *basis(known))
    else:
        sentence = (
            f"It cannot be told whether the probabilities of models trained on it are off: {words}; the "
            f"difference is {told(loss)}."
        )
        yield Verdict("uncertain", "caution", sentence, *basis(known))


_WAYS = {
    ("calibration_intercept", 1): "too low",
    ("calibration_intercept", -1): "too high",
    ("calibration_slope", 1): "too close to one another",
    ("calibration_slope", -1): "too extreme",
}


def _ways(evaluation: Evaluation) -> list[tuple[str, Measure]]:
    """Which way probabilities are surely off, and farther than with real training records.

    On average over the models, or else of the model that is farthest off.
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
            who = "they are on average" if model == "mean" else f"those of {model.replace('_', ' ')} are"
            label = f"{score.replace('_', ' ')} {told(measure)}, {ideal:g} is ideal"
            text = f"{who} {_WAYS[score, side]} ({label})"
            if model == "mean":
                average.append((text, measure))
            else:
                single.append((abs(number_of(measure) - ideal), text, measure))
    return average or [(text, measure) for _, text, measure in sorted(single, key=lambda way: -way[0])[:1]]
