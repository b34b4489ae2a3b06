"""Cells of a column without order: frequent categories by themselves, and rare ones together.

With a tree (`dpsynth.table.trees`) rare categories share a cell with others of their smallest group, if all
of these together are frequent enough. Otherwise they go on to the next group, and at last to the cell of all
that is left. Within a cell categories keep their released shares. This reads released shares and the public
tree: post-processing, free of cost.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]


def pool_rare(
    probabilities: NDArray[np.float64], rare: NDArray[np.bool_], least: float, levels: Sequence[Ints]
) -> Ints:
    """Label of each cell of a column: those that are not rare by themselves, then groups, then the rest.

    ``probabilities``, shape (cells,): released.
    ``rare``, shape (cells,): which share a cell.
    ``least``: probability from which on rare categories of a group have a cell of their own.
    ``levels``, shapes (categories,): group of each category, the smallest groups first. Cells beyond, of a
        missing value, belong to no group.

    Examples
    --------
    >>> p, block = np.array([0.5, 0.1, 0.1, 0.05, 0.05, 0.2]), np.array([0, 1, 1, 1, 2, 0])
    >>> pool_rare(p, p < 0.15, 0.15, [block]).tolist()
    [0, 2, 2, 2, 3, 1]
    """
    labels = np.where(rare, -1, np.cumsum(~rare) - 1)
    size = int((~rare).sum())
    for groups in levels:
        left = np.flatnonzero(labels[: len(groups)] < 0)
        group, place = np.unique(groups[left], return_inverse=True)
        enough = np.bincount(place, probabilities[left], len(group)) >= least
        labels[left[enough[place]]] = (size + np.cumsum(enough) - 1)[place[enough[place]]]
        size += int(enough.sum())
    labels[labels < 0] = size
    return labels
