"""Correlations of the steps of ordered columns."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from dpsynth.patients.courses.course import RowCourse, RowNumbers, RowTable
from dpsynth.patients.courses.drawing import RowsDrawing
from dpsynth.patients.series import Floats, Ints, last_before
from dpsynth.table.column import Column


@dataclass(frozen=True)
class PairTable(RowTable):
    """A table to which each pair of columns adds the steps of a patient."""

    columns: tuple[str, ...] = ()
    increasing: tuple[str, ...] = ()
    order: str = ""

    def entries(self, rows: RowNumbers) -> tuple[Ints, Ints, Ints]:
        """A pair's steps in the same and in opposite directions."""
        counts = concordances(rows, self.columns, self.increasing, self.order)
        patient, cell = np.nonzero(counts)
        return patient, cell, counts[patient, cell].astype(np.int64)


def concordances(
    rows: RowNumbers, columns: Sequence[str], increasing: Sequence[str] = (), order: str = ""
) -> Floats:
    """For each pair of columns, a patient's steps in the same and in opposite directions.

    A step leads from a row that has both values to the next such row. Of an ``increasing`` column it is what
    it rises more than in the same time on average. Shape (N, 2 pairs).
    """
    values = [
        around_the_line(rows.numbers[name], rows.numbers[order]) if name in increasing else rows.numbers[name]
        for name in columns
    ]
    found = np.zeros((len(rows.rows), 2 * math.comb(len(values), 2)))
    for k, (one, other) in enumerate(combinations(values, 2)):
        both = ~np.isnan(one) & ~np.isnan(other)
        last = last_before(both)
        steps = (each - np.take_along_axis(each, np.maximum(last, 0), axis=1) for each in (one, other))
        signs = np.where(both & (last >= 0), np.prod([*map(np.sign, steps)], axis=0), 0)
        found[:, 2 * k] = (signs > 0).sum(axis=1)
        found[:, 2 * k + 1] = (signs < 0).sum(axis=1)
    return found


def around_the_line(values: Floats, times: Floats) -> Floats:
    """Distances of values that do not fall from the line between the first and the last, over the time."""
    there = ~np.isnan(values)
    high = np.where(there, np.fmax.accumulate(values, axis=1), np.nan)
    at = np.where(there, times, np.nan)
    (first, last), (begin, end) = (
        (np.nanmin(each, axis=1, initial=np.inf), np.nanmax(each, axis=1, initial=-np.inf))
        for each in (high, at)
    )
    slope = np.where(end > begin, last - first, 0.0) / np.where(end > begin, end - begin, 1.0)
    return np.round(high - first[:, None] - slope[:, None] * (at - begin[:, None]), 9)


@dataclass(frozen=True)
class Links(RowCourse):
    """The ordered columns, in pairs. They have no levels of their own."""

    columns: tuple[str, ...]
    increasing: tuple[str, ...]
    order: str

    def tables(self, parents: Mapping[str, Column]) -> Sequence[RowTable]:
        """*pairs*: whether both rise or fall, or one rises and the other falls, from one row to the next."""
        count = len(self.columns)
        if count < 2:
            return ()
        # The categories of a row that are linked by a table are not linked once more.
        apart = [b in parents and parents[b].name == a for a, b in combinations(self.columns, 2)]

        def estimate(noisy: Floats, noise_std: float) -> Floats:
            return correlations(np.where(np.array(apart)[:, None], 1.0, noisy), count, noise_std)

        shape = (math.comb(count, 2), 2)
        own = PairTable("pairs", "", shape, estimate=estimate)
        return (replace(own, columns=self.columns, increasing=self.increasing, order=self.order),)

    def draw(self, drawing: RowsDrawing) -> None:
        """Nothing: `RowsDrawing.best` draws each column's steps given those before."""


def correlations(pairs: Floats, count: int, noise_std: float) -> Floats:
    """Correlation matrix of normal steps of ``count`` variables that agree and differ so often.

    Two normal variables of correlation r have the same sign with probability 1/2 + arcsin(r) / pi (Sheppard
    1899). Differences are shrunk by their noise, and the nearest matrix without negative eigenvalues follows.
    """
    away, total = pairs[:, 0] - pairs[:, 1], np.maximum(pairs.sum(axis=1), 1e-6)
    shrink = np.maximum(0.0, 1 - 2 * noise_std**2 / np.maximum(away**2, 1e-12))
    found = np.eye(count)
    found[np.triu_indices(count, 1)] = np.sin(np.pi / 2 * np.clip(shrink * away / total, -1.0, 1.0))
    values, vectors = np.linalg.eigh(np.triu(found) + np.triu(found, 1).T)
    near = (vectors * np.maximum(values, 1e-3)) @ vectors.T
    scale = np.sqrt(np.diag(near))
    return near / np.outer(scale, scale)
