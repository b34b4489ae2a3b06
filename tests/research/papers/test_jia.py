"""Jia et al. 2023: mechanisms, composition, and Theorem 18."""

import itertools
import math

import mpmath
import pytest
from distributions import distance, pairs_of_distributions
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsynth.privacy.events import gaussian_event
from dpsynth.privacy.profile import Profile
from dpsynth.research.papers.jia import gaussian_tv, laplace_tv, naive_composition, optimal_composition

tvs = st.floats(0.0, 1.0)


def test_golden_values_of_the_mechanisms():
    """A lost factor 2, or a std where a variance stands (values: Jia 2023, sections 3 and 4.5)."""
    assert laplace_tv(1.0) == pytest.approx(0.39347, abs=5e-6)
    assert gaussian_tv(math.sqrt(2)) == pytest.approx(0.27633, abs=5e-6)
    assert gaussian_tv(1.0) == pytest.approx(0.38292, abs=5e-6)


@pytest.mark.parametrize("scale", [1.0, 0.15, 27.0])
def test_mechanisms_agree_with_half_the_area_between_the_densities(scale):
    """A closed form that is not the integral of |p - q| / 2."""
    for closed, log_density in (
        (laplace_tv, lambda x: -abs(x) / scale - mpmath.log(2 * scale)),
        (gaussian_tv, lambda x: -(x**2) / (2 * scale**2) - mpmath.log(scale * mpmath.sqrt(2 * mpmath.pi))),
    ):
        # p > q exactly left of the middle, so the distance is the mass of p - q there
        points = [-mpmath.inf, -scale, 0, 0.5]
        area = mpmath.quad(lambda x, f=log_density: mpmath.exp(f(x)) - mpmath.exp(f(x - 1)), points)
        assert closed(scale) == pytest.approx(float(area), rel=1e-9)


def test_many_numbers_cost_their_l2_change():
    """Theorem 13 in another norm: d Gaussians of change c each are one of change c sqrt(d)."""
    joint = Profile([gaussian_event(2.0, count=9)]).tv()
    assert gaussian_tv(2.0 / math.sqrt(9.0)) == pytest.approx(joint, rel=1e-12)


@settings(max_examples=40, deadline=None)
@given(first=pairs_of_distributions(3), second=pairs_of_distributions(4))
def test_two_releases_stay_below_the_naive_composition(first, second):
    """A composition below the distance of the product distributions."""
    joint = [[a * b for a in x for b in y] for x, y in zip(first, second, strict=True)]
    assert distance(*joint) <= naive_composition([distance(*first), distance(*second)]) + 1e-12


@settings(max_examples=40, deadline=None)
@given(values=st.lists(tvs, max_size=6), more=tvs)
def test_naive_composition_agrees_with_the_product(values, more):
    """A term lost, an order that matters, or a release that lowers the total."""
    total = naive_composition(values)
    assert total == pytest.approx(1 - math.prod(1 - tv for tv in values), abs=1e-14)
    assert total <= naive_composition([*values, more]) + 1e-15 and 0.0 <= total <= 1.0
    assert naive_composition(reversed(values)) == pytest.approx(total, abs=1e-14)


@pytest.mark.parametrize("count", [1, 6, 9])
@pytest.mark.parametrize("tv", [1e-9, 0.1, 0.77])
def test_optimal_composition_agrees_with_all_outputs(tv, count):
    """The printed denominator (1 + epsilon)^k, a pair left out, or cancellation at a small TV."""
    best = optimal_composition(tv, count)
    with mpmath.workdps(40):
        truth, lie = (1 + mpmath.mpf(tv)) / 2, (1 - mpmath.mpf(tv)) / 2
        lies = [sum(answers) for answers in itertools.product((0, 1), repeat=count)]
        both = [(truth ** (count - n) * lie**n, truth**n * lie ** (count - n)) for n in lies]
        for j, pair in enumerate(best):
            ratio = (truth / lie) ** j
            expected = float(mpmath.fsum(max(0, p - ratio * q) for p, q in both))
            assert pair.epsilon == pytest.approx(float(j * mpmath.log(truth / lie)), rel=1e-14)
            assert pair.delta == pytest.approx(expected, rel=1e-11, abs=1e-35)


def test_optimal_composition_is_no_guarantee():
    """A reader who takes the best case for a bound: one record revealed with probability 0.1."""
    assert optimal_composition(0.1, 10)[0].delta < 0.25 < 0.65 < naive_composition([0.1] * 10)
    assert optimal_composition(0.1, 10)[0].delta < Profile([gaussian_event(1 / 0.25132, count=10)]).tv()
