"""Tables in and out of files: CSV and Parquet, checked against the schema, written atomically.

With a schema every CSV cell is read as text and converted by what its column declares, so that a code
``010`` keeps its zero, ``no`` stays a word, and an error names the line of the file.
"""

from __future__ import annotations

import csv
import gzip
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeVar

import numpy as np
import pandas as pd

from dpsynth.errors import DataError
from dpsynth.files import replaced
from dpsynth.table.column import Column
from dpsynth.table.schema import Schema

T = TypeVar("T")

_READABLE = (".csv", ".csv.gz", ".parquet")
_WRITABLE = (".csv", ".parquet")
#: what other programs write for a missing value; a column that declares one of these as a category keeps it
_ABSENT = frozenset(("", "NA", "N/A", "NaN", "nan", "NULL", "null", "None", "<NA>", "."))


def read_table(path: str | Path, schema: Schema | None = None) -> pd.DataFrame:
    """Read a CSV (``.csv``, ``.csv.gz``) or Parquet file.

    Parameters
    ----------
    path : path
    schema : Schema, optional
        Its columns must be exactly the file's, in any order; the frame then has the canonical order and
        dtypes. Values outside the bounds stay as they are. Without a schema pandas guesses the dtypes.

    Raises
    ------
    DataError
        If the file cannot be read or does not fit the schema; column, row, line and value are named.
    """
    source = Path(path)
    suffix = _suffix(source, _READABLE)
    if schema is None:
        return _attempt(
            source, lambda: pd.read_parquet(source) if suffix == ".parquet" else _guessed_csv(source)
        )
    if suffix == ".parquet":
        return schema.check(_attempt(source, lambda: pd.read_parquet(source)), path=source)
    return schema.check(read_csv_text(source, schema.columns), path=source)


def read_csv_text(path: str | Path, columns: Iterable[Column]) -> pd.DataFrame:
    """Read a CSV file's cells as text, None where a value is absent.

    An empty cell is absent, and so are ``NA``, ``nan``, ``null`` and the like unless one of them is a
    declared category of its column.
    """
    source = Path(path)
    kept = {column.name: {c for c in column.categories if isinstance(c, str)} for column in columns}
    names, rows = _attempt(source, lambda: _csv_cells(source))
    cells = np.array(rows, dtype=object).reshape(len(rows), len(names))
    frame = pd.DataFrame(cells, columns=names, dtype=object)
    for position, name in enumerate(names):
        absent = _ABSENT - kept.get(name, set())
        text = [cell.strip() for cell in cells[:, position]]
        frame.isetitem(position, np.array([None if cell in absent else cell for cell in text], dtype=object))
    return frame


def _csv_cells(path: Path) -> tuple[list[str], list[list[str]]]:
    # The csv module rather than pandas, which takes a row that is too long as an index and fills up one that
    # is too short.
    opener = gzip.open if path.suffix.lower() == ".gz" else open
    with opener(path, "rt", encoding="utf-8-sig", newline="") as file:
        reader = csv.reader(file, strict=True)
        try:
            header = next(reader, [])
            if not header:
                raise DataError(f"{path}: the file has no header line")
            names = [name.strip() for name in header]
            rows = []
            for row in reader:
                if len(row) == len(names):
                    rows.append(row)
                elif row:  # a blank line is no record
                    raise DataError(
                        f"{path}, line {reader.line_num}: {len(row)} cells where the header has {len(names)}"
                    )
        except csv.Error as problem:
            raise DataError(f"{path}, line {reader.line_num}: not CSV: {problem}") from None
    return names, rows


def _guessed_csv(path: Path) -> pd.DataFrame:
    frame = pd.read_csv(path, low_memory=False)
    if not isinstance(frame.index, pd.RangeIndex):
        raise DataError(f"{path}: rows have more cells than the header has names")
    # Digits behind a leading zero are a code, not a number: pandas would take the zeros away.
    written = pd.read_csv(path, dtype=str, keep_default_na=False)
    for name in frame.columns:
        if frame[name].dtype.kind in "iuf" and written[name].str.match(r"\s*[+-]?0\d").any():
            frame[name] = written[name].str.strip().where(frame[name].notna())
    return frame


def write_table(frames: pd.DataFrame | Iterable[pd.DataFrame], path: str | Path) -> int:
    """Write a table as CSV or Parquet, by the suffix of ``path``, wholly or not at all.

    Parameters
    ----------
    frames : pandas.DataFrame or iterable of them
        An iterable is written piece by piece, one piece in memory at a time; all pieces have the columns and
        dtypes of the first. Indices are not written.
    path : path
        ``.csv`` or ``.parquet``. If anything fails on the way, a file that was there stays as it was.

    Returns
    -------
    int
        The number of rows written.

    Raises
    ------
    DataError
        If the folder does not exist, the suffix is another, there is nothing to write or pieces differ.

    Examples
    --------
    >>> import tempfile
    >>> frame = pd.DataFrame({"age": [40, 51], "sex": ["F", None]})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     n = write_table(iter([frame, frame]), Path(folder) / "table.csv")
    ...     n, read_table(Path(folder) / "table.csv")["age"].tolist()
    (4, [40, 51, 40, 51])
    """
    target = Path(path)
    suffix = _suffix(target, _WRITABLE)
    if not target.parent.is_dir():
        raise DataError(f"{target}: the folder {target.parent} does not exist")
    pieces = iter([frames] if isinstance(frames, pd.DataFrame) else frames)
    first = next(pieces, None)
    if first is None:
        raise DataError(f"{target}: there is nothing to write")
    write = _write_csv if suffix == ".csv" else _write_parquet
    with replaced(target) as temporary:
        return write(first, pieces, temporary)


def _write_csv(first: pd.DataFrame, rest: Iterable[pd.DataFrame], path: Path) -> int:
    rows = len(first)
    with open(path, "x", encoding="utf-8", newline="") as file:
        first.to_csv(file, index=False, lineterminator="\n")
        for piece in rest:
            _check_piece(first, piece)
            piece.to_csv(file, index=False, header=False, lineterminator="\n")
            rows += len(piece)
    return rows


def _write_parquet(first: pd.DataFrame, rest: Iterable[pd.DataFrame], path: Path) -> int:
    # imported here: reading and writing CSV does without it
    import pyarrow as pa
    from pyarrow.parquet import ParquetWriter

    rows = len(first)
    table = pa.Table.from_pandas(first, preserve_index=False)
    # a first piece without any value of a text column does not know that it is text
    fields = [pa.field(f.name, pa.string()) if pa.types.is_null(f.type) else f for f in table.schema]
    schema = pa.schema(fields, metadata=table.schema.metadata)
    with ParquetWriter(path, schema) as writer:
        writer.write_table(table.cast(schema))
        for piece in rest:
            _check_piece(first, piece)
            try:
                writer.write_table(pa.Table.from_pandas(piece, schema=schema, preserve_index=False))
            except (pa.ArrowInvalid, pa.ArrowTypeError) as problem:
                raise DataError(
                    f"a later piece of the table differs from the first: {_line(problem)}"
                ) from None
            rows += len(piece)
    return rows


def _check_piece(first: pd.DataFrame, piece: pd.DataFrame) -> None:
    if list(piece.columns) != list(first.columns):
        raise DataError(
            "a later piece of the table has other columns than the first: "
            f"{list(piece.columns)}, not {list(first.columns)}"
        )


def _suffix(path: Path, allowed: tuple[str, ...]) -> str:
    suffix = next((s for s in allowed if path.name.lower().endswith(s)), None)
    if suffix is None:
        raise DataError(f"{path}: the file name must end with {' or '.join(allowed)}")
    return suffix


def _attempt(path: Path, read: Callable[[], T]) -> T:
    try:
        return read()
    except DataError:
        raise
    except ImportError as problem:
        raise DataError(f"{path}: Parquet files need a working pyarrow: {_line(problem)}") from None
    except (OSError, EOFError) as problem:
        reason = getattr(problem, "strerror", None) or _line(problem)
        raise DataError(f"{path}: cannot be read ({reason})") from None
    except ValueError as problem:  # the parsing errors of pandas, pyarrow and the UTF-8 decoder all are
        raise DataError(f"{path}: not a table: {_line(problem)}") from None


def _line(problem: Exception) -> str:
    return " ".join(str(problem).split())
