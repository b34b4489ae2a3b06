"""Counts that are not negative and have a given sum, nearest to noisy ones."""

from __future__ import annotations

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
