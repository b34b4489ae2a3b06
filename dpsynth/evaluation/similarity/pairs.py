"""Means over pairs of columns: over all pairs up to 200 columns, else over a random part of them.

More columns are divided at random into blocks of at most 100, and pairs within a block are scored. Each pair
is scored with the same probability. The cost then grows with the number of columns, not with its square.

The standard error is that of a simple random sample of as many pairs. Blocks have no larger one: each column
has as many scored pairs, so differences between columns cancel.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
#: positions of columns whose pairs are scored
Block = NDArray[np.intp]

#: columns up to which all pairs are scored
ALL_PAIRS = 200
#: columns of a block, at most
_MOST = 100


@dataclass(frozen=True)
class PairMean:
    """A mean over pairs. ``error`` is the standard error because a part is scored, None if all are."""

    value: float
    error: float | None = None


def blocks(columns: int, rng: np.random.Generator) -> tuple[Block, ...]:
    """Divide columns into blocks. Up to 200 columns are one block, and no random number is drawn.

    Examples
    --------
    >>> [len(block) for block in blocks(330, np.random.default_rng(0))]
    [83, 83, 82, 82]
    """
    if columns <= ALL_PAIRS:
        return (np.arange(columns),)
    parts = np.array_split(rng.permutation(columns), math.ceil(columns / _MOST))
    return tuple(np.sort(part) for part in parts)


def pairs_of(columns: int) -> int:
    """Return the number of pairs of different columns.

    Examples
    --------
    >>> pairs_of(4)
    6
    """
    return columns * (columns - 1) // 2


def pair_mean(top: Floats, bottom: Floats, pairs: int) -> PairMean | None:
    """Return the sum of ``top`` over that of ``bottom``, of shape (scored pairs,), out of so many pairs.

    The error is that of a ratio, by linearisation. None if ``bottom`` has no positive number.

    Examples
    --------
    >>> pair_mean(np.array([0.1, 0.3]), np.ones(2), 2)
    PairMean(value=0.2, error=None)
    >>> round(pair_mean(np.array([0.1, 0.3]), np.ones(2), 4).error, 3)
    0.071
    """
    total = float(bottom.sum())
    if not total > 0.0:
        return None
    value, scored = float(top.sum()) / total, len(top)
    if scored == pairs:
        return PairMean(value)
    spread = float((top - value * bottom).std(ddof=1))
    return PairMean(value, spread * math.sqrt(scored * (1.0 - scored / pairs)) / total)
