"""Make one record of all rows of a patient."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpsynth.patients.histories import Histories, ids_of, patient_table, units_of
from dpsynth.patients.schema import PatientSchema, patients_of
from dpsynth.table.csv_format import CsvFormat
from dpsynth.table.reader import Reader
from dpsynth.table.schema import TableSchema


def reader_of(schema: TableSchema, seed: int = 0) -> Reader:
    """The reader of a table, whose records are rows or patients. ``seed``: see :class:`Reader`."""
    patients = patients_of(schema)
    return Reader(schema, seed) if patients is None else PatientReader(patients, seed)


@dataclass(frozen=True)
class PatientReader(Reader):
    """Makes one record of all rows of a patient, with the patient's levels and the values of each row."""

    schema: PatientSchema

    def read(self, path: str | Path, csv_format: CsvFormat | None = None) -> pd.DataFrame:
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
