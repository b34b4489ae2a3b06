from __future__ import annotations

import json

import numpy as np
import pytest
import tensorflow as tf

from benchmarks.bounds_against_clipping import NUMBER, PAGE, PerRow, Results, numbers, table_of
from dpsynth.table.encoder import Layout
from dpsynth.wgan.algorithm import Step, critic_pass
from dpsynth.wgan.networks import glorot
from dpsynth.wgan.settings import TrainingSettings


def test_the_page_has_the_numbers_of_the_kept_results():
    """Catches numbers that stand in another order than their text, and a page older than its results."""
    lines = map(json.loads, PAGE.with_suffix(".jsonl").read_text("utf-8").splitlines())
    found = Results({tuple(line["task"]): line["found"] for line in lines})
    page = PAGE.read_text("utf-8")
    section = page.partition("## What the numbers say\n")[2].partition("![")[0]
    assert NUMBER.findall(section) == list(numbers(found))
    assert table_of(found) in page


@pytest.mark.parametrize("clip", [0.3, 0.6])
def test_a_gradient_for_every_row_gives_the_sum_of_ghost_clipping(clip):
    """Catches an arm with a gradient for every row that clips otherwise than the arm it is compared with."""
    rng, settings = np.random.default_rng(0), TrainingSettings(clip_norm=clip, critic_hidden=(4, 4))
    weights = glorot(rng, (3, 4, 4, 1), output_bias=False)
    rows, sums = tf.constant(rng.random((20, 3), dtype=np.float32)), []
    for kind in (Step, PerRow):
        step = kind(Layout(3), settings, None, None, 10.0)
        _, inputs, deltas = critic_pass(weights, rows, step.activation)
        coefficients = step.coefficients(weights, inputs, deltas, tf.ones([10]))
        sums.append(step.sum_of_gradients(weights, inputs, deltas, coefficients, None))
    for ghost, each in zip(*sums, strict=True):
        np.testing.assert_allclose(ghost, each, rtol=1e-5, atol=1e-6)
