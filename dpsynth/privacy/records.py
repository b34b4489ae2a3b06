"""Private records, which answer a release only while the ledger runs it.

All counts come from one method, `Records.counts`. The records are a frame in memory (`FrameRecords`) or a
table in parts (`PartitionedRecords`). The lock is against mistakes, not malice: code that reads records
without posting the reading fails the first time it is run. Three things read records and release nothing of
them: `PartitionedRecords.check` before a fit, the comparison of a checkpoint with its table, and audits.
"""

from __future__ import annotations

import math
import os
import secrets
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property, partial, reduce
from itertools import accumulate, chain
from pathlib import Path
from tempfile import TemporaryFile, gettempdir
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpsynth.errors import InputError, PrivacyError, RunError, of_records
from dpsynth.parallel import each
from dpsynth.patients.reader import reader_of
from dpsynth.privacy.pair_counts import count_products, pair_tables
from dpsynth.table.coded import CodedTable
from dpsynth.table.column import Column
from dpsynth.table.grid import Grid
from dpsynth.table.identity import warn_of_near_identities
from dpsynth.table.kinds.date import CYCLES, cycle_places
from dpsynth.table.kinds.number import step_values
from dpsynth.table.parquet import ParquetTable, Part, RowGroups, read_part, units_in
from dpsynth.table.reader import Reader
from dpsynth.table.schema import TableSchema

if TYPE_CHECKING:
    from distributed import Client


# ------------------------------------------------------------------------------------------------
# The axes of tables of counts.
#
# An axis reads one record at a time, so counts add up over parts of a table. Each record lies in exactly one
# cell of an axis, and of a table of several axes. Adding or removing one record therefore moves one count of
# the table by one.


@dataclass(frozen=True, eq=False)
class GridAxis:
    """The cells of one column's public grid, or coarse bins of them.

    ``labels``, shape (grid.size,), optional: bin of each cell.
    """

    grid: Grid
    labels: NDArray[np.int64] | None = None

    @cached_property
    def size(self) -> int:
        """Number of cells or bins."""
        return self.grid.size if self.labels is None else int(self.labels.max()) + 1

    def cells(self, table: CodedTable) -> NDArray[np.int64]:
        """Cell or bin of each record."""
        cells = table.cells(self.grid)
        return cells if self.labels is None else self.labels[cells]


@dataclass(frozen=True, eq=False)
class MissingAxis:
    """The number of missing values a record among some columns."""

    columns: tuple[Column, ...]

    @property
    def size(self) -> int:
        """One more than there are columns."""
        return len(self.columns) + 1

    def cells(self, table: CodedTable) -> NDArray[np.int64]:
        """Number of missing values of each record."""
        counts = np.zeros(len(table), np.int64)
        for column in self.columns:
            counts += table.codes(column).missing
        return counts


@dataclass(frozen=True, eq=False)
class CycleAxis:
    """Weekday, month or hour of a column of dates, missing values last."""

    column: Column
    cycle: str

    @property
    def size(self) -> int:
        """Places of the cycle, and one for missing values."""
        return CYCLES[self.cycle] + 1

    def cells(self, table: CodedTable) -> NDArray[np.int64]:
        """Place of each record."""
        codes = table.codes(self.column)
        places = cycle_places(step_values(self.column, codes.number), self.column.kind, self.cycle)
        return np.where(codes.missing, self.size - 1, places)


@dataclass(frozen=True, eq=False)
class ResidueAxis:
    """Residues of a numeric column: number of a value's step divided by ``width``, modulo ``modulus``.

    Special codes and missing values are in one more cell, the last.
    """

    column: Column
    width: int
    modulus: int

    @property
    def size(self) -> int:
        """Residues, and one for what is no number."""
        return self.modulus + 1

    def cells(self, table: CodedTable) -> NDArray[np.int64]:
        """Residue of each record."""
        codes = table.codes(self.column)
        residues = codes.number.astype(np.int64) // self.width % self.modulus
        return np.where(codes.apart < 0, residues, self.modulus)


#: A partition of records into cells from 0 to ``size - 1``, picklable and compared by identity.
Axis = GridAxis | CycleAxis | MissingAxis | ResidueAxis

#: The axes of one table of counts, in order.
Axes = Sequence[Axis]
#: Sums over the records of a table, or of a block or a part of it.
Summing = Callable[[CodedTable], Sequence[NDArray]]
#: ``of(block, first)``: numbers of each record of a block, whose first is number ``first`` of all records.
Rowwise = Callable[[CodedTable, int], NDArray]
#: Cells of tables that are counted at once, that are kept, and records whose cells are known at once.
_CELLS, _KEPT, _COUNTED = 4_000_000, 16_000_000, 1 << 17
#: Records that are read at once, which bounds the memory of what each contributes.
_BLOCK = 20_000


class Records(ABC):
    """A conformed private table, counted by its subclasses.

    Examples
    --------
    >>> records = FrameRecords(pd.DataFrame({"age": [30, 40]}))
    >>> records.size()
    Traceback (most recent call last):
    dpsynth.errors.PrivacyError: private records can only be read through Ledger.run
    >>> with records.opened():
    ...     records.size()
    2
    """

    def __init__(self) -> None:
        self._readers: list[int] = []  # threads in which they are opened
        self._kept: dict[tuple[Axis, ...], NDArray[np.int64]] = {}
        self._room = _KEPT

    @contextmanager
    def opened(self) -> Iterator[None]:
        """Let this thread read. `dpsynth.privacy.Ledger.run` does so when the reading is posted."""
        reader = threading.get_ident()
        self._readers.append(reader)
        try:
            yield
        finally:
            self._readers.remove(reader)

    def size(self) -> int:
        """Number of records, with sensitivity 1 under add/remove."""
        self._check_open()
        return self._size()

    def counts(self, tables: Sequence[Axes]) -> list[NDArray[np.int64]]:
        """Exact contingency tables, each of L2 sensitivity 1 under add/remove: a record lies in one cell.

        ``tables``: an axis that several tables share is read once.

        Returns list of arrays, each of shape ``tuple(axis.size for axis in axes)``.
        """
        self._check_open()
        return list(self._counts(tables))

    def each_count(self, tables: Iterable[Axes], *, keep: bool = False) -> Iterator[NDArray[np.int64]]:
        """The same tables one after the other, as many at once as memory has room for.

        ``keep``: a later reading wants the same axes again, and takes what is kept with the records.
        """

        def counted(some: list[tuple[Axis, ...]]) -> Iterator[NDArray[np.int64]]:
            new = [axes for axes in some if axes not in self._kept]
            found = dict(zip(new, self.counts(new), strict=True)) if new else {}
            for axes in some:
                self._check_open()
                counts = found[axes] if axes in found else self._kept[axes]
                if keep and axes in found and counts.size <= self._room:
                    counts.flags.writeable = False
                    self._kept[axes] = counts
                    self._room -= counts.size
                yield counts

        some: list[tuple[Axis, ...]] = []
        cells = 0
        for axes in tables:
            size = math.prod(axis.size for axis in axes)
            if some and cells + size > _CELLS:
                yield from counted(some)
                some, cells = [], 0
            some.append(tuple(axes))
            cells += size
        if some:
            yield from counted(some)

    def pair_counts(self, axes: Sequence[Axis]) -> NDArray[np.int64]:
        """The tables of all pairs of axes with few cells, side by side, shape (cells of all axes,) twice."""
        self._check_open()
        (products,) = self._sums(partial(count_products, axes=axes), None)
        return pair_tables(products, [axis.size for axis in axes])

    def sums(self, of: Summing, columns: Collection[str] | None = None) -> list[NDArray[np.int64]]:
        """Exact sums over the records, of whole numbers to which each record adds something of its own.

        ``of``: the sums of a table of records, which add up over tables, and are zeros without records. The
            release bounds the contribution of one record, and so the sensitivity.
        ``columns``: those that ``of`` reads, all by default. The others of a table in parts stay on disk.
        """
        self._check_open()
        return list(self._sums(of, columns))

    def rows(self, of: Rowwise) -> NDArray:
        """Numbers of each record, in their order, as secret as the records. For a critic's steps.

        Shape (n, ...). In a file if the records are in parts and many.
        """
        self._check_open()
        return self._rows(of)

    def frame(self) -> pd.DataFrame:
        """The records themselves, in memory."""
        self._check_open()
        return self._frame()

    def _check_open(self) -> None:
        if threading.get_ident() not in self._readers:
            raise PrivacyError("private records can only be read through Ledger.run")

    @abstractmethod
    def _size(self) -> int: ...

    def _counts(self, tables: Sequence[Axes]) -> Sequence[NDArray]:
        return self._total(partial(count_table, tables=tables))

    def _sums(self, of: Summing, columns: Collection[str] | None) -> Sequence[NDArray]:
        return self._total(partial(sum_table, of=of), columns)

    @abstractmethod
    def _total(self, of: Summing, columns: Collection[str] | None = None) -> Sequence[NDArray]:
        """Arrays of the table of all records, or their sums over tables that hold all records."""

    @abstractmethod
    def _rows(self, of: Rowwise) -> NDArray: ...

    @abstractmethod
    def _frame(self) -> pd.DataFrame: ...


class FrameRecords(Records):
    """Records in memory. A column is coded when it is first read, once for all releases.

    ``frame``, shape (n, columns): conformed to its schema.
    """

    def __init__(self, frame: pd.DataFrame) -> None:
        super().__init__()
        self._table = CodedTable(frame)

    def _size(self) -> int:
        return len(self._table)

    def _total(self, of: Summing, columns: Collection[str] | None = None) -> Sequence[NDArray]:
        table = self._table
        starts = range(0, max(len(table), 1), _COUNTED)
        return reduce(added, (of(table.block(start, start + _COUNTED)) for start in starts))

    def _rows(self, of: Rowwise) -> NDArray:
        none = of(self._table.block(0, 0), 0)
        found = np.empty((len(self._table), *none.shape[1:]), none.dtype)
        for start in range(0, len(found), _BLOCK):
            found[start : start + _BLOCK] = of(self._table.block(start, start + _BLOCK), start)
        return found

    def _frame(self) -> pd.DataFrame:
        return self._table.frame


def sum_table(table: CodedTable, of: Summing) -> Sequence[NDArray[np.int64]]:
    """Sums over the records of a table, block by block, or of one part of it: they add up over parts."""
    blocks = (table.block(start, start + _BLOCK) for start in range(0, len(table), _BLOCK))
    return reduce(added, map(of, blocks), of(table.block(0, 0)))


def added(total: Sequence[NDArray], part: Sequence[NDArray]) -> Sequence[NDArray]:
    """Sums of the records of two tables from those of either."""
    return [whole + more for whole, more in zip(total, part, strict=True)]


def count_table(table: CodedTable, tables: Sequence[Axes]) -> list[NDArray[np.int64]]:
    """Exact contingency tables of records, or of one part of them: they add up over parts.

    Examples
    --------
    >>> a, b = (Column(name=name, kind="integer", lower=0, upper=9, missing=True) for name in "ab")
    >>> missing = MissingAxis((a, b))
    >>> table = CodedTable(pd.DataFrame({"a": [1.0, None, None], "b": [1.0, 2.0, None]}))
    >>> [counts.tolist() for counts in count_table(table, [(missing,), (missing, missing)])]
    [[1, 1, 1], [[1, 0, 0], [0, 1, 0], [0, 0, 1]]]
    """
    different = {id(axis): axis for axes in tables for axis in axes}
    cells = {key: axis.cells(table) for key, axis in different.items()}
    for key, axis in different.items():
        if len(table) and not 0 <= cells[key].min() <= cells[key].max() < axis.size:
            raise IndexError(f"{type(axis).__name__}: a record lies in no cell")
        cells[key] = cells[key].astype(np.int32)  # half the memory to go through
    counts = []
    for axes in tables:
        shape = tuple(axis.size for axis in axes)
        size, (index, *others) = math.prod(shape), [cells[id(axis)] for axis in axes]
        index = index if size < 2**31 else index.astype(np.int64)
        for axis, own in zip(axes[1:], others, strict=True):
            index = index * index.dtype.type(axis.size) + own
        counts.append(np.bincount(index, minlength=size).reshape(shape))
    return counts


# ------------------------------------------------------------------------------------------------
# Private records in parts, on a Dask cluster: counted where they lie, summed where the noise is drawn.
#
# Sums are whole numbers, which add over parts. `PartitionedRecords` therefore give the same numbers as
# `FrameRecords` for the same records, bit by bit. Parts of patients with several rows are whole files, and
# no patient may stand in two of them. A release draws its noise once, at the driver, and posts the same
# event as for a frame. Workers hold exact counts of private records, as they hold the records. The cluster
# belongs to the table's owner.


class PartitionedRecords(Records):
    """Records of a table in parts.

    Parameters
    ----------
    schema : TableSchema
        Conforming is done part by part, each time that records are read. If patients have several rows, each
        file holds all rows of its patients, and is in a worker's memory as a whole.
    client : distributed.Client
        Client of workers that can read the table's files (`dpsynth.parallel.connected`).

    Raises
    ------
    DataError
        If a file's columns are not the schema's.
    """

    def __init__(self, table: ParquetTable, schema: TableSchema, client: Client) -> None:
        super().__init__()
        self.table, self.schema = table, schema
        self._client = client
        self._reader = reader_of(schema, secrets.randbits(63))
        self._parts = table.whole_files if self.schema.several else table.parts
        self._empty = table.empty(self._reader)
        self._number = None if self.schema.several else table.rows

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
        if units:
            warn_of_near_identities(str(self.schema.unit), np.concatenate([own["near"] for _, own in units]))
        self._number = sum(number for number, _ in checked)
        return self._number

    def _size(self) -> int:
        return self.check() if self._number is None else self._number

    def _total(self, of: Summing, columns: Collection[str] | None = None) -> Sequence[NDArray]:
        reader = self._reader if columns is None else self._reader.narrowed(columns)
        # A part that is counted twice, because its worker died, has one future and is added once.
        parts = each(self._client, partial(_total_of_part, reader=reader, of=of), self._parts)
        return reduce(added, parts, of(CodedTable(self._empty)))

    def _rows(self, of: Rowwise) -> NDArray:
        if self.schema.several:
            raise InputError("a patient's place in a table of several rows is not known before it is read")
        none = of(CodedTable(self._empty), 0)
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
        found[start : start + len(frame)] = of(CodedTable(frame), first + start)
        start += len(frame)
    return first, found


def _total_of_part(part: Part, reader: Reader, of: Summing) -> Sequence[NDArray]:
    return reduce(added, map(of, map(CodedTable, read_part(part, reader))))
