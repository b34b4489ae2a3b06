"""Private records in parts, on a Dask cluster: counted where they lie, summed where the noise is drawn.

Counts add over parts. `PartitionedRecords` therefore give the same numbers as `FrameRecords` for the same
records. A release draws its noise once, at the driver, and posts the same event as for a frame. Workers hold
exact counts of private records, as they hold the records. The cluster belongs to the table's owner.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial, reduce
from typing import TYPE_CHECKING

import pandas as pd
from numpy.typing import NDArray

from dpsynth.cluster import each
from dpsynth.errors import InputError
from dpsynth.releases.records import Records, Summing, added
from dpsynth.table.parquet import ParquetTable, Part, read_part
from dpsynth.table.schema import Schema

if TYPE_CHECKING:
    from distributed import Client


class PartitionedRecords(Records):
    """Records of a table in parts.

    Parameters
    ----------
    schema : Schema
        Conforming is done part by part, each time that records are read.
    client : distributed.Client
        Client of workers that can read the table's files (`dpsynth.cluster.connected`).

    Raises
    ------
    DataError
        If a file's columns are not the schema's.
    """

    def __init__(self, table: ParquetTable, schema: Schema, client: Client) -> None:
        super().__init__()
        self.table, self.schema = table, schema
        self._empty = table.empty(schema)
        self._client = client

    def check(self) -> None:
        """Read every record once and check it against the schema, before budget is spent.

        Raises
        ------
        DataError
            If one does not fit. The message names file, column and row, for the table's owner only.
        """
        for _ in each(self._client, partial(_check_part, schema=self.schema), self.table.parts):
            pass

    def _size(self) -> int:
        return self.table.rows

    def _total(self, of: Summing) -> Sequence[NDArray]:
        # A part that is counted twice, because its worker died, has one future and is added once.
        parts = each(self._client, partial(_total_of_part, schema=self.schema, of=of), self.table.parts)
        return reduce(added, parts, of(self._empty))

    def _frame(self) -> pd.DataFrame:
        raise self.not_in_memory()

    def not_in_memory(self) -> InputError:
        """The error for a caller that needs the records in memory, as the critic's steps do."""
        return InputError(
            f"critic steps need records in memory, and {self.table.path} is a table in parts; give "
            "training_steps=0 (--steps 0)"
        )


def _check_part(part: Part, schema: Schema) -> None:
    for _ in read_part(part, schema):
        pass


def _total_of_part(part: Part, schema: Schema, of: Summing) -> Sequence[NDArray]:
    return reduce(added, map(of, read_part(part, schema)))
