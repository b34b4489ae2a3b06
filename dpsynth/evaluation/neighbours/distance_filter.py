"""Squared Euclidean distances by a matrix product, with a bound of their error.

Points are shifted to the centre of the set and scaled by a power of two. A product of p = d + 2
terms, summed in any order, errs by at most ``p u / (1 - p u)`` times the sum of |terms| (Higham 2002, section
3.1), u the unit roundoff; that sum is at most ``|x| |y| + |x|**2/2 + |y|**2/2`` =: s. Rounding the factors
adds less than ``4 u s`` and the differences that the result is compared with less than ``(p + 2) u s``, so
``2 (p + 4) u s`` bounds the error of half a squared distance; a last term covers underflow. Whole numbers
small enough for exact products need no margin.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

#: beyond this, squares could overflow and the filter is not used
_LARGEST = 1e140


@dataclass(frozen=True)
class DistanceFilter:
    """Half squared distances as one matrix product: (x, |x|^2/2, 1) . (-y, 1, |y|^2/2).

    Attributes
    ----------
    right : ndarray of float32 or float64 of shape (d + 2, m)
        The factor of the set.
    centre : ndarray of shape (d,)
    scale : float
        A power of two.
    largest : float
        Upper limit of |y|, moved and scaled.
    exact : bool
        Whether the set consists of whole numbers small enough for exact products.
    """

    right: NDArray[Any]
    centre: Floats
    scale: float
    largest: float
    exact: bool

    @classmethod
    def of(cls, others: Floats, order: Integers, double: bool) -> DistanceFilter | None:
        """Prepare a set, its members in the given order; None where squares could overflow."""
        centre = others.mean(axis=0)
        if not np.abs(others).max() < _LARGEST:
            return None
        dtype = np.float64 if double else np.float32
        spread = np.abs(others - centre).max()
        exact = bool(np.all(others == np.rint(others))) and _fits(others, dtype)
        if exact:
            centre, scale = np.zeros(others.shape[1]), 1.0
        else:
            # A power of two, so that scaling rounds nothing.
            scale = float(2.0 ** -np.ceil(np.log2(spread))) if spread > 1e-140 else 1.0
        moved = (others[order] - centre) * scale
        half = 0.5 * np.einsum("ij,ij->i", moved, moved)
        right = np.empty((others.shape[1] + 2, len(others)), dtype=dtype)
        right[:-2], right[-2], right[-1] = -moved.T, 1.0, half
        return cls(right, centre, scale, float(np.sqrt(2.0 * half.max())), exact)

    def rows(self, points: Floats) -> tuple[NDArray[Any], Floats, float] | tuple[None, Floats, float]:
        """Return the factor of some points, a bound of the error of each, and what to multiply products by.

        The factor is None where the points are too large or too far from the set. Products times the
        multiplier are squared distances, within the bound.

        Examples
        --------
        >>> line = np.array([[0.25], [1.25]])
        >>> prepared = DistanceFilter.of(line, np.arange(2), False)
        >>> left, bound, multiplier = prepared.rows(np.array([[3.25]]))
        >>> (left @ prepared.right * multiplier).tolist(), bool(bound < 1e-4)
        ([[9.0, 4.0]], True)
        """
        if not np.abs(points).max() < _LARGEST or not np.abs(points - self.centre).max() * self.scale < 1e15:
            return None, np.zeros(len(points)), 1.0
        moved = (points - self.centre) * self.scale
        half = 0.5 * np.einsum("ij,ij->i", moved, moved)
        left = np.empty((len(points), points.shape[1] + 2), dtype=self.right.dtype)
        left[:, :-2], left[:, -2], left[:, -1] = moved, half, 1.0
        factor = 2.0 / self.scale**2
        if self.exact and bool(np.all(points == np.rint(points))) and _fits(points, self.right.dtype):
            return left, np.zeros(len(points)), factor
        numbers = np.finfo(self.right.dtype)
        unit = float(numbers.eps) / 2.0
        total = np.sqrt(2.0 * half) * self.largest + half + 0.5 * self.largest**2
        terms = left.shape[1]
        margin = 2.0 * (terms + 4) * unit * total * (1.0 + 1e-3) + 64.0 * terms * float(numbers.tiny)
        return left, margin * factor, factor


def _fits(points: Floats, dtype: Any) -> bool:
    """Whether whole numbers give exact products: all partial sums of both factors stay representable."""
    largest = np.einsum("ij,ij->i", points, points).max()
    return bool(largest < 2.0 ** (np.finfo(dtype).nmant - 2))
