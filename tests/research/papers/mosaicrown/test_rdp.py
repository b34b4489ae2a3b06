import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsynth.accounting.conversions import epsilon_of_belief
from dpsynth.accounting.gaussian import GaussianLoss
from dpsynth.errors import InputError
from dpsynth.research.papers.mosaicrown.rdp import (
    advantage_rdp,
    belief_rdp,
    noise_for_belief_rdp,
    rdp_guarantee,
)


def test_golden_values_of_the_document():
    """Any wrong formula: the document's belief 0.9 at delta 0.01 in 30 releases."""
    for integer_orders, golden in ((False, 0.25619), (True, 0.25566)):
        z = noise_for_belief_rdp(0.9, 0.01, 30, integer_orders=integer_orders)
        found = rdp_guarantee(z, 0.01, 30, integer_orders=integer_orders)
        assert found.advantage == pytest.approx(golden, abs=5e-6)
        assert found.belief() == pytest.approx(0.9, abs=1e-12)
        assert found.order.is_integer() == integer_orders


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


def test_rdp_at_the_ends():
    """Overflow of squares, orders beyond integers, and no room or no noise."""
    for integer_orders in (False, True):
        some = [
            rdp_guarantee(z, 1e-5, 10, integer_orders=integer_orders) for z in (1e-300, 1e-3, 1.0, 1e9, 1e307)
        ]
        assert [g.epsilon for g in some] == sorted((g.epsilon for g in some), reverse=True)
        assert [g.advantage for g in some] == sorted((g.advantage for g in some), reverse=True)
        assert some[0].epsilon == math.inf
        assert 0.0 < some[-1].epsilon < 1e-290
        assert noise_for_belief_rdp(0.5, 0.01, 3, integer_orders=integer_orders) == math.inf
        assert noise_for_belief_rdp(1.0, 0.01, 3, integer_orders=integer_orders) == 0.0
    assert belief_rdp(0.1, 1.0, 0.01) == 1.0
    assert advantage_rdp(math.inf, 2.0) == 1.0


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: rdp_guarantee(0.0, 0.1), "noise_multiplier"),
        (lambda: rdp_guarantee(math.inf, 0.1), "noise_multiplier"),
        (lambda: rdp_guarantee(1.0, 0.1, 0), "steps"),
        (lambda: rdp_guarantee(1.0, 0.1, 2.5), "steps"),
        (lambda: advantage_rdp(-1.0, 2.0), "epsilon_rdp"),
        (lambda: advantage_rdp(1.0, 0.5), "order"),
        (lambda: belief_rdp(1.0, math.nan, 0.1), "order"),
        (lambda: belief_rdp(1.0, 2.0, 1.0), "delta"),
        (lambda: noise_for_belief_rdp(0.9, 0.0, 1), "delta"),
        (lambda: noise_for_belief_rdp(0.9, 0.1, True), "steps"),
    ],
)
def test_wrong_arguments_are_named(call, name):
    """A number out of range that is computed with, or a message that does not say which it was."""
    with pytest.raises(InputError, match=rf"^{name} must"):
        call()
