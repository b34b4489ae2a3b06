"""Rules about similarity: can synthetic records be told from real ones, and do columns still go together?"""

from __future__ import annotations

from collections.abc import Iterator

from dpsynth.evaluation.records import Evaluation, Measure
from dpsynth.report.formats import decimals, hundredths, measured
from dpsynth.report.verdicts.verdict import Severity, Verdict, basis, get, least, most, number_of

#: a discriminator or nearest-neighbour accuracy that tells the tables apart, and one that does so easily
DISTINGUISHABLE, OBVIOUS = 0.65, 0.85
#: loss of the discriminator's AUC that names the column whose shuffling costs it
GIVES_AWAY = 0.01
#: nearest-neighbour accuracy that surely lies below is that of copies
TOO_CLOSE = 0.45
#: part of the strength of associations whose loss is worth a word, and one that leaves next to nothing
PARTLY_LOST, ALL_LOST = 0.5, 0.8


def told_apart(evaluation: Evaluation) -> Iterator[Verdict]:
    """Can synthetic records be told from real ones?"""
    accuracy = get(evaluation, "nn_accuracy_train")
    discriminators = [
        measure
        for measure in evaluation.measures
        if measure.name.startswith("discriminator_auc") and measure.value is not None
    ]
    best = max(discriminators, key=number_of, default=None)
    known = [measure for measure in (best, accuracy) if measure is not None]
    if not known:
        return
    said = {"nn_accuracy_train": "the nearest-neighbour accuracy (0.5 is best) is"}
    words = "a classifier tells synthetic from real records with an AUC of"
    reasons = "; ".join(f"{said.get(m.name, words)} {measured(m)}" for m in known)
    worst = max(least(m) for m in [*discriminators, *known])
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
        most_of_all = decimals(max(number_of(losses[0]), 0.0))
        text = (
            f" No column does it by itself: shuffling any one of them costs at most {most_of_all} of the AUC."
        )
        return text, losses[:1]
    named = [f"{m.name[m.name.index('[') + 1 : -1]} ({decimals(number_of(m))} of the AUC)" for m in sure]
    listed = named[0] if len(named) == 1 else f"{', '.join(named[:-1])} and {named[-1]}"
    return f" What gives them away most, by what shuffling it costs: {listed}.", sure


def associations(evaluation: Evaluation) -> Iterator[Verdict]:
    """Do columns still go together? Judged only where held-out records show what chance leaves."""
    lost, chance = (get(evaluation, f"association_lost{end}") for end in ("", "_baseline"))
    if lost is None or chance is None or number_of(chance) > PARTLY_LOST / 2:
        return
    words = (
        f"{hundredths(number_of(lost))} % of the strength of associations between columns is lost or reversed"
    )
    both = basis([lost, chance])
    if number_of(lost) > ALL_LOST:
        sentence = f"Columns hardly go together: {words}. The table is useless for whatever relates columns."
        yield Verdict("associations_lost", "bad", sentence, *both)
    elif number_of(lost) > PARTLY_LOST:
        sentence = f"Columns go together too weakly: {words} ({hundredths(number_of(chance))} % by chance)."
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
        sentence = f"Some records break the rules of the table; the worst is {worst.name}: {measured(worst)}."
        yield Verdict("violates_constraints", "caution", sentence, *basis(broken))
