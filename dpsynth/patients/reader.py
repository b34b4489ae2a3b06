"""Make one record of all rows of a patient."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpsynth.patients.histories import Histories, ids_of, patient_table, units_of, unused_rows
from dpsynth.patients.schema import PatientSchema, patients_of
from dpsynth.table.csv_format import CsvFormat
from dpsynth.table.reader import Drawn, Reader
from dpsynth.table.schema import TableSchema


def reader_of(schema: TableSchema, seed: int = 0) -> Reader:
    """The reader of a table, whose records are rows or patients. ``seed``: see :class:`Reader`."""
    patients = patients_of(schema)
    return Reader(schema, seed) if patients is None else PatientReader(patients, seed)


@dataclass(frozen=True)
class PatientReader(Reader):
    """Makes one record of all rows of a patient, with the patient's levels and the values of each row."""

    schema: PatientSchema

    def read(self, path: str | Path, csv_format: CsvFormat) -> pd.DataFrame:
        """Read a table as :meth:`dpsynth.PatientSchema.read` does."""
        return self.schema.read(path, csv_format)

    def narrowed(self, columns: Collection[str]) -> Reader:
        """This reader: patients are read whole."""
        return self

    def columns(self, names: Iterable[str]) -> list[str]:
        """Those of a file's columns that are read: with the unit and the order."""
        known = {self.schema.unit, self.schema.order, *self.schema.names}
        return [name for name in names if name in known]

    def records(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Records of rows, see `Histories.to_frame`. Raises DataError as `Histories.of` does."""
        histories = Histories.of(frame, self.schema, np.random.default_rng(self.seed))
        return histories.to_frame(self.schema)

    def levels(self, frame: pd.DataFrame) -> pd.DataFrame:
        """The levels of each patient of a synthetic table."""
        return patient_table(self.schema.in_order(frame), self.schema, random_state=0)

    def persons(self, frame: pd.DataFrame) -> NDArray[np.object_]:
        """Different identifiers of patients, in the order of their first rows, shape (patients,)."""
        return pd.unique(ids_of(frame, self.schema))

    def units(self, frame: pd.DataFrame) -> NDArray[np.int64]:
        """Number of each row's patient, see `units_of`."""
        return units_of(frame, self.schema)

    def unused(self, frame: pd.DataFrame) -> dict[str, int]:
        """Number of rows that are not used, by the reason. Confidential."""
        return unused_rows(frame, self.schema)

    def with_rows(self, levels: pd.DataFrame, drawn: Drawn, rng: np.random.Generator) -> pd.DataFrame:
        """Made-up patients of these levels, and beside them the values of rows of a random number."""
        patient = np.repeat(np.arange(len(levels)), rng.integers(1, self.schema.most + 1, len(levels)))
        rows = drawn(self.schema.table, len(patient)).assign(**{self.schema.unit: patient})
        histories = Histories.of(self.schema.in_order(rows), self.schema, rng).to_frame(self.schema)
        return pd.concat([levels, histories.drop(columns=levels.columns)], axis=1)

    def renumbered(
        self, base: pd.DataFrame, planted: pd.DataFrame
    ) -> tuple[pd.DataFrame, pd.DataFrame, NDArray[np.int64]]:
        """The tables with new identifiers, of which no two are alike, and the patient of each planted row."""
        schema = self.schema
        others, patient = self.units(base), self.units(planted)
        kept = {name: base[name].to_numpy() for name in schema.table.ignored}
        base = schema.table.check(base).assign(**kept | {schema.unit: others})
        planted = planted.assign(**{schema.unit: patient + others.max(initial=-1) + 1})
        return base, planted, patient
