"""What a synthetic table is good for: train on synthetic, test on real (TSTR).

Models of different kinds learn the outcome from the synthetic records and predict it for real records that no
generator has seen; the same models trained on the real training records are the reference (TRTR). See
Pedersen (2022), section 3.4.2. Scores on real records are not paid for: internal.
:func:`~dpsynth.evaluation.utility.evaluator.utility` scores both and their difference, with intervals.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from dpsynth.evaluation.features import ClassifierEncoding
from dpsynth.evaluation.progress import Progress, silent
from dpsynth.evaluation.utility.models import Model
from dpsynth.evaluation.utility.outcomes import known_outcomes, outcome_kind
from dpsynth.evaluation.utility.predictions import Prediction, fit_and_predict
from dpsynth.table.schema import Schema


@dataclass(frozen=True)
class Learned:
    """What models trained on one table predict for another.

    Attributes
    ----------
    predictions : dict of str to Prediction
        By model.
    n_train : int
        Training records with a known outcome.
    one_class : bool
        Whether the training records hold one outcome only. Categories are then predicted without a model.
    note : str
        What is unusual about the training records, in one sentence; empty if nothing is.
    """

    predictions: dict[str, Prediction]
    n_train: int
    one_class: bool
    note: str

    @classmethod
    def failed(cls, models: Iterable[str], why: str) -> Learned:
        """Return no prediction of any of these models, for one reason."""
        return cls({name: Prediction(None, failure=why) for name in models}, 0, False, why)


def learn_and_predict(
    train: pd.DataFrame,
    test: pd.DataFrame,
    schema: Schema,
    outcome: str,
    *,
    models: Mapping[str, Model],
    rng: np.random.Generator,
    progress: Progress = silent,
) -> Learned:
    """Train models on one conformed frame and let them predict another.

    Parameters
    ----------
    train : pandas.DataFrame of shape (n, columns)
        Records whose outcome is missing take no part.
    test : pandas.DataFrame of shape (m, columns)
        At least one record. The outcome is not read.
    models : mapping of str to Model
        As :func:`~dpsynth.evaluation.utility.models.chosen_models` gives them.
    rng : numpy.random.Generator
        Gives each model a seed.

    Notes
    -----
    Predictors are encoded by :class:`~dpsynth.evaluation.features.ClassifierEncoding`. Where the training
    records hold one category only, no model is trained: that category has probability 1 for every record,
    which makes every AUC 0.5.
    """
    column = schema.column(outcome)
    kind = outcome_kind(column)
    n_categories = None if kind == "numeric" else len(column.categories)
    train, y = known_outcomes(train, schema, outcome)
    if not len(y):
        return Learned.failed(models, f"no training record has a known {outcome}: nothing to learn")
    one_class = len(np.unique(y)) < 2
    if one_class and n_categories is not None:
        code = int(y[0])
        certain = np.tile(np.eye(n_categories)[code], (len(test), 1))
        note = (
            f"every training record has {outcome} = {column.categories[code]!r}: "
            "nothing to learn, AUC 0.5 by convention"
        )
        return Learned({name: Prediction(certain) for name in models}, len(y), True, note)
    encoding = ClassifierEncoding.fit(train, schema, outcome)
    encoded = {
        impute: tuple(encoding.transform(frame, impute=impute) for frame in (train, test))
        for impute in {model.impute for model in models.values()}
    }
    predictions = {}
    for done, (name, model) in enumerate(models.items(), start=1):
        x_train, x_test = encoded[model.impute]
        seed = int(rng.integers(2**31 - 1))
        predictions[name] = fit_and_predict(model, seed, (x_train, y), x_test, n_categories)
        progress(done / len(models))
    note = f"every training record has {outcome} = {y[0]:g}: nothing to learn" if one_class else ""
    return Learned(predictions, len(y), one_class, note)
