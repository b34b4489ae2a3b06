import math

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsynth.accounting.conversions import epsilon_of_belief, posterior_belief, tv_of_mu
from dpsynth.accounting.gaussian import GaussianLoss, analytic_sigma
from dpsynth.errors import InputError
from dpsynth.research.papers.mosaicrown.identifiability import (
    advantage,
    epsilon_of_advantage,
    exact_advantage,
)
from dpsynth.research.papers.mosaicrown.rdp import noise_for_belief_rdp, rdp_guarantee


def test_golden_values_of_the_document():
    """Any wrong formula: the document's belief 0.9 at delta 0.01 in one release."""
    epsilon = epsilon_of_belief(0.9)
    assert epsilon == pytest.approx(2.19722, abs=5e-6)
    assert advantage(epsilon, 0.01) == pytest.approx(0.27631, abs=5e-6)


@given(st.floats(1e-9, 30.0), st.floats(1e-15, 0.99))
@settings(max_examples=50)
def test_inverse_of_the_advantage(epsilon, delta):
    """An inverse that is not one, such as the printed one for the advantage, which lacks the 2."""
    value = advantage(epsilon, delta)
    if value < 1.0 - 1e-9:
        assert epsilon_of_advantage(value, delta) == pytest.approx(epsilon, rel=1e-5)
    assert epsilon_of_advantage(0.0, delta) == 0.0
    assert epsilon_of_advantage(1.0, delta) == math.inf


@given(st.floats(0.0, 40.0), st.floats(1e-300, 0.9))
@settings(max_examples=25)
def test_advantage_is_that_of_the_noise(epsilon, delta):
    """A wrong constant in Theorem 3: rho_a is the overlap of two normals with the std of (2.1)."""
    mu = epsilon / math.sqrt(2 * (math.log(1.25) - math.log(delta)))
    expected = float(2 * mpmath.ncdf(mpmath.mpf(mu) / 2) - 1)
    assert advantage(epsilon, delta) == pytest.approx(expected, rel=1e-9, abs=1e-14)


def test_advantage_for_the_least_noise():
    """An advantage for other noise than the least: the success rate minus the error rate of the best test."""
    mu = 1 / analytic_sigma(2.0, 1e-3)
    expected = GaussianLoss(mu).delta(0.0)  # the total variation
    assert exact_advantage(2.0, 1e-3) == pytest.approx(expected, rel=1e-12)
    assert tv_of_mu(mu) == pytest.approx(expected, rel=1e-12)


def test_a_monte_carlo_adversary_meets_the_bounds():
    """Errors of principle: A_DI's log-odds over 30 releases, against exceedance, advantage and delta."""
    rng, runs, steps = np.random.default_rng(7), 100_000, 30
    z = noise_for_belief_rdp(0.9, 0.01, steps)
    mu = math.sqrt(steps) / z
    present = rng.random(runs) < 0.5
    log_odds = np.zeros(runs)
    for _ in range(steps):
        released = present + z * rng.standard_normal(runs)
        # Lemma 1: each release multiplies the odds by the ratio of the two densities.
        log_odds += (released**2 - (released - 1) ** 2) / (2 * z * z)
    right = np.where(log_odds > 0, present, ~present)
    error = 1 / math.sqrt(runs)
    assert 2 * right.mean() - 1 == pytest.approx(rdp_guarantee(z, 0.01, steps).advantage, abs=5 * error)
    # A smaller epsilon than RDP's, so that the belief is exceeded often enough to be counted.
    epsilon = 1.2
    bound = posterior_belief(epsilon)
    belief = 1 / (1 + np.exp(-log_odds[present]))
    share, expected = (belief > bound).mean(), GaussianLoss(mu).exceedance(epsilon)
    spread = math.sqrt(expected * (1 - expected) / len(belief))
    assert share == pytest.approx(expected, abs=5 * spread)
    delta = GaussianLoss(mu).delta(epsilon)
    assert share > delta + 20 * spread  # Theorem 2 (ii) would say at most delta
    loss = log_odds[present]
    # and delta is the mean of what the loss passes epsilon by
    assert np.maximum(0.0, 1 - np.exp(epsilon - loss)).mean() == pytest.approx(delta, abs=5 * spread)


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: advantage(1.0, 1.0), "delta"),
        (lambda: advantage(1.0, 0.0), "delta"),
        (lambda: epsilon_of_advantage(1.1, 0.1), "advantage"),
        (lambda: exact_advantage(1.0, math.nan), "delta"),
    ],
)
def test_wrong_arguments_are_named(call, name):
    """A number out of range that is computed with, or a message that does not say which it was."""
    with pytest.raises(InputError, match=rf"^{name} must"):
        call()
