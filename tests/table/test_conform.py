"""Rounding to the declared steps, which evaluation does to every table before it compares."""

from __future__ import annotations

from decimal import ROUND_HALF_EVEN, Decimal

import numpy as np
import pandas as pd
import pytest

from dpsynth.table.column import Column
from dpsynth.table.conform import round_frame
from dpsynth.table.grid import Grid
from dpsynth.table.schema import Schema

COLUMNS = (
    Column(name="crea", kind="continuous", lower=0.1, upper=20, decimals=1, scale="log", missing=True),
    Column(name="age", kind="continuous", lower=18, upper=105, step=1),
    Column(name="dose", kind="integer", lower=5, upper=200, step=5, missing=True),
    Column(name="ph", kind="continuous", lower=6.8, upper=8.0, step=0.025),
)


@pytest.mark.parametrize("column", COLUMNS, ids=lambda column: column.name)
def test_rounding_is_that_of_decimal_arithmetic_and_of_the_encoder(column):
    """Would catch 0.30000000000000004, steps counted from 0 instead of the bound, and a rule of its own."""
    rng = np.random.default_rng(0)
    numbers = rng.uniform(column.lower, column.upper, 500)
    numbers = np.rint(numbers) if column.kind == "integer" else numbers
    frame = pd.DataFrame({column.name: pd.Series(numbers).astype(column.dtype)})
    if column.missing:
        frame.loc[3, column.name] = pd.NA if column.kind == "integer" else np.nan
    before = frame.copy()
    found = round_frame([column], frame)[column.name]
    lower, step = Decimal(repr(column.lower)), Decimal(repr(column.resolution))
    for given, rounded in zip(frame[column.name], found, strict=True):
        if pd.isna(given):
            assert pd.isna(rounded)
            continue
        steps = ((Decimal(float(given)) - lower) / step).to_integral_value(ROUND_HALF_EVEN)
        assert float(rounded) == float(lower + steps * step)
    assert found.dtype == column.dtype and frame.equals(before)
    grid = Grid.from_column(column, max_values=10_000)
    codes = grid.encode(frame[column.name])
    assert grid.decode(codes, np.zeros(len(codes))).equals(found)


def test_what_has_no_step_is_left_alone():
    """Would catch categories or real numbers changed by rounding, and a second rounding that moves values."""
    columns = [
        Column(name="x", kind="continuous", lower=0, upper=1),
        Column(name="sex", kind="binary", categories=("F", "M")),
        *COLUMNS[:1],
    ]
    frame = pd.DataFrame({"x": [0.123456789], "sex": ["F"], "crea": [1.199951]})
    once = round_frame(columns, frame)
    assert once.to_dict("list") == {"x": [0.123456789], "sex": ["F"], "crea": [1.2]}
    assert round_frame(columns, once).equals(once)


@pytest.mark.parametrize("words", [("999", "?"), ("999.0",)])
def test_one_cell_does_not_decide_how_the_others_are_read(words):
    """A word for "no value" that counts in text only: one '?' more turned every 999 into a missing value."""
    age = Column(name="age", kind="integer", lower=0, upper=1000, missing=True)
    code = Column(name="code", kind="categorical", categories=(1, 2), missing=True)
    schema = Schema(columns=(age, code), missing_words=(*words, "9"))
    as_numbers = pd.DataFrame({"age": [999, 5, 999], "code": [9, 1, 2]})
    as_text = pd.DataFrame({"age": ["999", "5", "999.0"], "code": ["9", "1", "2"]})
    as_floats = as_numbers.astype(float)
    ages = Schema(columns=(age,), missing_words=words)
    for frame in (as_numbers, as_text, as_floats):
        assert ages.check(frame[["age"]])["age"].isna().tolist() == [True, False, True]
        checked = schema.check(frame)
        assert checked["age"].isna().tolist() == [True, False, True]
        assert checked["code"].isna().tolist() == [True, False, False]
