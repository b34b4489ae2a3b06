"""Describe a table: its columns, its outcome and its public number of records.

A schema is the public part of a private table: all that the mechanism may use without privacy budget. It is
written by hand, or drafted by :func:`dpsynth.table.inference.infer_schema` and then reviewed. It is
kept as YAML. Everything made with it names its digest.
"""

from __future__ import annotations

import hashlib
import json
from abc import abstractmethod
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

import pandas as pd
from pydantic import BaseModel, ConfigDict, StrictStr, ValidationError, model_validator

from dpsynth.checks import Counted, few, given_twice
from dpsynth.errors import PrivacyError, SchemaError
from dpsynth.files.codec import record
from dpsynth.files.storage import write_text
from dpsynth.files.text import (
    PRIVATE,
    dump_yaml,
    html_lines,
    html_table,
    load_yaml,
    one_sentence,
    read_yaml,
    text_table,
)
from dpsynth.table.cells import plain_table
from dpsynth.table.column import Column
from dpsynth.table.conform import Conformed, conform_columns
from dpsynth.table.csv_format import CsvFile, CsvFormat
from dpsynth.table.derived import add_derived, combinations, formulas, readings
from dpsynth.table.expressions import Expression
from dpsynth.table.groups import Group, check_groups
from dpsynth.table.pairs import Constraint, located_pairs, read_rule
from dpsynth.table.trees import located_trees

__all__ = ["Column", "Conformed", "Schema", "TableSchema", "require_reviewed"]

_NO_FORMULA = {"derived": None, "read_as": None}


class TableSchema(BaseModel):
    """What callers ask of the schema of a private table, whatever one record of it is.

    A record of a :class:`Schema` is a row, and each question has its plain answer here. A record of a
    :class:`dpsynth.PatientSchema` is a patient with all rows. The parameters are those that both have, where
    ``unit`` says what a row is, or names the column that says whose it is.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    columns: tuple[Column, ...]
    n_public: int | None = None
    outcome: StrictStr | None = None
    constraints: tuple[Constraint, ...] = ()
    name: str | None = None
    description: str | None = None
    unit: StrictStr | None = None
    ignored: tuple[StrictStr, ...] = ()
    other_columns: Literal["refuse", "ignore"] = "refuse"
    missing_words: tuple[StrictStr, ...] = ()
    csv: CsvFormat = CsvFormat()

    #: What messages say a table has of what is protected.
    protected: ClassVar[str] = "rows"

    @property
    @abstractmethod
    def table(self) -> Schema:
        """The schema of the table as it is read."""

    @property
    @abstractmethod
    def levels(self) -> Schema:
        """The schema of the table with one row for each record, which is fitted."""

    @property
    def ungrouped(self) -> Self:
        """The schema without the columns of groups, which have a model of their own."""
        return self

    def with_fields(self, **fields: Any) -> Self:
        """The schema with other values of some fields. Raises SchemaError if they do not fit the others."""
        return type(self)(**{**{name: getattr(self, name) for name in type(self).model_fields}, **fields})

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Return the schema as lists, mappings, text and numbers, default values left out."""

    @classmethod
    @abstractmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Build a schema from what :meth:`to_dict` gives, or raise SchemaError with one sentence."""

    @abstractmethod
    def _repr_html_(self) -> str:
        """The schema as a table for a notebook."""

    @property
    def counted(self) -> Counted:
        """The word for the records, which ``n_public`` counts: patients, if one row is a patient's levels."""
        return Counted.of(self.unit)

    @property
    def most_rows(self) -> int:
        """The most rows of the table that one record has."""
        return 1

    @property
    def several(self) -> bool:
        """Whether a record may have several rows."""
        return self.most_rows > 1

    @property
    def names(self) -> tuple[str, ...]:
        """The columns' names, in order."""
        return tuple(column.name for column in self.columns)

    def __len__(self) -> int:
        return len(self.columns)

    def column(self, name: str) -> Column:
        """Return the column of that name, or raise SchemaError."""
        for column in self.table.columns:
            if column.name == name:
                return column
        raise SchemaError(f"{name!r} is not a column (columns: {few(self.names)})")

    @property
    def unreviewed(self) -> dict[str, tuple[str, ...]]:
        """For each column with any, the fields read from the data that nobody has reviewed."""
        return {column.name: column.unreviewed for column in self.table.columns if column.unreviewed}

    @property
    def unconfirmed(self) -> tuple[str, ...]:
        """Columns whose list of categories or codes nobody confirmed as public."""
        return tuple(column.name for column in self.table.columns if column.unconfirmed)

    @property
    def undecided(self) -> tuple[str, ...]:
        """Columns that may hold values of records: with unreviewed fields, or a list that is unconfirmed."""
        return tuple(column.name for column in self.table.columns if column.undecided)

    def computable(self, name: str, inputs: Iterable[str]) -> bool:
        """Whether a formula of these inputs can be declared for a column: one that is modelled so far."""
        column = self.column(name)
        return column.derived is None and column.read_as is None

    def reads_folder(self, path: str | Path) -> bool:
        """Whether ``path`` is a folder whose files are linked to one table."""
        return False

    def writes_folder(self, path: str | Path) -> bool:
        """Whether samples are written to ``path`` as a folder of linked files."""
        return False

    def head(self, frame: pd.DataFrame, n: int) -> pd.DataFrame:
        """The first records of a synthetic table, each with all its rows, of at most ``n`` rows together."""
        return frame.head(n)

    def sizes(self, frame: pd.DataFrame) -> dict[str, int]:
        """The size of a synthetic table, for its report: of records, and of rows where these are others."""
        return {"synthetic_records": len(frame)}

    def grouped(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Made-up rows as those of records that have :attr:`most_rows` each, in the order of the rows."""
        return rows

    def with_n_public(self, n: int | None) -> Self:
        """Return the schema with another public number of records (None: not public)."""
        return self._with(n_public=n)

    def _with(self, **changes: Any) -> Self:
        fields = {field: getattr(self, field) for field in type(self).model_fields}
        return type(self)(**{**fields, **changes})

    def digest(self) -> str:
        """Return the SHA-256 of the schema's canonical JSON, 64 hexadecimal digits."""
        text = json.dumps(self.to_dict(), sort_keys=True, separators=(",", ":"), ensure_ascii=True)
        return hashlib.sha256(text.encode("ascii")).hexdigest()

    def to_yaml(self, path: str | Path | None = None) -> str:
        """Return the schema as YAML text, and write it to ``path`` if one is given.

        While it is :attr:`undecided`, only its owner can read the file.
        """
        held = self.to_dict()
        held["columns"] = [
            {
                field: value for field, value in column.items() if value is not None
            }  # categories have no bounds
            for column in held["columns"]
        ]
        text = dump_yaml(held)
        if path is not None:
            write_text(path, text, shared=not self.undecided)
        return text

    @classmethod
    def from_yaml(cls, source: str | Path) -> Self:
        """Read a schema from a YAML file, or from YAML text (text of more than one line).

        The message of a SchemaError starts with the file's name.
        """
        if isinstance(source, str) and "\n" in source:
            return cls.from_dict(load_yaml(source, origin="schema", error=SchemaError))
        folder = Path(source).parent

        return read_yaml(
            source,
            lambda data: cls.from_dict(located_trees(located_pairs(data, folder), folder)),
            error=SchemaError,
        )


@record
class Schema(TableSchema):
    """The frozen, public description of a table.

    Parameters
    ----------
    columns : tuple of Column
        In the order of released tables, with unique names.
    n_public : int, optional
        The number of records, if that is public knowledge (of a published data set, say). If it is absent, a
        private count uses privacy budget.
    outcome : str, optional
        A categorical, binary or ordinal column. Classifiers predict it, and it is the base model's root.
    constraints : tuple of str or Pairs
        Rules that hold in every synthetic record (:mod:`dpsynth.table.expressions`), or allowed combinations
        of categories (:mod:`dpsynth.table.pairs`).
    name, description : str, optional
        For readers.
    unit : str, optional
        Privacy unit: the meaning of one row, such as ``one patient: the first encounter``. The ledger of a
        fit states it, since a guarantee is about one row. The table's owner is responsible for it.
    ignored : tuple of str
        Columns that a table may have and that are not read: identifiers, free text.
    other_columns : {"refuse", "ignore"}
        Treatment of columns of a table that the schema does not name.
    missing_words : tuple of str
        Words that stand for a missing value in a table, such as ``?``, wherever they are no category.
    csv : CsvFormat
        How the owner's CSV files are written: ``sep``, ``decimal`` and ``encoding``. What is left out is
        guessed. Files of :func:`~dpsynth.table.files.write_table` are read all the same.
    groups : tuple of Group
        Yes/no columns of which a record has few, such as codes (:mod:`dpsynth.table.groups`).

    Raises
    ------
    SchemaError
        One sentence that names the column or the field.

    Examples
    --------
    >>> schema = Schema(columns=(Column(name="age", kind="integer", lower=18, upper=110),
    ...                          Column(name="died", kind="binary", categories=(0, 1))), outcome="died")
    >>> schema.names
    ('age', 'died')
    >>> schema["age"].upper
    110.0
    >>> Schema.from_yaml(schema.to_yaml()) == schema
    True
    """

    groups: tuple[Group, ...] = ()

    def __init__(self, **fields: Any) -> None:
        try:
            super().__init__(**fields)
        except ValidationError as problem:
            label = f"schema {fields['name']!r}" if fields.get("name") else "schema"
            known = tuple(type(self).model_fields)
            raise SchemaError(f"{label}: {one_sentence(problem, known)}") from None

    @model_validator(mode="after")
    def _fields_fit(self) -> Schema:
        if not self.columns:
            raise ValueError("columns must name at least one column")
        names = self.names
        if (twice := given_twice(names)) is not None:
            raise ValueError(f"the column {twice!r} is given twice")
        both = next((name for name in self.ignored if name in names), None)
        if both is not None:
            raise ValueError(f"the column {both!r} is both declared and ignored")
        if self.unit is not None and (not self.unit or self.unit != " ".join(self.unit.split())):
            raise ValueError(f"unit must be one line of text, got {self.unit!r}")
        if self.n_public is not None and self.n_public < 1:
            raise ValueError(f"n_public must be at least 1, got {self.n_public}")
        if self.outcome is not None:
            if self.outcome not in names:
                raise ValueError(f"the outcome {self.outcome!r} is not a column (columns: {few(names)})")
            if self.column(self.outcome).is_numeric:
                raise ValueError(f"the outcome {self.outcome!r} must be categorical, binary or ordinal")
        if not any(column.derived is None for column in self.columns):
            raise ValueError("every column is derived. At least one must be of its own")
        _ = self.formulas, self.readings  # read once, so that what is wrong with one is said here
        for rule in self.rules:
            every = combinations(rule, self.columns)
            if every is not None and rule.broken(every).all():
                raise ValueError(f"constraint {rule.text!r}: no declared values obey it")
        if self.groups:
            computed = [
                of
                for column, formula in (*self.formulas, *self.readings)
                for of in ((column.name, formula), *((name, formula) for name in formula.columns))
            ]
            read = [(name, rule) for rule in self.rules for name in rule.columns]
            read_by = {name: formula.text for name, formula in (*computed, *read)}
            check_groups(self.groups, self.columns, self.outcome, read_by)
        return self

    @property
    def rules(self) -> tuple[Expression, ...]:
        """The constraints, read, each given once."""
        return tuple(read_rule(given, self.columns) for given in dict.fromkeys(self.constraints))

    @property
    def formulas(self) -> tuple[tuple[Column, Expression], ...]:
        """The derived columns with their formulas, each after its inputs."""
        return formulas(self.columns)

    @property
    def readings(self) -> tuple[tuple[Column, Expression], ...]:
        """The columns that a table may give by others instead, with their formulas."""
        return readings(self.columns)

    @property
    def table(self) -> Schema:
        """This schema: the table is fitted as it is read."""
        return self

    levels = table

    @property
    def group_columns(self) -> tuple[tuple[Group, tuple[Column, ...]], ...]:
        """The groups with their columns."""
        by_name = {column.name: column for column in self.columns}
        return tuple(
            (group, tuple(map(by_name.__getitem__, group.among(self.names)))) for group in self.groups
        )

    @property
    def ungrouped(self) -> Schema:
        """The schema without the columns of groups, which have a model of their own."""
        if not self.groups:
            return self
        inside = {name for group in self.groups for name in group.among(self.names)}
        return self.select(name for name in self.names if name not in inside)

    @property
    def modelled(self) -> Schema:
        """The part that is counted and modelled: without derived columns, constraints and readings."""
        if not self.constraints and not any(column.derived or column.read_as for column in self.columns):
            return self
        own = (column for column in self.columns if column.derived is None)
        plain = tuple(column.model_copy(update=_NO_FORMULA) for column in own)
        return self._with(columns=plain, constraints=())

    def __getitem__(self, name: str) -> Column:
        return self.column(name)

    def __repr__(self) -> str:
        """The schema as a table: columns, kinds, allowed values and unreviewed fields."""
        return "\n".join([self._headline(), text_table(*self._table()), *self._closing()])

    __str__ = __repr__

    def _repr_html_(self) -> str:
        """The same for a notebook."""
        lines = html_lines(self._closing())
        return html_lines([self._headline()]) + html_table(*self._table()) + lines

    def _headline(self) -> str:
        records = "number of records not public" if self.n_public is None else f"{self.n_public:,} records"
        facts = [f"{len(self)} columns", records]
        facts += [f"outcome {self.outcome}"] if self.outcome else []
        facts += [f"one row is {self.unit}"] if self.unit else []
        return f"Schema{f' of {self.name}' if self.name else ''}: {', '.join(facts)}"

    def _table(self) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
        rows = [
            (
                column.name,
                column.kind,
                column.allowed,
                column.unit or "",
                "allowed" if column.missing else "",
                ", ".join(column.unreviewed),
            )
            for column in self.columns
        ]
        header = ("column", "kind", "allowed values", "unit", "missing", "unreviewed")
        shown = [k for k in range(len(header)) if k < 3 or any(row[k] for row in rows)]
        return tuple(header[k] for k in shown), [tuple(row[k] for k in shown) for row in rows]

    def _closing(self) -> list[str]:
        lines = [f"not read: {few(self.ignored)}"] if self.ignored else []
        lines += [f"group: {few(group.columns)}, at most {group.at_most} of a row" for group in self.groups]
        lines += [f"rule: {rule}" for rule in self.constraints]
        return lines + ([PRIVATE] if self.unreviewed else [])

    def mark_reviewed(self, columns: Iterable[str] | None = None) -> Schema:
        """Return the schema with these columns' fields (all by default) taken as public knowledge.

        The caller confirms that the bounds would be the same without the data, and so the categories of
        columns that are named.
        """
        chosen = self.names if columns is None else tuple(columns)
        for name in chosen:
            self.column(name)
        return self._with(
            columns=tuple(
                column.mark_reviewed(named=columns is not None) if column.name in chosen else column
                for column in self.columns
            )
        )

    def select(self, names: Iterable[str]) -> Schema:
        """Return the schema of these columns, in this order.

        The outcome and constraints are kept if all their columns are. A derived column without its inputs is
        a column like any other. So are the columns of groups if no other is left.
        """
        chosen = tuple(names)
        both = (*self.formulas, *self.readings)
        whole = {column.name for column, formula in both if set(formula.columns) <= set(chosen)}
        columns = tuple(
            column if column.name in whole else column.model_copy(update=_NO_FORMULA)
            for column in map(self.column, chosen)
        )
        given = zip(dict.fromkeys(self.constraints), self.rules, strict=True)
        kept = tuple(one for one, rule in given if set(rule.columns) <= set(chosen))
        outcome = self.outcome if self.outcome in chosen else None
        groups = [(group.among(chosen), group.at_most) for group in self.groups]
        left = tuple(Group(columns=own, at_most=most) for own, most in groups if own)
        if sum(len(own) for own, _ in groups) == len(chosen):
            left = ()
        return self._with(columns=columns, outcome=outcome, constraints=kept, groups=left)

    def conform(self, frame: pd.DataFrame) -> Conformed:
        """Check a frame against the schema, bring it to canonical dtypes, bounds and steps.

        Numbers are clipped to the bounds and rounded to ``step``. Names of columns are read as text. Derived
        columns that the frame lacks are computed. Those that it has are taken as they are.

        Parameters
        ----------
        frame : pandas.DataFrame, shape (n, columns)
            Exactly the columns of the schema in any order, with or without derived and ignored ones.

        Returns
        -------
        Conformed
            ``frame``: dtypes as in :attr:`Column.dtype`, the index kept. ``clipped``: functions of the
            private records without noise, and so confidential.

        Raises
        ------
        DataError
            If a column is absent, unknown or given twice. If a value is missing where it may not be,
            infinite, no number, not whole or no declared category. Column, row and value are named.

        Examples
        --------
        >>> schema = Schema(columns=(Column(name="age", kind="integer", lower=18, upper=90),))
        >>> schema.conform(pd.DataFrame({"age": [17, 40, 102]})).clipped
        {'age': 2}
        """
        return self._conformed(frame, None, clip=True)

    def read_names(self, names: Iterable[str]) -> list[str]:
        """Those of a table's columns that are read for a fit.

        Derived columns are not, unless another column is read as a formula of them.
        """
        has = [str(name) for name in names]
        needed = {part for column, of in self.readings if column.name not in has for part in of.columns}
        derived = {column.name for column, _ in self.formulas} - needed
        return [name for name in has if name not in derived]

    def conform_modelled(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Do what :meth:`conform` does, with the modelled columns alone, and return the frame."""
        frame = plain_table(frame)
        own = self.read_names(frame.columns)
        read = {column.name for column, of in self.readings if {*of.columns} <= {*own}} - {*own}
        plain = tuple(
            column.model_copy(update={"derived": None} if column.name in read else _NO_FORMULA)
            for column in self.columns
            if column.derived is None or column.name in own
        )
        part = self._with(columns=plain, constraints=())
        return part.conform(frame[own]).frame[list(self.modelled.names)]

    def check(self, frame: pd.DataFrame, *, path: str | Path | CsvFile | None = None) -> pd.DataFrame:
        """Do what :meth:`conform` does, but leave values outside the bounds, or off the steps, as they are.

        ``path`` is the CSV file the frame was read from. An error then names its line.
        """
        return self._conformed(frame, path, clip=False).frame

    def _conformed(self, frame: pd.DataFrame, path: str | Path | CsvFile | None, *, clip: bool) -> Conformed:
        has = {str(name) for name in frame.columns}
        read = [(column, formula) for column, formula in self.readings if has >= {*formula.columns}]
        computed = [
            (column, formula) for column, formula in (*read, *self.formulas) if column.name not in has
        ]
        absent = [column for column, _ in computed]
        given = [column for column in self.columns if column not in absent]
        ignored = None if self.other_columns == "ignore" else self.ignored
        made = conform_columns(
            given, frame, path, ignored=ignored, missing_words=self.missing_words, clip=clip
        )
        if not computed:
            return made
        return Conformed(add_derived(made.frame, computed, self.columns), made.clipped)

    def to_dict(self) -> dict[str, Any]:
        """Return the schema as lists, mappings, text and numbers, default values left out."""
        kept = self.model_dump(mode="json", exclude_defaults=True)
        for column in kept["columns"]:
            column |= {key: _plain(value) for key, value in column.items()}
            codes = [_plain(code) for code in column.pop("special", ())]
            column |= {"special": codes} if codes else {}
        order = ["name", "description", "unit", "n_public", "outcome", "ignored", "other_columns"]
        order += ["missing_words", "csv", "groups", "columns", "constraints"]
        return {key: kept[key] for key in order if key in kept}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Build a schema from what :meth:`to_dict` gives, or raise SchemaError with one sentence."""
        if not isinstance(data, Mapping):
            raise SchemaError(
                f"schema: a mapping with the key columns is required, got {type(data).__name__}"
            )
        if "rows" in data:
            raise SchemaError(
                "schema: the key rows describes patients with several rows, who are not possible here. "
                "PatientSchema, `dpsynth run` and `dpsynth fit` read it"
            )
        if not isinstance(data.get("columns"), list | tuple):
            raise SchemaError("schema: columns must be a list of columns")
        columns = []
        for position, entry in enumerate(data["columns"], start=1):
            if not (isinstance(entry, Mapping) and all(isinstance(key, str) for key in entry)):
                raise SchemaError(f"schema: column {position} must be a mapping of fields, got {entry!r}")
            columns.append(Column(**entry))
        if not all(isinstance(key, str) for key in data):
            raise SchemaError("schema: every key must be text")
        return cls(**{**data, "columns": tuple(columns)})


def require_reviewed(schema: TableSchema, accept: bool = False) -> dict[str, tuple[str, ...]]:
    """Return the unreviewed fields of each column, or refuse a schema that has any with PrivacyError.

    Their bounds or categories were read off the private records. With ``accept`` the caller goes on all the
    same, and posts the fields to the ledger as an exclusion: the guarantee does not cover them.

    Examples
    --------
    >>> require_reviewed(Schema(columns=(Column(name="age", kind="integer", lower=0, upper=120),)))
    {}
    """
    unreviewed = schema.unreviewed
    if unreviewed and not accept:
        named = (f"{name} ({', '.join(which)})" for name, which in unreviewed.items())
        fields = few(named, separator="; ")
        raise PrivacyError(
            "these fields of the schema were read off the private records and nobody has reviewed them: "
            f"{fields}. Put public values in their place and remove 'unreviewed'. Or accept them "
            "(accept_unreviewed, in a run's file under data): the ledger will say so"
        )
    return unreviewed


def _plain(value: Any) -> Any:
    """Write whole floats without their point, so that hand-read YAML says ``upper: 120``."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return int(value)
    return value
