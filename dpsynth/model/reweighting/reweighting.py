"""A reweighting: how likely each record is, compared with the base model.

The distribution of a reweighted base model is

    q(x)  ~  p(x) exp(s(x) sum over i < j of r_ij(x) + sum of h_j(x_j) + m(k(x)))

with ``r_ij(x) = a_i(x_i)' (T_ij + w y U_ij) a_j(x_j) + w y b_i(x_i) V_ij b_j(x_j)``. Here p is the base
model, a_j the numbers of a column's bin and b_j its half. The outcome has number y and weight w. The scaling
s is that of `dpsynth.releases.features`, and k is the number of missing values. Among all distributions with
its mean features it is nearest to the base model in Kullback-Leibler divergence (Csiszar 1975, "I-divergence
geometry"). The terms h and m keep single-column counts and the distribution of missing values as released. If
samples are chosen by a nearest-neighbour histogram, those chosen have them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dpsynth.files.codec import record
from dpsynth.releases.bins import Binning
from dpsynth.releases.features import PairFeatures

Floats = NDArray[np.float32]


@record
@dataclass(frozen=True, eq=False)
class Reweighting:
    """Factors of the base model.

    ``pairs``, shape of ``features.products``: T, with U and V beside it if there is an outcome, symmetric and
        zero within a column.
    ``columns``, shapes (bins,): h.
    ``missing``, shape (panel + 1,): m, by the number of missing values.
    ``mean``, of the same shape, and ``noise_std``: the pairwise statistics that it was fitted to, and the
        noise in an entry.
    """

    features: PairFeatures
    pairs: Floats
    columns: tuple[Floats, ...]
    missing: Floats
    mean: Floats
    noise_std: float

    @classmethod
    def of_columns(cls, binnings: Sequence[Binning], panel: Sequence[int]) -> Reweighting:
        """One without any products, whose factors are all 1."""
        sizes = [binning.size for binning in binnings]
        features = PairFeatures(tuple(np.zeros((size, 0), np.float32) for size in sizes), 1.0)
        columns = tuple(np.zeros(size, np.float32) for size in sizes)
        missing = np.zeros(len(panel) + 1, np.float32)
        nothing = np.zeros((0, 0), np.float32)
        return cls(features, nothing, columns, missing, nothing, 0.0)

    def times(self, columns: Sequence[NDArray], missing: NDArray) -> Reweighting:
        """The same with further factors of columns' bins and of numbers of missing values, above 0."""
        both = zip(self.columns, columns, strict=True)
        own = tuple((column + np.log(factors)).astype(np.float32) for column, factors in both)
        return replace(self, columns=own, missing=(self.missing + np.log(missing)).astype(np.float32))
