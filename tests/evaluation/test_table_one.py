"""Table 1: the same numbers as another package's, forms by the schema alone, and nothing real released."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dpsynth.evaluation.results import Evaluation, frame_rows
from dpsynth.evaluation.settings import Settings
from dpsynth.evaluation.table_one import smd, summarise_tables, summary
from dpsynth.evaluation.tables import Tables
from dpsynth.table.schema import Column, Schema

VALUES = json.loads(Path(__file__).with_name("table_one_values.json").read_text(encoding="utf-8"))
SCHEMA = Schema(
    columns=(
        Column(name="age", kind="integer", lower=0, upper=120, unit="years"),
        Column(name="crea", kind="continuous", lower=0.01, upper=50, decimals=2, scale="log", missing=True),
        Column(name="sex", kind="binary", categories=("F", "M")),
        Column(name="ward", kind="categorical", categories=("a", "b", "c", "d")),
    )
)


def compared(schema: Schema, synthetic: pd.DataFrame, train: pd.DataFrame) -> Evaluation:
    tables = Tables.of(synthetic, train=train, schema=schema)
    return Evaluation((), {}, summarise_tables(tables, Settings.of(), np.random.default_rng(0)).details)


def test_the_numbers_of_another_package():
    """Catches a mean, quartile, count, share of missing values or SMD that ``tableone`` does not find."""
    frames = {name: pd.DataFrame(record) for name, record in VALUES["records"].items()}
    found = compared(SCHEMA, frames["synthetic"], frames["real"])
    told = VALUES["tableone"]
    for frame in found.groups("table_one", "table"):
        side = {"train": "real", "synthetic": "synthetic"}[frame["table"].iloc[0]]
        assert set(frame["records"]) == {int(told["n"][side])}
        age, crea, *categories = frame_rows(frame)
        numbers = re.findall(r"[\d.]+", told["age, mean (SD)"][side])
        assert [age.center, age.spread] == pytest.approx([float(number) for number in numbers], abs=1e-6)
        numbers = re.findall(r"[\d.]+", told["crea, median [Q1,Q3]"][side])
        assert [crea.center, crea.low, crea.high] == pytest.approx([float(number) for number in numbers])
        assert [row.label for row in categories] == ["F", "M", *"abcd"]
        for row in categories:
            assert row.count == int(told[f"{row.column}, n (%) {row.label}"][side].split()[0])
    frame = found.details["table_one"]
    missing = frame.loc[frame["column"] == "crea", "missing"].sum()
    assert missing == int(told["crea, median [Q1,Q3]"]["Missing"])
    for row, label in zip(
        frame_rows(found.details["table_one_differences"]),
        ("age, mean (SD)", "crea, median [Q1,Q3]", "sex, n (%) F", "ward, n (%) a"),
        strict=True,
    ):
        assert row.smd == pytest.approx(float(told[label]["SMD (real,synthetic)"]), abs=5.1e-4), row.column


def test_smd_of_columns_that_do_not_vary_together():
    """Catches a division by zero, a singular covariance taken as no difference, and a category nobody has."""
    sex, ward = SCHEMA["sex"], SCHEMA["ward"]
    same, other = pd.Series(["F"] * 5), pd.Series(["M"] * 5)
    assert smd(same, same, sex) == 0.0 and smd(same, other, sex) is None
    first, second = pd.Series(["a", "b"] * 9), pd.Series(["c", "d"] * 9)
    assert smd(first, second, ward) is None and smd(first, first, ward) == 0.0
    assert smd(pd.Series(["a"] * 4), pd.Series(["a"] * 9), ward) == 0.0
    # with two categories that occur, the distance is the size of the difference of one of them
    a, b = pd.Series(["a"] * 3 + ["c"] * 7), pd.Series(["a"] * 6 + ["c"] * 4)
    assert smd(a, b, ward) == pytest.approx(0.3 / np.sqrt((0.21 + 0.24) / 2))
    ages = pd.Series([40, 40, 40])
    assert smd(ages, ages, SCHEMA["age"]) == 0.0 and smd(ages, ages + 1, SCHEMA["age"]) is None
    assert smd(ages, ages.head(1), SCHEMA["age"]) is None
    nothing = pd.Series([np.nan, np.nan])
    (row,) = summary(nothing, SCHEMA["crea"])
    assert smd(nothing, nothing, SCHEMA["crea"]) is None and row["center"] is None


def test_the_order_of_categories_changes_nothing():
    """Catches a distance that depends on which category was left out."""
    rng = np.random.default_rng(3)
    first, second = (
        pd.Series(rng.choice(list("abcd"), 200, p=p)) for p in ([0.4, 0.3, 0.2, 0.1], [0.25] * 4)
    )
    turned = Column(name="ward", kind="categorical", categories=("d", "b", "a", "c"))
    assert smd(first, second, turned) == pytest.approx(smd(first, second, SCHEMA["ward"]))


def test_the_difference_that_chance_gives():
    """Catches a chance value that two samples of one distribution pass more or less often than said."""
    rng = np.random.default_rng(11)
    frames = [
        pd.DataFrame({"age": rng.integers(20, 90, n), "sex": rng.choice(["F", "M"], n)}) for n in (100, 250)
    ]
    schema = Schema(columns=(SCHEMA["age"], SCHEMA["sex"]))
    (chance,) = set(compared(schema, *frames).details["table_one_differences"]["chance"])
    below = []
    for _ in range(300):
        made, real = (pd.Series(rng.normal(50, 10, n)) for n in (100, 250))
        found = smd(made, real, SCHEMA["age"])
        assert found is not None
        below.append(abs(found) < chance)
    assert 0.915 <= np.mean(below) <= 0.98  # three standard errors about 0.95


def test_special_codes_are_no_numbers():
    """Catches a code such as 999 in a mean or in an SMD, and codes that are not counted."""
    column = Column(name="score", kind="integer", lower=0, upper=9, special=(999,), missing=True)
    schema = Schema(columns=(column, SCHEMA["sex"]))
    frame = pd.DataFrame({"score": [1, 2, 3, 999, None], "sex": list("FMFMF")})
    values = schema.conform(frame).frame["score"]
    (row,) = summary(values, column)
    assert [row[name] for name in ("form", "center", "special", "missing")] == ["mean", 2.0, 1, 1]
    assert smd(values, values[:3], column) == 0.0


@pytest.mark.parametrize(("categories", "groups"), [(2, 2), (4, 4), (5, 0)])
def test_records_of_each_outcome(categories, groups):
    """Catches a table of the wrong records, and one in which the outcome describes itself."""
    outcome = Column(name="stage", kind="ordinal", categories=tuple(range(categories)))
    schema = Schema(columns=(SCHEMA["age"], outcome), outcome="stage")
    rng = np.random.default_rng(0)
    stage = rng.integers(0, categories, 60)
    real = pd.DataFrame({"age": 20 + 10 * stage, "stage": stage})
    found = compared(schema, real.head(30), real)
    named = {row.group: row for row in frame_rows(found.details["table_one"]) if row.table == "train"}
    assert list(named) == [None, *(f"stage = {code}" for code in range(groups))]
    for code in range(groups):
        row = named[f"stage = {code}"]
        assert (row.column, row.center) == ("age", 20 + 10 * code)
        assert row.records == int((stage == code).sum())


def test_only_summaries_of_the_synthetic_table_are_released():
    """Catches a summary of real records, or a difference from them, among what may be released."""
    frames = {name: pd.DataFrame(record) for name, record in VALUES["records"].items()}
    found = compared(SCHEMA, frames["synthetic"], frames["real"]).released()
    assert [*found.details] == ["table_one"] and set(found.details["table_one"]["table"]) == {"synthetic"}
