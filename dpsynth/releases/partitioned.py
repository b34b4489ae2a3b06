"""Private records in parts, on a Dask cluster: counted where they lie, summed where the noise is drawn.

Sums are whole numbers, which add over parts. `PartitionedRecords` therefore give the same numbers as
`FrameRecords` for the same records, bit by bit. Parts of patients with several rows are whole files, and no
patient may stand in two of them. A release draws its noise once, at the driver, and posts the same event as
for a frame. Workers hold exact counts of private records, as they hold the records. The cluster belongs to
the table's owner.
"""

from __future__ import annotations

import math
import os
import secrets
from collections.abc import Collection, Sequence
from dataclasses import replace
from functools import partial, reduce
from itertools import accumulate, chain
from pathlib import Path
from tempfile import TemporaryFile, gettempdir
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpsynth.cluster import each
from dpsynth.errors import InputError, RunError, of_records
from dpsynth.releases.records import Records, Rowwise, Summing, added
from dpsynth.table.identity import warn_of_near_identities
from dpsynth.table.parquet import ParquetTable, Part, Reader, RowGroups, read_part, units_in
from dpsynth.table.patients import PatientSchema, TableSchema

if TYPE_CHECKING:
    from distributed import Client


class PartitionedRecords(Records):
    """Records of a table in parts.

    Parameters
    ----------
    schema : Schema or PatientSchema
        Conforming is done part by part, each time that records are read. With a PatientSchema, each file
        holds all rows of its patients, and is in a worker's memory as a whole.
    client : distributed.Client
        Client of workers that can read the table's files (`dpsynth.cluster.connected`).

    Raises
    ------
    DataError
        If a file's columns are not the schema's.
    """

    def __init__(self, table: ParquetTable, schema: TableSchema, client: Client) -> None:
        super().__init__()
        self.table, self.schema = table, schema
        self._client = client
        self._reader = Reader(schema, secrets.randbits(63))
        self._parts = table.whole_files if self._reader.whole_files else table.parts
        self._empty = table.empty(self._reader)
        self._number = None if self._reader.whole_files else table.rows

    def check(self, seed: int | None = None) -> int:
        """Read every record once and check it against the schema, before budget is spent.

        Parameters
        ----------
        seed : int, optional
            Secret seed of the rows that are kept of a patient, where the schema asks for random ones. Later
            readings keep the same rows. Drawn at random by default.

        Returns
        -------
        int
            The number of records, of rows or of patients. It is confidential.

        Raises
        ------
        DataError
            If a record does not fit, or if two files hold rows of one patient. The message names file, column
            and row, for the table's owner only.
        """
        if seed is not None:
            self._reader = replace(self._reader, seed=seed)
        work = partial(_check_part, reader=self._reader, key=secrets.token_hex(8))
        checked = list(each(self._client, work, self._parts))
        units = [found for _, units in checked for found in units]
        _refuse_shared(units)
        if isinstance(self.schema, PatientSchema) and units:
            warn_of_near_identities(self.schema.unit, np.concatenate([own["near"] for _, own in units]))
        self._number = sum(number for number, _ in checked)
        return self._number

    def _size(self) -> int:
        return self.check() if self._number is None else self._number

    def _total(self, of: Summing, columns: Collection[str] | None = None) -> Sequence[NDArray]:
        reader = self._reader if columns is None else self._reader.narrowed(columns)
        # A part that is counted twice, because its worker died, has one future and is added once.
        parts = each(self._client, partial(_total_of_part, reader=reader, of=of), self._parts)
        return reduce(added, parts, of(self._empty))

    def _rows(self, of: Rowwise) -> NDArray:
        if self._reader.whole_files:
            raise InputError("a patient's place in a table of several rows is not known before it is read")
        none = of(self._empty, 0)
        groups = list(chain.from_iterable(self._parts))
        firsts = accumulate((group.rows for group in groups), initial=0)
        found = _room(none.dtype, (self.table.rows, *none.shape[1:]))
        parts = list(zip(firsts, groups, strict=False))
        work = partial(_rows_of_group, reader=self._reader, of=of, none=none)
        few = 2 * max(len(self._client.ncores()), 1)  # since results wait in the workers' memory
        for start in range(0, len(parts), few):
            for first, rows in each(self._client, work, parts[start : start + few]):
                found[first : first + len(rows)] = rows
        return found

    def _frame(self) -> pd.DataFrame:
        raise InputError(f"{self.table.path} is a table in parts, which cannot be read into memory here")


#: Bytes of numbers of all records that this process holds. More are in a file.
IN_MEMORY = 1 << 28
#: A file, and hashes of the identifiers of its patients, see `units_in`.
Units = tuple[Path, NDArray[np.void]]


def _check_part(part: Part, reader: Reader, key: str) -> tuple[int, list[Units]]:
    number = sum(map(len, read_part(part, reader)))
    return number, units_in(part, reader, key)


def _refuse_shared(units: list[Units]) -> None:
    """Refuse patients of two files, who would count twice. Equal hashes of two patients are very rare."""
    if not units:
        return
    units = sorted(units, key=lambda found: found[0])
    hashes = np.concatenate([own["unit"] for _, own in units])
    file = np.repeat(np.arange(len(units)), [len(own) for _, own in units])
    order = np.argsort(hashes, kind="stable")
    twice = np.flatnonzero(hashes[order][1:] == hashes[order][:-1])
    if len(twice):
        one, other = min(zip(file[order[twice]], file[order[twice + 1]], strict=True))
        raise of_records(
            f"{units[one][0]} and {units[other][0]} hold rows of one patient. Write all rows of each patient "
            "into one file"
        )


def _room(dtype: np.dtype, shape: tuple[int, ...]) -> NDArray:
    """Room for numbers in memory, or else in a file in the folder TMPDIR.

    The file has no name, so it ends with this process, however that ends. It has its whole size from the
    start: on a disk that is full later, a write to memory would end the process.
    """
    size = math.prod(shape) * dtype.itemsize
    if size <= IN_MEMORY:
        return np.empty(shape, dtype)
    with TemporaryFile() as file:
        try:
            if hasattr(os, "posix_fallocate"):
                os.posix_fallocate(file.fileno(), 0, size)
            else:
                os.truncate(file.fileno(), size)
        except OSError as problem:
            raise RunError(
                f"numbers of all records need {size / 1e9:.1f} GB (confidential) in {gettempdir()}: "
                f"{problem.strerror}. Set TMPDIR to a folder with room"
            ) from None
        return np.memmap(file, dtype, "r+", shape=shape)


def _rows_of_group(
    part: tuple[int, RowGroups], reader: Reader, of: Rowwise, none: NDArray
) -> tuple[int, NDArray]:
    """First number and numbers of the records of a row group. ``none``: those of no record."""
    first, group = part
    found, start = np.empty((group.rows, *none.shape[1:]), none.dtype), 0
    for frame in read_part((group,), reader):
        found[start : start + len(frame)] = of(frame, first + start)
        start += len(frame)
    return first, found


def _total_of_part(part: Part, reader: Reader, of: Summing) -> Sequence[NDArray]:
    return reduce(added, map(of, read_part(part, reader)))
