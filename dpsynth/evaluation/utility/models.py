"""Models that predict an outcome: three classifiers and three regressors.

Three kinds each: a linear model, gradient boosting and a random forest. All use the coordinates of
:class:`~dpsynth.evaluation.features.ClassifierEncoding`. Classifiers learn the positions of the outcome's
categories (0, 1, ...), regressors the outcome in its own unit. Predictions for new records are checked. A
model that fails gives a sentence in place of predictions.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpsynth.evaluation.features import ClassifierEncoding
from dpsynth.evaluation.tables import Progress, silent
from dpsynth.evaluation.utility.outcomes import OutcomeKind, known_outcomes, outcome_kind
from dpsynth.table.schema import Schema

Floats = NDArray[np.float64]
#: what scikit-learn calls an estimator
Estimator = Any


@dataclass(frozen=True)
class Model:
    """How to make a model."""

    make: Callable[[int], Estimator]  # from a seed (int) to an unfitted scikit-learn estimator
    impute: bool = True  # whether missing numbers become the training median beside an indicator, or stay NaN


def _made(module: str, name: str, seed: int, *, scaled: bool = False, **options: Any) -> Estimator:
    """Make an estimator of scikit-learn, which is imported when the first one is made."""
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    model = getattr(import_module(f"sklearn.{module}"), name)(random_state=seed, **options)
    return make_pipeline(StandardScaler(), model) if scaled else model


CLASSIFIERS: dict[str, Model] = {
    "logistic_regression": Model(
        partial(_made, "linear_model", "LogisticRegression", scaled=True, max_iter=1000)
    ),
    # Early stopping would hold out a stratified part, which fails where a class has a single record.
    "hist_gradient_boosting": Model(
        partial(_made, "ensemble", "HistGradientBoostingClassifier", early_stopping=False), impute=False
    ),
    "random_forest": Model(partial(_made, "ensemble", "RandomForestClassifier", n_estimators=200)),
}
#: Full trees of a number have a leaf a record: a gigabyte at 50,000 records, and no better.
_FOREST: dict[str, Any] = {"n_estimators": 100, "min_samples_leaf": 5, "max_features": 1 / 3}
REGRESSORS: dict[str, Model] = {
    # The penalty holds the coefficients where there are more coordinates than records.
    "ridge_regression": Model(partial(_made, "linear_model", "Ridge", scaled=True, alpha=1.0)),
    "hist_gradient_boosting": Model(
        partial(_made, "ensemble", "HistGradientBoostingRegressor", early_stopping=False), impute=False
    ),
    "random_forest": Model(partial(_made, "ensemble", "RandomForestRegressor", **_FOREST)),
}


def chosen_models(kind: OutcomeKind, models: Mapping[str, Model] | None = None) -> dict[str, Model]:
    """Return the models to train: our three, or those given instead."""
    return dict(models or (REGRESSORS if kind == "numeric" else CLASSIFIERS))


#: from this many training records on, the trees of a forest are grown by several threads
PARALLEL_RECORDS = 5_000


@dataclass(frozen=True)
class Prediction:
    """Predictions of a model for the test records: a number a category, or the outcome in its unit."""

    predicted: Floats | None = field(repr=False)
    failure: str = ""  # why there is no prediction, in one sentence; empty if there are


def fit_and_predict(
    model: Model,
    seed: int,
    train: tuple[Floats, NDArray[np.int64 | np.float64]],
    test: Floats,
    n_categories: int | None,
) -> Prediction:
    """Fit a model and let it predict. An exception becomes the failure of the prediction.

    ``n_categories`` is None for a numeric outcome. A category that the training records lack has probability
    0 everywhere.
    """
    # comes with scikit-learn, without type hints
    from threadpoolctl import threadpool_limits

    x, y = train
    # One thread: on tables of this size several cost more than they save, far more on a busy machine.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # convergence and constant columns do not concern the reader
        try:
            estimator = model.make(seed)
            x, test = _splittable(estimator, x, test)
            # only libraries that are loaded by now are limited, and making an estimator loads its own
            with threadpool_limits(limits=1):
                _fit(estimator, x, y)
                if n_categories is None:
                    return _checked(np.asarray(estimator.predict(test), dtype=np.float64), (len(test),))
                return _categories(estimator, np.unique(y), test, n_categories)
        except Exception as problem:  # whatever a model raises on some odd table becomes one sentence
            text = str(problem).strip() or type(problem).__name__
            return Prediction(None, failure=f"the model failed: {text.splitlines()[0][:200]}")


def _splittable(estimator: Estimator, x: Floats, test: Floats) -> tuple[Floats, Floats]:
    """Leave out coordinates that boosting cannot split: of hundreds of categories most are too rare.

    A split leaves ``min_samples_leaf`` records on either side, so that the same trees grow without them.
    """
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

    if type(estimator) not in (HistGradientBoostingClassifier, HistGradientBoostingRegressor):
        return x, test
    most = len(x) - int(getattr(estimator, "min_samples_leaf", 0))
    kept = ((x == 0.0).sum(axis=0) <= most) & ((x == 1.0).sum(axis=0) <= most)
    kept[0] = True
    return x[:, kept], test[:, kept]


def _fit(estimator: Estimator, x: Floats, y: NDArray[np.int64 | np.float64]) -> None:
    from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

    forest = (
        type(estimator) in (RandomForestClassifier, RandomForestRegressor)
        and getattr(estimator, "n_jobs", None) is None
    )
    if forest and len(x) >= PARALLEL_RECORDS:
        # Trees have seeds of their own: the same forest for any number of threads. Votes are then added by
        # one thread, because a sum's last digits depend on its order.
        estimator.set_params(n_jobs=min(4, os.cpu_count() or 1))
        estimator.fit(x, y)
        estimator.set_params(n_jobs=None)
    else:
        estimator.fit(x, y)


def _categories(
    estimator: Estimator, seen: NDArray[np.int64 | np.float64], test: Floats, n_categories: int
) -> Prediction:
    classes = np.asarray(getattr(estimator, "classes_", seen), dtype=np.int64)
    given = np.asarray(estimator.predict_proba(test), dtype=np.float64)
    checked = _checked(given, (len(test), len(classes)))
    if checked.failure:
        return checked
    if (given < 0).any() or (given > 1).any():
        return Prediction(None, failure="the model gave probabilities outside [0, 1]")
    values = np.zeros((len(test), n_categories))
    values[:, classes] = given
    return Prediction(values)


def _checked(values: Floats, shape: tuple[int, ...]) -> Prediction:
    if values.shape != shape:
        return Prediction(None, failure=f"the model gave predictions of shape {values.shape}, not {shape}")
    if not np.isfinite(values).all():
        return Prediction(None, failure="the model gave a prediction that is not finite")
    return Prediction(values)


@dataclass(frozen=True)
class Learned:
    """Predictions for one table of models trained on another."""

    predictions: dict[str, Prediction]  # by model
    note: str  # what is unusual about the training records, in one sentence; empty if nothing is

    @classmethod
    def failed(cls, models: Iterable[str], why: str) -> Learned:
        """Return no prediction of any of these models, for one reason."""
        return cls({name: Prediction(None, failure=why) for name in models}, why)


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
    """Train models on the records of one frame with a known outcome, and let them predict another frame.

    If the training records hold one category only, no model is trained. The category has probability 1 for
    every record, which makes every AUC 0.5.
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
        return Learned({name: Prediction(certain) for name in models}, note)
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
    return Learned(predictions, note)
