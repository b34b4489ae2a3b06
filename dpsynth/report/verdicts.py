"""Rules that turn an evaluation into findings: a severity, one sentence, and the measures it rests on.

The rules are few and written down, so that two readers of the same numbers come to the same words. Where a
measure has an interval, the rule looks at the end that speaks against the finding: a finding that the noise
of a small table could have made is not given. A finding is internal if one measure it rests on is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dpsynth.accounting.statement import is_private, round_up
from dpsynth.evaluation.records import Evaluation, shown
from dpsynth.report.verdict import Severity, Verdict, basis, get, least, most, number_of, told

if TYPE_CHECKING:
    from dpsynth.report.load import ReportSource

#: below so many records of a table, intervals are too wide for most findings
FEW_RECORDS = 100
#: below so many, nothing is called good
NO_PRAISE = 30
#: p-value below which held-out records are no baseline, and the share of copies that is memory all the same
DIFFERENT, MANY_COPIES = 0.01, 0.1
#: share of held-out records that equal a training one, above which copies cannot be told from coincidence
COINCIDE = 0.5
#: a guess of who was in the training table counts when it surely exceeds 1/2 by this much
MEMBERSHIP_MARGIN = 0.02
#: a discriminator or nearest-neighbour accuracy that tells the tables apart, and one that does so easily
DISTINGUISHABLE, OBVIOUS = 0.65, 0.85
#: nearest-neighbour accuracy that surely lies below is that of copies
TOO_CLOSE = 0.45
#: loss of AUC (or of explained variance) against real training records that is worth a word
USEFUL_WITHIN = 0.05
#: a Brier score of more than this part of the base rate's says no more than the base rate
BASE_RATE = 0.95
#: without held-out records, a share of copies that is worth a word
COPIED = 0.01
#: a score that exceeds blind guessing by less is as good as blind
BLIND_WITHIN = 0.02
#: share of the effects of a study that must keep their sign
SAME_SIGN = 0.8
#: mean overlap of intervals that says the same study; two samples of one distribution have about 2/3
SAME_SIZE = 0.4
#: part of the strength of associations whose loss is worth a word, and one that leaves next to nothing
PARTLY_LOST, ALL_LOST = 0.5, 0.8
#: a bound on an attack's accuracy that leaves little of a promise
WEAK_ACCURACY = 0.9


def verdicts(evaluation: Evaluation) -> tuple[Verdict, ...]:
    """Return what the rules find in an evaluation, of any generator's table.

    Parameters
    ----------
    evaluation : Evaluation
        Rules whose measures are absent or undefined find nothing.

    Examples
    --------
    >>> from dpsynth.evaluation.records import Measure
    >>> copies = Measure("Memorisation", "copies_excess", 0.4, True, lower=0.35, upper=0.45)
    >>> [(v.code, v.severity) for v in verdicts(Evaluation((copies,)))]
    [('memorises', 'bad')]
    """
    found = [verdict for rule in _RULES for verdict in rule(evaluation)]
    records = [get(evaluation, f"{table}_records") for table in ("synthetic", "train", "test")]
    if any(measure is not None and number_of(measure) < NO_PRAISE for measure in records):
        found = [verdict for verdict in found if verdict.severity != "good"]
    return tuple(found)


def of_guarantee(source: ReportSource) -> tuple[Verdict, ...]:
    """Return what the rules find in the guarantee of a table, or in its absence."""
    if source.guarantee is None:
        return (_risk("no_guarantee", "caution", "No guarantee is known for this table: nothing says what an "
                      "attack that was not tried can find."),)  # fmt: skip
    if not is_private(source.guarantee):
        return (_risk("not_private", "bad", source.guarantee),)
    found = []
    if source.ledger is not None and source.ledger.excluded:
        found.append(
            _risk(
                "excluded",
                "caution",
                f"The guarantee leaves something out: {'; '.join(source.ledger.excluded)}.",
            )
        )
    if source.profile is not None:
        accuracy = source.profile.attack_accuracy()
        if accuracy > WEAK_ACCURACY:
            sentence = (
                "The guarantee is weak: it leaves room for a guess that is right "
                f"{round_up(100 * accuracy, 3)} times in 100."
            )
            found.append(_risk("weak_guarantee", "caution", sentence))
        elif not found:
            sentence = "The guarantee holds against every attack, whatever its maker knows."
            found.append(_risk("guaranteed", "good", sentence))
    return tuple(found)


def _risk(code: str, severity: Severity, sentence: str) -> Verdict:
    return Verdict(code, severity, sentence, ("ledger",), False, "risk")


@dataclass(frozen=True)
class _Sign:
    """A sign of memory: the level that a table without memory keeps to, one that is clear, and words."""

    floor: float
    clear: float
    words: str


_SIGNS = {
    "copies_excess": _Sign(0.0, 0.01, "more records copy a training record than a new one, by a share of"),
    "dcr_closer_to_train": _Sign(
        0.5 + MEMBERSHIP_MARGIN, 0.6, "the share of records nearer to training than to new ones is"
    ),
    "membership_auc": _Sign(0.5 + MEMBERSHIP_MARGIN, 0.6, "an attack by distance has an AUC of"),
    "membership_auc_calibrated": _Sign(
        0.5 + MEMBERSHIP_MARGIN, 0.6, "an attack by compared distances has an AUC of"
    ),
    "privacy_loss": _Sign(0.0, 0.1, "nearest-neighbour accuracy rises from training to new records by"),
}


def _memory(evaluation: Evaluation) -> Iterator[Verdict]:
    """Copies, membership inference and privacy loss: does the table know its training records?"""
    known = [measure for name in _SIGNS if (measure := get(evaluation, name)) is not None]
    judged = [measure for measure in known if measure.lower is not None]
    caught = [m for m in judged if m.lower is not None and m.lower > _SIGNS[m.name].floor]
    # without an interval, only what is clear is worth a word
    suspected = [m for m in known if m.lower is None and number_of(m) > _SIGNS[m.name].clear]
    differ, coincide = get(evaluation, "nn_train_test_p"), get(evaluation, "copies_expected_share")
    if caught or suspected:
        bad = any(number_of(m) > _SIGNS[m.name].clear for m in caught)
        found = caught + suspected
        shifted = differ is not None and number_of(differ) < DIFFERENT
        if shifted and not any(m.name == "copies_excess" and least(m) > MANY_COPIES for m in found):
            reasons = "; ".join(f"{_SIGNS[m.name].words} {told(m)}" for m in found)
            yield Verdict(
                "no_baseline",
                "caution",
                "Held-out records differ from training ones, so nothing tells memory from that difference "
                f"({reasons}).",
                *basis(found),
                "risk",
            )
            return
        reasons = "; ".join(f"{_SIGNS[m.name].words} {told(m)}" for m in found)
        start = "The table remembers training records" if bad else "The table may remember training records"
        severity: Severity = "bad" if bad else "caution"
        yield Verdict("memorises", severity, f"{start}: {reasons}.", *basis(found), "risk")
    elif judged and coincide is not None and least(coincide) > COINCIDE:
        yield Verdict(
            "no_baseline",
            "caution",
            f"A share of {told(coincide)} of the held-out records equal a training record: they are the same "
            "people, or the table has few different records. Nothing tells memory from coincidence.",
            *basis([coincide]),
            "risk",
        )
    elif judged:
        yield Verdict(
            "no_memory_found",
            "good",
            "The attacks that were tried found no memory of training records. That is no proof that others "
            "would not.",
            *basis(judged),
            "risk",
        )
    copied = get(evaluation, "copies_train_share")
    if copied is not None and not known and least(copied) > COPIED:
        yield Verdict(
            "copies",
            "caution",
            f"A share of {told(copied)} of the synthetic records equal a training record. Without held-out "
            "records nothing tells memory from coincidence.",
            *basis([copied]),
            "risk",
        )


def _utility(evaluation: Evaluation) -> Iterator[Verdict]:
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
        useless = gain < BLIND_WITHIN or (made.lower is not None and made.lower <= blind)
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
        elif gain < possible - USEFUL_WITHIN:
            yield Verdict("weaker", "caution", f"Something is lost: {words}.", *both)
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


def _collapse(evaluation: Evaluation) -> Iterator[Verdict]:
    """Did the generator forget an outcome?"""
    constant, lost = (get(evaluation, name) for name in ("outcome_constant_synthetic", "mode_collapse"))
    rate = get(evaluation, "positive_rate_synthetic")
    if constant is not None and constant.value == 1:
        sentence = "Every synthetic record has the same outcome."
        yield Verdict("mode_collapse", "bad", sentence, *basis([constant]))
    elif rate is not None and rate.value in (0, 1):
        sentence = f"Every synthetic record has the same outcome (positive rate {shown(rate.value)})."
        yield Verdict("mode_collapse", "bad", sentence, *basis([rate]))
    elif lost is not None and lost.value == 1:
        sentence = "An outcome of the real records is as good as lost among the synthetic ones."
        yield Verdict("mode_collapse", "bad", sentence, *basis([lost]))


def _resemblance(evaluation: Evaluation) -> Iterator[Verdict]:
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
    if worst > DISTINGUISHABLE:
        easily = " easily" if worst > OBVIOUS else ""
        severity: Severity = "bad" if worst > OBVIOUS else "caution"
        sentence = f"Synthetic records can{easily} be told from real ones: {reasons}."
        yield Verdict("distinguishable", severity, sentence, *basis(known))
    elif accuracy is not None and most(accuracy) < TOO_CLOSE:
        sentence = f"Synthetic records lie closer to training records than these to one another: {reasons}."
        yield Verdict("too_close", "caution", sentence, *basis([accuracy]), "risk")
    else:
        sentence = f"Synthetic records are hard to tell from real ones: {reasons}."
        yield Verdict("resembles", "good", sentence, *basis(known))


def _associations(evaluation: Evaluation) -> Iterator[Verdict]:
    """Do columns still go together? Judged only where held-out records show what chance leaves."""
    lost, chance = (get(evaluation, f"association_lost{end}") for end in ("", "_baseline"))
    if lost is None or chance is None or number_of(chance) > PARTLY_LOST / 2:
        return
    words = (
        f"{100 * number_of(lost):.0f} % of the strength of associations between columns is lost or misplaced"
    )
    both = basis([lost, chance])
    if number_of(lost) > ALL_LOST:
        sentence = f"Columns hardly go together: {words}. The table is useless for whatever relates columns."
        yield Verdict("associations_lost", "bad", sentence, *both)
    elif number_of(lost) > PARTLY_LOST:
        sentence = f"Columns go together too weakly: {words} ({100 * number_of(chance):.0f} % by chance)."
        yield Verdict("associations_weak", "caution", sentence, *both)


def _constraints(evaluation: Evaluation) -> Iterator[Verdict]:
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


def _effects(evaluation: Evaluation) -> Iterator[Verdict]:
    """Does a study come out the same? Only effects that are clear in the real records can be lost."""
    for detail in evaluation.of_kind("effects"):
        none = 0.0 if detail.data.get("measure") == "difference" else 1.0
        clear = [
            row
            for row in detail.data.get("rows", ())
            if row.get("same_sign") is not None and _excludes(row.get("real"), none)
        ]
        if not clear:
            continue
        same = sum(bool(row["same_sign"]) for row in clear)
        overlaps = [max(0.0, row["overlap"]) for row in clear if row.get("overlap") is not None]
        sentence = (
            f"Of {len(clear)} effects that are clear in real records, in the "
            f"{detail.data.get('model')} model of {detail.data.get('outcome')}, {same} have the same sign "
            "in synthetic ones"
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


def _excludes(effect: Mapping[str, float] | None, none: float) -> bool:
    """Whether the interval of an effect excludes "no effect"."""
    if effect is None or effect.get("lower") is None or effect.get("upper") is None:
        return False
    return effect["lower"] > none or effect["upper"] < none


def _few(evaluation: Evaluation) -> Iterator[Verdict]:
    """Are there too few records to tell?"""
    names = ("synthetic_records", "train_records", "test_records")
    known = [measure for name in names if (measure := get(evaluation, name)) is not None]
    few = [measure for measure in known if number_of(measure) < FEW_RECORDS]
    if few:
        numbers = ", ".join(f"{shown(m.value)} {m.name.replace('_', ' ')}" for m in few)
        sentence = f"There are too few records to tell much ({numbers}): read the intervals, not the numbers."
        yield Verdict("too_few", "caution", sentence, *basis(few))


_RULES: tuple[Callable[[Evaluation], Iterable[Verdict]], ...] = (
    _memory,
    _utility,
    _collapse,
    _effects,
    _resemblance,
    _associations,
    _constraints,
    _few,
)
