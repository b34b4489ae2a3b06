"""The terms of a regression and the arrays behind them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from dpsynth.evaluation.replication import one_fit
from dpsynth.evaluation.replication.one_fit import design
from dpsynth.studies.model import EffectsModel
from dpsynth.table.schema import Column, Schema

SCHEMA = Schema(
    columns=(
        Column(name="age", kind="integer", lower=0, upper=100, unit="years", missing=True),
        Column(name="race", kind="categorical", categories=("a", "b", "c"), missing=True),
        Column(name="stage", kind="ordinal", categories=("I", "II", "III")),
        Column(name="died", kind="binary", categories=("no", "yes"), missing=True),
    )
)
MODEL = EffectsModel("logistic", "died", units={"age": 10})


def table(age, race, stage, died) -> pd.DataFrame:
    return SCHEMA.conform(pd.DataFrame({"age": age, "race": race, "stage": stage, "died": died})).frame


def test_codes_and_complete_cases() -> None:
    """A rank that starts at 1, an increment that multiplies, or a record with a gap that stays."""
    found = design(
        table(
            [10, 20, 30, 40, None, 60, 70, 80, 90],
            ["a", "b", "c", "a", "b", None, "b", "c", "c"],
            ["I", "II", "III", "I", "I", "I", "III", "I", "I"],
            ["no", "yes", "no", "yes", "no", "no", "no", "yes", None],
        ),
        SCHEMA,
        MODEL,
    )
    assert found.x.tolist() == [
        [1, 0, 0, 0],
        [2, 1, 0, 1],
        [3, 0, 1, 2],
        [4, 0, 0, 0],
        [7, 1, 0, 2],
        [8, 0, 1, 0],
    ]
    assert found.y.tolist() == [0, 1, 0, 1, 0, 1]
    assert (found.n_table, found.n_incomplete, found.n_settled, found.dropped) == (9, 3, 0, ())


def test_what_a_table_cannot_tell_is_named() -> None:
    """A constant column, an absent category or an empty column that is dropped in silence, or not at all."""
    rows = 6
    found = design(
        table([None] * rows, ["a", "b"] * 3, ["I"] * rows, ["no", "no", "yes", "yes", "no", "yes"]),
        SCHEMA,
        MODEL,
    )
    assert found.names == ("race: b vs a",)
    assert dict(found.dropped) == {
        "age (per 10 years)": "no value is present",
        "race: c vs a": "the category does not occur",
        "stage (per rank)": "constant",
    }


def test_without_the_reference_the_column_still_adjusts() -> None:
    """Contrasts against another category that pass for contrasts against the reference."""
    died = ["no", "yes", "yes", "no"]
    found = design(table([10, 20, 30, 50], ["b", "c", "b", "c"], ["I", "II", "I", "I"], died), SCHEMA, MODEL)
    assert found.names == ("age (per 10 years)", "", "stage (per rank)")
    assert found.x[:, 1].tolist() == [0, 1, 0, 1]
    assert dict(found.dropped) == {"race: b vs a": "no record has a", "race: c vs a": "no record has a"}


def test_a_category_that_settles_the_outcome() -> None:
    """An infinite coefficient that takes all others with it, or records that are lost without a word."""
    frame = table(
        [10, 20, 30, 40, 50, 60],
        ["a", "a", "b", "b", "c", "c"],
        ["I", "II"] * 3,
        ["no", "yes", "yes", "no", "yes", "yes"],
    )
    found = design(frame, SCHEMA, MODEL)
    assert found.names == ("age (per 10 years)", "race: b vs a", "stage (per rank)")
    assert dict(found.dropped) == {"race: c vs a": "every one of its 2 records has died = yes"}
    assert (len(found.y), found.n_settled) == (4, 2)
    # a linear model has no such thing
    assert design(frame, SCHEMA, EffectsModel("linear", "age")).n_settled == 0


def test_a_cox_coefficient_is_infinite_without_events_only() -> None:
    """Records of a category in which everybody died: their times are informative."""
    schema = Schema(columns=(*SCHEMA.columns, Column(name="days", kind="integer", lower=0, upper=99)))
    frame = table([1, 2, 3, 4, 5, 6], ["a", "a", "b", "b", "c", "c"], ["I", "II"] * 3, ["no", "yes"] * 3)
    frame["days"] = [5, 6, 7, 8, 9, 10]
    frame.loc[2:3, "died"] = "no"
    frame.loc[4:5, "died"] = "yes"
    found = design(frame, schema, EffectsModel("cox", "died", ["race"], "days"))
    assert found.names == ("race: c vs a",) and found.n_settled == 2
    assert found.duration is not None and found.duration.tolist() == [5, 6, 9, 10]


def test_a_settled_reference() -> None:
    """A reference category without events, whose contrasts are infinite all the same."""
    found = design(
        table(
            [10, 20, 30, 40, 50], list("aabbc"), ["I", "II", "I", "II", "I"], ["no", "no", "yes", "no", "yes"]
        ),
        SCHEMA,
        EffectsModel("logistic", "died", ["age", "race"]),
    )
    assert dict(found.dropped) == {
        "race: b vs a": "of the reference a: every one of its 2 records has died = no",
        "race: c vs a": "its only record has died = yes",
    }
    assert found.names == ("age (years)",) and len(found.y) == 2


@pytest.mark.parametrize(
    ("frame", "problem"),
    [
        (table([1, None], ["a", "b"], ["I", "I"], [None, None]), "no record has a known outcome"),
        (table([1, None], [None, "b"], ["I", "I"], ["no", "yes"]), "no record has all values of the model"),
        (
            table([1, 2, 3, 4], ["a", "b", "a", "b"], ["I"] * 4, ["no", "yes", "no", "yes"]),
            "the outcome is perfectly separated: race tells it for every record",
        ),
    ],
)
def test_tables_without_a_design(frame, problem) -> None:
    """A table that leaves no record, whose reason is not said."""
    assert design(frame, SCHEMA, MODEL).problem == problem


def test_too_many_terms(monkeypatch) -> None:
    """A column of a thousand categories that takes all memory."""
    monkeypatch.setattr(one_fit, "MAX_TERMS", 2)
    found = design(
        table([1, 2, 3, 4], ["a", "b", "a", "b"], ["I", "II", "I", "I"], ["no", "yes", "yes", "no"]),
        SCHEMA,
        MODEL,
    )
    assert found.problem == "the model has 3 terms, and at most 2 are fitted"
    assert found.x.shape == (4, 0)


def test_other_columns_do_not_count() -> None:
    """A gap in a column that is no predictor must not cost a record."""
    frame = table([None, 2, 3, 4], ["a", "b", "a", "b"], ["I", "II", "I", "I"], ["no", "yes", "yes", "no"])
    found = design(frame, SCHEMA, EffectsModel("logistic", "died", ["race"]))
    assert found.n_incomplete == 0 and np.array_equal(found.x[:, 0], [0, 1, 0, 1])


def test_logarithms_of_predictors_and_outcome() -> None:
    """A design whose logarithms are not those of the terms, or a column that is flat as a logarithm only."""
    schema = Schema(
        columns=(
            Column(name="crp", kind="continuous", lower=0, upper=500, step=1),
            Column(name="urea", kind="continuous", lower=1, upper=300),
            Column(name="dose", kind="integer", lower=0, upper=9),
        )
    )
    raw = pd.DataFrame({"crp": [0, 2, 8], "urea": [1, 10, 100], "dose": [0, 1, 1]})
    frame = schema.conform(raw).frame
    model = EffectsModel.parse("log(urea) ~ log(crp) + log(dose)", schema)
    found = design(frame, schema, model)
    np.testing.assert_allclose(found.x, [[0], [1], [3]])
    np.testing.assert_allclose(found.y, np.log([1, 10, 100]))
    assert found.dropped == (("dose (per doubling)", "constant"),)
