"""Cohorts of the open demo against values traced by hand.

The values below were worked out row by row from the CSV files, with the published tables of the scores beside
them, not with this package. The demo is open (ODbL): MIMIC-III Clinical Database Demo 1.4,
doi:10.13026/C2HM2Q.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from dpsynth.datasets.cohorts.extraction import Cohort


def row(cohort: Cohort, stay: int) -> dict[str, object]:
    values = cohort.frame.astype(object).loc[stay]
    return {name: None if pd.isna(value) else value for name, value in values.items()}


# Patient 10017, stay 204881 (CareVue), intime 2149-05-29 18:52:29, so predictors end 2149-05-30 18:52:29.
#   PATIENTS    10017,F,2075-09-21: 73 years     ADMISSIONS 199207,2149-05-26
#               17:19:00,...,EMERGENCY,Medicare,WHITE,0
#   LABEVENTS   50852 (A1c) 2149-05-26 09:26:00 8.3; the later 8.5 of 2149-07-23 is after the prediction time
#               50931 137 mg/dL (the other "Glucose", 100, is urine); 51006 3; 51301 15.8; 50971 3; 50983 139;
#               50882 29; 50912 0.3; 51265 202
#   CHARTEVENTS 807 (fingerstick) four, 134 to 204, mean 160: glucose (137 + 4 * 160) / 5 = 155.4
#               211 HR 82-104; 455 NBP systolic 93-137; 456 NBP mean 55.67-84.67; 618 RR 15-32;
#               678 95.0-97.4 F = 35.0-36.3 C; 184 + 454 + 723 = 4 + 6 + 4 = 14 (2149-05-29 23:00)
#   OUTPUTEVENTS 40055: 550 550 220 100 120 140 160 200 80 100 70 80 140 = 2510 mL
#   SERVICES    2149-05-26 17:21:09,MED      DIAGNOSES 81201 4928 8028 8024 99812 41511 2851 486 ... 25000
#               ... 4019
# SAPS II: age 15, systolic 93: 5, medical: 6. SOFA: mean pressure below 70: 1, GCS 14: 1.
# OASIS: 73.6 h before the unit 2, age 6, GCS 14: 3, HR 104: 1, mean pressure 55.67: 2, RR 32: 6, 35.0 C: 4,
# urine 2510: 1, no elective surgery 6. Elixhauser: 4928 chronic pulmonary 3; 41511 could be of this stay.
DIABETES_10017 = {
    "age": 73, "gender": "F", "ethnicity": "white", "insurance": "Medicare", "admission_type": "EMERGENCY",
    "haemoglobin_a1c": 8.3, "glucose_mean": 155.0, "sapsii": 15 + 5 + 6, "sofa": 1 + 1,
    "oasis": 2 + 6 + 3 + 1 + 2 + 6 + 4 + 1 + 6, "elixhauser": 3, "died": 0,
}  # fmt: skip

# Patient 42075, stay 298685 (MetaVision), intime 2166-02-12 17:57:37.
#   PATIENTS    42075,M,2086-02-04: 80           ADMISSIONS 151323,2166-02-12 17:57:00,...,EMERGENCY,Medicare,
#               UNABLE TO OBTAIN, died 2166-02-26
#   LABEVENTS   A1c 5.7 (2166-02-13 05:28); glucose 123 125; creatinine 1.4 1.2; urea 41 37; platelets 264
#               366;
#               arterial pO2 175 (20:21), 170 (01:02), 94 (05:57), 89 (09:38, O2 40), 77 (12:13, O2 40)
#   CHARTEVENTS 225664 three, mean 153: glucose (248 + 459) / 5 = 141.4; 223835 FiO2 20:00 60, 00:00 70,
#               04:00 50:
#               lowest ratio 94 / 0.50 = 188, ventilated (223848 Drager, PROCEDUREEVENTS 225792);
#               HR 64-110; 220179 systolic from 65; 220181 mean from 47; 220210 RR 19-32; 223761 94.5-99.0 F,
#               so from 34.7 C; 223900 always "No Response-ETT": no coma scale
#   INPUTEVENTS_MV 221662 dopamine, highest 12.009571 mcg/kg/min (01:53); 221653 dobutamine
#   OUTPUTEVENTS Foley 250 100 60 15 70 40 40 30 150 41 70 45 41 5 12 8 150 40 60 = 1227 mL (Oral Gastric is
#               none)
#   DIAGNOSES   41041 5849 1623 1977 1985 51881 2762 ... 25000 2724 4019 496 28984
# SAPS II: age 18, HR 64: 2, systolic 65: 13, ratio 188: 9, urea 41: 6, metastatic cancer 9, medical 6.
# SOFA: ratio 188 ventilated 3, dopamine 12: 3, creatinine 1.4: 1.
# OASIS: at once to the unit 5, age 80: 9, HR 110: 3, mean pressure 47: 3, RR 32: 6, 34.7 C: 4, urine 1227: 5,
# ventilated 9, no elective surgery 6. Elixhauser: metastatic 12 (not the solid tumour besides), pulmonary 3.
DIABETES_42075 = {
    "age": 80, "gender": "M", "ethnicity": None, "insurance": "Medicare", "admission_type": "EMERGENCY",
    "haemoglobin_a1c": 5.7, "glucose_mean": 141.0, "sapsii": 18 + 2 + 13 + 9 + 6 + 9 + 6, "sofa": 3 + 3 + 1,
    "oasis": 5 + 9 + 3 + 3 + 6 + 4 + 5 + 9 + 6, "elixhauser": 12 + 3, "died": 1,
}  # fmt: skip

# Patient 43748, stay 239935 (MetaVision), intime 2179-04-17 13:13:40.
#   PATIENTS    43748,M,2099-09-02: 79           ADMISSIONS 121860,2179-04-17 13:12:00,...,EMERGENCY, left
#               alive
#   LABEVENTS   creatinine 4.0 (2179-04-17 09:50, before the unit) and 4.3 (2179-04-18 02:54); urea 109; K
#               5.1;
#               Na 137; bicarbonate 20; anion gap 15; white cells 5.2; haemoglobin 9.4; platelets 90; INR 1.7;
#               glucose 90; "pH" 5.0 is urine
#   CHARTEVENTS HR 44-57, mean 49.29; 220179 67-91, mean 76.83; 220181 46-60, mean 52.48; RR 10-22, mean
#               15.42;
#               223761 96.0-96.4 F, mean 96.2 = 35.67 C; SpO2 mean 94.77; GCS 4 + 6 + 5; 226512 66.3 kg
#   OUTPUTEVENTS Foley 30 30 15 10 5 5 8 6 10 10 10 20 20 20 25 25 30 25 = 304 mL ("Pre-Admission" is not of
#               the
#               unit); dopamine began 2179-04-18 21:36, after the prediction time
#   DIAGNOSES   42843 5849 78551 6826 4280 2875 41400 V4581: heart failure and platelets could be of this stay
# SAPS II: age 16, HR 44: 2, systolic 67: 13, urine 304: 11, urea 109: 10, K 5.1: 3, medical 6.
# SOFA: platelets 90: 2, mean pressure 46: 1, creatinine 4.3 and urine 304: 3.
# OASIS: at once to the unit 5, age 79: 9, mean pressure 46: 3, RR 10: 1, 35.6 C: 4, urine 304: 10, no
# elective surgery 6. KDIGO: 304 / 66.3 / 24 = 0.19 mL/kg/h: 3; 4.0 to 4.3 within 48 hours is 3 as well.
AKI_43748 = {
    "gender": "M", "ventilated": 0, "age": 79, "sapsii": 16 + 2 + 13 + 11 + 10 + 3 + 6, "sofa": 2 + 1 + 3,
    "oasis": 5 + 9 + 3 + 1 + 4 + 10 + 6, "elixhauser": 0, "charlson": 0, "kdigo_stage": 3, "gcs_min": 15,
    "urine": 304, "heart_rate_mean": 49.3, "systolic_mean": 76.8, "mean_pressure_mean": 52.5,
    "respiratory_rate_mean": 15.4, "temperature_mean": 35.7, "spo2_mean": 94.8, "glucose_mean": 90.0,
    "sodium_mean": 137.0, "creatinine_min": 4.3, "creatinine_max": 4.3, "urea_max": 109.0,
    "potassium_max": 5.1, "bicarbonate_min": 20.0, "anion_gap_max": 15.0, "leucocytes_max": 5.2,
    "haemoglobin_min": 9.4, "platelets_min": 90.0, "inr_max": 1.7, "bilirubin_max": None,
    "albumin_min": None, "lactate_max": None, "ph_min": None, "died": 0,
}  # fmt: skip

# Patient 10124, stay 261764 (CareVue), outtime 2192-04-01 06:36:00; predictors from 2192-03-31 06:36:00.
#   CHARTEVENTS 211 nineteen, mean 95.526; 678 97.3-99.4 F, mean 98.36 = 36.87 C; 646 mean 96.158; pressures
#               are
#               arterial (52) only, so there is no non-invasive mean     LABEVENTS haematocrit only
#   ICUSTAYS    222779, intime 2192-04-16 20:58:32: back after 16 days
READMISSION_10124 = {
    "heart_rate_mean": 95.5, "temperature_mean": 36.9, "platelets_mean": None,
    "noninvasive_mean_pressure_mean": None, "spo2_mean": 96.2, "lactate_mean": None, "readmitted": 1,
}  # fmt: skip


@pytest.mark.parametrize(
    ("study", "stay", "traced"),
    [
        ("diabetes-mortality", 204881, DIABETES_10017),
        ("diabetes-mortality", 298685, DIABETES_42075),
        ("aki-mortality", 239935, AKI_43748),
        ("icu-readmission", 261764, READMISSION_10124),
    ],
)
def test_patients_traced_by_hand(cohorts, study, stay, traced):
    """A wrong item, unit, window, point or code: every column of four patients is known."""
    assert row(cohorts[study], stay) == traced


def test_counts_of_the_demo(cohorts):
    """A step that keeps or drops others than it says; docs/how-to/mimic-cohorts.md prints the last counts."""
    counts = {name: [(s.stays, s.patients) for s in c.steps] for name, c in cohorts.items()}
    start = [(136, 100), (135, 99)]
    assert counts == {
        "diabetes-mortality": [*start, (110, 79), (41, 25), (9, 9), (9, 9)],
        "aki-mortality": [*start, (110, 79), (50, 33), (33, 33)],
        "icu-readmission": [*start, (90, 64), (64, 64)],
    }
    outcomes = {name: int(c.frame[c.study.schema.outcome].astype(int).sum()) for name, c in cohorts.items()}
    assert outcomes == {"diabetes-mortality": 2, "aki-mortality": 11, "icu-readmission": 12}


#: by the dictionary's label, not by our item numbers
LABELS = {
    "heart_rate_mean": (["Heart Rate"], 1, 300),
    "spo2_mean": (["SpO2", "O2 saturation pulseoxymetry"], 20, 100),
    "respiratory_rate_mean": (["Respiratory Rate", "Respiratory Rate (Total)", "Resp Rate (Total)"], 1, 80),
}


@pytest.mark.parametrize(
    ("study", "columns"), [("aki-mortality", list(LABELS)), ("icu-readmission", ["spo2_mean"])]
)
def test_means_of_every_row_by_label(demo, cohorts, study, columns):
    """A mean over other rows than those of the window, for any patient: pandas, by labels."""
    items = pd.read_csv(demo / "D_ITEMS.csv").set_index("itemid")["label"]
    stays = pd.read_csv(demo / "ICUSTAYS.csv", parse_dates=["intime", "outtime"]).set_index("icustay_id")
    chart = pd.read_csv(demo / "CHARTEVENTS.csv.gz", usecols=[3, 4, 5, 9, 12], parse_dates=["charttime"])
    frame = cohorts[study].frame
    stays = stays.loc[frame.index]
    if study == "icu-readmission":
        start, end = stays["outtime"] - pd.Timedelta("24h"), stays["outtime"]
    else:
        start, end = stays["intime"], stays["intime"] + pd.Timedelta("24h")
    chart = chart[chart["icustay_id"].isin(frame.index) & (chart["error"] != 1)]
    chart = chart[chart["charttime"].between(chart["icustay_id"].map(start), chart["icustay_id"].map(end))]
    for column in columns:
        labels, low, high = LABELS[column]
        own = chart[chart["itemid"].map(items).isin(labels) & chart["valuenum"].between(low, high)]
        expected = own.groupby("icustay_id")["valuenum"].mean().reindex(frame.index)
        np.testing.assert_allclose(frame[column].astype(float), expected, atol=0.0501)
        assert expected.notna().sum() > 20


def test_item_numbers_have_the_dictionarys_labels(demo):
    """A mistyped item number: each stands in D_ITEMS or D_LABITEMS with our label and table."""
    items = pd.read_csv(demo / "D_ITEMS.csv").set_index("itemid")
    labs = pd.read_csv(demo / "D_LABITEMS.csv").set_index("itemid")
    from dpsynth.datasets.cohorts.definitions import RESOURCES

    with (RESOURCES / "definitions" / "items.csv").open() as source:
        own = pd.read_csv(source)
    for item in own.itertuples():
        if item.source == "labevents":
            assert labs.loc[item.itemid, "label"].strip() == item.label
            assert labs.loc[item.itemid, "fluid"].lower() == "blood", item
        else:
            assert items.loc[item.itemid, "label"].strip() == item.label
            assert items.loc[item.itemid, "linksto"] == item.source
