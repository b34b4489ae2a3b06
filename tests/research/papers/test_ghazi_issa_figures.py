import dp_accounting
import numpy as np
import pytest
from dp_accounting.rdp import RdpAccountant

from dpsynth.accounting.conversions import largest_tv
from dpsynth.research.papers.ghazi_issa import (
    Training,
    analyses,
    clt_mu,
    moments_deltas,
    moments_epsilon,
)
from dpsynth.research.papers.ghazi_issa_figures import (
    REGION,
    rates,
    region,
)

FPR = rates(201)


def is_trade_off(curve, fpr=FPR):
    return (
        np.all(np.diff(curve) <= 1e-12)
        and np.all(np.diff(np.diff(curve) / np.diff(fpr)) >= -1e-6)
        and np.all((curve >= 0) & (curve <= 1 - fpr + 1e-12))
    )


def test_regions_have_their_corners():
    """A region that is not sliced, or at the wrong place."""
    epsilon, delta, tv = REGION
    assert delta < tv < largest_tv(epsilon, delta)  # otherwise figure 2 shows nothing
    corner = (1 - largest_tv(epsilon, delta)) / 2
    alone, sliced = (region(epsilon, delta, cut, np.array([0.0, corner, 1.0])) for cut in (None, tv))
    assert alone == pytest.approx([1 - delta, corner, 0.0])
    assert sliced == pytest.approx([1 - delta, 1 - tv - corner, 0.0])
    assert is_trade_off(region(epsilon, delta, tv, FPR))


def test_moments_accountant():
    """A wrong moment: against the Renyi accountant, whose conversion to delta is never worse."""
    run = Training()
    accountant = RdpAccountant(orders=range(2, 202))
    event = dp_accounting.PoissonSampledDpEvent(
        run.sampling_prob, dp_accounting.GaussianDpEvent(run.noise_multiplier)
    )
    accountant.compose(event, run.steps)
    epsilon = moments_epsilon(run, 1e-5)
    assert accountant.get_epsilon(1e-5) < epsilon < 1.35 * accountant.get_epsilon(1e-5)
    assert moments_deltas(run, np.array([epsilon])) == pytest.approx([1e-5])
    deltas = moments_deltas(run, np.linspace(0, 10, 50))
    assert np.all(np.diff(deltas) <= 0) and deltas[0] <= 1


def test_training_curves_are_in_order():
    """A bound above the exact curve, or a comparison that is not what the caption says."""
    curves = analyses(Training(), FPR)
    exact = curves["privacy-loss distribution"]
    for name, curve in curves.items():
        assert is_trade_off(curve), name
        if not name.startswith("Dong"):
            # the exact curve is stated below its rounding, of 1e-8 for 3,516 steps
            assert np.all(curve <= exact + 2e-8), name
    ours = curves["Theorem 2, with TV"]
    assert np.all(ours >= curves["Kairouz et al."] - 1e-9)
    middle = (FPR >= 0.3) & (FPR <= 0.5)
    assert np.all(ours[middle] > curves["Abadi et al., every δ"][middle])
    assert ours[1] < curves["Abadi et al., δ = 1e-5"][1]
    assert clt_mu(Training()) == pytest.approx(0.2847, abs=1e-4)
