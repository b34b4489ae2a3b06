"""A category that a patient keeps, and that may come again in each later row, such as a chronic disease."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dpsynth.patients.courses.course import RowNumbers, RowTable, flat_cells
from dpsynth.patients.courses.drawing import RowsDrawing
from dpsynth.patients.courses.first_times import NEVER, FirstTimes
from dpsynth.patients.series import Floats, Ints, packed
from dpsynth.table.column import Column
from dpsynth.table.draws import draw_entry
from dpsynth.table.kinds.category import positions


@dataclass(frozen=True)
class ChronicCourse(FirstTimes):
    """Rows have categories that the patient has, each from the row nearest to its first time on."""

    word = "chronic"

    def tables(self, parents: Mapping[str, Column]) -> Sequence[RowTable]:
        """*chronic*: how frequent a category is among rows. Who has it and when are levels."""
        return (RowTable("chronic", self.column.name, (1, len(self.column.categories)), self._cells),)

    def _cells(self, rows: RowNumbers) -> Ints:
        codes = positions(rows.numbers[self.column.name])
        return flat_cells((1, len(self.column.categories)), (np.zeros_like(codes),), codes)

    def draw(self, drawing: RowsDrawing) -> None:
        """Row by row a category that has begun, or one that begins. Each that a patient has comes."""
        name, has = self.column.name, drawing.has(self.column.name)
        count, frequent = has.sum(axis=1), drawing.table("chronic", name)[0]
        first = self.first_of(drawing, count)
        tracked, people = first.shape[1], np.arange(len(has))
        begins = self._begins(drawing, first, np.where(has, 0.0, np.nan))
        due, had = ~np.isnan(first), np.zeros(first.shape, bool)
        codes = np.full(has.shape, -1)
        for t in range(self.facts.most):
            here = t < count
            weights = np.maximum(np.tile(frequent, (len(has), 1)), 1e-12)
            weights[:, :tracked] *= np.where(had, 1.0, NEVER)
            # As many that the patient has are left as rows: no other one has a place.
            full = due.sum(axis=1) >= count - t
            now = due & ((begins <= t) | full[:, None] | ~had.any(axis=1, keepdims=True))
            chosen = draw_entry(weights, drawing.rng)
            chosen = np.where(now.any(axis=1), np.where(now, first, np.inf).argmin(axis=1), chosen)
            codes[:, t] = np.where(here, chosen, -1)
            known = here & (chosen < tracked)
            had[people[known], chosen[known]] = True
            due &= ~had
        drawing.columns[name] = drawing.unpacked(np.where(codes < 0, np.nan, codes.astype(np.float64)), has)

    def _begins(self, drawing: RowsDrawing, first: Floats, has: Floats) -> Ints:
        """The row nearest to each first time, shape (N, tracked)."""
        if self.facts.clock is None:
            return np.nan_to_num(first - 1.0).astype(np.int64)
        _, at = packed(has, drawing.columns[self.facts.order])
        apart = [np.abs(at - times[:, None]) for times in first.T]
        return np.stack([np.where(np.isnan(each), np.inf, each).argmin(axis=1) for each in apart], axis=1)
