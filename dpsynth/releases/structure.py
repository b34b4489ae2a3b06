"""The edges of the base model: a spanning tree grown by private choices.

The tree grows from its root by Prim's algorithm. Each new edge is drawn by the exponential mechanism among
all edges between a column inside and one outside. A pair's score is

    sum over cells |n_ij - n p_i p_j|  -  expected absolute noise of a table of as many cells,

with n_ij the exact counts and n, p_i, p_j already *released* numbers. Adding or removing one record changes
one n_ij by one and nothing else, so the score has sensitivity 1. The released products are rounded to a
public step, and sums of whole numbers of it are exact.

The exponential mechanism (McSherry and Talwar 2007) picks a candidate with probability proportional to
``exp(epsilon * score / 2)``. With such scores it is (epsilon, 0)-differentially private. Its losses lie in an
interval of length epsilon. One record moves each weight's logarithm by at most epsilon / 2 either way. It
moves that of their sum equally for all candidates. Candidates are drawn evenly, and kept with probability
``exp(epsilon * (score - best) / 2)``: exact trials of whole numbers (`dpsynth.mechanism.exact_draws`).
Each choice uses fresh randomness and is posted on its own, so later choices may depend on earlier ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpsynth.accounting.contents import Stage
from dpsynth.accounting.events import exponential_mechanism_event, non_private_event
from dpsynth.accounting.normal_form import ADD_REMOVE
from dpsynth.errors import ConfigError
from dpsynth.mechanism.exact_draws import exponential_trial, geometric
from dpsynth.releases.bins import Binning, Bins
from dpsynth.releases.gaussian import Adaptive
from dpsynth.releases.records import Records
from dpsynth.table.schema import Schema

if TYPE_CHECKING:
    from dp_accounting.dp_event import DpEvent


#: Step of scores.
SCORE_STEP = 2.0**-20
#: Candidates that are drawn at once, at most.
_CANDIDATES = 4096


def choose(scores: ArrayLike, epsilon: float | None, rng: np.random.Generator) -> int:
    """Index of a candidate, by the exponential mechanism.

    ``scores``, shape (k,), k >= 1: whole numbers of `SCORE_STEP`, to which others are rounded. Each changes
        by at most 1 when one record is added or removed.
    ``epsilon``: cost of this choice (`exponential_mechanism_event`). None takes the largest score: **not
        private**.

    Source: McSherry and Talwar (2007), Theorem 6.

    Examples
    --------
    >>> choose([1.0, 9.0, 3.0], None, np.random.default_rng(0))
    1
    """
    values = np.asarray(scores, dtype=np.float64)
    if values.size == 0:
        raise ConfigError("there is no candidate to choose from")
    check_epsilon(epsilon)
    if epsilon is None:
        return int(np.argmax(values))
    steps = [int(step) for step in np.rint(values / SCORE_STEP)]
    best = max(steps)
    unit = Fraction(epsilon) * Fraction(SCORE_STEP) / 2
    exponents = [unit * (best - step) for step in steps]
    wholes = np.array([min(int(exponent), 2**62) for exponent in exponents])
    size = min(4 * len(steps), _CANDIDATES)
    while True:
        drawn = rng.integers(0, len(steps), size)
        # exp(-exponent) is exp(-1) as often as the whole part says, and what is left.
        for pick in drawn[geometric(size, rng) >= wholes[drawn]]:
            left = exponents[pick] - int(wholes[pick])
            if exponential_trial(left.numerator, left.denominator, rng):
                return int(pick)


def check_epsilon(epsilon: float | None) -> None:
    """Refuse a selection epsilon that is neither None nor a positive finite number."""
    if epsilon is not None and not (np.isfinite(epsilon) and epsilon > 0):
        raise ConfigError(f"selection_epsilon is {epsilon}, but must be greater than 0, or None")


Kind = Literal["tree", "tan"]
#: Columns of one table, the child last.
Family = tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class EdgesRelease(Adaptive[Bins]):
    """The families of a base model's tables, chosen by exponential mechanisms on scores of sensitivity 1.

    ``schema``: its outcome is the tree's root. Without one the first column is.
    ``kind``: one parent a column, or the outcome and another. "tan" needs an outcome.
    ``epsilon``: cost of each choice, an exponential mechanism. None takes the best edges: **not private**.
    ``table_std``: noise of a cell of the later tables, for which scores allow.
    ``read_with``: bins from earlier noisy statistics, given with :meth:`at`.

    Source: Friedman, Geiger, Goldszmidt (1997), "Bayesian network classifiers", section 4 (TAN). The choice
    by the exponential mechanism, with scores that allow for noise: McKenna et al. (2021), "Winning the NIST
    contest", section 3.
    """

    schema: Schema
    kind: Kind
    epsilon: float | None
    table_std: float
    stage: Stage | None = None
    name: ClassVar[str] = "base model edges"
    adjacency: ClassVar[str] = ADD_REMOVE
    detail: ClassVar[str] = ""

    def __post_init__(self) -> None:
        if self.kind not in ("tree", "tan"):
            raise ConfigError(f"kind is {self.kind!r}, but must be 'tree' or 'tan'")
        if self.kind == "tan" and self.schema.outcome is None:
            raise ConfigError("kind 'tan' needs a schema with an outcome: name one, or use kind 'tree'")
        check_epsilon(self.epsilon)

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

    @property
    def sensitivity(self) -> str:
        """In words, for the ledger."""
        if self.epsilon is None:
            return "not private: no noise"
        return f"1 a score, {self.choices} exponential mechanisms"

    @property
    def event(self) -> DpEvent:
        """Cost of all choices."""
        if self.epsilon is None:
            return non_private_event()
        return exponential_mechanism_event(self.epsilon, count=self.choices)

    def only(self) -> list[Family]:
        """The families if there is no choice. No record is read."""
        return self._families(np.zeros((len(self.schema),) * 2), np.random.default_rng(0))

    def scores(self, records: Records) -> NDArray[np.float64]:
        """Each pair's distance from independence: private, sensitivity 1 each, shape (columns, columns)."""
        bins = self.given
        pairs = list(combinations(self.columns, 2))
        tables = records.counts([(bins.axes[a], bins.axes[b]) for a, b in pairs])
        return pair_scores(dict(zip(pairs, tables, strict=True)), bins.binnings, bins.n)

    def __call__(self, records: Records, rng: np.random.Generator) -> list[Family]:
        """Choose. A ledger calls it when the choices are posted."""
        binnings = self.given.binnings
        classes = binnings[self.root].size if self.kind == "tan" else 1
        allowance = noise_allowance(binnings, self.table_std, classes)
        return self._families(self.scores(records) - _rounded(allowance), rng)

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
    tables: dict[tuple[int, int], NDArray[np.int64]], binnings: Sequence[Binning], n: float
) -> NDArray[np.float64]:
    """Distance of every pair's counts from independence, before the noise is allowed for.

    The scores are private. Each entry has sensitivity 1 under add/remove one record, because ``n`` and the
    binnings' probabilities are released numbers that stay fixed.

    Returns array, shape (columns, columns), symmetric, zero for other pairs.
    """
    scores = np.zeros((len(binnings), len(binnings)))
    for (a, b), counts in tables.items():
        independent = _rounded(n * np.outer(binnings[a].probabilities, binnings[b].probabilities))
        scores[a, b] = scores[b, a] = np.abs(counts - independent).sum()
    return scores


def _rounded(values: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.rint(values / SCORE_STEP) * SCORE_STEP


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
        candidates = [(a, b) for a in inside for b in outside]
        # A single candidate is no choice: it is taken without looking at its score.
        pick = 0 if len(candidates) == 1 else choose([scores[e] for e in candidates], epsilon, rng)
        edges.append(candidates[pick])
        inside.append(candidates[pick][1])
        outside.remove(candidates[pick][1])
    return edges


def n_choices(n_columns: int) -> int:
    """Number of exponential mechanisms that `grow_tree` runs on so many columns.

    Examples
    --------
    >>> [n_choices(m) for m in (1, 2, 3, 4)]
    [0, 0, 2, 3]
    """
    return n_columns - 1 if n_columns > 2 else 0
