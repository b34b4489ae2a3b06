"""Which cells a schema does not allow is counted over the cells that conforming takes for values."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from dpsynth.errors import InputError
from dpsynth.evaluation.resemblance import (
    Conformity,
    conformity_measures,
    outside_bounds,
    values_not_allowed,
)
from dpsynth.table.schema import Column, Schema

DAYS = ["1900-01-01", "2019-02-03", "2020-04-05", "2031-01-01", "1900-01-01"]
DATE = {"kind": "date", "lower": "2010-01-01", "upper": "2030-12-31", "missing": True}
LEVEL = {"kind": "continuous", "lower": 1, "upper": 10, "decimals": 1, "missing": True}


def as_text(cells) -> pd.Series:
    return pd.Series([str(cell) for cell in cells], dtype=object)


@pytest.mark.parametrize(
    ("fields", "cells"),
    [
        (LEVEL | {"missing_codes": (999,)}, pd.Series([999.0, 4.2, 11.0, 999.0])),
        (LEVEL | {"missing_codes": (999,)}, as_text(["999", 4.2, 11.0, "999.0"])),
        (LEVEL | {"missing_codes": (99.9,)}, pd.Series(np.array([99.9, 4.2, 11, 99.9], np.float32))),
        (LEVEL | {"special": (99.9,)}, pd.Series(np.array([99.9, 4.0, 11, 99.9], np.float32))),
        (LEVEL, as_text(["none", 4.2, 11, " -8 "])),
        (DATE | {"missing_codes": ("1900-01-01",)}, as_text(DAYS)),
        (DATE | {"missing_codes": ("1900-01-01",)}, pd.Series(pd.to_datetime(DAYS))),
        (
            DATE | {"missing_codes": ("1900-01-01",), "format": "%d.%m.%Y"},
            as_text(pd.to_datetime(DAYS).strftime("%d.%m.%Y")),
        ),
    ],
)
def test_codes_for_no_value_are_neither_outside_nor_undeclared(fields: dict, cells: pd.Series) -> None:
    """Catches 999, declared missing, reported as clipped: the advice was to widen the bounds."""
    schema = Schema(columns=(Column(name="k", **fields),), missing_words=("none", "-8"))
    raw = pd.DataFrame({"k": cells})
    assert schema.conform(raw).clipped == {"k": 1}
    (found,) = values_not_allowed(raw, schema)
    assert found == Conformity("k", outside=1, off_step=found.off_step)
    (row,) = outside_bounds(raw, schema, "train").details["outside_bounds"]
    assert (row["column"], row["count"]) == ("k", 1)


def test_words_for_no_value_are_no_undeclared_category() -> None:
    """Catches a declared word for a missing value that is counted as an unknown category."""
    columns = (
        Column(name="w", kind="categorical", categories=("A", "B"), missing=True, missing_codes=("9",)),
    )
    schema = Schema(columns=columns, missing_words=("none",))
    raw = pd.DataFrame({"w": ["A", "none", "9", "C", 9]})
    assert values_not_allowed(raw, schema) == (Conformity("w", undeclared=1),)


RAW_SCHEMA = Schema(
    columns=(
        Column(name="age", kind="integer", lower=18, upper=90),
        Column(name="lab", kind="continuous", lower=0, upper=2, decimals=1, missing=True),
        Column(name="sex", kind="binary", categories=(0, 1)),
        Column(name="dose", kind="continuous", lower=0.5, upper=2.5, step=1),
    )
)


def test_values_outside_the_schema_are_counted() -> None:
    """Would catch rounding of 0.1 + 0.2 off its step, codes read as text refused, or text that crashes."""
    raw = pd.DataFrame(
        {
            "age": ["17", 40.5, "old", None, np.inf],
            "lab": [0.1 + 0.2, 0.25, 2.1, None, -1],
            "sex": ["1", 1.0, "F", 2, None],
            "dose": [0.5, 1.5, 2.5, 1, 2],  # steps count from the lower bound
        }
    )
    assert values_not_allowed(raw, RAW_SCHEMA) == (
        Conformity("age", outside=2, off_step=1, undeclared=1, missing=1),
        Conformity("lab", outside=2, off_step=1, undeclared=0, missing=0),
        Conformity("sex", outside=0, off_step=0, undeclared=2, missing=1),
        Conformity("dose", outside=0, off_step=2, undeclared=0, missing=0),
    )
    found = {m.name: m for m in conformity_measures(raw, RAW_SCHEMA, 3)}
    assert found["rows_left_out"].value == 3
    assert found["values_outside"].value == 4 and not found["values_outside"].internal
    assert found["values_off_step"].detail.endswith(": age, lab, dose")
    with pytest.raises(InputError, match="lacks the column 'sex'"):
        values_not_allowed(raw[["age", "lab"]], RAW_SCHEMA)
