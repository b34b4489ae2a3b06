import math

import mpmath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsynth.errors import InputError
from dpsynth.research.papers.overflow import capacity_for, overflow_delta, overflow_probability


def naive_tail(n, q, capacity):
    """P(Binomial(n, q) > capacity) term by term with 60 digits."""
    with mpmath.workdps(60):
        q = mpmath.mpf(q)
        return mpmath.fsum(
            mpmath.binomial(n, k) * q**k * (1 - q) ** (n - k) for k in range(capacity + 1, n + 1)
        )


@pytest.mark.parametrize(
    ("n", "q", "capacity", "steps"),
    [(10, 0.3, 4, 1), (10, 0.3, 4, 50), (200, 0.05, 30, 2000), (300, 0.01, 60, 10), (5, 1.0, 4, 3)],
)
def test_probability_agrees_with_the_naive_sum(n, q, capacity, steps):
    """An off-by-one in the tail, or a union bound or lost digits in the power."""
    with mpmath.workdps(60):
        expected = float(1 - (1 - naive_tail(n, q, capacity)) ** steps)
    assert overflow_probability(n, q, capacity, steps) == pytest.approx(expected, rel=1e-9)


def test_delta_is_charged_on_both_sides():
    """A charge of p, or of e^epsilon p, where one of either table's overflows is forgotten."""
    p = overflow_probability(50, 0.2, 25, 10)
    assert overflow_delta(50, 0.2, 25, 10, epsilon=0.0) == pytest.approx(2 * p)
    assert overflow_delta(50, 0.2, 25, 10, epsilon=2.0) == pytest.approx((1 + math.exp(2.0)) * p)


def test_extremes():
    """A charge where nothing can overflow, none where all does, or an underflow to exactly no charge."""
    assert overflow_probability(0, 0.5, 0, 100) == 0.0
    assert overflow_probability(7, 1.0, 7, 100) == 0.0
    assert overflow_probability(7, 1.0, 6, 1) == 1.0
    assert overflow_delta(7, 1.0, 6, 1, epsilon=math.inf) == 1.0
    assert 0.0 < overflow_probability(10**6, 1e-3, 10**5, 1) < 1e-300
    assert capacity_for(7, 0.5, 10, epsilon=1.0, delta=0.0) == 7
    assert capacity_for(0, 0.5, 10, epsilon=1.0, delta=1e-5) == 0


@settings(max_examples=25, deadline=None)
@given(
    n=st.integers(1, 3000),
    q=st.floats(1e-3, 1.0),
    steps=st.integers(1, 5000),
    epsilon=st.floats(0.0, 10.0),
    delta=st.floats(1e-9, 0.1),
)
def test_capacity_is_the_smallest_that_fits(n, q, steps, epsilon, delta):
    """A capacity that costs more than its part of delta, or one larger than needed."""
    capacity = capacity_for(n, q, steps, epsilon, delta)
    assert overflow_delta(n, q, capacity, steps, epsilon) <= 1e-3 * delta
    assert capacity == 0 or overflow_delta(n, q, capacity - 1, steps, epsilon) > 1e-3 * delta


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"n_bound": -1}, "n_bound"),
        ({"n_bound": 10.0}, "n_bound"),
        ({"sampling_prob": 0.0}, "sampling_prob"),
        ({"sampling_prob": math.nan}, "sampling_prob"),
        ({"steps": 0}, "steps"),
        ({"epsilon": -1.0}, "epsilon"),
        ({"delta": 1.0}, "delta"),
        ({"fraction": 0.0}, "fraction"),
    ],
)
def test_bad_arguments_are_named(change, words):
    """An argument out of range that yields a capacity."""
    good = {"n_bound": 100, "sampling_prob": 0.1, "steps": 10, "epsilon": 1.0, "delta": 1e-5}
    with pytest.raises(InputError, match=words):
        capacity_for(**(good | change))
