"""The noisy statistics of the default generator, each with its sensitivity.

They are counts of single columns, of the pairs that a choice with noise names, and pairwise statistics.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from dpsynth.errors import ConfigError, PrivacyError
from dpsynth.files.codec import record
from dpsynth.marginals.binning import Binning, Bins
from dpsynth.marginals.features import PRODUCT_STEP, PairFeatures
from dpsynth.privacy.exponential_mechanism import choose, in_score_steps
from dpsynth.privacy.records import Axes, CycleAxis, GridAxis, MissingAxis, Records, ResidueAxis
from dpsynth.privacy.release import Adaptive, Array, ChoiceRelease, GaussianRelease, Ints
from dpsynth.privacy.stages import Stage
from dpsynth.table.coded import CodedTable
from dpsynth.table.column import Column
from dpsynth.table.grid import Counting, Grid, make_grids
from dpsynth.table.schema import Schema

# ------------------------------------------------------------------------------------------------
# Noisy counts of every column's values: the first statistic of a run, used by all others.
#
# Every column is counted on its public grid (`dpsynth.table.grid`), and one of many values also value by
# value. With more than a million values, blocks of neighbouring values are counted instead, and residues:
# the places of values in their blocks. Residues are also last digits and times of day. A column of dates is
# also counted by weekday, month and hour, where its schema asks for that. If three columns or more may be
# missing, the number of missing values a record is one more histogram. Adjacency is add/remove one record
# throughout. A record lies in exactly one cell of each histogram, so all counts together have L2 sensitivity
# ``sqrt(histograms)``. One Gaussian mechanism covers them. `dpsynth.marginals.columns` makes distributions
# of the counts.

#: With fewer columns that may be missing there is no panel.
_FEWEST_COLUMNS = 3


def panel_of(grids: Sequence[Grid]) -> tuple[int, ...]:
    """Columns whose missing values are counted together: all that may be missing, if they are three or more.

    Examples
    --------
    >>> from dpsynth.table.column import Column
    >>> lab = Column(name="lab", kind="continuous", lower=0, upper=1, missing=True)
    >>> panel_of([Grid.from_column(lab)] * 3), panel_of([Grid.from_column(lab)] * 2)
    ((0, 1, 2), ())
    """
    columns = tuple(j for j, grid in enumerate(grids) if grid.column.missing)
    return columns if len(columns) >= _FEWEST_COLUMNS else ()


def _in_blocks(column: Column, width: int) -> Grid:
    values = column.n_values or 0
    return Grid(column, np.append(np.arange(0, values, width), values), None)


@dataclass(frozen=True, kw_only=True)
class MarginalsRelease(GaussianRelease[list[Array]]):
    """Every column's histogram, and the number of missing values a record.

    ``n``: ``schema.n_public`` or a noisy count, never the length of a table.
    ``n_std``: standard deviation of the noise of ``n``, 0 if it is public.
    ``counted``: how an earlier release counted. The default is a rule on public numbers.

    Examples
    --------
    >>> import pandas as pd
    >>> from dpsynth.privacy import Ledger
    >>> from dpsynth.privacy.records import FrameRecords
    >>> from dpsynth.table.schema import Column
    >>> schema = Schema(columns=(Column(name="sex", kind="binary", categories=("F", "M")),))
    >>> frame = schema.conform(pd.DataFrame({"sex": ["F"] * 30 + ["M"] * 10})).frame
    >>> release = MarginalsRelease(schema=schema, n=40, noise_multiplier=None)
    >>> exact = Ledger().run(release, FrameRecords(frame), np.random.default_rng(0))
    >>> exact
    [array([30., 10.])]
    """

    schema: Schema
    n: float
    n_std: float = 0.0
    counted: Counting | None = None
    name = "single-column counts"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.n > 0:
            raise ConfigError(f"n is {self.n}, but must be greater than 0")
        if not self.n_std >= 0:
            raise ConfigError(f"n_std is {self.n_std}, but cannot be negative")

    @cached_property
    def counting(self) -> Counting:
        """How numeric columns are counted where the schema does not specify it."""
        return self.counted or Counting.of(self.schema, self.n, self.noise_multiplier or 0.0)

    @cached_property
    def grids(self) -> tuple[Grid, ...]:
        """Public cells of each column."""
        return make_grids(self.schema, self.counting)

    @cached_property
    def by_value(self) -> tuple[Grid | None, ...]:
        """Every value of each column that is counted twice, or its blocks of neighbouring values."""
        return tuple(
            _in_blocks(column, self.counting.width(column)) if self.counting.counts_twice(column) else None
            for column in self.schema.columns
        )

    @cached_property
    def residues(self) -> tuple[ResidueAxis, ...]:
        """Places in blocks, last digits and times of day that are counted."""
        counted = ((column, self.counting.residues(column)) for column in self.schema.columns)
        return tuple(ResidueAxis(column, *residue) for column, residues in counted for residue in residues)

    @property
    def cycles(self) -> tuple[CycleAxis, ...]:
        """Weekdays, months and hours of columns of dates that are counted."""
        return tuple(CycleAxis(column, cycle) for column in self.schema.columns for cycle in column.cycles)

    @property
    def panel(self) -> tuple[int, ...]:
        """Columns whose missing values are counted together."""
        return panel_of(self.grids)

    @property
    def sensitivity_squared(self) -> int:
        """Squared L2 sensitivity of all counts together: the number of cells that hold one record.

        Examples
        --------
        >>> from dpsynth.table.schema import Column
        >>> columns = (Column(name="a", kind="binary", categories=("n", "y")),
        ...            Column(name="b", kind="integer", lower=0, upper=100_000))
        >>> release = MarginalsRelease(schema=Schema(columns=columns), n=5000, noise_multiplier=2.0)
        >>> release.sensitivity_squared
        4
        >>> print(release.sensitivity)
        sqrt(4) (a record is in 4 counts: 1 in each of 2 columns, 1 more where 1 column has many values,
        1 for last digits, times of day or places in blocks)
        """
        twice = sum(grid is not None for grid in self.by_value)
        return len(self.schema) + twice + len(self.residues) + len(self.cycles) + bool(self.panel)

    @property
    def l2_sensitivity(self) -> float:
        """Square root of the number of cells that hold one record."""
        return float(np.sqrt(self.sensitivity_squared))

    @property
    def sensitivity(self) -> str:
        """In words, for the ledger."""
        columns = len(self.schema)
        parts = [f"1 in each of {columns} columns" if columns > 1 else "1 in the column"]
        twice = sum(grid is not None for grid in self.by_value)
        many = "1 column has" if twice == 1 else f"{twice} columns have"
        parts += [f"1 more where {many} many values"] if twice else []
        residues = len(self.residues)
        parts += [f"{residues} for last digits, times of day or places in blocks"] if residues else []
        parts += [f"{len(self.cycles)} for weekdays, months or hours"] if self.cycles else []
        parts += ["1 for its number of missing values"] if self.panel else []
        number = self.sensitivity_squared
        counts = "1 count" if number == 1 else f"{number} counts"
        return f"sqrt({number}) (a {self.schema.counted.one} is in {counts}: {', '.join(parts)})"

    @property
    def detail(self) -> str:
        """The noise in the words of somebody who reads a table of counts."""
        of_columns = f"histogram of {len(self.schema)} columns"
        if self.noise_multiplier is None:
            return f"{of_columns}, no noise"
        return (
            f"{of_columns}, Gaussian noise: a count is off by about {self.noise_std:.3g} of {self.n:,.0f} "
            f"{self.schema.counted} ({100 * self.noise_std / self.n:.2g} %)"
        )

    def query(self, records: Records) -> list[Ints]:
        """Exact counts: a private quantity, never to be shown.

        Returns list of arrays: first, for each column, the counts of its cells. Then the counts of the values
        or blocks of those that are counted twice, those of residues, and those of weekdays, months and hours.
        Last, with a panel, the records with 0, 1, 2, ... missing values.
        """
        axes: list[Axes] = [(GridAxis(grid),) for grid in (*self.grids, *self.by_value) if grid is not None]
        axes += [(axis,) for axis in self.residues]
        axes += [(axis,) for axis in self.cycles]
        panel = MissingAxis(tuple(self.schema.columns[j] for j in self.panel))
        return list(records.counts([*axes, (panel,)] if self.panel else axes))

    def finish(self, noisy: Sequence[Array]) -> list[Array]:
        """The noisy counts, in the order of `query`."""
        return list(noisy)


# ------------------------------------------------------------------------------------------------
# The edges of the base model: a spanning tree grown by private choices.
#
# The tree grows from its root by Prim's algorithm. Each new edge is drawn by the exponential mechanism among
# all edges between a column inside and one outside. A pair's score is
#
#     sum over cells |n_ij - n p_i p_j|  -  expected absolute noise of a table of as many cells,
#
# with n_ij the exact counts and n, p_i, p_j already *released* numbers. Adding or removing one record
# changes one n_ij by one and nothing else, so the score has sensitivity 1. The released products are rounded
# to a public step, and sums of whole numbers of it are exact.
#
# `dpsynth.privacy.exponential_mechanism.choose` draws it. Each choice uses fresh randomness and is posted on
# its own, so later choices may depend on earlier ones.

Kind = Literal["tree", "tan"]
#: Cells of a column, and of all columns, whose pairs are counted at once.
_FEW_CELLS, _ALL_CELLS = 8, 4096
#: Columns of one table, the child last.
Family = tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class EdgesRelease(ChoiceRelease[Bins]):
    """The families of a base model's tables, chosen by exponential mechanisms on scores of sensitivity 1.

    ``schema``: its outcome is the tree's root. Without one the first column is.
    ``kind``: one parent a column, or the outcome and another. "tan" needs an outcome.
    ``table_std``: noise of a cell of the later tables, for which scores allow.
    ``read_with``: bins from earlier noisy statistics, given with :meth:`at`.

    Source: Friedman, Geiger, Goldszmidt (1997), "Bayesian network classifiers", section 4 (TAN). The choice
    by the exponential mechanism, with scores that allow for noise: McKenna et al. (2021), "Winning the NIST
    contest", section 3.
    """

    schema: Schema
    kind: Kind
    table_std: float
    name: ClassVar[str] = "base model edges"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.kind not in ("tree", "tan"):
            raise ConfigError(f"kind is {self.kind!r}, but must be 'tree' or 'tan'")
        if self.kind == "tan" and self.schema.outcome is None:
            raise ConfigError("kind 'tan' needs a schema with an outcome: name one, or use kind 'tree'")

    @property
    def root(self) -> int:
        """The column that is drawn first: a public choice."""
        return 0 if self.schema.outcome is None else self.schema.names.index(self.schema.outcome)

    @property
    def columns(self) -> list[int]:
        """Columns of the tree."""
        return [j for j in range(len(self.schema)) if self.kind == "tree" or j != self.root]

    @property
    def choices(self) -> int:
        """Number of exponential mechanisms. If it is 0 nothing is read, see :meth:`only`."""
        return n_choices(len(self.columns))

    def only(self) -> list[Family]:
        """The families if there is no choice. No record is read."""
        return self._families(np.zeros((len(self.schema),) * 2), np.random.default_rng(0))

    def scores(self, records: Records) -> NDArray[np.float64]:
        """Each pair's distance from independence: private, sensitivity 1 each, shape (columns, columns)."""
        bins = self.given
        few = [self.columns[k] for k in few_cells([bins.binnings[j].size for j in self.columns])]
        together = set(few)
        pairs = [(a, b) for a, b in combinations(self.columns, 2) if a not in together or b not in together]
        tables = records.each_count((bins.axes[a], bins.axes[b]) for a, b in pairs)
        scores = pair_scores(zip(pairs, tables, strict=True), bins.binnings, bins.n)
        if few:
            counts = records.pair_counts([bins.axes[j] for j in few])
            scores[np.ix_(few, few)] = block_scores(counts, [bins.binnings[j] for j in few], bins.n)
        return scores

    def __call__(self, records: Records, rng: np.random.Generator) -> list[Family]:
        """Choose. A ledger calls it when the choices are posted."""
        binnings = self.given.binnings
        classes = binnings[self.root].size if self.kind == "tan" else 1
        allowance = noise_allowance(binnings, self.table_std, classes)
        return self._families(self.scores(records) - in_score_steps(allowance), rng)

    def _families(self, scores: NDArray[np.float64], rng: np.random.Generator) -> list[Family]:
        columns = self.columns
        if not columns:
            return []
        if self.kind == "tree":
            return list(grow_tree(scores, self.root, columns, self.epsilon, rng))
        # Any column may come first: with the outcome as everyone's parent the tree has no direction.
        edges = grow_tree(scores, columns[0], columns, self.epsilon, rng)
        return [(self.root, columns[0]), *((self.root, parent, child) for parent, child in edges)]


def pair_scores(
    tables: Iterable[tuple[tuple[int, int], NDArray[np.int64]]], binnings: Sequence[Binning], n: float
) -> NDArray[np.float64]:
    """Distance of every pair's counts from independence, before the noise is allowed for.

    The scores are private. Each entry has sensitivity 1 under add/remove one record, because ``n`` and the
    binnings' probabilities are released numbers that stay fixed.

    Returns array, shape (columns, columns), symmetric, zero for other pairs.
    """
    scores = np.zeros((len(binnings), len(binnings)))
    for (a, b), counts in tables:
        independent = in_score_steps(n * np.outer(binnings[a].probabilities, binnings[b].probabilities))
        scores[a, b] = scores[b, a] = np.abs(counts - independent).sum()
    return scores


def few_cells(sizes: Sequence[int]) -> list[int]:
    """Places of columns with so few cells that all their pairs are counted at once, if there are several.

    >>> few_cells([2, 30, 3, 2])
    [0, 2, 3]
    """
    found, cells = list[int](), 0
    for k in np.argsort(sizes, kind="stable"):
        cells += sizes[k]
        if sizes[k] > _FEW_CELLS or cells > _ALL_CELLS:
            break
        found.append(int(k))
    return sorted(found) if len(found) > 1 else []


def block_scores(counts: NDArray[np.int64], binnings: Sequence[Binning], n: float) -> NDArray[np.float64]:
    """The same as `pair_scores`, from counts of all pairs of cells at once, zero for equal columns.

    ``counts``, shape (cells of all columns,) twice.
    """
    probabilities = np.concatenate([binning.probabilities for binning in binnings])
    away = np.abs(counts - in_score_steps(n * np.outer(probabilities, probabilities)))
    first = np.cumsum([binning.size for binning in binnings]) - [binning.size for binning in binnings]
    scores = np.add.reduceat(np.add.reduceat(away, first, axis=0), first, axis=1)
    np.fill_diagonal(scores, 0.0)
    return np.asarray(scores)


def noise_allowance(binnings: Sequence[Binning], noise_std: float, classes: int = 1) -> NDArray[np.float64]:
    """Expected absolute noise of every pair's table, ``std * sqrt(2 / pi) * cells``: public.

    With a third axis of ``classes`` entries (the outcome of a three-way table) it has as many more cells.

    Examples
    --------
    >>> pair = [Binning(np.arange(2), np.array([0.5, 0.5]))] * 2
    >>> print(noise_allowance(pair, 1.0)[0, 1].round(4), noise_allowance(pair, 1.0, 3)[0, 1].round(4))
    3.1915 9.5746
    """
    sizes = np.array([b.size for b in binnings], dtype=np.float64)
    return noise_std * np.sqrt(2.0 / np.pi) * classes * np.outer(sizes, sizes)


def grow_tree(
    scores: NDArray[np.float64],
    root: int,
    columns: Sequence[int],
    epsilon: float | None,
    rng: np.random.Generator,
) -> list[tuple[int, int]]:
    """Grow a spanning tree of ``columns`` from ``root`` by private choices.

    Costs `n_choices` exponential mechanisms of ``epsilon`` each, with fresh noise.

    ``scores``, shape (all columns, all columns): sensitivity 1 each.
    ``columns``: the tree's columns, ``root`` among them.
    ``epsilon``: None takes the best edges: **not private**.

    Returns list of (parent, child): in the order of growth, so that a parent comes before its children.

    Examples
    --------
    >>> scores = np.array([[0, 9, 1], [9, 0, 5], [1, 5, 0]])
    >>> grow_tree(scores, 0, [0, 1, 2], None, np.random.default_rng(0))
    [(0, 1), (1, 2)]
    """
    inside = [root]
    outside = [c for c in columns if c != root]
    edges: list[tuple[int, int]] = []
    while outside:
        candidates = scores[np.ix_(inside, outside)].ravel()
        # A single candidate is no choice: it is taken without looking at its score.
        pick = 0 if len(candidates) == 1 else choose(candidates, epsilon, rng)
        parent, child = inside[pick // len(outside)], outside[pick % len(outside)]
        edges.append((parent, child))
        inside.append(child)
        outside.remove(child)
    return edges


def n_choices(n_columns: int) -> int:
    """Number of exponential mechanisms that `grow_tree` runs on so many columns.

    Examples
    --------
    >>> [n_choices(m) for m in (1, 2, 3, 4)]
    [0, 0, 2, 3]
    """
    return n_columns - 1 if n_columns > 2 else 0


# ------------------------------------------------------------------------------------------------
# Tables of chosen columns: counts with Gaussian noise.
#
# If the outcome is a parent of all, it is also counted with each other column alone. A classifier needs
# those two-way tables. The sum of a three-way table over its third column adds up the noise of all its
# cells.

#: Square of what a record counts for in a table of the outcome and one column, where it is 1 in the others:
#: of many columns these tables have a quarter of mu^2.
OUTCOME_SHARE = 1.0 / 3.0


@dataclass(frozen=True, kw_only=True)
class TablesRelease(Adaptive[Mapping[Family, Axes]], GaussianRelease[dict[Family, Array]]):
    """One table for every family of columns. Those of a base model are made with `TablesRelease.plan`.

    A record lies in one cell of each table. All tables together have L2 sensitivity
    sqrt(count + with_outcome / 3) under add/remove of one record. The number of tables is public. Their
    columns come from an earlier noisy choice.

    ``count``: number of tables in which a record counts for 1. ``noise_std`` is that of their cells.
    ``with_outcome``: number of tables of the outcome and one column, in which it counts for sqrt(1 / 3).
    ``read_with``: axes of each table by its columns, the child last. Those of the outcome and one column come
        first.
    """

    count: int
    with_outcome: int = 0
    name: str = "base model tables"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.read_with is not None and len(self.read_with) > len(self.weights):
            counted, planned = len(self.read_with), len(self.weights)
            raise PrivacyError(f"{counted} tables are to be counted, but {planned} were planned")

    @classmethod
    def plan(
        cls, columns: int, *, three_way: bool, noise_multiplier: float | None, stage: Stage | None = None
    ) -> TablesRelease:
        """The tables of a base model of so many columns.

        ``columns``: all but the root.
        ``three_way``: whether the root is a parent of all. Two columns have one table in any case.
        ``noise_multiplier``: over their sensitivity together. None: exact, **not private**.
        """
        three_way = three_way and columns > 1
        return cls(
            count=columns - three_way,
            with_outcome=columns if three_way else 0,
            noise_multiplier=noise_multiplier,
            stage=stage,
        )

    def of(self, bins: Bins, families: Sequence[Family]) -> TablesRelease:
        """The same release for these families of a base model, at the same cost."""
        counted = list(families)
        if self.with_outcome:
            alone = [(family[0], family[-1]) for family in families]
            counted = [*alone, *(family for family in families if len(family) > 2)]
        return self.at({family: tuple(bins.axes[j] for j in family) for family in counted})

    @property
    def weights(self) -> tuple[float, ...]:
        """Weight of a record in each table."""
        return (math.sqrt(OUTCOME_SHARE),) * self.with_outcome + (1.0,) * self.count

    @property
    def l2_sensitivity(self) -> float:
        """Square root of the number of tables, those of the outcome and one column a third each."""
        return float(np.linalg.norm(self.weights))

    @property
    def sensitivity(self) -> str:
        """In words, for the ledger."""
        if not self.with_outcome:
            return f"sqrt({self.count}) for {self.count} tables together"
        return (
            f"sqrt({self.count} + {self.with_outcome}/3) for {self.count} tables, and {self.with_outcome} of "
            "the outcome and one column in which a {record} counts for sqrt(1/3)"
        )

    def query(self, records: Records) -> list[Ints]:
        """Exact tables of all families, shapes by their columns' bins."""
        return records.counts(list(self.given.values()))

    def finish(self, noisy: Sequence[Array]) -> dict[Family, Array]:
        """The noisy counts of each family."""
        return dict(zip(self.given, noisy, strict=True))


# ------------------------------------------------------------------------------------------------
# Pairwise statistics, released at once: a critic that is solved in one step.
#
# A Wasserstein critic that is linear in fixed features of a record uses one statistic of the data, their
# mean feature. Once it is released, the critic's best answer to any generator follows without another
# reading. Here the features are those of pairs of columns (`dpsynth.marginals.features`). Their sum is read
# once under Gaussian noise. `dpsynth.marginals.chain` is fitted to it.


@record
@dataclass(frozen=True, eq=False)
class PairwiseStatistics:
    """Released mean features.

    ``mean``, shape of ``features.products``: symmetric, with noise, zero within a column.
    ``noise_std``: standard deviation of the noise in an entry of ``mean``.
    """

    features: PairFeatures
    mean: NDArray[np.float64]
    noise_std: float
    n: float


@dataclass(frozen=True, kw_only=True)
class PairwiseStatisticsRelease(Adaptive[tuple[Bins, PairFeatures]], GaussianRelease[PairwiseStatistics]):
    """The sum of the records' pair features, whose longest vector counts for 1."""

    name = "pairwise statistics"
    l2_sensitivity = 1.0
    sensitivity = (
        "1 (a {record}'s products of all pairs of columns, and with the outcome, scaled down to length 1)"
    )

    @property
    def weights(self) -> Iterable[float]:
        """One over the length of the longest vector."""
        return [1.0 / self.given[1].cap]

    @property
    def steps(self) -> Iterable[float]:
        """Step of products."""
        return [PRODUCT_STEP]

    def query(self, records: Records) -> list[Ints]:
        """The exact sum, as a vector: each product once."""
        bins, features = self.given

        def total(table: CodedTable) -> list[Ints]:
            return [features.total(bins.cells(table))]

        return records.sums(total)

    def finish(self, noisy: Sequence[Array]) -> PairwiseStatistics:
        """Their mean."""
        bins, features = self.given
        noise_std = self.noise_std * features.cap / bins.n
        return PairwiseStatistics(features, features.matrix(noisy[0] / bins.n), noise_std, bins.n)
