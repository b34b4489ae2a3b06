"""One training step against a naive NumPy transcription of the corrected Algorithm 1."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf
from scipy import stats

from dpsynth.gan.sensitivity import noise_scales
from dpsynth.gan.settings import TrainingSettings
from dpsynth.gan.training import Trainer, initial_state
from dpsynth.gan.weights import unflatten
from dpsynth.mechanism.plan import Plan
from dpsynth.table.layout import Layout

LAYOUT = Layout(2, ((2, 5),))
CASES = {
    "spectral": (dict(activation="leaky_relu"), "optimal"),
    "boxes": (dict(activation="leaky_relu", critic_constraint="none"), "proportional"),
    "maxmin": (dict(), "layerwise"),
    "penalty at records": (dict(critic_constraint="none", penalty="data", penalty_weight=0.5), "spherical"),
    "penalty at public points": (dict(critic_constraint="none", penalty="public"), "optimal"),
    "clipping": (dict(clip_norm=0.3, critic_constraint="none"), "spherical"),
}


def records(n, seed=0):
    rng = np.random.default_rng(seed)
    points = np.zeros((n, LAYOUT.dim), np.float32)
    points[:, :2] = rng.random((n, 2))
    points[np.arange(n), 2 + rng.integers(0, 3, n)] = 1
    return points


def trainer_of(case, *, steps=2, n=60, multiplier=1.0, points=None):
    options, shape = CASES[case]
    settings = TrainingSettings(
        critic_hidden=(8, 6), generator_hidden=(5,), latent=3, critic_steps=1, **options
    )
    plan = Plan(
        sampling_prob=0.5, expected_batch=n / 2, steps=steps, noise_multiplier=multiplier, noise_shape=shape
    )
    points = records(n) if points is None else points
    bank = records(30, seed=5) if settings.penalty == "public" else None
    return Trainer(points, LAYOUT, settings, plan, bank=bank, with_prior=False), settings, plan


def one_critic_gradient(trainer, state, chunk):
    """The released gradient, read off Adam's first moment after one step from zero moments."""
    tensors = {name: tf.constant(a) for name, a in chunk.items()}
    tensors["noise_multiplier"] = tf.constant(trainer.noise_multiplier, tf.float32)
    arrays = tf.nest.map_structure(tf.constant, state.arrays)
    arrays = {**arrays, "critic": trainer.step.constrain(arrays["critic"])}
    after, _ = trainer.step(arrays, trainer._data, trainer._bank, tensors, tf.constant(0))
    first = after["critic_adam"]["first"]
    return [m.numpy() / (1 - trainer.settings.beta_1) for m in first], after


@pytest.mark.parametrize("case", CASES)
def test_one_record_moves_the_release_by_at_most_the_sensitivity(case):
    """Catches a sensitivity that is too small anywhere from record to optimiser: the privacy claim itself."""
    trainer, settings, plan = trainer_of(case)
    rng = np.random.default_rng(3)
    state = initial_state(LAYOUT, settings, with_prior=False, rng=rng)
    weights = unflatten(
        [a.numpy() for a in trainer.step.constrain([tf.constant(a) for a in state.arrays["critic"]])],
        output_bias=False,
    )
    _, stds = noise_scales(LAYOUT, settings, plan)(weights)
    chunk = trainer.step.draws.draw(rng)
    with_all, _ = one_critic_gradient(trainer, state, chunk)
    largest = 0.0
    members = np.flatnonzero(chunk["records"][0, 0] >= 0)
    for place in members[:12]:
        without = {name: a.copy() for name, a in chunk.items()}
        without["records"][0, 0, place] = -1
        less, _ = one_critic_gradient(trainer, state, without)
        moved = [trainer.step.expected_batch * (a - b) for a, b in zip(with_all, less, strict=True)]
        largest = max(
            largest, sum(float(((m / s.numpy()) ** 2).sum()) for m, s in zip(moved, stds, strict=True))
        )
    assert 1e-6 < largest <= 1.0 + 1e-3


def test_noise_has_the_stated_scale():
    """Catches noise of 2/3 or 3/2 of the stated size, or noise that is not added at all."""
    trainer, settings, plan = trainer_of("boxes", multiplier=2.0)
    rng = np.random.default_rng(4)
    state = initial_state(LAYOUT, settings, with_prior=False, rng=rng)
    weights = unflatten(state.arrays["critic"], output_bias=False)
    centers, stds = noise_scales(LAYOUT, settings, plan)(weights)
    seen = []
    base = trainer.step.draws.draw(rng)
    silent = {**base, "noise": np.zeros_like(base["noise"])}
    reference, _ = one_critic_gradient(trainer, state, silent)
    for _ in range(25):
        chunk = {**base, "noise": trainer.step.draws.draw(rng)["noise"]}
        gradient, _ = one_critic_gradient(trainer, state, chunk)
        for g, r, s in zip(gradient, reference, stds, strict=True):
            seen.append(((g - r) * trainer.step.expected_batch / s.numpy()).ravel())
    sample = np.concatenate(seen)
    assert stats.kstest(sample, stats.norm(scale=2.0).cdf).pvalue > 1e-3
    for wrong in (2 / 3, 3 / 2):
        assert stats.kstest(sample, stats.norm(scale=2.0 * wrong).cdf).pvalue < 1e-6
    assert len(centers) == len(stds)


def naive_step(trainer, state, chunk, settings, plan, center):
    """The corrected Algorithm 1, lines 5 to 19, record by record in float64 (LeakyReLU, no penalty)."""
    critic = [np.array(a, float) for a in state.arrays["critic"]]
    generator = [np.array(a, float) for a in state.arrays["generator"]]
    batch = trainer.step.expected_batch

    def generate(arrays, z):
        h = np.maximum(z @ arrays[0] + arrays[1], 0)
        out = h @ arrays[2] + arrays[3]
        e = np.exp(out[2:] - out[2:].max())
        return np.concatenate([1 / (1 + np.exp(-out[:2])), e / e.sum()]) - center

    def gradient(arrays, x):
        w1, b1, w2, b2, w3 = arrays
        s1 = x @ w1 + b1
        x1 = np.where(s1 > 0, s1, 0.2 * s1)
        s2 = x1 @ w2 + b2
        x2 = np.where(s2 > 0, s2, 0.2 * s2)
        d2 = w3[:, 0] * np.where(s2 > 0, 1, 0.2)
        d1 = (w2 @ d2) * np.where(s1 > 0, 1, 0.2)
        return [np.outer(x, d1), d1, np.outer(x1, d2), d2, x2[:, None]]

    weights = unflatten([np.float32(a) for a in critic], output_bias=False)
    centers, stds = noise_scales(LAYOUT, settings, plan)(weights)
    centers = [c.numpy() * np.ones_like(a) for c, a in zip(centers, critic, strict=True)]
    stds = [s.numpy() * np.ones_like(a) for s, a in zip(stds, critic, strict=True)]
    released = [batch * c for c in centers]
    for i in chunk["records"][0, 0]:
        if i >= 0:
            g = gradient(critic, records(60)[i] - center)
            released = [r + gi - c for r, gi, c in zip(released, g, centers, strict=True)]
    at = 0
    for k, s in enumerate(stds):
        noise = chunk["noise"][0, 0, at : at + s.size].reshape(s.shape)
        released[k] = released[k] - plan.noise_multiplier * s * noise
        at += s.size
    fakes = [generate(generator, z) for z in chunk["latent"][0, 0]]
    mean_fake = [np.mean(gs, axis=0) for gs in zip(*(gradient(critic, f) for f in fakes), strict=True)]
    total = [m - r / batch for m, r in zip(mean_fake, released, strict=True)]
    # Adam's first step from zero moments moves every entry by rate * g / (|g| + tiny).
    return [
        c - settings.critic_learning_rate * g / (np.abs(g) + 1e-8) for c, g in zip(critic, total, strict=True)
    ]


def test_step_matches_the_transcription():
    """Catches a wrong sign, a wrong divisor, a centre not added back, or Adam without its corrections."""
    trainer, settings, plan = trainer_of("boxes")
    rng = np.random.default_rng(6)
    state = initial_state(LAYOUT, settings, with_prior=False, rng=rng)
    chunk = trainer.step.draws.draw(rng)
    _, after = one_critic_gradient(trainer, state, chunk)
    expected = naive_step(trainer, state, chunk, settings, plan, LAYOUT.center)
    for ours, theirs in zip(after["critic"], expected, strict=True):
        np.testing.assert_allclose(ours.numpy(), theirs, atol=2e-4)
