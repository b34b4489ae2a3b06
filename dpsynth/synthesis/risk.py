"""The epsilon of a fit that keeps every membership attack within a bound."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from dpsynth.errors import InputError, PrivacyError
from dpsynth.privacy.calibration import least_noise
from dpsynth.privacy.events import gaussian_event
from dpsynth.privacy.gaussian_loss import analytic_sigma
from dpsynth.privacy.profile import Profile
from dpsynth.privacy.risk import RiskLimit
from dpsynth.synthesis.fit import planned_parts, profile_without_count, total_delta
from dpsynth.synthesis.options import FitOptions
from dpsynth.synthesis.parts.part import Part
from dpsynth.table.schema import TableSchema

#: epsilons that are tried
_LEAST, _MOST = 1e-3, 50.0
_RTOL = 1e-3


def fit_profile(schema: TableSchema, options: FitOptions, also: Sequence[Part[Any]] = ()) -> Profile:
    """The privacy loss of a whole fit, by public facts alone, as the ledger will have it.

    Where the number of records is not public, the fit promises a cost for every number.
    """
    if options.epsilon is None:
        raise InputError("epsilon is None: a fit without noise limits no attack")
    if schema.levels.n_public is None:
        return profile_without_count(schema, options)
    parts = planned_parts(schema, float(schema.levels.n_public), options, also=also)
    return Profile(parts.events)


def epsilon_for(
    risk: RiskLimit, schema: TableSchema, options: FitOptions, also: Sequence[Part[Any]] = ()
) -> float:
    """The largest epsilon, to a thousandth of it, whose fit keeps every attack within a risk.

    ``options`` are those of the fit. Their epsilon does not count. Nothing is read.

    Raises PrivacyError if the risk asks for an epsilon below 0.002, or above 25.
    """
    goal = risk.target.goal

    def cost(inverse: float) -> float:
        tried = options.model_copy(update={"epsilon": 1 / inverse})
        return risk.target.cost(fit_profile(schema, tried, also))

    delta = total_delta(schema.levels.modelled, options)
    start = _alone(risk, delta)
    if start < 2 * _LEAST:
        raise PrivacyError(f"{risk} needs an epsilon below {2 * _LEAST:g} at delta {delta:.3g}: allow more")
    if start > _MOST / 2:
        raise PrivacyError(f"{risk} is no protection: every epsilon up to {_MOST / 2:g} keeps it. Allow less")
    inverse, _ = least_noise(cost, goal, 1 / start, _RTOL, slope=-1.0)
    # In four figures, and still on the private side.
    figure = 10.0 ** (math.floor(math.log10(1 / inverse)) - 3)
    return float(f"{math.floor(1 / inverse / figure) * figure:.4g}")


def check_risk(
    risk: RiskLimit | None, schema: TableSchema, options: FitOptions, also: Sequence[Part[Any]] = ()
) -> None:
    """Raise InputError if a fit allows more than the risk that its epsilon was chosen for."""
    if risk is None:
        return
    if not risk.kept(fit_profile(schema, options, also)):
        raise InputError(
            f"risk: epsilon {options.epsilon:g} allows more than {risk}. Give a smaller one, or no risk"
        )


def _alone(risk: RiskLimit, delta: float) -> float:
    """Epsilon of one Gaussian release with this risk: a guess, from which the search starts."""
    low, high = _LEAST, _MOST
    for _ in range(20):
        middle = math.sqrt(low * high)
        profile = Profile([gaussian_event(analytic_sigma(middle, delta))])
        low, high = (middle, high) if risk.target.cost(profile) <= risk.target.goal else (low, middle)
    return low
