import math

import numpy as np
import pytest

from dpsynth.research.papers.mosaicrown import (
    DELTAS,
    DRAWINGS,
    EPSILONS,
    advantages,
    belief_in_d,
    beliefs,
    beliefs_exceeded,
    density,
    error_rate,
    exact_advantages,
    noise,
)
from dpsynth.research.papers.mosaicrown import advantage

POINTS = np.linspace(-60.0, 61.0, 20_001)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_release(epsilon):
    """Densities that are none, or a belief that is not Bayes' rule on them."""
    sigma = noise(epsilon)
    with_d, without = density(POINTS, 0.0, sigma), density(POINTS, 1.0, sigma)
    step = POINTS[1] - POINTS[0]
    assert with_d.sum() * step == pytest.approx(1.0, rel=1e-6)
    near = np.abs(POINTS) < 3
    bayes = with_d[near] / (with_d[near] + without[near])
    assert belief_in_d(POINTS, sigma)[near] == pytest.approx(bayes, rel=1e-9)
    assert np.all(np.diff(belief_in_d(POINTS[near], sigma)) < 0)
    # the hatched areas, and Theorem 3
    wrong = with_d[POINTS > 0.5].sum() * step
    assert error_rate(sigma) == pytest.approx(wrong, abs=2e-3)
    assert 1 - 2 * error_rate(sigma) == pytest.approx(advantage(epsilon, 1e-6), rel=1e-12)


def test_bounds_along_epsilon():
    """Curves that start or end at the wrong place, fall, or are in the wrong order of delta."""
    epsilons = np.linspace(0.0, 10.0, 21).tolist()
    assert beliefs(epsilons)[0] == 0.5
    assert beliefs(epsilons)[-1] == pytest.approx(1 / (1 + math.exp(-10)))
    for curves in (advantages, exact_advantages):
        table = np.array([curves(epsilons, delta) for delta in DELTAS])
        assert table.shape == (4, 21)
        assert np.all(np.diff(table, axis=1) > 0)
        assert np.all(np.diff(table, axis=0) <= 0)  # less delta, more noise
        assert np.all((table >= 0) & (table < 1))
    assert advantages(epsilons, 1e-6)[0] == 0.0
    # at epsilon 0 all of delta is total variation
    assert exact_advantages([0.0], 0.01)[0] == pytest.approx(0.01)


def test_belief_that_is_passed_with_probability_delta():
    """A quantile of the wrong tail: noise (2.1) keeps the bound for small epsilon and not for large ones."""
    epsilons = np.linspace(0.1, 12.0, 25).tolist()
    passed, bound = beliefs_exceeded(epsilons, 1e-6), beliefs(epsilons)
    assert np.all(np.diff(passed) > 0)
    assert np.all(passed[:10] < bound[:10])
    assert passed[-1] > bound[-1]


def test_drawings_are_drawn_without_warnings():
    """A drawing that fails, that a warning spoils, or whose name or caption is empty or used twice."""
    pytest.importorskip("matplotlib")
    assert len({drawing.name for drawing in DRAWINGS}) == len(DRAWINGS) == 3
    for drawing in DRAWINGS:
        figure = drawing.figure()
        figure.canvas.draw()
        assert drawing.caption.endswith(".")
        for axis in figure.axes:
            assert axis.get_xlabel() and axis.get_ylabel() and axis.get_title()
            assert all(np.all(np.isfinite(curve.get_ydata())) for curve in axis.get_lines())
