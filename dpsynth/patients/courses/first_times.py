"""Categories of which a patient's first times are levels, such as diagnoses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dpsynth.patients.courses.course import ColumnCourse, RowNumbers
from dpsynth.patients.courses.drawing import RowsDrawing
from dpsynth.patients.series import Floats, Ints
from dpsynth.table.column import Column

#: Categories that have a level of their own: the first ones of the list.
_MOST_EVER = 16
#: Weight of a category that the levels say the patient never has.
NEVER = 1e-9


@dataclass(frozen=True)
class FirstTimes(ColumnCourse):
    """Its levels are first times of the first categories of its list, missing of those a patient never has.

    ``word`` stands behind ``over_time``.
    """

    turn = 3
    word: ClassVar[str]

    @classmethod
    def check(cls, column: Column) -> None:
        """Categories alone."""
        if column.is_numeric:
            raise ValueError(f"column {column.name!r}: only categories can be over_time: {cls.word}")

    @property
    def tracked(self) -> tuple[Any, ...]:
        """The categories that have a level."""
        return tuple(self.column.categories[:_MOST_EVER])

    @property
    def levels(self) -> Sequence[Column]:
        """``first`` of each tracked category, in the unit of the clock, or as the number of the row."""
        clock = self.facts.clock
        made: dict[str, Any] = {"kind": "integer", "lower": 1, "upper": self.facts.most}
        if clock is not None:
            made = {name: getattr(clock, name) for name in ("kind", "lower", "upper", "step", "unit")}
            made["scale"] = "log" if clock.lower == 0 and clock.resolution else "linear"
        return tuple(Column(name=name, missing=True, **made) for name in self._names)

    @property
    def _names(self) -> tuple[str, ...]:
        return tuple(f"{self.column.name} first {one}" for one in self.tracked)

    def level_values(self, rows: RowNumbers) -> Mapping[str, Any]:
        """The time of the first row that has it."""
        codes, times = rows.numbers[self.column.name], rows.numbers[self.facts.order]
        times = times if self.facts.clock is not None else times + 1.0
        at = (np.where(codes == k, times, np.inf).min(axis=1) for k in range(len(self.tracked)))
        return {name: np.where(np.isinf(t), np.nan, t) for name, t in zip(self._names, at, strict=True)}

    def first_of(self, drawing: RowsDrawing, count: Ints) -> Floats:
        """First times by the levels, shape (N, tracked). At most as many categories as a patient has rows.

        The others go by lot: what most have stays.
        """
        first = np.stack([drawing.times(level) for level in self._names], axis=1)
        share = np.clip((~np.isnan(first)).mean(axis=0), 1e-6, 1 - 1e-6)
        lot = drawing.rng.standard_exponential(first.shape) * (1 - share) / share
        lot = np.where(np.isnan(first), np.inf, lot)
        rank = lot.argsort(axis=1, kind="stable").argsort(axis=1, kind="stable")
        return np.where(rank < count[:, None], first, np.nan)
