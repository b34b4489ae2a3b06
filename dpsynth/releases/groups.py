"""Groups of records: each belongs to the nearest of a few centres, which come from the base model's own
draws.

Records are compared by the numbers of `dpsynth.releases.features`: ranks and indicators of their bins,
standardised under the released marginals. The centres are those of k-means (Lloyd 1982) over draws of a
released base_model: no record is looked at, and groups lie where draws do.

The group of a record is computed from its own bins alone, by additions in a fixed order. A product of
matrices would not do: it rounds a row by its place among others, so that near ties would make one record more
or less move the nearest-neighbour histogram of many.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dpsynth.releases.bins import Bins
from dpsynth.releases.features import tables_of, values_of

#: Records whose distances to all centres are held at once, which should stay in cache.
_BLOCK = 512
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
        """Groups around centres of draws.

        Parameters
        ----------
        bins : Bins
            With released probabilities.
        draws : int array, shape (m, columns)
            Bins of the base model's draws.
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
            reassignment_ratio=0.0,  # small groups would be moved onto the commonest draw
            random_state=int(rng.integers(2**31 - 1)),
        )
        means.fit(values_of(tables, draws))
        return cls(tables, np.unique(means.cluster_centers_.astype(np.float32), axis=0))

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
        for start in range(0, len(draws), _BLOCK):
            block = draws[start : start + _BLOCK]
            # |x - c|^2 is least where x . c - |c|^2 / 2 is greatest
            nearness = self._products[0][block[:, 0]]
            for j, product in enumerate(self._products[1:], 1):
                nearness += product[block[:, j]]
            label[start : start + _BLOCK] = nearness.argmax(axis=1)
        return label

    @cached_property
    def _products(self) -> tuple[NDArray[np.float32], ...]:
        """What each bin adds to x . c - |c|^2 / 2, column by column, shapes (bins, groups)."""
        ends = np.cumsum([0, *(table.shape[1] for table in self.tables)])
        products = [
            (table @ self.centres[:, start:end].T).astype(np.float32)
            for table, start, end in zip(self.tables, ends[:-1], ends[1:], strict=True)
        ]
        products[0] = products[0] - (self.centres**2).sum(axis=1) / 2
        return tuple(products)

    def counts(self, draws: NDArray[np.int64]) -> NDArray[np.float64]:
        """Records in each group, shape (groups,): a record adds 1 to one of them."""
        return np.bincount(self.labels(draws), minlength=self.size).astype(np.float64)
