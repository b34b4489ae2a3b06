"""The grammar of rules against Python and SQL, its sentences, and what the schema does not allow."""

from __future__ import annotations

import sqlite3

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsynth.errors import InputError
from dpsynth.evaluation.similarity.conformity import (
    Conformity,
    conformity_measures,
    values_not_allowed,
)
from dpsynth.table.rules import parse_rule
from dpsynth.table.schema import Column, Schema
from dpsynth.table.where import parse_where

SCHEMA = Schema(
    columns=(
        Column(name="sbp", kind="integer", lower=0, upper=9, missing=True),
        Column(name="d bp", kind="integer", lower=0, upper=9),
        Column(name="grade", kind="ordinal", categories=("lo", "mid", "hi"), missing=True),
        Column(name="sex", kind="binary", categories=("F", "M")),
        Column(name="dead", kind="binary", categories=(False, True)),
        Column(name="a.b", kind="binary", categories=(0, 1)),
        Column(name="airbag", kind="binary", categories=("airbag", "none")),
        Column(name="zip", kind="binary", categories=("02116", "4A")),
        Column(name="age", kind="binary", categories=("18-25", "26-99")),
        Column(name="stay", kind="continuous", lower=0, upper=9, decimals=1, special=(-1,)),
    )
)
FRAME = SCHEMA.conform(
    pd.DataFrame(
        {
            "sbp": [5, None, 3, 9],
            "d bp": [4, 4, 4, 0],
            "grade": ["lo", "hi", None, "mid"],
            "sex": ["F", "M", "F", "M"],
            "dead": [True, False, False, True],
            "a.b": [1, 0, 1, 0],
            "airbag": ["airbag", "none", "none", "airbag"],
            "zip": ["02116", "4A", "02116", "4A"],
            "age": ["18-25", "18-25", "26-99", "26-99"],
            "stay": [0.3, -1, 3.3, 9],
        }
    )
).frame


@pytest.mark.parametrize(
    ("text", "broken"),
    [
        ("`d bp` <= sbp", [False, False, True, False]),
        ("sbp > `d bp` or sex == 'F'", [False, False, False, False]),
        ("not (sex == 'F') or dead == 'true'", [False, False, True, False]),
        ("grade >= 'mid'", [True, False, False, False]),
        ('grade != "hi"', [False, True, False, False]),
        ("a.b == 1 and `d bp` == 4", [False, True, False, True]),
        ("-1.5e0<sbp and +.5 <= sbp", [False, False, False, False]),
        ("not not sbp == 5", [False, False, True, True]),
        ("sex == 'F' or sex == 'M' and sbp < 0", [False, False, False, True]),
        ("sbp < 4 or sex == 'F'", [False, False, False, True]),
        ("sex = F", [False, True, False, True]),
        ("dead = true implies sex = F", [False, False, False, True]),
        ("sex = F implies dead = true implies sbp = 5", [False, False, False, False]),
        ("sex = F implies dead = true", [False, False, True, False]),
        ("sex = M and sbp > 0 or dead = true implies sbp < 9", [False, False, False, True]),
        ("grade in (lo, 'mid')", [False, True, False, False]),
        ("grade not in (lo, 'mid')", [True, False, False, True]),
        ("sbp in (5, 9)", [False, False, True, False]),
        ("sbp is missing", [True, False, True, True]),
        ("sex = M implies sbp is not missing", [False, True, False, False]),
        ("not sbp is missing", [False, True, False, False]),
        ("airbag = 'airbag' implies sbp > 5", [True, False, False, False]),
        ("airbag = `airbag`", [False, False, False, False]),
        ("airbag in (airbag)", [False, True, True, False]),
        ("zip = 02116", [False, True, False, True]),
        ("zip != 4A", [False, True, False, True]),
        ("age = '18-25'", [False, False, True, True]),
        ("sbp <= `d bp` + 1", [False, False, False, True]),
        ("sbp - `d bp` <= -1 + a.b", [True, False, False, True]),
        ("-sbp < -4", [False, False, True, False]),
        ("stay <= 0.1 + 0.2", [False, False, True, True]),
        ("0.1 + 0.2 <= stay", [False, False, False, False]),
        ("stay < 3.3", [False, False, True, True]),
        ("stay = -1 or stay >= 3", [True, False, False, False]),
    ],
)
def test_rules_by_hand(text: str, broken: list[bool]) -> None:
    """Would catch a wrong precedence of "and" over "or", or a missing value that breaks a rule."""
    assert parse_rule(text, SCHEMA).broken(FRAME).tolist() == broken


leaves = st.tuples(
    st.sampled_from(["x", "y"]), st.sampled_from(["<", "<=", ">", ">=", "==", "!="]), st.integers(0, 3)
).map(lambda parts: f"{parts[0]} {parts[1]} {parts[2]}")
rules = st.recursive(
    leaves,
    lambda inner: st.one_of(
        inner.map(lambda a: f"not ({a})"),
        st.tuples(inner, st.sampled_from(["and", "or"]), inner).map(lambda p: f"({p[0]}) {p[1]} ({p[2]})"),
        st.tuples(leaves, st.sampled_from(["and", "or"]), leaves, st.sampled_from(["and", "or"]), leaves).map(
            " ".join
        ),
    ),
    max_leaves=6,
)


@settings(max_examples=50, deadline=None)
@given(rules)
def test_rules_mean_what_python_means(text: str) -> None:
    """Would catch any part of the grammar that binds differently from Python's own."""
    schema = Schema(columns=tuple(Column(name=n, kind="integer", lower=0, upper=3) for n in "xy"))
    grid = pd.DataFrame([(x, y) for x in range(4) for y in range(4)], columns=["x", "y"])
    expected = [not eval(text, {}, {"x": x, "y": y}) for x, y in grid.to_numpy().tolist()]
    assert parse_rule(text, schema).broken(grid).tolist() == expected


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "it ends where a column"),
        ("sbp <=", "it ends where a column"),
        ("sbp", "it ends where a comparison"),
        ("sbp and sex", "a comparison such as <= is expected in place of 'and'"),
        ("sbp =< 3", "is expected in place of '<'"),
        ("sex = X", "'X' is not a column and no category of 'sex' ('F', 'M')"),
        ("X = sex", "'X' is not a column (columns"),
        ("sbp = F", "'F' is not a column"),
        ("sbp is", "'is' stands between a column and 'missing'"),
        ("3 is missing", "'is' stands between a column and 'missing'"),
        ("sbp is high", "'is' stands between a column and 'missing'"),
        ("sex in F", "'in' is followed by values between brackets"),
        ("sex in ()", "is expected in place of ')'"),
        ("sex in (F, M", "bracket is not closed"),
        ("sex in (F M)", "bracket is not closed"),
        ("3 in (3, 4)", "'in' stands between a column and values"),
        ("sbp in (`d bp`)", "'in' stands between a column and values"),
        ("sbp < 3 implies", "it ends where a column"),
        ("implies sbp < 3", "'implies' is not a column"),
        ("(sbp < 3", "bracket is not closed"),
        ("sbp < 3)", "is not expected here"),
        ("1 < sbp < 3", "'<' is not expected here"),
        ("pulse < 3", "'pulse' is not a column"),
        ("sbp < pulse", "'pulse' is not a column"),
        ("__import__('os')", "'__import__' is not a column"),
        ("sbp.mean < 3", "'sbp.mean' is not a column"),
        ("sbp < 'a'", "cannot be compared with a numeric column"),
        ("sex == 'X'", "not a declared category"),
        ("sex == 1", "not a declared category"),
        ("sex < 'M'", "compare only by == and !="),
        ("sbp == grade", "different values"),
        ("1 < 2", "compares no column"),
        ("(" * 900 + "sbp < 1" + ")" * 900, "At most 150 are read"),
        ("sbp < 3x", "'3x' is not a column"),
        ("sbp < 3 ; sex = F", "'; sex = F' cannot be read"),
        (
            "airbag = airbag",
            "'airbag' is a column and also a category of 'airbag': write \"airbag = 'airbag'\"",
        ),
        ("airbag = airbag", 'or "airbag = `airbag`" for the column'),
        ("age = 18-25", "stands in quotes, such as '18-25'"),
        ("sbp <= sex + 3", "'sex' is no number and cannot stand beside a sum"),
        ("sbp <= 'F' + 3", "'F' is no number and cannot stand beside a sum"),
        ("sbp <= F + 3", "'F' is not a column"),
        ("sbp + 1 in (3, 4)", "'in' stands between a column and values"),
        ("sbp + 1 is missing", "'is' stands between a column and 'missing'"),
        ("sbp <= `d bp` +", "it ends where a column"),
        ("zip = 2116", "2116 is not a declared category ('02116', '4A')"),
    ],
)
def test_bad_rules_are_one_sentence(text: str, sentence: str) -> None:
    """Would catch a traceback, code that runs, or a rule that silently means something else."""
    with pytest.raises(InputError) as caught:
        parse_rule(text, SCHEMA)
    assert sentence in str(caught.value) and "\n" not in str(caught.value)


def test_the_longest_rule_is_read() -> None:
    """Would catch nested brackets that pass the limit of words and end in a RecursionError."""
    text = "(" * 73 + "sbp < 9" + ")" * 73
    assert parse_rule(text, SCHEMA).broken(FRAME).tolist() == [False, False, False, True]
    text = "not " * 146 + "sbp < 9"
    assert parse_rule(text, SCHEMA).broken(FRAME).tolist() == [False, False, False, True]


@settings(max_examples=40, deadline=None)
@given(rules)
def test_missing_values_are_those_of_sql(text: str) -> None:
    """Would catch a constraint that differs from SQL's CHECK, or a condition that differs from its WHERE."""
    schema = Schema(
        columns=tuple(Column(name=n, kind="integer", lower=0, upper=3, missing=True) for n in "xy")
    )
    values = [None, 0, 1, 2, 3]
    pairs = [(x, y) for x in values for y in values]
    grid = schema.conform(pd.DataFrame(pairs, columns=["x", "y"])).frame
    with sqlite3.connect(":memory:") as base:
        base.execute("create table t (x, y)")
        base.executemany("insert into t values (?, ?)", pairs)
        truth = [row[0] for row in base.execute(f"select ({text}) from t order by rowid")]
    rule = parse_rule(text, schema)
    assert rule.selected(grid).tolist() == [value == 1 for value in truth]
    assert rule.broken(grid).tolist() == [value == 0 for value in truth]


def test_conditions_by_value() -> None:
    """Would catch an end of a range left out, a list read as a range, or a missing value selected."""

    def selected(where: object) -> list[bool]:
        rules = parse_where(where, SCHEMA)  # type: ignore[arg-type]
        return np.logical_and.reduce([rule.selected(FRAME) for rule in rules]).tolist()

    assert selected({"sex": "F"}) == [True, False, True, False]
    assert selected({"sbp": (3, 5)}) == [True, False, True, False]
    assert selected({"sbp": (None, 5), "sex": "F", "d bp": np.int64(4)}) == [True, False, True, False]
    assert selected({"sbp": [3, 9]}) == [False, False, True, True]
    assert selected({"grade": ("mid", None)}) == [False, True, False, True]
    assert selected({"sbp": None}) == [False, True, False, False]
    assert selected({"dead": True}) == [True, False, False, True]
    assert selected("sbp < 9") == selected(["sbp < 9"]) == [True, False, True, False]
    assert selected(["sbp < 9", "dead = true"]) == [True, False, False, False]
    assert parse_where(None, SCHEMA) == ()


@pytest.mark.parametrize(
    ("where", "sentence"),
    [
        ({"pulse": 3}, "'pulse' is not a column"),
        ({"sex": "X"}, "where 'sex': 'X' is not a declared category"),
        ({"sbp": "F"}, "cannot be compared with a numeric column"),
        ({"sbp": (1, 2, 3)}, "a range has two ends"),
        ({"sbp": []}, "a list of values is empty"),
        ({"sbp": {"a": 1}}, "is neither text, a number nor a date"),
        ({"sex": ("F", "M")}, "compare only by == and !="),
        ("sbp", "condition 'sbp': it ends where a comparison"),
        (3, "where must be a rule"),
        ([3], "a condition must be text"),
    ],
)
def test_bad_conditions_are_one_sentence(where: object, sentence: str) -> None:
    """Would catch a traceback, or a condition that is silently left out."""
    with pytest.raises(InputError) as caught:
        parse_where(where, SCHEMA)  # type: ignore[arg-type]
    assert sentence in str(caught.value) and "\n" not in str(caught.value)


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
