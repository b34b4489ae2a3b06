import itertools
import math

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsynth.accounting.events import gaussian_event
from dpsynth.accounting.profile import Profile
from dpsynth.accounting.tv_bounds import gaussian_tv, naive_composition
from dpsynth.errors import InputError
from dpsynth.research.papers.jia.optimal import optimal_composition


def test_golden_values_of_the_optimal_composition():
    """A wrong binomial: Jia 2023, section 6.1, with TV 0.1 each."""
    golden = {1: 0.1, 10: 0.24284, 50: 0.51941, 100: 0.68270}
    assert {k: round(optimal_composition(0.1, k).tv, 5) for k in golden} == golden


@pytest.mark.parametrize("count", [1, 2, 3, 6, 9])
@pytest.mark.parametrize("tv", [1e-9, 0.1, 0.77])
def test_optimal_composition_agrees_with_all_outputs(tv, count):
    """The printed denominator (1 + epsilon)^k, a pair left out, or cancellation at a small TV."""
    best = optimal_composition(tv, count)
    with mpmath.workdps(40):
        truth, lie = (1 + mpmath.mpf(tv)) / 2, (1 - mpmath.mpf(tv)) / 2
        lies = [sum(answers) for answers in itertools.product((0, 1), repeat=count)]
        present = [truth ** (count - n) * lie**n for n in lies]
        absent = [truth**n * lie ** (count - n) for n in lies]
        epsilon = mpmath.log(truth / lie)
        assert best.epsilon == pytest.approx(float(epsilon), rel=1e-14)
        assert len(best.epsilons) == len(best.deltas) == count // 2 + 1
        for i, (total, delta) in enumerate(zip(best.epsilons, best.deltas, strict=True)):
            ratio = mpmath.exp((count - 2 * i) * epsilon)
            expected = mpmath.fsum(max(0, p - ratio * q) for p, q in zip(present, absent, strict=True))
            assert total == pytest.approx(float((count - 2 * i) * epsilon), rel=1e-14, abs=1e-300)
            assert delta == pytest.approx(float(expected), rel=1e-11, abs=1e-35)
        expected = mpmath.fsum(abs(p - q) for p, q in zip(present, absent, strict=True)) / 2
    assert best.tv == pytest.approx(float(expected), rel=1e-12)


@settings(max_examples=40, deadline=None)
@given(tv=st.floats(0.0, 1.0, exclude_max=True), count=st.integers(1, 10_000))
def test_optimal_composition_is_ordered_and_never_above_the_naive_one(tv, count):
    """Overflow or loss of order at many releases, or a best case worse than the worst."""
    best = optimal_composition(tv, count)
    assert np.isfinite(best.epsilons).all() and (np.diff(best.epsilons) <= 0.0).all()
    assert not np.isnan(best.log_deltas).any() and (best.log_deltas[:-1] <= best.log_deltas[1:] + 1e-9).all()
    assert best.log_deltas[0] == -math.inf and (best.log_deltas <= 0.0).all()
    assert tv * (1 - 1e-9) <= best.tv <= naive_composition([tv] * count) * (1 + 1e-9)
    if count % 2 == 0:  # the last corner is at epsilon 0, where delta is the total variation
        assert best.deltas[-1] == pytest.approx(best.tv, rel=1e-9, abs=1e-320)


def test_optimal_composition_of_many_releases_tends_to_a_gaussian():
    """Loss of accuracy at 10,000 releases: the limit is the Gaussian with mu = sqrt(count) epsilon."""
    assert optimal_composition(1e-3, 10_000).tv == pytest.approx(gaussian_tv(1 / (100 * 2e-3)), rel=1e-4)
    assert optimal_composition(1e-3, 10_000).log_deltas[1] < -1000.0  # far below the smallest double


def test_optimal_composition_is_no_guarantee():
    """A reader who takes the best case for a bound: one record revealed with probability 0.1."""
    assert optimal_composition(0.1, 10).tv < 0.25 < 0.65 < naive_composition([0.1] * 10)
    assert optimal_composition(0.1, 10).tv < Profile([gaussian_event(1 / 0.25132, count=10)]).tv()


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: optimal_composition(1.0, 3), "tv"),
        (lambda: optimal_composition(0.1, 0), "count"),
        (lambda: optimal_composition(0.1, 100_001), "count"),
    ],
)
def test_bad_arguments_are_named(call, words):
    """An argument out of range that yields a number."""
    with pytest.raises(InputError, match=words):
        call()
