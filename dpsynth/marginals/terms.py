"""Terms of a conditional distribution: what earlier columns add to the log probability of a column's states.

Column j of a chain (`dpsynth.marginals.chain`) has the distribution

    p(x_j = v | earlier)  ~  exp(base_j(v) + sum of terms).

A :class:`TableTerm` has one effect for each cell of earlier columns and of the column. :class:`Products` are
linear in numbers of the earlier columns times numbers of the column. `dpsynth.marginals.coupling` has the
third kind. A term is fitted by steps towards the moments that it should have: of a table these are the shares
of its cells (iterative scaling, Darroch and Ratcliff 1972), of products their means (Newton's method with a
ridge, since the means are noisy). All is post-processing of released numbers, free of cost.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from dpsynth.files.codec import record

Ints = NDArray[np.int64]
Floats = NDArray[np.float32]
Doubles = NDArray[np.float64]

#: Longest step of a table's effect, and of an effect of products.
_LONGEST, _LONGEST_SLOPE = 5.0, 1.5
#: Newton's steps for the move of one effect with a ridge.
_ROUNDS = 3
#: Shares of cells are compared with this much added to each.
_SHARE = 1e-9
#: Newton's steps of several numbers at once are shorter.
_SHORTER = 0.7
#: Least ridge.
_LEAST = 1e-5
#: Operations of a curvature, roughly, and fewest records that it is computed from.
_WORK, _FEWEST = 40_000_000, 1000
#: All states of a column.
ALL = slice(None)


@dataclass(frozen=True, eq=False)
class DrawnColumns:
    """Records of which some columns are drawn.

    ``states``, shape (columns, n): of the drawn columns.
    ``scores``, shape (columns, n): normal scores of ordered columns.
    """

    states: Ints
    scores: Floats

    @classmethod
    def empty(cls, columns: int, n: int) -> DrawnColumns:
        """Records without any column."""
        return cls(np.zeros((columns, n), np.int64), np.zeros((columns, n), np.float32))

    def part(self, records: slice) -> DrawnColumns:
        """Some of the records, without a copy."""
        return DrawnColumns(self.states[:, records], self.scores[:, records])


class Sent:
    """A dataclass that goes to other processes without what is computed from its fields, which is large."""

    def __getstate__(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]


@record
@dataclass(frozen=True, eq=False)
class ChainTerm(Sent, ABC):
    """What earlier columns add to the log probability of each state of a column."""

    @abstractmethod
    def logits(self, rows: DrawnColumns, states: Ints | slice = ALL) -> Floats:
        """Of these states, shape (states, n)."""

    @abstractmethod
    def alike(self) -> NDArray[np.float64]:
        """Rows that are equal where two states always have the same logits, shape (states, numbers)."""


@record
@dataclass(frozen=True, eq=False)
class PlaceTerm(ChainTerm):
    """A term that tells all states apart, and records by one of few places alone."""

    @property
    @abstractmethod
    def by_place(self) -> Floats:
        """Logits, shape (states, places)."""

    @abstractmethod
    def places(self, rows: DrawnColumns) -> Ints:
        """Place of each record, shape (n,)."""

    def logits(self, rows: DrawnColumns, states: Ints | slice = ALL) -> Floats:
        """Of these states, shape (states, n)."""
        return self.by_place[states].take(self.places(rows), axis=1)

    def alike(self) -> Doubles:
        """Every state is different."""
        return np.arange(len(self.by_place), dtype=np.float64)[:, None]


@record
@dataclass(frozen=True, eq=False)
class TableTerm(ChainTerm):
    """An effect for each cell of a table of earlier columns and the column.

    ``parents``: earlier columns. ``labels``, shapes (states,): cell of each of their states.
    ``child``, shape (states,): cell of each state of the column.
    ``effects``, shape (cells of the parents, cells of the column).
    """

    parents: tuple[int, ...]
    labels: tuple[Ints, ...]
    child: Ints
    effects: Floats

    def cells(self, rows: DrawnColumns) -> Ints:
        """Cell of the parents of each record, shape (n,)."""
        cell = np.zeros(rows.states.shape[1], np.int64)
        for column, first in zip(self.parents, self._firsts, strict=True):
            cell += first[rows.states[column]]
        return cell

    @cached_property
    def _firsts(self) -> list[Ints]:
        """First of the parents' cells in which each parent has each of its states."""
        sizes = [int(label.max()) + 1 for label in self.labels]
        return [label * math.prod(sizes[k:]) for k, label in enumerate(self.labels, 1)]

    def logits(self, rows: DrawnColumns, states: Ints | slice = ALL) -> Floats:
        """Of these states, shape (states, n)."""
        return self.effects.T[self.child[states]].take(self.cells(rows), axis=1)

    def alike(self) -> Doubles:
        """The cells of the states."""
        return self.child[:, None].astype(np.float64)


@record
@dataclass(frozen=True, eq=False)
class Products(ChainTerm):
    """Numbers of earlier columns times numbers of the column, all multiplied by the outcome if there is one.

    ``columns``: earlier columns. ``numbers``, shapes (states, numbers): those of their states.
    ``outcome``: an earlier column of one number, or None. ``times``, shape (states,): that number.
    ``child``, shape (states, numbers): those of the column's states.
    ``effects``, shape (numbers of the earlier columns, numbers of the column).
    """

    columns: tuple[int, ...]
    numbers: tuple[Floats, ...]
    outcome: int | None
    times: Floats
    child: Floats
    effects: Floats

    def values(self, rows: DrawnColumns) -> Floats:
        """Numbers of the earlier columns of each record, shape (numbers, n)."""
        pairs = zip(self.columns, self.numbers, strict=True)
        values = np.vstack([table.T.take(rows.states[column], axis=1) for column, table in pairs])
        if self.outcome is not None:
            values *= self.times[rows.states[self.outcome]]
        return values

    def logits(self, rows: DrawnColumns, states: Ints | slice = ALL) -> Floats:
        """Of these states, shape (states, n)."""
        return np.asarray(self.child[states] @ (self.effects.T @ self.values(rows)))

    def alike(self) -> Doubles:
        """The numbers of the states."""
        return self.child.astype(np.float64)


class Fitting(ABC):
    """A term that is fitted to records whose earlier columns are drawn."""

    effects: Floats

    @abstractmethod
    def at(self, first: Ints) -> None:
        """Take one state of each group of states that no term tells apart."""

    @abstractmethod
    def logits(self, effects: Floats) -> Floats:
        """Logits of the groups with these effects, shape (groups, n)."""

    @abstractmethod
    def step(self, shares: Floats) -> Floats:
        """Change of the effects, by the probabilities of the groups, shape (groups, n)."""

    @abstractmethod
    def term(self) -> ChainTerm:
        """The term as it is."""


class TableFitting(Fitting):
    """A table that is fitted to a conditional distribution, given its parents.

    ``law``, shape (cells of the parents, cells of the column).
    """

    def __init__(self, table: TableTerm, law: Doubles, rows: DrawnColumns) -> None:
        self.table, self.effects = table, table.effects.copy()
        self.cell = table.cells(rows)
        self.n, number = len(self.cell), len(law)
        self.cells = indicators([self.cell], [number])
        weight = np.bincount(self.cell, minlength=number) / self.n
        self.goal = law * weight[:, None]

    def at(self, first: Ints) -> None:
        """Cells of the column of these states."""
        self.child = self.table.child[first]
        self.sums = np.zeros((len(first), self.goal.shape[1]), np.float32)
        self.sums[np.arange(len(first)), self.child] = 1.0

    def logits(self, effects: Floats) -> Floats:
        """Shape (groups, n)."""
        return effects.T[self.child].take(self.cell, axis=1)

    def step(self, shares: Floats) -> Floats:
        """Iterative scaling: as if no other term held these columns."""
        have = self.cells.T @ (shares.T @ self.sums) / self.n
        move = np.clip(self._move(have), -_LONGEST, _LONGEST).astype(np.float32)
        self.effects += move
        return np.asarray(move)

    def _move(self, have: Doubles) -> Doubles:
        """Change of the effects, by the shares that cells have."""
        return np.asarray(np.log((self.goal + _SHARE) / (have + _SHARE)))

    def term(self) -> TableTerm:
        """The table with its effects."""
        return TableTerm(self.table.parents, self.table.labels, self.table.child, self.effects)


class HeldTableFitting(TableFitting):
    """A table whose effects are held where they start, because it has noise.

    ``ridge``, of the shape of the effects: what departing from the start costs.
    """

    def __init__(self, table: TableTerm, law: Doubles, rows: DrawnColumns, ridge: Doubles) -> None:
        super().__init__(table, law, rows)
        self.ridge = ridge

    def _move(self, have: Doubles) -> Doubles:
        """Newton's method, cell by cell."""
        goal = self.goal - self.ridge * (self.effects - self.table.effects)
        move = np.log((self.goal + self.ridge) / (have + self.ridge))
        for _ in range(_ROUNDS):
            moved = have * np.exp(move)
            move += (goal - moved - self.ridge * move) / (moved + self.ridge)
            move = np.clip(move, -_LONGEST, _LONGEST)
        return np.asarray(move)


class ProductsFitting(Fitting):
    """Products that are fitted to means with noise.

    ``goal``, ``ridge``, of the shape of the effects: means, and how much an effect of 1 costs.
    """

    def __init__(self, products: Products, goal: Doubles, ridge: Doubles, rows: DrawnColumns) -> None:
        self.products, self.effects = products, products.effects.copy()
        self.goal, self.ridge = goal, np.maximum(ridge, _LEAST)
        self.values = products.values(rows)
        self.n = self.values.shape[1]
        work = max(self.ridge.shape[1] * len(self.values) ** 2, 1)
        self.some = self.values[:, : max(_WORK // work, _FEWEST)]

    def at(self, first: Ints) -> None:
        """Numbers of the column of these states."""
        self.child = np.ascontiguousarray(self.products.child[first].T)

    def logits(self, effects: Floats) -> Floats:
        """Shape (groups, n)."""
        return np.asarray(self.child.T @ (effects.T @ self.values))

    def step(self, shares: Floats) -> Floats:
        """Newton's method, number by number of the column, with curvatures of some of the records."""
        mean = self.child @ shares
        gap = self.goal - (self.values @ mean.T) / self.n - self.ridge * self.effects
        number = self.some.shape[1]
        variance = self.child**2 @ shares[:, :number] - mean[:, :number] ** 2
        move = np.empty(gap.shape)
        for k, own in enumerate(variance):
            curvature = (self.some * own) @ self.some.T / number
            move[:, k] = np.linalg.solve(curvature + np.diag(self.ridge[:, k]), gap[:, k])
        move *= min(1.0, _LONGEST_SLOPE / max(float(np.abs(move).max(initial=0.0)), _LEAST))
        if move.shape[1] > 2:
            move *= _SHORTER
        self.effects += move.astype(np.float32)
        return move.astype(np.float32)

    def term(self) -> Products:
        """The products with their effects."""
        own = self.products
        return Products(own.columns, own.numbers, own.outcome, own.times, own.child, self.effects)


def indicators(cells: Sequence[Ints], sizes: Sequence[int]) -> sparse.csr_matrix:
    """For each record an entry of 1 in its cell of each table, shape (n, cells of all tables)."""
    first = np.cumsum(sizes) - sizes
    columns = np.stack([own + start for own, start in zip(cells, first, strict=True)], axis=1)
    ends = np.arange(0, columns.size + 1, len(sizes), dtype=np.int32)
    ones = np.ones(columns.size, np.float32)
    return sparse.csr_matrix((ones, columns.ravel().astype(np.int32), ends), (len(columns), sum(sizes)))


def softmax(logits: Floats, out: Floats | None = None) -> Floats:
    """Probabilities, shape (groups, n), in the place of the logits unless there is another one."""
    shares = exponentials(logits, logits if out is None else out)
    shares /= shares.sum(axis=0)
    return shares


def exponentials(logits: Floats, out: Floats) -> Floats:
    """Probabilities up to a factor of each record, the largest of which is 1, shape (groups, n)."""
    np.subtract(logits, logits.max(axis=0), out=out)
    return np.exp(out, out=out)


@dataclass(frozen=True, eq=False)
class StateGroups:
    """Groups of states that only a term of places tells apart, if any term does.

    ``first``, shape (groups,): a state of each. ``group``, shape (states,): of each state.
    ``weights``, shape (states, places): share of each state in all, up to a factor of each place. Without a
        term of places there is one place.
    ``sums``, shape (groups, places): those of the groups.
    ``place``: the term of places.
    """

    first: Ints
    group: Ints
    weights: Doubles
    sums: Doubles
    place: PlaceTerm | None

    @classmethod
    def of(cls, mass: Doubles, terms: Sequence[ChainTerm]) -> StateGroups:
        """Of the shares of states before any term, shape (states,)."""
        place = next((term for term in terms if isinstance(term, PlaceTerm)), None)
        others = [term.alike() for term in terms if term is not place]
        first, group = np.zeros(1, np.int64), np.zeros(len(mass), np.int64)
        if others:
            _, first, group = np.unique(np.hstack(others), axis=0, return_index=True, return_inverse=True)
        weights = (
            mass[:, None] if place is None else mass[:, None] * np.exp(place.by_place.astype(np.float64))
        )
        sums = np.zeros((len(first), weights.shape[1]))
        np.add.at(sums, group.reshape(-1), weights)
        return cls(first, group.reshape(-1), weights, sums, place)

    def places(self, rows: DrawnColumns) -> Ints:
        """Place of each record, shape (n,)."""
        n = rows.states.shape[1]
        return np.zeros(n, np.int64) if self.place is None else self.place.places(rows)


def fit_terms(
    law: Doubles,
    fixed: Sequence[ChainTerm],
    moving: Sequence[Fitting],
    rows: DrawnColumns,
    sweeps: int,
) -> Doubles:
    """Fit terms to their moments, and the base to the distribution of the column's states, in turns.

    ``law``, shape (states,): that distribution.
    ``fixed``: terms that stay.

    Returns the base, shape (states,): the logarithm of what each state has before any term.
    """
    law = np.maximum(law, _SHARE)
    base = np.log(law)
    terms = (*fixed, *(fitting.term() for fitting in moving))
    if not terms:
        return base
    groups = StateGroups.of(law, terms)
    mass, place = np.bincount(groups.group, law, len(groups.first)), groups.places(rows)
    logits = np.log(groups.sums).astype(np.float32).take(place, axis=1)
    shares = np.empty_like(logits)
    for term in fixed:
        if term is not groups.place:
            logits += term.logits(rows, groups.first)
    for fitting in moving:
        fitting.at(groups.first)
        logits += fitting.logits(fitting.effects)
    for sweep in range(sweeps + 1):
        for fitting in moving if sweep else ():
            logits += fitting.logits(fitting.step(softmax(logits, shares)))
        have = softmax(logits, shares).mean(axis=1, dtype=np.float64)
        move = np.clip(np.log((mass + 1e-7) / (have + 1e-7)), -2.0, 2.0)
        base += move[groups.group]
        logits += move.astype(np.float32)[:, None]
    if groups.place is not None:  # and each state to its own share within its group
        at_place = indicators([place], [groups.sums.shape[1]]).T @ softmax(logits, shares).T
        within = at_place.T / groups.sums
        have = (groups.weights * within[groups.group]).sum(axis=1) / len(place)
        base += np.clip(np.log((law + 1e-7) / (have + 1e-7)), -2.0, 2.0)
    return base
