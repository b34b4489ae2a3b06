"""Distributions made and read as arrays, against dp_accounting, which does both one point at a time."""

import math

import numpy as np
import pytest
from dp_accounting.pld import pld_pmf, privacy_loss_distribution
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsynth.privacy.atoms import ApproxTvAtom, GaussianAtom, LaplaceAtom, grid_pmf
from dpsynth.privacy.events import training_event
from dpsynth.privacy.loss import NumericLoss, Tail, normalised


def test_grid_pmf_is_that_of_connecting_the_dots():
    """A mass shifted by one point, or an end treated wrongly."""
    interval, lower = 0.005, -600
    epsilons = (lower + np.arange(1400)) * interval
    deltas = GaussianAtom(1.0).deltas(epsilons)
    ours = grid_pmf(interval, lower, deltas)
    theirs = pld_pmf.create_pmf_pessimistic_connect_dots_fixed_gap(interval, lower, lower + 1399, deltas)
    assert ours._infinity_mass == theirs._infinity_mass and ours._lower_loss == theirs._lower_loss
    assert np.allclose(ours._probs, theirs._probs, rtol=1e-12, atol=1e-14)


@pytest.mark.slow
@settings(max_examples=6, deadline=None)
@given(z=st.floats(0.3, 5.0), q=st.floats(0.001, 1.0))
def test_sampled_gaussians_are_those_of_dp_accounting(z, q):
    """The two directions exchanged, or the closed form of either wrong in the tail."""
    interval = 2.0**-9
    ours = GaussianAtom(z, q).pld(interval)
    theirs = privacy_loss_distribution.from_gaussian_mechanism(
        z, sampling_prob=q, value_discretization_interval=interval
    )
    for side in ("_pmf_remove", "_pmf_add"):
        mine, other = getattr(ours, side), getattr(theirs, side)
        for epsilon in (-0.3, 0.0, 0.01, 0.4, 2.0):
            assert mine.get_delta_for_epsilon(epsilon) == pytest.approx(
                other.get_delta_for_epsilon(epsilon), rel=1e-6, abs=1e-11
            )


def test_a_loss_has_both_directions():
    """Catches the loss of a record's absence left out. Here presence has the larger one."""
    z, q, interval = 0.8, 0.3, 2.0**-11
    tails = NumericLoss(normalised([training_event(z, q, 1)]), interval)._tails
    assert len(tails) == 2
    present, absent = tails
    epsilons = np.array([0.0, 0.1, 0.3])
    assert present.deltas(epsilons) == pytest.approx(GaussianAtom(z, q).deltas(epsilons), abs=1e-6)
    assert absent.deltas(epsilons) == pytest.approx(GaussianAtom(z, q).deltas_of_absence(epsilons), abs=1e-6)


@pytest.mark.parametrize(
    "atom",
    [GaussianAtom(0.8, 0.1), LaplaceAtom(1.5), ApproxTvAtom(0.5, 1e-4, 0.1), GaussianAtom(20.0, 1e-3)],
    ids=str,
)
@pytest.mark.parametrize("count", [1, pytest.param(40, marks=pytest.mark.slow)])
def test_tail_reads_what_dp_accounting_reads(atom, count):
    """An index off by one between grid points, at the ends, or below the grid."""
    interval = 2.0**-11
    pmf = atom.pld(interval)._pmf_remove
    pmf = pmf.self_compose(count) if count > 1 else pmf
    tail = Tail(pmf, interval)
    epsilons = np.array([-50.0, -1.0, -interval / 2, 0.0, interval / 3, interval, 0.1, 0.7, 3.0, 500.0])
    expected = [pmf.get_delta_for_epsilon(float(e)) for e in epsilons]
    assert tail.deltas(epsilons) == pytest.approx(expected, rel=1e-9, abs=1e-15)
    assert tail.deltas(np.array([math.inf]))[0] == pytest.approx(pmf._infinity_mass, abs=1e-15)
    for delta in (0.5, 0.1, 1e-3, 1e-6, 1e-9):
        assert tail.epsilon(delta) == pytest.approx(pmf.get_epsilon_for_delta(delta), rel=1e-7, abs=1e-9)


def test_tails_by_counting():
    """Exceedance and quantile against a distribution of four losses."""
    pmf = pld_pmf.create_pmf({-2: 0.1, 0: 0.4, 3: 0.3, 5: 0.15}, 0.5, 0.05, True)
    tail = Tail(pmf, 0.5)
    for epsilon, expected in ((-5.0, 1.0), (-1.0, 0.9), (0.0, 0.5), (1.4, 0.5), (1.5, 0.2), (2.5, 0.05)):
        assert tail.exceedance(epsilon) == pytest.approx(expected)
    assert tail.quantile(0.51) == 0.0 and tail.quantile(0.3) == 1.5 and tail.quantile(0.06) == 2.5
    assert tail.quantile(0.04) == math.inf and tail.epsilon(0.04) == math.inf
    divergence = 0.3 * (1 - math.exp(-1.0)) + 0.15 * (1 - math.exp(-2.0)) + 0.05
    assert tail.deltas(np.array([0.5]))[0] == pytest.approx(divergence)


def test_long_grids_keep_their_small_values():
    """The running sum rescaled wrongly, or begun anew, where the loss spans more than one stretch.

    Only divergences just below the end of a stretch know the one before it.
    """
    interval = 0.25
    mass = np.full(4000, 1 / 4000)
    tail = Tail(pld_pmf.DensePLDPmf(interval, -2000, mass, 0.0, True), interval)
    losses = (np.arange(4000) - 2000) * interval
    for epsilon in np.arange(-490.0, 500.0, 9.0):
        exact = math.fsum(mass[0] * -math.expm1(epsilon - loss) for loss in losses if loss > epsilon)
        assert tail.deltas(np.array([epsilon]))[0] == pytest.approx(exact, rel=1e-12)
