"""Norm bounds, the penalty's share, and all bounds of a layer."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf
from critics import critics, cube, flat, glorot, record_gradient, records, score
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsynth.errors import InputError
from dpsynth.wgan.norms import _norm_after_step, bjorck, norm_bound_nearby, project, spectral_norm_bound
from dpsynth.wgan.theorems import (
    Domain,
    LayerBounds,
    gradient_bounds,
    gradient_box,
    layer_radii,
    penalty_radii,
    published_penalty_radii,
)

shapes = st.sampled_from([(1, 1), (1, 7), (7, 1), (2, 2), (5, 33), (64, 16), (40, 40)])


def largest(matrix):
    return float(np.linalg.svd(np.asarray(matrix, float), compute_uv=False)[0])


@st.composite
def matrices(draw):
    """Random, low-rank, ill-conditioned, orthogonal, integer, sparse and zero matrices of all scales."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n, m = draw(shapes)
    kind = draw(st.sampled_from(["normal", "rank one", "ill", "orthogonal", "integer", "sparse", "zero"]))
    a = rng.standard_normal((n, m))
    if kind == "rank one":
        a = np.outer(rng.standard_normal(n), rng.standard_normal(m))
    if kind in ("ill", "orthogonal"):
        u, s, vt = np.linalg.svd(a, full_matrices=False)
        a = (u * (10.0 ** -np.linspace(0, 9, s.size) if kind == "ill" else 1.0)) @ vt
    if kind == "integer":
        a = np.round(2 * a)
    if kind == "sparse":
        a = a * (rng.random((n, m)) < 0.1)
    if kind == "zero":
        a = 0.0 * a
    return (a * 10.0 ** draw(st.sampled_from([-12, -3, 0, 3, 12]))).astype(np.float32)


@given(matrices(), st.integers(0, 6))
@settings(max_examples=80, deadline=None)
def test_bound_is_above_the_norm_and_close(matrix, iterations):
    """Catches an estimate from below (power iteration) and a bound looser than the docstring says."""
    bound = float(spectral_norm_bound(tf.constant(matrix), iterations=iterations))
    norm = largest(matrix)
    assert bound >= norm
    rank = min(matrix.shape)
    promised = rank ** (1 / 2 ** (iterations + 2)) * (1 + 4 * rank * (max(matrix.shape) + 8) * 2.0**-24)
    assert bound <= norm * promised * (1 + 1e-4) + 1e-15


@given(matrices(), matrices(), st.sampled_from([0.0, 1e-7, 1e-3, 1.0]))
@settings(max_examples=60, deadline=None)
def test_the_norm_nearby_is_bounded(start, step, size):
    """Catches a bound of a matrix that has moved which leaves out the move or its rounding."""
    moved = (start + np.float32(size) * np.resize(step, start.shape)).astype(np.float32)
    bound = spectral_norm_bound(tf.constant(start))
    nearby = float(norm_bound_nearby(tf.constant(moved), tf.constant(start), bound))
    assert nearby >= largest(moved)
    move = np.linalg.norm(moved.astype(float) - start)
    assert nearby <= (float(bound) + move * (1 + 4 * (start.size + 8) * 2.0**-24)) * (1 + 1e-5) + 1e-15


@given(matrices(), st.sampled_from([0, 3]))
@settings(max_examples=60, deadline=None)
def test_projection_ends_at_norm_one(matrix, steps):
    """Catches a projection that leaves the norm above 1, were it by one rounding."""
    projected = project(tf.constant(matrix), bjorck_steps=steps).numpy()
    assert largest(projected) <= 1.0
    if steps == 0 and largest(matrix) < 0.9:
        np.testing.assert_array_equal(projected, matrix)
    if steps == 0 and largest(matrix) > 1.1:
        assert largest(projected) > 0.93


def test_a_bjorck_step_is_a_projection_from_norm_two():
    """Catches a map whose singular values pass 1 from somewhere in [0, 2]: the projection rests on it."""
    singular = np.linspace(0.0, 2.0, 41)
    stepped = bjorck(tf.linalg.diag(tf.constant(singular, tf.float64)), steps=1)
    np.testing.assert_allclose(np.diag(stepped), 1.5 * singular - 0.5 * singular**3, atol=1e-12)
    assert np.abs(np.diag(stepped)).max() <= 1.0 + 1e-12


@pytest.mark.parametrize("shape", [(64, 64), (16, 256), (256, 256)])
def test_norms_after_steps_of_an_optimiser(shape):
    """Catches rounding of Björck's steps that is left out: near orthonormal matrices it alone passes norm 1.

    Adam moves each entry by its rate at most, here with random signs and with all signs alike.
    """
    rng = np.random.default_rng(1)
    compiled = tf.function(lambda w: project(w, bjorck_steps=8), jit_compile=True)
    matrix = rng.uniform(-0.5, 0.5, shape).astype(np.float32)
    for signs in [np.ones(shape)] + [rng.choice([-1.0, 1.0], shape) for _ in range(6)]:
        matrix = compiled(tf.constant(matrix + np.float32(1e-2 * signs))).numpy()
        assert np.isfinite(matrix).all() and 0.95 < largest(matrix) <= 1.0


@given(matrices(), st.sampled_from([0.3, 1.0, 1.9, 2.1, 3.0]))
@settings(max_examples=60, deadline=None)
def test_the_norm_after_a_step_is_bounded(matrix, size):
    """Catches a step that is taken for a projection from norms above 2."""
    norm = largest(matrix)
    matrix = (matrix * (size / norm if norm else 1.0)).astype(np.float32)
    bound = _norm_after_step(tf.constant(matrix), tf.constant(largest(matrix) * (1 + 1e-12), tf.float64))
    assert float(bound) >= largest(bjorck(tf.constant(matrix), steps=1))


def test_the_rounding_of_a_step_is_bounded():
    """Catches a product without its rounding: sums of n equal terms that round downward at each addition."""
    n, unit = 512, 2.0**-24
    matrix = np.full((n, n), 1.0 / n)
    gram = (1 - unit) ** n * matrix.T @ matrix
    worst = largest(1.5 * matrix - 0.5 * (1 - unit) ** n * matrix @ gram)
    assert worst > 1 + 0.99 * n * unit
    assert float(_norm_after_step(tf.constant(matrix, tf.float32), tf.ones([], tf.float64))) >= worst


def test_bjorck_orthonormalises():
    """Catches a wrong coefficient, which would not converge to singular values 1."""
    rng = np.random.default_rng(0)
    for shape in ((8, 5), (5, 8)):
        a = rng.standard_normal(shape)
        a = (a / largest(a)).astype(np.float32)
        singular = np.linalg.svd(bjorck(tf.constant(a), steps=25).numpy(), compute_uv=False)
        np.testing.assert_allclose(singular, 1.0, atol=1e-4)
    singular = np.linalg.svd(project(tf.constant(3 * a), bjorck_steps=15).numpy(), compute_uv=False)
    assert singular.min() > 0.9 and singular.max() <= 1.0


def layer_norms(gradient, weights):
    norms, arrays = [], iter(gradient)
    for _, bias in weights:
        parts = [next(arrays)] + ([] if bias is None else [next(arrays)])
        norms.append(np.sqrt(sum((p.astype(float) ** 2).sum() for p in parts)))
    return np.array(norms)


@pytest.mark.slow
@given(critics(), st.booleans(), st.booleans())
@settings(max_examples=40, deadline=None)
def test_every_layer_gradient_lies_in_its_ball(critic, projected, with_box):
    """Catches a norm recursion that misses a bias, a layer or the bias gradient."""
    weights, activation, slope, layout, rng = critic
    if projected:
        weights = [(project(w), b) for w, b in weights]
    domain = Domain.from_layout(layout)
    norms = [1.0 if projected else spectral_norm_bound(w) for w, _ in weights]
    box = gradient_box(weights, domain, activation=activation, slope=slope) if with_box else None
    radii = np.array([float(r) for r in layer_radii(weights, norms, domain, box)])
    for x in records(rng, layout, 8):
        assert (layer_norms(record_gradient(weights, x, activation, slope), weights) <= radii).all()


def test_ball_is_reached():
    """Catches slack: one positive unit of norm 1, the farthest record, no bias."""
    weights = [(tf.constant([[1.0], [0.0]]), None), (tf.constant([[1.0]]), None)]
    domain = Domain.box([-1, 0], [1, 0])
    radii = [float(r) for r in layer_radii(weights, [1.0, 1.0], domain)]
    gradient = record_gradient(weights, np.array([1, 0], np.float32), "relu", 0.0)
    np.testing.assert_allclose(layer_norms(gradient, weights), radii, rtol=1e-4)


def test_unprojected_size_measured_before():
    """Catches a looser recursion: 38 for 12-64-128-256-1 on the unit cube is on record."""
    weights = glorot(np.random.default_rng(0), (12, 64, 128, 256, 1))
    norms = [spectral_norm_bound(w) for w, _ in weights]
    radii = layer_radii(weights, norms, Domain.box(np.zeros(12), np.ones(12)))
    assert float(np.sqrt(sum(float(r) ** 2 for r in radii))) == pytest.approx(38, rel=0.25)


def test_box_can_only_help():
    """Catches a maximum where the smaller of two bounds belongs."""
    weights = glorot(np.random.default_rng(2), (4, 8, 8, 1))
    domain = Domain.box(-0.5 * np.ones(4), 0.5 * np.ones(4))
    norms = [spectral_norm_bound(w) for w, _ in weights]
    alone = layer_radii(weights, norms, domain)
    helped = layer_radii(weights, norms, domain, gradient_box(weights, domain))
    assert all(float(b) <= float(a) for a, b in zip(alone, helped, strict=True))
    assert any(float(b) < float(a) for a, b in zip(alone, helped, strict=True))


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


def test_layers_carry_their_arrays_in_order():
    """Catches bounds of one layer handed to another."""
    weights = glorot(np.random.default_rng(0), (3, 4, 2, 1))
    bounds = gradient_bounds(weights, cube(3), norms=[2.0, 2.0, 2.0])
    box = gradient_box(weights, cube(3))
    assert [layer.shapes for layer in bounds] == [((3, 4), (4,)), ((4, 2), (2,)), ((2, 1),)]
    assert [layer.size for layer in bounds] == [16, 10, 2]
    radii = layer_radii(weights, [2.0, 2.0, 2.0], cube(3), box)
    assert len({float(radius) for radius in radii}) == 3
    for layer, matrix, radius in zip(bounds, box.matrices, radii, strict=True):
        np.testing.assert_array_equal(layer.lo[0], matrix.lo)
        np.testing.assert_array_equal(layer.hi[0], matrix.hi)
        assert float(layer.radius) == float(radius)


def test_a_ball_needs_norms():
    """Catches a layer that claims a bound nobody computed."""
    weights = glorot(np.random.default_rng(0), (3, 4, 1))
    assert all(layer.radius is None for layer in gradient_bounds(weights, cube(3)))
    with pytest.raises(InputError, match="norms has 1 entries"):
        gradient_bounds(weights, cube(3), norms=[1.0])
    with pytest.raises(InputError, match="needs a box"):
        LayerBounds(((1, 1),), None, None, None)


@pytest.mark.slow
def test_works_in_a_compiled_function():
    """Catches bounds that only exist eagerly."""
    weights = glorot(np.random.default_rng(0), (3, 4, 1))

    @tf.function(jit_compile=True)
    def radii(matrix):
        return [b.radius for b in gradient_bounds([(matrix, None), weights[1]], cube(3), norms=[1.0, 1.0])]

    assert all(np.isfinite(r) for r in radii(weights[0][0]))
