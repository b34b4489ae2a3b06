"""A category of which a patient has each value once at most, such as a diagnosis at its first time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dpsynth.patients.courses.course import RowNumbers, RowTable, flat_cells
from dpsynth.patients.courses.drawing import RowsDrawing
from dpsynth.patients.courses.first_times import NEVER, FirstTimes
from dpsynth.patients.series import Floats, Ints, before, is_last, packed
from dpsynth.table.column import Column
from dpsynth.table.draws import draw_entry
from dpsynth.table.kinds.category import positions


@dataclass(frozen=True)
class OnceCourse(FirstTimes):
    """No row has a category that one before it has."""

    word = "once"

    def tables(self, parents: Mapping[str, Column]) -> Sequence[RowTable]:
        """*once*: a category. Given is the one before."""
        size = len(self.column.categories)
        return (RowTable("once", self.column.name, (size + 1, size), self._cells),)

    def _cells(self, rows: RowNumbers) -> Ints:
        codes, size = positions(packed(rows.numbers[self.column.name])[0]), len(self.column.categories)
        return flat_cells((size + 1, size), (before(codes, size),), codes)

    def draw(self, drawing: RowsDrawing) -> None:
        """Row by row a category that the patient has not had yet. Its row moves to the time of its level.

        A row for which no category is left has none.
        """
        name, size, has = self.column.name, len(self.column.categories), drawing.has(self.column.name)
        count, chain = has.sum(axis=1), drawing.table("once", name)
        first = self.first_of(drawing, count)
        tracked = first.shape[1]
        due, left = ~np.isnan(first), np.ones((len(has), size), bool)
        codes, last, people = np.full(has.shape, -1), np.full(len(has), size), np.arange(len(has))
        for t in range(self.facts.most):
            here = (t < count) & left.any(axis=1)
            weights = np.maximum(chain[last], 1e-12) * left
            weights[:, :tracked] *= np.where(due, 1.0, NEVER)
            # As many categories that the patient has are left as rows: no other one has a place.
            full = due.sum(axis=1) >= count - t
            weights[full, tracked:] *= NEVER
            chosen = draw_entry(weights, drawing.rng)
            known = np.append(due, np.zeros((len(due), size - tracked), bool), axis=1)[people, chosen]
            earliest = np.where(due, first, np.inf).argmin(axis=1)
            chosen = np.where(known, earliest, chosen)
            codes[:, t] = np.where(here, chosen, -1)
            last = np.where(here, chosen, last)
            left[people[here], chosen[here]] = False
            due &= left[:, :tracked]
        drawing.columns[name] = drawing.unpacked(np.where(codes < 0, np.nan, codes.astype(np.float64)), has)
        if self.facts.clock is not None:
            self._move(drawing, first)

    def _move(self, drawing: RowsDrawing, first: Floats) -> None:
        """Rows of tracked categories moved to their times, and all rows put in order again."""
        times, codes = drawing.columns[self.facts.order], positions(drawing.columns[self.column.name])
        own = np.take_along_axis(first, np.clip(codes, 0, first.shape[1] - 1), axis=1)
        moves = (codes >= 0) & (codes < first.shape[1]) & ~np.isnan(own)
        ends = np.nanmax(times, axis=1, initial=-np.inf)[:, None]
        # A patient's terminal row stays where it is, and the last one.
        moves &= ~(is_last(drawing.count, drawing.most) & drawing.ended[:, None])
        latest = np.where(drawing.ended[:, None], ends, np.inf)
        if (until := self.facts.until) is not None:
            own_end = drawing.of_levels[until.name].code(drawing.levels[until.name])
            latest = np.fmin(latest, own_end[:, None])
        drawing.columns[self.facts.order] = np.where(moves, np.minimum(own, latest), times)
        drawing.reorder(np.argsort(drawing.columns[self.facts.order], axis=1, kind="stable"))
