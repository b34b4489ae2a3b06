"""Rules about disclosure: does the table know its training records?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from dpsynth.checks import few
from dpsynth.evaluation.records import Evaluation
from dpsynth.report.formats import measured
from dpsynth.report.verdicts.verdict import Severity, Verdict, basis, get, least, number_of

#: p-value below which held-out records are no baseline, and the share of copies that is memory all the same
DIFFERENT, MANY_COPIES = 0.01, 0.1
#: share of held-out records that equal a training one, above which copies cannot be told from coincidence
COINCIDE = 0.5
#: a guess of who was in the training table counts when it surely exceeds 1/2 by this much
MEMBERSHIP_MARGIN = 0.02
#: without held-out records, a share of copies that is worth a word
COPIED = 0.01


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
    "membership_tpr_at_1pct": _Sign(
        1.0, 0.05, "an attack that suspects 1 in 100 new records finds a share of training records of"
    ),
    "privacy_loss": _Sign(0.0, 0.1, "nearest-neighbour accuracy rises from training to new records by"),
}


def _floor(evaluation: Evaluation, name: str) -> float:
    """What a sign must surely exceed: what chance gives, where that is measured."""
    chance = get(evaluation, f"{name}_chance")
    return _SIGNS[name].floor if chance is None else number_of(chance)


def memory(evaluation: Evaluation) -> Iterator[Verdict]:
    """Copies, membership inference and privacy loss: does the table know its training records?"""
    known = [measure for name in _SIGNS if (measure := get(evaluation, name)) is not None]
    judged = [measure for measure in known if measure.lower is not None]
    caught = [m for m in judged if m.lower is not None and m.lower > _floor(evaluation, m.name)]
    # without an interval, only what is clear is worth a word
    suspected = [m for m in known if m.lower is None and number_of(m) > _SIGNS[m.name].clear]
    differ, coincide = get(evaluation, "nn_train_test_p"), get(evaluation, "copies_expected_share")
    if caught or suspected:
        bad = any(number_of(m) > _SIGNS[m.name].clear for m in caught)
        signs = caught + suspected
        reasons = "; ".join(f"{_SIGNS[m.name].words} {measured(m)}" for m in signs)
        shifted = differ is not None and number_of(differ) < DIFFERENT
        if shifted and not any(m.name == "copies_excess" and least(m) > MANY_COPIES for m in signs):
            yield Verdict(
                "no_baseline",
                "caution",
                "Held-out records differ from training ones, so nothing tells memory from that difference "
                f"({reasons}).",
                *basis(signs),
                "risk",
            )
            return
        start = "The table remembers training records" if bad else "The table may remember training records"
        severity: Severity = "bad" if bad else "caution"
        yield Verdict("memorises", severity, f"{start}: {reasons}.", *basis(signs), "risk")
    elif judged and coincide is not None and least(coincide) > COINCIDE:
        yield Verdict(
            "no_baseline",
            "caution",
            f"A share of {measured(coincide)} of the held-out records equal a training record: they are the "
            "same people, or the table has few different records. Nothing tells memory from coincidence.",
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
            f"A share of {measured(copied)} of the synthetic records equal a training record. Without "
            "held-out records nothing tells memory from coincidence.",
            *basis([copied]),
            "risk",
        )


def lone_values(evaluation: Evaluation) -> Iterator[Verdict]:
    """Which columns repeat values that one training record alone has? Their intervals hold together."""
    differ = get(evaluation, "nn_train_test_p")
    if differ is not None and number_of(differ) < DIFFERENT:
        return
    known = [m for m in evaluation.measures if m.name.startswith("lone_values_train[")]
    caught = [m for m in known if m.lower is not None and m.lower > 0.5 + MEMBERSHIP_MARGIN]
    if caught:
        caught.sort(key=number_of, reverse=True)
        named = [f"{m.name[m.name.index('[') + 1 : -1]} ({measured(m)})" for m in caught]
        sentence = (
            "Single values give training records away: where a synthetic record has a value that one real "
            "person alone has, that person is a training one more often than by chance (0.5) in "
            f"{few(named, 3)}."
        )
        yield Verdict("values_remembered", "bad", sentence, *basis(caught), "risk")
