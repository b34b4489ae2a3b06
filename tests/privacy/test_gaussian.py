"""Gaussian releases: their exact loss against arithmetic with many digits, and the least noise."""

from __future__ import annotations

import json
import math
from pathlib import Path

import mpmath
import pytest
from dp_accounting.pld.accountant import get_smallest_gaussian_noise
from dp_accounting.pld.common import DifferentialPrivacyParameters
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dpsynth.privacy.gaussian_loss import GaussianLoss, analytic_sigma


@given(st.floats(0.0, 20.0), st.floats(0.01, 10.0))
@example(12.75, 0.3359375)  # 1e-312, below the smallest normal float
@settings(max_examples=50)
def test_exceedance(epsilon, mu):
    """A wrong sign or tail, and any claim that it is at most delta."""
    with mpmath.workdps(30):
        exact = float(mpmath.ncdf(mpmath.mpf(mu) / 2 - mpmath.mpf(epsilon) / mu))
    assert GaussianLoss(mu).exceedance(epsilon) == pytest.approx(exact, rel=1e-9, abs=1e-300)
    assert GaussianLoss(mu).exceedance(epsilon) >= GaussianLoss(mu).delta(epsilon) * (1 - 1e-12)


def test_exceedance_at_the_ends():
    """Division by zero, and infinity minus infinity."""
    least = 5e-324  # not 0, which would be a claim that the truth does not bear out
    assert [GaussianLoss(mu).exceedance(1.0) for mu in (0.0, 1e-300, 1e300, math.inf)] == [
        0.0,
        least,
        1.0,
        1.0,
    ]
    assert GaussianLoss(1.0).exceedance(math.inf) == GaussianLoss(math.inf).exceedance(math.inf) == 0.0
    assert GaussianLoss(2.0).exceedance(0.0) == pytest.approx(0.8413447460685429)


epsilons = st.floats(1e-6, 50.0)
deltas = st.floats(1e-15, 0.5)


def exact_delta(sigma, epsilon):
    """Balle and Wang's Theorem 8, transcribed, with 60 digits."""
    with mpmath.workdps(60):
        sigma, epsilon = mpmath.mpf(sigma), mpmath.mpf(epsilon)
        upper = mpmath.ncdf(1 / (2 * sigma) - epsilon * sigma)
        return upper - mpmath.exp(epsilon) * mpmath.ncdf(-1 / (2 * sigma) - epsilon * sigma)


@given(epsilons, deltas)
@settings(max_examples=40)
def test_analytic_sigma_is_the_least(epsilon, delta):
    """A root on the wrong side, or noise that is not needed (60-digit Theorem 8)."""
    sigma = analytic_sigma(epsilon, delta)
    assert exact_delta(sigma, epsilon) <= delta
    if epsilon > 1e-3:
        assert exact_delta(sigma * (1 - 1e-10), epsilon) > delta


@pytest.mark.parametrize("epsilon", [0.0, 5e-324, 1e-300, 1e-12, 1e-3, 1.0, 1e3, 1e8])
def test_analytic_sigma_is_private_at_the_ends(epsilon):
    """A delta that rounding meets and the noise does not: the closed form cancels for tiny epsilon."""
    for delta in (5e-324, 1e-300, 1e-20, 1e-9, 0.5, 1 - 1e-12):
        sigma = analytic_sigma(epsilon, delta)
        if delta < 1e-307 and epsilon < 1e-290:
            assert sigma > 1e289  # the least is beyond the largest number
            continue
        assert 0.0 < sigma < math.inf, delta
        with mpmath.workdps(700):
            s, e = mpmath.mpf(sigma), mpmath.mpf(epsilon)
            tails = [mpmath.erfc((e * s + sign / (2 * s)) / mpmath.sqrt(2)) / 2 for sign in (-1, 1)]
            assert tails[0] - mpmath.exp(e) * tails[1] <= mpmath.mpf(delta), delta


def test_analytic_sigma_without_noise_or_room():
    """The limits: no finite noise is (epsilon, 0)-DP, and an infinite epsilon asks for none."""
    assert analytic_sigma(1.0, 0.0) == analytic_sigma(math.inf, 0.0) == math.inf
    assert analytic_sigma(math.inf, 1e-5) == 0.0
    # at epsilon 0 delta is the total variation 2 Phi(1 / (2 sigma)) - 1
    assert analytic_sigma(0.0, 0.5) == pytest.approx(
        float(1 / (mpmath.sqrt(8) * mpmath.erfinv(0.5))), rel=1e-11
    )


@pytest.mark.filterwarnings("ignore:Conversion of an array:DeprecationWarning")  # of dp_accounting 0.4
def test_sigma_agrees_with_dp_accounting():
    """A different convention: dp_accounting's noise for (epsilon, delta), in this version and in 0.6."""
    for epsilon, delta in ((0.1, 1e-3), (1.0, 1e-5), (5.0, 1e-9)):
        theirs = get_smallest_gaussian_noise(DifferentialPrivacyParameters(epsilon, delta))
        assert analytic_sigma(epsilon, delta) == pytest.approx(theirs, rel=1e-4)
    stored = json.loads((Path(__file__).parent / "riskcal_values.json").read_text())["gaussian_sigma"]
    assert len(stored) >= 5
    for case in stored:
        assert analytic_sigma(case["epsilon"], case["delta"]) == pytest.approx(case["sigma"], rel=1e-9)
