"""A table: a frame together with its schema."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from dpsynth.datasets.card import Card
from dpsynth.errors import DataError
from dpsynth.table.csv_format import CsvFormat
from dpsynth.table.identifiers import warn_of_repeated_persons
from dpsynth.table.io import read_cells
from dpsynth.table.schema import Schema


@dataclass(frozen=True)
class Table:
    """A frame that fits a schema.

    Attributes
    ----------
    frame : pandas.DataFrame, shape (n, columns)
    schema : Schema
    name : str
    card : Card or None
        None for tables that are not of the registry.
    """

    frame: pd.DataFrame
    schema: Schema
    name: str
    card: Card | None = None

    @property
    def outcome(self) -> str | None:
        """The schema's outcome column."""
        return self.schema.outcome


def open_table(
    path: str | Path,
    schema: Schema | str | Path,
    name: str | None = None,
    *,
    csv_format: CsvFormat | None = None,
) -> Table:
    """Read a CSV or Parquet file of one's own and its schema (an object or a YAML file).

    ``csv_format`` says how a CSV file is written; what it leaves open is guessed.

    Warns
    -----
    OwnerWarning
        What was guessed; and where a column that is not declared shows a person in several rows.

    Raises
    ------
    DataError, SchemaError
        If either cannot be read or they do not fit each other.
    """
    known = schema if isinstance(schema, Schema) else Schema.from_yaml(Path(schema))
    try:
        cells, file = read_cells(path, known.columns, csv_format or CsvFormat())
        frame = known.check(cells, path=file)
    except DataError as problem:
        if Path(path).name in str(problem):
            raise
        other = "the schema" if isinstance(schema, Schema) else schema
        raise DataError(f"{path} does not fit {other}: {problem}") from None
    # what is declared reaches the fit, which looks at it
    warn_of_repeated_persons(cells.drop(columns=[name for name in known.names if name in cells.columns]))
    return Table(frame, known, name or known.name or Path(path).stem)
