"""Read a table, and make one record of each row.

What a schema says without a table is asked of :class:`~dpsynth.table.schema.TableSchema`. What is done with
the rows of a table is asked of its reader, which :func:`dpsynth.patients.reader.reader_of` gives.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpsynth.table.csv_format import CsvFormat
from dpsynth.table.derived import inputs_of
from dpsynth.table.files import read_table
from dpsynth.table.schema import TableSchema


@dataclass(frozen=True)
class Reader:
    """Makes one record of each row, as `dpsynth.privacy.records` counts them.

    ``seed``: secret, of the rows that are kept of a record that has more. Each reading keeps the same.
    """

    schema: TableSchema
    seed: int = 0

    def read(self, path: str | Path, csv_format: CsvFormat | None = None) -> pd.DataFrame:
        """Read a table as :func:`dpsynth.table.files.read_table` does."""
        return read_table(path, self.schema.table, csv_format)

    def narrowed(self, columns: Collection[str]) -> Reader:
        """A reader of these columns, and of those that they are computed from."""
        table = self.schema.table
        computed = (*table.formulas, *table.readings)
        needed = {*columns}.union(*(inputs_of(name, computed) for name in columns))
        return replace(self, schema=table.select(name for name in table.names if name in needed))

    def columns(self, names: Iterable[str]) -> list[str]:
        """Those of a file's columns that are read."""
        table = self.schema.table
        return [name for name in table.read_names(names) if name in table.names]

    def records(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Records of rows, without derived columns. Raises DataError if the rows do not fit the schema."""
        return self.schema.table.conform_modelled(frame)

    def levels(self, frame: pd.DataFrame) -> pd.DataFrame:
        """One row for each record of a synthetic table, conformed, with derived columns."""
        return self.schema.table.conform(frame).frame

    def persons(self, frame: pd.DataFrame) -> NDArray[np.object_]:
        """Different identifiers of those whom the schema tells apart, shape (k,): none of rows."""
        return np.empty(0, dtype=object)

    def units(self, frame: pd.DataFrame) -> NDArray[np.int64]:
        """Number of each row's record, from 0, in the order of their first rows, shape (rows,)."""
        return np.arange(len(frame))

    def unused(self, frame: pd.DataFrame) -> dict[str, int]:
        """Number of rows that are in no record, by the reason. Confidential."""
        return {}
