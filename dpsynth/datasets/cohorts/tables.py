"""Read MIMIC-III's tables as they are downloaded: a folder of CSV or CSV.gz files, names in any case.

Files are found and their headers read before anything else, so that an absent table or column gives one
sentence. DuckDB then reads the files directly, through views with our names and types. A value that does not
fit its column's type gives an error that names table and column.

Reference: Johnson A. E. W. et al. (2016). MIMIC-III, a freely accessible critical care database. Scientific
Data 3, 160035; the tables' descriptions at https://mimic.mit.edu/docs/iii/tables/.
"""

from __future__ import annotations

import csv
import gzip
import re
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from dpsynth.checks import few
from dpsynth.errors import DataError, InputError, of_records

if TYPE_CHECKING:
    import duckdb

_KEY, _TIME, _TEXT, _NUMBER = "BIGINT", "TIMESTAMP", "VARCHAR", "DOUBLE"
#: of numbers that people chart, what is no number is taken for missing; keys and times must be right
_WORDS = {_KEY: "a whole number", _TIME: "a time (YYYY-MM-DD HH:MM:SS)"}

#: the columns that the cohorts read, of each table
COLUMNS: dict[str, dict[str, str]] = {
    "patients": {"subject_id": _KEY, "gender": _TEXT, "dob": _TIME},
    "admissions": {
        "subject_id": _KEY, "hadm_id": _KEY, "admittime": _TIME, "dischtime": _TIME, "deathtime": _TIME,
        "admission_type": _TEXT, "insurance": _TEXT, "ethnicity": _TEXT, "hospital_expire_flag": _KEY,
    },
    "icustays": {"subject_id": _KEY, "hadm_id": _KEY, "icustay_id": _KEY, "intime": _TIME, "outtime": _TIME},
    "diagnoses_icd": {"hadm_id": _KEY, "seq_num": _KEY, "icd9_code": _TEXT},
    "services": {"hadm_id": _KEY, "transfertime": _TIME, "curr_service": _TEXT},
    "labevents": {
        "subject_id": _KEY, "itemid": _KEY, "charttime": _TIME, "value": _TEXT, "valuenum": _NUMBER,
    },
    "chartevents": {
        "icustay_id": _KEY, "itemid": _KEY, "charttime": _TIME, "value": _TEXT, "valuenum": _NUMBER,
        "error": _NUMBER,
    },
    "outputevents": {
        "icustay_id": _KEY, "itemid": _KEY, "charttime": _TIME, "value": _NUMBER, "iserror": _NUMBER,
    },
    "inputevents_cv": {
        "icustay_id": _KEY, "charttime": _TIME, "itemid": _KEY, "rate": _NUMBER, "rateuom": _TEXT,
    },
    "inputevents_mv": {
        "icustay_id": _KEY, "starttime": _TIME, "endtime": _TIME, "itemid": _KEY, "rate": _NUMBER,
        "rateuom": _TEXT, "statusdescription": _TEXT,
    },
    "procedureevents_mv": {
        "icustay_id": _KEY, "starttime": _TIME, "endtime": _TIME, "itemid": _KEY, "statusdescription": _TEXT,
    },
}  # fmt: skip


@dataclass(frozen=True)
class TableFile:
    """One table's file, and its columns' names as they stand in its header."""

    table: str
    path: Path
    header: tuple[str, ...]


def find_tables(folder: Path, wanted: Iterable[str] = tuple(COLUMNS)) -> tuple[TableFile, ...]:
    """Find the files of the ``wanted`` tables in a folder, names in any case, and check their headers."""
    if not folder.is_dir():
        raise InputError(f"--tables {folder} is not a folder. Name the folder with MIMIC-III's CSV files")
    try:
        entries = sorted(path for path in folder.iterdir() if path.is_file())
    except OSError as problem:
        raise InputError(f"--tables {folder} cannot be read ({problem.strerror})") from None
    found: dict[str, list[Path]] = {table: [] for table in COLUMNS}
    for path in entries:
        table = path.name.lower().removesuffix(".gz").removesuffix(".csv")
        if table in found and path.name.lower() in (f"{table}.csv", f"{table}.csv.gz"):
            found[table].append(path)
    if not any(found.values()):
        raise InputError(
            f"--tables {folder} holds none of MIMIC-III's tables (ADMISSIONS.csv or .csv.gz and others)"
        )
    return tuple(_table_file(table, found[table], folder) for table in wanted)


def _table_file(table: str, paths: list[Path], folder: Path) -> TableFile:
    if not paths:
        raise DataError(f"{folder}: the table {table.upper()} is missing ({table.upper()}.csv or .csv.gz)")
    if len(paths) > 1:
        both = " and ".join(path.name for path in paths)
        raise DataError(f"{folder}: the table {table.upper()} is there twice ({both}). Keep one")
    path = paths[0]
    header = _header(path)
    known = [name.lower() for name in header]
    for column in COLUMNS[table]:
        if known.count(column) != 1:
            what = "is missing" if column not in known else "is there twice"
            raise DataError(
                f"{path}: the column {column.upper()} of the table {table.upper()} {what} "
                f"(columns: {few(header)})"
            )
    return TableFile(table, path, header)


def _header(path: Path) -> tuple[str, ...]:
    opened = gzip.open if path.name.lower().endswith(".gz") else open
    try:
        with opened(path, "rt", encoding="utf-8-sig", newline="") as file:
            return tuple(name.strip() for name in next(csv.reader(file), []))
    except (OSError, EOFError, zlib.error, UnicodeDecodeError, csv.Error) as problem:
        reason = getattr(problem, "strerror", None) or " ".join(str(problem).split())
        raise DataError(f"{path}: cannot be read ({reason})") from None


def make_views(connection: duckdb.DuckDBPyConnection, tables: Iterable[TableFile]) -> None:
    """Make a view ``mimic.TABLE`` of each table, with the names and types of :data:`COLUMNS`."""
    connection.execute("CREATE SCHEMA mimic")
    for found in tables:
        cells = ", ".join(f"{_quoted(name)}: 'VARCHAR'" for name in found.header)
        columns = ", ".join(_typed(found, name, kind) for name, kind in COLUMNS[found.table].items())
        connection.execute(
            f"CREATE VIEW mimic.{found.table} AS SELECT {columns} FROM read_csv({_quoted(str(found.path))}, "
            f"columns = {{{cells}}}, header = true, delim = ',', quote = '\"', escape = '\"', "
            "auto_detect = false)"
        )


def _typed(found: TableFile, column: str, kind: str) -> str:
    position = [name.lower() for name in found.header].index(column)
    given = '"' + found.header[position].replace('"', '""') + '"'
    if kind == _TEXT:
        return f"{given} AS {column}"
    if kind == _NUMBER:
        return f"TRY_CAST({given} AS {kind}) AS {column}"
    before, after = f"{found.path}: the column {column.upper()} holds ", f", which is not {_WORDS[kind]}"
    return (
        f"CASE WHEN {given} IS NOT NULL AND TRY_CAST({given} AS {kind}) IS NULL "
        f"THEN error({_quoted(before)} || {given} || {_quoted(after)})::{kind} "
        f"ELSE TRY_CAST({given} AS {kind}) END AS {column}"
    )


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


@contextmanager
def database(folder: Path, scratch: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """Open a DuckDB database in memory that spills to ``scratch``. Its errors become one sentence."""
    try:
        import duckdb
    except ImportError:
        raise InputError(
            "cohorts need duckdb, which is not installed: pip install 'dpsynth-health[cohorts]'"
        ) from None
    with duckdb.connect() as connection:
        connection.execute(f"SET temp_directory = {_quoted(str(scratch))}")
        connection.execute("SET preserve_insertion_order = false")
        connection.execute("SET enable_progress_bar = false")
        # DuckDB cannot know how long a CSV file is, and may hold the longer side of a join in memory; written
        # order keeps it to the tables that follow the first
        connection.execute("SET disabled_optimizers = 'join_order,build_side_probe_side'")
        try:
            yield connection
        except duckdb.InvalidInputException as problem:
            raise of_records(_of_a_row(str(problem), folder)) from None
        except duckdb.OutOfMemoryException as problem:
            raise DataError(f"{folder}: the queries need more memory or disk ({_line(problem)})") from None
        except (duckdb.IOException, duckdb.DataError) as problem:
            raise of_records(f"{folder}: cannot be read ({_line(problem)})") from None
        except RuntimeError as problem:  # what DuckDB makes of Ctrl-C while a query runs
            if "interrupted" in str(problem).lower():
                raise KeyboardInterrupt from None
            raise


def _of_a_row(message: str, folder: Path) -> str:
    """Our views' message about a value, or DuckDB's about a line, without its advice and the line."""
    message = message.removeprefix("Invalid Input Error: ")
    if message.startswith(str(folder)):
        return message
    file = re.search(r"^ *file *= *(.+)$", message, flags=re.MULTILINE)
    found = [line for line in message.split("\n\n")[0].split("Possible ")[0].splitlines() if line.strip()]
    kept = "; ".join(line.strip() for line in found if not line.startswith("Original Line"))
    return f"{file.group(1).strip() if file else folder}: cannot be read ({kept})"


def _line(problem: Exception) -> str:
    return " ".join(str(problem).split())
