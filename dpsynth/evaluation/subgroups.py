"""Errors by subgroup: is each group there in its real share, and are predictions as good in it as elsewhere?

A subgroup is one category of a column, or one band of an age in years. Its representation is its share of
the training and of the synthetic records. Its errors are those of one model, in held-out records of the
subgroup. They are the AUC and calibration in the large: the observed minus the predicted share of the
event. The model learns once from all synthetic records, and once from all training records.

A subgroup with fewer than 20 held-out records with the event, or without it, has no scores: their
intervals would say nothing. The intervals are over records, with the model held fixed. AUCs have DeLong's,
shares Wilson's and differences of shares Newcombe's. Calibration has Student's interval of a mean.

Everything here reads real records without noise: it is confidential.

References ---------- Van Calster et al. (2019), "Calibration: the Achilles heel of predictive analytics",
BMC Medicine 17.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from dpsynth.evaluation.estimates import Estimate, auc, share, share_difference
from dpsynth.evaluation.models import (
    Prediction,
    chosen_models,
    mean_interval,
    outcome_kind,
)
from dpsynth.evaluation.prediction import Arms, learned_arms
from dpsynth.evaluation.results import Findings, Row
from dpsynth.evaluation.settings import Grouping, Settings
from dpsynth.evaluation.tables import Progress, Tables, on_part, silent

#: a subgroup with fewer held-out records with the event, or without it, has no scores
FEWEST = 20


def compare_subgroups(
    tables: Tables, settings: Settings, rng: np.random.Generator, progress: Progress = silent
) -> Findings:
    """Compare shares and errors of each subgroup. Nothing is measured where no column makes any.

    Errors need held-out records and an outcome of two categories. They are those of the first of the models.
    """
    schema, outcome = tables.schema, settings.predicted(tables.schema)
    chosen = settings.grouped(schema)
    if not chosen:
        return Findings()
    found = Findings()
    event = model = tested = None
    note = ""
    if outcome is None:
        note = "The schema names no outcome, and so nothing is predicted."
    elif outcome_kind(schema.column(outcome)) != "binary":
        note = f"Scores need an outcome of two categories, and {outcome} is none."
    elif tables.test is None:
        note = f"Scores need held-out {schema.counted}, and none were given."
    else:
        event = f"{outcome} = {schema.column(outcome).categories[1]}"
        model, first = next(iter(chosen_models("binary", settings.models).items()))
        tested = learned_arms(tables, tables.test, settings, outcome, {model: first}, rng, progress)
        total = len(tables.test)
        found.join(on_part((), "errors by subgroup", tested.tested, total, settings.level, schema.counted))
    of = {"event": event, "model": model, "level": settings.level, "fewest": FEWEST, "note": note}
    rows = [{**row, **of} for grouping in chosen for row in _rows(grouping, tables, settings.level, tested)]
    found.frame("subgroups", rows, confidential=True)
    if tested is not None:
        scores = [row for grouping in chosen for row in _all_scores(grouping, settings.level, tested)]
        found.frame("subgroup_scores", scores, confidential=True)
    return found


def _rows(grouping: Grouping, tables: Tables, level: float, tested: Arms | None) -> Iterator[Row]:
    """The shares of each subgroup, and how many held-out records of it have a known outcome."""
    made, real = (grouping.codes(frame) for frame in (tables.synthetic, tables.train))
    for code, name in enumerate(grouping.names):
        synthetic, train = (
            share(int((codes == code).sum()), len(codes), level, method="wilson") for codes in (made, real)
        )
        row: dict[str, object] = {"column": grouping.column.name, "subgroup": name}
        for part, found in (
            ("real", train),
            ("synthetic", synthetic),
            ("difference", share_difference(synthetic, train)),
        ):
            row |= {part: found.value, f"{part}_lower": found.lower, f"{part}_upper": found.upper}
        row |= {"records": None, "events": None}
        if tested is not None:
            among = grouping.codes(tested.records) == code
            row |= {"records": int(among.sum()), "events": int((tested.y == 1)[among].sum())}
        yield row


def _all_scores(grouping: Grouping, level: float, tested: Arms) -> Iterator[Row]:
    """Errors in each subgroup's held-out records, by a model of each table."""
    for code, name in enumerate(grouping.names):
        among, positive = grouping.codes(tested.records) == code, tested.y == 1
        for arm, learned in tested.learned.items():
            prediction = next(iter(learned.predictions.values()))
            scores, why = _scores(prediction, positive, among, level)
            for score, found in scores.items():
                ends = (None,) * 3 if found is None else (found.value, found.lower, found.upper)
                yield {
                    "column": grouping.column.name,
                    "subgroup": name,
                    "trained_on": arm,
                    "score": score,
                    **dict(zip(("value", "lower", "upper"), ends, strict=True)),
                    "why": why,
                }


def _scores(
    prediction: Prediction, positive: NDArray[np.bool_], among: NDArray[np.bool_], level: float
) -> tuple[dict[str, Estimate | None], str]:
    """AUC and calibration in the large, or why there are none."""
    y = positive[among]
    events = int(y.sum())
    none: dict[str, Estimate | None] = {"auc": None, "calibration": None}
    if min(events, len(y) - events) < FEWEST:
        return none, "too few"
    if prediction.predicted is None:
        return none, prediction.failure
    risk = prediction.predicted[among, 1]
    calibration = calibration_in_the_large(y, risk, level)
    return {"auc": auc(risk[y], risk[~y], level), "calibration": calibration}, ""


def calibration_in_the_large(y: NDArray[np.bool_], risk: NDArray[np.float64], level: float) -> Estimate:
    """Observed minus predicted share of the event, with Student's interval. Needs two records."""
    excess = y.astype(np.float64) - risk
    interval = mean_interval(excess, level)
    assert interval is not None
    return Estimate(float(excess.mean()), *interval)
