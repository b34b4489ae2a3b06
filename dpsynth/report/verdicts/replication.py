"""Rules about replication: does a study come out the same?

Of a study that was declared before the fit, the private estimates are judged, which people quote; of another
one, the regression fitted to the synthetic table.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dpsynth.evaluation.details import Comparison, Effect, EffectRow, Effects
from dpsynth.evaluation.records import Detail, Evaluation
from dpsynth.report.formats import decimals
from dpsynth.report.studies import widened
from dpsynth.report.verdicts.verdict import Severity, Verdict
from dpsynth.studies.estimates import Estimates

#: share of the effects of a study that must keep their sign
SAME_SIGN = 0.8
#: mean overlap of intervals that says the same study; two samples of one distribution have about 2/3
SAME_SIZE = 0.4
#: intervals so many times as wide as without noise are those of a quarter of the records
WIDE = 2.0


def effects(evaluation: Evaluation) -> Iterator[Verdict]:
    """Does a study come out the same? Only effects that are clear in the real records can be lost."""
    if evaluation.settings.get("effects") == [] and evaluation.settings.get("outcome") is not None:
        sentence = "No study was replicated: none was named, and none fits the outcome by itself."
        yield Verdict("no_study", "caution", sentence, (), True)
    for detail in evaluation.of(Effects):
        yield _replicated(detail)


def _replicated(detail: Detail[Effects]) -> Verdict:
    none = 0.0 if detail.data.measure == "difference" else 1.0
    rows = [
        (row.real, side)
        for row in detail.data.rows
        if (side := judged(row, detail.data)) is not None and side.same_sign is not None
    ]
    clear = [side for real, side in rows if _excludes(real, none)]
    study, where = f"{detail.data.model} model of {detail.data.outcome}", "synthetic ones"
    if detail.data.study is not None:
        study, where = f"{study} declared as {detail.data.study}", "its private estimates"
    if not rows:
        return _no_comparison(detail, study)
    if not clear:
        sentence = (
            f"No effect is clear in the real records, among {len(rows)} of the {study}, so that none can "
            f"be found again in {where}."
        )
        return Verdict("effects_unclear", "caution", sentence, (detail.name,), detail.internal)
    same = sum(bool(side.same_sign) for side in clear)
    overlaps = [max(0.0, side.overlap) for side in clear if side.overlap is not None]
    fitted = ", fitted with a prior because outcomes separate" if detail.data.separated else ""
    sentence = (
        f"Of {len(clear)} effect{'s' * (len(clear) > 1)} clear in real records, in the {study}{fitted}, "
        f"{same} {'has' if same == 1 else 'have'} the same sign in {where}"
    )
    overlap = sum(overlaps) / len(overlaps) if overlaps else None
    if overlap is not None:
        sentence += f"; their intervals overlap by {decimals(overlap, 2)} on average"
    share = same / len(clear)
    same_size = overlap is None or overlap >= SAME_SIZE
    if share >= SAME_SIGN and not same_size:
        sentence += ": the direction holds, the size does not"
    agree = share >= SAME_SIGN and same_size
    severity: Severity = "good" if agree else "caution" if share > 0.5 else "bad"
    if severity == "bad" and detail.data.study is not None and not _turned(detail.data, none):
        # an interval that leaves the sign open misleads nobody
        severity, sentence = "caution", f"{sentence}; where the sign differs, the interval leaves it open"
    code = "effects_agree" if agree else "effects_differ"
    return Verdict(code, severity, f"{sentence}.", (detail.name,), detail.internal)


def _turned(data: Effects, none: float) -> bool:
    """Whether a private interval excludes the sign that is clear in the real records."""
    return any(
        private.same_sign is False and _excludes(private, none) and _excludes(row.real, none)
        for row in data.rows
        if (private := row.declared) is not None
    )


def _no_comparison(detail: Detail[Effects], study: str) -> Verdict:
    """Say why nothing could be compared; it is bad where only the synthetic table is to blame."""
    problems = detail.data.problems
    if detail.data.study is not None:  # the synthetic table has no part in the private estimates
        problems = {table: problem for table, problem in problems.items() if table == "real"}
    told_why = [f"in the {table} records, {problem}" for table, problem in problems.items()]
    sides = "both sides" if detail.data.study is not None else "both tables"
    why = "; ".join(told_why) or f"no term can be told from {sides}"
    severity: Severity = "bad" if set(problems) == {"synthetic"} else "caution"
    sentence = f"Whether a study comes out the same could not be computed, with the {study}: {why}."
    return Verdict("effects_unknown", severity, sentence, (detail.name,), detail.internal)


def judge_studies(studies: Sequence[Estimates], *, internal: bool) -> tuple[Verdict, ...]:
    """Return what the released numbers alone say about each declared study.

    Parameters
    ----------
    studies : sequence of Estimates
    internal : bool
        Whether they may not be shared, since nothing was paid for them.
    """
    return tuple(_clear(estimates, internal) for estimates in studies)


def _clear(estimates: Estimates, internal: bool) -> Verdict:
    """How many effects a reader of the private estimates alone knows the direction of."""
    none = 0.0 if estimates.kind == "linear" else 1.0
    rows = estimates.effects()
    clear = sum(row["lower"] > none or row["upper"] < none for row in rows)
    sentence = (
        f"Of {len(rows)} declared effect{'s' * (len(rows) != 1)} of study {estimates.study}, {clear} "
        f"{'is' if clear == 1 else 'are'} clear (their interval excludes no effect); {widened(estimates)}."
    )
    severity: Severity = "good" if clear and estimates.widening < WIDE else "caution"
    return Verdict("declared_effects", severity, sentence, (f"declared[{estimates.study}]",), internal)


def judged(row: EffectRow, data: Effects) -> Comparison | None:
    """What of a row is judged: the private estimate of a declared study, else the synthetic table's."""
    return row if data.study is None else row.declared


def _excludes(effect: Effect | None, none: float) -> bool:
    """Whether the interval of an effect excludes "no effect"."""
    return effect is not None and (effect.lower > none or effect.upper < none)
