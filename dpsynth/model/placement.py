"""Records that obey rules by where their values lie: two records exchange a value.

The base model's bins allow every rule that has a factor (`dpsynth.model.base_model.rule_factors`). But values
are placed in a bin without regard to rules, and the exact counts move some records to other bins. So a record
that breaks a rule exchanges its value of a column with a record of the same bin. Only records that break a
rule after that exchange values with records of any bin. Near values are tried first. An exchange stays if
fewer rules are broken than before. All columns keep their values, so released counts are met as before.
Post-processing, free of cost.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpsynth.model.base_model.rule_factors import obeyed
from dpsynth.table.derived import modelled_inputs
from dpsynth.table.expressions import Expression
from dpsynth.table.schema import Schema
from dpsynth.table.values import coded_values

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
#: Rounds of exchanges at most, in each of which every rule's columns take turns. Partners are sought so many
#: times further away than in the round before.
_ROUNDS, _WIDER = 30, 4
#: After so many rounds, one that leaves more than this share of the broken rules is the last.
_FIRST, _WORTH = 6, 0.98
#: Exchanges that are tried at once, if each record may try no more than so many.
_AT_ONCE, _EACH = 1000, 32


def placed(
    frame: pd.DataFrame,
    cells: Mapping[str, tuple[Ints, Ints]],
    rules: Sequence[Expression],
    schema: Schema,
    rng: np.random.Generator,
) -> pd.DataFrame:
    """Records of the modelled columns, with values exchanged within bins, and then beyond.

    ``cells``, shapes (n,) and (grid.size,): fine cells of each column whose values may be exchanged, in the
        order of its values, and the bin of each cell.
    ``schema``: with the derived columns that rules read.
    """
    read = [(rule, modelled_inputs(rule.columns, schema.formulas)) for rule in rules]
    read = [(rule, names) for rule, names in read if not cells.keys().isdisjoint(names)]
    if not read:
        return frame
    names = [name for name in frame.columns if any(name in inputs for _, inputs in read)]
    numbers = {name: coded_values(schema.column(name), frame[name]).copy() for name in names}

    def broken(chosen: Iterable[int], now: Mapping[str, Floats]) -> NDArray[np.bool_]:
        """By rule and record of these numbers."""
        return np.stack([~obeyed(read[j][0], lambda column: now[column.name], schema) for j in chosen])

    wrong = broken(range(len(read)), numbers)
    orders = {name: _Order(*cells[name]) for name in names if name in cells}
    #: the record whose value of a column a record has
    source = {name: np.arange(len(frame)) for name in orders}

    def exchange(name: str, width: int) -> None:
        """Exchange a column's values between records, where this helps."""
        own = [j for j, (_, inputs) in enumerate(read) if name in inputs]
        rows = np.flatnonzero(wrong[own].any(axis=0))
        if not len(rows):
            return
        rows = np.repeat(rows, min(max(_AT_ONCE // len(rows), 1), _EACH))
        pairs = orders[name].pairs(rows, width, rng)
        both = pairs.ravel()
        now = {part: numbers[part][both] for part in set().union(*(read[j][1] for j in own))}
        now[name] = numbers[name][pairs[::-1].ravel()]
        found = broken(own, now).reshape(len(own), *pairs.shape)
        better = np.flatnonzero(found.sum(axis=(0, 1)) < wrong[own][:, pairs].sum(axis=(0, 1)))
        better = better[_apart(pairs[:, better], len(frame))]
        one, other = pairs[:, better]
        for values in (numbers[name], source[name]):
            values[one], values[other] = values[other], values[one]
        orders[name].exchange(one, other)
        for k, rows in enumerate((one, other)):
            wrong[np.ix_(own, rows)] = found[:, k, better]

    for beyond in (False, True):
        for turn in range(_ROUNDS):
            before = wrong.sum()
            for name, order in orders.items():
                if beyond and not turn:
                    order.join()
                exchange(name, _WIDER ** min(turn + 1, 15))
            if turn >= _FIRST and wrong.sum() >= _WORTH * before:
                break
    return frame.assign(**{name: frame[name].array[rows] for name, rows in source.items()})


class _Order:
    """Records in the order of one column's values, and their bins."""

    def __init__(self, cells: Ints, labels: Ints) -> None:
        self.bins = labels[cells]
        self.order = np.lexsort((cells, self.bins))  # rare categories share a bin, but are not neighbours
        self.place = np.argsort(self.order)
        self.counts = np.bincount(self.bins)
        self.starts = np.cumsum(self.counts) - self.counts

    def join(self) -> None:
        """Let all values exchange, whatever their bins."""
        self.bins[:] = 0
        self.counts, self.starts = np.array([len(self.bins)]), np.zeros(1, np.int64)

    def pairs(self, rows: Ints, width: int, rng: np.random.Generator) -> Ints:
        """``rows`` in random order, and for each another record of its bin, at most ``width`` places away.

        The first follows the last of a bin. Shape (2, pairs).
        """
        rows = rng.permutation(rows)
        own = self.bins[rows]
        start, count = self.starts[own], self.counts[own]
        away = rng.integers(-np.minimum(width, count), np.minimum(width, count) + 1)
        other = self.order[start + (self.place[rows] - start + away) % count]
        return np.stack([rows, other])[:, rows != other]

    def exchange(self, one: Ints, other: Ints) -> None:
        """Let records stand where the others stood."""
        self.place[one], self.place[other] = self.place[other], self.place[one]
        self.order[self.place[one]], self.order[self.place[other]] = one, other


def _apart(pairs: Ints, n: int) -> NDArray[np.bool_]:
    """Which pairs share no record with an earlier one. ``pairs``, shape (2, pairs): of n records."""
    first, turn = np.full(n, pairs.shape[1]), np.arange(pairs.shape[1])
    for records in pairs:
        np.minimum.at(first, records, turn)
    return np.asarray((first[pairs] == turn).all(axis=0))
