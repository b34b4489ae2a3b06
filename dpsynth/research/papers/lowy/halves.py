"""Halves of a parent set, what a mechanism does on each, and how far its outputs give a record away.

The computations behind Definition 2 and Proposition 9 of Lowy and others 2024 (see
:mod:`dpsynth.research.papers.lowy.definition`): all halves where they can be enumerated, else random ones
with error bars. All of it is in logarithms, so that the probability of an output may be as small as it likes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain, combinations
from typing import Any

import numpy as np

from dpsynth.checks import whole
from dpsynth.errors import InputError

#: Most halves that are enumerated: all of a parent set of 24 records.
MOST_HALVES = 3_000_000
#: Most numbers in a table with one row for each half and one column for each output (256 MiB).
MOST_CELLS = 2**25
#: Fewest random halves: with fewer, a record may well be in all of them or in none.
FEWEST_HALVES = 100
_BLOCK_CELLS = 2**21

#: The numbers of some halves, one row for each and one column for each output; the argument picks rows.
HalfTable = Callable[[slice], np.ndarray]


@dataclass(frozen=True)
class Halves:
    """Halves of a parent set: all of them in lexicographic order, or random ones each with a neighbour.

    ``mask``, of shape (halves, 2n), says which records each half has. For random halves ``swapped``, of the
    same shape, is the half in which one random member gave way to one random other record.
    """

    mask: np.ndarray
    swapped: np.ndarray | None = None


def halves_of(parent: Any, halves: int | None = None, rng: np.random.Generator | None = None) -> Halves:
    """Return all halves of a parent set, or ``halves`` random ones.

    Raises
    ------
    InputError
        If the parent set cannot be halved, or has more halves than can be enumerated and ``halves`` is None.
    """
    if np.ndim(parent) not in (1, 2):
        raise InputError("parent must be a table or an array with one record a row")
    records = len(parent)
    if records < 2 or records % 2:
        raise InputError(f"parent must have an even number of records, at least 2, not {records}")
    if halves is not None:
        count = whole("halves", halves, FEWEST_HALVES)
        return _random_halves(records, count, np.random.default_rng() if rng is None else rng)
    count = math.comb(records, records // 2)
    if count > MOST_HALVES:
        raise InputError(
            f"parent has {records} records and so more than the {MOST_HALVES} halves that can be enumerated: "
            "pass halves= to estimate from random halves"
        )
    members = chain.from_iterable(combinations(range(records), records // 2))
    mask = np.zeros((count, records), dtype=bool)
    for block in blocks(count, records):
        rows = block.stop - block.start
        chosen = np.fromiter(members, dtype=np.intp, count=rows * (records // 2)).reshape(rows, -1)
        np.put_along_axis(mask[block], chosen, True, axis=1)
    return Halves(mask)


def _random_halves(records: int, halves: int, rng: np.random.Generator) -> Halves:
    mask = np.zeros((halves, records), dtype=bool)
    swapped = np.zeros_like(mask)
    for block in blocks(halves, records):
        order = rng.random((block.stop - block.start, records)).argsort(axis=1)
        np.put_along_axis(mask[block], order[:, : records // 2], True, axis=1)
        # all members but the first, and the last of the others
        np.put_along_axis(swapped[block], order[:, 1 : records // 2], True, axis=1)
        np.put_along_axis(swapped[block], order[:, -1:], True, axis=1)
    return Halves(mask, swapped)


def blocks(rows: int, columns: int) -> Iterator[slice]:
    """Cut rows into blocks small enough to work on."""
    size = max(1, _BLOCK_CELLS // max(1, columns))
    return (slice(start, min(start + size, rows)) for start in range(0, rows, size))


def tabulated(parent: Any, mask: np.ndarray, function: Callable[[Any], np.ndarray]) -> HalfTable:
    """Call a function on the records of each half, which returns shape (m,), and keep what it returns."""
    taken = parent.iloc if hasattr(parent, "iloc") else np.asarray(parent)
    table = np.empty((0, 0))
    for row, half in enumerate(mask):
        values = function(taken[np.flatnonzero(half)])
        if row == 0:
            if values.size * len(mask) > MOST_CELLS:
                raise InputError(
                    f"{len(mask)} halves of {values.size} outputs each are more than the {MOST_CELLS} "
                    "numbers that are kept: pass a smaller halves=, fewer outputs, or the loss as a MeanLoss"
                )
            table = np.empty((len(mask), values.size))
        if values.shape != table.shape[1:]:
            raise InputError("the function of the records must return the same outputs for every half")
        table[row] = values
    return lambda block: table[block]


def adjacent_pairs(mask: np.ndarray) -> Iterator[tuple[int, int, np.ndarray, np.ndarray]]:
    """Pick, for each two records, the halves with only the first and, in the same order, their partners."""
    # Lexicographic order of the halves is the order of their masks read as binary numbers, and it does not
    # depend on two fixed digits: the halves with only the first record and those with only the second come
    # in the same order of their other records, so that equal positions are adjacent halves.
    columns = np.ascontiguousarray(mask.T)
    for (i, first), (j, second) in combinations(enumerate(columns), 2):
        yield i, j, first & ~second, second & ~first


def adjacent_gap(mask: np.ndarray, logs: np.ndarray) -> float:
    """Return the largest ``|log ratio|`` of adjacent halves, for all halves in lexicographic order."""
    gaps = (np.abs(_difference(logs[left], logs[right])).max() for _, _, left, right in adjacent_pairs(mask))
    return float(max(gaps))


def sampled_gap(halves: int, logs: HalfTable, swapped: HalfTable) -> float:
    """Return the largest ``|log ratio|`` between random halves and their neighbours."""
    columns = logs(slice(0, 1)).shape[1]
    return float(
        max(np.abs(_difference(logs(block), swapped(block))).max() for block in blocks(halves, columns))
    )


def record_log_ratios(mask: np.ndarray, logs: HalfTable, *, sampled: bool) -> tuple[np.ndarray, np.ndarray]:
    """Compare, for every record and output, the halves with the record and those without.

    Parameters
    ----------
    mask : ndarray of bool, shape (halves, 2n)
    logs : callable
        Log probabilities of the outputs on these halves, shape (halves, m).
    sampled : bool
        Whether the halves are random ones, so that the ratios have standard errors.

    Returns
    -------
    ratios, errors : ndarray, shape (2n, m)
        ``log P(w | x in D) - log P(w | x not in D)`` and its standard error by the delta method.
    """
    outputs = logs(slice(0, 1)).shape[1]
    sums = np.full((2, mask.shape[1], outputs), -np.inf)
    squares = sums.copy()
    for block in blocks(len(mask), max(outputs, mask.shape[1])):
        log_p = logs(block)
        sums = np.logaddexp(sums, _log_sums(log_p, mask[block]))
        if sampled:
            squares = np.logaddexp(squares, _log_sums(2.0 * log_p, mask[block]))
    inside = mask.sum(axis=0)
    counts = np.stack([inside, len(mask) - inside])[:, :, None]
    # Proposition 9: the mean of the normalised weights over the halves with x against those without
    log_means = sums - np.log(counts)
    ratios = _difference(log_means[0], log_means[1])
    if not sampled:
        return ratios, np.zeros_like(ratios)
    # Delta method: the variance of log(mean p) is var(p) / (count mean(p)^2), estimated with count - 1.
    excess = np.maximum(0.0, _difference(squares - np.log(counts), 2.0 * log_means))
    return ratios, np.sqrt((np.expm1(excess) / (counts - 1)).sum(axis=0))


def _log_sums(log_p: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """Logarithm of the sum of p over the halves with each record, and over those without, (2, 2n, m)."""
    from scipy.special import logsumexp

    offset = log_p.max(axis=0)
    offset = np.where(np.isfinite(offset), offset, 0.0)
    scaled = np.exp(log_p - offset)
    sides = np.stack([mask.T, ~mask.T])
    sums = sides.astype(float) @ scaled
    with np.errstate(divide="ignore"):
        logs = np.log(sums) + offset
    # One matrix product serves all records. Where a record's halves make an output less than e^-500 times as
    # likely as other halves do, its sum is lost in that product and is done again with its own offset.
    for side, record in np.argwhere((sums < 1e-250).any(axis=2)):
        chosen = log_p[sides[side, record]]
        if np.isfinite(chosen).any():
            with np.errstate(divide="ignore"):
                logs[side, record] = logsumexp(chosen, axis=0)
    return logs


def _difference(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """``left - right``, and 0 where both are minus infinity: an output that is impossible on both sides."""
    with np.errstate(invalid="ignore"):
        difference = left - right
    return np.where(np.isneginf(left) & np.isneginf(right), 0.0, difference)
