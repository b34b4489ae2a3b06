"""A pre-specified regression: its coefficients with a covariance, from bounded sums over the records.

Everything but the sums is free. The fit to samples begins it, and samples stand for the records in every
expectation. The sums are

1. the information at the fit to the samples, by which `dpsynth.studies.calibration` corrects them
2. the score there, for a step
3. the score at the point that this leads to.

`dpsynth.studies.estimation` makes coefficients of the two scores, each compared with that expected over
samples. The sampling variance of a score is H with weights w^2 in place of w: taken as H it is a little
conservative. A survival study is read once more, for its life table.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpsynth.errors import InputError, PrivacyError
from dpsynth.files.codec import record
from dpsynth.privacy.ledger import Ledger
from dpsynth.privacy.records import Records
from dpsynth.privacy.stages import Stage
from dpsynth.studies.calibration import Clusters, Corrected, StandIn, clipped_influence, corrected, far_out
from dpsynth.studies.estimation import StudyDesign, SurvivalCurve, mode, posterior, survival_curve
from dpsynth.studies.statistics import (
    InformationRelease,
    LifeTable,
    LifeTableRelease,
    ScorePoint,
    ScoreRelease,
)
from dpsynth.studies.study import ALONE, Estimates, Study
from dpsynth.table.schema import Schema, TableSchema

if TYPE_CHECKING:
    from dp_accounting.dp_event import DpEvent

Floats = NDArray[np.float64]

#: parts of a study's mu^2: information, first score, second score
SPLIT = (0.2, 0.4, 0.4)
#: of a survival study, whose fourth reading is its life table
SURVIVAL_SPLIT = (*(0.9 * part for part in SPLIT), 0.1)

#: draws that are farther out than this in a standardised number are left out: in a table of many columns they
#: are made of the noise in empty cells, a few per cent of the draws that would be most of their variance
_FAR = 6.0
#: remark on a regression of patients' rows
_CLUSTERS = (
    "One patient with all rows counts once, by the mean over the rows. Intervals allow for rows of a patient "
    "that are alike.",
)


@record
@dataclass(frozen=True, eq=False)
class FittedStudy:
    """A released study.

    ``beta``, shape (d,): of standardised terms, intercepts first.
    ``covariance``, shape (d, d).
    """

    declared: Study
    design: StudyDesign
    beta: Floats
    covariance: Floats
    estimates: Estimates

    def check_records(self, use: str) -> None:
        """Raise InputError for a regression of patients' rows, which ``use`` cannot draw."""
        if self.design.patients is not None:
            raise InputError(
                f"{use} needs a study with one row per patient, and {self.estimates.study!r} is of patients' "
                "rows"
            )


@dataclass(frozen=True)
class StudyReleases:
    """The noisy statistics of a pre-specified regression, their noise fixed together and beforehand.

    ``multiplier``: of one Gaussian mechanism that costs what they do together.
    """

    information: InformationRelease
    first: ScoreRelease
    second: ScoreRelease
    multiplier: float | None
    life_table: LifeTableRelease | None = None

    @classmethod
    def plan(
        cls, study: str, *, noise_multiplier: float | None, stage: Stage | None = None, survival: bool = False
    ) -> StudyReleases:
        """Plan all statistics, at the cost of one Gaussian mechanism with this ``noise_multiplier``.

        None: exact, **not private**. ``survival``: whether there is a life table.
        """
        parts = SURVIVAL_SPLIT if survival else SPLIT
        each = [None if noise_multiplier is None else noise_multiplier / np.sqrt(part) for part in parts]
        return cls(
            InformationRelease(study=study, noise_multiplier=each[0], stage=stage),
            ScoreRelease(study=study, noise_multiplier=each[1], stage=stage),
            ScoreRelease(study=study, noise_multiplier=each[2], stage=stage),
            noise_multiplier,
            LifeTableRelease(study=study, noise_multiplier=each[3], stage=stage) if survival else None,
        )

    @property
    def events(self) -> list[DpEvent]:
        """Their cost."""
        events = [release.event for release in (self.information, self.first, self.second)]
        return events if self.life_table is None else [*events, self.life_table.event]

    def run(
        self,
        ledger: Ledger,
        records: Records,
        declared: Study,
        schema: TableSchema,
        draws: pd.DataFrame,
        n: float,
        rng: np.random.Generator,
    ) -> FittedStudy:
        """Read the records three times, four for a survival study, and estimate.

        ``draws``: synthetic records, of patients' rows for a regression of these.
        ``rng``: of the noise and of the survival curve's redraws, secret.
        """
        if (self.life_table is not None) != declared.is_survival:
            raise PrivacyError(
                f"study {declared.label!r} was planned {'with' if self.life_table else 'without'} a life "
                "table: plan one for survival studies and for no others"
            )
        patients, schema = declared.clusters(schema), declared.table(schema)
        design = StudyDesign.of(schema, declared.effects(schema), draws, declared.intervals, patients)
        if patients is None:
            start, stand_in = begin(design, *design.read(draws), n / len(draws))
        else:
            start, stand_in = begin_clusters(design, draws, n, rng)
        design = stand_in.design
        mean, covariance, found, last = self.read(ledger, records, stand_in, start, rng)
        plain = found.stand_in.information(ScorePoint(design, mean, np.eye(design.size)))
        bare = np.linalg.inv(found.stand_in.precision(plain))
        estimates = replace(
            estimates_of(self.first.study, design, mean, covariance, bare, found.unknown),
            covariance=design.reported(mean, found.opened(covariance))[1],
            survival=self._survival(ledger, records, declared, schema, draws, rng),
            remarks=(
                *(_CLUSTERS if patients else ()),
                *found.remarks,
                *clipped_influence(stand_in, start, covariance),
                *far_out(*design.read(draws), last, mean, found.opened(covariance)),
            ),
        )
        return FittedStudy(declared, design, mean, covariance, estimates)

    def read(
        self, ledger: Ledger, records: Records, stand_in: StandIn, start: Floats, rng: np.random.Generator
    ) -> tuple[Floats, Floats, Corrected, ScorePoint]:
        """The information and the two scores, and what they make.

        ``start``, shape (d,): where the information and the first score are taken.

        Returns ndarray of shape (d,), ndarray of shape (d, d), Corrected, ScorePoint: coefficients, their
        covariance, samples compared with records, and the second score's point.
        """
        beta = start
        there = replace(stand_in.point(beta, self.first), bound=np.inf)
        there = replace(there, cap=stand_in.cap(there))
        release = self.information.at(there)
        found = corrected(stand_in, there, ledger.run(release, records, rng), release.noise_std)
        stand_in, cautious = found.stand_in, found.cautious

        first = stand_in.point(beta, self.first)
        read = [(first, self.first.noise_std, ledger.run(self.first.at(first), records, rng))]
        beta, _ = stand_in.estimate(read, beta)
        second = stand_in.point(beta, self.second)
        read.append((second, self.second.noise_std, ledger.run(self.second.at(second), records, rng)))
        mean, _ = stand_in.estimate(read, beta)
        observations = [cautious.observation(*each, mean) for each in read]
        covariance = posterior(observations, cautious.prior)[1]
        return mean, covariance, found, second

    def _survival(
        self,
        ledger: Ledger,
        records: Records,
        declared: Study,
        schema: Schema,
        draws: pd.DataFrame,
        rng: np.random.Generator,
    ) -> SurvivalCurve | None:
        """The survival curve of the subgroup's records with time and event, whatever predictors they lack."""
        model = declared.effects(schema)
        if self.life_table is None or model.duration is None:
            return None
        table = LifeTable.of(schema, model, draws, declared.intervals)
        counts = ledger.run(self.life_table.at(table), records, rng)
        return survival_curve(
            counts,
            table.boundaries,
            self.life_table.noise_std,
            rng,
            # a privately counted number has noise of its own, which the bands would not hold
            total=None if schema.n_public is None else float(schema.n_public),
            unit=schema.column(model.duration).unit or "",
        )


def begin(design: StudyDesign, x: Floats, y: Floats, share: float) -> tuple[Floats, StandIn]:
    """The fit to samples, shape (d,), and those that are not far out with the design that the fit completed.

    ``x``, ``y``, shape (k, p), (k,): as `StudyDesign.read` gives them.
    ``share``: how many records each stands for.
    """
    kept = not_far_out(design, x)
    start, complete = mode(design, x[kept], y[kept], share)
    return start, StandIn(complete, x[kept], y[kept], share)


def begin_clusters(
    design: StudyDesign, draws: pd.DataFrame, n: float, rng: np.random.Generator
) -> tuple[Floats, StandIn]:
    """As `begin`, with one row of each synthetic patient, and how alike the rows of a patient are."""
    patients = design.patients
    assert patients is not None
    number, unique = pd.factorize(draws[patients.unit])
    x, y, complete = design.all(draws)
    clusters = Clusters(x[complete], y[complete], number[complete])
    one = clusters.one_each(rng)
    start, stand_in = begin(design, clusters.x[one], clusters.y[one], n / len(unique))
    ratio = clusters.ratio(stand_in.design, start, not_far_out(design, clusters.x), patients.most)
    return start, replace(stand_in, ratio=ratio)


def not_far_out(design: StudyDesign, x: Floats) -> NDArray[np.bool_]:
    """Which samples, shape (k, p), are far out in no number. A rare one of a term's two values may be."""
    numbers = np.array([not term.two_valued for term in design.terms], dtype=bool)
    return np.asarray((np.abs(x[:, numbers]) <= _FAR).all(axis=1))


def estimates_of(
    study: str,
    design: StudyDesign,
    beta: Floats,
    covariance: Floats,
    bare: Floats,
    unknown: Sequence[str] = (),
) -> Estimates:
    """The study in the units in which its terms are reported. ``bare`` is the covariance without noise.

    How much wider intervals are is reported for the terms of which anything is claimed, if there are any.
    """
    values, reported = design.reported(beta, covariance)
    widening = np.sqrt(np.diag(reported) / np.diag(design.reported(beta, bare)[1]))
    known = np.array([name not in unknown for name in design.names])
    widening = widening[known] if known.any() else widening
    model, kind = design.model, design.model.kind if design.terms else ALONE[design.model.kind]
    formula, wide = model.formula(design.schema), float(np.median(widening))
    return Estimates(study, kind, formula, model.outcome, design.names, values, reported, wide)
