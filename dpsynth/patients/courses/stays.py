"""Clocks of stays: rows of some files lie within stays of the patient, which do not overlap.

A stay is a row that says how long it lasts. What is drawn of rows, their files and their order stays. Their
times follow anew from lengths, from times between stays, and from places of rows in their stay.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsynth.patients.courses.course import ColumnCourse, RowNumbers, RowTable, flat_cells
from dpsynth.patients.courses.drawing import TRIES, RowsDrawing, drawn, place_inside
from dpsynth.patients.series import RATIOS, Floats, Ints, before, interval_numbers, is_last, packed_to
from dpsynth.table.column import Column

Mask = NDArray[np.bool_]

#: Intervals of times between rows of a stay, of equal ratio.
_STEPS = 26
#: Ends of the intervals of times between stays over the patient's mean. A stay may follow at once.
BETWEEN: Floats = np.r_[0.0, 1e-6, RATIOS[1:]]
#: Ends of the intervals of a stay's rows over what its length says, and of lengths over the patient's mean.
SHARES: Floats = np.r_[0, 1e-6, 0.2, 0.4, 0.6, 0.75, 0.9, 1.1, 1.3, 1.6, 2, 3, 5, 20]
_LENGTHS: Floats = np.array([0.0, 0.25, 0.5, 0.8, 1.2, 2.0, np.inf])
#: Steps of the time for each row.
_PACES = 4_000
#: Rounding of a sum of times, in steps.
_NEAR = 1e-6


@dataclass(frozen=True)
class Stays(ColumnCourse):
    """The column says how long a stay lasts. Its levels are the number of stays, and the time for each row.

    They are drawn last, after all else.

    ``within``: columns of files whose rows lie within stays. ``terminal``: columns that say where their event
    is.
    """

    turn = 5
    within: tuple[str, ...]
    terminal: tuple[str, ...]

    @property
    def steps(self) -> Floats:
        """Ends of the intervals of times between rows of a stay, of the clock. Rows may share a time."""
        assert self.facts.clock is not None
        upper = self.column.bounds[1]
        least = max(self.facts.clock.resolution or 0.0, upper / _PACES)
        return np.r_[0.0, least / 2, np.geomspace(min(least, upper / 2), upper, _STEPS)]

    @property
    def levels(self) -> Sequence[Column]:
        """``rows``, and ``pace`` where rows lie within stays."""
        name, upper = self.column.name, self.column.bounds[1]
        fields: dict[str, Any] = {"lower": 0, "upper": upper, "step": upper / _PACES, "scale": "log"}
        pace = Column(name=f"{name} pace", kind="continuous", missing=True, **fields)
        number = Column(name=f"{name} rows", kind="integer", lower=0, upper=self.facts.most)
        return (number, pace) if self.within else (number,)

    def level_values(self, rows: RowNumbers) -> Mapping[str, Any]:
        """In the unit of the column. A patient without a stay has no pace."""
        name, (stay, guest) = self.column.name, self._masks(rows.numbers)
        found = {f"{name} rows": stay.sum(axis=1)}
        if self.within:
            whole = np.nansum(rows.numbers[name], axis=1) / np.maximum((stay | guest).sum(axis=1), 1)
            found[f"{name} pace"] = np.where(stay.any(axis=1), whole, np.nan)
        return found

    def tables(self, parents: Mapping[str, Column]) -> Sequence[RowTable]:
        """*between*: the time from the end of a stay to the next over the patient's mean, given the last one.

        *place*: the time from the row of a stay before, or from its begin, given the last one. Apart is the
        time from its last row to its end. *share*: rows of a stay over those that its share of the patient's
        time in stays would have, given its length over the patient's mean.
        """
        name, bins, steps = self.column.name, len(BETWEEN) - 1, len(self.steps) - 1
        found = [RowTable("between", name, (bins + 1, bins), self._between)]
        if self.within:
            found.append(RowTable("place", name, (2, steps + 1, steps), self._places))
            found.append(RowTable("share", name, (len(_LENGTHS) - 1, len(SHARES) - 1), self._shares))
        return found

    def _shares(self, rows: RowNumbers) -> Ints:
        times, lengths = rows.numbers[self.facts.order], rows.numbers[self.column.name]
        stay, guest = self._masks(rows.numbers)
        of = np.where(guest, nearest_stay(times, lengths, stay)[0], -1)
        row = np.arange(of.shape[1])
        own = (of[:, None, :] == row[:, None]).sum(axis=2)
        relative = _over_mean(lengths)
        # one stay alone has all rows
        mean = np.where(stay.sum(axis=1) > 1, guest.sum(axis=1) / np.maximum(stay.sum(axis=1), 1), 0.0)
        said = mean[:, None] * relative
        ratio = own / np.where(said > 0, said, np.nan)
        shape = (len(_LENGTHS) - 1, len(SHARES) - 1)
        return flat_cells(shape, (interval_numbers(relative, _LENGTHS),), interval_numbers(ratio, SHARES))

    def _between(self, rows: RowNumbers) -> Ints:
        times, lengths = rows.numbers[self.facts.order], rows.numbers[self.column.name]
        stay = ~np.isnan(lengths)
        begin, end = (packed_to(stay, np.where(stay, values, np.nan)) for values in (times, times + lengths))
        gaps = np.maximum(begin[:, 1:] - end[:, :-1], 0.0)
        count = (~np.isnan(gaps)).sum(axis=1)
        mean = np.nansum(gaps, axis=1) / np.maximum(count, 1)
        # one time alone is always the mean
        ratios = gaps / np.where((count > 1) & (mean > 0), mean, np.nan)[:, None]
        bins = interval_numbers(ratios, BETWEEN)
        size = len(BETWEEN) - 1
        return flat_cells((size + 1, size), (before(bins, size),), bins)

    def _places(self, rows: RowNumbers) -> Ints:
        """Rows outside a stay count at the nearer end of the nearest one."""
        times, lengths = rows.numbers[self.facts.order], rows.numbers[self.column.name]
        stay, guest = self._masks(rows.numbers)
        of, place = nearest_stay(times, lengths, stay)
        lasts = np.take_along_axis(lengths, np.maximum(of, 0), axis=1)
        guest &= (of >= 0) & (lasts > 0)
        # guests at the left: those of a stay follow each other
        there = packed_to(guest, guest)
        of, place = packed_to(guest, np.where(guest, of, -1)), packed_to(guest, place)
        first = there & (before(of, -2) != of)
        last = there & (np.append(of[:, 1:], np.full((len(of), 1), -2), axis=1) != of)
        lasts = packed_to(guest, lasts)
        since = place * lasts
        edges = self.steps
        step = interval_numbers(np.where(first, since, since - np.roll(since, 1, axis=1)), edges)
        left = interval_numbers(lasts - since, edges)
        bins = len(edges) - 1
        given = np.where(first, bins, before(step, bins))
        shape, no = (2, bins + 1, bins), np.zeros_like(of)
        steps = flat_cells(shape, (no, given), np.where(there, step, -1))
        return np.append(steps, flat_cells(shape, (no + 1, step), np.where(last, left, -1)), axis=1)

    def _masks(self, numbers: Mapping[str, Floats]) -> tuple[Mask, Mask]:
        """Rows that are stays, and other rows that lie within one."""
        stay = ~np.isnan(numbers[self.column.name])
        guest = np.zeros_like(stay)
        for name in self.within:
            values = numbers[name]
            guest |= values == 1 if name in self.terminal else ~np.isnan(values)
        return stay, guest & ~stay

    def draw(self, drawing: RowsDrawing) -> None:
        """Stays one after the other from the first one's time on, and the rows within each at their places.

        A patient with one stay keeps its length. Several are shortened where they do not fit into the drawn
        time. A death in another row ends the stay in which it is.
        """
        order, name = self.facts.order, self.column.name
        clock = _Clock.of(drawing, self)
        dead = self._arranged(drawing, clock, is_last(drawing.count, drawing.most) & drawing.ended[:, None])
        times = drawing.columns[order]
        stay, guest = self._here(drawing)
        some, there = stay.any(axis=1), np.arange(drawing.most) < stay.sum(axis=1)[:, None]
        final = is_last(stay.sum(axis=1), drawing.most)
        latest = clock.latest(drawing, times, dead & ~stay & ~guest)
        number = np.maximum(np.cumsum(stay, axis=1) - 1, 0)
        lengths = np.nan_to_num(packed_to(stay, clock.lengths(drawing.columns[name]))) * there
        part = self._parts(drawing, stay, guest, clock.own(np.take_along_axis(lengths, number, axis=1)))
        # how much of each stay its last row takes
        taken = packed_to(stay, np.take_along_axis(part, _last_of_stay(stay, guest), axis=1))
        own = stay | guest
        begin, end = np.where(own, times, np.inf).min(axis=1), np.where(own, times, -np.inf).max(axis=1)
        begin, span = np.where(some, begin, 0.0), np.where(some, end - begin, 0.0)
        begins, lengths = self._laid(drawing, clock, lengths, there, np.where(final, taken, 1.0), begin, span)
        begins = np.minimum(begins, clock.floor(latest)[:, None])
        following = np.append(begins[:, 1:], begins[:, :1], axis=1)
        limit = np.where(final, np.inf, following)
        lengths = clock.cut(np.minimum(lengths, np.maximum(limit - begins, 0.0)))
        # nothing follows a death in the row of a stay
        room = np.minimum(lengths, latest[:, None] - begins) * ~(final & (dead & stay).any(axis=1)[:, None])
        a, lasts, room = (np.take_along_axis(values, number, axis=1) for values in (begins, lengths, room))
        moved = np.where(guest, clock.floor(a + part * room), np.where(stay, a, times))
        ends = _death(moved, dead)
        lasts = np.where((dead & stay).any(axis=1)[:, None], lasts, clock.cut(np.minimum(lasts, ends - a)))
        # a length has steps of its own, on which a death need not lie
        moved = np.where(guest, np.minimum(moved, clock.floor(a + lasts)), moved)
        moved = np.minimum(moved, _death(moved, dead))
        drawing.columns[order] = np.where(drawing.here, moved, np.nan)
        drawing.columns[name] = np.where(stay, clock.own(lasts), drawing.columns[name])
        drawing.reorder(np.lexsort((dead, np.where(drawing.here, moved, np.inf)), axis=1))

    def _here(self, drawing: RowsDrawing) -> tuple[Mask, Mask]:
        """Drawn rows that are stays, and other rows that lie within one."""
        stay, guest = self._masks(drawing.columns)
        return stay & drawing.here, guest & drawing.here

    def _arranged(self, drawing: RowsDrawing, clock: _Clock, dead: Mask) -> Mask:
        """Stays with their rows behind them, in the order in which both were drawn, and then all others."""
        stay, guest = self._here(drawing)
        count = guest.sum(axis=1)
        lengths = packed_to(stay, np.where(stay, clock.lengths(drawing.columns[self.column.name]), np.nan))
        if self.within:
            rows, whole = (stay | guest).sum(axis=1), np.nansum(lengths, axis=1)
            wanted = drawing.number(f"{self.column.name} pace") / drawing.time_unit * rows
            lengths = lengths * np.where(whole > 0, wanted / np.maximum(whole, 1e-12), 1.0)[:, None]
            drawing.columns[self.column.name] = clock.own(drawing.unpacked(lengths, stay))
        weights = np.where(np.isnan(lengths), 0.0, 1.0)
        if self.within:
            table = drawing.table("share", self.column.name)
            relative = np.maximum(interval_numbers(_over_mean(lengths), _LENGTHS), 0)
            bins, place = drawn(table, drawing.rng.random(stay.shape), relative)
            weights = weights * np.maximum(
                place_inside(bins, SHARES, table.mean(axis=0), place) * lengths, 1e-9
            )
        weights = np.nan_to_num(weights)
        final = is_last(stay.sum(axis=1), drawing.most)
        weights[final & (dead & stay).any(axis=1)[:, None]] = 1e-9  # nothing follows a death
        sums = np.cumsum(weights, axis=1)
        parts = (sums - weights) / np.maximum(sums[:, -1:], 1e-12)
        ahead = np.floor(parts * count[:, None] + drawing.rng.random((len(count), 1)))
        ahead[:, 0] = 0.0
        # the row of a death stands behind the last stay
        ahead = np.minimum(ahead, (count - (dead & guest).any(axis=1))[:, None])
        key = np.where(guest, np.cumsum(guest, axis=1) - 1.0, np.inf)
        key = np.where(stay, drawing.unpacked(ahead, stay) - 0.5, key)
        turned = np.argsort(key, axis=1, kind="stable")
        drawing.reorder(turned)
        # rows that are not there stay at the right
        return np.take_along_axis(dead, turned, axis=1)

    def _parts(self, drawing: RowsDrawing, stay: Mask, guest: Mask, lengths: Floats) -> Floats:
        """Where rows lie in their stay, from 0 to 1, (N, most). Of several chains the one of its length."""
        parts = np.zeros(stay.shape)
        if not self.within:
            return parts
        last, least = _last_of_stay(stay, guest), np.full(stay.shape, np.inf)
        for _ in range(TRIES):
            sums, left = self._chain(drawing, stay, guest)
            whole = np.take_along_axis(sums + left, last, axis=1)
            miss = np.abs(np.log(np.maximum(whole, 1e-9)) - np.log(np.maximum(lengths, 1e-9)))
            parts = np.where(miss < least, sums / np.maximum(whole, 1e-12), parts)
            least = np.minimum(least, miss)
        return parts

    def _chain(self, drawing: RowsDrawing, stay: Mask, guest: Mask) -> tuple[Floats, Floats]:
        """Times since the stay's begin, and what is left after a row if it is the last, (N, most) both."""
        table, edges = drawing.table("place", self.column.name), self.steps
        density, first = table.mean(axis=(0, 1)), np.full(len(stay), table.shape[1] - 1)
        sums, left, uniform = np.zeros(stay.shape), np.zeros(stay.shape), drawing.rng.random((2, *stay.shape))
        state, since = first, np.zeros(len(stay))
        for t in range(drawing.most):
            bins, place = drawn(table, uniform[0, :, t], np.zeros_like(first), state)
            step = place_inside(bins, edges, density, place)
            since = np.where(stay[:, t], 0.0, since + np.where(guest[:, t], step, 0.0))
            state = np.where(stay[:, t], first, np.where(guest[:, t], bins, state))
            rest, place = drawn(table, uniform[1, :, t], np.ones_like(first), state)
            sums[:, t], left[:, t] = since, place_inside(rest, edges, density, place) * guest[:, t]
        return sums, left

    def _laid(
        self,
        drawing: RowsDrawing,
        clock: _Clock,
        lengths: Floats,
        there: Mask,
        taken: Floats,
        begin: Floats,
        span: Floats,
    ) -> tuple[Floats, Floats]:
        """Begins and lengths of stays, which stand at the left, so that all rows take the drawn time.

        ``taken``: how much of a stay's length comes before the last row.
        """
        several, used = there.sum(axis=1) > 1, (lengths * taken).sum(axis=1)
        shorter = np.where(several, np.minimum(1.0, span / np.maximum(used, 1e-12)), 1.0)
        lengths = clock.cut(lengths * shorter[:, None])
        rest = np.where(several, np.maximum(span - (lengths * taken).sum(axis=1), 0.0), 0.0)
        rest = drawing.climb(drawing.table("between", self.column.name), BETWEEN, rest, there)
        return clock.ceil(begin[:, None] + clock.round(rest) + np.cumsum(lengths, axis=1) - lengths), lengths


@dataclass(frozen=True)
class _Clock:
    """Steps of times and of lengths, in the unit of drawn times. None where there are none."""

    lower: float
    upper: float
    step: float | None
    least: float | None
    unit: float
    until: Column | None
    most: float

    @classmethod
    def of(cls, drawing: RowsDrawing, stays: Stays) -> _Clock:
        order, column = stays.facts.clock, stays.column
        assert order is not None
        unit = drawing.time_unit
        (lower, upper), step = order.bounds, order.resolution
        return cls(
            lower / unit,
            upper / unit,
            None if step is None else step / unit,
            column.resolution,
            unit,
            stays.facts.until,
            column.bounds[1],
        )

    def lengths(self, values: Floats) -> Floats:
        """Lengths of the column, on its steps and within its bounds, in the unit of times."""
        rounded = values if self.least is None else np.rint(values / self.least) * self.least
        return self.cut(np.clip(rounded, 0.0, self.most) / self.unit)

    def own(self, lengths: Floats) -> Floats:
        """Lengths in the unit of their column."""
        return lengths * self.unit

    def cut(self, lengths: Floats) -> Floats:
        """Lengths that are no longer, on the steps of their column."""
        if self.least is None:
            return lengths
        step = self.least / self.unit
        return np.floor(lengths / step + _NEAR) * step

    def _steps(self, how: Any, times: Floats) -> Floats:
        return times if self.step is None else self.lower + how((times - self.lower) / self.step) * self.step

    def floor(self, times: Floats) -> Floats:
        """The last time on a step that is no later."""
        return self._steps(lambda steps: np.floor(steps + _NEAR), times)

    def ceil(self, times: Floats) -> Floats:
        """The first time on a step that is no earlier."""
        return self._steps(lambda steps: np.ceil(steps - _NEAR), times)

    def round(self, gaps: Floats) -> Floats:
        """Times between stays, on steps."""
        return gaps if self.step is None else np.rint(gaps / self.step) * self.step

    def latest(self, drawing: RowsDrawing, times: Floats, dead: Mask) -> Floats:
        """The time after which a patient has no row: the bound, the patient's own end, or the death."""
        found = np.full(len(times), self.upper)
        if self.until is not None:
            found = np.fmin(found, drawing.of_levels[self.until.name].code(drawing.levels[self.until.name]))
        return np.fmin(found, np.where(dead, times, np.inf).min(axis=1))


def _last_of_stay(stay: Mask, guest: Mask) -> Ints:
    """For each row the last row of its stay, or of the one before it."""
    row, size = np.arange(stay.shape[1]), stay.shape[1]
    next_stay = np.minimum.accumulate(np.where(stay, row, size)[:, ::-1], axis=1)[:, ::-1]
    behind = np.append(next_stay[:, 1:], np.full((len(stay), 1), size), axis=1)
    latest = np.maximum.accumulate(np.where(stay | guest, row, 0), axis=1)
    return np.take_along_axis(latest, behind - 1, axis=1)


def _death(times: Floats, dead: Mask) -> Floats:
    """The time of each patient's terminal row, or none, (N, 1)."""
    return np.where(
        dead.any(axis=1, keepdims=True), np.where(dead, times, -np.inf).max(axis=1, keepdims=True), np.inf
    )


def _over_mean(lengths: Floats) -> Floats:
    """Lengths over the patient's mean, NaN where there is none, or no time at all."""
    mean = np.nansum(lengths, axis=1) / np.maximum((~np.isnan(lengths)).sum(axis=1), 1)
    return lengths / np.where(mean > 0, mean, np.nan)[:, None]


def nearest_stay(times: Floats, lengths: Floats, stay: Mask) -> tuple[Ints, Floats]:
    """For each row the row of the nearest stay, -1 without one, and its place from 0 to 1 there.

    Of two stays that are as near, the earlier one counts.
    """
    row = np.arange(times.shape[1])
    earlier = np.maximum.accumulate(np.where(stay, row, -1), axis=1)
    later = np.minimum.accumulate(np.where(stay, row, len(row))[:, ::-1], axis=1)[:, ::-1]
    ends = times + lengths

    def at(values: Floats, place: Ints) -> Floats:
        return np.take_along_axis(values, np.clip(place, 0, len(row) - 1), axis=1)

    away = np.where(earlier < 0, np.inf, np.maximum(times - at(ends, earlier), 0.0))
    ahead = np.where(later == len(row), np.inf, at(times, later) - times)
    of = np.where(ahead < away, later, earlier)
    of = np.where(np.isinf(np.minimum(ahead, away)) | np.isnan(times), -1, of)
    lasts = np.maximum(at(lengths, of), 1e-12)
    return of, np.clip((times - at(times, of)) / lasts, 0.0, 1.0)
