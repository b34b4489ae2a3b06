"""Rules that are tables: the combinations of categories that can occur, from a public list.

A region follows from its hospital, and a chapter from its diagnosis. Such a list is a rule like any other:
each synthetic record obeys it, at no cost (`dpsynth.marginals.rules`).
"""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    PlainSerializer,
    PlainValidator,
    StrictStr,
    ValidationError,
    WithJsonSchema,
    field_validator,
    model_validator,
)

from dpsynth.checks import few
from dpsynth.errors import InputError
from dpsynth.files.text import one_sentence
from dpsynth.table.column import Category, Column
from dpsynth.table.expressions import Expression, Truth, condition, parse_rule
from dpsynth.table.kinds.category import CategoryMatcher
from dpsynth.table.values import Numbers


class Pairs(BaseModel):
    """The combinations of two or more columns of categories that can occur.

    Parameters
    ----------
    columns : tuple of str
        Names of the columns.
    values : tuple of tuple
        The allowed combinations, a value for each column.
    file : str, optional
        In place of ``values``: a CSV file that has these columns, and perhaps others. It is read once. The
        schema then holds its values.

    Raises
    ------
    ValueError
        If a combination has another number of values than there are columns, or the file cannot be used.

    Examples
    --------
    >>> ward = Column(name="ward", kind="categorical", categories=("A", "B", "C"))
    >>> site = Column(name="site", kind="binary", categories=("north", "south"))
    >>> pairs = Pairs(columns=("ward", "site"), values=(("A", "north"), ("B", "north"), ("C", "south")))
    >>> rule = pairs.rule((ward, site))
    >>> import pandas as pd
    >>> rule.broken(pd.DataFrame({"ward": ["A", "C"], "site": ["north", "north"]})).tolist()
    [False, True]
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    columns: tuple[StrictStr, ...] = Field(min_length=2)
    values: tuple[tuple[Category, ...], ...] = ()
    file: StrictStr | None = Field(default=None, exclude=True)

    @field_validator("columns")
    @classmethod
    def _different(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        if len({*names}) < len(names):
            raise ValueError(f"columns of pairs must be different, got {few(names)}")
        return names

    @model_validator(mode="before")
    @classmethod
    def _from_file(cls, data: Any) -> Any:
        if not isinstance(data, Mapping) or data.get("file") is None or data.get("values"):
            return data
        values = _read(Path(str(data["file"])), [*data.get("columns", ())])
        return {**data, "values": values, "file": None}

    @model_validator(mode="after")
    def _of_columns(self) -> Self:
        if not self.values:
            raise ValueError(f"pairs of {few(self.columns)} need values, or a file that has them")
        odd = next((one for one in self.values if len(one) != len(self.columns)), None)
        if odd is not None:
            raise ValueError(f"pairs of {few(self.columns)}: {odd!r} has {len(odd)} values")
        return self

    def __str__(self) -> str:
        return f"allowed pairs of {' and '.join(self.columns)}"

    def rule(self, columns: Sequence[Column]) -> Expression:
        """The rule over columns of a schema, open where a value is missing.

        Raises InputError if one is no column of categories, or a category stands in no combination.
        """
        known = {column.name: column for column in columns}
        own = []
        for name in self.columns:
            if name not in known:
                raise InputError(f"{self}: {name!r} is not a column (columns: {few(known)})")
            if known[name].is_numeric:
                raise InputError(f"{self}: {name!r} is a column of numbers. Pairs are of categories")
            own.append(known[name])
        allowed = self._allowed(own)

        def truth(numbers: Numbers) -> Truth:
            codes = [numbers(column) for column in own]
            there = ~np.any([np.isnan(code) for code in codes], axis=0)
            places = tuple(np.where(there, code, 0).astype(np.int64) for code in codes)
            obeys = allowed[places]
            return there & obeys, there & ~obeys

        return condition(str(self), truth, self.columns)

    def _allowed(self, own: Sequence[Column]) -> NDArray[np.bool_]:
        """Which combinations of categories are listed, shape (categories of each column)."""
        places = [{value: i for i, value in enumerate(column.categories)} for column in own]
        match = [CategoryMatcher.of(column) for column in own]
        allowed = np.zeros([len(column.categories) for column in own], dtype=bool)
        for values in self.values:
            found = [place.get(read(value)) for place, read, value in zip(places, match, values, strict=True)]
            if None not in found:
                allowed[tuple(found)] = True
        for axis, column in enumerate(own):
            others = tuple(k for k in range(len(own)) if k != axis)
            if not (any_of := allowed.any(axis=others)).all():
                absent = column.categories[int(np.argmin(any_of))]
                raise InputError(f"{self}: the category {absent!r} of {column.name!r} is in no combination")
        return allowed


def _read(path: Path, names: list[str]) -> tuple[tuple[str, ...], ...]:
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = csv.DictReader(file)
            if absent := [name for name in names if name not in (rows.fieldnames or ())]:
                raise ValueError(
                    f"{path}: has no column {absent[0]!r} (columns: {few(rows.fieldnames or ())})"
                )
            return tuple(dict.fromkeys(tuple((row[name] or "").strip() for name in names) for row in rows))
    except (OSError, UnicodeError, csv.Error) as problem:
        raise ValueError(
            f"{path}: cannot be read ({getattr(problem, 'strerror', None) or problem})"
        ) from None


def _given(value: Any) -> str | Pairs:
    if isinstance(value, str | Pairs):
        return value
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise ValueError(f"a constraint must be text, or columns with their values or file, got {value!r}")
    try:
        return Pairs(**value)
    except ValidationError as problem:
        raise ValueError(one_sentence(problem, tuple(Pairs.model_fields))) from None


def _written(value: str | Pairs) -> Any:
    if isinstance(value, str):
        return value
    return {"columns": list(value.columns), "values": [list(one) for one in value.values]}


_FORM = {
    "type": "object",
    "properties": {
        "columns": {"type": "array", "items": {"type": "string"}},
        "values": {"type": "array", "items": {"type": "array"}},
        "file": {"type": "string"},
    },
    "required": ["columns"],
    "additionalProperties": False,
}
#: A constraint of a schema: a text, or allowed combinations.
Constraint = Annotated[
    str | Pairs,
    PlainValidator(_given),
    PlainSerializer(_written),
    WithJsonSchema({"anyOf": [{"type": "string"}, _FORM]}),
]


def read_rule(given: str | Pairs, columns: Sequence[Column]) -> Expression:
    """A constraint of a schema as a rule: a text, or allowed combinations."""
    return given.rule(columns) if isinstance(given, Pairs) else parse_rule(given, columns)


def located_pairs(data: Any, folder: Path) -> Any:
    """Content of a schema's file, whose files of pairs are named from its folder."""
    if not isinstance(data, Mapping) or not isinstance(data.get("constraints"), list):
        return data
    constraints = [
        {**one, "file": str(folder / str(one["file"]))}
        if isinstance(one, Mapping) and one.get("file")
        else one
        for one in data["constraints"]
    ]
    return {**data, "constraints": constraints}
