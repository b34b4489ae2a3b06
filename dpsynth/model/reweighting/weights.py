"""Weights of a base model's draws: how likely each is, by group and by random Fourier features.

A draw x has the weight w_g(x) of the group that it lies in, times what a sum of random Fourier features says
(`dpsynth.model.reweighting.fit_fourier`), a factor for each column's bin and one for its number of missing
values; the factors keep one-way marginals and the law of missing values as they were released. Draws are made
by choosing among more of them than are needed, at most `most` times as many.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsynth.model.reweighting.fit_fourier import FourierReweighting
from dpsynth.releases.features import FourierFeatures
from dpsynth.releases.groups import Groups

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Weighting:
    """What a draw of the base model counts for.

    Parameters
    ----------
    groups : Groups
    weights : array, shape (groups.size,)
        Not negative.
    columns : tuple of arrays, shapes (bins,)
        Factor of each bin.
    missing : array, shape (panel + 1,)
        Factor of the number of missing values.
    most : float
        Greatest weight that counts, at least 1: so many draws are made for each one that is kept.
    noise_std : float
        Of the nearest-neighbour histogram that it was fitted to.
    fourier : FourierReweighting, optional
        None where they told nothing.
    """

    groups: Groups
    weights: Floats
    columns: tuple[Floats, ...]
    missing: Floats
    most: float
    noise_std: float
    fourier: FourierReweighting | None = None

    def of(self, draws: NDArray[np.int64], missing: NDArray[np.int64]) -> Floats:
        """Weight of each draw, shape (m,), from 0 to ``most``.

        Parameters
        ----------
        draws : int array, shape (m, columns)
            Bins.
        missing : int array, shape (m,)
            Number of missing values of each among the panel's columns.
        """
        weights = self.weights[self.groups.labels(draws)] * self.missing[missing]
        for j, factors in enumerate(self.columns):
            weights *= factors[draws[:, j]]
        if self.fourier is not None:
            weights *= self.fourier.of(draws)
        return np.minimum(weights, self.most)

    def to_state(self) -> tuple[dict[str, Any], dict[str, NDArray]]:
        """JSON-able description and arrays."""
        arrays: dict[str, NDArray] = {
            "centres": self.groups.centres,
            "weights": self.weights,
            "missing": self.missing,
        }
        for j, (table, column) in enumerate(zip(self.groups.tables, self.columns, strict=True)):
            arrays |= {f"table_{j}": table, f"column_{j}": column}
        meta = {"most": self.most, "noise_std": self.noise_std}
        if self.fourier is not None:
            meta["offset"] = self.fourier.offset
            arrays["frequencies"] = self.fourier.features.frequencies
            arrays["coefficients"] = self.fourier.coefficients
        return meta, arrays

    @classmethod
    def from_state(cls, meta: Mapping[str, Any], arrays: Mapping[str, NDArray]) -> Weighting:
        """Inverse of `to_state`."""
        size = sum(name.startswith("table_") for name in arrays)
        tables = tuple(np.asarray(arrays[f"table_{j}"]) for j in range(size))
        fourier = None
        if "frequencies" in arrays:
            features = FourierFeatures(tables, np.asarray(arrays["frequencies"]))
            fourier = FourierReweighting(features, np.asarray(arrays["coefficients"]), float(meta["offset"]))
        return cls(
            Groups(tables, np.asarray(arrays["centres"])),
            np.asarray(arrays["weights"]),
            tuple(np.asarray(arrays[f"column_{j}"]) for j in range(size)),
            np.asarray(arrays["missing"]),
            float(meta["most"]),
            float(meta["noise_std"]),
            fourier,
        )
