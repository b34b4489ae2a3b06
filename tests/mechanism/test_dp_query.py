import sys

import dp_accounting
import numpy as np
import pytest
import tensorflow as tf
from scipy import stats

from dpsynth.bounds.combine import LayerBounds, gradient_bounds
from dpsynth.bounds.domain import Domain
from dpsynth.errors import InputError, RunError
from dpsynth.gan.weights import flatten, glorot
from dpsynth.mechanism import _tf_privacy
from dpsynth.mechanism.dp_query import BoundedSumQuery

present = _tf_privacy.sum_query_base() is not _tf_privacy._Absent
needs_tf_privacy = pytest.mark.skipif(not present, reason="tensorflow_privacy is not installed")


def test_says_clearly_when_tensorflow_privacy_is_absent(monkeypatch):
    """Catches a bare ImportError on Pythons for which TensorFlow Privacy has no release."""
    monkeypatch.setitem(sys.modules, "tensorflow_privacy.privacy.dp_query.dp_query", None)
    with pytest.raises(RunError, match="tensorflow_privacy is not installed"):
        _tf_privacy.sum_query_base()()


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


@needs_tf_privacy
@pytest.mark.parametrize("shape", ["spherical", "optimal"])
def test_noise_in_a_graph_has_the_planned_scale(critic, shape):
    """Catches noise of a wrong scale, a centre not added back, or a query that only works eagerly."""
    weights, domain = critic
    rows = gradients(weights, np.random.default_rng(1).uniform(-0.5, 0.5, (5, 6)).astype(np.float32))
    query = BoundedSumQuery(1.7, expected_batch=4.0, noise_shape=shape)

    @tf.function
    def release(rows):
        state = query.make_global_state(gradient_bounds(weights, domain))
        params, sample = query.derive_sample_params(state), query.initial_sample_state(rows[0])
        for row in rows:
            sample = query.accumulate_record(params, sample, row)
        result, state, _ = query.get_noised_result(sample, state)
        return result, state

    residuals = []
    for _ in range(5):
        result, state = release(rows)
        for k, noisy in enumerate(result):
            # 5 records came where 4 were expected: one centre less is added back than was taken off.
            exact = tf.add_n([row[k] for row in rows]) - state.centers[k]
            residuals.append(np.ravel((noisy - exact) / (1.7 * state.unit_stds[k])))
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
    query = BoundedSumQuery(1.0, expected_batch=10.0, bounds=bounds)
    state = query.initial_global_state()
    params, sample = query.derive_sample_params(state), query.initial_sample_state([center])
    for _ in range(3):
        sample = query.accumulate_record(params, sample, [center])
    np.testing.assert_allclose(sample[0], 0.0, atol=1e-5)
    np.testing.assert_allclose(query.get_noised_result(sample, state)[0][0], [50.0, -20.0], atol=0.01)


@needs_tf_privacy
def test_follows_the_interface(critic):
    """Catches a query that TensorFlow Privacy's own loops could not use."""
    weights, domain = critic
    bounds = gradient_bounds(weights, domain)
    query = BoundedSumQuery(2.0, expected_batch=1.0, bounds=bounds)
    assert isinstance(query, _tf_privacy.sum_query_base())
    state = query.initial_global_state()
    record = dict(enumerate(flatten(weights)))  # any structure in the order of the arrays
    sample = query.accumulate_record(
        query.derive_sample_params(state), query.initial_sample_state(record), record
    )
    merged = query.merge_sample_states(sample, query.initial_sample_state(record))
    result, after, event = query.get_noised_result(merged, state)
    assert event == dp_accounting.GaussianDpEvent(2.0) and after is state
    assert {k: v.shape for k, v in result.items()} == {k: v.shape for k, v in record.items()}


@needs_tf_privacy
def test_two_queries_do_not_share_noise(critic):
    """Catches a fixed seed."""
    weights, domain = critic
    zero = [tf.zeros_like(a) for a in flatten(weights)]
    draws = []
    for _ in range(2):
        query = BoundedSumQuery(1.0, expected_batch=1.0, bounds=gradient_bounds(weights, domain))
        draws.append(query.get_noised_result(zero, query.initial_global_state())[0][0].numpy())
    assert not (draws[0] == draws[1]).any()


@needs_tf_privacy
def test_refuses_arguments_out_of_range():
    """Catches a query without noise, or one that has no bounds to go by."""
    for z in (0.0, -1.0, float("nan"), float("inf")):
        with pytest.raises(InputError, match="noise_multiplier"):
            BoundedSumQuery(z, 1.0)
    with pytest.raises(InputError, match="expected_batch"):
        BoundedSumQuery(1.0, 0.0)
    with pytest.raises(InputError, match="noise_shape"):
        BoundedSumQuery(1.0, 1.0, noise_shape="round")
    with pytest.raises(InputError, match="make_global_state"):
        BoundedSumQuery(1.0, 1.0).initial_global_state()
