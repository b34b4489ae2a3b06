"""A private base model: a tree of marginals from which records are drawn (theory of section 1.8).

Algorithm 1 of Pedersen (2022) leaves the generator's input distribution free. Here it is a small Bayesian
network that uses part of the budget. ``tree`` ties every column to one parent, growing from the outcome.
``tan`` (tree-augmented naive Bayes, Friedman et al. 1997) gives every column the outcome *and* one other
column as parents. This helps classifiers if the outcome has many weak causes.

It reads private records twice: edges are chosen by exponential mechanisms on scores of sensitivity 1
(`dpsynth.releases.structure`), and the chosen tables are counted (`dpsynth.releases.tables`). The fit to them
(`dpsynth.model.base_model.factors`) and all sampling are post-processing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dpsynth.accounting.contents import Stage
from dpsynth.accounting.ledger import Ledger
from dpsynth.errors import ConfigError
from dpsynth.files.codec import record
from dpsynth.model.base_model.copula import Copula
from dpsynth.model.base_model.factors import Factor, fit_factors
from dpsynth.model.base_model.gibbs import HeatBath
from dpsynth.model.base_model.missing_counts import (
    CountedTree,
    choose,
    lacking_bins,
    missing_values,
    with_mean,
)
from dpsynth.model.blocks import in_blocks
from dpsynth.model.reweighting.reweighting import Reweighting
from dpsynth.model.reweighting.weights import Weighting
from dpsynth.releases.bins import Binning, Bins
from dpsynth.releases.marginals import panel_of
from dpsynth.releases.records import Records
from dpsynth.releases.structure import EdgesRelease, Family, Kind
from dpsynth.releases.tables import TablesRelease
from dpsynth.table.draws import draw_conditional
from dpsynth.table.grid import Grid
from dpsynth.table.marginals import Marginals
from dpsynth.table.schema import Schema

if TYPE_CHECKING:
    from dp_accounting.dp_event import DpEvent

#: Columns, in the order of drawing, by which candidates are sorted before some of them are chosen.
_SORTED = 6
#: Sweeps of the heat bath from draws of the tables to reweighted ones: after four, pairwise statistics of
#: 40,000 draws are as near to those of the distribution as another 40,000 (flchain, support2; PhysioNet 2012
#: nearly).
SWEEPS = 5
#: Weighed draws that are made at once; and how many more are made of them than are needed, for few.
_WEIGHED, _MORE = 20_000, 100
_CAPS = 100
#: Draws whose correlations a copula has.
_COUPLED = 20_000


@record
@dataclass(frozen=True, eq=False)
class BayesianNetwork:
    """A fitted base model, made by `BaseModelReleases.run`.

    ``root``: column drawn first, from its one-way probabilities.
    ``cells``, shapes (grid.size,): released probabilities of the fine cells, which spread a bin over its
        cells.
    ``factors``: in the order of drawing, see `dpsynth.model.base_model.factors.Factor`.
    ``panel``: columns whose missing values are drawn together.
    ``missing_law``, shape (len(panel) + 1,), or None: released probabilities of the number of missing values
        among them.
    ``noise_std``: standard deviation of the noise in a cell of their tables (those of the outcome and one
        column have more, `dpsynth.releases.tables`), 0 without noise.
    ``reweighting``: by released pairwise statistics (`dpsynth.model.reweighting.fit_reweighting`).
    ``weighting``: by a nearest-neighbour histogram (`dpsynth.model.reweighting.fit_weights`).
    ``rules``: columns of each rule and, by their bins, the log share of records that obey it
        (`dpsynth.model.base_model.rule_factors`). They take part where there is a reweighting.
    ``copula``: of values within their bins, or None where they are independent.
    """

    kind: str
    root: int
    binnings: tuple[Binning, ...]
    cells: tuple[NDArray[np.float64], ...]
    factors: tuple[Factor, ...]
    panel: tuple[int, ...] = ()
    missing_law: NDArray[np.float64] | None = None
    noise_std: float = 0.0
    reweighting: Reweighting | None = None
    weighting: Weighting | None = None
    rules: tuple[tuple[tuple[int, ...], NDArray[np.float32]], ...] = ()
    copula: Copula | None = None

    @property
    def edges(self) -> tuple[tuple[int, int], ...]:
        """Pairs (last parent, child) of the factors."""
        return tuple((parents[-1], child) for parents, child, _ in self.factors)

    @property
    def families(self) -> tuple[Family, ...]:
        """Columns of each table, the child last."""
        return tuple((*parents, child) for parents, child, _ in self.factors)

    def sample(self, n: int, rng: np.random.Generator) -> NDArray[np.int64]:
        """Draw coarse bins of n records, shape (n, columns), with the released missing values."""
        if n < 0:
            raise ConfigError(f"n is {n}, but cannot be negative")
        if self.weighting is None or self.weighting.most == 1.0 or n == 0:
            return self._reweighted(n, rng)
        if n <= _WEIGHED:
            return self._weighed(n, self.weighting, rng)
        weighting, drawn = self.weighting, np.empty((n, len(self.binnings)), np.int64, order="F")

        def work(part: slice, own: np.random.Generator) -> None:
            drawn[part] = self._weighed(part.stop - part.start, weighting, own)

        in_blocks(work, n, _WEIGHED, rng)
        return drawn

    def _weighed(self, n: int, weighting: Weighting, rng: np.random.Generator) -> NDArray[np.int64]:
        """``n`` of more draws by weight, evenly over the columns that are drawn first."""
        draws = self._reweighted(math.ceil(n * weighting.most) + _MORE, rng)
        weights = weighting.of(draws, self.missing(draws))
        for _ in range(_CAPS):
            # a draw that weighs more than the distance of the marks would be chosen twice
            distance = weights.sum() / n * (1 - 1e-9)
            if weights.max() <= distance:
                break
            weights = np.minimum(weights, distance)
        first = [self.root, *(child for _, child, _ in self.factors)][:_SORTED]
        rows = choose(weights, n, rng, [draws[:, j] for j in first])
        return np.asfortranarray(draws.T[:, rows].T)

    def missing(self, draws: NDArray[np.int64]) -> NDArray[np.int64]:
        """Number of missing values of each record among the panel's columns, shape (n,)."""
        return missing_values(draws, self._counted, lacking_bins(self.binnings))

    @property
    def _counted(self) -> tuple[int, ...]:
        """Columns whose missing values are counted together, where their distribution was released."""
        return self.panel if self.missing_law is not None else ()

    def _reweighted(self, n: int, rng: np.random.Generator) -> NDArray[np.int64]:
        bins = self._with_panel(n, rng)
        if self.reweighting is not None and n:
            self.heat_bath().sweep(bins, self.reweighting, rng, SWEEPS)
        return bins

    def coupled(self, grids: Sequence[Grid], n: float, rng: np.random.Generator) -> BayesianNetwork:
        """The same with a copula of its ordered columns, and of those with two categories.

        ``n``: number of records of the table.
        """
        present = [
            int(binning.labels[: grid.present].max()) + 1 if grid.ordered else 2 * (grid.size == 2)
            for grid, binning in zip(grids, self.binnings, strict=True)
        ]
        draws = self.sample(_COUPLED, rng)
        return replace(self, copula=Copula.of(self.binnings, present, draws, self.noise_std / n))

    def heat_bath(self) -> HeatBath:
        """Sweeps over records of these tables."""
        still = None if self.missing_law is None else self.counted.loose
        return HeatBath(self.binnings, self.root, self.factors, self._counted, still, self.rules)

    @cached_property
    def counted(self) -> CountedTree:
        """The tables' distribution with the released number of missing values, where that was released."""
        lacking = lacking_bins(self.binnings)
        panel = {j: int(lacking[j]) for j in self.panel}
        shares = np.array([self.binnings[j].probabilities[missing] for j, missing in panel.items()])
        law = with_mean(np.asarray(self.missing_law), float(shares.sum()))
        first = self.binnings[self.root].probabilities
        return CountedTree(self.root, first, self.factors, panel, law, shares)

    def _with_panel(self, n: int, rng: np.random.Generator) -> NDArray[np.int64]:
        if self.missing_law is not None and n:
            return self.counted.draw(n, rng)
        sizes = [b.size for b in self.binnings]
        # Columns are read one after the other.
        bins = np.zeros((n, len(sizes)), dtype=np.int64, order="F")
        everyone = np.zeros(n, dtype=np.int64)
        bins[:, self.root] = draw_conditional(self.binnings[self.root].probabilities[None], everyone, rng)
        for parents, child, table in self.factors:
            group = np.ravel_multi_index(tuple(bins[:, p] for p in parents), table.shape[:-1])
            bins[:, child] = draw_conditional(table.reshape(-1, sizes[child]), group, rng)
        return bins

    def sample_cells(self, n: int, rng: np.random.Generator) -> NDArray[np.int64]:
        """Draw fine grid cells of n records, shape (n, columns): bins, then cells within them."""
        return self.cells_of(self.sample(n, rng), rng)

    def cells_of(self, bins: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int64]:
        """Draw a fine grid cell within each bin, independently, both of shape (n, columns)."""
        columns = [self.column_cells(j, column, rng) for j, column in enumerate(bins.T)]
        return np.stack(columns).T

    def column_cells(self, j: int, bins: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int64]:
        """Draw a fine grid cell of column j within each bin, independently, both of shape (n,)."""
        binning, p = self.binnings[j], self.cells[j]
        if binning.size == len(p):
            return np.argsort(binning.labels)[bins]
        within = np.zeros((binning.size, len(p)))
        # The small term lets a bin without released mass draw one of its own cells.
        within[binning.labels, np.arange(len(p))] = p + 1e-12
        return draw_conditional(within, bins, rng, even=False)


@dataclass(frozen=True)
class BaseModelReleases:
    """The noisy statistics that a base model is made of, their noise fixed together and beforehand."""

    edges: EdgesRelease
    tables: TablesRelease

    @classmethod
    def plan(
        cls,
        schema: Schema,
        kind: Kind,
        *,
        noise_multiplier: float | None,
        epsilon: float | None,
        stage: Stage | None = None,
    ) -> BaseModelReleases:
        """Plan both statistics, from public numbers.

        ``noise_multiplier``: noise standard deviation of the tables over their sensitivity. None: exact,
            **not private**.
        ``epsilon``: of each choice of an edge. None: the best edges, **not private**.
        """
        tables = TablesRelease.plan(
            len(schema) - 1, three_way=kind == "tan", noise_multiplier=noise_multiplier, stage=stage
        )
        edges = EdgesRelease(
            schema=schema, kind=kind, epsilon=epsilon, table_std=tables.noise_std, stage=stage
        )
        return cls(edges, tables)

    @property
    def events(self) -> list[DpEvent]:
        """Their cost."""
        edges = [self.edges.event] if self.edges.choices else []
        return [*edges, self.tables.event] if self.tables.count else edges

    def run(
        self, ledger: Ledger, records: Records, marginals: Marginals, rng: np.random.Generator
    ) -> BayesianNetwork:
        """Choose the edges, count the tables, and fit these to each other and to released marginals.

        ``marginals``: released single-column counts of the same schema. ``marginals.n`` is the number of
            records used.
        """
        edges, schema = self.edges, self.edges.schema
        if marginals.names != schema.names:
            raise ConfigError(
                f"marginals are of the columns {marginals.names}, the schema's are {schema.names}"
            )
        bins = Bins.of(
            marginals,
            root=None if schema.outcome is None else edges.root,
            classes=marginals.grids[edges.root].size if edges.kind == "tan" else 1,
            noise_std=self.tables.noise_std,
        )
        families = ledger.run(edges.at(bins), records, rng) if edges.choices else edges.only()
        tables = self.tables.of(bins, families)
        counts = ledger.run(tables, records, rng) if tables.count else {}
        return BayesianNetwork(
            kind=edges.kind,
            root=edges.root,
            binnings=bins.binnings,
            cells=marginals.probabilities,
            factors=fit_factors(families, counts, bins, self.tables.noise_std),
            panel=panel_of(bins.grids),
            missing_law=marginals.missing_law,
            noise_std=self.tables.noise_std,
        )
