"""Read a table in parts from a folder of Parquet files, or one file, with at most one part in memory.

Files are cut at their row groups and read in batches. A file of patients with several rows is read as a
whole, and holds all rows of its patients. A file's metadata (columns, rows) are checked against the schema
before anything is read. A part is then conformed as a whole table is. Conforming reads one record at a time,
so the parts give the same records as the table. There is one exception: a Parquet column whose *type*
differs between files. In a whole frame pandas would give ``True`` of one file and ``1`` of another one type.
A part is read as its file says.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import accumulate, chain
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.util import hash_array

from dpsynth.errors import DataError
from dpsynth.table.files import reading, with_text
from dpsynth.table.identity import is_person, near
from dpsynth.table.reader import Reader

#: Rows in memory at once, and rows of a part, unless a row group has more.
BATCH_ROWS, PART_ROWS = 100_000, 500_000


@dataclass(frozen=True)
class RowGroups:
    """Place of some of a table's rows: row groups of a file, ``rows`` rows from ``first`` on."""

    file: Path
    numbers: tuple[int, ...]
    first: int
    rows: int
    file_size: int


#: row groups that are read together
Part = tuple[RowGroups, ...]


class ParquetTable:
    """A private table in Parquet files, opened but not read.

    ``path`` is a folder whose files ``*.parquet`` hold the records, or one such file. ``parts``, in the order
    of the files' names, hold every row once. So do ``whole_files``, where no file is cut. ``rows``, the
    number of rows, is private, for the table's owner only. Raises DataError if there is no such file, a file
    is not Parquet, or a folder lies in the folder.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for name in "ab":
    ...         pd.DataFrame({"age": range(5)}).to_parquet(f"{folder}/{name}.parquet", row_group_size=2)
    ...     table = ParquetTable(folder)
    ...     table.rows, [(group.first, group.rows) for part in table.parts for group in part]
    (10, [(0, 2), (2, 2), (4, 1), (0, 2), (2, 2), (4, 1)])
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path).absolute()
        self.files = _files(self.path)
        groups = [found for file in self.files if (found := _row_groups(file))]
        self.parts = tuple(_joined(chain.from_iterable(groups)))
        self.whole_files = tuple(_joined(map(_whole, groups)))
        self.rows = sum(group.rows for group in chain.from_iterable(groups))

    def persons(self) -> pd.DataFrame:
        """The columns whose names say whose row it is, as they are in the files, shape (rows, k)."""
        from pyarrow.parquet import read_schema, read_table

        names = [name for name in read_schema(self.files[0]).names if is_person(name)]
        with reading(self.path):
            frames = [read_table(file, columns=names).to_pandas() for file in self.files if names]
        return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame()

    def empty(self, reader: Reader) -> pd.DataFrame:
        """A frame of no record, after checking that all files have the columns of the reader's schema.

        Derived columns may be there or not. Raises DataError, naming the file, if one
        lacks a column or has one that the schema does not declare.
        """
        from pyarrow import parquet

        for file in self.files:
            with reading(file):
                frame = parquet.read_schema(file).empty_table().to_pandas()
            try:
                records = reader.records(frame)
            except DataError as problem:
                raise DataError(f"{file}: {problem}") from None
        return records


def read_part(part: Part, reader: Reader) -> Iterator[pd.DataFrame]:
    """Frames of records of a part, each of at most `BATCH_ROWS` rows or of a whole file.

    DataError names file, column and row of what does not fit, or a file that has changed since it was opened.
    """
    for group in part:
        first = group.first
        for frame in _batches(group, reader):
            try:
                yield reader.records(frame)
            except DataError as problem:
                rows = f"rows {first + 1:,} to {first + len(frame):,}"
                raise DataError(f"{group.file}, counted within {rows}: {problem}") from None
            first += len(frame)


#: Hashes of a patient's identifier, and of what it is `near` to.
_HASHES = np.dtype([("unit", np.uint64), ("near", np.uint64)])


def units_in(part: Part, reader: Reader, key: str) -> list[tuple[Path, NDArray[np.void]]]:
    """The files of a part, and hashes of the different identifiers of patients in each. Rows have none.

    A hash has two fields: ``unit`` of the identifier, and ``near`` of what it is `near` to. ``key``: of the
    hashes, 16 characters.
    """
    if not reader.schema.several:
        return []
    found = []
    for group in part:
        ids = reader.persons(next(_batches(group, reader)))
        hashes = np.empty(len(ids), _HASHES)
        hashes["unit"] = hash_array(ids, hash_key=key)
        hashes["near"] = hash_array(np.array(near(ids), dtype=object), hash_key=key)
        found.append((group.file, hashes))
    return found


def _files(path: Path) -> tuple[Path, ...]:
    if path.is_file():
        return (path,)
    with reading(path):
        entries = sorted(path.iterdir())
    # What lies in folders of folders (sex=F/...) would be left out, and its column with it.
    inner = next(
        (entry for entry in entries if entry.is_dir() and not entry.name.startswith((".", "_"))), None
    )
    if inner is not None:
        raise DataError(f"{inner} is a folder. The Parquet files of a table must lie in one folder, {path}")
    files = tuple(entry for entry in entries if entry.suffix.lower() == ".parquet" and entry.is_file())
    if not files:
        raise DataError(f"{path} holds no file that ends with .parquet")
    return files


def _row_groups(file: Path) -> list[RowGroups]:
    from pyarrow.parquet import read_metadata

    with reading(file):
        size = file.stat().st_size
        metadata = read_metadata(file)
        rows = [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)]
    firsts = [0, *accumulate(rows)]
    return [RowGroups(file, (i,), firsts[i], n, size) for i, n in enumerate(rows) if n]


def _whole(groups: list[RowGroups]) -> RowGroups:
    """All row groups of a file as one."""
    numbers = chain.from_iterable(group.numbers for group in groups)
    return replace(groups[0], numbers=tuple(numbers), rows=sum(group.rows for group in groups))


def _joined(groups: Iterable[RowGroups]) -> Iterator[Part]:
    """Join row groups to parts of at most `PART_ROWS` rows, since each part takes network time."""
    held: list[RowGroups] = []
    for group in groups:
        if held and sum(other.rows for other in held) + group.rows > PART_ROWS:
            yield tuple(held)
            held = []
        held.append(group)
    if held:
        yield tuple(held)


def _batches(group: RowGroups, reader: Reader) -> Iterator[pd.DataFrame]:
    left = group.rows
    for frame in _frames(group, reader):
        left -= len(frame)
        if left < 0:
            raise _changed(group)
        yield frame
    if left:
        raise _changed(group)


def _changed(group: RowGroups) -> DataError:
    return DataError(f"{group.file} has changed since the table was opened. Begin again")


def _frames(group: RowGroups, reader: Reader) -> Iterator[pd.DataFrame]:
    from pyarrow.parquet import ParquetFile

    with reading(group.file):
        if group.file.stat().st_size != group.file_size:
            raise _changed(group)
        with ParquetFile(group.file) as file:
            columns = reader.columns(file.schema_arrow.names)
            if reader.schema.several:  # whose rows may lie anywhere in the file
                whole = file.read_row_groups(group.numbers, columns, use_threads=False).to_pandas()
                yield with_text(whole[columns], group.file)
                return
            for batch in file.iter_batches(BATCH_ROWS, group.numbers, columns, use_threads=False):
                yield with_text(batch.to_pandas()[columns], group.file)
