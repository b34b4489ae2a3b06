"""Numbers in a column that look like codes: -9, 99 or 999 apart from what is measured."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_DIGITS = range(1, 6)
_REPEATED = {float(digit * length) for digit in "789" for length in _DIGITS}
_NEGATIVE = {-float(value) for value in (*range(1, 10), *_REPEATED)}
_POSITIVE = {value for value in _REPEATED if value > 9} | {97.0, 98.0, 997.0, 998.0, 9997.0, 9998.0}
# Of the other values: a code lies half their range away where it is common, twice where it is rare.
_APART, _FAR = 0.5, 2.0
_CLOSE = 0.05  # nearer than this to the others, no code is told from them
_SPIKE = 5  # times as frequent as the values nearby
_NEARBY = 5  # how many of these are looked at


def likely_codes(distinct: Floats, counts: NDArray[np.int64]) -> Floats:
    """Return the values that look like codes, in ascending order.

    Parameters
    ----------
    distinct : ndarray, shape (k,)
        The values of a numeric column, in ascending order.
    counts : ndarray, shape (k,)
        How often each occurs.

    Examples
    --------
    >>> likely_codes(np.array([-1.0, *range(20, 90), 99.0, 999.0]), np.array([3, *[2] * 70, 12, 1])).tolist()
    [-1.0, 99.0, 999.0]
    """
    coded = np.isin(distinct, [*_NEGATIVE, *_POSITIVE])
    plain = distinct[~coded]
    if len(plain) < 3:
        return distinct[:0]
    low, high = plain[0], plain[-1]
    spread = high - low
    near = counts[~coded]
    above = (distinct - high) / spread
    below = (low - distinct) / spread
    sides = ((above, near[-_NEARBY:].max()), (below, near[:_NEARBY].max()))
    apart = np.zeros(len(distinct), dtype=bool)
    for gap, usual in sides:
        spike = (gap > _CLOSE) & (counts >= _SPIKE) & (counts >= _SPIKE * usual)
        apart |= (gap > _FAR) | ((gap > _APART) & (counts > usual)) | spike
    impossible = (distinct < 0) & (low >= 0)
    return distinct[coded & (apart | impossible)]


def codes_of_categories(distinct: Floats) -> Floats:
    """Return the category codes that stand apart: farther from the others than these are from each other.

    Parameters
    ----------
    distinct : ndarray, shape (k,)
        The values of a column of few whole numbers, in ascending order.

    Examples
    --------
    >>> codes_of_categories(np.array([0.0, 1.0, 99.0])).tolist()
    [99.0]
    >>> codes_of_categories(np.array([-2.0, -1.0, 0.0, 1.0])).tolist()
    []
    """
    coded = np.isin(distinct, [*_NEGATIVE, *_POSITIVE])
    plain, codes = distinct[~coded], distinct[coded]
    if len(plain) < 2:
        return distinct[:0]
    for code in sorted(codes, key=lambda code: float(np.abs(plain - code).min())):
        if np.abs(plain - code).min() <= np.ptp(plain):
            plain = np.append(plain, code)
    return np.setdiff1d(codes, plain)
