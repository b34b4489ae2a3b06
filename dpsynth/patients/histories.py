"""Histories and levels of patients with several rows.

A history is one patient's rows in order, at most ``most`` of them. Levels are numbers that a history
determines, see :mod:`dpsynth.patients.schema`.

Examples
--------
>>> from dpsynth.table.column import Column
>>> schema = PatientSchema(
...     unit="id", order="day", most=3,
...     columns=(Column(name="day", kind="integer", lower=0, upper=365),
...              Column(name="hdl", kind="integer", lower=5, upper=150, missing=True)))
>>> visits = pd.DataFrame({"id": [7, 7, 8], "day": [10, 40, 5], "hdl": [50, 60, 41]})
>>> patient_table(visits, schema)["hdl mean"].tolist()
[55.0, 41.0]
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.util import hash_array

from dpsynth.errors import DataError, of_records
from dpsynth.patients.files import places, without_value
from dpsynth.patients.schema import PRESENCE_CLASSES, SHARE_CLASSES, PatientSchema
from dpsynth.table.cells import plain_table
from dpsynth.table.column import Column
from dpsynth.table.identity import identities
from dpsynth.table.kinds.category import categories_at, positions
from dpsynth.table.values import numeric_values

Floats = NDArray[np.float64]
#: Upper ends of the classes of a share of rows.
_SHARES = (0.0, 0.2, 0.5, 0.999)
#: Rows with a value below which trend and roughness are not defined.
_FEWEST = 3
_IDENTIFIES, _ORDERS = "identifies patients", "orders a patient's rows"


@dataclass(frozen=True)
class Histories:
    """Rows of N patients in order, as arrays of shape (N, most), NaN where there is no value.

    ``numbers``: by column that changes from row to row. Categories are numbers from 0.
    ``rows``: rows of each patient, shape (N,).
    ``patients``: columns with one value for each patient, N rows.
    """

    numbers: Mapping[str, Floats]
    rows: NDArray[np.int64]
    patients: pd.DataFrame

    @classmethod
    def of(cls, frame: pd.DataFrame, schema: PatientSchema, rng: np.random.Generator) -> Histories:
        """Histories of a table of rows.

        Rows after a terminal one, and rows without any value, are left out. Some rows are kept of patients
        who have more than ``most``. No rule reads another patient. Random rows follow from the identifier and
        a key that ``rng`` draws. A column per patient has the value of the patient's first row that has one.

        Raises DataError if the unit is absent or missing in a row, or if the table does not fit the schema.
        """
        table, patient, time = _in_time(frame, schema)
        used = _used(table, schema, patient, time)
        table, time, patient = table[used], time[used], pd.factorize(patient[used])[0]
        if schema.keep == "random":
            kept = _ranks(patient, _lots(ids_of(frame, schema)[used], patient, rng)) < schema.most
            table, patient, time = table[kept], patient[kept], time[kept]
        order = np.lexsort((time, patient))
        table, patient = table.iloc[order].reset_index(drop=True), patient[order]
        counts = np.bincount(patient, minlength=patient.max(initial=-1) + 1)
        place = np.arange(len(patient)) - np.repeat(np.cumsum(counts) - counts, counts)
        if schema.keep == "last":
            place = place - np.maximum(counts - schema.most, 0)[patient]
        kept = (place >= 0) & (place < schema.most)
        values = {}
        for column in schema.rows.columns:
            numbers = np.full((len(counts), schema.most), np.nan)
            known = numeric_values(column, table[column.name])[kept]
            numbers[patient[kept], place[kept]] = known * column.unit_size
            values[column.name] = numbers
        if not schema.timed:
            numbers = np.arange(schema.most, dtype=np.float64) + np.zeros((len(counts), 1))
            values[schema.order] = np.where(numbers < counts[:, None], numbers, np.nan)
        single = [name for name in schema.levels.names if name in schema.per_patient]
        # `first` skips what is missing.
        own = table[single].groupby(patient).first() if single else None
        patients = pd.DataFrame(index=range(len(counts))) if own is None else own.reset_index(drop=True)
        return cls(values, np.minimum(counts, schema.most), patients)

    def to_frame(self, schema: PatientSchema) -> pd.DataFrame:
        """One row for each patient: the levels, and beside them the values of each row, for `from_frame`."""
        rows = {
            f"{name}@{place}": numbers[:, place]
            for name, numbers in self.numbers.items()
            for place in range(schema.most)
        }
        return pd.concat([levels_of(self, schema), pd.DataFrame(rows)], axis=1)

    @classmethod
    def from_frame(cls, frame: pd.DataFrame, schema: PatientSchema) -> Histories:
        """The histories of such a frame, without the columns that have one value for each patient."""
        values = {
            name: frame[[f"{name}@{place}" for place in range(schema.most)]].to_numpy(dtype=np.float64)
            for name in dict.fromkeys((*schema.rows.names, schema.order))
        }
        return cls(values, (~np.isnan(values[schema.order])).sum(axis=1), frame.iloc[:, :0])


def rows_of(frame: pd.DataFrame, schema: PatientSchema) -> tuple[pd.DataFrame, NDArray[np.int64]]:
    """All rows of a frame of `Histories.to_frame`, in the modelled columns, and the place of their patient.

    The place is a number from 0, shape (rows,).
    """
    histories = Histories.from_frame(frame, schema)
    here = np.arange(schema.most) < histories.rows[:, None]
    patient = np.repeat(np.arange(len(frame)), histories.rows)
    data = {}
    for column in schema.table.modelled.columns:
        if column.name in schema.per_patient:
            data[column.name] = frame[column.name].iloc[patient].reset_index(drop=True)
            continue
        values = histories.numbers[column.name][here]
        own = values / column.unit_size if column.is_numeric else categories_at(column, values)
        data[column.name] = column.series(own)
    return pd.DataFrame(data), patient


def numbered_rows(histories: Histories, schema: PatientSchema) -> pd.DataFrame:
    """The rows that are used, with the number of their patient."""
    rows, patient = rows_of(histories.to_frame(schema), schema)
    return rows.assign(**{schema.unit: patient})


def unused_rows(frame: pd.DataFrame, schema: PatientSchema) -> dict[str, int]:
    """Number of rows that `Histories.of` leaves out, by the reason: of private rows, confidential.

    Raises DataError as `Histories.of` does.
    """
    table, patient, time = _in_time(frame, schema)
    valued, used = _valued(table, schema), _used(table, schema, patient, time)
    more = np.maximum(np.bincount(patient[used]) - schema.most, 0)
    found = {
        "without any value": (~valued).sum(),
        "after a terminal row": (valued & ~used).sum(),
        f"of patients with more than {schema.most}": more.sum(),
    }
    return {reason: int(count) for reason, count in found.items() if count}


def _in_time(frame: pd.DataFrame, schema: PatientSchema) -> tuple[pd.DataFrame, NDArray[np.int64], Floats]:
    """The conformed rows, the number of each one's patient, and what orders them."""
    frame = plain_table(frame)
    patient = units_of(frame, schema)
    order = _column(frame, schema.order, _ORDERS)
    _refuse_missing(without_value(order, schema.missing_words), schema.order, _ORDERS)
    table = schema.table.conform(frame).frame
    if schema.timed:
        column = schema.column(schema.order)
        time = column.amounts(column.code(table[schema.order]))
    else:
        time = places(order).astype(np.float64)
    return table, patient, time


def _valued(table: pd.DataFrame, schema: PatientSchema) -> NDArray[np.bool_]:
    """Which rows have a value."""
    if not all(column.missing for column in schema.variables):
        return np.ones(len(table), bool)
    return table[[column.name for column in schema.variables]].notna().any(axis=1).to_numpy()


def _used(
    table: pd.DataFrame, schema: PatientSchema, patient: NDArray[np.int64], time: Floats
) -> NDArray[np.bool_]:
    """Which rows have a value, and none of their patient's terminal rows before them."""
    used = _valued(table, schema)
    order = np.lexsort((time, patient))
    for name in schema.terminal:
        ended = (table[name] == schema.column(name).categories[1]).to_numpy()[order] & used[order]
        before = pd.Series(ended).groupby(patient[order]).cumsum().to_numpy() - ended
        used[order] &= before == 0
    return used


def units_of(frame: pd.DataFrame, schema: PatientSchema) -> NDArray[np.int64]:
    """Number of each row's patient, from 0, in the order of their first rows.

    Raises DataError if the unit is absent or missing in a row, or merges patients, see
    :mod:`dpsynth.table.identity`.
    """
    return pd.factorize(ids_of(frame, schema))[0]


def ids_of(frame: pd.DataFrame, schema: PatientSchema) -> NDArray[np.object_]:
    """Identifier of each row's patient. Raises DataError as `units_of` does."""
    ids = identities(_column(frame, schema.unit, _IDENTIFIES), schema.missing_words)
    _refuse_missing(ids == "", schema.unit, _IDENTIFIES)
    return ids


def _column(frame: pd.DataFrame, name: str, use: str) -> pd.Series:
    # names that are numbers count as text, as `plain_table` reads them
    place = next((k for k, own in enumerate(frame.columns) if str(own) == name), None)
    if place is None:
        raise DataError(f"the table lacks the column {name!r}, which {use}")
    return frame.iloc[:, place]


def _refuse_missing(empty: NDArray[np.bool_], name: str, use: str) -> None:
    if empty.any():
        raise of_records(f"row {int(empty.argmax()) + 1}: {name!r} is missing, but {use}")


def _lots(
    ids: NDArray[np.object_], patient: NDArray[np.int64], rng: np.random.Generator
) -> NDArray[np.uint64]:
    """A random number of each row, from a key, the patient's identifier and the row's place among theirs."""
    own = hash_array(ids, hash_key=rng.bytes(8).hex())
    return hash_array(own + _ranks(patient, np.arange(len(patient))).astype(np.uint64))


def _ranks(group: NDArray[np.int64], keys: NDArray[Any]) -> NDArray[np.int64]:
    """Rank of each key within its group."""
    order = np.lexsort((keys, group))
    counts = np.bincount(group)
    ranks = np.empty(len(keys), np.int64)
    ranks[order] = np.arange(len(keys)) - np.repeat(np.cumsum(counts) - counts, counts)
    return ranks


def packed_to(has: NDArray[np.bool_], values: Any) -> Any:
    """Values of the rows that have one moved to the left, the others behind them."""
    return np.take_along_axis(values, np.argsort(~has, axis=1, kind="stable"), axis=1)


def packed(values: Floats, *others: Floats) -> list[Floats]:
    """The measured values of each history moved to the left, and the others taken at the same rows."""
    has = ~np.isnan(values)
    return [packed_to(has, np.where(has, array, np.nan)) for array in (values, *others)]


def present(
    histories: Histories, schema: PatientSchema
) -> dict[str, tuple[NDArray[np.bool_], NDArray[np.bool_]]]:
    """For each of the schema's presences, whether it is there, and the rows that count, both (N, most)."""
    found: dict[str, tuple[NDArray[np.bool_], NDArray[np.bool_]]] = {}
    rows = np.arange(schema.most) < histories.rows[:, None]
    for presence in schema.presences:
        own = np.zeros(rows.shape, bool)
        for name in presence.columns:
            values = histories.numbers[name]
            # a terminal column tells where its event is
            own |= values == 1 if name in schema.terminal else ~np.isnan(values)
        found[presence.name] = own, found[presence.within][0] if presence.within else rows
    return found


def presence_class(own: NDArray[np.bool_], of: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Class of the rows ``own`` among the rows ``of`` each history, -1 without rows.

    A number of :data:`PRESENCE_CLASSES`.
    """
    some, count = own.sum(axis=1), of.sum(axis=1)
    share = share_class(some / np.maximum(count, 1))
    found = np.where((some == 1) & (count > 1), 1, share + (share > 0))
    return np.where(count > 0, found, -1)


@dataclass(frozen=True)
class Standardised:
    """Values of each history (N, most) with mean 0 and standard deviation 1, and what they were."""

    scores: Floats
    mean: Floats
    sd: Floats
    count: NDArray[np.int64]

    @classmethod
    def of(cls, values: Floats) -> Standardised:
        """Standardise each row over its values that are not NaN. A constant row becomes zeros."""
        count = (~np.isnan(values)).sum(axis=1)
        mean = np.nansum(values, axis=1) / np.maximum(count, 1)
        away = values - mean[:, None]
        sd = np.sqrt(np.nansum(away**2, axis=1) / np.maximum(count, 1))
        return cls(away / np.where(sd > 1e-9, sd, 1.0)[:, None], mean, sd, count)

    @property
    def moves(self) -> NDArray[np.bool_]:
        """Whether a history has enough values, not all equal, for a trend and a roughness."""
        return (self.count >= _FEWEST) & (self.sd > 1e-9)

    @property
    def roughness(self) -> Floats:
        """Mean absolute step from one value to the next."""
        steps = np.nansum(np.abs(np.diff(self.scores, axis=1)), axis=1)
        return steps / np.maximum(self.count - 1, 1)


def trend(values: Standardised, times: Standardised) -> Floats:
    """Correlation of values and times, for each history."""
    products = np.nansum(values.scores * times.scores, axis=1) / np.maximum(values.count, 1)
    return np.clip(products, -1.0, 1.0)


def share_class(share: Floats) -> NDArray[np.int64]:
    """Class of a share of rows, a number of :data:`SHARE_CLASSES`."""
    return np.searchsorted(_SHARES, share, side="left")


def levels_of(histories: Histories, schema: PatientSchema) -> pd.DataFrame:
    """The table with one row for each patient, conformed to ``schema.levels``."""
    rows, times = histories.rows, histories.numbers[schema.order]
    columns: dict[str, Any] = dict(histories.patients)
    columns["rows"] = rows
    if schema.timed:
        order = schema.column(schema.order)
        columns[f"{schema.order} first"] = order.series(times[:, 0] / order.unit_size)
        span = np.nanmax(times, axis=1, initial=-np.inf) - times[:, 0]
        columns[f"{schema.order} span"] = np.where(rows > 1, span, np.nan)
    words = np.array([*PRESENCE_CLASSES, None], dtype=object)
    for presence, there in zip(schema.presences, present(histories, schema).values(), strict=True):
        columns[presence.level] = words[presence_class(*there)]
    for column in schema.variables:
        values = histories.numbers[column.name]
        if column.name in schema.terminal:
            columns[column.name] = np.array(column.categories, dtype=object)[(values == 1).any(axis=1) * 1]
        elif column.name in schema.increasing:
            columns |= _course(column, values)
        else:
            columns |= _variable(column, values, times)
    return schema.levels.conform(pd.DataFrame(columns)).frame


def patient_table(
    frame: pd.DataFrame, schema: PatientSchema, *, random_state: int | None = None
) -> pd.DataFrame:
    """Return the levels of patients of a table of rows: one row each, as ``schema.levels`` describes.

    They are functions of the rows without noise: of private rows, confidential.

    Parameters
    ----------
    frame : pandas.DataFrame, shape (rows, columns)
        With the unit's column.
    schema : PatientSchema
        Public description of the rows.
    random_state : int, optional
        Seed of the choice of rows, where ``keep`` is random.

    Raises
    ------
    DataError
        If a row lacks its unit, or if the table does not fit the schema.
    """
    return levels_of(Histories.of(frame, schema, np.random.default_rng(random_state)), schema)


def risen(values: Floats) -> Floats:
    """The values of each history, moved to the left, of which none is below one before it."""
    (ahead,) = packed(values)
    return np.where(np.isnan(ahead), np.nan, np.fmax.accumulate(ahead, axis=1))


def _course(column: Column, values: Floats) -> dict[str, Any]:
    """Levels of an increasing column."""
    course = risen(values)
    count = (~np.isnan(course)).sum(axis=1)
    first, last = course[:, 0], course[np.arange(len(course)), np.maximum(count - 1, 0)]
    return {
        f"{column.name} first": first if column.is_numeric else categories_at(column, first),
        f"{column.name} rise": np.where(count > 1, last - first, np.nan),
    }


def _variable(column: Column, values: Floats, times: Floats) -> dict[str, Any]:
    name, found = column.name, dict[str, Any]()
    (packed_values, at) = packed(values, times)
    measured = (~np.isnan(values)).sum(axis=1)
    if not column.is_numeric:
        size = len(column.categories)
        counts = np.stack([(values == code).sum(axis=1) for code in range(size)], axis=1)
        mode = counts.argmax(axis=1)
        found[f"{name} mode"] = categories_at(column, np.where(measured > 0, mode, np.nan))
        same = share_class(counts.max(axis=1) / np.maximum(measured, 1))
        classes = np.array([*SHARE_CLASSES, None], dtype=object)
        found[f"{name} same"] = classes[np.where(measured > 1, same, len(SHARE_CLASSES))]
        return found
    standard, clock = Standardised.of(packed_values), Standardised.of(at)
    moves = standard.moves
    found[f"{name} mean"] = np.where(measured > 0, standard.mean, np.nan)
    found[f"{name} sd"] = np.where(measured > 1, standard.sd, np.nan)
    found[f"{name} trend"] = np.where(moves, trend(standard, clock), np.nan)
    found[f"{name} roughness"] = np.where(moves, standard.roughness, np.nan)
    return found


# ------------------------------------------------------------------------------------------------
# Public tables of what each row of a history adds to its levels.
#
# Every table is a chain. The last axis is what a row shows. The others are what came before, or what is
# fixed for the patient.
#
# - *measured*: whether a variable has a value, or a file has a row. Given are the rows since it last was so
# and the class of its share of rows. So is which of those before it are there in this row: none, some, or
# the last one. For a variable of a file that gives several, the file's rows alone count. - *gap*: the time
# since the last row over the patient's mean gap. Given is the last such ratio. - *kinds*: the same, given
# the kinds of the row before and of this one, see `kind_groups`. Rows of several files have the time itself
# here, and no table *gap*. - *rise*: the same as a gap for the values of an increasing column. - *residual*:
# a number's distance from the patient's own line over time, in units of what is left around the line. Given
# is the last one. - *category*: a category. Given are the last one and the patient's most frequent one. -
# *end*: a category. Given is whether the row is the patient's last. - *beside*: a category. Given is an
# earlier category of the same row. - *digit*: the last digit of a number that is recorded in many whole
# steps. - *pairs*: for each pair of ordered variables, whether both rise or fall, or one rises and the other
# falls. This is from one row that has both to the next.

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


def interval_numbers(values: Floats, edges: Floats) -> Ints:
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


def visit_cells(table: VisitTable, histories: Histories, schema: PatientSchema) -> Ints:
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
            gaps = interval_numbers(changes(times), gap_edges(schema))
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
    bins = interval_numbers(left, RESIDUALS)
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
    ratios = interval_numbers(changes(values) / np.where(mean > 0, mean, np.nan)[:, None], RATIOS)
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
