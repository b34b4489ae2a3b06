"""Public trees of categories: a code belongs to a block, and the block to a chapter.

A tree costs nothing and forbids nothing. Rare categories are counted together with their neighbours in it
(`dpsynth.marginals.pooling`), so that a table of two columns keeps what a group of them means.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, StrictInt, StrictStr, ValidationError, model_validator

from dpsynth.checks import few
from dpsynth.files.text import one_sentence
from dpsynth.table.cells import spoken

Ints = NDArray[np.int64]


class Tree(BaseModel):
    """Groups of a column's categories, level by level.

    Parameters
    ----------
    prefixes : tuple of int
        Groups are what categories begin with: ``[1, 3]`` is the first character, and the first three.
    values : tuple of tuple
        In place of ``prefixes``: for each category itself and its groups, the smallest group first.
    file : str, optional
        In place of both: a CSV file with such rows below a header. It is read once. The schema then holds the
        rows of its categories.
    columns : tuple of str
        Columns of the file, that of the categories first. By default all, in their order.

    Raises
    ------
    ValueError
        If there is no level, or an empty one. If a category or a group is in two groups of the next level. If
        the file cannot be read.

    Examples
    --------
    >>> Tree(prefixes=(1, 3)).levels(("I21.0", "I21.9", "I50.0"))
    (array([0, 0, 1]), array([0, 0, 0]))
    >>> Tree(values=(("MI", "heart"), ("CHF", "heart"), ("COPD", "lung"))).levels(("COPD", "MI", "CHF"))
    (array([1, 0, 0]),)
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    prefixes: tuple[StrictInt, ...] = ()
    values: tuple[tuple[str, ...], ...] = ()
    file: StrictStr | None = Field(default=None, exclude=True)
    columns: tuple[StrictStr, ...] = Field(default=(), exclude=True)

    @model_validator(mode="before")
    @classmethod
    def _from_file(cls, data: Any) -> Any:
        if not isinstance(data, Mapping) or data.get("file") is None:
            return data
        if data.get("prefixes") or data.get("values"):
            raise ValueError("tree has a file beside prefixes or values. Leave one of them")
        columns = data.get("columns", ())
        if not isinstance(columns, list | tuple):
            raise ValueError(f"columns of a tree are a list of names, got {columns!r}")
        return {"values": _read(Path(str(data["file"])), [*columns])}

    @model_validator(mode="after")
    def _levels_fit(self) -> Self:
        if bool(self.prefixes) == bool(self.values):
            raise ValueError("tree needs prefixes such as [1, 3], or a file with the groups of each category")
        steps = zip((0, *self.prefixes), self.prefixes, strict=False)
        if any(long <= short for short, long in steps):
            raise ValueError(
                f"prefixes of a tree must grow from 1 on, such as [1, 3], got {[*self.prefixes]}"
            )
        if self.values:
            _check(self.values)
        return self

    def of(self, categories: Sequence[Any]) -> Tree:
        """The part of the tree with these categories, or ValueError that names one without a place in it."""
        if not self.values:
            if not all(isinstance(category, str) for category in categories):
                raise ValueError("prefixes of a tree are of text, so write the categories in quotes")
            return self
        place = {row[0]: row for row in self.values}
        if absent := [category for category in categories if spoken(category) not in place]:
            raise ValueError(f"the category {absent[0]!r} is not in the tree. Add it to the tree's file")
        return Tree(values=tuple(place[spoken(category)] for category in categories))

    def levels(self, categories: Sequence[Any]) -> tuple[Ints, ...]:
        """The group of each category in each level, the finest level first, shapes (categories,)."""
        if self.prefixes:
            rows = [[category[:k] for k in reversed(self.prefixes)] for category in categories]
        else:
            place = {row[0]: row[1:] for row in self.values}
            rows = [[*place[spoken(category)]] for category in categories]
        return tuple(np.unique(np.array(level), return_inverse=True)[1] for level in zip(*rows, strict=True))


def with_tree(fields: Any) -> Any:
    """Fields of a column with its tree made, and with categories of the tree's file if none are given."""
    if not isinstance(fields, Mapping) or fields.get("tree") is None:
        return fields
    given, categories = fields["tree"], fields.get("categories")
    if not isinstance(given, Tree):
        if not isinstance(given, Mapping) or not all(isinstance(key, str) for key in given):
            raise ValueError(f"tree must have a file or prefixes, got {given!r}")
        try:
            given = Tree(**given)
        except ValidationError as problem:
            raise ValueError(one_sentence(problem, tuple(Tree.model_fields))) from None
    categories = categories or tuple(row[0] for row in given.values)
    listed = isinstance(categories, list | tuple) and categories
    return {**fields, "categories": categories, "tree": given.of(categories) if listed else given}


def located_trees(data: Any, folder: Path) -> Any:
    """Content of a schema's file, whose files of trees are named from its folder."""
    if not isinstance(data, Mapping) or not isinstance(data.get("columns"), list):
        return data

    def located(column: Any) -> Any:
        tree = column.get("tree") if isinstance(column, Mapping) else None
        if not isinstance(tree, Mapping) or not tree.get("file"):
            return column
        return {**column, "tree": {**tree, "file": str(folder / str(tree["file"]))}}

    return {**data, "columns": [located(column) for column in data["columns"]]}


def _check(values: Sequence[tuple[str, ...]]) -> None:
    """Raise ValueError unless each category and each group is in one group of the next level."""
    levels = len(values[0])
    if levels < 2:
        raise ValueError(f"the tree has no level above its categories, such as {values[0][0]!r}")
    parent: dict[tuple[int, str], str] = {}
    for row in values:
        if len(row) != levels:
            raise ValueError(f"the tree has {levels} columns, but {len(row)} values for {row[0]!r}")
        if "" in row:
            raise ValueError(f"the tree has an empty cell in column {row.index('') + 1}, of {row[0]!r}")
        for level, (own, above) in enumerate(pairwise(row)):
            if parent.setdefault((level, own), above) != above:
                what = f"the group {own!r}" if level else f"the category {own!r}"
                raise ValueError(
                    f"the tree's levels are not nested: {what} is in {parent[level, own]!r} and in {above!r}"
                )
    if len({row[0] for row in values}) < len(values):
        raise ValueError("the tree has a category twice")


def _read(path: Path, names: list[str]) -> tuple[tuple[str, ...], ...]:
    """Different rows of a file: those of a category twice are one."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            header, *rows = [[cell.strip() for cell in row] for row in csv.reader(file) if any(row)] or [[]]
    except (OSError, UnicodeError, csv.Error) as problem:
        raise ValueError(
            f"{path}: cannot be read ({getattr(problem, 'strerror', None) or problem})"
        ) from None
    if absent := [name for name in names if name not in header]:
        raise ValueError(f"{path}: has no column {absent[0]!r} (columns: {few(header)})")
    if not rows:
        raise ValueError(f"{path}: has no rows below its header")
    places = [header.index(name) for name in names] or range(len(header))
    try:
        found = dict.fromkeys(
            tuple((*row, *[""] * (len(header) - len(row)))[k] for k in places) for row in rows
        )
        _check([*found])
    except ValueError as problem:
        raise ValueError(f"{path}: {problem}") from None
    return tuple(found)
