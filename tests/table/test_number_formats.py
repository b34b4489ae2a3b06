"""Numbers with marks between thousands, a currency or a unit, as spreadsheets write them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsynth.errors import DataError, SchemaError
from dpsynth.table import Column, CsvFormat, Schema, infer_schema, read_table, write_table
from dpsynth.table.kinds.number_format import NumberFormat

AMOUNTS = st.decimals(-10_000_000, 10_000_000, places=2)
FORMS = [
    "1,234.50",
    "1.234,50",
    "1 234,50",
    "1\u00a0234,50",
    "1'234.50",
    "1234,5",
    "$1,234.50",
    "1.234,5 €",
    "9.5 mg",
]


def as_written(value: float, example: str) -> str:
    """The number in the form of the example: an independent writer."""
    form = NumberFormat.of(example)
    text = f"{abs(value):,.2f}".replace(",", "T").replace(".", form.decimal).replace("T", form.thousands)
    return f"{'-' if value < 0 else ''}{form.before}{text}{' ' if form.after else ''}{form.after}"


@given(AMOUNTS, st.sampled_from(FORMS))
def test_a_number_is_read_back_from_any_form(value: float, example: str) -> None:
    """A mark that is taken for the other one: a thousand times too much, or too little."""
    assert NumberFormat.of(example).number(as_written(float(value), example)) == float(value)


@given(st.lists(AMOUNTS, min_size=30, unique=True), st.sampled_from(FORMS))
def test_the_form_is_found_in_the_cells(values: list[float], example: str) -> None:
    """A likely form that reads the cells as other numbers than those that were written."""
    words = [as_written(float(value), example) for value in values]
    found = NumberFormat.likely(words)
    assert found is not None
    assert [NumberFormat.of(found).number(word) for word in words] == [float(value) for value in values]


@pytest.mark.parametrize("name", ["charges", "price", "swiss", "narrow", "ejection", "dose"])
def test_the_likely_answer_reads_what_was_meant(name: str) -> None:
    """An answer whose column still holds words, or numbers a thousand times too small."""
    from trap_columns import tables

    frame = next(table.frame for table in tables() if table.name == "numbers")[[name, "age"]]
    answers = [{"question": "number_marks", "column": name, "answer": "numbers"}]
    schema = infer_schema(frame, answers=answers).schema
    read = schema.conform(frame).frame[name]
    meant = frame[name].str.replace(r"[^\d.,-]", "", regex=True)
    comma = meant.str.fullmatch(r"-?\d+,\d{1,2}").mean() > 0.5
    meant = meant.str.replace(".", "").str.replace(",", ".") if comma else meant.str.replace(",", "")
    assert np.allclose(read.astype(float), meant.astype(float)) and schema[name].is_numeric
    assert {"kind", "lower", "upper", "format"} <= {*schema[name].unreviewed}


def test_points_between_thousands_of_a_file(tmp_path: Path) -> None:
    """A median of 1,787 that becomes 7.2, and a synthetic table that the same schema does not read."""
    rng = np.random.default_rng(0)
    cells = rng.gamma(2.0, 1000, 500).round() + 40
    table = pd.DataFrame(
        {
            "cells": [f"{v:,.0f}".replace(",", ".") for v in cells],
            "weight": [f"{v:.1f}".replace(".", ",") for v in rng.normal(78, 12, 500)],
        }
    )
    table.to_csv(tmp_path / "t.csv", sep=";", index=False)
    frame = read_table(tmp_path / "t.csv", csv_format=CsvFormat(sep=";", decimal=","))
    answers = [{"question": "thousands", "column": "cells", "answer": "thousands"}]
    schema = infer_schema(frame, answers=answers).schema.model_copy(
        update={"csv": CsvFormat(sep=";", decimal=",")}
    )
    assert (schema["cells"].kind, schema["cells"].format) == ("integer", "1.234")
    read = read_table(tmp_path / "t.csv", schema)
    assert (read["cells"] == cells).all()
    write_table(read, tmp_path / "again.csv")
    assert read_table(tmp_path / "again.csv", schema).equals(read)


@pytest.mark.parametrize(("low", "high", "asked"), [(1_100, 30_000, True), (1_001, 1_040, False)])
def test_amounts_that_are_all_above_a_thousand(low: int, high: int, asked: bool) -> None:
    """Leukocytes from 1.1 to 30 without a question, and one about the density of urine."""
    amounts = np.random.default_rng(0).integers(low, high, 300)
    cells = [f"{amount:,}".replace(",", ".") for amount in amounts]
    made = infer_schema(pd.DataFrame({"x": cells, "sex": ["F", "M"] * 150}))
    assert ("thousands" in {one.question for one in made.questions}) is asked


def test_a_form_that_samples_cannot_have_is_refused() -> None:
    """A column whose own samples would be read a thousand times too large."""
    with pytest.raises(SchemaError, match="so the column needs a step with at most two decimals"):
        Column(name="x", kind="continuous", lower=0, upper=1, decimals=3, format="1.234,5")
    with pytest.raises(SchemaError, match="needs a step"):
        Column(name="x", kind="continuous", lower=0, upper=1, format="1.234,5")
    with pytest.raises(SchemaError, match="format must show a number as the table writes it"):
        Column(name="x", kind="integer", lower=0, upper=9, format="%d")
    column = Column(name="x", kind="continuous", lower=0, upper=9999, decimals=2, format="1.234,5")
    schema = Schema(columns=(column,), n_public=5)
    with pytest.raises(DataError, match="column 'x', row 2: '1,2,3' is not a number in the format"):
        schema.conform(pd.DataFrame({"x": ["1.200,5", "1,2,3"]}))


def test_codes_of_a_missing_value_are_read_in_the_format() -> None:
    """A dose of -9 mg that is a value, and one of 9,999 that moves to the limit."""
    column = Column(
        name="x",
        kind="integer",
        lower=0,
        upper=500,
        format="1,234 mg",
        missing=True,
        missing_codes=(-9, 9999),
    )
    cells = ["-9 mg", "9,999 mg", "9999", "9", "120 mg"]
    read = Schema(columns=(column,)).conform(pd.DataFrame({"x": cells})).frame["x"]
    assert read.isna().tolist() == [True, True, True, False, False]


def test_signs_that_look_alike_are_read_alike() -> None:
    """A blank that does not break, a long minus, and brackets that say minus in accounts."""
    assert NumberFormat.of("5.2 mg").number("7.1\u00a0mg") == 7.1
    assert NumberFormat.of("1.234,5").number("\u22122.142,5") == -2142.5
    assert NumberFormat.of("CHF 1'234.50").number("CHF 1\u2019229.54") == 1229.54
    with pytest.raises(ValueError, match="format must show a number"):
        NumberFormat.of("(5)")
    cells = pd.DataFrame({"x": [f"CHF {v:,.2f}".replace(",", "'") for v in range(900, 1200)], "y": 0})
    assert "number_marks" in {one.question for one in infer_schema(cells).questions}
    codes = pd.DataFrame({"code": ["I50", "I21", "E11", "V45"] * 20, "y": [0, 1] * 40})
    assert "number_marks" not in {one.question for one in infer_schema(codes).questions}
