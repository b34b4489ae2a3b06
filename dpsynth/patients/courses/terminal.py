"""A binary column whose second category stands in a patient's last row alone, such as a death."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpsynth.patients.courses.course import ColumnCourse, RowNumbers
from dpsynth.patients.courses.drawing import RowsDrawing
from dpsynth.patients.series import is_last
from dpsynth.table.column import Column


@dataclass(frozen=True)
class TerminalCourse(ColumnCourse):
    """Its level is the column itself: whether the patient has the event."""

    turn = 0

    @classmethod
    def check(cls, column: Column) -> None:
        """Binary columns that are never missing alone."""
        if column.kind != "binary" or column.missing:
            raise ValueError(
                f"column {column.name!r}: only binary columns that are never missing can be terminal"
            )

    @property
    def levels(self) -> Sequence[Column]:
        """Whether it happens."""
        return (self.column,)

    def level_values(self, rows: RowNumbers) -> Mapping[str, Any]:
        """The second category where any row has it."""
        happens = (rows.numbers[self.column.name] == 1).any(axis=1)
        return {self.column.name: np.array(self.column.categories, dtype=object)[happens * 1]}

    def draw(self, drawing: RowsDrawing) -> None:
        """In the last row of those who have it. Nothing random, and before all else: files have its row."""
        happens = drawing.codes(self.column.name) == 1
        values = is_last(drawing.count, drawing.most) & happens[:, None]
        drawing.columns[self.column.name] = values.astype(np.float64)
