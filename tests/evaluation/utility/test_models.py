"""Models: ours, and whatever a user gives."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC

from dpsynth.errors import InputError
from dpsynth.evaluation.utility import models as fitting
from dpsynth.evaluation.utility.models import (
    CLASSIFIERS,
    REGRESSORS,
    Model,
    as_models,
    chosen_models,
    fit_and_predict,
)


def points(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 3))
    return x, (x[:, 0] + rng.normal(size=n) > 0).astype(np.int64)


def test_ours_by_default() -> None:
    """Would catch classifiers offered for numbers, and a registry that the caller can change."""
    assert chosen_models("binary") == chosen_models("categories") == CLASSIFIERS
    assert chosen_models("numeric") == REGRESSORS
    chosen_models("binary").clear()
    assert len(CLASSIFIERS) == 3


@pytest.mark.parametrize("given", [KNeighborsClassifier(3), lambda seed: KNeighborsClassifier(3)])
def test_estimators_and_factories(given: Any) -> None:
    """Would catch an estimator fitted in place, or probabilities of the wrong class."""
    (x, y), (test, _) = points(80, 0), points(20, 1)
    made = fit_and_predict(as_models({"mine": given})["mine"], 5, (x, y), test, 2)
    expected = KNeighborsClassifier(3).fit(x, y).predict_proba(test)
    assert made.probabilities and not made.failure
    np.testing.assert_array_equal(made.predicted, expected)
    assert not hasattr(given, "classes_")


def test_every_random_state_is_set() -> None:
    """Would catch a model inside a pipeline that is seeded from elsewhere, or a seed that is ignored."""
    (x, y), (test, _) = points(60, 2), points(30, 3)
    pipeline = make_pipeline(StandardScaler(), RandomForestClassifier(5))
    model = as_models({"mine": pipeline})["mine"]
    a, b, c = (fit_and_predict(model, seed, (x, y), test, 2).predicted for seed in (1, 1, 2))
    np.testing.assert_array_equal(a, b)
    assert not np.array_equal(a, c)


def test_decision_values_only_rank() -> None:
    """Would catch decision values taken for probabilities, or their sign lost."""
    (x, y), (test, _) = points(80, 4), points(20, 5)
    made = fit_and_predict(as_models({"svm": LinearSVC()})["svm"], 0, (x, y), test, 2)
    assert not made.probabilities
    np.testing.assert_allclose(
        made.predicted[:, 1], LinearSVC(random_state=0).fit(x, y).decision_function(test)
    )
    np.testing.assert_array_equal(made.predicted[:, 0], -made.predicted[:, 1])


def test_lacking_category_has_no_probability() -> None:
    """Would catch a column shifted to the next category where training lacks one."""
    x, y = points(60, 6)
    made = fit_and_predict(CLASSIFIERS["logistic_regression"], 0, (x, 2 * y), x, 3)
    assert (made.predicted[:, 1] == 0).all()
    np.testing.assert_allclose(made.predicted.sum(axis=1), 1.0)
    svm = fit_and_predict(Model(lambda seed: LinearSVC()), 0, (x, 2 * y), x, 3)
    assert (svm.predicted[:, 1] == -np.inf).all() and np.isfinite(svm.predicted[:, [0, 2]]).all()


@pytest.mark.slow
def test_same_forest_for_any_number_of_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Would catch threads that change the trees, or votes summed in random order."""
    (x, y), (test, _) = points(300, 7), points(100, 8)
    alone = fit_and_predict(CLASSIFIERS["random_forest"], 3, (x, y), test, 2).predicted
    threads: list[object] = []
    for method in ("fit", "predict_proba"):
        original = getattr(RandomForestClassifier, method)

        def watch(self: Any, *arguments: Any, original: Any = original) -> Any:
            threads.append(self.n_jobs)
            return original(self, *arguments)

        monkeypatch.setattr(RandomForestClassifier, method, watch)
    monkeypatch.setattr(fitting, "PARALLEL_RECORDS", 10)
    monkeypatch.setattr(fitting.os, "cpu_count", lambda: 2)
    np.testing.assert_array_equal(
        alone, fit_and_predict(CLASSIFIERS["random_forest"], 3, (x, y), test, 2).predicted
    )
    assert threads == [2, None]


@pytest.mark.parametrize("name", list(REGRESSORS))
def test_regressors_predict_in_the_unit_of_the_outcome(name: str) -> None:
    """Would catch a target left scaled, and more coordinates than records that blow a model up."""
    x, _ = points(300, 9)
    y = 500.0 + 100 * x[:, 0]
    model = REGRESSORS[name]
    assert np.abs(fit_and_predict(model, 0, (x, y), x, None).predicted - y).mean() < 30
    wide = np.random.default_rng(0).normal(size=(6, 40))
    few = fit_and_predict(model, 0, (wide, y[:6]), wide + 0.1, None).predicted
    assert few.min() > 200 and few.max() < 800


class Raises:
    def fit(self, x: np.ndarray, y: np.ndarray) -> None:
        raise RuntimeError("no licence\nsecond line")

    def predict_proba(self, x: np.ndarray) -> None: ...


class Says:
    """Predicts whatever it was given."""

    def __init__(self, says: np.ndarray) -> None:
        self.says = says

    def fit(self, x: np.ndarray, y: np.ndarray) -> Says:
        return self

    def predict_proba(self, x: np.ndarray) -> np.ndarray:
        return self.says


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda seed: Raises(), "the model failed: no licence"),
        (lambda seed: Says(np.zeros((4, 3))), r"shape \(4, 3\), not \(4, 2\)"),
        (lambda seed: Says(np.full((4, 2), np.nan)), "not finite"),
        (lambda seed: Says(np.full((4, 2), 1.5)), "outside"),
    ],
)
def test_failures_become_sentences(make: Any, why: str) -> None:
    """Would catch a user's traceback that ends the whole evaluation, or nonsense that is scored."""
    x, y = np.zeros((4, 1)), np.array([0, 1, 0, 1])
    made = fit_and_predict(Model(make), 0, (x, y), x, 2)
    assert made.predicted is None
    assert re.search(why, made.failure)


@pytest.mark.parametrize(
    ("models", "kind", "message"),
    [
        ({}, "binary", "models must be a mapping of at least one name"),
        ([SVC()], "binary", "models must be a mapping"),
        ({"mean": SVC()}, "binary", "a model's name must .* got 'mean'"),
        ({"real_forest": SVC()}, "binary", "got 'real_forest'"),
        ({"My SVM": SVC()}, "binary", "got 'My SVM'"),
        ({3: SVC()}, "binary", "got 3"),
        ({"x": "forest"}, "binary", r"'x' must be an estimator or a function from a seed to one"),
        ({"x": LogisticRegression}, "binary", "got the class LogisticRegression"),
        ({"x": lambda seed: 3}, "binary", "gives int, which has no fit"),
        ({"x": lambda: SVC()}, "binary", r"'x' cannot be made: "),
        ({"x": LinearRegression()}, "binary", "has no predict_proba and no decision_function"),
        ({"x": StandardScaler()}, "numeric", "has no predict"),
        ({"x": Raises()}, "binary", r"'x' cannot be made: "),
    ],
)
def test_unusable_models_are_refused(models: Any, kind: Any, message: str) -> None:
    """Would catch a bad model found only after minutes of training, or without its name."""
    with pytest.raises(InputError, match=message):
        chosen_models(kind, as_models(models))


@pytest.mark.parametrize(("registry", "categories"), [(CLASSIFIERS, 2), (REGRESSORS, None)])
def test_boosting_learns_the_same_without_coordinates_that_it_cannot_split(
    registry: dict[str, Model], categories: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Would catch a coordinate left out that a tree would have used."""
    rng = np.random.default_rng(0)
    codes = np.minimum(rng.zipf(1.4, 600), 60) - 1
    x = np.hstack([rng.normal(size=(600, 1)), codes[:, None] == np.arange(60)]).astype(np.float64)
    x[::5, 0] = np.nan
    y = (codes % 3 == 0) * 1.0 + rng.normal(size=600)
    y = (y > 0.5).astype(np.int64) if categories else y
    boosting = registry["hist_gradient_boosting"]
    kept = fitting._splittable(boosting.make(0), x[:400], x[400:])[0].shape[1]
    found = fit_and_predict(boosting, 0, (x[:400], y[:400]), x[400:], categories)
    monkeypatch.setattr(fitting, "_splittable", lambda estimator, x, test: (x, test))
    whole = fit_and_predict(boosting, 0, (x[:400], y[:400]), x[400:], categories)
    assert kept < 12 and np.array_equal(found.predicted, whole.predicted)
