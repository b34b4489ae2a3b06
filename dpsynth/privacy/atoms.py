"""Atoms: the mechanisms whose composed privacy loss is computed on a grid.

Each atom gives its privacy-loss distribution (PLD), pessimistic, and the size of its privacy loss, which sets
the grid. ``pure_epsilon`` is the largest finite loss (infinite if there is none), and ``pure_delta`` the
probability of an infinite one. ``tv`` is the total variation of one application, exact or a bound. The module
:mod:`dpsynth.privacy.loss` maps events to atoms, for each adjacency. Here an array operation makes
these distributions, which dp_accounting makes one point at a time in Python.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dpsynth.privacy.conversions import amplified, tv_of_mu
from dpsynth.privacy.gaussian_loss import gaussian_deltas

if TYPE_CHECKING:
    from dp_accounting.pld.pld_pmf import PLDPmf
    from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution

#: A normal distribution has less mass than e^-50 beyond this many stds.
REACH = 9.7


def grid_pmf(interval: float, lower: int, deltas: np.ndarray) -> PLDPmf:
    """Probability mass function on the grid from divergences at its points, by connecting the dots.

    Algorithm 1 of Doroshenko, Ghazi, Kamath, Kumar and Manurangsi 2022, "Connect the dots: tighter discrete
    approximations of privacy loss distributions". The points are ``(lower + i) interval``. The result's
    divergence is at least ``deltas``, shape (n,), at every point, and at least the true one between them.
    """
    from dp_accounting.pld.pld_pmf import DensePLDPmf

    # Rounding may break the order of neighbours in the last digit; up is the private side.
    deltas = np.maximum.accumulate(np.clip(deltas, 0.0, 1.0)[::-1])[::-1]
    # The probability of a loss beyond each point, from positive terms. With masses that are its differences,
    # the divergences read off the result are those given, to the last digits and however fine the grid.
    beyond = np.append(deltas[:-1] - np.diff(deltas) / math.expm1(interval), deltas[-1])
    beyond = np.maximum.accumulate(np.minimum(beyond, 1.0)[::-1])[::-1]
    mass = -np.diff(beyond, prepend=1.0)
    return DensePLDPmf(interval, lower, mass, float(deltas[-1]), True)


@dataclass(frozen=True)
class LossSize:
    """Size of one application's privacy loss: its mean, its std, and the width of its support.

    ``rounded`` says that the grid moves the loss up to its next point instead of splitting it between two.
    """

    mean: float
    std: float
    width: float
    rounded: bool = False


@dataclass(frozen=True, order=True)
class GaussianAtom:
    """Gaussian noise of ``noise_multiplier`` on a Poisson sample (all records if ``sampling_prob`` is 1)."""

    noise_multiplier: float
    sampling_prob: float = 1.0
    pure_epsilon = math.inf
    pure_delta = 0.0

    @property
    def tv(self) -> float:
        """q (2 Phi(1 / (2 z)) - 1)."""
        return self.sampling_prob * tv_of_mu(1 / self.noise_multiplier)

    def size(self) -> LossSize:
        """Size of the loss of presence, by quadrature (Mironov, Talwar and Zhang 2019)."""
        z, q = self.noise_multiplier, self.sampling_prob
        if q == 1.0:
            return LossSize(mean=0.5 / z**2, std=1 / z, width=20 / z)
        return _sampled_size(
            lambda x: np.logaddexp(math.log1p(-q), math.log(q) + (2 * x - 1) / (2 * z**2)), z, q, reach=10.0
        )

    def pld(self, interval: float) -> PrivacyLossDistribution:
        """Built from the divergences of both directions."""
        from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution

        z, q = self.noise_multiplier, self.sampling_prob
        # Losses of presence at outputs REACH stds beyond either mean; e^-50 of the mass lies further out.
        ends = np.array([-REACH * z, 1 + REACH * z])
        with np.errstate(divide="ignore"):  # log(1 - q) where q is 1
            low, high = np.logaddexp(np.log1p(-q), math.log(q) + (2 * ends - 1) / (2 * z**2))
        lower, upper = math.floor(low / interval), math.ceil(high / interval)
        grid = np.arange(lower, upper + 1) * interval
        present = grid_pmf(interval, lower, self.deltas(grid))
        if q == 1.0:
            return PrivacyLossDistribution(present)
        return PrivacyLossDistribution(
            present, grid_pmf(interval, -upper, self.deltas_of_absence(-grid[::-1]))
        )

    def deltas(self, epsilons: np.ndarray) -> np.ndarray:
        """Divergence of presence from absence: q times the Gaussian's at log(1 + (e^epsilon - 1) / q).

        Balle, Barthe and Gaboardi 2018, Theorem 2, which is an identity here.
        """
        q = self.sampling_prob
        # below log(1 - q) no output has a smaller loss: H = 1 - e^epsilon
        reached, level = _unsampled(epsilons, q)
        below = -np.expm1(np.minimum(epsilons, 0.0))
        return np.where(reached, q * gaussian_deltas(1 / self.noise_multiplier, level), below)

    def deltas_of_absence(self, epsilons: np.ndarray) -> np.ndarray:
        """Divergence of absence from presence: q e^{epsilon + l} times the Gaussian's at -l.

        Here l = log(1 + (e^-epsilon - 1) / q), and beyond -log(1 - q) the divergence is 0.
        """
        q = self.sampling_prob
        reached, level = _unsampled(-epsilons, q)
        deltas = gaussian_deltas(1 / self.noise_multiplier, -level)
        return np.where(reached, q * np.exp(epsilons + level) * deltas, 0.0)


@dataclass(frozen=True, order=True)
class LaplaceAtom:
    """Laplace noise of ``noise_multiplier`` on a Poisson sample (all records if ``sampling_prob`` is 1)."""

    noise_multiplier: float
    sampling_prob: float = 1.0
    pure_delta = 0.0

    @property
    def pure_epsilon(self) -> float:
        """The loss is bounded."""
        return amplified(1 / self.noise_multiplier, self.sampling_prob)

    @property
    def tv(self) -> float:
        """q (1 - e^{-1 / (2 b)})."""
        return self.sampling_prob * -math.expm1(-0.5 / self.noise_multiplier)

    def size(self) -> LossSize:
        """Bounds of mean and std."""
        largest = self.pure_epsilon
        return LossSize(largest * math.tanh(largest / 2), min(largest, self.sampling_prob), 2 * largest)

    def pld(self, interval: float) -> PrivacyLossDistribution:
        """Built by dp_accounting."""
        from dp_accounting.pld import privacy_loss_distribution

        return privacy_loss_distribution.from_laplace_mechanism(
            self.noise_multiplier, sampling_prob=self.sampling_prob, value_discretization_interval=interval
        )


@dataclass(frozen=True, order=True)
class ApproxTvAtom:
    """The worst mechanism with a largest loss, a probability of an infinite one, and a total variation.

    With probability ``pure_delta`` it reveals the record. Otherwise it outputs nothing, with the erasure
    probability, or answers by randomised response (Ghazi and Issa 2024, section III-C and appendix F).
    Nothing is erased if the total variation is the largest that (epsilon, delta) allows (Kairouz, Oh and
    Viswanath 2015, section 3).
    """

    pure_epsilon: float
    pure_delta: float
    tv: float

    def size(self) -> LossSize:
        """Size if delta is 0."""
        largest = self.pure_epsilon
        # The probability of a loss other than 0 is tv / tanh(epsilon / 2) where delta is 0.
        share = min(1.0, self.tv / math.tanh(largest / 2)) if largest > 0.0 else 0.0
        return LossSize(
            share * largest * math.tanh(largest / 2), math.sqrt(share) * largest, 2 * largest, rounded=True
        )

    def pld(self, interval: float) -> PrivacyLossDistribution:
        """PLD with epsilon rounded up to the grid first, so that -epsilon lies on it and is not rounded."""
        from dp_accounting.pld import pld_pmf
        from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution

        steps = math.ceil(self.pure_epsilon / interval)
        revealed = self.pure_delta
        probabilities = {}
        if steps > 0 and revealed < 1.0:
            answered = min(1.0 - revealed, (self.tv - revealed) / math.tanh(steps * interval / 2))
            # e^epsilon / (1 + e^epsilon) and 1 / (1 + e^epsilon), without overflow
            true = 1 / (1 + math.exp(-steps * interval))
            probabilities[steps] = answered * true
            probabilities[-steps] = answered * (1 - true)
            erased = 1.0 - revealed - answered
        else:
            erased = 1.0 - revealed
        if erased > 0.0:
            probabilities[0] = erased
        return PrivacyLossDistribution(
            pld_pmf.create_pmf(probabilities, interval, revealed, pessimistic_estimate=True)
        )


def _sampled_size(
    loss_of: Callable[[np.ndarray], np.ndarray], z: float, q: float, *, reach: float
) -> LossSize:
    """Size of a loss under (1 - q) N(0, z^2) + q N(1, z^2), by quadrature to ``reach`` stds."""
    t = np.linspace(-reach, reach, 801)
    weight = np.exp(-(t**2) / 2)
    weight /= weight.sum()
    loss = loss_of(np.concatenate([z * t, 1 + z * t]))
    weight = np.concatenate([(1 - q) * weight, q * weight])
    mean = float(weight @ loss)
    return LossSize(mean, math.sqrt(max(0.0, float(weight @ (loss - mean) ** 2))), float(np.ptp(loss)))


def _symmetric_pld(
    interval: float, largest: float, deltas: Callable[[np.ndarray], np.ndarray]
) -> PrivacyLossDistribution:
    """PLD whose loss of presence and that of absence are the same, with losses up to ``largest``."""
    from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution

    reach = math.ceil(largest / interval)
    grid = np.arange(-reach, reach + 1) * interval
    return PrivacyLossDistribution(grid_pmf(interval, -reach, deltas(grid)))


def most_noise(noise_multiplier: float, sampling_prob: float) -> float:
    """The noise that is accounted for: a loss below about 1e-12 is too small for a grid of its own.

    Less noise than there is errs on the private side.
    """
    return min(noise_multiplier, max(1e3, 1e12 * sampling_prob), 1e9)


def _unsampled(epsilons: np.ndarray, q: float) -> tuple[np.ndarray, np.ndarray]:
    """Whether log(1 + (e^epsilon - 1) / q) exists, and its value (else 0), at epsilons of any size."""
    # Above 30 in the form epsilon - log(q) + log(1 - (1 - q) e^-epsilon), since e^epsilon overflows.
    inner = np.expm1(np.minimum(epsilons, 30.0)) / q
    reached = inner > -1.0
    small = np.log1p(np.where(reached, inner, 0.0))
    large = epsilons - math.log(q) + np.log1p(-(1 - q) * np.exp(-np.maximum(epsilons, 30.0)))
    return reached, np.where(epsilons > 30.0, large, small)


@dataclass(frozen=True, order=True)
class BoundedRangeAtom:
    """An exponential mechanism, whose losses lie within an interval of length epsilon.

    For two neighbours let the losses of all outputs lie in [t - epsilon, t]. The worst such pair has both
    ends only. Its divergence at x in between is

        (1 - e^{t - epsilon}) (e^t - e^x) / (e^t - e^{t - epsilon}),

    largest if t = (epsilon + x) / 2 (Dong, Durfee and Rogers 2020, "Optimal differential privacy composition
    for exponential mechanisms"). No t is the worst at every x, and the adversary's t is unknown. So the
    composition uses the largest at each x:

        (1 - e^{(x - epsilon) / 2})^2 / (1 - e^{-epsilon})    for -epsilon <= x <= epsilon.

    It is convex and decreasing in e^x, 1 at e^x = 0 and at least 1 - e^x. So it is the divergence of a pair
    of distributions. This pair dominates every such mechanism, also if they are chosen adaptively. See Zhu,
    Dong and Wang 2022, "Optimal accounting of differential privacy via characteristic function", Lemma 9 and
    Theorem 10. Its loss has the density e^{(x - epsilon) / 2} / (2 (1 - e^{-epsilon})). The variance is about
    epsilon^2 / 3, while an (epsilon, 0)-DP mechanism may have epsilon^2.
    """

    pure_epsilon: float
    pure_delta = 0.0

    @property
    def tv(self) -> float:
        """The divergence at 0, tanh(epsilon / 4)."""
        return math.tanh(self.pure_epsilon / 4)

    def size(self) -> LossSize:
        """Mean and std, exact if epsilon is small."""
        largest = self.pure_epsilon
        return LossSize(min(largest**2 / 6, largest), min(largest / math.sqrt(3), 2.0), 2 * largest)

    def pld(self, interval: float) -> PrivacyLossDistribution:
        """The loss of presence and that of absence are the same."""
        return _symmetric_pld(interval, self.pure_epsilon, self.deltas)

    def deltas(self, epsilons: np.ndarray) -> np.ndarray:
        """The divergence at each of an array of epsilons of any sign."""
        largest = self.pure_epsilon
        inside = np.clip(epsilons, -largest, largest)
        within = np.expm1((inside - largest) / 2) ** 2 / -math.expm1(-largest)
        return np.where(epsilons < -largest, -np.expm1(np.minimum(epsilons, 0.0)), within)


@dataclass(frozen=True, order=True)
class ReplacedGaussianAtom:
    """Gaussian noise on a Poisson sample, when one record is replaced by another.

    ``noise_multiplier`` z is in units of the add/remove sensitivity, as in the event. ``sampling_prob`` q is
    less than 1. A record joins a batch with probability q. Noise of std z covers sums in which one record
    moves by a vector of norm at most 1. If the record is replaced, the two outputs are the mixtures
    ``P = (1 - q) N(0, z^2 I) + q N(g, z^2 I)`` and ``Q = (1 - q) N(0, z^2 I) + q N(g', z^2 I)``, with g and
    g' in the unit ball. The worst case is one-dimensional with g = 1 and g' = -1.

    Proof, for every order gamma >= 1 of the hockey-stick divergence H. By advanced joint convexity,
    ``H_{1 + q (gamma - 1)}(P, Q) = q H_gamma(N(g), (1 - b) N(0) + b N(g'))`` for a weight b that does not
    depend on g and g' (Balle, Barthe and Gaboardi 2018, Theorem 2). Under N(g) the likelihood ratios U = N(0)
    / N(g) and U' = N(g') / N(g) are lognormal with mean 1. Their log-variances are |g|^2 / z^2 and
    |g - g'|^2 / z^2. H is the expectation of a convex function of (1 - b) U + b U'. It is largest when U and
    U' are comonotone. It then grows with each of the two in convex order, that is with the log-variances. The
    choice g' = -g with |g| = 1 makes them comonotone and both variances largest. Orders below 1 follow by
    exchanging P and Q, which the worst pair allows by symmetry. A pair that is worst at every order
    dominates, also under adaptive composition (Zhu, Dong and Wang 2022, Theorem 10).
    """

    noise_multiplier: float
    sampling_prob: float
    pure_epsilon = math.inf
    pure_delta = 0.0

    @property
    def tv(self) -> float:
        """Total variation of the pair: q (2 Phi(1 / z) - 1)."""
        return self.sampling_prob * tv_of_mu(2 / self.noise_multiplier)

    def size(self) -> LossSize:
        """Size of the loss under P, by quadrature."""
        return _sampled_size(self.loss, self.noise_multiplier, self.sampling_prob, reach=REACH)

    def loss(self, x: np.ndarray) -> np.ndarray:
        """Privacy loss log(P(x) / Q(x)): odd and increasing in the output ``x``, of any shape."""
        z, q = self.noise_multiplier, self.sampling_prob
        stay, join = math.log1p(-q), math.log(q) - 0.5 / z**2
        return np.logaddexp(stay, join + x / z**2) - np.logaddexp(stay, join - x / z**2)

    def output(self, loss: np.ndarray) -> np.ndarray:
        """Inverse of :meth:`loss`: z^2 (l / 2 + arsinh((1 - q) sinh(l / 2) e^{1 / (2 z^2)} / q))."""
        z, q = self.noise_multiplier, self.sampling_prob
        half = np.abs(loss) / 2
        with np.errstate(divide="ignore"):  # log(0) where the loss is 0
            # log of the argument of arsinh, with sinh(h) = e^h (1 - e^{-2 h}) / 2
            log = math.log1p(-q) - math.log(q) + 0.5 / z**2 + half + np.log(-np.expm1(-2 * half) / 2)
        inner = np.where(log > 40.0, log + math.log(2.0), np.arcsinh(np.exp(np.minimum(log, 40.0))))
        return np.sign(loss) * z**2 * (half + inner)

    def deltas(self, epsilons: np.ndarray) -> np.ndarray:
        """Hockey-stick divergence at each of an array of orders ``e^epsilon``, negative epsilons included."""
        from scipy.special import ndtr

        z, q = self.noise_multiplier, self.sampling_prob
        size = np.abs(epsilons)
        x = self.output(size)
        upper = (1 - q) * ndtr(-x / z) + q * ndtr((1 - x) / z)  # P(L > epsilon)
        lower = (1 - q) * ndtr(-x / z) + q * ndtr((-1 - x) / z)  # Q(L > epsilon)
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            product = np.where(lower > 0.0, np.exp(size + np.log(lower)), 0.0)
        # delta(-e) = 1 - e^{-e} + e^{-e} delta(e), by symmetry of the pair
        delta = np.clip(upper - product, 0.0, 1.0)
        return np.where(epsilons < 0.0, -np.expm1(-size) + np.exp(-size) * delta, delta)

    def pld(self, interval: float) -> PrivacyLossDistribution:
        """Built from the divergence, which is the same in both directions."""
        largest = float(self.loss(np.asarray(1 + REACH * self.noise_multiplier)))
        return _symmetric_pld(interval, largest, self.deltas)


#: a mechanism that can be composed numerically
Atom = GaussianAtom | LaplaceAtom | ApproxTvAtom | BoundedRangeAtom | ReplacedGaussianAtom
