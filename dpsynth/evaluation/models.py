"""Models that predict an outcome: three classifiers and three regressors.

Three kinds each: a linear model, gradient boosting and a random forest. All use the coordinates of
:class:`~dpsynth.evaluation.tables.ClassifierEncoding`. Classifiers learn the positions of the outcome's
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
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpsynth.checks import Counted, few
from dpsynth.errors import InputError
from dpsynth.evaluation.estimates import FALSE_ALARMS, FEWEST
from dpsynth.evaluation.tables import ClassifierEncoding, Progress, silent
from dpsynth.table.kinds.category import category_codes
from dpsynth.table.schema import Column, Schema

# ------------------------------------------------------------------------------------------------
# The outcome of a table: what kind it is, how often each value occurs, and whether a value got lost.
#
# An outcome is *binary* (two declared categories), one of several *categories*, or *numeric*. The first two
# are classified, the last one is regressed. A generator that collapses gives one of the outcomes hardly ever
# or never. The area under a curve may hide that, so the rates are reported beside it.
#
# Intervals of rates are Wilson's (1927, Journal of the American Statistical Association 22) and take the
# records as independent. Rows of a synthetic table that was post-processed to match marginals are not. Their
# interval then only says how much as many independent rows would vary.

OutcomeKind = Literal["binary", "categories", "numeric"]
#: an outcome counts as lost below this part of its real rate or spread, if chance does not explain it
LOST_RATIO = 0.2


def check_outcome(schema: Schema, outcome: str) -> None:
    """Refuse an outcome that no model could predict."""
    column = schema.column(outcome)
    if len(schema) < 2:
        raise InputError(f"outcome {outcome!r} is the only column: there is nothing to predict it from")
    if column.written_apart:
        raise InputError(
            f"outcome {outcome!r} is a {column.kind}. Declare a number of days as a derived column"
        )
    if not column.is_numeric and len(column.categories) < 2:
        only = column.categories[0]
        raise InputError(f"outcome {outcome!r} has the category {only!r} only: there is nothing to predict")


def outcome_kind(column: Column) -> OutcomeKind:
    """Return how a column is predicted: as two categories, as more than two, or as a number."""
    if column.is_numeric:
        return "numeric"
    return "binary" if len(column.categories) == 2 else "categories"


def known_outcomes(
    frame: pd.DataFrame, schema: Schema, outcome: str
) -> tuple[pd.DataFrame, NDArray[np.int64 | np.float64]]:
    """Return the records whose outcome is known, and the outcomes: positions of categories, or numbers."""
    column = schema.column(outcome)
    if column.is_numeric:
        values = frame[outcome].to_numpy(dtype=np.float64, na_value=np.nan)
        known = ~np.isnan(values)
    else:
        values = category_codes(column, frame[outcome])
        known = values >= 0
    return frame[known], values[known]


def mean_interval(values: NDArray[np.float64], level: float = 0.95) -> tuple[float, float] | None:
    """Student's confidence interval of a mean over independent records, None for fewer than two."""
    from scipy.special import stdtrit

    if len(values) < 2:
        return None
    half = float(stdtrit(len(values) - 1, 0.5 + level / 2)) * float(values.std(ddof=1)) / np.sqrt(len(values))
    return float(values.mean() - half), float(values.mean() + half)


def mode_collapse(
    synthetic: pd.DataFrame, train: pd.DataFrame, schema: Schema, outcome: str
) -> tuple[bool | None, str]:
    """Say whether outcomes of the real records got lost in the synthetic table, and why, in one sentence.

    Categories of at least FEWEST training records are judged. One is lost if its synthetic rate is below
    LOST_RATIO of the real rate, and Fisher's exact test excludes chance. A number is lost if this holds for
    its standard deviation, by the test of Brown and Forsythe. A table of fresh records has lost any outcome
    with a probability of at most FALSE_ALARMS. None if nothing can be judged.

    References
    ----------
    Brown and Forsythe (1974), "Robust tests for the equality of variances", Journal of the American
    Statistical Association 69. Rows far out make it say less, and not more.
    """
    made, real = (known_outcomes(frame, schema, outcome)[1] for frame in (synthetic, train))
    if not len(made) or not len(real):
        table = "training" if len(made) else "synthetic"
        return (None, f"no {table} {schema.counted.one} has a known {outcome}")
    column = schema.column(outcome)
    if column.is_numeric:
        return _collapsed_number(made, real, outcome, schema.counted)
    names = [f"{outcome} = {category!r}" for category in column.categories]
    counts = [(int((made == code).sum()), int((real == code).sum())) for code in range(len(names))]
    judged = [code for code, (_, n_real) in enumerate(counts) if n_real >= FEWEST]
    sizes = (len(made), len(real))
    lost = [code for code in judged if _is_lost(*counts[code], *sizes, FALSE_ALARMS / len(judged))]
    gone = [code for code, (n_made, n_real) in enumerate(counts) if n_real and not n_made]
    told = few(_told(names[code], *counts[code], *sizes, schema.counted) for code in lost or gone)
    if lost:
        return True, told
    few_ones = f"fewer than {FEWEST} training {schema.counted}"
    chance = f". Absent by chance, or of {few_ones}: {told}" if gone else ""
    if not judged:
        return None, f"no {outcome} has {FEWEST} training {schema.counted}{chance}"
    return False, f"no {outcome} of at least {FEWEST} training {schema.counted} got lost{chance}"


def _is_lost(n_made: int, n_real: int, all_made: int, all_real: int, error: float) -> bool:
    from scipy.stats import hypergeom

    if n_made / all_made >= LOST_RATIO * n_real / all_real:
        return False
    return bool(hypergeom.cdf(n_made, all_made + all_real, n_made + n_real, all_made) <= error)


def _told(what: str, n_made: int, n_real: int, all_made: int, all_real: int, counted: Counted) -> str:
    return (
        f"{what} ({n_real:,} of {all_real:,} training {counted}, {n_made:,} of {all_made:,} synthetic ones)"
    )


def _collapsed_number(
    made: NDArray[np.int64 | np.float64],
    real: NDArray[np.int64 | np.float64],
    outcome: str,
    counted: Counted,
) -> tuple[bool | None, str]:
    from scipy.stats import levene

    if min(len(made), len(real)) < FEWEST:
        return None, f"fewer than {FEWEST} {counted} have a known {outcome}"
    spread_made, spread_real = float(made.std()), float(real.std())
    smaller = spread_made < LOST_RATIO * spread_real
    collapsed = bool(smaller and levene(made, real, center="median").pvalue <= FALSE_ALARMS)
    what = "far smaller than" if collapsed else "not far smaller than"
    by_chance = " beyond chance" if smaller and not collapsed else ""
    return (
        collapsed,
        f"the standard deviation of {outcome}, {spread_made:.4g} in the synthetic {counted}, is {what} "
        f"{spread_real:.4g} in the training {counted}{by_chance}",
    )


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
        why = f"no training {schema.counted.one} has a known {outcome}: nothing to learn"
        return Learned.failed(models, why)
    one_class = len(np.unique(y)) < 2
    if one_class and n_categories is not None:
        code = int(y[0])
        certain = np.tile(np.eye(n_categories)[code], (len(test), 1))
        note = (
            f"every training {schema.counted.one} has {outcome} = {column.categories[code]!r}: "
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
    constant = f"every training {schema.counted.one} has {outcome} = {y[0]:g}: nothing to learn"
    return Learned(predictions, constant if one_class else "")
