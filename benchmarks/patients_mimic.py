"""Patients, admissions and laboratory values of the MIMIC-III demo, from three files to three files.

    DPSYNTH_DATA_DIR=... python benchmarks/patients_mimic.py --out FOLDER

Writes the three files that a hospital would give, and the schema. Fits all 100 patients at epsilon 3 and 10,
delta 1e-5, writes synthetic folders, and prints numbers that a clinician would look at, medians of 3 seeds.
A last column takes each patient 50 times: it shows what is due to the model, and not to so few patients.
"""

from __future__ import annotations

import argparse
import os
import warnings
from pathlib import Path

import pandas as pd

from dpsynth import DPMarginals, PatientSchema

ITEMS = {50912: "creatinine", 50971: "potassium", 50983: "sodium", 51222: "haemoglobin"}
ADMISSION = ["admission_type", "insurance", "hospital_expire_flag", "stay"]
#: dates of MIMIC-III lie between 2100 and 2211, and births of those above 89 years 300 years before
SCHEMA = """
unit: subject_id
rows: {most: 40, order: time}
n_public: 100
constraints: [dob <= time]
files:
  PATIENTS.csv: [gender, dob]
  ADMISSIONS.csv: [admission_type, insurance, hospital_expire_flag, stay]
  LABEVENTS.csv:
    {item: test, value: valuenum, order: charttime, columns: [creatinine, potassium, sodium, haemoglobin]}
columns:
- {name: gender, kind: binary, categories: [F, M], per: patient}
- {name: dob, kind: date, lower: 1800-01-01, upper: 2200-12-31, per: patient}
- {name: time, kind: datetime, lower: 2100-01-01, upper: 2211-12-31}
- {name: admission_type, kind: categorical, categories: [EMERGENCY, URGENT, ELECTIVE, NEWBORN]}
- name: insurance
  kind: categorical
  categories: [Medicare, Medicaid, Private, Government, Self Pay]
- {name: hospital_expire_flag, kind: binary, categories: [0, 1]}
- {name: stay, kind: continuous, lower: 0, upper: 300, decimals: 2, unit: days}
- {name: discharge, kind: datetime, lower: 2100-01-01, upper: 2212-12-31, derived: time + stay}
- {name: creatinine, kind: continuous, lower: 0.1, upper: 30, decimals: 1, scale: log}
- {name: potassium, kind: continuous, lower: 1, upper: 12, decimals: 1}
- {name: sodium, kind: integer, lower: 90, upper: 190}
- {name: haemoglobin, kind: continuous, lower: 2, upper: 22, decimals: 1}
"""


def hospital(folder: Path) -> None:
    """Write three files, with the stay in days."""
    demo = Path(os.environ.get("DPSYNTH_DATA_DIR", ".")) / "mimic3-demo"
    people = pd.read_csv(demo / "PATIENTS.csv")[["subject_id", "gender", "dob"]]
    people.to_csv(folder / "PATIENTS.csv", index=False)
    stays = pd.read_csv(demo / "ADMISSIONS.csv", parse_dates=["admittime", "dischtime"])
    stays["stay"] = ((stays["dischtime"] - stays["admittime"]) / pd.Timedelta("1D")).round(2)
    stays = stays.rename(columns={"admittime": "time"})[["subject_id", "time", *ADMISSION]]
    stays.to_csv(folder / "ADMISSIONS.csv", index=False)
    labs = pd.read_csv(demo / "LABEVENTS.csv")
    labs = labs.assign(test=labs["itemid"].map(ITEMS)).dropna(subset="test")
    labs[["subject_id", "charttime", "test", "valuenum"]].to_csv(folder / "LABEVENTS.csv", index=False)


def looked_at(rows: pd.DataFrame) -> dict[str, float]:
    """Numbers that a clinician would look at."""
    admitted = rows[ADMISSION].notna()
    measured = rows[list(ITEMS.values())].notna().any(axis=1)
    patients = rows.groupby("subject_id")
    days = patients["time"].agg(lambda time: (time.max() - time.min()) / pd.Timedelta("1D"))
    born = (rows["time"] - pd.to_datetime(rows["dob"])).dt.days / 365.25
    some = admitted.any(axis=1)
    return {
        "rows of a patient, median": patients.size().median(),
        "days from first to last row, median": days.median(),
        "admissions per patient": some.sum() / len(patients),
        "admissions with all four values": admitted.all(axis=1)[some].mean(),
        "rows with admission and laboratory value": (some & measured).mean(),
        "admissions that end in death": (rows["hospital_expire_flag"].dropna().astype(int)).mean(),
        "days of a stay, median": rows["stay"].median(),
        "rows before birth": (born < 0).mean(),
        **{f"{name}, median": rows[name].median() for name in ITEMS.values()},
        **{f"{name}, quartiles apart": spread(rows[name]) for name in ITEMS.values()},
    }


def spread(values: pd.Series) -> float:
    """Distance of the quartiles."""
    return float(values.quantile(0.75) - values.quantile(0.25))


def main() -> None:
    """Write the files, fit, write synthetic files and print one table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True, help="A folder that is made.")
    out = parser.parse_args().out
    (out / "hospital").mkdir(parents=True)
    (out / "schema.yaml").write_text(SCHEMA)
    hospital(out / "hospital")
    schema = PatientSchema.from_yaml(out / "schema.yaml")
    warnings.simplefilter("ignore")
    rows = schema.read(out / "hospital")
    found = {"real": looked_at(rows.groupby("subject_id").head(schema.most))}
    for epsilon, copies in ((3.0, 1), (10.0, 1), (3.0, 50)):
        many = pd.concat([rows.assign(subject_id=f"{k}-" + rows["subject_id"]) for k in range(copies)])
        plan, rounds = schema.with_n_public(100 * copies), []
        for seed in range(3):
            model = DPMarginals(epsilon, 1e-5, random_state=seed).fit(many, schema=plan)
            rounds.append(looked_at(model.sample(100 * copies, random_state=seed)))
        model.sample_to(out / f"synthetic-{epsilon:g}-{copies}", 100, random_state=seed)
        found[f"ε = {epsilon:g}, {100 * copies:,} patients"] = pd.DataFrame(rounds).median().to_dict()
    print("| | " + " | ".join(found) + " |\n|---|" + "---:|" * len(found))
    for name in found["real"]:
        print(f"| {name} | " + " | ".join(f"{each[name]:.3g}" for each in found.values()) + " |")


if __name__ == "__main__":
    main()
