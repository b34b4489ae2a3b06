"""Noisy choice of pairs of columns, and their noisy tables: a tree, or a tree with the outcome beside."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dpsynth.errors import ConfigError
from dpsynth.marginals.binning import Binning, Bins
from dpsynth.marginals.factors import fit_factors
from dpsynth.marginals.network import BaseModelReleases, BayesianNetwork
from dpsynth.marginals.statistics import OUTCOME_SHARE, Kind
from dpsynth.synthesis.parts.columns import Columns
from dpsynth.synthesis.parts.part import Part, Reading, Redrawing, Statistic
from dpsynth.table.schema import Schema

#: Samples for the length of a record's features.
_DRAWS = 20_000


@dataclass(frozen=True)
class BaseModel(Part[BayesianNetwork]):
    """Edges and tables of a Bayesian network.

    ``edges_share``: fraction of the part's share for the choice of edges. Tables get the rest.
    """

    schema: Schema
    kind: Kind
    edges_share: float

    @property
    def release(self) -> BaseModelReleases:
        """Both statistics with their noise."""
        tables = epsilon = None
        if self.noise is not None:
            tables = self.noise / math.sqrt(1.0 - self.edges_share)
            picks = max(len(self.schema) - 1, 1)
            # An exponential mechanism has a loss of variance eps^2 / 3, which is mu^2 in the Gaussian limit.
            epsilon = math.sqrt(3.0 * self.edges_share / picks) / self.noise
        return BaseModelReleases.plan(
            self.schema, self.kind, noise_multiplier=tables, epsilon=epsilon, stage=self.stage
        )

    @property
    def statistics(self) -> tuple[Statistic, ...]:
        """Edges if there is a choice, and tables if there are two columns."""
        edges, tables = self.release.edges, self.release.tables
        found = []
        if edges.choices:
            found.append(
                Statistic("choice of the base model's edges", (edges.event,), share=self.edges_share)
            )
        if tables.count:
            std, outcome = tables.noise_std, None
            if tables.with_outcome:
                outcome = std / math.sqrt(OUTCOME_SHARE)
            found.append(
                Statistic(
                    "base model's cross-tabulations",
                    (tables.event,),
                    share=1.0 - self.edges_share,
                    noise_std=std,
                    pair_std=std if outcome is None else outcome,
                    outcome_std=outcome,
                )
            )
        return tuple(found)

    def read(self, reading: Reading) -> BayesianNetwork:
        """Choose edges, count tables, and fit these to each other and to the columns."""
        marginals = reading.of(Columns)
        if marginals is None:
            raise ConfigError("the base model is made of single-column counts: read Columns before it")
        return self.release.run(reading.ledger, reading.records, marginals, reading.rng)

    def redraw(self, reading: Redrawing) -> BayesianNetwork:
        """The same tables with the same bins: edges stay. Fits to later parts start from the released one."""
        before, marginals = reading.released.base_model, reading.of(Columns)
        assert before is not None and marginals is not None  # the part was read
        binnings = tuple(
            Binning.from_labels(binning.labels, p)
            for binning, p in zip(before.binnings, marginals.probabilities, strict=True)
        )
        bins = Bins(marginals.grids, binnings, marginals.n)
        tables = self.release.tables.of(bins, before.families)
        counts = reading.run(tables) if tables.count else {}
        return replace(
            before,
            binnings=binnings,
            cells=marginals.probabilities,
            factors=fit_factors(before.families, counts, bins, before.noise_std),
            missing_law=marginals.missing_law,
        )


@dataclass(frozen=True)
class Samples:
    """Samples of the base model, of which the queries of later parts are made: shape (draws, columns)."""

    bins: Bins
    draws: NDArray[np.int64]

    @classmethod
    def of(cls, reading: Reading) -> Samples:
        """The samples of this reading, the same for every part."""
        found: Samples | None = reading.shared.get(cls)
        if found is None:
            marginals, network = reading.of(Columns), reading.of(BaseModel)
            if marginals is None or network is None:
                raise ConfigError("statistics beside a base model need one: read Columns and BaseModel first")
            bins = Bins(marginals.grids, network.binnings, marginals.n)
            found = reading.shared[cls] = cls(bins, network.sample(_DRAWS, reading.rng))
        return found
