"""Rules that turn an evaluation into findings: a severity, one sentence, and the measures it rests on.

The rules are few and written down, so that two readers of the same numbers come to the same words. Where a
measure has an interval, the rule looks at the end that speaks against the finding: a finding that the noise
of a small table could have made is not given. A finding is internal if one measure it rests on is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dpsynth.accounting.explain import percent
from dpsynth.accounting.ledger.guarantee import round_up
from dpsynth.evaluation.records import Evaluation, shown
from dpsynth.report.findings import believable, trust
from dpsynth.report.findings.calibration import calibration
from dpsynth.report.findings.verdict import Severity, Verdict, basis, get, least, number_of, told

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
#: without held-out records, a share of copies that is worth a word
COPIED = 0.01
#: a bound on an attack's accuracy that leaves little of a promise
WEAK_ACCURACY = 0.9
#: an epsilon above which next to nothing is promised: tier 3 of Ponomareva et al. 2023, "How to DP-fy ML",
#: Journal of Artificial Intelligence Research 77
WEAK_EPSILON = 10.0


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
    if any(verdict.code == "values_remembered" for verdict in found):
        found = [verdict for verdict in found if verdict.code != "no_memory_found"]
    records = [get(evaluation, f"{table}_records") for table in ("synthetic", "train", "test")]
    if any(measure is not None and number_of(measure) < NO_PRAISE for measure in records):
        found = [verdict for verdict in found if verdict.severity != "good"]
    return tuple(found)


def of_guarantee(source: ReportSource) -> tuple[Verdict, ...]:
    """Return what the rules find in the guarantee of a table, or in its absence."""
    if source.guarantee is None:
        return (_risk("no_guarantee", "caution", "No guarantee is known for this table: nothing says what an "
                      "attack that was not tried can find."),)  # fmt: skip
    if not source.guarantee.private:
        return (_risk("not_private", "bad", str(source.guarantee)),)
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
        epsilon = 0.0 if source.delta is None else source.profile.epsilon(source.delta)
        right = percent(accuracy)
        often = f"right {right} times in 100" if right != "100" else "always right"
        room = f"it leaves room for a guess that is {often}"
        if epsilon > WEAK_EPSILON:
            million = math.log(1e6)
            factor = f"{math.ceil(math.exp(epsilon)):,}" if epsilon < million else "more than a million"
            sentence = (
                f"The guarantee is too weak to rely on: ε is {round_up(epsilon)}, so that an event may be "
                f"{factor} times as probable with a patient as without, and {room}. An ε above 10 is "
                "commonly held to be a weak promise or none."
            )
            found.append(_risk("weak_guarantee", "bad", sentence))
        elif accuracy > WEAK_ACCURACY:
            found.append(_risk("weak_guarantee", "caution", f"The guarantee is weak: {room}."))
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
    "membership_tpr_at_1pct": _Sign(
        1.0, 0.05, "an attack that suspects 1 in 100 new records finds a share of training records of"
    ),
    "privacy_loss": _Sign(0.0, 0.1, "nearest-neighbour accuracy rises from training to new records by"),
}


def _floor(evaluation: Evaluation, name: str) -> float:
    """What a sign must surely exceed: what chance gives, where that is measured."""
    chance = get(evaluation, f"{name}_chance")
    return _SIGNS[name].floor if chance is None else number_of(chance)


def _memory(evaluation: Evaluation) -> Iterator[Verdict]:
    """Copies, membership inference and privacy loss: does the table know its training records?"""
    known = [measure for name in _SIGNS if (measure := get(evaluation, name)) is not None]
    judged = [measure for measure in known if measure.lower is not None]
    caught = [m for m in judged if m.lower is not None and m.lower > _floor(evaluation, m.name)]
    # without an interval, only what is clear is worth a word
    suspected = [m for m in known if m.lower is None and number_of(m) > _SIGNS[m.name].clear]
    differ, coincide = get(evaluation, "nn_train_test_p"), get(evaluation, "copies_expected_share")
    if caught or suspected:
        bad = any(number_of(m) > _SIGNS[m.name].clear for m in caught)
        found = caught + suspected
        reasons = "; ".join(f"{_SIGNS[m.name].words} {told(m)}" for m in found)
        shifted = differ is not None and number_of(differ) < DIFFERENT
        if shifted and not any(m.name == "copies_excess" and least(m) > MANY_COPIES for m in found):
            yield Verdict(
                "no_baseline",
                "caution",
                "Held-out records differ from training ones, so nothing tells memory from that difference "
                f"({reasons}).",
                *basis(found),
                "risk",
            )
            return
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


def _lone_values(evaluation: Evaluation) -> Iterator[Verdict]:
    """Which columns repeat values that one training record alone has? Their intervals hold together."""
    differ = get(evaluation, "nn_train_test_p")
    if differ is not None and number_of(differ) < DIFFERENT:
        return
    known = [m for m in evaluation.measures if m.name.startswith("lone_values_train[")]
    caught = [m for m in known if m.lower is not None and m.lower > 0.5 + MEMBERSHIP_MARGIN]
    if caught:
        caught.sort(key=number_of, reverse=True)
        named = [f"{m.name[m.name.index('[') + 1 : -1]} ({told(m)})" for m in caught[:3]]
        more = f" and {len(caught) - 3} more" if len(caught) > 3 else ""
        sentence = (
            "Single values give training records away: where a synthetic record has a value that one real "
            "person alone has, that person is a training one more often than by chance (0.5) in "
            f"{', '.join(named)}{more}."
        )
        yield Verdict("values_remembered", "bad", sentence, *basis(caught), "risk")


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
    _lone_values,
    trust.utility,
    calibration,
    trust.collapse,
    trust.effects,
    trust.resemblance,
    believable.clipped,
    believable.tails,
    believable.point_masses,
    believable.missing_together,
    believable.single_columns,
    trust.associations,
    trust.constraints,
    believable.finer_than_declared,
    _few,
)
