"""A number or ordered category that never falls from one row to the next, such as a stage."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsynth.patients.courses.course import ColumnCourse, RowNumbers, RowTable, flat_cells
from dpsynth.patients.courses.drawing import RowsDrawing, place_inside
from dpsynth.patients.courses.numbers import length_level
from dpsynth.patients.series import (
    RATIOS,
    Floats,
    Ints,
    before,
    changes,
    interval_numbers,
    packed,
    risen,
    step_ratios,
)
from dpsynth.table.column import Column
from dpsynth.table.kinds.category import categories_at

#: Paths for uniforms, and how far they are from the levels.
Attempt = Callable[[Floats], tuple[Floats, Floats]]
#: Ends of the intervals of a step over the most that the time allows. None and all have one of their own.
SHARES: Floats = np.array([0.0, 0.01, 0.2, 0.4, 0.6, 0.8, 0.99, 1.0])
#: Ends of the classes of a patient's own share, by which steps are counted.
_PACES: Floats = np.array([0.0, 0.2, 0.5, 0.7, 0.9, 0.99, 1.0])
#: Ends of the classes of the time since the last value, in units of the rate. A long time has fewer extremes.
_LENGTHS: Floats = np.array([0.0, 1.5, 2.5, np.inf])
#: The kind of the last step, by its interval: none, some, all, and no step before.
_KINDS: Ints = np.array([0, 1, 1, 1, 1, 1, 2, 3])
#: Steps of a patient's own share, so that none and all are values of their own.
_PACE_STEPS = 50
#: Part of a step by which a sum may be off without being the next one.
_CLOSE = 1e-6


def allowed(elapsed: Floats, rate: float, step: float | None) -> Floats:
    """The most that a column rises in a time, rounded up to its step."""
    most = rate * np.maximum(elapsed, 0.0)
    return most if step is None else np.ceil(most / step - _CLOSE) * step


def slowed(values: Floats, times: Floats, rate: float, step: float | None) -> Floats:
    """Values that do not fall, at the left, each at most what every value before it and the time allow.

    It does not fall either.
    """
    found = values.copy()
    for t in range(1, values.shape[1]):
        most = found[:, :t] + allowed(times[:, t : t + 1] - times[:, :t], rate, step)
        found[:, t] = np.minimum(found[:, t], most.min(axis=1))
    return found


@dataclass(frozen=True)
class IncreasingCourse(ColumnCourse):
    """Its levels are the first value and the rise to the last one.

    With a rate they are the mean, which goes with the means of other columns, and the pace: the rise over the
    most that the time allows.
    """

    @classmethod
    def check(cls, column: Column) -> None:
        """Numbers and ordered categories alone."""
        if not (column.is_numeric or column.is_ordinal):
            raise ValueError(f"column {column.name!r}: only numeric and ordinal columns can be increasing")

    @property
    def rate(self) -> float | None:
        """The most that it rises in a unit of the clock."""
        own, clock = self.facts.rates.get(self.column.name), self.facts.clock
        return None if own is None or clock is None else own.in_clock(clock)

    def _length(self, gaps: Floats) -> Ints:
        """Class of times since the last value, -1 where there is none."""
        return interval_numbers(gaps * (self.rate or 0.0) / self.facts.rates[self.column.name].most, _LENGTHS)

    @property
    def _limits(self) -> tuple[float, float, float | None]:
        """Bounds and step of its numbers."""
        column = self.column
        if column.is_numeric:
            return (*column.bounds, column.resolution)
        return (0.0, len(column.categories) - 1.0, 1.0)

    @property
    def levels(self) -> Sequence[Column]:
        """``first`` and ``rise``, or ``mean`` and ``pace``. A mean of categories is that of their numbers."""
        column, name, (lower, upper, step) = self.column, self.column.name, self._limits
        if self.rate is None:
            first = column.model_copy(update={"name": f"{name} first"})
            return (first, length_level(f"{name} rise", lower, upper, step, column.unit))
        mean: dict[str, Any] = {"lower": lower, "upper": upper, "unit": column.unit}
        pace: dict[str, Any] = {"lower": 0, "upper": 1, "step": 1 / _PACE_STEPS}
        return (
            Column(name=f"{name} mean", kind="continuous", missing=column.missing, **mean),
            Column(name=f"{name} pace", kind="continuous", missing=True, **pace),
        )

    def _course(self, rows: RowNumbers) -> tuple[Floats, Floats]:
        """The values at the left, of which none is below one before it or rises too much, and their times."""
        values, times = rows.numbers[self.column.name], rows.numbers[self.facts.order]
        ahead, at = risen(values), packed(values, times)[1]
        return ahead if self.rate is None else slowed(ahead, at, self.rate, self._limits[2]), at

    def level_values(self, rows: RowNumbers) -> Mapping[str, Any]:
        """Of the values that count."""
        column, name, (course, at) = self.column, self.column.name, self._course(rows)
        count = (~np.isnan(course)).sum(axis=1)
        first, end = course[:, 0], (np.arange(len(course)), np.maximum(count - 1, 0))
        rise = np.where(count > 1, course[end] - first, np.nan)
        if self.rate is None:
            begin = first if column.is_numeric else categories_at(column, first)
            return {f"{name} first": begin, f"{name} rise": rise}
        mean = np.where(count > 0, np.nansum(course, axis=1) / np.maximum(count, 1), np.nan)
        return {f"{name} mean": mean, f"{name} pace": _share(rise, at[end] - at[:, 0], self.rate)}

    def tables(self, parents: Mapping[str, Column]) -> Sequence[RowTable]:
        """*rise*: a step over the patient's mean step. Given is the last such ratio.

        With a rate *pace*: a step over the most that the time allows. Given are the kind of the last one,
        the class of the patient's own share, and that of the time.
        """
        if self.rate is None:
            bins = len(RATIOS) - 1
            return (RowTable("rise", self.column.name, (bins + 1, bins), self._ratios),)
        kinds = int(_KINDS[-1]) + 1
        shape = (kinds, len(_PACES) - 1, len(_LENGTHS) - 1, len(SHARES) - 1)
        return (RowTable("pace", self.column.name, shape, partial(self._shares, self.rate, shape)),)

    def _ratios(self, rows: RowNumbers) -> Ints:
        last, ratios = step_ratios(self._course(rows)[0])
        return flat_cells((len(RATIOS), len(RATIOS) - 1), (last,), ratios)

    def _shares(self, rate: float, shape: tuple[int, ...], rows: RowNumbers) -> Ints:
        course, at = self._course(rows)
        steps = interval_numbers(_share(changes(course), changes(at), rate), SHARES)
        own = interval_numbers(np.asarray(self.level_values(rows)[f"{self.column.name} pace"]), _PACES)
        last = _KINDS[before(steps, len(SHARES) - 1)]
        given = (last, np.broadcast_to(own[:, None], steps.shape), self._length(changes(at)))
        return flat_cells(shape, given, steps)

    def draw(self, drawing: RowsDrawing) -> None:
        """Steps that add up to the rise. With a rate, none of them is more than the time allows."""
        name, has, (lower, upper, step) = self.column.name, drawing.has(self.column.name), self._limits
        (_, at) = packed(np.where(has, 0.0, np.nan), drawing.columns[self.facts.order] * drawing.time_unit)
        there = ~np.isnan(at)
        if self.rate is None:
            first = f"{name} first"
            begin = drawing.number(first) if self.column.is_numeric else np.maximum(drawing.codes(first), 0)
            path = drawing.best(name, has, self._by_ratios(drawing, there))
        else:
            path = drawing.best(name, has, self._by_shares(drawing, at, self.rate))
            begin = drawing.number(f"{name} mean")
            begin = begin - (path * there).sum(axis=1) / np.maximum(there.sum(axis=1), 1)
        values = np.clip(np.clip(begin, lower, upper)[:, None] + path, lower, upper)
        if step is not None:
            values = lower + np.floor((values - lower) / step + 0.5) * step
        if self.rate is not None:
            values = slowed(values, at, self.rate, step)
        drawing.columns[name] = drawing.unpacked(values, has)

    def _by_ratios(self, drawing: RowsDrawing, there: NDArray[np.bool_]) -> Attempt:
        """Paths of steps whose ratios to the mean step follow each other as in the table."""
        name = self.column.name
        rise = np.where(there.sum(axis=1) > 1, drawing.number(f"{name} rise"), 0.0)
        table, miss = drawing.table("rise", name), np.zeros(len(there))

        def attempt(uniform: Floats) -> tuple[Floats, Floats]:
            return drawing.climb(table, RATIOS, rise, there, uniform=uniform), miss

        return attempt

    def _by_shares(self, drawing: RowsDrawing, at: Floats, rate: float) -> Attempt:
        """Paths of shares of what the time allows, whose mean over the time is the patient's own."""
        name, gaps = self.column.name, np.where(np.isnan(at), 0.0, np.nan_to_num(changes(at)))
        table, pace = drawing.table("pace", name), drawing.number(f"{name} pace")
        most, long = rate * gaps, np.maximum(self._length(gaps), 0)
        total = np.maximum(most.sum(axis=1), 1e-12)
        density, own = table.mean(axis=(0, 1, 2)), interval_numbers(pace, _PACES)

        def attempt(uniform: Floats) -> tuple[Floats, Floats]:
            bins, place = drawing.chain(table[_KINDS], uniform, own, long, first=1)
            shares = np.clip(place_inside(bins, SHARES, density, place), 0.0, 1.0)
            mean = (shares * most).sum(axis=1) / total
            less = np.minimum(pace / np.maximum(mean, 1e-12), 1.0)[:, None]
            more = np.minimum((1 - pace) / np.maximum(1 - mean, 1e-12), 1.0)[:, None]
            moved = np.clip(1 - more * (1 - less * shares), 0.0, 1.0)
            return np.cumsum(moved * most, axis=1), np.abs(mean - pace)

        return attempt


def _share(rise: Floats, elapsed: Floats, rate: float) -> Floats:
    """A rise over the most that the time allows, at most 1, NaN without time."""
    most = rate * np.where(elapsed > 0, elapsed, np.nan)
    return np.clip(rise / most, 0.0, 1.0)
