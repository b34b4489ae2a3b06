"""Calibration to every measure: on the private side, close, and with bad targets refused by name."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import norm

from dpsynth.errors import InputError, PrivacyError
from dpsynth.privacy import REPLACE_ONE, Profile, calibrate
from dpsynth.privacy.calibration import (
    AdvantageTarget,
    AttackAccuracyTarget,
    BeliefTarget,
    EpsilonTarget,
    PromiseTarget,
    TvTarget,
    calibrate_training,
    parse_target,
)
from dpsynth.privacy.events import epsilon_delta_event, gaussian_event, training_event


def run_of(z):
    return [gaussian_event(10.0), training_event(z, 0.05, 2000), epsilon_delta_event(0.02, count=20)]


@pytest.mark.slow
def test_never_exceeds_a_random_target_and_is_tight():
    """A root on the wrong side, or noise more than 1e-3 above the smallest."""
    rng = np.random.default_rng(0)
    epsilon, delta = float(10 ** rng.uniform(-1, 1)), float(10 ** rng.uniform(-8, -3))
    q, steps = float(10 ** rng.uniform(-2.5, -1.0)), int(rng.integers(1, 100))

    def events_of(z):
        return [gaussian_event(60.0), training_event(z, q, steps)]

    z = calibrate(events_of, EpsilonTarget(epsilon, delta))
    assert Profile(events_of(z)).epsilon(delta) <= epsilon
    assert Profile(events_of(z / 1.0011)).epsilon(delta) > epsilon * (1 - 1e-6)


@pytest.mark.parametrize("epsilon", [1e-3, 0.5, 8.0, 500.0])
def test_exact_gaussians(epsilon):
    """A search that stops early, far from its start or near it."""
    z = calibrate(lambda z: [gaussian_event(z)], EpsilonTarget(epsilon, 1e-6))
    tight = calibrate(lambda z: [gaussian_event(z)], EpsilonTarget(epsilon, 1e-6), rtol=1e-5, start=z)
    assert tight * (1 - 1e-5) <= z <= tight * (1 + 1e-3)
    assert Profile([gaussian_event(tight)]).epsilon(1e-6) == pytest.approx(epsilon, rel=1e-4)


def test_a_whole_run_needs_few_evaluations():
    """A bisection, which needs 30 evaluations for 2,000 steps with selections and histograms."""
    tried = []

    def events_of(z):
        tried.append(z)
        return run_of(z)

    z = calibrate(events_of, EpsilonTarget(3.0, 1e-5))
    assert len(tried) <= 14
    assert z == pytest.approx(3.2749, rel=1e-3)


def test_replace_one_needs_twice_the_noise():
    """Adjacency lost between the search and the profile."""
    one = calibrate(lambda z: [gaussian_event(z)], EpsilonTarget(1.0, 1e-5))
    two = calibrate(lambda z: [gaussian_event(z)], EpsilonTarget(1.0, 1e-5), adjacency=REPLACE_ONE)
    assert two / one == pytest.approx(2.0, rel=2e-3)


def test_root_beside_the_plateau():
    """Divergence where the other events have used almost all of the budget."""
    rest = Profile([gaussian_event(10.0), epsilon_delta_event(0.02, count=20)]).epsilon(1e-5)
    target = 1.02 * rest
    z = calibrate(run_of, EpsilonTarget(target, 1e-5))
    assert 0.99 * target < Profile(run_of(z)).epsilon(1e-5) <= target


def test_impossible_budgets_are_refused():
    """A multiplier returned although the rest alone, or delta = 0, makes the target impossible."""
    with pytest.raises(PrivacyError, match=r"other events alone cost 0\.46"):
        calibrate(run_of, EpsilonTarget(0.3, 1e-5))
    with pytest.raises(PrivacyError, match="no noise multiplier"):
        calibrate(lambda z: [gaussian_event(z)], EpsilonTarget(1.0, 0.0))
    with pytest.raises(InputError, match="nothing to calibrate"):
        calibrate(lambda z: [gaussian_event(10.0)], EpsilonTarget(5.0, 1e-5))


@pytest.mark.parametrize(
    ("name", "numbers"),
    [
        ("epsilon", (0.0, 1e-5)),
        ("epsilon", (math.inf, 1e-5)),
        ("epsilon", (math.nan, 1e-5)),
        ("delta", (1.0, 1.0)),
        ("delta", (1.0, -1e-6)),
    ],
)
def test_bad_numbers_of_a_target_are_named(name, numbers):
    """A target that no noise meets, or that every noise does."""
    with pytest.raises(InputError, match=name):
        EpsilonTarget(*numbers)


TARGETS = [EpsilonTarget(1.0, 1e-5), TvTarget(0.1)]
#: closed forms of a Gaussian, below, tell quickly whether these are the measures that they say
OTHERS = [
    AttackAccuracyTarget(0.83, prior=0.8),
    AdvantageTarget(0.02, fpr=0.01),
    BeliefTarget(0.9, 1e-5),
    BeliefTarget(0.3, 1e-3, prior=0.1),
]


@pytest.mark.parametrize(
    "target",
    [*TARGETS, *(pytest.param(target, marks=pytest.mark.slow) for target in OTHERS)],
    ids=str,
)
def test_training_runs_meet_the_target_and_hardly_more(target):
    """A root on the wrong side, or noise more than 1e-3 above the smallest."""
    q, steps = 0.05, 50
    z = calibrate_training(target, q, steps)
    assert target.cost(Profile([training_event(z, q, steps)])) <= target.goal
    assert target.cost(Profile([training_event(z / 1.0015, q, steps)])) > target.goal


def test_gaussians_by_their_closed_forms():
    """A measure calibrated to another one's formula."""

    def solve(target):
        return 1 / calibrate(lambda z: [gaussian_event(z)], target)

    assert solve(TvTarget(0.1)) == pytest.approx(2 * norm.ppf(0.55), rel=1e-3)
    assert solve(AttackAccuracyTarget(0.6)) == pytest.approx(2 * norm.ppf(0.6), rel=1e-3)
    mu = norm.isf(0.01) - norm.isf(0.01 + 0.1)
    assert solve(AdvantageTarget(0.1, 0.01)) == pytest.approx(mu, rel=1e-3)
    # the likelier of two sets of outcomes has probability 1e-4, and nine times that of the other
    mu = norm.isf(1e-4 / 9) - norm.isf(1e-4)
    assert solve(BeliefTarget(0.9, 1e-4)) == pytest.approx(mu, rel=1e-3)


def test_earlier_releases_and_adjacency_count():
    """A target met by the run alone, although something was released before; adjacency lost."""
    target = TvTarget(0.2)
    alone = calibrate_training(target, 0.02, 300)
    before = [gaussian_event(10.0), epsilon_delta_event(0.05)]

    def events_of(z):
        return [*before, training_event(z, 0.02, 300)]

    after = calibrate(events_of, target)
    assert after > alone
    assert Profile(events_of(after)).tv() <= 0.2
    replaced = calibrate_training(target, 0.02, 300, adjacency=REPLACE_ONE)
    assert Profile([training_event(replaced, 0.02, 300)], adjacency=REPLACE_ONE).tv() <= 0.2
    assert replaced > 1.2 * alone
    with pytest.raises(PrivacyError, match=r"total variation 0\.001"):
        calibrate(events_of, TvTarget(0.001))


def test_targets_in_words():
    """A target read as another, or a suffix ignored."""
    assert parse_target("epsilon=3", delta=1e-6) == EpsilonTarget(3.0, 1e-6)
    assert parse_target("tv=0.1", delta=1e-6) == TvTarget(0.1)
    assert parse_target("advantage=0.1", delta=1e-6) == TvTarget(0.1)
    assert parse_target("advantage=0.1@fpr=0.01", delta=1e-6) == AdvantageTarget(0.1, 0.01)
    assert parse_target("attack-accuracy=0.7@prior=0.4", delta=0) == AttackAccuracyTarget(0.7, 0.4)
    assert parse_target("belief=0.9@prior=0.2", delta=1e-6) == BeliefTarget(0.9, 1e-6, 0.2)


def test_bad_targets_are_named():
    """A target out of range that starts a search."""
    for text, words in [
        ("tv", "must look like"),
        ("tv=x", "must look like"),
        ("recall=0.1", "must be one of"),
        ("tv=0", "tv must lie"),
        ("tv=1", "tv must lie"),
        ("tv=nan", "tv must be a number"),
        ("epsilon=-1", "epsilon must lie"),
        ("epsilon=inf", "epsilon must lie"),
        ("attack-accuracy=0.5", "attack-accuracy must exceed 0.5"),
        ("attack-accuracy=0.7@prior=0.2", "must exceed 0.8"),
        ("attack-accuracy=1", "attack-accuracy must lie"),
        ("advantage=0.995@fpr=0.01", "less than 1 - fpr"),
        ("advantage=0.1@fpr=0", "fpr must lie"),
        ("advantage=0.1@prior=0.2", "'prior' does not go with advantage"),
        ("tv=0.1@fpr=0.2", "'fpr' does not go with tv"),
        ("belief=0.5", "belief must exceed the prior"),
        ("belief=1", "belief must lie"),
        ("belief=0.9@prior=2", "prior must lie"),
    ]:
        with pytest.raises(InputError, match=words):
            parse_target(text, delta=1e-5)


def test_the_numbers_of_a_run_are_named():
    """A probability out of range that starts a search."""
    with pytest.raises(InputError, match="sampling_prob"):
        calibrate_training(TvTarget(0.1), 1.5, 10)


@pytest.mark.parametrize(("tv", "binding"), [(0.05, "tv"), (0.9, "epsilon")])
def test_a_promise_is_kept_in_both_its_parts(tv, binding):
    """Would catch a stage whose total variation goes beyond what was promised because epsilon does not."""
    target = PromiseTarget(1.0, 1e-6, tv)
    profile = Profile([gaussian_event(calibrate(lambda z: [gaussian_event(z)], target))])
    used = {"epsilon": profile.epsilon(1e-6) / 1.0, "tv": profile.tv() / tv}
    assert max(used.values()) <= 1.0 and used[binding] > 0.99
