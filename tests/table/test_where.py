"""Conditions by text and by value, and what they may not be."""

from __future__ import annotations

import datetime

import numpy as np
import pandas as pd
import pytest

from dpsynth.errors import InputError
from dpsynth.table.derived import parse_where
from dpsynth.table.schema import Column, Schema

COLUMNS = (
    Column(name="sbp", kind="integer", lower=0, upper=9, missing=True),
    Column(name="d `b` p", kind="integer", lower=0, upper=9),
    Column(name="grade", kind="ordinal", categories=("lo", "mid", "hi"), missing=True),
    Column(name="sex", kind="binary", categories=("F", "M")),
    Column(name="dead", kind="binary", categories=(False, True)),
    Column(name="note", kind="binary", categories=('it\'s "so"', "in")),
    Column(name="came", kind="date", lower="2010-01-01", upper="2010-12-31"),
)
FRAME = (
    Schema(columns=COLUMNS)
    .conform(
        pd.DataFrame(
            {
                "sbp": [5, None, 3, 9],
                "d `b` p": [4, 4, 4, 0],
                "grade": ["lo", "hi", None, "mid"],
                "sex": ["F", "M", "F", "M"],
                "dead": [True, False, False, True],
                "note": ['it\'s "so"', "in", "in", "in"],
                "came": pd.to_datetime(["2010-01-01", "2010-02-01", "2010-03-01", "2010-04-01"]),
            }
        )
    )
    .frame
)


def test_conditions_by_value() -> None:
    """Would catch an end of a range left out, a list read as a range, or a missing value selected."""

    def selected(where: object) -> list[bool]:
        rules = parse_where(where, COLUMNS)  # type: ignore[arg-type]
        return np.logical_and.reduce([rule.selected(FRAME) for rule in rules]).tolist()

    assert selected({"sex": "F"}) == [True, False, True, False]
    assert selected({"sbp": (3, 5)}) == [True, False, True, False]
    assert selected({"sbp": (None, 5), "sex": "F", "d `b` p": np.int64(4)}) == [True, False, True, False]
    assert selected({"sbp": [3, 9]}) == [False, False, True, True]
    assert selected({"grade": ("mid", None)}) == [False, True, False, True]
    assert selected({"sbp": None}) == [False, True, False, False]
    assert selected({"dead": True}) == [True, False, False, True]
    assert selected({"sbp": (4, np.inf)}) == [True, False, False, True]
    assert selected({"note": 'it\'s "so"'}) == selected({"d `b` p": [*range(1, 400)], "sbp": 5})
    assert selected({"came": (datetime.date(2010, 2, 1), None)}) == [False, True, True, True]
    assert selected("sbp < 9") == selected(["sbp < 9"]) == [True, False, True, False]
    assert selected(["sbp < 9", "dead = true"]) == [True, False, False, False]
    assert parse_where(None, COLUMNS) == ()


def test_bad_conditions_are_one_sentence() -> None:
    """Would catch a traceback, or a condition that is silently left out."""
    for where, sentence in [
        ({"pulse": 3}, "'pulse' is not a column"),
        ({"sex": "X"}, "where 'sex': 'X' is not a declared category"),
        ({"sbp": "F"}, "cannot be compared with a numeric column"),
        ({"sbp": (1, 2, 3)}, "a range has two ends"),
        ({"sbp": []}, "a list of values is empty"),
        ({"sbp": {"a": 1}}, "is neither text, a number nor a date"),
        ({"sex": ("F", "M")}, "compare only by == and !="),
        ("sbp", "condition 'sbp': 'sbp' is no condition"),
        (3, "where must be a rule"),
        ([3], "a condition must be text"),
    ]:
        with pytest.raises(InputError) as caught:
            parse_where(where, COLUMNS)  # type: ignore[arg-type]
        assert sentence in str(caught.value) and "\n" not in str(caught.value)
