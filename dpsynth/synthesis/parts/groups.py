"""Noisy counts of groups of yes/no columns, whose model draws them beside the other columns."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from dpsynth.checks import few
from dpsynth.marginals.groups import Beside, GroupsRelease, OtherColumns
from dpsynth.marginals.latent import LatentGaussian
from dpsynth.privacy.profile import percent
from dpsynth.synthesis.model import GeneratorModel
from dpsynth.synthesis.parts.base_model import Samples
from dpsynth.synthesis.parts.part import Part, Reading, Statistic
from dpsynth.table.schema import Schema, TableSchema

#: Synthetic records of the other columns, to which the model of codes is fitted.
_RECORDS = 5_000
#: What the deviation of the noise of codes counts for, where that of the other parts counts for 1.
_WORTH = 2.0
#: Share of the codes from which on an owner hears of it.
_MOST = 0.9


@dataclass(frozen=True)
class Groups(Part[LatentGaussian]):
    """Counts of codes and of pairs of codes, and their sums beside the other columns."""

    of_rest = True

    schema: Schema

    @classmethod
    def of(cls, schema: TableSchema, others: float) -> tuple[Self, ...]:
        """This part where the schema has groups, and nothing elsewhere.

        Shares in proportion to sensitivities make the sum of both variances least. That of the codes counts
        for more. ``others`` is the squared sensitivity of the other parts when they have all of mu^2.
        """
        if not schema.levels.groups:
            return ()
        part = cls(schema.levels, share=None)
        own = _WORTH * part.release.l2_sensitivity
        return (replace(part, share=own / (own + math.sqrt(others))),)

    @property
    def release(self) -> GroupsRelease:
        """The counts with their noise."""
        return GroupsRelease(noise_multiplier=self.noise, stage=self.stage, schema=self.schema)

    @property
    def statistics(self) -> tuple[Statistic, ...]:
        """One release."""
        release = self.release
        return (Statistic(release.name, (release.event,), noise_std=release.noise_std),)

    @property
    def cautions(self) -> list[str]:
        """That the other columns have little of the budget, where limits are large."""
        if self.share is None or self.share <= _MOST:
            return []
        limits = ", ".join(f"{few(group.columns)}: {group.at_most}" for group in self.schema.groups)
        return [
            f"the groups' limits (at_most of {limits}) give {percent(self.share)} % of the budget to codes. "
            "If few rows have so many codes, choose smaller limits"
        ]

    def read(self, reading: Reading) -> LatentGaussian:
        """Count codes, and fit their model given the other columns of samples."""
        samples, schema = Samples.of(reading), self.schema.ungrouped.modelled
        outcome = None if schema.outcome is None else schema.names.index(schema.outcome)
        others = OtherColumns.of(samples.bins, samples.draws, outcome)
        grids = samples.bins.grids
        sums = reading.run(self.release.at(Beside(grids, others, reading.n)))
        # without constraints, which some models nearly never obey: the budget is spent
        made = replace(reading.made, schema=reading.made.schema.modelled)
        frame = made.sample(_RECORDS, reading.rng)
        cells = np.stack([grid.encode(frame[grid.column.name]) for grid in grids], axis=1)
        return LatentGaussian.of(sums, cells, rough=not reading.refine)

    def extend(self, model: GeneratorModel, found: LatentGaussian) -> GeneratorModel:
        """The model, which draws codes for each record."""
        return replace(model, schema=self.schema, codes=found)
