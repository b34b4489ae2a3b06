"""How a run's total (epsilon, delta) is shared among its releases.

`plan_releases` makes every release of a run, noise and all, before a record is read, so that the composed
privacy-loss distribution of their events ends at, and never above, the target. Shares are fractions of the
squared Gaussian-DP parameter mu^2 that the target corresponds to, which adds up over Gaussian releases
(Dong, Roth and Su 2022, corollary 3.3); they are starting points, the final number is solved on the PLD.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

from pydantic import model_validator

from dpsynth.accounting.calibration import EpsilonTarget, PromiseTarget, Target, calibrate
from dpsynth.accounting.contents import Stage
from dpsynth.accounting.events import gaussian_event
from dpsynth.accounting.gaussian import analytic_sigma
from dpsynth.accounting.pld import DELTA_FLOOR
from dpsynth.accounting.profile import Profile
from dpsynth.errors import InputError, PrivacyError
from dpsynth.files.options import options_record
from dpsynth.mechanism.plan import Plan
from dpsynth.model.base_model.network import PriorReleases
from dpsynth.model.study_samples.study_releases import StudyReleases
from dpsynth.releases.marginals import MarginalsRelease
from dpsynth.releases.moments import MomentsRelease
from dpsynth.releases.structure import Kind
from dpsynth.releases.votes import VotesRelease
from dpsynth.studies.study import Study
from dpsynth.table.schema import Schema

if TYPE_CHECKING:
    from dp_accounting.dp_event import DpEvent


@options_record
class Shares:
    """Fractions of mu^2; training receives what the others leave.

    Parameters
    ----------
    count : float
        Of epsilon and of delta (not of mu^2), for the number of records where it is not public.
    marginals, selection, tables, moments, votes : float
        For one-way marginals, the choice of the prior's edges, the prior's tables, the moments of all pairs
        of columns, and the votes for groups of draws.
    studies : float
        For all declared studies together, in equal parts; the others and training share what it leaves.

    Raises
    ------
    InputError
        If one lies outside (0, 1), or all but ``studies`` and ``votes`` leave nothing for training.
    """

    count: float = 0.02
    marginals: float = 0.2
    selection: float = 0.05
    tables: float = 0.6
    moments: float = 0.1
    votes: float = 0.1
    studies: float = 0.3

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
        """Of all but studies and votes."""
        return self.count + self.marginals + self.selection + self.tables + self.moments

    @property
    def with_votes(self) -> float:
        """Of all but studies; from 1 on nothing is left for critic steps beside votes."""
        return self.total + self.votes

    @classmethod
    def from_dict(cls, values: dict[str, float]) -> Self:
        """Shares from plain values (YAML, JSON); raise InputError for an unknown name."""
        if not isinstance(values, dict):
            raise InputError(f"shares must be a mapping of names to numbers, got {values!r:.80}")
        return cls(**values)


@dataclass(frozen=True)
class Needs:
    """What a run releases, before anything is said about noise: public values only.

    Parameters
    ----------
    schema : Schema
    n : float
        Public or privately counted number of records.
    marginals : bool
        Whether one-way marginals are released.
    prior : {"tree", "tan"}, optional
        None: no prior.
    plan : Plan, optional
        Of the critic's steps, its noise not yet chosen; None: no steps.
    moments, votes : bool
        Whether the moments of all pairs of columns, and votes for groups of draws, are bought, for which
        there must be a prior.
    studies : tuple of Study
        The declared studies.
    n_std : float
        Standard deviation of the noise of ``n``; 0 where it is public.
    """

    schema: Schema
    n: float
    marginals: bool
    prior: Kind | None
    plan: Plan | None
    moments: bool = False
    votes: bool = False
    studies: tuple[Study, ...] = ()
    n_std: float = 0.0

    def releases(
        self,
        marginals: float | None = None,
        tables: float | None = None,
        selection: float | None = None,
        moments: float | None = None,
        votes: float | None = None,
        study: float | None = None,
        *,
        stage: Stage | None = None,
    ) -> Releases:
        """All releases with these multipliers and this epsilon of each choice, and the plan as it is.

        ``study`` is the multiplier of one Gaussian mechanism that costs what a study does.
        """
        return Releases(
            MarginalsRelease(
                schema=self.schema,
                n=self.n,
                n_std=self.n_std,
                noise_multiplier=marginals,
                stage=stage,
            )
            if self.marginals
            else None,
            PriorReleases.plan(
                self.schema, self.prior, noise_multiplier=tables, epsilon=selection, stage=stage
            )
            if self.prior is not None
            else None,
            MomentsRelease(noise_multiplier=moments, stage=stage) if self.moments else None,
            VotesRelease(noise_multiplier=votes, stage=stage) if self.votes else None,
            self.plan,
            stage,
            tuple(
                StudyReleases.plan(
                    declared.label, noise_multiplier=study, stage=stage, survival=declared.is_survival
                )
                for declared in self.studies
            ),
        )


@dataclass(frozen=True)
class Releases:
    """What a run will read of the records, noise and all, fixed before the first reading.

    Parameters
    ----------
    marginals : MarginalsRelease or None
    prior : PriorReleases or None
    moments : MomentsRelease or None
    votes : VotesRelease or None
    plan : Plan or None
        Of the critic's steps.
    stage : Stage or None
        The stage of the ledger that they make up.
    studies : tuple of StudyReleases
    """

    marginals: MarginalsRelease | None
    prior: PriorReleases | None
    moments: MomentsRelease | None
    votes: VotesRelease | None
    plan: Plan | None
    stage: Stage | None = None
    studies: tuple[StudyReleases, ...] = ()

    @property
    def events(self) -> list[DpEvent]:
        """What they cost."""
        return [*self.fixed_events, *([self.plan.event] if self.plan is not None else [])]

    @property
    def fixed_events(self) -> list[DpEvent]:
        """What all but the critic's steps cost."""
        events = [] if self.marginals is None else [self.marginals.event]
        events += [] if self.prior is None else self.prior.events
        events += [] if self.moments is None else [self.moments.event]
        events += [] if self.votes is None else [self.votes.event]
        return [*events, *(event for study in self.studies for event in study.events)]


def plan_releases(
    needs: Needs, *, epsilon: float, delta: float, shares: Shares, counted: bool = False
) -> Releases:
    """All releases of a run, with noise so that together they cost at most (epsilon, delta).

    The mu for which mu-Gaussian-DP has exactly this (epsilon, delta) is shared out by squares (Dong, Roth and
    Su 2022, corollary 2.13; its inverse is the least noise of Balle and Wang 2018).

    Parameters
    ----------
    needs : Needs
    epsilon, delta : float
        Target for the whole run.
    shares : Shares
    counted : bool
        Whether a private count has chosen ``needs.n``. (epsilon, delta) then bounds the run for every count,
        but its total variation depends on it: noise is also held to the total variation of the same run with
        steps that are not sampled, which the count does not enter, and the stage promises all three.

    Raises
    ------
    PrivacyError
        If nothing would be released, or if the budget cannot pay for the run.
    """
    if delta < DELTA_FLOOR:
        raise PrivacyError(
            f"delta {delta:.3g} is smaller than the accounting can resolve ({DELTA_FLOOR:g}); "
            "give a larger one"
        )
    mu = 1 / analytic_sigma(epsilon, delta)
    parts = {"marginals": shares.marginals} if needs.marginals else {}
    if needs.prior is not None:
        parts |= {"selection": shares.selection, "tables": shares.tables}
    if needs.moments:
        parts |= {"moments": shares.moments}
    if needs.votes:
        parts |= {"votes": shares.votes}
    plan = needs.plan
    if not parts and plan is None:
        raise PrivacyError("nothing to release: training_steps is 0 and there is neither prior nor marginals")
    total = 1.0 if plan is not None else sum(parts.values())  # without steps, the parts share everything
    left = 1.0 - shares.studies if needs.studies else 1.0
    parts = {name: left * share / total for name, share in parts.items()}
    if needs.studies:
        parts["study"] = shares.studies / len(needs.studies)

    def with_noise(scale: float, stage: Stage | None = None) -> Releases:
        multiplier = {name: scale / (mu * math.sqrt(share)) for name, share in parts.items()}
        picks = max(len(needs.schema) - 1, 1)
        # An exponential mechanism has a loss of variance eps^2 / 3, which is mu^2 in the Gaussian limit.
        selection = math.sqrt(3.0 / picks) / multiplier["selection"] if "selection" in parts else None
        return needs.releases(
            multiplier.get("marginals"),
            multiplier.get("tables"),
            selection,
            multiplier.get("moments"),
            multiplier.get("votes"),
            multiplier.get("study"),
            stage=stage,
        )

    def stage(tv: float | None = None) -> Stage:
        # What holds whatever the count has said; without a count, the noise is fixed and says it itself.
        return Stage.begin(delta, epsilon=epsilon if counted else None, tv=tv)

    if plan is None:
        scale = calibrate(
            # what is left when these releases carry no information is nothing
            lambda s: [] if math.isinf(s) else with_noise(s).fixed_events,
            epsilon=epsilon,
            delta=delta,
        )
        return with_noise(scale, stage())
    fixed = with_noise(1.0).fixed_events
    target: Target = EpsilonTarget(epsilon, delta)
    tv = None
    if counted:
        z = calibrate(lambda s: [*fixed, gaussian_event(s, count=plan.steps)], target)
        # A little above, so that releases whose total variation is near 1 leave the steps something.
        tv = min(1.0, 1.00001 * Profile([*fixed, gaussian_event(z, count=plan.steps)]).tv())
        if tv < 1.0:
            target = PromiseTarget(epsilon, delta, tv)
    z = calibrate(lambda s: [*fixed, *_steps(plan, s)], target)
    return replace(with_noise(1.0, stage(tv)), plan=replace(plan, noise_multiplier=z))


def _steps(plan: Plan, multiplier: float) -> Sequence[DpEvent]:
    """Event of the critic's steps; none where infinite noise leaves them nothing to tell."""
    return () if math.isinf(multiplier) else (replace(plan, noise_multiplier=multiplier).event,)
