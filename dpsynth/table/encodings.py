"""Ways to turn records into points of the unit cube, by the names that a generator's options use.

A new one is a subclass of `Encoder` and a line in `ENCODINGS`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from dpsynth.files.codec import record
from dpsynth.table.encoder import Encoder, interval_ends, locate, put
from dpsynth.table.grid import Grid, Marginals
from dpsynth.table.schema import Schema


@record
class IntervalEncoder(Encoder):
    """The encoding of SDV in Pedersen (2022), section 3.3: each column is one number of [0, 1].

    Numbers are scaled by their public bounds. A category, also an ordinal or "missing", has an interval of
    [0, 1] as long as its released frequency, the most frequent first. A record lies uniformly in its interval
    (SDV has a truncated normal there). Numbers that may be missing keep a one-hot group, which SDV writes as
    a column of its own. Points are decoded as they are, without agreement with the released marginals.

    Examples
    --------
    >>> from dpsynth.table.schema import Column, Schema
    >>> column = Column(name="stage", kind="categorical", categories=("I", "II", "III"))
    >>> encoder = IntervalEncoder(Schema(columns=(column,)), None)
    >>> codes, _ = encoder.cells([[0.1], [0.5], [0.9]], np.random.default_rng(0))
    >>> encoder.layout.dim, codes[0].tolist()
    (1, [0, 1, 2])
    """

    def __init__(self, schema: Schema, marginals: Marginals | None) -> None:
        super().__init__(schema, marginals)

    @property
    def calibrated(self) -> bool:
        """Points are decoded as they are."""
        return False

    def on_line(self, grid: Grid) -> int:
        """All cells of categories, and the present ones of numbers."""
        return grid.present if grid.column.is_numeric else grid.size

    def _by_bounds(self, grid: Grid) -> bool:
        return grid.column.is_numeric

    def _frequencies(self, j: int) -> NDArray[np.float64]:
        """Released frequencies of a column's categories, all alike without marginals."""
        return np.ones(self.grids[j].size) if self.marginals is None else self.marginals.probabilities[j]

    def _order(self, j: int) -> NDArray[np.int64]:
        """Cells of a column of categories, the most frequent first."""
        return np.argsort(-self._frequencies(j), kind="stable")

    def _interval_ends(self, j: int) -> NDArray[np.float32]:
        if self.grids[j].column.is_numeric:
            return super()._interval_ends(j)
        frequencies = self._frequencies(j)[self._order(j)]
        return interval_ends(frequencies, np.ones(len(frequencies), np.int64))

    def _scaled(self, j: int, code: NDArray[np.int64], place: NDArray[np.float64]) -> NDArray[np.float32]:
        if self.grids[j].column.is_numeric:
            return super()._scaled(j, code, place)
        whole = np.zeros(len(code)), np.ones(len(code))
        return put(self._ends[j], np.argsort(self._order(j))[code], place, whole)

    def _located(self, j: int, u: NDArray[np.float32]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        if self.grids[j].column.is_numeric:
            return super()._located(j, u)
        rank, place = locate(self._ends[j], u)
        return self._order(j)[rank], place


@dataclass(frozen=True)
class Encoding:
    """A kind of encoder, and whether it needs noisy counts of single columns."""

    encoder: type[Encoder]
    counts: bool


EncodingName = Literal["copula", "minmax", "sdv"]

#: ``copula``: through the released distribution of each column. ``minmax``: by public bounds alone. ``sdv``:
#: numbers by public bounds, categories by intervals as long as their released frequencies.
ENCODINGS: Mapping[EncodingName, Encoding] = {
    "copula": Encoding(Encoder, counts=True),
    "minmax": Encoding(Encoder, counts=False),
    "sdv": Encoding(IntervalEncoder, counts=True),
}
