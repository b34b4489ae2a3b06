"""Noisy tables of rows, where patients have several."""

from __future__ import annotations

from dataclasses import dataclass, replace

from dpsynth.model.generator import GeneratorModel
from dpsynth.model.trajectories import Trajectories, likely_parents
from dpsynth.releases.visits import VisitsRelease
from dpsynth.synthesis.parts.part import Part, Reading, Statistic
from dpsynth.table.patients import PatientSchema

#: Synthetic patients for the links between categories of a row.
_PARENTS = 5_000


@dataclass(frozen=True)
class Rows(Part[Trajectories]):
    """Tables of what each row adds to a patient's levels, which the generator models."""

    schema: PatientSchema

    @property
    def release(self) -> VisitsRelease:
        """The tables with their noise."""
        return VisitsRelease(noise_multiplier=self.noise, stage=self.stage, schema=self.schema)

    @property
    def statistics(self) -> tuple[Statistic, ...]:
        """One release."""
        return (Statistic(VisitsRelease.name, (self.release.event,)),)

    def read(self, reading: Reading) -> Trajectories:
        """Choose links between categories by synthetic patients, and read the tables."""
        parents = likely_parents(self.schema, reading.made.sample(_PARENTS, reading.rng))
        release = replace(self.release, parents=tuple(parents.items()))
        return Trajectories.of(self.schema, reading.run(release), release.noise_std, parents)

    def extend(self, model: GeneratorModel, found: Trajectories) -> GeneratorModel:
        """The model, which draws rows for each patient."""
        return replace(model, trajectories=found)
