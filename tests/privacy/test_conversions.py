"""Conversions between measures, against arithmetic with many digits and at the ends of every range."""

import math

import mpmath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsynth.privacy.conversions import amplified, epsilon_of_belief, largest_tv, posterior_belief, tv_of_mu


@given(st.floats(0.0, 5.0), st.floats(0.0, 0.9))
@settings(max_examples=20)
def test_largest_tv_is_kairouzs_total_variation(epsilon, delta):
    """A wrong sign before delta: the largest TV is that of randomised response behind a giveaway."""
    odds = math.exp(epsilon)
    responses = [(delta, 0.0), (0.0, delta)]
    responses += [((1 - delta) * p, (1 - delta) * (1 - p)) for p in (odds / (1 + odds), 1 / (1 + odds))]
    tv = sum(max(0.0, p - q) for p, q in responses)
    assert largest_tv(epsilon, delta) == pytest.approx(tv, rel=1e-12, abs=1e-15)


def test_tv_of_mu():
    """A factor of two in mu, or digits lost where mu is small."""
    for mu in (1e-12, 0.3, 2.0, 9.0):
        with mpmath.workdps(40):
            exact = float(2 * mpmath.ncdf(mpmath.mpf(mu) / 2) - 1)
        assert tv_of_mu(mu) == pytest.approx(exact, rel=1e-14)
    assert [tv_of_mu(end) for end in (0.0, 1e300, math.inf)] == [0.0, 1.0, 1.0]


def test_amplified():
    """q applied to epsilon, a negative epsilon or an overflow; errors must be to the private side."""
    for epsilon in [0.0, 1e-9, 1.0, 699.0, 701.0, 1e4]:
        for q in [1e-320, 1e-3, 0.5, 1.0]:
            with mpmath.workdps(400):
                exact = mpmath.log1p(mpmath.mpf(q) * mpmath.expm1(epsilon))
                assert exact <= amplified(epsilon, q) * (1 + 1e-15) + 1e-300
                assert amplified(epsilon, q) <= min(epsilon, exact * (1 + 1e-9) + 2e-12)


@given(st.floats(0.0, 700.0), st.floats(1e-12, 1 - 1e-12))
@settings(max_examples=50)
def test_belief_is_bayes_rule(epsilon, prior):
    """A logit or a sigmoid that loses the prior, or digits: the odds grow by e^epsilon."""
    with mpmath.workdps(40):
        odds = mpmath.exp(epsilon) * mpmath.mpf(prior) / (1 - mpmath.mpf(prior))
        assert posterior_belief(epsilon, prior) == pytest.approx(float(odds / (1 + odds)), rel=1e-12)


@given(st.floats(1e-9, 30.0), st.floats(0.01, 0.99))
@settings(max_examples=50)
def test_inverse_of_the_belief(epsilon, prior):
    """An inverse that is not one."""
    belief = posterior_belief(epsilon, prior)
    if belief < 1.0:
        assert posterior_belief(epsilon_of_belief(belief, prior), prior) == pytest.approx(belief, rel=1e-13)
