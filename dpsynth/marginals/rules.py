"""Rules as factors of a chain: how often a record obeys, by the states of the columns that a rule reads.

A state is a range of values, so a rule holds for all, for some or for none of the records with given states.
The share that obeys is found by drawing values within states. It is a factor of the distribution of the
rule's last column, given those before it (`dpsynth.marginals.chain_fit`). So states come as often as they do
among records that obey, and none come that cannot obey. Only public rules and released numbers are read.
Post-processing, free of cost.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpsynth.errors import InputError
from dpsynth.marginals.binning import Binning, make_binning
from dpsynth.marginals.network import cells_of
from dpsynth.marginals.terms import DrawnColumns, TableTerm
from dpsynth.table.derived import derived_numbers, modelled_inputs
from dpsynth.table.draws import draw_entry
from dpsynth.table.expressions import Expression
from dpsynth.table.grid import Grid, make_grids
from dpsynth.table.schema import Schema
from dpsynth.table.values import Numbers, numbers_of

Ints = NDArray[np.int64]
Doubles = NDArray[np.float64]

#: Draws that a rule is tried on, and for each combination of states at least and at most.
_DRAWS, _EACH = 300_000, (8, 64)
#: A rule of more combinations than this takes coarser states, or has no factor.
_MOST = 100_000
#: Logarithm of the share where no draw obeys. It is finite, so that some state can always be drawn.
_NEVER = -30.0
#: Bins of a column before anything is released, and how many records are drawn how often.
_BINS, _RULE_DRAWS, _TRIES = 12, 2_000, 10


@dataclass(frozen=True, eq=False)
class RuleFactor:
    """The log share of records that obey a rule.

    ``columns``: those that the rule reads. ``labels``, shapes (states,): cell of each of their states.
    ``logs``, shape (cells of each column).
    """

    columns: tuple[int, ...]
    labels: tuple[Ints, ...]
    logs: NDArray[np.float32]

    def term(self, column: int) -> TableTerm:
        """The factor of one of the columns given the others."""
        place = self.columns.index(column)
        others = [k for k in range(len(self.columns)) if k != place]
        effects = np.moveaxis(self.logs, place, -1).reshape(-1, self.logs.shape[place])
        parents, labels = tuple(self.columns[k] for k in others), tuple(self.labels[k] for k in others)
        return TableTerm(parents, labels, self.labels[place], np.ascontiguousarray(effects))


def rule_factors(
    binnings: Sequence[Binning],
    coarser: Sequence[Ints],
    cells: Sequence[Doubles],
    schema: Schema,
    grids: Sequence[Grid],
    rules: Sequence[Expression],
) -> list[RuleFactor]:
    """The share of each rule that any combination of states breaks, unless its combinations are too many.

    ``binnings``: states of each modelled column. ``coarser``, shapes (states,): bin of each state.
    ``cells``, shapes (grid.size,): probabilities of fine cells.
    ``schema``: with the derived columns that rules read. ``grids``: of the modelled columns.
    """
    rng = np.random.default_rng(0)
    found = []
    for rule in rules:
        names = modelled_inputs(rule.columns, schema.formulas)
        columns = tuple(j for j, grid in enumerate(grids) if grid.column.name in names)
        own = [binnings[j] for j in columns]
        labels = [np.arange(binning.size) for binning in own]
        if math.prod(binning.size for binning in own) > _MOST:
            labels = [coarser[j] for j in columns]
            pairs = zip(own, labels, columns, strict=True)
            own = [Binning.from_labels(label[binning.labels], cells[j]) for binning, label, j in pairs]
        if columns and math.prod(binning.size for binning in own) <= _MOST:
            shares = _shares(own, [cells[j] for j in columns], [grids[j] for j in columns], schema, rule, rng)
            logs = np.log(np.maximum(shares, math.exp(_NEVER)))
            if logs.any():
                found.append(RuleFactor(columns, tuple(labels), logs.astype(np.float32)))
    return found


def check_possible(schema: Schema, rules: Sequence[Expression]) -> None:
    """Draw records from bounds and categories alone, guided by the rules' factors. Nothing private is read.

    Raises InputError if none of thousands obeys all rules.
    """
    names = modelled_inputs({name for rule in rules for name in rule.columns}, schema.formulas)
    grids = [grid for grid in make_grids(schema.modelled) if grid.column.name in names]
    if not grids:
        return
    cells = [np.full(grid.size, 1.0 / grid.size) for grid in grids]
    binnings = [make_binning(grid, p, _BINS) for grid, p in zip(grids, cells, strict=True)]
    same = [np.arange(binning.size) for binning in binnings]
    factors = rule_factors(binnings, same, cells, schema, grids, rules)
    rng, counts = np.random.default_rng(0), np.zeros(len(rules), np.int64)
    for _ in range(_TRIES):
        rows = DrawnColumns.empty(len(grids), _RULE_DRAWS)
        for j, binning in enumerate(binnings):
            weights = np.repeat(binning.probabilities[:, None], _RULE_DRAWS, axis=1)
            for factor in factors:
                if max(factor.columns) == j:
                    weights *= np.exp(factor.term(j).logits(rows))
            rows.states[j] = draw_entry(weights.T, rng)
        pairs = zip(binnings, cells, rows.states, strict=True)
        frame = _decoded(grids, [cells_of(binning, p, own, rng) for binning, p, own in pairs], rng)
        kept = [obeyed(rule, numbers_of(frame), schema) for rule in rules]
        if np.logical_and.reduce(kept).any():
            return
        counts += np.sum(kept, axis=1)
    rarest = int(np.argmin(counts))
    what = "all constraints together" if counts[rarest] else f"the constraint {rules[rarest].text!r}"
    raise InputError(
        f"constraints: no record within the columns' bounds was found that obeys {what}. Correct it. Declare "
        "a column that equals a formula of others with `derived`"
    )


def _shares(
    binnings: Sequence[Binning],
    cells: Sequence[Doubles],
    grids: Sequence[Grid],
    schema: Schema,
    rule: Expression,
    rng: np.random.Generator,
) -> Doubles:
    """Share of draws that obey, of each combination of bins, shape (bins of each column)."""
    sizes = tuple(binning.size for binning in binnings)
    combinations = math.prod(sizes)
    each = int(np.clip(_DRAWS // combinations, *_EACH))
    if all(grid.size == size == _values(grid) for grid, size in zip(grids, sizes, strict=True)):
        each = 1  # a bin is one value
    bins = np.unravel_index(np.repeat(np.arange(combinations), each), sizes)
    columns = zip(binnings, cells, bins, strict=True)
    drawn = [cells_of(binning, p, own, rng) for binning, p, own in columns]
    kept = obeyed(rule, numbers_of(_decoded(grids, drawn, rng)), schema)
    return kept.reshape(combinations, each).mean(axis=1).reshape(sizes)


def _values(grid: Grid) -> int:
    """Number of different values, or 0 if it has no end."""
    return 0 if grid.starts is None else int(grid.values_per_cell.sum())


def _decoded(grids: Sequence[Grid], cells: Iterable[Ints], rng: np.random.Generator) -> pd.DataFrame:
    """Records with values anywhere in these cells, of shape (n,) for each grid."""
    pairs = zip(grids, cells, strict=True)
    return pd.DataFrame({grid.column.name: grid.decode(c, rng.random(len(c))) for grid, c in pairs})


def obeyed(rule: Expression, numbers: Numbers, schema: Schema) -> NDArray[np.bool_]:
    """Whether records obey that have the modelled columns which the rule needs, shape (n,)."""
    return ~rule.truth(derived_numbers(numbers, schema.formulas))[1]
