import numpy as np
import pytest

from dpsynth.privacy.gaussian_loss import GaussianLoss
from dpsynth.research.papers.trade_off import fnr

FPR = np.linspace(0.0, 1.0, 201)


def test_many_pairs_give_the_exact_curve():
    """A curve that is not the envelope of the exact (epsilon, delta), or that lies above it."""
    loss = GaussianLoss(0.7)
    pairs = [(epsilon, loss.delta(epsilon)) for epsilon in np.linspace(0.0, 5.0, 400).tolist()]
    assert fnr(pairs, FPR) == pytest.approx(loss.fnr(FPR), abs=2e-5)
    assert (fnr(pairs, FPR) <= loss.fnr(FPR) + 1e-12).all()
