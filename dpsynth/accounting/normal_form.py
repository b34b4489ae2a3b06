"""Normal form of a list of events: joint Gaussian noise, and counts of the mechanisms that are left.

Composition does not depend on order. So a tree of events is a bag of atoms, each with a count. Unsampled
Gaussians merge into one (:mod:`dpsynth.accounting.gaussian`).

Events hold numbers under add/remove one record. Under replace-one, one record is removed and another added.
Events then mean the following.

- Gaussian and Laplace noise on all records: twice the sensitivity, so half the noise multiplier.
- Gaussian noise on a Poisson sample: the pair of mixtures of
  :class:`~dpsynth.accounting.atoms.ReplacedGaussianAtom`, the worst case. The switch REPLACE_ONE of
  dp_accounting 0.4.3 is not used: it returns the add/remove figure without a warning.
- Exponential mechanisms: a range of twice the length. On a Poisson sample only their epsilon and total
  variation are used, under either adjacency.
- Mechanisms with known (epsilon, delta), and perhaps total variation, and Laplace noise on a Poisson sample.
  The two tables are neighbours of one that lacks both records. So the sampled mechanism is (2 epsilon,
  (1 + e^epsilon) delta)-DP with twice the total variation (Dwork and Roth 2014, Theorem 2.2 with delta). This
  is valid, though not the smallest.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dpsynth.accounting.atoms import (
    ApproxTvAtom,
    Atom,
    BoundedRangeAtom,
    GaussianAtom,
    LaplaceAtom,
    ReplacedGaussianAtom,
    most_noise,
)
from dpsynth.accounting.conversions import amplified, largest_tv
from dpsynth.accounting.events import check_event, kind_of
from dpsynth.checks import one_of
from dpsynth.errors import InputError, PrivacyError

if TYPE_CHECKING:
    from dp_accounting.dp_event import DpEvent

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
    >>> from dpsynth.accounting.events import gaussian_event
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
