"""Fits of simulated tables: what a fit loses where the truth is known.

Each simulated table is fitted at each epsilon by the estimator itself, with all of its noise. No real record
is read, and the ledgers of these fits are thrown away.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from dpsynth.accounting.events import gaussian_event
from dpsynth.accounting.gaussian import analytic_sigma
from dpsynth.accounting.profile import Profile
from dpsynth.errors import OwnerWarning
from dpsynth.files.rounds import side_by_side
from dpsynth.runs.simulated_tables import simulated_table
from dpsynth.synthesis.options import FitOptions
from dpsynth.synthesis.planning import total_delta
from dpsynth.table.schema import Schema

#: AUC of the true risk in simulated tables where none is declared: from weak to strong, in even steps
STRENGTHS = (0.66, 0.9)
#: records of a simulated training and test table, at most
MOST_SIMULATED, _TESTED = 10_000, 4_000
#: classifiers whose mean AUC is compared
_MODELS = ("logistic_regression", "hist_gradient_boosting")
#: of all simulated tables
_SEED = 34


@dataclass(frozen=True)
class Task:
    """One fit of one simulated table."""

    schema: Schema
    options: FitOptions
    n: int
    auc: float
    seed: int


def simulated_fits(
    schema: Schema,
    n: int,
    options: FitOptions,
    epsilons: Sequence[float],
    auc: float | None,
    tables: int,
    progress: Callable[[int, int], None] | None,
    part: float = 1.0,
) -> dict[float, list[dict[str, Any]]]:
    """Results of fits of simulated tables, by epsilon: a record a table, with its ``widening`` by study.

    ``real`` and ``synthetic`` are AUCs of models of the outcome, where the schema has one.
    ``options``: of the fit, but for its epsilon.
    ``auc``: of the true risk in every table. None: from weak to strong dependence over the tables.
    ``part``: of the budget (of mu^2) for these tables. The rest is for rows of patients.
    """
    if not options.studies and not _has_auc(schema):
        return {}
    size = min(n, MOST_SIMULATED)
    simple = schema.with_n_public(size).model_copy(update={"constraints": ()})
    delta = total_delta(schema, options)
    tasks = {}
    strengths = [sum(STRENGTHS) / 2] if tables == 1 else np.linspace(*STRENGTHS, tables)
    for k, epsilon in enumerate(epsilons):
        times = n / size * math.sqrt(part)
        changes = {"epsilon": in_proportion(epsilon, delta, times), "delta": delta}
        for seed in range(tables):
            strength = auc or float(strengths[seed])
            tasks[f"{k}-{seed}"] = Task(simple, options.model_copy(update=changes), size, strength, seed)
    from joblib import cpu_count

    found: dict[float, list[dict[str, Any]]] = {}
    jobs = min(cpu_count(), max(len(tasks), 1))
    for done, (label, record, _) in enumerate(side_by_side(fitted, tasks, rounds=None, jobs=jobs), 1):
        found.setdefault(epsilons[int(label.split("-")[0])], []).append(record)
        if progress is not None:
            progress(done, len(tasks))
    return {epsilon: sorted(each, key=lambda record: record["seed"]) for epsilon, each in found.items()}


def in_proportion(epsilon: float, delta: float, times: float) -> float:
    """The epsilon whose noise is so many times smaller."""
    if times == 1.0:
        return epsilon
    return Profile([gaussian_event(analytic_sigma(epsilon, delta) / times)]).epsilon(delta)


def _has_auc(schema: Schema) -> bool:
    if schema.outcome is None or len(schema.modelled) < 2:
        return False
    return len(schema.column(schema.outcome).categories) >= 2


def fitted(task: Task) -> dict[str, Any]:
    """AUC of models trained on a simulated table and on its synthetic copy, and interval widths."""
    from dpsynth.synthesis.synthesizer import DPWGANGP

    rng = np.random.default_rng([_SEED, task.seed])
    train, test = simulated_table(task.schema, task.n, _TESTED, task.auc, rng)
    model = DPWGANGP(**{**dict(task.options), "random_state": task.seed})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OwnerWarning)  # there is no owner
        model.fit(train, schema=task.schema, budget=None)
    record: dict[str, Any] = {
        "seed": task.seed,
        # the size of a subgroup in a simulated table says nothing of its size in the real one
        "widening": {
            study.label: each.widening
            for study, each in zip(task.options.studies, model.estimates_, strict=True)
            if study.where is None
        },
    }
    if not _has_auc(task.schema):
        return record
    made = model.sample(task.n, random_state=task.seed)[list(train.columns)]
    aucs = (mean_auc(frame, test, task.schema.modelled, task.seed) for frame in (train, made))
    return record | dict(zip(("real", "synthetic"), aucs, strict=True))


def mean_auc(train: pd.DataFrame, test: pd.DataFrame, schema: Schema, seed: int) -> float:
    """Mean AUC of logistic regression and gradient boosting. A model that fails has 0.5."""
    from dpsynth.evaluation.utility.models import CLASSIFIERS, learn_and_predict
    from dpsynth.evaluation.utility.outcomes import known_outcomes, outcome_kind
    from dpsynth.evaluation.utility.scores import scorer

    outcome = str(schema.outcome)
    known, y = known_outcomes(test, schema, outcome)
    models = {name: CLASSIFIERS[name] for name in _MODELS}
    rng = np.random.default_rng([_SEED, seed])
    learned = learn_and_predict(train, known, schema, outcome, models=models, rng=rng)
    kind, weights = outcome_kind(schema.column(outcome)), np.ones((len(y), 1))
    scores = [
        0.5 if each.predicted is None else float(scorer(kind, y, each)(weights)["auc"][0])
        for each in learned.predictions.values()
    ]
    return float(np.mean(scores))
