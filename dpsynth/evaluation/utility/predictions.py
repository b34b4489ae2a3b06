"""What a model predicts for records that it has not seen: fitted, checked, and never a traceback."""

from __future__ import annotations

import os
import warnings
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from dpsynth.evaluation.utility.models import Estimator, Model, first_line

Floats = NDArray[np.float64]
#: from this many training records on, the trees of a forest are grown by several threads
PARALLEL_RECORDS = 5_000


@dataclass(frozen=True)
class Prediction:
    """What a model says about the test records.

    Attributes
    ----------
    predicted : ndarray of shape (n, categories) or (n,), or None
        A number for each declared category, or the predicted outcome in its unit; None where there is none.
    probabilities : bool
        Whether these are probabilities; otherwise they only rank the records.
    failure : str
        Why there is no prediction, in one sentence; empty if there are.
    """

    predicted: Floats | None = field(repr=False)
    probabilities: bool = True
    failure: str = ""


def fit_and_predict(
    model: Model,
    seed: int,
    train: tuple[Floats, NDArray[np.int64 | np.float64]],
    test: Floats,
    n_categories: int | None,
) -> Prediction:
    """Fit a model and let it predict; whatever it raises becomes the failure of the prediction.

    Parameters
    ----------
    seed : int
        Decides everything that is random in the model.
    train : tuple of ndarray of shape (n, d), (n,)
        Coordinates and outcomes; at least two classes.
    test : ndarray of shape (m, d)
    n_categories : int or None
        Number of declared categories; None for a numeric outcome.

    Returns
    -------
    Prediction
        A category that the training records lack has probability 0, or ranks last, everywhere.
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
        except Exception as problem:  # a user's model may raise anything, and ours on some odd table
            return Prediction(None, failure=f"the model failed: {first_line(problem)}")


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
    probabilities = hasattr(estimator, "predict_proba")
    if probabilities:
        given = np.asarray(estimator.predict_proba(test), dtype=np.float64)
    else:
        given = np.asarray(estimator.decision_function(test), dtype=np.float64)
        if given.ndim == 1:
            given = np.stack([-given, given], axis=1)
    checked = _checked(given, (len(test), len(classes)))
    if checked.failure:
        return checked
    if probabilities and ((given < 0).any() or (given > 1).any()):
        return Prediction(None, failure="the model gave probabilities outside [0, 1]")
    values = np.full((len(test), n_categories), 0.0 if probabilities else -np.inf)
    values[:, classes] = given
    return Prediction(values, probabilities)


def _checked(values: Floats, shape: tuple[int, ...]) -> Prediction:
    if values.shape != shape:
        return Prediction(None, failure=f"the model gave predictions of shape {values.shape}, not {shape}")
    if not np.isfinite(values).all():
        return Prediction(None, failure="the model gave a prediction that is not finite")
    return Prediction(values)
