"""What is told of records far out: by how much an effect that levels off moves a bounded estimate."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from visits import histories_of

from dpsynth.files.codec import from_plain, to_plain
from dpsynth.patients.schema import PatientSchema
from dpsynth.privacy import Ledger
from dpsynth.privacy.records import FrameRecords
from dpsynth.studies import calibration as bounded_influence
from dpsynth.studies.calibration import levelled
from dpsynth.studies.estimation import StudyDesign
from dpsynth.studies.fitted_study import StudyReleases
from dpsynth.studies.statistics import ScorePoint
from dpsynth.studies.study import Estimates, Study
from dpsynth.table.schema import Column, Schema, TableSchema

_COLUMNS = (
    Column(name="nodes", kind="integer", lower=0, upper=50),
    Column(name="age", kind="continuous", lower=-8, upper=8),
    Column(name="sex", kind="binary", categories=("F", "M")),
    Column(name="load", kind="continuous", lower=-400, upper=400, derived="nodes * age"),
    Column(name="days", kind="continuous", lower=0, upper=10),
    Column(name="died", kind="binary", categories=(0, 1)),
    Column(name="score", kind="continuous", lower=-20, upper=20),
)
SCHEMA = Schema(columns=_COLUMNS, n_public=2000)
SEVERAL = PatientSchema(
    unit="id",
    order="day",
    most=2,
    columns=(Column(name="day", kind="integer", lower=0, upper=9), *_COLUMNS),
    per_patient=("sex",),
)


def cohort(n: int, seed: int = 0) -> pd.DataFrame:
    """Numbers of nodes like those of a trial of colon cancer, whose effect levels off after 7."""
    rng = np.random.default_rng(seed)
    nodes = np.minimum(rng.negative_binomial(1.45, 1.45 / (1.45 + 3.66), n), 50)
    age, male = rng.normal(0, 1, n).clip(-8, 8), rng.integers(0, 2, n)
    eta = 0.15 * np.minimum(nodes, 7) + 0.2 * age
    death = rng.exponential(20 * np.exp(-eta))
    frame = {
        "nodes": nodes,
        "age": age,
        "sex": np.where(male, "M", "F"),
        "days": np.minimum(death, 10),
        "died": (death < 10) * 1,
        "score": (eta + rng.standard_normal(n)).clip(-20, 20),
    }
    return SCHEMA.conform(pd.DataFrame(frame)).frame


def rows_of_patients(frame: pd.DataFrame) -> pd.DataFrame:
    """Two rows a patient."""
    numbers = np.arange(len(frame))
    both = frame["sex"].to_numpy()[numbers // 2 * 2]
    return frame.assign(id=numbers // 2, day=numbers % 2, sex=both)


def told(model: str, noise: float | None = 5.0, schema: TableSchema = SCHEMA) -> Estimates:
    """Estimates of a regression, with samples of the same distribution."""
    study = Study(model=model)
    frame, draws = cohort(4000), cohort(6000, seed=1)
    if isinstance(schema, PatientSchema):
        frame, draws = (rows_of_patients(each) for each in (frame, draws))
        frame = histories_of(frame, schema)
    records = FrameRecords(frame)
    releases = StudyReleases.plan("a", noise_multiplier=noise, survival=study.is_survival)
    return releases.run(
        Ledger(), records, study, schema, draws, len(frame), np.random.default_rng(0)
    ).estimates


def far(found: Estimates) -> list[str]:
    return [remark for remark in found.remarks if remark.startswith(("Records far out", "Patients far out"))]


@pytest.mark.parametrize("bound", [2.0, 4.0])
def test_the_difference_is_that_of_weighted_and_plain_least_squares(bound: float) -> None:
    """A difference of another sign, scale or predictor, against numpy's least squares."""
    frame = cohort(1500)
    study = Study(model="linear: score ~ nodes + age")
    design = StudyDesign.of(SCHEMA, study.effects(SCHEMA), frame)
    x, y = design.read(frame)
    point = ScorePoint(design, np.zeros(3), np.eye(3), bound=bound)
    beta = np.array([0.1, 0.6, -0.4])
    weights = point.weights(x)
    assert (weights < 1).mean() > 0.01
    rows = np.column_stack([np.ones(len(x)), x])
    found = levelled(x, y, point, beta)
    assert list(found) == [0, 1]
    for j, difference in found.items():
        low, high = np.quantile(x[:, j], [0.05, 0.95])
        held = np.array(x)
        held[:, j] = held[:, j].clip(low, high)
        outcome = beta[0] + held @ beta[1:]
        root = np.sqrt(weights)
        ours = np.linalg.lstsq(rows * root[:, None], outcome * root, rcond=None)[0]
        usual = np.linalg.lstsq(rows, outcome, rcond=None)[0]
        np.testing.assert_allclose(difference, (ours - usual)[1:], atol=1e-4)


@pytest.mark.parametrize(
    ("model", "advice"),
    [
        ("cox: (days, died) ~ nodes + age + sex", "log1p(nodes) or narrower bounds shorten the tail."),
        ("cox: (days, died) ~ nodes + age where sex == 'F'", "log1p(nodes) or narrower"),
        ("linear: score ~ load + sex", "Narrower bounds shorten the tail."),
    ],
)
def test_records_far_out_are_told(model: str, advice: str) -> None:
    """A false interval without a remark: of a count, in a subgroup, or of a product of a count."""
    found = told(model)
    (remark,) = far(found)
    assert advice in remark
    assert remark in str(found) and from_plain(Estimates, to_plain(found)).remarks == found.remarks


def test_rows_far_out_of_patients_with_several_rows_are_told() -> None:
    """A false interval without a remark, where one patient with all rows counts once."""
    assert far(told("linear: score ~ nodes + age + sex", schema=SEVERAL))


@pytest.mark.parametrize(
    "model",
    ["cox: (days, died) ~ log1p(nodes) + age + sex", "linear: score ~ age + sex", "died ~ age + sex"],
)
def test_predictors_without_a_long_tail_are_not_told(model: str) -> None:
    """A remark under every regression, which nobody would read."""
    assert far(told(model)) == []


def test_nothing_is_told_without_samples() -> None:
    """A crash where no sample has a value in all columns."""
    study = Study(model="linear: score ~ nodes")
    design = StudyDesign.of(SCHEMA, study.effects(SCHEMA), cohort(50))
    point = ScorePoint(design, np.zeros(2), np.eye(2), bound=1.0)
    empty = np.empty((0, 1)), np.empty(0)
    assert bounded_influence.far_out(*empty, point, np.zeros(2), np.eye(2)) == ()


@pytest.mark.parametrize("model", ["cox: (days, died) ~ nodes", "died ~ nodes", "linear: score ~ nodes"])
def test_samples_that_overflow_stop_no_fit(model: str) -> None:
    """A fit that fails after its budget is spent, because a sample is too far out for floating point."""
    study, frame = Study(model=model), cohort(200)
    design = StudyDesign.of(SCHEMA, study.effects(SCHEMA), frame)
    x, y = design.read(frame)
    x[0] = 1e200
    point = ScorePoint(design, np.zeros(design.size), np.eye(design.size), bound=1.0)
    told = bounded_influence.far_out(x, y, point, np.full(design.size, 0.5), np.eye(design.size))
    assert all(isinstance(remark, str) for remark in told)
