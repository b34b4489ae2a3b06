"""Errors by subgroup: is each group there in its real share, and are predictions as good in it as elsewhere?

A subgroup is one category of a column, or one band of an age in years. Its representation is its share of the
training and of the synthetic records. Its errors are those of one model, in held-out records of the subgroup.
They are the AUC and calibration in the large: the observed minus the predicted share of the event. The model
learns once from all synthetic records, and once from all training records.

A subgroup with fewer than 20 held-out records with the event, or without it, has no scores: their intervals
would say nothing. The intervals are over records, with the model held fixed. AUCs have DeLong's, shares
Wilson's and differences of shares Newcombe's. Calibration has Student's interval of a mean.

Everything here reads real records without noise: it is confidential.

References
----------
Van Calster et al. (2019), "Calibration: the Achilles heel of predictive analytics", BMC Medicine 17.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpsynth.evaluation.details import SubgroupRow, Subgroups, SubgroupScores, TrainedOn
from dpsynth.evaluation.estimates import Estimate, auc, share, share_difference
from dpsynth.evaluation.groups import Grouping
from dpsynth.evaluation.records import Detail, Findings, Part
from dpsynth.evaluation.settings import Settings
from dpsynth.evaluation.tables import LEARNED, TESTED, Progress, Tables, on_part, random_rows, silent, within
from dpsynth.evaluation.utility.models import Prediction, chosen_models, learn_and_predict
from dpsynth.evaluation.utility.outcomes import known_outcomes, mean_interval, outcome_kind

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
    event, tested, note = None, None, ""
    if outcome is None:
        note = "The schema names no outcome, and so nothing is predicted."
    elif outcome_kind(schema.column(outcome)) != "binary":
        note = f"Scores need an outcome of two categories, and {outcome} is none."
    elif tables.test is None:
        note = "Scores need held-out records, and none were given."
    else:
        event = f"{outcome} = {schema.column(outcome).categories[1]}"
        tested = _tested(tables, tables.test, settings, outcome, rng, progress)
    rows = [row for grouping in chosen for row in _rows(grouping, tables, settings.level, tested)]
    model = None if tested is None else tested.model
    data = Subgroups(event, model, settings.level, FEWEST, note, tuple(rows))
    parts = () if tested is None else tested.parts
    return Findings(details=(Detail("subgroups", "subgroups", True, data),), parts=parts)


@dataclass(frozen=True)
class _Tested:
    """Held-out records with a known outcome, which of them have the event, and predictions."""

    records: pd.DataFrame
    positive: NDArray[np.bool_]
    model: str
    predictions: Mapping[TrainedOn, Prediction]
    parts: tuple[Part, ...]


def _tested(
    tables: Tables,
    test: pd.DataFrame,
    settings: Settings,
    outcome: str,
    rng: np.random.Generator,
    progress: Progress,
) -> _Tested:
    schema = tables.schema
    part = test.iloc[random_rows(len(test), settings.most(schema, TESTED), rng)]
    known, y = known_outcomes(part, schema, outcome)
    name, model = next(iter(chosen_models("binary", settings.models).items()))
    limit = settings.most(schema, LEARNED)
    arms: dict[TrainedOn, pd.DataFrame] = {"synthetic": tables.synthetic}
    if settings.reference:
        arms["train"] = tables.train
    predictions: dict[TrainedOn, Prediction] = {}
    for place, (arm, table) in enumerate(arms.items()):
        if not len(y):
            predictions[arm] = Prediction(None, failure=f"no held-out record has a known {outcome}")
            continue
        learned = learn_and_predict(
            table.iloc[random_rows(len(table), limit, rng)],
            known,
            schema,
            outcome,
            models={name: model},
            rng=rng,
            progress=within(progress, place / len(arms), (place + 1) / len(arms)),
        )
        predictions[arm] = learned.predictions[name]
    parts = on_part((), "errors by subgroup", len(part), len(test), settings.level).parts
    return _Tested(known, y == 1, name, predictions, parts)


def _rows(grouping: Grouping, tables: Tables, level: float, tested: _Tested | None) -> Iterator[SubgroupRow]:
    made, real = (grouping.codes(frame) for frame in (tables.synthetic, tables.train))
    for code, name in enumerate(grouping.names):
        synthetic, train = (
            share(int((codes == code).sum()), len(codes), level, method="wilson") for codes in (made, real)
        )
        records = events = None
        scores: tuple[SubgroupScores, ...] = ()
        if tested is not None:
            among = grouping.codes(tested.records) == code
            records, events = int(among.sum()), int(tested.positive[among].sum())
            scores = tuple(
                _scores(arm, prediction, tested.positive, among, level)
                for arm, prediction in tested.predictions.items()
            )
        difference = share_difference(synthetic, train)
        yield SubgroupRow(grouping.column.name, name, train, synthetic, difference, records, events, scores)


def _scores(
    arm: TrainedOn,
    prediction: Prediction,
    positive: NDArray[np.bool_],
    among: NDArray[np.bool_],
    level: float,
) -> SubgroupScores:
    y = positive[among]
    events = int(y.sum())
    if min(events, len(y) - events) < FEWEST:
        return SubgroupScores(arm, None, None, "too few")
    if prediction.predicted is None:
        return SubgroupScores(arm, None, None, prediction.failure)
    risk = prediction.predicted[among, 1]
    calibration = calibration_in_the_large(y, risk, level) if prediction.probabilities else None
    return SubgroupScores(arm, auc(risk[y], risk[~y], level), calibration, "")


def calibration_in_the_large(y: NDArray[np.bool_], risk: NDArray[np.float64], level: float) -> Estimate:
    """Observed minus predicted share of the event, with Student's interval. Needs two records."""
    excess = y.astype(np.float64) - risk
    interval = mean_interval(excess, level)
    assert interval is not None
    return Estimate(float(excess.mean()), *interval)
