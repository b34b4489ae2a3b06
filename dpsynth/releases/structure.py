"""Which columns the prior ties together: a spanning tree grown by private choices (theory of 1.8).

The tree grows from its root as Prim's algorithm does, but each new edge is drawn by the exponential
mechanism among all edges between a column inside and one outside. A pair's score is

    sum over cells |n_ij - n p_i p_j|  -  expected absolute noise of a table of as many cells,

with n_ij the exact counts and n, p_i, p_j already *released* numbers. Adding or removing one record
changes one n_ij by one and nothing else, so the score has sensitivity 1.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dpsynth.releases.binning import Binning
from dpsynth.releases.selection import choose


def count_table(bins: NDArray[np.int64], columns: Sequence[int], sizes: Sequence[int]) -> NDArray[np.float64]:
    """Exact contingency table of some columns: a private quantity of L2 sensitivity 1 (add/remove).

    Parameters
    ----------
    bins : int array, shape (n, all columns)
    columns : sequence of int
        Columns of the table, in the order of its axes.
    sizes : sequence of int
        Number of bins of every column of ``bins``.

    Examples
    --------
    >>> count_table(np.array([[0, 1], [0, 1], [1, 0]]), (0, 1), (2, 2))
    array([[0., 2.],
           [1., 0.]])
    """
    shape = tuple(sizes[c] for c in columns)
    index = np.ravel_multi_index(tuple(bins[:, c] for c in columns), shape)
    return np.bincount(index, minlength=int(np.prod(shape))).astype(np.float64).reshape(shape)


def pair_scores(
    bins: NDArray[np.int64], binnings: Sequence[Binning], n: float, columns: Sequence[int]
) -> NDArray[np.float64]:
    """Distance of every pair's counts from independence, before the noise is allowed for.

    Private; each entry has sensitivity 1 under add/remove one record, because ``n`` and the binnings'
    probabilities are released numbers that stay fixed.

    Parameters
    ----------
    bins : int array, shape (rows, all columns)
    binnings : sequence of Binning, one a column
    n : float
        Released number of records.
    columns : sequence of int
        Columns to score.

    Returns
    -------
    array, shape (all columns, all columns), symmetric, zero outside ``columns``
    """
    sizes = [b.size for b in binnings]
    scores = np.zeros((len(binnings), len(binnings)))
    for i, a in enumerate(columns):
        for b in columns[i + 1 :]:
            independent = n * np.outer(binnings[a].probabilities, binnings[b].probabilities)
            scores[a, b] = scores[b, a] = np.abs(count_table(bins, (a, b), sizes) - independent).sum()
    return scores


def noise_allowance(binnings: Sequence[Binning], noise_std: float, classes: int = 1) -> NDArray[np.float64]:
    """Expected absolute noise of every pair's table, ``std * sqrt(2 / pi) * cells``: public.

    With a third axis of ``classes`` entries (the outcome of a three-way table) it has as many more cells.

    Examples
    --------
    >>> pair = [Binning(np.arange(2), np.array([0.5, 0.5]))] * 2
    >>> print(noise_allowance(pair, 1.0)[0, 1].round(4), noise_allowance(pair, 1.0, 3)[0, 1].round(4))
    3.1915 9.5746
    """
    sizes = np.array([b.size for b in binnings], dtype=np.float64)
    return noise_std * np.sqrt(2.0 / np.pi) * classes * np.outer(sizes, sizes)


def grow_tree(
    scores: NDArray[np.float64],
    root: int,
    columns: Sequence[int],
    epsilon: float | None,
    rng: np.random.Generator,
) -> list[tuple[int, int]]:
    """Grow a spanning tree of ``columns`` from ``root`` by private choices.

    Costs `n_choices` exponential mechanisms of ``epsilon`` each, with fresh noise.

    Parameters
    ----------
    scores : array, shape (all columns, all columns)
        Sensitivity 1 each.
    root : int
        A public choice.
    columns : sequence of int
        The tree's columns, ``root`` among them.
    epsilon : float or None
        None takes the best edges: **not private**.
    rng : numpy Generator

    Returns
    -------
    list of (parent, child)
        In the order of growth, so that a parent comes before its children.

    Examples
    --------
    >>> scores = np.array([[0, 9, 1], [9, 0, 5], [1, 5, 0]])
    >>> grow_tree(scores, 0, [0, 1, 2], None, np.random.default_rng(0))
    [(0, 1), (1, 2)]
    """
    inside = [root]
    outside = [c for c in columns if c != root]
    edges: list[tuple[int, int]] = []
    while outside:
        candidates = [(a, b) for a in inside for b in outside]
        # A single candidate is no choice: it is taken without looking at its score.
        pick = 0 if len(candidates) == 1 else choose([scores[e] for e in candidates], epsilon, rng)
        edges.append(candidates[pick])
        inside.append(candidates[pick][1])
        outside.remove(candidates[pick][1])
    return edges


def n_choices(n_columns: int) -> int:
    """Number of exponential mechanisms that `grow_tree` runs on so many columns.

    Examples
    --------
    >>> [n_choices(m) for m in (1, 2, 3, 4)]
    [0, 0, 2, 3]
    """
    return n_columns - 1 if n_columns > 2 else 0
