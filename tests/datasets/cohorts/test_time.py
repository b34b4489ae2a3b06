"""Nothing after the prediction time enters a predictor: what came later is added to a simulated database."""

from __future__ import annotations

import shutil
from pathlib import Path

import pandas as pd
import pytest
from simulated_mimic3 import append, hours, simulate

from dpsynth.datasets.cohorts.definitions import RESOURCES, STUDIES
from dpsynth.datasets.cohorts.extraction import extract

PATIENTS = 24
#: the study with the most columns, and slow tests of the others
CASES = [pytest.param(name, marks=[] if name == "aki-mortality" else [pytest.mark.slow]) for name in STUDIES]


@pytest.fixture(scope="module", params=CASES)
def case(request, tmp_path_factory) -> tuple[str, Path, pd.DataFrame]:
    folder = simulate(tmp_path_factory.mktemp("mimic") / "tables", request.param, PATIENTS, 0.25)
    return request.param, folder, extract(STUDIES[request.param], folder).frame


def stays(folder: Path) -> pd.DataFrame:
    frame = pd.read_csv(folder / "ICUSTAYS.csv", parse_dates=["intime", "outtime"])
    return frame[frame["icustay_id"] < 300_000]


def flood(source: Path, target: Path, study: str, offset: pd.Timedelta) -> Path:
    """A copy in which every stay has extreme values of every item that far from its prediction time."""
    shutil.copytree(source, target)
    who = stays(source)
    when = (who["outtime"] if study == "icu-readmission" else who["intime"] + hours(24)) + offset
    with (RESOURCES / "definitions" / "items.csv").open() as file:
        items = pd.read_csv(file)
    with (RESOURCES / "definitions" / "limits.csv").open() as file:
        limits = pd.read_csv(file).set_index("concept")
    for table, group in items.groupby("source"):
        rows = who.assign(when=when).merge(group, how="cross")
        ends = [
            rows["concept"].map(limits[end]).where(rows["concept"] != "urine", 700) for end in ("low", "high")
        ]
        rows, value = pd.concat([rows, rows]), pd.concat(ends).fillna(1)
        value = ((value - rows["summand"]) / rows["factor"].abs()).round(4)
        columns = {
            "row_id": 0, "subject_id": rows["subject_id"], "hadm_id": rows["hadm_id"],
            "icustay_id": rows["icustay_id"], "itemid": rows["itemid"], "charttime": rows["when"],
            "starttime": rows["when"], "endtime": rows["when"] + hours(5), "value": value, "valuenum": value,
            "rate": 4.9, "rateuom": "mcg/kg/min", "error": 0, "iserror": 0,
            "statusdescription": "FinishedRunning",
        }  # fmt: skip
        append(target, str(table), pd.DataFrame(columns))
    surgery = pd.DataFrame(
        {"row_id": 0, "hadm_id": who["hadm_id"], "transfertime": when, "curr_service": "CSURG"}
    )
    append(target, "services", surgery)
    return target


def test_what_comes_later_changes_nothing(case, tmp_path):
    """A predictor that reads past its time, by one second, in any of seven tables."""
    study, folder, before = case
    later = flood(folder, tmp_path / "later", study, pd.Timedelta(seconds=1))
    pd.testing.assert_frame_equal(extract(STUDIES[study], later).frame, before)


def test_what_comes_in_time_changes_nearly_everything(case, tmp_path):
    """The test above would pass if added rows were not read at all: at the prediction time they are."""
    study, folder, before = case
    now = extract(STUDIES[study], flood(folder, tmp_path / "now", study, pd.Timedelta(0))).frame
    outcome = STUDIES[study].schema.outcome
    fixed = {"age", "gender", "ethnicity", "insurance", "admission_type", "elixhauser", "charlson", outcome}
    stays_same = {c for c in before if now[c].astype(object).equals(before[c].astype(object))}
    assert stays_same <= fixed | {"creatinine_min"}


def test_later_admissions_do_not_tell_of_earlier_ones(case, tmp_path):
    """A comorbidity index, or a study's diagnosis, that takes codes of an admission yet to come."""
    study, folder, before = case
    later = tmp_path / "later"
    shutil.copytree(folder, later)
    who = pd.read_csv(folder / "ADMISSIONS.csv", parse_dates=["admittime", "dischtime"])
    again = who.assign(
        hadm_id=who["hadm_id"] + 500_000,
        admittime=who["admittime"] + pd.Timedelta("900D"),
        dischtime=who["dischtime"] + pd.Timedelta("900D"),
        deathtime="",
        hospital_expire_flag=0,
    )
    append(later, "admissions", again)
    codes = pd.DataFrame({"row_id": 0, "hadm_id": again["hadm_id"], "seq_num": 2, "icd9_code": "1970"})
    append(later, "diagnoses_icd", codes)
    pd.testing.assert_frame_equal(extract(STUDIES[study], later).frame, before)
    if study != "icu-readmission":  # an earlier one does tell
        earlier = tmp_path / "earlier"
        shutil.copytree(folder, earlier)
        moved = again.assign(
            admittime=who["admittime"] - pd.Timedelta("90D"), dischtime=who["admittime"] - pd.Timedelta("80D")
        )
        append(earlier, "admissions", moved)
        append(earlier, "diagnoses_icd", codes)
        told = extract(STUDIES[study], earlier).frame["elixhauser"]
        assert (told - before["elixhauser"] == 12).all()


def test_codes_of_this_stay_count_only_for_lasting_diseases(tmp_path):
    """A complication of the stay (coagulopathy, fluids, heart attack) taken for a comorbidity."""
    folder = simulate(tmp_path / "tables", "aki-mortality", 8, 0.25)
    who = pd.read_csv(folder / "ADMISSIONS.csv")
    before = extract(STUDIES["aki-mortality"], folder).frame
    for position, code in enumerate(["2866", "2762", "4271", "4280", "41071", "5712", "5856"]):
        rows = pd.DataFrame(
            {"row_id": 0, "hadm_id": who["hadm_id"], "seq_num": 10 + position, "icd9_code": code}
        )
        append(folder, "diagnoses_icd", rows)
    pd.testing.assert_frame_equal(extract(STUDIES["aki-mortality"], folder).frame, before)


@pytest.mark.parametrize("study", ["diabetes-mortality", "aki-mortality"])
def test_worse_values_never_lower_a_score(study, tmp_path):
    """A score that forgets a bad value when another is charted: extremes in the window only add points."""
    folder = simulate(tmp_path / "tables", study, PATIENTS, 0.25)
    before = extract(STUDIES[study], folder).frame
    who = stays(folder)
    extremes = {
        220045: [10, 170],
        220179: [50, 250],
        220181: [15, 200],
        220210: [3, 60],
        223761: [85.0, 106.0],
    }
    rows = [
        pd.DataFrame(
            {"row_id": 0, "icustay_id": who["icustay_id"], "itemid": item,
             "charttime": who["intime"] + hours(12), "value": value, "valuenum": value, "error": 0}
        )
        for item, values in extremes.items()
        for value in values
    ]  # fmt: skip
    append(folder, "chartevents", pd.concat(rows))
    after = extract(STUDIES[study], folder).frame
    for score, least in (("sapsii", 11 + 13 + 3 - 16), ("oasis", 6 + 4 + 10 + 6 - 20), ("sofa", 0)):
        assert (after[score] >= before[score]).all()
        assert (after[score] - before[score]).max() > least


def test_charted_errors_and_impossible_values_are_missing(tmp_path):
    """A row marked as an error, or a heart rate of 999, that enters a mean."""
    folder = simulate(tmp_path / "tables", "icu-readmission", 8, 0.25)
    before = extract(STUDIES["icu-readmission"], folder).frame
    who = stays(folder)
    for value, error in ((140, 1), (999, 0), (0, 0), (-5, 0)):
        rows = {
            "row_id": 0,
            "icustay_id": who["icustay_id"],
            "itemid": 211,
            "charttime": who["outtime"] - hours(1),
        }
        append(
            folder, "chartevents", pd.DataFrame({**rows, "value": value, "valuenum": value, "error": error})
        )
    pd.testing.assert_frame_equal(extract(STUDIES["icu-readmission"], folder).frame, before)


def test_fahrenheit_pounds_and_fractions_are_converted(tmp_path):
    """A unit taken for another: whichever the thermometer, the temperature is a body's in Celsius."""
    folder = simulate(tmp_path / "tables", "icu-readmission", 40, 0.25)
    frame = extract(STUDIES["icu-readmission"], folder).frame
    assert frame["temperature_mean"].between(34, 40).all() and frame["temperature_mean"].notna().all()
    chart = pd.read_csv(folder / "CHARTEVENTS.csv")
    celsius = chart[chart["itemid"].isin([678, 223761])].assign(
        itemid=lambda f: f["itemid"].map({678: 676, 223761: 223762}),
        valuenum=lambda f: (f["valuenum"] - 32) * 5 / 9,
    )
    rest = chart[~chart["itemid"].isin([678, 223761])]
    pd.concat([rest, celsius]).to_csv(folder / "CHARTEVENTS.csv", index=False)
    again = extract(STUDIES["icu-readmission"], folder).frame
    pd.testing.assert_frame_equal(again, frame, atol=0.11, rtol=0)
