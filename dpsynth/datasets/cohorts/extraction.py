"""Make a study's cohort from MIMIC-III's files: stays are chosen step by step, then measured.

Small tables choose the stays. Each of the two large ones is read once. LABEVENTS is read for the stays that
remain when a step first needs it, CHARTEVENTS for the stays of the cohort. Every query is about one patient
at a time, so a patient's records decide one row and no other. A cohort is saved as its table, with the schema
as YAML beside it, both or none.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from dpsynth.datasets.cohorts.definitions import RESOURCES, CohortStudy, sql
from dpsynth.datasets.cohorts.tables import COLUMNS, database, find_tables, make_views
from dpsynth.errors import DataError, InputError
from dpsynth.files.storage import replaced, require_free_file
from dpsynth.table.files import write_table

if TYPE_CHECKING:
    import duckdb


#: what each script of a study reads, of the tables that only some studies need
_READ_BY = {
    "diagnosis": ("diagnoses_icd",),
    "urine": ("outputevents",),
    "support": ("procedureevents_mv",),
    "vasopressors": ("inputevents_cv", "inputevents_mv"),
    "admission_kind": ("services",),
    "comorbidity": ("diagnoses_icd",),
}
#: tables of the queries, and the files of ``definitions`` that they hold
_DEFINITIONS = {"item": "items", "item_limit": "limits", "points": "points", "condition_codes": "diagnoses"}
_ALWAYS = ("patients", "admissions", "icustays", "labevents", "chartevents")


@dataclass(frozen=True)
class Remaining:
    """How many stays and patients are left after a step. Counts of private records: internal."""

    step: str
    stays: int
    patients: int


@dataclass(frozen=True)
class Cohort:
    """A study's cohort.

    ``frame``: the schema's columns and dtypes, values rounded to its steps, one row a patient, indexed by
    ``icustay_id`` in ascending order. ``steps``: what was left after each step. Both are private.
    """

    study: CohortStudy
    frame: pd.DataFrame
    steps: tuple[Remaining, ...]

    @property
    def positive_rate(self) -> float:
        """Share of rows with the outcome, 0 to 1, or NaN if there are none."""
        return float(self.frame[self.study.schema.outcome].astype(float).mean())


def needed_tables(study: CohortStudy) -> tuple[str, ...]:
    """The tables that a study reads, in the order of :data:`~dpsynth.datasets.cohorts.tables.COLUMNS`."""
    used = set(_ALWAYS)
    for script in (*study.scripts, *(step.on for step in study.steps)):
        used.update(_READ_BY.get(script, ()))
    return tuple(table for table in COLUMNS if table in used)


def extract(study: CohortStudy, folder: str | Path, *, scratch: str | Path | None = None) -> Cohort:
    """Choose a study's stays in MIMIC-III's CSV or CSV.gz files and measure them.

    Data too large for memory go to a hidden folder in ``scratch``, by default that of temporary files.
    """
    folder = Path(folder)
    tables = find_tables(folder, needed_tables(study))
    with (
        tempfile.TemporaryDirectory(prefix=".cohort-", dir=scratch) as spill,
        database(folder, Path(spill)) as connection,
    ):
        make_views(connection, tables)
        _load_definitions(connection)
        steps = _choose(connection, study)
        for script in study.scripts:
            connection.execute(sql(script))
        frame = connection.execute(study.query).df().set_index("icustay_id")
    return Cohort(study, _conformed(study, frame, folder), steps)


def _load_definitions(connection: duckdb.DuckDBPyConnection) -> None:
    from pyarrow import csv, string

    # a single code is a text of digits as well
    options = csv.ConvertOptions(column_types={"codes": string()})
    for name, file in _DEFINITIONS.items():
        with (RESOURCES / "definitions" / f"{file}.csv").open("rb") as source:
            connection.register("definitions", csv.read_csv(source, convert_options=options))
        connection.execute(f"CREATE TABLE {name} AS FROM definitions")
        connection.unregister("definitions")


def _choose(connection: duckdb.DuckDBPyConnection, study: CohortStudy) -> tuple[Remaining, ...]:
    """Make the table ``cohort`` of one stay a patient, and say what each step left."""
    connection.execute(
        sql("stays").format(prediction_time=study.prediction_time, window_start=study.window_start)
    )
    left = [_remaining(connection, "stays in intensive care")]
    loaded = set()
    for step in study.steps:
        if step.on == "laboratory":
            # of all stays that are left, since which one comes first is not known yet
            connection.execute("CREATE VIEW cohort AS FROM stay")
            connection.execute(sql("laboratory"))
            connection.execute("DROP VIEW cohort")
        elif step.on and step.on not in loaded:
            connection.execute(sql("diagnoses"))
        loaded.add(step.on)
        connection.execute(f"DELETE FROM stay WHERE ({step.condition}) IS NOT TRUE")
        left.append(_remaining(connection, step.label))
    connection.execute(
        "CREATE TABLE cohort AS FROM stay "
        "QUALIFY row_number() OVER (PARTITION BY subject_id ORDER BY intime, icustay_id) = 1"
    )
    connection.execute("DROP TABLE stay")
    left.append(_remaining(connection, "first eligible stay of each patient", "cohort"))
    if "laboratory" not in loaded:
        connection.execute(sql("laboratory"))
    return tuple(left)


def _remaining(connection: duckdb.DuckDBPyConnection, label: str, table: str = "stay") -> Remaining:
    row = connection.execute(f"SELECT count(*), count(DISTINCT subject_id) FROM {table}").fetchone()
    assert row is not None
    return Remaining(label, int(row[0]), int(row[1]))


def _conformed(study: CohortStudy, frame: pd.DataFrame, folder: Path) -> pd.DataFrame:
    """Round to the schema's steps, clip to its bounds and give its dtypes."""
    schema = study.schema
    for column in schema.columns:
        if column.is_numeric:
            step, lower = column.resolution or 0.0, column.lower or 0.0
            values = pd.to_numeric(frame[column.name]).astype("float64")
            if step:
                values = (lower + ((values - lower) / step).round() * step).round(6)
            frame[column.name] = values
    try:
        return schema.conform(frame).frame
    except DataError as problem:
        raise DataError(f"{folder}: {problem}") from None


def schema_path(out: Path) -> Path:
    """Path of the schema of the cohort ``out``."""
    return out.with_suffix(".yaml")


def require_free_target(out: Path, *, force: bool) -> None:
    """Refuse, before a record is read, a target that is no CSV or Parquet file, or cannot be written."""
    if out.suffix.lower() not in (".csv", ".parquet"):
        raise InputError(f"--out {out}: the file name must end with .parquet or .csv")
    for path in (out, schema_path(out)):
        require_free_file(path, force=force)


def save_cohort(cohort: Cohort, out: Path) -> None:
    """Write the table without the stays' numbers, and its schema, both or none."""
    with replaced(schema_path(out), shared=True) as schema, replaced(out) as table:
        schema.write_text(cohort.study.schema.to_yaml(), encoding="utf-8")
        write_table(cohort.frame, table)
