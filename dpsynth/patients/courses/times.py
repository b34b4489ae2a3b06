"""The column that orders a patient's rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsynth.patients.courses.course import ColumnCourse, RowCourse, RowNumbers, RowTable, flat_cells
from dpsynth.patients.courses.drawing import RowsDrawing
from dpsynth.patients.courses.estimates import ratios, shrunk_conditional
from dpsynth.patients.courses.numbers import length_level
from dpsynth.patients.courses.presences import Presences
from dpsynth.patients.series import RATIOS, Floats, Ints, before, step_ratios
from dpsynth.table.column import Column
from dpsynth.table.values import numeric_values

#: Kinds of rows, at most. More would leave too few counts for each pair of kinds.
_MOST_KINDS = 4
#: Gaps below this part of a patient's mean gap are none.
_SAME = 1e-6


@dataclass(frozen=True)
class Times(ColumnCourse):
    """Its levels are the first time, and the span to the last one, or what is left to the patient's own end.

    ``files``: the columns of each file of several that give rows, empty for one.
    """

    turn = 2
    presences: Presences
    files: tuple[tuple[str, ...], ...]

    @property
    def levels(self) -> Sequence[Column]:
        """``first``, and ``span`` or ``left``."""
        clock = self.clock
        first = self.column.model_copy(update={"name": f"{clock.name} first"})
        lower, upper = clock.bounds
        end = self.facts.until
        name = "span" if end is None else "left"
        if end is not None:
            upper = max(upper, end.bounds[1] * end.calendar_unit)
        return (first, length_level(f"{clock.name} {name}", lower, upper, clock.resolution, clock.unit))

    def level_values(self, rows: RowNumbers) -> Mapping[str, Any]:
        """In the column's own unit, and in the clock's."""
        column, times, end = self.column, rows.numbers[self.column.name], self.facts.until
        last = np.nanmax(times, axis=1, initial=-np.inf)
        found = {f"{column.name} first": column.series(times[:, 0] / column.calendar_unit)}
        if end is None:
            return found | {f"{column.name} span": np.where(rows.rows > 1, last - times[:, 0], np.nan)}
        ends = numeric_values(end, rows.patients[end.name]) * end.calendar_unit
        return found | {f"{column.name} left": np.maximum(ends - last, 0.0)}

    def ends(self, rows: Ints | Floats, level: Callable[[str], Floats]) -> tuple[Floats, Floats]:
        """First and last time of patients with so many rows, in the column's unit, given their levels.

        NaN where a level is missing. Rows begin earlier where a span would lead beyond the bounds.
        """
        column, name, end = self.column, self.column.name, self.facts.until
        lower, upper = column.bounds
        if end is None:
            span = np.where(rows > 1, level(f"{name} span") / column.calendar_unit, 0.0)
            first = np.minimum(level(f"{name} first"), upper - span)
            return first, first + span
        last = level(end.name) - level(f"{name} left") / column.calendar_unit
        last = np.clip(last, lower, upper)
        first = level(f"{name} first")
        return np.where(rows > 1, np.minimum(first, last), last), last

    def read_by_ends(self) -> tuple[str, ...]:
        """Levels that `ends` reads."""
        end = self.facts.until
        return ("rows", *(level.name for level in self.levels), *((end.name,) if end else ()))

    @property
    def clock(self) -> Column:
        """The column as a number, of days where it is a date."""
        assert self.facts.clock is not None
        return self.facts.clock

    @property
    def several_files(self) -> bool:
        """Whether rows come from several files, such as stays and laboratory values."""
        return len(self.files) > 1

    @property
    def edges(self) -> Floats:
        """Ends of the intervals of gaps over a patient's mean gap. Rows of several files may share a time."""
        return np.r_[0.0, _SAME, RATIOS[1:]] if self.several_files else RATIOS

    @property
    def kind_groups(self) -> list[list[str]]:
        """The presences of each file, which make a kind of row, without those of the last kind.

        The kind is the first of several files that has a value in the row. Later files share the last kind.
        In one file, the first two presences make four kinds.
        """
        presences = self.presences.presences
        if not self.several_files:
            return [[each.name] for each in presences[:2]]
        found = [
            [each.name for each in presences if not each.within and {*each.columns} & {*columns}]
            for columns in self.files
        ]
        # a file of a terminal event alone has no presence, and leaves its rows to the last kind
        return [names for names in (found[:-1] if all(found) else found) if names][: _MOST_KINDS - 1]

    @property
    def kinds(self) -> int:
        """Number of kinds of rows."""
        groups = len(self.kind_groups)
        return groups + 1 if self.several_files else 2**groups

    def kind_pairs(self, measured: Mapping[str, NDArray[np.bool_]], shape: tuple[int, ...]) -> Ints:
        """The kinds of the row before and of this one, as one number, given which presences are there."""
        there = [np.logical_or.reduce([measured[name] for name in names]) for names in self.kind_groups]
        kinds = np.zeros(shape, np.int64)
        if self.several_files:
            kinds += np.select(there, range(len(there)), len(there))
        else:
            for k, own in enumerate(there):
                kinds += 2**k * own
        return self.kinds * before(kinds, 0) + kinds

    def tables(self, parents: Mapping[str, Column]) -> Sequence[RowTable]:
        """*gap*: the time since the last row over the patient's mean gap. Given is the last such ratio.

        *kinds*: the same, given the kinds of the row before and of this one.
        """
        bins = len(self.edges) - 1
        found = [RowTable("gap", "", (bins + 1, bins), self._gaps)]
        if self.kinds > 1:
            found.append(RowTable("kinds", "", (self.kinds**2, bins), self._gaps_of_kinds, _of_kinds))
        return found

    def _gaps(self, rows: RowNumbers) -> Ints:
        edges = self.edges
        last, gaps = step_ratios(rows.numbers[self.column.name], edges)
        return flat_cells((len(edges), len(edges) - 1), (last,), gaps)

    def _gaps_of_kinds(self, rows: RowNumbers) -> Ints:
        times, edges = rows.numbers[self.column.name], self.edges
        gaps = step_ratios(times, edges)[1]
        there = {name: own for name, (own, _) in self.presences.there(rows).items()}
        return flat_cells((self.kinds**2, len(edges) - 1), (self.kind_pairs(there, times.shape),), gaps)

    def draw(self, drawing: RowsDrawing) -> None:
        """Gaps that add up to the span, from the first time on."""
        column, name = self.column, self.column.name
        first, last = self.ends(drawing.count, drawing.number)
        lower, upper = column.bounds
        span = np.where(drawing.count > 1, last - first, 0.0)
        pair = self.kind_pairs(drawing.presences, drawing.here.shape)
        times = first[:, None] + drawing.climb(_weights(drawing), self.edges, span, drawing.here, pair)
        times = self._placed(times, drawing.count)
        drawing.columns[name] = np.where(drawing.here, np.clip(times, lower, upper), np.nan)

    def _placed(self, times: Floats, count: Ints) -> Floats:
        """Times that there are, none of them twice where each is of one row."""
        lower, step, known = self.column.bounds[0], self.column.resolution, np.array(self.facts.times)
        if not len(known) and not step:
            return times
        places = nearest_time(known, times) if len(known) else np.rint((times - lower) / (step or 1.0))
        if self.facts.unique:
            row = np.arange(times.shape[1])
            places = np.maximum.accumulate(places - row, axis=1) + row
            size = len(known) or self.column.n_values or 0
            places = np.minimum(places, size - count[:, None] + row)
        if not len(known):
            return lower + places * (step or 1.0)
        return np.asarray(known[np.clip(places, 0, len(known) - 1).astype(int)])


def nearest_time(known: Floats, values: Floats) -> Ints:
    """The place of the nearest of ascending values to each value, the first one of two that are as near."""
    after = np.clip(np.searchsorted(known, np.nan_to_num(values)), 1, max(len(known) - 1, 1))
    after = np.minimum(after, len(known) - 1)
    before_it = np.maximum(after - 1, 0)
    return np.where(np.abs(values - known[before_it]) <= np.abs(known[after] - values), before_it, after)


@dataclass(frozen=True)
class Places(RowCourse):
    """Rows that a column orders which is not modelled: they are numbered."""

    turn = 2
    name: str

    def draw(self, drawing: RowsDrawing) -> None:
        """The number of each row."""
        drawing.columns[self.name] = np.where(drawing.here, np.arange(drawing.most), np.nan)


def _weights(drawing: RowsDrawing) -> Floats:
    """Weights of a gap given the last one and the kinds of both rows, as far as there are tables."""
    one = np.ones((1, 1))
    kinds, gap = (drawing.tables.get((kind, ""), one) for kind in ("kinds", "gap"))
    return kinds * gap[:, None]


def _of_kinds(noisy: Floats, noise_std: float) -> Floats:
    """Distributions of gaps over that of all gaps."""
    return ratios(gaps_of_kinds(noisy, noise_std), noisy)


def gaps_of_kinds(noisy: Floats, noise_std: float) -> Floats:
    """Distribution of gaps given the kinds of both rows, shrunk towards that of the later row's kind."""
    kinds = math.isqrt(len(noisy))
    later = shrunk_conditional(noisy.reshape(kinds, kinds, -1).sum(axis=0), noise_std * np.sqrt(kinds))
    return shrunk_conditional(noisy, noise_std, np.tile(later, (kinds, 1)))
