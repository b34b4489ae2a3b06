"""Noisy tables of rows, where patients have several."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import repeat

import numpy as np

from dpsynth.patients.courses import RowTable, row_tables
from dpsynth.patients.histories import Histories
from dpsynth.patients.schema import PatientSchema, patients_of
from dpsynth.patients.series import Ints
from dpsynth.privacy.noise import STEP, in_steps
from dpsynth.privacy.records import Records
from dpsynth.privacy.release import Array, GaussianRelease
from dpsynth.synthesis.model import GeneratorModel
from dpsynth.synthesis.parts.part import Part, Reading, Redrawing, Statistic
from dpsynth.synthesis.rows import Trajectories, learned_of, likely_parents
from dpsynth.table.coded import CodedTable
from dpsynth.table.schema import TableSchema

# ------------------------------------------------------------------------------------------------
# Noisy tables of what each row of a patient's history adds to the patient's levels.
#
# A patient with many rows would move a table of counts by as many. Here a patient adds the vector of their
# own counts divided by its Euclidean length (0 without rows). Every patient then has length 1 in each table,
# whatever their number of rows. So k tables together have L2 sensitivity sqrt(k) under adding or removing
# one patient with all rows. Divided by the number of rows instead, a patient would add less signal.


def weighted_counts(patient: Ints, cell: Ints, count: Ints, size: int) -> Ints:
    """Sum of each patient's own counts divided by their Euclidean length, shape (size,), in steps.

    ``patient``, ``cell``, ``count``, each shape (m,): how many rows of a patient are in a cell, once each.

    Examples
    --------
    >>> one, other = (0, 0, 4), ((1, 0, 1), (1, 1, 1))  # patient, cell and count
    >>> entries = np.array([one, *other]).T
    >>> (weighted_counts(*entries, 2) * STEP).round(3).tolist()
    [1.707, 0.707]
    """
    length = np.sqrt(np.bincount(patient, count**2))
    # Sums of whole numbers below 2^53, which are exact.
    return np.bincount(cell, in_steps(count / length[patient]), minlength=size).astype(np.int64)


@dataclass(frozen=True, kw_only=True)
class VisitsRelease(GaussianRelease[list[Array]]):
    """The tables of `row_tables`, to each of which a patient adds a vector of length 1."""

    schema: PatientSchema
    #: Earlier categories, see `row_tables`: made of earlier noisy statistics.
    parents: tuple[tuple[str, str], ...] | None = None
    name = "tables of rows"

    @property
    def tables(self) -> list[RowTable]:
        """Public shapes of the tables."""
        return row_tables(self.schema.courses, None if self.parents is None else dict(self.parents))

    @property
    def l2_sensitivity(self) -> float:
        """Square root of the number of tables."""
        return float(np.sqrt(len(self.tables)))

    @property
    def sensitivity(self) -> str:
        """In words, for the ledger."""
        number = len(self.tables)
        return (
            f"sqrt({number}) (a patient with all rows adds a vector of length 1 to each of {number} tables)"
        )

    @property
    def steps(self) -> Iterable[float]:
        """Step of all tables."""
        return repeat(STEP)

    def query(self, records: Records) -> Sequence[Ints]:
        """Exact sums: a private quantity, never to be shown."""
        return records.sums(self._sums)

    def _sums(self, patients: CodedTable) -> list[Ints]:
        histories = Histories.from_frame(patients.frame, self.schema)
        return [self._sum(table, histories).reshape(table.shape) for table in self.tables]

    def _sum(self, table: RowTable, histories: Histories) -> Ints:
        return weighted_counts(*table.entries(histories), math.prod(table.shape))

    def finish(self, noisy: Sequence[Array]) -> list[Array]:
        """The noisy tables, in the order of `tables`."""
        return list(noisy)


#: Synthetic patients whose levels courses learn from.
_PATIENTS = 5_000


@dataclass(frozen=True)
class Rows(Part[Trajectories]):
    """Tables of what each row adds to a patient's levels, which the generator models."""

    schema: PatientSchema

    @classmethod
    def of(cls, schema: TableSchema, share: float) -> tuple[Rows, ...]:
        """This part where patients have several rows, and nothing elsewhere."""
        patients = patients_of(schema)
        return () if patients is None else (cls(patients, share=share),)

    @property
    def release(self) -> VisitsRelease:
        """The tables with their noise."""
        return VisitsRelease(noise_multiplier=self.noise, stage=self.stage, schema=self.schema)

    @property
    def statistics(self) -> tuple[Statistic, ...]:
        """One release."""
        return (Statistic(VisitsRelease.name, (self.release.event,)),)

    def read(self, reading: Reading) -> Trajectories:
        """Learn from the levels of synthetic patients, and read the tables."""
        levels = reading.made.sample(_PATIENTS, reading.rng)
        return self._read(reading, likely_parents(self.schema, levels), learned_of(self.schema, levels))

    def redraw(self, reading: Redrawing) -> Trajectories:
        """The same tables: what levels showed stays."""
        before = reading.released.trajectories
        assert before is not None  # the part was read
        return self._read(reading, before.parents, before.learned)

    def _read(
        self, reading: Reading, parents: Mapping[str, str], learned: Mapping[str, Array]
    ) -> Trajectories:
        release = replace(self.release, parents=tuple(parents.items()))
        return Trajectories.of(self.schema, reading.run(release), release.noise_std, parents, learned)

    def extend(self, model: GeneratorModel, found: Trajectories) -> GeneratorModel:
        """The model, which draws rows for each patient."""
        return replace(model, trajectories=found)
