"""Poisson sampling: every record joins a batch independently with one probability.

This is the sampler that `PoissonSampledDpEvent` describes (Abadi et al. 2016; Mironov, Talwar and Zhang
2019). Masks are as secret as noise.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dpsynth.checks import in_range, whole

# Random 16-bit numbers held at a time.
_MASK_BLOCK = 1 << 22


def _included(rng: np.random.Generator, shape: tuple[int, int], prob: float) -> NDArray[np.bool_]:
    """Independent events of probability ``prob``, to 2^-69.

    ``U < prob`` for a uniform U is decided by U's first 16 bits unless they equal those of ``prob``. In that
    case, once in 65,536, the next 53 bits are drawn. A float of more bits is rounded up to 2^-69.
    """
    scaled = prob * 65536.0  # exact: a power of two
    first = int(scaled)
    bits = rng.integers(0, 65536, size=shape, dtype=np.uint16)
    mask = bits < first if first < 65536 else np.ones(shape, bool)
    rows, columns = np.nonzero(bits == first) if first < 65536 else (np.empty(0, int), np.empty(0, int))
    mask[rows, columns] = rng.random(rows.size) < scaled - first
    return mask


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
    pieces = []
    counts = np.zeros(steps, np.int64)
    rows = max(1, _MASK_BLOCK // max(n_records, 1))
    for start in range(0, steps, rows):
        mask = _included(rng, (min(rows, steps - start), n_records), sampling_prob)
        counts[start : start + len(mask)] = mask.sum(axis=1)
        pieces.append((np.flatnonzero(mask) % max(n_records, 1)).astype(np.int32))
    width, most = capacity, int(counts.max(initial=0))
    if most > capacity:
        eighth = max(1, capacity // 8)
        width += eighth * -(-(most - capacity) // eighth)
    batches = np.full((steps, width), -1, np.int32)
    if pieces:
        # Row-major order of the filled places is the order in which the pieces list the records.
        batches[np.arange(width) < counts[:, None]] = np.concatenate(pieces)
    return batches
