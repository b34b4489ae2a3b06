"""The audit with one run, against the published loop and against mechanisms of known epsilon."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from dpsynth.attacks.audit.one_run import epsilon_lower, p_value, right_guesses
from dpsynth.attacks.audit.rates import epsilon_of_mu
from dpsynth.errors import InputError


def published(m, r, v, eps, delta):
    """Steinke et al. (2023), appendix D, step by step: the tail, and the largest average of what is below."""
    q = 1 / (1 + math.exp(-eps))
    tail = stats.binom.sf(v - 1, r, q)
    largest, below = 0.0, 0.0
    for i in range(1, v + 1):
        below += stats.binom.pmf(v - i, r, q)
        largest = max(largest, below / i)
    return min(tail + largest * delta * 2 * m, 1)


@pytest.mark.parametrize("eps", [0.0, 0.4, 2.0, 9.0])
@pytest.mark.parametrize("delta", [0.0, 1e-6, 1e-3])
@pytest.mark.parametrize(("m", "r", "v"), [(1000, 200, 150), (50, 50, 50), (40, 7, 0), (300, 1, 1)])
def test_p_value_is_the_published_one(m, r, v, eps, delta):
    """Catches a tail that is off by one, and a delta that is not paid for, or once instead of 2 m times."""
    assert p_value(m, r, v, eps, delta) == pytest.approx(published(m, r, v, eps, delta), rel=1e-9, abs=1e-300)


def test_the_bound_is_where_the_p_value_crosses():
    """Catches a search that stops on the wrong side, or at the end of its first bracket."""
    for m, r, v, delta in ((1000, 100, 80, 1e-5), (1000, 1000, 999, 0.0), (10_000, 2000, 1900, 1e-6)):
        found = epsilon_lower(m, r, v, delta)
        assert p_value(m, r, v, found, delta) <= 0.05 <= p_value(m, r, v, found + 1e-4, delta)
    # all right: q^r = 0.05 by hand
    q = 0.05 ** (1 / 500)
    assert epsilon_lower(500, 500, 500, 0.0) == pytest.approx(math.log(q / (1 - q)), abs=1e-5)
    assert epsilon_lower(500, 500, 250, 0.0) == 0.0


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


def test_many_canaries_come_close():
    """Catches an audit that sleeps: 20,000 canaries of randomised response show nearly all of epsilon."""
    rng, m, epsilon = np.random.default_rng(7), 20_000, 1.0
    coins = rng.random(m) < 0.5
    scores = np.where((rng.random(m) < 1 / (1 + math.exp(-epsilon))) == coins, 1.0, -1.0)
    assert 0.94 <= epsilon_lower(m, m, right_guesses(scores, coins, m), 0.0) <= 1.0


def test_mistakes_are_named():
    """Catches counts that contradict each other."""
    with pytest.raises(InputError, match="must not decrease"):
        p_value(10, 5, 6, 1.0, 0.0)
    with pytest.raises(InputError, match="guesses must lie in"):
        right_guesses([1.0, 2.0], [True, False], 3)
    with pytest.raises(InputError, match="one coin a canary"):
        right_guesses([1.0, np.nan], [True, False], 1)
