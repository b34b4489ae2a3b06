"""The rules that turn an evaluation into verdicts: a severity, one sentence, and the measures it rests on.

If a measure has an interval, the rule uses the end that contradicts the verdict. So the noise of a small
table alone gives no verdict. A verdict is internal if one measure it rests on is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from dpsynth.accounting.guarantee import Guarantee
from dpsynth.evaluation.records import Evaluation
from dpsynth.report.formats import shown
from dpsynth.report.verdicts import privacy, similarity, trajectories, utility
from dpsynth.report.verdicts.verdict import Verdict, basis, get, number_of, within_few

#: below so many records of a table, intervals are too wide for most verdicts
FEW_RECORDS = 100


def judge(evaluation: Evaluation, guarantee: Guarantee | None = None) -> tuple[Verdict, ...]:
    """Return what the rules say about an evaluation, of any generator's table.

    With a ``guarantee`` of the table, a finding of memorisation says what it allows.

    Rules whose measures are absent or undefined say nothing.

    Examples
    --------
    >>> from dpsynth.evaluation.records import Measure
    >>> copies = Measure("Memorisation", "copies_excess", 0.4, True, lower=0.35, upper=0.45)
    >>> p_values = [Measure("Memorisation", f"memory_p{of}", 0.001, True) for of in ("", "[copies_excess]")]
    >>> [(v.code, v.severity) for v in judge(Evaluation((copies, *p_values)))]
    [('memorises', 'bad')]
    """
    verdicts = [verdict for rule in _RULES for verdict in rule(evaluation)]
    return tuple(
        within_few(privacy.beside(guarantee, verdict, evaluation), smallest(evaluation, verdict.tables))
        for verdict in verdicts
    )


def smallest(evaluation: Evaluation, tables: Sequence[str] = ("synthetic", "train", "test")) -> int | None:
    """The number of records of the smallest of some tables. None if nothing says it."""
    records = [get(evaluation, f"{table}_records") for table in tables]
    return min((int(number_of(measure)) for measure in records if measure is not None), default=None)


def _few(evaluation: Evaluation) -> Iterator[Verdict]:
    """Are there too few records for sure results?"""
    names = ("synthetic_records", "train_records", "test_records")
    known = [measure for name in names if (measure := get(evaluation, name)) is not None]
    few = [measure for measure in known if number_of(measure) < FEW_RECORDS]
    if few:
        numbers = ", ".join(f"{shown(m.value)} {m.name.replace('_', ' ')}" for m in few)
        sentence = (
            f"There are too few records for sure results ({numbers}). Read the intervals, not the numbers."
        )
        yield Verdict("too_few", "open", sentence, *basis(few))


_RULES: tuple[Callable[[Evaluation], Iterable[Verdict]], ...] = (
    privacy.memory,
    utility.prediction,
    utility.probabilities,
    utility.collapse,
    utility.given_away,
    utility.effects,
    similarity.told_apart,
    similarity.clipped,
    similarity.tails,
    similarity.means,
    similarity.point_masses,
    similarity.missing_together,
    similarity.single_columns,
    similarity.associations,
    similarity.constraints,
    similarity.finer_than_declared,
    similarity.not_allowed,
    trajectories.whole_patients,
    trajectories.over_time,
    trajectories.rows_and_gaps,
    trajectories.mixed_effects,
    _few,
)
