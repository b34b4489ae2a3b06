"""Scores of three likelihoods: derivatives of what they claim to be derivatives of, and their extremes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from stored import read_back

from dpsynth.studies.estimation import RESIDUAL_BOUND, Linear, Logistic, PiecewiseHazards

FAMILIES = [Logistic(), Linear(0.7), PiecewiseHazards(3)]


def outcomes(family, n: int, rng: np.random.Generator) -> np.ndarray:
    if isinstance(family, Logistic):
        return rng.integers(0, 2, n).astype(float)
    if isinstance(family, Linear):
        return rng.normal(0, 3, n)
    return rng.uniform(0, family.intervals, n) * rng.choice([-1.0, 1.0], n)


def log_likelihood(family, eta: np.ndarray, y: float) -> float:
    """Of one record, written naively with scipy's distributions and loops."""
    if isinstance(family, Logistic):
        return float(stats.bernoulli.logpmf(int(y), 1 / (1 + np.exp(-eta[0]))))
    if isinstance(family, Linear):
        residual = abs(y - eta[0]) / family.spread
        huber = (
            residual**2 / 2
            if residual <= RESIDUAL_BOUND
            else RESIDUAL_BOUND * (residual - RESIDUAL_BOUND / 2)
        )
        return -float(huber)
    total, seen = 0.0, abs(y)
    for j in range(family.intervals):
        part = min(max(seen - j, 0.0), 1.0)
        total -= np.exp(eta[j]) * part
        if y < 0 and j < seen <= j + 1:
            total += eta[j]
    return total


@pytest.mark.parametrize("family", FAMILIES, ids=lambda f: type(f).__name__)
def test_residuals_are_derivatives(family):
    """A residual of another likelihood, or of another interval."""
    rng, h = np.random.default_rng(0), 1e-6
    eta, y = rng.normal(0, 1, (50, family.baseline)), outcomes(family, 50, rng)
    residuals = family.residuals(eta, y)
    for i in range(50):
        for j in range(family.baseline):
            up, down = eta[i].copy(), eta[i].copy()
            up[j], down[j] = up[j] + h, down[j] - h
            slope = (log_likelihood(family, up, y[i]) - log_likelihood(family, down, y[i])) / (2 * h)
            assert residuals[i, j] == pytest.approx(slope, abs=1e-5)


@pytest.mark.parametrize("family", FAMILIES, ids=lambda f: type(f).__name__)
def test_curvature_is_the_variance_of_the_residual(family):
    """Information that is not the score's variance: standard errors of another size (Bartlett's identity)."""
    rng = np.random.default_rng(1)
    eta = np.repeat(rng.normal(-0.5, 0.5, (1, family.baseline)), 200_000, axis=0)
    y = family.draw(eta, rng)
    residuals = family.residuals(eta, y)
    assert np.abs(residuals.mean(axis=0)).max() < 0.01 * (1 + residuals.std())
    expected = family.curvature(eta, y).mean(axis=0)
    # clipping at three standard deviations takes 2 % of a normal's variance
    np.testing.assert_allclose(residuals.var(axis=0), expected, rtol=0.03)
    assert np.abs(np.triu(np.atleast_2d(np.corrcoef(residuals.T)), 1)).max() < 0.02


@given(st.integers(0, 10**6), st.sampled_from(range(3)), st.floats(0.1, 4.0))
def test_no_outcome_is_beyond_the_extremes(seed, which, scale):
    """An outcome that is longer than the bound made for its predictors: the sensitivity would not hold."""
    family, rng = FAMILIES[which], np.random.default_rng(seed)
    eta = rng.normal(0, scale, (6, family.baseline))
    rows = rng.normal(size=(6, family.baseline, 4))
    length = lambda r: np.linalg.norm(np.einsum("kj,kjd->kd", r, rows), axis=1)  # noqa: E731
    reach = np.max([length(family.extremes(eta)[:, o]) for o in range(family.extremes(eta).shape[1])], axis=0)
    longest = np.max([length(family.residuals(eta, outcomes(family, 6, rng))) for _ in range(60)], axis=0)
    assert (longest <= reach * (1 + 1e-9)).all()


def test_the_extremes_are_reached():
    """A bound that is far above what a record can do, so that more noise is drawn than is needed."""
    rng = np.random.default_rng(2)
    for family in FAMILIES:
        eta, rows = rng.normal(0, 1, (1, family.baseline)), rng.normal(size=(family.baseline, 3))
        reach = np.linalg.norm(family.extremes(eta)[0] @ rows, axis=1).max()
        grid = {"Logistic": np.array([0.0, 1.0]), "Linear": np.array([-99.0, 99.0])}.get(
            type(family).__name__,
            np.r_[np.linspace(0, 3, 301), -np.linspace(1e-9, 3, 301), -np.arange(3) - 1e-9],
        )
        found = family.residuals(np.repeat(eta, len(grid), axis=0), grid) @ rows
        assert np.linalg.norm(found, axis=1).max() == pytest.approx(reach, rel=1e-6)


@pytest.mark.parametrize("family", FAMILIES, ids=lambda f: type(f).__name__)
def test_extreme_predictors_give_numbers(family):
    """NaN or infinity from a record far out, which would tell that it is there."""
    eta = np.array([[-1e6], [1e6], [0.0], [-700.0], [700.0]]) * np.ones(family.baseline)
    for y in outcomes(family, 5, np.random.default_rng(3)):
        for found in (
            family.residuals(eta, np.full(5, y)),
            family.extremes(eta),
            family.curvature(eta, np.full(5, y)),
        ):
            assert np.isfinite(found).all()


def test_events_at_zero_and_at_boundaries():
    """An event at time 0 that is lost with its sign, or one at a boundary that counts for two intervals."""
    family, eta = PiecewiseHazards(2), np.zeros((4, 2))
    y = np.array([-1e-9, -1.0, -2.0, 2.0])
    np.testing.assert_allclose(family.residuals(eta, y), [[1, 0], [0, 0], [-1, 0], [-1, -1]], atol=1e-6)


@pytest.mark.parametrize("family", FAMILIES, ids=lambda f: type(f).__name__)
def test_a_family_comes_back(family):
    """A saved study whose likelihood is another one when it is loaded."""
    assert read_back(family) == family
