"""Noisy dyadic tree over a fine histogram, made consistent by least squares (Hay et al. 2010).

Counting every node of a binary tree lets a range be answered from about 2 log2(k) noisy numbers where a
flat histogram adds up to k of them, so cumulative distributions over fine grids gain much. One record
lies in one node of each level, so a tree of L levels (its root left out: the total is released by other
means) has L2 sensitivity sqrt(L) under add/remove of one record.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpsynth.releases.projection import norm_sub


def levels_of(cells: int) -> int:
    """Number of levels below the root of the dyadic tree over ``cells`` leaves (at least 1).

    Examples
    --------
    >>> levels_of(1024), levels_of(1000), levels_of(1)
    (10, 10, 1)
    """
    return max(1, int(np.ceil(np.log2(cells)))) if cells > 1 else 1


def tree_counts(counts: ArrayLike) -> list[NDArray[np.float64]]:
    """Node counts of each level, from the root's two children down to the leaves.

    Parameters
    ----------
    counts : array, shape (k,)
        Counts of the leaves; padded with empty leaves to the next power of two.

    Returns
    -------
    list of arrays, shapes (2,), (4,), ..., (2**levels,)
        ``[tree_counts(counts)]`` together is the query whose L2 sensitivity is ``sqrt(levels)``.

    Examples
    --------
    >>> [level.tolist() for level in tree_counts([1, 2, 3])]
    [[3.0, 3.0], [1.0, 2.0, 3.0, 0.0]]
    """
    leaves = np.asarray(counts, dtype=np.float64)
    depth = levels_of(len(leaves))
    level = np.pad(leaves, (0, 2**depth - len(leaves)))
    levels = [level]
    for _ in range(depth - 1):
        level = level.reshape(-1, 2).sum(axis=1)
        levels.append(level)
    return levels[::-1]


def consistent(noisy: list[NDArray[np.float64]], total: float) -> list[NDArray[np.float64]]:
    """Least-squares estimate of a tree from noisy node counts of equal variance.

    Parameters
    ----------
    noisy : list of arrays, shapes (2,), (4,), ..., (2**levels,)
    total : float
        The root, known or released apart; it is held exactly.

    Returns
    -------
    list of arrays, as ``noisy``
        Children sum to their parent at every level, the first level to ``total``.

    References
    ----------
    Hay, Rastogi, Miklau, Suciu (2010), "Boosting the accuracy of differentially private histograms
    through consistency", Theorem 3 with branching k = 2.
    """
    depth = len(noisy)
    upward = [noisy[-1].astype(np.float64)]
    for height in range(2, depth + 1):
        own = noisy[depth - height]
        below = upward[-1].reshape(-1, 2).sum(axis=1)
        # Theorem 3, z[v]: weights of a node's own count and of its children's sum at this height.
        weight = (2.0**height - 2.0 ** (height - 1)) / (2.0**height - 1.0)
        upward.append(weight * own + (1.0 - weight) * below)
    upward.reverse()
    parent = np.array([total], dtype=np.float64)
    result = []
    for estimate in upward:
        # Theorem 3, h[v]: what the parent has beyond its children's sum is shared equally.
        gap = parent - estimate.reshape(-1, 2).sum(axis=1)
        parent = estimate + np.repeat(gap / 2.0, 2)
        result.append(parent)
    return result


def nonnegative_leaves(tree: list[NDArray[np.float64]], total: float, cells: int) -> NDArray[np.float64]:
    """Leaves of the tree made non-negative from the root down, children summing to their parent.

    Cutting the leaves alone would move mass between distant ranges; splitting every parent's count among
    its children by norm-sub keeps each range's sum as well as its parent allows.

    Parameters
    ----------
    tree : list of arrays, shapes (2,), (4,), ..., (2**levels,)
    total : float
    cells : int
        Number of real leaves; the padding beyond them gets nothing.

    Returns
    -------
    array, shape (cells,), non-negative, sum ``total``
    """
    depth = len(tree)
    parent = np.array([max(total, 0.0)])
    for number, level in enumerate(tree):
        width = 2 ** (depth - 1 - number)
        real = np.arange(len(level)) * width < cells
        # A child made of padding only is given a count so low that norm-sub leaves it nothing.
        children = np.where(real, level, -np.inf).reshape(-1, 2)
        lonely = ~real.reshape(-1, 2)[:, 1]
        split = norm_sub(np.where(np.isfinite(children), children, 0.0), parent)
        parent = np.where(lonely[:, None], np.stack([parent, np.zeros_like(parent)], axis=1), split).reshape(
            -1
        )
    return parent[:cells]
