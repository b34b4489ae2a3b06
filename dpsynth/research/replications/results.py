"""All trials of a study, and the numbers of its tables: medians over seeds, selections, costs.

Synthetic tables are those of one fit, or chosen among restarts, with their cost.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from statistics import median

from dpsynth.research.replications.arms import HEALTHGAN, REAL, Arm, composed
from dpsynth.research.replications.protocol import Protocol
from dpsynth.research.replications.trial import Draw, Measured, Trial
from dpsynth.table.schema import Schema

#: beside everything that HealthGAN made
NOT_PRIVATE = "NOT PRIVATE"


@dataclass(frozen=True)
class OverSeeds:
    """A number over seeds: the median, the lowest and the highest.

    The lowest and the highest of k independent numbers cover the median of their distribution with
    probability 1 - 2**(1 - k): 94 % for five, whatever the distribution. Splits of one table are independent
    samples given that table. They say nothing of other records. For example, take a mean over one half each,
    in five splits of a table. It covers the mean of the table's population for 2 of 3 tables.
    """

    median: float
    lowest: float
    highest: float
    seeds: int

    @classmethod
    def of(cls, values: Iterable[float | None]) -> OverSeeds | None:
        """Make it from one number a seed, without those that are not defined. None if none is.

        Examples
        --------
        >>> OverSeeds.of([0.7, None, 0.9, 0.8])
        OverSeeds(median=0.8, lowest=0.7, highest=0.9, seeds=3)
        """
        known = [value for value in values if value is not None and not math.isnan(value)]
        return cls(median(known), min(known), max(known), len(known)) if known else None


@dataclass(frozen=True)
class Results:
    """A study that was run: all trials that are complete, of splits and of resamples.

    ``source`` says where the records are from, and ``unit`` what one row is. ``remarks`` say what was changed
    after the first trials, a sentence each. The schema is public.
    """

    protocol: Protocol
    arms: tuple[Arm, ...]
    trials: tuple[Trial, ...]
    source: str
    unit: str
    schema: Schema
    remarks: tuple[str, ...] = ()

    @property
    def seeds(self) -> int:
        """Number of splits with trials."""
        return len({trial.task.seed for trial in self.trials if trial.task.draw == "split"})

    def of(self, arm: str, draw: Draw = "split") -> dict[int, list[Trial]]:
        """Trials of an arm by seed, restarts in order."""
        found: dict[int, list[Trial]] = {}
        chosen = [trial for trial in self.trials if (trial.task.arm, trial.task.draw) == (arm, draw)]
        for trial in sorted(chosen, key=lambda trial: (trial.task.seed, trial.task.restart)):
            found.setdefault(trial.task.seed, []).append(trial)
        return found

    def first(self, arm: str) -> list[Measured]:
        """For each seed the first table of the first fit."""
        found = (trials[0] for trials in self.of(arm).values())
        return [trial.sets[0] for trial in found if trial.sets]

    def most_positive(self, arm: str) -> list[Measured]:
        """For each seed the table with the most positive records of all fits (Pedersen 2022).

        The selection looks at synthetic tables alone, so it costs no more than all fits do.
        """
        rate = "positive_rate_synthetic"
        found = []
        for trials in self.of(arm).values():
            tables = (each for trial in trials for each in trial.sets)
            rated = [each for each in tables if each.measures.get(rate) is not None]
            if rated:
                found.append(max(rated, key=lambda each: each.measures[rate] or 0.0))
        return found

    def cost(self, arm: str, *, restarts: bool) -> float | None:
        """The largest epsilon over seeds, of the first fit or of all restarts together. None if none ran."""
        costs = []
        for trials in self.of(arm).values():
            fitted = [trial for trial in trials if trial.ledger is not None]
            if fitted:
                chosen = fitted if restarts else fitted[:1]
                delta = chosen[0].delta
                assert delta is not None
                costs.append(composed([trial.read_ledger() for trial in chosen], delta))
        return max(costs, default=None)

    def over_seeds(self, chosen: Iterable[Measured], measure: str) -> OverSeeds | None:
        """A measure of the tables that were kept, over seeds."""
        return OverSeeds.of(each.measures.get(measure) for each in chosen)

    def problems(self) -> list[str]:
        """Why fits were refused, each sentence once with the arm, in order."""
        told = (f"{trial.task.arm}: {trial.problem}" for trial in self.trials if trial.problem)
        return list(dict.fromkeys(told))


@dataclass(frozen=True)
class Way:
    """One table a seed, and how it was chosen. The label is unique in a study.

    ``stated`` is the epsilon that one fit states, infinite for HealthGAN. ``spent`` is that of all fits that
    were looked at, None if none ran.
    """

    label: str
    arm: Arm
    chosen: tuple[Measured, ...]
    stated: float
    spent: float | None

    def values(self, measure: str) -> list[float | None]:
        """A measure of each table."""
        return [each.measures.get(measure) for each in self.chosen]


def ways(results: Results) -> tuple[Way, ...]:
    """Return the compared ways, without the records themselves: HealthGAN first, then each epsilon.

    Each epsilon has three. The first is one fit. The second is the best of all restarts, each with the whole
    epsilon, as Pedersen (2022) selects. The third is the best of restarts that share epsilon.
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
