"""Scores of weighted records against scikit-learn."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import statsmodels.api as sm
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.special import expit
from scipy.stats import norm
from sklearn import metrics

from dpsynth.evaluation import scores as module
from dpsynth.evaluation.models import Prediction
from dpsynth.evaluation.scores import (
    CLIP,
    SCORES,
    Ranking,
    Recalibration,
    bootstrap,
    calibration_curve,
    enough_records,
    percentile_interval,
    roc_points,
    scorer,
)

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


def logits(predicted: np.ndarray) -> np.ndarray:
    clipped = np.clip(predicted, CLIP, 1 - CLIP)
    return np.log(clipped / (1 - clipped))


def reference(y: np.ndarray, predicted: np.ndarray, weights: np.ndarray) -> tuple[float, float]:
    """Slope by statsmodels, intercept by the root of its score."""
    x = logits(predicted)
    design = sm.add_constant(x)
    line = sm.GLM(y.astype(float), design, family=sm.families.Binomial(), freq_weights=weights)
    shift = brentq(lambda a: np.dot(weights, y - expit(a + x)), -40.0, 40.0, xtol=1e-13)
    return float(line.fit(tol=1e-12).params[1]), float(shift)


@pytest.mark.parametrize("distinct", [False, True])
@pytest.mark.parametrize(("stretch", "shift"), [(1.0, 0.0), (4.0, 1.0), (0.2, -3.0), (-1.0, 0.5)])
def test_equals_statsmodels_for_counts_as_weights(distinct: bool, stretch: float, shift: float) -> None:
    """Would catch a penalty, weights in another order than the records, or Newton steps that stop early."""
    rng = np.random.default_rng(3)
    truth = rng.normal(size=400)
    y = rng.random(400) < 1 / (1 + np.exp(-truth))
    predicted = 1 / (1 + np.exp(-(stretch * truth + shift)))
    if not distinct:
        predicted = predicted.round(1)  # ties, and exact 0 and 1 that must be clipped
    weights = rng.multinomial(400, np.full(400, 1 / 400), size=3).T.astype(float)
    fitted = Recalibration(y, predicted)
    got = np.stack([fitted.slope(weights), fitted.intercept(weights)], axis=1)
    expected = [reference(y, predicted, weights[:, k]) for k in range(3)]
    np.testing.assert_allclose(got, expected, atol=2e-5, rtol=2e-5)
    ones = np.ones((400, 1))
    exact = reference(y, predicted, ones[:, 0])
    np.testing.assert_allclose(
        [fitted.slope(ones)[0], fitted.intercept(ones)[0]], exact, atol=1e-8, rtol=1e-8
    )


def test_predictions_all_near_zero_still_have_an_intercept() -> None:
    """Would catch Newton's first step, half a million here, taken whole: no way leads back."""
    y = np.arange(40) % 2 == 0
    fitted = Recalibration(y, np.full(40, 1e-9))
    assert fitted.intercept(np.ones((40, 1)))[0] == pytest.approx(-logits(np.array([CLIP]))[0], rel=1e-9)
    assert np.isnan(fitted.slope(np.ones((40, 1)))[0])


@pytest.mark.parametrize(
    ("y", "predicted"),
    [
        ([0, 0, 1, 1], [0.1, 0.2, 0.8, 0.9]),
        ([1, 1, 0, 0], [0.1, 0.2, 0.8, 0.9]),
        ([0, 0, 0, 1, 1], [0.1, 0.2, 0.5, 0.5, 0.9]),
        ([0, 1, 0, 1], [0.3, 0.3, 0.3, 0.3]),
        ([0, 1], [0.0, 1.0]),
        ([1, 1, 1], [0.2, 0.5, 0.7]),
        ([1], [0.4]),
    ],
)
def test_no_finite_slope_is_nan(y: list[int], predicted: list[float]) -> None:
    """Would catch a huge slope given for separated outcomes, a singular matrix, or a warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fitted = Recalibration(np.array(y, dtype=bool), np.array(predicted))
        assert np.isnan(fitted.slope(np.ones((len(y), 2)))).all()


def test_one_outcome_of_a_resample_is_nan_without_harm_to_others() -> None:
    """Would catch one degenerate resample that spoils its block."""
    y, predicted = np.array([0, 1, 0, 1, 1], dtype=bool), np.array([0.4, 0.3, 0.6, 0.8, 0.5])
    weights = np.stack([np.ones(5), y.astype(float), np.array([1.0, 2, 1, 1, 0])], axis=1)
    fitted = Recalibration(y, predicted)
    for values in (fitted.slope(weights), fitted.intercept(weights)):
        assert np.isnan(values).tolist() == [False, True, False]
    expected = reference(y, predicted, weights[:, 2])
    assert (fitted.slope(weights)[2], fitted.intercept(weights)[2]) == pytest.approx(expected, abs=1e-5)


@settings(max_examples=50, deadline=None)
@given(
    st.lists(
        st.tuples(st.booleans(), st.sampled_from([0.0, 0.1, 0.25, 0.5, 0.7, 1.0]) | st.floats(0, 1)),
        min_size=1,
        max_size=40,
    )
)
def test_curve_groups_every_record_once(pairs: list[tuple[bool, float]]) -> None:
    """Would catch records lost at an edge, parted ties, more than ten groups, or groups out of order."""
    y, predicted = (np.array(values) for values in zip(*pairs, strict=True))
    curve = calibration_curve(y.astype(bool), predicted.astype(float))
    count = np.array(curve["count"])
    assert 1 <= len(count) <= 10 and count.min() > 0 and count.sum() == len(y)
    assert np.dot(count, curve["predicted"]) == pytest.approx(predicted.sum())
    assert np.dot(count, curve["observed"]) == pytest.approx(y.sum())
    ends = np.cumsum(count)[:-1]
    ordered = np.sort(predicted)
    assert all(ordered[end - 1] < ordered[end] for end in ends)


def test_curve_makes_groups_of_equal_size() -> None:
    """Would catch groups of equal width, which are empty where predictions are few."""
    curve = calibration_curve(np.arange(100) % 3 == 0, (np.arange(100) / 100) ** 4)
    assert curve["count"] == [10] * 10


def delong(y: np.ndarray, *scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """AUCs and their covariance (DeLong et al. 1988, Biometrics 44), transcribed."""
    above, below = [], []
    for score in scores:
        gaps = score[y][:, None] - score[~y][None, :]
        wins = (gaps > 0) + 0.5 * (gaps == 0)
        above.append(wins.mean(axis=1))
        below.append(wins.mean(axis=0))
    v, w = np.array(above), np.array(below)
    covariance = np.atleast_2d(np.cov(v)) / v.shape[1] + np.atleast_2d(np.cov(w)) / w.shape[1]
    return v.mean(axis=1), covariance


def binormal(n: int, gap: float, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    y = rng.random(n) < 0.3
    return y, rng.normal(size=n) + gap * y


def auc_interval(
    y: np.ndarray, score: np.ndarray, rng: np.random.Generator, resamples: int
) -> tuple[float, float]:
    ranking = Ranking(y, score)
    drawn = bootstrap(lambda w: {"auc": ranking(w)[0]}, len(y), resamples, rng)
    interval = percentile_interval(drawn["auc"], 0.95)
    assert interval is not None
    return interval


def test_auc_interval_agrees_with_delong() -> None:
    """Would catch weights that do not belong to their records: the interval is then far too short."""
    rng = np.random.default_rng(0)
    y, score = binormal(600, 1.0, rng)
    lower, upper = auc_interval(y, score, rng, 2000)
    (auc,), covariance = delong(y, score)
    half = 1.96 * np.sqrt(covariance[0, 0])
    assert (upper - lower) / 2 == pytest.approx(half, rel=0.1)
    assert (lower + upper) / 2 == pytest.approx(auc, abs=0.2 * half)


def test_paired_difference_agrees_with_delong() -> None:
    """Would catch models resampled apart, whose difference varies several times as much."""
    rng = np.random.default_rng(1)
    y, score = binormal(500, 1.0, rng)
    other = score + 0.3 * rng.normal(size=500)
    rankings = Ranking(y, score), Ranking(y, other)
    drawn = bootstrap(lambda w: {"gap": rankings[0](w)[0] - rankings[1](w)[0]}, 500, 2000, rng)["gap"]
    aucs, covariance = delong(y, score, other)
    paired = np.sqrt(covariance[0, 0] + covariance[1, 1] - 2 * covariance[0, 1])
    assert drawn.std() == pytest.approx(paired, rel=0.1)
    assert drawn.std() < 0.5 * np.sqrt(covariance[0, 0] + covariance[1, 1])
    assert drawn.mean() == pytest.approx(aucs[0] - aucs[1], abs=paired / 5)


@pytest.mark.parametrize(("block", "n", "resamples"), [(400_000, 7, 30), (20, 7, 30), (1, 40, 3)])
def test_each_resample_draws_n_records(
    monkeypatch: pytest.MonkeyPatch, block: int, n: int, resamples: int
) -> None:
    """Would catch records drawn for the wrong resample, a lost last block, or draws that vary with blocks."""
    seen: list[np.ndarray] = []

    def watch(weights: np.ndarray) -> dict[str, np.ndarray]:
        assert weights.shape[0] == n
        seen.append(weights)
        return {"first": weights[0]}

    monkeypatch.setattr(module, "_BLOCK", block)
    found = bootstrap(watch, n, resamples, np.random.default_rng(5))["first"]
    counts = np.concatenate(seen, axis=1)
    drawn = np.random.default_rng(5).integers(n, size=(resamples, n))
    np.testing.assert_array_equal(counts.T, [np.bincount(row, minlength=n) for row in drawn])
    np.testing.assert_array_equal(found, counts[0])


def test_interval_needs_nearly_all_resamples() -> None:
    """Would catch an interval of the few resamples in which a score is defined."""
    values = np.arange(100.0)
    values[:10] = np.nan
    assert percentile_interval(values, 0.9) == pytest.approx((10 + 0.05 * 89, 10 + 0.95 * 89))
    values[10] = np.nan
    assert percentile_interval(values, 0.9) is None
    assert percentile_interval(np.full(5, np.nan), 0.9) is None
    assert percentile_interval(np.array([1.0]), 0.9) is None


@pytest.mark.parametrize(
    ("y", "kind", "enough"),
    [
        ([0, 1], "binary", False),
        ([0] * 5 + [1] * 4, "binary", False),
        ([0] * 5 + [1] * 5, "binary", True),
        ([0] * 100 + [1] * 4, "binary", False),
        ([0] * 100, "binary", False),
        ([0] * 5 + [1] * 1 + [2] * 5, "categories", True),
        ([0] * 5 + [1] * 3 + [2] * 3, "categories", False),
        (list(range(9)), "numeric", False),
        (list(range(10)), "numeric", True),
        ([], "numeric", False),
    ],
)
def test_few_records_have_no_interval(y: list[int], kind: str, enough: bool) -> None:
    """Would catch an interval of zero width from two records, or a traceback on none."""
    assert enough_records(np.array(y), kind) is enough


@pytest.mark.slow
@pytest.mark.parametrize(("n", "gap"), [(100, 1.0), (400, 0.3)])
def test_intervals_cover_the_true_auc(n: int, gap: float) -> None:
    """Would catch intervals that are too short: 95 % of them should hold the AUC of the population."""
    truth = norm.cdf(gap / np.sqrt(2))
    rng = np.random.default_rng(int(n))
    covered, by_delong = 0, 0
    for _ in range(600):
        y, score = binormal(n, gap, rng)
        lower, upper = auc_interval(y, score, rng, 400)
        covered += lower <= truth <= upper
        (auc,), covariance = delong(y, score)
        by_delong += abs(auc - truth) <= 1.96 * np.sqrt(covariance[0, 0])
    # the standard error of a coverage of 0.95 in 600 runs is 0.009
    assert 0.915 <= covered / 600 <= 0.98
    assert abs(covered - by_delong) / 600 < 0.03
