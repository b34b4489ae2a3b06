"""The shape of an encoded record: a point of the unit cube, numeric coordinates first.

A record becomes a vector of ``dim`` numbers in [0, 1]: ``n_numeric`` free coordinates, then one-hot
groups in which exactly one entry is 1. The critic's bounds (Pedersen 2022, section 3.2) need no more of
a table than this, so the class imports nothing but numpy.

Points are centred before they reach the critic (numeric - 1/2, one-hot of m entries - 1/m), which about
halves the data radius and with it all noise (theory of section 1.5: a centred one-hot group has squared
norm 1 - 1/m).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpsynth.errors import ConfigError


@dataclass(frozen=True)
class Layout:
    """Which coordinates of an encoded point are numeric and which form one-hot groups.

    Parameters
    ----------
    n_numeric : int
        Number of numeric coordinates; they are the first ones.
    groups : tuple of (start, stop)
        The one-hot groups, in order, directly behind the numeric coordinates and without gaps.

    Raises
    ------
    ConfigError
        If the groups do not follow each other from ``n_numeric`` on, or one of them is empty.

    Examples
    --------
    >>> layout = Layout(n_numeric=2, groups=((2, 5),))
    >>> layout.dim
    5
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
        """Centre subtracted before the critic, shape (dim,): 1/2 for numeric, 1/m in a group of m."""
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
