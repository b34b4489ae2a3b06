"""Synthetic against real training records on the same test records, and odd tables of every kind."""

from __future__ import annotations

import itertools
import json
import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from compared import conformed
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import brier_score_loss, roc_auc_score

from dpsynth.errors import InputError
from dpsynth.evaluation.models import CLASSIFIERS, Model, learn_and_predict
from dpsynth.evaluation.prediction import utility
from dpsynth.evaluation.results import Evaluation, Findings, Measure
from dpsynth.evaluation.scores import SCORES
from dpsynth.evaluation.settings import Settings
from dpsynth.evaluation.tables import ClassifierEncoding, random_rows, silent
from dpsynth.report.verdicts.rules import judge
from dpsynth.table.schema import Column, Schema

SCHEMA = Schema(
    columns=(
        Column(name="age", kind="integer", lower=0, upper=100, missing=True),
        Column(name="crea", kind="continuous", lower=0, upper=9, missing=True, unit="mg/dl"),
        Column(name="stage", kind="ordinal", categories=(1, 2, 3), missing=True),
        Column(name="died", kind="binary", categories=("no", "yes"), missing=True),
    ),
    outcome="died",
)
QUICK = {"linear": Model(lambda seed: LogisticRegression())}
QUICK_NUMERIC = {"linear": Model(lambda seed: LinearRegression())}


def table(n: int, seed: int, flip: float = 0.0) -> pd.DataFrame:
    """Records whose columns tell each other; with probability ``flip`` the age tells nothing."""
    rng = np.random.default_rng(seed)
    age = rng.integers(0, 101, n)
    told = np.where(rng.random(n) < flip, rng.integers(0, 101, n), age)
    died = np.where(rng.random(n) < 1 / (1 + np.exp(-(told - 50) / 12)), "yes", "no")
    crea = np.clip(told / 20 + rng.normal(size=n) / 2, 0, 9)
    raw = pd.DataFrame({"age": age, "crea": crea, "stage": 1 + told // 34, "died": died})
    return SCHEMA.conform(raw).frame


def found(
    synthetic: pd.DataFrame,
    train: pd.DataFrame,
    test: pd.DataFrame | None,
    outcome: str = "died",
    *,
    schema: Schema = SCHEMA,
    **options: Any,
) -> dict[str, Measure]:
    quick = QUICK_NUMERIC if schema.column(outcome).is_numeric else QUICK
    rng = options.pop("rng", np.random.default_rng(0))
    progress = options.pop("progress", silent)
    settings = Settings.of(**({"models": quick, "outcome": outcome} | options))
    findings = utility(conformed(synthetic, train, test, schema), settings, rng, progress)
    check(findings)
    return {measure.name: measure for measure in findings.measures}


def check(findings: Findings) -> None:
    """What holds of all findings: unique names, JSON, plain numbers, intervals around values, reasons."""
    evaluation = Evaluation(findings.measures, {}, findings.details)
    assert Evaluation.from_dict(json.loads(evaluation.to_json())) == evaluation
    for measure in findings.measures:
        assert type(measure.value) in (float, int, type(None))
        assert measure.internal == (not measure.name.split("[")[0].endswith("_synthetic"))
        if measure.value is None:
            assert "; " in measure.detail or ": " in measure.detail, measure
        if measure.lower is not None and measure.upper is not None:
            assert measure.value is not None and math.isfinite(measure.lower)
            assert measure.lower <= measure.value + 1e-9 and measure.value <= measure.upper + 1e-9
    for entry in (entry for rows in findings.details.values() for row in rows for entry in row.values()):
        assert type(entry) in (str, int, float, bool, type(None))
        assert type(entry) is not float or math.isfinite(entry)
    assert all(row["confidential"] for rows in findings.details.values() for row in rows)


@pytest.fixture(scope="module")
def three() -> Findings:
    tables = conformed(table(300, 0), table(300, 1), table(250, 2), SCHEMA)
    findings = utility(tables, Settings(), np.random.default_rng(5))
    check(findings)
    return findings


def test_measures_of_three_classifiers(three: Findings) -> None:
    """Would catch a measure that the report expects and does not find."""
    names = {measure.name for measure in three.measures}
    models = ("mean", "logistic_regression", "hist_gradient_boosting", "random_forest")
    expected = {
        f"{score}{part}_{model}"
        for score in SCORES["binary"]
        for part in ("", "_real", "_difference")
        for model in models
    }
    assert expected <= names
    assert names - expected == {
        "positive_rate_synthetic", "positive_rate_train", "positive_rate_test",
        "outcome_constant_synthetic", "mode_collapse",
    }  # fmt: skip
    assert {measure.group for measure in three.measures} == {"Utility: predicting died"}
    assert all(m.lower is not None for m in three.measures if m.name in expected)


def _auc(train: pd.DataFrame, test: pd.DataFrame, rng: np.random.Generator) -> dict[str, float]:
    """AUC of our three classifiers, each score by scikit-learn."""
    learned = learn_and_predict(train, test, SCHEMA, "died", models=CLASSIFIERS, rng=rng)
    positive = test["died"] == "yes"
    return {
        name: float(roc_auc_score(positive, prediction.predicted[:, 1]))
        for name, prediction in learned.predictions.items()
    }


def test_auc_is_that_of_the_models_trained_alone(three: Findings) -> None:
    """Would catch numbers of a seed that differ from those of earlier versions."""
    rng = np.random.default_rng(5)
    value = {measure.name: measure.value for measure in three.measures}
    for part, train in (("", table(300, 0)), ("_real", table(300, 1))):
        expected = _auc(train, table(250, 2), rng)
        for name, auc in expected.items():
            assert value[f"auc{part}_{name}"] == pytest.approx(auc, abs=1e-12)
        assert value[f"auc{part}_mean"] == pytest.approx(np.mean(list(expected.values())), abs=1e-12)


@pytest.mark.slow
def test_auc_when_training_tables_are_thinned() -> None:
    """Would catch parts drawn in another order, of the test records first, or a limit that is ignored."""
    made, real, test = table(90, 3), table(80, 4), table(60, 5)
    measured = found(made, real, test, models=None, records=40, rng=np.random.default_rng(8))
    rng = np.random.default_rng(8)
    tested = test.iloc[random_rows(len(test), 40, rng)]
    for part, train in (("", made), ("_real", real)):
        expected = _auc(train.iloc[random_rows(len(train), 40, rng)], tested, rng)
        mean = np.mean(list(expected.values()))
        assert measured[f"auc{part}_mean"].value == pytest.approx(mean, abs=1e-12)


def test_scores_by_hand() -> None:
    """Would catch the two trainings exchanged, a difference reversed, or scores of other records."""
    made, real, test = table(200, 6, flip=0.6), table(200, 7), table(150, 8)
    measured = found(made, real, test)
    y = (test["died"] == "yes").to_numpy()
    values = {}
    for part, train in (("", made), ("_real", real)):
        encoding = ClassifierEncoding.fit(train, SCHEMA, "died")
        x, x_test = (encoding.transform(frame, impute=True) for frame in (train, test))
        p = LogisticRegression().fit(x, train["died"] == "yes").predict_proba(x_test)[:, 1]
        values[f"auc{part}"] = roc_auc_score(y, p)
        values[f"brier{part}"] = brier_score_loss(y, p)
    for name, value in values.items():
        assert measured[f"{name}_linear"].value == pytest.approx(value, abs=1e-9)
        assert measured[f"{name}_mean"].value == pytest.approx(value, abs=1e-9)
    for score in ("auc", "brier"):
        gap = values[score] - values[f"{score}_real"]
        assert measured[f"{score}_difference_linear"].value == pytest.approx(gap, abs=1e-9)


def test_difference_is_paired_and_zero_for_the_same_table() -> None:
    """Would catch trainings scored on different resamples: equal models would then differ by chance."""
    train = table(200, 9)
    measured = found(train, train, table(100, 10))
    for score in SCORES["binary"]:
        difference = measured[f"{score}_difference_mean"]
        assert (difference.value, difference.lower, difference.upper) == (0.0, 0.0, 0.0)
        assert "the same in every resample" in difference.detail
        assert measured[f"{score}_mean"].lower < measured[f"{score}_mean"].upper
        assert "resample" not in measured[f"{score}_mean"].detail


def test_useless_table_is_seen() -> None:
    """Would catch a table of independent columns that passes as useful."""
    made = table(400, 11)
    made["died"] = made["died"].sample(frac=1.0, random_state=0).to_numpy()
    measured = found(made, table(400, 12), table(400, 13))
    # not the AUC: where columns tell each other, chance may find the right direction, with tiny coefficients
    gap = measured["brier_difference_mean"]
    assert gap.lower is not None and gap.lower > 0.05
    assert measured["calibration_slope_mean"].lower > 2


def test_level_and_resamples_reach_the_intervals() -> None:
    """Would catch a level that is ignored, in the scores or in the rates."""
    tables = table(100, 14, flip=0.8), table(100, 15), table(100, 16)
    wide, narrow = found(*tables, level=0.99), found(*tables, level=0.5)
    for name in ("auc_mean", "auc_difference_mean", "positive_rate_test", "calibration_slope_real_linear"):
        assert wide[name].lower < narrow[name].lower < narrow[name].upper < wide[name].upper


def test_curves(three: Findings) -> None:
    """Would catch curves of the wrong training, without their AUC, or too long to draw."""
    value = {measure.name: measure.value for measure in three.measures}
    known = {(table, model) for table in ("synthetic", "train") for model in CLASSIFIERS}
    frames = {name: pd.DataFrame(rows) for name, rows in three.details.items()}
    assert set(frames) == {"roc", "calibration"}
    for name, frame in frames.items():
        curves = dict(iter(frame.groupby(["trained_on", "model"])))
        assert set(curves) == known
        for (table, model), curve in curves.items():
            part = "" if table == "synthetic" else "_real"
            if name == "roc":
                assert set(curve["auc"]) == {value[f"auc{part}_{model}"]} and len(curve) <= 200
            else:
                assert len(curve) <= 10 and curve["count"].sum() == 250


@pytest.mark.parametrize(
    ("outcome", "kind"), [("stage", "categories"), ("age", "numeric"), ("crea", "numeric")]
)
def test_other_outcomes(outcome: str, kind: str) -> None:
    """Would catch a numeric or multi-class outcome without its scores, or with curves of two classes."""
    measured = found(table(150, 17), table(150, 18), table(120, 19), outcome)
    for score, part in itertools.product(SCORES[kind], ("", "_real", "_difference")):  # type: ignore[index]
        measure = measured[f"{score}{part}_mean"]
        assert measure.value is not None and measure.lower is not None, measure
    if kind == "numeric":
        assert measured["r2_mean"].value > 0.5 and "positive_rate_train" not in measured
        assert ("(mg/dl)" in measured["rmse_mean"].detail) == (outcome == "crea")
        assert "(mg/dl)" not in measured["r2_mean"].detail
    else:
        assert measured["auc_mean"].value > 0.8


def test_without_test_records_only_rates() -> None:
    """Would catch utility measured on training records."""
    assert set(found(table(20, 0), table(20, 1), None)) == {
        "positive_rate_synthetic", "outcome_constant_synthetic", "positive_rate_train", "mode_collapse",
    }  # fmt: skip


def test_without_reference() -> None:
    """Would catch training on real records that nobody asked for."""
    names = set(found(table(50, 0), table(50, 1), table(50, 2), reference=False))
    assert "auc_mean" in names and not any("_real_" in n or "_difference_" in n for n in names)


def test_released_numbers_do_not_depend_on_real_records() -> None:
    """Would catch a public number computed with the real tables."""
    made = table(60, 20)
    public = [
        [m for m in found(made, table(n, n), table(n, n + 1)).values() if not m.internal] for n in (20, 90)
    ]
    assert public[0] == public[1] and len(public[0]) == 2


def test_failing_model_is_named_and_the_others_are_scored() -> None:
    """Would catch a model's failure that ends the evaluation, or a mean that hides it."""

    class Broken(DummyClassifier):
        def fit(self, x: Any, y: Any, sample_weight: Any = None) -> Any:
            raise RuntimeError("out of memory")

    models = {"broken": Model(lambda seed: Broken()), **QUICK}
    measured = found(table(60, 24), table(60, 25), table(60, 26), models=models)
    assert measured["auc_broken"].value is None and "out of memory" in measured["auc_broken"].detail
    assert measured["auc_linear"].value is not None
    assert measured["auc_mean"].value is None and "broken: the model failed" in measured["auc_mean"].detail
    assert measured["auc_difference_mean"].value is None


def test_progress_rises_to_one() -> None:
    """Would catch a progress bar that stops early or runs back."""
    models = dict.fromkeys("abc", QUICK["linear"])
    for n in (60, 4):
        done: list[float] = []
        found(table(60, 27), table(60, 28), table(n, 29), models=models, progress=done.append)
        assert done == sorted(done) and done[-1] == pytest.approx(1.0) and max(done) <= 1.0
        assert len(done) >= 7


def test_same_generator_gives_the_same_findings() -> None:
    """Would catch randomness from elsewhere."""
    tables = table(60, 30), table(60, 31), table(60, 32)
    options: dict[str, Any] = {
        "models": {"forest": Model(lambda seed: RandomForestClassifier(20, random_state=seed))}
    }
    first = found(*tables, **options)
    assert found(*tables, **options) == first
    other = found(*tables, **options, rng=np.random.default_rng(1))
    assert other["auc_mean"].value != first["auc_mean"].value
    fixed = [found(*tables, rng=np.random.default_rng(seed))["auc_mean"] for seed in (0, 1)]
    assert fixed[0].value == fixed[1].value and fixed[0].lower != fixed[1].lower


NOTHING: dict[str, Callable[[pd.DataFrame], pd.DataFrame]] = {
    "as it is": lambda frame: frame,
    "one outcome": lambda frame: frame.assign(died="no", stage=2, age=40, crea=1.0),
    "no outcome": lambda frame: (
        SCHEMA.conform(frame.astype(object).assign(died=None, stage=None, age=None, crea=None)).frame
    ),
    "two rows": lambda frame: frame.iloc[:2],
    "no predictor": lambda frame: (
        SCHEMA.conform(frame.astype(object).assign(**{c: None for c in ("age", "crea", "stage")})).frame
    ),
    "constant predictors": lambda frame: frame.assign(age=50, crea=2.0, stage=1),
}


@pytest.mark.parametrize("outcome", ["died", "stage", "crea"])
@pytest.mark.parametrize("which", range(3))
@pytest.mark.parametrize("change", NOTHING)
def test_odd_tables_of_twenty_rows(change: str, which: int, outcome: str) -> None:
    """Would catch a traceback, a warning or NaN for any table that teaches or tests nothing."""
    frames = [table(20, 33 + k) for k in range(3)]
    frames[which] = NOTHING[change](frames[which])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        measured = found(*frames, outcome)
    first = next(iter(SCORES["numeric" if outcome == "crea" else "binary"]))
    value = measured[f"{first}_mean"].value
    if change == "no outcome" and which == 0:
        assert value is None and "no training record has a known" in measured[f"{first}_mean"].detail
        assert measured[f"{first}_real_mean"].value is not None
    elif change == "no outcome" and which == 2:
        assert value is None and "no test record has a known" in measured[f"{first}_mean"].detail
    elif change == "one outcome" and which == 2:
        assert value is None and "every test record has the same" in measured[f"{first}_mean"].detail
    elif change == "one outcome" and which == 0 and outcome != "crea":
        assert value == 0.5 and "nothing to learn" in measured["auc_mean"].detail
        assert "nothing to learn" in measured["auc_difference_mean"].detail
        assert "nothing to learn" not in measured["auc_real_mean"].detail
        assert measured["outcome_constant_synthetic"].value == 1


@pytest.mark.slow
def test_three_models_on_tiny_tables() -> None:
    """Would catch our own models failing where there are 2 records, or an interval from them."""
    for outcome in ("died", "stage", "crea"):
        small = table(20, 40).iloc[:2].assign(died=["no", "yes"], stage=[1, 3], crea=[1.0, 2.0])
        measured = found(small, small, table(20, 41).iloc[:2], outcome, models=None)
        assert not any("failed" in measure.detail for measure in measured.values())
        scores = [m for m in measured.values() if "train on" in m.detail]
        assert scores and all(m.lower is None for m in scores)
        assert any("too few test records for an interval" in m.detail for m in scores)


def test_category_that_only_the_test_records_have() -> None:
    """Would catch a traceback or an infinite score for a category never seen in training."""
    made = table(80, 42)
    made = made[made["stage"] != 2]
    measured = found(made, made, table(60, 43), "stage")
    assert all(measured[f"{score}_mean"].value is not None for score in SCORES["categories"])
    assert "outcome_rate_synthetic[2]" in measured and measured["outcome_rate_synthetic[2]"].value == 0


def test_collapse_is_reported() -> None:
    """Would catch a generator that lost an outcome and gets no warning."""
    made = table(200, 44).assign(died="no")
    measured = found(made, table(200, 45), table(100, 46))
    assert measured["mode_collapse"].value == 1 and "died = 'yes'" in measured["mode_collapse"].detail
    assert measured["average_precision_mean"].value == pytest.approx(measured["positive_rate_test"].value)
    assert measured["calibration_slope_mean"].value is None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"schema": SCHEMA.select(["died"])}, "outcome 'died' is the only column"),
        ({"level": float("nan")}, "level must be a finite number, got nan"),
        ({"models": {"x": LinearRegression()}}, "models.x"),
    ],
)
def test_bad_arguments_are_named(change: dict[str, Any], message: str) -> None:
    """Would catch an argument that is refused only after training, or without its name."""
    frame = table(20, 47)
    with pytest.raises(InputError, match=message):
        found(frame, frame, frame, **change)


def test_a_column_that_gives_the_outcome_away_is_told_to_the_owner() -> None:
    """A score of 1.0 that is taken for utility, or an AUC of real records that is released."""
    schema = Schema(
        columns=(*SCHEMA.columns, Column(name="to", kind="binary", categories=("home", "morgue"))),
        outcome="died",
    )
    train = table(300, 1)
    train["to"] = np.where(train["died"] == "yes", "morgue", "home")
    measures = found(train.sample(frac=1, random_state=0), train, None, schema=schema)
    (leak,) = [measure for name, measure in measures.items() if name.startswith("outcome_auc")]
    assert leak.name == "outcome_auc[to]" and leak.value == 1.0 and leak.internal
    (said,) = [v for v in judge(Evaluation(tuple(measures.values()))) if v.code == "given_away"]
    assert "to (AUC 1.00)" in said.sentence and said.internal and said.severity == "caution"
