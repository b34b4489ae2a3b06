"""The public description of a table with several rows for each patient, and of its levels.

The patient is the privacy unit. Levels are numbers that a patient's own rows determine
(:mod:`dpsynth.patients.histories`). They are the number of rows, the time that these cover, and each
variable's mean, spread, trend and roughness, or its most frequent category. Levels make a table with one row
per patient. A chain of rows forgets a patient after a few rows. A level does not.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

import numpy as np
import pandas as pd
from pydantic import Field, StrictBool, StrictStr, ValidationError, model_validator

from dpsynth.checks import PATIENT, Counted, few
from dpsynth.errors import DataError, SchemaError
from dpsynth.files.codec import record
from dpsynth.files.text import html_lines, one_sentence, read_yaml
from dpsynth.patients.courses import OVER_TIME
from dpsynth.patients.courses.categories import CategoryCourse
from dpsynth.patients.courses.course import RowCourse, RowFacts
from dpsynth.patients.courses.first_times import FirstTimes
from dpsynth.patients.courses.links import Links
from dpsynth.patients.courses.numbers import NumberCourse
from dpsynth.patients.courses.presences import Presences
from dpsynth.patients.courses.stays import Stays
from dpsynth.patients.courses.times import Places, Times
from dpsynth.patients.files import PatientFile, PatientFolder, Presence, ordered
from dpsynth.patients.rates import Rate
from dpsynth.table.column import Column
from dpsynth.table.csv_format import CsvFormat
from dpsynth.table.files import WRITABLE, read_cells
from dpsynth.table.kinds.date import moment
from dpsynth.table.pairs import located_pairs
from dpsynth.table.schema import Schema, TableSchema
from dpsynth.table.trees import located_trees

#: Rows of a patient that are modelled, at most.
MOST_ROWS = 100
#: Keys of ``rows`` in a file.
_ROW_KEYS = ("most", "order", "keep", "times", "unique", "until", "unreviewed")


@record
class PatientSchema(TableSchema):
    """The frozen, public description of a table with several rows for each patient.

    Parameters
    ----------
    unit : str
        The column that identifies a patient. It is never modelled, and samples have fresh identifiers.
    order : str
        The column that orders a patient's rows. A date, or a number such as the day, is modelled. One that
        ``columns`` does not name, such as the number of a stay, orders rows. Samples hold the row's number.
    most : int
        Rows of a patient that are used, at most.
    keep : {"first", "last", "random"}
        Which rows are used of a patient who has more. The choice depends on no other patient.
    columns : tuple of Column
        In the order of released tables, without ``unit``.
    times : tuple of float
        All times that rows can have, such as the years of a survey, as numbers or dates. Other times in a
        table count as the nearest of these. None: any within the bounds of the order.
    until : str, optional
        A column per patient after which no row comes, such as the end of follow-up. The time from the last
        row to it is modelled in place of the span of the rows.
    unique : bool
        Whether a patient has one row at most at each time. Later rows at the same time are not used.
    per_patient : tuple of str
        Columns that have one value for each patient. All others may change from row to row.
    increasing : tuple of str
        Numeric or ordinal columns that never fall from one row to the next, such as a stage. A value below
        an earlier one counts as that one.
    rates : tuple of Rate
        How much such columns rise at most in a unit of time. A value above counts as the largest possible.
    once : tuple of str
        Categories of which a patient has each value once at most, such as a diagnosis at its first time.
        Later rows with the same value are left out, or count as without one where it may be missing.
    chronic : tuple of str
        Categories that a patient keeps, such as a chronic disease, and that each later row may have again.
    terminal : tuple of str
        Binary columns, such as a death, whose second category stands in a patient's last row alone. Rows
        after the first such row are not used.
    constraints : tuple of str or Pairs
        Rules that every row obeys, as of :class:`dpsynth.Schema`.
    n_public : int, optional
        The number of patients, if that is public knowledge.
    outcome : str, optional
        A category per patient, or a terminal column, that analyses predict. It gets more of the model.
    name, description : str, optional
        For readers.
    files : tuple of PatientFile
        The files of a folder that gives the rows, see :mod:`dpsynth.patients.files`. Each column but the
        unit and the order stands in one of them.
    ignored, missing_words : tuple of str
        As in :class:`~dpsynth.table.schema.Schema`.
    csv : CsvFormat
        How the files are written, as in :class:`~dpsynth.table.schema.Schema`.
    other_columns : {"refuse", "ignore"}
        As in :class:`~dpsynth.table.schema.Schema`.
    rows_unreviewed : tuple of str
        Which of ``unit``, ``most``, ``order``, ``per`` and ``files`` were read from records and are not
        reviewed. A fit refuses them.

    Raises
    ------
    SchemaError
        One sentence that names the column or the field.

    Examples
    --------
    >>> PatientSchema.from_yaml('''
    ... unit: id
    ... rows: {most: 5, order: day}
    ... columns:
    ...   - {name: day, kind: integer, lower: 0, upper: 365}
    ...   - {name: age, kind: integer, lower: 18, upper: 99, per: patient}
    ...   - {name: ward, kind: binary, categories: [A, B]}
    ... ''').levels.names
    ('age', 'rows', 'day first', 'day span', 'ward mode', 'ward same')
    """

    unit: StrictStr
    order: StrictStr
    most: int = Field(ge=2, le=MOST_ROWS)
    keep: Literal["first", "last", "random"] = "first"
    times: tuple[float, ...] = ()
    until: StrictStr | None = None
    unique: StrictBool = False
    per_patient: tuple[StrictStr, ...] = ()
    increasing: tuple[StrictStr, ...] = ()
    rates: tuple[Rate, ...] = ()
    once: tuple[StrictStr, ...] = ()
    chronic: tuple[StrictStr, ...] = ()
    terminal: tuple[StrictStr, ...] = ()
    files: tuple[PatientFile, ...] = ()
    rows_unreviewed: tuple[Literal["unit", "most", "order", "per", "files"], ...] = ()

    protected: ClassVar[str] = "patients"

    def __init__(self, **fields: Any) -> None:
        try:
            super().__init__(**{**fields, "times": _times(fields)})
        except ValidationError as problem:
            said = one_sentence(problem, tuple(type(self).model_fields)).removeprefix("schema: ")
            raise SchemaError(f"schema: {said}") from None

    @model_validator(mode="after")
    def _fields_fit(self) -> PatientSchema:
        if self.files:
            self.folder.check()
        names = self.names
        if self.unit in names:
            raise ValueError(f"the unit {self.unit!r} identifies patients and cannot be a column")
        declared = {name: word for word in OVER_TIME for name in getattr(self, word)}
        for name in (*self.per_patient, *declared):
            if name not in names:
                raise ValueError(f"{name!r} is not a column (columns: {few(names)})")
        changing = self.rows.names
        if self.order == self.unit:
            raise ValueError(f"the unit {self.unit!r} cannot be the order of rows")
        if self.timed:
            order = self.column(self.order)
            if not order.is_numeric or order.missing or order.special or self.order not in changing:
                raise ValueError(
                    f"order {self.order!r} must be a column of dates or numbers that changes from row to "
                    "row, is never missing and has no special codes"
                )
            self._check_times(order)
        elif self.times or self.unique or self.until is not None:
            raise ValueError(f"times, unique and until need the order {self.order!r} as a column")
        if not {column.name for column in self.variables} - (set() if self.timed else {*self.terminal}):
            raise ValueError(
                "columns must name one that changes from row to row, besides the order and, without times, "
                "terminal events"
            )
        for name, word in declared.items():
            if name not in changing or name == self.order:
                raise ValueError(
                    f"column {name!r}: only columns that change from row to row, other than the order, can "
                    f"be {word}"
                )
            OVER_TIME[word].check(self.column(name))
            if name == self.length:
                raise ValueError(f"column {name!r}: the length of stays cannot be {word}")
        for rate in self.rates:
            self._check_rate(rate)
        for column in self.variables:
            if column.name in self.once and not column.missing and len(column.categories) < self.most:
                raise ValueError(
                    f"most must be at most {len(column.categories)}, the number of categories of "
                    f"{column.name!r}, of which each row has another one. Or write missing: true there"
                )
        if self.outcome is not None and self.outcome not in (*self.per_patient, *self.terminal):
            raise ValueError(f"the outcome {self.outcome!r} must be a column per patient, or terminal")
        for column in self.rows.columns:
            if column.is_date and column.name != self.order:
                raise ValueError(
                    f"column {column.name!r}: of the dates that change from row to row, only the order is "
                    "modelled. Declare this one as derived, from the order and a number of days"
                )
            if column.special:
                raise ValueError(f"column {column.name!r}: special codes need one value per patient")
        numbered = {f"{name}@{place}" for name in (*changing, self.order) for place in range(self.most)}
        shared = set(self.levels.names) & ({*changing} - {*self.terminal} | numbered)
        clash = min(shared, default=None)
        if clash is not None:
            raise ValueError(f"the column {clash!r} has the name of a level, rename it")
        return self

    def _check_times(self, order: Column) -> None:
        (lower, upper), ahead = order.bounds, [*self.times]
        if ahead != sorted({*ahead}) or any(not lower <= time <= upper for time in ahead):
            raise ValueError(f"times must ascend within the bounds of {order.name!r}")
        moving = [w for w, kind in OVER_TIME.items() if issubclass(kind, FirstTimes) and getattr(self, w)]
        if moving and (self.times or self.unique):
            raise ValueError(
                f"times and unique cannot stand beside over_time: {moving[0]}, which sets the times of rows"
            )
        if self.length is not None and (self.times or self.unique):
            raise ValueError("times and unique cannot stand beside lasts, which sets the times of rows")
        if self.until is not None:
            end = self.column(self.until) if self.until in self.per_patient else None
            if end is None or not end.is_numeric or end.is_date != order.is_date or end.special:
                kind = "a date" if order.is_date else "a number"
                raise ValueError(f"until must name a column per patient that is {kind}, as {order.name!r} is")
        steps = len(ahead) or order.n_values
        if self.unique and steps is not None and steps < self.most:
            raise ValueError(f"most must be at most {steps}, the number of times, where they are unique")

    def _check_rate(self, rate: Rate) -> None:
        if rate.column not in self.increasing or [own.column for own in self.rates].count(rate.column) > 1:
            raise ValueError(
                f"column {rate.column!r}: one rate can be given, and over_time must be increasing"
            )
        if not self.timed:
            raise ValueError(
                f"column {rate.column!r}: a rate needs the time of rows, as the order in columns"
            )
        rate.in_clock(self.clock)

    @property
    def folder(self) -> PatientFolder:
        """The files that give the rows."""
        given = self._schema(self.columns)
        return PatientFolder(self.files, given, self.unit, self.order, self.per_patient, self.terminal)

    @property
    def counted(self) -> Counted:
        """The records are patients."""
        return Counted.PATIENTS

    @property
    def most_rows(self) -> int:
        """The most rows of a patient that are used."""
        return self.most

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """Copy with other fields. What was derived from the fields is derived anew."""
        copied = super().model_copy(update=update, deep=deep)
        for name in copied.__dict__.keys() - type(self).model_fields.keys():
            del copied.__dict__[name]
        return copied

    def computable(self, name: str, inputs: Iterable[str]) -> bool:
        """Whether a formula can be declared: of a column per patient, but the order, if its inputs are."""
        fits = all(one in self.per_patient for one in inputs) == (name in self.per_patient)
        return fits and name not in (self.order, *self.increasing) and super().computable(name, inputs)

    def head(self, frame: pd.DataFrame, n: int) -> pd.DataFrame:
        """The first patients of a synthetic table with all their rows, at most ``n`` rows together."""
        first = frame.head(n)
        return first if len(frame) <= n else first[first[self.unit] != frame[self.unit].iloc[n]]

    def sizes(self, frame: pd.DataFrame) -> dict[str, int]:
        """The size of a synthetic table, for its report: of patients and their rows."""
        return {"synthetic_records": int(frame[self.unit].nunique()), "synthetic_rows": len(frame)}

    def grouped(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Made-up rows as those of patients with ``most`` rows each, none of which is terminal."""
        no_end = {name: self.column(name).categories[0] for name in self.terminal}
        unit = {self.unit: np.repeat(np.arange(len(rows) // self.most), self.most)}
        return self.in_order(rows.assign(**no_end, **unit))

    def keyed(self, rows: pd.DataFrame, frame: pd.DataFrame) -> pd.DataFrame:
        """Conformed rows of a frame with its unit and its order, where these are not modelled."""
        own = [name for name in (self.unit, self.order) if name in frame and name not in rows]
        return rows.assign(**{name: frame[name].to_numpy() for name in own})

    def in_order(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Synthetic or made-up rows, in the order in which they stand if that is no column."""
        if self.timed or self.order in rows:
            return rows
        return rows.assign(**{self.order: np.arange(len(rows))})

    def reads_folder(self, path: str | Path) -> bool:
        """Whether ``path`` is a folder that holds ``files``."""
        return bool(self.files) and Path(path).is_dir()

    def writes_folder(self, path: str | Path) -> bool:
        """Whether rows are written to ``path`` as a folder of files: it has no suffix of a table."""
        return bool(self.files) and not Path(path).name.lower().endswith(WRITABLE)

    def __repr__(self) -> str:
        """The schema as a table, below the unit, the order and the number of rows."""
        return f"{self._headline()}\n{self.table}"

    __str__ = __repr__

    def _repr_html_(self) -> str:
        """The same for a notebook."""
        return html_lines([self._headline()]) + self.table._repr_html_()

    def _headline(self) -> str:
        places = f", in the files {', '.join(file.name for file in self.files)}" if self.files else ""
        own = f". One value each: {', '.join(self.per_patient)}" if self.per_patient else ""
        return (
            f"Patients ({self.unit}) with at most {self.most} rows each, in the order of {self.order}"
            f"{places}{own}"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the schema as lists, mappings, text and numbers, as in a YAML file."""
        facts: dict[str, Any] = {"name": self.name, "description": self.description, "unit": self.unit}
        facts |= {
            "n_public": self.n_public,
            "outcome": self.outcome,
            "rows": {"most": self.most, "order": self.order, "keep": self.keep},
        }
        if self.times:
            order = self.column(self.order)
            facts["rows"]["times"] = [order.shown(t) if order.written_apart else t for t in self.times]
        if self.unique:
            facts["rows"]["unique"] = True
        if self.until is not None:
            facts["rows"]["until"] = self.until
        if self.rows_unreviewed:
            facts["rows"]["unreviewed"] = list(self.rows_unreviewed)
        if self.files:
            facts["files"] = {file.name: file.entry() for file in self.files}
        table = self._schema(self.columns).model_copy(update={"ignored": self.ignored}).to_dict()
        facts |= {key: table.get(key) for key in ("ignored", "other_columns", "missing_words", "csv")}
        columns = table["columns"]
        for column in columns:
            column |= {"per": "patient"} if column["name"] in self.per_patient else {}
            for course in OVER_TIME:
                column |= {"over_time": course} if column["name"] in getattr(self, course) else {}
            rate = next((rate for rate in self.rates if rate.column == column["name"]), None)
            column |= {} if rate is None else {"rate": rate.entry()}
        facts |= {"constraints": table.get("constraints"), "columns": columns}
        return {key: value for key, value in facts.items() if value is not None}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Build a schema from what :meth:`to_dict` gives, or raise SchemaError with one sentence."""
        rows, given = (data.get("rows"), data.get("columns")) if isinstance(data, Mapping) else (None, None)
        if not isinstance(rows, Mapping) or set(rows) - {*_ROW_KEYS}:
            raise SchemaError("schema: rows must be a mapping with most, order and perhaps keep")
        if not isinstance(given, Sequence) or not all(isinstance(column, Mapping) for column in given):
            raise SchemaError("schema: columns must be a list of mappings")
        if not all(isinstance(key, str) for key in data):
            raise SchemaError("schema: every key must be text")
        if "groups" in data:
            raise SchemaError(
                "schema: groups are for tables with one row for each record, and this schema has rows. Leave "
                "groups out, or count each patient's codes in one row"
            )
        named: dict[str, list[Any]] = {"per_patient": [], **{course: [] for course in OVER_TIME}}
        for column in given:
            per, course = column.get("per", "row"), column.get("over_time")
            if per not in ("row", "patient"):
                raise SchemaError(f"column {column.get('name')!r}: per must be 'row' or 'patient'")
            if course not in (None, *OVER_TIME):
                raise SchemaError(
                    f"column {column.get('name')!r}: over_time must be {' or '.join(map(repr, OVER_TIME))}"
                )
            for key in ("per_patient",) * (per == "patient") + (course,) * (course is not None):
                named[key].append(column.get("name"))
        own = ("per", "over_time", "rate")
        plain = [{key: value for key, value in column.items() if key not in own} for column in given]
        named["rates"] = [Rate.of(str(c.get("name")), c["rate"]) for c in given if c.get("rate") is not None]
        files = data.get("files") or {}
        if not isinstance(files, Mapping):
            raise SchemaError("schema: files must be a mapping from a file's name to its columns")
        fields = {key: value for key, value in data.items() if key not in ("rows", "columns")}
        fields |= {"files": [PatientFile.of(str(name), entry) for name, entry in files.items()]}
        rows = {{"unreviewed": "rows_unreviewed"}.get(key, key): value for key, value in rows.items()}
        if (both := next((key for key in fields if key in (*rows, *named)), None)) is not None:
            raise SchemaError(f"schema: {both} is no key of its own. It is a key of rows or of a column")
        return cls(**fields, **rows, columns=Schema.from_dict({"columns": plain}).columns, **named)

    def read(self, path: str | Path, csv_format: CsvFormat | None = None) -> pd.DataFrame:
        """Read rows with the unit's column from one file, or from the folder of ``files``.

        Parameters
        ----------
        path : path
            A CSV or Parquet file that has all columns, or a folder.
        csv_format : CsvFormat, optional
            How CSV files are written. Default: as the schema's ``csv`` says.

        Returns
        -------
        pandas.DataFrame, shape (rows, columns + 1)
            Values outside the bounds stay as they are. The unit is text in rows of a folder.

        Raises
        ------
        DataError
            If a file cannot be read or does not fit the schema. If files do not belong together, see
            :mod:`dpsynth.patients.files`.

        Warns
        -----
        OwnerWarning
            How many patients without rows, items without a column and empty rows of a folder were left out.
        """
        csv_format = csv_format or self.csv
        if Path(path).is_dir():
            if not self.files:
                raise DataError(f"{path} is a folder. Name its files in the schema, under 'files'")
            frame, file = self.folder.read(Path(path), csv_format), None
        else:
            frame, file = read_cells(path, self.columns, csv_format)
        rows = self.table.check(frame, path=file)
        apart = {name: frame[name] for name in (self.unit, self.order) if name in frame}
        apart |= {self.order: ordered(apart[self.order])} if self.order in apart else {}
        return rows.assign(**{name: values for name, values in apart.items() if name not in rows})

    @cached_property
    def table(self) -> Schema:
        """The columns as a schema of rows, without the unit.

        Columns of one of several files may be missing.
        """
        return self._schema(self.folder.joined if self.files else self.columns)

    def _schema(self, columns: tuple[Column, ...]) -> Schema:
        apart = (self.unit,) if self.timed else (self.unit, self.order)
        return Schema(
            columns=columns,
            constraints=self.constraints,
            ignored=(*apart, *self.ignored),
            other_columns=self.other_columns,
            missing_words=self.missing_words,
            csv=self.csv,
        )

    @property
    def timed(self) -> bool:
        """Whether the order of rows is a column that is modelled."""
        return self.order in self.names

    @property
    def unreviewed(self) -> dict[str, tuple[str, ...]]:
        """The fields read from the data that nobody has reviewed: of ``rows``, and of each column."""
        rows = {"rows": self.rows_unreviewed} if self.rows_unreviewed else {}
        return {**rows, **super().unreviewed}

    @property
    def undecided(self) -> tuple[str, ...]:
        """As in :class:`~dpsynth.table.schema.Schema`, with ``rows`` if these fields are unreviewed."""
        return ("rows",) * bool(self.rows_unreviewed) + super().undecided

    @cached_property
    def clock(self) -> Column:
        """The order of rows as a number, of days where it is a date. Histories hold its values."""
        order = self.column(self.order)
        if not order.is_date:
            return order
        (lower, upper), day = order.bounds, order.unit_size
        step = float(order.resolution or 1.0) * day
        ends: dict[str, Any] = {"lower": lower * day, "upper": upper * day, "step": step}
        return Column(
            name=order.name, kind="integer" if step.is_integer() else "continuous", unit="days", **ends
        )

    @cached_property
    def rows(self) -> Schema:
        """The columns that may change from row to row, without derived ones."""
        own = self.table.modelled
        return own.select([name for name in own.names if name not in self.per_patient])

    @cached_property
    def variables(self) -> tuple[Column, ...]:
        """The columns that may change from row to row, without the one that orders the rows."""
        return tuple(column for column in self.rows.columns if column.name != self.order)

    @property
    def free(self) -> tuple[Column, ...]:
        """The variables that may rise and fall: those without a declared course."""
        declared = {name for word in OVER_TIME for name in getattr(self, word)}
        return tuple(column for column in self.variables if column.name not in declared)

    @property
    def length(self) -> str | None:
        """The column that says how long stays last, if there is one."""
        stays = self.folder.stays if self.files else None
        return None if stays is None else stays[0]

    @cached_property
    def presences(self) -> tuple[Presence, ...]:
        """Columns and rows of files that may be missing in a row, in the order in which they are drawn."""
        if self.files:
            return self.folder.presences
        return tuple(Presence(column.name, (column.name,)) for column in self.variables if column.missing)

    @cached_property
    def courses(self) -> tuple[RowCourse, ...]:
        """What each column, and the time, does over the rows, in the order of levels."""
        events = tuple(file.columns for file in self.folder.events) if self.files else ()
        apart = bool(self.files) and self.folder.apart
        names = tuple(column.name for column in self.variables)
        stays = self.folder.stays if self.files else None
        presences = Presences(self.presences, self.most, self.terminal, names, apart, stays)
        order = (
            Times(self.column(self.order), self._facts, presences, events)
            if self.timed
            else Places(self.order)
        )
        ordered_ones = [c for c in self.variables if c in self.free or c.name in self.increasing]
        linked = tuple(c.name for c in ordered_ones if c.kind != "categorical")
        numbers = tuple(c.name for c in ordered_ones if c.is_numeric)
        links = Links(linked, numbers, self.increasing, self.order)
        ends = (Stays(self.column(stays[0]), self._facts, stays[1], self.terminal),) if stays else ()
        return (order, presences, *map(self._course, self.variables), links, *ends)

    @property
    def _facts(self) -> RowFacts:
        clock = self.clock if self.timed else None
        until = None if self.until is None else self.column(self.until)
        rates = {rate.column: rate for rate in self.rates}
        return RowFacts(self.order, clock, self.most, self.times, self.unique, until, rates)

    def _course(self, column: Column) -> RowCourse:
        declared = {name: course for word, course in OVER_TIME.items() for name in getattr(self, word)}
        course = declared.get(column.name, NumberCourse if column.is_numeric else CategoryCourse)
        return course(column, self._facts)

    @cached_property
    def levels(self) -> Schema:
        """The schema of the table with one row for each patient."""
        own = self.table.modelled
        columns = [own.column(name) for name in own.names if name in self.per_patient]
        read = ("upper",) if self.rows_unreviewed else ()
        columns.append(Column(name="rows", kind="integer", lower=1, upper=self.most, unreviewed=read))
        for course in self.courses:
            for level in course.levels:
                # what was read off the rows shows in their levels
                source = self.table.column(course.source(level))
                columns.append(level.model_copy(update={"unreviewed": source.unreviewed}))
        return Schema(
            columns=tuple(columns),
            n_public=self.n_public,
            outcome=self.outcome,
            name=self.name,
            unit=f"{PATIENT} ({self.unit}, at most {self.most} rows are used)",
        )


#: The schema of patients with several rows, None where a record is one row.
Patients = PatientSchema | None


def patients_of(schema: TableSchema) -> Patients:
    """The schema itself if its records are patients with several rows. Nothing else asks for its class."""
    return schema if isinstance(schema, PatientSchema) else None


def schema_of(data: Any) -> TableSchema:
    """Build a schema of either kind. The key ``rows`` makes it one of patients with several rows."""
    several = isinstance(data, Mapping) and "rows" in data
    return PatientSchema.from_dict(data) if several else Schema.from_dict(data)


def read_schema(path: str | Path) -> TableSchema:
    """Read the schema of a YAML file, of either kind."""
    folder = Path(path).parent

    def read(data: Any) -> TableSchema:
        return schema_of(located_trees(located_pairs(data, folder), folder))

    return read_yaml(path, read, error=SchemaError)


def _times(fields: Mapping[str, Any]) -> Any:
    """The times of rows as numbers, those of dates read from text."""
    given, columns = fields.get("times", ()), fields.get("columns") or ()
    kinds = [column.kind for column in columns if getattr(column, "name", None) == fields.get("order")]
    if not kinds or kinds[0] not in ("date", "datetime") or isinstance(given, str):
        return given
    try:
        return tuple(time if isinstance(time, int | float) else moment(time, kinds[0]) for time in given)
    except ValueError as problem:
        raise SchemaError(f"schema: times {problem}") from None
