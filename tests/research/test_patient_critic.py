"""The critic on windows of patients: what one patient adds to a noisy sum, and what it learns."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest
import tensorflow as tf
from critics import score
from visits import VISITS, histories_of, visits

from dpsynth.privacy.ledger import Ledger
from dpsynth.privacy.records import FrameRecords
from dpsynth.privacy.release import Plan
from dpsynth.research.patient_critic import (
    SETTINGS,
    CriticFit,
    Points,
    WindowEncoder,
    noisy_sum,
    projected,
    windows,
)
from dpsynth.table.encoder import Layout
from dpsynth.wgan.algorithm import ProvedScales
from dpsynth.wgan.networks import flatten, glorot, unflatten


@pytest.fixture(scope="module")
def encoder():
    return WindowEncoder.of(histories_of(visits(60, seed=1), VISITS), VISITS, 2)


def critic_of(encoder, seed, size=1.0):
    start = flatten(
        glorot(np.random.default_rng(seed), (encoder.encoder.layout.dim, 6, 1), output_bias=False)
    )
    return unflatten(
        projected([tf.constant(size * a + 0.1 * (a.ndim == 1)) for a in start]), output_bias=False
    )


def own_gradients(points, critic):
    """Gradient of each patient's mean score by automatic differentiation, one patient after another."""
    arrays, found = flatten(critic), []
    for patient in range(points.patients):
        with tf.GradientTape() as tape:
            tape.watch(arrays)
            own = tf.boolean_mask(points.points, points.patient == patient)
            mean = tf.reduce_mean(
                score(unflatten(arrays, output_bias=False), own, "leaky_relu", SETTINGS.slope)
            )
        found.append(tape.gradient(mean, arrays))
    return found


def test_windows_are_the_rows_before(encoder):
    """Catches a window that reaches into another patient, runs backwards or loses the first row."""
    frame = visits(30, seed=2)
    found, patient = windows(histories_of(frame, VISITS), VISITS, 2)
    ordered = frame.sort_values(["id", "day"], kind="stable").groupby("id").head(VISITS.most)

    def same(one, other):
        return np.array_equal(*(values.to_numpy(float, na_value=-1) for values in (one, other)))

    assert np.array_equal(patient, pd.factorize(ordered["id"])[0])
    assert same(found["lab, 0 before"], ordered["lab"])
    assert same(found["lab, 1 before"], ordered.groupby("id")["lab"].shift(1))
    assert found["grade, 0 before"].astype(object).fillna("").tolist() == ordered["grade"].fillna("").tolist()


@pytest.mark.parametrize(
    ("size", "shape"),
    [(1.0, "optimal"), (30.0, "layerwise"), (30.0, "optimal")],
)
def test_a_patient_with_any_number_of_rows_stays_within_the_noise(encoder, size, shape):
    """Catches a patient who adds a sum over windows, which exceeds the bound of one row, or no gradient."""
    critic = critic_of(encoder, 5, size)
    scales = ProvedScales(encoder.encoder.layout, SETTINGS, shape)
    centres, stds = scales(critic)
    plan = Plan(
        sampling_prob=1.0,
        expected_batch=9,
        steps=1,
        noise_multiplier=None,
        noise_shape=shape,
    )
    frame = visits(8, seed=8)
    points = encoder(histories_of(frame[(frame["id"] > 0) | ~frame["id"].duplicated()], VISITS))
    everyone = noisy_sum(points, critic, scales, plan, np.random.default_rng(0))
    assert points.counts.min() == 1 and points.counts.max() == VISITS.most
    for left_out, naive in enumerate(own_gradients(points, critic)):
        kept = points.patient != left_out
        _, places = np.unique(points.patient[kept], return_inverse=True)
        others = Points(tf.boolean_mask(points.points, kept), places, points.patients - 1)
        without = noisy_sum(others, critic, scales, plan, np.random.default_rng(0))
        cost = 0.0
        for own, whole, rest, centre, std in zip(naive, everyone, without, centres, stds, strict=True):
            moved = (whole - rest).numpy().astype(float)
            np.testing.assert_allclose(moved, (own - centre).numpy(), atol=2e-4)
            cost += float(((moved / (std * tf.ones_like(own)).numpy()) ** 2).sum())
        assert cost <= 1.0 + 1e-3


def test_a_patient_is_sampled_with_all_windows(encoder):
    """Catches windows that are sampled one by one: a patient would then have a part of their gradient."""
    points = encoder(histories_of(visits(40, seed=3), VISITS))
    longest = int(points.counts.argmax())
    own = tf.boolean_mask(points.points, points.patient == longest)
    alone = Points(own, np.zeros(len(own), np.int64), 1)
    plan = Plan(sampling_prob=0.5, expected_batch=0.5, steps=1, noise_multiplier=None)
    critic, rng = critic_of(encoder, 0), np.random.default_rng(0)
    scales = ProvedScales(encoder.encoder.layout, SETTINGS, "optimal")
    centre = np.concatenate([c.numpy().ravel() for c in scales(critic)[0]])
    full = np.concatenate([a.numpy().ravel() for a in own_gradients(alone, critic)[0]]) - centre
    shares = []
    for _ in range(60):
        drawn = np.concatenate([a.numpy().ravel() for a in noisy_sum(alone, critic, scales, plan, rng)])
        drawn -= plan.expected_batch * centre
        shares.append(float(drawn @ full / (full @ full)))
    assert len(own) > 3 and all(min(abs(share), abs(share - 1)) < 1e-4 for share in shares)
    assert 0.2 < np.mean(shares) < 0.8


def test_the_noise_is_the_plans(encoder):
    """Catches a sum without noise in one array, or noise of another size than the event says."""
    points = encoder(histories_of(visits(20, seed=4), VISITS))
    plan = Plan(sampling_prob=1.0, expected_batch=20, steps=1, noise_multiplier=3.0)
    critic, rng = critic_of(encoder, 0), np.random.default_rng(0)
    scales = ProvedScales(encoder.encoder.layout, SETTINGS, plan.noise_shape)
    draws = [noisy_sum(points, critic, scales, plan, rng) for _ in range(80)]
    for array, std in zip(itertools.zip_longest(*draws), scales(critic)[1], strict=True):
        spread = np.sqrt(np.mean(np.var([a.numpy() for a in array], axis=0) / std**2))
        assert spread == pytest.approx(3.0, rel=0.25)


def test_weights_find_what_the_windows_of_synthetic_patients_lack():
    """Catches a critic that follows the gradient the wrong way: real labs never jump, synthetic ones do."""
    real, synthetic = visits(400, seed=5), visits(400, seed=6)
    jump = np.random.default_rng(0).integers(0, 100, len(synthetic))
    synthetic.loc[::2, "lab"] = jump[::2]
    fit = CriticFit(schema=VISITS, synthetic=histories_of(synthetic, VISITS))
    plan = Plan(sampling_prob=0.9, expected_batch=360, steps=40, noise_multiplier=1.0)
    ledger, records = Ledger(), FrameRecords(histories_of(real, VISITS))
    critic = ledger.run(fit.release(plan), records, np.random.default_rng(0))
    fresh = critic.log_weights(histories_of(visits(300, seed=7), VISITS))
    assert fresh.mean() > critic.log_weights(fit.synthetic).mean() + 0.2
    assert ledger.epsilon(1e-5) > 1.0


@pytest.mark.parametrize("shape", ["proportional", "optimal"])
def test_the_rounding_of_many_patients_stays_within_the_noise(shape):
    """Catches a float32 sum, which one of 2,000 patients moves by many times what is proved."""
    n, layout = 2000, Layout(6)
    centred = tf.constant(np.random.default_rng(0).random((n, 6)).astype(np.float32) - np.float32(0.5))
    start = flatten(glorot(np.random.default_rng(1), (6, 32, 1), output_bias=False))
    critic = unflatten(projected([tf.constant(a + 3.0 * (a.ndim == 1)) for a in start]), output_bias=False)
    scales = ProvedScales(layout, SETTINGS, shape)
    plan = Plan(sampling_prob=1.0, expected_batch=n, steps=1, noise_multiplier=None, noise_shape=shape)
    centres, stds = (flat for flat in scales(critic))
    everyone = Points(centred, np.arange(n), n)
    total = everyone.gradient(critic, np.ones(n))
    for patient in range(0, n, 500):
        others = everyone.gradient(critic, (np.arange(n) != patient).astype(float))
        moved = zip(total, others, centres, stds, strict=True)
        apart = [(a - b - c.numpy().astype(float)) / s.numpy() for a, b, c, s in moved]
        assert np.sqrt(sum(float(np.sum(np.square(part))) for part in apart)) <= 1.0
    noisy = noisy_sum(everyone, critic, scales, plan, np.random.default_rng(0))
    assert all(array.dtype == tf.float32 for array in noisy)
