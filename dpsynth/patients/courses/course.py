"""What a column, or the time, does over a patient's rows: its levels, tables of rows, and how it is drawn.

A course is made of public facts alone. It is one object for one column, and a new kind of course is a file of
its own. A *level* is a number of the patient, which the generator models. A *table* counts what each row adds
to the levels.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpsynth.patients.courses.drawing import RowsDrawing, SyntheticLevels
from dpsynth.patients.courses.estimates import shrunk_conditional
from dpsynth.patients.rates import Rate
from dpsynth.patients.series import Floats, Ints
from dpsynth.table.column import Column


class RowNumbers(Protocol):
    """Rows of N patients in order, see `dpsynth.patients.histories.Histories`."""

    @property
    def numbers(self) -> Mapping[str, Floats]:
        """By column, shape (N, most), NaN where there is no value."""

    @property
    def rows(self) -> NDArray[np.int64]:
        """Rows of each patient, shape (N,)."""

    @property
    def patients(self) -> pd.DataFrame:
        """Columns with one value for each patient, N rows."""


@dataclass(frozen=True)
class RowTable:
    """A public table of what each row of a history adds to its levels.

    The last axis is what a row shows. The others are what came before, or what is fixed for the patient.

    ``cells`` gives the cell of each row of each history in the flattened table, -1 for none, shape (N, k).
    ``estimate`` makes distributions, or weights, of noisy counts and the standard deviation of each.
    ``kind`` and ``column`` name the table.
    """

    kind: str
    column: str
    shape: tuple[int, ...]
    cells: Callable[[RowNumbers], Ints] | None = field(default=None, compare=False, repr=False)
    estimate: Callable[[Floats, float], Floats] = field(default=shrunk_conditional, compare=False, repr=False)

    def entries(self, rows: RowNumbers) -> tuple[Ints, Ints, Ints]:
        """Patients, cells and counts of a patient in a cell, from 1, of all patients in turn."""
        assert self.cells is not None
        cell, size = self.cells(rows), math.prod(self.shape)
        there = cell >= 0
        patient, _ = np.nonzero(there)
        own, count = np.unique(patient * size + cell[there], return_counts=True)
        return own // size, own % size, count


class RowCourse(ABC):
    """One column over a patient's rows, or something else that rows have.

    ``turn``: courses of a smaller one are drawn, and have their tables, before others.
    """

    turn: ClassVar[int] = 4

    @property
    def levels(self) -> Sequence[Column]:
        """Its levels, in the order of the table of patients."""
        return ()

    def source(self, level: Column) -> str:
        """The column that a level is of."""
        return level.name

    def level_values(self, rows: RowNumbers) -> Mapping[str, Any]:
        """The levels of histories, each of length N, by the level's name. Private."""
        return {}

    def tables(self, parents: Mapping[str, Column]) -> Sequence[RowTable]:
        """Its tables. ``parents``: for some categories an earlier one, which a table is given."""
        return ()

    def learned(self, levels: SyntheticLevels) -> Mapping[str, Floats]:
        """What drawing needs to know of all levels together, by column: those are of synthetic patients."""
        return {}

    @abstractmethod
    def draw(self, drawing: RowsDrawing) -> None:
        """Draw its values of all rows into ``drawing.columns``, NaN where there is none."""


@dataclass(frozen=True)
class RowFacts:
    """What all courses of a schema may use: the column that orders rows, and the most rows of a patient.

    ``clock``: the time as a number, of days where it is a date. None where rows are numbered. ``times``: all
    times that rows can have, in the order's own unit, or none. ``unique``: whether each is of one row.
    ``until``: a column per patient after which no row comes. ``rates``: the most by which increasing columns
    rise, by their names.
    """

    order: str
    clock: Column | None
    most: int
    times: tuple[float, ...] = ()
    unique: bool = False
    until: Column | None = None
    rates: Mapping[str, Rate] = field(default_factory=dict)


@dataclass(frozen=True)
class ColumnCourse(RowCourse):
    """The course of one column, such as one that a schema declares by a word behind ``over_time``."""

    column: Column
    facts: RowFacts

    @classmethod
    def check(cls, column: Column) -> None:
        """Raise ValueError, with one sentence, for a column that cannot have this course."""

    def source(self, level: Column) -> str:
        """The column itself."""
        return self.column.name


def flat_cells(shape: tuple[int, ...], parents: Sequence[Ints], bins: Ints) -> Ints:
    """Cells in a flattened table of the last axis' ``bins`` given ``parents``, -1 where one is missing."""
    known = bins >= 0
    for parent in parents:
        known &= parent >= 0
    axes = tuple(np.where(known, axis, 0) for axis in (*parents, bins))
    return np.where(known, np.ravel_multi_index(axes, shape), -1)
