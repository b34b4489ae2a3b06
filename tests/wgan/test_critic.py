"""Critic passes against per-record loops and automatic differentiation."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsynth.wgan.algorithm import critic_pass, squared_gradient_norms, weighted_gradient
from dpsynth.wgan.networks import flatten, glorot, unflatten
from dpsynth.wgan.theorems import Activation

ACTIVATIONS = ("relu", "leaky_relu", "maxmin")


def naive_score(weights, x, activation):
    """One record at a time, one unit at a time."""
    for layer, (matrix, bias) in enumerate(weights):
        s = [
            sum(x[i] * matrix[i, j] for i in range(len(x))) + (bias[j] if bias is not None else 0.0)
            for j in range(matrix.shape[1])
        ]
        if layer == len(weights) - 1:
            return s[0]
        if activation.kind == "maxmin":
            pairs = list(zip(s[0::2], s[1::2], strict=True))
            x = [max(p) for p in pairs] + [min(p) for p in pairs]
        else:
            slope = 0.0 if activation.kind == "relu" else activation.slope
            x = [v if v > 0 else slope * v for v in s]
    raise AssertionError


def random_critic(seed, kind, widths=(5, 6, 4, 1)):
    rng = np.random.default_rng(seed)
    weights = [
        (w, None if b is None else rng.normal(size=b.shape).astype(np.float32))
        for w, b in glorot(rng, widths, output_bias=False)
    ]
    return weights, rng.uniform(-0.5, 0.5, (7, widths[0])).astype(np.float32), Activation(kind)


@pytest.mark.parametrize("kind", ACTIVATIONS)
def test_scores_match_a_unit_by_unit_loop(kind):
    """Catches a wrong activation, a dropped bias or a permuted pair."""
    weights, x, activation = random_critic(1, kind)
    scores, _, _ = critic_pass(weights, tf.constant(x), activation)
    expected = [naive_score(weights, row.astype(float), activation) for row in x]
    np.testing.assert_allclose(scores.numpy(), expected, rtol=1e-5, atol=1e-6)


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from(ACTIVATIONS))
def test_weighted_gradient_is_the_sum_of_per_record_gradients(seed, kind):
    """Catches an error in the hand-written backward pass, against TensorFlow's own differentiation."""
    weights, x, activation = random_critic(seed, kind)
    coefficients = np.random.default_rng(seed).normal(size=len(x)).astype(np.float32)
    _, inputs, deltas = critic_pass(weights, tf.constant(x), activation)
    ours = weighted_gradient(inputs, deltas, tf.constant(coefficients), weights)
    flat = [tf.constant(a) for a in flatten(weights)]
    total = [np.zeros(a.shape) for a in flat]
    squared = []
    for row, c in zip(x, coefficients, strict=True):
        with tf.GradientTape() as tape:
            tape.watch(flat)
            score = critic_pass(unflatten(flat, output_bias=False), tf.constant(row[None]), activation)[0][0]
        gradient = [g.numpy() for g in tape.gradient(score, flat)]
        squared.append(sum((g**2).sum() for g in gradient))
        total = [t + c * g for t, g in zip(total, gradient, strict=True)]
    for mine, theirs in zip(ours, total, strict=True):
        np.testing.assert_allclose(mine.numpy(), theirs, rtol=1e-4, atol=1e-5)
    ghost = squared_gradient_norms(inputs, deltas, weights).numpy()
    np.testing.assert_allclose(ghost, squared, rtol=1e-4)


def test_maxmin_keeps_the_norm():
    """Catches a max or min taken of the wrong pair: sorting a pair keeps its length."""
    s = tf.constant(np.random.default_rng(0).normal(size=(9, 8)).astype(np.float32))
    out, _ = Activation("maxmin").forward(s)
    np.testing.assert_allclose(tf.norm(out, axis=1).numpy(), tf.norm(s, axis=1).numpy(), rtol=1e-6)
