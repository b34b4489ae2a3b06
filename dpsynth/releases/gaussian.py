"""The Gaussian mechanism on counts: the one place where a table's noise is drawn.

Balle and Wang 2018, "Improving the Gaussian mechanism for differential privacy": noise of standard deviation
``noise_multiplier * sensitivity`` on every number of a query. The event names the multiplier, the noise is
the multiplier times the sensitivity. Both come from this object and cannot disagree. Exact sums are whole
numbers of a public step, in any order of the records. So is their noise (`dpsynth.mechanism.noise`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, repeat
from operator import itemgetter
from typing import TYPE_CHECKING, ClassVar, Generic, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from dpsynth.accounting.contents import Stage
from dpsynth.accounting.events import gaussian_event, non_private_event
from dpsynth.accounting.normal_form import ADD_REMOVE
from dpsynth.errors import ConfigError, PrivacyError
from dpsynth.mechanism.noise import with_noise
from dpsynth.releases.records import Records

if TYPE_CHECKING:
    from dp_accounting.dp_event import DpEvent

Array = NDArray[np.float64]
Ints = NDArray[np.int64]
Released = TypeVar("Released", covariant=True)
Given = TypeVar("Given")


@dataclass(frozen=True, kw_only=True)
class Adaptive(Generic[Given]):
    """A release whose query is made of earlier noisy statistics, and given with :meth:`at`."""

    read_with: Given | None = None

    def at(self, given: Given) -> Self:
        """The same release with this query, at the same cost."""
        return replace(self, read_with=given)

    @property
    def given(self) -> Given:
        """The earlier noisy statistics that the query is made of."""
        if self.read_with is None:
            raise PrivacyError(
                f"{type(self).__name__} is read with earlier noisy statistics: give them with at()"
            )
        return self.read_with


@dataclass(frozen=True, kw_only=True)
class GaussianRelease(ABC, Generic[Released]):
    """Counts of private records with Gaussian noise, and their post-processing.

    ``noise_multiplier``: noise standard deviation over L2 sensitivity. None releases exact counts: **not
        private**.
    """

    noise_multiplier: float | None
    stage: Stage | None = None
    #: One record more or less.
    adjacency: ClassVar[str] = ADD_REMOVE

    def __post_init__(self) -> None:
        z = self.noise_multiplier
        if z is not None and not (np.isfinite(z) and z > 0):
            raise ConfigError(f"noise_multiplier is {z}, but must be greater than 0, or None")

    @property
    @abstractmethod
    def name(self) -> str:
        """Name of the noisy statistic, for the ledger."""

    @property
    @abstractmethod
    def l2_sensitivity(self) -> float:
        """How far one record more or less can move all counts together, as a vector."""

    @property
    @abstractmethod
    def sensitivity(self) -> str:
        """The same in words, for the ledger."""

    @property
    def detail(self) -> str:
        """Anything a reader of the ledger needs besides."""
        return ""

    @property
    def event(self) -> DpEvent:
        """Its cost."""
        if self.noise_multiplier is None:
            return non_private_event()
        return gaussian_event(self.noise_multiplier)

    @property
    def noise_std(self) -> float:
        """Standard deviation of the noise on every count, 0 without noise."""
        return 0.0 if self.noise_multiplier is None else self.noise_multiplier * self.l2_sensitivity

    @property
    def weights(self) -> Iterable[float]:
        """Factor of each array of the query in the sensitivity."""
        return repeat(1.0)

    @property
    def steps(self) -> Iterable[float]:
        """Value of 1 in each array of the query, a power of two."""
        return repeat(1.0)

    @abstractmethod
    def query(self, records: Records) -> Sequence[Ints]:
        """Exact sums in steps: a private quantity, never to be shown."""

    @abstractmethod
    def finish(self, noisy: Sequence[Array]) -> Released:
        """Result made of the noisy counts: post-processing."""

    def measure(self, records: Records, rng: np.random.Generator) -> list[Array]:
        """The counts with noise of their own on each."""
        arrays = zip(self.query(records), self.steps, self.weights, strict=False)
        return [
            noisy
            for (step, weight), alike in groupby(arrays, itemgetter(1, 2))
            for noisy in with_noise([exact for exact, *_ in alike], step, self.noise_std / weight, rng)
        ]

    def __call__(self, records: Records, rng: np.random.Generator) -> Released:
        """Read the records. A ledger calls it when the reading is posted."""
        return self.finish(self.measure(records, rng))
