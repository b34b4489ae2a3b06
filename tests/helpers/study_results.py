"""A made-up study: three splits, two fits of two tables each, numbers that can be followed by hand."""

from __future__ import annotations

import math
from typing import Any

from report_sources import regression_of

from dpsynth import Column, Schema
from dpsynth.privacy import Ledger, gaussian_event, non_private_event
from dpsynth.research.replications.arms import HEALTHGAN, REAL, arms_of
from dpsynth.research.replications.protocol import Protocol
from dpsynth.research.replications.results import Results
from dpsynth.research.replications.trial import Task, Trial

DELTA = 1e-5
SCHEMA = Schema(
    columns=(
        Column(name="age", kind="integer", lower=0, upper=99),
        Column(name="dose", kind="integer", lower=0, upper=9),
        Column(name="death", kind="binary", categories=(0, 1)),
    ),
    outcome="death",
)
#: noise of one fit by arm
SIGMA = {"ε = 3": 1.5, "ε = 3 shared": 2.2}
#: by seed and restart, of its two tables
RATES = {
    0: ((0.10, 0.12), (0.14, 0.11)),
    1: ((0.20, 0.09), (0.13, 0.16)),
    2: ((0.11, 0.11), (0.10, 0.15)),
}
#: an interval without ends, as far as there are floats
HIDDEN = (1.0, math.exp(-700), math.exp(700))
Interval = tuple[float, float, float]


def protocol(**changed: Any) -> Protocol:
    told: dict[str, Any] = {
        "name": "made-up",
        "title": "A made-up study",
        "citation": "Nobody, 1900.",
        "question": "Who dies?",
        "dataset": "flchain",
        "seeds": 3,
        "epsilons": [3],
        "restarts": 2,
        "sets": 2,
        "baseline": {"training_steps": 10},
        "classifiers": ["logistic_regression"],
        "studies": [{"name": "death", "model": "logistic: death ~ age + dose"}],
        "findings": [
            {"text": "Age kills.", "study": "death", "term": "age", "effect": "above",
             "reported": {"value": 1.4, "lower": 1.2, "upper": 1.6, "where": "Table 2"}},
            {"text": "Dose does nothing.", "study": "death", "term": "dose", "effect": "none"},
        ],
        "aucs": [{"model": "their model", "value": 0.8, "where": "Figure 3"}],
        "coverage": {"repetitions": 2},
    }  # fmt: skip
    told |= changed
    return Protocol.from_dict({name: value for name, value in told.items() if value is not None})


def effects(
    real: dict[str, Interval | None],
    synthetic: dict[str, Interval | None],
    declared: dict[str, Interval | None] | None = None,
    **facts: Any,
) -> dict[str, list[dict[str, Any]]]:
    """Rows of frames as a trial keeps them, with what the tables do not read left out."""
    rows = []
    for term in real:
        row = {"term": term, "real": _side(real[term]), "synthetic": _side(synthetic[term])}
        rows.append(row | ({} if declared is None else {"declared": _side(declared[term])}))
    said = {"formula": "logistic: death ~ age + dose", "outcome": "death", "event": "1"}
    said |= {"measure": "odds ratio", "n_real": 2000, "n_synthetic": 1000}
    return regression_of(rows, study=None if declared is None else "death", **said | facts)


def _side(interval: Interval | None) -> dict[str, float] | None:
    return None if interval is None else dict(zip(("estimate", "lower", "upper"), interval, strict=True))


#: frames of a table on which no regression was fitted
NO_STUDY: dict[str, list[dict[str, Any]]] = {"regressions": [], "effects": []}
#: all real records
TRUTH: dict[str, Interval | None] = {"age": (1.5, 1.2, 1.875), "dose": (1.1, 0.9, 1.34)}
#: the training part of every split
HALF: dict[str, Interval | None] = {"age": (1.4, 1.05, 1.9), "dose": (1.0, 0.8, 1.25)}
#: naive estimates at epsilon 3 by seed: kept, lost, lacking; shown above, none shown, hidden
NAIVE: list[dict[str, Interval | None]] = [
    {"age": (1.3, 1.1, 1.6), "dose": (1.6, 1.3, 2.0)},
    {"age": (1.1, 0.9, 1.35), "dose": (0.9, 0.7, 1.15)},
    {"age": None, "dose": HIDDEN},
]
#: private estimates by seed
DECLARED: list[dict[str, Interval | None]] = [
    {"age": (1.5, 1.2, 1.875), "dose": (1.1, 0.8, 1.5)},
    {"age": (1.6, 1.1, 2.3), "dose": (1.2, 0.9, 1.6)},
    {"age": (0.9, 0.6, 1.35), "dose": HIDDEN},
]


def made_up(**changed: Any) -> Results:
    """The whole study; ``changed`` are keys of the protocol."""
    told = protocol(**changed)
    compared = arms_of(told, DELTA)
    trials = [_trial(told, arm.name, seed, r) for seed in range(told.seeds) for arm in compared
              for r in range(arm.restarts)]  # fmt: skip
    if told.coverage is not None:
        trials += [resample("ε = 3", seed) for seed in range(told.coverage.repetitions)]
    return Results(told, compared, tuple(trials), "a made-up table", "one patient", SCHEMA)


def _trial(told: Protocol, arm: str, seed: int, restart: int) -> Trial:
    task = Task(arm, "split", seed, restart)
    studied = bool(told.studies)
    if arm == REAL:
        measures = {"positive_rate_synthetic": 0.13, "positive_rate_test": 0.14, "auc_mean": 0.8,
                    "auc_logistic_regression": 0.8}  # fmt: skip
        sets = ({"measures": measures, **(effects(TRUTH, HALF) if studied else NO_STUDY)},)
        return Trial(task, sets, 1000, 3)
    ledger = Ledger()
    if arm == HEALTHGAN:
        ledger.post("critic", non_private_event(), sensitivity="unbounded")
        naive, declared = {"age": None, "dose": None}, None
    else:
        ledger.post("counts", gaussian_event(SIGMA[arm]), sensitivity="1")
        naive, declared = NAIVE[seed], DECLARED[seed]
    told_of = effects(HALF, naive, declared) if studied else NO_STUDY
    sets = tuple({"measures": _measures(seed, rate), **told_of} for rate in RATES[seed][restart][: told.sets])
    networks = {"generator": [100, 24, 18, 12], "critic": [12, 64, 128, 256, 1], "batch": 208, "steps": 10}
    return Trial(task, sets, 1000, 3, ledger.to_dict(), DELTA, networks)


def _measures(seed: int, rate: float) -> dict[str, float | None]:
    """An area that follows from the rate, so that it says which table was taken."""
    auc = None if rate == 0.20 else round(0.5 + rate, 6)
    return {
        "positive_rate_synthetic": rate,
        "positive_rate_train": 0.13,
        "positive_rate_test": 0.14,
        "auc_mean": auc,
        "auc_logistic_regression": auc,
        "nn_accuracy_train": 0.5,
        "nn_accuracy_test": 0.55,
        "privacy_loss": 0.05,
        "nn_copies_p": (0.01, 0.04, 0.05)[seed],
        "nn_apart_p": None if seed == 0 else math.nan,
    }


def resample(arm: str, seed: int) -> Trial:
    """Of two terms the records hold both, naive estimates none and one, private ones both and one."""
    naive: dict[str, Interval | None] = {
        "age": (1.2, 1.1, 1.3),
        "dose": ((1.5, 1.2, 1.9), (1.0, 0.8, 1.2))[seed],
    }
    private: dict[str, Interval | None] = {"age": HIDDEN, "dose": ((1.1, 0.9, 1.3), (1.5, 1.2, 1.9))[seed]}
    sets = ({"measures": {}, **effects(HALF, naive, private)},)
    return Trial(Task(arm, "resample", seed), sets, 1000, 3)
