"""Which rows have a value of a column that may be missing, or a row of one of several files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsynth.patients.courses.course import RowCourse, RowNumbers, RowTable, flat_cells
from dpsynth.patients.courses.drawing import TRIES, RowsDrawing, drawn
from dpsynth.patients.files import Presence
from dpsynth.patients.series import (
    PRESENCE_CLASSES,
    SINCE,
    Floats,
    Ints,
    measured_before,
    packed_to,
    presence_class,
    rows_since,
)
from dpsynth.table.column import Column
from dpsynth.table.draws import draw_entry

Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Presences(RowCourse):
    """All of a schema's presences, in the order in which they are drawn. Its levels are their shares of rows.

    ``most``: rows of a patient, at most. ``terminal``: columns that say where their event is. ``variables``:
    all columns that change from row to row. ``apart``: whether rows of several files make those of a patient.
    ``stays``: the column that says how long stays last, and those of files whose rows lie within stays.
    """

    turn = 1
    presences: tuple[Presence, ...]
    most: int
    terminal: tuple[str, ...]
    variables: tuple[str, ...]
    apart: bool
    stays: tuple[str, tuple[str, ...]] | None = None

    @property
    def levels(self) -> Sequence[Column]:
        """The class of the share of rows. A patient without rows of the file has none."""
        return tuple(
            Column(name=each.level, kind="ordinal", categories=PRESENCE_CLASSES, missing=bool(each.within))
            for each in self.presences
        )

    def source(self, level: Column) -> str:
        """The first column of the presence."""
        return next(each.columns[0] for each in self.presences if each.level == level.name)

    def level_values(self, rows: RowNumbers) -> Mapping[str, Any]:
        """Of the rows that count."""
        words = np.array([*PRESENCE_CLASSES, None], dtype=object)
        there = self.there(rows)
        return {each.level: words[presence_class(*there[each.name])] for each in self.presences}

    def there(self, rows: RowNumbers) -> dict[str, tuple[Mask, Mask]]:
        """For each presence, whether it is there, and the rows that count, both (N, most)."""
        found: dict[str, tuple[Mask, Mask]] = {}
        all_rows = np.arange(self.most) < rows.rows[:, None]
        for presence in self.presences:
            own = np.zeros(all_rows.shape, bool)
            for name in presence.columns:
                values = rows.numbers[name]
                # a terminal column tells where its event is
                own |= values == 1 if name in self.terminal else ~np.isnan(values)
            found[presence.name] = own, found[presence.within][0] if presence.within else all_rows
        return found

    def tables(self, parents: Mapping[str, Column]) -> Sequence[RowTable]:
        """*measured*: whether a column has a value, or a file has a row.

        Given are the rows since it last was so and the class of its share of rows. So is which of those
        before it are there in this row: none, some, or the last one. For a column of a file that gives
        several, the file's rows alone count.
        """
        tables, homes = [], set[str]()
        for presence in self.presences:
            known = 3 if presence.within in homes else 1
            shape = (SINCE, len(PRESENCE_CLASSES), known, 2)
            cells = partial(self._cells, presence, shape)
            tables.append(RowTable("measured", presence.name, shape, cells))
            homes.add(presence.within)
        return tables

    def _cells(self, presence: Presence, shape: tuple[int, ...], rows: RowNumbers) -> Ints:
        measured = self.there(rows)
        own, of = measured[presence.name]
        before = self.presences[: self.presences.index(presence)]
        beside = [measured[each.name][0] for each in before if each.within == presence.within]
        parents = (
            rows_since(packed_to(of, own)),
            np.broadcast_to(presence_class(own, of)[:, None], own.shape),
            packed_to(of, measured_before(beside, own.shape)),
        )
        return flat_cells(shape, parents, packed_to(of, np.where(of, own, -1)))

    def draw(self, drawing: RowsDrawing) -> None:
        """Which rows have each presence. A terminal event has a row of its file."""
        events = {name: drawing.columns[name] == 1 for name in self.terminal}
        found: dict[str, Mask] = {}
        for home in dict.fromkeys(presence.within for presence in self.presences):
            drawn_here: list[Mask] = []
            group = [presence for presence in self.presences if presence.within == home]
            of = found.get(home, drawing.here)
            for presence in group:
                own = self._drawn(drawing, presence, of, measured_before(drawn_here, of.shape))
                for name in events.keys() & {*presence.columns}:
                    own |= events[name]
                found[presence.name] = own
                drawn_here.append(own)
            _fill(drawing, drawn_here, of & self._incomplete(home, group, events, of.shape))
            if not home and self.stays is not None:
                self._give_stays(drawing, found, events, *self.stays)
        drawing.presences = found
        # a column that may be missing within the rows of its file comes after the file
        drawing.measured = {c: found[each.name] for each in self.presences for c in each.columns}

    def _give_stays(
        self,
        drawing: RowsDrawing,
        found: Mapping[str, Mask],
        events: Mapping[str, Mask],
        length: str,
        within: Sequence[str],
    ) -> None:
        """As many stays as the levels say, and one at least where rows lie within stays.

        A row that becomes a stay is of no other file, if the patient has other rows of that.
        """
        outer = [each for each in self.presences if not each.within]
        host = next(found[each.name] for each in outer if length in each.columns)
        own = next(each.columns for each in outer if length in each.columns)
        others = [found[each.name] for each in outer if length not in each.columns]
        rows = [found[each.name] for each in outer if {*within} & {*each.columns}]
        none = np.zeros_like(host)
        ends = np.logical_or.reduce([none, *events.values()])
        some = np.logical_or.reduce([none, *rows, *(events[name] for name in events if name in within)])
        fixed = np.logical_or.reduce([none, *(events[name] for name in events if name in own)])
        number = drawing.number(f"{length} rows") if others else host.sum(axis=1)
        wanted = np.minimum(np.maximum(number, (some | fixed).any(axis=1)), drawing.count)
        # the event of a stay stays, then what is there, then rows in which no event is
        lot = drawing.rng.random(host.shape) - 2.0 * host - 9.0 * fixed + ends + 99.0 * ~drawing.here
        chosen = drawing.here & (lot.argsort(axis=1).argsort(axis=1) < wanted[:, None])
        fresh, lost = chosen & ~host & ~ends, host & ~chosen & ~ends
        host[:] = chosen
        for has in others:
            fewer = has & ~fresh
            has[:] = np.where(fewer.any(axis=1, keepdims=True), fewer, has)
        if others:
            _fill(drawing, others, lost)

    def _incomplete(
        self, home: str, group: Sequence[Presence], events: Mapping[str, Mask], shape: tuple[int, ...]
    ) -> Mask:
        """Rows that need one presence of a group, since nothing else would be there."""
        columns = {c for each in self.presences if each.name == home for c in each.columns}
        columns = columns or {*self.variables}
        ends = columns & {*self.terminal}
        always = columns - ends - {c for each in group for c in each.columns}
        # In one file a row may say that the patient is alive, and no more.
        if always or (ends and not self.apart):
            return np.zeros(shape, bool)
        return ~np.logical_or.reduce([np.zeros(shape, bool), *(events[name] for name in ends)])

    def _drawn(self, drawing: RowsDrawing, presence: Presence, of: Mask, beside: Ints) -> Mask:
        """The rows among ``of`` in which something is there, as the drawn class of their share says."""
        p, count = drawing.table("measured", presence.name), of.sum(axis=1)
        shares = _shares(drawing, presence.level)
        there, beside = np.arange(self.most) < count[:, None], packed_to(of, beside)
        own, off = np.zeros(of.shape, bool), count > 0
        for _ in range(TRIES):
            own[off] = self._chain(drawing, p, shares[off], beside[off]) & there[off]
            off = (presence_class(own, there) != shares) & (count > 0)
        # The drawn class decides whether it is there at all, and whether it is in each row.
        own[shares == 0] = False
        own[shares == len(PRESENCE_CLASSES) - 1] = there[shares == len(PRESENCE_CLASSES) - 1]
        own[(shares == 1) & (own.sum(axis=1) > 1)] = False
        lone = np.flatnonzero((shares > 0) & (count > 0) & ~own.any(axis=1))
        own[lone, (drawing.rng.random(len(lone)) * count[lone]).astype(np.int64)] = True
        return drawing.unpacked(own, of) == 1

    def _chain(self, drawing: RowsDrawing, table: Floats, shares: Ints, beside: Ints) -> Mask:
        """Chains of rows in which something is there, for patients of these classes, (n, most)."""
        own, since = np.zeros(beside.shape, bool), np.full(len(beside), table.shape[0] - 1)
        uniform = drawing.rng.random(own.shape)
        for t in range(self.most):
            own[:, t] = drawn(table, uniform[:, t], since, shares, beside[:, t])[0] == 1
            since = rows_since(np.pad(own[:, : t + 1], ((0, 0), (0, 1))))[:, -1]
        return own


def _shares(drawing: RowsDrawing, level: str) -> Ints:
    """Classes of a share of rows. A patient who has one lends it to a patient without."""
    codes = drawing.codes(level)
    known, lacks = codes[codes >= 0], np.flatnonzero(codes < 0)
    if len(lacks):
        codes[lacks] = drawing.rng.choice(known if len(known) else [len(PRESENCE_CLASSES) - 1], len(lacks))
    return codes


def _fill(drawing: RowsDrawing, measured: Sequence[Mask], of: Mask) -> None:
    """Give a row among ``of`` without any of these one that the patient has, or else any."""
    row = np.argwhere(of & ~np.logical_or.reduce(measured))
    likely = np.array([float(has.sum()) for has in measured])
    own = np.stack([has.any(axis=1) for has in measured], axis=1)[row[:, 0]]
    chosen = draw_entry(np.where(own.any(axis=1, keepdims=True), own * likely, likely + 1.0), drawing.rng)
    for k, has in enumerate(measured):
        has[tuple(row[chosen == k].T)] = True
