"""One row of features for each patient, from which a classifier separates synthetic from real patients.

A generator may match the levels of patients exactly. So the features are other functions of the rows. They
are the smallest and the largest value, the slope over time, the mean absolute step and the mean gap.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from dpsynth.table.histories import Floats, Histories, Standardised, packed, trend
from dpsynth.table.patients import PatientSchema
from dpsynth.table.schema import Column, Schema
from dpsynth.table.values import categories_at


def patient_features(histories: Histories, schema: PatientSchema) -> tuple[pd.DataFrame, Schema]:
    """Features of N patients with their schema, whose bounds follow from those of the rows.

    Every name ends in brackets. So no feature can have the name of another.
    """
    columns: list[Column] = []
    values: dict[str, object] = {}

    def add(of: str, what: str, numbers: Floats, lower: float, upper: float) -> None:
        bounds = {"lower": lower, "upper": upper if upper > lower else lower + 1.0}
        columns.append(Column(name=f"{of} ({what})", kind="continuous", missing=True, **bounds))
        values[columns[-1].name] = numbers

    for name in map(str, histories.patients):
        columns.append(schema.column(name).model_copy(update={"name": f"{name} (patient)"}))
        values[columns[-1].name] = histories.patients[name]
    times, rows = histories.numbers[schema.order], histories.rows
    add(schema.order, "rows", rows.astype(np.float64), 1, schema.most)
    # A clock that hardly moves would give slopes without a bound.
    least = 1.0
    if schema.timed:
        order = schema.clock
        length = order.bounds[1] - order.bounds[0]
        least = order.resolution or length / 1000
        span = np.nanmax(times, axis=1, initial=-np.inf) - times[:, 0]
        gap = np.where(rows > 1, span / np.maximum(rows - 1, 1), np.nan)
        add(schema.order, "span", span, 0, length)
        add(schema.order, "mean gap", gap, 0, length)
    for column in schema.variables:
        name, (packed_values, at) = column.name, packed(histories.numbers[column.name], times)
        own, clock = Standardised.of(packed_values), Standardised.of(at)
        several, steps = own.count > 1, np.maximum(own.count - 1, 1)
        changes = np.diff(packed_values, axis=1)
        if column.missing:
            add(name, "measured", own.count / rows, 0, 1)
        if not column.is_numeric:
            columns.append(column.model_copy(update={"name": f"{name} (first)", "missing": True}))
            values[columns[-1].name] = pd.Series(categories_at(column, packed_values[:, 0]), dtype=object)
            changed = np.nansum(np.abs(changes) > 0, axis=1)
            add(name, "changes", np.where(several, changed / steps, np.nan), 0, 1)
            continue
        lower, upper = column.bounds
        high = upper - lower
        ends = [np.where(np.isnan(packed_values), end, packed_values) for end in (np.inf, -np.inf)]
        slope = trend(own, clock) * own.sd / np.maximum(clock.sd, least)
        step = np.nansum(np.abs(changes), axis=1) / steps
        for what, numbers, fewest, low, top in (
            ("mean", own.mean, 1, lower, upper),
            ("smallest", ends[0].min(axis=1), 1, lower, upper),
            ("largest", ends[1].max(axis=1), 1, lower, upper),
            ("standard deviation", own.sd, 2, 0.0, high),
            ("slope", slope, 2, -high / least, high / least),
            ("mean step", step, 2, 0.0, high),
        ):
            add(name, what, np.where(own.count >= fewest, numbers, np.nan), low, top)
    return pd.DataFrame(values), Schema(columns=tuple(columns))
