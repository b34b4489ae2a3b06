"""Effects of a study's regressions in real records and synthetic tables, and as private estimates."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, cast

from dpsynth.evaluation.replication.two_fits import interval_overlap
from dpsynth.report.details import Effect, Effects
from dpsynth.research.replications.arms import HEALTHGAN, REAL
from dpsynth.research.replications.results import Results
from dpsynth.research.replications.selected_tables import NOT_PRIVATE
from dpsynth.research.replications.trial import Draw, Trial

Side = Literal["real", "synthetic", "declared"]
Conclusion = Literal["above", "below", "none"]
#: of logarithms: beyond exp(700) there is no float
_FURTHEST = 700.0


@dataclass(frozen=True)
class Source:
    """Estimates that are compared: of an arm's first table, or the private ones of its first fit."""

    label: str
    arm: str
    side: Side


@dataclass(frozen=True)
class Regression:
    """A regression of the study, and what all real records say.

    Attributes
    ----------
    number : int
        From 0, among the protocol's.
    label : str
    told : Effects
        Of the records themselves.
    real : dict
        Effects in all real records by term; None where there is none.
    """

    number: int
    label: str
    told: Effects
    real: dict[str, Effect | None]

    @property
    def ratio(self) -> bool:
        """Whether effects are ratios, so that none is 1."""
        return self.told["measure"] != "difference"

    def conclusion(self, told: Effect) -> Conclusion:
        """What an interval says.

        It lies above or below no effect, or holds it.
        """
        none = 1.0 if self.ratio else 0.0
        return "above" if told["lower"] > none else "below" if told["upper"] < none else "none"

    def additive(self, value: float) -> float:
        """On the scale on which intervals are symmetric."""
        if not self.ratio:
            return value
        return min(max(math.log(value), -_FURTHEST), _FURTHEST) if value > 0 else -_FURTHEST

    def overlap(self, told: Effect, real: Effect) -> float | None:
        """Karr's overlap of two intervals."""
        first, second = (
            (self.additive(each["lower"]), self.additive(each["upper"])) for each in (told, real)
        )
        return interval_overlap(first, second)


def regressions(results: Results) -> tuple[Regression, ...]:
    """Return the protocol's regressions; those that no record was read for are left out."""
    trials = [trial for found in results.of(REAL).values() for trial in found if trial.sets]
    if not trials:
        return ()
    details = trials[0].sets[0].effects
    labels = [study.label for study in results.protocol.studies]
    found = []
    for number, (label, detail) in enumerate(zip(labels, details, strict=True)):
        told = cast(Effects, detail)
        real = {row["term"]: _defined(row.get("real")) for row in told["rows"]}
        found.append(Regression(number, label, told, real))
    return tuple(found)


def sources(results: Results) -> tuple[Source, ...]:
    """Return what is compared: the training part, HealthGAN, and both kinds of estimates at each epsilon."""
    found = [Source("training part", REAL, "synthetic")]
    for arm in results.arms:
        if arm.name == HEALTHGAN:
            found.append(Source(f"HealthGAN naive ({NOT_PRIVATE})", arm.name, "synthetic"))
        elif arm.whole:
            found.append(Source(f"{arm.name} naive", arm.name, "synthetic"))
            found.append(Source(f"{arm.name} declared", arm.name, "declared"))
    return tuple(found)


def effect_of(trial: Trial, number: int, term: str, side: Side) -> Effect | None:
    """Return an effect in the first table of a trial; None where it has none."""
    if not trial.sets or number >= len(trial.sets[0].effects):
        return None
    rows = cast(Effects, trial.sets[0].effects[number])["rows"]
    return next((_defined(row.get(side)) for row in rows if row["term"] == term), None)


def _defined(told: Effect | None) -> Effect | None:
    """None as well where a number is none."""
    if told is None:
        return None
    numbers = (told["estimate"], told["lower"], told["upper"])
    return None if any(number is None or math.isnan(number) for number in numbers) else told


def over_trials(
    results: Results, each: Regression, term: str, source: Source, draw: Draw = "split"
) -> list[Effect | None]:
    """An effect of each seed's first fit."""
    return [
        effect_of(trials[0], each.number, term, source.side)
        for trials in results.of(source.arm, draw).values()
    ]
