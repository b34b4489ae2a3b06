"""Belief, advantage, the noise of formula (2.1) and Renyi bounds of MOSAICrOWN D5.3."""

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsynth.privacy.conversions import epsilon_of_belief, posterior_belief, tv_of_mu
from dpsynth.privacy.gaussian_loss import GaussianLoss, analytic_sigma
from dpsynth.research.papers.mosaicrown import (
    OutOfRangeWarning,
    advantage,
    advantage_rdp,
    belief_rdp,
    classical_sigma,
    epsilon_of_advantage,
    exact_advantage,
    noise_for_belief_rdp,
    rdp_guarantee,
)


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


@given(st.floats(1e-6, 0.999), st.floats(1e-300, 0.99))
@settings(max_examples=40)
def test_classical_sigma_is_private_in_its_range(epsilon, delta):
    """Formula (2.1) with a wrong constant would lose the range for which it is proved, or waste nothing."""
    assert classical_sigma(epsilon, delta) >= analytic_sigma(epsilon, delta)


def test_classical_sigma_outside_its_range():
    """A warning that is missing, or one where nothing is wrong; (2.1) fails beyond 8.8 at delta 1e-6."""
    with pytest.warns(OutOfRangeWarning, match="epsilon < 1 only, not 10"):
        assert classical_sigma(10.0, 1e-6) < analytic_sigma(10.0, 1e-6)
    with pytest.warns(OutOfRangeWarning):
        assert classical_sigma(1.0, 1e-6) > analytic_sigma(1.0, 1e-6)
    assert classical_sigma(0.999, 1e-6) == pytest.approx(math.sqrt(2 * math.log(1.25e6)) / 0.999)
    assert classical_sigma(0.0, 1e-6) == classical_sigma(0.5, 0.0) == math.inf
    # so rho_a, which is for the noise of (2.1), is below the exact advantage, and above it beyond 8.8
    assert advantage(3.0, 1e-6) < exact_advantage(3.0, 1e-6)
    assert advantage(10.0, 1e-6) > exact_advantage(10.0, 1e-6)


def brute_force_rdp(z, delta, steps, orders):
    """Least epsilon over a grid of orders: section 2.1, word for word."""
    return min(steps * a / (2 * z * z) - math.log(delta) / (a - 1) for a in orders)


@given(st.floats(0.5, 100.0), st.floats(1e-12, 0.5), st.integers(1, 1000))
@settings(max_examples=30)
def test_rdp_against_all_orders(z, delta, steps):
    """A best order that is not the best, or a closed form that is below every order."""
    whole = rdp_guarantee(z, delta, steps, integer_orders=True)
    real = rdp_guarantee(z, delta, steps)
    grid = np.exp(np.linspace(math.log(1e-4), math.log(1e5), 3000)) + 1
    brute = brute_force_rdp(z, delta, steps, grid)
    assert real.epsilon == pytest.approx(brute, rel=1e-4)
    assert real.epsilon <= brute * (1 + 1e-12)
    assert whole.epsilon == pytest.approx(brute_force_rdp(z, delta, steps, range(2, 5000)), rel=1e-12)
    assert whole.epsilon >= real.epsilon * (1 - 1e-12)
    # the exact curve is below both
    assert GaussianLoss(math.sqrt(steps) / z).epsilon(delta) <= real.epsilon
    for found in (real, whole):
        assert found.epsilon == pytest.approx(
            found.epsilon_rdp - math.log(delta) / (found.order - 1), rel=1e-9
        )
        assert belief_rdp(found.epsilon_rdp, found.order, delta, 0.2) == pytest.approx(
            found.belief(0.2), rel=1e-9
        )
        mu = math.sqrt(steps) / z
        assert advantage_rdp(found.epsilon_rdp, found.order) == pytest.approx(
            math.erf(mu / math.sqrt(8)), rel=1e-9
        )


@given(st.floats(0.5001, 1 - 1e-9), st.floats(1e-12, 0.5), st.integers(1, 10_000), st.booleans())
@settings(max_examples=50)
def test_noise_for_belief_is_the_least(belief, delta, steps, integer_orders):
    """A root on the wrong side, or one that a little less noise would do for."""
    z = noise_for_belief_rdp(belief, delta, steps, integer_orders=integer_orders)
    epsilon = epsilon_of_belief(belief)
    assert rdp_guarantee(z, delta, steps, integer_orders=integer_orders).epsilon <= epsilon
    less = rdp_guarantee(z * (1 - 1e-9), delta, steps, integer_orders=integer_orders)
    assert less.epsilon > epsilon
