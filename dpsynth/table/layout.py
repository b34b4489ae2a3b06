"""The shape of an encoded record: a point of the unit cube, numeric coordinates first.

A record becomes a vector of ``dim`` numbers in [0, 1]: ``n_numeric`` free coordinates, then one-hot groups in
which exactly one entry is 1. The WGAN critic's bounds (Pedersen 2022, section 3.2) need only this of a table.
Points are centred before they reach the WGAN critic (numeric - 1/2, one-hot of m entries - 1/m). This about
halves the data radius and with it all noise. A centred one-hot group has squared norm 1 - 1/m.

Numbers (through their cumulative distribution) lie in intervals of [0, 1] as wide as the masses of a column's
cells. Points are float32, so the ends are float32 too. Every interval is wide enough to be distinguished from
its neighbours, and rounding never carries a record into the next one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpsynth.errors import ConfigError

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
