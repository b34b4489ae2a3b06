"""How often each outcome occurs in the synthetic and in the real tables, and whether one got lost.

Rates have Wilson's interval and means Student's, both for independent records; see
:mod:`~dpsynth.evaluation.utility.outcomes` on rows of a post-processed synthetic table.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from dpsynth.evaluation.estimates import share
from dpsynth.evaluation.records import Measure
from dpsynth.evaluation.tables import Tables
from dpsynth.evaluation.utility.outcomes import (
    known_outcomes,
    mean_interval,
    mode_collapse,
)
from dpsynth.table.schema import Column


def outcome_rates(tables: Tables, outcome: str, *, group: str, level: float = 0.95) -> Iterator[Measure]:
    """Yield the rates of the outcome in each table, and the warnings about lost outcomes.

    Yields
    ------
    Measure
        ``positive_rate_<table>``, the share of the last declared category; for more than two categories also
        ``outcome_rate_<table>[<category>]``; for numbers ``outcome_mean_<table>`` and ``outcome_sd_<table>``
        instead. ``outcome_constant_synthetic``, 1 if one value only occurs in the synthetic table; and
        ``mode_collapse`` (internal), 1 as :func:`~dpsynth.evaluation.utility.outcomes.mode_collapse` says.
    """
    schema = tables.schema
    column = schema.column(outcome)
    for table, frame in (("synthetic", tables.synthetic), ("train", tables.train), ("test", tables.test)):
        if frame is None:
            continue
        internal = table != "synthetic"
        values = known_outcomes(frame, schema, outcome)[1]
        rates = _numbers if column.is_numeric else _rates
        for name, what, value, interval in rates(values, column, table, level):
            detail = f"{what}, {table}"
            if not len(values):
                detail += f": no record has a known {outcome}"
            # The synthetic table's own rate is a fact about it; what the noise did to it is not in an
            # interval over its records, which would be read as one for the real rate.
            lower, upper = interval if internal and interval else (None, None)
            yield Measure(group, name, value, internal, detail, lower, upper)
        if table == "synthetic":
            yield _constant(values, column, group)
    collapse = mode_collapse(tables.synthetic, tables.train, schema, outcome, level=level)
    value = None if collapse.collapsed is None else int(collapse.collapsed)
    detail = f"1 if an outcome of the training records got lost: {collapse.reason}"
    yield Measure(group, "mode_collapse", value, True, detail)


_Row = tuple[str, str, float | None, tuple[float, float] | None]


def _rates(codes: NDArray[np.int64 | np.float64], column: Column, table: str, level: float) -> Iterator[_Row]:
    last = len(column.categories) - 1
    named = [(f"positive_rate_{table}", last)]
    if last > 1:
        named += [(f"outcome_rate_{table}[{category}]", i) for i, category in enumerate(column.categories)]
    for name, code in named:
        what = f"share of {column.name} = {column.categories[code]!r}"
        count = int((codes == code).sum())
        if len(codes):
            rate = share(count, len(codes), level, method="wilson")
            yield name, what, rate.value, (rate.lower, rate.upper)
        else:
            yield name, what, None, None


def _numbers(
    values: NDArray[np.int64 | np.float64], column: Column, table: str, level: float
) -> Iterator[_Row]:
    unit = f" ({column.unit})" if column.unit else ""
    known = values.astype(np.float64)
    mean = float(known.mean()) if len(known) else None
    yield f"outcome_mean_{table}", f"mean of {column.name}{unit}", mean, mean_interval(known, level)
    spread = float(known.std(ddof=1)) if len(known) > 1 else None
    yield f"outcome_sd_{table}", f"standard deviation of {column.name}{unit}", spread, None


def _constant(values: NDArray[np.int64 | np.float64], column: Column, group: str) -> Measure:
    different = np.unique(values)
    value: int | None = None
    if not len(different):
        sentence = f"no synthetic record has a known {column.name}"
    elif len(different) > 1:
        value, sentence = 0, f"{column.name} varies in the synthetic table"
    else:
        only = f"{different[0]:g}" if column.is_numeric else repr(column.categories[int(different[0])])
        value, sentence = 1, f"every synthetic record has {column.name} = {only}"
    detail = f"1 if one outcome only occurs: {sentence}"
    return Measure(group, "outcome_constant_synthetic", value, False, detail)
