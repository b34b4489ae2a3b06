"""How a run's total (epsilon, delta) is shared among its releases.

Every release is described by the number that sets its noise; `plan_budget` picks them so that the composed
privacy-loss distribution of all of them ends at, and never above, the target. Shares are fractions of the
squared Gaussian-DP parameter mu^2 that the target corresponds to, which adds up over Gaussian releases
(Dong, Roth and Su 2022, corollary 3.3); they are starting points, the final number is solved on the PLD.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from dpsynth.accounting.calibration.gaussian_noise import analytic_sigma
from dpsynth.accounting.calibration.search import calibrate
from dpsynth.accounting.calibration.target import EpsilonTarget, PromiseTarget, Target
from dpsynth.accounting.events.events import gaussian_event, training_event
from dpsynth.accounting.loss.pld import DELTA_FLOOR
from dpsynth.accounting.profile import Profile
from dpsynth.errors import InputError, PrivacyError
from dpsynth.releases.marginals import marginals_event
from dpsynth.releases.prior import prior_events
from dpsynth.table.schema import Schema


@dataclass(frozen=True)
class Shares:
    """Fractions of mu^2; training receives what the others leave.

    Parameters
    ----------
    count : float
        Of epsilon and of delta (not of mu^2), for the number of records where it is not public.
    marginals, selection, tables : float
        For one-way marginals, the choice of the prior's edges, and the prior's tables.
    """

    count: float = 0.02
    marginals: float = 0.2
    selection: float = 0.05
    tables: float = 0.6

    def __post_init__(self) -> None:
        values = (self.count, self.marginals, self.selection, self.tables)
        if not all(0 < v < 1 for v in values) or sum(values) >= 1:
            raise PrivacyError(f"budget shares must lie in (0, 1) and add to less than 1, got {values}")

    @classmethod
    def from_dict(cls, values: dict[str, float]) -> Shares:
        """Shares from plain values (YAML, JSON); raise InputError for an unknown name."""
        try:
            return cls(**values)
        except TypeError:
            known = ", ".join(cls.__dataclass_fields__)
            raise InputError(f"shares must be a mapping of {known}, got {values!r}") from None


@dataclass(frozen=True)
class Budget:
    """Noise of every release of a run; None where a release does not happen or carries no noise.

    Parameters
    ----------
    marginals, tables, training : float or None
        Noise multipliers (std / L2 sensitivity).
    selection_epsilon : float or None
        Epsilon of each exponential mechanism that picks an edge of the prior.
    tv : float or None
        Bound on the total variation of all of them that holds whatever a private count has said.
    """

    marginals: float | None = None
    tables: float | None = None
    selection_epsilon: float | None = None
    training: float | None = None
    tv: float | None = None


def gaussian_mu(epsilon: float, delta: float) -> float:
    """The mu for which mu-Gaussian-DP has exactly this (epsilon, delta).

    References
    ----------
    Dong, Roth and Su (2022), corollary 2.13:
    ``delta = Phi(-eps/mu + mu/2) - exp(eps) Phi(-eps/mu - mu/2)``; its inverse is the least noise of Balle
    and Wang (2018).

    Examples
    --------
    >>> round(gaussian_mu(1.0, 1e-5), 3)
    0.268
    """
    return 1 / analytic_sigma(epsilon, delta)


def plan_budget(
    schema: Schema,
    *,
    epsilon: float,
    delta: float,
    prior: str,
    marginal_method: str,
    with_marginals: bool,
    sampling_prob: float,
    steps: int,
    shares: Shares,
    counted: bool = False,
) -> Budget:
    """Noise of every release so that all of them cost at most (epsilon, delta).

    Parameters
    ----------
    schema : Schema
    epsilon, delta : float
        Target for the whole run.
    prior : {"none", "tree", "tan"}
    marginal_method : {"histogram", "hierarchical"}
    with_marginals : bool
        Whether one-way marginals are released at all.
    sampling_prob : float
        Poisson sampling probability of the critic's steps.
    steps : int
        Critic steps; 0 for the prior alone.
    shares : Shares
    counted : bool
        Whether a private count has chosen ``sampling_prob``. (epsilon, delta) then bounds the run for every
        count, but its total variation depends on it: noise is also held to the total variation of the same
        run with steps that are not sampled, which the count does not enter.

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
    mu = gaussian_mu(epsilon, delta)
    parts = {"marginals": shares.marginals} if with_marginals else {}
    if prior != "none":
        parts |= {"selection": shares.selection, "tables": shares.tables}
    if not parts and not steps:
        raise PrivacyError("nothing to release: training_steps is 0 and there is neither prior nor marginals")
    if not steps:  # the parts share everything
        total = sum(parts.values())
        parts = {name: share / total for name, share in parts.items()}

    def noise(scale: float) -> Budget:
        multiplier = {name: scale / (mu * math.sqrt(share)) for name, share in parts.items()}
        picks = max(len(schema) - 1, 1)
        # An (eps, 0) mechanism has at most mu^2 = eps^2 in the Gaussian limit (theory section 5).
        selection = 1.0 / (multiplier["selection"] * math.sqrt(picks)) if "selection" in parts else None
        return Budget(
            marginals=multiplier.get("marginals"),
            tables=multiplier.get("tables"),
            selection_epsilon=selection,
        )

    def events(scale: float) -> list[Any]:
        if scale == math.inf:  # what is left when these releases carry no information
            return []
        budget = noise(scale)
        posted: list[Any] = []
        if budget.marginals is not None:
            posted.append(marginals_event(schema, budget.marginals, marginal_method))
        if budget.tables is not None:
            entries = prior_events(schema, prior, budget.tables, budget.selection_epsilon)
            posted.extend(event for _, event, _ in entries)
        return posted

    if not steps:
        scale = calibrate(events, epsilon=epsilon, delta=delta)
        return noise(scale)
    budget, fixed = noise(1.0), events(1.0)
    target: Target = EpsilonTarget(epsilon, delta)
    tv = None
    if counted:
        z = calibrate(lambda s: [*fixed, gaussian_event(s, count=steps)], target)
        tv = Profile([*fixed, gaussian_event(z, count=steps)]).tv()
        if tv < 1.0:
            target = PromiseTarget(epsilon, delta, tv)
    z = calibrate(lambda s: [*fixed, training_event(s, sampling_prob, steps)], target)
    return Budget(budget.marginals, budget.tables, budget.selection_epsilon, training=z, tv=tv)
