"""A private prior: a tree of marginals from which records are drawn (theory of section 1.8).

Algorithm 1 of Pedersen (2022) leaves the generator's input distribution free. Here it is a small Bayesian
network bought with part of the budget: ``tree`` ties every column to one parent, growing from the outcome;
``tan`` (tree-augmented naive Bayes, Friedman et al. 1997) gives every column the outcome *and* one other
column as parents, which keeps what classifiers need when the outcome has many weak causes.

It reads private records twice. Edges are chosen by exponential mechanisms on scores of sensitivity 1
(`dpsynth.releases.structure`). The chosen tables are then counted: a record lies in one cell of each, so all
of them together have L2 sensitivity sqrt(number of tables) under add/remove of one record, and one Gaussian
mechanism releases them. Norm-sub, the fit to the released one-way marginals and all sampling are
post-processing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpsynth.accounting.events.events import epsilon_delta_event, non_private_event
from dpsynth.errors import ConfigError
from dpsynth.releases.binning import Binning, default_bins, make_binning
from dpsynth.releases.marginals import Marginals, check_noise, gaussian_event
from dpsynth.releases.panels import CANDIDATES, choose, panel_of, rake
from dpsynth.releases.projection import fit_margins, norm_sub
from dpsynth.releases.selection import check_epsilon
from dpsynth.releases.structure import count_table, grow_tree, n_choices, noise_allowance, pair_scores
from dpsynth.table.draws import draw_conditional
from dpsynth.table.encoder import Encoder
from dpsynth.table.schema import Schema

if TYPE_CHECKING:
    from dp_accounting.dp_event import DpEvent

#: Every cell of a table keeps this fraction of an even share, so that fits and draws stay defined.
_LEAST_CELL = 1e-4
#: Columns, in the order of drawing, by which candidates are sorted before some of them are chosen.
_SORTED = 6


@dataclass(frozen=True, eq=False)
class Prior:
    """A fitted prior; make it with `fit_prior`.

    Attributes
    ----------
    kind : {"tree", "tan"}
    root : int
        Column drawn first, from its one-way probabilities.
    binnings : tuple of Binning
        Coarse bins of each column.
    cells : tuple of arrays, shapes (grid.size,)
        Released probabilities of the fine cells, which spread a bin over its cells.
    factors : tuple of (parents, child, table)
        In the order of drawing: parent columns, child column and the table of counts whose axes are the
        parents' bins and then the child's.
    panel : tuple of int
        Columns whose missing values are drawn together.
    missing_law : array, shape (len(panel) + 1,), or None
        Released probabilities of the number of missing values among them.
    """

    kind: str
    root: int
    binnings: tuple[Binning, ...]
    cells: tuple[NDArray[np.float64], ...]
    factors: tuple[tuple[tuple[int, ...], int, NDArray[np.float64]], ...]
    panel: tuple[int, ...] = ()
    missing_law: NDArray[np.float64] | None = None

    @property
    def edges(self) -> tuple[tuple[int, int], ...]:
        """Pairs (last parent, child) of the factors."""
        return tuple((parents[-1], child) for parents, child, _ in self.factors)

    def sample(self, n: int, rng: np.random.Generator) -> NDArray[np.int64]:
        """Draw coarse bins of n records, shape (n, columns), with the released law of missing values."""
        if n < 0:
            raise ConfigError(f"n is {n}, but cannot be negative")
        if self.missing_law is None or n == 0:
            return self._draw(n, rng)
        bins = self._draw(CANDIDATES * n, rng)
        # A missing value has the last bin of its column to itself.
        last = np.array([self.binnings[j].labels[-1] for j in self.panel])
        shares = np.array([self.cells[j][-1] for j in self.panel])
        weights = rake(bins[:, self.panel] == last, self.missing_law, shares)
        drawn = [self.root, *(child for _, child, _ in self.factors)][:_SORTED]
        return bins[choose(weights, n, rng, [bins[:, j] for j in drawn])]

    def _draw(self, n: int, rng: np.random.Generator) -> NDArray[np.int64]:
        sizes = [b.size for b in self.binnings]
        bins = np.zeros((n, len(sizes)), dtype=np.int64)
        everyone = np.zeros(n, dtype=np.int64)
        bins[:, self.root] = draw_conditional(self.binnings[self.root].probabilities[None], everyone, rng)
        for parents, child, table in self.factors:
            group = np.ravel_multi_index(tuple(bins[:, p] for p in parents), table.shape[:-1])
            bins[:, child] = draw_conditional(table.reshape(-1, sizes[child]), group, rng)
        return bins

    def sample_cells(self, n: int, rng: np.random.Generator) -> NDArray[np.int64]:
        """Draw fine grid cells of n records, shape (n, columns): bins, then cells within them."""
        bins = self.sample(n, rng)
        for j, (binning, p) in enumerate(zip(self.binnings, self.cells, strict=True)):
            within = np.zeros((binning.size, len(p)))
            # The small term lets a bin without released mass draw one of its own cells.
            within[binning.labels, np.arange(len(p))] = p + 1e-12
            bins[:, j] = draw_conditional(within, bins[:, j], rng, even=False)
        return bins

    def sample_points(self, n: int, encoder: Encoder, rng: np.random.Generator) -> NDArray[np.float32]:
        """Draw n encoded records, shape (n, encoder.layout.dim), groups one-hot."""
        cells = self.sample_cells(n, rng)
        return encoder.points_of_cells(cells, rng.random(cells.shape), rng)

    def to_state(self) -> tuple[dict[str, Any], dict[str, NDArray]]:
        """Return a JSON-able description and the arrays."""
        meta = {
            "kind": self.kind,
            "root": self.root,
            "factors": [[list(parents), child] for parents, child, _ in self.factors],
        }
        arrays: dict[str, NDArray] = {f"table_{i}": table for i, (_, _, table) in enumerate(self.factors)}
        arrays |= {f"labels_{j}": b.labels for j, b in enumerate(self.binnings)}
        arrays |= {f"cells_{j}": p for j, p in enumerate(self.cells)}
        if self.missing_law is not None:
            meta["panel"], arrays["missing_law"] = list(self.panel), self.missing_law
        return meta, arrays

    @classmethod
    def from_state(cls, schema: Schema, meta: Mapping[str, Any], arrays: Mapping[str, NDArray]) -> Prior:
        """Rebuild what `to_state` described."""
        cells = tuple(np.asarray(arrays[f"cells_{j}"]) for j in range(len(schema)))
        binnings = tuple(Binning.from_labels(arrays[f"labels_{j}"], p) for j, p in enumerate(cells))
        factors = tuple(
            (tuple(parents), int(child), np.asarray(arrays[f"table_{i}"]))
            for i, (parents, child) in enumerate(meta["factors"])
        )
        panel = tuple(meta.get("panel", ()))
        law = arrays.get("missing_law")
        return cls(meta["kind"], int(meta["root"]), binnings, cells, factors, panel, law)


def fit_prior(
    frame: pd.DataFrame,
    schema: Schema,
    marginals: Marginals,
    *,
    kind: str,
    noise_multiplier: float | None,
    selection_epsilon: float | None,
    rng: np.random.Generator,
    n_bins: int | None = None,
) -> Prior:
    """Fit a prior to private records.

    Adjacency add/remove one record. Each choice of an edge is (selection_epsilon, 0)-DP on scores of
    sensitivity 1; all tables are one Gaussian mechanism of L2 sensitivity sqrt(number of tables). Both
    are listed by `prior_events`. The number of records used is ``marginals.n``, public or released.

    Parameters
    ----------
    frame : DataFrame, shape (n, columns)
        Conformed to the schema.
    schema : Schema
        Its outcome is the tree's root; without one the first column is.
    marginals : Marginals
        Released one-way marginals of the same schema.
    kind : {"tree", "tan"}
        "tan" needs an outcome.
    noise_multiplier : float or None
        Noise standard deviation of the tables over their sensitivity; None: exact, **not private**.
    selection_epsilon : float or None
        Epsilon of each choice of an edge; None: the best edges, **not private**.
    rng : numpy Generator
    n_bins : int, optional
        Most bins of an ordered column; by default `default_bins`, a rule that reads no records.

    Returns
    -------
    Prior

    Raises
    ------
    ConfigError
        If ``kind`` is unknown or needs an outcome, the marginals are of other columns, or a number is out
        of range.

    References
    ----------
    Friedman, Geiger, Goldszmidt (1997), "Bayesian network classifiers", section 4 (TAN); McKenna et al.
    (2021), "Winning the NIST contest", section 3 (choice by the exponential mechanism, scores that allow
    for noise).

    Examples
    --------
    >>> from dpsynth.releases.marginals import release_marginals
    >>> from dpsynth.table.schema import Column
    >>> schema = Schema(columns=(Column(name="a", kind="binary", categories=(0, 1)),
    ...                          Column(name="y", kind="binary", categories=(0, 1))), outcome="y")
    >>> frame = schema.conform(pd.DataFrame({"a": [0, 0, 1, 1] * 9, "y": [0, 0, 1, 1] * 9})).frame
    >>> rng = np.random.default_rng(0)
    >>> exact = release_marginals(frame, schema, noise_multiplier=None, n=36, rng=rng)
    >>> prior = fit_prior(
    ...     frame, schema, exact, kind="tree", noise_multiplier=None, selection_epsilon=None, rng=rng
    ... )
    >>> bins = prior.sample(6, rng)
    >>> bool((bins[:, 0] == bins[:, 1]).all())
    True
    """
    _check_kind(schema, kind)
    check_noise(noise_multiplier)
    check_epsilon(selection_epsilon)
    if marginals.names != schema.names:
        raise ConfigError(f"marginals are of the columns {marginals.names}, the schema's are {schema.names}")
    if n_bins is not None and n_bins < 1:
        raise ConfigError(f"n_bins is {n_bins}, but must be at least 1")
    root = 0 if schema.outcome is None else schema.names.index(schema.outcome)
    tables = n_tables(schema)
    std = 0.0 if noise_multiplier is None else noise_multiplier * float(np.sqrt(tables))
    classes = marginals.grids[root].size if kind == "tan" else 1
    most = n_bins or default_bins(marginals.n, std, classes)
    binnings = tuple(
        make_binning(grid, p, most, keep=j == root and schema.outcome is not None)
        for j, (grid, p) in enumerate(zip(marginals.grids, marginals.probabilities, strict=True))
    )
    bins = np.empty((len(frame), len(schema)), dtype=np.int64)
    for j, (grid, binning) in enumerate(zip(marginals.grids, binnings, strict=True)):
        bins[:, j] = binning.labels[grid.encode(frame[grid.column.name])]
    families = _families(bins, binnings, marginals.n, kind, root, std, selection_epsilon, rng)
    factors = tuple(
        (family[:-1], family[-1], _clean(table, family, binnings, marginals.n))
        for family, table in zip(families, _noisy_tables(bins, binnings, families, std, rng), strict=True)
    )
    panel = panel_of(marginals.grids)
    return Prior(kind, root, binnings, marginals.probabilities, factors, panel, marginals.missing_law)


def prior_events(
    schema: Schema, kind: str, noise_multiplier: float | None, selection_epsilon: float | None
) -> list[tuple[str, DpEvent, str]]:
    """Name, event and sensitivity of everything that `fit_prior` releases, in order.

    Examples
    --------
    >>> from dpsynth.table.schema import Column
    >>> columns = tuple(Column(name=c, kind="binary", categories=(0, 1)) for c in "abcy")
    >>> for name, event, _ in prior_events(Schema(columns=columns, outcome="y"), "tan", 2.0, 0.1):
    ...     print(name, event)
    prior edges SelfComposedDpEvent(event=EpsilonDeltaDpEvent(epsilon=0.1, delta=0.0), count=2)
    prior tables GaussianDpEvent(noise_multiplier=2.0)
    """
    _check_kind(schema, kind)
    check_noise(noise_multiplier)
    check_epsilon(selection_epsilon)
    choices = n_choices(len(schema) - (kind == "tan"))
    tables = n_tables(schema)
    events: list[tuple[str, DpEvent, str]] = []
    if choices and selection_epsilon is None:
        events.append(("prior edges", non_private_event(), "not private: no noise"))
    elif choices and selection_epsilon is not None:
        event = epsilon_delta_event(selection_epsilon, count=choices)
        events.append(("prior edges", event, f"1 a score, {choices} exponential mechanisms"))
    if tables:
        event = gaussian_event(noise_multiplier)
        events.append(("prior tables", event, f"sqrt({tables}) for {tables} tables together"))
    return events


def n_tables(schema: Schema) -> int:
    """Number of tables that a prior releases: one for every column but the first drawn."""
    return len(schema) - 1


def _families(
    bins: NDArray[np.int64],
    binnings: Sequence[Binning],
    n: float,
    kind: str,
    root: int,
    std: float,
    epsilon: float | None,
    rng: np.random.Generator,
) -> list[tuple[int, ...]]:
    """Columns of each table, the child last, chosen privately."""
    columns = [j for j in range(len(binnings)) if kind == "tree" or j != root]
    if not columns:
        return []
    classes = binnings[root].size if kind == "tan" else 1
    scores = pair_scores(bins, binnings, n, columns) - noise_allowance(binnings, std, classes)
    if kind == "tree":
        return grow_tree(scores, root, columns, epsilon, rng)  # type: ignore[return-value]
    # Any column may come first: with the outcome as everyone's parent the tree has no direction.
    edges = grow_tree(scores, columns[0], columns, epsilon, rng)
    return [(root, columns[0]), *((root, parent, child) for parent, child in edges)]


def _noisy_tables(
    bins: NDArray[np.int64],
    binnings: Sequence[Binning],
    families: Sequence[tuple[int, ...]],
    std: float,
    rng: np.random.Generator,
) -> list[NDArray[np.float64]]:
    """Gaussian mechanism: counts of all families, L2 sensitivity sqrt(number of families)."""
    sizes = [b.size for b in binnings]
    exact = [count_table(bins, family, sizes) for family in families]
    return [table + std * rng.standard_normal(table.shape) for table in exact]


def _clean(
    noisy: NDArray[np.float64], family: Sequence[int], binnings: Sequence[Binning], n: float
) -> NDArray[np.float64]:
    """Project a noisy table on the simplex and fit it to the released one-way marginals."""
    table = norm_sub(noisy.ravel(), n).reshape(noisy.shape)
    table = np.maximum(table, _LEAST_CELL * n / table.size)
    return fit_margins(table, [((axis,), n * binnings[j].probabilities) for axis, j in enumerate(family)])


def _check_kind(schema: Schema, kind: str) -> None:
    if kind not in ("tree", "tan"):
        raise ConfigError(f"kind is {kind!r}, but must be 'tree' or 'tan'")
    if kind == "tan" and schema.outcome is None:
        raise ConfigError("kind 'tan' needs a schema with an outcome; name one, or use kind 'tree'")
