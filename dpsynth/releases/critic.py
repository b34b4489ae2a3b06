"""The critic's steps: Poisson samples, gradients of a bounded critic, Gaussian noise shaped to the bounds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Generic, TypeVar

import numpy as np
import pandas as pd

from dpsynth.accounting.contents import Stage
from dpsynth.accounting.normal_form import ADD_REMOVE
from dpsynth.mechanism.plan import Plan
from dpsynth.releases.records import Records

if TYPE_CHECKING:
    from dp_accounting.dp_event import DpEvent

Trained = TypeVar("Trained", covariant=True)


@dataclass(frozen=True, kw_only=True)
class CriticRelease(Generic[Trained]):
    """A training run under a plan (Pedersen 2022, Algorithm 1).

    The plan joins sampler, noise and event; the sensitivity of each step is proved from the critic's weights
    while it runs (`dpsynth.model.wgan.sensitivity`), and the step's noise is the plan's multiplier times
    that.

    Parameters
    ----------
    plan : Plan
    sensitivity : str
        Of a step, in words.
    train : callable
        ``train(records, plan, rng)`` makes the plan's steps on records in memory.
    stage : Stage, optional
    """

    plan: Plan
    sensitivity: str
    train: Callable[[pd.DataFrame, Plan, np.random.Generator], Trained]
    stage: Stage | None = None
    name: ClassVar[str] = "critic steps"
    adjacency: ClassVar[str] = ADD_REMOVE

    @property
    def detail(self) -> str:
        """The sampling, for the ledger."""
        return f"{self.plan.steps} Poisson-sampled steps, q = {self.plan.sampling_prob:.6g}"

    @property
    def event(self) -> DpEvent:
        """What the whole run costs, whether or not it ends early."""
        return self.plan.event

    def __call__(self, records: Records, rng: np.random.Generator) -> Trained:
        """Train; a ledger calls it when the steps are posted."""
        return self.train(records.frame(), self.plan, rng)
