"""A number or ordered category that never falls from one row to the next, such as a stage."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpsynth.patients.courses.course import ColumnCourse, RowNumbers, RowTable, flat_cells
from dpsynth.patients.courses.drawing import RowsDrawing
from dpsynth.patients.courses.numbers import length_level
from dpsynth.patients.series import RATIOS, Ints, risen, step_ratios
from dpsynth.table.column import Column
from dpsynth.table.kinds.category import categories_at


@dataclass(frozen=True)
class IncreasingCourse(ColumnCourse):
    """Its levels are the first value, and the rise to the last one."""

    @classmethod
    def check(cls, column: Column) -> None:
        """Numbers and ordered categories alone."""
        if not (column.is_numeric or column.is_ordinal):
            raise ValueError(f"column {column.name!r}: only numeric and ordinal columns can be increasing")

    @property
    def levels(self) -> Sequence[Column]:
        """``first`` and ``rise``."""
        column = self.column
        first = column.model_copy(update={"name": f"{column.name} first"})
        lower, upper = column.bounds if column.is_numeric else (0.0, len(column.categories) - 1.0)
        step = column.resolution if column.is_numeric else 1.0
        return (first, length_level(f"{column.name} rise", lower, upper, step, column.unit))

    def level_values(self, rows: RowNumbers) -> Mapping[str, Any]:
        """Of the values of which none is below one before it."""
        column, course = self.column, risen(rows.numbers[self.column.name])
        count = (~np.isnan(course)).sum(axis=1)
        first, last = course[:, 0], course[np.arange(len(course)), np.maximum(count - 1, 0)]
        return {
            f"{column.name} first": first if column.is_numeric else categories_at(column, first),
            f"{column.name} rise": np.where(count > 1, last - first, np.nan),
        }

    def tables(self, parents: Mapping[str, Column]) -> Sequence[RowTable]:
        """*rise*: a step over the patient's mean step. Given is the last such ratio."""
        bins = len(RATIOS) - 1
        return (RowTable("rise", self.column.name, (bins + 1, bins), self._cells),)

    def _cells(self, rows: RowNumbers) -> Ints:
        last, ratios = step_ratios(risen(rows.numbers[self.column.name]))
        return flat_cells((len(RATIOS), len(RATIOS) - 1), (last,), ratios)

    def draw(self, drawing: RowsDrawing) -> None:
        """Steps that add up to the rise."""
        column, name, has = self.column, self.column.name, drawing.has(self.column.name)
        lower, upper = column.bounds if column.is_numeric else (0.0, len(column.categories) - 1.0)
        count = has.sum(axis=1)
        rise = np.where(count > 1, drawing.number(f"{name} rise"), 0.0)
        first = f"{name} first"
        begin = drawing.number(first) if column.is_numeric else np.maximum(drawing.codes(first), 0)
        there = np.arange(drawing.most) < count[:, None]
        values = begin[:, None] + drawing.climb(drawing.table("rise", name), RATIOS, rise, there)
        values = np.clip(values if column.is_numeric else np.rint(values), lower, upper)
        drawing.columns[name] = drawing.unpacked(values, has)
