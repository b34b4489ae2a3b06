"""Calibration regressions against statsmodels, and curves that lose no record."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import statsmodels.api as sm
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.special import expit

from dpsynth.evaluation.utility.scores import CLIP, Recalibration, calibration_curve


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
