"""Rules of a table with several rows for each patient: kept by patients' levels, or row by row.

A comparison of columns per patient with the order holds in all rows if it holds in the first and the last.
Patients whose levels break it are drawn again. A row that breaks another rule takes the values of the rule's
columns from a row that obeys and comes from the same files. This is one of the same patient, if there is any.
Patients of whom a row still breaks a rule are drawn again (:mod:`dpsynth.synthesis.rows`).
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpsynth.patients.courses.times import Times
from dpsynth.patients.schema import PatientSchema, patients_of
from dpsynth.table.column import Column
from dpsynth.table.derived import add_derived, derived_numbers, modelled_inputs
from dpsynth.table.expressions import Expression, Truth, condition
from dpsynth.table.schema import TableSchema
from dpsynth.table.values import Numbers

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
#: Looks at the rules. After the first, values come from a row of the same patient, then from any.
_ROUNDS = 4


def _inputs(rule: Expression, schema: PatientSchema) -> set[str]:
    """Modelled columns that a rule reads."""
    return modelled_inputs(rule.columns, schema.table.formulas)


def rules_of_model(schema: TableSchema) -> tuple[Expression, ...]:
    """The rules of the table with one row for each record: its own, or those that keep patients' rules."""
    patients = patients_of(schema)
    return schema.table.rules if patients is None else tuple(rules_of_levels(patients))


def rules_of_levels(schema: PatientSchema) -> list[Expression]:
    """Rules for the table of levels, which keep those of columns per patient and of the order."""
    return [_at_both_ends(rule, schema) for rule in schema.table.rules if not _changing(rule, schema)]


def _changing(rule: Expression, schema: PatientSchema) -> set[str]:
    return _inputs(rule, schema) - {*schema.per_patient, schema.order}


def _at_both_ends(rule: Expression, schema: PatientSchema) -> Expression:
    table, order = schema.table, schema.order
    times = next((course for course in schema.courses if isinstance(course, Times)), None)

    def at(levels: Numbers, time: Floats | None) -> Truth:
        def numbers(column: Column) -> Floats:
            return levels(column) if time is None or column.name != order else time

        return rule.truth(derived_numbers(numbers, table.formulas))

    def truth(levels: Numbers) -> Truth:
        if times is None:
            return at(levels, None)
        column = table.column(order)
        ends = times.ends(levels(schema.levels["rows"]), lambda name: levels(schema.levels[name]))
        open_end = np.isnan(ends[0]) | np.isnan(ends[1])  # a level that the model gave wrongly
        (a_true, a_false), (b_true, b_false) = (
            at(levels, column.code(column.series(np.where(open_end, column.bounds[0], time))))
            for time in ends
        )
        return a_true & b_true & ~open_end, a_false | b_false | open_end

    read = _inputs(rule, schema) & set(schema.per_patient)
    if times is not None and order in _inputs(rule, schema):
        read |= {*times.read_by_ends()}
    return condition(rule.text, truth, tuple(sorted(read)))


def lawful(
    frame: pd.DataFrame, schema: PatientSchema, unit: Ints, rng: np.random.Generator
) -> tuple[pd.DataFrame, NDArray[np.bool_]]:
    """Rows with their derived columns, and which of them still break a rule.

    ``unit`` numbers the patients. Columns that are increasing or terminal, and lengths of stays, keep their
    values.
    """
    table = schema.table
    rules = table.rules
    free = {column.name for column in schema.free} - {schema.length}
    files = _files(frame, schema)
    for turn in range(_ROUNDS):
        done = add_derived(frame, table.formulas, table.columns)
        each = [rule.broken(done) for rule in rules]
        broken = np.logical_or.reduce([np.zeros(len(done), bool), *each])
        obeying, rows = np.flatnonzero(~broken), np.flatnonzero(broken)
        if not len(rows) or not len(obeying) or turn == _ROUNDS - 1:
            break
        donors = np.full(len(rows), -1)
        for kind in np.unique(files[rows]):
            alike = obeying[files[obeying] == kind]
            if len(alike):
                same = files[rows] == kind
                donors[same] = _donors(unit, rows[same], alike, rng, own=turn == 0)
        for rule, wrong in zip(rules, each, strict=True):
            here = wrong[rows] & (donors >= 0)
            for name in _inputs(rule, schema) & free:
                frame[name] = _replaced(frame[name], rows[here], donors[here])
    return done, broken


def _files(frame: pd.DataFrame, schema: PatientSchema) -> Ints:
    """A number for the files that each row comes from, as far as these give several columns."""
    found = np.zeros(len(frame), np.int64)
    for presence in schema.presences:
        if len(presence.columns) > 1:
            own = frame[[name for name in presence.columns if name not in schema.terminal]]
            found = 2 * found + own.notna().any(axis=1).to_numpy()
    return found


def _replaced(values: pd.Series, rows: Ints, donors: Ints) -> pd.Series:
    changed = values.copy()
    changed.iloc[rows] = values.iloc[donors].to_numpy()
    return changed


def _donors(
    unit: Ints,
    rows: Ints,
    obeying: Ints,
    rng: np.random.Generator,
    *,
    own: bool,
) -> Ints:
    """For each row an obeying one: the nearest of the same patient if ``own``, or else any."""
    anyone = obeying[rng.integers(0, len(obeying), len(rows))]
    if not own:
        return anyone
    place = np.clip(np.searchsorted(obeying, rows), 1, max(len(obeying) - 1, 1))
    for near in (obeying[np.minimum(place, len(obeying) - 1)], obeying[place - 1]):
        same = unit[near] == unit[rows]
        anyone = np.where(same, near, anyone)
    return anyone
