import numpy as np
import pytest

from dpsynth.accounting.gaussian import GaussianLoss
from dpsynth.accounting.tv_bounds import laplace_tv
from dpsynth.research.papers.trade_off import composed_laplace_fnr, fnr, gaussian_fnr, laplace_fnr

FPR = np.linspace(0.0, 1.0, 201)


def is_trade_off(curve, fpr=FPR):
    return (
        np.all(np.diff(curve) <= 1e-12)
        and np.all(np.diff(np.diff(curve) / np.diff(fpr)) >= -1e-6)
        and np.all((curve >= 0) & (curve <= 1 - fpr + 1e-12))
    )


def test_gaussian_curve_is_the_profiles():
    """A curve that is not the envelope of the exact (epsilon, delta)."""
    loss = GaussianLoss(0.7)
    pairs = [(epsilon, loss.delta(epsilon)) for epsilon in np.linspace(0.0, 5.0, 400).tolist()]
    assert fnr(pairs, FPR) == pytest.approx(gaussian_fnr(FPR, 0.7), abs=2e-5)
    assert (fnr(pairs, FPR) <= gaussian_fnr(FPR, 0.7) + 1e-12).all()


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_laplace_curve_is_that_of_the_best_threshold(epsilon):
    """A piece of the curve in the wrong place: compare with thresholds on the output itself."""
    from scipy.stats import laplace

    threshold = np.linspace(-10.0, 10.0, 301)
    fpr, expected = laplace.sf(threshold), laplace.cdf(threshold, loc=epsilon)
    assert laplace_fnr(fpr, epsilon) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("epsilon", [0.2, 1.0, 3.0])
def test_laplace_curve(epsilon):
    """A branch of the exact curve that is misplaced: its TV, its inverse and one composition must agree."""
    fine = np.linspace(0.0, 1.0, 20_001)
    curve = laplace_fnr(fine, epsilon)
    assert is_trade_off(curve, fine)
    assert 1 - np.min(curve + fine) == pytest.approx(laplace_tv(1 / epsilon), abs=1e-6)
    inverse = laplace_fnr(laplace_fnr(FPR, epsilon), epsilon)
    assert inverse == pytest.approx(FPR, abs=1e-12)
    assert composed_laplace_fnr(FPR, epsilon, 1) == pytest.approx(laplace_fnr(FPR, epsilon), abs=2e-3)
    assert np.all(np.asarray(fnr([(epsilon, 0.0), (0.0, laplace_tv(1 / epsilon))], fine)) <= curve + 1e-12)


def test_composed_laplace_is_a_curve_between_its_bounds():
    """A composition of another number of releases."""
    epsilon, k = 1.0, 3
    curve = composed_laplace_fnr(FPR, epsilon, k)
    assert is_trade_off(curve)
    assert np.all(curve[1:-1] < laplace_fnr(FPR, epsilon)[1:-1])
    assert np.all(curve >= laplace_fnr(FPR, k * epsilon) - 1e-9)
