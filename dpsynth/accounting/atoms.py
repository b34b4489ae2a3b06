"""Normal form of a list of events: joint Gaussian noise, and counts of the mechanisms that are left.

Composition does not depend on order, so a tree of events is a bag of *atoms*, each with a count. Unsampled
Gaussians merge into one (see :mod:`dpsynth.accounting.gaussian`). Each atom knows its privacy-loss
distribution (PLD) and the size of its privacy loss, from which the grid of the PLD is chosen.

Replace-one adjacency (one record removed and one added) is read as twice the sensitivity: noise
multipliers are halved, and an (epsilon, delta)-DP mechanism is (2 epsilon, (1 + e^epsilon) delta)-DP (Dwork
and Roth 2014, Theorem 2.2 with delta). Poisson sampling is refused there: after a replacement the two
samples can differ by one record or by two, and doubling the sensitivity inside the sampling is not shown to
be the worst case. dp_accounting 0.4.3 returns the add/remove figure under REPLACE_ONE without a word, so
its switch is not used.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from dpsynth.accounting.events import check_event, kind_of
from dpsynth.errors import InputError, PrivacyError

if TYPE_CHECKING:
    from dp_accounting.dp_event import DpEvent

ADD_REMOVE = "add/remove"
REPLACE_ONE = "replace-one"
ADJACENCIES = (ADD_REMOVE, REPLACE_ONE)


def check_adjacency(adjacency: str) -> str:
    """Return ``adjacency`` if it is one of :data:`ADJACENCIES`, else raise InputError."""
    if adjacency not in ADJACENCIES:
        raise InputError(f"adjacency must be one of {', '.join(ADJACENCIES)}, not {adjacency!r}")
    return adjacency


@dataclass(frozen=True)
class LossSize:
    """Size of one application's privacy loss: its mean, its std, and the width of its support.

    ``rounded`` says that the grid moves the loss up to its next point instead of splitting it between two.
    """

    mean: float
    std: float
    width: float
    rounded: bool = False


class Atom(Hashable, Protocol):
    """A mechanism that can be composed numerically."""

    @property
    def pure_epsilon(self) -> float:
        """Largest finite loss; infinite if there is none."""

    @property
    def pure_delta(self) -> float:
        """Probability of an infinite loss."""

    def size(self) -> LossSize:
        """Approximate size of the privacy loss."""

    def pld(self, interval: float) -> Any:
        """Pessimistic PLD of one application on the grid of multiples of ``interval``."""


@dataclass(frozen=True, order=True)
class GaussianAtom:
    """Gaussian noise of ``noise_multiplier`` on a Poisson sample (all records if ``sampling_prob`` is 1)."""

    noise_multiplier: float
    sampling_prob: float = 1.0
    pure_epsilon = math.inf
    pure_delta = 0.0

    def size(self) -> LossSize:
        """Moments by quadrature of the loss that a record's presence causes (Mironov, Talwar and Zhang 2019).

        It is log(1 - q + q exp((2x - 1) / (2 z^2))) under (1 - q) N(0, z^2) + q N(1, z^2).
        """
        z, q = self.noise_multiplier, self.sampling_prob
        if q == 1.0:
            return LossSize(mean=0.5 / z**2, std=1 / z, width=20 / z)
        t = np.linspace(-10.0, 10.0, 801)
        weight = np.exp(-(t**2) / 2)
        weight /= weight.sum()
        x = np.concatenate([z * t, 1 + z * t])
        weight = np.concatenate([(1 - q) * weight, q * weight])
        loss = np.logaddexp(math.log1p(-q), math.log(q) + (2 * x - 1) / (2 * z**2))
        mean = float(weight @ loss)
        return LossSize(mean, math.sqrt(max(0.0, float(weight @ (loss - mean) ** 2))), float(np.ptp(loss)))

    def pld(self, interval: float) -> Any:
        """See :class:`Atom`."""
        from dp_accounting.pld import privacy_loss_distribution

        return privacy_loss_distribution.from_gaussian_mechanism(
            self.noise_multiplier,
            sampling_prob=self.sampling_prob,
            value_discretization_interval=interval,
        )


@dataclass(frozen=True, order=True)
class LaplaceAtom:
    """Laplace noise of ``noise_multiplier`` on a Poisson sample (all records if ``sampling_prob`` is 1)."""

    noise_multiplier: float
    sampling_prob: float = 1.0
    pure_delta = 0.0

    @property
    def pure_epsilon(self) -> float:
        """See :class:`Atom`."""
        return amplified(1 / self.noise_multiplier, self.sampling_prob)

    def size(self) -> LossSize:
        """See :class:`Atom`."""
        largest = self.pure_epsilon
        return LossSize(largest * math.tanh(largest / 2), min(largest, self.sampling_prob), 2 * largest)

    def pld(self, interval: float) -> Any:
        """See :class:`Atom`."""
        from dp_accounting.pld import privacy_loss_distribution

        return privacy_loss_distribution.from_laplace_mechanism(
            self.noise_multiplier,
            sampling_prob=self.sampling_prob,
            value_discretization_interval=interval,
        )


@dataclass(frozen=True, order=True)
class EpsilonDeltaAtom:
    """The worst (epsilon, delta)-DP mechanism (Kairouz, Oh and Viswanath 2015, section 3)."""

    pure_epsilon: float
    pure_delta: float

    def size(self) -> LossSize:
        """See :class:`Atom`."""
        largest = self.pure_epsilon
        return LossSize(largest * math.tanh(largest / 2), largest, 2 * largest, rounded=True)

    def pld(self, interval: float) -> Any:
        """PLD with epsilon rounded up to the grid first, so that -epsilon lies on it and is not rounded."""
        from dp_accounting.pld import common, privacy_loss_distribution

        on_grid = math.ceil(self.pure_epsilon / interval) * interval
        return privacy_loss_distribution.from_privacy_parameters(
            common.DifferentialPrivacyParameters(on_grid, self.pure_delta),
            value_discretization_interval=interval,
        )


@dataclass(frozen=True)
class NormalForm:
    """A bag of atoms and the joint ``mu`` of the unsampled Gaussians; ``private`` is False if all is lost."""

    mu: float
    atoms: tuple[tuple[Atom, int], ...]
    private: bool


def amplified(epsilon: float, sampling_prob: float) -> float:
    """Epsilon of an epsilon-DP mechanism on a Poisson sample: log(1 + q (e^epsilon - 1)).

    Balle, Barthe and Gaboardi 2018, "Privacy amplification by subsampling", Theorem 8; delta becomes
    ``sampling_prob * delta``.

    Examples
    --------
    >>> round(amplified(1.0, 0.1), 6)
    0.158565
    """
    if sampling_prob == 1.0:
        return epsilon
    if epsilon > 700.0:
        return epsilon + math.log(sampling_prob) + 1e-12
    return math.log1p(sampling_prob * math.expm1(epsilon))


def normal_form(events: Iterable[DpEvent], adjacency: str = ADD_REMOVE) -> NormalForm:
    """Collect events into a :class:`NormalForm`.

    Raises
    ------
    PrivacyError
        If an event is unknown, or is not accounted for under this adjacency.
    InputError
        If a number in an event is out of range or NaN.

    Examples
    --------
    >>> from dpsynth.accounting.events import gaussian_event
    >>> normal_form([gaussian_event(1.0, count=3), gaussian_event(1.0)])
    NormalForm(mu=2.0, atoms=(), private=True)
    """
    bag = _Bag(doubled=check_adjacency(adjacency) == REPLACE_ONE)
    for event in events:
        check_event(event)
        bag.add(event, 1)
    atoms = sorted(bag.atoms.items(), key=lambda item: (type(item[0]).__name__, item[0]))
    return NormalForm(math.sqrt(bag.mu_squared), tuple(atoms), bag.private)


class _Bag:
    def __init__(self, doubled: bool) -> None:
        self.doubled = doubled
        self.mu_squared = 0.0
        self.atoms: Counter[Any] = Counter()
        self.private = True

    def add(self, event: DpEvent, count: int, sampling_prob: float = 1.0) -> None:
        kind = kind_of(event)
        if kind == "SelfComposedDpEvent" and sampling_prob == 1.0:
            self.add(event.event, count * int(event.count))
        elif kind == "ComposedDpEvent" and sampling_prob == 1.0:
            for inner in event.events:
                self.add(inner, count)
        elif kind == "PoissonSampledDpEvent" and sampling_prob == 1.0:
            self._add_sampled(event, count)
        elif kind == "NonPrivateDpEvent":
            self.private = False
        elif kind in ("GaussianDpEvent", "LaplaceDpEvent"):
            self._add_noise(kind, float(event.noise_multiplier), count, sampling_prob)
        elif kind == "EpsilonDeltaDpEvent":
            self._add_epsilon_delta(float(event.epsilon), float(event.delta), count, sampling_prob)
        elif kind != "NoOpDpEvent":
            # One sample seen by several mechanisms is not several samples: the list cannot be unrolled.
            raise PrivacyError(
                f"cannot account for a {kind} inside a PoissonSampledDpEvent: sample each release afresh"
            )

    def _add_sampled(self, event: DpEvent, count: int) -> None:
        sampling_prob = float(event.sampling_probability)
        if self.doubled and 0.0 < sampling_prob < 1.0:
            raise PrivacyError(
                "PoissonSampledDpEvent has no accounting under replace-one adjacency: "
                "use add/remove adjacency, or no sampling"
            )
        if sampling_prob > 0.0:
            self.add(event.event, count, sampling_prob)

    def _add_noise(self, kind: str, noise_multiplier: float, count: int, sampling_prob: float) -> None:
        z = noise_multiplier / 2 if self.doubled else noise_multiplier
        if math.isinf(z):
            return
        if z < 1e-150:  # 1 / z**2 is no longer a number, and the guarantee none either
            self.private = False
        elif kind == "LaplaceDpEvent":
            self.atoms[LaplaceAtom(z, sampling_prob)] += count
        elif sampling_prob < 1.0:
            self.atoms[GaussianAtom(z, sampling_prob)] += count
        else:
            self.mu_squared += count / z**2

    def _add_epsilon_delta(self, epsilon: float, delta: float, count: int, sampling_prob: float) -> None:
        if self.doubled:
            delta = min(1.0, (1 + math.exp(min(epsilon, 700.0))) * delta)
            epsilon *= 2
        epsilon, delta = amplified(epsilon, sampling_prob), sampling_prob * delta
        if delta == 1.0:
            self.private = False
        elif epsilon > 0.0 or delta > 0.0:
            self.atoms[EpsilonDeltaAtom(epsilon, delta)] += count
