"""Poisson sampling: every record joins a batch independently with one probability.

This is the sampler that `PoissonSampledDpEvent` describes (Abadi et al. 2016; Mironov, Talwar and Zhang
2019). Samples are as secret as noise.

How many records stand between one that joins and the next is geometric, whatever came before. So these gaps
are drawn: work in proportion to the batch, not to all records, and no record comes twice. Gaps come from the
distribution function in integers of 256 bits (`Gaps`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Self

import numpy as np
from numpy.typing import NDArray

from dpsynth.checks import in_range, whole

#: Bits of a distribution function, those that nearly always decide, and those that mostly do.
_BITS, _FIRST, _CELL = 256, 64, 16
#: Bits to which powers are computed.
_EXACT = _BITS + 64
#: Most values of the last digit of a gap, and the base of those before it (a power of 2).
_MOST, _BASE_BITS = 1 << 15, 12
#: Gaps that are drawn at once: they stay in the processor's cache.
_BLOCK = 1 << 15


@dataclass(frozen=True, eq=False)
class Digits:
    """Whole numbers from 0 of one distribution, in integers.

    ``ends``: 2^256 times the probability of at most each number, rounded down, but for the last.
    ``first``, shape (ends,): the first 64 bits of each.
    ``cells``, shape (2^16,): the number that 16 bits decide, or -1.
    """

    ends: tuple[int, ...]
    first: NDArray[np.uint64]
    cells: NDArray[np.int32]

    @classmethod
    def of(cls, ends: list[int]) -> Self:
        """By the ends alone."""
        first = np.array([end >> (_BITS - _FIRST) for end in ends], np.uint64)
        places, cell = first >> np.uint64(_FIRST - _CELL), np.arange(1 << _CELL, dtype=np.uint64)
        below = np.searchsorted(places, cell, side="left")
        alike = below == np.searchsorted(places, cell, side="right")
        return cls(tuple(ends), first, np.where(alike, below, -1).astype(np.int32))

    def draw(self, rng: np.random.Generator, count: int) -> NDArray[np.int32]:
        """Numbers, shape (count,)."""
        bits = _words(rng, -(-count // 4)).view(np.uint16)[:count]
        found = self.cells.take(bits, mode="wrap")  # all are in range: this mode does not look
        unsure = np.flatnonzero(found < 0)
        if unsure.size:
            rest = _words(rng, unsure.size) >> np.uint64(_CELL)
            longer = (bits[unsure].astype(np.uint64) << np.uint64(_FIRST - _CELL)) + rest
            numbers = np.searchsorted(self.first, longer, side="right")
            for i in np.flatnonzero(self.first[numbers - 1] == longer):  # more bits decide, once in 2^64
                more = int.from_bytes(rng.bytes((_BITS - _FIRST) // 8), "big")
                number = (int(longer[i]) << (_BITS - _FIRST)) + more
                numbers[i] = sum(end <= number for end in self.ends)
            found[unsure] = numbers
        return found


def _words(rng: np.random.Generator, count: int) -> NDArray[np.uint64]:
    return rng.integers(0, 1 << _FIRST, count, dtype=np.uint64)


@dataclass(frozen=True)
class Gaps:
    """Geometric distribution: trials that fail before one succeeds, in digits to the base of 4,096.

    A geometric number of failing probability f has independent digits: the lowest is geometric up to the base
    b, and the number of whole b is geometric of failing probability f^b. The last digit has no bound. Numbers
    of ``trials`` and more are one.

    ``digits``, lowest first: all but the last below the base.

    Powers of f have 320 bits, rounded down. So each end is wrong by less than 2^-230.
    """

    digits: tuple[Digits, ...]

    @classmethod
    @lru_cache(maxsize=8)
    def of(cls, prob: float, trials: int) -> Self:
        """Before a success of probability ``prob``, public or not."""
        yes, whole_part = prob.as_integer_ratio()
        fail, unit, digits = ((whole_part - yes) << _EXACT) // whole_part, 1, list[Digits]()
        rate = -math.log1p(-prob) if prob < 1.0 else math.inf
        while min(trials / unit, _BITS * math.log(2.0) / (unit * rate) if rate else math.inf) > _MOST:
            weights = [1 << _EXACT]
            while len(weights) < 1 << _BASE_BITS:
                weights.append(weights[-1] * fail >> _EXACT)
            total, below, ends = sum(weights), 0, list[int]()
            for weight in weights[:-1]:
                below += weight
                ends.append((below << _BITS) // total)
            digits.append(Digits.of(ends))
            unit <<= _BASE_BITS
            for _ in range(_BASE_BITS):
                fail = fail * fail >> _EXACT
        left, ends = fail, []
        while left >> (_EXACT - _BITS) and len(ends) * unit < trials:
            ends.append(((1 << _EXACT) - left) >> (_EXACT - _BITS))
            left = left * fail >> _EXACT
        return cls((*digits, Digits.of(ends)))

    def draw(self, rng: np.random.Generator, count: int) -> NDArray[np.int64]:
        """Gaps, shape (count,)."""
        gaps = self.digits[0].draw(rng, count).astype(np.int64)
        for place, digit in enumerate(self.digits[1:], 1):
            gaps += digit.draw(rng, count).astype(np.int64) << (place * _BASE_BITS)
        return gaps


def successes(rng: np.random.Generator, prob: float, trials: int) -> NDArray[np.int64]:
    """Which of ``trials`` independent trials succeed, in increasing order."""
    law, found, last = Gaps.of(prob, trials), [np.zeros(0, np.int64)], -1
    while last < trials:
        expected = (trials - last) * prob
        after = law.draw(rng, min(int(expected + 6 * math.sqrt(expected)) + 8, _BLOCK))
        after += 1
        after[0] += last
        found.append(np.cumsum(after, out=after))
        last = int(after[-1])
    found[-1] = found[-1][: np.searchsorted(found[-1], trials)]
    return np.concatenate(found)


def poisson_batches(
    rng: np.random.Generator, n_records: int, sampling_prob: float, steps: int, capacity: int
) -> NDArray[np.int32]:
    """Record indices of ``steps`` Poisson-sampled batches.

    Batches are never cut. If one has more than ``capacity`` records, the whole array becomes wider by whole
    eighths of the capacity, so few widths occur. Nothing is added to delta for an overflow, and the guarantee
    of `PoissonSampledDpEvent` holds for every number of records. The width and the realised batch sizes are
    confidential.

    Parameters
    ----------
    rng : numpy.random.Generator
        Secret.
    n_records : int
        Rows that may be sampled, at least 0.
    sampling_prob : float
        In [0, 1].
    steps, capacity : int
        Number of batches, at least 0, and their smallest width, at least 1.

    Returns
    -------
    ndarray (steps, width) of int32, width >= capacity
        Indices in increasing order, then -1. ``(batches >= 0).sum(axis=1)`` are the realised sizes.

    Raises
    ------
    InputError
        If an argument is out of range.

    Examples
    --------
    >>> poisson_batches(np.random.default_rng(0), 3, 1.0, steps=2, capacity=4)
    array([[ 0,  1,  2, -1],
           [ 0,  1,  2, -1]], dtype=int32)
    """
    in_range("n_records", n_records, 0, 2**31, high_open=True)
    in_range("sampling_prob", sampling_prob, 0.0, 1.0)
    whole("steps", steps, 0)
    whole("capacity", capacity)
    # The batches of all steps are one sequence of trials.
    joined = successes(rng, float(sampling_prob), int(n_records) * steps)
    starts = int(n_records) * np.arange(steps + 1)
    places = np.searchsorted(joined, starts)
    width, most = capacity, int(np.diff(places).max(initial=0))
    if most > capacity:
        eighth = max(1, capacity // 8)
        width += eighth * -(-(most - capacity) // eighth)
    batches = np.full((steps, width), -1, np.int32)
    for batch, start, a, b in zip(batches, starts, places, places[1:], strict=False):
        batch[: b - a] = joined[a:b] - start
    return batches
