"""Make tables of one row a patient from published files that are not one already.

One function a data set, named as the data set. It takes the file's cells as text (None if a value is
absent). It returns a frame with the columns that the card names.

Functions are part of what the card's unit promises. A row of the outcome depends on one patient's rows of
the file and on nothing else. So one patient more or less in the file is at most one row more or less in
the table. A file that does not say whose a row is, as randhie's, keeps one row a line. Its card's unit
says that it is no person.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pandas as pd

from dpsynth.errors import DataError
from dpsynth.table.identity import identities


def require(raw: pd.DataFrame, columns: Iterable[str]) -> None:
    """Refuse a file that lacks a column, naming it."""
    for name in columns:
        if name not in raw.columns:
            raise DataError(f"the column {name!r} is absent from the file")


def text_numbers(values: pd.Series) -> pd.Series:
    """Text as numbers, NaN where a value is absent."""
    read = pd.to_numeric(values, errors="coerce")
    wrong = values[read.isna() & values.notna()]
    if len(wrong):
        raise DataError(f"column {values.name!r}, row {wrong.index[0]}: {wrong.iloc[0]!r} is not a number")
    return read


_ENCOUNTER, _PATIENT = "encounter_id", "patient_nbr"
# discharge_disposition_id of the data dictionary: expired, or to a hospice
_ENDED = ["11", "13", "14", "19", "20", "21"]
_ADMISSION = {
    "1": "emergency",
    "2": "urgent",
    "3": "elective",
    "4": "newborn",
    "7": "trauma centre",
}
_SOURCE = {"1": "referral", "2": "referral", "7": "emergency room"}
_SPECIALTY = {
    "InternalMedicine": "internal medicine",
    "Family/GeneralPractice": "general practice",
    "Surgeon": "surgery",
    "SurgicalSpecialty": "surgery",
    "?": "unknown",
    "PhysicianNotFound": "unknown",
}
# Table 2: the first three digits of ICD-9, ends included; 250 is diabetes, everything else is "other"
_GROUPS = (
    (390, 459, "circulatory"),
    (785, 785, "circulatory"),
    (460, 519, "respiratory"),
    (786, 786, "respiratory"),
    (520, 579, "digestive"),
    (787, 787, "digestive"),
    (250, 250, "diabetes"),
    (800, 999, "injury"),
    (710, 739, "musculoskeletal"),
    (580, 629, "genitourinary"),
    (788, 788, "genitourinary"),
    (140, 239, "neoplasms"),
)
# given too seldom for a column each; examide and citoglipton are in the dictionary and were given to nobody
_OTHER_DRUGS = (
    "repaglinide", "nateglinide", "chlorpropamide", "acetohexamide", "tolbutamide", "acarbose",
    "miglitol", "troglitazone", "tolazamide", "examide", "citoglipton", "glyburide-metformin",
    "glipizide-metformin", "glimepiride-pioglitazone", "metformin-rosiglitazone",
    "metformin-pioglitazone",
)  # fmt: skip
#: primary diagnoses between which the study compares what the measurement of HbA1c goes with
_COMPARED = ("diabetes", "circulatory", "respiratory")
_READ = (
    _ENCOUNTER, _PATIENT, "gender", "admission_type_id", "discharge_disposition_id",
    "admission_source_id", "medical_specialty", "diag_1", "diag_2", "diag_3", "max_glu_serum",
    "A1Cresult", "readmitted", *_OTHER_DRUGS,
)  # fmt: skip


def diabetes130(raw: pd.DataFrame) -> pd.DataFrame:
    """Diabetes in 130 hospitals of the United States, prepared as in the study that published it.

    Strack et al., "Impact of HbA1c measurement on hospital readmission rates", BioMed Research International
    2014, 781670, section 2. One row a patient, the first encounter. Encounters that ended in death or in a
    hospice are removed, since such a patient is not readmitted. Diagnoses are in the nine groups of Table 2.
    Admission, discharge and specialty have the levels that the study compares.

    Encounters are numbered in the order of time. The first encounter is chosen before its end is looked at. A
    patient's row, or its absence, therefore follows from that patient's own encounters.
    """
    require(raw, _READ)
    first = first_encounters(raw)
    kept = first[~first["discharge_disposition_id"].isin(_ENDED)]
    made = kept.copy()
    made["gender"] = kept["gender"].where(kept["gender"] != "Unknown/Invalid", None)
    made["admission_type"] = kept["admission_type_id"].map(_ADMISSION)
    made["admission_source"] = kept["admission_source_id"].map(_SOURCE).fillna("other")
    made["discharge"] = kept["discharge_disposition_id"].eq("1").map({True: "home", False: "other"})
    made["specialty"] = kept["medical_specialty"].map(_specialty)
    for name in ("diag_1", "diag_2", "diag_3"):
        made[name] = kept[name].map(diagnosis_group, na_action="ignore")
    for name in ("max_glu_serum", "A1Cresult"):  # the file's word for no test is None
        made[name] = kept[name].fillna("not measured")
    made["measured_in"] = _measured_in(made)
    other = kept[list(_OTHER_DRUGS)].isin(["Down", "Steady", "Up"]).any(axis=1)
    made["other_drug"] = other.map({True: "Yes", False: "No"})
    made["readmitted"] = kept["readmitted"].map({"<30": "yes", ">30": "no", "NO": "no"})
    return made


def first_encounters(raw: pd.DataFrame) -> pd.DataFrame:
    """Each patient's encounter with the lowest number, in the order of the file."""
    patient = pd.Series(identities(raw[_PATIENT]), raw.index)
    nobody = raw.index[(patient == "") | raw[_ENCOUNTER].isna()]
    if len(nobody):
        raise DataError(f"row {nobody[0]}: {_PATIENT} or {_ENCOUNTER} is missing, so whose row it is unknown")
    number = text_numbers(raw[_ENCOUNTER])
    if number.duplicated().any():
        raise DataError(f"the {_ENCOUNTER} {raw[_ENCOUNTER][number.duplicated()].iloc[0]} stands twice")
    return raw.loc[number.groupby(patient).idxmin().sort_values()]


def diagnosis_group(code: str) -> str | None:
    """The group of an ICD-9 code in Table 2, or None for the file's ``?``.

    Examples
    --------
    >>> [diagnosis_group(code) for code in ("428", "250.83", "V57", "276", "?")]
    ['circulatory', 'diabetes', 'other', 'other', None]
    """
    if code == "?":
        return None
    digits = code.split(".")[0]
    if not digits.isdigit():  # V and E codes
        return "other"
    return next((name for low, high, name in _GROUPS if low <= int(digits) <= high), "other")


def _measured_in(made: pd.DataFrame) -> pd.Series:
    """The primary diagnosis if HbA1c was measured (an unknown one is other), else ``not measured``."""
    diagnosis = made["diag_1"].where(made["diag_1"].isin(_COMPARED), "other")
    return diagnosis.where(made["A1Cresult"] != "not measured", "not measured")


def _specialty(word: str | None) -> str:
    if word is None:
        return "unknown"
    if word.startswith("Surgery"):
        return "surgery"
    if word.startswith("Cardiology"):
        return "cardiology"
    return _SPECIALTY.get(word, "other")


_UNITS = {"CCU": "coronary", "CSRU": "cardiac surgery", "SICU": "surgical"}
_MEASURED = (
    "GCS_lowest", "HR_median", "Temp_median", "NISysABP_lowest", "Glucose_median", "BUN_last",
    "Creatinine_last", "Na_last", "K_last", "HCO3_last", "HCT_last", "WBC_last", "Platelets_last",
    "Lactate_last",
)  # fmt: skip
# degrees Celsius and mmHg below which a value is a fault of the measurement
_LEAST = {"Temp_median": 25.0, "NISysABP_lowest": 20.0}


def physionet2012(raw: pd.DataFrame) -> pd.DataFrame:
    """PhysioNet/Computing in Cardiology Challenge 2012, set A: one row a stay, as it is in the file.

    The flags of the unit become one column, the start of a ventilation a yes or no. Values with which nobody
    is alive are taken for missing. So are negative ones: the challenge writes -1 for unknown.

    Examples
    --------
    >>> cells = dict.fromkeys((*_UNITS, *_MEASURED, "MechVentStartTime"), "0")
    >>> made = physionet2012(pd.DataFrame([cells | {"SICU": "1", "Temp_median": "17.8", "HR_median": "-1"}]))
    >>> made.loc[0, ["icu", "ventilated"]].tolist(), made[["Temp_median", "HR_median"]].count().tolist()
    (['surgical', 'yes'], [0, 0])
    """
    require(raw, (*_UNITS, *_MEASURED, "MechVentStartTime"))
    made = raw.copy()
    icu = pd.Series("medical", index=raw.index, dtype=object)
    for flag, name in _UNITS.items():
        icu[text_numbers(raw[flag]) == 1] = name
    made["icu"] = icu
    for name in _MEASURED:
        values = text_numbers(raw[name])
        made[name] = values.where(values >= _LEAST.get(name, 0.0))
    made["ventilated"] = np.where(raw["MechVentStartTime"].notna(), "yes", "no")
    return made


_HEALTH = {"hlthg": "good", "hlthf": "fair", "hlthp": "poor"}
_LOGARITHMS = ("lncoins", "lpi", "fmde")


def randhie(raw: pd.DataFrame) -> pd.DataFrame:
    """RAND Health Insurance Experiment as statsmodels ships it: logarithms become the amounts again.

    ``ln(coinsurance + 1)`` and ``ln(max(1, dollars))`` are undone and rounded to whole percent and dollars,
    where a logarithm of 0 stands for 0 dollars. The index of diseases has one decimal. The three flags of
    health become one column. A limitation that is a fraction is a mean that stands for an unknown answer, and
    is missing.

    Examples
    --------
    >>> row = dict.fromkeys((*_HEALTH, *_LOGARITHMS, "idp", "physlm", "mdvis", "disea"), 0.0)
    >>> row |= {"lncoins": 3.258096, "fmde": 8.006368, "hlthf": 1.0, "physlm": 0.1442925}
    >>> print(*randhie(pd.DataFrame([row])).loc[0, ["coinsurance", "expense_limit", "health"]])
    25 3000.0 fair
    """
    require(raw, (*_HEALTH, *_LOGARITHMS, "idp", "physlm", "mdvis", "disea"))
    known = {name: text_numbers(raw[name]) for name in raw.columns}
    health = pd.Series("excellent", index=raw.index, dtype=object)
    for flag, word in _HEALTH.items():
        health[known[flag] == 1] = word
    return pd.DataFrame(
        {
            "coinsurance": (np.exp(known["lncoins"]) - 1).round().map("{:.0f}".format),
            "deductible": np.where(known["idp"] == 1, "yes", "no"),
            "incentive": _dollars(known["lpi"]),
            "expense_limit": _dollars(known["fmde"]),
            "diseases": known["disea"].round(1),
            "health": health,
            "visits": known["mdvis"],
            "limitation": known["physlm"].map({0.0: "no", 1.0: "yes"}),
        }
    )


def _dollars(logarithm: pd.Series) -> pd.Series:
    return np.exp(logarithm).round().where(logarithm > 0, 0.0)


#: for data sets that need more than the card's renames, recodes and constants
PREPARATIONS = {function.__name__: function for function in (diabetes130, physionet2012, randhie)}
