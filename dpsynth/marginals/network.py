"""A private base model: a tree of marginals from which records are drawn (theory of section 1.8).

Algorithm 1 of Pedersen (2022) leaves the generator's input distribution free. Here it is a small Bayesian
network that uses part of the budget. ``tree`` ties every column to one parent, growing from the outcome.
``tan`` (tree-augmented naive Bayes, Friedman et al. 1997) gives every column the outcome *and* one other
column as parents. This helps classifiers if the outcome has many weak causes.

It reads private records twice: edges are chosen by exponential mechanisms on scores of sensitivity 1
and the chosen tables are counted (`dpsynth.marginals.statistics`). The fit to them
(`dpsynth.marginals.factors`) and all sampling are post-processing.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri, owens_t

from dpsynth.errors import ConfigError, InputError
from dpsynth.files.codec import record
from dpsynth.marginals.binning import Binning, Bins, make_binning
from dpsynth.marginals.factors import (
    CountedTree,
    Factor,
    fit_factors,
    lacking_bins,
    missing_values,
    with_mean,
)
from dpsynth.marginals.gibbs import HeatBath, Reweighting
from dpsynth.marginals.statistics import EdgesRelease, Family, Kind, TablesRelease, panel_of
from dpsynth.parallel import in_blocks
from dpsynth.privacy.ledger import Ledger
from dpsynth.privacy.records import Records
from dpsynth.privacy.stages import Stage
from dpsynth.table.derived import derived_numbers, modelled_inputs
from dpsynth.table.draws import draw_conditional
from dpsynth.table.expressions import Expression
from dpsynth.table.grid import Grid, Marginals, make_grids
from dpsynth.table.schema import Schema
from dpsynth.table.values import Numbers, numbers_of

if TYPE_CHECKING:
    from dp_accounting.dp_event import DpEvent


# ------------------------------------------------------------------------------------------------
# Values within their bins: ordered columns are coupled by a Gaussian copula.
#
# Bins of the base model are coarse. Two columns that are nearly functions of each other, such as the radius
# and the area of a nucleus, would be independent within them. So each record has a normal score in each
# ordered column, within the range that stands for its bin. The scores have the correlation that the bins
# have by the model (the polychoric correlation, Olsson 1979). Mehler's formula gives the mean product of two
# scored bins as a power series in it: ``E[s_i s_j] = sum over k of rho^k a_ik a_jk``, with a_ik the Hermite
# coefficients of column i's scores. Strong correlations are then found by likelihood, with a part of the
# records independent: noise in a table leaves some far from the others. The order of the normal scores is
# the order of the values. Post-processing, free of cost.

Floats = NDArray[np.float64]

#: Terms of the power series.
_TERMS = 60
#: Largest correlation, and least eigenvalue of the correlations.
_LARGEST, _LEAST = 0.998, 2e-3
#: A column with no correlation above this, and above so many standard deviations of noise, keeps a random
#: order within its bins.
_WEAK, _NOISE = 0.3, 3.0
#: Correlations above this are found anew by likelihood, among so many.
_STRONG, _TRIED = 0.6, 25
#: Parts of the records that may be independent.
_PARTS = (0.0, 0.002, 0.005, 0.01, 0.02, 0.04, 0.08, 0.15, 0.3)
#: What a part of independent records must gain in mean log likelihood.
_RELUCTANCE = 0.2
#: Passes over the columns, after the first, that give a record its scores.
_SWEEPS = 4
#: Ends of a normal distribution.
_FAR = 8.0
#: Records whose scores are drawn together, so that their arrays stay in cache.
_BLOCK = 8192


@record
@dataclass(frozen=True, eq=False)
class Copula:
    """A Gaussian copula of ordered columns.

    ``columns``: those that take part.
    ``correlation``, shape (columns, columns).
    ``ends``, shapes (bins + 1,): of the ranges of normal scores that stand for the bins in their order.
    """

    columns: tuple[int, ...]
    correlation: Floats
    ends: tuple[Floats, ...]

    @classmethod
    def of(
        cls,
        binnings: Sequence[Binning],
        present: Sequence[int],
        draws: NDArray[np.int64],
        noise: float = 0.0,
    ) -> Copula:
        """The copula with the correlations of the bins of ``draws``, shape (n, columns of the table).

        ``present``: number of bins of each column that lie in their order, 0 for a column without order.
        ``noise``: standard deviation of the noise in a share of the tables, by which weak correlations are
            judged.
        """
        columns = [j for j, size in enumerate(present) if size > 1]
        if len(columns) < 2:
            return cls((), np.zeros((0, 0)), ())
        bins = [np.minimum(draws[:, j], present[j]) for j in columns]
        ends = [_ends(binnings[j].probabilities[: present[j]]) for j in columns]
        correlation = _correlations(bins, ends)
        size = np.sqrt([len(end) - 1.0 for end in ends])
        told = np.abs(correlation) > np.maximum(_WEAK, _NOISE * noise * np.outer(size, size))
        np.fill_diagonal(told, False)
        kept = np.flatnonzero(told.any(axis=1))
        own = _definite(correlation[np.ix_(kept, kept)])
        return cls(tuple(columns[i] for i in kept), own, tuple(ends[i] for i in kept))

    def scores(
        self,
        bins: Sequence[NDArray[np.int64]],
        known: Sequence[NDArray[np.bool_]],
        rng: np.random.Generator,
    ) -> dict[int, Floats]:
        """Normal scores of n records in each of the copula's columns, shapes (n,).

        ``bins``, shapes (n,): of all columns.
        ``known``, shapes (n,): of the copula's columns, where a record's value has a place in the order.
        """
        if not self.columns:
            return {}
        low = np.full((len(self.columns), len(bins[0])), -_FAR)
        high = -low
        for i, (j, ends) in enumerate(zip(self.columns, self.ends, strict=True)):
            own = bins[j][known[i]]
            low[i, known[i]], high[i, known[i]] = ends[own], ends[own + 1]
        found = np.empty_like(low)
        precision = np.linalg.inv(self.correlation)

        def work(part: slice, own: np.random.Generator) -> None:
            found[:, part] = self._block(low[:, part], high[:, part], precision, own)

        in_blocks(work, found.shape[1], _BLOCK, rng)
        return dict(zip(self.columns, found, strict=True))

    def _block(self, low: Floats, high: Floats, precision: Floats, rng: np.random.Generator) -> Floats:
        scores = np.zeros_like(low)
        for j in range(len(low)):  # the first pass: each given those before it
            before = self.correlation[:j, :j]
            slopes = np.linalg.solve(before, self.correlation[:j, j]) if j else np.zeros(0)
            variance = 1.0 - float(slopes @ self.correlation[:j, j])
            scores[j] = _truncated(slopes @ scores[:j], variance**0.5, low[j], high[j], rng)
        for _ in range(_SWEEPS):
            for j in rng.permutation(len(low)):
                own = precision[j, j]
                mean = scores[j] - (precision[j] @ scores) / own
                scores[j] = _truncated(mean, own**-0.5, low[j], high[j], rng)
        return scores


def _correlations(bins: Sequence[NDArray[np.int64]], ends: Sequence[Floats]) -> Floats:
    """Correlations of normal scores, of columns whose bins are given with a last one that has no place."""
    scores, coefficients = zip(*map(_scores, ends), strict=True)
    values = np.stack([np.append(score, 0.0)[b] for score, b in zip(scores, bins, strict=True)])
    known = np.stack([b < len(score) for score, b in zip(scores, bins, strict=True)])
    together = np.maximum(known.astype(np.float64) @ known.T, 1.0)
    found = _polychoric((values @ values.T) / together, np.stack(coefficients))
    for i, k in zip(*np.nonzero(np.triu(np.abs(found) > _STRONG, 1)), strict=True):
        both, shape = known[i] & known[k], (len(scores[i]), len(scores[k]))
        cells = np.ravel_multi_index((bins[i][both], bins[k][both]), shape)
        counts = np.bincount(cells, minlength=shape[0] * shape[1]).reshape(shape)
        found[i, k] = found[k, i] = _likeliest(counts, ends[i], ends[k], found[i, k])
    return found


def _ends(probabilities: Floats) -> Floats:
    """Ends of the ranges of normal scores that stand for bins in order, shape (bins + 1,)."""
    below = np.cumsum(np.maximum(probabilities, 1e-9))
    return np.asarray(ndtri(np.append(0.0, below / below[-1])).clip(-_FAR, _FAR))


def _scores(ends: Floats) -> tuple[Floats, Floats]:
    """Mean normal score of each bin, and the Hermite coefficients of these means from the first on."""
    mass = np.diff(ndtr(ends))
    density = np.exp(-0.5 * ends**2) / np.sqrt(2 * np.pi)
    score = -np.diff(density) / np.maximum(mass, 1e-12)
    # h_k = He_k / sqrt(k!); the integral of h_k times the density is -h_(k - 1) times it, over sqrt(k)
    previous, current = np.zeros_like(ends), np.ones_like(ends)
    found = np.empty(_TERMS)
    for k in range(1, _TERMS + 1):
        found[k - 1] = score @ (-np.diff(current * density)) / np.sqrt(k)
        previous, current = current, (ends * current - np.sqrt(k - 1) * previous) / np.sqrt(k)
    return score, found


def _polychoric(mean: Floats, coefficients: Floats) -> Floats:
    """Correlations of normal scores with these mean products of bins' scores, by bisection."""
    terms = coefficients[:, None, :] * coefficients[None, :, :]
    low, high = np.full(mean.shape, -_LARGEST), np.full(mean.shape, _LARGEST)
    for _ in range(30):
        middle = (low + high) / 2
        value = np.zeros_like(middle)
        for k in range(_TERMS - 1, -1, -1):
            value = (value + terms[:, :, k]) * middle
        low, high = np.where(value < mean, middle, low), np.where(value < mean, high, middle)
    found = (low + high) / 2
    np.fill_diagonal(found, 1.0)
    return found


def _likeliest(counts: NDArray[np.int64], rows: Floats, columns: Floats, least: float) -> float:
    """The likeliest correlation of counts by bins, where some records are of independent columns.

    Noise leaves a few records in cells far from the others. The mean product takes them for a weaker
    correlation. ``least``: that correlation, which the found one exceeds in size. With few bins such records
    look like a weaker correlation, so their part is kept small.
    """
    shares = counts / counts.sum()
    apart = np.outer(shares.sum(axis=1), shares.sum(axis=0))
    best = (-np.inf, least)
    for size in np.tanh(np.linspace(np.arctanh(abs(least)), np.arctanh(_LARGEST), _TRIED)):
        coupled = np.maximum(_cells(rows, columns, np.sign(least) * size), 1e-12)
        for part in _PARTS:
            fit = (shares * np.log((1 - part) * coupled + part * apart)).sum() - _RELUCTANCE * part
            best = max(best, (float(fit), float(np.sign(least) * size)))
    return best[1]


def _cells(rows: Floats, columns: Floats, correlation: float) -> Floats:
    """Probabilities of pairs of bins under a bivariate normal distribution (Owen 1956)."""
    h, k = (np.where(ends == 0.0, 1e-9, ends) for ends in (rows[:, None], columns[None, :]))
    root = np.sqrt(1 - correlation**2)
    below = 0.5 * (ndtr(h) + ndtr(k) - (h * k < 0)) - (
        owens_t(h, (k / h - correlation) / root) + owens_t(k, (h / k - correlation) / root)
    )
    return np.asarray(np.diff(np.diff(below, axis=0), axis=1))


def _definite(correlation: Floats) -> Floats:
    """The nearest correlations, roughly, that are positive definite."""
    if not len(correlation):
        return correlation
    values, vectors = np.linalg.eigh(correlation)
    found = (vectors * np.maximum(values, _LEAST)) @ vectors.T
    scale = np.sqrt(np.diag(found))
    return np.asarray(found / np.outer(scale, scale))


def _truncated(mean: Floats, std: float, low: Floats, high: Floats, rng: np.random.Generator) -> Floats:
    """Draws of normal distributions within ranges, shape (n,)."""
    a, b = (low - mean) / std, (high - mean) / std
    # in the lower tail, where probabilities are precise
    swap = a > 0
    a, b = np.where(swap, -b, a), np.where(swap, -a, b)
    below, above = ndtr(a), ndtr(b)
    drawn = ndtri(below + rng.random(len(below)) * (above - below))
    # so far out that rounding leaves nothing between the ends
    drawn = np.clip(np.where(np.isfinite(drawn), drawn, b), a, b)
    return np.asarray(mean + std * np.where(swap, -drawn, drawn))


#: Sweeps of the heat bath from draws of the tables to reweighted ones: after four, pairwise statistics of
#: 40,000 draws are as near to those of the distribution as another 40,000 (flchain, support2; PhysioNet 2012
#: nearly).
SWEEPS = 5
#: Draws whose correlations a copula has.
_COUPLED = 20_000


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
    ``reweighting``: by released pairwise statistics (`dpsynth.marginals.reweighting`).
    ``rules``: columns of each rule and, by their bins, the log share of records that obey it
        (`dpsynth.marginals.network`). They take part where there is a reweighting.
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
        bins = self._with_panel(n, rng)
        if self.reweighting is not None and n:
            self.heat_bath().sweep(bins, self.reweighting, rng, SWEEPS)
        return bins

    def missing(self, draws: NDArray[np.int64]) -> NDArray[np.int64]:
        """Number of missing values of each record among the panel's columns, shape (n,)."""
        return missing_values(draws, self._counted, lacking_bins(self.binnings))

    @property
    def _counted(self) -> tuple[int, ...]:
        """Columns whose missing values are counted together, where their distribution was released."""
        return self.panel if self.missing_law is not None else ()

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


# ------------------------------------------------------------------------------------------------
# Rules as factors of a base model: how often a record obeys, by the bins of the columns that a rule reads.
#
# A bin is a range of values, so a rule holds for all, for some or for none of the records with given bins.
# The share that obeys is found by drawing values within bins. It is a factor of the distribution that the
# heat bath draws from (`dpsynth.marginals.gibbs`). So bins come as often as they do among records
# that obey, and none come that cannot obey. Only public rules and released numbers are read.
# Post-processing, free of cost.

#: Draws that a rule is tried on, and for each combination of bins at least and at most.
_DRAWS, _EACH = 300_000, (8, 64)
#: A rule of more combinations than this has no factor.
_MOST = 100_000
#: Logarithm of the share where no draw obeys. It is finite, so that a record can leave such bins.
_NEVER = -30.0
#: Bins of a column before anything is released, and how many records are drawn how often.
_BINS, _RULE_DRAWS, _TRIES = 12, 2_000, 10


def with_rules(
    base_model: BayesianNetwork, schema: Schema, grids: Sequence[Grid], rules: Sequence[Expression]
) -> BayesianNetwork:
    """The base model with a factor for each rule.

    ``schema``: with the derived columns that rules read. ``grids``: of the modelled columns.
    """
    rng = np.random.default_rng(0)
    factors = []
    for rule in rules:
        names = modelled_inputs(rule.columns, schema.formulas)
        columns = tuple(j for j, grid in enumerate(grids) if grid.column.name in names)
        sizes = tuple(base_model.binnings[j].size for j in columns)
        if columns and math.prod(sizes) <= _MOST:
            shares = _shares(base_model, schema, grids, rule, columns, sizes, rng)
            logs = np.log(np.maximum(shares, math.exp(_NEVER)))
            if logs.any():
                factors.append((columns, logs.astype(np.float32)))
    return replace(base_model, rules=tuple(factors))


def check_possible(schema: Schema, rules: Sequence[Expression]) -> None:
    """Draw records from bounds and categories alone, guided by the rules' factors. Nothing private is read.

    Raises InputError if none of thousands obeys all rules.
    """
    names = modelled_inputs({name for rule in rules for name in rule.columns}, schema.formulas)
    grids = [grid for grid in make_grids(schema.modelled) if grid.column.name in names]
    if not grids:
        return
    cells = tuple(np.full(grid.size, 1.0 / grid.size) for grid in grids)
    binnings = tuple(make_binning(grid, p, _BINS) for grid, p in zip(grids, cells, strict=True))
    apart = tuple(
        ((0,), j, np.ones((binnings[0].size, binning.size))) for j, binning in enumerate(binnings) if j
    )
    base_model = with_rules(BayesianNetwork("tree", 0, binnings, cells, apart), schema, grids, rules)
    base_model = replace(base_model, reweighting=Reweighting.of_columns(binnings, ()))
    rng, counts = np.random.default_rng(0), np.zeros(len(rules), np.int64)
    for _ in range(_TRIES):
        drawn = base_model.sample_cells(_RULE_DRAWS, rng)
        frame = _decoded(grids, drawn.T, rng)
        kept = [obeyed(rule, numbers_of(frame), schema) for rule in rules]
        if np.logical_and.reduce(kept).any():
            return
        counts += np.sum(kept, axis=1)
    rarest = int(np.argmin(counts))
    what = "all constraints together" if counts[rarest] else f"the constraint {rules[rarest].text!r}"
    raise InputError(
        f"constraints: no record within the columns' bounds was found that obeys {what}. Correct it. Declare "
        "a column that equals a formula of others with `derived`"
    )


def _shares(
    base_model: BayesianNetwork,
    schema: Schema,
    grids: Sequence[Grid],
    rule: Expression,
    columns: tuple[int, ...],
    sizes: tuple[int, ...],
    rng: np.random.Generator,
) -> NDArray[np.float64]:
    """Share of draws that obey, of each combination of bins, of shape ``sizes``."""
    combinations = math.prod(sizes)
    each = int(np.clip(_DRAWS // combinations, *_EACH))
    own = [grids[j] for j in columns]
    if all(grid.size == size == _values(grid) for grid, size in zip(own, sizes, strict=True)):
        each = 1  # a bin is one value
    bins = np.unravel_index(np.repeat(np.arange(combinations), each), sizes)
    cells = [base_model.column_cells(j, drawn, rng) for j, drawn in zip(columns, bins, strict=True)]
    kept = obeyed(rule, numbers_of(_decoded(own, cells, rng)), schema)
    return kept.reshape(combinations, each).mean(axis=1).reshape(sizes)


def _values(grid: Grid) -> int:
    """Number of different values, or 0 if it has no end."""
    return 0 if grid.starts is None else int(grid.values_per_cell.sum())


def _decoded(
    grids: Sequence[Grid], cells: Iterable[NDArray[np.int64]], rng: np.random.Generator
) -> pd.DataFrame:
    """Records with values anywhere in these cells, of shape (n,) for each grid."""
    pairs = zip(grids, cells, strict=True)
    return pd.DataFrame({grid.column.name: grid.decode(c, rng.random(len(c))) for grid, c in pairs})


def obeyed(rule: Expression, numbers: Numbers, schema: Schema) -> NDArray[np.bool_]:
    """Whether records obey that have the modelled columns which the rule needs, shape (n,)."""
    return ~rule.truth(derived_numbers(numbers, schema.formulas))[1]
