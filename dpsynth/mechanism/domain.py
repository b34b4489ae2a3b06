"""The domain of records: the input of every bound, as plain numpy arrays.

A record reaches the critic as a point of a public box. In a one-hot group exactly one entry is 1. Nothing
here is read off a record.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpsynth.checks import in_range
from dpsynth.errors import InputError
from dpsynth.table.layout import Layout

# The radius is a float64 square root that is compared with float32 points.
_RADIUS_SLACK = 1e-6


@dataclass(frozen=True, eq=False)
class Domain:
    """A box of float32 points, with one-hot groups, and the largest norm of a point.

    Parameters
    ----------
    lo, hi : array (dim,)
        Ends of the box. In a group, ``lo`` is the value that stands for 0 and ``hi`` the one for 1.
    groups : tuple of (start, stop)
        One-hot groups: in each, exactly one coordinate is at ``hi`` and the others are at ``lo``.
    radius : float
        Largest Euclidean norm of a point.

    Raises
    ------
    InputError
        If the ends are not finite and ordered, or the groups overlap or leave the box.
    """

    lo: NDArray[np.float32]
    hi: NDArray[np.float32]
    groups: tuple[tuple[int, int], ...]
    radius: float

    def __post_init__(self) -> None:
        lo, hi = np.asarray(self.lo, np.float32), np.asarray(self.hi, np.float32)
        if lo.ndim != 1 or lo.shape != hi.shape or lo.size == 0:
            raise InputError(f"lo and hi must be vectors of one length >= 1, got {lo.shape} and {hi.shape}")
        if not (np.isfinite(lo).all() and np.isfinite(hi).all() and (lo <= hi).all()):
            raise InputError("lo and hi must be finite with lo <= hi in every coordinate")
        end = 0
        for start, stop in sorted(self.groups):
            if not end <= start < stop <= lo.size:
                raise InputError(
                    f"group ({start}, {stop}) is empty, overlaps another or leaves the {lo.size} coordinates"
                )
            end = stop
        in_range("radius", self.radius, 0.0, math.inf, high_open=True)
        object.__setattr__(self, "lo", lo)
        object.__setattr__(self, "hi", hi)
        object.__setattr__(self, "groups", tuple((int(a), int(b)) for a, b in self.groups))

    @property
    def dim(self) -> int:
        """Number of coordinates."""
        return int(self.lo.size)

    @classmethod
    def from_layout(cls, layout: Layout, scale: NDArray[np.float32] | None = None) -> Domain:
        """The domain of encoded records, as the critic sees them: ``(point - layout.center) * scale``.

        ``scale`` (dim,) is public and greater than 0, 1 everywhere by default. The ends are moved outward by
        one float32 step, because the difference may round up or down. So may the product.

        Examples
        --------
        >>> domain = Domain.from_layout(Layout(1, ((1, 3),)), np.float32([1, 3, 3]))
        >>> domain.hi.round(3).tolist(), round(domain.radius**2, 3)  # 1/4 + 9 (1 - 1/2)
        ([0.5, 1.5, 1.5], 4.75)
        """
        center = np.asarray(layout.center, float)
        lo, hi = (0.0 - center).astype(np.float32), (1.0 - center).astype(np.float32)
        lo = np.nextafter(lo, np.float32(-np.inf))
        hi = np.nextafter(hi, np.float32(np.inf))
        if scale is None:
            return cls(lo, hi, tuple(layout.groups), layout.radius * (1.0 + _RADIUS_SLACK))
        factor = np.asarray(scale, np.float32)
        if factor.shape != lo.shape or not (np.isfinite(factor).all() and (factor > 0).all()):
            raise InputError(f"scale must be {lo.size} finite numbers greater than 0, got {scale!r:.80}")
        squares = factor.astype(float) ** 2
        squared = squares[: layout.n_numeric].sum() / 4.0
        for start, stop in layout.groups:
            # One entry of m is at 1 - 1/m and the others at -1/m, so the norm depends on which one it is.
            away = center[start] ** 2 * squares[start:stop]
            squared += (away.sum() - away + (1.0 - center[start]) ** 2 * squares[start:stop]).max()
        lo = np.nextafter(lo * factor, np.float32(-np.inf))
        hi = np.nextafter(hi * factor, np.float32(np.inf))
        return cls(lo, hi, tuple(layout.groups), float(np.sqrt(squared)) * (1.0 + _RADIUS_SLACK))

    @classmethod
    def box(cls, lo: ArrayLike, hi: ArrayLike) -> Domain:
        """A plain box. Its radius is the norm of its farthest corner."""
        low, high = np.asarray(lo, np.float32), np.asarray(hi, np.float32)
        farthest = np.maximum(np.abs(low), np.abs(high)).astype(float)
        return cls(low, high, (), float(np.linalg.norm(farthest)) * (1.0 + _RADIUS_SLACK))
