"""Models: ours, and whatever a user gives."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from dpsynth.evaluation import models as fitting
from dpsynth.evaluation.models import (
    CLASSIFIERS,
    REGRESSORS,
    Learned,
    Model,
    Prediction,
    chosen_models,
    fit_and_predict,
    known_outcomes,
    learn_and_predict,
    outcome_kind,
)
from dpsynth.evaluation.scores import scorer
from dpsynth.table.schema import Column, Schema


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


def test_lacking_category_has_no_probability() -> None:
    """Would catch a column shifted to the next category where training lacks one."""
    x, y = points(60, 6)
    made = fit_and_predict(CLASSIFIERS["logistic_regression"], 0, (x, 2 * y), x, 3)
    assert (made.predicted[:, 1] == 0).all()
    np.testing.assert_allclose(made.predicted.sum(axis=1), 1.0)


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
    """Would catch a traceback that ends the whole evaluation, or nonsense that is scored."""
    x, y = np.zeros((4, 1)), np.array([0, 1, 0, 1])
    made = fit_and_predict(Model(make), 0, (x, y), x, 2)
    assert made.predicted is None
    assert re.search(why, made.failure)


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


SCHEMA = Schema(
    columns=(
        Column(name="age", kind="integer", lower=0, upper=100, missing=True),
        Column(name="sex", kind="binary", categories=("F", "M")),
        Column(name="died", kind="binary", categories=("no", "yes"), missing=True),
        Column(name="stage", kind="ordinal", categories=(1, 2, 3)),
    ),
    outcome="died",
)


def table(n: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    age = rng.integers(0, 101, n)
    died = np.where(rng.random(n) < 1 / (1 + np.exp(-(age - 50) / 12)), "yes", "no")
    raw = pd.DataFrame({"age": age, "sex": rng.choice(["F", "M"], n), "died": died, "stage": 1 + age // 34})
    return SCHEMA.conform(raw).frame


def trained(
    train: pd.DataFrame, test: pd.DataFrame, outcome: str = "died", seed: int = 0
) -> tuple[Learned, dict[str, float]]:
    """What our three classifiers learn, and the AUC of each."""
    rng = np.random.default_rng(seed)
    learned = learn_and_predict(train, test, SCHEMA, outcome, models=CLASSIFIERS, rng=rng)
    known, y = known_outcomes(test, SCHEMA, outcome)
    kind = outcome_kind(SCHEMA.column(outcome))
    assert len(known) == len(test)
    return learned, {
        name: float(scorer(kind, y, prediction)(np.ones((len(y), 1)))["auc"][0])
        for name, prediction in learned.predictions.items()
    }


def test_equals_scikit_learn_called_directly() -> None:
    """Would catch scores of the wrong class, the outcome as a predictor, or train and test exchanged."""
    train, test = table(400, 0), table(300, 1)

    def naive(frame: pd.DataFrame) -> np.ndarray:
        male = (frame["sex"] == "M").to_numpy(float)
        age = frame["age"].to_numpy(float) / 100
        return np.stack([age, 1 - male, male, (frame["stage"].to_numpy(float) - 1) / 2], axis=1)

    y_train, y_test = (frame["died"].to_numpy() == "yes" for frame in (train, test))
    # the outcome may be missing in this schema and age has a missing indicator: constant here
    scaler = StandardScaler().fit(naive(train))
    linear = LogisticRegression(max_iter=1000).fit(scaler.transform(naive(train)), y_train)
    expected = roc_auc_score(y_test, linear.predict_proba(scaler.transform(naive(test)))[:, 1])
    boosted = HistGradientBoostingClassifier(early_stopping=False, random_state=0)
    with threadpool_limits(limits=1):
        boosted.fit(naive(train), y_train)
    # each model takes one number of the generator, so that earlier results can be repeated
    forest_seed = np.random.default_rng(0).integers(2**31 - 1, size=3)[2]
    forest = RandomForestClassifier(n_estimators=200, random_state=int(forest_seed))
    absent = np.zeros((400, 1))
    forest.fit(np.hstack([naive(train)[:, :1], absent, naive(train)[:, 1:]]), y_train)
    of_forest = forest.predict_proba(np.hstack([naive(test)[:, :1], absent[:300], naive(test)[:, 1:]]))

    learned, auc = trained(train, test)
    assert auc["logistic_regression"] == pytest.approx(expected, abs=1e-6)
    assert auc["hist_gradient_boosting"] == pytest.approx(
        roc_auc_score(y_test, boosted.predict_proba(naive(test))[:, 1]), abs=1e-9
    )
    assert auc["random_forest"] == pytest.approx(roc_auc_score(y_test, of_forest[:, 1]), abs=1e-9)
    assert set(auc) == set(CLASSIFIERS)
    assert learned.note == ""


def test_reversed_labels_score_below_one_half() -> None:
    """Would catch an AUC folded to above 1/2, which hides a table that teaches the opposite."""
    train, test = table(300, 2), table(300, 3)
    train["died"] = train["died"].map({"yes": "no", "no": "yes"}).astype(test["died"].dtype)
    assert max(trained(train, test)[1].values()) < 0.3


def test_one_class_of_synthetic_outcomes_is_flagged() -> None:
    """Would catch scikit-learn's traceback where a collapsed generator gives one outcome only."""
    train = table(100, 4).assign(died="no")
    learned, auc = trained(train, table(100, 5))
    assert "nothing to learn" in learned.note and set(auc.values()) == {0.5}
    assert "every training record has died = 'no'" in learned.note


def test_missing_outcomes_and_predictors_take_no_part() -> None:
    """Would catch a missing outcome counted as a class, and NaN or all-missing columns in a classifier."""
    train, test = table(60, 6), table(60, 7)
    train.loc[train.index[:10], "died"] = None
    train["age"] = pd.array([pd.NA] * 60, dtype="Int64")
    test.loc[test.index[:30], "age"] = pd.NA
    auc = trained(train, test)[1]
    assert all(0 <= value <= 1 for value in auc.values())


@pytest.mark.parametrize("n", [2, 5, 20])
def test_tiny_tables(n: int) -> None:
    """Would catch classifiers that need more records than a small cohort has."""
    train = table(n, 8)
    train["died"] = (["yes", "no"] * n)[:n]
    assert np.isfinite(list(trained(train, table(20, 9))[1].values())).all()


def test_three_categories_average_one_against_the_rest() -> None:
    """Would catch a crash where training lacks a category, and a mean that skips it (it scores 0.5)."""
    train, test = table(200, 10), table(200, 11)
    full = np.mean(list(trained(train, test, "stage")[1].values()))
    assert full > 0.95
    # training knows the categories 0 and 2: each scores 1 here, and category 1 has the score 0 everywhere
    y, scores = np.array([0, 0, 1, 2]), np.array([[0.9, 0.1], [0.8, 0.2], [0.5, 0.5], [0.1, 0.9]])
    filled = np.insert(scores, 1, 0.0, axis=1)
    auc = scorer("categories", y, Prediction(filled))(np.ones((4, 1)))["auc"][0]
    assert auc == pytest.approx((1 + 0.5 + 1) / 3)
    lacking = np.mean(list(trained(train[train["stage"] != 2], test, "stage")[1].values()))
    assert 0.5 < lacking < full


def test_same_generator_gives_the_same_scores() -> None:
    """Would catch a classifier seeded from somewhere else."""
    train, test = table(80, 12), table(80, 13)
    assert trained(train, test, seed=7)[1] == trained(train, test, seed=7)[1]


def test_models_see_the_same_records_and_seeds_in_order() -> None:
    """Would catch one stream of seeds for all models, NaN imputed for all, a missing outcome learned."""
    train, test = table(34, 15), table(10, 16)
    train.loc[train.index[:5], "age"] = pd.NA
    train.loc[train.index[:4], "died"] = None
    seen: list[tuple[int, bool]] = []

    class Watches:
        def fit(self, x: np.ndarray, y: np.ndarray) -> None:
            seen[-1] = (seen[-1][0], bool(np.isnan(x).any()))
            self.n = len(x)

        def predict_proba(self, x: np.ndarray) -> np.ndarray:
            assert self.n == 30 and len(x) == 10
            return np.full((len(x), 2), 0.5)

    def make(seed: int) -> Watches:
        seen.append((seed, False))
        return Watches()

    models = {"imputed": Model(make), "raw": Model(make, impute=False)}
    done: list[float] = []
    learned = learn_and_predict(
        train, test, SCHEMA, "died", models=models, rng=np.random.default_rng(4), progress=done.append
    )
    twin = np.random.default_rng(4)
    seeds = [int(twin.integers(2**31 - 1)) for _ in range(2)]
    assert seen == [(seeds[0], False), (seeds[1], True)]
    assert done == [0.5, 1.0]
    assert not learned.note


def test_numbers_are_regressed() -> None:
    """Would catch the outcome among the predictors, or a number predicted on another scale."""
    train, test = table(300, 17), table(200, 18)
    learned = learn_and_predict(train, test, SCHEMA, "age", models=REGRESSORS, rng=np.random.default_rng(0))
    for prediction in learned.predictions.values():
        # the stage tells the age up to 34 years; the age itself would tell it exactly
        error = np.abs(prediction.predicted - test["age"].to_numpy(float))
        assert 2 < error.mean() < 12
    constant = learn_and_predict(
        train.assign(age=40), test, SCHEMA, "age", models=REGRESSORS, rng=np.random.default_rng(0)
    )
    assert "every training record has age = 40" in constant.note
    assert all(np.allclose(p.predicted, 40) for p in constant.predictions.values())


def test_nothing_to_learn_is_said() -> None:
    """Would catch a traceback where no training record has a known outcome."""
    frame = table(10, 14)
    learned = learn_and_predict(
        frame.assign(died=None), frame, SCHEMA, "died", models=CLASSIFIERS, rng=np.random.default_rng(0)
    )
    assert {prediction.failure for prediction in learned.predictions.values()} == {learned.note}
    assert "no training record has a known died" in learned.note
