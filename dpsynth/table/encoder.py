"""Convert records to points of the unit cube and back.

Numbers and ordinals become one coordinate each, through the column's released cumulative distribution. The
generator then sees uniform columns (a copula). Without released marginals they are scaled by public bounds.
Categories become one-hot groups. A number that may be missing or have special codes is a coordinate, filled
uniformly where absent, and a one-hot group (present, each code, missing). A category that may be missing has
"missing" as one more category.

An encoder reads only the schema and released marginals. Transforming private records yields private points.
It costs nothing until something is computed from them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from dpsynth.errors import ConfigError, DataError, RunError, of_records
from dpsynth.files.codec import record
from dpsynth.table.coded import CodedTable, Codes
from dpsynth.table.draws import RowUniforms, Uniforms, draw_entry
from dpsynth.table.grid import Grid, Marginals, make_grids
from dpsynth.table.schema import Schema

# ------------------------------------------------------------------------------------------------
# The shape of an encoded record: a point of the unit cube, numeric coordinates first.
#
# A record becomes a vector of ``dim`` numbers in [0, 1]: ``n_numeric`` free coordinates, then one-hot groups
# in which exactly one entry is 1. The WGAN critic's bounds (Pedersen 2022, section 3.2) need only this of a
# table. Points are centred before they reach the WGAN critic (numeric - 1/2, one-hot of m entries - 1/m).
# This about halves the data radius and with it all noise. A centred one-hot group has squared norm 1 - 1/m.
#
# Numbers (through their cumulative distribution) lie in intervals of [0, 1] as wide as the masses of a
# column's cells. Points are float32, so the ends are float32 too. Every interval is wide enough to be
# distinguished from its neighbours, and rounding never carries a record into the next one.

#: Least and most total mass spread over all cells of a column, so that each keeps an interval of its own.
_FLOOR, _CEILING = 1e-4, 1e-3
#: Least width of an interval (four float32 steps just below 1), and of the share of each value in it.
_WIDTH, _SHARE = 2.0**-22, 2.0**-21


@dataclass(frozen=True)
class Layout:
    """Which coordinates of an encoded point are numeric and which form one-hot groups.

    The one-hot ``groups``, as (start, stop), follow the ``n_numeric`` numeric coordinates in order, without
    gaps.

    Examples
    --------
    >>> layout = Layout(n_numeric=2, groups=((2, 5),))
    >>> layout.center
    array([0.5       , 0.5       , 0.33333333, 0.33333333, 0.33333333])
    >>> round(layout.radius ** 2, 6)  # 2 * 1/4 + (1 - 1/3)
    1.166667
    """

    n_numeric: int
    groups: tuple[tuple[int, int], ...] = ()

    def __post_init__(self) -> None:
        if self.n_numeric < 0:
            raise ConfigError(f"n_numeric is {self.n_numeric}, but cannot be negative")
        object.__setattr__(self, "groups", tuple((int(a), int(b)) for a, b in self.groups))
        expected = self.n_numeric
        for number, (start, stop) in enumerate(self.groups):
            if start != expected or stop <= start:
                raise ConfigError(
                    f"groups[{number}] is ({start}, {stop}), but must start at {expected} and not be empty"
                )
            expected = stop

    @property
    def dim(self) -> int:
        """Number of coordinates of a point."""
        return self.groups[-1][1] if self.groups else self.n_numeric

    @property
    def center(self) -> NDArray[np.float64]:
        """Centre subtracted before the WGAN critic, shape (dim,): 1/2 for numeric, 1/m in a group of m."""
        center = np.full(self.dim, 0.5)
        for start, stop in self.groups:
            center[start:stop] = 1.0 / (stop - start)
        return center

    @property
    def lo(self) -> NDArray[np.float64]:
        """Lower corner of the box that holds every centred point, shape (dim,)."""
        return -self.center

    @property
    def hi(self) -> NDArray[np.float64]:
        """Upper corner of the box that holds every centred point, shape (dim,)."""
        return 1.0 - self.center

    @property
    def radius(self) -> float:
        """Largest Euclidean norm of a centred point whose groups are one-hot."""
        squared = self.n_numeric / 4.0 + sum(1.0 - 1.0 / (stop - start) for start, stop in self.groups)
        return float(np.sqrt(squared))

    def check(self, points: NDArray[np.floating]) -> None:
        """Raise RunError for points out of the unit cube, or with a group that is not one-hot.

        ``points``: shape (n, dim). Bounds are proved for points of this layout alone.
        """
        cube = ((points >= 0) & (points <= 1)).all()
        ones = points[:, self.n_numeric :]
        one_hot = ((ones == 0) | (ones == 1)).all() and all(
            (points[:, start:stop].sum(axis=1) == 1).all() for start, stop in self.groups
        )
        if points.shape[1] != self.dim or not (cube and one_hot):
            raise RunError(
                "encoded records leave the domain for which the noise is proved, perhaps because their file "
                "was damaged. Fit again, and report this if it is said again"
            )


def interval_ends(mass: NDArray[np.float64], values: NDArray[np.int64]) -> NDArray[np.float32]:
    """Strictly increasing ends of the intervals, from 0 to 1, shape (cells + 1,).

    ``values`` is the number of different values that share a cell. Without any mass all cells count alike.
    """
    cells = len(mass)
    mass = mass / mass.sum() if mass.sum() > 0 else np.full(cells, 1.0 / cells)
    # Values of a cell need room to differ in float32: exact up to some 2,000 values in a column.
    room = np.minimum(values * _SHARE, _CEILING / cells)
    mass = np.maximum(mass, np.maximum(room, max(_FLOOR / cells, _WIDTH)))
    ends = np.concatenate([[0.0], np.cumsum(mass / mass.sum())]).astype(np.float32)
    ends[-1] = 1.0
    return ends


def put(
    ends: NDArray[np.float32],
    code: NDArray[np.int64],
    place: NDArray[np.float64],
    part: tuple[NDArray[np.float64], NDArray[np.float64]],
) -> NDArray[np.float32]:
    """Point at a ``place`` in [0, 1) within an interval, shape (n,).

    ``part`` holds the ends, from 0 to 1, of the part of its cell that each record's value has. The point
    stays in it.
    """
    left = ends[code].astype(np.float64)
    width = ends[code + 1] - left
    inside = (left + place * width).astype(np.float32)
    # Rounding, to float32 here and in float64 when located, must not carry a record into the next value's
    # share of the cell; the margins are far below a float32 step.
    low, high = left + width * (part[0] + 1e-9), left + width * (part[1] - 1e-9)
    inside = np.where(inside <= low, np.nextafter(low.astype(np.float32), np.float32(2.0)), inside)
    return np.where(inside >= high, np.nextafter(high.astype(np.float32), np.float32(-1.0)), inside)


def locate(
    ends: NDArray[np.float32], u: NDArray[np.float32]
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Interval and place within it of each point, the inverse of `put`."""
    code = np.clip(np.searchsorted(ends, u, side="right") - 1, 0, len(ends) - 2)
    left = ends[code].astype(np.float64)
    return code, np.clip((u - left) / (ends[code + 1] - left), 0.0, np.nextafter(1.0, 0.0))


@record
class Encoder:
    """Turns records of a schema into points of the unit cube and back.

    Parameters
    ----------
    marginals : Marginals or None
        Released marginals, through whose cumulative distributions numbers go. None scales numbers by their
        public bounds, and gives each value of an ordinal an equal interval.

    Examples
    --------
    >>> from dpsynth.table.column import Column
    >>> schema = Schema(columns=(Column(name="age", kind="integer", lower=0, upper=100),
    ...                          Column(name="sex", kind="binary", categories=("F", "M"))))
    >>> frame = schema.conform(pd.DataFrame({"age": [25, 50], "sex": ["M", "F"]})).frame
    >>> encoder = Encoder(schema, None)
    >>> points = encoder.transform(CodedTable(frame), np.random.default_rng(0))
    >>> points
    array([[0.25, 0.  , 1.  ],
           [0.5 , 1.  , 0.  ]], dtype=float32)
    >>> bool(encoder.inverse_transform(points, np.random.default_rng(0)).equals(frame))
    True
    """

    def __init__(self, schema: Schema, marginals: Marginals | None) -> None:
        if marginals is not None and marginals.names != schema.names:
            raise ConfigError(
                f"marginals are of the columns {marginals.names}, the schema's are {schema.names}"
            )
        self.schema = schema
        self.marginals = marginals
        self.grids = marginals.grids if marginals is not None else make_grids(schema)
        self._ends = [self._interval_ends(j) for j in range(len(self.grids))]
        self.coordinate, self.group, self.layout = self._place()

    @property
    def calibrated(self) -> bool:
        """Whether records of points are made to agree with released marginals, so that only ranks count."""
        return self.marginals is not None

    def on_line(self, grid: Grid) -> int:
        """How many of a column's cells, the first ones, lie on its coordinate. 0: it has none."""
        return grid.present if grid.ordered else 0

    def transform(self, table: CodedTable, rng: Uniforms) -> NDArray[np.float32]:
        """Encode records as float32 points, shape (n, layout.dim), in [0, 1].

        ``rng`` draws places within cells of countable values and fillers of missing ones.
        """
        cells = np.empty((len(table), len(self.grids)), dtype=np.int64)
        places = np.empty(cells.shape)
        for j, grid in enumerate(self.grids):
            codes = table.codes(grid.column)
            cells[:, j] = grid.cells(codes)
            places[:, j] = grid.position(codes, cells[:, j], rng)
        return self.points_of_cells(cells, places, rng)

    def transform_rows(self, table: CodedTable, first: int, seed: int) -> NDArray[np.float32]:
        """Encode a block of records whose first is number ``first``, the same however records are cut.

        ``seed`` is that of all records, of what `transform` draws.
        """
        columns = len(self.grids) + self.layout.n_numeric
        return self.transform(table, RowUniforms(seed, first, len(table), columns))

    def points_of_cells(
        self, cells: NDArray[np.int64], places: NDArray[np.float64], rng: Uniforms
    ) -> NDArray[np.float32]:
        """Encode records given as fine grid cells and places within them, in [0, 1).

        ``cells`` and ``places`` have shape (n, columns), the result (n, layout.dim).
        """
        points = np.zeros((len(cells), self.layout.dim), dtype=np.float32)
        for j, grid in enumerate(self.grids):
            code, place = cells[:, j], places[:, j]
            at, group = self.coordinate[j], self.group[j]
            apart = np.maximum(code - self.on_line(grid) + 1, 0)
            if at is not None:
                present = np.where(apart > 0, 0, code)
                inside = self._scaled(j, present, place)
                points[:, at] = np.where(apart > 0, rng.random(len(code)), inside)
            if group is not None:
                label = apart if at is not None else code
                points[np.arange(len(code)), group[0] + label] = 1.0
        return points

    def inverse_transform(self, points: ArrayLike, rng: np.random.Generator) -> pd.DataFrame:
        """Decode points, shape (n, layout.dim), to records in the schema's types, steps and categories.

        Coordinates outside [0, 1] are clipped. A group that is not one-hot is read as weights from which one
        entry is drawn.
        """
        return self.decode(*self.cells(points, rng))

    def cells(
        self, points: ArrayLike, rng: np.random.Generator
    ) -> tuple[list[NDArray[np.int64]], list[NDArray[np.float64]]]:
        """Fine cells of points and places within them, as `decode` takes them."""
        array = np.asarray(points)
        if array.ndim != 2 or array.shape[1] != self.layout.dim:
            raise DataError(f"points has shape {array.shape}, but must be (n, {self.layout.dim})")
        if not np.isfinite(array).all():
            row = int(np.flatnonzero(~np.isfinite(array).all(axis=1))[0])
            raise of_records(f"points, row {row + 1}: a coordinate is not a finite number")
        codes, places = [], []
        for j, grid in enumerate(self.grids):
            at, group = self.coordinate[j], self.group[j]
            code = np.zeros(len(array), dtype=np.int64)
            place = np.zeros(len(array))
            if at is not None:
                code, place = self._located(j, array[:, at].astype(np.float32).clip(0.0, 1.0))
            if group is not None:
                label = draw_entry(array[:, group[0] : group[1]], rng)
                code = np.where(label > 0, self.on_line(grid) - 1 + label, code) if at is not None else label
            codes.append(code)
            places.append(place)
        return codes, places

    def decode(
        self, codes: Sequence[NDArray[np.int64]], places: Sequence[NDArray[np.float64]]
    ) -> pd.DataFrame:
        """Records of fine grid cells and places within them, in [0, 1): one array of shape (n,) a column."""
        columns = {
            grid.column.name: grid.decode(code, place)
            for grid, code, place in zip(self.grids, codes, places, strict=True)
        }
        return pd.DataFrame(columns, columns=list(self.schema.names))

    def quantiles(self, j: int, u: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Fine cell and place within it at ranks ``u`` in [0, 1) of column j's released distribution.

        Missing values have no part in it. The column must have a coordinate. Both have shape (n,).
        """
        if self.marginals is None:
            raise ConfigError("the encoder has no marginals, so there is no distribution to match")
        # As they were released: intervals have room for cells of no mass, which nobody may get here.
        mass = self.marginals.probabilities[j][: self.grids[j].present]
        mass = mass if mass.sum() > 0 else np.ones(len(mass))
        filled = np.flatnonzero(mass)
        below = np.concatenate([[0.0], np.cumsum(mass[filled])])
        rank = u * below[-1]
        cell = (np.searchsorted(below, rank, side="right") - 1).clip(0, len(filled) - 1)
        place = (rank - below[cell]) / (below[cell + 1] - below[cell])
        return filled[cell], place.clip(0.0, np.nextafter(1.0, 0.0))

    def group_probabilities(self) -> tuple[NDArray[np.float64], ...]:
        """Released probabilities of every one-hot group, in the layout's order, uniform without marginals."""
        return tuple(self.released(j) for j, group in enumerate(self.group) if group is not None)

    def released(self, j: int) -> NDArray[np.float64]:
        """Released probabilities of column j's one-hot group: categories, or present and what is apart."""
        grid, group = self.grids[j], self.group[j]
        assert group is not None
        size = group[1] - group[0]
        p = np.full(size, 1.0 / size) if self.marginals is None else self.marginals.probabilities[j]
        if self.coordinate[j] is not None and self.marginals is not None:
            p = np.append(p[: grid.present].sum(), p[grid.present :])
        return p / p.sum()

    def _place(self) -> tuple[list[int | None], list[tuple[int, int] | None], Layout]:
        """Give each column its coordinate and its one-hot group, where it has them."""
        coordinate: list[int | None] = []
        for grid in self.grids:
            coordinate.append(sum(c is not None for c in coordinate) if self.on_line(grid) else None)
        stop = n_numeric = sum(c is not None for c in coordinate)
        groups: list[tuple[int, int] | None] = []
        for grid, at in zip(self.grids, coordinate, strict=True):
            if at is None:
                groups.append((stop, stop + grid.size))
            elif grid.size > self.on_line(grid):
                groups.append((stop, stop + 1 + grid.size - self.on_line(grid)))
            else:
                groups.append(None)
            stop = stop if groups[-1] is None else groups[-1][1]
        return coordinate, groups, Layout(n_numeric, tuple(g for g in groups if g is not None))

    def _interval_ends(self, j: int) -> NDArray[np.float32]:
        """Ends of the intervals of column j's cells, by released probabilities or all alike."""
        grid = self.grids[j]
        known = np.ones(grid.present) if self.marginals is None else self.marginals.probabilities[j]
        return interval_ends(known[: grid.present], grid.values_per_cell[: grid.present])

    def _by_bounds(self, grid: Grid) -> bool:
        """Whether a column's values are scaled by its public bounds."""
        return self.marginals is None and grid.column.is_numeric

    def _scaled(self, j: int, code: NDArray[np.int64], place: NDArray[np.float64]) -> NDArray[np.float32]:
        """Coordinate of an ordered column's present records."""
        grid = self.grids[j]
        if self._by_bounds(grid):
            lower, upper = grid.column.bounds
            values = grid.column.code(grid.decode(code, place))
            return ((values - lower) / (upper - lower)).astype(np.float32)
        return put(self._ends[j], code, place, grid.shares(code, place))

    def _located(self, j: int, u: NDArray[np.float32]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Fine cell and place within it of a coordinate of column j."""
        grid = self.grids[j]
        if self._by_bounds(grid):
            lower, upper = grid.column.bounds
            values = pd.Series(lower + u.astype(np.float64) * (upper - lower), name=grid.column.name)
            codes = Codes.of(grid.column, values)
            cell = grid.cells(codes)
            return cell, grid.position(codes, cell, None)
        return locate(self._ends[j], u)
