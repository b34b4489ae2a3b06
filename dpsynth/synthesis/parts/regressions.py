"""Pre-specified regressions: each is read for its coefficients and their intervals."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import pandas as pd

from dpsynth.errors import PrivacyError
from dpsynth.patients.schema import TableSchema
from dpsynth.studies.private import FittedStudy, StudyReleases
from dpsynth.studies.study import Study
from dpsynth.synthesis.model import GeneratorModel
from dpsynth.synthesis.parts.part import Part, Reading, Statistic
from dpsynth.synthesis.studies import MOST_WIDENING, expected_widening, smallest_subgroup, study_draws


@dataclass(frozen=True)
class Regressions(Part[tuple[FittedStudy, ...]]):
    """All pre-specified regressions of a fit, in equal parts."""

    schema: TableSchema
    studies: tuple[Study, ...]
    n: float

    @property
    def multiplier(self) -> float | None:
        """Noise multiplier of one Gaussian mechanism that costs what one regression does."""
        return None if self.noise is None else self.noise * math.sqrt(len(self.studies))

    def release(self, study: Study) -> StudyReleases:
        """The statistics of one regression with their noise."""
        return StudyReleases.plan(
            study.label, noise_multiplier=self.multiplier, stage=self.stage, survival=study.is_survival
        )

    @property
    def widenings(self) -> dict[str, float]:
        """Expected width of each regression's intervals over that without noise.

        A subgroup is taken to have all n records, because its size is not public.
        """
        return {
            study.label: expected_widening(study, self.schema, self.n, self.multiplier)
            for study in self.studies
        }

    @property
    def statistics(self) -> tuple[Statistic, ...]:
        """One entry a regression."""
        return tuple(
            self._statistic(study, wide)
            for study, wide in zip(self.studies, self.widenings.values(), strict=True)
        )

    def _statistic(self, study: Study, wide: float) -> Statistic:
        subgroups = None
        if study.where is not None:
            twice, most = (
                smallest_subgroup(study, self.schema, self.multiplier, most) for most in (2.0, MOST_WIDENING)
            )
            subgroups = twice, most
        return Statistic(
            f"regression {study.label}",
            tuple(self.release(study).events),
            share=1.0 / len(self.studies),
            of=study.label,
            widening=wide,
            subgroups=subgroups,
        )

    def check(self) -> None:
        """Refuse a regression whose intervals would be `MOST_WIDENING` times as wide as without noise."""
        for label, wide in self.widenings.items():
            if wide > MOST_WIDENING:
                raise PrivacyError(
                    f"study {label!r} has more terms than the budget can bear: its intervals would be "
                    f"about {wide:.1f} times as wide as without noise. Declare fewer predictors or studies, "
                    "or raise epsilon or shares.studies"
                )

    def read(self, reading: Reading) -> tuple[FittedStudy, ...]:
        """Read the records for every regression, in order. Samples of the model stand for them."""
        model = reading.made
        draws: dict[bool, pd.DataFrame] = {}
        fitted = []
        for study in self.studies:
            rows = study.clusters(self.schema) is not None
            if rows not in draws:
                draws[rows] = study_draws(model, reading.rng, rows=rows)
            fitted.append(
                self.release(study).run(
                    reading.ledger,
                    reading.records,
                    study,
                    model.declared_schema,
                    draws[rows],
                    self.n,
                    reading.rng,
                )
            )
        return tuple(fitted)

    def extend(self, model: GeneratorModel, found: tuple[FittedStudy, ...]) -> GeneratorModel:
        """The model with the estimates."""
        return replace(model, studies=found)
