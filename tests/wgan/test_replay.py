"""The replay of released gradients, and the outcome's public factor."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import tensorflow as tf
from pydantic import ValidationError

from dpsynth.errors import DpsynthError
from dpsynth.privacy.release import Plan
from dpsynth.table.encoder import Layout
from dpsynth.wgan.algorithm import critic_pass, straight_through
from dpsynth.wgan.networks import ArrayOps, generator_pass, glorot, unflatten
from dpsynth.wgan.replay import squared_difference, stacked_gradients
from dpsynth.wgan.settings import TrainingSettings
from dpsynth.wgan.theorems import Activation
from dpsynth.wgan.training import TrainingRun, generator_of, initial_state

LAYOUT = Layout(2, ((2, 5),))
SCALE = (1.0, 1.0, 30.0, 30.0, 30.0)
SMALL = dict(critic_hidden=(8,), critic_steps=1, generator_hidden=(), latent=4, penalty="none")


def records(n, seed=0):
    """Points whose second number and category follow the first number."""
    rng = np.random.default_rng(seed)
    points = np.zeros((n, LAYOUT.dim), np.float32)
    points[:, 0] = rng.random(n)
    points[:, 1] = points[:, 0]
    points[np.arange(n), 2 + (3 * points[:, 0]).astype(int).clip(0, 2)] = 1
    return points


def trainer_of(points, *, steps=6, multiplier=None, scale=None, **options):
    settings = TrainingSettings(**SMALL | options)
    plan = Plan(
        sampling_prob=1.0,
        expected_batch=float(len(points)),
        steps=steps,
        noise_multiplier=multiplier,
        noise_shape="optimal",
    )
    return TrainingRun(points, LAYOUT, settings, plan, bank=None, scale=scale)


def gradient_of_mean_score(arrays, points, activation):
    """By automatic differentiation, flat."""
    flat = [tf.constant(a) for a in arrays]
    with tf.GradientTape() as tape:
        tape.watch(flat)
        score = tf.reduce_mean(critic_pass(unflatten(flat, output_bias=False), points, activation)[0])
    return np.concatenate([g.numpy().ravel() for g in tape.gradient(score, flat)])


@pytest.mark.parametrize(("kind", "hidden"), [("maxmin", (6,)), ("maxmin", (8, 6)), ("leaky_relu", (5, 4))])
def test_gradients_of_many_critics_are_those_of_each(kind, hidden):
    """Catches a layer, an activation or a critic in another's place."""
    rng, activation = np.random.default_rng(0), Activation(kind)
    critics = [glorot(rng, (3, *hidden, 1), output_bias=False) for _ in range(4)]
    critics = [
        [(w, None if b is None else b + rng.normal(size=b.shape).astype("f4")) for w, b in c] for c in critics
    ]
    stacked = [
        tuple(None if layers[0][i] is None else tf.stack([layer[i] for layer in layers]) for i in (0, 1))
        for layers in zip(*critics, strict=True)
    ]
    x = tf.constant(rng.normal(size=(50, 3)), tf.float32)
    found = stacked_gradients(stacked, x, activation).numpy()
    for row, critic in zip(found, critics, strict=True):
        arrays = [a for pair in critic for a in pair if a is not None]
        np.testing.assert_allclose(row, gradient_of_mean_score(arrays, x, activation), atol=1e-5)


def test_the_difference_of_few_points_has_no_variance_of_these_points_in_it():
    """Catches a mean square, which rewards points that are alike, and other units than the noise."""
    rng, activation = np.random.default_rng(0), Activation("maxmin")
    critics = [glorot(rng, (2, 4, 1), output_bias=False) for _ in range(3)]
    stacked = [
        tuple(None if layers[0][i] is None else tf.stack([layer[i] for layer in layers]) for i in (0, 1))
        for layers in zip(*critics, strict=True)
    ]
    population = rng.normal(size=(2000, 2)).astype("f4")
    arrays = [[a for pair in critic for a in pair if a is not None] for critic in critics]
    exact = np.array([gradient_of_mean_score(a, tf.constant(population), activation) for a in arrays])
    released = exact + rng.normal(size=exact.shape) * 0.1
    stds = np.full(exact.shape, 0.1)
    means, stds = tf.constant(released, tf.float32), tf.constant(stds, tf.float32)
    found = []
    for _ in range(500):
        points = tf.constant(population[rng.integers(2000, size=100)])
        found.append(float(squared_difference(stacked, points, means, stds, activation)))
    truth = np.mean(((exact - released) / 0.1) ** 2)
    error = np.std(found) / np.sqrt(len(found))
    assert abs(np.mean(found) - truth) < 4 * error < 0.2 * truth


def test_drawn_categories_have_their_probabilities_and_their_gradient():
    """Catches a category of a neighbouring group, and a gradient that the draw stops."""
    p = tf.constant(np.tile([0.3, 0.9, 0.2, 0.5, 0.3], (4000, 1)), tf.float32)
    u = tf.constant(np.random.default_rng(0).random((4000, 1)), tf.float32)
    with tf.GradientTape() as tape:
        tape.watch(p)
        total = tf.reduce_sum(straight_through(p, u, LAYOUT))
    drawn = straight_through(p, u, LAYOUT).numpy()
    assert set(np.unique(drawn[:, 2:])) == {0.0, 1.0} and (drawn[:, 2:].sum(axis=1) == 1).all()
    np.testing.assert_allclose(drawn.mean(axis=0), [0.3, 0.9, 0.2, 0.5, 0.3], atol=0.04)
    assert (tape.gradient(total, p).numpy() == 1).all()


@pytest.mark.parametrize("multiplier", [None, 5.0])
def test_what_is_kept_is_the_released_gradient_at_its_critic(multiplier):
    """Catches the exact gradient kept beside the noisy one, or a gradient with another critic's weights."""
    points = records(40)
    trainer = trainer_of(points, steps=1, multiplier=multiplier)
    state = initial_state(LAYOUT, trainer.settings, np.random.default_rng(1))
    critic = [np.asarray(a) for a in trainer.step.constrain([tf.constant(a) for a in state.arrays["critic"]])]
    arrays = tf.nest.map_structure(tf.constant, {**state.arrays, "critic": critic})
    chunk = trainer.step.draws.draw(np.random.default_rng(2))
    tensors = {name: tf.constant(a) for name, a in chunk.items()}
    tensors["noise_multiplier"] = tf.constant(trainer.noise_multiplier, tf.float32)
    after, _ = trainer.step(arrays, trainer._data, trainer._bank, tensors, tf.constant(0))
    kept = {name: after["replay"][name].numpy() for name in ("critics", "means")}
    exact = gradient_of_mean_score(
        critic, tf.constant(points - LAYOUT.center, tf.float32), Activation("maxmin")
    )
    added = 0.0
    if multiplier is not None:
        _, stds = trainer.step.noise_scales(unflatten([tf.constant(a) for a in critic], output_bias=False))
        stds = [np.broadcast_to(s, a.shape).ravel() for s, a in zip(stds, critic, strict=True)]
        added = -multiplier * np.concatenate(stds) * chunk["noise"][0, 0] / len(points)
        assert np.abs(added).max() > 0.1
    np.testing.assert_array_equal(kept["critics"][0], np.concatenate([a.ravel() for a in critic]))
    np.testing.assert_allclose(kept["means"][0], exact + added, atol=1e-5)
    assert not kept["critics"][1:].any() and not kept["means"][1:].any()


def test_the_oldest_critic_makes_place(monkeypatch):
    """Catches a buffer that ends, and a gradient in another row than its critic."""
    monkeypatch.setattr("dpsynth.wgan.training._KEPT", 4)
    trainer = trainer_of(records(30), steps=6, replay=5)
    made = trainer.run(np.random.default_rng(0), initial_rng=np.random.default_rng(1))
    kept = made.arrays["replay"]
    assert kept["critics"].shape[0] == 4 and len(np.unique(kept["critics"], axis=0)) == 4
    shapes = [a.shape for a in made.arrays["critic"]]
    ends = np.cumsum([int(np.prod(s)) for s in shapes])[:-1]
    x = tf.constant(records(30) - LAYOUT.center, tf.float32)
    for critic, mean in zip(kept["critics"], kept["means"], strict=True):
        arrays = [part.reshape(s) for part, s in zip(np.split(critic, ends), shapes, strict=True)]
        np.testing.assert_allclose(mean, gradient_of_mean_score(arrays, x, Activation("maxmin")), atol=1e-5)


def test_generated_points_have_the_factor_too():
    """Catches generated points without the outcome's factor, which any critic would tell from records."""
    trainer = trainer_of(records(30), scale=SCALE)
    points = records(30)
    np.testing.assert_array_equal(trainer.step.centred(points), trainer._data.numpy())
    assert np.abs(trainer._data.numpy()[:, 2:]).max() > 15


def correlation(state):
    latent = np.random.default_rng(5).standard_normal((4000, 4)).astype("f4")
    points = generator_pass(generator_of(state), latent, LAYOUT, ArrayOps)
    return np.corrcoef(points[:, 0], points[:, 1])[0, 1]


def test_the_replay_reads_no_record_and_finds_what_the_gradients_hold():
    """Catches a replay that reads the records once more, and one that does not learn."""
    trainer = trainer_of(records(500), steps=16)
    made = trainer.run(np.random.default_rng(0), initial_rng=np.random.default_rng(1))
    found = trainer.replay(made)
    trainer._data = trainer._data + 7.0
    again = trainer.replay(made)
    assert all((a == b).all() for a, b in zip(found.arrays["average"], again.arrays["average"], strict=True))
    assert correlation(found) > 0.9 > correlation(made) + 0.2


def test_a_replay_that_diverges_is_named():
    """Catches a generator of numbers that are not finite."""
    trainer = trainer_of(records(30), steps=2, replay=5)
    made = trainer.run(np.random.default_rng(0), initial_rng=np.random.default_rng(1))
    broken = {**made.arrays["replay"], "means": np.full_like(made.arrays["replay"]["means"], np.inf)}
    with pytest.raises(DpsynthError, match="diverged in the replay before iteration 5"):
        trainer.replay(replace(made, arrays={**made.arrays, "replay": broken}))


def test_no_replay_of_gradients_that_are_not_of_a_mean_score():
    """Catches a match with gradients that were clipped, or that a penalty is part of."""
    assert TrainingSettings().replays > 0 and TrainingSettings(replay=0).replays == 0
    for options in ({"penalty": "data"}, {"clip_norm": 1.0}):
        assert TrainingSettings(**options).replays == 0
        with pytest.raises((DpsynthError, ValidationError), match="replay must be 0"):
            TrainingSettings(**options, replay=5)


@pytest.mark.parametrize("shape", ["optimal", "layerwise", "spherical", "proportional"])
@pytest.mark.parametrize("hidden", [(8,), (8, 6)])
def test_a_factor_of_the_outcome_is_in_the_sensitivity(shape, hidden):
    """Catches bounds of the plain domain for records that have a factor: 30 times too little noise.

    The sums of all records one by one, by automatic differentiation, at corners of the cube.
    """
    points = records(60)
    points[:, :2] = np.round(points[:, :2])
    trainer = trainer_of(points, multiplier=1.0, scale=SCALE, critic_hidden=hidden)
    trainer.step = replace(trainer.step, noise_scales=replace(trainer.step.noise_scales, noise_shape=shape))
    seen = trainer._data.numpy()
    np.testing.assert_allclose(seen, (points - LAYOUT.center) * SCALE, atol=1e-5)
    reached = []
    for seed in range(3):
        start = initial_state(LAYOUT, trainer.settings, np.random.default_rng(seed)).arrays["critic"]
        critic = [a.numpy() for a in trainer.step.constrain([tf.constant(a) for a in start])]
        centres, stds = trainer.step.noise_scales(
            unflatten([tf.constant(a) for a in critic], output_bias=False)
        )
        flat = [
            np.concatenate([np.broadcast_to(v, a.shape).ravel() for v, a in zip(of, critic, strict=True)])
            for of in (centres, stds)
        ]
        for row in np.unique(seen, axis=0):
            gradient = gradient_of_mean_score(critic, tf.constant(row[None]), Activation("maxmin"))
            reached.append(np.linalg.norm((gradient - flat[0]) / flat[1]))
    assert 0.05 < max(reached) <= 1.0
