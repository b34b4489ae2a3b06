"""Projection of noisy counts on the scaled simplex ("norm-sub") and fits to known margins.

Norm-sub subtracts one number from all counts and cuts at zero, with the known total as the sum. It is the
Euclidean projection on ``{x >= 0, sum x = total}`` (Wang et al. 2020, "Locally differentially private
frequency estimation with consistency", section 4.3). Iterative proportional fitting (Deming and Stephan 1940)
scales a positive table to given margins and is the I-projection on them. Both read released numbers only:
post-processing, free of privacy cost.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpsynth.errors import ConfigError


def norm_sub(counts: ArrayLike, total: ArrayLike) -> NDArray[np.float64]:
    """Project the last axis on the simplex scaled to ``total``.

    ``counts``, shape (..., k): noisy counts, k >= 1.
    ``total``, shape (...): the sum that the result has along its last axis, not negative.

    Returns array, shape (..., k): non-negative, sums to ``total``, nearest to ``counts`` in Euclidean norm.

    Source: Wang et al. (2020), section 4.3. The sort-based solution is Duchi et al. (2008), Figure 1.

    Examples
    --------
    >>> norm_sub([5.0, -1.0, 4.0], 7.0)
    array([4., 0., 3.])
    """
    noisy = np.asarray(counts, dtype=np.float64)
    sums = np.broadcast_to(np.asarray(total, dtype=np.float64), noisy.shape[:-1])[..., None]
    if noisy.shape[-1] == 0:
        raise ConfigError("counts has no cells to project")
    if np.any(sums < 0):
        raise ConfigError(f"total is {float(sums.min())}, but cannot be negative")
    ordered = -np.sort(-noisy, axis=-1)
    rank = np.arange(1, noisy.shape[-1] + 1)
    shift = (np.cumsum(ordered, axis=-1) - sums) / rank
    # Duchi et al. (2008), Fig. 1: the last rank whose count still exceeds its shift is the support's size;
    # ">=" keeps rank 1 in when the total is zero.
    support = np.maximum(np.sum(ordered - shift >= 0, axis=-1, keepdims=True), 1)
    return np.maximum(noisy - np.take_along_axis(shift, support - 1, axis=-1), 0.0)


def fit_margins(
    table: ArrayLike,
    margins: Sequence[tuple[tuple[int, ...], ArrayLike]],
    *,
    iterations: int = 60,
    tolerance: float = 1e-6,
) -> NDArray[np.float64]:
    """Scale a positive table until it has the given margins (iterative proportional fitting).

    ``table``, shape (k_1, ..., k_d): strictly positive wherever a margin is positive.
    ``margins``: the axes kept by a margin, ascending, and its values, shape ``(k_axis for axis in axes)``.
        All targets must have the same sum. If they contradict each other the last one holds exactly.
    ``tolerance``: stop when a pass changes no margin by more than this fraction of the total.

    Returns array, shape (k_1, ..., k_d).

    Source: Deming and Stephan (1940); Csiszar (1975), Theorem 3.2.

    Examples
    --------
    >>> fitted = fit_margins(np.ones((2, 2)), [((0,), [3.0, 1.0]), ((1,), [2.0, 2.0])])
    >>> fitted
    array([[1.5, 1.5],
           [0.5, 0.5]])
    """
    fitted = np.array(table, dtype=np.float64)
    steps = []
    for axes, target in margins:
        goal = np.asarray(target, dtype=np.float64)
        others = tuple(a for a in range(fitted.ndim) if a not in axes)
        shape = tuple(fitted.shape[a] if a in axes else 1 for a in range(fitted.ndim))
        steps.append((others, goal.reshape(shape)))
    for _ in range(iterations):
        largest = 0.0
        for others, goal in steps:
            current = fitted.sum(axis=others, keepdims=True)
            largest = max(largest, float(np.abs(current - goal).max(initial=0.0)))
            fitted *= np.divide(goal, current, out=np.zeros_like(goal), where=current > 0)
        if largest <= tolerance * max(float(fitted.sum()), 1e-300):
            break
    return fitted
