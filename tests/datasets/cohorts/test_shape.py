"""What a cohort looks like: one row a patient, its schema, the scores' published points and ranges."""

from __future__ import annotations

import gzip
import shutil
from pathlib import Path

import pandas as pd
import pytest
from simulated_mimic3 import append, hours, simulate

from dpsynth.datasets.cohorts.definitions import RESOURCES, STUDIES
from dpsynth.datasets.cohorts.extraction import Cohort, extract, needed_tables

NAMES = tuple(STUDIES)
#: the study with the most columns, and slow tests of the others
CASES = [pytest.param(name, marks=[] if name == "aki-mortality" else [pytest.mark.slow]) for name in NAMES]


def points() -> pd.DataFrame:
    with (RESOURCES / "definitions" / "points.csv").open() as source:
        return pd.read_csv(source)


@pytest.fixture(scope="module", params=CASES)
def made(request, tmp_path_factory) -> tuple[Path, Cohort]:
    folder = simulate(tmp_path_factory.mktemp("mimic") / "tables", request.param, 40, 0.25)
    return folder, extract(STUDIES[request.param], folder)


def test_one_row_a_patient_with_the_schemas_columns(made, tmp_path):
    """A patient with two rows (the guarantee would be about stays), or a column the schema does not know."""
    source, cohort = made
    folder = tmp_path / "tables"
    shutil.copytree(source, folder)
    assert len(cohort.frame) == 40 and cohort.frame.index.is_unique and cohort.frame.index.max() < 300_000
    assert tuple(cohort.frame) == cohort.study.schema.names
    assert cohort.positive_rate == 0.25
    # a second eligible stay of everybody, earlier in time, takes the first one's place and adds no row
    again = pd.read_csv(folder / "ICUSTAYS.csv", parse_dates=["intime", "outtime"])
    again = again[again["icustay_id"] < 300_000]
    moved = again.assign(icustay_id=again["icustay_id"] + 400_000)
    for time in ("intime", "outtime"):
        moved[time] = again[time] - hours(2)
    append(folder, "icustays", moved)
    twice = extract(cohort.study, folder)
    assert twice.steps[-2].stays > twice.steps[-1].stays == 40
    assert (twice.frame.index >= 600_000).all()


def test_every_schema_says_that_a_row_is_a_patient():
    """A schema from which nobody learns what the unit of privacy is."""
    for study in STUDIES.values():
        assert study.schema.unit == "one patient: the first eligible stay"
        assert not study.schema.unreviewed and study.schema.n_public is None


def test_nobody_under_age_dead_or_gone(tmp_path):
    """A child, a patient who died or left within a day, or one without the diagnosis, that stays in."""
    folder = simulate(tmp_path / "tables", "aki-mortality", 10, 0.0)
    people, admissions, stays, codes = (
        pd.read_csv(folder / f"{name}.csv", dtype=str, keep_default_na=False)
        for name in ("PATIENTS", "ADMISSIONS", "ICUSTAYS", "DIAGNOSES_ICD")
    )
    begun = pd.to_datetime(stays["intime"])
    people.loc[0, "dob"] = str(begun[0] - pd.DateOffset(years=18) + pd.Timedelta("1D"))
    people.loc[1, "dob"] = str(begun[1] - pd.DateOffset(years=18))
    admissions.loc[2, "deathtime"] = str(begun[2] + hours(24))
    admissions.loc[3, "deathtime"] = str(begun[3] + hours(24.1))
    stays.loc[4, "outtime"] = str(begun[4] + hours(23.9))
    stays.loc[5, "outtime"] = ""
    codes.loc[codes["hadm_id"] == "100006", "icd9_code"] = "5859"
    for name, frame in (("PATIENTS", people), ("ADMISSIONS", admissions), ("ICUSTAYS", stays)):
        frame.to_csv(folder / f"{name}.csv", index=False)
    codes.to_csv(folder / "DIAGNOSES_ICD.csv", index=False)
    cohort = extract(STUDIES["aki-mortality"], folder)
    assert list(cohort.frame.index) == [200001, 200003, 200007, 200008, 200009]
    assert cohort.frame.loc[200001, "age"] == 18
    assert [step.stays for step in cohort.steps] == [10, 9, 6, 5, 5]


def test_the_shifted_ages_are_90(tmp_path):
    """An age of 300: births of patients older than 89 are moved in MIMIC-III."""
    folder = simulate(tmp_path / "tables", "diabetes-mortality", 60, 0.25)
    ages = extract(STUDIES["diabetes-mortality"], folder).frame["age"]
    assert ages.max() == 90 and (ages == 90).sum() > 1 and ages.min() >= 18


def test_nobody_left_is_an_empty_cohort(tmp_path):
    """A table without rows that fails instead of being empty."""
    folder = simulate(tmp_path / "tables", "icu-readmission", 5, 0.0)
    cohort = extract(STUDIES["diabetes-mortality"], folder)
    assert len(cohort.frame) == 0 and cohort.steps[-1].patients == 0


def test_compressed_files_and_names_in_any_case_are_the_same(made, tmp_path):
    """Another cohort from .csv.gz, or from upper-case columns and mixed-case files, than from plain ones."""
    folder, cohort = made
    for table in needed_tables(cohort.study):
        header, rest = (folder / f"{table.upper()}.csv").read_text().split("\n", 1)
        other = "\r\n".join([",".join(f'"{name.upper()}"' for name in header.split(",")), *rest.split("\n")])
        with gzip.open(tmp_path / f"{table.title()}.CSV.gz", "wt", newline="") as file:
            file.write(other)
    shutil.copy(folder / "CHARTEVENTS.csv", tmp_path / "notes.csv")
    again = extract(cohort.study, tmp_path)
    pd.testing.assert_frame_equal(again.frame, cohort.frame)
    assert again.steps == cohort.steps


def test_rows_in_any_order_are_the_same(made, tmp_path):
    """A value that hangs on the order of rows, or on which thread read them first."""
    folder, cohort = made
    for table in needed_tables(cohort.study):
        rows = pd.read_csv(folder / f"{table.upper()}.csv", dtype=str, keep_default_na=False)
        rows.sample(frac=1, random_state=1).to_csv(tmp_path / f"{table}.csv", index=False)
    pd.testing.assert_frame_equal(extract(cohort.study, tmp_path).frame, cohort.frame)


def test_scores_reach_their_published_ranges():
    """A row of points lost or doubled: SAPS II goes to 163, SOFA to 24, OASIS to 75."""
    highest = points().groupby(["score", "organ"])["points"].max().groupby("score").sum()
    assert highest.to_dict() == {"sapsii": 163, "sofa": 24, "oasis": 75}


def test_points_at_the_published_limits():
    """A limit that is off by one, typed from the papers a second time."""
    listed = points()
    for score, component, value, expected in [
        ("sapsii", "age", 39, 0), ("sapsii", "age", 40, 7), ("sapsii", "age", 75, 16),
        ("sapsii", "age", 80, 18),
        ("sapsii", "heart_rate", 39, 11), ("sapsii", "heart_rate", 69, 2), ("sapsii", "heart_rate", 70, 0),
        ("sapsii", "heart_rate", 119, 0), ("sapsii", "heart_rate", 160, 7), ("sapsii", "systolic", 69, 13),
        ("sapsii", "systolic", 99, 5), ("sapsii", "systolic", 200, 2), ("sapsii", "temperature", 38.9, 0),
        ("sapsii", "temperature", 39, 3), ("sapsii", "pao2_fio2_ventilated", 99, 11),
        ("sapsii", "pao2_fio2_ventilated", 199, 9), ("sapsii", "pao2_fio2_ventilated", 200, 6),
        ("sapsii", "urine", 499, 11), ("sapsii", "urine", 999, 4), ("sapsii", "urine", 1000, 0),
        ("sapsii", "urea", 27, 0), ("sapsii", "urea", 28, 6), ("sapsii", "urea", 84, 10),
        ("sapsii", "leucocytes", 0.9, 12), ("sapsii", "leucocytes", 20, 3), ("sapsii", "potassium", 2.9, 3),
        ("sapsii", "potassium", 5, 3), ("sapsii", "sodium", 124, 5), ("sapsii", "sodium", 145, 1),
        ("sapsii", "bicarbonate", 14, 6), ("sapsii", "bicarbonate", 19, 3), ("sapsii", "bilirubin", 4, 4),
        ("sapsii", "bilirubin", 6, 9), ("sapsii", "gcs", 5, 26), ("sapsii", "gcs", 8, 13),
        ("sapsii", "gcs", 10, 7),
        ("sapsii", "gcs", 13, 5), ("sapsii", "gcs", 14, 0), ("sofa", "platelets", 149, 1),
        ("sofa", "platelets", 19, 4), ("sofa", "bilirubin", 1.1, 0), ("sofa", "bilirubin", 12, 4),
        ("sofa", "mean_pressure", 70, 0), ("sofa", "mean_pressure", 69, 1), ("sofa", "dopamine", 5, 2),
        ("sofa", "dopamine", 5.1, 3), ("sofa", "dopamine", 15.1, 4), ("sofa", "norepinephrine", 0.1, 3),
        ("sofa", "norepinephrine", 0.11, 4), ("sofa", "dobutamine", 1, 2), ("sofa", "gcs", 14, 1),
        ("sofa", "gcs", 5, 4), ("sofa", "creatinine", 1.2, 1), ("sofa", "creatinine", 3.4, 2),
        ("sofa", "creatinine", 5, 4), ("sofa", "urine", 499, 3), ("sofa", "urine", 199, 4),
        ("sofa", "pao2_fio2", 399, 1), ("sofa", "pao2_fio2", 150, 2), 
        ("sofa", "pao2_fio2_ventilated", 199, 3),
        ("oasis", "hours_before_unit", 0.1, 5), ("oasis", "hours_before_unit", 4.9, 3),
        ("oasis", "hours_before_unit", 24, 0), ("oasis", "hours_before_unit", 311.8, 2),
        ("oasis", "age", 53, 3),
        ("oasis", "age", 77, 6), ("oasis", "age", 89, 9), ("oasis", "age", 90, 7), ("oasis", "gcs", 7, 10),
        ("oasis", "gcs", 13, 4), ("oasis", "gcs", 14, 3), ("oasis", "heart_rate", 32, 4),
        ("oasis", "heart_rate", 88, 0), ("oasis", "heart_rate", 106, 1), ("oasis", "heart_rate", 125, 3),
        ("oasis", "mean_pressure", 20.6, 4), ("oasis", "mean_pressure", 50.9, 3),
        ("oasis", "mean_pressure", 61.3, 2),
        ("oasis", "mean_pressure", 143.44, 0), ("oasis", "respiratory_rate", 5, 10),
        ("oasis", "respiratory_rate", 12, 1), ("oasis", "respiratory_rate", 22, 0),
        ("oasis", "respiratory_rate", 44, 6), ("oasis", "respiratory_rate", 45, 9),
        ("oasis", "temperature", 33, 3),
        ("oasis", "temperature", 35.9, 4), ("oasis", "temperature", 36.3, 2),
        ("oasis", "temperature", 36.8, 0),
        ("oasis", "temperature", 39.8, 2), ("oasis", "temperature", 40, 6), ("oasis", "urine", 671, 10),
        ("oasis", "urine", 1426, 5), ("oasis", "urine", 2544, 1), ("oasis", "urine", 6896, 0),
        ("oasis", "urine", 6900, 8),
    ]:  # fmt: skip
        rows = listed.query("score == @score and component == @component")
        hit = rows[(rows["low"].fillna(-1e9) <= value) & (value < rows["high"].fillna(1e9))]
        assert hit["points"].sum() == expected and len(hit) <= 1, (score, component, value)
