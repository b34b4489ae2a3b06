"""Pairwise statistics, released at once: a critic that is solved in one step.

A Wasserstein critic that is linear in fixed features of a record uses one statistic of the data, their mean
feature. Once it is released, the critic's best answer to any generator follows without another reading. Here
the features are those of pairs of columns (`dpsynth.releases.features`). Their sum is read once under
Gaussian noise. `dpsynth.model.reweighting.fit_reweighting` makes the base model's samples agree with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpsynth.releases.bins import Bins
from dpsynth.releases.features import PRODUCT_STEP, PairFeatures
from dpsynth.releases.gaussian import Adaptive, Array, GaussianRelease, Ints
from dpsynth.releases.records import Records


@dataclass(frozen=True, eq=False)
class PairwiseStatistics:
    """Released mean features.

    ``mean``, shape of ``features.products``: symmetric, with noise, zero within a column.
    ``noise_std``: standard deviation of the noise in an entry of ``mean``.
    """

    features: PairFeatures
    mean: NDArray[np.float64]
    noise_std: float
    n: float


@dataclass(frozen=True, kw_only=True)
class PairwiseStatisticsRelease(Adaptive[tuple[Bins, PairFeatures]], GaussianRelease[PairwiseStatistics]):
    """The sum of the records' pair features, whose longest vector counts for 1."""

    name = "pairwise statistics"
    l2_sensitivity = 1.0
    sensitivity = (
        "1 (a record's products of all pairs of columns, and with the outcome, scaled down to length 1)"
    )

    @property
    def weights(self) -> Iterable[float]:
        """One over the length of the longest vector."""
        return [1.0 / self.given[1].cap]

    @property
    def steps(self) -> Iterable[float]:
        """Step of products."""
        return [PRODUCT_STEP]

    def query(self, records: Records) -> list[Ints]:
        """The exact sum, as a vector: each product once."""
        bins, features = self.given

        def total(frame: pd.DataFrame) -> list[Ints]:
            return [features.total(bins.cells(frame))]

        return records.sums(total)

    def finish(self, noisy: Sequence[Array]) -> PairwiseStatistics:
        """Their mean."""
        bins, features = self.given
        noise_std = self.noise_std * features.cap / bins.n
        return PairwiseStatistics(features, features.matrix(noisy[0] / bins.n), noise_std, bins.n)
