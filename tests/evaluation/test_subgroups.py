"""Errors by subgroup: the right records, the right numbers, and none where there are too few records."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

from dpsynth.errors import InputError, SchemaError
from dpsynth.evaluation import estimates
from dpsynth.evaluation.models import Model
from dpsynth.evaluation.results import Evaluation, frame_rows
from dpsynth.evaluation.settings import Grouping, Settings, groupings
from dpsynth.evaluation.subgroups import calibration_in_the_large, compare_subgroups
from dpsynth.evaluation.tables import Tables
from dpsynth.table.schema import Column, Schema

SCHEMA = Schema(
    columns=(
        Column(name="age", kind="integer", lower=18, upper=95, unit="years"),
        Column(name="patient_sex", kind="binary", categories=("F", "M"), missing=True),
        Column(name="risk", kind="continuous", lower=0, upper=1, step=0.01),
        Column(name="ward", kind="categorical", categories=tuple(f"w{i}" for i in range(21))),
        Column(name="died", kind="binary", categories=("no", "yes")),
    ),
    outcome="died",
)


class Told:
    """A model that says what the column ``risk`` says, and remembers nothing."""

    def fit(self, x: Any, y: Any) -> Told:
        self.classes_ = np.array([0, 1])
        return self

    def predict_proba(self, x: Any) -> Any:
        risk = x[:, 4]  # after the age and three coordinates of the sex
        return np.stack([1 - risk, risk], axis=1)


def table(n: int, seed: int, women: float = 0.5) -> pd.DataFrame:
    """Records whose risk is the probability of the event among women, and 0.2 below it among men."""
    rng = np.random.default_rng(seed)
    sex = np.where(rng.random(n) < women, "F", "M")
    risk = rng.integers(10, 60, n) / 100
    died = rng.random(n) < risk + 0.2 * (sex == "M")
    ages, wards = rng.integers(18, 96, n), rng.integers(0, 21, n)
    frame = pd.DataFrame({"age": ages, "patient_sex": sex, "risk": risk})
    return frame.assign(ward=[f"w{i}" for i in wards], died=np.where(died, "yes", "no"))


def found(synthetic: pd.DataFrame, train: pd.DataFrame, test: pd.DataFrame | None, **options: object) -> Any:
    """The rows of the subgroups, each with its ``scores`` by table and score, and the facts of all."""
    tables = Tables.of(synthetic, train=train, test=test, schema=SCHEMA)
    settings = Settings.of(**options)
    details = compare_subgroups(tables, settings, np.random.default_rng(0)).details
    evaluation = Evaluation((), {}, details)
    rows = frame_rows(evaluation.details["subgroups"])
    scores = [row for frame in evaluation.groups("subgroup_scores") for row in frame_rows(frame)]
    for row in rows:
        own = (s for s in scores if (s.column, s.subgroup) == (row.column, row.subgroup))
        row.scores = {(score.trained_on, score.score): score for score in own}
    return SimpleNamespace(rows=rows, facts=rows[0], internal=evaluation.released() == Evaluation(()))


def told(**options: object) -> Any:
    real, test = table(900, 1), table(700, 2)
    return found(table(800, 0, women=0.3), real, test, models={"told": Model(lambda seed: Told())}, **options)


def test_scores_are_those_of_the_subgroups_own_records():
    """Catches an AUC or a calibration of other records, of the wrong sign, or without its interval."""
    detail, test = told(groups=["patient_sex"]), table(700, 2)
    assert (detail.facts.event, detail.facts.model) == ("died = yes", "told")
    women, men, missing = detail.rows
    assert (women.subgroup, men.subgroup, missing.subgroup) == ("F", "M", "missing")
    for row in (women, men):
        own = test[test["patient_sex"] == row.subgroup]
        y, risk = (own["died"] == "yes").to_numpy(), own["risk"].to_numpy()
        assert (row.records, row.events) == (len(own), int(y.sum()))
        for arm in ("synthetic", "train"):  # the model learns nothing, so that both arms are the same
            auc, calibration = (row.scores[arm, name] for name in ("auc", "calibration"))
            assert estimates.Estimate(auc.value, auc.lower, auc.upper) == estimates.auc(risk[y], risk[~y])
            assert calibration.value == pytest.approx(float(y.mean() - risk.mean()))
            assert calibration.lower < calibration.value < calibration.upper
    # 0 by construction among women and 0.2 among men; 4 standard errors either way
    assert women.scores["synthetic", "calibration"].value == pytest.approx(0.0, abs=0.11)
    assert men.scores["synthetic", "calibration"].lower > 0.05


def test_shares_are_of_both_tables():
    """Catches shares of the held-out records, of records with a value only, or a difference the wrong way."""
    women, men, missing = told(groups=["patient_sex"]).rows
    real, made = table(900, 1), table(800, 0, women=0.3)
    assert women.real == pytest.approx((real["patient_sex"] == "F").mean())
    assert women.synthetic == pytest.approx((made["patient_sex"] == "F").mean())
    assert women.difference_upper < -0.1 and men.difference_lower > 0.1
    assert missing.real == 0 and missing.real_upper > 0


@pytest.mark.parametrize(("bands", "named"), [(20, True), (21, False)])
def test_many_bands_of_an_age_are_no_subgroups(bands, named):
    """Catches a page that fails since a column named like an age has more categories than are compared."""
    band = Column(name="age band", kind="categorical", categories=tuple(f"b{k}" for k in range(bands)))
    schema = Schema(columns=(band, *SCHEMA.columns[1:]))
    found = [grouping.column.name for grouping in groupings(schema, None, "died")]
    assert found == ["age band"] * named + ["patient_sex"]


def test_calibration_covers():
    """Catches an interval of calibration that is too short: 300 tables of a model that is right."""
    rng = np.random.default_rng(5)
    held = 0
    for _ in range(300):
        risk = rng.uniform(0.1, 0.5, 120)
        interval = calibration_in_the_large(rng.random(120) < risk, risk, 0.95)
        held += interval.lower <= 0 <= interval.upper
    assert 0.91 <= held / 300 <= 0.985


@pytest.mark.parametrize(("events", "others", "known"), [(20, 20, True), (19, 200, False), (200, 19, False)])
def test_too_few_records_have_no_score(events, others, known):
    """Catches a score of 19 events, or of 19 records without the event."""
    test = table(700, 2).assign(patient_sex="F")
    own = pd.DataFrame({"died": ["yes"] * events + ["no"] * others})
    men = table(len(own), 3).assign(patient_sex="M", died=own["died"])
    detail = found(
        table(99, 0),
        table(99, 1),
        pd.concat([test, men]),
        groups=["patient_sex"],
        models={"told": Model(lambda seed: Told())},
    )
    row = detail.rows[1]
    assert (row.records, row.events) == (events + others, events)
    assert len(row.scores) == 4
    for score in row.scores.values():
        assert (score.value is not None) == known and score.why == ("" if known else "too few")


def test_sex_and_bands_of_age_by_default():
    """Catches a default that takes other columns, and bands that miss an age or overlap."""
    data = told()
    ages = [row for row in data.rows if row.column == "age"]
    assert {row.column for row in data.rows} == {"age", "patient_sex"}
    assert [row.subgroup for row in ages] == ["below 40", "40 to 64", "65 to 79", "80 and over"]
    assert sum(row.records for row in ages) == 700
    assert sum(row.real for row in ages) == pytest.approx(1.0)
    grouping = Grouping.of(SCHEMA["age"])
    bands = grouping.codes(pd.DataFrame({"age": [18, 39, 40, 64, 65, 79, 80, 95]}))
    assert bands.tolist() == [0, 0, 1, 1, 2, 2, 3, 3]


def test_an_age_in_weeks_and_a_name_that_only_holds_the_word_are_no_default():
    """Catches a gestational age cut at 18 and 40, and ``stage`` or ``dosage`` taken for an age."""
    columns = (
        Column(name="gestational_age", kind="integer", lower=20, upper=45, unit="weeks"),
        Column(name="stage", kind="ordinal", categories=(1, 2)),
        Column(name="age_group", kind="ordinal", categories=("young", "old")),
        Column(name="Gender", kind="categorical", categories=("f", "m", "x")),
    )
    chosen = Settings.of().grouped(Schema(columns=columns))
    assert [grouping.column.name for grouping in chosen] == ["age_group", "Gender"]


@pytest.mark.parametrize(
    ("groups", "error", "words"),
    [
        (["risk"], InputError, "groups: 'risk' holds numbers. Name a column of categories"),
        (["ward"], InputError, "groups: 'ward' has 21 categories. Name a column of at most 20"),
        (["died"], InputError, "groups: 'died' is the outcome"),
        (["nobody"], SchemaError, "'nobody' is not a column"),
        ("age", InputError, "groups"),
    ],
)
def test_bad_groups_are_refused(groups, error, words):
    """Catches a wrong column that is found only after models were trained, or with another message."""
    with pytest.raises(error, match=words):
        Settings.of(groups=groups).check(SCHEMA)


def test_without_held_out_records_or_outcome():
    """Catches shares that are lost where nothing can be predicted, or scores of training records."""
    detail = found(table(60, 0), table(60, 1), None)
    assert "held-out" in detail.facts.note and detail.facts.event is None
    assert all(row.scores == {} and row.records is None for row in detail.rows)
    detail = found(table(60, 0), table(60, 1), table(60, 2), outcome="ward")
    assert "two categories" in detail.facts.note and detail.rows[0].scores == {}
    tables = Tables.of(table(60, 0), train=table(60, 1), schema=SCHEMA)
    assert compare_subgroups(tables, Settings.of(groups=[]), np.random.default_rng(0)).details == {}


def test_everything_is_internal_and_a_failing_model_is_told():
    """Catches a subgroup's number offered for release, and a model's failure that fails the evaluation."""
    assert told().internal
    detail = found(
        table(99, 0),
        table(300, 1),
        table(300, 2),
        models={"bad": Model(lambda seed: LogisticRegression(solver="none"))},
    )
    scores = [score for row in detail.rows for score in row.scores.values() if score.why != "too few"]
    assert scores and all("the model failed" in score.why and score.value is None for score in scores)


def test_subgroups_stand_in_the_frame_of_measures():
    """Catches a score of one sex that no program finds, or the number of records of another subgroup."""
    real, test = table(900, 1), table(700, 2)
    tables = Tables.of(table(800, 0), train=real, test=test, schema=SCHEMA)
    settings = Settings.of(models={"told": Model(lambda seed: Told())})
    details = compare_subgroups(tables, settings, np.random.default_rng(0)).details
    frame = Evaluation((), {}, details).to_dataframe().set_index(["measure", "column", "subgroup"])
    score = frame.loc["auc_synthetic", "patient_sex", "F"]
    assert score["n"] == (test["patient_sex"] == "F").sum() and score["lower"] < score["value"] < 0.7
    share = frame.loc["share_real", "patient_sex", "F"]
    assert (
        share["value"] == pytest.approx((real["patient_sex"] == "F").mean()) and frame["confidential"].all()
    )
