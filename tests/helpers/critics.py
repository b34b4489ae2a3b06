"""Random critics, their domains and their measured gradients, for the tests of this folder."""

from __future__ import annotations

import itertools

import numpy as np
import tensorflow as tf
from hypothesis import strategies as st

from dpsynth.table.encoder import Layout
from dpsynth.wgan.theorems import Domain


def glorot(rng, widths, output_bias=False):
    weights = []
    for layer, (a, b) in enumerate(itertools.pairwise(widths)):
        limit = np.sqrt(6 / (a + b))
        bias = None if layer == len(widths) - 2 and not output_bias else tf.zeros([b])
        weights.append((tf.constant(rng.uniform(-limit, limit, (a, b)), tf.float32), bias))
    return weights


@st.composite
def critics(draw, max_layers=4):
    """(weights, activation, slope, layout, rng): depths 1-4, scales 0.1-10, zeros, integers, no biases."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n_numeric = draw(st.integers(0, 4))
    sizes = draw(st.lists(st.integers(1, 4), min_size=0 if n_numeric else 1, max_size=3))
    stops = n_numeric + np.cumsum([0, *sizes])
    layout = Layout(n_numeric, tuple(zip(stops[:-1].tolist(), stops[1:].tolist(), strict=True)))
    activation = draw(st.sampled_from(["relu", "leaky_relu", "maxmin"]))
    slope = draw(st.sampled_from([0.0, 0.01, 0.2, 1.0]))
    hidden = draw(st.lists(st.sampled_from([2, 4, 6, 10]), min_size=0, max_size=max_layers - 1))
    scale = draw(st.sampled_from([0.1, 1.0, 10.0]))
    kind = draw(st.sampled_from(["normal", "sparse", "integer"]))
    widths = [layout.dim, *hidden, 1]
    weights = []
    for layer, (a, b) in enumerate(itertools.pairwise(widths)):
        matrix, bias = scale * rng.standard_normal((a, b)), scale * rng.standard_normal(b)
        if kind == "sparse":
            matrix = matrix * (rng.random((a, b)) < 0.4)
        if kind == "integer":  # sums that are exactly 0, and ties
            matrix, bias = np.round(matrix), np.round(bias)
        has_bias = layer < len(widths) - 2 and rng.random() < 0.8
        weights.append((tf.constant(matrix, tf.float32), tf.constant(bias, tf.float32) if has_bias else None))
    return weights, activation, slope, layout, rng


def records(rng, layout, n):
    """Centred encoded records: numeric corners and interior points, one-hot groups; float32, (n, dim)."""
    points = rng.random((n, layout.dim))
    corners = rng.random((n, 1)) < 0.5
    points = np.where(corners, np.round(points), points)
    for start, stop in layout.groups:
        points[:, start:stop] = np.eye(stop - start)[rng.integers(0, stop - start, n)]
    points = points.astype(np.float32)
    return points - layout.center.astype(np.float32)


def apply(s, activation, slope):
    """Activation of a batch (n, width); ties of maxmin go by one comparison."""
    if activation == "maxmin":
        a, b = s[:, 0::2], s[:, 1::2]
        return tf.concat([tf.where(a > b, a, b), tf.where(a > b, b, a)], axis=1)
    return tf.where(s > 0, s, (0.0 if activation == "relu" else slope) * s)


def score(weights, x, activation, slope):
    for layer, (matrix, bias) in enumerate(weights):
        x = x @ matrix if bias is None else x @ matrix + bias
        if layer < len(weights) - 1:
            x = apply(x, activation, slope)
    return x[:, 0]


def flat(weights):
    return [a for pair in weights for a in pair if a is not None]


def record_gradient(weights, x, activation, slope):
    """One record's gradient by automatic differentiation in float32, arrays like `flat(weights)`."""
    arrays = flat(weights)
    with tf.GradientTape() as tape:
        tape.watch(arrays)
        value = score(weights, tf.constant(x)[None], activation, slope)[0]
    gradient = tape.gradient(value, arrays, unconnected_gradients=tf.UnconnectedGradients.ZERO)
    return [g.numpy() for g in gradient]


def cube(dim):
    return Domain.box(np.zeros(dim), np.ones(dim))
