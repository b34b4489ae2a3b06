"""Canaries: records unlike anybody, planted into a training table to see whether they leave a trace."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from dpsynth.errors import InputError
from dpsynth.table.column import Column
from dpsynth.table.conform import step_values
from dpsynth.table.derived import add_derived
from dpsynth.table.schema import Schema

#: draws for each canary that is wanted, where rules refuse some
_DRAWS = 100


def plant(schema: Schema, count: int, rng: np.random.Generator) -> pd.DataFrame:
    """Draw canaries: records with every column drawn by itself, uniformly over its public values.

    Such records are unlike real ones, and so the easiest to notice. None of them reads a real record.

    Parameters
    ----------
    schema : Schema
        Its rules hold for every canary, and its derived columns are computed.
    count : int

    Raises
    ------
    InputError
        If the rules refuse nearly every record.
    """
    kept = pd.DataFrame()
    for _ in range(_DRAWS):
        drawn = pd.DataFrame({c.name: _uniform(c, 4 * count, rng) for c in schema.modelled.columns})
        drawn = schema.modelled.conform(drawn).frame
        frame = add_derived(drawn, schema.formulas, schema.columns) if schema.formulas else drawn
        for rule in schema.rules:
            frame = frame[~rule.broken(frame)]
        kept = pd.concat([kept, frame], ignore_index=True).drop_duplicates(ignore_index=True)
        if len(kept) >= count:
            return kept.head(count)[list(schema.names)]
    raise InputError(f"the schema's rules refuse nearly every canary: {count} could not be drawn")


def _uniform(column: Column, n: int, rng: np.random.Generator) -> Any:
    if not column.is_numeric:
        return [column.categories[i] for i in rng.integers(len(column.categories), size=n)]
    if column.n_values is not None:
        return step_values(column, rng.integers(column.n_values, size=n))
    assert column.lower is not None and column.upper is not None
    return rng.uniform(column.lower, column.upper, size=n)
