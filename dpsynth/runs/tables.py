"""The real table of a run: loaded, split in two, and put beside the synthetic one."""

from __future__ import annotations

import pandas as pd

from dpsynth import datasets
from dpsynth.datasets.table import Table
from dpsynth.evaluation.tables import Tables
from dpsynth.runs.config import RunConfig
from dpsynth.studies.estimates import Estimates

#: rows of a synthetic table that are kept in memory for evaluation, whatever its length
EVALUATED_ROWS = 500_000


def load_table(config: RunConfig) -> Table:
    """Load the table that a configuration names."""
    if config.data is not None:
        data = config.data
        return datasets.open_table(data.path, data.schema_path, csv_format=data.csv_format)
    return datasets.load(str(config.dataset))


def split_table(config: RunConfig, table: Table) -> tuple[Table, Table]:
    """Split a table into its training and test part, as a configuration says; the same way every time."""
    split = datasets.train_test if config.split.method == "stratified" else datasets.independent_split
    return split(table, config.split.test_fraction, config.split.seed)


def compared(
    sampled: pd.DataFrame, train: Table, test: Table, declared: tuple[Estimates, ...] = ()
) -> Tables:
    """Conform a synthetic table and both parts of the real one; ``declared`` are private estimates."""
    return Tables.of(sampled, train=train.frame, test=test.frame, schema=train.schema, declared=declared)
