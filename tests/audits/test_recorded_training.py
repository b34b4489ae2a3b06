"""A run that is watched: what is written down is what a run releases, and nothing an adversary lacks."""

from __future__ import annotations

import functools

import numpy as np
import pytest
from scipy import stats

from dpsynth.audits.critic_training import Watched, public_points
from dpsynth.errors import InputError
from dpsynth.privacy.release import Plan
from dpsynth.table.encoder import Layout
from dpsynth.wgan.settings import TrainingSettings

LAYOUT = Layout(3)
RNG = np.random.default_rng(0)
OTHERS = RNG.random((40, 3))
CORNER, OPPOSITE = np.ones(3), np.zeros(3)


def watched(second=None, *, q=1.0, steps=6, multiplier=2.0, **options):
    settings = TrainingSettings(**dict(critic_hidden=(8, 6), generator_hidden=(5,), latent=3) | options)
    plan = Plan(sampling_prob=q, expected_batch=q * 41, steps=steps, noise_multiplier=multiplier)
    return Watched(OTHERS, CORNER, second, LAYOUT, settings, plan)


@functools.cache
def seen_in(replaced, world):
    return run(watched(OPPOSITE if replaced else None, steps=4), world)


def run(watch, world, seed=0):
    return watch.run(world, np.random.default_rng(seed), np.random.default_rng(99))


@pytest.mark.usefixtures("eager_steps")
@pytest.mark.parametrize("replaced", [False, pytest.param(True, marks=pytest.mark.slow)])
@pytest.mark.parametrize("world", [0, 1])
def test_what_is_left_is_the_stated_noise(replaced, world):
    """Catches means, standard deviations or worlds that are not those of the release."""
    seen = seen_in(replaced, world)
    left = ((seen.released - seen.others - seen.records[world]) / seen.stds).ravel()
    assert stats.kstest(left, "norm").pvalue > 1e-3
    assert stats.kstest(left * 1.5, "norm").pvalue < 1e-3
    assert stats.kstest(left / 1.5, "norm").pvalue < 1e-3


@pytest.mark.usefixtures("eager_steps")
def test_a_record_that_is_not_there_adds_nothing():
    """Catches a neighbour that holds the record all the same."""
    seen = seen_in(False, 1)
    assert (seen.records[1] == 0).all() and (np.abs(seen.records[0]).sum(axis=1) > 0).all()


@pytest.mark.usefixtures("eager_steps")
def test_no_record_moves_a_step_by_more_than_the_noise_allows():
    """Catches a transcript in other units than those that the accounting is about: z is 2."""
    seen = seen_in(False, 0)
    moved = np.sqrt(((seen.records[0] / seen.stds) ** 2).sum(axis=1))
    assert 0.01 < moved.max() <= 1 / 2 * (1 + 1e-4)


@pytest.mark.slow
def test_a_record_is_taken_with_its_probability():
    """Catches a differing record that is in every step, or in none, where steps are sampled."""
    seen = run(watched(q=0.25, steps=200, multiplier=0.05, critic_learning_rate=1e-4), 0)
    direction = seen.records[0] / seen.stds**2
    along = (direction * (seen.released - seen.others)).sum(axis=1) / (direction * seen.records[0]).sum(
        axis=1
    )
    assert stats.binomtest(int((along > 0.5).sum()), seen.steps, 0.25).pvalue > 1e-3


@pytest.mark.slow
@pytest.mark.usefixtures("eager_steps")
def test_the_steps_are_those_of_a_run():
    """Catches a watched program that trains otherwise than Trainer does: same draws, same weights."""
    from dpsynth.wgan.training import TrainingRun

    watch = watched(steps=4)
    trainer = TrainingRun(
        np.concatenate([OTHERS, [CORNER]]),
        LAYOUT,
        watch.settings,
        watch.plan,
        bank=public_points(LAYOUT),
        in_graph=False,
    )
    state = trainer.run(np.random.default_rng(5), initial_rng=np.random.default_rng(99))
    watch.run(0, np.random.default_rng(5), np.random.default_rng(99))
    for one, other in zip(state.arrays["critic"], watch.last_["critic"], strict=True):
        np.testing.assert_allclose(one, other.numpy(), atol=1e-5)


def test_runs_without_noise_or_with_a_penalty_at_records_are_refused():
    """Catches log-odds of an adversary that divide by no noise, or leave part of a sum out."""
    with pytest.raises(InputError, match="noise_multiplier"):
        watched(multiplier=None)
    with pytest.raises(InputError, match="penalty"):
        watched(penalty="data", critic_constraint="none")
