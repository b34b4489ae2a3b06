"""Rules as factors of a base model: how often a record obeys, by the bins of the columns that a rule reads.

A bin is a range of values, so a rule holds for all, for some or for none of the records with given bins. The
share that obeys is found by drawing values within bins. It is a factor of the distribution that the heat bath
draws from (`dpsynth.model.base_model.gibbs`). So bins come as often as they do among records that obey, and
none come that cannot obey. Only public rules and released numbers are read. Post-processing, free of cost.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpsynth.errors import InputError
from dpsynth.model.base_model.network import BayesianNetwork
from dpsynth.model.reweighting.reweighting import Reweighting
from dpsynth.releases.bins import make_binning
from dpsynth.table.derived import derived_numbers, modelled_inputs
from dpsynth.table.expressions import Expression
from dpsynth.table.grid import Grid
from dpsynth.table.marginals import make_grids
from dpsynth.table.schema import Schema
from dpsynth.table.values import Numbers, numbers_of

#: Draws that a rule is tried on, and for each combination of bins at least and at most.
_DRAWS, _EACH = 300_000, (8, 64)
#: A rule of more combinations than this has no factor.
_MOST = 100_000
#: Logarithm of the share where no draw obeys. It is finite, so that a record can leave such bins.
_NEVER = -30.0
#: Bins of a column before anything is released, and how many records are drawn how often.
_BINS, _TRIED, _TRIES = 12, 2_000, 10


def with_rules(
    base_model: BayesianNetwork, schema: Schema, grids: Sequence[Grid], rules: Sequence[Expression]
) -> BayesianNetwork:
    """The base model with a factor for each rule.

    ``schema``: with the derived columns that rules read. ``grids``: of the modelled columns.
    """
    rng = np.random.default_rng(0)
    factors = []
    for rule in rules:
        names = modelled_inputs(rule.columns, schema.formulas)
        columns = tuple(j for j, grid in enumerate(grids) if grid.column.name in names)
        sizes = tuple(base_model.binnings[j].size for j in columns)
        if columns and math.prod(sizes) <= _MOST:
            shares = _shares(base_model, schema, grids, rule, columns, sizes, rng)
            logs = np.log(np.maximum(shares, math.exp(_NEVER)))
            if logs.any():
                factors.append((columns, logs.astype(np.float32)))
    return replace(base_model, rules=tuple(factors))


def check_possible(schema: Schema, rules: Sequence[Expression]) -> None:
    """Draw records from bounds and categories alone, guided by the rules' factors. Nothing private is read.

    Raises InputError if none of thousands obeys all rules.
    """
    names = modelled_inputs({name for rule in rules for name in rule.columns}, schema.formulas)
    grids = [grid for grid in make_grids(schema.modelled) if grid.column.name in names]
    if not grids:
        return
    cells = tuple(np.full(grid.size, 1.0 / grid.size) for grid in grids)
    binnings = tuple(make_binning(grid, p, _BINS) for grid, p in zip(grids, cells, strict=True))
    apart = tuple(
        ((0,), j, np.ones((binnings[0].size, binning.size))) for j, binning in enumerate(binnings) if j
    )
    base_model = with_rules(BayesianNetwork("tree", 0, binnings, cells, apart), schema, grids, rules)
    base_model = replace(base_model, reweighting=Reweighting.of_columns(binnings, ()))
    rng, counts = np.random.default_rng(0), np.zeros(len(rules), np.int64)
    for _ in range(_TRIES):
        drawn = base_model.sample_cells(_TRIED, rng)
        frame = _decoded(grids, drawn.T, rng)
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
    base_model: BayesianNetwork,
    schema: Schema,
    grids: Sequence[Grid],
    rule: Expression,
    columns: tuple[int, ...],
    sizes: tuple[int, ...],
    rng: np.random.Generator,
) -> NDArray[np.float64]:
    """Share of draws that obey, of each combination of bins, of shape ``sizes``."""
    combinations = math.prod(sizes)
    each = int(np.clip(_DRAWS // combinations, *_EACH))
    own = [grids[j] for j in columns]
    if all(grid.size == size == _values(grid) for grid, size in zip(own, sizes, strict=True)):
        each = 1  # a bin is one value
    bins = np.unravel_index(np.repeat(np.arange(combinations), each), sizes)
    cells = [base_model.column_cells(j, drawn, rng) for j, drawn in zip(columns, bins, strict=True)]
    kept = obeyed(rule, numbers_of(_decoded(own, cells, rng)), schema)
    return kept.reshape(combinations, each).mean(axis=1).reshape(sizes)


def _values(grid: Grid) -> int:
    """Number of different values, or 0 if it has no end."""
    return 0 if grid.starts is None else int(grid.values_per_cell.sum())


def _decoded(
    grids: Sequence[Grid], cells: Iterable[NDArray[np.int64]], rng: np.random.Generator
) -> pd.DataFrame:
    """Records with values anywhere in these cells, of shape (n,) for each grid."""
    pairs = zip(grids, cells, strict=True)
    return pd.DataFrame({grid.column.name: grid.decode(c, rng.random(len(c))) for grid, c in pairs})


def obeyed(rule: Expression, numbers: Numbers, schema: Schema) -> NDArray[np.bool_]:
    """Whether records obey that have the modelled columns which the rule needs, shape (n,)."""
    return ~rule.truth(derived_numbers(numbers, schema.formulas))[1]
