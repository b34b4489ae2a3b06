import numpy as np
import pytest
import tensorflow as tf
from critics import critics, flat, glorot, records, score
from hypothesis import given, settings

from dpsynth.mechanism.bounds import penalty_radii, project, published_penalty_radii, spectral_norm_bound


def penalty_gradient(weights, x, activation, slope):
    arrays = flat(weights)
    point = tf.constant(x)[None]
    with tf.GradientTape() as outer:
        outer.watch(arrays)
        with tf.GradientTape() as inner:
            inner.watch(point)
            value = score(weights, point, activation, slope)
        norm = tf.sqrt(tf.reduce_sum(inner.gradient(value, point) ** 2) + 1e-12)
        loss = (norm - 1.0) ** 2
    return outer.gradient(loss, arrays, unconnected_gradients=tf.UnconnectedGradients.ZERO)


@pytest.mark.slow
@given(critics())
@settings(max_examples=25, deadline=None)
def test_measured_gradient_is_below_both_bounds(critic):
    """Catches a factor or a layer left out of Theorem 3.1.3, and a bias gradient that is not 0."""
    weights, activation, slope, layout, rng = critic
    norms = [spectral_norm_bound(w) for w, _ in weights]
    tight = [float(c) for c in penalty_radii(weights, norms)]
    whole = float(np.prod([float(n) for n in norms]))
    published = [float(c) for c in published_penalty_radii(weights, whole)]
    for x in records(rng, layout, 3):
        gradient = iter(penalty_gradient(weights, x, activation, slope))
        for layer, (_, bias) in enumerate(weights):
            norm = float(tf.norm(next(gradient)))
            assert norm <= tight[layer]
            if activation != "maxmin":  # the thesis has ReLU and LeakyReLU only
                assert norm <= published[layer] * (1 + 1e-5)
            if bias is not None:
                assert float(tf.norm(next(gradient))) == 0.0


def test_sizes_measured_before():
    """Catches a lost factor: 1.7e6 as published and 179 tight, at 12-64-128-256-1 Glorot weights."""
    weights = glorot(np.random.default_rng(0), (12, 64, 128, 256, 1))
    published = np.sqrt(sum(float(c) ** 2 for c in published_penalty_radii(weights, 2.0)))
    tight = penalty_radii(weights, [spectral_norm_bound(w) for w, _ in weights])
    assert published == pytest.approx(1.7e6, rel=0.2)
    assert np.sqrt(sum(float(c) ** 2 for c in tight)) == pytest.approx(179, rel=0.3)


def test_at_most_two_for_projected_critics():
    """Catches a maximum that drops the 1: with all norms <= 1 every bound is 2."""
    weights = [(project(10 * w), b) for w, b in glorot(np.random.default_rng(1), (4, 8, 1))]
    assert [float(c) for c in penalty_radii(weights, [1.0, 1.0])] == pytest.approx([2.0, 2.0], rel=1e-3)


def test_published_grows_with_the_input_gradient():
    """Catches a bound that ignores ``||grad_x D||`` above 2."""
    weights = glorot(np.random.default_rng(1), (4, 8, 1))
    low, same, high = (float(published_penalty_radii(weights, g)[0]) for g in (0.0, 2.0, 5.0))
    assert low == same and high == pytest.approx(4 * low)
