"""The evaluator of patients with several rows, on good and on broken tables, and what is confidential."""

from __future__ import annotations

import os
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from visits import STAYS, VISITS, stays, visits

from dpsynth.errors import DataError
from dpsynth.evaluation import Evaluation, Settings, Tables
from dpsynth.evaluation import development as evaluator
from dpsynth.evaluation.development import LAGS, trajectories
from dpsynth.evaluation.evaluators import evaluate_tables
from dpsynth.patients.schema import PatientSchema
from dpsynth.report.verdicts.rules import judge
from dpsynth.table.schema import Column

DAY = VISITS.columns[0].model_copy(update={"unit": "days"})
SCHEMA = VISITS.model_copy(update={"columns": (DAY, *VISITS.columns[1:])})
REAL, TEST = visits(400, seed=0), visits(400, seed=1)


def found(
    synthetic: pd.DataFrame,
    train: pd.DataFrame = REAL,
    test: pd.DataFrame | None = TEST,
    schema: PatientSchema = SCHEMA,
) -> Evaluation:
    tables = Tables.of(synthetic, train=train, test=test, schema=schema)
    result = trajectories(tables, Settings.of(), np.random.default_rng(0))
    return Evaluation(result.measures, {}, result.details)


def codes(evaluation: Evaluation) -> dict[str, str]:
    return {verdict.code: verdict.severity for verdict in judge(evaluation)}


@pytest.mark.slow
def test_new_patients_are_good():
    """Catches verdicts against a table of the same distribution."""
    result = found(visits(400, seed=2))
    assert set(codes(result).values()) == {"good"} and "lags_hold" in codes(result)
    assert result["rows_tvd"].upper < 0.15 and abs(result["lag1_difference[lab]"].value) < 0.05


@pytest.mark.slow
def test_values_that_change_between_patients_are_bad():
    """Catches lags and a classifier that do not see whose value a row has."""
    rng = np.random.default_rng(0)
    broken = REAL.assign(**{name: rng.permutation(REAL[name].to_numpy()) for name in ("lab", "weight")})
    result = found(broken)
    lags = [result[f"lag{lag}_synthetic[lab]"].value for lag in LAGS if lag < SCHEMA.most]
    assert max(map(abs, lags)) < 0.15 and result["lag1_train[lab]"].value > 0.8
    assert result["patient_auc_hist_gradient_boosting"].lower > 0.85
    said = codes(result)
    assert (said["lags_differ"], said["patients_distinguishable"]) == ("bad", "bad")
    assert said["rows_hold"] == "good"
    assert (
        result["mixed_between_sd_synthetic[lab]"].value < 5 < 14 < result["mixed_between_sd_train[lab]"].value
    )


@pytest.mark.slow
def test_too_few_rows_are_bad():
    """Catches a distance of rows or gaps that is not judged."""
    result = found(REAL[REAL.groupby("id").cumcount() < 2])
    assert result["rows_tvd"].lower > 0.3 and codes(result)["rows_differ"] == "bad"
    assert result["rows_mean_difference"].upper < -1 and result["gap_p50_difference"].lower > 20
    assert result["return_30_days_synthetic"].value < result["return_30_days_train"].value


@pytest.mark.slow
def test_what_is_not_confidential_follows_from_the_synthetic_table():
    """Catches a number, a drawn patient or a choice of patients that real rows have a part in."""
    made = visits(300, seed=4)
    first, second = found(made), found(made, visits(77, seed=5, most=3), visits(50, seed=6))
    released, again = first.released(), second.released()
    assert released == again
    names = [measure.name for measure in released.measures]
    assert names and all(re.search(r"_synthetic(\[|$)", name) for name in names)
    assert set(released.details) == {"rows_per_patient", "gaps", "lags", "paths"}
    assert all(set(frame["table"]) == {"synthetic"} for frame in released.details.values())
    assert set(released.details["paths"]["column"]) == {"lab", "weight"}
    assert set(first.details) == {*released.details, "regressions", "effects"}
    assert all(set(first.details[name]["table"]) == {"synthetic", "train"} for name in released.details)
    models = first.details["regressions"]["regression"].tolist()
    assert models == ["effects[mixed: lab]", "effects[mixed: weight]"]


def test_paths_are_patients_of_the_table():
    """Catches values of one patient at times of another."""
    made = visits(300, seed=4)
    rows = made.sort_values(["id", "day"]).groupby("id").head(SCHEMA.most)
    rows = rows.assign(day=rows["day"] - rows.groupby("id")["day"].transform("first"))
    known = {(tuple(own["day"]), tuple(own["lab"])) for _, own in rows.dropna(subset="lab").groupby("id")}
    frame = found(made).details["paths"].query("column == 'lab' and table == 'synthetic'")
    paths = {(tuple(path["time"]), tuple(path["value"])) for _, path in frame.groupby("patient")}
    assert len(paths) == 20 and paths <= known


@pytest.mark.slow
def test_what_is_drawn_is_the_first_part_of_all(monkeypatch):
    """Catches lags, numbers or patients beyond those that are drawn: the last, others, or one too many."""
    made = visits(300, seed=4)
    every = found(made).details
    for name, most in (("_DRAWN_LAGS", SCHEMA.most - 2), ("NUMBERS_DRAWN", 1), ("PATIENTS_DRAWN", 7)):
        monkeypatch.setattr(evaluator, name, most)
    fewer = found(made).details
    assert set(every["paths"]["column"]) == {"lab", "weight"} and set(fewer["lags"]["column"]) == {"lab"}
    drawn = every["lags"].query(f"column == 'lab' and lag <= {SCHEMA.most - 2}").reset_index(drop=True)
    pd.testing.assert_frame_equal(fewer["lags"], drawn)
    assert set(every["paths"]["patient"]) == set(range(20))
    drawn = every["paths"].query("column == 'lab' and patient < 7").reset_index(drop=True)
    pd.testing.assert_frame_equal(fewer["paths"], drawn, check_dtype=False)


def test_few_patients_have_no_numbers():
    """Catches a correlation of five patients, or a crash, where a table is tiny."""
    result = found(visits(6, seed=0), visits(5, seed=1), None)
    assert result["lag1_synthetic[lab]"].value is None
    assert "fewer than 30 patients" in result["lag1_train[lab]"].detail
    assert result["rows_tvd"].value is not None and "lag1_difference[lab]" not in result


@pytest.mark.slow
def test_patients_with_one_row_have_no_gaps():
    """Catches a crash where nobody has a second row."""
    real = REAL[REAL["id"] < 100]
    lone = real.drop_duplicates("id")
    result = found(lone, real, None)
    assert result["gap_ks"].value is None and "not defined" in result["gap_ks"].detail
    assert result["gap_p50_synthetic"].value is None and result["gap_p50_train"].value > 0
    assert found(real, lone, None).released() == found(real, real, None).released()
    assert result["transition_tvd[grade]"].value is None
    assert result["patient_auc_hist_gradient_boosting"].value > 0.9


@pytest.mark.slow
def test_rules_of_rows_are_looked_at():
    """Catches falling stages, broken rules and early deaths that no number shows, and a derived column."""
    good, real = stays(120, seed=2), stays(150, seed=1)
    broken = good.assign(stage=good["stage"].iloc[::-1].to_numpy(), dbp=good["dbp"] + 60, died="no")
    broken.loc[broken.groupby("id").cumcount() == 1, "died"] = "yes"
    fine, bad = (found(made, real, None, STAYS) for made in (good, broken))
    assert fine["falls_synthetic[stage]"].value == fine["falls_train[stage]"].value == 0
    assert bad["falls_synthetic[stage]"].value > 0.1
    assert fine["survival_distance[died]"].lower < 0.1 < 0.3 < bad["survival_distance[died]"].lower
    rule = "constraint_violations_synthetic[dbp < sbp]"
    assert fine[rule].value == 0 and bad[rule].value > 0.5 and "violates_constraints" in codes(bad)
    assert bad[rule.replace("synthetic", "train")].internal
    assert bad[rule].detail.endswith(f"of {len(good)}") and "synthetic rows" in bad[rule].detail


@pytest.mark.slow
def test_suggestions_are_about_rows_of_patients():
    """Catches undeclared rules of rows that no number shows, and suggestions about patients' levels."""
    made, real = stays(120, seed=2).eval("dbp = dbp + 60"), stays(150, seed=1)
    result = found(made, real, None, STAYS.model_copy(update={"constraints": ()}))
    shares = {m.name: m.value for m in result.measures if "suggestion_violations_synthetic" in m.name}
    names = [
        f"suggestion_violations_synthetic[{rule}]"
        for rule in ("dbp <= sbp", "pregnant = 'yes' implies sex = 'F'")
    ]
    assert list(shares) == names and shares[names[0]] > 0.5


@pytest.mark.slow
def test_an_order_that_is_no_column_has_no_gaps():
    """Catches a synthetic table that is refused, or gaps between numbers of rows."""
    schema = SCHEMA.model_copy(update={"columns": SCHEMA.columns[1:]})
    made = visits(200, seed=4).sort_values(["id", "day"])
    result, timed = found(made.drop(columns="day"), REAL, None, schema), found(made, REAL, None)
    for name in ("rows_tvd", "lag1_synthetic[lab]", "lag1_train[lab]", "transition_tvd[grade]"):
        assert result[name].value == pytest.approx(timed[name].value, abs=0.01)
    assert not any("gap" in measure.name or "span" in measure.name for measure in result.measures)
    assert "gaps" not in result.details and "gaps" in timed.details
    with pytest.raises(DataError, match="train table: the table lacks the column 'day', which orders"):
        found(made, REAL.drop(columns="day"), None, schema)


def test_a_wrong_table_is_named():
    """Catches an error that does not say which of the tables is wrong."""
    with pytest.raises(DataError, match="synthetic table: the table lacks the column 'id'"):
        found(REAL.drop(columns="id"))
    with pytest.raises(DataError, match=r"test table: column 'sex'"):
        found(REAL, test=TEST.assign(sex="?"))


@pytest.mark.slow
def test_values_between_steps_are_rounded_and_reported():
    """Catches digits of another tool's table that a classifier of rows would see, and their silence."""
    made = visits(200, seed=4)
    loose = made.assign(lab=made["lab"] + 0.25)
    tables = Tables.of(loose, train=REAL, schema=SCHEMA)
    numbers = tables.histories["synthetic"].numbers["lab"]
    assert (numbers[~np.isnan(numbers)] % 1 == 0).all()
    off = made.assign(day=made["day"] - 400)
    result = evaluate_tables(Tables.of(off, train=off, schema=SCHEMA), Settings.of(reference=False))
    assert set(result.details["outside_bounds"]["table"]) == {"train"}


@pytest.mark.slow
def test_limits_that_nobody_reviewed_make_everything_confidential():
    """Catches levels of a column that hide that its limits were read off the rows."""
    lab = SCHEMA.column("lab").model_copy(update={"unreviewed": ("lower", "upper")})
    columns = tuple(lab if column.name == "lab" else column for column in SCHEMA.columns)
    schema = SCHEMA.model_copy(update={"columns": columns})
    result = evaluate_tables(Tables.of(visits(50, seed=4), train=visits(50), schema=schema), Settings.of())
    assert not result.released().measures and not result.released().details
    assert result.settings["unreviewed"] == ["lab"]


@pytest.mark.slow
def test_details_speak_of_patients():
    """Catches measures that call a patient with all rows a record."""
    tables = Tables.of(visits(60, seed=4), train=visits(60), schema=SCHEMA)
    result = evaluate_tables(tables, Settings.of(reference=False))
    assert "60 training patients" in result["nn_accuracy_train"].detail
    assert not any(re.search(r"\brecords?\b", measure.detail) for measure in result.measures)


@pytest.mark.slow
def test_nafld_has_the_numbers_of_the_literature_table():
    """Catches numbers that differ from those found by other code, on 3,820 patients with up to 20 visits."""
    named = os.environ.get("DPSYNTH_DATA_DIR")
    folder = Path(named) if named else Path(__file__).resolve().parents[3] / "shared" / "data"
    if not (folder / "nafld_visits_odd.csv.gz").is_file():
        pytest.skip("needs nafld_visits_odd.csv.gz: set DPSYNTH_DATA_DIR")
    rows = pd.read_csv(folder / "nafld_visits_odd.csv.gz").merge(
        pd.read_csv(folder / "nafld_patients_odd.csv")[["id", "age", "male"]], on="id"
    )
    schema = PatientSchema(
        unit="id", order="days", most=20, per_patient=("age", "male"),
        columns=(
            Column(name="days", kind="integer", lower=-8000, upper=8000, unit="days"),
            Column(name="age", kind="integer", lower=18, upper=100),
            Column(name="male", kind="binary", categories=(0, 1)),
            Column(name="hdl", kind="continuous", lower=5, upper=150, missing=True),
            Column(name="sbp", kind="continuous", lower=60, upper=260, missing=True),
        ),
    )  # fmt: skip
    people = np.sort(rows["id"].unique())
    half = people[np.random.default_rng(0).permutation(len(people)) < len(people) // 2]
    first, second = rows[rows["id"].isin(half)], rows[~rows["id"].isin(half)]
    result = found(first, second, None, schema)
    values = [result[f"{name}_train[hdl]"].value for name in ("lag1", "lag3", "lag8")]
    assert values == pytest.approx([0.854, 0.807, 0.754], abs=6e-4)
    spread = [result[f"{name}_sd_train[hdl]"].value for name in ("between", "within", "mixed_between")]
    assert spread == pytest.approx([15.2, 7.3, 13.3], abs=0.06)
    assert result["gap_ks"].lower < 0.02 and result["patient_auc_hist_gradient_boosting"].value < 0.55
    effects = result.details["effects"].query("regression == 'effects[mixed: hdl]' and side == 'real'")
    assert effects["estimate"].iloc[-1] == pytest.approx(-12.1, abs=0.06)


def test_every_measure_is_documented():
    """Catches a measure that the reference does not describe."""
    text = (Path(__file__).parents[2] / "docs" / "reference" / "measures.md").read_text(encoding="utf-8")
    part = text.split("## Patients over time")[1].split("\n## ")[0]
    known = {re.sub(r"\[.*", "", name) for name in re.findall(r"`([^`]+)`", part)}
    ends = (
        r"(_synthetic|_train|_difference|_baseline|_logistic_regression|_hist_gradient_boosting)?(\[.*\])?$"
    )
    names = {re.sub(ends, "", m.name) for m in found(visits(60, seed=4)).measures}
    assert names and not names - known - {"patient_auc"}
