"""What a synthetic table is good for: train on synthetic, test on real (TSTR).

Models of different kinds learn the outcome from the synthetic records and predict it for real records that no
generator has seen; the same models trained on the real training records are the reference (TRTR). See
Pedersen (2022), section 3.4.2. Scores on real records are not paid for: internal.
:func:`~dpsynth.evaluation.utility.usefulness.usefulness` scores both and their difference, with intervals.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpsynth.errors import InputError
from dpsynth.evaluation.features import ClassifierEncoding
from dpsynth.evaluation.utility.models import CLASSIFIERS, Model, Prediction, fit_and_predict
from dpsynth.evaluation.utility.outcomes import check_outcome, known_outcomes, outcome_kind, positive_rate
from dpsynth.evaluation.utility.scores import scorer
from dpsynth.table.schema import Schema

__all__ = ["Learned", "Utility", "check_outcome", "learn_and_predict", "positive_rate", "train_and_test"]


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
    progress: Callable[[float], None] | None = None,
) -> Learned:
    """Train models on one conformed frame and let them predict another.

    Parameters
    ----------
    train : pandas.DataFrame of shape (n, columns)
        Records whose outcome is missing take no part.
    test : pandas.DataFrame of shape (m, columns)
        At least one record. The outcome is not read.
    schema : Schema
    outcome : str
    models : mapping of str to Model
        As :func:`~dpsynth.evaluation.utility.models.chosen_models` gives them.
    rng : numpy.random.Generator
        Gives each model a seed.
    progress : callable, optional
        Told the fraction done after each model.

    Returns
    -------
    Learned

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
        if progress is not None:
            progress(done / len(models))
    note = f"every training record has {outcome} = {y[0]:g}: nothing to learn" if one_class else ""
    return Learned(predictions, len(y), one_class, note)


@dataclass(frozen=True)
class Utility:
    """AUC of each classifier on one test table.

    Attributes
    ----------
    auc : dict of str to float or None
        By classifier. None where the test records hold one class only: no AUC is defined then.
    auc_mean : float or None
        Mean over the classifiers.
    n_train, n_test : int
        Records with a known outcome on each side.
    one_class : bool
        Whether the training records hold one class only. Nothing can be learned from them; every AUC is then
        0.5 by convention.
    note : str
        What is unusual about the result, in one sentence; empty if nothing is.
    """

    auc: dict[str, float | None]
    auc_mean: float | None
    n_train: int
    n_test: int
    one_class: bool
    note: str


def train_and_test(
    train: pd.DataFrame,
    test: pd.DataFrame,
    schema: Schema,
    outcome: str,
    *,
    rng: np.random.Generator,
) -> Utility:
    """Train three classifiers on one conformed frame and score their AUC on another.

    Parameters
    ----------
    train : pandas.DataFrame of shape (n, columns)
        Synthetic records, or real ones for the reference.
    test : pandas.DataFrame of shape (m, columns)
        Real records.
    schema : Schema
        With at least one column besides the outcome.
    outcome : str
        A binary, ordinal or categorical column. The last declared category is the positive one; with more
        than two categories the AUC is the mean of one category against the rest, over the categories that
        occur in the test records.
    rng : numpy.random.Generator
        Seeds the classifiers.

    Returns
    -------
    Utility

    Raises
    ------
    InputError
        If the outcome is not such a column, or if either frame has no record with a known outcome.

    Notes
    -----
    Records whose outcome is missing take no part.
    """
    check_outcome(schema, outcome)
    column = schema.column(outcome)
    if column.is_numeric:
        raise InputError(f"outcome {outcome!r} must be binary, ordinal or categorical, got {column.kind!r}")
    (train, y_train), (test, y_test) = (known_outcomes(frame, schema, outcome) for frame in (train, test))
    for name, codes in (("training", y_train), ("test", y_test)):
        if not len(codes):
            raise InputError(f"the {name} table has no record with a known outcome {outcome!r}")
    if len(np.unique(y_test)) < 2:
        note = f"every test record has {outcome} = {column.categories[int(y_test[0])]!r}: no AUC is defined"
        return Utility(dict.fromkeys(CLASSIFIERS), None, len(y_train), len(y_test), False, note)
    learned = learn_and_predict(train, test, schema, outcome, models=CLASSIFIERS, rng=rng)
    auc = {name: _auc(schema, outcome, y_test, made) for name, made in learned.predictions.items()}
    defined = [value for value in auc.values() if value is not None]
    mean = float(np.mean(defined)) if len(defined) == len(auc) else None
    return Utility(auc, mean, len(y_train), len(y_test), learned.one_class, learned.note)


def _auc(
    schema: Schema, outcome: str, y: NDArray[np.int64 | np.float64], prediction: Prediction
) -> float | None:
    if prediction.predicted is None:
        return None
    kind = outcome_kind(schema.column(outcome))
    return float(scorer(kind, y, prediction)(np.ones((len(y), 1)))["auc"][0])
