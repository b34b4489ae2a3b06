from functools import cache

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsynth.errors import InputError, PrivacyError
from dpsynth.privacy.release import NOISE_SHAPES
from dpsynth.table.encoder import Layout
from dpsynth.wgan.networks import flatten, glorot
from dpsynth.wgan.norms import spectral_norm_bound
from dpsynth.wgan.theorems import Domain, LayerBounds, allocate, gradient_bounds, penalty_radii

seeds = st.integers(0, 2**32 - 1)


def boxes(rng, sizes, spread=1.0):
    """Random boxes for layers of the given sizes; some components do not move at all."""
    layers = []
    for n in sizes:
        center = rng.normal(size=n)
        half = np.exp(spread * rng.normal(size=n)) * (rng.random(n) < 0.9)
        lo, hi = (tf.constant(center + s * half, tf.float32) for s in (-1, 1))
        layers.append(LayerBounds(((n,),), (lo,), (hi,), None))
    return layers


def spent(records, centers, stds):
    """``sum_k (g_k - c_k)^2 / std_k^2`` of each record; records is a list of (m, n) arrays."""
    total = 0.0
    for g, c, s in zip(records, centers, stds, strict=True):
        total = total + ((np.asarray(g, float) - np.asarray(c, float)) ** 2 / np.asarray(s, float) ** 2).sum(
            1
        )
    return total


@pytest.mark.parametrize("shape", NOISE_SHAPES)
@given(seed=seeds)
@settings(max_examples=25, deadline=None)
def test_no_record_of_a_box_costs_more_than_one(shape, seed):
    """Catches noise too small for the box (privacy) or larger than it must be (utility)."""
    rng = np.random.default_rng(seed)
    layers = boxes(rng, (3, 7, 1), spread=2.0)
    centers, stds = allocate(layers, shape)
    signs = [rng.choice([False, True], (200, layer.size)) for layer in layers]
    corners = [np.where(s, b.hi[0], b.lo[0]) for s, b in zip(signs, layers, strict=True)]
    farthest = [np.where(np.abs(b.hi[0]) >= np.abs(b.lo[0]), b.hi[0], b.lo[0])[None] for b in layers]
    records = [np.concatenate([c, f]) for c, f in zip(corners, farthest, strict=True)]
    cost = spent(records, centers, stds)
    assert cost.max() <= 1.0
    # `proportional` gives every component the same share, which those that do not move leave unused.
    used = np.mean(np.concatenate([b.hi[0] != b.lo[0] for b in layers])) if shape == "proportional" else 1.0
    assert cost.max() >= 0.99 * used


@pytest.mark.parametrize("shape", ["spherical", "layerwise", "optimal"])
@given(seed=seeds)
@settings(max_examples=25, deadline=None)
def test_no_record_of_boxes_and_balls_costs_more_than_one(shape, seed):
    """Catches a centre kept where the ball was chosen, or a ball chosen by the wrong measure."""
    rng = np.random.default_rng(seed)
    layers, records = [], []
    for box in boxes(rng, (5, 2, 9)):
        radius = float(rng.choice([0.05, 1.0, 30.0]))
        lo, hi = box.lo[0].numpy(), box.hi[0].numpy()
        # Only points of the box and of the ball at once can be records.
        points = rng.uniform(lo, hi, (300, lo.size))
        ball = (
            radius
            * rng.normal(size=(300, lo.size))
            * np.array([1e-3, 1.0, 1.0])[rng.integers(0, 3, 300), None]
        )
        ball *= np.minimum(1.0, radius / np.linalg.norm(ball, axis=1, keepdims=True))
        points = np.concatenate([points, np.clip(ball, lo, hi)])
        norms = np.linalg.norm(points, axis=1)
        points[norms > radius] = points[norms.argmin()] if norms.min() <= radius else np.nan
        if np.isnan(points).any():  # the two do not meet: leave the box out
            points, box = ball, LayerBounds(box.shapes, None, None, tf.constant(radius))
        layers.append(LayerBounds(box.shapes, box.lo, box.hi, tf.constant(radius * (1 + 1e-6))))
        records.append(points[:300])
    centers, stds = allocate(layers, shape)
    assert spent(records, centers, stds).max() <= 1.0


def test_chooses_ball_or_box_by_the_shape():
    """Catches one rule for all: here the ball has the smaller norm, the box the smaller sum."""
    half = np.array([1.0, 0.01, 0.01, 0.01], np.float32)
    layer = LayerBounds(((4,),), (tf.constant(2 - half),), (tf.constant(2 + half),), tf.constant(0.9))
    for shape in ("spherical", "layerwise"):
        centers, stds = allocate([layer], shape)
        assert not np.any(centers[0]) and float(stds[0]) == pytest.approx(0.9, rel=1e-4)
    centers, stds = allocate([layer], "optimal")
    np.testing.assert_allclose(centers[0], 2.0)
    np.testing.assert_allclose(stds[0], np.sqrt(half * half.sum()), rtol=1e-4)


def test_balls_alone_follow_the_formula():
    """Catches a wrong split between layers: ``sigma_l^2 = (s / sqrt n) sum s sqrt n`` for two balls."""
    layers = [LayerBounds(((4,),), None, None, 3.0), LayerBounds(((3, 3),), None, None, 1.0)]
    total = 3 * 2 + 1 * 3
    for shape in ("layerwise", "optimal"):
        _, stds = allocate(layers, shape)
        np.testing.assert_allclose([float(s) ** 2 for s in stds], [1.5 * total, total / 3], rtol=1e-4)
    _, stds = allocate(layers, "spherical")
    np.testing.assert_allclose([float(s) for s in stds], np.sqrt(10), rtol=1e-4)


@given(seeds)
@settings(max_examples=25, deadline=None)
def test_optimal_has_the_least_total_variance(seed):
    """Catches an allocation that random valid ones beat, and checks Theorem 3.1.2's equal traces."""
    rng = np.random.default_rng(seed)
    layers = boxes(rng, (4, 6))
    half = np.concatenate([(b.hi[0].numpy() - b.lo[0].numpy()) / 2 for b in layers])
    trace = {}
    for shape in NOISE_SHAPES:
        _, stds = allocate(layers, shape)
        trace[shape] = sum(
            (np.asarray(s, float) ** 2 * np.ones(b.size)).sum() for s, b in zip(stds, layers, strict=True)
        )
    assert trace["proportional"] == pytest.approx(trace["spherical"], rel=1e-3)
    assert trace["optimal"] == pytest.approx(half.sum() ** 2, rel=1e-3)
    assert trace["optimal"] <= trace["layerwise"] * 1.001 <= trace["spherical"] * 1.002
    for _ in range(200):
        share = rng.dirichlet(np.ones(half.size))  # r_k^2 / sigma_k^2 = share_k, adds up to 1
        assert (half**2 / share).sum() >= trace["optimal"] * 0.999


def test_sizes_measured_before():
    """Catches noise larger than on record: 14,136 against 43,276 for 12-64-128-256-1, ratio about 3."""
    weights = [
        (tf.constant(w), None if b is None else tf.constant(b))
        for w, b in glorot(np.random.default_rng(0), (12, 64, 128, 256, 1), output_bias=False)
    ]
    bounds = gradient_bounds(weights, Domain.box(np.zeros(12), np.ones(12)))
    root = {}
    for shape in ("spherical", "proportional", "optimal"):
        _, stds = allocate(bounds, shape)
        entries = [n for b in bounds for n in (np.prod(s) for s in b.shapes)]
        root[shape] = np.sqrt(
            sum(
                (np.asarray(s, float) ** 2 * np.ones(1)).mean() * n
                for s, n in zip(stds, entries, strict=True)
            )
        )
    assert root["spherical"] == pytest.approx(43276, rel=0.15)
    assert root["proportional"] == pytest.approx(root["spherical"], rel=0.01)
    assert root["optimal"] == pytest.approx(14136, rel=0.15)


def measured(weights, points, penalty_weight=0.0):
    """Gradients of D plus lambda (||grad_x D|| - 1)^2, one record at a time, LeakyReLU 0.2."""
    arrays, rows = flatten(weights), []
    for x in points:
        with tf.GradientTape() as tape:
            tape.watch(arrays)
            h = tf.constant(x)[None]
            with tf.GradientTape() as inner:
                inner.watch(h)
                s = h
                for layer, (matrix, bias) in enumerate(weights):
                    s = s @ matrix if bias is None else s @ matrix + bias
                    if layer < len(weights) - 1:
                        s = tf.where(s > 0, s, 0.2 * s)
            slope = inner.gradient(s, h)
            value = s[0, 0] + penalty_weight * (tf.sqrt(tf.reduce_sum(slope**2) + 1e-12) - 1.0) ** 2
        rows.append(
            [
                g.numpy()
                for g in tape.gradient(value, arrays, unconnected_gradients=tf.UnconnectedGradients.ZERO)
            ]
        )
    return [np.stack([np.ravel(r[k]) for r in rows]) for k in range(len(arrays))]


@cache
def critics_with_their_gradients(penalty):
    """Critics of two scales: weights, layout and the measured gradients of 25 records."""
    rng = np.random.default_rng(17)
    layout = Layout(3, ((3, 6), (6, 8)))
    critics = []
    for scale in (0.3, 3.0):
        weights = [
            (
                tf.constant(scale * w),
                None if b is None else tf.constant(b + rng.normal(size=b.shape).astype("f")),
            )
            for w, b in glorot(rng, (8, 6, 4, 1), output_bias=False)
        ]
        points = rng.random((25, 8)).round(rng.integers(0, 2)).astype(np.float32)
        for start, stop in layout.groups:
            points[:, start:stop] = np.eye(stop - start)[rng.integers(0, stop - start, 25)]
        critics.append((weights, measured(weights, points - layout.center.astype(np.float32), penalty)))
    return Domain.from_layout(layout), critics


@pytest.mark.parametrize(
    ("shape", "penalty"),
    [(s, 0.0) for s in NOISE_SHAPES] + [("spherical", 3.0), ("layerwise", 3.0)],
)
def test_no_record_of_a_critic_costs_more_than_one(shape, penalty):
    """Catches any gap between bounds and noise: the empirical sensitivity of real critics."""
    domain, critics = critics_with_their_gradients(penalty)
    for weights, gradients in critics:
        norms = [spectral_norm_bound(w) for w, _ in weights]
        bounds = gradient_bounds(weights, domain, norms=norms)
        extra = [penalty * c for c in penalty_radii(weights, norms)] if penalty else None
        centers, stds = allocate(bounds, shape, extra_radii=extra)
        assert spent(gradients, [np.ravel(c) for c in centers], [np.ravel(s) for s in stds]).max() <= 1.0


def test_penalty_radius_adds():
    """Catches the root of squares of Algorithm 1, line 7: a record may move both terms one way."""
    layer = boxes(np.random.default_rng(0), (4,))[0]
    _, alone = allocate([layer], "spherical")
    _, both = allocate([layer], "spherical", extra_radii=[tf.constant(2.0)])
    assert float(both[0]) == pytest.approx(float(alone[0]) + 2.0, rel=1e-4)
    ball = LayerBounds(((4,),), None, None, tf.constant(1.0))
    assert float(allocate([ball], "layerwise", extra_radii=[0.5])[1][0]) == pytest.approx(1.5, rel=1e-4)


def test_constant_components_get_no_noise_to_speak_of():
    """Catches NaN or a division by 0 where a box has no width."""
    flat_box = LayerBounds(((3,),), (tf.constant([1.0, 2.0, 0.0]),), (tf.constant([1.0, 2.0, 0.0]),), None)
    for shape in NOISE_SHAPES:
        centers, stds = allocate([flat_box], shape)
        np.testing.assert_array_equal(centers[0], [1.0, 2.0, 0.0])
        assert np.isfinite(stds[0]).all() and np.max(stds[0]) < 1e-12 and np.min(stds[0]) > 0


@pytest.mark.slow
@pytest.mark.parametrize("shape", ["spherical", "optimal"])
def test_works_in_a_compiled_function(shape):
    """Catches an allocation that XLA cannot compile or computes differently."""
    layers = boxes(np.random.default_rng(1), (4, 3))

    @tf.function(jit_compile=True)
    def compiled(lo, hi):
        first = LayerBounds(((4,),), (lo,), (hi,), tf.constant(2.0))
        return allocate([first, layers[1]], shape)

    got = compiled(layers[0].lo[0], layers[0].hi[0])
    want = allocate([LayerBounds(((4,),), layers[0].lo, layers[0].hi, tf.constant(2.0)), layers[1]], shape)
    tf.nest.map_structure(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5), got, want)


def test_refuses_what_has_no_proof():
    """Catches componentwise noise for a penalty without a box, and shapes nobody defined."""
    layer = boxes(np.random.default_rng(0), (4,))[0]
    ball = LayerBounds(((4,),), None, None, tf.constant(1.0))
    for shape in ("optimal", "proportional"):
        with pytest.raises(PrivacyError, match=shape):
            allocate([layer], shape, extra_radii=[1.0])
    with pytest.raises(InputError, match="extra_radii"):
        allocate([layer], "spherical", extra_radii=[1.0, 2.0])
    with pytest.raises(InputError, match="proportional"):
        allocate([layer, ball], "proportional")
    with pytest.raises(InputError, match="'diagonal'"):
        allocate([layer], "diagonal")
