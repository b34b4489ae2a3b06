"""The composed privacy loss: on a grid, or from epsilon, delta and total variation alone.

1. `normalised`: events, read under an adjacency and merged
2. `loss_of`: their privacy-loss distributions, composed on a grid
3. `promised_loss`: what epsilon, delta and total variation of a ledger's stages allow
4. `from_deltas`: the trade-off curve of any of these losses
"""

from __future__ import annotations

import functools
import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from dpsynth.checks import one_of
from dpsynth.errors import InputError, PrivacyError
from dpsynth.privacy.atoms import (
    ApproxTvAtom,
    Atom,
    BoundedRangeAtom,
    GaussianAtom,
    LaplaceAtom,
    ReplacedGaussianAtom,
    most_noise,
)
from dpsynth.privacy.conversions import amplified, largest_tv
from dpsynth.privacy.events import check_event, kind_of
from dpsynth.privacy.gaussian_loss import GaussianLoss

if TYPE_CHECKING:
    from dp_accounting.dp_event import DpEvent
    from dp_accounting.pld.pld_pmf import PLDPmf
    from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution


# ------------------------------------------------------------------------------------------------
# Normal form of a list of events: joint Gaussian noise, and counts of the mechanisms that are left.
#
# Composition does not depend on order. So a tree of events is a bag of atoms, each with a count. Unsampled
# Gaussians merge into one (:mod:`dpsynth.privacy.gaussian_loss`).
#
# Events hold numbers under add/remove one record. Under replace-one, one record is removed and another
# added. Events then mean the following.
#
# - Gaussian and Laplace noise on all records: twice the sensitivity, so half the noise multiplier.
# - Gaussian noise on a Poisson sample: the pair of mixtures of
#   :class:`~dpsynth.privacy.atoms.ReplacedGaussianAtom`, the worst case. The switch REPLACE_ONE of
#   dp_accounting 0.4.3 is not used: it returns the add/remove figure without a warning.
# - Exponential mechanisms: a range of twice the length. On a Poisson sample only their epsilon and total
#   variation are used, under either adjacency.
# - Mechanisms with known (epsilon, delta), and perhaps total variation, and Laplace noise on a Poisson
#   sample. The two tables are neighbours of one that lacks both records. So the sampled mechanism is
#   (2 epsilon, (1 + e^epsilon) delta)-DP with twice the total variation (Dwork and Roth 2014, Theorem 2.2
#   with delta). This is valid, though not the smallest.

ADD_REMOVE = "add/remove"
"""Neighbouring datasets differ in one record that one of them lacks."""
REPLACE_ONE = "replace-one"
"""Neighbouring datasets have the same number of records and differ in one."""
#: A numerical composition takes a minute for this many applications of one mechanism.
MOST_APPLICATIONS = 10**8
ADJACENCIES = (ADD_REMOVE, REPLACE_ONE)


def check_adjacency(adjacency: str) -> str:
    """Return ``adjacency`` if it is one of :data:`ADJACENCIES`, else raise InputError."""
    one_of("adjacency", adjacency, ADJACENCIES)
    return adjacency


@dataclass(frozen=True)
class NormalForm:
    """Bag of atoms, joint ``mu`` of the unsampled Gaussians, and whether all events are ``private``."""

    mu: float
    atoms: tuple[tuple[Atom, int], ...]
    private: bool


def normalised(events: Iterable[DpEvent], adjacency: str = ADD_REMOVE) -> NormalForm:
    """Collect events into a :class:`NormalForm`, or raise PrivacyError if one cannot be accounted for.

    Examples
    --------
    >>> from dpsynth.privacy.events import gaussian_event
    >>> normalised([gaussian_event(1.0, count=3), gaussian_event(1.0)])
    NormalForm(mu=2.0, atoms=(), private=True)
    """
    bag = _Bag(doubled=check_adjacency(adjacency) == REPLACE_ONE)
    for event in events:
        check_event(event)
        bag.add(event, 1)
    longest = max(bag.atoms.values(), default=0)
    if longest > MOST_APPLICATIONS:
        raise InputError(
            f"a mechanism is applied {longest:,} times, but at most {MOST_APPLICATIONS:,} can be "
            "accounted for"
        )
    atoms = sorted(bag.atoms.items(), key=lambda item: (type(item[0]).__name__, item[0]))
    return NormalForm(math.sqrt(bag.mu_squared), tuple(atoms), bag.private)


class _Bag:
    def __init__(self, doubled: bool) -> None:
        self.doubled = doubled
        self.mu_squared = 0.0
        self.atoms: Counter[Atom] = Counter()
        self.private = True

    def add(self, event: DpEvent, count: int, sampling_prob: float = 1.0) -> None:
        kind = kind_of(event)
        if kind == "SelfComposedDpEvent" and sampling_prob == 1.0:
            self.add(event.event, count * int(event.count))
        elif kind == "ComposedDpEvent" and sampling_prob == 1.0:
            for inner in event.events:
                self.add(inner, count)
        elif kind == "PoissonSampledDpEvent" and sampling_prob == 1.0:
            if event.sampling_probability > 0.0:
                self.add(event.event, count, float(event.sampling_probability))
        elif kind == "NonPrivateDpEvent":
            self.private = False
        elif kind in ("GaussianDpEvent", "LaplaceDpEvent"):
            self._add_noise(kind, float(event.noise_multiplier), count, sampling_prob)
        elif kind == "EpsilonDeltaDpEvent":
            epsilon, delta = float(event.epsilon), float(event.delta)
            self._add_bounded(epsilon, delta, largest_tv(epsilon, delta), count, sampling_prob)
        elif kind == "ApproxTvDpEvent":
            self._add_bounded(float(event.epsilon), float(event.delta), float(event.tv), count, sampling_prob)
        elif kind == "BoundedRangeDpEvent":
            self._add_range(float(event.epsilon), count, sampling_prob)
        elif kind != "NoOpDpEvent":
            # One sample seen by several mechanisms is not several samples: the list cannot be unrolled.
            raise PrivacyError(
                f"cannot account for a {kind} inside a PoissonSampledDpEvent: sample each mechanism afresh"
            )

    def _add_noise(self, kind: str, noise_multiplier: float, count: int, sampling_prob: float) -> None:
        z = noise_multiplier / 2 if self.doubled else noise_multiplier
        if math.isinf(z):
            return
        if z < 1e-150:  # 1 / z**2 is no longer a number, and the guarantee none either
            self.private = False
        elif kind == "LaplaceDpEvent" and sampling_prob < 1.0 and self.doubled:
            epsilon = 1 / noise_multiplier
            self._add_bounded(epsilon, 0.0, -math.expm1(-epsilon / 2), count, sampling_prob)
        elif kind == "LaplaceDpEvent":
            self.atoms[LaplaceAtom(most_noise(z, sampling_prob), sampling_prob)] += count
        elif sampling_prob == 1.0:
            self.mu_squared += count * (1 / z) ** 2
        elif self.doubled:
            self.atoms[ReplacedGaussianAtom(most_noise(noise_multiplier, sampling_prob), sampling_prob)] += (
                count
            )
        else:
            self.atoms[GaussianAtom(most_noise(z, sampling_prob), sampling_prob)] += count

    def _add_range(self, epsilon: float, count: int, sampling_prob: float) -> None:
        if sampling_prob < 1.0:
            self._add_bounded(epsilon, 0.0, math.tanh(epsilon / 4), count, sampling_prob)
        elif epsilon > 0.0:
            self.atoms[BoundedRangeAtom(2 * epsilon if self.doubled else epsilon)] += count

    def _add_bounded(self, epsilon: float, delta: float, tv: float, count: int, sampling_prob: float) -> None:
        # Ghazi and Issa 2024, Proposition 1
        epsilon, delta, tv = amplified(epsilon, sampling_prob), sampling_prob * delta, sampling_prob * tv
        if self.doubled:
            delta = min(1.0, (1 + math.exp(min(epsilon, 700.0))) * delta)
            epsilon, tv = 2 * epsilon, 2 * tv
        if delta == 1.0:
            self.private = False
            return
        # An (epsilon, delta)-DP mechanism of smaller total variation is (epsilon, tv)-DP as well.
        tv = min(tv, largest_tv(epsilon, delta))
        delta = min(delta, tv)
        if tv > 0.0:
            self.atoms[ApproxTvAtom(epsilon, delta, tv)] += count


# ------------------------------------------------------------------------------------------------
# Numerical composition by privacy-loss distributions (PLDs).
#
# Koskela, Jälkö and Honkela 2020, "Computing tight differential privacy guarantees using FFT". The PLD
# library of dp_accounting composes. The results are read in one pass over the grid. Its ``PLDAccountant`` is
# not used because it has a fixed grid and no (epsilon, delta) events.

#: Deltas below this are lost in the rounding of the FFT (about 1e-16 a point) and in dp_accounting's
#: truncation of tails (1e-15 a composition), so no claim is made there.
DELTA_FLOOR = 1e-12
#: The coarsest grid used where accuracy asks for no finer one.
_INTERVAL = 2.0**-13
#: Relative excess of the variance of the loss that the grid may cause.
_EXCESS = 5e-4
#: Most points of the grid for the composed loss and for one mechanism.
_COMPOSED_POINTS, _SINGLE_POINTS = 2**21, 2**18
#: A loss that needs a grid coarser than this is no guarantee: epsilon is then in the hundreds of thousands.
_LARGEST_INTERVAL = 1.0
#: Largest loss of which a finite statement is made, and the most points of a trade-off curve.
_LARGEST_LOSS, _CURVE_POINTS = 600.0, 2**14


#: Unit of rounding, and units per doubling of the length by which a Fourier transform may err (one complex
#: product with a rounded factor, and one sum: Brent, Percival and Zimmermann 2007, "Error bounds on complex
#: floating-point multiplication").
_UNIT, _PER_DOUBLING = 2.0**-53, 4.25
#: Longest stretch of the loss over which weights e^loss are summed without rescaling.
_STRETCH = 200.0


def loss_of(form: NormalForm, coarseness: float = 1.0) -> GaussianLoss | NumericLoss | NoPrivacy:
    """Return the composed privacy loss of a normal form.

    ``coarseness`` is 1 for the answer that is reported. Larger values are quicker and more pessimistic.
    """
    if not form.private:
        return NoPrivacy()
    if not form.atoms:
        return GaussianLoss(form.mu)
    if form.mu > 1e100:
        return NoPrivacy()
    interval = grid_interval(form, coarseness)
    if interval > _LARGEST_INTERVAL or any(700 < atom.pure_epsilon < math.inf for atom, _ in form.atoms):
        return NoPrivacy()
    return NumericLoss(form, interval)


def grid_interval(form: NormalForm, coarseness: float = 1.0) -> float:
    """Choose the grid spacing, a power of two, for a normal form that has atoms.

    Connecting the dots adds at most about ``interval**2 / 6`` to the variance of each application's loss.
    Rounding an (epsilon, delta) event up to the grid adds on average ``epsilon interval``. Both are kept
    below a small part of the variance of the whole. The grid is coarsened again if it would be too long.
    """
    sizes = [(atom.size(), count) for atom, count in _all_atoms(form)]
    variance = sum(count * size.std**2 for size, count in sizes)
    interval = _INTERVAL
    if variance > 0.0:
        interval = min(interval, math.sqrt(6 * _EXCESS * variance / sum(count for _, count in sizes)))
        rounded = sum(2 * size.std * count for size, count in sizes if size.rounded)
        if rounded > 0.0:
            interval = min(interval, 4 * _EXCESS * variance / rounded)
    reach = sum(count * size.mean + 20 * math.sqrt(count) * size.std + size.width for size, count in sizes)
    longest = max(size.width for size, _ in sizes)
    interval = max(interval * coarseness, reach / _COMPOSED_POINTS, longest / _SINGLE_POINTS, 2.0**-60)
    return 2.0 ** math.floor(math.log2(interval))


class NumericLoss:
    """The composed loss of atoms that have no closed form.

    ``interval`` is the grid spacing, a power of two, so all grid points are exact.
    """

    def __init__(self, form: NormalForm, interval: float) -> None:
        self._interval = interval
        self._tails = _tails(form, interval)
        exact = [(atom.pure_epsilon, atom.pure_delta, count) for atom, count in form.atoms]
        # Basic composition: a bounded loss stays bounded, which the FFT's floor would hide at small deltas.
        self._pure_epsilon = math.inf if form.mu else sum(epsilon * count for epsilon, _, count in exact)
        # Naive composition of total variation: no delta exceeds it, however coarse the grid.
        overlap = sum(count * math.log1p(-min(atom.tv, 1 - 1e-16)) for atom, count in _all_atoms(form))
        self._tv_bound = max(DELTA_FLOOR, -math.expm1(overlap) * (1 + 1e-12))
        survival = sum(count * math.log1p(-delta) for _, delta, count in exact)
        self._pure_delta = max(0.0, -math.expm1(survival))
        stepped = any(isinstance(atom, LaplaceAtom) for atom, _ in form.atoms)
        splits = sum(n for a, n in _all_atoms(form) if not isinstance(a, ApproxTvAtom)) if stepped else 0
        self._slack, self._slack_factor = _slack(splits)

    def delta(self, epsilon: float) -> float:
        """Smallest delta at ``epsilon`` (at least 0), at least :data:`DELTA_FLOOR` unless exactly known."""
        return self.deltas([epsilon])[0]

    def deltas(self, epsilons: list[float]) -> list[float]:
        """:meth:`delta` at each of a list of epsilons: the larger of presence and absence."""
        points = np.asarray(epsilons, dtype=float)
        values = np.max([tail.deltas(points) for tail in self._tails], axis=0)
        values = np.clip(values, DELTA_FLOOR, min(1.0, self._tv_bound))
        bounded = points >= self._pure_epsilon
        return [float(v) for v in np.where(bounded, np.minimum(values, self._pure_delta), values)]

    def epsilon(self, delta: float) -> float:
        """Smallest epsilon at ``delta``, infinite below :data:`DELTA_FLOOR` unless exactly known."""
        if delta >= self._tv_bound:
            return 0.0
        bound = self._pure_epsilon if delta >= self._pure_delta else math.inf
        if delta < DELTA_FLOOR:
            return bound
        return min(bound, max(tail.epsilon(delta) for tail in self._tails))

    def exceedance(self, epsilon: float) -> float:
        """Probability that the loss exceeds ``epsilon``, for the worse of presence and absence.

        Epsilon is rounded down to the grid, and further by :func:`_slack`. The grid's loss has the right
        divergences up to its (upward) error. So for losses with a density this is accurate to that error, and
        not a one-sided bound.
        """
        if epsilon >= self._pure_epsilon:
            return self._pure_delta
        start = epsilon - self._slack * self._interval
        value = self._slack_factor * max(tail.exceedance(start) for tail in self._tails)
        value = max(DELTA_FLOOR, value)
        # (1 - e^{-epsilon}) P(L > epsilon) is at most delta(0), the total variation.
        return min(1.0, value, self._tv_bound / max(-math.expm1(-epsilon), 1e-300))

    def quantile(self, probability: float) -> float:
        """Smallest level, at least 0, that the loss exceeds with at most this probability."""
        bound = self._pure_epsilon if probability >= self._pure_delta else math.inf
        if probability < DELTA_FLOOR:
            return bound
        level = max(tail.quantile(probability / self._slack_factor) for tail in self._tails)
        return min(bound, level + self._slack * self._interval)

    def grid(self) -> np.ndarray:
        """Losses from 0 upward, on the grid, until almost nothing lies beyond."""
        reach = self._pure_epsilon
        floor = DELTA_FLOOR
        while math.isinf(reach) and floor < 1.0:  # an infinite loss may have a probability of its own
            reach, floor = self.epsilon(floor), 100 * floor
        points = math.ceil(min(reach, _LARGEST_LOSS) / self._interval) + 1
        stride = math.ceil(points / _CURVE_POINTS)
        return np.arange(0, points + stride, stride) * self._interval


def _slack(count: int) -> tuple[int, float]:
    """By how many grid points, and by what factor, atoms of the loss may exceed what the grid shows.

    The grid splits a loss that lies between two points among them, keeping the mean of e^{-loss}. So the
    grid's loss is at least the true one on average (Jensen). Its ``count`` splits are submartingale
    differences within one cell each. By Azuma and Hoeffding it falls behind by more than t cells with a
    probability of at most ``exp(-2 t^2 / count)``, for any true loss. This matters if the loss has atoms off
    the grid, as with Laplace noise. A loss whose density hardly changes within a cell loses on one side of a
    point what it gains on the other.
    """
    if count <= 4:
        return count, 1.0
    cells = math.ceil(math.sqrt(5 * count))
    return cells, 1 / -math.expm1(-2 * cells**2 / count)


def _all_atoms(form: NormalForm) -> tuple[tuple[Atom, int], ...]:
    joint: tuple[tuple[Atom, int], ...] = ((GaussianAtom(1 / form.mu), 1),) if form.mu else ()
    return joint + form.atoms


@functools.lru_cache(maxsize=32)
def _repeated(atom: Atom, count: int, interval: float) -> PrivacyLossDistribution:
    with np.errstate(all="ignore"):  # dp_accounting takes logarithms of probabilities that may be 0
        pld = atom.pld(interval)
        return pld if count == 1 else pld.self_compose(count)


@functools.lru_cache(maxsize=8)
def _composed(form: NormalForm, interval: float) -> PrivacyLossDistribution:
    plds = [_repeated(atom, count, interval) for atom, count in _all_atoms(form)]
    return functools.reduce(lambda one, other: one.compose(other), plds)


@functools.lru_cache(maxsize=8)
def _tails(form: NormalForm, interval: float) -> tuple[Tail, ...]:
    """The tails of presence and absence, or one if they are the same."""
    pld = _composed(form, interval)
    present = Tail(pld._pmf_remove, interval, _rounding(form, interval, "_pmf_remove"))
    if pld._pmf_add is pld._pmf_remove:
        return (present,)
    return present, Tail(pld._pmf_add, interval, _rounding(form, interval, "_pmf_add"))


class Tail:
    """The upper tail of a privacy loss on a grid.

    ``rounding`` is what every divergence may be too low by. It counts as mass at infinity.
    """

    def __init__(self, pmf: PLDPmf, interval: float, rounding: float = 0.0) -> None:
        dense = pmf.to_dense_pmf()  # which gives no public access to its numbers
        self.interval = interval
        self.lower = int(dense._lower_loss)
        self.infinite = float(dense._infinity_mass) + rounding
        # Sums of n terms that are not negative, and what is read off them, err by less than 2 n units.
        mass = np.asarray(dense._probs, dtype=float)
        self._mass = mass * (1 + _UNIT * (2 * mass.size + 1000))
        if not np.isfinite(self._mass).all():  # rounding has eaten the distribution: claim nothing
            self.infinite, self._mass = 1.0, np.zeros(self._mass.size)

    @cached_property
    def beyond(self) -> np.ndarray:
        """Probability of a finite loss beyond each point and the one before the first, shape (n + 1,)."""
        return np.append(np.cumsum(self._mass[::-1])[::-1], 0.0)

    @cached_property
    def excess(self) -> np.ndarray:
        """Divergence less its infinite part at each point and the one before the first, shape (n + 1,).

        With A the tails and C the divergences, ``C_i = (1 - e^{-h}) A_i + e^{-h} C_{i+1}``. This is a sum of
        positive terms, so small values keep their digits.
        """
        step = self.interval
        inputs = -math.expm1(-step) * self.beyond[::-1]
        result = np.empty_like(inputs)
        length = max(1, int(_STRETCH / step))
        before = 0.0
        for start in range(0, inputs.size, length):
            part = inputs[start : start + length]
            growth = np.exp(step * np.arange(1, part.size + 1))
            result[start : start + length] = (before + np.cumsum(part * growth)) / growth
            before = float(result[start + part.size - 1])
        return result[::-1]

    def deltas(self, epsilons: np.ndarray) -> np.ndarray:
        """Hockey-stick divergence at each of an array of epsilons of any order."""
        points = np.asarray(epsilons, dtype=float) / self.interval
        # the last grid point at or below epsilon; index 0 is the point in front of the grid
        index = np.clip(np.floor(points) - self.lower + 1, 0, self._mass.size)
        index = np.where(np.isfinite(index), index, self._mass.size).astype(int)
        ahead = np.where(index < self._mass.size, (points - (index + self.lower - 1)) * self.interval, 0.0)
        # sum over the tail of p (1 - e^{epsilon - loss}), epsilon being ``ahead`` of the grid point
        value = self.excess[index] * np.exp(ahead) - self.beyond[index] * np.expm1(ahead)
        return self.infinite + np.maximum(0.0, value)

    def epsilon(self, delta: float) -> float:
        """Smallest epsilon, at least 0, whose divergence is at most ``delta``, infinite if there is none."""
        if self.infinite > delta:
            return math.inf
        fits = np.flatnonzero(self.infinite + self.excess <= delta)
        first = int(fits[0])
        if first == 0:
            return 0.0
        # between two grid points the divergence is linear in e^epsilon
        tail, excess = float(self.beyond[first - 1]), float(self.excess[first - 1])
        ahead = math.log((self.infinite + tail - delta) / (tail - excess))
        return max(0.0, (first - 1 + self.lower - 1) * self.interval + max(0.0, ahead))

    def exceedance(self, epsilon: float) -> float:
        """Probability of a loss beyond the last grid point at or below ``epsilon``."""
        index = math.floor(epsilon / self.interval) - self.lower + 1
        return self.infinite + float(self.beyond[min(max(index, 0), self._mass.size)])

    def quantile(self, probability: float) -> float:
        """Smallest grid point, at least 0, that the loss exceeds with at most this probability."""
        if self.infinite > probability:
            return math.inf
        first = int(np.flatnonzero(self.infinite + self.beyond <= probability)[0])
        return max(0.0, (first + self.lower - 1) * self.interval)


def _rounding(form: NormalForm, interval: float, side: str) -> float:
    """Bound, to first order, what rounding may take from any divergence of a composed loss.

    Divergences of one application are right to a few units, times the largest loss: they are a difference of
    exponentials of it. Replacing one distribution after the other, n applications err by at most n times as
    much. A Fourier transform over N points moves each of its values by at most ``c log2 N`` units if the
    masses sum to 1. The power n of the transform X then errs by ``n |X|^(n - 1)`` times that, and by 7 n + 80
    units of its own. Parseval turns the root of the sum of squares into that of the masses. Cauchy and
    Schwarz bound a sum over N masses. A product of two transforms errs at most as that of the wider loss.
    """
    from scipy import fft

    of_divergences, of_masses = 0.0, 0.0
    norms: list[float] = []
    size = len(getattr(_composed(form, interval), side).to_dense_pmf()._probs)
    for atom, count in _all_atoms(form):
        single = getattr(_repeated(atom, 1, interval), side).to_dense_pmf()
        masses = getattr(_repeated(atom, count, interval), side).to_dense_pmf()._probs
        points = len(single._probs)
        largest = interval * max(-single._lower_loss, single._lower_loss + points)
        # dp_accounting takes Laplace noise's masses from second differences, each of which rounds
        drift = 4 * points if isinstance(atom, LaplaceAtom) else 0
        of_divergences += count * (16 + 8 * largest + drift)
        norms.append(float(np.linalg.norm(masses)))
        if count > 1:
            length = fft.next_fast_len(max(len(masses), points))
            size, per_value = max(size, length), _PER_DOUBLING * math.log2(length)
            powers = np.abs(fft.rfft(single._probs, length)) ** (count - 1)
            power = float(np.linalg.norm(powers)) * math.sqrt(2 / length)
            of_masses += count * per_value * power + (7 * count + 80 + per_value) * norms[-1]
    for narrowest in np.minimum.accumulate(norms)[1:].tolist():
        of_masses += 3 * _PER_DOUBLING * math.log2(2 * size) * narrowest
    return _UNIT * (of_divergences + math.sqrt(size) * of_masses)


class NoPrivacy:
    """The loss of a statistic without a guarantee."""

    def delta(self, epsilon: float) -> float:
        """Always 1."""
        return 1.0

    def epsilon(self, delta: float) -> float:
        """Infinite, but for ``delta`` = 1."""
        return 0.0 if delta == 1.0 else math.inf

    def deltas(self, epsilons: list[float]) -> list[float]:
        """Always 1."""
        return [1.0] * len(epsilons)

    def exceedance(self, epsilon: float) -> float:
        """Always 1."""
        return 1.0

    def quantile(self, probability: float) -> float:
        """Infinite, but for a probability of 1."""
        return 0.0 if probability == 1.0 else math.inf

    def grid(self) -> np.ndarray:
        """A single point."""
        return np.zeros(1)


# ------------------------------------------------------------------------------------------------
# Privacy measures of any mechanism with a given epsilon, delta and total variation.
#
# The noise of a ledger's stage may depend on the outputs of an earlier stage. It then has no privacy-loss
# distribution fixed beforehand. Its epsilon, delta and total variation were fixed, and stages add up.
#
# - Epsilon and delta: by basic composition, even if a stage is chosen after seeing earlier outputs (Dwork
#   and Roth 2014, Theorem B.1). The parameters may be chosen so too, if their sum is kept below a bound. See
#   Rogers, Roth, Ullman and Vadhan 2016, "Privacy odometers and filters", section 3.
# - Total variation: run both tables side by side. Draw each stage's output from a maximal coupling, as long
#   as all outputs so far were equal. At stage s the runs first differ with a probability of at most tv_s,
#   whatever came before. So all outputs together differ with a probability of at most the sum.
#
# With y = e^epsilon, delta is a convex, non-increasing function h of y (Dong, Roth and Su 2019, Proposition
# 2.12). From h(1) <= tv and h(e^epsilon) <= delta it lies below the chord between them, and below delta
# beyond.


@dataclass(frozen=True)
class PromisedLoss:
    """The largest loss of mechanisms that are (epsilon, delta)-DP with a total variation of at most ``tv``.

    Make it with :func:`promised_loss`.

    Examples
    --------
    >>> loss = promised_loss(1.0, 1e-5, 0.25)
    >>> loss.delta(0.0), loss.delta(1.0), loss.epsilon(1e-5), loss.epsilon(1e-6)
    (0.25, 1e-05, 1.0, inf)
    """

    epsilon_promised: float
    delta_promised: float
    tv: float

    def delta(self, epsilon: float) -> float:
        """Smallest delta that follows at ``epsilon`` (at least 0)."""
        return self.deltas([epsilon])[0]

    def deltas(self, epsilons: list[float]) -> list[float]:
        """:meth:`delta` at each of a list of epsilons."""
        size = np.minimum(np.asarray(epsilons, dtype=float), self.epsilon_promised)
        # the share of the way in y = e^epsilon from 1 to e^promised
        way: float | np.ndarray = 1.0
        if self.epsilon_promised > 0.0:
            way = np.exp(size - self.epsilon_promised) * np.expm1(-size) / np.expm1(-self.epsilon_promised)
        values = self.delta_promised * way + self.tv * (1 - way)
        values += 1e-15 * self.tv * ((way > 0.0) & (way < 1.0))  # rounding; both ends are exact
        return [float(value) for value in np.broadcast_to(values, size.shape)]

    def epsilon(self, delta: float) -> float:
        """Smallest epsilon that follows at ``delta``, infinite below the promised delta."""
        if delta >= self.tv:
            return 0.0
        if delta <= self.delta_promised * (1 + 1e-12):
            return self.epsilon_promised if delta >= self.delta_promised * (1 - 1e-12) else math.inf
        way = (self.tv - delta) / (self.tv - self.delta_promised)
        # log(1 + way (e^promised - 1)), rounded up
        last = self.epsilon_promised
        value = last + math.log(way * -math.expm1(-last) + math.exp(-last))
        return min(last, max(0.0, value) * (1 + 1e-12) + 1e-15)

    def exceedance(self, epsilon: float) -> float:
        """Bound on the probability that the loss exceeds ``epsilon``.

        ``P(L > epsilon) (1 - e^{e - epsilon}) <= delta(e)`` for every e below epsilon. On the chord the bound
        is best at one of its ends.
        """
        bounds = [1.0]
        for start, delta in ((0.0, self.tv), (self.epsilon_promised, self.delta_promised)):
            if epsilon > start:
                bounds.append(delta / -math.expm1(start - epsilon))
        return min(bounds)

    def quantile(self, probability: float) -> float:
        """Smallest level, at least 0, that is exceeded with at most this probability."""
        levels = [math.inf if probability < 1.0 else 0.0]
        for start, delta in ((0.0, self.tv), (self.epsilon_promised, self.delta_promised)):
            if probability > delta:
                levels.append(start - math.log1p(-delta / probability))
        return min(levels)

    def grid(self) -> np.ndarray:
        """Losses from 0 to the promised epsilon, at most 600."""
        return np.linspace(0.0, min(self.epsilon_promised, 600.0), 513)


def promised_loss(epsilon: float, delta: float, tv: float) -> PromisedLoss | None:
    """The loss, with ``tv`` no larger than epsilon and delta allow, or None if nothing is promised."""
    if math.isinf(epsilon) or delta >= 1.0:
        return None
    return PromisedLoss(epsilon, delta, max(delta, min(tv, largest_tv(epsilon, delta))))


# ------------------------------------------------------------------------------------------------
# Trade-off curves: the smallest false negative rate of any test at each false positive rate.
#
# Dong, Roth and Su 2019, "Gaussian differential privacy", Proposition 2.12: a curve is the envelope of the
# lines ``fnr = 1 - delta(epsilon) - e^epsilon fpr``. Kulynych, Gomez, Kaissis, du Pin Calmon and Troncoso
# 2024, "Attack-aware noise calibration for differential privacy", section 3, read it off privacy-loss
# distributions.
#
# ``delta`` is a convex function of ``y = e^epsilon``, so it lies below the lower convex hull of any upper
# bounds of it. A curve built from that hull is never above the true one. It errs on the private side, even
# with few points.

#: More than the sums and products below move a vertex off its line, each of terms of at most 1.
_ROUNDING = 2e-15


@dataclass(frozen=True)
class TradeOff:
    """A convex, decreasing trade-off curve through vertices, ``fpr`` ascending."""

    fpr: np.ndarray
    fnr: np.ndarray

    def __call__(self, fpr: float | np.ndarray) -> float | np.ndarray:
        """Smallest false negative rate at one false positive rate or an array of them."""
        value = np.interp(fpr, self.fpr, self.fnr)
        return value if np.ndim(fpr) else float(value)

    def mu(self, smallest_fpr: float) -> float:
        """Smallest mu whose Gaussian trade-off curve lies nowhere above this one.

        Between vertices the convex Gaussian curve lies below its chord, so the vertices decide. Those with an
        error rate below ``smallest_fpr`` are left out.
        """
        from scipy.special import ndtri

        if float(self(smallest_fpr)) < smallest_fpr:
            return float("inf")
        # the ends of what is looked at are vertices of that part of the curve
        end = float(np.interp(-smallest_fpr, -self.fnr, self.fpr))
        seen = (self.fpr > smallest_fpr) & (self.fpr < end)
        fpr = np.concatenate([[smallest_fpr], self.fpr[seen], [end]])
        # Definition 2.6: G_mu(fpr) = Phi(Phi^{-1}(1 - fpr) - mu)
        # quantiles of rates from 1e-9 on, below 6, are right to a few units
        return max(0.0, float(np.max(-ndtri(fpr) - ndtri(self(fpr)))) + 1e-14)


def from_deltas(epsilons: np.ndarray, deltas: np.ndarray) -> TradeOff:
    """Build the curve from upper bounds ``deltas`` at ascending ``epsilons``, both of shape (n,).

    Epsilons are at least 0 and below 700. Each pair holds with the two tables exchanged as well, so the
    result is its own inverse.
    """
    y, bound = np.exp(epsilons), np.minimum.accumulate(np.clip(deltas + _ROUNDING, 0.0, 1.0))
    apart = np.append(True, np.diff(y) > 0)  # epsilons may differ by less than the numbers next to 1
    y, bound = _lower_hull(y[apart], bound[apart])
    # On a stretch of the hull, delta = (1 - fnr) - y fpr; beyond the last point it is constant.
    fpr = np.append(np.diff(bound) / -np.diff(y), 0.0)
    fnr = 1 - bound - y * fpr
    fpr, fnr = fpr[::-1], fnr[::-1]
    # What holds with the tables exchanged holds for (fnr, fpr): reflect the curve where it meets the
    # diagonal. The first line goes on to fnr = 0; its slope is -1 where the first epsilon is 0.
    fpr, fnr = np.append(fpr, (1 - bound[0]) / y[0]), np.append(fnr, 0.0)
    fpr, fnr = _until_diagonal(fpr, fnr)
    fpr, fnr = np.append(fpr, fnr[::-1]), np.append(fnr, fpr[::-1])
    fpr, fnr = np.clip(fpr, 0.0, 1.0), np.clip(fnr, 0.0, 1.0)
    fpr, fnr = np.maximum.accumulate(np.append(fpr, 1.0)), np.minimum.accumulate(np.append(fnr, 0.0))
    first = np.flatnonzero(np.diff(np.append(-1.0, fpr)) > 0)
    # of several vertices at one rate, the lowest counts
    last = np.append(first[1:], fpr.size) - 1
    return TradeOff(fpr[first], fnr[last])


def _until_diagonal(fpr: np.ndarray, fnr: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Vertices as long as ``fnr`` is at least ``fpr``, and the point where it crosses it."""
    above = fnr - fpr
    kept = int(np.argmax(above < 0.0)) if np.any(above < 0.0) else fnr.size
    if kept in (0, fnr.size):
        return fpr, fnr
    share = above[kept - 1] / (above[kept - 1] - above[kept])
    crossing = [(1 - share) * rate[kept - 1] + share * rate[kept] for rate in (fpr, fnr)]
    return np.append(fpr[:kept], crossing[0]), np.append(fnr[:kept], crossing[1])


def _lower_hull(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Lower convex hull of points with ascending ``x`` (Andrew's monotone chain)."""
    kept: list[tuple[float, float]] = []
    for point in zip(x.tolist(), y.tolist(), strict=True):
        while len(kept) > 1:
            (x0, y0), (x1, y1) = kept[-2], kept[-1]
            if (y1 - y0) * (point[0] - x1) < (point[1] - y1) * (x1 - x0):
                break
            kept.pop()
        kept.append(point)
    hull = np.asarray(kept)
    return hull[:, 0], hull[:, 1]
