"""The generator in TensorFlow and NumPy."""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from dpsynth.table.encoder import Layout
from dpsynth.wgan.algorithm import TensorOps
from dpsynth.wgan.networks import ArrayOps, flatten, generator_pass, glorot, unflatten

LAYOUT = Layout(2, ((2, 5), (5, 7)))


def test_numpy_and_tensorflow_agree():
    """Catches a sampler that differs from what was trained."""
    rng = np.random.default_rng(0)
    weights = glorot(rng, (4, 8, LAYOUT.dim), output_bias=True)
    latent = rng.standard_normal((11, 4)).astype(np.float32)
    ours = generator_pass(weights, latent, LAYOUT, ArrayOps)
    theirs = generator_pass(weights, tf.constant(latent), LAYOUT, TensorOps)
    np.testing.assert_allclose(ours, theirs.numpy(), atol=1e-5)


def test_points_lie_in_the_cube_and_groups_sum_to_one():
    """Catches a missing softmax or sigmoid."""
    rng = np.random.default_rng(1)
    weights = glorot(rng, (4, 8, LAYOUT.dim), output_bias=True)
    points = generator_pass(weights, 10 * rng.standard_normal((50, 4)), LAYOUT, ArrayOps)
    assert points.min() >= 0 and points.max() <= 1
    np.testing.assert_allclose(points[:, 2:5].sum(axis=1), 1)
    np.testing.assert_allclose(points[:, 5:].sum(axis=1), 1)


def test_flatten_and_back():
    """Catches biases that change places with matrices."""
    weights = glorot(np.random.default_rng(0), (3, 4, 1), output_bias=False)
    again = unflatten(flatten(weights), output_bias=False)
    assert [None if b is None else b.shape for _, b in again] == [(4,), None]
