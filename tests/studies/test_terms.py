"""The terms of a regression and their values."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from patsy import dmatrix

from dpsynth.studies.model import EffectsModel, default_increment, model_terms, term_values
from dpsynth.studies.study import Study
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


def test_terms_come_from_the_schema() -> None:
    """Terms in another order, or a reference other than the first declared category."""
    assert [term.name for term in model_terms(SCHEMA, MODEL)] == [
        "age (per 10 years)",
        "race: b vs a",
        "race: c vs a",
        "stage (per rank)",
    ]


def test_default_increment() -> None:
    """Coefficients per platelet, or per one unit of a column that spans a tenth of it."""
    for lower, upper, kind, expected in [
        (18, 110, "integer", 1.0),
        (0, 1, "integer", 1.0),
        (6.8, 7.8, "continuous", 0.1),
        (0, 200, "continuous", 10.0),
        (10_000, 1_000_000, "continuous", 10_000.0),
        (0, 0.001, "continuous", 0.0001),
    ]:
        assert default_increment(Column(name="x", kind=kind, lower=lower, upper=upper)) == pytest.approx(
            expected
        )


def test_the_name_says_the_increment() -> None:
    """A coefficient per ten that reads like one per unit."""
    schema = Schema(
        columns=(
            Column(name="wbc", kind="continuous", lower=0, upper=200, unit="1000/mm3"),
            Column(name="ph", kind="continuous", lower=6.8, upper=7.8),
            Column(name="sbp", kind="integer", lower=50, upper=250, unit="mmHg"),
            Column(name="n", kind="integer", lower=0, upper=9),
        )
    )
    names = [term.name for term in model_terms(schema, EffectsModel("linear", "n", units={"sbp": 20}))]
    assert names == ["wbc (per 10 × 1000/mm3)", "ph (per 0.1)", "sbp (per 20 mmHg)"]


LABS = Schema(
    columns=(
        Column(name="creatinine", kind="continuous", lower=0.5, upper=20, unit="mg/dL", missing=True),
        Column(name="crp", kind="continuous", lower=0.1, upper=500, decimals=1),
        Column(name="visits", kind="integer", lower=0, upper=50),
        Column(name="race", kind="categorical", categories=("a", "b", "c"), missing=True),
        Column(name="stage", kind="ordinal", categories=("I", "II", "III")),
        Column(name="sbp", kind="integer", lower=50, upper=250, unit="mmHg"),
    )
)
LAB_MODEL = EffectsModel(
    "linear", "sbp", logs={"creatinine": "log", "crp": "log"}, units={"crp": 10.0, "visits": 5.0}
)


def labs(n: int = 40) -> pd.DataFrame:
    rng = np.random.default_rng(7)
    raw = {
        "creatinine": np.exp(rng.normal(0.3, 0.5, n)).clip(0.5, 20),
        "crp": rng.exponential(30, n).round(1),
        "visits": rng.integers(0, 51, n),
        "race": rng.choice(["a", "b", "c"], n),
        "stage": rng.choice(["I", "II", "III"], n),
        "sbp": rng.integers(50, 251, n),
    }
    return LABS.conform(pd.DataFrame(raw)).frame


def test_values_are_those_of_another_program() -> None:
    """A base, a fold, a unit, a rank or a reference that differs from the textbook's (patsy's formulas)."""
    frame = labs().astype({"race": object, "stage": object})
    expected = dmatrix(
        "I(np.log2(creatinine)) + I(np.log10(np.maximum(crp, 0.1))) + I(visits / 5) + C(race) + rank",
        frame.assign(rank=frame["stage"].map({"I": 0, "II": 1, "III": 2})),
        return_type="dataframe",
    ).drop(columns="Intercept")
    order = [*expected.filter(like="np.log"), "I(visits / 5)", *expected.filter(like="C(race)"), "rank"]
    found = term_values(LABS, model_terms(LABS, LAB_MODEL), frame)
    np.testing.assert_allclose(found, expected[order].to_numpy(), rtol=1e-13, atol=1e-13)


def test_names_of_logarithms() -> None:
    """A coefficient per tenfold that reads like one per doubling, or per milligram."""
    assert [term.name for term in model_terms(LABS, LAB_MODEL)] == [
        "creatinine (per doubling)",
        "crp (per 10-fold)",
        "visits (per 5)",
        "race: b vs a",
        "race: c vs a",
        "stage (per rank)",
    ]


def test_a_logarithm_of_one_more_has_a_value_at_zero() -> None:
    """A count of 0 that counts as 1, or a coefficient of 1 + x that reads like one of x."""
    frame = pd.DataFrame({"crp": [0.0, 0.5, np.nan], "visits": [0, 3, 1]})
    model = EffectsModel(
        "linear", "sbp", ("crp", "visits"), logs={"crp": "log1p", "visits": "log1p"}, units={"crp": 10.0}
    )
    terms = model_terms(LABS, model)
    assert [term.name for term in terms] == ["1 + crp (per 10-fold)", "1 + visits (per doubling)"]
    found = term_values(LABS, terms, frame)
    np.testing.assert_allclose(found, [[0, 0], [np.log10(1.5), 2], [np.nan, 1]], atol=1e-15)


def test_a_scale_with_zeros_is_the_logarithm_of_one_more() -> None:
    """Catches seven in ten counts of 0 that enter as 1: minus infinity, or a floor that nobody is told of."""
    schema = Schema(
        columns=(
            Column(name="nodes", kind="integer", lower=0, upper=50, scale="log"),
            Column(name="died", kind="binary", categories=(0, 1)),
        )
    )
    model = Study(model="died ~ nodes").effects(schema)
    assert model.formula(schema) == "logistic: died ~ log1p(nodes)"
    (term,) = model_terms(schema, model)
    assert term.name == "1 + nodes (per doubling)"
    found = term_values(schema, (term,), pd.DataFrame({"nodes": [0, 1, 3]}))
    np.testing.assert_allclose(found[:, 0], [0, 1, 2], atol=1e-15)


def test_missing_values_stay_missing() -> None:
    """A missing category that counts as the reference, or a missing number that becomes the smallest one."""
    frame = labs(3)
    frame.loc[0, ["creatinine", "race"]] = None
    found = term_values(LABS, model_terms(LABS, LAB_MODEL), frame)
    assert np.isnan(found[0]).tolist() == [True, False, False, True, True, False]
    assert not np.isnan(found[1:]).any()
    assert term_values(LABS, (), frame).shape == (3, 0)
