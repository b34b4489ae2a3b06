"""Poisson sampling: every record joins a batch independently with one probability.

This is the sampler that `PoissonSampledDpEvent` describes (Abadi et al. 2016; Mironov, Talwar and Zhang
2019). Samples are as secret as noise.

A batch's size is binomial, and given its size every set of records is as likely as another. So a size is
drawn, and then different records: work in proportion to the batch, not to all records. Sizes come from the
distribution function in integers of 256 bits (`BinomialSizes`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Self

import numpy as np
from numpy.typing import NDArray

from dpsynth.checks import in_range, whole

#: Bits of the distribution function, and those that nearly always decide.
_BITS, _FIRST = 256, 64


@dataclass(frozen=True)
class BinomialSizes:
    """Binomial distribution of n trials of one probability, in integers.

    ``smallest``: least size.
    ``ends``: 2^256 times the probability of at most each size, rounded down, but for the last.
    ``first``, shape (sizes,): the first 64 bits of each.

    Weights of the sizes follow from that of the most likely one, 2^320, by exact ratios, rounded down. So
    each end is wrong by less than 2^-230, and the sizes that are left out have less together.
    """

    smallest: int
    ends: tuple[int, ...]
    first: NDArray[np.uint64]

    @classmethod
    @lru_cache(maxsize=16)
    def of(cls, n: int, prob: float) -> Self:
        """Of n records that join with ``prob``, both public or not."""
        yes, whole_part = prob.as_integer_ratio()
        no = whole_part - yes
        mode = min(n, (n + 1) * yes // whole_part)
        up, down = [1 << (_BITS + _FIRST)], list[int]()
        for k in range(mode, n):
            weight = up[-1] * (n - k) * yes // ((k + 1) * no) if no else 0
            if not weight:
                break
            up.append(weight)
        weight = up[0]
        for k in range(mode, 0, -1):
            weight = weight * k * no // ((n - k + 1) * yes)
            if not weight:
                break
            down.append(weight)
        weights = [*reversed(down), *up]
        total, below, ends = sum(weights), 0, list[int]()
        for weight in weights[:-1]:
            below += weight
            ends.append((below << _BITS) // total)
        first = np.array([end >> (_BITS - _FIRST) for end in ends], np.uint64)
        return cls(mode - len(down), tuple(ends), first)

    def draw(self, rng: np.random.Generator, count: int) -> NDArray[np.int64]:
        """Sizes, shape (count,)."""
        bits = rng.integers(0, 2**_FIRST, count, dtype=np.uint64)
        found = np.searchsorted(self.first, bits, side="right")
        least = np.searchsorted(self.first, bits, side="left")
        for i in np.flatnonzero(found > least):  # more bits decide, once in 2^64 by each end
            rest = int.from_bytes(rng.bytes((_BITS - _FIRST) // 8), "big")
            number = (int(bits[i]) << (_BITS - _FIRST)) + rest
            found[i] = sum(end <= number for end in self.ends)
        return found + self.smallest


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
    law = BinomialSizes.of(int(n_records), float(sampling_prob))
    sizes = law.draw(rng, steps)
    width, most = capacity, int(sizes.max(initial=0))
    if most > capacity:
        eighth = max(1, capacity // 8)
        width += eighth * -(-(most - capacity) // eighth)
    batches = np.full((steps, width), -1, np.int32)
    for batch, size in zip(batches, sizes, strict=True):
        batch[:size] = np.sort(rng.choice(n_records, size, replace=False, shuffle=False).astype(np.int32))
    return batches
