"""Divide a run's total (epsilon, delta) among its releases.

`plan_releases` fixes the noise of all releases before they read a record. The composed privacy-loss
distribution (PLD) of their events ends at, and never above, the target. Shares are fractions of the target's
squared Gaussian-DP parameter mu^2, which adds up over Gaussian releases (Dong, Roth and Su 2022, corollary
3.3). They are starting points. The final noise is solved on the PLD.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self, TypeVar

from pydantic import model_validator

from dpsynth.accounting.calibration import EpsilonTarget, PromiseTarget, Target, calibrate
from dpsynth.accounting.contents import Stage
from dpsynth.accounting.conversions import tv_of_mu
from dpsynth.accounting.gaussian import analytic_sigma
from dpsynth.accounting.pld import DELTA_FLOOR
from dpsynth.errors import InputError, PrivacyError
from dpsynth.files.options import options_record
from dpsynth.mechanism.plan import Plan
from dpsynth.model.base_model.network import BaseModelReleases
from dpsynth.model.study_samples.study_releases import StudyReleases
from dpsynth.releases.marginals import MarginalsRelease
from dpsynth.releases.neighbour_histogram import NeighbourHistogramRelease
from dpsynth.releases.pairwise_statistics import PairwiseStatisticsRelease
from dpsynth.releases.structure import Kind
from dpsynth.releases.visits import VisitsRelease
from dpsynth.studies.study import Study
from dpsynth.table.patients import PatientSchema
from dpsynth.table.schema import Schema

if TYPE_CHECKING:
    from dp_accounting.dp_event import DpEvent

Made = TypeVar("Made")

#: Promised total variation as a multiple of that of Gaussian noise: the choice of edges has a little more.
_ALLOWANCE = 1.002


@options_record
class Shares:
    """Fractions of mu^2. Training receives the rest.

    Parameters
    ----------
    count : float
        Fraction of epsilon and of delta (not of mu^2), for the number of records if it is not public.
    marginals, selection, tables, pairwise_statistics, neighbour_histogram : float
        For single-column counts, the choice of the base model's edges, its tables, the pairwise statistics,
        and the nearest-neighbour histogram.
    studies : float
        For all pre-specified regressions together, in equal parts. The others and training share the rest.
    visits : float
        For the tables of rows, where patients have several rows. The others share the rest.

    Raises
    ------
    InputError
        If one lies outside (0, 1), or all but ``studies`` and ``neighbour_histogram`` leave nothing for
        training.
    """

    count: float = 0.02
    marginals: float = 0.2
    selection: float = 0.05
    tables: float = 0.6
    pairwise_statistics: float = 0.1
    neighbour_histogram: float = 0.1
    studies: float = 0.3
    visits: float = 0.3

    @model_validator(mode="after")
    def _leave_something(self) -> Self:
        for name, share in vars(self).items():
            if not 0 < share < 1:
                raise ValueError(f"shares.{name} must be greater than 0 and less than 1, got {share:g}")
        if self.total >= 1:
            raise ValueError(f"shares must add to less than 1, got {self.total:g}")
        return self

    @property
    def total(self) -> float:
        """Sum of all but studies and the nearest-neighbour histogram."""
        return self.count + self.marginals + self.selection + self.tables + self.pairwise_statistics

    @classmethod
    def from_dict(cls, values: dict[str, float]) -> Self:
        """Read shares from plain values (YAML, JSON), or raise InputError for an unknown name."""
        if not isinstance(values, dict):
            raise InputError(f"shares must be a mapping of names to numbers, got {values!r:.80}")
        return cls(**values)


@dataclass(frozen=True)
class Needs:
    """The releases of a run before their noise is chosen: public values only.

    Parameters
    ----------
    n, n_std : float
        Public or privately counted number of records, and the standard deviation of its noise (0 if public).
    base_model : {"tree", "tan"}, optional
        None: no base model.
    plan : Plan, optional
        Plan of the critic steps, before their noise is chosen. None: no steps.
    pairwise_statistics, neighbour_histogram : bool
        Whether these are released, which requires a base model.
    visits : PatientSchema, optional
        The patients' rows, of which tables are released too.
    """

    schema: Schema
    n: float
    base_model: Kind | None
    plan: Plan | None
    pairwise_statistics: bool = False
    neighbour_histogram: bool = False
    studies: tuple[Study, ...] = ()
    n_std: float = 0.0
    visits: PatientSchema | None = None

    def releases(
        self, noise: Mapping[str, float], selection: float | None = None, *, stage: Stage | None = None
    ) -> Releases:
        """All releases with these multipliers and this epsilon of each choice, and the plan unchanged.

        A release without a multiplier has no noise. ``noise["study"]`` is the multiplier of one Gaussian
        mechanism of a study's cost.
        """

        def noisy(made: Callable[..., Made], name: str, **public: Any) -> Made:
            return made(noise_multiplier=noise.get(name), stage=stage, **public)

        schema, kind, plan = self.schema, self.base_model, BaseModelReleases.plan
        base_model = pairs = histogram = None
        marginals = noisy(MarginalsRelease, "marginals", schema=schema, n=self.n, n_std=self.n_std)
        if kind is not None:
            base_model = noisy(plan, "tables", schema=schema, kind=kind, epsilon=selection)
        if self.pairwise_statistics:
            pairs = noisy(PairwiseStatisticsRelease, "pairwise_statistics")
        if self.neighbour_histogram:
            histogram = noisy(NeighbourHistogramRelease, "neighbour_histogram")
        studies = tuple(
            noisy(StudyReleases.plan, "study", study=study.label, survival=study.is_survival)
            for study in self.studies
        )
        visits = None
        if self.visits is not None:
            visits = VisitsRelease(noise_multiplier=noise.get("visits"), stage=stage, schema=self.visits)
        return Releases(marginals, base_model, pairs, histogram, self.plan, stage, studies, visits)


@dataclass(frozen=True)
class Releases:
    """All noisy statistics of a run, with their noise, fixed before the first reading.

    ``plan`` is that of the critic steps, ``stage`` the part of the ledger that the releases make up.
    """

    marginals: MarginalsRelease
    base_model: BaseModelReleases | None
    pairwise_statistics: PairwiseStatisticsRelease | None
    neighbour_histogram: NeighbourHistogramRelease | None
    plan: Plan | None
    stage: Stage | None = None
    studies: tuple[StudyReleases, ...] = ()
    visits: VisitsRelease | None = None

    @property
    def events(self) -> list[DpEvent]:
        """Events of all releases, which hold their cost."""
        return [*self.fixed_events, *([self.plan.event] if self.plan is not None else [])]

    @property
    def fixed_events(self) -> list[DpEvent]:
        """Events of all releases but the critic steps."""
        events = [self.marginals.event]
        events += [] if self.base_model is None else self.base_model.events
        events += [] if self.pairwise_statistics is None else [self.pairwise_statistics.event]
        events += [] if self.neighbour_histogram is None else [self.neighbour_histogram.event]
        events += [] if self.visits is None else [self.visits.event]
        return [*events, *(event for study in self.studies for event in study.events)]


#: the critic's steps among the parts of `divided`
STEPS = "WGAN critic steps"


def divided(needs: Needs, shares: Shares) -> dict[str, float]:
    """Fractions of mu^2 of each statistic, by its name in `Needs.releases`, with sum 1.

    ``study`` is the part of one study of several.

    >>> from dpsynth.table import Column
    >>> schema = Schema(columns=(Column(name="age", kind="integer", lower=18, upper=99),))
    >>> needs = Needs(schema, 4000.0, base_model="tree", plan=None)
    >>> {name: round(share, 3) for name, share in divided(needs, Shares()).items()}
    {'marginals': 0.235, 'selection': 0.059, 'tables': 0.706}
    """
    parts = {"marginals": shares.marginals}
    if needs.base_model is not None:
        parts |= {"selection": shares.selection, "tables": shares.tables}
    if needs.pairwise_statistics:
        parts |= {"pairwise_statistics": shares.pairwise_statistics}
    if needs.neighbour_histogram:
        parts |= {"neighbour_histogram": shares.neighbour_histogram}
    if needs.plan is not None:
        parts |= {STEPS: 1.0 - sum(parts.values())}
    total = sum(parts.values())  # without steps, the parts share everything
    left = 1.0 - bool(needs.studies) * shares.studies - bool(needs.visits) * shares.visits
    parts = {name: left * share / total for name, share in parts.items()}
    if needs.visits:
        parts["visits"] = shares.visits
    return parts | ({"study": shares.studies / len(needs.studies)} if needs.studies else {})


def plan_releases(
    needs: Needs, *, epsilon: float, delta: float, shares: Shares, counted: bool = False
) -> Releases:
    """All releases of a run, with noise for a total cost of at most (epsilon, delta).

    The mu for which mu-Gaussian-DP has exactly this (epsilon, delta) is divided by squares (Dong, Roth and Su
    2022, corollary 2.13). Its inverse is the least noise of Balle and Wang (2018). Raises PrivacyError if the
    budget is too small.

    Parameters
    ----------
    counted : bool
        Whether ``needs`` come from a private count, which chose releases and noise. Epsilon, delta and a
        total variation computed from these two then bound the run for every count. The stage promises them.
    """
    if delta < DELTA_FLOOR:
        raise PrivacyError(
            f"delta {delta:.3g} is smaller than the accounting can resolve ({DELTA_FLOOR:g}). "
            "Give a larger one"
        )
    mu = 1 / analytic_sigma(epsilon, delta)
    plan = needs.plan
    parts = divided(needs, shares)
    parts.pop(STEPS, None)

    def with_noise(scale: float, stage: Stage | None = None) -> Releases:
        multiplier = {name: scale / (mu * math.sqrt(share)) for name, share in parts.items()}
        picks = max(len(needs.schema) - 1, 1)
        # An exponential mechanism has a loss of variance eps^2 / 3, which is mu^2 in the Gaussian limit.
        selection = math.sqrt(3.0 / picks) / multiplier["selection"] if "selection" in parts else None
        return needs.releases(multiplier, selection, stage=stage)

    target: Target = EpsilonTarget(epsilon, delta)
    stage = Stage.begin(delta)
    if counted:
        tv = min(_ALLOWANCE * tv_of_mu(mu), 1.0)
        stage = Stage.begin(delta, epsilon=epsilon, tv=tv)
        target = PromiseTarget(epsilon, delta, tv) if tv < 1.0 else target
    if plan is None:
        scale = calibrate(
            # what is left when these releases carry no information is nothing
            lambda s: [] if math.isinf(s) else with_noise(s).fixed_events,
            target,
        )
        return with_noise(scale, stage)
    fixed = with_noise(1.0).fixed_events
    z = calibrate(lambda s: [*fixed, *_steps(plan, s)], target)
    return replace(with_noise(1.0, stage), plan=replace(plan, noise_multiplier=z))


def _steps(plan: Plan, multiplier: float) -> Sequence[DpEvent]:
    """Event of the critic steps, or none for infinite noise."""
    return () if math.isinf(multiplier) else (replace(plan, noise_multiplier=multiplier).event,)
