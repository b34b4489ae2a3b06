"""A noisy nearest-neighbour histogram: how many records are nearest to each group of draws.

The nearest-neighbour histogram of Lin, Gopi, Kulkarni, Nori and Yekhanin (2024), "Differentially private
synthetic data via foundation model APIs 1: images", for tables: one histogram of sensitivity 1 over groups of
the base model's draws (`dpsynth.releases.groups`). It measures all
columns at once, and so parities, curves and formulas, which statistics of two or three columns miss. The same
release sums random Fourier features (`dpsynth.releases.features`), which measure smooth structure with less
noise than groups. `dpsynth.model.reweighting.fit_weights` weighs the draws by both.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpsynth.errors import PrivacyError
from dpsynth.releases.bins import Bins
from dpsynth.releases.features import FourierFeatures
from dpsynth.releases.gaussian import Array, GaussianRelease
from dpsynth.releases.groups import Groups
from dpsynth.releases.records import Records

#: Standard deviations of noise for which a group has records, and most groups.
_DEVIATIONS, _MOST = 8.0, 1000


def group_count(n: float, noise_std: float) -> int:
    """How many groups are asked about, so that a group of average size stands clear of the noise.

    Parameters
    ----------
    n : float
        Public or released number of records.
    noise_std : float
        Of a count; 0 without noise.

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

    Parameters
    ----------
    groups : Groups
    counts : array, shape (groups.size,)
        With noise; some may be negative.
    noise_std : float
        Standard deviation of the noise in a count.
    n : float
        Public or released number of records.
    features : FourierFeatures, optional
        None where tables are redrawn from a model without them.
    fourier : array, shape (features.size,), optional
        Sum of the records' features, with the same noise.
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
class NeighbourHistogramRelease(GaussianRelease[NeighbourHistogram]):
    """How many records are most like each group of draws, and the sum of their Fourier features.

    Parameters
    ----------
    bins : Bins, optional
    groups : Groups, optional
    features : FourierFeatures, optional
        Released or drawn before, and given with :meth:`of`.
    """

    bins: Bins | None = None
    groups: Groups | None = None
    features: FourierFeatures | None = None
    name = "nearest-neighbour histogram"
    l2_sensitivity = math.sqrt(2.0)
    sensitivity = (
        "sqrt(2) (a record is in one group of the base model's draws, and adds Fourier features of length 1)"
    )

    def of(
        self, bins: Bins, groups: Groups, features: FourierFeatures | None = None
    ) -> NeighbourHistogramRelease:
        """The release for these groups, and of these features; its cost is the same."""
        return replace(self, bins=bins, groups=groups, features=features)

    def _given(self) -> tuple[Bins, Groups]:
        if self.bins is None or self.groups is None:
            raise PrivacyError(
                "a nearest-neighbour histogram is of groups, which are made before and given with of()"
            )
        return self.bins, self.groups

    def query(self, records: Records) -> list[Array]:
        """The exact number of records in each group, and the exact sum of features."""
        bins, groups = self._given()
        features = self.features

        def total(frame: pd.DataFrame) -> list[Array]:
            cells = np.stack([axis.cells(frame) for axis in bins.axes], axis=1)
            counts = groups.counts(cells)
            return [counts] if features is None else [counts, features.total(cells)]

        return records.sums(total)

    def finish(self, noisy: Sequence[Array]) -> NeighbourHistogram:
        """The noisy numbers as they are."""
        bins, groups = self._given()
        fourier = None if self.features is None else noisy[1]
        return NeighbourHistogram(groups, noisy[0], self.noise_std, bins.n, self.features, fourier)
