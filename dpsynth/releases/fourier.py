"""Random Fourier features of a record: waves across all columns at once.

Rahimi and Recht 2007, "Random features for large-scale kernel machines": cosine and sine of w'x for each of
many frequencies w, drawn from a normal law, are features whose products approximate a Gaussian kernel. The
mean of them is the records' characteristic function at these frequencies. Here x are the numbers of all
columns of `dpsynth.releases.features`, so that a wave crosses curves and thresholds of any columns together.
A record's vector has length 1 whatever the record is, because cos^2 + sin^2 = 1.

Frequencies are drawn before any record is read.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpsynth.releases.features import values_of

#: Frequencies, and their standard deviation: along a column waves are some four of its deviations long.
FREQUENCIES, DEVIATION = 500, 1 / 0.7
_BLOCK = 4096


@dataclass(frozen=True, eq=False)
class FourierFeatures:
    """Frequencies of waves; make them with `FourierFeatures.of`.

    Parameters
    ----------
    tables : tuple of float32 arrays, shapes (bins, numbers)
        The numbers of each bin, column by column.
    frequencies : float32 array, shape (numbers of all columns, waves)
    """

    tables: tuple[NDArray[np.float32], ...]
    frequencies: NDArray[np.float32]

    @classmethod
    def of(cls, tables: tuple[NDArray[np.float32], ...], rng: np.random.Generator) -> FourierFeatures:
        """Features with frequencies of their own."""
        numbers = sum(table.shape[1] for table in tables)
        return cls(tables, (DEVIATION * rng.standard_normal((numbers, FREQUENCIES))).astype(np.float32))

    @property
    def size(self) -> int:
        """Length of a record's vector: a cosine and a sine of each frequency."""
        return 2 * self.frequencies.shape[1]

    def angles(self, draws: NDArray[np.int64], dtype: type[np.floating] = np.float32) -> Iterator[NDArray]:
        """w'x of some records after others, shapes (at most 4,096, waves)."""
        frequencies = self.frequencies.astype(dtype)
        for start in range(0, len(draws), _BLOCK):
            yield values_of(self.tables, draws[start : start + _BLOCK]).astype(dtype) @ frequencies

    def values(self, draws: NDArray[np.int64]) -> NDArray[np.float32]:
        """Each record's vector, shape (m, size), of length 1: cosines, then sines.

        Examples
        --------
        >>> table = np.array([[0.0], [1.0]], dtype=np.float32)
        >>> features = FourierFeatures((table,), np.array([[np.pi, np.pi / 2]], dtype=np.float32))
        >>> features.values(np.array([[0], [1]])).round(2) + 0.0
        array([[ 0.71,  0.71,  0.  ,  0.  ],
               [-0.71,  0.  ,  0.  ,  0.71]], dtype=float32)
        """
        values = np.empty((len(draws), self.size), dtype=np.float32)
        waves = self.size // 2
        for k, angles in enumerate(self.angles(draws)):
            part = values[k * _BLOCK : (k + 1) * _BLOCK]
            np.cos(angles, out=part[:, :waves])
            np.sin(angles, out=part[:, waves:])
        values /= np.float32(np.sqrt(waves))
        return values

    def total(self, draws: NDArray[np.int64]) -> NDArray[np.float64]:
        """Sum of the records' vectors, shape (size,), in double precision: one record adds length 1."""
        total = np.zeros(self.size)
        for angles in self.angles(draws, np.float64):
            total += np.concatenate([np.cos(angles).sum(axis=0), np.sin(angles).sum(axis=0)])
        return total / np.sqrt(self.size // 2)
