from functools import cache

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from dpsynth.errors import InputError
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


@pytest.mark.parametrize("shape", NOISE_SHAPES)
def test_no_record_of_a_layer_with_a_bias_costs_more_than_one(shape):
    """Catches a bias, or a matrix, that is left out of the size of its layer's box."""
    half = [np.float32([[3.0, 1.0], [0.5, 2.0]]), np.float32([4.0, 0.1])]
    layer = LayerBounds(
        ((2, 2), (2,)), tuple(tf.constant(-h) for h in half), tuple(map(tf.constant, half)), None
    )
    _, stds = allocate([layer, layer], shape)
    cost = sum(
        float((h**2 / np.asarray(s, float) ** 2).sum()) for h, s in zip(half + half, stds, strict=True)
    )
    assert 0.99 <= cost <= 1.0


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


def wide(weights):
    """The critic in float64, and its arrays."""
    exact = [tuple(None if a is None else tf.cast(a, tf.float64) for a in layer) for layer in weights]
    return exact, flatten(exact)


def measured(weights, points, others, penalty_weight=0.0):
    """Gradients of D at ``points`` plus lambda (||grad_x D|| - 1)^2 at ``others``, LeakyReLU 0.2, in float64.

    One record at a time, by automatic differentiation of the formulas as they stand.
    """

    def score(x):
        for layer, (matrix, bias) in enumerate(weights):
            x = x @ matrix if bias is None else x @ matrix + bias
            if layer < len(weights) - 1:
                x = tf.where(x > 0, x, 0.2 * x)
        return x[0, 0]

    weights, arrays = wide(weights)
    rows = []
    for x, other in zip(points, others, strict=True):
        x, between = (tf.constant(each, tf.float64)[None] for each in (x, other))
        with tf.GradientTape() as tape:
            tape.watch(arrays)
            with tf.GradientTape() as inner:
                inner.watch(between)
                at = score(between)
            slope = tf.sqrt(tf.reduce_sum(inner.gradient(at, between) ** 2) + 1e-12)
            value = score(x) + penalty_weight * (slope - 1.0) ** 2
        gradient = tape.gradient(value, arrays, unconnected_gradients=tf.UnconnectedGradients.ZERO)
        rows.append([g.numpy() for g in gradient])
    return [np.stack([np.ravel(r[k]) for r in rows]) for k in range(len(arrays))]


def one_hot(rng, layout, n):
    points = rng.random((n, layout.dim)).round(rng.integers(0, 2))
    for start, stop in layout.groups:
        points[:, start:stop] = np.eye(stop - start)[rng.integers(0, stop - start, n)]
    return (points - layout.center).astype(np.float32)


LAYOUT = Layout(3, ((3, 6), (6, 8)))


@cache
def critics_with_their_gradients(penalty):
    """Critics of two scales: weights and the measured gradients of 25 records with points between."""
    rng = np.random.default_rng(17)
    critics = []
    for scale in (0.3, 3.0):
        weights = [
            (
                tf.constant(scale * w),
                None if b is None else tf.constant(b + rng.normal(size=b.shape).astype("f")),
            )
            for w, b in glorot(rng, (8, 6, 4, 1), output_bias=False)
        ]
        records, partners = one_hot(rng, LAYOUT, 25), rng.random((25, 8)) - LAYOUT.center
        mix = rng.random((25, 1))
        between = mix * records + (1 - mix) * partners
        critics.append((weights, measured(weights, records, between, penalty)))
    return Domain.from_layout(LAYOUT), critics


def scales_of(weights, domain, shape, penalty):
    """Flat centres and stds of a critic with a penalty of weight ``penalty``."""
    norms = [spectral_norm_bound(w) for w, _ in weights]
    bounds = gradient_bounds(weights, domain, norms=norms)
    extra = [penalty * c for c in penalty_radii(weights, norms)] if penalty else None
    return [[np.ravel(a) for a in each] for each in allocate(bounds, shape, extra_radii=extra)]


@pytest.mark.parametrize("penalty", [0.0, 0.1, 3.0])
@pytest.mark.parametrize("shape", NOISE_SHAPES)
def test_no_record_of_a_critic_costs_more_than_one(shape, penalty):
    """Catches any gap between bounds and noise: the empirical sensitivity of real critics."""
    domain, critics = critics_with_their_gradients(penalty)
    for weights, gradients in critics:
        centers, stds = scales_of(weights, domain, shape, penalty)
        assert spent(gradients, centers, stds).max() <= 1.0


@pytest.mark.slow
def test_no_search_finds_a_record_that_costs_more_than_one():
    """Catches a bound that random records miss: records and points between are sought by ascent.

    The critic's weights are positive, so that critic and penalty move them the same way.
    """
    rng, penalty = np.random.default_rng(5), 0.3
    weights = [
        (tf.constant(np.abs(w)), None if b is None else tf.constant(b + np.float32(0.5)))
        for w, b in glorot(rng, (8, 4, 4, 1), output_bias=False)
    ]
    scales = {s: scales_of(weights, Domain.from_layout(LAYOUT), s, penalty) for s in NOISE_SHAPES}
    records, between = one_hot(rng, LAYOUT, 8), rng.random((8, 8)) - LAYOUT.center
    worst = {shape: np.zeros(8) for shape in NOISE_SHAPES}
    for _ in range(8):
        moved, other = records.copy(), between + 0.3 * rng.normal(size=between.shape)
        moved[:, :3] = np.clip(moved[:, :3] + 0.5 * rng.normal(size=(8, 3)), -0.5, 0.5)
        other = np.clip(other, -LAYOUT.center, 1 - LAYOUT.center)
        gradients = measured(weights, moved, other, penalty)
        found = {shape: spent(gradients, *scales[shape]) for shape in NOISE_SHAPES}
        better = found["optimal"] > worst["optimal"]
        records[better], between[better] = moved[better], other[better]
        worst = {shape: np.maximum(worst[shape], found[shape]) for shape in NOISE_SHAPES}
    assert all(1e-3 < cost.max() <= 1.0 for cost in worst.values()), worst


def worst_terms(rng, layers, extras, stds):
    """Records a + b with a in each box and b in each ball that cost most, by ascent from random starts."""
    best = 0.0
    for _ in range(5):
        total = 0.0
        for layer, e, s in zip(layers, extras, stds, strict=True):
            half = (layer.hi[0].numpy().astype(float) - layer.lo[0].numpy()) / 2
            s = np.asarray(s, float) * np.ones(half.size)
            a, b = half * rng.choice([-1, 1], half.size), rng.normal(size=half.size)
            b *= e / np.linalg.norm(b)
            # ||(a + b) / s|| is convex, so going to the extreme point of its gradient never lowers it.
            for _ in range(60):
                slope = (a + b) / s**2
                a, b = half * np.where(slope >= 0, 1, -1), e * slope / np.linalg.norm(slope)
            total += (((a + b) / s) ** 2).sum()
        best = max(best, total)
    return best


@pytest.mark.parametrize("shape", NOISE_SHAPES)
@given(seed=seeds)
@settings(max_examples=12, deadline=None)
def test_critic_and_penalty_together_cost_at_most_one(shape, seed):
    """Catches a floor left out, a root of squares, and a layer's penalty forgotten (Proposition 3.1.4)."""
    rng = np.random.default_rng(seed)
    layers = boxes(rng, (3, 7, 2), spread=1.5)
    extras = np.exp(2 * rng.normal(size=3))
    _, stds = allocate(layers, shape, extra_radii=[tf.constant(e, tf.float32) for e in extras])
    cost = worst_terms(rng, layers, extras, stds)
    assert cost <= 1.0
    if shape in ("spherical", "layerwise"):  # reached where the box's corner is the ball's direction
        assert cost >= 0.99


def total_variance(layers, shape, extras=None):
    _, stds = allocate(layers, shape, extra_radii=extras)
    sizes = [np.prod(s) for layer in layers for s in layer.shapes]
    return sum((np.asarray(s, float) ** 2 * np.ones(n)).sum() for s, n in zip(stds, sizes, strict=True))


@given(seed=seeds)
@settings(max_examples=6, deadline=None)
def test_optimal_noise_beside_a_penalty_is_the_least(seed):
    """Catches a floor that wastes noise: a general optimiser of (3.35) finds no better stds."""
    rng = np.random.default_rng(seed)
    layers = boxes(rng, (4, 5))
    extras = np.exp(rng.normal(size=2))
    ranges = [(b.hi[0].numpy().astype(float) - b.lo[0].numpy()) / 2 + 1e-9 for b in layers]

    def log_product(free):
        variance = reach = 0.0
        for r, e, (logs, least) in zip(ranges, extras, parts(free), strict=True):
            s = np.exp(least) * np.exp(logs)  # logs >= 0: above the layer's least std
            variance += (s**2).sum()
            reach += (np.linalg.norm(r / s) + e / np.exp(least)) ** 2
        return np.log(variance) + np.log(reach)

    def parts(free):
        return [(free[:4], free[4]), (free[5:10], free[10])]

    limits = [(0, 20)] * 4 + [(-15, 15)] + [(0, 20)] * 5 + [(-15, 15)]
    start = np.concatenate([np.full(4, 0.5), [0.0], np.full(5, 0.5), [0.0]])
    found = np.exp(minimize(log_product, start, method="L-BFGS-B", bounds=limits).fun)
    ours = total_variance(layers, "optimal", [tf.constant(e, tf.float32) for e in extras])
    assert ours <= 1.005 * found


@given(seed=seeds, balls=st.booleans())
@settings(max_examples=6, deadline=None)
def test_less_noise_in_the_order_of_the_shapes(seed, balls):
    """Catches a shape that makes more noise than a simpler one, with a penalty, and a jump at weight 0."""
    rng = np.random.default_rng(seed)
    layers = boxes(rng, (4, 6, 1))
    if balls:
        layers = [
            LayerBounds(b.shapes, b.lo, b.hi, tf.constant(float(rng.choice([0.1, 3.0])))) for b in layers
        ]
    extras = [tf.constant(e, tf.float32) for e in np.exp(2 * rng.normal(size=3))]
    trace = {shape: total_variance(layers, shape, extras) for shape in NOISE_SHAPES}
    assert trace["optimal"] <= trace["layerwise"] * 1.0001 <= trace["spherical"] * 1.0002
    for shape in ("spherical", "layerwise", "optimal"):  # a floor may do `proportional` good
        small = [tf.constant(1e-7) for _ in layers]
        assert total_variance(layers, shape) <= total_variance(layers, shape, extras)
        assert total_variance(layers, shape, small) == pytest.approx(total_variance(layers, shape), rel=0.02)


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
@pytest.mark.parametrize("extra", [None, 0.5])
@pytest.mark.parametrize("shape", ["spherical", "optimal"])
def test_works_in_a_compiled_function(shape, extra):
    """Catches an allocation that XLA cannot compile or computes differently."""
    layers = boxes(np.random.default_rng(1), (4, 3))

    @tf.function(jit_compile=True)
    def compiled(lo, hi):
        first = LayerBounds(((4,),), (lo,), (hi,), tf.constant(2.0))
        return allocate([first, layers[1]], shape, extra_radii=extras)

    extras = None if extra is None else [extra, extra]
    got = compiled(layers[0].lo[0], layers[0].hi[0])
    first = LayerBounds(((4,),), layers[0].lo, layers[0].hi, tf.constant(2.0))
    want = allocate([first, layers[1]], shape, extra_radii=extras)
    tf.nest.map_structure(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5), got, want)


def test_refuses_what_has_no_proof():
    """Catches shapes nobody defined, and bounds that are not those of the layers."""
    layer = boxes(np.random.default_rng(0), (4,))[0]
    ball = LayerBounds(((4,),), None, None, tf.constant(1.0))
    with pytest.raises(InputError, match="extra_radii"):
        allocate([layer], "spherical", extra_radii=[1.0, 2.0])
    with pytest.raises(InputError, match="proportional"):
        allocate([layer, ball], "proportional")
    with pytest.raises(InputError, match="'diagonal'"):
        allocate([layer], "diagonal")
