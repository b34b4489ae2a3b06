"""Closed forms of what a guarantee or a total variation leaves attacks, see test_jia_attacks.py for rates."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsynth.attacks.closed_forms import dp_accuracy, tv_sharper_interval

epsilons = st.floats(0.0, 12.0)
deltas = st.floats(0.0, 1.0, exclude_max=True)


@settings(max_examples=60, deadline=None)
@given(epsilon=epsilons, delta=deltas)
def test_accuracy_at_half_is_equation_1(epsilon, delta):
    """Eq. 1, as the paper writes it and shortened."""
    odds = math.exp(epsilon) / (1 + math.exp(epsilon))
    assert dp_accuracy(epsilon, delta) == pytest.approx(odds * (1 - delta) + delta, rel=1e-12)
    assert dp_accuracy(epsilon, delta) == pytest.approx(
        (math.exp(epsilon) + delta) / (1 + math.exp(epsilon)), rel=1e-12
    )


def test_interval_agrees_with_the_corrected_formula():
    """The sign of delta at the upper end, where the paper errs."""
    epsilon, delta, tv = 1.0, 0.01, 0.3
    low, high = tv_sharper_interval(epsilon, delta, tv)
    assert low == pytest.approx((tv - delta) / math.expm1(epsilon), rel=1e-14)
    assert high == pytest.approx((math.exp(epsilon) * (1 - tv) - 1 + delta) / math.expm1(epsilon), rel=1e-14)
    assert tv_sharper_interval(0.0, 0.2, 0.1) == (0.0, 0.9)
    assert tv_sharper_interval(0.0, 0.1, 0.1) is tv_sharper_interval(1.0, 0.0, 1.0) is None
    assert tv_sharper_interval(math.inf, 0.1, 0.2) == (0.0, 0.8)
