"""A cohort as files: the table, and its schema as YAML beside it, both or none."""

from __future__ import annotations

from pathlib import Path

from dpsynth.datasets.cohorts.extraction import Cohort
from dpsynth.errors import InputError
from dpsynth.files.atomic import replaced
from dpsynth.files.targets import require_free_file
from dpsynth.table.io import write_table


def schema_path(out: Path) -> Path:
    """Where the schema of the cohort ``out`` is written.

    Examples
    --------
    >>> schema_path(Path("cohort.parquet")).name
    'cohort.yaml'
    """
    return out.with_suffix(".yaml")


def require_free_target(out: Path, *, force: bool) -> None:
    """Refuse, before a record is read, a target that is neither CSV nor Parquet, or exists, or is unwritable.

    Raises
    ------
    InputError
    """
    if out.suffix.lower() not in (".csv", ".parquet"):
        raise InputError(f"--out {out}: the file name must end with .parquet or .csv")
    for path in (out, schema_path(out)):
        require_free_file(path, force=force)


def save(cohort: Cohort, out: Path) -> None:
    """Write the table without the stays' numbers, and its schema; both are renamed into place when both are
    whole.

    Raises
    ------
    DataError
    """
    with replaced(schema_path(out)) as schema, replaced(out) as table:
        schema.write_text(cohort.study.schema.to_yaml(), encoding="utf-8")
        write_table(cohort.frame, table)
