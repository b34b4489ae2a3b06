"""Models that predict an outcome: three classifiers, three regressors, and whatever the user gives.

Three kinds each: a linear model, gradient boosting and a random forest. All see the coordinates of
:class:`~dpsynth.evaluation.features.ClassifierEncoding`; classifiers learn the positions of the outcome's
categories (0, 1, ...), regressors the outcome in its own unit.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from dpsynth.errors import InputError
from dpsynth.evaluation.utility.outcomes import OutcomeKind

Floats = NDArray[np.float64]
# auc_real_mean and the like must not become ambiguous
_NAME = re.compile(r"(?!(mean|real|difference)(_|\Z))[a-z][a-z0-9_]*")


class Estimator(Protocol):
    """What scikit-learn calls an estimator; a user's has to fit, and one of the ways to predict."""

    def fit(self, x: Floats, y: NDArray[np.int64 | np.float64], /) -> object:
        """Learn."""

    def predict(self, x: Floats, /) -> Floats:
        """Return numbers of shape (n,)."""

    def predict_proba(self, x: Floats, /) -> Floats:
        """Return probabilities of shape (n, classes)."""

    def decision_function(self, x: Floats, /) -> Floats:
        """Return scores of shape (n,) or (n, classes)."""

    def set_params(self, **params: object) -> Estimator:
        """Set options and return the estimator."""


@dataclass(frozen=True)
class Model:
    """How to make a model.

    Parameters
    ----------
    make : callable
        From a seed (int) to an unfitted scikit-learn estimator.
    impute : bool
        Whether missing numbers become the training median beside an indicator, or stay NaN.
    """

    make: Callable[[int], Estimator]
    impute: bool = True


def _scaled(model: Estimator) -> Estimator:
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return make_pipeline(StandardScaler(), model)


def _logistic_regression(seed: int) -> Estimator:
    from sklearn.linear_model import LogisticRegression

    return _scaled(LogisticRegression(max_iter=1000))


def _hist_gradient_boosting(seed: int) -> Estimator:
    from sklearn.ensemble import HistGradientBoostingClassifier

    # Early stopping would hold out a stratified part, which fails where a class has a single record.
    return HistGradientBoostingClassifier(early_stopping=False, random_state=seed)


def _random_forest(seed: int) -> Estimator:
    from sklearn.ensemble import RandomForestClassifier

    return RandomForestClassifier(n_estimators=200, random_state=seed)


def _ridge_regression(seed: int) -> Estimator:
    from sklearn.linear_model import Ridge

    # The penalty holds the coefficients where there are more coordinates than records.
    return _scaled(Ridge(alpha=1.0))


def _hist_gradient_boosting_regressor(seed: int) -> Estimator:
    from sklearn.ensemble import HistGradientBoostingRegressor

    return HistGradientBoostingRegressor(early_stopping=False, random_state=seed)


def _random_forest_regressor(seed: int) -> Estimator:
    from sklearn.ensemble import RandomForestRegressor

    # Full trees of a number have a leaf a record: a gigabyte at 50,000 records, and no better.
    return RandomForestRegressor(n_estimators=100, min_samples_leaf=5, max_features=1 / 3, random_state=seed)


CLASSIFIERS: dict[str, Model] = {
    "logistic_regression": Model(_logistic_regression),
    "hist_gradient_boosting": Model(_hist_gradient_boosting, impute=False),
    "random_forest": Model(_random_forest),
}
REGRESSORS: dict[str, Model] = {
    "ridge_regression": Model(_ridge_regression),
    "hist_gradient_boosting": Model(_hist_gradient_boosting_regressor, impute=False),
    "random_forest": Model(_random_forest_regressor),
}


def as_models(given: object) -> dict[str, Model] | None:
    """Return what a user gives in place of our models, ready to be made; None for None.

    Parameters
    ----------
    given : mapping of str to estimator, factory or Model, or None
        Scikit-learn estimators (cloned, every ``random_state`` set), functions from a seed to an estimator,
        or :class:`Model`; ``{**CLASSIFIERS, "mine": estimator}`` adds one to ours.

    Raises
    ------
    InputError
        If a name is not in lower_snake_case or would clash with a measure, or if something cannot be made or
        cannot fit.

    Examples
    --------
    >>> as_models({"mine": 3})
    Traceback (most recent call last):
    dpsynth.errors.InputError: 'mine' must be an estimator or a function from a seed to one, got 3
    """
    if given is None:
        return None
    if not isinstance(given, Mapping) or not given:
        raise InputError(f"models must be a mapping of at least one name to an estimator, got {given!r}")
    for name in given:
        if not (isinstance(name, str) and _NAME.fullmatch(name)):
            raise InputError(
                "a model's name must be in lower_snake_case and not begin with mean, real or difference, "
                f"got {name!r}"
            )
    return {name: _model(name, entry) for name, entry in given.items()}


def chosen_models(kind: OutcomeKind, models: Mapping[str, Model] | None = None) -> dict[str, Model]:
    """Return the models to train: our three, or those given instead.

    Parameters
    ----------
    kind : {"binary", "categories", "numeric"}
    models : mapping of str to Model, optional
        Classifiers need ``predict_proba``, or else ``decision_function``, which only ranks; regressors
        ``predict``.

    Raises
    ------
    InputError
        If one of them cannot predict such an outcome.
    """
    if models is None:
        return dict(REGRESSORS if kind == "numeric" else CLASSIFIERS)
    ways = ("predict",) if kind == "numeric" else ("predict_proba", "decision_function")
    for name, model in models.items():
        estimator = model.make(0)
        if not any(hasattr(estimator, way) for way in ways):
            raise InputError(f"models[{name!r}] ({type(estimator).__name__}) has no {' and no '.join(ways)}")
    return dict(models)


def _model(name: str, given: object) -> Model:
    if isinstance(given, Model):
        model = given
    elif isinstance(given, type):
        raise InputError(f"{name!r} must be an estimator, got the class {given.__name__}: call it")
    elif hasattr(given, "fit"):
        model = Model(lambda seed: _seeded(given, seed))
    elif callable(given):
        model = Model(given)
    else:
        raise InputError(f"{name!r} must be an estimator or a function from a seed to one, got {given!r}")
    try:
        estimator = model.make(0)
    except Exception as problem:  # whatever the user's code raises becomes one sentence
        raise InputError(f"{name!r} cannot be made: {first_line(problem)}") from None
    if not hasattr(estimator, "fit"):
        raise InputError(f"{name!r} gives {type(estimator).__name__}, which has no fit")
    return model


def _seeded(estimator: object, seed: int) -> Estimator:
    from sklearn.base import clone

    copy = clone(estimator)
    seeds = {key: seed for key in copy.get_params() if key.split("__")[-1] == "random_state"}
    return copy.set_params(**seeds)


def first_line(problem: Exception) -> str:
    """The first line of what was raised, shortened."""
    text = str(problem).strip() or type(problem).__name__
    return text.splitlines()[0][:200]
