from __future__ import annotations

import itertools

import numpy as np
import pytest
import tensorflow as tf
from critics import apply, critics, cube, flat, glorot, record_gradient, records, score
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsynth.errors import InputError
from dpsynth.table.encoder import Layout
from dpsynth.wgan.theorems import Activation, Domain, Interval, gradient_box, product

seeds = st.integers(0, 2**32 - 1)


def some_interval(rng, n):
    ends = np.sort(rng.integers(-3, 4, (2, n)) * rng.choice([0.5, 1.0], (2, n)), axis=0).astype(np.float32)
    return Interval(*(tf.constant(e) for e in ends)), ends


@given(seeds)
@settings(max_examples=30, deadline=None)
def test_product_is_the_hull_of_products(seed):
    """Catches a missing corner product (3.15)-(3.16)."""
    rng = np.random.default_rng(seed)
    (a, x), (b, y) = some_interval(rng, 6), some_interval(rng, 6)
    got = product(a, b)
    grid = np.linspace(0, 1, 5)
    every = [((1 - s) * x[0] + s * x[1]) * ((1 - t) * y[0] + t * y[1]) for s in grid for t in grid]
    np.testing.assert_allclose(got.lo, np.min(every, axis=0), atol=1e-6)
    np.testing.assert_allclose(got.hi, np.max(every, axis=0), atol=1e-6)


@pytest.mark.parametrize("kind", ["relu", "leaky_relu", "maxmin"])
@given(seed=seeds)
@settings(max_examples=30, deadline=None)
def test_encloses_values_and_derivatives(kind, seed):
    """Catches a wrong slope, a wrong pairing of maxmin, or a derivative that misses a switch."""
    rng = np.random.default_rng(seed)
    s, ends = some_interval(rng, 8)
    upstream, up = some_interval(rng, 8)
    phi = Activation(kind, 0.2)
    out, back = phi.interval_forward(s), phi.interval_backward(s, upstream)
    mix = rng.random((50, 8)).round(rng.integers(0, 2)).astype(np.float32)
    x = tf.constant((1 - mix) * ends[0] + mix * ends[1])
    u = (1 - mix[::-1]) * up[0] + mix[::-1] * up[1]
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = apply(x, kind, 0.2)
        value = tf.reduce_sum(y * u)
    g = tape.gradient(value, x).numpy()
    assert (y.numpy() >= out.lo.numpy() - 1e-6).all() and (y.numpy() <= out.hi.numpy() + 1e-6).all()
    assert (g >= back.lo.numpy() - 1e-6).all() and (g <= back.hi.numpy() + 1e-6).all()


def test_maxmin_is_exact_where_the_order_is_certain():
    """Catches a hull taken although one input of the pair is always above the other."""
    phi = Activation("maxmin")
    s = Interval(tf.constant([2.0, 0.0, 0.0, 2.0]), tf.constant([3.0, 1.0, 1.0, 3.0]))
    up = tf.constant([1.0, 2.0, 3.0, 4.0])  # of max, max, min, min
    back = phi.interval_backward(s, Interval(up, up))
    assert back.lo.numpy().tolist() == back.hi.numpy().tolist() == [1.0, 3.0, 4.0, 2.0]


def test_refuses_unknown_names_and_slopes():
    """Catches a slope above 1, for which the activation is not 1-Lipschitz."""
    with pytest.raises(InputError, match="'tanh'"):
        Activation("tanh")
    for slope in (-0.1, 1.5, float("nan")):
        with pytest.raises(InputError, match="slope"):
            Activation("leaky_relu", slope)


def ends(box):
    pairs = [i for layer in zip(box.matrices, box.biases, strict=True) for i in layer if i is not None]
    return [i.lo.numpy() for i in pairs], [i.hi.numpy() for i in pairs]


def inside(gradient, box):
    lo, hi = ends(box)
    return all(((g >= a) & (g <= b)).all() for g, a, b in zip(gradient, lo, hi, strict=True))


def total(arrays):
    return float(np.sqrt(sum((np.asarray(a, float) ** 2).sum() for a in arrays)))


@pytest.mark.slow
@given(critics())
@settings(max_examples=40, deadline=None)
def test_every_measured_gradient_lies_inside(critic):
    """Catches any error of Theorem 3.1.1's recursion, its printed misprints included."""
    weights, activation, slope, layout, rng = critic
    box = gradient_box(weights, Domain.from_layout(layout), activation=activation, slope=slope)
    for x in records(rng, layout, 12):
        assert inside(record_gradient(weights, x, activation, slope), box)


@pytest.mark.slow
@pytest.mark.parametrize("activation", ["relu", "leaky_relu", "maxmin"])
def test_adversarial_search_stays_inside(activation):
    """Catches a bound that random records never reach but a search does."""
    rng = np.random.default_rng(3)
    weights = [
        (
            tf.constant(rng.standard_normal((3, 6)), tf.float32),
            tf.constant(rng.standard_normal(6), tf.float32),
        ),
        (
            tf.constant(rng.standard_normal((6, 4)), tf.float32),
            tf.constant(rng.standard_normal(4), tf.float32),
        ),
        (tf.constant(rng.standard_normal((4, 1)), tf.float32), None),
    ]
    box = gradient_box(weights, Domain.box([-0.5] * 3, [0.5] * 3), activation=activation)
    arrays = flat(weights)
    for _ in range(8):
        index, sign = int(rng.integers(0, len(arrays))), float(rng.choice([-1, 1]))
        entry = int(rng.integers(0, int(tf.size(arrays[index]))))
        x = tf.constant(rng.uniform(-0.5, 0.5, 3), tf.float32)
        for _ in range(12):
            with tf.GradientTape() as outer:
                outer.watch(x)
                with tf.GradientTape() as inner:
                    inner.watch(arrays)
                    value = score(weights, x[None], activation, 0.2)[0]
                target = sign * tf.reshape(inner.gradient(value, arrays[index]), [-1])[entry]
            step = outer.gradient(target, x)
            if step is None:
                break
            x = tf.clip_by_value(x + 0.2 * tf.sign(step), -0.5, 0.5)
            assert inside(record_gradient(weights, x.numpy(), activation, 0.2), box)


@given(critics())
@settings(max_examples=30, deadline=None)
def test_equal_ends_give_the_gradient(critic):
    """Catches a recursion that is loose even where nothing is uncertain (the thesis's "tight")."""
    weights, activation, slope, layout, rng = critic
    weights = [(w + 0.01 * rng.standard_normal(w.shape).astype(np.float32), b) for w, b in weights]
    x = rng.random(layout.dim).astype(np.float32) - np.float32(0.5)
    box = gradient_box(weights, Domain.box(x, x), activation=activation, slope=slope)
    gradient = record_gradient(weights, x, activation, slope)
    assert inside(gradient, box)
    lo, hi = ends(box)
    size = total([np.maximum(np.abs(a), np.abs(b)) for a, b in zip(lo, hi, strict=True)])
    if not np.isclose(size, total(gradient), rtol=1e-3):
        # A sum within rounding of 0 leaves the derivative open; then only containment can be asked for.
        assert min(_smallest_gap(weights, x, activation, slope)) < 1e-4


def _smallest_gap(weights, x, activation, slope):
    gaps, h = [np.inf], x[None].astype(float)
    for matrix, bias in weights[:-1]:
        s = h @ matrix.numpy() + (0.0 if bias is None else bias.numpy())
        size = np.abs(h) @ np.abs(matrix.numpy()) + 1e-30
        gap = s[:, 0::2] - s[:, 1::2] if activation == "maxmin" else s
        gaps.append(np.abs(gap).min() / size.max())
        if activation == "maxmin":
            h = np.concatenate([np.maximum(s[:, 0::2], s[:, 1::2]), np.minimum(s[:, 0::2], s[:, 1::2])], 1)
        else:
            h = np.where(s > 0, s, (0.0 if activation == "relu" else slope) * s)
    return gaps


def sequential_gradient(weights, x, order, slope):
    """Float32 gradient of a LeakyReLU critic with every sum taken one by one in a random order."""
    h, hs, masks = x, [x], []
    for layer, (matrix, bias) in enumerate(weights):
        total_ = np.zeros(matrix.shape[1], np.float32)
        for i in order.permutation(matrix.shape[0]):
            total_ += h[i] * matrix[i]
        if bias is not None:
            total_ += bias
        if layer < len(weights) - 1:
            masks.append(np.where(total_ > 0, np.float32(1), np.float32(slope)))
            h = total_ * masks[-1]
            hs.append(h)
    delta, gradient = np.ones(1, np.float32), []
    for layer in range(len(weights) - 1, -1, -1):
        matrix, bias = weights[layer]
        gradient.insert(0, [np.outer(hs[layer], delta), *([] if bias is None else [delta])])
        back = np.zeros(matrix.shape[0], np.float32)
        for j in order.permutation(matrix.shape[1]):
            back += matrix[:, j] * delta[j]
        if layer:
            delta = back * masks[layer - 1]
    return [g for pair in gradient for g in pair]


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=25, deadline=None)
def test_rounding_of_any_order_of_summation_is_covered(seed):
    """Catches a missing widening: sums that cancel, taken in another order, around a single point."""
    rng = np.random.default_rng(seed)
    sizes = [12, 24, 16, 1]
    weights = []
    for a, b in itertools.pairwise(sizes):
        half = 1000 * rng.standard_normal((a // 2, b))
        matrix = np.concatenate([half, -half + 1e-3 * rng.standard_normal(half.shape)])  # cancels
        weights.append(
            (matrix.astype(np.float32), rng.standard_normal(b).astype(np.float32) if b > 1 else None)
        )
    x = np.tile(rng.random(6), 2).astype(np.float32)
    tensors = [(tf.constant(w), None if b is None else tf.constant(b)) for w, b in weights]
    box = gradient_box(tensors, Domain.box(x, x), activation="leaky_relu", slope=0.2)
    for _ in range(3):
        assert inside(sequential_gradient(weights, x, rng, 0.2), box)


def test_derivative_at_zero_is_open():
    """Catches a bound that takes one side of the kink: sums of exactly 0 may be routed either way."""
    weights = [(tf.constant([[1.0], [-1.0]]), None), (tf.constant([[3.0]]), None)]
    box = gradient_box(weights, Domain.box([1, 1], [1, 1]), activation="relu")
    for derivative in (0.0, 1.0):
        assert inside([np.full((2, 1), 3.0 * derivative), np.zeros((1, 1))], box)


def test_one_hot_groups_are_bounded_by_their_extreme_weights():
    """Catches the sum of signs for a group, and a group whose centre is left out."""
    rng = np.random.default_rng(0)
    layout = Layout(0, ((0, 3), (3, 7), (7, 8)))
    weights = [(tf.constant(rng.standard_normal((8, 5)), tf.float32), None), (tf.ones([5, 1]), None)]
    every = np.array(
        [np.concatenate([np.eye(3)[i], np.eye(4)[j], [1.0]]) for i in range(3) for j in range(4)]
    )
    sums = (every - layout.center) @ weights[0][0].numpy()
    box = gradient_box(weights, Domain.from_layout(layout), activation="leaky_relu", slope=1.0)
    np.testing.assert_allclose(box.inputs[1].lo, sums.min(axis=0), atol=1e-4)
    np.testing.assert_allclose(box.inputs[1].hi, sums.max(axis=0), atol=1e-4)
    loose = gradient_box(weights, Domain.box(-layout.center, 1 - layout.center), slope=1.0)
    tight_range = total([box.inputs[1].hi - box.inputs[1].lo])
    assert tight_range < 0.8 * total([loose.inputs[1].hi - loose.inputs[1].lo])


@pytest.mark.parametrize(
    ("widths", "diameter", "largest"),
    [((12, 64, 128, 256, 1), 420, 279), ((34, 64, 128, 256, 1), 883, 645), ((12, 32, 32, 1), 30.6, 23.5)],
)
def test_sizes_measured_before(widths, diameter, largest):
    """Catches a bound that became looser (or impossibly tight): sizes on record for Glorot weights."""
    weights = glorot(np.random.default_rng(0), widths, output_bias=True)
    lo, hi = ends(gradient_box(weights, cube(widths[0]), activation="leaky_relu", slope=0.2))
    assert total([h - low for low, h in zip(lo, hi, strict=True)]) == pytest.approx(diameter, rel=0.15)
    reach = total([np.maximum(np.abs(low), np.abs(h)) for low, h in zip(lo, hi, strict=True)])
    assert reach == pytest.approx(largest, rel=0.15)


@pytest.mark.slow
@pytest.mark.parametrize("activation", ["leaky_relu", "maxmin"])
def test_compiled_bounds_agree(activation):
    """Catches an operation that XLA cannot compile or computes differently."""
    rng = np.random.default_rng(5)
    layout = Layout(3, ((3, 6),))
    weights = glorot(rng, (6, 8, 4, 1))
    domain = Domain.from_layout(layout)

    @tf.function(jit_compile=True)
    def compiled(arrays):
        pairs = list(zip([*arrays, None][0::2], [*arrays, None][1::2], strict=True))
        box = gradient_box(pairs, domain, activation=activation)
        return [e for i in box.matrices for e in i]

    eager = [e for i in gradient_box(weights, domain, activation=activation).matrices for e in i]
    for a, b in zip(compiled(flat(weights)), eager, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)


def test_dead_critic_has_no_range():
    """Catches NaN or a division where all weights are 0."""
    weights = [(tf.zeros([2, 3]), tf.zeros([3])), (tf.zeros([3, 1]), None)]
    lo, hi = ends(gradient_box(weights, cube(2)))
    assert all(np.isfinite(a).all() and np.abs(a).max() < 1e-12 for a in (*lo, *hi))


def test_refuses_what_does_not_fit():
    """Catches bounds of something that is not the critic described."""
    for weights, activation, words in [
        ([], "relu", "at least one layer"),
        ([(tf.ones([3, 1]), None)], "relu", "2 inputs"),
        ([(tf.ones([2, 3]), tf.ones([2])), (tf.ones([3, 1]), None)], "relu", "bias"),
        ([(tf.ones([2, 2]), None)], "relu", "one output"),
        ([(tf.ones([2, 3]), None), (tf.ones([3, 1]), None)], "maxmin", "even"),
        ([(tf.ones([2, 1]), None)], "gelu", "gelu"),
    ]:
        with pytest.raises(InputError, match=words):
            gradient_box(weights, cube(2), activation=activation)
