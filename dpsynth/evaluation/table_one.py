"""Table 1 as clinicians publish it: each column in both tables, with standardised mean differences.

The public schema alone decides how a column is summarised. Numbers on a logarithmic scale are declared to
be skewed: they have median and quartiles. Other numbers have mean and standard deviation. Categories have
counts.

The standardised mean difference (SMD) of numbers is the difference of the means over the root of the mean
of both variances (Austin 2009). Columns with median and quartiles have the same. Two categories have that
of the last category's indicator. More categories have Mahalanobis' distance of the shares, under the mean
of both multinomial covariances (Yang and Dalton 2012). Missing values and special codes take no part.

The summaries of the synthetic table are read from that table and the schema. All else is confidential.

References
----------
Austin (2009), "Balance diagnostics for comparing the distribution of baseline
covariates between treatment groups in propensity-score matched samples", Statistics in Medicine 28. Yang,
Dalton (2012), "A unified approach to measuring the effect size between two groups using SAS", SAS Global
Forum, paper 335.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from dpsynth.evaluation.results import Findings, Row, Table
from dpsynth.evaluation.settings import Settings
from dpsynth.evaluation.tables import Progress, Tables, silent
from dpsynth.evaluation.tails import Floats
from dpsynth.table.column import Column
from dpsynth.table.kinds.category import category_codes
from dpsynth.table.kinds.number import is_special
from dpsynth.table.schema import Schema
from dpsynth.table.values import numeric_values

#: outcomes of more categories have no tables of their own
MOST_OUTCOMES = 4


def summarise_tables(
    tables: Tables, settings: Settings, rng: np.random.Generator, progress: Progress = silent
) -> Findings:
    """Summarise both tables, all records and those of each outcome, which has at most 4 categories."""
    found = Findings()
    for group in _groups(tables.schema, settings.predicted(tables.schema)):
        _compared_in_table_one(tables, group, found)
    return found


def _groups(schema: Schema, outcome: str | None) -> Iterator[tuple[Column, int] | None]:
    """None for all records, then each category of the outcome."""
    yield None
    column = None if outcome is None else schema.column(outcome)
    if column is not None and not column.is_numeric and len(column.categories) <= MOST_OUTCOMES:
        yield from ((column, code) for code in range(len(column.categories)))


def _compared_in_table_one(tables: Tables, group: tuple[Column, int] | None, found: Findings) -> None:
    """Append both Tables 1 of one group, and their differences."""
    columns = [column for column in tables.schema.columns if group is None or column.name != group[0].name]
    name = None if group is None else f"{group[0].name} = {group[0].categories[group[1]]}"
    frames: dict[Table, pd.DataFrame] = {"synthetic": tables.synthetic, "train": tables.train}
    if group is not None:
        column, code = group
        frames = {
            table: frame[category_codes(column, frame[column.name]) == code]
            for table, frame in frames.items()
        }
    for table, frame in frames.items():
        of: Row = {"table": table, "group": name, "records": len(frame)}
        rows = [{**of, **row} for column in columns for row in summary(frame[column.name], column)]
        found.frame("table_one", rows, confidential=table != "synthetic")
    made, real = frames["synthetic"], frames["train"]
    # the standard error of an SMD near 0 (Hedges and Olkin 1985)
    chance = 1.96 * math.sqrt(1 / max(len(made), 1) + 1 / max(len(real), 1))
    rows = [
        {"group": name, "column": c.name, "smd": smd(made[c.name], real[c.name], c), "chance": chance}
        for c in columns
    ]
    found.frame("table_one_differences", rows, confidential=True)


def summary(values: pd.Series, column: Column) -> list[Row]:
    """Summarise one column of a conformed table: one row, and of categories one row each.

    The form ``mean`` has ``center`` and ``spread``, the standard deviation. ``median`` also has the quartiles
    ``low`` and ``high``. ``counts`` has the ``count`` of each declared category (``label``). Numbers are None
    where a column has no value. ``missing`` is None where no value may be missing. ``special`` counts codes
    that are no numbers, and is None where the schema has none.
    """
    row: dict[str, Any] = {"column": column.name, "unit": column.unit, "form": "counts"}
    row |= dict.fromkeys(("label", "count", "center", "spread", "low", "high", "special"))
    row["missing"] = int(values.isna().sum()) if column.missing else None
    if not column.is_numeric:
        codes = category_codes(column, values)
        counts = np.bincount(codes[codes >= 0], minlength=len(column.categories)).tolist()
        labels = map(str, column.categories)
        return [row | {"label": label, "count": count} for label, count in zip(labels, counts, strict=True)]
    if column.special:
        coded = is_special(column, values.to_numpy(dtype=np.float64, na_value=np.nan))
        row["special"] = int(coded.sum())
    numbers = _in_table_one(values, column)
    row["spread"] = float(numbers.std(ddof=1)) if len(numbers) > 1 else None
    if column.scale == "log" or column.written_apart:
        quartiles = np.quantile(numbers, (0.25, 0.5, 0.75)).tolist() if len(numbers) else [None] * 3
        ends = dict(zip(("low", "center", "high"), quartiles, strict=True))
        return [row | ends | {"unit": column.shown_unit, "form": "median"}]
    return [row | {"form": "mean", "center": float(numbers.mean()) if len(numbers) else None}]


def smd(first: pd.Series, second: pd.Series, column: Column) -> float | None:
    """Return the standardised mean difference of a column, the first minus the second. None if not defined.

    It is not defined without a value, or where the values differ and do not vary.
    """
    if column.is_numeric:
        a, b = _in_table_one(first, column), _in_table_one(second, column)
        if len(a) < 2 or len(b) < 2:
            return None
        return _standardised(float(a.mean() - b.mean()), float(a.var(ddof=1) + b.var(ddof=1)) / 2)
    shares = []
    for values in (first, second):
        codes = category_codes(column, values)
        counts = np.bincount(codes[codes >= 0], minlength=len(column.categories))
        if not counts.sum():
            return None
        shares.append(counts / counts.sum())
    p, q = shares
    if len(p) == 2:
        return _standardised(float(p[1] - q[1]), float(p[1] * (1 - p[1]) + q[1] * (1 - q[1])) / 2)
    return _distance(p, q)


def _standardised(difference: float, variance: float) -> float | None:
    if variance > 0:
        return difference / math.sqrt(variance)
    return 0.0 if difference == 0 else None


def _distance(p: Floats, q: Floats) -> float | None:
    """Mahalanobis' distance of two vectors of shares. None where the covariance does not reach it."""
    occurring = (p > 0) | (q > 0)
    p, q = p[occurring][1:], q[occurring][1:]  # the first share follows from the others
    if not len(p):
        return 0.0
    covariance = sum(np.diag(shares) - np.outer(shares, shares) for shares in (p, q)) / 2
    gap = p - q
    solved = np.linalg.lstsq(covariance, gap, rcond=1e-12)[0]
    if not np.allclose(covariance @ solved, gap, atol=1e-9):
        return None
    return math.sqrt(max(float(gap @ solved), 0.0))


def _in_table_one(values: pd.Series, column: Column) -> Floats:
    numbers = numeric_values(column, values)
    return numbers[~np.isnan(numbers)]
