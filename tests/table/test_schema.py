"""Columns, schemas, and frames brought to them."""

from __future__ import annotations

import pickle
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from table_strategies import random_frame, schemas

from dpsynth.errors import DataError, PrivacyError, SchemaError
from dpsynth.table import Column, Schema, require_reviewed
from dpsynth.table import derived as where

AGE = Column(name="age", kind="integer", lower=18, upper=90)
LAB = Column(name="lab", kind="continuous", lower=0.1, upper=20, decimals=1, scale="log", missing=True)
SEX = Column(name="sex", kind="binary", categories=("F", "M"))
STAGE = Column(name="stage", kind="ordinal", categories=(1, 2, 3), missing=True)
FLAG = Column(name="flag", kind="binary", categories=(False, True), missing=True)
TWICE = Column(name="twice", kind="integer", lower=0, upper=220, derived="2 * age")
SCHEMA = Schema(columns=(AGE, LAB, SEX, STAGE, FLAG), outcome="sex", n_public=100)


def good_frame(**changes: list) -> pd.DataFrame:
    data = {
        "age": [20, 30, 40],
        "lab": [1.5, np.nan, 3.0],
        "sex": ["F", "M", "F"],
        "stage": [1, None, 3],
        "flag": [True, None, False],
    }
    return pd.DataFrame({**data, **changes})


@given(schemas())
@settings(max_examples=20, deadline=None)
def test_yaml_round_trip(schema: Schema) -> None:
    """A category that YAML reads as another type, or a field lost on the way, would change the schema."""
    again = Schema.from_yaml(schema.to_yaml())
    assert again == schema
    assert again.digest() == schema.digest()
    kinds = [[type(c) for c in column.categories] for column in again.columns]
    assert kinds == [[type(c) for c in column.categories] for column in schema.columns]


def test_yaml_file(tmp_path) -> None:
    """A file must read back, and its errors must start with its name."""
    path = tmp_path / "s.yaml"
    text = SCHEMA.to_yaml(path)
    assert path.read_text(encoding="utf-8") == text
    assert Schema.from_yaml(path) == Schema.from_yaml(str(path)) == SCHEMA
    with pytest.raises(SchemaError, match=re.escape(f"{tmp_path / 'none.yaml'}: cannot be read")):
        Schema.from_yaml(tmp_path / "none.yaml")
    path.write_text("columns:\n- name: a\n  kind: integer\n  lower: 3\n  upper: 1\n")
    with pytest.raises(SchemaError, match=f"^{re.escape(str(path))}: column 'a': lower must be less"):
        Schema.from_yaml(path)


def test_digest_sees_every_field() -> None:
    """A digest that misses a bound, an order of categories or n_public would equate different schemas."""
    variants = [
        SCHEMA,
        SCHEMA.with_n_public(101),
        SCHEMA.with_n_public(None),
        SCHEMA.select(["age", "sex"]),
        SCHEMA.select(["sex", "age"]),
        Schema(
            columns=(AGE.model_copy(update={"upper": 91.0}), *SCHEMA.columns[1:]), outcome="sex", n_public=100
        ),
        Schema(
            columns=(AGE, LAB, SEX.model_copy(update={"categories": ("M", "F")}), STAGE, FLAG),
            outcome="sex",
            n_public=100,
        ),
        Schema(**{**dict(SCHEMA), "other_columns": "ignore"}),
        Schema(
            columns=(AGE.model_copy(update={"missing": True, "missing_codes": (999,)}), *SCHEMA.columns[1:]),
            outcome="sex",
            n_public=100,
        ),
        Schema(**{**dict(SCHEMA), "constraints": ("age > 20",)}),
        Schema(**{**dict(SCHEMA), "constraints": ("age > 20", "age > 30")}),
        Schema(**{**dict(SCHEMA), "columns": (*SCHEMA.columns, TWICE)}),
        Schema(**{**dict(SCHEMA), "columns": (*SCHEMA.columns, TWICE.model_copy(update={"derived": "age"}))}),
    ]
    assert len({schema.digest() for schema in variants}) == len(variants)


def test_a_schema_without_rules_and_formulas_is_written_as_before() -> None:
    """New fields that change the digest or the file of every schema would no longer recognise old models."""
    schema = Schema(columns=(Column(name="age", kind="integer", lower=18, upper=110),), n_public=9)
    assert (
        schema.to_yaml() == "n_public: 9\ncolumns:\n- name: age\n  kind: integer\n  lower: 18\n  upper: 110\n"
    )
    assert schema.digest()[:16] == "32243a875b93a9bd"


def test_rules_and_formulas_are_kept_in_the_file() -> None:
    """Constraints lost on the way to a file, or a wrong one that is found only when sampling."""
    schema = Schema(**{**dict(SCHEMA), "columns": (*SCHEMA.columns, TWICE), "constraints": ("twice > age",)})
    again = Schema.from_yaml(schema.to_yaml())
    assert again == schema and set(again.rules[0].columns) == {"twice", "age"}
    assert schema.with_n_public(None).mark_reviewed().constraints == ("twice > age",)
    with pytest.raises(SchemaError, match=r"^schema: constraint 'age > pulse': 'pulse' is not a column"):
        Schema(**{**dict(SCHEMA), "constraints": ("age > pulse",)})
    for rule in ("age > 200", "age < 20 and age > 80", "sex = F and sex = M", "age is missing"):
        with pytest.raises(SchemaError, match=f"^schema: constraint '{rule}': no declared values obey it"):
            Schema(**{**dict(SCHEMA), "constraints": (rule,)})
    with pytest.raises(SchemaError, match="constraints"):
        Schema.from_dict({**SCHEMA.to_dict(), "constraints": "age > 20"})
    with pytest.raises(SchemaError, match=r"a constraint must be text, or columns with"):
        Schema.from_dict({**SCHEMA.to_dict(), "constraints": [3]})


def test_a_rule_of_too_many_combinations_is_not_decided(monkeypatch: pytest.MonkeyPatch) -> None:
    """A rule beyond the cap that is judged by a part of its combinations, or by none, and refused.

    10 days and three grades, with a missing value of each column counted: 44.
    """
    day = Column(name="day", kind="integer", lower=0, upper=9)
    grade = Column(name="grade", kind="categorical", categories=("a", "b", "c"), missing=True)
    rare = Schema(columns=(day, grade), constraints=("day = 9 and grade = c",))
    never = {**dict(rare), "constraints": ("day = 5 and day > 9 and grade = c",)}
    monkeypatch.setattr(where, "_MOST", 44)
    every = where.combinations(rare.rules[0], rare.columns)
    assert every is not None and len(every) == len(every.drop_duplicates()) == 40
    assert every[rare.rules[0].selected(every)].to_numpy().tolist() == [[9, "c"]]
    with pytest.raises(SchemaError, match="no declared values obey it"):
        Schema(**never)
    monkeypatch.setattr(where, "_MOST", 43)
    assert where.combinations(rare.rules[0], rare.columns) is None
    assert Schema(**never).rules and Schema(**dict(rare)).rules


def test_column_errors_name_the_field() -> None:
    """A wrong column must be refused in one sentence that names column and field."""
    for fields, words in [
        ({"kind": "integer", "lower": 5, "upper": 5}, "lower must be less than upper, got 5 and 5"),
        ({"kind": "integer", "lower": 5}, "upper is required for kind 'integer'"),
        ({"kind": "integer", "lower": 0.5, "upper": 5}, "lower must be a whole number"),
        ({"kind": "integer", "lower": 0, "upper": 5, "decimals": 1}, "decimals must be 0"),
        ({"kind": "continuous", "lower": 0, "upper": 5, "scale": "log"}, "lower must be greater than 0"),
        ({"kind": "continuous", "lower": 0, "upper": float("inf")}, "upper must be a finite number"),
        ({"kind": "continuous", "lower": 0, "upper": 5, "step": 1, "decimals": 0}, "step and decimals"),
        ({"kind": "continuous", "lower": 0, "upper": 5, "step": 0}, "step must be greater than 0, got 0"),
        ({"kind": "continuous", "lower": 0, "upper": 5, "step": 2}, "whole number of steps of 2 above lower"),
        (
            {"kind": "continuous", "lower": 0, "upper": 1e6, "decimals": 15},
            "step of 1e-15 is too fine for 0 to",
        ),
        ({"kind": "continuous", "lower": 0, "upper": 5, "cells": 0}, "cells must be at least 1, got 0"),
        ({"kind": "continuous", "lower": 0, "upper": 5, "categories": (1, 2)}, "categories are not allowed"),
        ({"kind": "categorical"}, "categories are required"),
        ({"kind": "binary", "categories": ("a",)}, "2 categories, got 1"),
        ({"kind": "binary", "categories": ("a", "b"), "lower": 0}, "lower is not allowed"),
        ({"kind": "categorical", "categories": ("a", "a")}, "'a' is given twice"),
        ({"kind": "categorical", "categories": ("a", 1)}, "all text, all numbers or all true/false"),
        ({"kind": "categorical", "categories": ("",)}, "one line of text"),
        ({"kind": "categorical", "categories": ("a\nb",)}, "one line of text"),
        ({"kind": "categorical", "categories": (float("nan"),)}, "a finite number or true/false, got nan"),
        ({"kind": "number"}, "kind must be 'continuous'"),
        ({"kind": "integer", "lower": 0, "upper": 1, "uper": 1}, "uper is not a known key"),
        ({"kind": "integer", "lower": 0, "upper": 1, "unreviewed": ("min",)}, "unreviewed names 'min'"),
        ({"kind": "integer", "lower": 0, "upper": 1, "missing": "yes"}, "missing must be a valid boolean"),
        (
            {"kind": "integer", "lower": 0, "upper": 1, "missing_codes": (9,)},
            "missing_codes needs missing: true",
        ),
        (
            {"kind": "integer", "lower": 0, "upper": 1, "missing": True, "missing_codes": ("u",)},
            "missing_codes must hold numbers for kind 'integer', got 'u'",
        ),
        (
            {
                "kind": "integer",
                "lower": 0,
                "upper": 1,
                "missing": True,
                "missing_codes": (9,),
                "special": (9,),
            },
            "missing_codes and special both hold 9",
        ),
        (
            {"kind": "categorical", "categories": ("u",), "missing": True, "missing_codes": ("u",)},
            "missing_codes and categories both hold 'u'",
        ),
    ]:
        with pytest.raises(SchemaError) as caught:
            Column(name="x", **fields)
        message = str(caught.value)
        assert message.startswith("column 'x': ")
        assert words in message
        assert "\n" not in message


def test_schema_errors() -> None:
    """A schema whose parts do not fit each other must be refused in one sentence."""
    for fields, words in [
        ({"columns": ()}, "at least one column"),
        ({"columns": (AGE, AGE)}, "the column 'age' is given twice"),
        ({"columns": (AGE,), "outcome": "died"}, "the outcome 'died' is not a column"),
        ({"columns": (AGE,), "outcome": "age"}, "must be categorical, binary or ordinal"),
        ({"columns": (AGE,), "n_public": 0}, "n_public must be at least 1, got 0"),
        ({"columns": (AGE,), "nname": "x"}, "nname is not a known key"),
        ({"columns": ({"name": "a", "kind": "integer"},)}, "schema: column 'a': lower is required"),
    ]:
        with pytest.raises(SchemaError, match=re.escape(words)):
            Schema(**fields)


def test_resolution_and_values() -> None:
    """A wrong step or count of values would misplace every cell of a grid."""
    assert LAB.resolution == 0.1
    assert LAB.n_values == 200
    assert AGE.resolution == 1
    assert AGE.n_values == 73
    assert SEX.n_values == 2
    assert Column(name="x", kind="continuous", lower=0, upper=1).resolution is None
    assert Column(name="x", kind="continuous", lower=0, upper=1).n_values is None
    for decimals in range(16):
        column = Column(name="x", kind="continuous", lower=0, upper=1, decimals=decimals)
        assert column.resolution == float(f"1e-{decimals}")


def test_frozen_and_lookup() -> None:
    """A schema that could be changed in place would no longer be the one whose digest was recorded."""
    with pytest.raises(Exception, match="frozen"):
        AGE.upper = 200  # type: ignore[misc]
    assert SCHEMA["lab"] is LAB
    assert len(SCHEMA) == 5
    with pytest.raises(SchemaError, match="'weight' is not a column"):
        SCHEMA["weight"]
    assert SCHEMA.select(["age"]).outcome is None
    assert pickle.loads(pickle.dumps(SCHEMA)) == SCHEMA  # worker processes receive schemas this way


def test_require_reviewed() -> None:
    """Bounds read off the records must not pass unseen, and marking one column must not clear another."""
    a = AGE.model_copy(update={"unreviewed": ("lower", "upper")})
    b = SEX.model_copy(update={"unreviewed": ("categories",)})
    schema = Schema(columns=(a, b))
    with pytest.raises(PrivacyError, match=r"age \(lower, upper\); sex \(categories\)"):
        require_reviewed(schema)
    assert require_reviewed(schema, accept=True) == {"age": ("lower", "upper"), "sex": ("categories",)}
    partly = schema.mark_reviewed(["age"])
    assert partly.unreviewed == {"sex": ("categories",)}
    assert require_reviewed(schema.mark_reviewed()) == {}
    assert schema.unreviewed  # the original is as it was
    with pytest.raises(SchemaError, match="'weight' is not a column"):
        schema.mark_reviewed(["weight"])


@given(schemas(), st.integers(0, 12), st.integers(0, 99))
@settings(max_examples=20, deadline=None)
def test_conform_is_idempotent_with_canonical_dtypes(schema: Schema, n: int, seed: int) -> None:
    """Conforming must keep every value and missing mark, give the declared dtypes, and do nothing twice."""
    frame = random_frame(schema, n, seed)
    shuffled = frame[list(reversed(frame.columns))]
    once = schema.conform(shuffled)
    assert tuple(once.frame.columns) == schema.names
    for column in schema.columns:
        made = once.frame[column.name]
        assert made.dtype == pd.Series([], dtype=column.dtype).dtype
        for given_value, kept in zip(frame[column.name], made, strict=True):
            missing = pd.isna(given_value) and pd.isna(kept)
            if missing or not column.is_numeric or column.resolution is None:
                assert missing or given_value == kept
                continue
            assert abs(given_value - kept) <= column.resolution / 2 * (1 + 1e-9)
    assert set(once.clipped.values()) <= {0}
    pd.testing.assert_frame_equal(schema.conform(once.frame).frame, once.frame)


def test_conform_counts_clipped() -> None:
    """Clipping one side only, clipping a missing value or a wrong count would go unnoticed."""
    frame = good_frame(age=[17, 91, 90], lab=[0.0, np.nan, 1e9])
    conformed = SCHEMA.conform(frame)
    assert conformed.clipped == {"age": 2, "lab": 2}
    assert conformed.frame["age"].tolist() == [18, 90, 90]
    assert conformed.frame["lab"].tolist()[::2] == [0.1, 20.0]
    assert np.isnan(conformed.frame["lab"][1])
    assert frame["age"].tolist() == [17, 91, 90]  # the caller's frame is as it was
    assert SCHEMA.check(frame)["age"].tolist() == [17, 91, 90]


def test_conform_keeps_index_and_rounds_to_steps_as_the_encoder_does() -> None:
    """Digits beyond the steps tell real from synthetic rows; a lost index would misalign splits."""
    frame = good_frame(lab=[1.23456, 2.0, 3.0]).set_axis([7, 5, 3])
    conformed = SCHEMA.conform(frame).frame
    assert conformed.index.tolist() == [7, 5, 3]
    assert conformed["lab"].iloc[0] == 1.2 and SCHEMA.check(frame)["lab"].iloc[0] == 1.23456


def test_conform_errors_name_column_row_value() -> None:
    """An error that does not name column, row and value cannot be mended."""
    for changes, words in [
        ({"sex": ["F", "X", "F"]}, "column 'sex', row 2: 'X' is not one of the declared categories 'F', 'M'"),
        ({"sex": ["F", "M", None]}, "column 'sex', row 3: the value is missing"),
        ({"age": [20, np.nan, 40]}, "column 'age', row 2: the value is missing"),
        ({"age": [20, 30.5, 40]}, "column 'age', row 2: 30.5 is not a whole number"),
        ({"age": [20, 30, 1e300]}, "column 'age', row 3: 1e+300 is too large"),
        ({"age": [20, "old", 40]}, "column 'age', row 2: 'old' is not a number"),
        ({"lab": [1.0, -np.inf, 2.0]}, "column 'lab', row 2: -inf is infinite"),
        ({"stage": [1, 2, 4]}, "column 'stage', row 3: 4 is not one of the declared categories 1, 2, 3"),
        ({"stage": [1, 2.5, 3]}, "column 'stage', row 2: 2.5 is not one"),
        ({"flag": [None, 2, None]}, "column 'flag', row 2: 2 is not one"),
        ({"weight": [1, 2, 3]}, "the column(s) 'weight' that the schema does not declare"),
    ]:
        frame = pd.DataFrame(
            {name: pd.Series(values, dtype=object) for name, values in good_frame(**changes).items()}
        )
        if "flag" in changes:
            frame["flag"] = pd.Series([None, 2, None], dtype=object)
        with pytest.raises(DataError) as caught:
            SCHEMA.conform(frame)
        assert words in str(caught.value)


def test_conform_refuses_absent_and_double_columns() -> None:
    """A column that is absent or twice there must be named, not silently taken from elsewhere."""
    with pytest.raises(DataError, match="lacks the column\\(s\\) 'lab', 'flag'"):
        SCHEMA.conform(good_frame().drop(columns=["lab", "flag"]))
    frame = good_frame()
    with pytest.raises(DataError, match="'age' more than once"):
        SCHEMA.conform(pd.concat([frame, frame[["age"]]], axis=1))


def categories(kind: str, *values: object) -> Column:
    return Column(name="x", kind=kind, categories=values, missing=True)


def test_categories_of_another_type() -> None:
    """Codes that became floats beside a missing value, or text in a file, are still the declared codes."""
    for column, values, expected in [
        (STAGE, ["1", None, "3"], [1, None, 3]),
        (STAGE, [1.0, np.nan, 3.0], [1, None, 3]),
        (STAGE, ["1.0", None, "3.0"], [1, None, 3]),
        (STAGE, pd.Categorical([1, None, 3]), [1, None, 3]),
        (FLAG, ["True", None, "false"], [True, None, False]),
        (
            Column(name="x", kind="categorical", categories=("1", "2"), missing=True),
            [1, None, 2],
            ["1", None, "2"],
        ),
        (categories("categorical", "a", "b"), [" a", "b ", "a"], ["a", "b", "a"]),
        (
            Column(name="x", kind="ordinal", categories=(0.5, 1.0), missing=True),
            [0.5, None, "1"],
            [0.5, None, 1.0],
        ),
    ]:
        schema = Schema(columns=(column,))
        made = schema.conform(pd.DataFrame({column.name: values})).frame[column.name]
        assert made.dtype == pd.Series([], dtype=column.dtype).dtype
        assert [None if pd.isna(v) else v for v in made] == expected


@pytest.mark.parametrize("n", [0, 1, 2])
def test_small_and_all_missing_frames(n: int) -> None:
    """No rows, one row, or nothing but missing values must not break a dtype."""
    schema = Schema(columns=(LAB, STAGE, FLAG, SEX.model_copy(update={"missing": True})))
    frame = pd.DataFrame({name: [None] * n for name in schema.names}, dtype=object)
    made = schema.conform(frame).frame
    assert len(made) == n
    assert made.isna().to_numpy().all()
    assert [str(dtype) for dtype in made.dtypes][:3] == ["float64", "Int64", "boolean"]


@pytest.mark.parametrize("categories", [(False, True), (0, 1), (1, 0)])
def test_outcome_of_true_and_false_is_one_of_0_and_1(categories: tuple) -> None:
    """A schema drafted from True/False refused another program's 0/1 (or yes/no) of the same column."""
    schema = Schema(columns=(Column(name="died", kind="binary", categories=categories),))
    for values in ([0, 1], ["0", "1"], [False, True], ["False", "TRUE"], ["no", "Yes"], [0.0, 1.0]):
        died = schema.check(pd.DataFrame({"died": values}))["died"]
        assert died.tolist() == [0, 1], values
    stages = Schema(columns=(Column(name="stage", kind="ordinal", categories=(1, 2)),))
    with pytest.raises(DataError, match="'yes' is not one of"):
        stages.check(pd.DataFrame({"stage": ["yes", 2]}))


def test_ignored_columns_and_missing_words() -> None:
    """A column of identifiers that is fitted, or refused although the schema says to pass it over."""
    age = Column(name="age", kind="integer", lower=0, upper=99, missing=True)
    sex = Column(name="sex", kind="categorical", categories=("F", "M", "-"))
    schema = Schema(columns=(age, sex), ignored=("mrn", "note"), missing_words=("?", "-"))
    assert Schema.from_yaml(schema.to_yaml()) == schema
    assert schema.to_dict()["ignored"] == ["mrn", "note"]
    assert "ignored" not in Schema(columns=(age,)).to_dict()
    frame = pd.DataFrame({"mrn": [1, 2, 3], "age": ["5", " ? ", "-"], "sex": ["F", "M", "-"]})
    checked = schema.check(frame)
    assert checked.columns.tolist() == ["age", "sex"]
    assert checked["age"].isna().tolist() == [False, True, True] and checked["sex"].tolist() == [
        "F",
        "M",
        "-",
    ]
    assert schema.conform(frame).frame.equals(checked)
    with pytest.raises(SchemaError, match="'age' is both declared and ignored"):
        Schema(columns=(age,), ignored=("age",))
    with pytest.raises(DataError, match="'1_0' is not a number"):
        schema.check(pd.DataFrame({"age": ["1_0"], "sex": ["F"]}))


@pytest.mark.parametrize("codes", [[999, -9], [999.0, -9.0]])
def test_missing_codes_by_number_and_by_text(codes: list) -> None:
    """-9.0 that is clipped to 0, a code 09 taken for 9, or a special code that a word takes away."""
    schema = Schema(
        columns=(
            Column(
                name="x", kind="integer", lower=0, upper=90, missing=True, missing_codes=codes, special=(-1,)
            ),
            Column(
                name="grade", kind="categorical", categories=("1", "09"), missing=True, missing_codes=["9"]
            ),
        ),
        missing_words=("-1", "?"),
    )
    assert Schema.from_yaml(schema.to_yaml()) == schema and "special: [-1]" in schema.to_yaml()
    frame = pd.DataFrame({"x": ["-9.0", "999", "-1", "?", "9"], "grade": ["9", "09", "1", "?", "09"]})
    for table in (frame, frame.assign(x=[-9.0, 999, -1, None, 9])):
        conformed = schema.conform(table)
        assert conformed.clipped == {"x": 0}
        assert conformed.frame["x"].isna().tolist() == [True, True, False, True, False]
        assert conformed.frame["x"].dropna().tolist() == [-1, 9]
        assert conformed.frame["grade"].dropna().tolist() == ["09", "1", "09"]


def test_the_guide_describes_every_field_and_its_example_is_a_schema() -> None:
    """A field that docs/reference/schema-fields.md does not name, or an example that cannot be read."""
    docs = Path(__file__).parents[2] / "docs"
    fields = (docs / "reference" / "schema-fields.md").read_text(encoding="utf-8")
    for field in (*Schema.model_fields, *Column.model_fields):
        assert f"`{field}`" in fields, field
    guide = (docs / "how-to" / "schema.md").read_text(encoding="utf-8")
    example = Schema.from_yaml(guide.split('```yaml title="clinic.yaml"\n')[1].split("```")[0])
    assert len(example.rules) == 3 and [column.name for column, _ in example.formulas] == ["bmi"]


def test_a_schema_prints_as_a_table() -> None:
    """A printed schema that hides bounds or what nobody reviewed, or HTML of a name that a notebook obeys."""
    odd = Column(name="<script>x", kind="categorical", categories=("<i>", "b"), unreviewed=("categories",))
    schema = Schema(
        columns=(*SCHEMA.columns, odd), outcome="sex", n_public=1234, name="<b>ward", ignored=("mrn",)
    )
    for shown in (str(schema), repr(schema), schema._repr_html_()):
        assert "18 to 90" in shown and "log scale" in shown and "1,234 records" in shown and "mrn" in shown
        assert "unreviewed" in shown and "Confidential" in shown
    assert "<script>" in str(schema)
    assert not re.search("<script>|<b>|<i>", schema._repr_html_())
    assert "Confidential" not in str(SCHEMA) and "unreviewed" not in str(SCHEMA)
