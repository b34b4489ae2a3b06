"""Rules about what an analyst may trust: use, outcomes, likeness, associations, rules and studies.

See :mod:`dpsynth.report.findings.verdicts` for how the rules are made.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from dpsynth.evaluation.records import Detail, Evaluation, Measure, shown
from dpsynth.report.findings.verdict import Severity, Verdict, basis, get, least, most, number_of, told

#: a discriminator or nearest-neighbour accuracy that tells the tables apart, and one that does so easily
DISTINGUISHABLE, OBVIOUS = 0.65, 0.85
#: loss of the discriminator's AUC that names the column whose shuffling costs it
GIVES_AWAY = 0.01
#: nearest-neighbour accuracy that surely lies below is that of copies
TOO_CLOSE = 0.45
#: loss of AUC (or of explained variance) against real training records that is worth a word
USEFUL_WITHIN = 0.05
#: a Brier score of more than this part of the base rate's says no more than the base rate
BASE_RATE = 0.95
#: a score that exceeds blind guessing by less is as good as blind
BLIND_WITHIN = 0.02
#: share of the effects of a study that must keep their sign
SAME_SIGN = 0.8
#: mean overlap of intervals that says the same study; two samples of one distribution have about 2/3
SAME_SIZE = 0.4
#: part of the strength of associations whose loss is worth a word, and one that leaves next to nothing
PARTLY_LOST, ALL_LOST = 0.5, 0.8


def utility(evaluation: Evaluation) -> Iterator[Verdict]:
    """Is a model that learned on the synthetic table of use on real records?"""
    for name, real_name, blind, what in (
        ("auc_mean", "auc_real_mean", 0.5, "AUC"),
        ("r2_mean", "r2_real_mean", 0.0, "explained variance"),
    ):
        made, real = get(evaluation, name), get(evaluation, real_name)
        if made is None:
            continue
        both = basis(m for m in (made, real) if m is not None)
        words = f"{what} {told(made)} on real records"
        gain = number_of(made) - blind
        useless = gain < BLIND_WITHIN
        blind_words = "Models trained on the synthetic table are no better than blind guessing"
        if real is None:
            if useless:
                yield Verdict("useless", "bad", f"{blind_words}: {words}.", *both)
            continue
        words += f", against {told(real)} for models trained on real ones"
        possible = number_of(real) - blind
        if (possible if real.lower is None else real.lower - blind) < BLIND_WITHIN:
            sentence = f"Even real records hardly predict the outcome: {words}."
            yield Verdict("unpredictable", "caution", sentence, *both)
        elif useless:
            yield Verdict("useless", "bad", f"{blind_words}: {words}.", *both)
        elif gain < possible / 2:
            sentence = f"More than half of what can be learned about the outcome is lost: {words}."
            yield Verdict("useless", "bad", sentence, *both)
        elif gain < possible - USEFUL_WITHIN and (brier := _blind_probabilities(evaluation)) is not None:
            sentence = f"Predicted probabilities are no better than the base rate ({brier}); {words}."
            yield Verdict("useless", "bad", sentence, *both)
        elif made.lower is not None and made.lower <= blind:
            sentence = f"Too few records to tell whether models learn more than blind guessing: {words}."
            yield Verdict("uncertain", "caution", sentence, *both)
        elif gain < possible - USEFUL_WITHIN:
            yield Verdict("weaker", "caution", f"Something is lost: {words}.", *both)
        elif (loss := get(evaluation, f"{name[:-5]}_difference_mean")) and least(loss) < -2 * USEFUL_WITHIN:
            sentence = f"Models may learn nearly as well, or not: {words}; the difference is {told(loss)}."
            yield Verdict("uncertain", "caution", sentence, *both)
        else:
            yield Verdict("useful", "good", f"Models learn nearly as well: {words}.", *both)


def _blind_probabilities(evaluation: Evaluation) -> str | None:
    """The Brier score beside that of the base rate, where it is no better; None otherwise.

    The AUC of a model that learned nothing may be far from 1/2, to either side, where columns predict one
    another strongly: one coefficient that is wrong by chance orders all records. Its probabilities are
    still as good as blind.
    """
    brier, rate = get(evaluation, "brier_mean"), get(evaluation, "positive_rate_test")
    if brier is None or rate is None:
        return None
    base = number_of(rate) * (1 - number_of(rate))
    return f"Brier score {told(brier)}, {base:.3f} blind" if number_of(brier) > BASE_RATE * base else None


def collapse(evaluation: Evaluation) -> Iterator[Verdict]:
    """Did the generator forget an outcome?"""
    constant, lost = (get(evaluation, name) for name in ("outcome_constant_synthetic", "mode_collapse"))
    rate = get(evaluation, "positive_rate_synthetic")
    if constant is not None and constant.value == 1:
        sentence = "Every synthetic record has the same outcome."
        yield Verdict("mode_collapse", "bad", sentence, *basis([constant]))
    elif constant is None and rate is not None and rate.value in (0, 1):
        sentence = f"Every synthetic record has the same outcome (positive rate {shown(rate.value)})."
        yield Verdict("mode_collapse", "bad", sentence, *basis([rate]))
    elif lost is not None and lost.value == 1:
        sentence = "An outcome of the real records is as good as lost among the synthetic ones."
        yield Verdict("mode_collapse", "bad", sentence, *basis([lost]))


def resemblance(evaluation: Evaluation) -> Iterator[Verdict]:
    """Can synthetic records be told from real ones?"""
    accuracy = get(evaluation, "nn_accuracy_train")
    told_apart = [
        measure
        for measure in evaluation.measures
        if measure.name.startswith("discriminator_auc") and measure.value is not None
    ]
    best = max(told_apart, key=number_of, default=None)
    known = [measure for measure in (best, accuracy) if measure is not None]
    if not known:
        return
    said = {"nn_accuracy_train": "the nearest-neighbour accuracy (0.5 is best) is"}
    words = "a classifier tells synthetic from real records with an AUC of"
    reasons = "; ".join(f"{said.get(m.name, words)} {told(m)}" for m in known)
    worst = max(least(m) for m in [*told_apart, *known])
    by, columns = _given_away(evaluation)
    if worst > DISTINGUISHABLE:
        easily = " easily" if worst > OBVIOUS else ""
        severity: Severity = "bad" if worst > OBVIOUS else "caution"
        sentence = f"Synthetic records can{easily} be told from real ones: {reasons}.{by}"
        yield Verdict("distinguishable", severity, sentence, *basis([*known, *columns]))
    elif any(number_of(m) > DISTINGUISHABLE and least(m) > 0.5 for m in known):
        sentence = f"Synthetic records can be told from real ones, if not always: {reasons}.{by}"
        yield Verdict("distinguishable", "caution", sentence, *basis([*known, *columns]))
    elif max(number_of(m) for m in known) > DISTINGUISHABLE:
        sentence = (
            f"Perhaps synthetic records can be told from real ones; there are too few to be sure: {reasons}."
        )
        yield Verdict("uncertain", "caution", sentence, *basis(known))
    elif accuracy is not None and most(accuracy) < TOO_CLOSE:
        sentence = f"Synthetic records lie closer to training records than these to one another: {reasons}."
        yield Verdict("too_close", "caution", sentence, *basis([accuracy]), "risk")
    else:
        sentence = f"Synthetic records are hard to tell from real ones: {reasons}."
        yield Verdict("resembles", "good", sentence, *basis(known))


def _given_away(evaluation: Evaluation) -> tuple[str, list[Measure]]:
    """Which columns give synthetic records away, in a sentence, and the measures that it rests on."""
    losses = [
        m for m in evaluation.measures if m.name.startswith("discriminator_loss[") and m.value is not None
    ]
    if not losses:
        return "", []
    losses.sort(key=number_of, reverse=True)
    sure = [m for m in losses if number_of(m) >= GIVES_AWAY and least(m) > 0][:3]
    if not sure:
        most_of_all = f"{max(number_of(losses[0]), 0.0):.3f}"
        text = (
            f" No column does it by itself: shuffling any one of them costs at most {most_of_all} of the AUC."
        )
        return text, losses[:1]
    named = [f"{m.name[m.name.index('[') + 1 : -1]} ({number_of(m):.3f} of the AUC)" for m in sure]
    listed = named[0] if len(named) == 1 else f"{', '.join(named[:-1])} and {named[-1]}"
    return f" What gives them away most, by what shuffling it costs: {listed}.", sure


def associations(evaluation: Evaluation) -> Iterator[Verdict]:
    """Do columns still go together? Judged only where held-out records show what chance leaves."""
    lost, chance = (get(evaluation, f"association_lost{end}") for end in ("", "_baseline"))
    if lost is None or chance is None or number_of(chance) > PARTLY_LOST / 2:
        return
    words = (
        f"{100 * number_of(lost):.0f} % of the strength of associations between columns is lost or reversed"
    )
    both = basis([lost, chance])
    if number_of(lost) > ALL_LOST:
        sentence = f"Columns hardly go together: {words}. The table is useless for whatever relates columns."
        yield Verdict("associations_lost", "bad", sentence, *both)
    elif number_of(lost) > PARTLY_LOST:
        sentence = f"Columns go together too weakly: {words} ({100 * number_of(chance):.0f} % by chance)."
        yield Verdict("associations_weak", "caution", sentence, *both)


def constraints(evaluation: Evaluation) -> Iterator[Verdict]:
    """Do synthetic records break the rules of their own table?"""
    broken = [
        measure
        for measure in evaluation.measures
        if measure.name.startswith("constraint_violations_synthetic") and measure.value
    ]
    if broken:
        worst = max(broken, key=number_of)
        sentence = f"Some records break the rules of the table; the worst is {worst.name}: {told(worst)}."
        yield Verdict("violates_constraints", "caution", sentence, *basis(broken))


def effects(evaluation: Evaluation) -> Iterator[Verdict]:
    """Does a study come out the same? Only effects that are clear in the real records can be lost."""
    if evaluation.settings.get("effects") == [] and evaluation.settings.get("outcome") is not None:
        sentence = "No study was replicated: none was named, and none fits the outcome by itself."
        yield Verdict("no_study", "caution", sentence, (), True)
    for detail in evaluation.of_kind("effects"):
        none = 0.0 if detail.data.get("measure") == "difference" else 1.0
        rows = [row for row in detail.data.get("rows", ()) if row.get("same_sign") is not None]
        clear = [row for row in rows if _excludes(row.get("real"), none)]
        study = f"{detail.data.get('model')} model of {detail.data.get('outcome')}"
        if not rows:
            yield _no_comparison(detail, study)
            continue
        if not clear:
            sentence = (
                f"No effect is clear in the real records, among {len(rows)} of the {study}, so that none can "
                "be found again in synthetic ones."
            )
            yield Verdict("effects_unclear", "caution", sentence, (detail.name,), detail.internal)
            continue
        same = sum(bool(row["same_sign"]) for row in clear)
        overlaps = [max(0.0, row["overlap"]) for row in clear if row.get("overlap") is not None]
        fitted = ", fitted with a prior because outcomes separate" if detail.data.get("separated") else ""
        sentence = (
            f"Of {len(clear)} effect{'s' * (len(clear) > 1)} clear in real records, in the {study}{fitted}, "
            f"{same} {'has' if same == 1 else 'have'} the same sign in synthetic ones"
        )
        overlap = sum(overlaps) / len(overlaps) if overlaps else None
        if overlap is not None:
            sentence += f"; their intervals overlap by {overlap:.2f} on average"
        share = same / len(clear)
        same_size = overlap is None or overlap >= SAME_SIZE
        if share >= SAME_SIGN and not same_size:
            sentence += ": the direction holds, the size does not"
        agree = share >= SAME_SIGN and same_size
        severity: Severity = "good" if agree else "caution" if share > 0.5 else "bad"
        code = "effects_agree" if agree else "effects_differ"
        yield Verdict(code, severity, f"{sentence}.", (detail.name,), detail.internal)


def _no_comparison(detail: Detail, study: str) -> Verdict:
    """Say why nothing could be compared; it is bad where only the synthetic table is to blame."""
    problems = dict(detail.data.get("problems") or {})
    told_why = [f"in the {table} records, {problem}" for table, problem in problems.items()]
    why = "; ".join(told_why) or "no term can be told from both tables"
    severity: Severity = "bad" if set(problems) == {"synthetic"} else "caution"
    sentence = f"Whether a study comes out the same could not be computed, with the {study}: {why}."
    return Verdict("effects_unknown", severity, sentence, (detail.name,), detail.internal)


def _excludes(effect: Mapping[str, float] | None, none: float) -> bool:
    """Whether the interval of an effect excludes "no effect"."""
    if effect is None or effect.get("lower") is None or effect.get("upper") is None:
        return False
    return effect["lower"] > none or effect["upper"] < none
