"""TensorFlow Privacy's network: its mathematics, its process, its cost, and its absence."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

from dpsynth import privacy
from dpsynth.errors import RunError
from dpsynth.research.soft_labels import dp_sgd
from dpsynth.research.soft_labels.dp_sgd import DPSGDNetwork, reference_ledger

needs_keras = pytest.mark.skipif(
    not dp_sgd.available(), reason="tensorflow-privacy or tf-keras is not installed"
)


def records(n=60):
    rng = np.random.default_rng(0)
    labels = np.arange(n) % 2
    return rng.normal(size=(n, 4)) + 1.5 * labels[:, None], np.eye(2)[labels]


def by_hand(settings, weights, X, targets, order):
    """DP-SGD without noise in numpy, one record at a time: gradient, clip, mean, L2 outside, step."""
    weights = [w.astype(np.float64) for w in weights]
    for batch in order:
        total = [np.zeros_like(w) for w in weights]
        for i in batch:
            inputs, z = [X[i]], None
            for k in range(0, len(weights), 2):
                z = inputs[-1] @ weights[k] + weights[k + 1]
                inputs.append(np.maximum(z, 0))
            delta = np.exp(z - z.max()) / np.exp(z - z.max()).sum() - targets[i]
            gradient = [np.empty(0)] * len(weights)
            for k in reversed(range(0, len(weights), 2)):
                gradient[k], gradient[k + 1] = np.outer(inputs[k // 2], delta), delta
                delta = (weights[k] @ delta) * (inputs[k // 2] > 0)
            norm = np.sqrt(sum((g**2).sum() for g in gradient))
            total = [t + g / max(1, norm / settings.clip) for t, g in zip(total, gradient, strict=True)]
        for k, t in enumerate(total):
            penalty = 2 * settings.l2 * weights[k] if k % 2 == 0 else 0
            weights[k] = weights[k] - settings.learning_rate * (t / len(batch) + penalty)
    return weights


@needs_keras
@pytest.mark.slow
def test_without_noise_it_is_clipped_gradient_descent():
    """Catches a clip of the batch in place of the record, a penalty that is clipped, layers out of order.

    The reference is written out in numpy, record by record, from the same weights and batches.
    """
    settings = DPSGDNetwork((7, 5), 0.0, clip=0.4, learning_rate=0.3, batch_size=6, dropout=0.0, epochs=2)
    X, targets = records()
    rng = np.random.default_rng(9)
    initial = settings._initial(4, 2, rng)
    order = np.concatenate([rng.permutation(60) for _ in range(2)]).reshape(-1, 6)
    expected = by_hand(settings, initial, X, targets, order)
    trained = settings.fit(X, targets, seed=9)
    for ours, theirs in zip(trained.weights, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=2e-5)


OPTIMIZER = """
import sys, numpy as np
from dpsynth.checks import tf_privacy_module
import tensorflow as tf
from dpsynth.research.soft_labels.dp_sgd import DPSGDNetwork
from dpsynth.research.soft_labels.dp_sgd import trainer
settings = DPSGDNetwork((6, 5), 0.0, clip=0.5, batch_size=10, l2=0.0, dropout=0.0)
rng = np.random.default_rng(0)
X, targets = rng.normal(size=(40, 3)).astype("f"), np.eye(2, dtype="f")[np.arange(40) % 2]
initial, order = settings._initial(3, 2, rng), rng.permutation(40).reshape(4, 10)
ours = trainer(settings, 3, 2)(initial, X, targets, order)
keras = tf.keras
dense = keras.layers.Dense
model = keras.Sequential([dense(6, "relu"), dense(5, "relu"), dense(2)])
model.build((None, 3)); model.set_weights(initial)
optimizer = tf_privacy_module("optimizers.dp_optimizer_keras").DPKerasSGDOptimizer(
    l2_norm_clip=0.5, noise_multiplier=0.0, num_microbatches=10, learning_rate=0.05)
loss = keras.losses.CategoricalCrossentropy(from_logits=True, reduction="none")
for batch in order:
    with tf.GradientTape(persistent=True) as tape:
        value = loss(targets[batch], model(X[batch]))
    optimizer.minimize(value, model.trainable_variables, tape=tape)
worst = max(np.abs(a - b).max() for a, b in zip(ours, model.get_weights()))
noisy = DPSGDNetwork((6, 5), 2.0, clip=0.5, batch_size=10, l2=0.0, dropout=0.0)
train = trainer(noisy, 3, 2)
# one float32 entry comes out twice by rounding in 4 of 100 runs; a whole step does not
steps = [np.concatenate([(a - b).ravel() for a, b in zip(train(initial, X, targets, order[:1]), initial)])
         for _ in range(200)]
print(worst, np.std(np.array(steps) - np.mean(steps, axis=0), ddof=1), len({s.tobytes() for s in steps}))
"""


@needs_keras
@pytest.mark.slow
def test_is_the_keras_optimizer_of_tensorflow_privacy_and_has_its_noise():
    """Catches a fast path unlike the optimizer, and noise that is missing or repeats.

    One step's noise has the std clip * multiplier * learning rate / batch = .5 * 2 * .05 / 10 = .005.
    """
    environment = {**os.environ, "TF_USE_LEGACY_KERAS": "1", "TF_CPP_MIN_LOG_LEVEL": "3"}
    said = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", OPTIMIZER], capture_output=True, text=True, env=environment
    )
    assert said.returncode == 0, said.stderr[-2000:]
    worst, noise, different = said.stdout.split()[-3:]
    assert float(worst) < 1e-5
    assert float(noise) == pytest.approx(0.005, rel=0.03)
    assert int(different) == 200


@needs_keras
@pytest.mark.slow
def test_trains_in_a_process_of_its_own(monkeypatch):
    """Catches TensorFlow or its variable in the caller's process, and a network that learns nothing."""
    before = dict(os.environ), "tf_keras" in sys.modules
    X, targets = records(200)
    net = DPSGDNetwork((32, 16), epochs=10, learning_rate=0.2)
    p = net.fit(X, targets, 1).predict_proba(X)
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    assert (p.argmax(axis=1) == targets.argmax(axis=1)).mean() > 0.85
    assert (dict(os.environ), "tf_keras" in sys.modules) == before
    # a fault inside is one sentence, and the process goes on or is started anew
    with pytest.raises(RunError, match="training the network failed"):
        dp_sgd._trained((net, (), X, targets, np.zeros((1, 20), dtype=np.int64)))
    dp_sgd._process(os.getpid()).submit(os._exit, 3)
    with pytest.raises(RunError, match="has ended"):
        net.fit(X, targets, 1)
    assert net.fit(X, targets, 1).predict_proba(X).shape == (200, 2)


def test_absence_is_one_sentence(monkeypatch):
    """Catches an import error from inside a worker where tf-keras is not installed."""
    monkeypatch.setattr(dp_sgd, "available", lambda: False)
    with pytest.raises(RunError, match=r"pip install 'dpsynth-health\[defenses\]'"):
        DPSGDNetwork().fit(*records(), seed=0)


def test_cost_is_that_of_its_steps():
    """Catches a reference epsilon for other steps or rates: posted figures are those of dp_accounting."""
    net = DPSGDNetwork()
    assert net.steps(400) == 120 and net.steps(409) == 120
    event = net.event(400)
    assert (event.count, event.event.sampling_probability, event.event.event.noise_multiplier) == (
        120,
        0.05,
        0.5,
    )
    hard = reference_ledger(net, 400)
    assert hard.epsilon(1e-3) == pytest.approx(
        privacy.Profile([privacy.training_event(0.5, 0.05, 120)]).epsilon(1e-3)
    )
    soft = reference_ledger(net, 400, DPSGDNetwork(epochs=12), splits=25)
    assert [entry.event.count for entry in soft.entries] == [25 * 120, 120]
    assert soft.entries[0].event.event.sampling_probability == 0.1
    assert soft.excluded and soft.epsilon(1e-3) > hard.epsilon(1e-3)
