"""Study replication end to end: real studies, and tables of every unfortunate kind."""

from __future__ import annotations

import csv
import json
import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from compared import conformed
from regressions import told

from dpsynth.checks import Counted
from dpsynth.errors import InputError
from dpsynth.evaluation.effects import CAUTION, replicate, replication
from dpsynth.evaluation.results import Evaluation, Findings
from dpsynth.evaluation.settings import Settings
from dpsynth.studies.model import EffectsModel
from dpsynth.table.schema import Column, Schema

NAMES = [
    "effects_same_sign",
    "effects_same_decision",
    "effects_covered",
    "effects_overlap_mean",
    "effects_standardised_difference_median",
]
SCHEMA = Schema(
    columns=(
        Column(name="age", kind="integer", lower=0, upper=100, unit="years", missing=True),
        Column(name="race", kind="categorical", categories=("a", "b", "c"), missing=True),
        Column(name="stage", kind="ordinal", categories=("I", "II", "III")),
        Column(name="sbp", kind="continuous", lower=50, upper=250),
        Column(name="days", kind="integer", lower=0, upper=5000),
        Column(name="died", kind="binary", categories=("no", "yes")),
    )
)
MODELS = [
    EffectsModel("logistic", "died", ["age", "race", "stage", "sbp"]),
    EffectsModel("linear", "sbp", ["age", "race", "stage"]),
    EffectsModel("cox", "died", ["age", "race", "stage", "sbp"], "days"),
]


def table(n: int, seed: int, effect: float = 0.06) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    age, race, stage = rng.integers(20, 91, n), rng.integers(0, 3, n), rng.integers(0, 3, n)
    score = effect * (age - 55) + 0.5 * (race == 2) + 0.3 * stage
    raw = {
        "age": np.where(rng.random(n) < 0.05, np.nan, age),
        "race": np.array(["a", "b", "c"])[race],
        "stage": np.array(["I", "II", "III"])[stage],
        "sbp": 120 + 3 * score + rng.normal(0, 10, n),
        "days": rng.exponential(1000 * np.exp(-score)).astype(int),
        "died": np.where(rng.random(n) < 1 / (1 + np.exp(-score)), "yes", "no"),
    }
    return SCHEMA.conform(pd.DataFrame(raw)).frame


def found(synthetic: pd.DataFrame, real: pd.DataFrame, model: EffectsModel, **options) -> Findings:
    schema = options.pop("schema", SCHEMA)
    settings = Settings.of(effects=[model], **options)
    result = replication(conformed(synthetic, real, None, schema), settings, np.random.default_rng(0))
    # JSON refuses NaN and scalars of numpy, and a record refuses a name given twice
    Evaluation(result.measures, {}, result.details).to_json()
    assert [measure.name for measure in result.measures] == NAMES
    assert all(entry.internal for entry in result.measures)
    assert all(row["confidential"] for rows in result.details.values() for row in rows)
    return result


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.kind)
def test_a_table_replicates_itself(model: EffectsModel) -> None:
    """A comparison that finds a difference where there is none."""
    real = table(300, 0)
    values = [measure.value for measure in found(real, real, model).measures]
    assert values == [1.0, 1.0, 1.0, pytest.approx(1.0), 0.0]


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.kind)
def test_measures_are_those_of_the_rows(model: EffectsModel) -> None:
    """A share over other rows than those shown, or an overlap of ratios in place of logarithms."""
    result = found(table(200, 1), table(400, 2), model)
    data = told(result)
    values = {measure.name: measure.value for measure in result.measures}
    rows = data["rows"]
    assert [row["term"] for row in rows][:3] == ["age (years)", "race: b vs a", "race: c vs a"]
    log = np.log if data["measure"] != "difference" else np.asarray
    overlaps = []
    for row in rows:
        low_r, r, high_r = (log(row["real"][key]) for key in ("lower", "estimate", "upper"))
        low_s, s, high_s = (log(row["synthetic"][key]) for key in ("lower", "estimate", "upper"))
        shared = min(high_r, high_s) - max(low_r, low_s)
        overlaps.append((shared / (high_r - low_r) + shared / (high_s - low_s)) / 2)
        assert row["overlap"] == pytest.approx(overlaps[-1])
        assert row["same_sign"] == (r * s > 0) and row["covered"] == (low_r <= s <= high_r)
        assert 0 <= row["real"]["p_value"] <= 1
    assert values["effects_overlap_mean"] == pytest.approx(np.clip(overlaps, 0, None).mean())
    assert values["effects_same_sign"] == np.mean([row["same_sign"] for row in rows])
    assert values["effects_standardised_difference_median"] == pytest.approx(
        np.median([row["standardised_difference"] for row in rows])
    )
    assert data["n_real"] < 400 and data["note"].endswith(Counted.RECORDS.fill(CAUTION))
    assert f"{400 - data['n_real']} of 400 real records" in data["note"]


def test_an_effect_that_is_lost_is_seen() -> None:
    """A score that is good for a table of independent columns."""
    real, other = table(2000, 3), table(2000, 4)
    rng = np.random.default_rng(0)
    shuffled = other.apply(lambda column: column.sample(frac=1, random_state=rng).to_numpy())
    model = MODELS[0]
    kept = {measure.name: measure.value for measure in found(other, real, model).measures}
    lost = {measure.name: measure.value for measure in found(shuffled, real, model).measures}
    assert kept["effects_overlap_mean"] > 0.6 > 0.5 > lost["effects_overlap_mean"]
    assert kept["effects_standardised_difference_median"] < lost["effects_standardised_difference_median"]
    rows = told(found(shuffled, real, model))["rows"]
    assert rows[0]["overlap"] < 0 and rows[0]["standardised_difference"] > 5
    # the rows say how far apart the intervals lie, the mean how much they share
    shared = np.clip([row["overlap"] for row in rows], 0, None)
    assert lost["effects_overlap_mean"] == pytest.approx(shared.mean())


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.kind)
def test_few_records(model: EffectsModel) -> None:
    """A traceback or a warning for a table from which little or nothing can be told."""
    for n in (0, 1, 2, 3, 5, 8, 20):
        result = found(table(n, 5), table(60, 6), model)
        if n <= 5:
            assert all(measure.value is None for measure in result.measures)
            assert "synthetic: " in result.measures[0].detail
            assert "No estimate from the synthetic records" in told(result)["note"]
        assert told(found(table(60, 6), table(n, 5), model))["n_synthetic"] > 0


def changed(**columns) -> pd.DataFrame:
    return table(200, 7).assign(**columns)


MISSING = pd.array([pd.NA] * 200, dtype="Int64")


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.kind)
@pytest.mark.parametrize(
    ("synthetic", "note"),
    [
        (changed(race="a"), "Left out in the synthetic records: race: b vs a, race: c vs a (the category"),
        (changed(race="b"), "Left out in the synthetic records: race: b vs a (no record has a); race: c vs"),
        (changed(stage="II"), "Left out in the synthetic records: stage (per rank) (constant)."),
        (changed(age=MISSING), "Left out in the synthetic records: age (years) (no value is present)."),
        (changed(age=MISSING, race=None, stage="I", sbp=100.0), "No estimate from the synthetic records"),
    ],
)
def test_what_one_table_lacks(model: EffectsModel, synthetic: pd.DataFrame, note: str) -> None:
    """A column without variation that takes the whole study with it, or goes unmentioned."""
    result = found(SCHEMA.conform(synthetic).frame, table(200, 8), model)
    data = told(result)
    assert note in data["note"]
    assert all(row["real"] is not None for row in data["rows"])
    lacking = [row for row in data["rows"] if row["synthetic"] is None]
    assert lacking and all(row["overlap"] is None and row["same_sign"] is None for row in lacking)


@pytest.mark.parametrize("died", ["no", "yes"])
@pytest.mark.parametrize("kind", ["logistic", "cox"])
def test_one_class(kind: str, died: str) -> None:
    """A mode collapse of the outcome that ends in a traceback."""
    model = next(model for model in MODELS if model.kind == kind)
    result = found(changed(died=died), table(200, 8), model)
    if kind == "logistic" or died == "no":
        assert result.measures[0].value is None
        expected = "no event is observed" if kind == "cox" else "the outcome is the same"
        assert expected in result.measures[0].detail


def test_separation() -> None:
    """Perfect separation on one side: both are then fitted in the same way, which is said, and compared."""
    real = table(200, 9)
    split = real.assign(died=np.where(real["sbp"] > real["sbp"].median(), "yes", "no"))
    result = found(SCHEMA.conform(split).frame, real, MODELS[0])
    data = told(result)
    assert all(row["synthetic"] is not None and row["real"] is not None for row in data["rows"])
    assert (data["separated_real"], data["separated_synthetic"]) == (False, True)
    assert data["problem_real"] == data["problem_synthetic"] == ""
    assert "gives died without an error for some or all of the synthetic records" in data["note"]
    assert "normal prior on every slope" in data["note"]
    plain = told(found(real, real, MODELS[0]))
    assert not (plain["separated_real"] or plain["separated_synthetic"]) and "prior" not in plain["note"]
    # the real side is drawn towards no effect as well: else estimators would be compared, not tables
    odds = [[row["real"]["estimate"] for row in d["rows"]] for d in (data, plain)]
    assert odds[0] != odds[1] and odds[0] == pytest.approx(odds[1], rel=0.2)


def test_both_sides_have_one_prior() -> None:
    """A prior by each table's own spread, so that one estimate is drawn more than the other."""
    rng = np.random.default_rng(0)
    real = table(200, 9)
    split = real.assign(died=np.where(real["sbp"] > real["sbp"].median(), "yes", "no"))
    model = EffectsModel("logistic", "died", ["sbp"])
    wide = split.assign(sbp=50 + 2 * (split["sbp"] - split["sbp"].min()))
    fitted = replicate(wide, split, SCHEMA, model, rng=rng)
    real, made = fitted.rows
    std = split["sbp"].astype(float).std(ddof=0) / 10  # in the unit of the coefficient
    assert fitted.separated == ("real", "synthetic")
    from sklearn.linear_model import LogisticRegression

    for frame, row in ((split, real), (wide, made)):
        x = frame["sbp"].to_numpy(float)[:, None] / (10 * std)
        y = (frame["died"] == "yes").to_numpy()
        direct = LogisticRegression(C=2.5**2, tol=1e-12, max_iter=10_000).fit(x - x.mean(), y)
        assert np.log(row["estimate"]) * std == pytest.approx(direct.coef_[0, 0], rel=1e-3)


def test_a_long_list_is_cut() -> None:
    """A note of a page for a column of a hundred categories."""
    schema = Schema(
        columns=(
            Column(name="ward", kind="categorical", categories=tuple(f"w{k}" for k in range(100))),
            Column(name="sbp", kind="integer", lower=50, upper=250),
        )
    )
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"ward": rng.choice(["w0", "w1", "w2"], 60), "sbp": rng.integers(100, 150, 60)})
    result = found(frame, frame, EffectsModel("linear", "sbp"), schema=schema)
    assert "ward: w8 vs w0 and 91 more (the category does not occur)." in told(result)["note"]
    assert result.measures[0].detail.startswith("share of estimates with the same sign, over 2 of 99 terms")


def test_every_number_is_finite() -> None:
    """An odds ratio beyond the floats, which JSON cannot hold."""
    schema = Schema(
        columns=(
            Column(name="x", kind="continuous", lower=0, upper=100),
            Column(name="y", kind="binary", categories=(0, 1)),
        )
    )
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": 50 + 1e-4 * rng.normal(size=80)})
    frame["y"] = (rng.random(80) < 1 / (1 + np.exp(-2e4 * (frame["x"] - 50)))).astype(int)
    row = told(found(frame, frame, EffectsModel("logistic", "y"), schema=schema))["rows"][0]
    assert row["real"]["upper"] == pytest.approx(np.exp(700.0))


def test_limit() -> None:
    """A part of the records that is not said to be one, or one that the generator does not choose."""
    real = table(500, 10)

    def rows(seed: int) -> str:
        result = replicate(real, real, SCHEMA, MODELS[1], rng=np.random.default_rng(seed), limit=100)
        assert "A random 100 of the real records were used." in result.notes()
        assert result.sampled == ("real", "synthetic") and result.real.n <= 100
        return repr(result.rows)

    assert rows(0) == rows(0) != rows(1)


def test_level_and_progress() -> None:
    """A level that is not used, or a bar that never ends."""
    real, seen = table(100, 11), []
    settings = [Settings(effects=["linear: sbp ~ age"] * 2, level=level) for level in (0.5, 0.95)]
    widths = []
    for chosen in settings:
        result = replication(
            conformed(real, real, None, SCHEMA), chosen, np.random.default_rng(0), seen.append
        )
        row = told(result, 1)["rows"][0]
        widths.append(row["real"]["upper"] - row["real"]["lower"])
    assert widths[0] < widths[1]
    assert seen == [0.5, 1.0] * 2


def test_a_model_of_another_table() -> None:
    """A column that is not there, found out only by pandas."""
    with pytest.raises(InputError, match="'dose' is not a column"):
        found(table(10, 0), table(10, 0), EffectsModel("linear", "sbp", ["dose"]))


@pytest.fixture(scope="module")
def flchain() -> tuple[pd.DataFrame, Schema]:
    """Free light chain study with its follow-up time, which the data card leaves out."""
    named = os.environ.get("DPSYNTH_DATA_DIR")
    folder = Path(named) if named else Path(__file__).resolve().parents[3] / "shared" / "data"
    path = folder / "flchain.csv"
    if not path.is_file():
        pytest.skip("needs flchain.csv: set DPSYNTH_DATA_DIR")
    with open(path, newline="") as file:
        raw = pd.DataFrame(list(csv.DictReader(file))).replace("", None).replace("NA", None)
    schema = Schema(
        columns=(
            Column(name="age", kind="integer", lower=50, upper=105),
            Column(name="sex", kind="binary", categories=("F", "M")),
            Column(name="kappa", kind="continuous", lower=0.01, upper=25),
            Column(name="lambda", kind="continuous", lower=0.01, upper=30),
            Column(name="creatinine", kind="continuous", lower=0.1, upper=12, missing=True),
            Column(name="futime", kind="integer", lower=0, upper=6000),
            Column(name="death", kind="binary", categories=(0, 1)),
        )
    )
    return schema.conform(raw[list(schema.names)]).frame, schema


@pytest.mark.slow
@pytest.mark.parametrize(
    "text", ["cox: (futime, death) ~ .", "logistic: death ~ age + sex + kappa + lambda + creatinine"]
)
def test_flchain(flchain, text: str) -> None:
    """A published direction that is reversed: older people, men and high light chains die earlier."""
    frame, schema = flchain
    model = EffectsModel.parse(text, schema)
    half = np.random.default_rng(0).random(len(frame)) < 0.5
    result = found(frame[half], frame[~half], model, schema=schema)
    rows = {row["term"]: row for row in told(result)["rows"]}
    for term in ("age", "sex: M vs F", "lambda"):
        for side in ("real", "synthetic"):
            assert rows[term][side]["lower"] > 1, (term, side)
    assert 1.08 < rows["age"]["real"]["estimate"] < 1.16
    assert {measure.name: measure.value for measure in result.measures}["effects_overlap_mean"] > 0.4
    assert json.dumps(result.details, allow_nan=False)


def test_flchain_cox_is_the_published_kind_of_number(flchain) -> None:
    """Another tie method or time scale: against PHReg on the complete cases."""
    from statsmodels.duration.hazard_regression import PHReg

    frame, schema = flchain
    whole = frame.dropna().iloc[::4]
    x = np.column_stack([whole["age"].to_numpy(float), (whole["sex"] == "M").to_numpy(float)])
    direct = PHReg(whole["futime"].to_numpy(float), x, whole["death"].to_numpy(float), ties="efron").fit()
    model = EffectsModel("cox", "death", ["age", "sex"], "futime")
    result = found(whole, whole, model, schema=schema)
    estimates = [row["real"]["estimate"] for row in told(result)["rows"]]
    assert estimates == pytest.approx(np.exp(direct.params), rel=1e-5)
