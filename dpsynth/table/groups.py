"""Groups of yes/no columns of which a record has few: codes of diagnoses, procedures or drugs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any

import numpy as np
import pandas as pd
from pydantic import BaseModel, ConfigDict, StrictInt, StrictStr, WithJsonSchema, field_validator

from dpsynth.checks import few
from dpsynth.table.column import Column

_ONE_OR_MORE = {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}


class Group(BaseModel):
    """Columns of kind ``binary`` that are read and modelled together.

    Parameters
    ----------
    columns : str or sequence of str
        Names. ``*`` stands for any letters: ``icd_*``.
    at_most : int
        Most columns of a record that hold the second category. It is public. Of a record with more, some by
        lot are read as the first one.

    Examples
    --------
    >>> Group(columns="icd_*", at_most=3).among(["age", "icd_401", "icd_250"])
    ('icd_401', 'icd_250')
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    columns: Annotated[tuple[StrictStr, ...], WithJsonSchema(_ONE_OR_MORE)]
    at_most: StrictInt

    @field_validator("columns", mode="before")
    @classmethod
    def _listed(cls, given: Any) -> Any:
        if isinstance(given, str):
            return (given,)
        if not given:
            raise ValueError("columns of a group must name at least one column")
        return given

    def among(self, names: Iterable[str]) -> tuple[str, ...]:
        """Those of the names that belong to the group, in their order."""
        patterns = [_pattern(own) for own in self.columns]
        return tuple(name for name in names if any(own.fullmatch(name) for own in patterns))

    def beyond(self, frame: pd.DataFrame, columns: Sequence[Column]) -> int:
        """Number of rows of a conformed frame with more of the columns than ``at_most``. Confidential."""
        own = [column for column in columns if column.name in self.among(frame.columns)]
        ones = sum((frame[column.name] == column.categories[1]).to_numpy(np.int64) for column in own)
        return int(np.sum(ones > self.at_most))


def _pattern(name: str) -> re.Pattern[str]:
    return re.compile(".*".join(map(re.escape, name.split("*"))))


def check_groups(
    groups: Sequence[Group], columns: Sequence[Column], outcome: str | None, read_by: Mapping[str, str]
) -> None:
    """Raise ValueError for groups that cannot be modelled.

    ``read_by``: the rule or formula that reads a column, by the column's name.
    """
    names, seen = [column.name for column in columns], set[str]()
    for group in groups:
        if group.at_most < 1:
            raise ValueError(
                f"groups: at_most of {few(group.columns)} must be at least 1, got {group.at_most}"
            )
        for name in group.columns:
            if not any(map(_pattern(name).fullmatch, names)):
                raise ValueError(f"groups: {name!r} is the name of no column (columns: {few(names)})")
        own = group.among(names)
        for column in columns:
            if column.name in own:
                _check_column(column, outcome, read_by)
        if twice := [name for name in own if name in seen]:
            raise ValueError(f"groups: the column {twice[0]!r} is in two groups. Leave it in one")
        seen.update(own)
    if len(seen) == len(names):
        raise ValueError("groups hold every column. At least one, such as the outcome, must be outside")


def _check_column(column: Column, outcome: str | None, read_by: Mapping[str, str]) -> None:
    why = None
    if column.kind != "binary":
        why = f"is of kind {column.kind}, and those of a group are binary"
    elif column.missing:
        why = "may be missing. Declare a column whether it is known outside of the group"
    elif column.name == outcome:
        why = "is the outcome, which stands outside of groups"
    elif column.name in read_by:
        why = f"is read by {read_by[column.name]!r}, and rules and formulas read columns outside of groups"
    if why is not None:
        raise ValueError(f"groups: the column {column.name!r} {why}")
