"""Read and write tables: CSV and Parquet, checked against the schema, written atomically.

Every CSV cell is read as text. With a schema it is converted as its column declares. A code ``010`` keeps its
zero, ``no`` stays a word, and an error names the line of the file. Without a schema it stays text, for
:func:`dpsynth.table.inference.infer_schema` to read.
"""

from __future__ import annotations

import math
import os
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from dpsynth.errors import DataError, of_records
from dpsynth.files.storage import replaced
from dpsynth.table import labelled
from dpsynth.table.cells import distinct_cells, escape
from dpsynth.table.column import Column
from dpsynth.table.csv import text_frame
from dpsynth.table.csv_format import CsvFile, CsvFormat, in_schema
from dpsynth.table.schema import Schema

#: Ends of the names of files that can be written.
WRITABLE = (".csv", ".parquet")
_GUESSED = CsvFormat()
Read = tuple[pd.DataFrame, Path | CsvFile]


def read_table(
    path: str | Path, schema: Schema | None = None, csv_format: CsvFormat | None = None
) -> pd.DataFrame:
    """Read a table: CSV (``.csv``, ``.csv.gz``, ``.tsv``), Parquet, ``.xlsx``, SPSS, Stata or SAS.

    With a schema, its columns must be exactly the file's, in any order, beside those that it ignores. The
    frame then has the canonical order and dtypes. Values outside the bounds stay as they are. Without a
    schema the cells of a CSV file are text, None where empty. ``csv_format`` is the schema's by default.
    Warns (OwnerWarning) if the guess is not commas between cells, decimal points and UTF-8. Raises DataError,
    naming column, row, line and value, if the file cannot be read or does not fit the schema.
    """
    if schema is None:
        return read_cells(path, csv_format=csv_format or _GUESSED)[0]
    frame, file = read_cells(path, schema.columns, csv_format or schema.csv)
    return schema.check(frame, path=file)


def read_cells(
    path: str | Path, columns: Iterable[Column] | None = None, csv_format: CsvFormat = _GUESSED
) -> tuple[pd.DataFrame, Path | CsvFile]:
    """Read all columns of a file as they are, with the file, so that :meth:`Schema.check` can name a line.

    The cells of a CSV file are text, None where empty. With ``columns``, ``NA``, ``nan``, ``null`` and the
    like are absent too, unless one of them is a declared category of its column.
    """
    source = Path(path)
    read = READERS[_suffix(source, tuple(READERS))]
    with reading(source):
        return read(source, columns, csv_format)


def _read_parquet(path: Path, columns: Iterable[Column] | None, csv_format: CsvFormat) -> Read:
    _check_memory(path)
    return with_text(pd.read_parquet(path), path), path


def _read_tabs(path: Path, columns: Iterable[Column] | None, csv_format: CsvFormat) -> Read:
    return text_frame(path, columns, csv_format if csv_format.sep else replace(csv_format, sep="\t"))


def _read_sheet(path: Path, columns: Iterable[Column] | None, csv_format: CsvFormat) -> Read:
    """The first sheet of a workbook, its cells as they stand: a text 010 must not become ten."""
    try:
        cells = pd.read_excel(path, engine="openpyxl", dtype=object, keep_default_na=False, na_values=[""])
    except ImportError:
        raise DataError(f"{path}: workbooks need openpyxl. Install dpsynth-health[dictionaries]") from None
    return cells.infer_objects(), path


def _read_labelled(path: Path, columns: Iterable[Column] | None, csv_format: CsvFormat) -> Read:
    """A file of SPSS, Stata or SAS, its codes as they stand."""
    return labelled.open_file(path)[0], path


#: Readers by the end of a file's name.
READERS: dict[str, Callable[[Path, Iterable[Column] | None, CsvFormat], Read]] = {
    ".csv": text_frame,
    ".csv.gz": text_frame,
    ".tsv": _read_tabs,
    ".parquet": _read_parquet,
    ".xlsx": _read_sheet,
    **dict.fromkeys(labelled.SUFFIXES, _read_labelled),
}


def with_text(frame: pd.DataFrame, path: Path) -> pd.DataFrame:
    """Return a frame of a Parquet file, or raise DataError if a text is not UTF-8, which pyarrow accepts."""
    import pyarrow as pa

    for name, values in frame.items():
        try:
            if isinstance(values.dtype, pd.StringDtype):
                pa.array(values.array).validate(full=True)
        except pa.ArrowInvalid:
            raise DataError(f"{path}: column {str(name)!r} holds text that is not UTF-8") from None
    return frame


def _check_memory(path: Path) -> None:
    """Refuse a Parquet file whose cells cannot be held. A few kilobytes may stand for billions of cells."""
    from pyarrow.parquet import read_metadata

    metadata = read_metadata(path)
    needed, there = 8 * metadata.num_rows * metadata.num_columns, memory_bytes()
    if needed > there:
        raise of_records(
            f"{path}: its {metadata.num_rows:,} rows need {needed / 1e9:,.0f} GB of memory or more, and "
            f"this computer has {there / 1e9:,.0f} GB. Read it in parts, as a folder of Parquet files"
        )


def memory_bytes() -> float:
    """Bytes of memory of this computer, infinity where it does not say."""
    try:
        return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, ValueError, OSError):
        return math.inf


def write_table(
    frames: pd.DataFrame | Iterable[pd.DataFrame],
    path: str | Path,
    *,
    escape_formulas: bool = True,
    shared: bool = False,
) -> int:
    """Write a table as CSV or Parquet, by the suffix of ``path``, wholly or not at all.

    Parameters
    ----------
    frames : pandas.DataFrame or iterable of them
        An iterable is written piece by piece, one piece in memory at a time. All pieces have the columns and
        dtypes of the first. Indices are not written.
    path : path
        ``.csv`` or ``.parquet``. If writing fails, an existing file stays as it was.
    escape_formulas : bool
        Put an apostrophe before text that a spreadsheet would run as a formula (``=HYPERLINK(…)``), only in
        CSV files, in text columns and names. Reading with the schema takes it away again.
    shared : bool
        Whether other users of the computer may read the file, as the umask says. By default they may not.

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
    suffix = _suffix(target, WRITABLE)
    if not target.parent.is_dir():
        raise DataError(f"{target}: the folder {target.parent} does not exist")
    pieces = iter([frames] if isinstance(frames, pd.DataFrame) else frames)
    first = next(pieces, None)
    if first is None:
        raise DataError(f"{target}: there is nothing to write")
    with replaced(target, shared=shared) as temporary:
        if suffix == ".csv":
            return _write_csv(first, pieces, temporary, escape_formulas)
        return _write_parquet(first, pieces, temporary)


def _write_csv(first: pd.DataFrame, rest: Iterable[pd.DataFrame], path: Path, escape_formulas: bool) -> int:
    shown = _escaped if escape_formulas else lambda frame: frame
    rows = len(first)
    with open(path, "w", encoding="utf-8", newline="") as file:
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
        codes, distinct = distinct_cells(values)
        words = [escape(word) if isinstance(word, str) else word for word in distinct]
        if words != distinct:
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
    """Turn errors in reading a table's file into one sentence that names the file."""
    try:
        yield
    except DataError:
        raise
    except ImportError as problem:
        raise DataError(f"{path}: Parquet files need a working pyarrow: {_line(problem)}") from None
    except (OSError, EOFError, zlib.error) as problem:
        reason = getattr(problem, "strerror", None) or _line(problem)
        raise DataError(f"{path}: cannot be read ({reason})") from None
    except MemoryError:
        raise DataError(f"{path}: the table does not fit in memory") from None
    except UnicodeError as problem:
        encoding = getattr(problem, "encoding", "what was given")
        raise DataError(
            f"{path}: not a table: its bytes are no text in {encoding}. Save it as UTF-8 (spreadsheets call "
            f"that CSV UTF-8), or {in_schema(encoding='…')}"
        ) from None
    except ValueError as problem:  # the parsing errors of pandas, pyarrow and the UTF-8 decoder all are
        raise DataError(f"{path}: not a table: {_line(problem)}") from None


def _line(problem: Exception) -> str:
    return " ".join(str(problem).split())
