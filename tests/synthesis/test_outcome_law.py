"""The outcome of matched points, drawn from a logistic regression on their other columns."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from dpsynth.synthesis.matching import Matched
from dpsynth.synthesis.outcome_law import OutcomeLaw, coordinates_and_squares, with_categories
from dpsynth.table import Column, Schema
from dpsynth.table.encoder import Encoder
from dpsynth.wgan.networks import MatchedPoints


def encoder_of(*categories, outcome="died", kind="categorical"):
    schema = Schema(
        columns=(
            Column(name="age", kind="continuous", lower=0, upper=1),
            Column(name="ward", kind="categorical", categories=("a", "b", "c")),
            Column(name="died", kind=kind, categories=categories),
        ),
        outcome=outcome,
        n_public=500,
    )
    return Encoder(schema, None)


def points_of(rng, n, size):
    """Points of age, three wards and so many outcomes: young and old, and ward b, lean to the last."""
    age, ward = rng.random(n), rng.integers(3, size=n)
    lean = 6.0 * np.abs(age - 0.5) + (ward == 1) - 2.0 + rng.normal(size=n)
    outcome = np.clip(np.digitize(lean, np.linspace(0.0, 1.0, size - 1)), 0, size - 1)
    return np.concatenate([age[:, None], np.eye(3)[ward], np.eye(size)[outcome]], axis=1).astype(np.float32)


@pytest.mark.parametrize("categories", [("no", "yes"), ("no", "late", "yes")])
def test_mean_products_with_the_outcome_are_kept(categories):
    """Catches a law of other columns, of the wrong category, without squares, or with a wrong intercept."""
    rng, size = np.random.default_rng(0), len(categories)
    encoder = encoder_of(*categories)
    points = MatchedPoints(points_of(rng, 4000, size), 0.05)
    law = OutcomeLaw.of(points, encoder)
    fresh = points.sample(50_000, 1, rng)
    redrawn = law.redrawn(fresh, encoder, rng)
    x = coordinates_and_squares(fresh, 1, law.group)
    np.testing.assert_array_equal(redrawn[:, :4], fresh[:, :4])
    np.testing.assert_allclose(redrawn[:, 4:].sum(axis=1), 1.0, atol=1e-5)
    with_ones = np.concatenate([x, np.ones((len(x), 1))], axis=1)
    kept, was = (with_ones.T @ each[:, 4:] / len(x) for each in (redrawn, fresh))
    assert np.abs(kept - was).max() < 0.01
    assert np.ptp(law.weights[-2]) > 1.0  # the square says something


def test_two_categories_are_a_plain_logistic_regression():
    """Catches log odds of the wrong sign or category: scikit-learn keeps those of one of two categories."""
    rng = np.random.default_rng(1)
    encoder = encoder_of("no", "yes")
    points = MatchedPoints(points_of(rng, 4000, 2), 0.0)
    law = OutcomeLaw.of(points, encoder)
    fresh = points.sample(20_000, 1, rng)
    plain = LogisticRegression(max_iter=300).fit(
        coordinates_and_squares(fresh, 1, law.group), fresh[:, 5] > 0.5
    )
    expected = plain.predict_proba(coordinates_and_squares(points.points, 1, law.group))
    assert np.abs(law.probabilities(points.points, 1) - expected).max() < 0.05


def test_a_category_that_no_point_has_is_never_drawn():
    """Catches weights that are put to other categories than those learnt."""
    rng = np.random.default_rng(2)
    two = points_of(rng, 2000, 2)
    three = np.concatenate([two[:, :5], np.zeros((2000, 1), np.float32), two[:, 5:]], axis=1)
    law = OutcomeLaw.of(MatchedPoints(three, 0.0), encoder_of("no", "never", "yes"))
    found = law.probabilities(three, 1)
    assert found[:, 1].max() < 1e-6
    assert np.abs(found.mean(axis=0) - three[:, 4:].mean(axis=0)).max() < 0.02


@pytest.mark.parametrize(("outcome", "kind"), [(None, "categorical"), ("died", "ordinal")])
def test_only_a_categorical_outcome_has_a_law(outcome, kind):
    """Catches a law of a column that is not the outcome, or of grades, which are one coordinate."""
    encoder = encoder_of("no", "late", "yes", outcome=outcome, kind=kind)
    points = np.random.default_rng(3).random((50, encoder.layout.dim), dtype=np.float32)
    assert OutcomeLaw.of(MatchedPoints(points, 0.0), encoder) is None


def test_an_outcome_of_one_category_has_no_law():
    """Catches a regression that fails where nothing is to be learnt."""
    points = points_of(np.random.default_rng(4), 500, 2)
    points[:, 4:] = (1.0, 0.0)
    assert OutcomeLaw.of(MatchedPoints(points, 0.0), encoder_of("no", "yes")) is None


def test_samples_follow_the_law():
    """Catches samples that keep each point's own outcome: here it follows nothing but the point's number."""
    rng = np.random.default_rng(5)
    points = points_of(rng, 20, 2)
    points[:, 0] = np.arange(20) / 19.0
    points[:, 4:] = np.eye(2)[np.arange(20) % 2]
    encoder = encoder_of("no", "yes")
    matched = MatchedPoints(points, 0.0)
    law = OutcomeLaw.of(matched, encoder)
    own, smooth = (
        Matched(matched, each).draw(encoder, 4000, np.random.default_rng(6)) for each in (None, law)
    )
    for (codes, _), most in ((own, 1.0), (smooth, 0.8)):
        rates = np.bincount(codes[0], codes[2], minlength=1) / np.maximum(np.bincount(codes[0]), 1)
        counts = np.bincount(codes[0])
        sure = np.abs(rates[counts > 100] - 0.5).max() * 2
        assert sure <= most and (most < 1.0 or sure > 0.95)


def test_categories_are_drawn_by_their_probabilities():
    """Catches one category for all, the likeliest one, and a changed argument."""
    rng = np.random.default_rng(7)
    points = np.tile(np.float32([0.3, 0.2, 0.5, 0.3]), (20_000, 1))
    drawn = with_categories(points, [(1, 4)], rng)
    assert set(np.unique(drawn[:, 1:])) == {0.0, 1.0} and (drawn[:, 0] == points[:, 0]).all()
    assert np.abs(drawn[:, 1:].mean(axis=0) - [0.2, 0.5, 0.3]).max() < 0.015
    assert points[0, 1] == np.float32(0.2)
