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
from dpsynth.table.values import categories_at, numeric_values, stored_numbers

Ints = NDArray[np.int64]
#: Rounds of exchanges, in each of which every rule's columns take turns.
_ROUNDS = 40
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

    def broken(chosen: Iterable[int], rows: Ints) -> NDArray[np.bool_]:
        """By rule and record."""
        now = numbers[rows]
        part = pd.DataFrame(now, columns=labels)
        for name in set().union(*(inputs[rule] for rule in chosen)):
            if not columns[place[name]].is_numeric:
                part[name] = categories_at(columns[place[name]], now[:, place[name]])
        return np.stack([~obeyed(rules[rule], part, schema) for rule in chosen])

    everyone = np.arange(len(frame))
    wrong = broken(range(len(rules)), everyone)
    moving = {name: _Order(*cells[name]) for name in cells if name in place}
    #: the record whose value of a column a record has
    source = {name: everyone.copy() for name in moving}
    for turn in range(_ROUNDS):
        before = wrong.sum()
        for name, order in moving.items():
            reading = np.array([rule for rule, names in enumerate(inputs) if name in names])
            rows = np.flatnonzero(wrong[reading].any(axis=0))
            if not len(rows):
                continue
            one, other = order.pairs(rows, 2 ** min(turn + 2, 30), rng)
            both, swapped = np.concatenate([one, other]), np.concatenate([other, one])
            old = numbers[both, place[name]]
            numbers[both, place[name]] = numbers[swapped, place[name]]
            found = broken(reading, both)
            gain = wrong[reading][:, both].sum(axis=0) - found.sum(axis=0)
            worse = np.tile(gain[: len(one)] + gain[len(one) :] <= 0, 2)
            numbers[both[worse], place[name]] = old[worse]
            source[name][both[~worse]] = source[name][swapped[~worse]]
            order.exchange(both[~worse], swapped[~worse])
            wrong[np.ix_(reading, both[~worse])] = found[:, ~worse]
        if turn >= _WIDENING and wrong.sum() >= _WORTH * before:
            break
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

    def pairs(self, rows: Ints, width: int, rng: np.random.Generator) -> tuple[Ints, Ints]:
        """Some of ``rows`` and for each another record of its bin, at most ``width`` places away.

        The first follows the last of a bin. No record is in two pairs.
        """
        own = self.bins[rows]
        start, count = self.starts[own], self.counts[own]
        away = rng.integers(-np.minimum(width, count), np.minimum(width, count) + 1)
        other = self.order[start + (self.place[rows] - start + away) % count]
        both = np.stack([rows, other], axis=1)[rng.permutation(len(rows))]
        first, turn = np.full(len(self.bins), len(rows)), np.arange(len(rows))
        for column in both.T:
            np.minimum.at(first, column, turn)
        alone = (first[both] == turn[:, None]).all(axis=1) & (both[:, 0] != both[:, 1])
        return both[alone, 0], both[alone, 1]

    def exchange(self, rows: Ints, others: Ints) -> None:
        """Let each of ``rows`` stand where the other stood."""
        place = self.place[others]
        self.order[place] = rows
        self.place[rows] = place
