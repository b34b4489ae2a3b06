"""The fit of a chain to all released statistics: column by column, on a pool of records that it draws itself.

Columns are fitted in the order of the tree of tables. The pool's earlier columns were drawn from the fitted
model. A fit is convex and takes a few rounds (`dpsynth.marginals.terms`). Columns are fitted once by tables
alone, to see which moments the tables leave open, and anew with pairwise statistics and with each round of
further tables (`dpsynth.marginals.growth`).

States are finer than the bins of tables: every category, and at most 64 ranges of an ordered column's values,
cut where bins are.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from dpsynth.marginals.binning import Binning, equal_mass
from dpsynth.marginals.chain import Chain, Conditional
from dpsynth.marginals.coupling import Coupling, Marks, Scored, coupled, score_correlations, score_ends
from dpsynth.marginals.denoising import GrownTable
from dpsynth.marginals.factors import Factor, conditional
from dpsynth.marginals.features import OUTCOME_WEIGHT, PairFeatures
from dpsynth.marginals.growth import Candidate, Resolution, TableCells
from dpsynth.marginals.missing import Lacking, missing_odds, number_given
from dpsynth.marginals.network import BayesianNetwork
from dpsynth.marginals.rules import rule_factors
from dpsynth.marginals.statistics import Family, PairwiseStatistics
from dpsynth.marginals.terms import (
    ChainTerm,
    DrawnColumns,
    Fitting,
    HeldTableFitting,
    Products,
    ProductsFitting,
    TableFitting,
    TableTerm,
    fit_terms,
    indicators,
    softmax,
)
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
#: The same where a fit's readings are audited, and its model is of no use.
_ROUGH = (200, 0)
#: Records of the pool that show how a column is coupled, and most columns that it is coupled with.
_MARKED, _COUPLED = 5000, 64
#: Rounds of a fit that goes on from an earlier one.
_FURTHER_SWEEPS = 2
#: Most pairs and triples of a column that may be chosen.
_PAIRS, _TRIPLES = 64, 32
#: Draws of a chain without products, from which the products' expectations are computed, and the least mean
#: scaling of a product.
_DRAWS, _LEAST_SCALE = 40_000, 0.05
#: A product is believed by itself from so many standard deviations of noise and of its kind on.
_OUTSTANDING = 4.0
#: Least sum of variances of a kind of products, and least probability of a state.
_LEAST, _RAREST = 1e-12, 1e-9


def _states(grid: Grid, probabilities: Doubles, bins: Binning) -> Ints:
    """States of a column's cells."""
    if not grid.ordered:
        return np.arange(grid.size)
    present = grid.present
    cut = np.diff(equal_mass(probabilities[:present], _STATES)) | np.diff(bins.labels[:present])
    states = np.concatenate([[0], np.cumsum(cut != 0)])
    return np.append(states, states[-1] + np.arange(1, grid.size - present + 1))


def _of_states(states: Ints, of_cells: Ints) -> Ints:
    found = np.zeros(int(states.max()) + 1, np.int64)
    found[states] = of_cells
    return found


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


class ChainFit:
    """A chain that is fitted to tables and pairwise statistics, and that further tables can be added to.

    ``schema``: with the derived columns that ``rules`` read.
    ``states``, shapes (grid.size,): states of each column's cells. By default they are made here.
    ``rough``: whether the model is of no use, but only what is read with it.
    """

    chain: Chain

    def __init__(
        self,
        network: BayesianNetwork,
        marginals: Marginals,
        pairs: PairwiseStatistics | None,
        rng: np.random.Generator,
        schema: Schema,
        rules: Sequence[Expression] = (),
        *,
        states: Sequence[Ints] | None = None,
        rough: bool = False,
    ) -> None:
        self.network, self.rng, grids = network, rng, marginals.grids
        self.grids, self.n = grids, marginals.n
        self.pool, self.sweeps = _ROUGH if rough else (_POOL, _SWEEPS)
        self.pairs: PairwiseStatistics | None = None
        self.tables: dict[int, list[GrownTable]] = {}
        self.resolutions: dict[float, Resolution] = {}
        #: effects of each column's terms, without and with its coupling, where the last run left them
        self.effects: dict[tuple[int, bool], list[Floats]] = {}
        classes = network.binnings[network.root].size if network.kind == "tan" else 1
        self.noise = network.noise_std * classes**0.5 / marginals.n
        columns = list(zip(grids, network.cells, network.binnings, strict=True))
        labels = [_states(*column) for column in columns] if states is None else list(states)
        binnings = [Binning.from_labels(own, p) for own, p in zip(labels, network.cells, strict=True)]
        coarse = [_of_states(own, bins.labels) for own, (*_, bins) in zip(labels, columns, strict=True)]
        self.rules = rule_factors(binnings, coarse, network.cells, schema, grids, rules)
        self.laws = [np.maximum(binning.probabilities, _RAREST) for binning in binnings]
        self.laws = [law / law.sum() for law in self.laws]
        #: of each column the number of states that lie in their order, and its bins of tables with scores
        present = [
            int(own[: grid.present].max()) + 1 if grid.ordered else 2 * (grid.size == 2)
            for grid, own in zip(grids, labels, strict=True)
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
            tuple(binnings),
            network.cells,
            tuple(coarse),
            tuple(ends),
            (root,),
            network,
            None,
            bool(self.rules),
        )
        self.odds, self.correlation = self._missing(), np.eye(len(grids))
        self._run()
        if pairs is not None and not rough:
            self._add(pairs, self.chain.bins(self.chain.sample(_DRAWS, rng)))
            self._run()

    def candidates(self, noise_std: float) -> list[list[Candidate]]:
        """Tables of each column with one or two before it, and what the model expects in them.

        These are all pairs, or some by lot where they are many, and triples with a column of the tables that
        the chain has. Of many triples they are those whose pairs depend most on each other by the model.
        Those that were chosen before are left out. A column without any other has no list.

        ``noise_std``: of a cell that is counted.
        """
        resolution = self._resolution(noise_std)
        held = {cells.columns for grown in self.chain.grown for cells in grown}
        families = {*self.network.families, *held}
        before, found = [self.network.root], []
        for column in self.chain.conditionals[1:]:
            j = column.column
            near = {i for family in families if family[-1] == j for i in family[:-1]}
            others = before
            if len(before) > _PAIRS:
                lot = self.rng.choice(len(before), _PAIRS, replace=False)
                others = sorted({*near, *(before[k] for k in lot)}, key=before.index)
            shares = softmax(column.logits(self.rows))
            pairs = self._of_families(shares, [(i, j) for i in others], resolution)
            tells = {one.cells.columns[0]: one.dependence for one in pairs}

            def told(family: Family, tells: dict[int, float] = tells) -> float:
                return sum(tells.get(i, 0.0) for i in family[:-1])

            triples = [(*two, j) for two in combinations(others, 2) if near.intersection(two)]
            triples = sorted((one for one in triples if one not in held), key=told, reverse=True)
            more = self._of_families(shares, triples[:_TRIPLES], resolution)
            found.append([*(one for one in pairs if one.cells.columns not in held), *more])
            before.append(j)
        return [candidates for candidates in found if candidates]

    def _of_families(
        self, shares: Floats, families: Sequence[Family], resolution: Resolution
    ) -> list[Candidate]:
        cells = [resolution.cells(family) for family in families]
        return self.expected(shares, [one for one in cells if one is not None], resolution)

    def again(self, grown: Sequence[TableCells], noise_std: float) -> list[Candidate]:
        """Tables that were chosen before, and what the model expects in them now."""
        resolution = self._resolution(noise_std)
        given = {column.column: column for column in self.chain.conditionals}
        found = []
        for cells in grown:
            shares = softmax(given[cells.columns[-1]].logits(self.rows))
            found += self.expected(shares, [cells], resolution)
        return found

    def _resolution(self, noise_std: float) -> Resolution:
        if noise_std not in self.resolutions:
            states = self.chain.binnings
            self.resolutions[noise_std] = Resolution(self.grids, states, self.laws, self.n, noise_std)
        return self.resolutions[noise_std]

    def expected(
        self, shares: Floats, tables: Sequence[TableCells], resolution: Resolution
    ) -> list[Candidate]:
        """What the model expects in tables of a column, by the pool's earlier columns.

        ``shares``, shape (states, pool): the column's probabilities given those.
        """
        together: dict[int, list[TableCells]] = {}
        for cells in tables:
            together.setdefault(id(cells.labels[-1]), []).append(cells)
        means: dict[Family, Doubles] = {}
        for some in together.values():  # tables with the same cells of the child
            child = np.eye(some[0].shape[-1], dtype=np.float32)[some[0].labels[-1]]
            parents = [cells.term(np.zeros((0, 0), np.float32)).cells(self.rows) for cells in some]
            sizes = [math.prod(cells.shape[:-1]) for cells in some]
            sums = indicators(parents, sizes).T @ (shares.T @ child)
            for cells, own in zip(some, np.split(sums, np.cumsum(sizes)[:-1]), strict=True):
                means[cells.columns] = own.reshape(cells.shape) * (self.n / self.pool)
        return [
            Candidate(cells, resolution.axes(cells), means[cells.columns], self.pool / self.n)
            for cells in tables
        ]

    def grow(self, chosen: Sequence[Candidate], noisy: Mapping[Family, Doubles], noise_std: float) -> None:
        """Add a round of counted tables, and fit the columns anew to which they say something."""
        changed = set()
        for one in chosen:
            columns, expected = one.cells.columns, one.expected
            if len(columns) == 2:  # the parent's distribution is released
                law = self.n * np.bincount(one.cells.labels[0], self.laws[columns[0]])
                expected = expected * (law / np.maximum(expected.sum(axis=1), _RAREST))[:, None]
            table = GrownTable.of(one.cells, noisy[columns], expected, noise_std, self.pool)
            if table is not None:
                self.tables.setdefault(columns[-1], []).append(table)
                changed.add(columns[-1])
        self.chain = replace(self.chain, grown=(*self.chain.grown, tuple(one.cells for one in chosen)))
        self._run(changed)

    def _add(self, pairs: PairwiseStatistics, draws: Ints) -> None:
        """Let the next run fit products as well. ``draws``: bins of a chain without them."""
        self.pairs, self.effects = pairs, {}
        self.goal, self.ridge = products_goal(pairs, draws)
        both = zip(pairs.features.tables, self.chain.coarse, strict=True)
        self.numbers = [table[label] for table, label in both]

    def _run(self, changed: Collection[int] | None = None) -> None:
        """Fit the columns in their order, or those that are changed, and draw the pool anew."""
        columns = len(self.laws)
        kept = {one.column: one for one in self.chain.conditionals}
        self.chain = replace(self.chain, conditionals=self.chain.conditionals[:1], pairs=self.pairs)
        self.rows = DrawnColumns.empty(columns, self.pool)
        self.some = self.rows.part(slice(_MARKED))
        self.marks = Marks.empty(columns, self.some.states.shape[1])
        self._draw(self.chain.conditionals[0])
        before = [self.network.root]
        for factor in self.network.factors:
            j = factor[1]
            column = self._column(factor, before) if changed is None or j in changed else kept[j]
            self.chain = replace(self.chain, conditionals=(*self.chain.conditionals, column))
            self._draw(column)
            before.append(j)

    def _draw(self, column: Conditional) -> None:
        """Draw a column of the pool."""
        j = column.column
        self.chain.draw(column, self.rows, self.rng)
        if (scored := self.scored[j]) is not None:
            self.marks.put(j, scored, self.chain.coarse[j][self.some.states[j]])

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
        scored, others = self.scored[j], [i for i in before if self.scored[i] is not None]
        if scored is None or not others:
            return self._fitted(factor, before, fixed, self.rows)
        # where a column was coupled before, the first of the two fits is for its correlations alone
        rows = self.some if (j, True) in self.effects else self.rows
        found = self._fitted(factor, before, fixed, rows)
        self.marks.put(j, scored, self.chain.coarse[j][found.draw(self.some, self.rng)])
        own, tells = score_correlations(j, others, self.scored, self.marks, self.noise)
        self.correlation[j, others] = self.correlation[others, j] = own
        strongest = np.argsort(-np.abs(own) * tells, kind="stable")[:_COUPLED]
        columns = [others[k] for k in sorted(strongest) if tells[k]]
        if not columns:
            return found if rows is self.rows else self._fitted(factor, before, fixed, self.rows)
        among = np.ix_([*columns, j], [*columns, j])
        coupling = coupled(columns, self.correlation[among], self.chain.ends[j], len(self.laws[j]))
        return self._fitted(factor, before, [*fixed, coupling], self.rows)

    def _fitted(
        self, factor: Factor, before: list[int], fixed: list[ChainTerm], rows: DrawnColumns
    ) -> Conditional:
        j = factor[1]
        moving = [self._table(factor, rows), *self._products(j, before, rows), *self._grown(j, rows)]
        key = j, any(isinstance(term, Coupling) for term in fixed)
        earlier, sweeps = self.effects.get(key, []), self.sweeps
        if earlier:  # a table that the column gained comes last
            sweeps = min(sweeps, _FURTHER_SWEEPS if rows is self.rows else 1)
            for fitting, effects in zip(moving, earlier, strict=False):
                fitting.effects = effects.copy()
        base = fit_terms(self.laws[j], fixed, moving, rows, sweeps)
        self.effects[key] = [fitting.effects for fitting in moving]
        terms = [*(fitting.term() for fitting in moving), *fixed]
        obeyed = self._obeyed(j, before)
        functions = [grown for grown in self.tables.get(j, []) if grown.function is not None]
        if obeyed:  # other tables hold some noise where nothing can be, and would be fitted to it
            terms = [*terms, *obeyed]
            base = fit_terms(self.laws[j], terms, [], rows, self.sweeps)
        for grown in functions:
            shares = softmax(Conditional(j, base.astype(np.float32), tuple(terms)).logits(rows))
            terms = [*terms, grown.exceptions(rows, shares)]
            base = fit_terms(self.laws[j], terms, [], rows, self.sweeps)
        return Conditional(j, base.astype(np.float32), tuple(terms))

    def _table(self, factor: Factor, rows: DrawnColumns) -> Fitting:
        parents, j, counts = factor
        coarse = self.chain.coarse
        law = conditional(counts).reshape(-1, counts.shape[-1])
        alone = np.bincount(coarse[j], self.laws[j], law.shape[1])
        effects = np.log(law / np.maximum(alone, _RAREST)).astype(np.float32)
        table = TableTerm(parents, tuple(coarse[i] for i in parents), coarse[j], effects)
        return TableFitting(table, law, rows)

    def _grown(self, j: int, rows: DrawnColumns) -> list[Fitting]:
        """The tables that were chosen for the column."""
        found: list[Fitting] = []
        for grown in self.tables.get(j, []):
            table = grown.term(grown.start)
            found.append(HeldTableFitting(table, grown.law, rows, grown.ridge))
        return found

    def _products(self, j: int, before: list[int], rows: DrawnColumns) -> list[ProductsFitting]:
        """Products with all earlier columns, and the same times the outcome."""
        if self.pairs is None:
            return []
        features, numbers = self.pairs.features, self.numbers
        found: list[ProductsFitting] = []
        outcome = features.outcome
        for times in (None,) if outcome is None or outcome == j else (None, outcome):
            columns = [i for i in before if i != times]
            if not columns or not numbers[j].any():
                continue
            places, here, factor = _places(features, columns), _places(features, [j]), np.zeros(0, np.float32)
            if times is not None:
                here += features.size
                factor = (OUTCOME_WEIGHT * numbers[times][:, 0]).astype(np.float32)
            products = Products(
                tuple(columns),
                tuple(numbers[i] for i in columns),
                times,
                factor,
                numbers[j],
                np.zeros((len(places), len(here)), np.float32),
            )
            at = np.ix_(places, here)
            found.append(ProductsFitting(products, self.goal[at], self.ridge[at], rows))
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
