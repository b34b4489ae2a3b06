"""Practical membership privacy of the exponential mechanism.

Lowy and others 2024, "Why does differential privacy with large epsilon defend against practical membership
inference attacks?", Definition 7 and Proposition 9: with data D the mechanism draws output w with probability
``p_D(w)`` proportional to ``exp(-epsilon loss(D, w) / (2 sensitivity))``, and epsilon_PMP compares the sum of
``p_D(w)`` over the halves with a record with the sum over those without.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dpsynth.checks import in_range, inside
from dpsynth.errors import InputError
from dpsynth.research.papers.lowy.definition import PracticalMembershipPrivacy, summarised
from dpsynth.research.papers.lowy.halves import (
    HalfTable,
    Halves,
    adjacent_gap,
    adjacent_pairs,
    blocks,
    halves_of,
    sampled_gap,
    tabulated,
)


@dataclass(frozen=True)
class MeanLoss:
    """A loss that is the mean of a loss of each record, so that one matrix product serves all halves.

    ``record_loss`` takes k records and m outputs and returns the loss of each record at each output, shape
    (k, m).

    Examples
    --------
    >>> distance = MeanLoss(lambda records, outputs: np.abs(records[:, None] - outputs))
    >>> distance(np.array([0.0, 1.0]), np.array([0.0, 0.5, 2.0])).tolist()
    [0.5, 0.5, 1.5]
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
    """Practical membership privacy of the exponential mechanism on a parent set.

    Parameters
    ----------
    parent : DataFrame or array
        The parent set, one record a row; an even number of rows. Equal rows count as different people.
    loss : MeanLoss or callable
        ``loss(records, outputs)`` is the loss of n records at each output, shape (m,). A :class:`MeanLoss` is
        far quicker than any other callable, which is called once for each half.
    outputs : array, DataFrame or sequence
        What the mechanism chooses from; only ``loss`` looks at it.
    epsilon : float
        Of the mechanism, at least 0 and finite, under replace-one adjacency.
    sensitivity : float
        Largest change of the loss at any output when one record is replaced, over all data, in units of the
        loss.
    halves : int, optional
        Number of random halves (at least 100); by default all halves are enumerated, which is refused for
        more than 24 records.
    rng : numpy.random.Generator, optional
        Draws the halves; by default it is seeded by the operating system.

    Returns
    -------
    PracticalMembershipPrivacy
        Exact if all halves were enumerated, else an estimate with an error bar.

    Raises
    ------
    InputError
        If an argument is out of range, there are too many halves to enumerate, the loss has the wrong shape
        or is not finite, or it moves more than ``sensitivity`` so that the mechanism is not epsilon-DP.

    Notes
    -----
    Lowy and others 2024, Proposition 9. ``epsilon_pmp <= epsilon_parent <= epsilon`` if exact.

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
    epsilon = in_range("epsilon", epsilon, 0.0, math.inf, high_open=True)
    losses = _HalfLosses(parent, loss, outputs, halves_of(parent, halves, rng), sensitivity)
    scale = losses.scale(epsilon)
    logs = losses.log_probabilities(scale)
    gap = losses.gap(scale, logs)
    if gap > epsilon * (1 + 1e-9) + 1e-9:
        raise InputError(
            f"sensitivity is {sensitivity:g}, but this loss changes by more when one record of the parent "
            f"set is replaced: epsilon is then at least {gap:g}, not {epsilon:g}"
        )
    return summarised(losses.design, logs, gap)


class _HalfLosses:
    """The losses of halves of a parent set, computed once where that is what takes the time."""

    def __init__(
        self,
        parent: Any,
        loss: Callable[[Any, Any], ArrayLike],
        outputs: Any,
        design: Halves,
        sensitivity: float,
    ) -> None:
        self.design = design
        self.sensitivity = inside("sensitivity", sensitivity, 0.0, math.inf)
        self._swapped: HalfTable | None = None
        self._per_record: np.ndarray | None = None
        if isinstance(loss, MeanLoss):
            rows = _finite(loss.record_loss(parent, outputs), 2)
            if len(rows) != len(parent):
                raise InputError(f"record_loss must return one row for each record, not {len(rows)} rows")
            self._per_record = rows
            self._largest = float(np.abs(rows).max())
            self._losses = _mean_of_halves(rows, design.mask)
            if design.swapped is not None:
                self._swapped = _mean_of_halves(rows, design.swapped)
        else:
            self._losses = tabulated(parent, design.mask, lambda records: _finite(loss(records, outputs), 1))
            self._largest = float(np.abs(self._losses(slice(None))).max())
            if design.swapped is not None:
                self._swapped = tabulated(
                    parent, design.swapped, lambda records: _finite(loss(records, outputs), 1)
                )

    def scale(self, epsilon: float) -> float:
        """What the loss is multiplied with."""
        scale = epsilon / self.sensitivity / 2
        if not math.isfinite(2 * scale * self._largest):
            raise InputError(f"epsilon * loss / sensitivity overflows at epsilon {epsilon:g}")
        return scale

    def log_probabilities(self, scale: float) -> HalfTable:
        """Log probabilities of the outputs on each half (Definition 7)."""
        return lambda block: _log_softmax(-scale * self._losses(block))

    def gap(self, scale: float, logs: HalfTable) -> float:
        """Epsilon of DP restricted to the parent set, or a lower estimate of it from random halves."""
        if self._swapped is not None:
            swapped = self._swapped
            return sampled_gap(
                len(self.design.mask), logs, lambda block: _log_softmax(-scale * swapped(block))
            )
        if self._per_record is None:
            return adjacent_gap(self.design.mask, logs(slice(None)))
        return self._mean_gap(scale, self._per_record)

    def _mean_gap(self, scale: float, per_record: np.ndarray) -> float:
        # Swapping x for x' adds (loss(x', w) - loss(x, w)) / n to the mean loss of every half with x but not
        # x', so only the normalising constants differ from half to half: one number instead of m.
        from scipy.special import logsumexp

        mask = self.design.mask
        constants = np.concatenate(
            [
                logsumexp(-scale * self._losses(block), axis=1)
                for block in blocks(len(mask), per_record.shape[1])
            ]
        )
        per_swap = scale * per_record / (len(per_record) // 2)
        largest = 0.0
        for i, j, left, right in adjacent_pairs(mask):
            shift = per_swap[j] - per_swap[i]
            change = constants[right] - constants[left]
            largest = max(largest, shift.max() + change.max(), -(shift.min() + change.min()))
        return float(largest)


def _mean_of_halves(per_record: np.ndarray, mask: np.ndarray) -> HalfTable:
    size = len(per_record) // 2
    return lambda block: mask[block].astype(float) @ per_record / size


def _log_softmax(logits: np.ndarray) -> np.ndarray:
    from scipy.special import log_softmax

    return log_softmax(logits, axis=1)


def _finite(values: ArrayLike, dimensions: int) -> np.ndarray:
    array = np.asarray(values, dtype=float)
    if array.ndim != dimensions or array.shape[-1] == 0 or not np.all(np.isfinite(array)):
        wanted = "(m,)" if dimensions == 1 else "(k, m)"
        raise InputError(f"loss must return finite numbers of shape {wanted}, with at least one output")
    return array
