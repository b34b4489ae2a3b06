"""Values that the public schema does not allow, counted in a table as it came.

Conforming a table refuses such values or clips them. The counts say how often a generator produced them. They
need no real record, so they may be shared with the table.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpsynth.checks import few
from dpsynth.errors import DataError, InputError
from dpsynth.evaluation.details import FinerRow, FinerThanDeclared, OutsideBounds, OutsideRow
from dpsynth.evaluation.records import Detail, Findings, Measure
from dpsynth.evaluation.tables import Tables
from dpsynth.table.conform import cell_numbers, only_values
from dpsynth.table.drafting import rarely_held
from dpsynth.table.schema import Column, Schema
from dpsynth.table.values import quantities

GROUP = "Constraints"


_KINDS = {
    "off_step": "numbers that are not on a declared step",
    "outside": "numbers outside the declared bounds",
    "undeclared": "values that are no number or no declared category",
    "missing": "missing values where none is allowed",
}


@dataclass(frozen=True)
class Conformity:
    """How many values of one column the schema does not allow, see :data:`_KINDS`."""

    column: str
    outside: int = 0
    off_step: int = 0
    undeclared: int = 0
    missing: int = 0


def values_not_allowed(frame: pd.DataFrame, schema: Schema) -> tuple[Conformity, ...]:
    """Count what the public schema does not allow in a frame as it came, before it is conformed.

    Examples
    --------
    >>> schema = Schema(columns=(Column(name="age", kind="integer", lower=18, upper=90),))
    >>> values_not_allowed(pd.DataFrame({"age": [17, 40.5, "x", 60]}), schema)
    (Conformity(column='age', outside=1, off_step=1, undeclared=1, missing=0),)
    """
    # Columns with a formula that a table lacks are computed from the others.
    plain = [column.name for column in schema.columns if not (column.derived or column.read_as)]
    absent = [name for name in plain if name not in frame.columns]
    if absent:
        raise InputError(f"the table lacks the column {absent[0]!r} that the schema declares")
    given = (column for column in schema.columns if column.name in frame.columns)
    words = schema.missing_words
    return tuple(_conformity(only_values(column, frame[column.name], words), column) for column in given)


def conformity_measures(raw: pd.DataFrame, schema: Schema, left_out: int) -> Iterator[Measure]:
    """Yield how many values of a synthetic table, as it came, the schema does not allow, by kind.

    ``left_out``: the number of rows that no comparison reads, since they hold such a value that cannot be
    clipped or rounded.
    """
    what = "synthetic rows with a value that the schema does not allow. No comparison reads them"
    yield Measure(GROUP, "rows_left_out", left_out, False, what)
    counts = values_not_allowed(raw, schema)
    for kind, what in _KINDS.items():
        bad = {entry.column: getattr(entry, kind) for entry in counts if getattr(entry, kind)}
        where = f": {few(bad)}" if bad else ""
        yield Measure(GROUP, f"values_{kind}", sum(bad.values()), False, f"synthetic {what}{where}")


def rare_categories(tables: Tables) -> Iterator[Measure]:
    """Yield, for each list of categories or codes that nobody confirmed, how many of them few real rows hold.

    Confidential: it reads training and held-out rows without noise. Codes of a missing value are not counted,
    since no row has them after it is read.
    """
    real = [tables.rows.get(name, frame) for name, frame in (("train", tables.train), ("test", tables.test))]
    for column in tables.raw_schema.columns:
        if not (column.unconfirmed and (column.categories or column.special)):
            continue
        held = pd.concat([frame[column.name] for frame in real if frame is not None]).value_counts()
        rare, said = rarely_held(column, dict(held))
        yield Measure(GROUP, f"rare_categories[{column.name}]", rare, True, said)


def finer_than_declared(raw: pd.DataFrame, schema: Schema, table: str) -> Findings:
    """List columns of a table that fits its schema with numbers between the declared steps.

    A file may hold 1.199951 for 1.2. Such digits separate tables without information about patients. They are
    rounded before comparison.
    """
    rows = []
    for column, numbers in _numeric(raw, schema):
        if column.resolution is not None and (off := _off_step(numbers, column)):
            rows.append(FinerRow(column.name, off, column.resolution, column.shown_unit))
    if not rows:
        return Findings()
    kind = "finer_than_declared"
    return Findings((), (Detail(kind, f"{kind}.{table}", table != "synthetic", FinerThanDeclared(rows)),))


def outside_bounds(raw: pd.DataFrame, schema: Schema, table: str) -> Findings:
    """List columns of a real table with numbers outside the declared bounds.

    They are clipped before fitting and before any comparison, so no other measure shows the loss. Half a step
    outside is rounding.
    """
    rows = []
    for column, numbers in _numeric(raw, schema):
        assert column.lower is not None and column.upper is not None
        slack = (column.resolution or 0.0) / 2 + 1e-9 * max(abs(column.lower), abs(column.upper))
        outside = int(((numbers < column.lower - slack) | (numbers > column.upper + slack)).sum())
        if outside:
            present = int(np.isfinite(numbers).sum())
            ends = (column.lower, column.upper, column.shown_unit)
            rows.append(OutsideRow(column.name, outside, present, *ends))
    if not rows:
        return Findings()
    return Findings((), (Detail("outside_bounds", f"outside_bounds.{table}", True, OutsideBounds(rows)),))


def _numeric(raw: pd.DataFrame, schema: Schema) -> Iterator[tuple[Column, NDArray[np.float64]]]:
    """Numeric columns of a table as it came, NaN if there is no number. A derived one may be absent."""
    for column in schema.columns:
        if column.is_numeric and column.name in raw:
            values = only_values(column, raw[column.name], schema.missing_words)
            yield column, quantities(column, cell_numbers(column, values))


def _conformity(series: pd.Series, column: Column) -> Conformity:
    present = series[series.notna()]
    missing = 0 if column.missing else len(series) - len(present)
    if not column.is_numeric:
        codes, values = pd.factorize(present.astype(object))
        undeclared = 0
        if len(values) and not _all_declared(column, list(values)):
            bad = np.array([not _all_declared(column, [value]) for value in values])
            undeclared = int(bad[codes].sum())
        return Conformity(column.name, undeclared=undeclared, missing=missing)
    numbers = cell_numbers(column, present)
    undeclared = int(np.isnan(numbers).sum())
    numbers = quantities(column, numbers)
    numbers = numbers[~np.isnan(numbers)]
    assert column.lower is not None and column.upper is not None
    outside = int(((numbers < column.lower) | (numbers > column.upper)).sum())
    off_step = _off_step(numbers, column) if column.resolution is not None else 0
    return Conformity(column.name, outside, off_step, undeclared, missing)


def _off_step(numbers: NDArray[np.float64], column: Column) -> int:
    finite = numbers[np.isfinite(numbers)]
    steps = (finite - column.lower) / column.resolution
    return int((np.abs(steps - np.rint(steps)) > 1e-6 * np.maximum(1.0, 1e-6 * np.abs(steps))).sum())


def _all_declared(column: Column, values: list[object]) -> bool:
    try:
        Schema(columns=(column,)).check(pd.DataFrame({column.name: pd.Series(values, dtype=object)}))
    except DataError:
        return False
    return True
