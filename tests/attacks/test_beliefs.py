"""A_DI: log-odds against Algorithm 1 as it is printed and dp_accounting's loss; games with known answers."""

from __future__ import annotations

import functools
import math

import mpmath
import numpy as np
import pytest
from scipy.integrate import trapezoid
from scipy.optimize import brentq
from scipy.special import expit
from scipy.stats import norm

from dpsynth.attacks.beliefs import Game, Transcript, log_odds, log_ratios, shifts
from dpsynth.audits import run_at_the_bound
from dpsynth.errors import InputError
from dpsynth.privacy.events import training_event
from dpsynth.privacy.profile import Profile


def transcript(seed, q, replaced, steps=8, width=5, world=0):
    rng = np.random.default_rng(seed)
    others, stds = rng.normal(size=(steps, width)), rng.uniform(0.5, 3.0, (steps, width))
    records = rng.normal(size=(2, steps, width))
    if not replaced:
        records[1] = 0.0
    taken = rng.random((steps, 1)) < q
    released = others + taken * records[world] + stds * rng.normal(size=others.shape)
    return Transcript(released, others, records, stds, q)


def algorithm_1(seen, prior=0.5):
    """Lines 10 and 11 with products of densities, in 60 digits."""
    with mpmath.workdps(60):
        belief = [mpmath.mpf(prior)]
        for t in range(seen.steps):

            def density(record, t=t):
                return mpmath.fprod(
                    mpmath.npdf(*map(float, entry))
                    for entry in zip(seen.released[t], seen.others[t] + record, seen.stds[t], strict=True)
                )

            under = [
                (1 - mpmath.mpf(seen.sampling_prob)) * density(0.0)
                + mpmath.mpf(seen.sampling_prob) * density(record[t])
                for record in seen.records
            ]
            numerator = belief[-1] * under[0]
            belief.append(numerator / (numerator + (1 - belief[-1]) * under[1]))
        return [float(b) for b in belief]


def test_belief_is_algorithm_1():
    """Catches a wrong sign, a sampling probability left out, a lost half of a square, another prior."""
    for q in [1.0, 0.3]:
        for replaced in [False, True]:
            for world in [0, 1]:
                seen = transcript(3, q, replaced, world=world)
                np.testing.assert_allclose(expit(log_odds(seen, 0.3)), algorithm_1(seen, 0.3), rtol=1e-10)


def test_belief_does_not_underflow():
    """Catches densities that are multiplied: 400 numbers a step, standard deviations of a hundred."""
    rng = np.random.default_rng(0)
    others = np.zeros((30, 400))
    records = np.stack([others + 10.0, others])
    stds = others + 100.0
    seen = Transcript(records[0] + stds * rng.normal(size=others.shape), others, records, stds, 1.0)
    # the log-odds of one normal number with mu^2 = 30 * 400 * (10 / 100)^2 = 120
    expected = (seen.released.sum() * 10 - 30 * 400 * 50) / 1e4
    assert log_odds(seen)[-1] == pytest.approx(expected, rel=1e-9)
    assert np.isfinite(log_odds(seen)).all()


def test_exchanged_tables_exchange_the_belief():
    """Catches a belief that favours one table."""
    seen = transcript(1, 0.4, True)
    other = Transcript(seen.released, seen.others, seen.records[::-1], seen.stds, 0.4)
    np.testing.assert_allclose(log_odds(seen), -log_odds(other), atol=1e-12)


def test_a_record_that_adds_nothing_leaves_the_belief():
    """Catches a belief that moves by the noise alone."""
    seen = transcript(1, 0.4, False)
    nothing = Transcript(seen.released, seen.others, 0.0 * seen.records, seen.stds, 0.4)
    assert (np.abs(log_ratios(nothing)) < 1e-12).all() and (shifts(nothing) == 0.0).all()


@pytest.mark.parametrize("prior", [0.0, 1.0, np.nan])
def test_a_certain_adversary_is_refused(prior):
    """Catches infinite log-odds from a prior that nothing can move."""
    with pytest.raises(InputError, match="prior"):
        log_odds(transcript(0, 1.0, False), prior)


def by_dp_accounting(noise, q):
    from dp_accounting import NeighboringRelation, dp_event
    from dp_accounting.pld import PLDAccountant

    event = dp_event.PoissonSampledDpEvent(q, dp_event.GaussianDpEvent(noise))
    return PLDAccountant(NeighboringRelation.ADD_OR_REMOVE_ONE).compose(event).get_delta


def by_quadrature(noise, q, epsilon):
    """Of two mixtures, (1 - q) N(0) + q N(1) and (1 - q) N(0) + q N(-1), which dp_accounting refuses."""
    points = np.linspace(-12 * noise, 12 * noise, 200_001)
    under = [(1 - q) * norm.pdf(points, 0, noise) + q * norm.pdf(points, m, noise) for m in (1, -1)]
    return float(trapezoid(np.maximum(under[0] - np.exp(epsilon) * under[1], 0.0), points))


@pytest.mark.parametrize(
    ("q", "adjacency"), [(0.2, "add/remove"), (1.0, "add/remove"), (0.2, "replace-one"), (1.0, "replace-one")]
)
def test_log_ratios_have_the_delta_of_others(q, adjacency):
    """Catches log-odds of another law than the accounting's: delta(epsilon) = E(1 - e^(epsilon - L))+."""
    noise, count = 1.5, 100_000
    # one run of many steps is many runs of one step
    losses = []
    for world, sign in ((0, 1.0), (1, -1.0)):
        rng = np.random.default_rng([7, world])
        losses.append(sign * log_ratios(run_at_the_bound(noise, q, count, world, rng, adjacency=adjacency)))
    replaced = adjacency == "replace-one"
    exact = functools.partial(by_quadrature, noise, q) if replaced else by_dp_accounting(noise, q)
    for epsilon in (0.0, 0.1, 0.4):
        gains = [np.maximum(-np.expm1(epsilon - loss), 0.0) for loss in losses]
        found = max(gain.mean() for gain in gains)
        error = max(gain.std() for gain in gains) / np.sqrt(count)
        assert abs(found - exact(epsilon)) < 4 * error + 1e-5


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
    assert game.attempts(twice, 0.7, attack="a")[0].contradicts
    assert not any(a.contradicts for a in game.attempts(profile, 0.7, attack="a", level=0.999))


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
        assert profile.largest_exceedance(epsilon) == pytest.approx(math.exp(root + epsilon), rel=1e-6)
    assert profile.largest_exceedance(0.0) == 1.0 and profile.largest_exceedance(math.inf) == 0.0
    assert Profile([]).largest_exceedance(0.5) == 0.0


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
    assert passed.upper < profile.largest_exceedance(epsilon)


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
    advantage, passed = game.attempts(profile, 0.75, attack="a", about="b")
    assert (advantage.measure, passed.measure) == ("advantage", "exceedance")
    assert advantage.proved == pytest.approx(0.38292, abs=1e-5)
    assert passed.proved == pytest.approx(profile.largest_exceedance(math.log(3)))
    assert advantage.internal and "1000 runs" in advantage.about and "probability 0.275" in passed.about
    assert advantage.control is not None and advantage.control.value == 0.0


@pytest.mark.parametrize(
    ("worlds", "odds"), [([0, 0], [0.0, 1.0]), ([0, 1], [0.0, np.nan]), ([0, 1], [0.0]), ([0, 2], [0.0, 1.0])]
)
def test_games_that_say_nothing_are_refused(worlds, odds):
    """Catches an advantage from runs of one table, or from numbers that are not there."""
    with pytest.raises(InputError, match=r"worlds|log_odds"):
        Game(np.array(worlds), np.array(odds))
