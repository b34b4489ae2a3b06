"""A category that may change from row to row, such as a ward."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from dpsynth.patients.courses.course import ColumnCourse, RowNumbers, RowTable, flat_cells
from dpsynth.patients.courses.drawing import RowsDrawing
from dpsynth.patients.courses.estimates import shrunk_ratios
from dpsynth.patients.series import (
    SHARE_CLASSES,
    Floats,
    Ints,
    before,
    is_last,
    packed,
    packed_to,
    share_class,
)
from dpsynth.table.column import Column
from dpsynth.table.kinds.category import categories_at, positions

#: Categories of a column above which a chain forgets the most frequent one.
_MOST_CATEGORIES = 12


@dataclass(frozen=True)
class CategoryCourse(ColumnCourse):
    """Its levels are the most frequent category, and the class of its share of rows."""

    @property
    def few(self) -> bool:
        """Whether it has so few categories that tables of two of them have enough counts."""
        return 0 < len(self.column.categories) <= _MOST_CATEGORIES

    @property
    def levels(self) -> Sequence[Column]:
        """``mode`` and ``same``."""
        column, name = self.column, self.column.name
        mode: dict[str, Any] = {"kind": column.kind, "categories": column.categories, "tree": column.tree}
        return (
            Column(name=f"{name} mode", missing=column.missing, **mode),
            Column(name=f"{name} same", kind="ordinal", categories=SHARE_CLASSES[1:], missing=True),
        )

    def level_values(self, rows: RowNumbers) -> Mapping[str, Any]:
        """Of the rows that have a value."""
        column, values = self.column, rows.numbers[self.column.name]
        measured = (~np.isnan(values)).sum(axis=1)
        counts = self._counts(values)
        mode = np.where(measured > 0, counts.argmax(axis=1), np.nan)
        same = share_class(counts.max(axis=1) / np.maximum(measured, 1))
        classes = np.array([*SHARE_CLASSES, None], dtype=object)
        return {
            f"{column.name} mode": categories_at(column, mode),
            f"{column.name} same": classes[np.where(measured > 1, same, len(SHARE_CLASSES))],
        }

    def _counts(self, codes: Floats | Ints) -> Ints:
        """Rows of each patient in each category, shape (N, categories)."""
        return np.stack([(codes == code).sum(axis=1) for code in range(len(self.column.categories))], axis=1)

    def tables(self, parents: Mapping[str, Column]) -> Sequence[RowTable]:
        """*category*, and of few categories *end* and *beside*.

        *category* is given the last one and the patient's most frequent one, *end* whether the row is the
        patient's last, and *beside* an earlier category of the same row.
        """
        name, size = self.column.name, len(self.column.categories)
        modes = size if size <= _MOST_CATEGORIES else 1
        found = [RowTable("category", name, (size + 1, modes, size), partial(self._cells, modes))]
        if self.few:
            found.append(RowTable("end", name, (2, size), self._ends, shrunk_ratios))
        if name in parents:
            shape = (len(parents[name].categories), size)
            beside = partial(self._beside, parents[name].name, shape)
            found.append(RowTable("beside", name, shape, beside, shrunk_ratios))
        return found

    def _cells(self, modes: int, rows: RowNumbers) -> Ints:
        codes = positions(packed(rows.numbers[self.column.name])[0])
        size = len(self.column.categories)
        mode = self._counts(codes).argmax(axis=1) if modes > 1 else np.zeros(len(codes), np.int64)
        given = (before(codes, size), np.broadcast_to(mode[:, None], codes.shape))
        return flat_cells((size + 1, modes, size), given, codes)

    def _ends(self, rows: RowNumbers) -> Ints:
        last = is_last(rows.rows, self.facts.most).astype(np.int64)
        codes = positions(rows.numbers[self.column.name])
        return flat_cells((2, len(self.column.categories)), (last,), codes)

    def _beside(self, parent: str, shape: tuple[int, ...], rows: RowNumbers) -> Ints:
        other = positions(rows.numbers[parent])
        return flat_cells(shape, (other,), positions(rows.numbers[self.column.name]))

    def draw(self, drawing: RowsDrawing) -> None:
        """The chain, out of several, that misses the levels least."""
        name, size, has = self.column.name, len(self.column.categories), drawing.has(self.column.name)
        p, mode = drawing.table("category", name), drawing.codes(f"{name} mode")
        count = has.sum(axis=1)
        share, there = drawing.codes(f"{name} same") + 1, np.arange(self.facts.most) < count[:, None]
        given = [np.clip(mode, 0, p.shape[1] - 1)]
        if self.few:
            p = p[:, :, None] * drawing.table("end", name)
            given.append(packed_to(has, is_last(drawing.count, self.facts.most).astype(np.int64)))
        if name in drawing.parents:
            ratios = drawing.table("beside", name)
            # Where the other category is missing, it says nothing.
            p = p[:, :, :, None] * np.concatenate([ratios, np.ones((1, size))])
            other = positions(drawing.columns[drawing.parents[name]])
            given.append(packed_to(has, np.where(other < 0, len(ratios), other)))

        def attempt(uniform: Floats) -> tuple[Floats, Floats]:
            codes = np.where(there, drawing.chain(p, uniform, *given)[0], -1)
            counts = self._counts(codes)
            same = share_class(counts.max(axis=1) / np.maximum(there.sum(axis=1), 1))
            return codes.astype(np.float64), size * (counts.argmax(axis=1) != mode) + np.abs(same - share)

        codes = drawing.best(name, has, attempt)
        alike = ((share == len(SHARE_CLASSES) - 1) | (count == 1)) & (mode >= 0)
        drawing.columns[name] = drawing.unpacked(np.where(alike[:, None], mode[:, None], codes), has)
