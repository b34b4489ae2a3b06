"""Errors of a run that are found before a record is read.

The real table of a run: loaded, split in two, and put beside the synthetic one.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from dpsynth import datasets
from dpsynth.datasets.table import AnyTable, PatientTable, Table
from dpsynth.errors import DataError, InputError
from dpsynth.evaluation.tables import Tables
from dpsynth.runs.config import RunConfig
from dpsynth.studies.estimates import Estimates
from dpsynth.synthesis.studies import check_studies
from dpsynth.table.patients import PatientSchema, TableSchema, read_schema
from dpsynth.table.schema import require_reviewed

#: rows of a synthetic table that are kept in memory for evaluation, whatever its length
EVALUATED_ROWS = 500_000


def load_table(config: RunConfig) -> Table | PatientTable:
    """Load the table that a configuration names."""
    if config.data is not None:
        data = config.data
        schema, file = read_schema(data.schema_path), data.schema_path
        return datasets.open_table(data.path, schema, csv_format=data.csv_format, schema_file=file)
    return datasets.load(str(config.dataset))


def split_table(config: RunConfig, table: AnyTable) -> tuple[AnyTable, AnyTable]:
    """Split a table into its training and test part, as a configuration says, the same way every time."""
    split = datasets.train_test if config.split.method == "stratified" else datasets.independent_split
    return split(table, config.split.test_fraction, config.split.seed)


def compared(
    sampled: pd.DataFrame,
    train: Table | PatientTable,
    test: Table | PatientTable,
    declared: tuple[Estimates, ...] = (),
) -> Tables:
    """Conform a synthetic table and both parts of the real one. ``declared`` are private estimates.

    The first records of a large synthetic table are used, of patients those with all their rows.
    """
    first = sampled.head(EVALUATED_ROWS)
    if isinstance(train, PatientTable) and len(sampled) > EVALUATED_ROWS:
        unit = train.schema.unit
        first = first[first[unit] != sampled[unit].iloc[EVALUATED_ROWS]]
    return Tables.of(first, train=train.frame, test=test.frame, schema=train.schema, declared=declared)


def size_of(sampled: pd.DataFrame, schema: TableSchema) -> dict[str, int]:
    """The size of a synthetic table, for its report: of records, or of patients and their rows."""
    if isinstance(schema, PatientSchema):
        patients = int(sampled[schema.unit].nunique())
        return {"synthetic_records": patients, "synthetic_rows": len(sampled)}
    return {"synthetic_records": len(sampled)}


def check_run(config: RunConfig) -> TableSchema:
    """Check a run's schema, studies and evaluation's settings, and that its table is there.

    Returns the schema of the whole table. Raises InputError, whose message starts with the key in the
    configuration, and PrivacyError if the schema holds fields read off the records that nobody accepted.

    Examples
    --------
    >>> evaluate = {"constraints": ["age > 18"]}
    >>> wrong = {"dataset": "breast_cancer", "model": {"epsilon": 3}, "evaluate": evaluate}
    >>> check_run(RunConfig.from_dict(wrong))
    Traceback (most recent call last):
    dpsynth.errors.InputError: evaluate: constraint 'age > 18': 'age' is not a column (columns: ...
    """
    if config.data is None:
        schema: TableSchema = datasets.card(str(config.dataset)).table
    else:
        schema = read_schema(Path(config.data.schema_path))
    try:
        check_studies(config.studies, schema)
    except InputError as problem:
        raise InputError(f"studies: {problem}") from None
    if config.evaluate.enabled:
        try:
            config.evaluate.check(schema.levels)
        except InputError as problem:
            raise InputError(f"evaluate: {problem}") from None
    require_reviewed(schema, config.accept_unreviewed)
    if config.data is not None and not (path := Path(config.data.path)).is_file():
        if not path.is_dir():
            raise DataError(f"{path}: there is no such file")
        if not isinstance(schema, PatientSchema):  # whose rows may come from several files
            raise DataError(f"{path} is a folder. Name a CSV or Parquet file")
    return schema
