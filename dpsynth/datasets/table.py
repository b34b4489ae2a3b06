"""A table: a frame together with its schema, and its split into a training and a test half."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd

from dpsynth.datasets.card import Card
from dpsynth.errors import DataError, InputError
from dpsynth.table.io import read_table
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


def open_table(path: str | Path, schema: Schema | str | Path, name: str | None = None) -> Table:
    """Read a CSV or Parquet file of one's own and its schema (an object or a YAML file).

    Raises
    ------
    DataError, SchemaError
        If either cannot be read or they do not fit each other.
    """
    known = schema if isinstance(schema, Schema) else Schema.from_yaml(Path(schema))
    return Table(read_table(path, known), known, name or known.name or Path(path).stem)


def train_test(table: Table, test_fraction: float = 0.5, seed: int = 0) -> tuple[Table, Table]:
    """Split a table at random, each outcome value in proportion.

    Parameters
    ----------
    table : Table
    test_fraction : float
        In (0, 1): of the records that go to the test half.
    seed : int
        Of the split. It protects nobody: a split is part of the design of an experiment.

    Returns
    -------
    train, test : Table
        Rows in their old order, indices from 0. Each half's ``schema.n_public`` follows from the table's
        public number of records and the fraction, never from the frame; None where the table has none.

    Raises
    ------
    InputError
        If ``test_fraction`` is not in (0, 1).
    DataError
        If one half would be empty.

    Notes
    -----
    The privacy guarantee of a run is about the training half as it is: two training tables that differ in
    one record. Without an outcome the split is a plain random one. The number of test records is
    ``round(test_fraction * n)`` exactly; among outcome values it is shared out by largest remainders.

    Examples
    --------
    >>> from dpsynth import datasets
    >>> train, test = train_test(datasets.load("breast_cancer"), test_fraction=0.5, seed=1)
    >>> train.schema.n_public, len(test.frame)
    (285, 284)
    """
    if not 0 < test_fraction < 1:
        raise InputError(f"test_fraction must be between 0 and 1, got {test_fraction!r}")
    n = len(table.frame)
    n_test = _test_size(n, test_fraction)
    if not 0 < n_test < n:
        raise DataError(f"a table of {n} rows cannot be split with test_fraction {test_fraction!r}")
    rng = np.random.default_rng(seed)
    if table.outcome is None:
        strata = np.zeros(n, dtype=np.intp)
    else:
        strata, _ = pd.factorize(table.frame[table.outcome], use_na_sentinel=False)
    in_test = _stratified(strata, n_test, rng)
    n_public = table.schema.n_public
    n_public_test = None if n_public is None else _test_size(n_public, test_fraction)
    n_public_train = None if n_public is None or n_public_test is None else n_public - n_public_test
    return (
        _part(table, ~in_test, n_public_train),
        _part(table, in_test, n_public_test),
    )


def _test_size(n: int, test_fraction: float) -> int:
    return round(test_fraction * n)


def _part(table: Table, rows: np.ndarray, n_public: int | None) -> Table:
    frame = table.frame.loc[rows].reset_index(drop=True)
    # a public number so small that a half of it is nothing says nothing
    return replace(table, frame=frame, schema=table.schema.with_n_public(n_public or None))


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
