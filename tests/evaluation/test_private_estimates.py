"""Private estimates beside the real fit: the comparison against a transcription, and what it leaves out."""

from __future__ import annotations

import json
import math

import numpy as np
import pandas as pd
import pytest
import regressions
import statsmodels.api as sm

from dpsynth.errors import InputError
from dpsynth.evaluation import evaluate
from dpsynth.evaluation.effects import as_fit, replication
from dpsynth.evaluation.effects import regressions_of as read
from dpsynth.evaluation.results import Evaluation, Findings
from dpsynth.evaluation.settings import Settings
from dpsynth.evaluation.tables import Tables
from dpsynth.studies.model import EffectsModel
from dpsynth.studies.study import Estimates
from dpsynth.table.schema import Column, Schema

SCHEMA = Schema(
    columns=(
        Column(name="age", kind="integer", lower=0, upper=100),
        Column(name="sex", kind="binary", categories=("F", "M")),
        Column(name="sbp", kind="continuous", lower=50, upper=250),
        Column(name="died", kind="binary", categories=("no", "yes")),
    ),
    outcome="died",
)
FORMULA = "logistic: died ~ age + sex"
TERMS = ("age", "sex: M vs F")
LEVEL = 0.9
Z = 1.6448536269514722  # of 90 %


def table(n: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    age, sex = rng.integers(20, 91, n), rng.integers(0, 2, n)
    died = rng.random(n) < 1 / (1 + np.exp(-0.05 * (age - 55) - 0.6 * sex))
    raw = {
        "age": age,
        "sex": np.array(["F", "M"])[sex],
        "sbp": 100 + 0.4 * age + rng.normal(0, 10, n),
        "died": np.where(died, "yes", "no"),
    }
    return SCHEMA.conform(pd.DataFrame(raw)).frame


def private(values, errors, terms=TERMS, formula=FORMULA, name="mortality") -> Estimates:
    kind = formula.partition(":")[0]
    outcome = formula.partition(":")[2].partition("~")[0].strip()
    return Estimates(
        name, kind, formula, outcome, tuple(terms), np.array(values), np.diag(np.square(errors)), 1.5
    )


def found(declared, effects=(FORMULA,), **options) -> Findings:
    tables = Tables.of(table(300, 1), train=table(400, 2), schema=SCHEMA, declared=declared)
    settings = Settings.of(effects=list(effects), level=LEVEL, **options)
    result = replication(tables, settings, np.random.default_rng(0))
    Evaluation(result.measures, {}, result.details).to_json()  # which refuses NaN and names given twice
    assert all(entry.internal for entry in result.measures)
    assert all(row["confidential"] for rows in result.details.values() for row in rows)
    return result


def values(result: Findings) -> dict[str, float | int | None]:
    return {measure.name: measure.value for measure in result.measures}


def test_the_comparison_is_that_of_the_definitions() -> None:
    """An overlap of odds ratios in place of logarithms, a sign of a ratio, a division by the wrong error."""
    age, sex = 0.06, -0.4
    result = found([private([age, sex], [0.004, 0.5])])
    data = regressions.told(result)
    assert data["study"] == "mortality" and [row["term"] for row in data["rows"]] == list(TERMS)
    overlaps, apart, held = [], [], []
    for row, value, error in zip(data["rows"], (age, sex), (0.004, 0.5), strict=True):
        low, real, high = (math.log(row["real"][key]) for key in ("lower", "estimate", "upper"))
        told = row["declared"]
        ends = (value - Z * error, value + Z * error)
        assert math.log(told["estimate"]) == pytest.approx(value)
        assert (math.log(told["lower"]), math.log(told["upper"])) == pytest.approx(ends)
        assert told["same_sign"] == (real * value > 0) and told["covered"] == (low <= value <= high)
        assert told["holds_real"] == (ends[0] <= real <= ends[1])
        shared = min(high, ends[1]) - max(low, ends[0])
        assert told["overlap"] == pytest.approx((shared / (high - low) + shared / (2 * Z * error)) / 2)
        assert told["standardised_difference"] == pytest.approx(abs(value - real) / ((high - low) / 2 / Z))
        overlaps.append(max(told["overlap"], 0.0))
        apart.append(told["standardised_difference"])
        held.append(told["holds_real"])
    measured = values(result)
    assert measured["declared_same_sign"] == 0.5 and measured["declared_overlap_mean"] == np.mean(overlaps)
    assert measured["declared_standardised_difference_median"] == pytest.approx(np.median(apart))
    assert measured["declared_holds_real"] == np.mean(held)
    assert all(
        "2 of 2 terms of the pre-specified regression mortality" in m.detail for m in result.measures[5:]
    )


def test_naive_numbers_stay_as_they_are() -> None:
    """A comparison of the synthetic table that changes because a study was declared."""
    plain, both = found([]), found([private([0.05, 0.6], [0.01, 0.3])])
    names = [name for name in values(both) if name.startswith("effects_")]
    assert list(values(plain)) == names and len(values(both)) == len(names) + 6
    assert {name: values(both)[name] for name in names} == values(plain)
    data = regressions.told(plain)
    assert data["study"] is None and data["rows"][0]["declared"] is None


def test_the_fit_itself_agrees_with_itself() -> None:
    """Estimates that are the real fit and are told apart from it, by term or by scale."""
    from statsmodels.discrete.discrete_model import Logit

    real = table(400, 2)
    x = np.column_stack([np.ones(400), real["age"].to_numpy(float), (real["sex"] == "M").to_numpy(float)])
    fit = Logit((real["died"] == "yes").to_numpy(float), x).fit(disp=0)
    order = [2, 1]  # terms are matched by name, not by place
    told = Estimates(
        "m", "logistic", FORMULA, "died", tuple(reversed(TERMS)), fit.params[order],
        fit.cov_params()[np.ix_(order, order)], 1.0,
    )  # fmt: skip
    measured = values(found([told]))
    assert [
        measured[f"declared_{name}"] for name in ("same_sign", "same_decision", "covered", "holds_real")
    ] == [
        1.0,
        1.0,
        1.0,
        1.0,
    ]
    assert measured["declared_overlap_mean"] == pytest.approx(1.0, abs=1e-5)
    assert measured["declared_standardised_difference_median"] == pytest.approx(0.0, abs=1e-5)


def test_p_values_and_intervals_are_those_of_the_estimates() -> None:
    """A t distribution, or a level that is not the evaluation's."""
    told = private([0.05, -0.6], [0.03, 0.2])
    fit = as_fit(told, 0.95)
    for effect in told.effects(0.95):
        coefficient = fit.coefficients[effect["term"]]
        assert math.exp(coefficient.lower) == pytest.approx(effect["lower"])
        assert math.exp(coefficient.upper) == pytest.approx(effect["upper"])
        assert coefficient.p_value == pytest.approx(effect["p_value"])


def test_a_linear_study_is_on_the_scale_of_its_outcome() -> None:
    """A difference that is exponentiated."""
    formula = "linear: sbp ~ age"
    told = private([0.4], [0.05], ("age",), formula)
    (row,) = regressions.told(found([told], (formula,)))["rows"]
    assert row["declared"]["estimate"] == pytest.approx(0.4)
    assert row["declared"]["lower"] == pytest.approx(0.4 - Z * 0.05)


def test_studies_are_matched_by_their_formula() -> None:
    """Estimates beside another regression, or beside the second study under the first one's names."""
    told = private([0.05, 0.6], [0.01, 0.3])
    result = found([told], ("linear: sbp ~ age", FORMULA))
    assert [row["study"] for row in result.details["regressions"]] == [None, "mortality"]
    assert "declared_covered[2]" in values(result) and "declared_covered" not in values(result)


def test_other_increments_are_not_compared_in_silence() -> None:
    """An odds ratio of ten years beside that of one; of two studies of one formula the wrong one."""
    decades = private([0.5, 0.6], [0.1, 0.3], ("age (per 10)", TERMS[1]), name="decades")
    result = found([decades])
    rows = regressions.told(result)["rows"]
    assert rows[0]["declared"] is None and rows[1]["declared"] is not None
    assert "no such terms: age (per 10) (pre-specified in decades" in regressions.told(result)["note"]
    assert "over 1 of 2 terms" in result.measures[-1].detail
    model = EffectsModel("logistic", "died", ["age", "sex"], units={"age": 10})
    rows = regressions.told(found([private([0.05, 0.6], [0.01, 0.3]), decades], (model,)))["rows"]
    assert [row["term"] for row in rows] == list(decades.terms)
    assert math.log(rows[0]["declared"]["estimate"]) == pytest.approx(0.5)


def test_a_term_that_real_records_do_not_tell() -> None:
    """A traceback, or a comparison with nothing, where one sex does not occur."""
    women = table(300, 3).assign(sex="F")
    tables = Tables.of(
        table(300, 1), train=SCHEMA.conform(women).frame, schema=SCHEMA,
        declared=[private([0.05, 0.6], [0.01, 0.3])],
    )  # fmt: skip
    result = replication(tables, Settings.of(effects=[FORMULA]), np.random.default_rng(0))
    row = regressions.told(result)["rows"][1]
    assert row["real"] is None and row["declared"]["estimate"] == pytest.approx(math.exp(0.6))
    assert row["declared"]["same_sign"] is None and row["declared"]["holds_real"] is None
    assert json.dumps(result.details, allow_nan=False)


def test_declared_studies_are_replicated_by_default() -> None:
    """Estimates that were paid for and compared with nothing, because the usual study is another one."""
    told = [private([0.05, 0.6], [0.01, 0.3]), private([0.4], [0.05], ("age",), "linear: sbp ~ age", "bp")]
    made, real = table(60, 1), table(60, 2)
    result = evaluate(made, train=real, schema=SCHEMA, declared=told, seed=0)
    assert result.settings["effects"] == [FORMULA, "linear: sbp ~ age"]
    assert result["declared_covered"].internal and "declared_covered[2]" in result
    asked = evaluate(made, train=real, schema=SCHEMA, declared=told, effects=["linear: age ~ sex"], seed=0)
    assert asked.settings["effects"] == ["linear: age ~ sex"] and "declared_covered" not in asked


def test_a_subgroup_is_compared_with_itself() -> None:
    """Catches an effect in a subgroup beside that in all records, or a share that ends an evaluation."""
    women = "logistic: died ~ age where sex == 'F'"
    told = [
        private([0.05], [0.01], ("age",), women, "women"),
        private([0.05], [0.01], ("age",), "logistic: died ~ age", "everybody"),
        Estimates("share", "share", "logistic: died ~ 1", "died", ("died: yes",), *np.ones((2, 1, 1)), 1.0),
    ]
    real, made = table(400, 2), table(300, 1)
    result = evaluate(made, train=real, schema=SCHEMA, declared=told, seed=0)
    first, second = read(result)
    assert (first.study, first.formula, first.n_real) == ("women", women, (real["sex"] == "F").sum())
    assert (second.study, second.n_real, second.n_synthetic) == ("everybody", 400, 300)
    own = real[real["sex"] == "F"]
    fit = sm.Logit((own["died"] == "yes") * 1.0, sm.add_constant(own["age"].astype(float))).fit(disp=False)
    assert math.log(first.terms["age"]["real"].estimate) == pytest.approx(fit.params.iloc[1], rel=1e-4)
    for share in ("died ~ 1", EffectsModel("logistic", "died", ())):
        with pytest.raises(InputError, match="effects 'logistic: died ~ 1': name predictors"):
            evaluate(made, train=real, schema=SCHEMA, effects=[share], seed=0)
