"""Bounded loss (Pedersen 2022, Theorem 4.2.2): guess "reserved" with the loss as probability.

The guess looks at the first record of the pair only. It turns the generalisation gap into accuracy, and
neither this strategy nor that of :mod:`~dpsynth.research.ltu.scores` is always the better one (Theorem
4.2.3).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpsynth.errors import InputError

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def absolute_loss(probabilities: Floats, labels: Ints) -> Floats:
    """``1 - p_y``, shape (n,): a loss in [0, 1], half the absolute error of the predicted probabilities."""
    found: Floats = 1.0 - probabilities[np.arange(len(labels)), labels]
    return found


def gap(defender: ArrayLike, reserve: ArrayLike) -> float:
    """``e_R - e_D``, the difference of the mean losses, in [-1, 1].

    Raises
    ------
    InputError
        If a side is empty or a loss is outside [0, 1].
    """
    means = []
    for losses in (reserve, defender):
        given = np.asarray(losses, dtype=np.float64).ravel()
        if not len(given) or not ((given >= 0) & (given <= 1)).all():
            raise InputError("losses must lie in [0, 1], at least one on each side; scale them first")
        means.append(float(given.mean()))
    return means[0] - means[1]


def accuracy(defender: ArrayLike, reserve: ArrayLike) -> float:
    """Accuracy of the strategy over all pairs: ``1/2 + (e_R - e_D) / 2``, (4.13) with equality (4.16).

    Examples
    --------
    >>> round(accuracy([0.0, 0.5], [0.3, 0.4]), 3)
    0.55
    """
    return 0.5 + 0.5 * gap(defender, reserve)


def joint_gap(joint: ArrayLike, losses: ArrayLike) -> float:
    """``e_R - e_D`` of a joint distribution, rows the defender's losses, columns the reserved ones."""
    table, values = np.asarray(joint, dtype=np.float64), np.asarray(losses, dtype=np.float64)
    return float(table.sum(axis=0) @ values - table.sum(axis=1) @ values)


def guess_reserved(first_loss: float, rng: np.random.Generator) -> bool:
    """Whether the first record of the pair is said to be reserved: with probability ``first_loss``."""
    return bool(rng.random() < first_loss)
