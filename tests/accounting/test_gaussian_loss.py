"""The exact loss of Gaussian releases, against arithmetic with many digits and at its ends."""

import math

import mpmath
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dpsynth.accounting.gaussian import GaussianLoss


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
    assert [GaussianLoss(mu).exceedance(1.0) for mu in (0.0, 1e-300, 1e300, math.inf)] == [0.0, 0.0, 1.0, 1.0]
    assert GaussianLoss(1.0).exceedance(math.inf) == GaussianLoss(math.inf).exceedance(math.inf) == 0.0
    assert GaussianLoss(2.0).exceedance(0.0) == pytest.approx(0.8413447460685429)
