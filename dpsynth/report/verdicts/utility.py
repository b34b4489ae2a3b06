"""Rules about utility: are models that learned on the table of use, and does it hold every outcome?"""

from __future__ import annotations

from collections.abc import Iterator

from dpsynth.evaluation.records import Evaluation, shown
from dpsynth.report.verdicts.verdict import Verdict, basis, get, least, number_of, told

#: loss of AUC (or of explained variance) against real training records that is worth a word
USEFUL_WITHIN = 0.05
#: a Brier score of more than this part of the base rate's says no more than the base rate
BASE_RATE = 0.95
#: a score that exceeds blind guessing by less is as good as blind
BLIND_WITHIN = 0.02
#: columns that a sentence names
_NAMED = 10


def prediction(evaluation: Evaluation) -> Iterator[Verdict]:
    """Is a model that learned on the synthetic table of use on real records?"""
    for name, real_name, blind, what in (
        ("auc_mean", "auc_real_mean", 0.5, "AUC"),
        ("r2_mean", "r2_real_mean", 0.0, "explained variance"),
    ):
        synthetic, real = get(evaluation, name), get(evaluation, real_name)
        if synthetic is None:
            continue
        both = basis(m for m in (synthetic, real) if m is not None)
        words = f"{what} {told(synthetic)} on real records"
        gain = number_of(synthetic) - blind
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
        elif synthetic.lower is not None and synthetic.lower <= blind:
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


def given_away(evaluation: Evaluation) -> Iterator[Verdict]:
    """Does a column give the outcome away?"""
    found = [m for m in evaluation.measures if m.name.startswith("outcome_auc[")]
    if found:
        named = ", ".join(f"{m.name[12:-1]} ({m.detail.partition(': ')[2]})" for m in found[:_NAMED])
        more = f" and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
        sentence = (
            f"The real outcome can be told from one column alone: {named}{more}. If it is known only after "
            "the outcome, leave it out: scores of models say little."
        )
        yield Verdict("given_away", "caution", sentence, *basis(found))


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
