"""Theorem 18 and the figures of Jia et al. 2023."""

import itertools
import math

import mpmath
import numpy as np
import pytest

from dpsynth.accounting.events import gaussian_event
from dpsynth.accounting.profile import Profile
from dpsynth.accounting.tv_bounds import gaussian_tv, laplace_tv, naive_composition
from dpsynth.errors import InputError
from dpsynth.research.papers import jia
from dpsynth.research.papers.jia import optimal_composition
from dpsynth.research.papers.trade_off import gaussian_fnr, laplace_fnr


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


FPR = jia.rates(2001)


def assert_trade_off_curve(fnr):
    """From 1 to 0, falling, convex, and nowhere above guessing."""
    assert fnr[0] == pytest.approx(1.0, abs=1e-4) and fnr[-1] == pytest.approx(0.0, abs=1e-12)
    assert (np.diff(fnr) <= 1e-12).all() and (fnr <= 1 - FPR + 1e-12).all()
    slopes = np.diff(fnr) / np.diff(FPR)
    assert (np.diff(slopes) >= -1e-6 * np.abs(slopes).max()).all()


@pytest.mark.parametrize("tv", [0.05, 0.4, 0.7])
def test_curves_of_equal_total_variation(tv):
    """Noise levels of another total variation, or the paper's claim drawn the wrong way round."""
    epsilon, mu = jia.at_equal_tv(tv)
    assert laplace_tv(1 / epsilon) == pytest.approx(tv) == gaussian_tv(1 / mu)
    laplace, gaussian = laplace_fnr(FPR, epsilon), gaussian_fnr(FPR, mu)
    for fnr in (laplace, gaussian):
        assert_trade_off_curve(fnr)
        assert (1 - FPR - fnr).max() == pytest.approx(tv, rel=1e-3)
    # section 6.1: at equal total variation (and epsilon < 2.5) the Gaussian region contains the Laplace one
    assert (gaussian <= laplace + 1e-12).all() and (laplace - gaussian).max() > 0.01


def test_log_ratio_of_laplace():
    """A ratio the wrong way up, or one beyond epsilon."""
    x = np.linspace(-3.0, 4.0, 29)
    densities = [np.exp(-np.abs(x - mean) / 2.0) for mean in (0, 1)]
    assert jia.laplace_log_ratio(x, 2.0) == pytest.approx(np.log(densities[0] / densities[1]), abs=1e-12)


@pytest.mark.parametrize("count", [1, 4])
def test_composed_curves_are_ordered(count):
    """Curves exchanged, a lost composition, or a Laplace curve above the optimal one."""
    curves = jia.composed_fnr(FPR, 0.1, count)
    for fnr in curves.values():
        assert_trade_off_curve(fnr)
    advantages = {name: (1 - FPR - fnr).max() for name, fnr in curves.items()}
    best, worst = optimal_composition(0.1, count)[0].delta, naive_composition([0.1] * count)
    assert advantages["optimal"] == pytest.approx(best, rel=1e-3)
    _, mu = jia.at_equal_tv(0.1)
    assert advantages["Gaussian"] == pytest.approx(gaussian_tv(1 / (mu * math.sqrt(count))), rel=1e-3)
    assert best * 0.999 <= advantages["Laplace"] <= advantages["Gaussian"] * 1.001 <= worst * 1.002
    # (the composed profile is an upper bound on delta, so the Laplace curve errs downward)
    assert (curves["Laplace"] <= curves["optimal"] + 1e-9).all()
    assert (curves["Gaussian"] <= curves["Laplace"] + 1e-3).all()
    if count == 1:
        epsilon, _ = jia.at_equal_tv(0.1)
        assert curves["Laplace"] == pytest.approx(laplace_fnr(FPR, epsilon), abs=1e-3)


def test_accuracy_bounds_are_ordered():
    """Bounds exchanged, or a paper's bound below the exact value."""
    noise = np.array([3.0, 7.0])
    from_epsilon, exact = jia.accuracy_bounds(noise.tolist(), 300, 6000)
    paper = jia.kl_accuracy(noise, 300, 6000)
    assert from_epsilon.shape == exact.shape == paper.shape == (2,)
    assert (exact > 0.5).all() and (exact < paper).all() and (paper < from_epsilon).all()
    assert (np.diff([from_epsilon, exact, paper]) < 0.0).all()


def test_paper_meets_its_own_noise_levels():
    """Another step count or direction: figure 4 has noise for accuracies 0.8 and 0.55, near 9,600 steps."""
    assert jia.kl_accuracy(np.array([0.7, 2.4]), 300, 9600) == pytest.approx([0.8, 0.55], abs=0.01)
