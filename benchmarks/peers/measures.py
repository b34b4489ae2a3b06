"""What is measured of a synthetic table, the same for every arm.

`dpsynth.evaluate` measures a table of records against both halves. `benchmarks.ground.measure.measure`
measures a table of known structure against fresh records, in a tenth of the time.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

import dpsynth
from benchmarks.ground.known import is_yes
from benchmarks.ground.measure import measure
from benchmarks.ground.structures import STRUCTURES
from benchmarks.peers.tables import ground
from dpsynth.datasets import Table
from dpsynth.evaluation.effects import regressions_of
from dpsynth.evaluation.results import Evaluation

#: by column of the results: the measure of `dpsynth.evaluate`, what is best, and what it is
MEASURES: dict[str, tuple[str, str]] = {
    "auc": ("higher", "mean AUC of three classifiers trained on synthetic, tested on held-out real records"),
    "nn": ("0.5", "unbiased nearest-neighbour adversarial accuracy against the training half"),
    "tvd": ("lower", "mean total variation distance of single columns"),
    "correlation": ("lower", "mean error of correlations"),
    "discriminator": ("0.5", "AUC of gradient boosting that tells synthetic from held-out real records"),
    "signs": ("higher", "share of the real regression's significant terms (p < 0.05) that keep their sign"),
    "positive": ("real", "share of positive outcomes"),
    "structure": ("real", "of a table of known structure, how much of its known structure there is"),
}
_NAMES = {
    "auc": "auc_mean",
    "nn": "nn_accuracy_train",
    "tvd": "tvd_mean",
    "correlation": "correlation_error",
    "discriminator": "discriminator_auc_hist_gradient_boosting",
    "positive": "positive_rate_synthetic",
}
_OF_GROUND = {
    "nn": "NN accuracy",
    "tvd": "TVD",
    "correlation": "correlation error",
    "discriminator": "discriminator",
    "structure": "structure",
}


def measured(synthetic: pd.DataFrame, train: Table, test: Table) -> dict[str, float | None]:
    """Measure a synthetic table; None where it has no such number (no outcome left, no fit)."""
    if train.name in STRUCTURES:
        return against_fresh_records(synthetic, train.name)
    found = dpsynth.evaluate(
        synthetic, train=train.frame, test=test.frame, schema=train.schema, seed=0, reference=False
    )
    values: dict[str, float | None] = {column: number(found, name) for column, name in _NAMES.items()}
    values["signs"] = signs_kept(found)
    values["structure"] = None
    return {column: values[column] for column in MEASURES}


def real(train: Table, test: Table) -> dict[str, float | None]:
    """What real records reach: models trained on the training half, and its share of positive outcomes."""
    if train.name in STRUCTURES:
        return against_fresh_records(ground(train.name).real, train.name)
    found = dpsynth.evaluate(
        test.frame, train=train.frame, test=test.frame, schema=train.schema, seed=0, reference=True
    )
    known = {"auc": "auc_real_mean", "positive": "positive_rate_train", "tvd": "tvd_mean_baseline"}
    known["correlation"] = "correlation_error_baseline"
    values: dict[str, float | None] = dict.fromkeys(MEASURES)
    values |= {column: number(found, name) for column, name in known.items()}
    return values


def against_fresh_records(frame: pd.DataFrame, name: str) -> dict[str, float | None]:
    """Measure a table, or real records in its place, by fresh records of its population."""
    known = ground(name)
    found = measure(frame, known)
    values: dict[str, float | None] = dict.fromkeys(MEASURES)
    values |= {column: found.get(of) for column, of in _OF_GROUND.items()}
    values["auc"] = max(found["AUC (logistic)"], found["AUC (boosting)"])
    values["positive"] = float(is_yes(frame[known.schema.outcome]).mean())
    return values


def signs_kept(found: Evaluation) -> float | None:
    """Share of the real regression's significant terms with the same sign; None if it has none.

    A term that the synthetic table cannot tell (its regression fails) is not kept.
    """
    clear = [
        sides["synthetic"]
        for each in regressions_of(found)
        for sides in each.terms.values()
        if sides["real"] is not None and sides["real"].p_value is not None and sides["real"].p_value < 0.05
    ]
    return float(np.mean([made is not None and made.same_sign is True for made in clear])) if clear else None


def number(found: Evaluation, name: str) -> float | None:
    """The value of a measure that may be absent."""
    return found[name].value if name in found else None
