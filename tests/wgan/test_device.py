"""Which processor a fit runs on, and what it says of one that is missing."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import tensorflow as tf

import dpsynth
from dpsynth.errors import InputError
from dpsynth.privacy import Ledger
from dpsynth.wgan import device
from dpsynth.wgan.device import on_device

SCHEMA = dpsynth.Schema(
    columns=[dpsynth.Column(name=f"x{i}", kind="continuous", lower=0, upper=1) for i in range(3)],
    n_public=200,
)
GENERATORS = [dpsynth.DPWGANGP, dpsynth.DPCriticMatching]


@pytest.mark.parametrize("generator", GENERATORS)
def test_a_missing_device_is_refused_before_anything_is_spent(generator, tmp_path):
    """Catches a fit that pays for counts and then finds no device, or runs elsewhere without a word."""
    frame = pd.DataFrame(np.random.default_rng(0).random((200, 3)), columns=SCHEMA.names)
    ledger = Ledger()
    with pytest.raises(InputError, match=r"device 'GPU:93' was not found: TensorFlow finds CPU:0"):
        generator(device="GPU:93").fit(frame, schema=SCHEMA, ledger=ledger)
    assert not ledger.entries


@pytest.mark.parametrize("generator", GENERATORS)
@pytest.mark.parametrize("name", ["cuda", "gpu:0", "GPU", "/GPU:0", "TPU:0"])
def test_a_name_of_another_form_is_refused(generator, name):
    """Catches a name that TensorFlow reads as no device, or as another one."""
    with pytest.raises(InputError, match="device"):
        generator(device=name).validate()


def test_operations_run_on_the_device(monkeypatch):
    """Catches a device that is checked and then not used."""
    asked, real = [], tf.device
    monkeypatch.setattr(tf, "device", lambda name: asked.append(name) or real(name))
    for name in ("CPU:0", None):
        with on_device(name):
            assert asked.pop() == name and tf.zeros([]).device.endswith("CPU:0")


@pytest.mark.parametrize("in_use", [False, True])
def test_memory_of_a_gpu_grows(monkeypatch, in_use):
    """Catches a fit that takes all memory of a GPU from others, and one that fails on a GPU in use."""
    asked, gpus = [], ["first", "second"]
    real = tf.config.list_physical_devices

    def grow(gpu, on):
        asked.append((gpu, on))
        if in_use:
            raise RuntimeError("Physical devices cannot be modified after being initialized")

    monkeypatch.setattr(tf.config, "list_physical_devices", lambda kind=None: gpus if kind else real())
    monkeypatch.setattr(tf.config.experimental, "set_memory_growth", grow)
    with on_device(None):
        assert asked == [(gpu, True) for gpu in gpus[: 1 if in_use else 2]]


def test_noise_is_drawn_in_the_program_on_a_gpu_alone(monkeypatch):
    """Catches a fit on the processor that follows the rule of a GPU which is there and not used."""
    monkeypatch.setattr(tf.config, "list_physical_devices", lambda kind=None: ["a GPU"])
    assert not device.runs_on_gpu()
