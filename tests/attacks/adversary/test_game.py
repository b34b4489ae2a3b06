"""Games with known answers: one Gaussian release, the worst case itself, and beliefs that stop in time."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import norm

from dpsynth.accounting.events import training_event
from dpsynth.accounting.profile import Profile
from dpsynth.attacks.adversary.belief import log_odds, log_ratios, shifts
from dpsynth.attacks.adversary.game import Game, attempts, largest_exceedance
from dpsynth.audits.adversary.quick import run_at_the_bound
from dpsynth.errors import InputError


def one_release(sigma, runs=40_000, q=1.0, adjacency="add/remove"):
    """Many runs of one release: one run of many steps, each with log-odds of its own."""
    worlds = np.repeat([0, 1], runs // 2)
    odds = [
        log_ratios(
            run_at_the_bound(
                sigma, q, runs // 2, world, np.random.default_rng([2, world]), adjacency=adjacency
            )
        )
        for world in (0, 1)
    ]
    return Game(worlds, np.concatenate(odds))


@pytest.mark.parametrize("sigma", [0.7, 2.0])
def test_one_gaussian_release(sigma):
    """Catches an advantage or an exceedance of anything but the closed forms of a mean of 0 or 1."""
    game = one_release(sigma)
    advantage = game.advantage(0.999)
    assert advantage.lower < 2 * norm.cdf(1 / (2 * sigma)) - 1 < advantage.upper
    reckoned = game.reckoned_advantage(0.999)
    assert reckoned.lower < 2 * norm.cdf(1 / (2 * sigma)) - 1 < reckoned.upper
    assert reckoned.upper - reckoned.lower < advantage.upper - advantage.lower
    for belief in (0.6, 0.8):
        epsilon = math.log(belief / (1 - belief))
        exact = norm.sf(sigma * epsilon - 1 / (2 * sigma))  # log-odds are N(1 / 2 sigma^2, 1 / sigma^2)
        for world in (0, 1, None):
            passed = game.exceedance(belief, 0.9999, world)
            assert passed.lower < exact < passed.upper


@pytest.mark.parametrize(
    ("noise", "q", "steps", "adjacency"),
    [(3.0, 1.0, 8, "add/remove"), (1.2, 0.3, 8, "add/remove"), (3.0, 0.3, 8, "replace-one")],
)
def test_the_worst_case_reaches_the_exact_numbers(noise, q, steps, adjacency):
    """Catches a bound that is not the game's, by too little or too much: with half the noise it is passed."""
    runs = 6_000
    rng = np.random.default_rng(2)
    worlds = np.arange(runs) % 2
    odds = np.array(
        [log_odds(run_at_the_bound(noise, q, steps, w, rng, adjacency=adjacency))[-1] for w in worlds]
    )
    game = Game(worlds, odds)
    profile = Profile([training_event(noise, q, steps)], adjacency=adjacency)
    found = game.advantage(0.999)
    assert found.lower < profile.tv() < found.upper
    reckoned = game.reckoned_advantage(0.999)
    assert reckoned.lower < profile.tv() < reckoned.upper
    worst = max(game.exceedance(0.7, 0.999, world).upper for world in (0, 1))
    assert max(game.exceedance(0.7, 0.999, world).lower for world in (0, 1)) < profile.exceedance(
        math.log(7 / 3)
    )
    assert profile.exceedance(math.log(7 / 3)) < worst
    twice = Profile([training_event(2 * noise, q, steps)], adjacency=adjacency)
    assert attempts(game, twice, 0.7, attack="a")[0].contradicts
    assert not any(a.contradicts for a in attempts(game, profile, 0.7, attack="a", level=0.999))


def test_shifts_at_the_bound_are_one_over_the_noise():
    """Catches replaced records that move a sum by the sensitivity to one record more or less."""
    rng = np.random.default_rng(0)
    assert shifts(run_at_the_bound(4.0, 1.0, 3, 0, rng)) == pytest.approx([0.25] * 3)
    both = run_at_the_bound(4.0, 1.0, 3, 0, rng, adjacency="replace-one")
    assert shifts(both) == pytest.approx([0.5] * 3)


def test_largest_exceedance_is_where_the_roc_leaves_the_ray():
    """Catches a bound at another point of the curve than tpr = e^epsilon fpr; by a root of our own."""
    profile = Profile([training_event(1.0, 1.0, 1)])
    for epsilon in (0.3, 1.0, 2.5):
        root = brentq(lambda x, e=epsilon: norm.logcdf(norm.ppf(np.exp(x)) + 1.0) - e - x, -60.0, -epsilon)
        assert largest_exceedance(profile, epsilon) == pytest.approx(math.exp(root + epsilon), rel=1e-6)
    assert largest_exceedance(profile, 0.0) == 1.0 and largest_exceedance(profile, math.inf) == 0.0
    assert largest_exceedance(Profile([]), 0.5) == 0.0


def test_a_record_that_stops_in_time_passes_the_exact_exceedance():
    """Catches the exact exceedance told as a bound of all records: one that moves no step once the belief is
    high passes it, and stays below the number that bounds all."""
    steps, noise, epsilon, runs = 64, 8.0, 1.5, 20_000  # mu = 1
    rng = np.random.default_rng(3)
    odds = np.zeros(runs)
    for _ in range(steps):
        moving = odds <= epsilon
        odds += moving * (rng.normal(size=runs) / noise + 1 / (2 * noise * noise))
    game = Game(np.repeat([0, 1], runs // 2), np.where(np.arange(runs) < runs // 2, odds, -odds))
    profile = Profile([training_event(noise, 1.0, steps)])
    passed = game.exceedance(1 / (1 + math.exp(-epsilon)), 0.999)
    assert passed.lower > profile.exceedance(epsilon)
    assert passed.upper < largest_exceedance(profile, epsilon)


def test_an_exceedance_is_not_delta():
    """Catches rho_beta told to fail with probability delta: it fails three times as often here."""
    game, profile = one_release(1.0), Profile([training_event(1.0, 1.0, 1)])
    epsilon = 1.0
    passed = game.exceedance(1 / (1 + math.exp(-epsilon)), 0.999)
    assert passed.lower > 2 * profile.delta(epsilon)
    assert passed.lower < profile.exceedance(epsilon) < passed.upper


def test_attempts_say_what_is_reached_and_what_is_proved():
    """Catches measures or bounds that are exchanged in a report."""
    game, profile = one_release(1.0, 1000), Profile([training_event(1.0, 1.0, 1)])
    advantage, passed = attempts(game, profile, 0.75, attack="a", about="b")
    assert (advantage.measure, passed.measure) == ("advantage", "exceedance")
    assert advantage.proved == pytest.approx(0.38292, abs=1e-5)
    assert passed.proved == pytest.approx(largest_exceedance(profile, math.log(3)))
    assert advantage.internal and "1000 runs" in advantage.about and "probability 0.275" in passed.about
    assert advantage.control is not None and advantage.control.value == 0.0


@pytest.mark.parametrize(
    ("worlds", "odds"), [([0, 0], [0.0, 1.0]), ([0, 1], [0.0, np.nan]), ([0, 1], [0.0]), ([0, 2], [0.0, 1.0])]
)
def test_games_that_say_nothing_are_refused(worlds, odds):
    """Catches an advantage from runs of one table, or from numbers that are not there."""
    with pytest.raises(InputError, match=r"worlds|log_odds"):
        Game(np.array(worlds), np.array(odds))
