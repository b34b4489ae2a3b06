"""Correlations of the steps of ordered columns."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

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

    A step leads from a row that has both values to the next such row. Beside an ``increasing`` column, which
    never steps down, it counts as far as it is above the patient's mean over the time. Shape (N, 2 pairs).
    """
    found = np.zeros((len(rows.rows), 2 * math.comb(len(columns), 2)))
    for k, (one, other) in enumerate(combinations(columns, 2)):
        values = [rows.numbers[name] for name in (one, other)]
        both = ~np.isnan(values[0]) & ~np.isnan(values[1])
        last = last_before(both)
        steps = [_steps(each, last, both) for each in values]
        if {one, other} & {*increasing}:
            time = _steps(rows.numbers[order], last, both)
            steps = [above_the_mean(each, time) for each in steps]
        signs = np.prod([*map(np.sign, steps)], axis=0)
        found[:, 2 * k] = (signs > 0).sum(axis=1)
        found[:, 2 * k + 1] = (signs < 0).sum(axis=1)
    return found


def _steps(values: Floats, last: Ints, both: NDArray[np.bool_]) -> Floats:
    """Steps to rows from those numbered ``last``, 0 where there is none."""
    before = np.take_along_axis(values, np.maximum(last, 0), axis=1)
    return np.where(both & (last >= 0), values - before, 0.0)


def above_the_mean(steps: Floats, time: Floats) -> Floats:
    """What steps are above the patient's mean step in the same time. Shape (N, most)."""
    whole = time.sum(axis=1)
    slope = steps.sum(axis=1) / np.where(whole > 0, whole, 1.0)
    return np.round(steps - slope[:, None] * time, 9)


@dataclass(frozen=True)
class Links(RowCourse):
    """The ordered columns, in pairs. They have no levels of their own.

    Increasing columns are linked with ``numbers`` alone. Both signs of a number's steps above the mean are
    about as frequent, and those of a category that changes once are not.
    """

    columns: tuple[str, ...]
    numbers: tuple[str, ...]
    increasing: tuple[str, ...]
    order: str

    def tables(self, parents: Mapping[str, Column]) -> Sequence[RowTable]:
        """*pairs*: whether both rise or fall, or one rises and the other falls, from one row to the next."""
        count = len(self.columns)
        if count < 2:
            return ()
        # The categories of a row that are linked by a table are not linked once more.
        apart = [
            (b in parents and parents[b].name == a)
            or bool({a, b} & {*self.increasing} and {a, b} - {*self.numbers})
            for a, b in combinations(self.columns, 2)
        ]

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
