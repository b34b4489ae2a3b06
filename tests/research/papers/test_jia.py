"""Theorem 18 of Jia et al. 2023."""

import itertools

import mpmath
import pytest

from dpsynth.errors import InputError
from dpsynth.privacy.events import gaussian_event
from dpsynth.privacy.profile import Profile, naive_composition
from dpsynth.research.papers.jia import optimal_composition


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
