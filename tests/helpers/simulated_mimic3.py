"""A SIMULATED database in MIMIC-III's shape, for tests only: no patient is in it and nothing may be learnt
from it.

``simulate`` writes the tables that cohorts read, with a few columns more, half of the stays charted with
CareVue's item numbers and half with MetaVision's. Everybody is eligible for the study that is named, so the
cohort's size and its share of outcomes are known beforehand; ``THESIS`` has those of Pedersen (2022), Tables
3.2 and 3.3: training and test half.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

#: rows of the training half twice, and the mean of the halves' positive rates
THESIS = {
    "diabetes-mortality": (2 * 2085, 0.0616),
    "aki-mortality": (2 * 2119, 0.2465),
    "icu-readmission": (2 * 1719, 0.03),
}
START = pd.Timestamp("2130-01-01 08:00:00")
#: item of CareVue, item of MetaVision, mean, deviation
CHARTED = [
    (211, 220045, 88, 15), (455, 220179, 118, 18), (456, 220181, 78, 12), (618, 220210, 19, 4),
    (678, 223761, 98.4, 1.2), (646, 220277, 97, 1.5), (807, 225664, 140, 35), (762, 226512, 80, 12),
]  # fmt: skip
MEASURED = [
    (50931, 135, 35), (50912, 1.6, 0.5), (51006, 30, 9), (50983, 138, 4), (50971, 4.2, 0.4), (50882, 24, 3),
    (50868, 14, 2), (51301, 11, 3), (51222, 10.5, 1.2), (51265, 210, 50), (51237, 1.4, 0.2), 
    (50885, 0.9, 0.3),
    (50862, 3.1, 0.4), (50813, 1.9, 0.5), (50820, 7.38, 0.05), (50821, 110, 25),
]  # fmt: skip
GCS = [(184, 220739, 4), (454, 223901, 6), (723, 223900, 5)]


def hours(n: float) -> pd.Timedelta:
    return pd.Timedelta(seconds=round(3600 * n))


def simulate(folder: Path, study: str, patients: int, positive_rate: float, *, seed: int = 0) -> Path:
    """Write the tables of so many patients, one eligible stay each; the first ones have the outcome."""
    rng = np.random.default_rng(seed)
    folder.mkdir(parents=True, exist_ok=True)
    number = np.arange(patients)
    subject, hadm, stay = 10_000 + number, 100_000 + number, 200_000 + number
    positive = number < round(patients * positive_rate)
    died = positive & (study != "icu-readmission")
    back = positive & (study == "icu-readmission")
    intime = pd.Series(START + pd.to_timedelta(rng.integers(0, 3000, patients), unit="D"))
    outtime = intime + hours(60)
    age = rng.integers(20, 100, patients)
    birth = intime - pd.to_timedelta(np.where(age > 89, 300, age) * 366, unit="D")
    code = {"diabetes-mortality": "25000", "aki-mortality": "5849"}.get(study, "486")

    def table(name: str, **columns: object) -> None:
        frame = pd.DataFrame(columns)
        frame.insert(0, "row_id", np.arange(len(frame)))
        frame.to_csv(folder / f"{name.upper()}.csv", index=False, date_format="%Y-%m-%d %H:%M:%S")

    table("patients", subject_id=subject, gender=rng.choice(["F", "M"], patients), dob=birth)
    table(
        "admissions",
        subject_id=subject,
        hadm_id=hadm,
        admittime=intime - hours(3),
        dischtime=intime + hours(100),
        deathtime=(intime + hours(100)).where(died),
        admission_type=rng.choice(["EMERGENCY", "ELECTIVE", "URGENT"], patients),
        insurance=rng.choice(["Medicare", "Private", "Medicaid"], patients),
        ethnicity=rng.choice(["WHITE", "BLACK/AFRICAN AMERICAN", "UNKNOWN/NOT SPECIFIED"], patients),
        hospital_expire_flag=died.astype(int),
    )
    again = intime[back] + hours(60 + 200)
    table(
        "icustays",
        subject_id=np.concatenate([subject, subject[back]]),
        hadm_id=np.concatenate([hadm, hadm[back]]),
        icustay_id=np.concatenate([stay, 300_000 + number[back]]),
        intime=pd.concat([intime, again]),
        outtime=pd.concat([outtime, again + hours(50)]),
    )
    table(
        "diagnoses_icd",
        subject_id=np.repeat(subject, 3),
        hadm_id=np.repeat(hadm, 3),
        seq_num=np.tile([1, 2, 3], patients),
        icd9_code=np.tile(["99591", code, "496"], patients),
    )
    table("services", subject_id=subject, hadm_id=hadm, transfertime=intime - hours(1), curr_service="MED")
    _events(table, rng, subject, stay, intime, outtime)
    return folder


def _events(table, rng, subject, stay, intime, outtime) -> None:
    """Six rounds of the chart from the stay's start and to its end, three of the laboratory and of urine."""
    patients = len(subject)
    early, late = [1, 8, 16, 22], [-20, -2]
    chart, lab = [], []
    times = [intime + hours(h) for h in early] + [outtime + hours(h) for h in late]
    modern = np.arange(patients) % 2
    for when in times:
        for old, new, mean, deviation in CHARTED:
            value = rng.normal(mean, deviation, patients).round(1)
            chart.append((stay, np.where(modern, new, old), when, value.astype(str), value))
        for old, new, best in GCS:
            value = np.maximum(best - rng.integers(0, 2, patients), 1)
            chart.append((stay, np.where(modern, new, old), when, value.astype(str), value))
    for when in [intime + hours(2), intime + hours(18), outtime - hours(5)]:
        for item, mean, deviation in MEASURED:
            value = rng.normal(mean, deviation, patients).clip(0.1).round(2)
            lab.append((subject, np.full(patients, item), when, value.astype(str), value))
    a1c = rng.normal(7, 1, patients).clip(4).round(1)
    lab.append((subject, np.full(patients, 50852), intime - hours(30), a1c.astype(str), a1c))

    def stacked(rows, key: str) -> dict[str, object]:
        columns = list(zip(*rows, strict=True))
        return {
            key: np.concatenate(columns[0]),
            "itemid": np.concatenate(columns[1]),
            "charttime": pd.concat(columns[2]),
            "value": np.concatenate(columns[3]),
            "valuenum": np.concatenate(columns[4]),
        }

    charted = stacked(chart, "icustay_id")
    table("chartevents", **charted, error=np.zeros(len(charted["itemid"]), int))
    table("labevents", **stacked(lab, "subject_id"))
    table(
        "outputevents",
        icustay_id=np.tile(stay, 3),
        charttime=pd.concat([intime + hours(h) for h in (6.5, 13, 20)]),
        itemid=np.tile(np.where(modern, 226559, 40055), 3),
        value=rng.integers(100, 900, 3 * patients),
        iserror="",
    )
    nobody = pd.Series([], dtype="datetime64[ns]")
    table("inputevents_cv", icustay_id=[], charttime=nobody, itemid=[], rate=[], rateuom=[])
    spans = {"icustay_id": [], "starttime": nobody, "endtime": nobody, "itemid": [], "statusdescription": []}
    table("inputevents_mv", **spans, rate=[], rateuom=[])
    table("procedureevents_mv", **spans)


def append(folder: Path, table: str, rows: pd.DataFrame) -> None:
    """Add rows to a table; columns that they lack stay empty."""
    path = folder / f"{table.upper()}.csv"
    frame = pd.read_csv(path, dtype=str, keep_default_na=False)
    more = rows.astype(str).reindex(columns=frame.columns, fill_value="")
    pd.concat([frame, more]).to_csv(path, index=False)
