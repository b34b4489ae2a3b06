"""The generator in TensorFlow and NumPy, and its start at the identity."""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from dpsynth.model.wgan.networks import ArrayOps, flatten, generator_pass, glorot, unflatten
from dpsynth.model.wgan.step import TensorOps
from dpsynth.table.layout import Layout

LAYOUT = Layout(2, ((2, 5), (5, 7)))


def prior_points(rng, n):
    base = np.zeros((n, LAYOUT.dim), np.float32)
    base[:, :2] = rng.random((n, 2))
    base[np.arange(n), 2 + rng.integers(0, 3, n)] = 1
    base[np.arange(n), 5 + rng.integers(0, 2, n)] = 1
    return base


def test_numpy_and_tensorflow_agree():
    """Catches a sampler that differs from what was trained."""
    rng = np.random.default_rng(0)
    for base in (None, prior_points(rng, 11)):
        n_in = 4 + (0 if base is None else LAYOUT.dim)
        weights = glorot(rng, (n_in, 8, LAYOUT.dim), output_bias=True)
        latent = rng.standard_normal((11, 4)).astype(np.float32)
        ours = generator_pass(weights, latent, base, LAYOUT, ArrayOps)
        theirs = generator_pass(
            weights, tf.constant(latent), None if base is None else tf.constant(base), LAYOUT, TensorOps
        )
        np.testing.assert_allclose(ours, theirs.numpy(), atol=1e-5)


def test_points_lie_in_the_cube_and_groups_sum_to_one():
    """Catches a missing softmax or sigmoid."""
    rng = np.random.default_rng(1)
    weights = glorot(rng, (4, 8, LAYOUT.dim), output_bias=True)
    points = generator_pass(weights, 10 * rng.standard_normal((50, 4)), None, LAYOUT, ArrayOps)
    assert points.min() >= 0 and points.max() <= 1
    np.testing.assert_allclose(points[:, 2:5].sum(axis=1), 1)
    np.testing.assert_allclose(points[:, 5:].sum(axis=1), 1)


def test_zero_last_layer_returns_the_prior():
    """Catches a correction that does not start at the identity."""
    rng = np.random.default_rng(2)
    base = prior_points(rng, 40)
    weights = glorot(rng, (4 + LAYOUT.dim, 8, LAYOUT.dim), output_bias=True)
    weights[-1] = (np.zeros_like(weights[-1][0]), weights[-1][1])
    points = generator_pass(weights, rng.standard_normal((40, 4)), base, LAYOUT, ArrayOps)
    inside = np.clip(base[:, :2], 1e-3, 1 - 1e-3)
    np.testing.assert_allclose(points[:, :2], inside, atol=1e-5)
    assert (points[:, 2:][base[:, 2:] == 1] >= 0.99).all()


def test_flatten_and_back():
    """Catches biases that change places with matrices."""
    weights = glorot(np.random.default_rng(0), (3, 4, 1), output_bias=False)
    again = unflatten(flatten(weights), output_bias=False)
    assert [None if b is None else b.shape for _, b in again] == [(4,), None]
