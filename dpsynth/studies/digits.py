"""An effect with its interval as people read it: as many decimals as the interval's width deserves."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

#: significant digits of a number that stands alone
_ALONE = 3
#: decimals beyond which, and size from which, a number is written with an exponent
_MOST_DECIMALS, _LARGE = 6, 1e7
#: nobody means numbers beyond this, or ratios below its inverse
_BOUNDLESS = 1e30
#: ends this many times apart have no digits in common
_APART = 1000.0


def interval_texts(estimate: float, lower: float, upper: float) -> tuple[str, str, str]:
    """Estimate and ends of its interval, all with the same decimals.

    The largest has three digits at least. Twice the interval's shorter side has two. If both ends have one
    sign, the one near 0 has one. If they are too far apart for that, each number has three digits of its own.
    Values that are no number are "n/a".

    Examples
    --------
    >>> interval_texts(1.0040, 0.9979, 1.0101)
    ('1.004', '0.998', '1.010')
    >>> interval_texts(14.21, 3.71, 54.4), interval_texts(251234.0, 245000.0, 257468.0)
    (('14.2', '3.7', '54.4'), ('251,234', '245,000', '257,468'))
    >>> interval_texts(1.0, 1e-4, 1e4), interval_texts(0.3, 1e-60, 1e60)
    (('1', '0.0001', '1e+04'), ('0.3', '0', '∞'))
    """
    decimals = _decimals(estimate, lower, upper)
    return _text(estimate, decimals), _text(lower, decimals), _text(upper, decimals)


def effect_texts(told: Mapping[str, Any]) -> tuple[str, str, str]:
    """The same, of a record with ``estimate``, ``lower`` and ``upper``."""
    return interval_texts(told["estimate"], told["lower"], told["upper"])


def p_text(p: float | None) -> str:
    """A p-value with three decimals and no leading zero, empty if there is none.

    >>> p_text(0.0004), p_text(0.048), p_text(1.0)
    ('<.001', '.048', '1.000')
    """
    if p is None:
        return ""
    return "<.001" if p < 0.001 else f"{p:.3f}".lstrip("0")


def aligned(rows: Sequence[Sequence[str]], sides: str) -> list[str]:
    """Rows of a table as lines of text, with each column at the left (``<``) or at the right (``>``)."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    places = [f"{{:{side}{width}}}" for side, width in zip(sides, widths, strict=True)]
    return ["  ".join(places).format(*row).rstrip() for row in rows]


def _decimals(estimate: float, lower: float, upper: float) -> int | None:
    """Number of decimals for all three, None if there is no such number."""
    finite = [abs(v) for v in (estimate, lower, upper) if math.isfinite(v)]
    sides = [side for side in (estimate - lower, upper - estimate) if math.isfinite(side) and side > 0]
    if not sides or max(finite) >= _LARGE:
        return None
    decimals = max(0, 2 - math.floor(math.log10(max(finite))), 1 - math.floor(math.log10(2.0 * min(sides))))
    if lower > 0 or upper < 0:
        if max(finite) > _APART * min(finite):
            return None
        # an end that is not zero is not written as zero
        decimals = max(decimals, -math.floor(math.log10(min(finite))))
    return decimals if decimals <= _MOST_DECIMALS else None


def _text(value: float, decimals: int | None) -> str:
    if math.isnan(value):
        return "n/a"
    if abs(value) >= _BOUNDLESS:
        return "∞" if value > 0 else "-∞"
    if 0 < value <= 1 / _BOUNDLESS:
        return "0"
    return f"{value:z.{_ALONE}g}" if decimals is None else f"{value:z,.{decimals}f}"
