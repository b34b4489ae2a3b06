"""Records drawn column by column, each given those before it: the model of all released statistics.

The first column is the outcome, and the order is that in which the tree of tables grew. Column j has the
distribution

    p(x_j = v | earlier)  ~  exp(base_j(v) + sum of terms).

Terms are a coupling of ordered columns (`dpsynth.marginals.coupling`), an effect of what earlier columns lack
(`dpsynth.marginals.missing`), a factor of each rule that the column is the last of
(`dpsynth.marginals.rules`), the table of its family, and products of numbers with all earlier columns
(`dpsynth.marginals.terms`). The columns are fitted in their order, on a pool of records whose earlier columns
were drawn from the fitted model. A fit is convex and takes a few rounds. The model is a function of released
numbers: post-processing, free of cost.

States are finer than the bins of tables: every category, and at most 64 ranges of an ordered column's values,
cut where bins are.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dpsynth.errors import ConfigError
from dpsynth.files.codec import record
from dpsynth.marginals.binning import Binning
from dpsynth.marginals.coupling import Coupling, normal_scores
from dpsynth.marginals.drawing import Drawing
from dpsynth.marginals.growth import TableCells
from dpsynth.marginals.network import BayesianNetwork, cells_of
from dpsynth.marginals.statistics import PairwiseStatistics
from dpsynth.marginals.terms import ChainTerm, DrawnColumns, Sent, TableTerm
from dpsynth.parallel import in_blocks
from dpsynth.table.draws import grouped

Ints = NDArray[np.int64]
Doubles = NDArray[np.float64]
Floats = NDArray[np.float32]

#: Records that are drawn at once.
_BLOCK = 8192


@record
@dataclass(frozen=True, eq=False)
class Conditional(Sent):
    """The distribution of a column given those before it.

    ``base``, shape (states,): log probability before any term.
    """

    column: int
    base: Floats
    terms: tuple[ChainTerm, ...] = ()

    def logits(self, rows: DrawnColumns) -> Floats:
        """Log probabilities up to a constant, shape (states, n)."""
        logits = np.repeat(self.base[:, None], rows.states.shape[1], axis=1)
        for term in self.terms:
            logits += term.logits(rows)
        return logits

    @cached_property
    def drawing(self) -> Drawing:
        """The form that is drawn from."""
        return Drawing.of(self.base, self.terms)

    def draw(self, rows: DrawnColumns, rng: np.random.Generator) -> Ints:
        """States of all records, shape (n,).

        Records of one cell of the first table take uniforms in even numbers (`dpsynth.table.draws`).
        """
        n = rows.states.shape[1]
        table = next((term for term in self.terms if isinstance(term, TableTerm)), None)
        cell = np.zeros(n, np.int64) if table is None else table.cells(rows)
        counts = np.bincount(cell)
        order = grouped(cell, len(counts), rng)
        starts = np.cumsum(counts) - counts
        mark = np.empty(n)
        mark[order] = (np.arange(n) - starts[cell[order]] + rng.random(n)) / counts[cell[order]]
        return self.drawing.draw(rows, mark)


@record
@dataclass(frozen=True, eq=False)
class Chain:
    """A fitted chain, made with `dpsynth.marginals.chain_fit`.

    ``binnings``: states of each column. ``cells``, shapes (grid.size,): released probabilities of fine cells.
    ``coarse``, shapes (states,): bin of each state in the tables.
    ``ends``, shapes (ordered states + 1,): ranges of normal scores. Empty for a column without order.
    ``conditionals``: in the order of drawing, the first of which has no terms.
    ``network``: the tables, with their families. ``pairs``: the pairwise statistics, or None.
    ``ruled``: whether rules are factors of it.
    ``grown``: tables beside the first ones, of each round of choices.
    """

    binnings: tuple[Binning, ...]
    cells: tuple[Doubles, ...]
    coarse: tuple[Ints, ...]
    ends: tuple[Doubles, ...]
    conditionals: tuple[Conditional, ...]
    network: BayesianNetwork
    pairs: PairwiseStatistics | None
    ruled: bool
    grown: tuple[tuple[TableCells, ...], ...] = ()

    def sample(self, n: int, rng: np.random.Generator) -> Ints:
        """Draw states of n records, shape (n, columns)."""
        return self.scored(n, rng)[0]

    def scored(self, n: int, rng: np.random.Generator) -> tuple[Ints, Floats]:
        """Draw states of n records, and normal scores of coupled columns, both of shape (n, columns)."""
        if n < 0:
            raise ConfigError(f"n is {n}, but cannot be negative")
        drawn = np.empty((n, len(self.binnings)), np.int64, order="F")
        scores = np.empty(drawn.shape, np.float32, order="F")
        scored: set[int] = set()
        for column in self.conditionals:
            for coupling in (term for term in column.terms if isinstance(term, Coupling)):
                scored |= {column.column, *coupling.columns}

        def work(part: slice, own: np.random.Generator) -> None:
            rows = DrawnColumns.empty(len(self.binnings), part.stop - part.start)
            for column in self.conditionals:
                self.draw(column, rows, own, scored=column.column in scored)
            drawn[part], scores[part] = rows.states.T, rows.scores.T

        in_blocks(work, n, _BLOCK, rng)
        return drawn, scores

    def draw(
        self, column: Conditional, rows: DrawnColumns, rng: np.random.Generator, *, scored: bool = True
    ) -> None:
        """Draw one column of records, with normal scores if ``scored``."""
        j = column.column
        states = rows.states[j] = column.draw(rows, rng)
        if scored and len(self.ends[j]):
            coupling = next((term for term in column.terms if isinstance(term, Coupling)), None)
            rows.scores[j] = normal_scores(states, self.ends[j], coupling, rows, rng)

    def bins(self, states: Ints) -> Ints:
        """Bins of the tables, of states, both of shape (n, columns)."""
        return np.stack([label[column] for label, column in zip(self.coarse, states.T, strict=True)], axis=1)

    def cells_of(self, states: Ints, rng: np.random.Generator) -> Ints:
        """Draw a fine grid cell within each state, independently, both of shape (n, columns)."""
        return np.stack([self.column_cells(j, column, rng) for j, column in enumerate(states.T)]).T

    def column_cells(self, j: int, states: Ints, rng: np.random.Generator) -> Ints:
        """Draw a fine grid cell of column j within each state, independently, both of shape (n,)."""
        return cells_of(self.binnings[j], self.cells[j], states, rng)
