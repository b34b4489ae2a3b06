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

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from dpsynth.evaluation.details import SubgroupRow, Subgroups, SubgroupScores, TrainedOn
from dpsynth.evaluation.estimates import Estimate, auc, share, share_difference
from dpsynth.evaluation.groups import Grouping
from dpsynth.evaluation.records import Detail, Findings, Part
from dpsynth.evaluation.settings import Settings
from dpsynth.evaluation.tables import Progress, Tables, on_part, silent
from dpsynth.evaluation.utility.evaluator import Arms, learned_arms
from dpsynth.evaluation.utility.models import Prediction, chosen_models
from dpsynth.evaluation.utility.outcomes import mean_interval, outcome_kind

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
    event = model = tested = None
    note = ""
    parts: tuple[Part, ...] = ()
    if outcome is None:
        note = "The schema names no outcome, and so nothing is predicted."
    elif outcome_kind(schema.column(outcome)) != "binary":
        note = f"Scores need an outcome of two categories, and {outcome} is none."
    elif tables.test is None:
        note = "Scores need held-out records, and none were given."
    else:
        event = f"{outcome} = {schema.column(outcome).categories[1]}"
        model, first = next(iter(chosen_models("binary", settings.models).items()))
        tested = learned_arms(tables, tables.test, settings, outcome, {model: first}, rng, progress)
        total = len(tables.test)
        parts = on_part((), "errors by subgroup", tested.tested, total, settings.level).parts
    rows = [row for grouping in chosen for row in _rows(grouping, tables, settings.level, tested)]
    data = Subgroups(event, model, settings.level, FEWEST, note, tuple(rows))
    return Findings(details=(Detail("subgroups", "subgroups", True, data),), parts=parts)


def _rows(grouping: Grouping, tables: Tables, level: float, tested: Arms | None) -> Iterator[SubgroupRow]:
    made, real = (grouping.codes(frame) for frame in (tables.synthetic, tables.train))
    for code, name in enumerate(grouping.names):
        synthetic, train = (
            share(int((codes == code).sum()), len(codes), level, method="wilson") for codes in (made, real)
        )
        records = events = None
        scores: tuple[SubgroupScores, ...] = ()
        if tested is not None:
            among, positive = grouping.codes(tested.records) == code, tested.y == 1
            records, events = int(among.sum()), int(positive[among].sum())
            scores = tuple(
                _scores(arm, next(iter(learned.predictions.values())), positive, among, level)
                for arm, learned in tested.learned.items()
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
    calibration = calibration_in_the_large(y, risk, level)
    return SubgroupScores(arm, auc(risk[y], risk[~y], level), calibration, "")


def calibration_in_the_large(y: NDArray[np.bool_], risk: NDArray[np.float64], level: float) -> Estimate:
    """Observed minus predicted share of the event, with Student's interval. Needs two records."""
    excess = y.astype(np.float64) - risk
    interval = mean_interval(excess, level)
    assert interval is not None
    return Estimate(float(excess.mean()), *interval)
