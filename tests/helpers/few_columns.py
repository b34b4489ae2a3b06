"""Four columns of a table that scikit-learn carries: thirty take seconds a fit."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest

from dpsynth import datasets

COLUMNS = ("mean_texture", "mean_smoothness", "worst_area", "diagnosis")


@contextmanager
def few_columns() -> Iterator[None]:
    """Let breast_cancer be a table of these columns."""
    card, load = datasets.card, datasets.load

    def narrow_card(name: str) -> Any:
        found = card(name)
        narrow = {"table": found.table.select(COLUMNS)} if name == "breast_cancer" else {}
        return found.model_copy(update=narrow)

    def narrow_table(name: str) -> datasets.Table:
        table = load(name)
        if name != "breast_cancer":
            return table
        return replace(table, frame=table.frame[list(COLUMNS)].copy(), schema=table.schema.select(COLUMNS))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(datasets, "card", narrow_card)
        patch.setattr(datasets, "load", narrow_table)
        yield
