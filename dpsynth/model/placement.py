"""Records that obey rules by where their values lie within bins: two records exchange a value.

The base model's bins allow every rule that has a factor (`dpsynth.model.base_model.rule_factors`). But values
are placed in a bin without regard to rules. So a record that breaks a rule exchanges its value of a column
with a record of the same bin. Near values are tried first. An exchange stays if fewer rules are broken than
before. All columns keep their values, so released counts are met as before. Post-processing,
free of cost.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpsynth.model.base_model.rule_factors import obeyed
from dpsynth.table.column import Column
from dpsynth.table.derived import modelled_inputs
from dpsynth.table.rules import Rule
from dpsynth.table.schema import Schema
from dpsynth.table.values import numeric_values, positions, stored_numbers

Ints = NDArray[np.int64]
#: Rounds of exchanges, in each of which every rule's columns take turns.
_ROUNDS = 60
_TRIED, _TRIES = 1000, 32
#: After so many rounds, each twice as wide as the one before, one that leaves more than this share of the
#: broken rules is the last.
_WIDENING, _WORTH = 12, 0.98


def placed(
    frame: pd.DataFrame,
    cells: Mapping[str, tuple[Ints, Ints]],
    rules: Sequence[Rule],
    schema: Schema,
    rng: np.random.Generator,
) -> pd.DataFrame:
    """Records of the modelled columns, with values exchanged within bins.

    ``cells``, shapes (n,) and (grid.size,): fine cells of each column whose values may be exchanged, in the
        order of its values, and the bin of each cell.
    ``schema``: with the derived columns that rules read.
    """
    pairs = [(rule, modelled_inputs(rule.columns, schema.formulas)) for rule in rules]
    pairs = [(rule, names) for rule, names in pairs if not cells.keys().isdisjoint(names)]
    if not pairs:
        return frame
    rules, inputs = zip(*pairs, strict=True)
    columns = [schema.column(name) for name in frame.columns if name in set().union(*inputs)]
    place = {column.name: j for j, column in enumerate(columns)}
    # rules read many small tables, which are made fast of one array
    labels = pd.Index([*place])
    numbers = np.column_stack([_numbers(column, frame[column.name]) for column in columns])

    def broken(chosen: Iterable[int], now: NDArray[np.float64]) -> NDArray[np.bool_]:
        """By rule and record of these numbers."""
        part = pd.DataFrame(now, columns=labels)
        for name in set().union(*(inputs[rule] for rule in chosen)):
            if not columns[place[name]].is_numeric:
                codes = positions(now[:, place[name]])
                part[name] = pd.Categorical.from_codes(codes, dtype=kinds[name], validate=False)
        return np.stack([~obeyed(rules[rule], part, schema) for rule in chosen])

    kinds = {c.name: pd.CategoricalDtype([*c.categories]) for c in columns if not c.is_numeric}
    wrong = broken(range(len(rules)), numbers)
    moving = {name: _Order(*cells[name]) for name in cells if name in place}
    #: the record whose value of a column a record has
    source = {name: np.arange(len(frame)) for name in moving}
    since = 0
    for turn in range(_ROUNDS):
        before = wrong.sum()
        for name, order in moving.items():
            reading = np.array([rule for rule, names in enumerate(inputs) if name in names])
            rows = np.flatnonzero(wrong[reading].any(axis=0))
            if not len(rows):
                continue
            rows = np.repeat(rows, min(max(_TRIED // len(rows), 1), _TRIES))
            pairs = order.pairs(rows, 2 ** min(turn - since + 2, 30), rng)
            now = numbers[pairs]
            now[:, :, place[name]] = now[::-1, :, place[name]]
            found = broken(reading, now.reshape(-1, len(columns))).reshape(len(reading), 2, -1)
            better = np.flatnonzero((found.sum(axis=(0, 1)) < wrong[reading][:, pairs].sum(axis=(0, 1))))
            better = better[_apart(pairs[:, better], len(frame))]
            one, other = pairs[:, better]
            for values in (numbers[:, place[name]], source[name]):
                values[one], values[other] = values[other], values[one]
            order.exchange(one, other)
            wrong[np.ix_(reading, one)], wrong[np.ix_(reading, other)] = found[:, :, better].swapaxes(0, 1)
        if turn - since >= _WIDENING and wrong.sum() >= _WORTH * before:
            if since:
                break
            since = turn
            for order in moving.values():
                order.join()
    return frame.assign(**{name: frame[name].array[rows] for name, rows in source.items()})


def _numbers(column: Column, series: pd.Series[Any]) -> NDArray[np.float64]:
    """Numbers with special codes, or places among categories, NaN where missing."""
    return stored_numbers(column, series) if column.is_numeric else numeric_values(column, series)


class _Order:
    """Records in the order of one column's values, and their bins."""

    def __init__(self, cells: Ints, labels: Ints) -> None:
        self.bins = labels[cells]
        self.order = np.argsort(cells, kind="stable")
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
