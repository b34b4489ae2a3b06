"""Practical membership privacy (PMP): can an attacker who has only the parent set recognise members?

Lowy and others 2024, "Why does differential privacy with large epsilon defend against practical membership
inference attacks?", Definitions 2 and 7, Lemmas 3, 6 and 14, Propositions 5 and 9. A parent set X has 2n
records and the data D are a uniformly random half of it. A mechanism A is (epsilon, delta)-PMP with respect
to X if for every record x and event S ``P(A(D) in S | x in D) <= e^epsilon P(A(D) in S | x not in D) +
delta``. The same must hold with the two sides exchanged. Under replace-one adjacency epsilon-DP implies
epsilon-PMP. With n = 1 they are the same.

PMP does not compose. A number computed from a private parent set spends no privacy budget. It is confidential
and does not enter the ledger.

Here are any mechanism with finitely many outputs (:func:`mechanism_pmp`) and the exponential mechanism. The
Gaussian mechanism on a mean is in :mod:`dpsynth.research.papers.lowy_gaussian`. All halves are enumerated if
they can be. Else random ones give an estimate with an error bar. Everything is in logarithms.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain, combinations
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dpsynth.checks import in_range, inside, whole
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


def halves_of_parents(
    parent: Any, halves: int | None = None, rng: np.random.Generator | None = None
) -> Halves:
    """Return all halves of a parent set, or ``halves`` random ones."""
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
    for block in row_blocks(count, records):
        rows = block.stop - block.start
        chosen = np.fromiter(members, dtype=np.intp, count=rows * (records // 2)).reshape(rows, -1)
        np.put_along_axis(mask[block], chosen, True, axis=1)
    return Halves(mask)


def _random_halves(records: int, halves: int, rng: np.random.Generator) -> Halves:
    mask = np.zeros((halves, records), dtype=bool)
    swapped = np.zeros_like(mask)
    for block in row_blocks(halves, records):
        order = rng.random((block.stop - block.start, records)).argsort(axis=1)
        np.put_along_axis(mask[block], order[:, : records // 2], True, axis=1)
        # all members but the first, and the last of the others
        np.put_along_axis(swapped[block], order[:, 1 : records // 2], True, axis=1)
        np.put_along_axis(swapped[block], order[:, -1:], True, axis=1)
    return Halves(mask, swapped)


def row_blocks(rows: int, columns: int) -> Iterator[slice]:
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
                    "numbers that are kept. Pass a smaller halves=, fewer outputs, or the loss as a MeanLoss"
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
        max(np.abs(_difference(logs(block), swapped(block))).max() for block in row_blocks(halves, columns))
    )


def record_log_ratios(mask: np.ndarray, logs: HalfTable, *, sampled: bool) -> tuple[np.ndarray, np.ndarray]:
    """Compare, for every record and output, the halves with the record and those without.

    ``logs`` has log probabilities of the outputs on the halves of ``mask``. Returns ``log P(w | x in D) -
    log P(w | x not in D)``, shape (2n, m), and its standard error by the delta method, 0 unless ``sampled``.
    """
    outputs = logs(slice(0, 1)).shape[1]
    sums = np.full((2, mask.shape[1], outputs), -np.inf)
    squares = sums.copy()
    for block in row_blocks(len(mask), max(outputs, mask.shape[1])):
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


@dataclass(frozen=True)
class PracticalMembershipPrivacy:
    """Bounds on what an attacker who has the parent set, and nothing else, can learn about membership.

    ``epsilon_pmp`` is the smallest epsilon for which the mechanism is epsilon-PMP with respect to the parent
    set. It is the largest of ``record_epsilons``: for each record the largest ``|log ratio|`` over outputs.
    From random halves it is an estimate, on average too large, with the error bar ``standard_error`` (0 if
    exact). ``epsilon_parent`` is epsilon of DP restricted to the parent set (the paper's epsilon_X). It is
    the largest ``|log ratio|`` between two halves that differ in one record. From random halves it is a lower
    estimate. ``halves`` is how many were used, ``exact`` whether those were all of them.
    """

    epsilon_pmp: float
    standard_error: float
    record_epsilons: tuple[float, ...]
    epsilon_parent: float
    halves: int
    exact: bool

    @property
    def attack_accuracy(self) -> float:
        """Bound on the accuracy of every attack of this kind (Lemma 6). An estimate if not ``exact``."""
        return attack_accuracy(self.epsilon_pmp)


def attack_accuracy(epsilon: float, delta: float = 0.0) -> float:
    """Largest accuracy of any membership attack on an (epsilon, delta)-PMP mechanism, in [1/2, 1] (Lemma 6).

    It is ``(e^epsilon + delta) / (1 + e^epsilon)``: half the parent set are members, so guessing alone is
    right with probability 1/2.
    """
    epsilon = in_range("epsilon", epsilon, 0.0, math.inf)
    delta = in_range("delta", delta, 0.0, 1.0)
    small = math.exp(-epsilon)
    return (1.0 + delta * small) / (1.0 + small)  # Lemma 6, divided by e^epsilon


def mechanism_pmp(
    parent: Any,
    probabilities: Callable[[Any], ArrayLike],
    *,
    halves: int | None = None,
    rng: np.random.Generator | None = None,
) -> PracticalMembershipPrivacy:
    """Practical membership privacy of a mechanism with finitely many outputs (Definition 2 with delta 0).

    For discrete outputs it is enough to look at single outputs (Lemma 3). An output that only halves with a
    record can have makes its epsilon infinite.

    Parameters
    ----------
    parent : DataFrame or array
        The parent set, one record a row, an even number of rows. Equal rows count as different people.
    probabilities : callable
        Takes n rows of ``parent``, in their order there. Returns the probability of each output, shape (m,),
        with the same outputs in the same order for any rows.
    halves : int, optional
        Number of random halves (at least 100). By default all halves are enumerated.
    rng : numpy.random.Generator, optional
        Chooses the halves. By default it is seeded by the operating system.

    Examples
    --------
    Whether the sum of two of four numbers is odd says nothing about any one of them, although two adjacent
    halves give themselves away for certain (Proposition 5: PMP without DP):

    >>> result = mechanism_pmp(np.arange(4), lambda records: np.eye(2)[records.sum() % 2])
    >>> result.epsilon_pmp, result.epsilon_parent
    (0.0, inf)
    """
    design = halves_of_parents(parent, halves, rng)

    def log_probabilities(records: Any) -> np.ndarray:
        row = np.asarray(probabilities(records), dtype=float)
        if row.ndim != 1 or not np.all(row >= 0.0) or abs(row.sum() - 1.0) > 1e-9:
            raise InputError("probabilities must return numbers of at least 0 whose sum is 1, shape (m,)")
        with np.errstate(divide="ignore"):
            return np.log(row)

    logs = tabulated(parent, design.mask, log_probabilities)
    if design.swapped is None:
        gap = adjacent_gap(design.mask, logs(slice(None)))
    else:
        gap = sampled_gap(len(design.mask), logs, tabulated(parent, design.swapped, log_probabilities))
    return summarise_halves(design, logs, gap)


def summarise_halves(design: Halves, logs: HalfTable, epsilon_parent: float) -> PracticalMembershipPrivacy:
    """Compare each record's halves with the others.

    The largest of many noisy ratios is on average too large. It need not belong to the pair of record and
    output with the largest true ratio. So the error bar is the largest standard error among all pairs that
    come within three of their own standard errors of the maximum. It says nothing if a few halves carry
    nearly all the weight of an output, which shows as a bar of about 1 or more.
    """
    exact = design.swapped is None
    ratios, errors = record_log_ratios(design.mask, logs, sampled=not exact)
    sizes = np.abs(ratios)
    largest = float(sizes.max())
    error = float(errors[sizes + 3.0 * errors >= largest].max()) if math.isfinite(largest) else math.inf
    per_record = tuple(sizes.max(axis=1).tolist())
    return PracticalMembershipPrivacy(
        largest, 0.0 if exact else error, per_record, epsilon_parent, len(design.mask), exact
    )


@dataclass(frozen=True)
class MeanLoss:
    """A loss that is the mean of a loss of each record, so that one matrix product serves all halves.

    ``record_loss`` takes k records and m outputs and returns the loss of each record at each output, shape
    (k, m).
    """

    record_loss: Callable[[Any, Any], ArrayLike]

    def __call__(self, records: Any, outputs: Any) -> np.ndarray:
        """Return the mean loss of the records at each output, shape (m,)."""
        return np.asarray(self.record_loss(records, outputs), dtype=float).mean(axis=0)


def exponential_pmp(
    parent: Any,
    loss: Callable[[Any, Any], ArrayLike],
    outputs: Any,
    epsilon: float,
    *,
    sensitivity: float,
    halves: int | None = None,
    rng: np.random.Generator | None = None,
) -> PracticalMembershipPrivacy:
    """Practical membership privacy of the exponential mechanism on a parent set (Proposition 9).

    With data D the mechanism chooses output w with a probability ``p_D(w)`` proportional to ``exp(-epsilon
    loss(D, w) / (2 sensitivity))`` (Definition 7). This epsilon_PMP compares the sum of ``p_D(w)`` over the
    halves with a record with the sum over those without. If exact, ``epsilon_pmp <= epsilon_parent <=
    epsilon``.

    Parameters
    ----------
    parent, halves, rng
        As in :func:`mechanism_pmp`. Enumeration is refused for more than 24 records.
    loss : MeanLoss or callable
        ``loss(records, outputs)`` is the loss of n records at each output, shape (m,). A :class:`MeanLoss` is
        far quicker than any other callable, which is called once for each half.
    outputs : array, DataFrame or sequence
        The choices of the mechanism. Only ``loss`` looks at them.
    epsilon : float
        Epsilon of the mechanism, at least 0 and finite, under replace-one adjacency.
    sensitivity : float
        Largest change of the loss at any output when one record is replaced, over all data. InputError if the
        loss moves more than that on this parent set.

    Examples
    --------
    >>> ages = np.array([0.0, 0.1, 0.3, 0.35, 0.6, 1.0])
    >>> result = exponential_pmp(
    ...     ages, lambda records, outputs: np.abs(records.mean() - outputs), np.linspace(0, 1, 5), 5.0,
    ...     sensitivity=1 / 3,
    ... )
    >>> round(result.epsilon_pmp, 6), round(result.epsilon_parent, 4), round(result.attack_accuracy, 4)
    (1.870415, 2.8396, 0.8665)
    """
    from scipy.special import log_softmax

    epsilon = in_range("epsilon", epsilon, 0.0, math.inf, high_open=True)
    design = halves_of_parents(parent, halves, rng)
    sensitivity = inside("sensitivity", sensitivity, 0.0, math.inf)
    scale = epsilon / sensitivity / 2
    per_record = None
    if isinstance(loss, MeanLoss):
        per_record = _finite(loss.record_loss(parent, outputs), 2)
        if len(per_record) != len(parent):
            raise InputError(f"record_loss must return one row for each record, not {len(per_record)} rows")

    def losses_of(mask: np.ndarray) -> HalfTable:
        if per_record is None:
            return tabulated(parent, mask, lambda records: _finite(loss(records, outputs), 1))
        return lambda block: mask[block].astype(float) @ per_record / (len(per_record) // 2)

    def log_probabilities(losses: HalfTable) -> HalfTable:  # Definition 7
        return lambda block: log_softmax(-scale * losses(block), axis=1)

    losses = losses_of(design.mask)
    largest = float(np.abs(losses(slice(None)) if per_record is None else per_record).max())
    if not math.isfinite(2 * scale * largest):
        raise InputError(f"epsilon * loss / sensitivity overflows at epsilon {epsilon:g}")
    logs = log_probabilities(losses)
    if design.swapped is not None:
        gap = sampled_gap(len(design.mask), logs, log_probabilities(losses_of(design.swapped)))
    elif per_record is None:
        gap = adjacent_gap(design.mask, logs(slice(None)))
    else:
        gap = _mean_gap(design.mask, losses, scale, per_record)
    if gap > epsilon * (1 + 1e-9) + 1e-9:
        raise InputError(
            f"sensitivity is {sensitivity:g}, but this loss changes by more when one record of the parent "
            f"set is replaced. Epsilon is then at least {gap:g}, not {epsilon:g}"
        )
    return summarise_halves(design, logs, gap)


def _mean_gap(mask: np.ndarray, losses: HalfTable, scale: float, per_record: np.ndarray) -> float:
    # Swapping x for x' adds (loss(x', w) - loss(x, w)) / n to the mean loss of every half with x but not
    # x', so only the normalising constants differ from half to half: one number instead of m.
    from scipy.special import logsumexp

    parts = row_blocks(len(mask), per_record.shape[1])
    constants = np.concatenate([logsumexp(-scale * losses(block), axis=1) for block in parts])
    per_swap = scale * per_record / (len(per_record) // 2)
    largest = 0.0
    for i, j, left, right in adjacent_pairs(mask):
        shift = per_swap[j] - per_swap[i]
        change = constants[right] - constants[left]
        largest = max(largest, shift.max() + change.max(), -(shift.min() + change.min()))
    return float(largest)


def _finite(values: ArrayLike, dimensions: int) -> np.ndarray:
    array = np.asarray(values, dtype=float)
    if array.ndim != dimensions or array.shape[-1] == 0 or not np.all(np.isfinite(array)):
        wanted = "(m,)" if dimensions == 1 else "(k, m)"
        raise InputError(f"loss must return finite numbers of shape {wanted}, with at least one output")
    return array
