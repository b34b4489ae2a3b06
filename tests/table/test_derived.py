"""Derived columns: rounded, clipped, missing, and in the order of their inputs."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dpsynth.cli import main
from dpsynth.errors import DataError, SchemaError
from dpsynth.table.derived import snapped
from dpsynth.table.schema import Column, Schema


def number(name: str, lower: float = 1, upper: float = 9, **fields: object) -> Column:
    return Column(name=name, kind="continuous", lower=lower, upper=upper, **fields)


def derived(text: str, lower: float = -1e6, upper: float = 1e6, **fields: object) -> Column:
    return number("d", lower, upper, derived=text, **fields)


def test_rounded_to_the_step_clipped_and_missing() -> None:
    """Would catch 0.1 + 0.2 off its decimal, a value beyond the bounds, or a number made from none."""
    schema = Schema(
        columns=(
            number("weight", 30, 250, decimals=1, missing=True),
            number("height", 1.2, 2.2, decimals=2),
            number("bmi", 10, 60, decimals=1, derived="weight / height ** 2", missing=True),
            Column(name="class", kind="integer", lower=0, upper=9, derived="bmi / 5 - 2", missing=True),
        )
    )
    frame = pd.DataFrame({"weight": [81.3, 250.0, None, 47.3], "height": [1.8, 1.2, 1.7, 1.63]})
    made = schema.conform(frame).frame
    assert list(made) == list(schema.names)
    assert made["bmi"].tolist()[:2] == [25.1, 60.0] and math.isnan(made["bmi"][2]) and made["bmi"][3] == 17.8
    assert made["class"].tolist()[:2] == [3, 9] and made["class"].isna().tolist() == [
        False,
        False,
        True,
        False,
    ]
    assert str(made["class"].dtype) == "Int64"


def test_steps_are_the_decimals_that_a_file_holds() -> None:
    """Would catch 0.30000000000000004 in a file of tenths."""
    tenths = Column(name="d", kind="continuous", lower=0, upper=1, decimals=1)
    assert snapped(tenths, np.linspace(0.04, 1.04, 11)).tolist() == [k / 10 for k in range(11)]


def test_a_column_that_is_there_stays_and_one_of_another_order_is_computed() -> None:
    """Would catch a real table's own values overwritten, or a formula computed before its inputs."""
    schema = Schema(columns=(derived("twice + 1"), number("twice", 0, 99, derived="2 * x"), number("x")))
    assert schema.conform(pd.DataFrame({"x": [2.0]})).frame.iloc[0].tolist() == [5.0, 4.0, 2.0]
    given = pd.DataFrame({"x": [2.0], "twice": [7.0]})
    assert schema.conform(given).frame.iloc[0].tolist() == [8.0, 7.0, 2.0]


def test_flags_add_up() -> None:
    """Would catch categories read by their place (0, 1) where they are numbers (a count of conditions)."""
    flags = (
        Column(name="a", kind="binary", categories=(1, 2)),
        Column(name="b", kind="binary", categories=(False, True)),
    )
    schema = Schema(columns=(*flags, Column(name="n", kind="integer", lower=0, upper=9, derived="a + 3 * b")))
    assert schema.conform(pd.DataFrame({"a": [1, 2], "b": [True, False]})).frame["n"].tolist() == [4, 2]


def test_a_bad_formula_is_one_sentence() -> None:
    """Would catch a traceback, code that runs, or a formula that fails after the budget is spent."""
    for column, sentence in [
        (derived("x + pulse"), "'pulse' is not a column (columns: x, sex, d)"),
        (derived("d + x"), "derived columns need one another: 'd'"),
        (derived("1 / (x - 5)"), "it divides by x - 5, which the declared bounds allow to be 0"),
        (derived("(x - 5) ** -2"), "it divides by a power of x - 5"),
        (derived("log(x - 1)"), "it takes the logarithm of x - 1, which can be 0"),
        (derived("sqrt(x - 2)"), "it takes the square root of x - 2, which can be -1"),
        (derived("(x - 2) ** 0.5"), "which can be -1, with an exponent not whole"),
        (derived("exp(x * 1000)"), "exp(x * 1000) can be too large to compute"),
        (derived("x * 100", 1, 9), "it gives 100 to 900, but the declared bounds are 1 and 9"),
    ]:
        sex = Column(name="sex", kind="binary", categories=("F", "M"))
        with pytest.raises(SchemaError) as caught:
            Schema(columns=(number("x"), sex, column))
        assert sentence in str(caught.value) and "\n" not in str(caught.value)
        assert "column 'd': derived" in str(caught.value) or "need one another" in str(caught.value)


def test_a_comparison_is_one_where_it_holds_and_missing_where_unknown() -> None:
    """Would catch a category read as another, ``!=`` read as ``==``, or a missing one taken for a no."""
    stage = Column(name="stage", kind="categorical", categories=("none", "I", "II"), missing=True)
    treated = Column(name="treated", kind="binary", categories=("no", "yes"))
    visits = Column(name="visits", kind="integer", lower=0, upper=9)
    text = "(stage == 'II') * (treated != 'no') + 4 * (stage != 'none') + 8 * (visits == 3)"
    made = Column(name="d", kind="integer", lower=-20, upper=20, derived=text, missing=True)
    schema = Schema(columns=(stage, treated, visits, made))
    frame = pd.DataFrame(
        {
            "stage": ["II", "II", "I", "none", None],
            "treated": ["yes", "no", "yes", "yes", "yes"],
            "visits": [0, 3, 0, 3, 0],
        }
    )
    found = schema.conform(frame).frame["d"].astype(float)
    np.testing.assert_array_equal(found, [5, 12, 4, 8, np.nan])


def test_what_the_schema_does_not_allow() -> None:
    """Would catch a circle, an input that may be missing where the column may not, or a category."""
    with pytest.raises(SchemaError, match="derived columns need one another: 'd', 'e'"):
        Schema(columns=(number("x"), derived("e + x"), number("e", derived="d - x")))
    with pytest.raises(SchemaError, match="'x' may be missing or a special code, so declare missing: true"):
        Schema(columns=(number("x", missing=True), derived("2 * x")))
    with pytest.raises(SchemaError, match="derived is not allowed for kind 'binary'"):
        Column(name="b", kind="binary", categories=(0, 1), derived="x")
    with pytest.raises(SchemaError, match="every column is derived"):
        Schema(columns=(derived("e"), number("e", derived="d")))


def test_without_value_is_missing_where_that_is_declared() -> None:
    """Would catch an infinite or clipped value in place of a missing one, also on the way (1 / (1 / 0))."""
    schema = Schema(columns=(number("x", -9, 9), derived("1 / (1 / x)", -5, 5, missing=True)))
    assert schema.conform(pd.DataFrame({"x": [0.0, 2.0]})).frame["d"].isna().tolist() == [True, False]
    power = Schema(columns=(number("x", 0, 9, missing=True), derived("x ** 0", missing=True)))
    assert power.conform(pd.DataFrame({"x": [None, 2.0]})).frame["d"].isna().tolist() == [True, False]
    # values beyond the declared bounds are left as they are by check, which must not divide by zero
    sound = Schema(columns=(number("x"), derived("1 / x")))
    with pytest.raises(DataError, match=r"column 'd', row 2: 1 / x has no value for x = 0"):
        sound.check(pd.DataFrame({"x": [1.0, 0.0]}))


def test_select_and_the_modelled_part() -> None:
    """Would catch a formula or rule left behind without its columns, or a derived column that is counted."""
    schema = Schema(
        columns=(number("x"), number("y"), derived("x + y", 0, 20)), constraints=("x < y", "d > 2", "x > 1")
    )
    assert schema.modelled.names == ("x", "y") and schema.modelled.constraints == ()
    part = schema.select(["d", "x"])
    assert part["d"].derived is None and part.constraints == ("d > 2", "x > 1")
    assert schema.select(["d", "y", "x"]).constraints == schema.constraints
    assert schema.select(["d", "y", "x"])["d"].derived == "x + y"
    plain = Schema(columns=schema.columns[:2])
    assert plain.modelled is plain


@pytest.mark.parametrize(("declared", "said"), [(None, True), ("admitted + stay", False)])
def test_a_formula_that_samples_break_is_said(
    declared: str | None, said: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Three modelled columns of which one is the difference of the others, without a word."""
    days = {"kind": "integer", "lower": 0, "upper": 100}
    columns = (
        Column(name="admitted", **days),
        Column(name="discharged", **days | {"upper": 200}, derived=declared),
        Column(name="stay", **days, read_as="discharged - admitted"),
    )
    Schema(columns=columns).to_yaml(tmp_path / "s.yaml")
    assert main(["schema", "check", str(tmp_path / "s.yaml")]) == 0
    line = "stay is read as discharged - admitted, and the columns of this formula are modelled as well"
    assert (line in capsys.readouterr().out) is said
