"""Public tables of what each row of a history adds to its levels.

Every table is a chain. The last axis is what a row shows. The others are what came before, or what is fixed
for the patient.

- *measured*: whether a variable has a value, or a file has a row. Given are the rows since it last was so and
  the class of its share of rows. So is which of those before it are there in this row: none, some, or the
  last one. For a variable of a file that gives several, the file's rows alone count.
- *gap*: the time since the last row over the patient's mean gap. Given is the last such ratio.
- *kinds*: the same, given the kinds of the row before and of this one, see `kind_groups`. Rows of several
  files have the time itself here, and no table *gap*.
- *rise*: the same as a gap for the values of an increasing column.
- *residual*: a number's distance from the patient's own line over time, in units of what is left around the
  line. Given is the last one.
- *category*: a category. Given are the last one and the patient's most frequent one.
- *end*: a category. Given is whether the row is the patient's last.
- *beside*: a category. Given is an earlier category of the same row.
- *digit*: the last digit of a number that is recorded in many whole steps.
- *pairs*: for each pair of ordered variables, whether both rise or fall, or one rises and the other falls.
  This is from one row that has both to the next.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from dpsynth.table.column import Column
from dpsynth.table.histories import (
    Floats,
    Histories,
    Standardised,
    packed,
    packed_to,
    presence_class,
    present,
    risen,
    trend,
)
from dpsynth.table.patients import PRESENCE_CLASSES, PatientSchema
from dpsynth.table.values import positions

Ints = NDArray[np.int64]
#: Ends of the intervals of gap ratios and of residuals.
RATIOS: Floats = np.geomspace(1 / 300, 20, 19)
RESIDUALS: Floats = np.linspace(-3.6, 3.6, 19)
#: Rows since the last value: 0 for the row before, up to 5 or more, 6 for none yet.
_SINCE = 7
#: Values of a history below which its residuals say too little.
_FEWEST_RESIDUALS = 5
#: Whole steps of a column from which last digits are counted.
_MANY_STEPS = 50
#: Kinds of rows, at most. More would leave too few counts for each pair of kinds.
_MOST_KINDS = 4
#: The shortest time between rows that has an interval of its own, as a part of the longest.
_SHORTEST = 1e-6
#: Categories of a column above which a chain forgets the most frequent one.
_MOST_CATEGORIES = 12


@dataclass(frozen=True)
class VisitTable:
    """One table: ``kind`` as in the module's list, the variable (empty for gaps), and its shape.

    ``parent``: the other variable of a table *beside*.
    """

    kind: str
    column: str
    shape: tuple[int, ...]
    parent: str = ""


def small_categories(schema: PatientSchema) -> list[Column]:
    """The variables of so few categories that tables of two of them have enough counts."""
    return [column for column in schema.free if 0 < len(column.categories) <= _MOST_CATEGORIES]


def visit_tables(schema: PatientSchema, parents: Mapping[str, str] | None = None) -> list[VisitTable]:
    """The tables of a schema, in their order.

    ``parents``: for each of `small_categories`, an earlier one, by default the one before it. The number of
    tables does not depend on them.
    """
    few = [column.name for column in small_categories(schema)]
    parents = dict(zip(few[1:], few, strict=False)) if parents is None else parents
    tables, homes = [], set[str]()
    for presence in schema.presences:
        known = 3 if presence.within in homes else 1
        tables.append(VisitTable("measured", presence.name, (_SINCE, len(PRESENCE_CLASSES), known, 2)))
        homes.add(presence.within)
    bins = len(RATIOS) - 1
    if schema.timed:
        if not of_several_files(schema):
            tables.append(VisitTable("gap", "", (bins + 1, bins)))
        if (kinds := number_of_kinds(schema)) > 1:
            tables.append(VisitTable("kinds", "", (kinds**2, bins)))
    for column in schema.variables:
        if column.name in schema.terminal:
            continue
        if column.name in schema.increasing:
            tables.append(VisitTable("rise", column.name, (bins + 1, bins)))
            continue
        if not column.is_numeric:
            size = len(column.categories)
            modes = size if size <= _MOST_CATEGORIES else 1
            tables.append(VisitTable("category", column.name, (size + 1, modes, size)))
            if column.name in few:
                tables.append(VisitTable("end", column.name, (2, size)))
            if column.name in parents:
                other = parents[column.name]
                shape = (len(schema.column(other).categories), size)
                tables.append(VisitTable("beside", column.name, shape, other))
            continue
        bins = len(RESIDUALS) - 1
        tables.append(VisitTable("residual", column.name, (bins + 1, bins)))
        if has_digits(column):
            tables.append(VisitTable("digit", column.name, (10,)))
    count = len(linked(schema))
    if count > 1:
        tables.append(VisitTable("pairs", "", (count * (count - 1) // 2, 2)))
    return tables


def linked(schema: PatientSchema) -> list[Column]:
    """The ordered variables that rise and fall."""
    return [column for column in schema.free if column.kind != "categorical"]


def concordances(histories: Histories, schema: PatientSchema) -> Floats:
    """For each pair of `linked` variables, a patient's steps in the same and in opposite directions.

    A step leads from a row that has both values to the next such row. Shape (N, 2 pairs).
    """
    values = [histories.numbers[column.name] for column in linked(schema)]
    found = np.zeros((len(histories.rows), 2 * math.comb(len(values), 2)))
    for k, (one, other) in enumerate(combinations(values, 2)):
        both = ~np.isnan(one) & ~np.isnan(other)
        last = last_before(both)
        steps = (each - np.take_along_axis(each, np.maximum(last, 0), axis=1) for each in (one, other))
        signs = np.where(both & (last >= 0), np.prod([*map(np.sign, steps)], axis=0), 0)
        found[:, 2 * k] = (signs > 0).sum(axis=1)
        found[:, 2 * k + 1] = (signs < 0).sum(axis=1)
    return found


def has_digits(column: Column) -> bool:
    """Whether last digits of the column's whole steps are counted."""
    return column.n_values is not None and column.n_values > _MANY_STEPS


def intervals(values: Floats, edges: Floats) -> Ints:
    """Interval of each value, -1 where it is missing. The outer intervals take what lies beyond."""
    found = np.clip(np.searchsorted(edges, values, side="right") - 1, 0, len(edges) - 2)
    return np.where(np.isnan(values), -1, found)


def before(bins: Ints, size: int) -> Ints:
    """The bin of the row before, ``size`` for the first row."""
    first = np.full((len(bins), 1), size)
    return np.concatenate([first, bins[:, :-1]], axis=1)


def rows_since(measured: NDArray[np.bool_]) -> Ints:
    """For each row, how many rows before it the last value was, as a state of `visit_tables`."""
    last = last_before(measured)
    row = np.arange(measured.shape[1])
    return np.where(last < 0, _SINCE - 1, np.minimum(row - 1 - last, _SINCE - 2))


def last_before(measured: NDArray[np.bool_]) -> Ints:
    """For each row, the number of the last measured row before it, -1 for none."""
    row = np.arange(measured.shape[1])
    return before(np.maximum.accumulate(np.where(measured, row, -1), axis=1), -1)


def of_several_files(schema: PatientSchema) -> bool:
    """Whether rows come from several files, such as stays and laboratory values."""
    return bool(schema.files) and len(schema.folder.events) > 1


def gap_edges(schema: PatientSchema) -> Floats:
    """Ends of the intervals of gaps: ratios, or times in the clock's unit of rows from several files."""
    if not of_several_files(schema):
        return RATIOS
    lower, upper = schema.clock.bounds
    longest = upper - lower
    shortest = min(max(schema.clock.resolution or 0.0, longest * _SHORTEST), longest / 2)
    return np.r_[0.0, np.geomspace(shortest, longest, len(RATIOS) - 1)]


def kind_groups(schema: PatientSchema) -> list[list[str]]:
    """The presences of each file, which make a kind of row, without those of the last kind.

    The kind is the first of several files that has a value in the row. Later files share the last kind. In
    one file, the first two presences make four kinds.
    """
    if not of_several_files(schema):
        return [[each.name] for each in schema.presences[:2]]
    found = [
        [each.name for each in schema.presences if not each.within and {*each.columns} & {*file.columns}]
        for file in schema.folder.events
    ]
    # a file of a terminal event alone has no presence, and leaves its rows to the last kind
    return [names for names in (found[:-1] if all(found) else found) if names][: _MOST_KINDS - 1]


def kind_pairs(
    measured: Mapping[str, NDArray[np.bool_]], schema: PatientSchema, shape: tuple[int, ...]
) -> Ints:
    """The kinds of the row before and of this one, as one number, given which presences are there."""
    there = [np.logical_or.reduce([measured[name] for name in names]) for names in kind_groups(schema)]
    kinds = np.zeros(shape, np.int64)
    if of_several_files(schema):
        kinds += np.select(there, range(len(there)), len(there))
    else:
        for k, own in enumerate(there):
            kinds += 2**k * own
    return number_of_kinds(schema) * before(kinds, 0) + kinds


def number_of_kinds(schema: PatientSchema) -> int:
    """Number of kinds of rows, see `kind_groups`."""
    groups = len(kind_groups(schema))
    return groups + 1 if of_several_files(schema) else 2**groups


def cells(table: VisitTable, histories: Histories, schema: PatientSchema) -> Ints:
    """Cell of each row of each history in a flattened table, -1 for none, shape (N, most)."""
    if table.kind == "measured":
        measured = present(histories, schema)
        own, of = measured[table.column]
        beside = [measured[name][0] for name in siblings(schema, table.column)]
        parents = (
            rows_since(packed_to(of, own)),
            np.broadcast_to(presence_class(own, of)[:, None], own.shape),
            packed_to(of, measured_before(beside, own.shape)),
        )
        return _flat(table, parents, packed_to(of, np.where(of, own, -1)))
    if table.kind in ("gap", "kinds"):
        times = histories.numbers[schema.order]
        last, gaps = _ratios(times)
        if table.kind == "gap":
            return _flat(table, (last,), gaps)
        if of_several_files(schema):
            gaps = intervals(changes(times), gap_edges(schema))
        there = {name: own for name, (own, _) in present(histories, schema).items()}
        return _flat(table, (kind_pairs(there, schema, times.shape),), gaps)
    if table.kind == "rise":
        last, ratios = _ratios(risen(histories.numbers[table.column]))
        return _flat(table, (last,), ratios)
    values = histories.numbers[table.column]
    if table.kind == "digit":
        column = schema.column(table.column)
        steps = np.rint((values - column.bounds[0]) / (column.resolution or 1.0))
        return np.where(np.isnan(values), -1, np.nan_to_num(steps) % 10).astype(np.int64)
    if table.kind in ("end", "beside"):
        if table.parent:
            return _flat(table, (positions(histories.numbers[table.parent]),), positions(values))
        return _flat(table, (is_last(histories.rows, schema.most).astype(np.int64),), positions(values))
    if table.kind == "category":
        codes = positions(packed(values)[0])
        size, modes = table.shape[-1], table.shape[1]
        counts = np.stack([(codes == code).sum(axis=1) for code in range(size)], axis=1)
        mode = counts.argmax(axis=1) if modes > 1 else np.zeros(len(codes), np.int64)
        return _flat(table, (before(codes, size), np.broadcast_to(mode[:, None], codes.shape)), codes)
    left = residuals(*map(Standardised.of, packed(values, histories.numbers[schema.order])))
    bins = intervals(left, RESIDUALS)
    return _flat(table, (before(bins, len(RESIDUALS) - 1),), bins)


def is_last(rows: Ints, most: int) -> NDArray[np.bool_]:
    """Whether each row is the patient's last, shape (N, most)."""
    return np.arange(most) == rows[:, None] - 1


def siblings(schema: PatientSchema, name: str) -> list[str]:
    """The presences before this one, of columns of the same file or of none."""
    presences = schema.presences
    own = next(presence for presence in presences if presence.name == name)
    return [each.name for each in presences[: presences.index(own)] if each.within == own.within]


def measured_before(measured: Sequence[NDArray[np.bool_]], shape: tuple[int, ...]) -> Ints:
    """For each row, which of the presences before are there: 0 none, 1 some, 2 the last of them."""
    if not measured:
        return np.zeros(shape, np.int64)
    return np.where(measured[-1], 2, np.logical_or.reduce(measured).astype(np.int64))


def changes(values: Floats) -> Floats:
    """Difference of each value from the one before, NaN for the first."""
    return np.diff(values, axis=1, prepend=np.nan)


def _ratios(values: Floats) -> tuple[Ints, Ints]:
    """Steps over the history's mean step, as intervals, and the intervals of the steps before."""
    count = (~np.isnan(values)).sum(axis=1)
    mean = np.nansum(changes(values), axis=1) / np.maximum(count - 1, 1)
    ratios = intervals(changes(values) / np.where(mean > 0, mean, np.nan)[:, None], RATIOS)
    first = np.arange(values.shape[1]) == 1
    return np.where(first, len(RATIOS) - 1, before(ratios, len(RATIOS) - 1)), ratios


def residuals(values: Standardised, times: Standardised) -> Floats:
    """Standardised residuals around each history's line over time, NaN for few or equal values."""
    enough = (values.count >= _FEWEST_RESIDUALS) & values.moves
    slope = trend(values, times)
    left = values.scores - slope[:, None] * times.scores
    left /= np.sqrt(np.maximum(1.0 - slope**2, 1e-3))[:, None]
    return np.where(enough[:, None], left, np.nan)


def _flat(table: VisitTable, parents: tuple[Ints, ...], bins: Ints) -> Ints:
    known = bins >= 0
    for parent in parents:
        known &= parent >= 0
    axes = tuple(np.where(known, axis, 0) for axis in (*parents, bins))
    return np.where(known, np.ravel_multi_index(axes, table.shape), -1)
