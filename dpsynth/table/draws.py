"""Conditional draws in even numbers: sampling from tables with little sampling noise.

Records that share a group (their parents' values) draw from one conditional distribution. Instead of
independent uniforms they take one uniform from each of as many equal parts of [0, 1) as the group has
records, in random order. Every record still has exactly the group's distribution, but the group's counts
differ from their expectations by less than independent draws would: the sample stays closer to the
released tables at no cost.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray


def draw_conditional(
    tables: ArrayLike, groups: NDArray[np.int64], rng: np.random.Generator, *, even: bool = True
) -> NDArray[np.int64]:
    """Draw one entry a record from the distribution of its group.

    Parameters
    ----------
    tables : array, shape (n_groups, k)
        Weights of the entries in each group, not negative; a group without weight draws uniformly.
    groups : int array, shape (n,)
        Group of each record, from 0 to n_groups - 1.
    even : bool
        Whether uniforms are spread evenly over each group's records, or independent.

    Returns
    -------
    int array, shape (n,), from 0 to k - 1

    Examples
    --------
    >>> entries = draw_conditional([[1, 3]], np.zeros(8, dtype=np.int64), np.random.default_rng(0))
    >>> np.bincount(entries)
    array([2, 6])
    """
    weights = np.array(tables, dtype=np.float64)
    weights[weights.sum(axis=1) <= 0] = 1.0
    n_groups, size = weights.shape
    u = _even_uniforms(groups, n_groups, rng) if even else rng.random(len(groups))
    ends = np.cumsum(weights, axis=1)
    ends /= ends[:, -1:]
    # One ascending list of all groups' ends, group g shifted by g, lets a single search serve all records.
    shifted = (ends + np.arange(n_groups)[:, None]).ravel()
    found = np.searchsorted(shifted, groups + u, side="right") - groups * size
    return np.clip(found, 0, size - 1)


def draw_entry(weights: ArrayLike, rng: np.random.Generator) -> NDArray[np.int64]:
    """Draw one entry of each row in proportion to its weights; a one-hot row gives its entry.

    ``weights`` has shape (n, k): negative ones count as zero, and a row without positive weight as uniform.
    The result has shape (n,), from 0 to k - 1.
    """
    positive = np.maximum(np.asarray(weights, dtype=np.float64), 0.0)
    positive[positive.sum(axis=1) <= 0] = 1.0
    ends = np.cumsum(positive, axis=1)
    mark = rng.random(len(positive)) * ends[:, -1]
    return np.minimum((mark[:, None] >= ends).sum(axis=1), ends.shape[1] - 1)


def _even_uniforms(groups: NDArray[np.int64], n_groups: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Uniforms of which each of a group's c records has one in each c-th part of [0, 1)."""
    shuffled = rng.permutation(len(groups))
    # Sorting 16-bit keys is a radix sort, several times faster than a comparison sort.
    keys = groups.astype(np.int16) if n_groups < 2**15 else groups
    order = shuffled[np.argsort(keys[shuffled], kind="stable")]
    counts = np.bincount(groups, minlength=n_groups)
    first = np.concatenate([[0], np.cumsum(counts)[:-1]])
    rank = np.arange(len(groups)) - np.repeat(first, counts)
    u = np.empty(len(groups))
    u[order] = (rank + rng.random(len(groups))) / np.repeat(counts, counts)
    return u
