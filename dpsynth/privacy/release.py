"""A noisy statistic: what is read, its sensitivity, its noise and its event, in one frozen object."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from itertools import groupby, islice, repeat
from operator import itemgetter
from typing import TYPE_CHECKING, ClassVar, Generic, Literal, Protocol, Self, TypeVar, get_args

import numpy as np
from numpy.typing import NDArray

from dpsynth.checks import in_range, inside, one_of, whole
from dpsynth.errors import ConfigError, InputError, PrivacyError
from dpsynth.files.codec import record
from dpsynth.privacy.events import (
    exponential_mechanism_event,
    gaussian_event,
    non_private_event,
    training_event,
)
from dpsynth.privacy.exponential_mechanism import check_epsilon
from dpsynth.privacy.loss import ADD_REMOVE
from dpsynth.privacy.noise import with_noise
from dpsynth.privacy.records import Records
from dpsynth.privacy.stages import Stage

if TYPE_CHECKING:
    from dp_accounting.dp_event import DpEvent


# ------------------------------------------------------------------------------------------------
# What a ledger runs: one object that names its cost and reads the records.

Released = TypeVar("Released", covariant=True)


class Lockable(Protocol):
    """Private records that a release can read only while they are opened."""

    def opened(self) -> AbstractContextManager[None]:
        """Let them be read."""


Read = TypeVar("Read", bound=Lockable, contravariant=True)


class Release(Protocol[Read, Released]):
    """A noisy statistic of private records: its cost, and how it is computed, in one object."""

    @property
    def name(self) -> str:
        """Name of the statistic."""

    @property
    def sensitivity(self) -> str:
        """How far one record can move the query, in words."""

    @property
    def adjacency(self) -> str:
        """Neighbouring tables."""

    @property
    def detail(self) -> str:
        """Anything else a reader of the ledger needs."""

    @property
    def stage(self) -> Stage | None:
        """Stage of statistics whose noise was fixed together, or None for the ledger's last one."""

    @property
    def event(self) -> DpEvent:
        """Its cost."""

    def __call__(self, records: Read, rng: np.random.Generator) -> Released:
        """Read the records and add the noise."""


# ------------------------------------------------------------------------------------------------
# The Gaussian mechanism on counts: the one place where a table's noise is drawn.
#
# Balle and Wang 2018, "Improving the Gaussian mechanism for differential privacy": noise of standard
# deviation ``noise_multiplier * sensitivity`` on every number of a query. The event names the multiplier,
# the noise is the multiplier times the sensitivity. Both come from this object and cannot disagree. Exact
# sums are whole numbers of a public step, in any order of the records. So is their noise
# (`dpsynth.privacy.noise`).

Array = NDArray[np.float64]
Ints = NDArray[np.int64]
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
class ChoiceRelease(Adaptive[Given], ABC):
    """Choices by exponential mechanisms, on scores that one record more or less moves by 1 at most.

    ``epsilon``: cost of each choice. None takes the best: **not private**.
    """

    epsilon: float | None
    stage: Stage | None = None
    #: One record more or less.
    adjacency: ClassVar[str] = ADD_REMOVE
    detail: ClassVar[str] = ""

    def __post_init__(self) -> None:
        check_epsilon(self.epsilon)

    @property
    @abstractmethod
    def choices(self) -> int:
        """Number of exponential mechanisms."""

    @property
    def sensitivity(self) -> str:
        """In words, for the ledger."""
        if self.epsilon is None:
            return "not private: no noise"
        return f"1 a score, {self.choices} exponential mechanisms"

    @property
    def event(self) -> DpEvent:
        """Cost of all choices."""
        if self.epsilon is None:
            return non_private_event()
        return exponential_mechanism_event(self.epsilon, count=self.choices)


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
        exact = list(self.query(records))
        steps, weights = (list(islice(each, len(exact))) for each in (self.steps, self.weights))
        arrays = zip(exact, steps, weights, strict=True)
        return [
            noisy
            for (step, weight), alike in groupby(arrays, itemgetter(1, 2))
            for noisy in with_noise([exact for exact, *_ in alike], step, self.noise_std / weight, rng)
        ]

    def __call__(self, records: Records, rng: np.random.Generator) -> Released:
        """Read the records. A ledger calls it when the reading is posted."""
        return self.finish(self.measure(records, rng))


# ------------------------------------------------------------------------------------------------
# The number of records, where it is not public.


@dataclass(frozen=True, kw_only=True)
class CountRelease(GaussianRelease[float]):
    """The number of records, whole and at least 1, with sensitivity 1 under add/remove.

    ``detail``: what of the budget it takes, for the ledger.

    Examples
    --------
    >>> import pandas as pd
    >>> from dpsynth.privacy import Ledger
    >>> from dpsynth.privacy.records import FrameRecords
    >>> records = FrameRecords(pd.DataFrame({"a": [1, 2, 3]}))
    >>> Ledger().run(CountRelease(noise_multiplier=None), records, np.random.default_rng(0))
    3.0
    """

    detail: str = ""
    name = "number of records"
    l2_sensitivity = 1.0
    sensitivity = "1"

    def query(self, records: Records) -> Sequence[Ints]:
        """The exact number, shape ()."""
        return [np.array(records.size(), dtype=np.int64)]

    def finish(self, noisy: Sequence[Array]) -> float:
        """A number of records that can be: whole and at least 1."""
        return max(1.0, float(np.rint(noisy[0])))


# ------------------------------------------------------------------------------------------------
# One frozen object that joins sampler, sensitivity, noise and the event that describes them.
#
# A training run reads its sampling probability, noise and number of steps from the plan. The ledger posts
# the plan's event. The two therefore cannot disagree. No TensorFlow is loaded.

NoiseShape = Literal["spherical", "layerwise", "proportional", "optimal"]
#: The noise shapes by name, explained in `dpsynth.wgan.theorems`.
NOISE_SHAPES: tuple[str, ...] = get_args(NoiseShape)


@record
@dataclass(frozen=True)
class Plan:
    """Sampling, noise and cost of the private steps of one training run.

    Each step takes every record independently with probability ``sampling_prob``. It releases
    ``sum_i (g_i - c) + expected_batch * c + noise_multiplier * std * N(0, 1)``. Centre and std come from
    `dpsynth.wgan.theorems.allocate`. In units of the stds, one record's contribution has norm at most
    1. Adding ``expected_batch * c`` back is post-processing because it is public.

    Parameters
    ----------
    sampling_prob : float
        q in (0, 1].
    expected_batch : float
        Public B = q * n with the public or privately counted n, never with the length of the table.
    steps : int
        Number of noisy sums T, at least 1.
    noise_multiplier : float or None
        z > 0: noise std over the sensitivity to adding or removing one record. None adds no noise, and the
        event then says that nothing is private.
    noise_shape : {"spherical", "layerwise", "proportional", "optimal"}
        See `dpsynth.wgan.theorems`.

    Raises
    ------
    ConfigError
        If a field is out of range. The message names it and its value.

    Examples
    --------
    >>> plan = Plan(sampling_prob=0.05, expected_batch=100.0, steps=500, noise_multiplier=2.0)
    >>> plan.event.count, plan.event.event.event
    (500, GaussianDpEvent(noise_multiplier=2.0))
    """

    sampling_prob: float
    expected_batch: float
    steps: int
    noise_multiplier: float | None
    noise_shape: NoiseShape = "optimal"

    def __post_init__(self) -> None:
        try:
            checked: dict[str, float] = {
                "sampling_prob": in_range("sampling_prob", self.sampling_prob, 0.0, 1.0, low_open=True),
                "expected_batch": inside("expected_batch", self.expected_batch, 0.0, math.inf),
                "steps": whole("steps", self.steps),
            }
            if self.noise_multiplier is not None:
                checked["noise_multiplier"] = inside("noise_multiplier", self.noise_multiplier, 0.0, math.inf)
            one_of("noise_shape", self.noise_shape, NOISE_SHAPES)
        except InputError as problem:
            raise ConfigError(f"{problem}") from None
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    @property
    def event(self) -> DpEvent:
        """Cost of the whole run, for the ledger."""
        if self.noise_multiplier is None:
            return non_private_event()
        return training_event(self.noise_multiplier, self.sampling_prob, self.steps)


# ------------------------------------------------------------------------------------------------
# The critic's steps: Poisson samples, gradients of a bounded critic, Gaussian noise shaped to the bounds.

Trained = TypeVar("Trained", covariant=True)


@dataclass(frozen=True, kw_only=True)
class CriticRelease(Generic[Trained]):
    """A training run under a plan (Pedersen 2022, Algorithm 1).

    The plan joins sampler, noise and event. The sensitivity of each step is proved from the critic's weights
    while it runs (`dpsynth.wgan.algorithm`). The step's noise is the plan's multiplier times it.

    ``sensitivity``: of a step, in words.
    ``train``: ``train(records, plan, rng)`` makes the plan's steps.
    ``resumed``: whether ``train`` goes on from an unfinished state, as `Ledger.resume` demands.
    ``may_stop``: whether it may stop before the last step, by a rule on noisy statistics alone.
    """

    plan: Plan
    sensitivity: str
    train: Callable[[Records, Plan, np.random.Generator], Trained]
    stage: Stage | None = None
    resumed: bool = False
    may_stop: bool = False
    name: ClassVar[str] = "WGAN critic steps"
    adjacency: ClassVar[str] = ADD_REMOVE

    @property
    def detail(self) -> str:
        """The sampling, for the ledger."""
        rule = ", fewer if noisy statistics say so, at the cost of all" if self.may_stop else ""
        if self.plan.sampling_prob == 1.0:
            return f"{self.plan.steps} steps, each with every {{record}}{rule}"
        return f"{self.plan.steps} Poisson-sampled steps, q = {self.plan.sampling_prob:.6g}{rule}"

    @property
    def event(self) -> DpEvent:
        """Cost of the whole run, whether or not it ends early."""
        return self.plan.event

    def __call__(self, records: Records, rng: np.random.Generator) -> Trained:
        """Train. A ledger calls it when the steps are posted."""
        return self.train(records, self.plan, rng)
