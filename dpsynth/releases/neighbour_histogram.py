"""A noisy nearest-neighbour histogram: how many records are nearest to each group of samples.

It adapts the histogram of Lin, Gopi, Kulkarni, Nori and Yekhanin (2024), "Differentially private synthetic
data via foundation model APIs 1: images", to tables. Its sensitivity is 1 over groups of the base model's
samples. It measures all columns at once: parities, curves and formulas, which statistics of two or three
columns miss. The same release sums random Fourier features (`dpsynth.releases.features`). They measure smooth
structure with less noise than groups. `dpsynth.model.reweighting.fit_weights` weighs the samples by both.

Records are compared by the numbers of `dpsynth.releases.features`: ranks and indicators of their bins,
standardised under the released marginals. The centres are those of k-means (Lloyd 1982) over samples of the
released base model: no record is read for them. The group of a record is computed from its own bins alone, by
additions in a fixed order. A product of matrices would round a row depending on its place among others. Near
ties would then let one record move the counts of many.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpsynth.files.codec import record
from dpsynth.mechanism.noise import STEP
from dpsynth.releases.bins import Bins
from dpsynth.releases.features import FourierFeatures, tables_of, values_of
from dpsynth.releases.gaussian import Adaptive, Array, GaussianRelease, Ints
from dpsynth.releases.records import Records

#: Standard deviations of noise for which a group has records, and most groups.
_DEVIATIONS, _MOST = 8.0, 1000


def group_count(n: float, noise_std: float) -> int:
    """Number of groups, such that a group of average size stands clear of the noise.

    ``noise_std``: that of a count, 0 without noise.

    Examples
    --------
    >>> group_count(4000, 4.0), group_count(4000, 0.0), group_count(20, 4.0)
    (125, 1000, 1)
    """
    least = max(_DEVIATIONS * noise_std, 1.0)
    return int(np.clip(n / least, 1, _MOST))


@dataclass(frozen=True, eq=False)
class NeighbourHistogram:
    """The released histogram.

    ``counts``, shape (groups.size,): with noise. Some may be negative.
    ``noise_std``: standard deviation of the noise in a count.
    ``features``: None if tables are redrawn from a model without them.
    ``fourier``, shape (features.size,), optional: sum of the records' features, with the same noise.
    """

    groups: Groups
    counts: NDArray[np.float64]
    noise_std: float
    n: float
    features: FourierFeatures | None = None
    fourier: NDArray[np.float64] | None = None

    @property
    def cast(self) -> float:
        """The noisy number of records, at least 1: a public number may be a tenth off."""
        return max(float(self.counts.sum()), 1.0)


@dataclass(frozen=True, kw_only=True)
class NeighbourHistogramRelease(
    Adaptive["tuple[Bins, Groups, FourierFeatures | None]"], GaussianRelease[NeighbourHistogram]
):
    """Number of records most like each group of samples, and the sum of their Fourier features."""

    name = "nearest-neighbour histogram"
    l2_sensitivity = math.sqrt(2.0)
    sensitivity = (
        "sqrt(2) (a record is in one group of the base model's draws, and adds Fourier features of length 1)"
    )

    @property
    def steps(self) -> Iterable[float]:
        """1 of counts, and the step of sums of features."""
        return [1.0, STEP]

    def query(self, records: Records) -> list[Ints]:
        """The exact number of records in each group, and the exact sum of features."""
        bins, groups, features = self.given

        def total(frame: pd.DataFrame) -> list[Ints]:
            cells = bins.cells(frame)
            counts = groups.counts(cells)
            return [counts] if features is None else [counts, features.total(cells)]

        return records.sums(total)

    def finish(self, noisy: Sequence[Array]) -> NeighbourHistogram:
        """The noisy numbers as they are."""
        bins, groups, features = self.given
        fourier = None if features is None else noisy[1]
        return NeighbourHistogram(groups, noisy[0], self.noise_std, bins.n, features, fourier)


#: Records whose distances to all centres are held at once, which should stay in cache.
_BLOCK = 512
_BATCH, _ITERATIONS = 4096, 20


@record
@dataclass(frozen=True, eq=False)
class Groups:
    """Centres of groups, made with `Groups.of`.

    ``tables``, shapes (bins, numbers): the numbers of each bin, column by column.
    ``centres``, shape (groups, numbers of all columns).
    """

    tables: tuple[NDArray[np.float32], ...]
    centres: NDArray[np.float32]

    @classmethod
    def of(cls, bins: Bins, draws: NDArray[np.int64], size: int, rng: np.random.Generator) -> Groups:
        """Groups around centres of samples.

        ``draws``, shape (m, columns): bins of the base model's samples.
        ``size``: number of groups, at least 1. There are fewer if fewer samples differ.
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

    def nearest(self, draws: NDArray[np.int64]) -> NDArray[np.int64]:
        """Group of each sample, shape (m,), by its bins.

        A matrix product is twice as fast as `labels`. Its rounding depends on the other samples, so private
        records have `labels`.

        Examples
        --------
        >>> rank = np.array([[-1.0], [0.0], [1.0]], dtype=np.float32)
        >>> groups = Groups((rank, rank), np.array([[-1, -1], [1, 1]], dtype=np.float32))
        >>> groups.nearest(np.array([[0, 1], [2, 2]]))
        array([0, 1])
        """
        label, squares = np.empty(len(draws), dtype=np.int64), (self.centres**2).sum(axis=1) / 2
        for start in range(0, len(draws), _BLOCK):
            nearness = values_of(self.tables, draws[start : start + _BLOCK]) @ self.centres.T
            nearness -= squares
            label[start : start + _BLOCK] = np.argmax(nearness, axis=1)
        return label

    @cached_property
    def _products(self) -> tuple[NDArray[np.float32], ...]:
        """Contribution of each bin to x . c - |c|^2 / 2, column by column, shapes (bins, groups)."""
        ends = np.cumsum([0, *(table.shape[1] for table in self.tables)])
        products = [
            (table @ self.centres[:, start:end].T).astype(np.float32)
            for table, start, end in zip(self.tables, ends[:-1], ends[1:], strict=True)
        ]
        products[0] = products[0] - (self.centres**2).sum(axis=1) / 2
        return tuple(products)

    def counts(self, draws: Ints) -> Ints:
        """Records in each group, shape (groups,): a record adds 1 to one of them."""
        return np.bincount(self.labels(draws), minlength=self.size)
