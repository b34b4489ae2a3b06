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

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from dpsynth.errors import ConfigError
from dpsynth.files.codec import record
from dpsynth.marginals.binning import Binning, equal_mass
from dpsynth.marginals.coupling import (
    Coupling,
    Marks,
    Scored,
    coupled,
    normal_scores,
    score_correlations,
    score_ends,
)
from dpsynth.marginals.factors import Factor, conditional
from dpsynth.marginals.features import OUTCOME_WEIGHT, PairFeatures
from dpsynth.marginals.missing import Lacking, missing_odds, number_given
from dpsynth.marginals.network import BayesianNetwork, cells_of
from dpsynth.marginals.rules import rule_factors
from dpsynth.marginals.statistics import PairwiseStatistics
from dpsynth.marginals.terms import (
    ChainTerm,
    DrawnColumns,
    Fitting,
    Products,
    ProductsFitting,
    TableFitting,
    TableTerm,
    fit_terms,
    softmax,
)
from dpsynth.parallel import in_blocks
from dpsynth.table.draws import grouped
from dpsynth.table.expressions import Expression
from dpsynth.table.grid import Grid, Marginals
from dpsynth.table.schema import Schema

Ints = NDArray[np.int64]
Doubles = NDArray[np.float64]
Floats = NDArray[np.float32]

#: Most states of an ordered column's values.
_STATES = 64
#: Records of the pool, and rounds of a fit.
_POOL, _SWEEPS = 10_000, 5
#: Draws of a chain without products, from which the products' expectations are computed, and the least mean
#: scaling of a product.
_DRAWS, _LEAST_SCALE = 40_000, 0.05
#: Records that are drawn at once.
_BLOCK = 8192
#: A product is believed by itself from so many standard deviations of noise and of its kind on.
_OUTSTANDING = 4.0
#: Least sum of variances of a kind of products, and least probability of a state.
_LEAST, _RAREST = 1e-12, 1e-9


@record
@dataclass(frozen=True, eq=False)
class Conditional:
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

    def draw(self, rows: DrawnColumns, rng: np.random.Generator) -> Ints:
        """States of all records, shape (n,).

        Records of one cell of the first table take uniforms in even numbers (`dpsynth.table.draws`).
        """
        below = softmax(self.logits(rows))
        for one, following in pairwise(below):  # faster than sums along the first axis
            following += one
        n = below.shape[1]
        table = next((term for term in self.terms if isinstance(term, TableTerm)), None)
        cell = np.zeros(n, np.int64) if table is None else table.cells(rows)
        counts = np.bincount(cell)
        order = grouped(cell, len(counts), rng)
        starts = np.cumsum(counts) - counts
        mark = np.empty(n)
        mark[order] = (np.arange(n) - starts[cell[order]] + rng.random(n)) / counts[cell[order]]
        return np.asarray((below[:-1] <= (mark * below[-1]).astype(np.float32)).sum(axis=0), dtype=np.int64)


@record
@dataclass(frozen=True, eq=False)
class Chain:
    """A fitted chain, made with `fit_chain`.

    ``binnings``: states of each column. ``cells``, shapes (grid.size,): released probabilities of fine cells.
    ``coarse``, shapes (states,): bin of each state in the tables.
    ``ends``, shapes (ordered states + 1,): ranges of normal scores. Empty for a column without order.
    ``conditionals``: in the order of drawing, the first of which has no terms.
    ``network``: the tables, with their families. ``pairs``: the pairwise statistics, or None.
    ``ruled``: whether rules are factors of it.
    """

    binnings: tuple[Binning, ...]
    cells: tuple[Doubles, ...]
    coarse: tuple[Ints, ...]
    ends: tuple[Doubles, ...]
    conditionals: tuple[Conditional, ...]
    network: BayesianNetwork
    pairs: PairwiseStatistics | None
    ruled: bool

    def sample(self, n: int, rng: np.random.Generator) -> Ints:
        """Draw states of n records, shape (n, columns)."""
        if n < 0:
            raise ConfigError(f"n is {n}, but cannot be negative")
        drawn = np.empty((n, len(self.binnings)), np.int64, order="F")

        def work(part: slice, own: np.random.Generator) -> None:
            rows = DrawnColumns.empty(len(self.binnings), part.stop - part.start)
            for column in self.conditionals:
                self.draw(column, rows, own)
            drawn[part] = rows.states.T

        in_blocks(work, n, _BLOCK, rng)
        return drawn

    def draw(self, column: Conditional, rows: DrawnColumns, rng: np.random.Generator) -> None:
        """Draw one column of records."""
        j = column.column
        states = rows.states[j] = column.draw(rows, rng)
        if len(self.ends[j]):
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


def _states(grid: Grid, probabilities: Doubles, bins: Binning) -> tuple[Binning, Ints]:
    """States of a column, and the bin of each."""
    if grid.ordered:
        present, labels = grid.present, bins.labels
        cut = np.diff(equal_mass(probabilities[:present], _STATES)) | np.diff(labels[:present])
        states = np.concatenate([[0], np.cumsum(cut != 0)])
        states = np.append(states, states[-1] + np.arange(1, grid.size - present + 1))
    else:
        states, labels = np.arange(grid.size), bins.labels
    coarse = np.zeros(int(states[-1]) + 1, np.int64)
    coarse[states] = labels
    return Binning.from_labels(states, probabilities), coarse


def products_goal(pairs: PairwiseStatistics, draws: Ints) -> tuple[Doubles, Doubles]:
    """Means of unscaled products and the ridge of each, of the shape of ``features.products``.

    A record's vector of products was scaled down to a public length. What the released mean is beyond that of
    draws is divided by their mean scaling, by which each draw counts as much as it adds to the variance.

    ``draws``, shape (m, columns): bins of a chain without products.
    """
    features = pairs.features
    mean, variance = features.mean_and_variance(draws)
    scale = features.scale(draws)
    factors = features.factors(draws, np.float32)
    plain = np.hstack([one.T @ other for one, other in factors]) / len(draws)
    squares = [(one**2, other**2) for one, other in factors]
    scaled = np.hstack([(one * scale[:, None]).T @ other for one, other in squares])
    whole = np.hstack([one.T @ other for one, other in squares])
    by = np.clip(np.divide(scaled, whole, out=np.ones_like(whole), where=whole > 0), _LEAST_SCALE, 1.0)
    goal = np.where(features.products, plain + (pairs.mean - mean) / by, 0.0)
    records = weights_of(pairs, mean, variance, len(draws))
    return goal, records * ((pairs.noise_std / by) ** 2 + variance / pairs.n)


def weights_of(released: PairwiseStatistics, mean: Doubles, variance: Doubles, draws: int) -> Doubles:
    """Number of records that the tables count for, per product, or n if statistics are only noise.

    Departures of the released means from those of the tables are taken to have one variance for each kind of
    product (empirical Bayes, Efron and Morris 1973). A product that stands out of its kind has its own.

    ``mean``, ``variance``, shape of ``features.products``: of the features of ``draws`` of the tables.
    """
    kinds, square = released.features.kinds, (released.mean - mean) ** 2
    noise = released.noise_std**2 + variance * (1.0 / released.n + 1.0 / draws)
    pairs = np.zeros(kinds.shape, dtype=bool)
    pairs[released.features.places] = True
    outstanding = np.zeros_like(pairs)
    for _ in range(2):  # the second time without those of the first
        rest = pairs & ~outstanding

        def sums(of: Doubles, among: NDArray[np.bool_] = rest) -> Doubles:
            return np.bincount(kinds[among], weights=of[among], minlength=3).astype(np.float64)

        known = sums(variance)
        weights = known / np.maximum(sums(square - noise), np.maximum(known, _LEAST) / released.n)
        # of a column that hardly varies pairwise statistics are noise, whatever their gap
        tells = known > np.maximum(sums(np.full_like(square, released.noise_std**2)), _LEAST)
        weights = np.where(tells, weights, released.n)
        of_each = weights[kinds]
        outstanding = (square > _OUTSTANDING**2 * (noise + variance / of_each)) & tells[kinds]
    own = variance / np.maximum(square, _LEAST)
    return np.where(outstanding, np.minimum(own, of_each), of_each)


def fit_chain(
    network: BayesianNetwork,
    marginals: Marginals,
    pairs: PairwiseStatistics | None,
    rng: np.random.Generator,
    schema: Schema,
    rules: Sequence[Expression] = (),
) -> Chain:
    """Fit a chain to released single-column counts, tables and pairwise statistics.

    ``schema``: with the derived columns that rules read.
    """
    fit = _Fit(network, marginals, rng, schema, rules)
    alone = fit.run()
    if pairs is None:
        return alone
    fit.add(pairs, alone.bins(alone.sample(_DRAWS, rng)))
    return fit.run()


class _Fit:
    """A chain during its fit, and the pool."""

    def __init__(
        self,
        network: BayesianNetwork,
        marginals: Marginals,
        rng: np.random.Generator,
        schema: Schema,
        rules: Sequence[Expression],
    ) -> None:
        self.network, self.rng, grids = network, rng, marginals.grids
        self.pairs: PairwiseStatistics | None = None
        classes = network.binnings[network.root].size if network.kind == "tan" else 1
        self.noise = network.noise_std * classes**0.5 / marginals.n
        columns = list(zip(grids, network.cells, network.binnings, strict=True))
        states, coarse = zip(*(_states(*column) for column in columns), strict=True)
        self.rules = rule_factors(states, coarse, network.cells, schema, grids, rules)
        self.laws = [np.maximum(binning.probabilities, _RAREST) for binning in states]
        self.laws = [law / law.sum() for law in self.laws]
        #: of each column the number of states that lie in their order, and its bins of tables with scores
        present = [
            int(binning.labels[: grid.present].max()) + 1 if grid.ordered else 2 * (grid.size == 2)
            for grid, binning in zip(grids, states, strict=True)
        ]
        ordered = [int(label[:size].max(initial=-1)) + 1 for label, size in zip(coarse, present, strict=True)]
        self.scored = [
            Scored.of(binning.probabilities[:size]) if size > 1 else None
            for binning, size in zip(network.binnings, ordered, strict=True)
        ]
        ends = [
            score_ends(law[:size]) if scored is not None else np.zeros(0)
            for law, size, scored in zip(self.laws, present, self.scored, strict=True)
        ]
        root = Conditional(network.root, np.log(self.laws[network.root]).astype(np.float32))
        self.chain = Chain(
            states, network.cells, coarse, tuple(ends), (root,), network, None, bool(self.rules)
        )
        self.odds = self._missing()

    def add(self, pairs: PairwiseStatistics, draws: Ints) -> None:
        """Let the next run fit products as well. ``draws``: bins of a chain without them."""
        self.pairs = pairs
        self.goal, self.ridge = products_goal(pairs, draws)
        both = zip(pairs.features.tables, pairs.features.halves, self.chain.coarse, strict=True)
        tables = [(table[label], half[label]) for table, half, label in both]
        self.numbers, self.halves = [one for one, _ in tables], [half for _, half in tables]

    def run(self) -> Chain:
        """Fit the columns in their order."""
        columns = len(self.laws)
        self.chain = replace(self.chain, conditionals=self.chain.conditionals[:1], pairs=self.pairs)
        self.rows, self.marks = DrawnColumns.empty(columns, _POOL), Marks.empty(columns, _POOL)
        self.correlation = np.eye(columns)
        self._draw(self.chain.conditionals[0])
        before = [self.network.root]
        for factor in self.network.factors:
            column = self._column(factor, before)
            self.chain = replace(self.chain, conditionals=(*self.chain.conditionals, column))
            self._draw(column)
            before.append(column.column)
        return self.chain

    def _draw(self, column: Conditional) -> None:
        """Draw a column of the pool."""
        j = column.column
        self.chain.draw(column, self.rows, self.rng)
        if (scored := self.scored[j]) is not None:
            self.marks.put(j, scored, self.chain.coarse[j][self.rows.states[j]])

    def _missing(self) -> dict[int, tuple[int, Doubles]]:
        """Of each column whose missing values are counted: their state, and log odds by their number."""
        network = self.network
        if network.missing_law is None or not network.panel:
            return {}
        panel, states = list(network.panel), [binning.labels[-1] for binning in self.chain.binnings]
        shares = np.array([self.laws[j][states[j]] for j in panel])
        law = network.missing_law / network.missing_law.sum()
        root = self.laws[network.root]
        means = np.zeros(len(root))
        given = {factor[1]: factor for factor in network.factors}
        for j, share in zip(panel, shares, strict=True):
            if j == network.root:
                means[states[j]] += 1.0
                continue
            parents, _, table = given[j]
            if parents[0] == network.root:
                with_root = conditional(table.sum(axis=tuple(range(1, table.ndim - 1))))
                means += with_root[self.chain.coarse[network.root], network.binnings[j].labels[-1]]
            else:
                means += share
        self.law = number_given(law, root, means)
        odds = missing_odds(law, shares)
        return {j: (int(states[j]), own) for j, own in zip(panel, odds, strict=True)}

    def _column(self, factor: Factor, before: list[int]) -> Conditional:
        """Fit a column: by tables and products alone, to see how it is coupled, and with its coupling."""
        j = factor[1]
        fixed = self._counted(j, before)
        found = self._fitted(factor, before, fixed)
        scored, others = self.scored[j], [i for i in before if self.scored[i] is not None]
        if scored is None or not others:
            return found
        self.marks.put(j, scored, self.chain.coarse[j][found.draw(self.rows, self.rng)])
        own, tells = score_correlations(j, others, self.scored, self.marks, self.noise)
        self.correlation[j, others] = self.correlation[others, j] = own
        columns = [i for i, told in zip(others, tells, strict=True) if told]
        if not columns:
            return found
        among = np.ix_([*columns, j], [*columns, j])
        coupling = coupled(columns, self.correlation[among], self.chain.ends[j], len(self.laws[j]))
        return self._fitted(factor, before, [*fixed, coupling])

    def _fitted(self, factor: Factor, before: list[int], fixed: list[ChainTerm]) -> Conditional:
        j = factor[1]
        moving = [self._table(factor), *self._products(j, before)]
        base = fit_terms(self.laws[j], fixed, moving, self.rows, _SWEEPS)
        terms = [*(fitting.term() for fitting in moving), *fixed]
        obeyed = self._obeyed(j, before)
        if obeyed:  # tables hold some noise where a rule forbids all, and would be fitted to it
            terms = [*terms, *obeyed]
            base = fit_terms(self.laws[j], terms, [], self.rows, _SWEEPS)
        return Conditional(j, base.astype(np.float32), tuple(terms))

    def _table(self, factor: Factor) -> Fitting:
        parents, j, counts = factor
        coarse = self.chain.coarse
        law = conditional(counts).reshape(-1, counts.shape[-1])
        alone = np.bincount(coarse[j], self.laws[j], law.shape[1])
        effects = np.log(law / np.maximum(alone, _RAREST)).astype(np.float32)
        table = TableTerm(parents, tuple(coarse[i] for i in parents), coarse[j], effects)
        return TableFitting(table, law, self.rows)

    def _products(self, j: int, before: list[int]) -> list[ProductsFitting]:
        """Products with all earlier columns, and the same times the outcome, of numbers and of halves."""
        if self.pairs is None:
            return []
        features = self.pairs.features
        found: list[ProductsFitting] = []
        outcome = features.outcome
        for block in range(1 if outcome is None or outcome == j else 3):
            columns = [i for i in before if block == 0 or i != outcome]
            numbers = self.halves if block == 2 else self.numbers
            times = None if block == 0 else outcome
            if not columns or not numbers[j].any():
                continue
            rows = _places(features, columns)
            here = block * features.size + _places(features, [j])
            factor = np.zeros(0, np.float32)
            if times is not None:
                factor = (OUTCOME_WEIGHT * self.numbers[times][:, 0]).astype(np.float32)
            products = Products(
                tuple(columns),
                tuple(numbers[i] for i in columns),
                times,
                factor,
                numbers[j],
                np.zeros((len(rows), len(here)), np.float32),
            )
            at = np.ix_(rows, here)
            found.append(ProductsFitting(products, self.goal[at], self.ridge[at], self.rows))
        return found

    def _counted(self, j: int, before: list[int]) -> list[ChainTerm]:
        """The effect of what earlier columns lack."""
        if j not in self.odds:
            return []
        columns = [i for i in before if i in self.odds]
        states = np.array([self.odds[i][0] for i in columns], np.int64)
        odds = np.stack([self.odds[i][1] for i in (*columns, j)])
        state, law = self.odds[j][0], self.laws[j]
        root = self.network.root
        return [Lacking(root, self.law, tuple(columns), states, odds, float(law[state]), state, len(law))]

    def _obeyed(self, j: int, before: list[int]) -> list[ChainTerm]:
        """Factors of the rules that the column is the last of."""
        ready = {*before, j}
        return [rule.term(j) for rule in self.rules if j in rule.columns and ready.issuperset(rule.columns)]


def _places(features: PairFeatures, columns: Sequence[int]) -> Ints:
    return np.concatenate([np.arange(features.ends[i], features.ends[i + 1]) for i in columns])
