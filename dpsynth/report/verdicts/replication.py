"""Rules about replication: does a study come out the same?"""

from __future__ import annotations

from collections.abc import Iterator

from dpsynth.evaluation.records import Evaluation
from dpsynth.report.details import EFFECTS, Effect, Effects, Of
from dpsynth.report.verdicts.verdict import Severity, Verdict

#: share of the effects of a study that must keep their sign
SAME_SIGN = 0.8
#: mean overlap of intervals that says the same study; two samples of one distribution have about 2/3
SAME_SIZE = 0.4


def effects(evaluation: Evaluation) -> Iterator[Verdict]:
    """Does a study come out the same? Only effects that are clear in the real records can be lost."""
    if evaluation.settings.get("effects") == [] and evaluation.settings.get("outcome") is not None:
        sentence = "No study was replicated: none was named, and none fits the outcome by itself."
        yield Verdict("no_study", "caution", sentence, (), True)
    for detail in EFFECTS.of(evaluation):
        none = 0.0 if detail.data["measure"] == "difference" else 1.0
        rows = [row for row in detail.data["rows"] if row["same_sign"] is not None]
        clear = [row for row in rows if _excludes(row["real"], none)]
        study = f"{detail.data['model']} model of {detail.data['outcome']}"
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
        overlaps = [max(0.0, row["overlap"]) for row in clear if row["overlap"] is not None]
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


def _no_comparison(detail: Of[Effects], study: str) -> Verdict:
    """Say why nothing could be compared; it is bad where only the synthetic table is to blame."""
    problems = detail.data.get("problems", {})
    told_why = [f"in the {table} records, {problem}" for table, problem in problems.items()]
    why = "; ".join(told_why) or "no term can be told from both tables"
    severity: Severity = "bad" if set(problems) == {"synthetic"} else "caution"
    sentence = f"Whether a study comes out the same could not be computed, with the {study}: {why}."
    return Verdict("effects_unknown", severity, sentence, (detail.name,), detail.internal)


def _excludes(effect: Effect | None, none: float) -> bool:
    """Whether the interval of an effect excludes "no effect"."""
    return effect is not None and (effect["lower"] > none or effect["upper"] < none)
