"""Rounding to the declared steps, which evaluation does to every table before it compares."""

from __future__ import annotations

from decimal import ROUND_HALF_EVEN, Decimal

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dpsynth.errors import DataError
from dpsynth.table.column import Column
from dpsynth.table.conform import round_frame
from dpsynth.table.derived import add_derived
from dpsynth.table.files import read_table
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
    for exact, rounded in zip(frame[column.name], found, strict=True):
        if pd.isna(exact):
            assert pd.isna(rounded)
            continue
        steps = ((Decimal(float(exact)) - lower) / step).to_integral_value(ROUND_HALF_EVEN)
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


#: Cells that equal one another, or say the same, in as many types as a reader makes of them.
CELLS = (
    *(True, False, 1, 0, 1.0, 0.0, -0.0, 2, 2.5, 9, None, np.nan, pd.NA, pd.NaT),
    *(
        "1",
        "0",
        " 1",
        "1.0",
        "2",
        "2.5",
        "9",
        "1e0",
        "true",
        "True",
        "TRUE",
        "false",
        "yes",
        "no",
        "a",
        "",
        "NA",
        "?",
    ),
    *(np.int64(1), np.float32(1), np.bool_(True), np.str_("1"), Decimal(1), Decimal("1.0"), Decimal("2.50")),
    *(
        "=1",
        "'=1",
        "1_0",
        "a\0",
        "a\0b",
        bytearray(b"a"),
        float("inf"),
        [1],
        pd.Timestamp("2020-01-01"),
        pd.Timedelta(1),
    ),
)
CATEGORIES = (
    *(("1", "true"), ("true", "1"), ("1", "1.0", "a"), ("0", "1"), ("yes", "no"), ("=1", "a", "True")),
    *((0, 1), (1, 2, 9), (1.0, 2.5), (False, True)),
)
COLUMN = st.one_of(
    st.sampled_from(CATEGORIES).map(lambda c: {"kind": "categorical", "categories": c}),
    st.just({"kind": "integer", "lower": 0, "upper": 5}),
    st.just({"kind": "continuous", "lower": 0.5, "upper": 2}),
)
DATES = {"kind": "datetime", "lower": "2010-01-01", "upper": "9999-12-31"}


def conformed(schema: Schema, cells, dtype) -> list | None:
    """What the cells of one column are read as; None where they are refused."""
    try:
        frame = schema.conform(pd.DataFrame({"c": pd.Series(list(cells), dtype=dtype)})).frame
    except DataError:
        return None
    return [(type(cell), cell) if pd.notna(cell) else None for cell in frame["c"].astype(object)]


@given(
    COLUMN,
    st.lists(st.sampled_from(CELLS), min_size=1, max_size=6),
    st.booleans(),
    st.sets(st.sampled_from(["?", "9", "1.0", "1", "true", "0"])),
    st.sampled_from([object, None]),
)
@example({"kind": "categorical", "categories": ("1", "true")}, [True, 1, 1.0, "1"], False, set(), object)
@example({"kind": "categorical", "categories": ("true", "a")}, [True, 1, "1"], True, {"1"}, object)
@example({"kind": "categorical", "categories": ("1", "true")}, [np.float32(1)], False, {"1.0"}, None)
@example({"kind": "categorical", "categories": ("a", "b")}, ["a", "a\0"], False, set(), object)
@example(DATES, ["9999-12-31", "2011-02-03 10:11:12.123456789", pd.Timestamp(1)], False, set(), object)
def test_a_record_is_read_alike_in_whatever_company(column, cells, missing, words, dtype):
    """Catches one record that changes how others are read: a True that makes every 1 a "true".

    With a dtype of None pandas chooses one in view of all cells, as readers of files do.
    """
    schema = Schema(
        columns=(Column(name="c", missing=missing, **column),), missing_words=tuple(sorted(words))
    )
    alone = [conformed(schema, [cell], object) for cell in cells]
    expected = None if None in alone else [one for row in alone for one in row]
    assert conformed(schema, cells, dtype) == expected
    assert conformed(schema, cells[::-1], dtype) == (expected and expected[::-1])


BAD = {
    "no number": (COLUMNS[1], [40.0, "forty"], "'forty' is not a number"),
    "infinite": (COLUMNS[1], [40.0, np.inf], "is infinite"),
    "not whole": (COLUMNS[2], [10.0, 10.5], "10.5 is not a whole number"),
    "missing": (COLUMNS[1], [40.0, None], "is missing"),
    "category": (Column(name="sex", kind="binary", categories=("F", "M")), ["F", "X"], "'X' is not one of"),
}


@pytest.mark.parametrize("case", BAD)
def test_an_error_about_a_cell_is_for_the_owner(case):
    """Catches a private value or row that is shown without the mark of what may not be shared."""
    column, cells, words = BAD[case]
    with pytest.raises(DataError) as refusal:
        Schema(columns=(column,)).conform(pd.DataFrame({column.name: cells}))
    said = str(refusal.value)
    assert words in said and "row 2" in said and said.endswith("(confidential)")


def test_an_error_about_a_line_or_a_derived_value_is_for_the_owner(tmp_path):
    """Catches the same in files, and where a formula has no value for a record."""
    (tmp_path / "a.csv").write_text("a,b\n1,2\n1,2,3\n")
    with pytest.raises(DataError, match=r"line 3: 3 cells.*\(confidential\)$"):
        read_table(tmp_path / "a.csv")
    numbers = [Column(name=name, kind="continuous", lower=1, upper=9) for name in "ab"]
    ratio = Column(name="c", kind="continuous", lower=0, upper=9, derived="a / b")
    schema = Schema(columns=(*numbers, ratio))
    with pytest.raises(DataError, match=r"row 1: a / b has no value.*\(confidential\)$"):
        add_derived(pd.DataFrame({"a": [1.0], "b": [np.nan]}), schema.formulas, schema.columns)


def test_a_special_code_in_float32_is_the_code():
    """Catches codes that a file of single precision holds inexactly, and that were clipped."""
    schema = Schema(
        columns=(Column(name="t", kind="continuous", lower=30, upper=45, decimals=1, special=(99.9,)),)
    )
    frame = pd.DataFrame({"t": np.array([36.5, 99.9, 50.0], dtype=np.float32)})
    conformed = schema.conform(frame)
    assert conformed.frame["t"].tolist() == [36.5, 99.9, 45.0] and conformed.clipped["t"] == 1
    assert frame["t"].tolist() == [36.5, np.float32(99.9), 50.0]


@pytest.mark.parametrize("dtype", [np.int64, np.float64, object])
def test_a_number_near_a_special_code_is_no_code(dtype):
    """Catches a tolerance around codes, by which a number that the bounds allow is lost."""
    column = Column(name="cells", kind="integer", lower=0, upper=99_999_998, special=(99_999_999,))
    values = [99_999_900, 99_999_998, 99_999_999]
    frame = pd.DataFrame({"cells": np.array(values, dtype=dtype)})
    assert Schema(columns=(column,)).conform(frame).frame["cells"].tolist() == values
