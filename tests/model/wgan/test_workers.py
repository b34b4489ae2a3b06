"""Critic steps that two processes share give the weights of one."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest
import shared_fit
import tensorflow as tf

import dpsynth
from dpsynth.errors import InputError
from dpsynth.model.wgan.workers import Workers


def free_port():
    with socket.socket() as place:
        place.bind(("127.0.0.1", 0))
        return place.getsockname()[1]


@pytest.mark.slow
def test_two_workers_give_the_weights_of_one(tmp_path):
    """Catches records in two sums, and workers with noise, a table, samples or a critic of their own."""
    cluster = {"worker": [f"127.0.0.1:{free_port()}" for _ in range(2)]}
    command = [sys.executable, shared_fit.__file__, tmp_path]
    started = []
    for index in range(2):
        place = json.dumps({"cluster": cluster, "task": {"type": "worker", "index": index}})
        started.append(subprocess.Popen(command, env={**os.environ, "TF_CONFIG": place}))
    try:
        assert [worker.wait(timeout=240) for worker in started] == [0, 0]
    finally:
        for worker in started:
            worker.kill()
    models = {path.name: dpsynth.DPWGANGP.load(path).model_ for path in tmp_path.glob("se*")}
    alone = shared_fit.fitted(5, 40).model_
    for model, tolerance in ((models["seeded-1"], 0.0), (alone, 2e-6)):
        for own, other in zip(model.weights, models["seeded-0"].weights, strict=True):
            np.testing.assert_allclose(own[0], other[0], rtol=0, atol=tolerance)
    assert np.ptp(alone.weights[-1][0]) > 1e-3  # the last layer begins with zeros
    seeded, secret, other = (
        models[name].encoder.marginals.probabilities[0] for name in ("seeded-0", "secret-0", "secret-1")
    )
    np.testing.assert_array_equal(secret, other)
    assert not np.allclose(seeded, secret)
    refused = {path.name: path.read_text() for path in tmp_path.glob("*.txt")}
    for what in ("tables", "runs"):
        told = [text for name, text in refused.items() if name.startswith(what)]
        assert len(told) == 2 and all(f"have different {what}" in text for text in told)


def test_another_strategy_is_refused(monkeypatch):
    """Catches steps that each replica of a strategy would make whole, with the records of all."""
    assert Workers.present() is None
    monkeypatch.setattr(tf.distribute, "get_strategy", lambda: SimpleNamespace(num_replicas_in_sync=2))
    with pytest.raises(InputError, match="MultiWorkerMirroredStrategy"):
        Workers.present()
