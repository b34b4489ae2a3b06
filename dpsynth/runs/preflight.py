"""What can be wrong in a run and be seen without its records: found before a record is read or paid for."""

from __future__ import annotations

from pathlib import Path

from dpsynth import datasets
from dpsynth.accounting.ledger.ledger import Ledger
from dpsynth.errors import DataError, InputError
from dpsynth.runs.config import RunConfig
from dpsynth.synthesis.studies import check_studies
from dpsynth.table.schema import Schema, require_reviewed


def check_run(config: RunConfig, ledger: str | Path | None = None) -> Schema:
    """Check a run's schema, studies, evaluation's settings and earlier ledger, and that its table is there.

    Parameters
    ----------
    ledger : path, optional
        Of what has been released about the same table before.

    Returns
    -------
    Schema
        Of the whole table.

    Raises
    ------
    InputError
        If the schema is wrong, a study or a setting of the evaluation does not fit it (the message starts
        with the key in the configuration), the ledger cannot be read, or the table's file is absent.
    PrivacyError
        If the schema holds fields read off the records that nobody accepted.

    Examples
    --------
    >>> evaluate = {"constraints": ["age > 18"]}
    >>> model = {"epsilon": 3}
    >>> wrong = {"dataset": "breast_cancer", "model": model, "evaluate": evaluate}
    >>> check_run(RunConfig.from_dict(wrong))
    Traceback (most recent call last):
    dpsynth.errors.InputError: evaluate: constraint 'age > 18': 'age' is not a column (columns: ...
    """
    if config.data is None:
        schema = datasets.card(str(config.dataset)).table
    else:
        schema = Schema.from_yaml(Path(config.data.schema_path))
    try:
        check_studies(config.studies, schema)
    except InputError as problem:
        raise InputError(f"studies: {problem}") from None
    if config.evaluate.enabled:
        check_evaluation(config, schema)
    require_reviewed(schema, config.data is not None and config.data.accept_unreviewed)
    if ledger is not None:
        Ledger.load(ledger)
    if config.data is not None:
        require_table(Path(config.data.path))
    return schema


def check_evaluation(config: RunConfig, schema: Schema) -> None:
    """Check a configuration's section ``evaluate`` against a schema.

    Raises
    ------
    InputError
        If a setting is wrong.
    """
    try:
        config.evaluate.check(schema)
    except InputError as problem:
        raise InputError(f"evaluate: {problem}") from None


def require_table(path: Path) -> None:
    """Refuse a table's path that is a folder or where there is no file.

    Raises
    ------
    DataError
    """
    if path.is_dir():
        raise DataError(f"{path} is a folder; name a CSV or Parquet file")
    if not path.is_file():
        raise DataError(f"{path}: there is no such file")
