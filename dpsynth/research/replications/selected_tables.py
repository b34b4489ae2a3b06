"""The synthetic tables that a study compares: of one fit, or chosen among restarts, with their cost."""

from __future__ import annotations

import math
from dataclasses import dataclass

from dpsynth.research.replications.arms import HEALTHGAN, REAL, Arm
from dpsynth.research.replications.results import OverSeeds, Results, Selected

#: beside everything that HealthGAN made
NOT_PRIVATE = "NOT PRIVATE"


@dataclass(frozen=True)
class Way:
    """One table a seed, and how it was come by.

    Attributes
    ----------
    label : str
        Unique in a study.
    arm : Arm
    chosen : tuple of Selected
    stated : float
        The epsilon that one fit states; infinite for HealthGAN.
    spent : float or None
        The epsilon of all fits that were looked at; None if none ran.
    """

    label: str
    arm: Arm
    chosen: tuple[Selected, ...]
    stated: float
    spent: float | None

    def over_seeds(self, measure: str) -> OverSeeds | None:
        """A measure of the tables, over seeds."""
        return OverSeeds.of(self.values(measure))

    def values(self, measure: str) -> list[float | None]:
        """A measure of each table."""
        return [each.set.measures.get(measure) for each in self.chosen]


def ways(results: Results) -> tuple[Way, ...]:
    """Return what is compared, but for the records themselves: HealthGAN first, then each epsilon.

    Of each epsilon: one fit; the best of all restarts, each with the whole epsilon, as the thesis selects;
    and the best of restarts that share epsilon.
    """
    return tuple(way for arm in results.arms if arm.name != REAL for way in _of(results, arm))


def _of(results: Results, arm: Arm) -> list[Way]:
    private = arm.name != HEALTHGAN
    one_fit, all_fits = (
        (results.cost(arm.name, restarts=restarts) if private else math.inf) for restarts in (False, True)
    )
    stated = math.inf if arm.epsilon is None else arm.epsilon
    name = arm.name.removesuffix(" shared") if private else f"{arm.name} ({NOT_PRIVATE})"
    tables = arm.restarts * results.protocol.sets
    fits = f"{arm.restarts} fits" if arm.restarts > 1 else f"{results.protocol.sets} tables of one fit"
    chosen = tuple(results.most_positive(arm.name)) if tables > 1 else ()
    if arm.shared:
        return [Way(f"{name}, best of {fits} that share it (paid)", arm, chosen, stated, all_fits)]
    found = [Way(f"{name}, one fit", arm, tuple(results.first(arm.name)), stated, one_fit)]
    if tables > 1:
        unpaid = " (unpaid)" if private and arm.restarts > 1 else ""
        found.append(Way(f"{name}, best of {fits}{unpaid}", arm, chosen, stated, all_fits))
    return found
