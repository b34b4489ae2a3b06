"""Stated maxima are never below the truth, which comes from high precision and from other algorithms.

Rounding is the only error of closed forms, and of distributions whose losses lie on the grid. It has a proved
bound (``pld._rounding``). Elsewhere the grid errs upwards by more.
"""

import math

import mpmath
import numpy as np
import pytest
from dp_accounting.pld.pld_pmf import DensePLDPmf
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from scipy.special import ndtri

from dpsynth.privacy import Profile
from dpsynth.privacy.atoms import GaussianAtom, ReplacedGaussianAtom, grid_pmf
from dpsynth.privacy.events import epsilon_delta_event, gaussian_event, training_event
from dpsynth.privacy.loss import Tail

PRIORS = (0.2, 0.5, 0.9)


def accuracy(delta, prior, log=mpmath.log):
    """The best attack's accuracy from delta, in the precision of the prior."""
    larger, smaller = max(prior, 1 - prior), min(prior, 1 - prior)
    return larger + smaller * delta(log(larger / smaller))


def quantile(rate):
    """Of a normal distribution: scipy's, and two steps of Newton's."""
    x = mpmath.mpf(float(ndtri(rate)))
    for _ in range(2):
        x -= (mpmath.ncdf(x) - rate) / mpmath.npdf(x)
    return x


@pytest.mark.slow
@settings(max_examples=30, deadline=None)
@given(
    z=st.floats(0.05, 300.0),
    epsilon=st.floats(0.0, 30.0),
    rate=st.floats(1e-12, 1.0, exclude_max=True),
    small=st.floats(1e-12, 0.5),
)
def test_gaussian_measures_in_thirty_digits(z, epsilon, rate, small):
    """Catches a maximum of a closed form that is rounded to nearest, so that every second one is too low."""
    profile, mu = Profile([gaussian_event(z)]), 1 / mpmath.mpf(z)
    with mpmath.workdps(30):

        def delta(e):
            return mpmath.ncdf(mu / 2 - e / mu) - mpmath.exp(e) * mpmath.ncdf(-mu / 2 - e / mu)

        assert profile.delta(epsilon) >= delta(mpmath.mpf(epsilon))
        assert profile.tv() >= delta(mpmath.mpf(0))
        assert profile.exceedance(epsilon) >= mpmath.ncdf(mu / 2 - epsilon / mu)
        assert delta(mpmath.mpf(profile.epsilon(small))) <= small
        for prior in PRIORS:
            assert profile.attack_accuracy(prior) >= accuracy(delta, mpmath.mpf(prior))
        x = quantile(rate)
        assert profile.tpr(rate) >= mpmath.ncdf(x + mu)
        assert profile.fnr(rate) <= mpmath.ncdf(-x - mu)
        assert profile.advantage(rate) >= mpmath.ncdf(x + mu) - rate


@settings(max_examples=20, deadline=None)
@given(
    step=st.integers(1, 100), count=st.integers(2, 60), level=st.floats(0.0, 4.0), prior=st.floats(0.05, 0.95)
)
def test_compositions_whose_losses_lie_on_the_grid(step, count, level, prior):
    """Catches rounding of transforms and sums that is left out: the grid itself adds nothing here."""
    epsilon = step / 256
    assume(count * epsilon < 60.0)
    profile = Profile([epsilon_delta_event(epsilon, 0.0)] * count)
    with mpmath.workdps(30):
        true = 1 / (1 + mpmath.exp(-mpmath.mpf(epsilon)))
        losses = [(2 * k - count) * mpmath.mpf(epsilon) for k in range(count + 1)]
        masses = [mpmath.binomial(count, k) * true**k * (1 - true) ** (count - k) for k in range(count + 1)]

        def delta(e):
            return mpmath.fsum(
                p * (1 - mpmath.exp(e - x)) for p, x in zip(masses, losses, strict=True) if x > e
            )

        for e in (0.0, level):
            assert profile.delta(e) >= delta(mpmath.mpf(e))
            assert profile.delta(e) == pytest.approx(float(delta(mpmath.mpf(e))), abs=1e-9)
        assert profile.attack_accuracy(prior) >= accuracy(delta, mpmath.mpf(prior))
        for small in (1e-9, 1e-3):
            assert delta(mpmath.mpf(profile.epsilon(small))) <= small
        for rate in (1e-3, 0.2):
            # a test that claims presence above a loss, drawing lots at it
            left, power = mpmath.mpf(rate), mpmath.mpf(0)
            for p, x in zip(masses[::-1], losses[::-1], strict=True):
                share = min(mpmath.mpf(1), left / (p * mpmath.exp(-x)))
                left, power = left - share * p * mpmath.exp(-x), power + share * p
            assert profile.tpr(rate) >= power


class Fourier:
    """Composed sampled Gaussians by inversion of their characteristic functions (Gil-Pelaez 1951).

    ``P(L > e) = 1/2 + 1/pi int_0^inf Im(e^{-ite} phi(t)) / t dt``, by the midpoint rule. The integrands decay
    faster than any power, so it is right to about 1e-13. There is no grid of losses.
    """

    def __init__(self, z, q, steps):
        width = 0.05 * min(1.0, z)
        x = np.arange(-12 * z, 1 + 12 * z, width)
        absent = np.exp(-((x / z) ** 2) / 2) * width / (z * math.sqrt(2 * math.pi))
        present = (1 - q) * absent + q * absent * np.exp((2 * x - 1) / (2 * z * z))
        loss = np.log1p(q * np.expm1((2 * x - 1) / (2 * z * z)))
        spread = math.sqrt(steps * float(present @ loss**2 - (present @ loss) ** 2))
        reach = steps * float(np.ptp(loss[present > 1e-17]))
        self.step = min(0.05 / spread, 0.5 / min(reach, 40 * spread + 10))
        self.t = (np.arange(math.ceil(20 / spread / self.step)) + 0.5) * self.step
        waves = np.exp(1j * np.outer(self.t, loss))
        self.one, self.other = ((waves @ masses) ** steps for masses in (present, absent))
        assert max(abs(self.one[-1]), abs(self.other[-1])) < 1e-14

    def _beyond(self, transform, epsilon):
        return (
            0.5
            + float(((np.exp(-1j * self.t * epsilon) * transform).imag / self.t).sum()) * self.step / math.pi
        )

    def delta(self, epsilon):
        """The larger of presence and absence."""
        forward = self._beyond(self.one, epsilon) - math.exp(epsilon) * self._beyond(self.other, epsilon)
        back = (
            1
            - self._beyond(self.other, -epsilon)
            - math.exp(epsilon) * (1 - self._beyond(self.one, -epsilon))
        )
        return max(forward, back)


@pytest.mark.slow
@settings(max_examples=5, deadline=None)
@given(z=st.floats(1.2, 3.0), q=st.floats(0.3, 0.9), steps=st.integers(30, 60))
@example(z=1.7182866384298427, q=0.6538592558012781, steps=51)
def test_sampled_gaussians_by_their_characteristic_functions(z, q, steps):
    """Catches a maximum below that of an algorithm which shares nothing with a grid of losses.

    At the example the trade-off curve's best attack was once above the stated accuracy. Both are above the
    truth: the curve joins every 13th point of the grid by chords.
    """
    profile, truth = Profile([training_event(z, q, steps)]), Fourier(z, q, steps)
    for epsilon in (0.0, 0.3, math.log(4), 2.5):
        assert truth.delta(epsilon) - 1e-13 <= profile.delta(epsilon) <= truth.delta(epsilon) + 2e-7
    for prior in PRIORS:
        found = accuracy(truth.delta, prior, math.log)
        assert found - 1e-13 <= profile.attack_accuracy(prior) <= found + 2e-7
        # a line that no true rate is above
        larger, smaller = max(prior, 1 - prior), min(prior, 1 - prior)
        rates = np.linspace(0.0, 1.0, 101)
        assert np.max(smaller * np.asarray(profile.tpr(rates)) - larger * rates) <= found - larger + 1e-6
        y = larger / smaller
        fine = np.linspace(0.0, 1.0, 4001)
        assert np.max(np.asarray(profile.tpr(fine)) - y * fine) >= truth.delta(math.log(y)) - 3e-4


@pytest.mark.parametrize(
    "atom", [GaussianAtom(1.7, 0.65), GaussianAtom(0.9), ReplacedGaussianAtom(2.0, 0.1)], ids=str
)
def test_masses_of_a_fine_grid_give_their_divergences(atom):
    """Catches masses by second differences: each is off by 1e-16 over the grid's spacing, and all add up."""
    interval = 2.0**-17
    points = np.arange(-4 * 2**17, 4 * 2**17 + 1)
    deltas = atom.deltas(points * interval)
    tail = Tail(grid_pmf(interval, int(points[0]), deltas), interval)
    where = np.array([-1.0, 0.0, 0.25, 1.0])
    found = tail.deltas(where)
    assert np.all(found >= atom.deltas(where) - 1e-15)
    assert found == pytest.approx(atom.deltas(where), abs=1e-9)


def test_sums_over_a_long_grid():
    """Catches running sums over the grid that are rounded to nearest, against exact ones."""
    rng, interval = np.random.default_rng(), 2.0**-8
    mass = rng.dirichlet(np.ones(4000))
    tail = Tail(DensePLDPmf(interval, -2000, mass, 0.0, True), interval)
    losses = (np.arange(4000) - 2000) * interval
    for place in range(0, 4000, 200):
        level = float(losses[place])
        exact = math.fsum((mass[place + 1 :] * -np.expm1(level - losses[place + 1 :])).tolist())
        assert tail.deltas(np.array([level]))[0] >= exact
        assert tail.exceedance(level) >= math.fsum(mass[place + 1 :].tolist())


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(z=st.floats(0.2, 20.0), q=st.floats(1e-4, 0.999), part=st.floats(-0.95, 0.95))
def test_divergences_of_one_application_are_right_to_few_units(z, q, part):
    """Catches a divergence that cancels: the bound of all rounding takes its error as few units."""
    largest = float(np.logaddexp(math.log1p(-q), math.log(q) + (2 * (1 + 9.7 * z) - 1) / (2 * z * z)))
    with mpmath.workdps(40):
        z_, q_ = mpmath.mpf(z), mpmath.mpf(q)

        def of(epsilon, atom):
            e = mpmath.mpf(epsilon)
            if isinstance(atom, GaussianAtom):
                if mpmath.exp(e) <= 1 - q_:
                    return 1 - mpmath.exp(e)
                x, other = z_**2 * mpmath.log(1 + (mpmath.exp(e) - 1) / q_) + mpmath.mpf(1) / 2, 0
            else:
                half = abs(e) / 2
                inner = (1 - q_) * mpmath.sinh(half) * mpmath.exp(1 / (2 * z_**2)) / q_
                x, other = mpmath.sign(e) * z_**2 * (half + mpmath.asinh(inner)), -1

            def beyond(mean):
                return (1 - q_) * mpmath.ncdf(-x / z_) + q_ * mpmath.ncdf((mean - x) / z_)

            return beyond(1) - mpmath.exp(e) * beyond(other)

        for atom in (GaussianAtom(z, q), ReplacedGaussianAtom(z, q)):
            epsilon = part * largest
            error = abs(float(atom.deltas(np.array([epsilon]))[0] - of(epsilon, atom)))
            assert error <= 2.0**-53 * (16 + 8 * largest)
