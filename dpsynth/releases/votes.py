"""Private votes: each record votes for the group of draws that it is most like, and adds its waves.

The nearest-neighbour histogram of Lin, Gopi, Kulkarni, Nori and Yekhanin (2024), "Differentially private
synthetic data via foundation model APIs 1: images", for tables: one histogram of sensitivity 1 over groups of
the prior's draws (`dpsynth.releases.groups`). It asks about all columns at once, so that it sees what tables
and moments of few columns cannot: parities, curves, formulas. Groups have edges, and curves do not: the same
release sums random Fourier features (`dpsynth.releases.features`), which see smooth structure through less
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
class Votes:
    """Released votes.

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
        None where tables are redrawn of a model without waves.
    waves : array, shape (features.size,), optional
        Sum of the records' features, with the same noise.
    """

    groups: Groups
    counts: NDArray[np.float64]
    noise_std: float
    n: float
    features: FourierFeatures | None = None
    waves: NDArray[np.float64] | None = None

    @property
    def cast(self) -> float:
        """How many records voted, at least 1, by the votes' noisy sum: a public number may be a tenth off."""
        return max(float(self.counts.sum()), 1.0)


@dataclass(frozen=True, kw_only=True)
class VotesRelease(GaussianRelease[Votes]):
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
    name = "votes"
    l2_sensitivity = math.sqrt(2.0)
    sensitivity = (
        "sqrt(2) (a record votes for one group of the prior's draws, and adds Fourier features of length 1)"
    )

    def of(self, bins: Bins, groups: Groups, features: FourierFeatures | None = None) -> VotesRelease:
        """The release of votes for these groups, and of these features; its cost is the same."""
        return replace(self, bins=bins, groups=groups, features=features)

    def _given(self) -> tuple[Bins, Groups]:
        if self.bins is None or self.groups is None:
            raise PrivacyError("votes are for groups, which are released before and given with of()")
        return self.bins, self.groups

    def query(self, records: Records) -> list[Array]:
        """The exact number of votes for each group, and the exact sum of features."""
        bins, groups = self._given()
        features = self.features

        def total(frame: pd.DataFrame) -> list[Array]:
            cells = np.stack([axis.cells(frame) for axis in bins.axes], axis=1)
            counts = groups.counts(cells)
            return [counts] if features is None else [counts, features.total(cells)]

        return records.sums(total)

    def finish(self, noisy: Sequence[Array]) -> Votes:
        """The noisy numbers as they are."""
        bins, groups = self._given()
        waves = None if self.features is None else noisy[1]
        return Votes(groups, noisy[0], self.noise_std, bins.n, self.features, waves)
