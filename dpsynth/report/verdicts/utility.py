"""What rules about use read: are models that learned on the table useful, and are studies replicated?

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
from typing import Any

from dpsynth.evaluation.effects import regressions_of
from dpsynth.evaluation.results import Evaluation, Measure
from dpsynth.report.verdicts import (
    Evidence,
    Named,
    Rule,
    column_of,
    get,
    least,
    most,
    number_of,
    of_columns,
    otherwise,
)
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


def prediction(evaluation: Evaluation) -> Iterator[Evidence]:
    """Is a model that learned on the synthetic table useful on real records?"""
    counted = evaluation.counted
    for name, real_name, blind, what in (
        ("auc_mean", "auc_real_mean", 0.5, "AUC"),
        ("r2_mean", "r2_real_mean", 0.0, "explained variance"),
    ):
        synthetic, real = get(evaluation, name), get(evaluation, real_name)
        if synthetic is None:
            continue
        words = f"{what} {measured(synthetic)} on real {counted}"
        if real is not None:
            words += f". Models trained on real {counted} reach {measured(real)}"
        gain, possible = number_of(synthetic) - blind, number_of(real or synthetic) - blind
        yield Evidence(
            basis=[synthetic, real] if real is not None else [synthetic],
            compared=real is not None,
            words=words,
            first=f"{words[:1].upper()}{words[1:]}",
            gain=gain,
            possible=possible,
            reachable=least(real or synthetic) - blind,
            unsure=synthetic.lower is not None and synthetic.lower <= blind,
            loss=get(evaluation, f"{name[:-5]}_difference_mean"),
            brier=_blind_probabilities(evaluation),
            people=_rarer(evaluation),
        )


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
    if number_of(brier) <= BASE_RATE * base:
        return None
    return f"Brier score {measured(brier)}, {decimals(base)} blind"


def given_away(evaluation: Evaluation) -> Iterator[Evidence]:
    """Does one column alone predict the outcome?"""
    columns = of_columns(evaluation, "outcome_auc[")
    if columns:
        named = ", ".join(f"{column_of(m)} ({reason(m)})" for m in columns[:_NAMED])
        more = f" and {len(columns) - _NAMED} more" if len(columns) > _NAMED else ""
        yield Evidence(basis=columns, named=f"{named}{more}")


def collapse(evaluation: Evaluation) -> Iterator[Evidence]:
    """Did the generator lose an outcome?"""
    constant, lost = (get(evaluation, name) for name in ("outcome_constant_synthetic", "mode_collapse"))
    rate = get(evaluation, "positive_rate_synthetic")
    only = constant if constant is None or constant.value == 1 else None
    said = ""
    if constant is None and rate is not None and rate.value in (0, 1):
        only, said = rate, f" (positive rate {shown(rate.value)})"
    yield Evidence(only=only, rate=said, lost=lost, reason="" if lost is None else reason(lost))


def reason(measure: Measure) -> str:
    """Return what a measure's words say of this table, after its name."""
    return measure.detail.partition(": ")[2]


#: sure losses, as parts of the base rate's Brier score, that are reported and that are bad
PROBABILITIES_WITHIN, PROBABILITIES_LOST = 0.02, 0.2
#: a loss that is surely less is called about as good
PROBABILITIES_SURE = 0.1


def probabilities(evaluation: Evaluation) -> Iterator[Evidence]:
    """Are the probabilities right that models trained on the table give to real records of two outcomes?"""
    synthetic, real, loss, rate = known = [
        get(evaluation, name)
        for name in ("brier_mean", "brier_real_mean", "brier_difference_mean", "positive_rate_test")
    ]
    # of more than two categories the score is a sum over them, which no base rate of one of them bounds
    if synthetic is None or real is None or loss is None or rate is None or "accuracy_mean" in evaluation:
        return
    base = number_of(rate) * (1 - number_of(rate))
    if base == 0:
        return
    words = (
        f"The Brier score is {measured(synthetic)}, and {measured(real)} for models trained on real "
        f"{evaluation.counted}. Perfect predictions give 0, and the base rate gives {decimals(base)}."
    )
    ways = _ways(evaluation)
    bounded = loss.lower is not None
    yield Evidence(
        words=words,
        off=" ".join([words, *(f"{text}." for text, _ in ways)]),
        surely=least(loss) / base if bounded else 0.0,
        at_most=most(loss) / base if bounded else 1.0,
        loss=loss,
        basis=known,
        ways=[measure for _, measure in ways],
        people=_rarer(evaluation),
    )


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
#: overlap of one effect that is another size whatever the others are: the gap is as wide as the intervals
APART = -1.0
#: intervals so many times as wide as without noise are those of a quarter of the records
WIDE = 2.0


def no_study(evaluation: Evaluation) -> Iterator[Evidence]:
    """Was no study replicated, although there is an outcome?"""
    if evaluation.settings.get("effects") == [] and evaluation.settings.get("outcome") is not None:
        yield Evidence(basis=Named("", internal=True))


def effects(evaluation: Evaluation) -> Iterator[Evidence]:
    """Is a study replicated? Only effects that are clear in the real records can be lost."""
    counted = evaluation.counted
    for each in regressions_of(evaluation):
        if each.model == "mixed":  # which have one verdict for all numbers
            continue
        compared, clear = len(judged(each)), _clear(each)
        same = sum(bool(side.same_sign) for _, side in clear)
        problems = {"real": each.problem_real}
        if each.study is None:  # the synthetic table has no part in the private estimates
            problems["synthetic"] = each.problem_synthetic
        problems = {table: problem for table, problem in problems.items() if problem}
        why = [f"in the {table} {counted}, {problem}" for table, problem in problems.items()]
        both = "both tables" if each.study is None else "both sides"
        prior = ". The model is fitted with a prior distribution, because outcomes separate"
        yield Evidence(
            basis=_source(each),
            study=_named(each),
            where="synthetic ones" if each.study is None else "its private estimates",
            compared=compared,
            effects=f"{compared} effect{'s' * (compared != 1)}",
            why=" and ".join(why) or f"no term can be estimated from {both}",
            only_synthetic=set(problems) == {"synthetic"},
            clear=len(clear),
            share=same / max(len(clear), 1),
            of=f"{same} of {len(clear)} effect{'s' * (len(clear) > 1)}",
            have="has" if 1 in (same, len(clear)) else "have",
            prior=prior if each.separated_real or each.separated_synthetic else "",
            # an interval that leaves the sign open misleads nobody
            left_open=each.study is not None and not _turned(each),
            people=each.n_real if clear else None,
        )


def _source(each: Any) -> Named:
    return Named(each.regression, each.confidential)


def _named(each: Any) -> str:
    study = f"{each.model} model of {each.outcome}"
    return study if each.study is None else f"{study}, pre-specified as {each.study}"


def _no_effect(each: Any) -> float:
    return 0.0 if each.measure == "difference" else 1.0


def _clear(each: Any) -> list[tuple[Any, Any]]:
    """The effects that are clear in the real records, with what is compared with them."""
    return [pair for pair in judged(each) if _excludes(pair[0], _no_effect(each))]


def mixed_effects(evaluation: Evaluation) -> Iterator[Evidence]:
    """Are effects of mixed models replicated? One verdict on all numbers, of effects clear in real rows."""
    models = _mixed(evaluation)
    clear = [pair for each in models for pair in _clear(each)]
    if clear:
        same = sum(bool(side.same_sign) for _, side in clear)
        yield Evidence(
            basis=[*map(_source, models)],
            of=f"{same} of {len(clear)}",
            have="has" if same == 1 else "have",
            share=same / len(clear),
            people=min(each.n_real for each in models),
        )


def _mixed(evaluation: Evaluation) -> list[Any]:
    return [each for each in regressions_of(evaluation) if each.model == "mixed"]


def effect_sizes(evaluation: Evaluation) -> Iterator[Evidence]:
    """Have clear effects, of the right sign, the right size? By the overlaps of their intervals.

    An overlap below 0 is a gap between the intervals, in widths of these. It counts as it is: a halved effect
    must not hide among others.
    """
    for each in regressions_of(evaluation):
        if each.model != "mixed":
            yield from _sizes([each], f" ({_named(each)})")


def mixed_sizes(evaluation: Evaluation) -> Iterator[Evidence]:
    """Have clear effects of mixed models the right size? All of them together, as in :func:`effect_sizes`."""
    yield from _sizes(_mixed(evaluation), ", of mixed models")


def _sizes(models: Sequence[Any], study: str) -> Iterator[Evidence]:
    clear = [pair for each in models for pair in _clear(each)]
    overlaps = [(side.overlap, side.term) for _, side in clear if side.overlap is not None]
    same = sum(bool(side.same_sign) for _, side in clear)
    if not overlaps or same < SAME_SIGN * len(clear):
        return
    gap, term = min(overlaps)
    mean = sum(overlap for overlap, _ in overlaps) / len(overlaps)
    yield Evidence(
        basis=[*map(_source, models)],
        same=mean >= SAME_SIZE and gap > APART,
        mean=decimals(mean, 2),
        study=study,
        gap=f" Those of {term} lie apart ({decimals(gap, 2)})." if gap < 0 else "",
        people=min(each.n_real for each in models),
    )


def _turned(each: Any) -> bool:
    """Whether a private interval excludes the sign that is clear in the real records."""
    none = _no_effect(each)
    return any(
        private.same_sign is False and _excludes(private, none) and _excludes(real, none)
        for real, private in judged(each)
    )


def declared(studies: Sequence[Estimates], internal: bool) -> Iterator[Evidence]:
    """The number of effects of each study whose direction is clear from the private estimates alone."""
    for estimates in studies:
        none = estimates.no_effect
        if none is None:
            continue
        rows = estimates.effects()
        clear = sum(row["lower"] > none or row["upper"] < none for row in rows)
        yield Evidence(
            basis=Named(f"declared[{estimates.study}]", internal),
            wide=estimates.widening >= WIDE,
            clear=clear,
            start="Noise makes these intervals wide. " if estimates.widening >= WIDE else "",
            of=f"{clear} of {len(rows)} pre-specified effect{'s' * (len(rows) != 1)} of {estimates.study}",
            are="is" if clear == 1 else "are",
            widened=widened(estimates).capitalize(),
        )


def judged(each: Any) -> list[tuple[Any, Any]]:
    """The real and the judged estimate of each term that has both: the private one of a study if any."""
    side = "synthetic" if each.study is None else "declared"
    pairs = ((of["real"], of[side]) for of in each.terms.values())
    return [(real, other) for real, other in pairs if other is not None and other.same_sign is not None]


def _excludes(effect: Any, none: float) -> bool:
    """Whether the interval of an effect excludes "no effect"."""
    return effect is not None and (effect.lower > none or effect.upper < none)


#: rules on models that learn from the table
USE = (
    Rule("unpredictable", prediction, open=lambda f: f.compared and f.reachable < BLIND_WITHIN),
    Rule("useless", prediction, bad=lambda f: f.gain < BLIND_WITHIN, said="useless, as good as blind"),
    Rule("useless", prediction, bad=lambda f: f.compared and f.gain < f.possible / 2,
         said="useless, half is lost"),
    Rule("useless", prediction,
         bad=lambda f: f.compared and f.gain < f.possible - USEFUL_WITHIN and f.brier,
         said="useless, probabilities"),
    Rule("uncertain", prediction, open=lambda f: f.compared and f.unsure, said="uncertain, blind or not"),
    Rule("weaker", prediction, caution=lambda f: f.compared and f.gain < f.possible - USEFUL_WITHIN),
    Rule("uncertain", prediction,
         open=lambda f: f.compared and f.loss is not None and least(f.loss) < -2 * USEFUL_WITHIN,
         said="uncertain, as well or not"),
    Rule("useful", prediction, good=lambda f: f.compared),
    Rule("probabilities_off", probabilities, bad=lambda f: f.surely > PROBABILITIES_LOST,
         caution=lambda f: f.surely > PROBABILITIES_WITHIN, rests_on=("basis", "ways")),
    Rule("probabilities_kept", probabilities, good=lambda f: f.at_most < PROBABILITIES_SURE),
    Rule("uncertain", probabilities, open=otherwise, said="uncertain, probabilities"),
    Rule("mode_collapse", collapse, bad=lambda f: f.only is not None and f.lost is None, rests_on=("only",),
         said="mode_collapse, one outcome"),
    Rule("mode_collapse", collapse, bad=lambda f: f.lost is not None and f.lost.value == 1,
         rests_on=("lost",), said="mode_collapse, a lost outcome"),
    Rule("mode_collapse", collapse, open=lambda f: f.only is not None, rests_on=("only", "lost"),
         said="mode_collapse, perhaps"),
    Rule("given_away", given_away, caution=otherwise, tables=("train",)),
)  # fmt: skip


#: rules on the replication of studies
EFFECTS = (
    Rule("no_study", no_study, open=otherwise),
    Rule("effects_unknown", effects, bad=lambda f: not f.compared and f.only_synthetic,
         open=lambda f: not f.compared),
    Rule("effects_unclear", effects, open=lambda f: not f.clear),
    Rule("effects_agree", effects, good=lambda f: f.share >= SAME_SIGN),
    Rule("effects_differ", effects, bad=lambda f: f.share <= 0.5 and not f.left_open,
         caution=lambda f: f.share > 0.5, said="effects_differ, surely"),
    Rule("effects_differ", effects, caution=otherwise, said="effects_differ, perhaps"),
    Rule("mixed_effects_agree", mixed_effects, good=lambda f: f.share >= SAME_SIGN),
    Rule("mixed_effects_differ", mixed_effects, bad=lambda f: f.share <= 0.5, caution=otherwise),
    Rule("effect_sizes_agree", effect_sizes, good=lambda f: f.same),
    Rule("effect_sizes_differ", effect_sizes, caution=otherwise),
    Rule("effect_sizes_agree", mixed_sizes, good=lambda f: f.same),
    Rule("effect_sizes_differ", mixed_sizes, caution=otherwise),
)  # fmt: skip


#: rules on the private estimates of a pre-specified regression
STUDIES = (
    Rule("declared_effects", declared, caution=lambda f: f.wide, open=lambda f: not f.clear, good=otherwise),
)  # fmt: skip
