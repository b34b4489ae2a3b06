"""Lower bounds from errors and from guesses: seldom above the truth, and near it where they can be."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from dpsynth.attacks.lower_bounds import (
    Errors,
    by_epsilon,
    epsilon_lower,
    epsilon_of_mu,
    epsilon_of_rates,
    errors_at,
    mu_of_rates,
    p_value,
    planned_threshold,
    right_guesses,
    split,
)
from dpsynth.errors import InputError
from dpsynth.evaluation.estimates import share
from dpsynth.privacy.events import gaussian_event, laplace_event
from dpsynth.privacy.profile import Profile

DELTA = 1e-5


def by_tv(errors):
    return 1.0 - errors.fpr - errors.fnr


def gaussian(rng, n, mu, **_):
    """Log-likelihood ratios of one Gaussian release, with and without the record."""
    return tuple(mu * (rng.normal(size=n) + mu * member) - mu**2 / 2 for member in (1, 0))


def response(rng, n, epsilon, **_):
    """Of randomised response: the answer is true with probability e^eps / (1 + e^eps)."""
    truth = 1 / (1 + np.exp(-epsilon))
    return tuple(np.where(rng.random(n) < p, epsilon, -epsilon) for p in (truth, 1 - truth))


def laplace(rng, n, epsilon, **_):
    noisy = (rng.laplace(size=n) / epsilon + member for member in (1, 0))
    return tuple(epsilon * (np.abs(x) - np.abs(x - 1)) for x in noisy)


# true TV, mu or None, epsilon at DELTA
KNOWN = {
    "gaussian": (lambda rng, n: gaussian(rng, n, 0.9), 2 * stats.norm.cdf(0.45) - 1, 0.9, None),
    "response": (lambda rng, n: response(rng, n, 1.2), np.tanh(0.6), None, 1.2),
    "laplace": (lambda rng, n: laplace(rng, n, 1.2), 1 - np.exp(-0.6), None, 1.2),
    "nothing": (lambda rng, n: tuple(rng.normal(size=(2, n))), 0.0, None, 0.0),
}


@pytest.mark.parametrize("name", KNOWN)
def test_bounds_pass_the_truth_no_oftener_than_their_level_says(name):
    """Catches ends on the wrong side or at the wrong level, and a threshold chosen on the trials that it is
    used on: each would find more than there is in noise.
    """
    draw, tv, mu, epsilon = KNOWN[name]
    epsilon = epsilon_of_mu(mu, DELTA) if mu else epsilon
    rng, times, level = np.random.default_rng(3), 120, 0.8
    above = dict.fromkeys(("tv", "epsilon", "mu", "split tv", "split epsilon"), 0)
    for _ in range(times):
        member, other = draw(rng, 150)
        fixed = errors_at(member, other, 0.0)
        above["tv"] += fixed.tv(level).lower > tv + 1e-12
        above["epsilon"] += fixed.epsilon(DELTA, level).lower > epsilon
        above["mu"] += mu is not None and fixed.mu(level).lower > mu
        halves = (
            split(member, other, by_tv, rng, tried=15),
            split(member, other, by_epsilon(DELTA), rng, tried=15),
        )
        above["split tv"] += halves[0].tv(level).lower > tv + 1e-12
        above["split epsilon"] += halves[1].epsilon(DELTA, level).lower > epsilon
    most = stats.binom.isf(1e-4, times, 1 - level)
    assert max(above.values()) <= most, above


def test_a_level_is_used_up_where_it_can_be():
    """Catches bounds that are valid because they are far too low: where one rate is all but known, an end at
    the tenth part of failure is passed about so often.
    """
    rng, times, above = np.random.default_rng(5), 1000, 0
    truth = epsilon_of_rates(0.1, 0.5, 0.0)
    for _ in range(times):
        errors = Errors(int(rng.binomial(400, 0.1)), 400, 5 * 10**8, 10**9)
        above += errors.epsilon(0.0, 0.8).lower > truth + 1e-3
    assert stats.binom.ppf(1e-4, times, 0.05) <= above <= stats.binom.isf(1e-4, times, 0.1)


@pytest.mark.parametrize("mu", [0.3, 0.9, 2.0])
def test_many_trials_come_close(mu):
    """Catches an estimator that sleeps: with 200,000 trials a Gaussian curve is found to 5 %, and total
    variation too.
    """
    member, other = gaussian(np.random.default_rng(1), 200_000, mu)
    errors = errors_at(member, other, 0.0)
    assert 0.95 * mu <= errors.mu().lower <= mu
    assert 0.95 * (2 * stats.norm.cdf(mu / 2) - 1) <= errors.tv().lower
    far = errors_at(member, other, planned_threshold(mu, 200_000, DELTA))
    assert errors.epsilon(DELTA).lower < far.epsilon(DELTA).lower <= epsilon_of_mu(mu, DELTA)


def test_pure_mechanisms_are_found_whole():
    """Catches a bound of epsilon that only Gaussians reach: randomised response shows all of it."""
    member, other = response(np.random.default_rng(2), 100_000, 1.2)
    assert 1.15 <= errors_at(member, other, 0.0).epsilon(0.0).lower <= 1.2
    member, other = laplace(np.random.default_rng(2), 100_000, 1.2)
    assert 1.1 <= errors_at(member, other, 1.2 - 1e-9).epsilon(0.0).lower <= 1.2


def test_a_declared_curve_is_contradicted_by_half_its_noise_alone():
    """Catches a comparison with the curve that never, or always, speaks."""
    rng = np.random.default_rng(4)
    for event, draw in (
        (gaussian_event(2.0), lambda part: gaussian(rng, 3000, 0.5 / part)),
        (laplace_event(2.0), lambda part: laplace(rng, 3000, 0.5 / part)),
    ):
        profile = Profile([event])
        assert not errors_at(*draw(1.0), 0.0).contradict(profile)
        assert errors_at(*draw(0.5), 0.0).contradict(profile)


def test_formulas_at_their_ends():
    """Catches logs of nothing, and a test that is worse than a coin taken for a good one."""
    assert epsilon_of_rates(0.0, 0.2, 0.0) == np.inf and epsilon_of_rates(1.0, 1.0, 0.0) == 0.0
    assert epsilon_of_rates(0.2, 0.3, 0.9) == 0.0
    assert mu_of_rates(0.5, 0.5) == 0.0 and mu_of_rates(0.0, 0.5) == np.inf
    assert mu_of_rates(0.1, 0.3) == pytest.approx(stats.norm.isf(0.1) + stats.norm.isf(0.3))
    worse = Errors(80, 100, 80, 100)
    assert (worse.tv().value, worse.epsilon(0.0).value, worse.mu().value) == (0.0, 0.0, 0.0)
    perfect = Errors(0, 100, 0, 100)
    assert perfect.epsilon(DELTA).value == np.inf and 3.2 < perfect.epsilon(DELTA).lower < 3.4
    # closed form where nothing erred: 1 - (alpha / 2)^(1 / n)
    end = 1 - 0.025**0.01
    assert perfect.epsilon(0.0).lower == pytest.approx(np.log((1 - end) / end))


def test_a_threshold_is_chosen_on_one_half_and_judged_on_the_other():
    """Catches errors that are counted where the threshold was chosen: halves that say the opposite."""

    class Still:
        def permutation(self, scores):
            return scores

    member, other = np.r_[np.ones(30), np.zeros(30)], np.r_[np.zeros(30), np.ones(30)]
    halves = split(member, other, by_tv, Still())
    assert (halves.fpr, halves.fnr) == (1.0, 1.0)


def test_mistakes_are_named():
    """Catches scores without a meaning that are counted all the same."""
    with pytest.raises(InputError, match="at least 1 trial"):
        Errors(0, 0, 0, 5)
    with pytest.raises(InputError, match="its errors at most as many"):
        Errors(3, 2, 0, 5)
    with pytest.raises(InputError, match="no NaN"):
        errors_at([0.0, np.nan], [1.0], 0.0)
    with pytest.raises(InputError, match="at least two of a kind"):
        split([1.0], [0.0, 1.0], by_tv, np.random.default_rng(0))
    with pytest.raises(InputError, match="mu must be positive"):
        planned_threshold(0.0, 100, DELTA)
    with pytest.raises(InputError, match="must not decrease"):
        p_value(10, 5, 6, 1.0, 0.0)
    with pytest.raises(InputError, match="guesses must lie in"):
        right_guesses([1.0, 2.0], [True, False], 3)
    with pytest.raises(InputError, match="one coin a canary"):
        right_guesses([1.0, np.nan], [True, False], 1)


def test_both_rates_have_the_level_asked_for():
    """Catches a level that reaches one of the two rates."""
    errors = Errors(30, 1000, 70, 900)
    ends = [(share(30, 1000, level), share(70, 900, level)) for level in (0.95, 0.999)]
    for level, (fpr, fnr) in zip((0.95, 0.999), ends, strict=True):
        assert errors.ends(level) == ((fpr.lower, fnr.lower), (fpr.upper, fnr.upper))


def published(m, r, v, eps, delta):
    """Steinke et al. (2023), appendix D, step by step: the tail, and the largest average of what is below."""
    q = 1 / (1 + math.exp(-eps))
    tail = stats.binom.sf(v - 1, r, q)
    largest, below = 0.0, 0.0
    for i in range(1, v + 1):
        below += stats.binom.pmf(v - i, r, q)
        largest = max(largest, below / i)
    return min(tail + largest * delta * 2 * m, 1)


def test_p_value_is_the_published_one():
    """Catches a tail that is off by one, and a delta that is not paid for, or once instead of 2 m times."""
    for eps in [0.0, 0.4, 2.0, 9.0]:
        for delta in [0.0, 1e-6, 1e-3]:
            for m, r, v in [(1000, 200, 150), (50, 50, 50), (40, 7, 0), (300, 1, 1)]:
                assert p_value(m, r, v, eps, delta) == pytest.approx(
                    published(m, r, v, eps, delta), rel=1e-9, abs=1e-300
                )


def test_the_bound_is_where_the_p_value_crosses():
    """Catches a search that stops on the wrong side, or at the end of its first bracket."""
    for m, r, v, delta in ((1000, 100, 80, 1e-5), (1000, 1000, 999, 0.0), (10_000, 2000, 1900, 1e-6)):
        found = epsilon_lower(m, r, v, delta)
        assert p_value(m, r, v, found, delta) <= 0.05 <= p_value(m, r, v, found + 1e-4, delta)
    # all right: q^r = 0.05 by hand
    q = 0.05 ** (1 / 500)
    assert epsilon_lower(500, 500, 500, 0.0) == pytest.approx(math.log(q / (1 - q)), abs=1e-5)
    assert epsilon_lower(500, 500, 250, 0.0) == 0.0


@pytest.mark.slow
@pytest.mark.parametrize("guesses", [40, 200])
def test_the_bound_passes_the_truth_no_oftener_than_its_level_says(guesses):
    """Catches a bound that takes guesses chosen by their answers, or a level of the wrong side."""
    rng, times, m, epsilon, mu = np.random.default_rng(6), 400, 200, 1.0, 0.8
    above = {"response": 0, "gaussian": 0, "nothing": 0}
    for _ in range(times):
        coins = rng.random(m) < 0.5
        truthful = rng.random(m) < 1 / (1 + math.exp(-epsilon))
        answers = np.where(truthful == coins, 1.0, -1.0) + 1e-6 * rng.random(m)
        noisy = coins * mu + rng.normal(size=m)
        for name, scores, truth, delta in (
            ("response", answers, epsilon, 0.0),
            ("gaussian", noisy, epsilon_of_mu(mu, 1e-3), 1e-3),
            ("nothing", rng.normal(size=m), 0.0, 0.0),
        ):
            right = right_guesses(scores, coins, guesses)
            # the bound passes the truth where the truth is refuted
            above[name] += p_value(m, guesses, right, truth, delta) < 0.2
    assert max(above.values()) <= stats.binom.isf(1e-4, times, 0.2), above
    assert above["response"] >= 0.05 * times  # randomised response meets the bound
