"""A table, that is a frame together with its schema, and its splits into a training and a test part.

A record is a row, or a patient with all rows if patients have several. It is in one part as a whole.
`independent_split` decides each record by itself. One record more or less in the table is therefore one more
or less in the training part. So a guarantee about the training part is one about the table. `train_test`
splits in exact numbers and in proportion to the outcome, as experiments want it. There, one record less
reshuffles the halves. A guarantee is then about the training half as it is.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar, overload

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpsynth.datasets.data_cards import Card
from dpsynth.errors import DataError, InputError, of_records
from dpsynth.patients.reader import reader_of
from dpsynth.table.csv_format import CsvFormat
from dpsynth.table.files import read_cells
from dpsynth.table.identity import warn_of_repeated_persons
from dpsynth.table.kinds.category import category_codes
from dpsynth.table.schema import Schema, TableSchema


@dataclass(frozen=True)
class PatientTable:
    """Rows of patients, several for each, with the unit's column.

    ``name`` is for messages and reports. ``card`` is None for tables that are not of the registry.
    """

    frame: pd.DataFrame
    schema: TableSchema
    name: str
    card: Card | None = None

    @property
    def outcome(self) -> str | None:
        """The schema's outcome column."""
        return self.schema.outcome

    @property
    def records(self) -> int:
        """The number of records, of patients or of rows."""
        return int(self.units.max(initial=-1)) + 1

    @property
    def units(self) -> NDArray[np.int64]:
        """The number of each row's record, from 0. Raises DataError if a row does not say whose it is."""
        return reader_of(self.schema).units(self.frame)

    @property
    def strata(self) -> NDArray[np.int64]:
        """The number of each patient's outcome, from 0: the highest category in the rows, or no value."""
        codes = category_codes(self.schema.column(str(self.outcome)), self.frame[self.outcome])
        return np.asarray(pd.Series(codes).groupby(self.units).max(), np.int64) + 1

    def identities(self) -> Iterable[str]:
        """Identifiers of the patients, as text, in the order of `units`."""
        return reader_of(self.schema).persons(self.frame)


@dataclass(frozen=True)
class Table(PatientTable):
    """A frame that fits a schema, with one row for each record.

    ``frame`` has the schema's columns, in their order, with their canonical dtypes.
    """

    schema: Schema

    @property
    def strata(self) -> NDArray[np.int64]:
        """The number of each record's outcome."""
        return pd.factorize(self.frame[self.outcome], use_na_sentinel=False)[0]

    def identities(self) -> Iterable[str]:
        """The values of each record, as text."""
        return map(repr, self.frame.astype(object).itertuples(index=False, name=None))


#: of either kind
AnyTable = TypeVar("AnyTable", bound=Table | PatientTable)


Described = TypeVar("Described", bound=TableSchema)


@overload
def open_table(
    path: str | Path,
    schema: Schema | str | Path,
    name: str | None = None,
    *,
    csv_format: CsvFormat | None = None,
    schema_file: str | Path | None = None,
) -> Table: ...


@overload
def open_table(
    path: str | Path,
    schema: TableSchema,
    name: str | None = None,
    *,
    csv_format: CsvFormat | None = None,
    schema_file: str | Path | None = None,
) -> Table | PatientTable: ...


def open_table(
    path: str | Path,
    schema: TableSchema | str | Path,
    name: str | None = None,
    *,
    csv_format: CsvFormat | None = None,
    schema_file: str | Path | None = None,
) -> Table | PatientTable:
    """Read a CSV or Parquet file of one's own and its schema (an object, or the YAML file of a Schema).

    ``csv_format`` describes how a CSV file is written, by default as the schema says. Errors name
    ``schema_file``, from which an object was read. Warns
    (OwnerWarning) if something was guessed, or a column that is not declared shows a person in several rows.
    Raises DataError or SchemaError if either cannot be read or they do not fit each other.
    """
    given = schema if isinstance(schema, TableSchema) else Schema.from_yaml(Path(schema))
    form = csv_format or given.csv
    called, known = name or given.name or Path(path).stem, given.table
    if given.several:
        return PatientTable(reader_of(given).read(path, form), given, called)
    try:
        cells, file = read_cells(path, known.columns, form)
        frame = known.check(cells, path=file)
    except DataError as problem:
        if Path(path).name in str(problem):
            raise
        other = schema_file or ("the schema" if given is schema else schema)
        raise DataError(f"{path} does not fit {other}: {problem}") from None
    # what is declared reaches the fit, which looks at it
    warn_of_repeated_persons(cells.drop(columns=[name for name in known.names if name in cells.columns]))
    return Table(frame, known, called)


def independent_split(
    table: AnyTable, test_fraction: float = 0.5, seed: int = 0
) -> tuple[AnyTable, AnyTable]:
    """Split a table by a keyed hash of each record, whatever the other records are.

    A patient with several rows goes to one part, by a hash of the patient's identifier.

    A record goes to the test part with probability ``test_fraction``, in (0, 1). ``seed`` is the key of the
    hash. Rows keep their order, with indices from 0. The public number of each part is the table's times its
    share: the number to expect, which is public where the table's is. Raises DataError if one part would be
    empty.

    Notes
    -----
    Privacy: equal records are hashed with their number, the first without, so that they part as others do.
    One record more is the last of its equals: it goes to one part, and no other record moves.

    Examples
    --------
    >>> from dpsynth import datasets
    >>> whole = datasets.load("breast_cancer")
    >>> train, test = independent_split(whole, test_fraction=0.5, seed=1)
    >>> train.schema.n_public, len(train.frame) + len(test.frame)
    (285, 569)
    """
    _check_fraction(test_fraction)
    key = f"dpsynth split {seed}".encode()
    units = table.units
    copies: Counter[str] = Counter()
    digests = []
    for record in table.identities():
        text = f"{record} {copies[record]}" if copies[record] else record
        copies[record] += 1
        digests.append(hashlib.blake2b(text.encode(), digest_size=8, key=key).digest())
    uniform = np.array([int.from_bytes(d, "big") for d in digests], dtype=np.float64) / 2.0**64
    in_test = uniform < test_fraction
    if in_test.all() or not in_test.any():
        raise _cannot_be_split(table, len(in_test), test_fraction)
    return _parts(table, in_test[units], test_fraction)


def train_test(table: AnyTable, test_fraction: float = 0.5, seed: int = 0) -> tuple[AnyTable, AnyTable]:
    """Split a table at random, each outcome value in proportion.

    ``test_fraction``, in (0, 1), is the share of the test half: ``round(test_fraction * n)`` records exactly.
    Outcome values share it by largest remainders. Without an outcome the split is a plain random one.
    ``seed`` protects nobody: a split is part of the design of an experiment. Rows keep their order, with
    indices from 0. Each half's public number follows from the table's, never from the frame. Raises DataError
    if one half would be empty.

    Notes
    -----
    The privacy guarantee of a run is about the training half as it is: two training tables that differ in one
    record.

    Examples
    --------
    >>> from dpsynth import datasets
    >>> train, test = train_test(datasets.load("breast_cancer"), test_fraction=0.5, seed=1)
    >>> train.schema.n_public, len(test.frame)
    (285, 284)
    """
    _check_fraction(test_fraction)
    units, n = table.units, table.records
    n_test = _test_size(n, test_fraction)
    if not 0 < n_test < n:
        raise _cannot_be_split(table, n, test_fraction)
    rng = np.random.default_rng(seed)
    strata = np.zeros(n, dtype=np.intp) if table.outcome is None else table.strata
    in_test = _stratified(strata, n_test, rng)
    return _parts(table, in_test[units], test_fraction)


def _cannot_be_split(table: Table | PatientTable, n: int, test_fraction: float) -> DataError:
    return of_records(
        f"a table of {n} {table.schema.protected} cannot be split with test_fraction {test_fraction!r}"
    )


def _parts(table: AnyTable, in_test: np.ndarray, test_fraction: float) -> tuple[AnyTable, AnyTable]:
    n_public = table.schema.n_public
    n_public_test = None if n_public is None else _test_size(n_public, test_fraction)
    train = _part(table, ~in_test, training_schema(table.schema, test_fraction).n_public)
    return train, _part(table, in_test, n_public_test or None)


def training_schema(schema: Described, test_fraction: float) -> Described:
    """Return the schema of a table's training part, whose public number follows from the table's."""
    if schema.n_public is None:
        return schema
    # a public number so small that a half of it is nothing says nothing
    return schema.with_n_public(schema.n_public - _test_size(schema.n_public, test_fraction) or None)


def _check_fraction(test_fraction: float) -> None:
    if not 0 < test_fraction < 1:
        raise InputError(f"test_fraction must be between 0 and 1, got {test_fraction!r}")


def _test_size(n: int, test_fraction: float) -> int:
    return round(test_fraction * n)


def _part(table: AnyTable, rows: np.ndarray, n_public: int | None) -> AnyTable:
    changes: dict[str, Any] = {"schema": table.schema.with_n_public(n_public)}
    return replace(table, frame=table.frame.loc[rows].reset_index(drop=True), **changes)


def _stratified(strata: np.ndarray, n_test: int, rng: np.random.Generator) -> np.ndarray:
    """Mark ``n_test`` rows, from each stratum in proportion (largest remainders, ties at random)."""
    sizes = np.bincount(strata)
    shares = sizes * (n_test / len(strata))
    counts = np.floor(shares).astype(int)
    order = np.lexsort((rng.random(len(sizes)), -(shares - counts)))
    counts[order[: n_test - counts.sum()]] += 1
    chosen = np.zeros(len(strata), dtype=bool)
    for stratum, count in enumerate(counts):
        chosen[rng.permutation(np.flatnonzero(strata == stratum))[:count]] = True
    return chosen
