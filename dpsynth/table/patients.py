"""Tables with several rows for each patient: their public description, their histories, and their levels.

The patient is the privacy unit. A history is one patient's rows in order, at most ``most`` of them. Levels
are numbers that a patient's own rows determine. They are the number of rows, the time that these cover, and
each variable's mean, spread, trend and roughness, or its most frequent category. Levels make a table with one
row per patient. A chain of rows forgets a patient after a few rows. A level does not.

Examples
--------
>>> schema = PatientSchema(
...     unit="id", order="day", most=3,
...     columns=(Column(name="day", kind="integer", lower=0, upper=365),
...              Column(name="hdl", kind="integer", lower=5, upper=150, missing=True)))
>>> visits = pd.DataFrame({"id": [7, 7, 8], "day": [10, 40, 5], "hdl": [50, 60, None]})
>>> levels_of(Histories.of(visits, schema, np.random.default_rng(0)), schema)["hdl mean"].tolist()
[55.0, nan]
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, StrictStr, ValidationError, model_validator

from dpsynth.checks import few
from dpsynth.errors import DataError, SchemaError, of_records
from dpsynth.files.yaml_text import load_yaml, one_sentence, read_yaml
from dpsynth.table.column import Column
from dpsynth.table.csv_format import CsvFormat
from dpsynth.table.io import read_cells
from dpsynth.table.schema import Schema
from dpsynth.table.values import numeric_values

Floats = NDArray[np.float64]
#: Rows of a patient that are modelled, at most.
MOST_ROWS = 100
#: Classes of a share of rows: upper ends, and their names.
_SHARES = (0.0, 0.2, 0.5, 0.999)
SHARE_CLASSES = ("none", "up to a fifth", "up to half", "more than half", "all")
#: Rows with a value below which trend and roughness are not defined, and the largest roughness.
_FEWEST, MOST_ROUGH = 3, 2.2


class PatientSchema(BaseModel):
    """The frozen, public description of a table with several rows for each patient.

    Parameters
    ----------
    unit : str
        The column that identifies a patient. It is never modelled, and samples have fresh identifiers.
    order : str
        The numeric column that orders a patient's rows, such as the day. It is never missing.
    most : int
        Rows of a patient that are used, at most.
    keep : {"first", "last", "random"}
        Which rows are used of a patient who has more. The choice depends on no other patient.
    columns : tuple of Column
        In the order of released tables, without ``unit``.
    per_patient : tuple of str
        Columns that have one value for each patient. All others may change from row to row.
    n_public : int, optional
        The number of patients, if that is public knowledge.
    name, description : str, optional
        For readers.

    Raises
    ------
    SchemaError
        One sentence that names the column or the field.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    unit: StrictStr
    order: StrictStr
    most: int = Field(ge=2, le=MOST_ROWS)
    keep: Literal["first", "last", "random"] = "first"
    columns: tuple[Column, ...]
    per_patient: tuple[StrictStr, ...] = ()
    n_public: int | None = None
    name: str | None = None
    description: str | None = None

    def __init__(self, **fields: Any) -> None:
        try:
            super().__init__(**fields)
        except ValidationError as problem:
            raise SchemaError(f"schema: {one_sentence(problem, tuple(type(self).model_fields))}") from None

    @model_validator(mode="after")
    def _fields_fit(self) -> PatientSchema:
        names = self.names
        if self.unit in names:
            raise ValueError(f"the unit {self.unit!r} identifies patients and cannot be a column")
        for name in (self.order, *self.per_patient):
            if name not in names:
                raise ValueError(f"{name!r} is not a column (columns: {few(names)})")
        order = self.column(self.order)
        if not order.is_numeric or order.missing or order.special or self.order in self.per_patient:
            raise ValueError(
                f"order {self.order!r} must be a numeric column that changes from row to row, is never "
                "missing and has no special codes"
            )
        for column in self.columns:
            if column.derived is not None:
                raise ValueError(f"column {column.name!r}: derived columns need one row per patient")
            if column.special and column.name not in self.per_patient:
                raise ValueError(f"column {column.name!r}: special codes need one value per patient")
        clash = next((name for name in self.levels.names if name in self.rows.names), None)
        if clash is not None:
            raise ValueError(f"the column {clash!r} has the name of a level, rename it")
        return self

    def to_dict(self) -> dict[str, Any]:
        """Return the schema as lists, mappings, text and numbers, as in a YAML file."""
        facts: dict[str, Any] = {"name": self.name, "description": self.description, "unit": self.unit}
        facts |= {
            "n_public": self.n_public,
            "rows": {"most": self.most, "order": self.order, "keep": self.keep},
        }
        columns = self.table.to_dict()["columns"]
        for column in columns:
            column |= {"per": "patient"} if column["name"] in self.per_patient else {}
        return {key: value for key, value in facts.items() if value is not None} | {"columns": columns}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> PatientSchema:
        """Build a schema from what :meth:`to_dict` gives, or raise SchemaError with one sentence."""
        rows, given = (data.get("rows"), data.get("columns")) if isinstance(data, Mapping) else (None, None)
        if not isinstance(rows, Mapping) or set(rows) - {"most", "order", "keep"}:
            raise SchemaError("schema: rows must be a mapping with most, order and perhaps keep")
        if not isinstance(given, Sequence) or not all(isinstance(column, Mapping) for column in given):
            raise SchemaError("schema: columns must be a list of mappings")
        own = []
        for column in given:
            if column.get("per", "row") not in ("row", "patient"):
                raise SchemaError(f"column {column.get('name')!r}: per must be 'row' or 'patient'")
            own += [column.get("name")] if column.get("per") == "patient" else []
        plain = [{key: value for key, value in column.items() if key != "per"} for column in given]
        fields = {key: value for key, value in data.items() if key not in ("rows", "columns")}
        return cls(**fields, **rows, columns=Schema.from_dict({"columns": plain}).columns, per_patient=own)

    @classmethod
    def from_yaml(cls, source: str | Path) -> PatientSchema:
        """Read a schema from a YAML file, or from YAML text (text of more than one line).

        Raises
        ------
        SchemaError
            If the file cannot be read or does not hold a schema.

        Examples
        --------
        >>> PatientSchema.from_yaml('''
        ... unit: id
        ... rows: {most: 5, order: day}
        ... columns:
        ...   - {name: day, kind: integer, lower: 0, upper: 365}
        ...   - {name: age, kind: integer, lower: 18, upper: 99, per: patient}
        ... ''').levels.names
        ('age', 'rows', 'day first', 'day span')
        """
        if isinstance(source, str) and "\n" in source:
            return cls.from_dict(load_yaml(source, origin="schema", error=SchemaError))
        return read_yaml(source, cls.from_dict, error=SchemaError)

    def read(self, path: str | Path, csv_format: CsvFormat) -> pd.DataFrame:
        """Read a file of rows with the unit's column.

        Raises
        ------
        DataError
            If the file cannot be read, lacks the unit, or does not fit the schema.
        """
        frame, _ = read_cells(path, self.columns, csv_format)
        if self.unit not in frame:
            raise DataError(
                f"{path}: the column {self.unit!r}, which identifies patients, is not in the file"
            )
        rows = self.table.check(frame)
        return rows.assign(**{self.unit: frame[self.unit].to_numpy()})

    @property
    def names(self) -> tuple[str, ...]:
        """The columns' names, in order."""
        return tuple(column.name for column in self.columns)

    def column(self, name: str) -> Column:
        """Return the column of that name."""
        return self.table.column(name)

    @property
    def table(self) -> Schema:
        """The columns as a schema of rows, without the unit."""
        return Schema(columns=self.columns, ignored=(self.unit,))

    @property
    def rows(self) -> Schema:
        """The columns that may change from row to row."""
        return self.table.select([name for name in self.names if name not in self.per_patient])

    @property
    def variables(self) -> tuple[Column, ...]:
        """The columns that may change from row to row, without the one that orders the rows."""
        return tuple(column for column in self.rows.columns if column.name != self.order)

    def patient_table(self, frame: pd.DataFrame, *, random_state: int | None = None) -> pd.DataFrame:
        """Return the levels of each patient of a table of rows: one row per patient, as ``levels`` describes.

        They are functions of the rows without noise: of private rows, confidential.

        Parameters
        ----------
        frame : pandas.DataFrame, shape (rows, columns)
            With the unit's column.
        random_state : int, optional
            Seed of the choice of rows, where ``keep`` is random.

        Raises
        ------
        DataError
            If a row lacks its unit, or if the table does not fit the schema.
        """
        return levels_of(Histories.of(frame, self, np.random.default_rng(random_state)), self)

    @property
    def levels(self) -> Schema:
        """The schema of the table with one row for each patient."""
        order = self.column(self.order)
        lower, upper = order.bounds
        step = order.resolution
        whole: dict[str, Any] = {"kind": order.kind, "step": step, "missing": False}
        span: dict[str, Any] = {"lower": 0.0, "upper": upper - lower, "scale": "log" if step else "linear"}
        columns = [self.column(name) for name in self.names if name in self.per_patient]
        columns.append(Column(name="rows", kind="integer", lower=1, upper=self.most))
        columns.append(Column(name=f"{order.name} first", lower=lower, upper=upper, **whole))
        columns.append(Column(name=f"{order.name} span", **span, **whole | {"missing": True}))
        for column in self.variables:
            columns += _levels_of_variable(column)
        return Schema(
            columns=tuple(columns),
            n_public=self.n_public,
            name=self.name,
            unit=f"one patient ({self.unit}) with all rows, of which at most {self.most} are used",
        )


def read_schema(path: str | Path) -> Schema | PatientSchema:
    """Read the schema of a YAML file. The key ``rows`` makes it one of patients with several rows."""

    def build(data: Any) -> Schema | PatientSchema:
        several = isinstance(data, Mapping) and "rows" in data
        return PatientSchema.from_dict(data) if several else Schema.from_dict(data)

    return read_yaml(path, build, error=SchemaError)


def _levels_of_variable(column: Column) -> list[Column]:
    name = column.name
    found = []
    if column.missing:
        found.append(Column(name=f"{name} measured", kind="ordinal", categories=SHARE_CLASSES))
    if not column.is_numeric:
        mode: dict[str, Any] = {"kind": column.kind, "categories": column.categories}
        found.append(Column(name=f"{name} mode", missing=column.missing, **mode))
        found.append(Column(name=f"{name} same", kind="ordinal", categories=SHARE_CLASSES[1:], missing=True))
        return found
    lower, upper = column.bounds
    number: dict[str, Any] = {"kind": "continuous", "missing": True}
    mean: dict[str, Any] = {"scale": column.scale if lower > 0 else "linear", "missing": column.missing}
    found.append(Column(name=f"{name} mean", kind="continuous", lower=lower, upper=upper, **mean))
    # Zeros have a cell of their own, since many patients have one value throughout.
    step = (upper - lower) / 2 / 1000
    found.append(Column(name=f"{name} sd", lower=0, upper=1000 * step, step=step, scale="log", **number))
    found.append(Column(name=f"{name} trend", lower=-1, upper=1, **number))
    found.append(Column(name=f"{name} roughness", lower=0, upper=MOST_ROUGH, **number))
    return found


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

        Some rows are kept of patients who have more than ``most``, by a rule that reads no other patient. A
        column per patient has the value of the patient's first row that has one.

        Raises DataError if the unit is absent or missing in a row, or if the table does not fit the schema.
        """
        if schema.unit not in frame:
            raise DataError(f"the table lacks the column {schema.unit!r}, which identifies patients")
        empty = frame[schema.unit].isna().to_numpy()
        if empty.any():
            raise of_records(
                f"row {int(empty.argmax()) + 1}: {schema.unit!r} is missing, but identifies patients"
            )
        table = schema.table.conform(frame).frame
        patient = pd.factorize(frame[schema.unit])[0]
        time = table[schema.order].to_numpy(dtype=np.float64)
        if schema.keep == "random":
            kept = _ranks(patient, rng.random(len(time))) < schema.most
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
            numbers[patient[kept], place[kept]] = numeric_values(column, table[column.name])[kept]
            values[column.name] = numbers
        # `first` skips what is missing.
        own = table[list(schema.per_patient)].groupby(patient).first() if schema.per_patient else None
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
            for name in schema.rows.names
        }
        return cls(values, (~np.isnan(values[schema.order])).sum(axis=1), frame.iloc[:, :0])


def _ranks(group: NDArray[np.int64], keys: Floats) -> NDArray[np.int64]:
    """Rank of each key within its group."""
    order = np.lexsort((keys, group))
    counts = np.bincount(group)
    ranks = np.empty(len(keys), np.int64)
    ranks[order] = np.arange(len(keys)) - np.repeat(np.cumsum(counts) - counts, counts)
    return ranks


def packed(values: Floats, *others: Floats) -> list[Floats]:
    """The measured values of each history moved to the left, and the others taken at the same rows."""
    order = np.argsort(np.isnan(values), axis=1, kind="stable")
    return [
        np.take_along_axis(np.where(np.isnan(values), np.nan, array), order, 1) for array in (values, *others)
    ]


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
    order = schema.column(schema.order)
    columns: dict[str, Any] = {name: histories.patients[name] for name in schema.per_patient}
    columns["rows"] = rows
    columns[f"{order.name} first"] = times[:, 0]
    span = np.nanmax(times, axis=1, initial=-np.inf) - times[:, 0]
    columns[f"{order.name} span"] = np.where(rows > 1, span, np.nan)
    for column in schema.variables:
        columns |= _variable(column, histories.numbers[column.name], times, rows)
    return schema.levels.conform(pd.DataFrame(columns)).frame


def _variable(column: Column, values: Floats, times: Floats, rows: NDArray[np.int64]) -> dict[str, Any]:
    name, found = column.name, {}
    (packed_values, at) = packed(values, times)
    measured = (~np.isnan(values)).sum(axis=1)
    if column.missing:
        classes = share_class(measured / rows)
        found[f"{name} measured"] = np.array(SHARE_CLASSES, dtype=object)[classes]
    if not column.is_numeric:
        size = len(column.categories)
        counts = np.stack([(values == code).sum(axis=1) for code in range(size)], axis=1)
        mode = counts.argmax(axis=1)
        words = np.array([*column.categories, None], dtype=object)
        found[f"{name} mode"] = words[np.where(measured > 0, mode, size)]
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
