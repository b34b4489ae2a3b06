"""The data of Lowy's figures: what they are made from, their end points and the trends the captions claim."""

import numpy as np
import pytest

from dpsynth.research.papers import lowy_figures as lowy
from dpsynth.research.papers.lowy_figures import (
    along,
    clipped,
    mean_ratios,
    median_ratios,
    normal_parent,
)
from dpsynth.research.papers.lowy_gaussian import gaussian_dp_delta, gaussian_dp_sigma, gaussian_pmp_delta

FEW = {"trials": 4}


def test_clipped_points_keep_their_direction():
    """Points that are stretched, or clipped in each coordinate."""
    points = np.random.default_rng(0).normal(size=(50, 3))
    short = clipped(points, 1.0)
    assert np.linalg.norm(short, axis=1).max() <= 1 + 1e-12
    inside = np.linalg.norm(points, axis=1) <= 1
    assert inside.any() and np.array_equal(short[inside], points[inside])
    assert np.allclose(np.cross(points, short), 0.0)
    assert np.array_equal(clipped(np.zeros((2, 3)), 0.1), np.zeros((2, 3)))


def test_outliers_are_scaled_before_the_clipping():
    """Outliers that leave the ball on which the sensitivity rests, or that are none."""
    plain = normal_parent(np.random.default_rng(1), 20, 2, clip=1e9)
    far = normal_parent(np.random.default_rng(1), 20, 2, clip=1e9, outliers=(2, 10.0))
    assert np.allclose(far[:2], 10 * plain[:2]) and np.array_equal(far[2:], plain[2:])
    assert (
        np.linalg.norm(
            normal_parent(np.random.default_rng(1), 20, 2, clip=3.0, outliers=(2, 1e3)), axis=1
        ).max()
        <= 3 + 1e-9
    )


@pytest.mark.parametrize(
    ("ratios", "name", "values"),
    [
        (median_ratios, "std", (0.05, 5.0)),
        (median_ratios, "clip", (0.2, 1.0, 20.0)),
        (mean_ratios, "epsilon", (0.5, 20.0)),
        (mean_ratios, "dimension", (1, 30)),
    ],
)
def test_ratios_are_ordered(ratios, name, values):
    """A sensitivity that is too small (a ratio above 1), or a ratio upside down."""
    result = along(ratios, name, values, **FEW)
    for part in (result.to_dp, result.to_parent, result.parent_to_dp):
        assert part.shape == (4, len(values))
        assert np.all((part > 0) & (part <= 1 + 1e-9))
    assert np.all(result.to_dp <= result.to_parent + 1e-9)


def test_the_same_seeds_give_the_same_curves():
    """A figure that changes from run to run."""
    assert np.array_equal(median_ratios(trials=2), median_ratios(trials=2))
    assert np.array_equal(mean_ratios(trials=2), mean_ratios(trials=2))
    assert np.array_equal(mean_ratios(trials=2), mean_ratios(trials=3)[:2])


def mean_of(ratios, name, values, part="to_dp", **fixed):
    return getattr(along(ratios, name, values, **FEW, **fixed), part).mean(axis=0)


def test_what_the_captions_say_about_the_exponential_mechanism():
    """A caption that the curves do not bear out."""
    by_std = mean_of(median_ratios, "std", lowy.STDS)
    assert np.all(np.diff(by_std) > -0.02) and by_std[0] < 0.02 and by_std[-1] > 0.25
    at_two = [mean_of(median_ratios, "std", (1.0,), epsilon=epsilon)[0] for epsilon in lowy.STD_EPSILONS]
    assert at_two[1] == pytest.approx(at_two[0], abs=0.1)
    fixed = {"outliers": lowy.MEDIAN_OUTLIERS}
    clips = lowy.MEDIAN_CLIPS[2:]
    for part in ("to_dp", "parent_to_dp"):
        assert np.all(np.diff(mean_of(median_ratios, "clip", clips, part, **fixed)) < 0)
    assert np.all(np.diff(mean_of(median_ratios, "dimension", (2, 8, 32, 128))) < 0)
    assert np.all(np.diff(mean_of(median_ratios, "dimension", (2, 16, 128), "to_parent")) > 0)


def test_what_the_captions_say_about_the_gaussian_mechanism():
    """A caption that the curves do not bear out."""
    assert np.all(np.diff(mean_of(mean_ratios, "epsilon", (0.1, 3.0, 30.0), "to_parent")) > 0)
    assert np.ptp(mean_of(mean_ratios, "epsilon", (0.1, 3.0, 30.0))) < 0.05
    by_clip = mean_of(mean_ratios, "clip", lowy.MEAN_CLIPS, outliers=lowy.MEAN_OUTLIERS)
    assert np.all(np.diff(by_clip) < 0)
    for part in ("to_dp", "to_parent"):
        assert np.all(np.diff(mean_of(mean_ratios, "dimension", (1, 10, 100), part)) > 0)


def test_the_noise_of_the_mean_is_that_of_dp():
    """Noise for another range than twice the threshold, or for the parent set's size and not half of it."""
    sigma = gaussian_dp_sigma(2 * lowy.MEAN_CLIP, lowy.LARGE_HALF, lowy.MEAN_EPSILON, lowy.DELTA)
    assert gaussian_dp_delta(20.0, 50, sigma, 10.0) == pytest.approx(1e-5, rel=1e-6)
    parent = normal_parent(
        np.random.default_rng((lowy.SEEDS[1], 0)), 100, lowy.MEAN_DIMENSION, clip=lowy.MEAN_CLIP
    )
    epsilon = mean_ratios(trials=1)[0, 0] * lowy.MEAN_EPSILON
    assert gaussian_pmp_delta(parent, sigma, epsilon) == pytest.approx(1e-5, rel=1e-4)


def test_the_sensitivity_of_the_median_is_reached():
    """A sensitivity that is larger than any data need, which would make every ratio look better."""
    candidate = np.array([[1.0, 0.0]])
    for clip in (0.3, 1.0, 4.0):
        best, worst = np.array([[min(clip, 1.0), 0.0]]), np.array([[-clip, 0.0]])
        reach = float((lowy.DISTANCE(worst, candidate) - lowy.DISTANCE(best, candidate))[0])
        assert reach == pytest.approx(clip + min(clip, 1.0))
