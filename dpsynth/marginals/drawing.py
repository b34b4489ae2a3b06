"""A conditional distribution in the form that is drawn from fastest.

States that no term tells apart are drawn as one group, and then within it. Small tables are added up to one
over all their parents, so that a record looks up few numbers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from dpsynth.marginals.terms import (
    ChainTerm,
    DrawnColumns,
    PlaceTerm,
    Products,
    StateGroups,
    TableTerm,
    exponentials,
)

Ints = NDArray[np.int64]
Floats = NDArray[np.float32]
Doubles = NDArray[np.float64]

#: Effects of a sum of tables, at most: they stay in the processor's cache.
_EFFECTS = 1 << 16
#: Probabilities that are computed at once, and fewest records of them.
_PROBABILITIES, _FEWEST = 1 << 16, 1024
#: Least share of a state in its group, and greatest place in a group.
_RAREST, _BELOW_ONE = 1e-30, 1.0 - 1e-9


@dataclass(frozen=True, eq=False)
class Drawing:
    """Groups of states and sums of tables, made with `Drawing.of`.

    ``groups``: states that are drawn together, by place.
    ``base``, shape (groups, places): log probability by place.
    ``order``, shape (states,): states in the order of their groups.
    ``ends``, shape (places * states,): ends of their shares in their groups, one group after another.
    ``tables``: sums of tables with the groups as cells. ``effects``: those of each, shape (groups, cells).
    ``products``: all terms of products as one. ``others``: terms of other kinds.
    """

    groups: StateGroups
    base: Floats
    order: Ints
    ends: Doubles
    tables: tuple[TableTerm, ...]
    effects: tuple[Floats, ...]
    products: ProductSums
    others: tuple[ChainTerm, ...]

    @classmethod
    def of(cls, base: Floats, terms: Sequence[ChainTerm]) -> Drawing:
        """Of terms, and of the log probability of each state before them, shape (states,)."""
        groups = StateGroups.of(np.maximum(np.exp(base.astype(np.float64) - base.max()), _RAREST), terms)
        own, tables = np.arange(len(groups.first)), list[TableTerm]()
        for term in terms:
            if isinstance(term, TableTerm):
                one = TableTerm(term.parents, term.labels, own, term.effects[:, term.child[groups.first]])
                sums = ((k, sum_of_tables(table, one, _EFFECTS)) for k, table in enumerate(tables))
                k, found = next(((k, found) for k, found in sums if found is not None), (-1, None))
                tables = [*tables, one] if found is None else [*tables[:k], found, *tables[k + 1 :]]
        order = np.argsort(groups.group, kind="stable")
        group = groups.group[order]
        below = np.cumsum(groups.weights[order], axis=0)
        before = np.cumsum(groups.sums, axis=0) - groups.sums
        ends = group[:, None] + ((below - before[group]) / groups.sums[group]).clip(0.0, 1.0)
        last = np.flatnonzero(np.diff(group, append=-1))
        ends[last] = group[last, None] + 1.0
        ends += len(groups.first) * np.arange(ends.shape[1])
        return cls(
            groups,
            np.log(groups.sums).astype(np.float32),
            order,
            ends.T.ravel(),
            tuple(tables),
            tuple(np.ascontiguousarray(table.effects.T) for table in tables),
            ProductSums.of([term for term in terms if isinstance(term, Products)], groups.first),
            tuple(term for term in terms if not isinstance(term, TableTerm | PlaceTerm | Products)),
        )

    def draw(self, rows: DrawnColumns, mark: Doubles) -> Ints:
        """States of all records, shape (n,), by a uniform number of each."""
        n, place = len(mark), self.groups.places(rows)
        group, left = np.empty(n, np.int64), np.empty(n)
        size = max(_PROBABILITIES // len(self.base), _FEWEST)
        for start in range(0, n, size):
            part = slice(start, start + size)
            below = self._logits(rows.part(part), place[part])
            exponentials(below, below)
            for one, following in pairwise(below):  # faster than sums along the first axis
                following += one
            sought = (mark[part] * below[-1]).astype(np.float32)
            reached = below[:-1] <= sought
            group[part] = np.add.reduce(reached.view(np.uint8), axis=0, dtype=np.uint16)
            if len(self.base) < len(self.order):  # where in its group
                own, each = group[part], np.arange(below.shape[1])
                before = np.where(own > 0, below[own - 1, each], 0.0)
                left[part] = (sought - before) / np.maximum(below[own, each] - before, _RAREST)
        if len(self.base) == len(self.order):
            return self.order[group]
        within = place * len(self.base) + group + left.clip(0.0, _BELOW_ONE)
        return self.order[np.searchsorted(self.ends, within, side="right") - place * len(self.order)]

    def _logits(self, rows: DrawnColumns, place: Ints) -> Floats:
        """Shape (groups, n)."""
        logits = self.base.take(place, axis=1)
        for table, effects in zip(self.tables, self.effects, strict=True):
            logits += effects.take(table.cells(rows), axis=1)
        if self.products.tables:
            logits += self.products.logits(rows)
        for term in self.others:
            logits += term.logits(rows, self.groups.first)
        return logits


@dataclass(frozen=True, eq=False)
class ProductSums:
    """Terms of products as sums over the earlier columns, of numbers that each of their states gives.

    Effects times the numbers of a state are the same for all records, so they are multiplied once.

    ``columns``: earlier columns. ``tables``, shapes (states, numbers): what each state adds to the numbers.
    ``factors``: columns, numbers of their states, and the sums that these multiply.
    ``child``, shape (groups, numbers): those of the groups.
    """

    columns: tuple[int, ...]
    tables: tuple[Floats, ...]
    factors: tuple[tuple[int, Floats, slice], ...]
    child: Floats

    @classmethod
    def of(cls, terms: Sequence[Products], first: Ints) -> ProductSums:
        """Of terms, for these states."""
        ends = np.cumsum([0, *(term.child.shape[1] for term in terms)])
        parts = [slice(a, b) for a, b in pairwise(ends)]
        tables = dict[int, Floats]()
        for term, part in zip(terms, parts, strict=True):
            rows = np.cumsum([0, *(numbers.shape[1] for numbers in term.numbers)])
            for column, numbers, (a, b) in zip(term.columns, term.numbers, pairwise(rows), strict=True):
                table = tables.setdefault(column, np.zeros((len(numbers), ends[-1]), np.float32))
                table[:, part] = numbers @ term.effects[a:b]
        factors = tuple(
            (term.outcome, term.times, part)
            for term, part in zip(terms, parts, strict=True)
            if term.outcome is not None
        )
        child = np.hstack([np.empty((len(first), 0), np.float32), *(term.child[first] for term in terms)])
        return cls(tuple(tables), tuple(tables.values()), factors, child)

    def logits(self, rows: DrawnColumns) -> Floats:
        """Shape (groups, n)."""
        sums = np.zeros((rows.states.shape[1], self.child.shape[1]), np.float32)
        for column, table in zip(self.columns, self.tables, strict=True):
            sums += table.take(rows.states[column], axis=0)
        for column, times, part in self.factors:
            sums[:, part] *= times.take(rows.states[column])[:, None]
        return np.asarray(self.child @ sums.T)


def sum_of_tables(one: TableTerm, other: TableTerm, most: int) -> TableTerm | None:
    """The sum of two tables with the same cells of the child, or None if it has too many effects.

    Examples
    --------
    >>> labels = np.arange(2), np.arange(2)
    >>> one = TableTerm((3,), labels[:1], np.arange(2), np.array([[0.0, 1.0], [2.0, 3.0]]))
    >>> other = TableTerm((3, 5), labels, np.arange(2), np.arange(8.0).reshape(4, 2))
    >>> sum_of_tables(one, other, 8).effects.tolist()
    [[0.0, 2.0], [2.0, 4.0], [6.0, 8.0], [8.0, 10.0]]
    >>> sum_of_tables(one, other, 7) is None
    True
    """
    labels = dict(zip(one.parents, one.labels, strict=True))
    for j, label in zip(other.parents, other.labels, strict=True):
        both = label if j not in labels else labels[j] * (int(label.max()) + 1) + label
        labels[j] = np.unique(both, return_inverse=True)[1].reshape(-1)
    sizes = [int(label.max()) + 1 for label in labels.values()]
    if math.prod(sizes) * len(one.child) > most:
        return None
    states = {j: np.unique(label, return_index=True)[1] for j, label in labels.items()}

    def spread(table: TableTerm) -> Floats:
        """Effects over the parents of both tables."""
        own = table.effects.reshape(*(int(label.max()) + 1 for label in table.labels), -1)
        places = [label[states[j]] for j, label in zip(table.parents, table.labels, strict=True)]
        own = own[np.ix_(*places, table.child)]
        order = [table.parents.index(j) for j in labels if j in table.parents]
        shape = [size if j in table.parents else 1 for j, size in zip(labels, sizes, strict=True)]
        return own.transpose(*order, -1).reshape(*shape, -1)

    effects = (spread(one) + spread(other)).reshape(-1, len(one.child))
    return TableTerm(tuple(labels), tuple(labels.values()), one.child, effects)
