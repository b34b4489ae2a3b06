"""Draws reweighted to counts: what the tilt reaches, and what noise keeps it from."""

from __future__ import annotations

import numpy as np

from dpsynth.studies.calibration import raked, resampled


def sums(noise: float, wanted: tuple[float, float, float] = (1000.0, 200.0, 100.0)) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    x = (rng.random((4000, 2)) < [0.3, 0.04]).astype(float)
    each = np.column_stack([np.ones(len(x)), x, x**2])
    told = np.array([*wanted, *wanted[1:]])
    mass = np.full(len(x), 0.2)
    return {"each": each, "mass": mass, "wanted": told, "noise": noise**2 * np.eye(5), "scale": np.ones(3)}


def test_counts_are_met():
    """A tilt that stops short, or that meets one count at the cost of another."""
    told = sums(1e-3)
    weights = told["mass"] * np.exp(told["each"][:, :3] @ raked(**told))
    np.testing.assert_allclose(told["each"].T @ weights, told["wanted"], rtol=1e-4)


def test_noise_is_not_met():
    """Draws that follow noise, or a count below 0, to the end."""
    drowned = raked(**sums(1e6))
    assert np.abs(drowned).max() < 1e-3
    below = raked(**sums(30.0, (800.0, 240.0, -50.0)))
    assert -4.0 < below[2] < -1.0 and np.abs(below[:2]).max() < 0.2
    assert np.isfinite(raked(**sums(1e-6, (800.0, 240.0, -50.0)))).all()


def test_draws_are_as_often_as_their_weights():
    """Resampling with the noise of independent draws, or another number of them."""
    rng = np.random.default_rng(1)
    group = rng.integers(0, 3, 1000)
    kept = resampled(np.array([0.2, 1.0, 3.0])[group])
    assert len(kept) == len(group)
    wanted = np.bincount(group) * [0.2, 1.0, 3.0]
    np.testing.assert_allclose(np.bincount(group[kept]), wanted * len(group) / wanted.sum(), atol=1.0)
    np.testing.assert_array_equal(resampled(np.ones(7)), np.arange(7))
