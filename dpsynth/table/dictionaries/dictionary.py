"""A data dictionary: what is public about the columns of a table, whatever its records are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from dpsynth.errors import DataError, InputError, SchemaError
from dpsynth.files.storage import read_json
from dpsynth.table.answers import changed
from dpsynth.table.cells import spoken
from dpsynth.table.column import Column
from dpsynth.table.draft import PUBLIC_LIST, fields_as
from dpsynth.table.drafts import AnySchema, Draft
from dpsynth.table.expressions import parse_rule
from dpsynth.table.kinds import KINDS
from dpsynth.table.remarks import LeftOut, Remark

#: fields of a column that are lists
_LISTS = ("categories", "special", "missing_codes", "aliases")


def json_of(path: Path) -> Any:
    """Content of a JSON file, None of any other."""
    if path.suffix.lower() != ".json":
        return None
    try:
        return read_json(path)
    except DataError:
        return None


@dataclass(frozen=True)
class Variable:
    """A column of a dictionary. ``fields`` are those of a `Column`, all of them public.

    ``left_out`` says why a column is not modelled, such as a name. ``rules`` hold by the dictionary.
    """

    name: str
    fields: Mapping[str, Any] = field(default_factory=dict)
    left_out: str = ""
    rules: tuple[str, ...] = ()


@dataclass(frozen=True)
class Dictionary:
    """The variables of a table, by name. ``source`` says which file they come from.

    ``beside_records``: the file holds the records too. A list in it may have been made of them, as Stata's
    ``encode`` does, so its owner must confirm each list.
    """

    source: str
    variables: Mapping[str, Variable]
    beside_records: bool = False

    @classmethod
    def of(cls, source: str, variables: Iterable[Variable], *, beside_records: bool = False) -> Dictionary:
        """The dictionary of these variables. InputError if two have one name."""
        found: dict[str, Variable] = {}
        for one in variables:
            if one.name in found:
                raise InputError(f"{source}: the variable {one.name!r} is described twice")
            found[one.name] = one
        return cls(source, found, beside_records)

    def keeps(self, frame: pd.DataFrame) -> tuple[str, ...]:
        """Columns of a table that it describes for use, so that no draft asks whom they identify.

        A file of records describes all that it holds, identifiers too. There only lists of categories count.
        """
        names = [str(name) for name in frame.columns[frame.notna().any()]]
        described = [one for name in names if (one := self.variables.get(name)) and not one.left_out]
        needed = "categories" if self.beside_records else None
        return tuple(one.name for one in described if (needed in one.fields if needed else one.fields))

    def without_codes(self, frame: pd.DataFrame) -> pd.DataFrame:
        """A table without the codes that the dictionary says stand for no value."""
        made = {}
        for name in frame.columns:
            one = self.variables.get(str(name))
            codes = {spoken(code) for code in one.fields.get("missing_codes", ())} if one else set()
            if codes:
                made[name] = frame[name].mask(frame[name].map(spoken).isin(codes))
        return frame.assign(**made)

    def leaves_out(self, names: Iterable[str]) -> tuple[str, ...]:
        """Those of a table's columns that it leaves out."""
        return tuple(n for n in names if (one := self.variables.get(n)) and one.left_out)

    def declared(self, draft: Draft[AnySchema], *frames: pd.DataFrame) -> Draft[AnySchema]:
        """A draft with what the dictionary says in place of what records, which are in ``frames``, say.

        Fields of the dictionary are public, and so is its list of categories or codes if it does not stand
        beside records. All others stay unreviewed. A field that does not fit the others of its column, and a
        rule that cannot be read, are left out with a remark.
        """
        columns, remarks = [], []
        for column in draft.schema.columns:
            one = self.variables.get(column.name)
            if one is None or not one.fields:
                columns.append(column)
                continue
            try:
                cells = next((frame[column.name] for frame in frames if column.name in frame), None)
                columns.append(self._with_public(column, one.fields, cells))
            except (InputError, SchemaError, LeftOut) as problem:
                columns.append(column)
                text = f"{self.source} describes it in a way that is not used"
                remarks.append(Remark(column.name, "note", text, str(problem)))
        settled = {c.name for c, old in zip(columns, draft.schema.columns, strict=True) if c is not old}
        schema = draft.schema.model_copy(update={"columns": tuple(columns)})
        rules: list[str] = []
        for one in self.variables.values():
            for rule in one.rules:
                try:
                    parse_rule(rule, schema.columns)
                    rules.append(rule)
                except InputError as problem:
                    text = f"a rule of {self.source} is not used"
                    remarks.append(Remark(one.name, "note", text, str(problem)))
        schema = schema.with_fields(constraints=(*schema.constraints, *rules))
        left = [
            remark
            for remark in draft.remarks
            if remark.kind != "question" or remark.column not in settled or remark.question in _STILL
        ]
        gone = [
            Remark(name, "left out", f"{self.source}: {self.variables[name].left_out}")
            for name in self.leaves_out(draft.schema.ignored)
        ]
        lists = [
            Remark(name, "question", PUBLIC_LIST, question="public_list")
            for name in settled
            if schema.column(name).unconfirmed
        ]
        return Draft(schema, (*left, *gone, *remarks, *lists))

    def _with_public(self, column: Column, fields: Mapping[str, Any], cells: pd.Series | None) -> Column:
        """A drafted column with the public fields of a dictionary, and the others unreviewed."""
        kind = KINDS[fields.get("kind", column.kind)]
        numeric = kind.level == "numeric"
        needed = ("lower", "upper") if numeric else ("categories",)
        other = numeric != column.is_numeric or fields.get("format", column.format) != column.format
        read: dict[str, Any] = {}
        if other and cells is not None and not all(name in fields for name in needed):
            read = fields_as(cells, kind.name, fields.get("format"))
        elif kind.name == "continuous" and column.kind == "integer":
            read = {"decimals": 0}
        if {"lower", "upper"} <= {*fields}:
            fields = {"scale": None, **fields}  # that of a draft may not fit these limits
        made = changed(column.name, column, {**read, **fields})
        kept = tuple(name for name in made.unreviewed if name not in fields)
        listed = any(fields.get(name) for name in _LISTS) and not kept and not self.beside_records
        return made.model_copy(update={"unreviewed": kept, "reviewed": listed})


#: Questions that a dictionary does not answer: about the outcome, and about how columns hang together.
_STILL = frozenset(
    ("gives_away", "same_measure", "sum_of_parts", "decided_by", "one_of_a_set", "formula", "slips")
)
