"""A private base model: a tree of tables that the later statistics rest on (theory of section 1.8).

Algorithm 1 of Pedersen (2022) leaves the generator's input distribution free. Here it is a small Bayesian
network that uses part of the budget. ``tree`` ties every column to one parent, growing from the outcome.
``tan`` (tree-augmented naive Bayes, Friedman et al. 1997) gives every column the outcome *and* one other
column as parents. This helps classifiers if the outcome has many weak causes.

It reads private records twice: edges are chosen by exponential mechanisms on scores of sensitivity 1
and the chosen tables are counted (`dpsynth.marginals.statistics`). The fit to them
(`dpsynth.marginals.factors`) and all sampling (`dpsynth.marginals.chain`) are post-processing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dpsynth.errors import ConfigError
from dpsynth.files.codec import record
from dpsynth.marginals.binning import Binning, Bins
from dpsynth.marginals.factors import Factor, fit_factors
from dpsynth.marginals.statistics import EdgesRelease, Family, Kind, TablesRelease, panel_of
from dpsynth.privacy.ledger import Ledger
from dpsynth.privacy.records import Records
from dpsynth.privacy.stages import Stage
from dpsynth.table.draws import draw_conditional
from dpsynth.table.grid import Marginals
from dpsynth.table.schema import Schema

if TYPE_CHECKING:
    from dp_accounting.dp_event import DpEvent


@record
@dataclass(frozen=True, eq=False)
class BayesianNetwork:
    """A fitted base model, made by `BaseModelReleases.run`.

    ``root``: column drawn first, from its one-way probabilities.
    ``cells``, shapes (grid.size,): released probabilities of the fine cells, which spread a bin over its
        cells.
    ``factors``: in the order of drawing, see `dpsynth.marginals.factors.Factor`.
    ``panel``: columns whose missing values are drawn together.
    ``missing_law``, shape (len(panel) + 1,), or None: released probabilities of the number of missing values
        among them.
    ``noise_std``: standard deviation of the noise in a cell of their tables (those of the outcome and one
        column have more, `dpsynth.marginals.statistics`), 0 without noise.
    """

    kind: str
    root: int
    binnings: tuple[Binning, ...]
    cells: tuple[NDArray[np.float64], ...]
    factors: tuple[Factor, ...]
    panel: tuple[int, ...] = ()
    missing_law: NDArray[np.float64] | None = None
    noise_std: float = 0.0

    @property
    def edges(self) -> tuple[tuple[int, int], ...]:
        """Pairs (last parent, child) of the factors."""
        return tuple((parents[-1], child) for parents, child, _ in self.factors)

    @property
    def families(self) -> tuple[Family, ...]:
        """Columns of each table, the child last."""
        return tuple((*parents, child) for parents, child, _ in self.factors)

    def sample(self, n: int, rng: np.random.Generator) -> NDArray[np.int64]:
        """Draw bins of n records from the tables alone, shape (n, columns)."""
        if n < 0:
            raise ConfigError(f"n is {n}, but cannot be negative")
        sizes = [b.size for b in self.binnings]
        # Columns are read one after the other.
        bins = np.zeros((n, len(sizes)), dtype=np.int64, order="F")
        everyone = np.zeros(n, dtype=np.int64)
        bins[:, self.root] = draw_conditional(self.binnings[self.root].probabilities[None], everyone, rng)
        for parents, child, table in self.factors:
            group = np.ravel_multi_index(tuple(bins[:, p] for p in parents), table.shape[:-1])
            bins[:, child] = draw_conditional(table.reshape(-1, sizes[child]), group, rng)
        return bins


def cells_of(
    binning: Binning, p: NDArray[np.float64], bins: NDArray[np.int64], rng: np.random.Generator
) -> NDArray[np.int64]:
    """Draw a fine grid cell within each bin of a column, independently, both of shape (n,).

    ``p``, shape (cells,): their probabilities.
    """
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
