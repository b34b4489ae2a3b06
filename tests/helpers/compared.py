"""Tables that are conformed already, of any size, as evaluators take them."""

from __future__ import annotations

import pandas as pd

from dpsynth.evaluation.tables import Tables
from dpsynth.table.schema import Schema


def conformed(
    synthetic: pd.DataFrame,
    train: pd.DataFrame,
    test: pd.DataFrame | None,
    schema: Schema,
    raw: pd.DataFrame | None = None,
) -> Tables:
    """Tables without the checks of :meth:`Tables.of`; ``raw`` is the synthetic one as it came."""
    return Tables(synthetic, train, test, schema, {"synthetic": synthetic if raw is None else raw})
