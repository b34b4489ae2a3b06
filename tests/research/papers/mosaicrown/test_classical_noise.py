import math
import warnings

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsynth.accounting.gaussian import analytic_sigma
from dpsynth.errors import InputError
from dpsynth.research.papers.mosaicrown.identifiability import (
    OutOfRangeWarning,
    advantage,
    classical_sigma,
    exact_advantage,
)


@given(st.floats(1e-6, 50.0), st.floats(1e-15, 0.5), st.floats(1e-3, 1e3))
@settings(max_examples=20)
def test_noise_scales_with_sensitivity(epsilon, delta, sensitivity):
    """A sensitivity that enters squared or not at all."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OutOfRangeWarning)
        scaled, unit = classical_sigma(epsilon, delta, sensitivity), classical_sigma(epsilon, delta)
    assert scaled == pytest.approx(sensitivity * unit, rel=1e-12)


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


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: classical_sigma(-1.0, 0.1), "epsilon"),
        (lambda: classical_sigma(0.5, 1.0), "delta"),
        (lambda: classical_sigma(0.5, 0.1, 0.0), "sensitivity"),
    ],
)
def test_wrong_arguments_are_named(call, name):
    """A number out of range that is computed with, or a message that does not say which it was."""
    with pytest.raises(InputError, match=rf"^{name} must"):
        call()
