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

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.util import hash_array

from dpsynth.errors import DataError, of_records
from dpsynth.patients.courses.times import nearest_time
from dpsynth.patients.files import places, without_value
from dpsynth.patients.schema import PatientSchema
from dpsynth.patients.series import Floats
from dpsynth.table.cells import plain_table
from dpsynth.table.identity import identities
from dpsynth.table.kinds.category import categories_at
from dpsynth.table.values import numeric_values

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
            numbers[patient[kept], place[kept]] = known * column.calendar_unit
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
        own = values / column.calendar_unit if column.is_numeric else categories_at(column, values)
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
        "without a value, or with one that came before" if schema.once else "without any value": (
            ~valued
        ).sum(),
        f"after a terminal row{', or at the time of another row' * schema.unique}": (valued & ~used).sum(),
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
        codes = column.code(table[schema.order])
        if schema.times:
            known = np.array(schema.times)
            codes = known[nearest_time(known, codes)]
            table = table.assign(**{schema.order: column.series(codes, table.index).to_numpy()})
        time = column.amounts(codes)
    else:
        time = places(order).astype(np.float64)
    return _first_times(table, schema, patient, time), patient, time


def _first_times(
    table: pd.DataFrame, schema: PatientSchema, patient: NDArray[np.int64], time: Floats
) -> pd.DataFrame:
    """The rows, with each value of a column that has it once at its first time alone."""
    order = np.lexsort((time, patient))
    for name in schema.once:
        again = np.zeros(len(table), bool)
        pairs = pd.DataFrame({"patient": patient, "value": table[name].to_numpy()}).iloc[order]
        again[order] = pairs.duplicated().to_numpy()
        table = table.assign(**{name: table[name].astype(object).mask(again, None)})
    return table


def _valued(table: pd.DataFrame, schema: PatientSchema) -> NDArray[np.bool_]:
    """Which rows have a value."""
    needed = [c.name for c in schema.variables if c.name in schema.once and not c.missing]
    if needed or not all(column.missing for column in schema.variables):
        valued = table[needed].notna().all(axis=1).to_numpy(copy=True)
        for name in schema.terminal:  # which counts although its row has a value again
            valued |= (table[name] == schema.column(name).categories[1]).to_numpy()
        return valued
    return table[[column.name for column in schema.variables]].notna().any(axis=1).to_numpy()


def _used(
    table: pd.DataFrame, schema: PatientSchema, patient: NDArray[np.int64], time: Floats
) -> NDArray[np.bool_]:
    """Which rows have a value, and none of their patient's terminal rows before them."""
    used = _valued(table, schema)
    order = np.lexsort((time, patient))
    if schema.unique:
        ahead = order[used[order]]
        again = pd.DataFrame({"patient": patient[ahead], "time": time[ahead]}).duplicated().to_numpy()
        used[ahead[again]] = False
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


def levels_of(histories: Histories, schema: PatientSchema) -> pd.DataFrame:
    """The table with one row for each patient, conformed to ``schema.levels``."""
    columns: dict[str, Any] = {**histories.patients, "rows": histories.rows}
    for course in schema.courses:
        columns |= course.level_values(histories)
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
