"""The critic's steps: Poisson samples, gradients of a bounded critic, Gaussian noise shaped to the bounds.

A `Transcript` is the view of an adversary with all records but one. It is for audits and attacks only. It
holds sums over real records without noise. It is as secret as the records, and no model or report keeps one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from dpsynth.accounting.contents import Stage
from dpsynth.accounting.normal_form import ADD_REMOVE
from dpsynth.errors import InputError
from dpsynth.mechanism.plan import Plan
from dpsynth.releases.records import Records

if TYPE_CHECKING:
    from dp_accounting.dp_event import DpEvent


Trained = TypeVar("Trained", covariant=True)


@dataclass(frozen=True, kw_only=True)
class CriticRelease(Generic[Trained]):
    """A training run under a plan (Pedersen 2022, Algorithm 1).

    The plan joins sampler, noise and event. The sensitivity of each step is proved from the critic's weights
    while it runs (`dpsynth.model.wgan.sensitivity`). The step's noise is the plan's multiplier times it.

    ``sensitivity``: of a step, in words.
    ``train``: ``train(records, plan, rng)`` makes the plan's steps.
    """

    plan: Plan
    sensitivity: str
    train: Callable[[Records, Plan, np.random.Generator], Trained]
    stage: Stage | None = None
    name: ClassVar[str] = "WGAN critic steps"
    adjacency: ClassVar[str] = ADD_REMOVE

    @property
    def detail(self) -> str:
        """The sampling, for the ledger."""
        if self.plan.sampling_prob == 1.0:
            return f"{self.plan.steps} steps, each with every record"
        return f"{self.plan.steps} Poisson-sampled steps, q = {self.plan.sampling_prob:.6g}"

    @property
    def event(self) -> DpEvent:
        """Cost of the whole run, whether or not it ends early."""
        return self.plan.event

    def __call__(self, records: Records, rng: np.random.Generator) -> Trained:
        """Train. A ledger calls it when the steps are posted."""
        return self.train(records, self.plan, rng)


Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Transcript:
    """A training run of T steps that each release P numbers, seen by an adversary.

    Table D holds one record that D' lacks or replaces. Each step takes that record with probability
    ``sampling_prob``. The adversary sees which others were taken. Under D the numbers of step t are normal
    with standard deviations ``stds[t]``. Their mean is ``others[t] + records[0, t]`` if the record was taken,
    else ``others[t]``. Under D' the same holds with ``records[1]``.

    ``others``: their means without the differing record.
    ``records``: contribution of the differing record if taken, under D and under D', zeros if there is none.
    ``stds``: of the noise, greater than 0.
    ``sampling_prob``: q in (0, 1].

    Examples
    --------
    >>> zeros = np.zeros((3, 1))
    >>> Transcript(zeros + 0.9, zeros, np.stack([zeros + 1, zeros]), zeros + 2.0, 1.0).steps
    3
    """

    released: Floats
    others: Floats
    records: Floats
    stds: Floats
    sampling_prob: float

    def __post_init__(self) -> None:
        shape = np.shape(self.released)
        for name, expected in (("others", shape), ("records", (2, *shape)), ("stds", shape)):
            if len(shape) != 2 or np.shape(getattr(self, name)) != expected:
                raise InputError(f"{name} must have shape {expected}, got {np.shape(getattr(self, name))}")
        for name in ("released", "others", "records", "stds"):
            if not np.isfinite(getattr(self, name)).all():
                raise InputError(f"{name} must be finite")
        if not (np.asarray(self.stds) > 0.0).all():
            raise InputError("stds must be greater than 0: without noise there is nothing to infer")
        if not 0.0 < self.sampling_prob <= 1.0:
            raise InputError(f"sampling_prob must be in (0, 1], got {self.sampling_prob!r}")

    @property
    def steps(self) -> int:
        """T."""
        return len(self.released)
