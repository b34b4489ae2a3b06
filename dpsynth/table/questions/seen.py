"""Columns and tables as questions see them: cells, and what a draft made of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpsynth.files.text import shipped_yaml
from dpsynth.table.cells import TextCells, distinct_cells, spoken
from dpsynth.table.column import Column
from dpsynth.table.identity import tokens

Floats = NDArray[np.float64]
#: rows by which columns are compared with each other
_LOOKED_AT = 5_000


@cache
def column_words() -> Mapping[str, frozenset[str]]:
    """Words in the names of columns, from ``names.yaml``, whose comments say what each group is."""
    held = shipped_yaml("dpsynth.table.questions", "names.yaml")
    return {group: frozenset(words.split()) for group, words in held.items()}


@dataclass(frozen=True, eq=False)
class SeenColumn:
    """A column of a private table, and the draft of it, None if it is left out.

    ``kept``: the owner has asked for it, so nobody asks whether it identifies a person.
    """

    name: str
    values: pd.Series
    cells: TextCells | None
    column: Column | None
    kept: bool = False
    outcome: bool = False

    def frame(self) -> pd.DataFrame:
        """The column as it came, alone."""
        return self.values.to_frame(self.name)

    @cached_property
    def tokens(self) -> tuple[str, ...]:
        """The words of the name, lower case."""
        return tuple(tokens(self.name))

    @cached_property
    def counts(self) -> Mapping[str, int]:
        """How often each text occurs, without empty cells and words for no value."""
        if self.cells is not None:
            return {word: n for word, n in self.cells.counts.items() if word not in self.cells.absent}
        codes, distinct = distinct_cells(self.values)
        return dict(
            zip(map(spoken, distinct), np.bincount(codes[codes >= 0], minlength=len(distinct)), strict=True)
        )

    @cached_property
    def rows(self) -> int:
        """Cells that hold something."""
        return sum(self.counts.values())

    @cached_property
    def codes(self) -> NDArray[np.int64]:
        """A number for each distinct cell, -1 for none, shape (n,)."""
        return pd.factorize(self.cells.text if self.cells is not None else self.values)[0]

    @cached_property
    def numbers(self) -> Floats | None:
        """The column as numbers, NaN where there is none, shape (n,). None if the draft has no numbers."""
        if self.column is None or not self.column.is_numeric or self.column.written_apart:
            return None
        if self.cells is not None:
            numbers = self.cells.text.map(self.cells.numbers).to_numpy(np.float64, na_value=np.nan)
        else:
            numbers = self.values.to_numpy(np.float64, na_value=np.nan)
        return np.where(np.isin(numbers, self.column.special), np.nan, numbers)


@dataclass(frozen=True, eq=False)
class SeenTable:
    """The columns of a private table, in its order."""

    columns: tuple[SeenColumn, ...]

    def drafted(self) -> Iterator[SeenColumn]:
        """Columns that are not left out."""
        return (seen for seen in self.columns if seen.column is not None)

    @cached_property
    def some(self) -> NDArray[np.int64]:
        """Rows by which columns are compared, spread over the table."""
        n = len(self.columns[0].values) if self.columns else 0
        return np.unique(np.linspace(0, n - 1, min(n, _LOOKED_AT)).astype(np.int64)) if n else np.arange(0)

    @cached_property
    def numeric(self) -> dict[str, Floats]:
        """Columns of numbers that are no dates, in `some` rows."""
        return {seen.name: seen.numbers[self.some] for seen in self.columns if seen.numbers is not None}

    @cached_property
    def categorical(self) -> dict[str, SeenColumn]:
        """Columns of categories."""
        return {seen.name: seen for seen in self.drafted() if seen.column and seen.column.is_categorical}
