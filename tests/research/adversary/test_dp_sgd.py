"""The classifier that is attacked: gradients by finite differences, noise by its law."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from dpsynth.attacks.beliefs import shifts
from dpsynth.audits.adversary import Setting
from dpsynth.errors import InputError
from dpsynth.research.adversary.dp_sgd import DpSgd, LabelledPoints, Network, clipped_gradients, watch

RNG = np.random.default_rng(0)
POINTS = RNG.random((12, 4))
RECORDS = LabelledPoints(POINTS, RNG.integers(3, size=12))
ONE, TWO = LabelledPoints(np.ones((1, 4)), np.array([0])), LabelledPoints(np.zeros((1, 4)), np.array([1]))


def loss(network, records, i):
    return -np.log(network.activations(records.points[i : i + 1])[-1][0, 0, records.labels[i]])


@pytest.mark.parametrize("hidden", [0, 5])
def test_clipped_sums_are_those_of_differences_of_the_loss(hidden):
    """Catches a wrong gradient of either layer, a bias left out, or records clipped together."""
    network = Network.drawn(4, hidden, 3, [np.random.default_rng(1)])
    network = network.moved(0.3 * RNG.normal(size=network.weights.shape))
    width, step = network.weights.shape[1], 1e-6
    each = np.zeros((12, width))
    for k in range(width):
        by = np.zeros((1, width))
        by[0, k] = step
        up, down = network.moved(by), network.moved(-by)
        each[:, k] = [(loss(up, RECORDS, i) - loss(down, RECORDS, i)) / (2 * step) for i in range(12)]
    norms = np.linalg.norm(each, axis=1)
    clip = float(np.median(norms))  # some are cut, some are not
    each *= np.minimum(1.0, clip / norms)[:, None]
    np.testing.assert_allclose(clipped_gradients(network, RECORDS, clip), each, atol=1e-7)
    taken = (RNG.random((1, 12)) < 0.5).astype(float)
    np.testing.assert_allclose(network.clipped_sum(RECORDS, clip, taken)[0], taken[0] @ each, atol=1e-6)


def play(setting, second=None, training=DpSgd()):  # noqa: B008 (frozen)
    rngs = [np.random.default_rng([0, run]) for run in range(2)]
    return watch(RECORDS, ONE, second, 3, training, setting, (0, 1), rngs)


@pytest.mark.parametrize("second", [None, TWO])
def test_what_is_left_is_the_stated_noise(second):
    """Catches means, standard deviations or tables that are not those of the release."""
    seen, _ = play(Setting(40, 3.0), second, DpSgd(clip_norm=0.5, hidden=4))
    for world, run in enumerate(seen):
        left = ((run.released - run.others - run.records[world]) / run.stds).ravel()
        assert stats.kstest(left, "norm").pvalue > 1e-3
        assert stats.kstest(left * 1.5, "norm").pvalue < 1e-3
        assert run.stds == pytest.approx(1.5)
        assert (np.linalg.norm(run.records, axis=2) <= 0.5 * (1 + 1e-12)).all()
    assert (seen[1].records[1] == 0.0).all() == (second is None)


def test_a_record_is_taken_with_its_probability():
    """Catches a differing record in every step, or in none, where steps are sampled; and others likewise."""
    seen, _ = play(Setting(2000, 0.01, sampling_prob=0.25), TWO, DpSgd(learning_rate=1e-6))
    for world, run in enumerate(seen):
        record = run.records[world]
        along = ((run.released - run.others) * record).sum(axis=1) / (record * record).sum(axis=1)
        assert stats.binomtest(int((along > 0.5).sum()), run.steps, 0.25).pvalue > 1e-3
    every, _ = play(Setting(1, 0.01), TWO)
    part = np.linalg.norm(seen[0].others.mean(axis=0)) / np.linalg.norm(every[0].others[0])
    assert 0.22 < part < 0.28


def test_local_noise_always_moves_the_belief_by_the_same():
    """Catches local noise at another scale than the two records' own distance; D5.3, Algorithm 1."""
    for second, reach in ((None, 1), (TWO, 2)):
        seen, _ = play(Setting(5, 4.0 * reach, noise="local"), second, DpSgd(hidden=3))
        assert shifts(seen[0]) == pytest.approx([0.25] * 5)
    with pytest.raises(InputError, match="global"):
        play(Setting(1, 1.0, noise="local"), ONE)


def test_it_learns():
    """Catches steps up the loss instead of down: labels that a line tells apart."""
    points = RNG.random((200, 2))
    records = LabelledPoints(points, (points[:, 0] > points[:, 1]).astype(np.int64))
    training, setting, rngs = DpSgd(learning_rate=4.0), Setting(150, 0.01), [np.random.default_rng(0)]
    _, network = watch(records, records.take([0]), None, 2, training, setting, [0], rngs)
    assert network.accuracy(records)[0] > 0.9
