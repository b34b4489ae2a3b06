"""Development tables of patients with several rows, and their public schemas."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from dpsynth import Column, PatientSchema

Columns = list[dict[str, Any]]
NO_YES = {"kind": "binary", "categories": ["no", "yes"]}
#: a patient's rows that the wide tables hold
DIABETES_NUMBERS = {
    "time_in_hospital": (1, 14),
    "num_lab_procedures": (0, 140),
    "num_procedures": (0, 6),
    "num_medications": (0, 80),
    "number_outpatient": (0, 40),
    "number_emergency": (0, 40),
    "number_inpatient": (0, 20),
    "number_diagnoses": (1, 16),
}


def _file(name: str) -> Path:
    return Path(os.environ.get("DPSYNTH_DATA_DIR", ".")) / name


def _schema(order: str, most: int, columns: Columns, unit: str = "id") -> PatientSchema:
    return PatientSchema.from_dict({"unit": unit, "rows": {"most": most, "order": order}, "columns": columns})


def nafld() -> tuple[pd.DataFrame, PatientSchema]:
    """Visits that measure HDL cholesterol or systolic pressure, by days since the first."""
    rows = pd.read_csv(_file("nafld_visits_odd.csv.gz")).dropna(subset=["hdl", "sbp"], how="all")
    people = pd.read_csv(_file("nafld_patients_odd.csv"))[["id", "age", "male", "bmi"]]
    rows["day"] = rows["days"] - rows.groupby("id")["days"].transform("min")
    rows = (
        rows.drop(columns="days")
        .round({"day": 0, "hdl": 0, "sbp": 0})
        .merge(people.round({"bmi": 1}), on="id")
    )
    columns: Columns = [
        {"name": "age", "kind": "integer", "lower": 18, "upper": 100, "per": "patient"},
        {"name": "male", "kind": "binary", "categories": [0, 1], "per": "patient"},
        {"name": "bmi", "kind": "continuous", "lower": 10, "upper": 80, "decimals": 1, "missing": True}
        | {"per": "patient"},
        {"name": "day", "kind": "integer", "lower": 0, "upper": 15_000, "unit": "days"},
        {"name": "hdl", "kind": "integer", "lower": 5, "upper": 150, "missing": True},
        {"name": "sbp", "kind": "integer", "lower": 60, "upper": 260, "missing": True},
    ]
    return rows, _schema("day", 20, columns)


def followed() -> tuple[pd.DataFrame, PatientSchema]:
    """The same visits by days since the diagnosis, and time to death or the end of follow-up."""
    rows = pd.read_csv(_file("nafld_visits_odd.csv.gz")).dropna(subset=["hdl", "sbp"], how="all")
    people = pd.read_csv(_file("nafld_patients_odd.csv"))[["id", "age", "male", "futime", "status"]]
    rows = rows.round({"days": 0, "hdl": 0, "sbp": 0}).merge(people, on="id")
    _, schema = nafld()
    known = {column.name: column for column in schema.columns}
    columns = [known["age"], known["male"]]
    columns.append(Column(name="futime", kind="integer", lower=0, upper=8000, unit="days"))
    columns.append(Column(name="status", kind="binary", categories=(0, 1)))
    columns.append(Column(name="days", kind="integer", lower=-8000, upper=8000, unit="days"))
    own = tuple(column.name for column in columns[:4])
    columns += [known["hdl"], known["sbp"]]
    fields = {"unit": "id", "order": "days", "most": 20, "per_patient": own, "columns": tuple(columns)}
    fields["outcome"] = "status"
    return rows, PatientSchema(**fields, keep="last", constraints=("days <= futime",))


def diabetes() -> tuple[pd.DataFrame, PatientSchema]:
    """Diabetes-130: encounters of a patient in the order of their numbers."""
    raw = pd.read_csv(_file("diabetic_data.csv"), na_values="?", keep_default_na=False, low_memory=False)
    races = {"Caucasian": "White", "AfricanAmerican": "Black", "Hispanic": "Hispanic", "Asian": "Asian"}
    rows = pd.DataFrame({"id": raw["patient_nbr"], "encounter": raw["encounter_id"]})
    rows["race"] = raw["race"].map(races).fillna("Other")
    rows["gender"] = raw["gender"].where(raw["gender"] != "Unknown/Invalid", "Female")
    rows = rows.join(raw[["age", *DIABETES_NUMBERS]])
    rows["A1C"] = raw["A1Cresult"].replace("None", "none")
    rows["insulin"] = raw["insulin"]
    rows["change"] = np.where(raw["change"] == "Ch", "yes", "no")
    rows["medicated"] = np.where(raw["diabetesMed"] == "Yes", "yes", "no")
    rows["died"] = np.where(raw["discharge_disposition_id"].isin([11, 19, 20, 21]), "yes", "no")
    rows["readmitted"] = raw["readmitted"]
    ages = [f"[{age}-{age + 10})" for age in range(0, 100, 10)]
    columns: Columns = [
        {"name": "race", "kind": "categorical", "categories": [*races.values(), "Other"], "per": "patient"},
        {"name": "gender", "kind": "binary", "categories": ["Female", "Male"], "per": "patient"},
        {"name": "age", "kind": "ordinal", "categories": ages, "over_time": "increasing"},
        *(
            {"name": name, "kind": "integer", "lower": lower, "upper": upper}
            for name, (lower, upper) in DIABETES_NUMBERS.items()
        ),
        {"name": "A1C", "kind": "ordinal", "categories": ["none", "Norm", ">7", ">8"]},
        {"name": "insulin", "kind": "categorical", "categories": ["No", "Down", "Steady", "Up"]},
        {"name": "change", **NO_YES},
        {"name": "medicated", **NO_YES},
        {"name": "died", **NO_YES, "over_time": "terminal"},
        {"name": "readmitted", "kind": "categorical", "categories": ["NO", ">30", "<30"]},
    ]
    return rows, _schema("encounter", 10, columns)


def pbcseq() -> tuple[pd.DataFrame, PatientSchema]:
    """Visits of 312 patients with primary biliary cholangitis."""
    rows = pd.read_csv(_file("pbcseq.csv")).drop(columns=["status", "futime"])
    rows = rows.round({"age": 1})
    for name in ("trt", "ascites", "hepato", "spiders"):
        rows[name] = rows[name].map({0: "no", 1: "yes", 2: "no"})
    labs = {"bili": (0.1, 40, 1), "albumin": (1, 6, 2), "ast": (5, 1500, 0), "protime": (7, 40, 1)}
    columns: Columns = [
        {"name": "trt", **NO_YES, "per": "patient"},
        {"name": "age", "kind": "continuous", "lower": 18, "upper": 90, "decimals": 1, "per": "patient"},
        {"name": "sex", "kind": "binary", "categories": ["f", "m"], "per": "patient"},
        {"name": "day", "kind": "integer", "lower": 0, "upper": 6000, "unit": "days"},
        *({"name": name, **NO_YES, "missing": True} for name in ("ascites", "hepato", "spiders")),
        {"name": "edema", "kind": "ordinal", "categories": [0.0, 0.5, 1.0]},
        *(
            {"name": name, "kind": "continuous", "lower": lower, "upper": upper, "decimals": decimals}
            | {"scale": "log"}
            for name, (lower, upper, decimals) in labs.items()
        ),
        {"name": "stage", "kind": "ordinal", "categories": [1, 2, 3, 4]},
    ]
    kept = ["id", *(column["name"] for column in columns)]
    return rows[kept], _schema("day", 16, columns)


def mimic() -> tuple[pd.DataFrame, PatientSchema]:
    """Four laboratory values of 100 patients of the MIMIC-III demo, by hours since the first."""
    items = {50912: "creatinine", 50971: "potassium", 50983: "sodium", 51222: "haemoglobin"}
    labs = pd.read_csv(_file("mimic3-demo/LABEVENTS.csv"), parse_dates=["charttime"])
    labs = labs[labs["itemid"].isin(items)].dropna(subset="valuenum")
    rows = labs.pivot_table("valuenum", ["subject_id", "charttime"], labs["itemid"].map(items)).reset_index()
    rows["hour"] = (rows["charttime"] - rows.groupby("subject_id")["charttime"].transform("min")).dt.floor(
        "h"
    ) / pd.Timedelta("1h")
    people = pd.read_csv(_file("mimic3-demo/PATIENTS.csv"))[["subject_id", "gender", "expire_flag"]]
    rows = rows.drop(columns="charttime").merge(people, on="subject_id")
    bounds = {"creatinine": (0.1, 20, 1), "potassium": (1, 12, 1), "sodium": (90, 190, 0)}
    bounds |= {"haemoglobin": (2, 22, 1)}
    columns: Columns = [
        {"name": "gender", "kind": "binary", "categories": ["F", "M"], "per": "patient"},
        {"name": "expire_flag", "kind": "binary", "categories": [0, 1], "per": "patient"},
        {"name": "hour", "kind": "integer", "lower": 0, "upper": 150_000},
        *(
            {"name": name, "kind": "continuous", "lower": lower, "upper": upper, "decimals": decimals}
            | {"missing": True}
            for name, (lower, upper, decimals) in bounds.items()
        ),
    ]
    return rows, _schema("hour", 60, columns, unit="subject_id")


TABLES: dict[str, Callable[[], tuple[pd.DataFrame, PatientSchema]]] = {
    table.__name__: table for table in (nafld, diabetes, pbcseq, mimic, followed)
}


def halves(name: str, patients: int | None = None) -> tuple[pd.DataFrame, pd.DataFrame, PatientSchema]:
    """Rows of a random half of the patients, of the other half, and the schema with the public number.

    At most ``patients`` random ones are in each half.
    """
    rows, schema = TABLES[name]()
    rng = np.random.default_rng(0)
    ids = np.sort(rows[schema.unit].unique())
    if patients is not None:
        ids = np.sort(rng.permutation(ids)[: 2 * patients])
        rows = rows[rows[schema.unit].isin(ids)]
    first = rng.permutation(len(ids)) < len(ids) // 2
    mine = rows[schema.unit].isin(ids[first])
    return rows[mine], rows[~mine], schema.model_copy(update={"n_public": int(first.sum())})
