"""The rules that turn an evaluation, a guarantee, attacks and studies into verdicts.

They are tables of :class:`~dpsynth.report.verdicts.verdict.Rule`, one beside the readers of their facts in
each module of this folder. A new verdict is one entry there, with a reader if nobody reads its facts yet.

If a measure has an interval, the rule uses the end that contradicts the verdict. So the noise of a small
table alone gives no verdict. A verdict is internal if one source it rests on is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from dpsynth.attacks.attempt import Attempt
from dpsynth.checks import Counted
from dpsynth.evaluation.results import Evaluation
from dpsynth.privacy.guarantee import Guarantee
from dpsynth.privacy.profile import Profile
from dpsynth.report.verdicts import privacy, utility
from dpsynth.report.verdicts.patients import PATIENTS
from dpsynth.report.verdicts.similarity import SIMILARITY
from dpsynth.report.verdicts.verdict import (
    TABLES,
    Evidence,
    Rule,
    Verdict,
    get,
    number_of,
    verdicts,
    within_few,
)
from dpsynth.report.words import shown
from dpsynth.studies.study import Estimates

#: below so many records of a table, intervals are too wide for most verdicts
FEW_RECORDS = 100


def few_records(evaluation: Evaluation) -> Iterator[Evidence]:
    """Are there too few records for sure results?"""
    known = [measure for table in TABLES if (measure := get(evaluation, f"{table}_records")) is not None]
    few = [measure for measure in known if number_of(measure) < FEW_RECORDS]
    counted = evaluation.counted
    sizes = (f"{shown(m.value)} {m.name.removesuffix('_records')} {counted}" for m in few)
    yield Evidence(basis=few, sizes=", ".join(sizes))


_FEW = Rule(
    "too_few",
    few_records,
    "There are too few {records} for sure results ({sizes}). Read the intervals, not the numbers.",
    open=lambda f: f.basis,
)

#: rules on an evaluation
RULES = (*privacy.MEMORY, *utility.USE, *utility.EFFECTS, *SIMILARITY, *PATIENTS, _FEW)


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
        within_few(
            privacy.beside(guarantee, verdict, evaluation), smallest(evaluation, verdict.tables), counted
        )
        for verdict in verdicts(RULES, evaluation, counted=counted)
    )


def answers(evaluation: Evaluation, *readers: Callable[..., Iterable[Evidence]]) -> tuple[Verdict, ...]:
    """Return what the rules of some readers say about an evaluation, whatever its size."""
    rules = [rule for rule in RULES if rule.of in readers]
    return tuple(verdicts(rules, evaluation, counted=evaluation.counted))


def judge_guarantee(guarantee: Guarantee | None, profile: Profile | None) -> tuple[Verdict, ...]:
    """Return what the rules say about a guarantee and the profile behind it, or about their absence."""
    return tuple(verdicts(privacy.GUARANTEE, guarantee, profile))


def judge_attempts(attempts: Sequence[Attempt], counted: Counted = Counted.RECORDS) -> tuple[Verdict, ...]:
    """Return what the rules say: bounds that were passed, beyond chance, or that none was.

    A result above its bound that chance explains is no verdict. Good is said only of results below.
    """
    return tuple(verdicts(privacy.ATTEMPTS, attempts, counted))


def judge_studies(studies: Sequence[Estimates], *, internal: bool) -> tuple[Verdict, ...]:
    """Return verdicts on the effects of each pre-specified regression from its noisy numbers alone.

    They are internal if no guarantee covers them.
    """
    return tuple(verdicts(utility.STUDIES, studies, internal))


def smallest(evaluation: Evaluation, tables: Sequence[str] = TABLES) -> int | None:
    """The number of records of the smallest of some tables. None if nothing says it."""
    records = [get(evaluation, f"{table}_records") for table in tables]
    return min((int(number_of(measure)) for measure in records if measure is not None), default=None)
