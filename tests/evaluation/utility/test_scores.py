"""Scores of weighted records against scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import metrics

from dpsynth.evaluation.utility.models import Prediction
from dpsynth.evaluation.utility.scores import SCORES, Ranking, roc_points, scorer

records = st.lists(
    st.tuples(st.booleans(), st.sampled_from([0.0, 0.2, 0.5, 1.0]) | st.floats(0, 1), st.integers(0, 3)),
    min_size=2,
    max_size=30,
)


def columns(rows: list[tuple[bool, float, int]]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    y, score, weight = (np.array(values) for values in zip(*rows, strict=True))
    return y.astype(bool), score.astype(float), weight.astype(float)


@settings(max_examples=50, deadline=None)
@given(records)
def test_ranking_equals_scikit_learn(rows: list[tuple[bool, float, int]]) -> None:
    """Would catch ties that count 0 or 1, weights in another order, and records of weight 0 that count."""
    y, score, weight = columns(rows)
    weights = np.stack([weight, np.ones(len(y))], axis=1)
    auc, precision = Ranking(y, score)(weights)
    for k in range(2):
        w = weights[:, k]
        if w[y].sum() == 0 or w[~y].sum() == 0:
            assert np.isnan(auc[k]) and np.isnan(precision[k])
            continue
        assert auc[k] == pytest.approx(metrics.roc_auc_score(y, score, sample_weight=w), abs=1e-12)
        expected = metrics.average_precision_score(y, score, sample_weight=w)
        assert precision[k] == pytest.approx(expected, abs=1e-12)


@settings(max_examples=30, deadline=None)
@given(records)
def test_auc_is_the_share_of_pairs(rows: list[tuple[bool, float, int]]) -> None:
    """Would catch an AUC that is not the Mann-Whitney statistic, by the definition itself."""
    y, score, _ = columns(rows)
    if y.all() or not y.any():
        return
    gaps = score[y][:, None] - score[~y][None, :]
    expected = np.mean((gaps > 0) + 0.5 * (gaps == 0))
    assert Ranking(y, score)(np.ones((len(y), 1)))[0][0] == pytest.approx(expected, abs=1e-12)


def test_binary_scores() -> None:
    """Would catch scores of the first category, or an unweighted Brier score."""
    rng = np.random.default_rng(0)
    y, p = rng.random(200) < 0.4, rng.random(200)
    w = rng.integers(0, 4, 200).astype(float)
    found = scorer("binary", y.astype(np.int64), Prediction(np.stack([1 - p, p], axis=1)))(w[:, None])
    assert set(found) == set(SCORES["binary"])
    assert found["brier"][0] == pytest.approx(metrics.brier_score_loss(y, p, sample_weight=w))
    assert found["auc"][0] == pytest.approx(metrics.roc_auc_score(y, p, sample_weight=w))


def test_scores_of_three_categories() -> None:
    """Would catch a log loss in bits, an accuracy of probabilities, or a macro mean weighted by frequency."""
    rng = np.random.default_rng(1)
    y = rng.integers(0, 3, 300)
    p = rng.dirichlet([1.0, 1.0, 1.0], 300)
    w = rng.integers(0, 3, 300).astype(float)
    found = {name: float(v[0]) for name, v in scorer("categories", y, Prediction(p))(w[:, None]).items()}
    hot = np.eye(3)[y]
    assert found == pytest.approx(
        {
            "auc": np.mean([metrics.roc_auc_score(hot[:, k], p[:, k], sample_weight=w) for k in range(3)]),
            "average_precision": np.mean(
                [metrics.average_precision_score(hot[:, k], p[:, k], sample_weight=w) for k in range(3)]
            ),
            "brier": np.average(((p - hot) ** 2).sum(axis=1), weights=w),
            "accuracy": metrics.accuracy_score(y, p.argmax(axis=1), sample_weight=w),
            "log_loss": metrics.log_loss(y, p, sample_weight=w),
        }
    )
    assert set(found) == set(SCORES["categories"])


def test_category_without_weight_leaves_the_mean() -> None:
    """Would catch NaN for a resample that lacks a rare category, or a category counted as 0."""
    y = np.array([0, 0, 1, 1, 2])
    p = np.array([[0.8, 0.1, 0.1], [0.4, 0.5, 0.1], [0.3, 0.6, 0.1], [0.5, 0.4, 0.1], [0.1, 0.1, 0.8]])
    scores = scorer("categories", y, Prediction(p))
    weights = np.array([[1.0, 1, 1, 1, 0], [1, 1, 0, 0, 0]]).T
    found = scores(weights)
    assert found["auc"][0] == pytest.approx(
        np.mean([metrics.roc_auc_score(y[:4] == k, p[:4, k]) for k in (0, 1)])
    )
    assert np.isnan(found["auc"][1]) and found["accuracy"][1] == pytest.approx(0.5)


def test_category_never_trained_ranks_by_chance_and_keeps_log_loss_finite() -> None:
    """Would catch an infinite log loss, and an AUC other than 1/2 for a category without a column."""
    y = np.array([0, 1, 2, 2])
    p = np.array([[0.9, 0.1, 0.0], [0.2, 0.8, 0.0], [0.5, 0.5, 0.0], [0.4, 0.6, 0.0]])
    found = scorer("categories", y, Prediction(p))(np.ones((4, 1)))
    assert found["log_loss"][0] == pytest.approx(-np.log([0.9, 0.8, 1e-6, 1e-6]).mean())
    assert found["auc"][0] == pytest.approx((1 + 1 + 0.5) / 3)


def test_rankings_have_no_brier_score() -> None:
    """Would catch a Brier score or calibration of decision values."""
    y = np.array([0, 1, 0, 1])
    values = np.stack([-np.arange(4.0), np.arange(4.0)], axis=1)
    found = scorer("binary", y, Prediction(values, probabilities=False))(np.ones((4, 1)))
    assert set(found) == {"auc", "average_precision"}
    ranks = np.concatenate([values, np.full((4, 1), -np.inf)], axis=1)
    found = scorer("categories", np.array([0, 1, 2, 1]), Prediction(ranks, probabilities=False))(
        np.ones((4, 1))
    )
    assert set(found) == {"auc", "average_precision", "accuracy"}
    assert np.isfinite(found["auc"][0]) and found["accuracy"][0] == 0.75


def test_numeric_scores() -> None:
    """Would catch R squared about an unweighted mean, an error without its root, or a slope reversed."""
    rng = np.random.default_rng(2)
    y = rng.normal(1e6, 3.0, 150)  # a large mean loses digits in sums of squares
    predicted = y + rng.normal(0.5, 1.0, 150)
    w = rng.integers(0, 4, 150).astype(float)
    found = {n: float(v[0]) for n, v in scorer("numeric", y, Prediction(predicted))(w[:, None]).items()}
    slope = np.polyfit(predicted - 1e6, y, 1, w=np.sqrt(w))[0]
    assert found == pytest.approx(
        {
            "r2": metrics.r2_score(y, predicted, sample_weight=w),
            "rmse": metrics.root_mean_squared_error(y, predicted, sample_weight=w),
            "mae": metrics.mean_absolute_error(y, predicted, sample_weight=w),
            "calibration_slope": slope,
        },
        rel=1e-7,
    )
    assert set(found) == set(SCORES["numeric"])


def test_constant_numbers_have_no_r2_or_slope() -> None:
    """Would catch a division of rounding errors by each other."""
    y, ones = np.array([0.1, 0.3, 0.7]), np.ones((3, 1))
    found = scorer("numeric", y, Prediction(np.full(3, 0.1)))(ones)
    assert np.isnan(found["calibration_slope"][0]) and found["r2"][0] < 0
    found = scorer("numeric", np.full(3, 0.1), Prediction(y))(ones)
    assert np.isnan(found["r2"][0]) and found["mae"][0] == pytest.approx(0.8 / 3)
    one_record = np.array([[3.0], [0.0], [0.0]])
    found = scorer("numeric", y, Prediction(y + np.array([0.1, 0.0, 0.0])))(one_record)
    assert np.isnan(found["r2"][0]) and np.isnan(found["calibration_slope"][0])


def test_roc_keeps_its_shape_in_two_hundred_points() -> None:
    """Would catch thinning that loses an end, breaks the order, or moves the area."""
    rng = np.random.default_rng(4)
    y = rng.random(20_000) < 0.02
    score = rng.normal(size=20_000) + 2 * y
    fpr, tpr = roc_points(y, score)
    assert 100 < len(fpr) <= 200 and len(fpr) == len(tpr)
    assert (fpr[0], tpr[0], fpr[-1], tpr[-1]) == (0, 0, 1, 1)
    assert (np.diff(fpr) >= 0).all() and (np.diff(tpr) >= 0).all()
    assert metrics.auc(fpr, tpr) == pytest.approx(metrics.roc_auc_score(y, score), abs=0.005)
