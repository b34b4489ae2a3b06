"""The rules that turn an evaluation into verdicts: a severity, one sentence, and the measures it rests on.

If a measure has an interval, the rule uses the end that contradicts the verdict. So the noise of a small
table alone gives no verdict. A verdict is internal if one measure it rests on is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from dpsynth.checks import few
from dpsynth.evaluation.effects import regressions_of
from dpsynth.evaluation.results import Evaluation, Measure
from dpsynth.privacy.guarantee import Guarantee
from dpsynth.report.verdicts import privacy, similarity, utility
from dpsynth.report.verdicts.similarity import DISTINGUISHABLE, GIVES_AWAY, OBVIOUS
from dpsynth.report.verdicts.utility import SAME_SIGN, effect_sizes
from dpsynth.report.verdicts.verdict import Severity, Verdict, basis, get, least, most, number_of, within_few
from dpsynth.report.words import decimals, measured, shown

# ------------------------------------------------------------------------------------------------
# Rules about patients with several rows: rows, gaps, correlations over time, effects, whole patients.

#: distance of the numbers of rows, or of the gaps, that is small, and one that is large
CLOSE, FAR = 0.05, 0.1
#: difference of a correlation over time that is small, and one that is large
LAG_CLOSE, LAG_FAR = 0.05, 0.2


def whole_patients(evaluation: Evaluation) -> Iterator[Verdict]:
    """Can synthetic patients be separated from real ones by their rows?"""
    found = [m for m in evaluation.measures if m.name.startswith("patient_auc_") and "[" not in m.name]
    found = [m for m in found if m.value is not None]
    if not found:
        return
    best = max(found, key=number_of)
    said = f"A classifier of their rows has an AUC of {measured(best)}"
    losses = [m for m in evaluation.measures if m.name.startswith("patient_auc_loss[")]
    losses = [m for m in losses if number_of(m) >= GIVES_AWAY and least(m) > 0]
    losses = sorted(losses, key=number_of, reverse=True)[:3]
    given = f". Shuffling lowers it most for {few(map(_of, losses))}" if losses else ""
    worst = max(map(least, found))
    if worst > DISTINGUISHABLE:
        easily = " easily" if worst > OBVIOUS else ""
        severity: Severity = "bad" if worst > OBVIOUS else "caution"
        sentence = f"Synthetic patients can{easily} be separated from real ones. {said}{given}."
        yield Verdict("patients_distinguishable", severity, sentence, *basis([*found, *losses]))
    elif number_of(best) <= DISTINGUISHABLE:
        sentence = f"Synthetic patients are hard to separate from real ones. {said}."
        yield Verdict("patients_resemble", "good", sentence, *basis(found))


def rows_and_gaps(evaluation: Evaluation) -> Iterator[Verdict]:
    """Have patients as many rows as real ones, as far apart?"""
    words = {"rows_tvd": "number of rows", "gap_ks": "times between rows"}
    known = {name: m for name in words if (m := get(evaluation, name)) is not None}
    beyond = {name: m for name, m in known.items() if least(m) > CLOSE}
    said = ", ".join(f"{words[name]} {measured(m)}" for name, m in (beyond or known).items())
    if beyond:
        severity: Severity = "bad" if any(least(m) > FAR for m in beyond.values()) else "caution"
        sentence = (
            f"The rows of patients differ from real ones in number or in time. Distances (0 is best): {said}."
        )
        yield Verdict("rows_differ", severity, sentence, *basis(beyond.values()))
    elif known and all(number_of(m) <= CLOSE for m in known.values()):
        sentence = f"Patients have as many rows as real ones, as far apart. Distances (0 is best): {said}."
        yield Verdict("rows_hold", "good", sentence, *basis(known.values()))


def over_time(evaluation: Evaluation) -> Iterator[Verdict]:
    """Do the values of a patient belong together as those of a real one?"""
    known = [m for m in evaluation.measures if m.name.startswith("lag") and "_difference[" in m.name]
    beyond = sorted((m for m in known if _surely(m) > LAG_CLOSE), key=_surely, reverse=True)
    if beyond:
        severity: Severity = "bad" if _surely(beyond[0]) > LAG_FAR else "caution"
        named = few((f"{_lag(m)} {number_of(m):+.2f}" for m in beyond), 3)
        sentence = (
            "The values of a patient go together too little or too much. Differences of correlations with "
            f"later values: {named}."
        )
        yield Verdict("lags_differ", severity, sentence, *basis(beyond))
    elif known and all(abs(number_of(m)) <= LAG_CLOSE for m in known):
        worst = max(known, key=lambda m: abs(number_of(m)))
        sentence = (
            "The values of a patient go together as those of a real one. The correlation with later values "
            f"differs by at most {decimals(abs(number_of(worst)), 2)} ({_lag(worst)})."
        )
        yield Verdict("lags_hold", "good", sentence, *basis(known))


def mixed_effects(evaluation: Evaluation) -> Iterator[Verdict]:
    """Are effects of mixed models replicated? One verdict on all numbers, of effects clear in real rows."""
    models = [each for each in regressions_of(evaluation) if each.model == "mixed"]
    pairs = [pair for each in models for pair in utility.judged(each)]
    clear = [effect for real, effect in pairs if real is not None and real.lower * real.upper > 0]
    if not clear:
        return
    same = sum(bool(row.same_sign) for row in clear)
    overlaps = [max(0.0, row.overlap) for row in clear if row.overlap is not None]
    severity: Severity = (
        "good" if same >= SAME_SIGN * len(clear) else "caution" if same > len(clear) / 2 else "bad"
    )
    sentence = (
        f"{'' if severity == 'good' else 'Only '}{same} of {len(clear)} clear effects of mixed models "
        f"{'has' if same == 1 else 'have'} the same sign in synthetic patients."
    )
    names = tuple(each.regression for each in models)
    internal = any(each.confidential for each in models)
    people = min(each.n_real for each in models)
    code = "mixed_effects_agree" if severity == "good" else "mixed_effects_differ"
    yield Verdict(code, severity, sentence, names, internal, people=people)
    if severity == "good" and overlaps:
        yield effect_sizes(overlaps, ", of mixed models", names, internal, people)


def _of(measure: Measure) -> str:
    return measure.name[measure.name.index("[") + 1 : -1]


def _lag(measure: Measure) -> str:
    return f"{_of(measure)}, {measure.name.split('_')[0].removeprefix('lag')} later"


def _surely(measure: Measure) -> float:
    """The least size of a difference within its interval."""
    return max(least(measure), -most(measure), 0.0)


#: below so many records of a table, intervals are too wide for most verdicts
FEW_RECORDS = 100


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
    whole_patients,
    over_time,
    rows_and_gaps,
    mixed_effects,
    _few,
)
