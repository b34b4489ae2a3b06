"""Regressions of patients' rows: what a patient adds, what is estimated without noise, and its intervals."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from stored import read_back
from visits import STAYS, VISITS, histories_of, stays, visits

from dpsynth.errors import InputError
from dpsynth.files.codec import to_plain
from dpsynth.patients.schema import PatientSchema
from dpsynth.privacy import Ledger
from dpsynth.privacy.noise import STEP
from dpsynth.privacy.records import FrameRecords
from dpsynth.studies.calibration import Clusters
from dpsynth.studies.estimation import Logistic, StudyDesign
from dpsynth.studies.fitted_study import FittedStudy, StudyReleases
from dpsynth.studies.statistics import ScorePoint, symmetric
from dpsynth.studies.study import Study
from dpsynth.table.coded import CodedTable
from dpsynth.table.schema import Column

SCHEMA = PatientSchema(
    unit="id",
    order="day",
    most=8,
    columns=(
        Column(name="day", kind="integer", lower=0, upper=9),
        Column(name="sex", kind="binary", categories=("F", "M")),
        Column(name="x", kind="continuous", lower=-6, upper=6, missing=True),
        Column(name="y", kind="continuous", lower=-60, upper=60),
        Column(name="ill", kind="binary", categories=("no", "yes")),
    ),
    per_patient=("sex",),
)


def cohort(n: int, seed: int) -> pd.DataFrame:
    """Rows of n patients, much alike within each. Patients with high values have more rows."""
    rng = np.random.default_rng(seed)
    own = rng.standard_normal(n)
    rows = 1 + rng.binomial(7, 1 / (1 + np.exp(-2 * own)))
    who = np.repeat(np.arange(n), rows)
    sex, m = rng.integers(0, 2, n), len(who)
    x = (0.6 * rng.standard_normal(n)[who] + 0.8 * rng.standard_normal(m)).clip(-6, 6)
    y = 0.5 * x + sex[who] + (1 + 0.5 * sex[who]) * own[who] + 0.5 * rng.standard_normal(m)
    ill = rng.random(m) < 1 / (1 + np.exp(1 - 0.5 * x - sex[who] - 2 * own[who]))
    frame = pd.DataFrame({"id": who, "day": np.arange(m) - (np.cumsum(rows) - rows)[who], "x": x, "y": y})
    frame.loc[rng.random(m) < 0.2, "x"] = np.nan
    return frame.assign(sex=np.where(sex[who], "M", "F"), ill=np.where(ill, "yes", "no"))


def gee(frame: pd.DataFrame, model: str):
    """The weighted GEE of statsmodels with independence as working correlation."""
    known = frame.dropna()
    logistic = model.startswith("logistic")
    y = (known["ill"] == "yes") if logistic else known["y"]
    terms = sm.add_constant(np.column_stack([known["x"], known["sex"] == "M"]).astype(float))
    family = sm.families.Binomial() if logistic else sm.families.Gaussian()
    weights = 1 / known.groupby("id")["id"].transform("size").to_numpy()
    return sm.GEE(np.asarray(y, float), terms, groups=known["id"], family=family, weights=weights).fit()


def run(
    frame: pd.DataFrame, draws: pd.DataFrame, model: str, noise: float | None, seed: int = 0
) -> FittedStudy:
    releases, n = StudyReleases.plan("a", noise_multiplier=noise), frame["id"].nunique()
    records, rng = FrameRecords(histories_of(frame, SCHEMA)), np.random.default_rng(seed)
    return releases.run(Ledger(), records, Study(model=model), SCHEMA, draws, n, rng)


MODELS = ["linear: y ~ x + sex", "logistic: ill ~ x + sex"]


@pytest.mark.parametrize("model", MODELS)
def test_without_noise_it_is_a_gee(model):
    """Catches rows that count by their number, intervals of independent rows, and a remark that is absent."""
    frame = cohort(4000, 0)
    fit, found = gee(frame, model), run(frame, cohort(8000, 1), model, None)
    estimates = found.estimates
    assert np.abs((estimates.coefficients - fit.params[1:]) / fit.bse[1:]).max() < 0.25
    np.testing.assert_allclose(estimates.std_errors, fit.bse[1:], rtol=0.08)
    assert estimates.widening == pytest.approx(1.0, abs=0.1)
    assert estimates.remarks[0].startswith(
        "One patient with all rows counts once, by the mean over the rows."
    )


def test_what_nothing_was_learned_of_is_told():
    """Catches a fit that fails, its budget spent, where no synthetic row has a value of every column."""
    draws = cohort(300, 1).assign(x=np.nan)
    found = run(cohort(300, 0), draws, MODELS[0], 2.0).estimates
    assert "nothing was learned" in " ".join(found.remarks) and (found.std_errors > 1).all()


def test_intervals_hold_the_noise():
    """Catches intervals of the sampling alone."""
    frame, draws, model = cohort(2000, 0), cohort(4000, 1), MODELS[0]
    bare = run(frame, draws, model, None).estimates.std_errors
    noisy = [run(frame, draws, model, 20.0, seed).estimates for seed in range(3)]
    assert all((told.std_errors / bare).min() > 1.2 and told.widening > 1.2 for told in noisy)


@pytest.mark.parametrize(
    ("schema", "frame", "model"),
    [
        (VISITS, visits(60, seed=3), "logistic: sex ~ lab + weight"),
        (VISITS, visits(60, seed=3), "linear: weight ~ lab + grade + day + sex"),
        (STAYS, stays(60, seed=3), "linear: sbp ~ age + dose + died"),  # a predictor by a formula
    ],
)
def test_a_patient_adds_the_mean_of_complete_rows(schema, frame, model):
    """Catches rows of another patient, rows that are not used, and a divisor that counts incomplete rows."""
    study, rows = Study(model=model), schema.table.conform(frame).frame
    design = StudyDesign.of(study.table(schema), study.effects(schema), rows, None, study.clusters(schema))
    rng = np.random.default_rng(0)
    point = ScorePoint(design, rng.normal(size=design.size), np.eye(design.size), bound=0.8, cap=0.5)
    score, information = np.zeros(design.size), np.zeros((design.size, design.size))
    for _, part in frame.groupby("id"):
        used = part.sort_values("day", kind="stable").head(schema.most)
        x, y = design.read(rows.loc[used.index])
        if len(x):
            score += point.scores(x, y).mean(axis=0) / 0.8
            information += np.mean([point.information(x[[k]], y[[k]]) for k in range(len(x))], axis=0) / 0.5
    records = CodedTable(histories_of(frame, schema))
    np.testing.assert_allclose(point.total_score(records)[0] * STEP, score, atol=2e-5)
    np.testing.assert_allclose(symmetric(point.total_information(records)[0] * STEP), information, atol=2e-5)


def test_the_ratio_is_that_of_alike_and_of_independent_rows():
    """Catches a ratio without the square of a patient's mean, and one that no number of rows bounds."""
    rng, rows, n = np.random.default_rng(0), 5, 8000
    study = Study(model="logistic: ill ~ x")
    draws = cohort(500, 0)
    design = StudyDesign.of(SCHEMA.table, study.effects(SCHEMA), draws, None, SCHEMA)
    design, beta = replace(design, family=Logistic()), np.array([0.3, 0.5])
    patient = np.repeat(np.arange(n), rows)

    def ratio(x: np.ndarray, y: np.ndarray, most: int) -> np.ndarray:
        return Clusters(x[:, None], y, patient).ratio(design, beta, np.ones(len(x), bool), most)

    x = rng.standard_normal(n)
    y = (rng.random(n) < 1 / (1 + np.exp(-0.3 - 0.5 * x))) * 1.0
    np.testing.assert_allclose(ratio(x[patient], y[patient], 8), np.eye(2), atol=0.06)
    x = rng.standard_normal(n * rows)
    y = (rng.random(n * rows) < 1 / (1 + np.exp(-0.3 - 0.5 * x))) * 1.0
    np.testing.assert_allclose(ratio(x, y, 8), np.eye(2) / rows, atol=0.015)
    np.testing.assert_allclose(np.linalg.eigvalsh(ratio(x, y, 2)), 0.5)


def test_one_random_row_stands_for_each_patient():
    """Catches patients of many rows that count more, and a row that is always the first."""
    patient = np.repeat(np.arange(300), np.r_[np.ones(100, int), np.full(200, 3)])
    clusters = Clusters(np.zeros((len(patient), 1)), np.zeros(len(patient)), patient)
    places = [clusters.one_each(np.random.default_rng(k)) for k in range(30)]
    assert all(np.array_equal(np.sort(patient[place]), np.arange(300)) for place in places)
    shares = np.bincount((np.concatenate([place[place >= 100] for place in places]) - 100) % 3) / (30 * 200)
    np.testing.assert_allclose(shares, 1 / 3, atol=0.03)


@pytest.mark.parametrize(
    ("model", "rows"),
    [
        ("linear: y mean ~ sex", False),
        ("logistic: sex ~ rows", False),
        ("logistic: sex ~ .", False),
        ("linear: y ~ sex", True),
        ("logistic: sex ~ log(day) + x", True),
    ],
)
def test_a_regression_is_of_rows_if_it_names_a_column_of_rows(model, rows):
    """Catches a regression of levels that is read row by row, and rows that are taken for levels."""
    study = Study(model=model, transforms={"day": "log"} if "log(" in model else {})
    schema = SCHEMA.model_copy(
        update={"columns": (SCHEMA.columns[0].model_copy(update={"lower": 1}), *SCHEMA.columns[1:])}
    )
    assert (study.clusters(schema) is not None) is rows
    assert study.table(schema).names == (schema.table.names if rows else schema.levels.names)
    assert study.effects(schema).outcome in study.table(schema).names
    assert study.clusters(schema.levels) is None and study.table(schema.levels) == schema.levels


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (
            "cox: (day, ill) ~ x",
            "a cox model has one row per patient, but the text names a column that changes",
        ),
        ("linear: y ~ x mean", "'x mean' is not a column"),
    ],
)
def test_what_has_no_rows_is_refused(model, message):
    """Catches a Cox model whose rows of a patient count as patients, and levels among rows."""
    with pytest.raises(InputError, match=message):
        Study(model=model).effects(SCHEMA)


def test_a_saved_study_of_rows_is_read_back():
    """Catches a study that is of levels after it was saved, whose tables would be drawn row by row."""
    found = run(cohort(300, 0), cohort(600, 1), MODELS[0], 5.0)
    again = read_back(found)
    assert to_plain(again) == to_plain(found) and again.design.patients == SCHEMA
    with pytest.raises(InputError, match="'a' is of patients' rows"):
        again.check_records("sample_many")
