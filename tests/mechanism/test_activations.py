import numpy as np
import pytest
import tensorflow as tf
from critics import apply
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsynth.errors import InputError
from dpsynth.mechanism.gradient_boxes import Interval, LeakyReLU, interval_activation, product

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
    phi = interval_activation(kind, 0.2)
    out, back = phi.forward(s), phi.backward(s, upstream)
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
    phi = interval_activation("maxmin")
    s = Interval(tf.constant([2.0, 0.0, 0.0, 2.0]), tf.constant([3.0, 1.0, 1.0, 3.0]))
    up = tf.constant([1.0, 2.0, 3.0, 4.0])  # of max, max, min, min
    back = phi.backward(s, Interval(up, up))
    assert back.lo.numpy().tolist() == back.hi.numpy().tolist() == [1.0, 3.0, 4.0, 2.0]


def test_refuses_unknown_names_and_slopes():
    """Catches a slope above 1, for which the activation is not 1-Lipschitz."""
    with pytest.raises(InputError, match="'tanh'"):
        interval_activation("tanh")
    for slope in (-0.1, 1.5, float("nan")):
        with pytest.raises(InputError, match="slope"):
            LeakyReLU(slope)
