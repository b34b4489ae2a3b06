"""What rules about patients with several rows read: rows, gaps, correlations over time, whole patients."""

from __future__ import annotations

from collections.abc import Iterator

from dpsynth.checks import few
from dpsynth.evaluation.results import Evaluation, Measure
from dpsynth.report.verdicts.similarity import DISTINGUISHABLE, GIVES_AWAY, OBVIOUS
from dpsynth.report.verdicts.verdict import (
    Evidence,
    Rule,
    column_of,
    get,
    least,
    most,
    number_of,
    of_columns,
)
from dpsynth.report.words import decimals, measured

#: distance of the numbers of rows, or of the gaps, that is small, and one that is large
CLOSE, FAR = 0.05, 0.1
#: difference of a correlation over time that is small, and one that is large
LAG_CLOSE, LAG_FAR = 0.05, 0.2


def whole_patients(evaluation: Evaluation) -> Iterator[Evidence]:
    """Can synthetic patients be separated from real ones by their rows?"""
    scores = [m for m in of_columns(evaluation, "patient_auc_") if "[" not in m.name]
    if not scores:
        return
    best = max(scores, key=number_of)
    losses = of_columns(evaluation, "patient_auc_loss[")
    losses = [m for m in losses if number_of(m) >= GIVES_AWAY and least(m) > 0]
    losses = sorted(losses, key=number_of, reverse=True)[:3]
    surely = max(map(least, scores))
    yield Evidence(
        basis=scores,
        losses=losses,
        best=best,
        value=number_of(best),
        surely=surely,
        easily=" easily" if surely > OBVIOUS else "",
        given=f". Shuffling lowers it most for {few(map(column_of, losses))}" if losses else "",
    )


def rows_and_gaps(evaluation: Evaluation) -> Iterator[Evidence]:
    """Have patients as many rows as real ones, as far apart?"""
    words = {"rows_tvd": "number of rows", "gap_ks": "times between rows"}
    known = [m for name in words if (m := get(evaluation, name)) is not None]
    beyond = [m for m in known if least(m) > CLOSE]
    if known:
        yield Evidence(
            basis=known,
            beyond=beyond,
            surely=max(map(least, known)),
            value=max(map(number_of, known)),
            said=", ".join(f"{words[m.name]} {measured(m)}" for m in beyond or known),
        )


def over_time(evaluation: Evaluation) -> Iterator[Evidence]:
    """Do the values of a patient belong together as those of a real one?"""
    known = [m for m in of_columns(evaluation, "lag") if "_difference[" in m.name]
    if not known:
        return
    beyond = sorted((m for m in known if _surely(m) > LAG_CLOSE), key=_surely, reverse=True)
    worst = max(known, key=lambda m: abs(number_of(m)))
    yield Evidence(
        basis=known,
        beyond=beyond,
        surely=max(map(_surely, known)),
        size=abs(number_of(worst)),
        named=few((f"{_lag(m)} {number_of(m):+.2f}" for m in beyond), 3),
        largest=f"{decimals(abs(number_of(worst)), 2)} ({_lag(worst)})",
    )


def _lag(measure: Measure) -> str:
    return f"{column_of(measure)}, {measure.name.split('_')[0].removeprefix('lag')} later"


def _surely(measure: Measure) -> float:
    """The least size of a difference within its interval."""
    return max(least(measure), -most(measure), 0.0)


#: rules on patients with several rows
PATIENTS = (
    Rule("patients_distinguishable", whole_patients, bad=lambda f: f.surely > OBVIOUS,
         caution=lambda f: f.surely > DISTINGUISHABLE, rests_on=("basis", "losses"),
         sentence="Synthetic patients can{easily} be separated from real ones. A classifier of their rows "
         "has an AUC of {best}{given}."),
    Rule("patients_resemble", whole_patients, good=lambda f: f.value <= DISTINGUISHABLE,
         sentence="Synthetic patients are hard to separate from real ones. A classifier of their rows has "
         "an AUC of {best}."),
    Rule("lags_differ", over_time, bad=lambda f: f.surely > LAG_FAR, caution=lambda f: f.surely > LAG_CLOSE,
         rests_on=("beyond",),
         sentence="The values of a patient go together too little or too much. Differences of correlations "
         "with later values: {named}."),
    Rule("lags_hold", over_time, good=lambda f: f.size <= LAG_CLOSE,
         sentence="The values of a patient go together as those of a real one. The correlation with later "
         "values differs by at most {largest}."),
    Rule("rows_differ", rows_and_gaps, bad=lambda f: f.surely > FAR, caution=lambda f: f.surely > CLOSE,
         rests_on=("beyond",),
         sentence="The rows of patients differ from real ones in number or in time. Distances (0 is best): "
         "{said}."),
    Rule("rows_hold", rows_and_gaps, good=lambda f: f.value <= CLOSE,
         sentence="Patients have as many rows as real ones, as far apart. Distances (0 is best): {said}."),
)  # fmt: skip
