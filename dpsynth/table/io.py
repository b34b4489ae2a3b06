"""Tables in and out of files: CSV and Parquet, checked against the schema, written atomically.

Every CSV cell is read as text. With a schema it is converted by what its column declares, so that a code
``010`` keeps its zero, ``no`` stays a word, and an error names the line of the file; without one it stays
text, for :func:`dpsynth.table.schema_inference.infer` to read.
"""

from __future__ import annotations

import csv
import gzip
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import numpy as np
import pandas as pd

from dpsynth.errors import DataError, of_records
from dpsynth.files.atomic import replaced
from dpsynth.table.cells import ABSENT
from dpsynth.table.column import Column
from dpsynth.table.formulas import escape
from dpsynth.table.schema import Schema

_READABLE = (".csv", ".csv.gz", ".parquet")
_WRITABLE = (".csv", ".parquet")
_SEPARATORS = {";": "semicolons", "\t": "tabs", "|": "bars"}


def read_table(path: str | Path, schema: Schema | None = None) -> pd.DataFrame:
    """Read a CSV (``.csv``, ``.csv.gz``) or Parquet file.

    Parameters
    ----------
    path : path
    schema : Schema, optional
        Its columns must be exactly the file's, in any order, beside those that it ignores by name; the frame
        then has the canonical order and dtypes. Values outside the bounds stay as they are. Without a schema
        the cells of a CSV file are text, None where empty.

    Raises
    ------
    DataError
        If the file cannot be read or does not fit the schema; column, row, line and value are named.
    """
    source = Path(path)
    suffix = _suffix(source, _READABLE)
    if schema is None:
        return _parquet_frame(source) if suffix == ".parquet" else _text_frame(source, {}, frozenset(("",)))
    frame = _parquet_frame(source) if suffix == ".parquet" else read_csv_text(source, schema.columns)
    return schema.check(frame, path=source)


def read_csv_text(path: str | Path, columns: Iterable[Column]) -> pd.DataFrame:
    """Read a CSV file's cells as text, None where a value is absent.

    An empty cell is absent, and so are ``NA``, ``nan``, ``null`` and the like unless one of them is a
    declared category of its column.
    """
    source = Path(path)
    kept = {column.name: {c for c in column.categories if isinstance(c, str)} for column in columns}
    return _text_frame(source, kept, ABSENT)


def _parquet_frame(source: Path) -> pd.DataFrame:
    with reading(source):
        return pd.read_parquet(source)


def _text_frame(source: Path, kept: dict[str, set[str]], absent_words: frozenset[str]) -> pd.DataFrame:
    with reading(source):
        names, rows = _csv_cells(source)
    cells = np.array(rows, dtype=object).reshape(len(rows), len(names))
    frame = pd.DataFrame(cells, columns=names, dtype=object)
    for position, name in enumerate(names):
        absent = absent_words - kept.get(name, set())
        text = [cell.strip() for cell in cells[:, position]]
        frame.isetitem(position, np.array([None if cell in absent else cell for cell in text], dtype=object))
    return frame


def _csv_cells(path: Path) -> tuple[list[str], list[list[str]]]:
    # The csv module rather than pandas, which takes a row that is too long as an index and fills up one that
    # is too short.
    opener = gzip.open if path.suffix.lower() == ".gz" else open
    with opener(path, "rt", encoding="utf-8-sig", newline="") as file:
        reader = csv.reader(_lines(file, path), strict=True)
        try:
            header = next(reader, [])
            if not header:
                raise DataError(f"{path}: the file has no header line")
            names = [name.strip() for name in header]
            _check_header(path, names)
            rows = []
            for row in reader:
                if len(row) == len(names):
                    rows.append(row)
                elif row:  # a blank line is no record
                    raise of_records(
                        f"{path}, line {reader.line_num}: {len(row)} cells where the header has {len(names)}"
                        " (a cell that holds a comma must stand in double quotes)"
                    )
        except csv.Error as problem:
            raise of_records(f"{path}, line {reader.line_num}: not CSV: {problem}") from None
    return names, rows


def _lines(file: IO[str], path: Path) -> Iterator[str]:
    for number, line in enumerate(file, start=1):
        if "\0" in line:
            raise of_records(
                f"{path}, line {number}: a NUL byte: the file is damaged or not UTF-8 text; save it anew"
            )
        yield line


def _check_header(path: Path, names: list[str]) -> None:
    used = next((sign for sign in _SEPARATORS if sign in names[0]), None)
    if len(names) == 1 and used is not None:
        raise DataError(
            f"{path}: the cells seem to be separated by {_SEPARATORS[used]}; save the table with commas "
            "between cells and points in decimal numbers"
        )
    twice = next((name for i, name in enumerate(names) if name in names[:i]), None)
    if twice is not None:
        raise DataError(
            f"{path}: the header names {twice!r} more than once; give each column a name of its own"
        )


def write_table(
    frames: pd.DataFrame | Iterable[pd.DataFrame], path: str | Path, *, escape_formulas: bool = True
) -> int:
    """Write a table as CSV or Parquet, by the suffix of ``path``, wholly or not at all.

    Parameters
    ----------
    frames : pandas.DataFrame or iterable of them
        An iterable is written piece by piece, one piece in memory at a time; all pieces have the columns and
        dtypes of the first. Indices are not written.
    path : path
        ``.csv`` or ``.parquet``. If anything fails on the way, a file that was there stays as it was.
    escape_formulas : bool
        Put an apostrophe before text that a spreadsheet would run as a formula (``=HYPERLINK(…)``), in CSV
        files and there in text columns and names only. Reading with the schema takes it away again.

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
    >>> schema = Schema(columns=(Column(name="age", kind="integer", lower=18, upper=90),))
    >>> frame = schema.check(pd.DataFrame({"age": [40, 51]}))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     n = write_table(iter([frame, frame]), Path(folder) / "table.csv")
    ...     n, read_table(Path(folder) / "table.csv", schema)["age"].tolist()
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
    with replaced(target) as temporary:
        if suffix == ".csv":
            return _write_csv(first, pieces, temporary, escape_formulas)
        return _write_parquet(first, pieces, temporary)


def _write_csv(first: pd.DataFrame, rest: Iterable[pd.DataFrame], path: Path, escape_formulas: bool) -> int:
    shown = _escaped if escape_formulas else lambda frame: frame
    rows = len(first)
    with open(path, "x", encoding="utf-8", newline="") as file:
        shown(first).to_csv(file, index=False, lineterminator="\n")
        for piece in rest:
            _check_piece(first, piece)
            shown(piece).to_csv(file, index=False, header=False, lineterminator="\n")
            rows += len(piece)
    return rows


def _escaped(frame: pd.DataFrame) -> pd.DataFrame:
    made = frame.rename(columns=lambda name: escape(str(name)))
    for position in range(frame.shape[1]):
        values = frame.iloc[:, position]
        if pd.api.types.is_numeric_dtype(values.dtype):  # true/false among them
            continue
        codes, distinct = pd.factorize(values.astype(object))
        words = [escape(word) if isinstance(word, str) else word for word in distinct]
        if words != list(distinct):
            made.isetitem(position, np.array([*words, None], dtype=object)[codes])  # code -1: missing
    return made


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


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turn what goes wrong when a table's file is read into one sentence that names the file.

    Raises
    ------
    DataError
    """
    try:
        yield
    except DataError:
        raise
    except ImportError as problem:
        raise DataError(f"{path}: Parquet files need a working pyarrow: {_line(problem)}") from None
    except (OSError, EOFError) as problem:
        reason = getattr(problem, "strerror", None) or _line(problem)
        raise DataError(f"{path}: cannot be read ({reason})") from None
    except UnicodeDecodeError:
        raise DataError(
            f"{path}: not a table: not UTF-8 text; save it as UTF-8 (spreadsheets call that CSV UTF-8)"
        ) from None
    except ValueError as problem:  # the parsing errors of pandas, pyarrow and the UTF-8 decoder all are
        raise DataError(f"{path}: not a table: {_line(problem)}") from None


def _line(problem: Exception) -> str:
    return " ".join(str(problem).split())
