"""Tables that a chain gains where budget is left: chosen against the model of the moment, and counted.

The first table of each column holds a tree (`dpsynth.marginals.network`). Further tables of a column and one
or two columns before it are chosen in rounds, one for each column, where the model is farthest from the
records. Each has a resolution of its own. Pairs keep every category that noise lets stand, and ordered
columns have as many ranges as keep the noise at a share of the records.

Source: McKenna, Mullins, Sheldon and Miklau (2022), "AIM: an adaptive and iterative mechanism for
differentially private synthetic data", section 4, for the choice against the model of the moment.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from dpsynth.errors import PrivacyError
from dpsynth.files.codec import record
from dpsynth.marginals.binning import Binning, equal_mass
from dpsynth.marginals.pooling import pool_rare
from dpsynth.marginals.statistics import Family
from dpsynth.marginals.terms import TableTerm
from dpsynth.privacy.exponential_mechanism import choose, in_score_steps
from dpsynth.privacy.records import GridAxis, Records
from dpsynth.privacy.release import Array, ChoiceRelease, Ints
from dpsynth.table.grid import Grid

#: Mean size of a standard normal variable.
_MEAN = math.sqrt(2.0 / math.pi)
#: Deviations of noise in which a departure is lost, and least expected number of records.
_LOST, _LEAST_COUNT = 0.5, 1e-9
#: Expected absolute noise of a table, as a share of the records.
_NOISE = 0.25
#: Numbers of ranges of an ordered column: few, so that tables share them.
_RANGES = (3, 4, 6, 8, 10, 12, 14, 16, 18, 20, 24, 28, 32, 40, 48, 64)
#: Most cells of a pair, and of three columns.
_CELLS = {2: 200_000, 3: 20_000}
#: A category of a pair has a cell of its own from so many deviations of noise on.
_STANDS = 2.0


@record
@dataclass(frozen=True, eq=False)
class TableCells:
    """Columns of a table, the child last, and its cells.

    ``labels``, shapes (states,): cell of each state of each column.
    """

    columns: Family
    labels: tuple[Ints, ...]

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """Cells of each column."""
        return tuple(int(label.max()) + 1 for label in self.labels)

    def term(self, effects: NDArray[np.float32]) -> TableTerm:
        """A term of the chain with these effects, shape (cells of the parents, cells of the child)."""
        return TableTerm(self.columns[:-1], self.labels[:-1], self.labels[-1], effects)


@dataclass(frozen=True, eq=False)
class Candidate:
    """A table that may be counted, and what the model expects in it.

    ``axes``: its cells as axes of records.
    ``expected``, of the table's shape: numbers of records, from released numbers alone.
    ``draws``: draws of the model for each of the records, by which ``expected`` is rough.
    """

    cells: TableCells
    axes: tuple[GridAxis, ...]
    expected: Array
    draws: float

    @property
    def dependence(self) -> float:
        """Of a pair, how many records the model expects elsewhere than if its columns were independent."""
        rows, columns = (self.expected.sum(axis=axis, keepdims=True) for axis in (1, 0))
        return float(np.abs(self.expected - rows * columns / self.expected.sum()).sum())

    def explained(self, lost: float) -> float:
        """What sampling of a right model has beyond ``lost`` in all cells together, on average: public."""
        deviation = np.sqrt(np.maximum(self.expected, _LEAST_COUNT) * (1.0 + 1.0 / self.draws))
        beyond = lost / deviation
        density = np.exp(-(beyond**2) / 2.0) / math.sqrt(2.0 * math.pi)
        return float((2.0 * (deviation * density - lost * ndtr(-beyond))).sum())


class Resolution:
    """Cells of tables, from released probabilities and public numbers.

    ``states``: those of each column. ``laws``, shapes (states,): their probabilities.
    ``noise_std``: of a cell of the tables.
    """

    def __init__(
        self,
        grids: Sequence[Grid],
        states: Sequence[Binning],
        laws: Sequence[Array],
        n: float,
        noise_std: float,
    ) -> None:
        self._columns = list(zip(grids, states, laws, strict=True))
        self._ordered = [
            int(binning.labels[: grid.present].max()) + 1 if grid.ordered else 0
            for grid, binning, _ in self._columns
        ]
        self._least = noise_std / n
        #: most cells of a table
        self._most = _NOISE * n / (_MEAN * max(noise_std, 1.0))
        self._labels: dict[tuple[int, float], Ints] = {}
        self._axes: dict[int, GridAxis] = {}
        self._tables: dict[Family, TableCells | None] = {}

    def axes(self, cells: TableCells) -> tuple[GridAxis, ...]:
        """Axes of records. Equal labels have one axis, which is read once."""
        return tuple(self._axis(j, labels) for j, labels in zip(cells.columns, cells.labels, strict=True))

    def _axis(self, column: int, labels: Ints) -> GridAxis:
        if id(labels) not in self._axes:
            grid, states, _ = self._columns[column]
            self._axes[id(labels)] = GridAxis(grid, labels[states.labels])
        return self._axes[id(labels)]

    def _cut(self, column: int, by: float) -> Ints:
        """Cells of a column's states: ``by`` ranges in order, or categories, of which rarer ones share."""
        if (column, by) in self._labels:
            return self._labels[column, by]
        (grid, _, law), ordered = self._columns[column], self._ordered[column]
        if ordered:
            labels = equal_mass(law[:ordered], int(by)) if by < ordered else np.arange(ordered)
            labels = np.append(labels, labels[-1] + np.arange(1, len(law) - ordered + 1))
        else:
            rare = law < by
            labels = np.arange(len(law))
            if rare.sum() > 1:
                labels = pool_rare(law, rare, by, grid.column.tree_levels)
        self._labels[column, by] = labels
        return labels

    def cells(self, columns: Family) -> TableCells | None:
        """Cells of a table, or None if categories alone are too many, or all of a column are too rare."""
        if columns not in self._tables:
            self._tables[columns] = self._made(columns)
        return self._tables[columns]

    def _made(self, columns: Family) -> TableCells | None:
        found: dict[int, Ints] = {}
        pair, limit = len(columns) == 2, _CELLS[len(columns)]
        for j in (j for j in columns if not self._ordered[j]):
            others = 1.0 if pair else min(max(self._most / len(self._columns[j][2]), 4.0), 64.0)
            found[j] = self._cut(j, _STANDS * math.sqrt(others) * self._least)
        # ranges are rounded to the nearest number, and all together may be more
        left = min(max(self._most, 9.0), limit / 2) / math.prod(
            int(labels.max()) + 1 for labels in found.values()
        )
        ordered = sorted((j for j in columns if self._ordered[j]), key=lambda j: len(self._columns[j][2]))
        for place, j in enumerate(ordered):
            wanted = max(left, 1.0) ** (1.0 / (len(ordered) - place))
            found[j] = self._cut(
                j, float(_RANGES[int(np.argmin(np.abs(np.log(_RANGES) - math.log(wanted))))])
            )
            left /= int(found[j].max()) + 1
        cells = TableCells(tuple(columns), tuple(found[j] for j in columns))
        return cells if min(cells.shape) > 1 and math.prod(cells.shape) <= limit else None


@dataclass(frozen=True, kw_only=True)
class TableChoiceRelease(ChoiceRelease[Sequence[Sequence[Candidate]]]):
    """One of several tables for each of some columns, by exponential mechanisms on scores of sensitivity 1.

    The score of a table is the sum over its cells of what |n - expected| has beyond half a deviation of the
    table's noise, in which the rest would be lost, less what sampling explains. One record changes one n by
    one. All other numbers are released before.

    ``count``: number of choices, at most.
    ``noise_std``: of a cell of the later tables, in which small departures are lost.
    ``read_with``: candidates of each choice. A single one is taken without looking at its score.
    """

    count: int
    noise_std: float
    name: ClassVar[str] = "choice of further tables"
    detail: ClassVar[str] = "for each column, with which one or two others it is counted next"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.read_with is not None and len(self.read_with) > self.count:
            raise PrivacyError(f"{len(self.read_with)} choices are to be made, but {self.count} were planned")

    @property
    def choices(self) -> int:
        """As many as were planned."""
        return self.count

    def scores(self, records: Records, candidates: Sequence[Candidate]) -> Array:
        """Distance of the records from the model in each table: private, sensitivity 1 each."""
        counted = records.each_count((one.axes for one in candidates), keep=True)
        lost = float(in_score_steps(_LOST * self.noise_std))
        away = [
            np.maximum(np.abs(counts - in_score_steps(one.expected)) - lost, 0.0).sum()
            for one, counts in zip(candidates, counted, strict=True)
        ]
        return np.array(away) - in_score_steps([one.explained(lost) for one in candidates])

    def __call__(self, records: Records, rng: np.random.Generator) -> list[Candidate]:
        """Choose. A ledger calls it when the choices are posted."""
        seen = [one for candidates in self.given if len(candidates) > 1 for one in candidates]
        # all at once: a table in parts is read few times
        scores = dict(zip(map(id, seen), self.scores(records, seen), strict=True))

        def pick(candidates: Sequence[Candidate]) -> int:
            if len(candidates) == 1:
                return 0
            return choose([scores[id(one)] for one in candidates], self.epsilon, rng)

        return [candidates[pick(candidates)] for candidates in self.given]
