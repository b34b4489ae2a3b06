"""The scikit-learn classifier and regressor."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeRegressor

from dpsynth.errors import InputError, NotFittedError
from dpsynth.research.soft_labels import (
    Interpolated,
    OptimallySoft,
    Procedure,
    SoftLabelClassifier,
    SoftTargetRegressor,
    WeightedCopies,
)
from dpsynth.research.soft_labels.estimators import soft_values


def cancer():
    X, y = load_breast_cancer(return_X_y=True)
    return X, np.where(y == 1, "benign", "malignant")


def soft(**how):
    how = {"splits": 3, "random_state": 0, **how}
    return SoftLabelClassifier(make_pipeline(StandardScaler(), LogisticRegression()), **how)


def test_learns_a_real_table_and_keeps_its_class_names():
    """Catches classes in the wrong order, and labels that lost their names."""
    X, y = cancer()
    model = soft(alpha=1.0).fit(X[:300], y[:300])
    assert model.classes_.tolist() == ["benign", "malignant"]
    assert (model.predict(X[300:]) == y[300:]).mean() > 0.93
    assert model.targets_.shape == (300, 2) and model.alpha_ == 1.0 and model.validation_accuracy_ == {}


def test_targets_are_the_procedures():
    """Catches an estimator that goes another way than what the attacker is given."""
    X, y = cancer()
    X, y = X[:80], y[:80]
    model = soft(alpha=0.5).fit(X, y)
    procedure = Procedure(WeightedCopies(model.classifier), splits=3)
    seed = int(np.random.SeedSequence(0).generate_state(1)[0])
    labels = (y == "malignant").astype(int)
    expected = procedure.soft_targets(X, labels, 2, [OptimallySoft(0.5)], seed)["soft 0.5"]
    np.testing.assert_array_equal(model.targets_, expected)


def test_alpha_is_the_best_by_validation_and_the_most_private_of_equals():
    """Catches a choice by training records: labels of the validation part decide."""
    X, y = cancer()
    chosen = soft().fit(X[:200], y[:200], X[200:], y[200:])
    best = max(chosen.validation_accuracy_.values())
    equals = [alpha for alpha, value in chosen.validation_accuracy_.items() if value == best]
    assert chosen.alpha_ == min(equals) and set(chosen.validation_accuracy_) == {0.0, 0.25, 0.5, 1.0}
    held_out = soft(alphas=(0.0, 1.0)).fit(X[:200], y[:200])
    assert held_out.alpha_ in (0.0, 1.0) and len(held_out.targets_) == 200


def test_probability_form_with_alpha_1_is_the_ordinary_fit():
    """Catches a defence that changes what it should not: (5.14) with alpha 1 is training on the labels."""
    X, y = cancer()
    ours = soft(alpha=1.0, scheme=Interpolated).fit(X, y).predict_proba(X)
    plain = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y).predict_proba(X)
    np.testing.assert_allclose(ours, plain, atol=1e-10)


def test_is_a_scikit_learn_estimator():
    """Catches arguments that are changed or lost on the way into the object."""
    model = soft(alpha=0.25, alphas=(0.0, 1.0), recursions=2)
    assert clone(model).get_params()["alphas"] == (0.0, 1.0)
    X, y = cancer()
    first, second = model.fit(X[:60], y[:60]), clone(model).fit(X[:60], y[:60])
    np.testing.assert_array_equal(first.targets_, second.targets_)


@pytest.mark.parametrize(
    ("act", "error", "words"),
    [
        (lambda X, y: soft().predict(X), NotFittedError, "call fit"),
        (lambda X, y: soft(alpha=-1.0).fit(X, y), InputError, "alpha must lie in"),
        (lambda X, y: soft().fit(X, y[:-1]), InputError, "one label a row"),
        (lambda X, y: soft().fit(np.where(X[3, 2] == X, np.nan, X), y), InputError, "row 3, column 2"),
        (lambda X, y: soft().fit(X, y, X), InputError, "given together"),
        (lambda X, y: soft().fit(X, y, X, np.full(40, "x")), InputError, "only classes that y holds"),
        (lambda X, y: soft(alphas=()).fit(X, y), InputError, "alphas must hold"),
        (lambda X, y: soft(alpha=1.0).fit(X, y).predict(X[:, :2]), InputError, "30 columns, got 2"),
    ],
)
def test_faults_are_named(act, error, words):
    """Catches a fault that becomes a wrong answer, or one that only scikit-learn words."""
    X, y = cancer()
    with pytest.raises(error, match=words):
        act(X[:40], y[:40])


def test_soft_values_stop_at_the_value():
    """Catches targets beyond the record's value, and alpha 0 that still reads it."""
    mean, std, values = np.zeros(4), np.ones(4), np.array([5.0, -5.0, 0.5, -0.5])
    np.testing.assert_array_equal(soft_values(mean, std, values, 2.0), [2.0, -2.0, 0.5, -0.5])
    np.testing.assert_array_equal(soft_values(mean, std, values, 0.0), mean)
    np.testing.assert_array_equal(soft_values(mean, std, values, 100.0), values)


def test_regression_softens_a_tree_that_memorises():
    """Catches targets from models with the record: those of a tree would be the values themselves."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2))
    y = X[:, 0] + rng.normal(size=200)
    model = SoftTargetRegressor(DecisionTreeRegressor(), alpha=0.0, splits=10, random_state=1).fit(X, y)
    assert np.abs(model.targets_ - X[:, 0]).mean() < 0.75 * np.abs(y - X[:, 0]).mean()
    exact = SoftTargetRegressor(LinearRegression(), alpha=1e5, splits=2, random_state=1).fit(X, y)
    np.testing.assert_allclose(exact.predict(X), LinearRegression().fit(X, y).predict(X), atol=1e-8)
    with pytest.raises(InputError, match="n at least 4"):
        SoftTargetRegressor(LinearRegression()).fit(X[:3], y[:3])
    with pytest.raises(NotFittedError):
        SoftTargetRegressor(LinearRegression()).predict(X)
