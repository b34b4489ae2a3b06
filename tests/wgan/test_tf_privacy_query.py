import gc
import sys

import dp_accounting
import numpy as np
import pytest
import tensorflow as tf
from scipy import stats

from dpsynth.errors import InputError, RunError
from dpsynth.privacy.release import Plan
from dpsynth.wgan import tf_privacy_query as bounded_sum
from dpsynth.wgan.networks import flatten, glorot, unflatten
from dpsynth.wgan.tf_privacy_query import BoundedSumQuery
from dpsynth.wgan.theorems import Domain, LayerBounds, allocate, gradient_bounds

present = bounded_sum.sum_query_base() is not bounded_sum._Absent
needs_tf_privacy = pytest.mark.skipif(not present, reason="tensorflow_privacy is not installed")


def make_plan(noise_multiplier=1.0, expected_batch=1.0, **fields):
    return Plan(0.1, expected_batch, 10, noise_multiplier, **fields)


def test_is_there_where_it_has_a_release():
    """Catches an environment in which every test below is skipped unnoticed."""
    assert present or sys.version_info >= (3, 12) or not np.__version__.startswith("1.")


def test_says_clearly_when_tensorflow_privacy_is_absent(monkeypatch):
    """Catches a bare ImportError on Pythons for which TensorFlow Privacy has no release."""
    monkeypatch.setitem(sys.modules, "tensorflow_privacy.privacy.dp_query.dp_query", None)
    with pytest.raises(RunError, match="tensorflow_privacy is not installed"):
        bounded_sum.sum_query_base()()


@pytest.fixture
def critic():
    weights = [
        (tf.constant(w), None if b is None else tf.constant(b))
        for w, b in glorot(np.random.default_rng(0), (6, 16, 8, 1), output_bias=False)
    ]
    return weights, Domain.box(-0.5 * np.ones(6), 0.5 * np.ones(6))


def gradients(weights, points):
    arrays, rows = flatten(weights), []
    for x in points:
        with tf.GradientTape() as tape:
            tape.watch(arrays)
            s = tf.constant(x)[None]
            for layer, (matrix, bias) in enumerate(weights):
                s = s @ matrix if bias is None else s @ matrix + bias
                if layer < len(weights) - 1:
                    s = tf.nn.leaky_relu(s, 0.2)
        rows.append(tape.gradient(s, arrays))
    return rows


@pytest.mark.slow
@needs_tf_privacy
@pytest.mark.parametrize("shape", ["spherical", "optimal"])
def test_noise_in_a_graph_has_the_planned_scale(critic, shape):
    """Catches noise of a wrong scale, a centre not added back, or a query that only works eagerly."""
    weights, domain = critic
    rows = gradients(weights, np.random.default_rng(1).uniform(-0.5, 0.5, (5, 6)).astype(np.float32))
    query = BoundedSumQuery(make_plan(1.7, 4.0, noise_shape=shape), lambda: gradient_bounds(weights, domain))
    centers, unit_stds = allocate(gradient_bounds(weights, domain), shape)
    state = query.initial_global_state()

    @tf.function
    def release(rows):
        params, sample = query.derive_sample_params(state), query.initial_sample_state(rows[0])
        for row in rows:
            sample = query.accumulate_record(params, sample, row)
        return query.get_noised_result(sample, state)[0]

    residuals = []
    for _ in range(5):
        for k, noisy in enumerate(release(rows)):
            # 5 records came where 4 were expected: one centre less is added back than was taken off.
            exact = tf.add_n([row[k] for row in rows]) - centers[k]
            residuals.append(np.ravel((noisy - exact) / (1.7 * unit_stds[k])))
    residuals = np.concatenate(residuals)
    assert stats.kstest(residuals, "norm").pvalue > 1e-5
    for wrong in (2 / 3, 3 / 2):
        assert stats.kstest(wrong * residuals, "norm").pvalue < 1e-6
    first, second = residuals.reshape(5, -1)[:2]
    assert abs(np.corrcoef(first, second)[0, 1]) < 0.35


@needs_tf_privacy
def test_centre_is_taken_off_each_record_and_added_back_for_the_expected_batch():
    """Catches a centre lost on one side: boxes so narrow that the noise cannot hide it."""
    center = tf.constant([5.0, -2.0])
    bounds = [LayerBounds(((2,),), (center - 1e-4,), (center + 1e-4,), None)]
    query = BoundedSumQuery(make_plan(1.0, 10.0), lambda: bounds)
    state = query.initial_global_state()
    params, sample = query.derive_sample_params(state), query.initial_sample_state([center])
    for _ in range(3):
        sample = query.accumulate_record(params, sample, [center])
    np.testing.assert_allclose(sample[0], 0.0, atol=1e-5)
    np.testing.assert_allclose(query.get_noised_result(sample, state)[0][0], [50.0, -20.0], atol=0.01)


@needs_tf_privacy
def test_noise_follows_the_weights_through_a_loop(critic):
    """Catches bounds kept from an earlier step: the standard loop hands the same state on and on."""
    weights, domain = critic
    variables = [tf.Variable(array) for array in flatten(weights)]

    def bounds():
        return gradient_bounds(unflatten([v.value() for v in variables], output_bias=False), domain)

    plan = make_plan(noise_shape="spherical")
    query = BoundedSumQuery(plan, bounds)

    def step(state):
        query.derive_sample_params(state)
        return query.get_noised_result(query.initial_sample_state(variables), state)[:2]

    state, spread = query.initial_global_state(), []
    for _ in range(2):
        centers, stds = allocate(bounds(), "spherical")
        result, state = step(state)
        noise = np.concatenate(
            [
                np.ravel((noisy - plan.expected_batch * center) / std)
                for noisy, center, std in zip(result, centers, stds, strict=True)
            ]
        )
        spread.append(noise.std())
        for variable in variables:
            variable.assign(4.0 * variable)
    assert spread == pytest.approx([1.0, 1.0], abs=0.3)


@needs_tf_privacy
def test_follows_the_interface(critic):
    """Catches a query that TensorFlow Privacy's own queries and loops could not use."""
    from tensorflow_privacy.privacy.dp_query.normalized_query import NormalizedQuery

    weights, domain = critic
    query = NormalizedQuery(
        BoundedSumQuery(make_plan(1e-6, 2.0), lambda: gradient_bounds(weights, domain)), 2.0
    )
    state = query.initial_global_state()
    record = dict(enumerate(gradients(weights, np.zeros((1, 6), np.float32))[0]))  # any structure in order
    sample = query.initial_sample_state(record)
    for _ in range(2):
        params = query.derive_sample_params(state)
        one = query.accumulate_record(params, query.initial_sample_state(record), record)
        sample = query._numerator.merge_sample_states(sample, one)
    mean, _, event = query.get_noised_result(sample, state)
    assert event == dp_accounting.GaussianDpEvent(1e-6)
    for k, array in record.items():
        np.testing.assert_allclose(mean[k], array, atol=1e-3)


def train(model, query, records, steps):
    """TensorFlow Privacy's own pattern, written against ``DPQuery`` alone."""
    variables = model.trainable_variables
    state = query.initial_global_state()
    optimizer = tf.keras.optimizers.SGD(0.05)
    events = []
    for _ in range(steps):
        params, sample = query.derive_sample_params(state), query.initial_sample_state(variables)
        for record in records:
            with tf.GradientTape() as tape:
                score = -model(record[None])
            sample = query.accumulate_record(params, sample, tape.gradient(score, variables))
        released, state, event = query.get_noised_result(sample, state)
        optimizer.apply_gradients(zip(released, variables, strict=True))
        events.append(event)
    return events


@needs_tf_privacy
@pytest.mark.parametrize("ours", [True, False])
def test_a_loop_over_a_keras_model_takes_this_query_for_their_own(ours):
    """Catches a query that is not a drop-in for `GaussianSumQuery`, or moves the weights the wrong way."""
    from tensorflow_privacy.privacy.dp_query.gaussian_query import GaussianSumQuery

    tf.keras.utils.set_random_seed(0)
    layers = tf.keras.layers
    slope = layers.LeakyReLU(negative_slope=0.2)
    model = tf.keras.Sequential([layers.Input((2,)), layers.Dense(4), slope, layers.Dense(1, use_bias=False)])

    def bounds():
        weights = unflatten([v.value for v in model.trainable_variables], output_bias=False)
        return gradient_bounds(weights, Domain.box([0.0, 0.0], [1.0, 1.0]))

    records = np.random.default_rng(0).uniform(0, 1, (8, 2)).astype(np.float32)
    before = float(tf.reduce_mean(model(records)))
    z = 1e-3  # next to no noise: what is tested is the way
    query = BoundedSumQuery(make_plan(z, 8.0), bounds) if ours else GaussianSumQuery(1.0, z)
    events = train(model, query, records, steps=3)
    assert [float(event.noise_multiplier) for event in events] == pytest.approx([z] * 3)
    assert float(tf.reduce_mean(model(records))) > before + 0.1


@needs_tf_privacy
def test_two_queries_do_not_share_noise(critic):
    """Catches a fixed seed."""
    weights, domain = critic
    zero = [tf.zeros_like(a) for a in flatten(weights)]
    draws = []
    for _ in range(2):
        query = BoundedSumQuery(make_plan(), lambda: gradient_bounds(weights, domain))
        draws.append(query.get_noised_result(zero, query.initial_global_state())[0][0].numpy())
    assert not (draws[0] == draws[1]).any()


@needs_tf_privacy
def test_refuses_a_plan_without_noise():
    """Catches a query that releases an exact sum."""
    with pytest.raises(InputError, match="noise_multiplier"):
        BoundedSumQuery(make_plan(None), list)


@needs_tf_privacy
def test_products_are_of_full_precision():
    """Catches products in TF32, which round a thousand times more than the bounds are widened for.

    And a setting of the user's process that stays changed when nobody uses a query any more.
    """
    enabled = tf.config.experimental.tensor_float_32_execution_enabled
    tf.config.experimental.enable_tensor_float_32_execution(True)
    query = BoundedSumQuery(make_plan(), list)
    assert not enabled()
    del query
    gc.collect()
    assert enabled()


@needs_tf_privacy
def test_every_bit_of_a_counter_and_key_is_random():
    """Catches a key of 16 bits, all of which an attacker can try: 64 keys leave no bit as it is."""
    queries = [BoundedSumQuery(make_plan(), list) for _ in range(64)]
    words = np.array([query._generator.state.numpy() for query in queries]).view(np.uint64)
    assert words.shape == (64, 3) and (np.bitwise_or.reduce(words) == 2**64 - 1).all()
    assert not np.bitwise_and.reduce(words).any()
