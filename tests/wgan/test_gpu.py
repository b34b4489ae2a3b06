"""What only a machine with an accelerator can show."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from dpsynth.privacy.release import Plan
from dpsynth.table.encoder import Layout
from dpsynth.wgan.settings import TrainingSettings
from dpsynth.wgan.training import TrainingRun, generator_of

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not tf.config.list_physical_devices("GPU"), reason="no GPU that TensorFlow can use"),
]


def run(device, *, in_graph):
    with tf.device(device):
        settings = TrainingSettings(critic_hidden=(8, 8), generator_hidden=(8,), latent=3, penalty="none")
        plan = Plan(sampling_prob=0.25, expected_batch=20.0, steps=40, noise_multiplier=1.0)
        points = np.random.default_rng(0).random((80, 3), dtype=np.float32)
        trainer = TrainingRun(points, Layout(3), settings, plan, bank=None, in_graph=in_graph)
        return trainer.run(np.random.default_rng(1))


def test_same_numbers_as_on_the_processor():
    """Catches TF32 products, which round outside what the bounds are widened for."""
    there, here = run("/GPU:0", in_graph=False), run("/CPU:0", in_graph=False)
    for (a, b), (c, d) in zip(generator_of(there), generator_of(here), strict=True):
        np.testing.assert_allclose(a, c, atol=1e-3)
        np.testing.assert_allclose(b, d, atol=1e-3)


def test_noise_is_drawn_in_the_program_by_default():
    """Catches an accelerator that waits for noise from the host."""
    assert run("/GPU:0", in_graph=None).history["noise_std"].iloc[-1] > 0
