"""Groups of records: each belongs to the nearest of a few centres, which come from the prior's own draws.

Records are compared by the numbers of `dpsynth.releases.features`: ranks and indicators of their bins,
standardised under the released marginals. The centres are those of k-means (Lloyd 1982) over draws of a
released prior, so that a group holds about as many draws as any other, and no record is looked at.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpsynth.releases.bins import Bins
from dpsynth.releases.features import tables_of, values_of

#: Records whose distances to all centres are held at once.
_BLOCK = 4096
_BATCH, _ITERATIONS = 4096, 20


@dataclass(frozen=True, eq=False)
class Groups:
    """Centres of groups; make them with `Groups.of`.

    Parameters
    ----------
    tables : tuple of float32 arrays, shapes (bins, numbers)
        The numbers of each bin, column by column.
    centres : float32 array, shape (groups, numbers of all columns)
    """

    tables: tuple[NDArray[np.float32], ...]
    centres: NDArray[np.float32]

    @classmethod
    def of(cls, bins: Bins, draws: NDArray[np.int64], size: int, rng: np.random.Generator) -> Groups:
        """Groups of about as many draws each.

        Parameters
        ----------
        bins : Bins
            With released probabilities.
        draws : int array, shape (m, columns)
            Bins of the prior's draws.
        size : int
            How many groups, at least 1; fewer where fewer draws differ.
        rng : numpy Generator
        """
        from sklearn.cluster import MiniBatchKMeans

        tables = tables_of(bins)
        different = len(np.unique(draws, axis=0))
        means = MiniBatchKMeans(
            n_clusters=max(min(size, different), 1),
            n_init=1,
            batch_size=_BATCH,
            max_iter=_ITERATIONS,
            random_state=int(rng.integers(2**31 - 1)),
        )
        means.fit(values_of(tables, draws))
        return cls(tables, means.cluster_centers_.astype(np.float32))

    @property
    def size(self) -> int:
        """Number of groups."""
        return len(self.centres)

    def labels(self, draws: NDArray[np.int64]) -> NDArray[np.int64]:
        """Group of each record, shape (m,), by its bins: the one with the nearest centre.

        Examples
        --------
        >>> rank = np.array([[-1.0], [0.0], [1.0]], dtype=np.float32)
        >>> groups = Groups((rank, rank), np.array([[-1, -1], [1, 1]], dtype=np.float32))
        >>> groups.labels(np.array([[0, 1], [2, 2], [0, 0]]))
        array([0, 1, 0])
        """
        label = np.empty(len(draws), dtype=np.int64)
        # |x - c|^2 is least where x . c - |c|^2 / 2 is greatest
        half = (self.centres**2).sum(axis=1) / 2
        for start in range(0, len(draws), _BLOCK):
            here = slice(start, start + _BLOCK)
            label[here] = (values_of(self.tables, draws[here]) @ self.centres.T - half).argmax(axis=1)
        return label

    def counts(self, draws: NDArray[np.int64]) -> NDArray[np.float64]:
        """Records in each group, shape (groups,): a record adds 1 to one of them."""
        return np.bincount(self.labels(draws), minlength=self.size).astype(np.float64)
