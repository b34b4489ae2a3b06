"""Diabetes in 130 hospitals of the United States, prepared as in the study that published it.

Strack et al., "Impact of HbA1c measurement on hospital readmission rates", BioMed Research International
2014, 781670, section 2: one row a patient, the first encounter; those that ended in death or in a hospice
are removed, since such a patient is not readmitted; diagnoses in the nine groups of Table 2; the levels of
admission, discharge and specialty that the study compares.

Encounters are numbered in the order of time. First the first encounter is chosen, then it is asked how it
ended, so that a patient's row, or its absence, follows from that patient's own encounters.
"""

from __future__ import annotations

import pandas as pd

from dpsynth.datasets.preparations.cells import numbers, require
from dpsynth.errors import DataError

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
    "repaglinide",
    "nateglinide",
    "chlorpropamide",
    "acetohexamide",
    "tolbutamide",
    "acarbose",
    "miglitol",
    "troglitazone",
    "tolazamide",
    "examide",
    "citoglipton",
    "glyburide-metformin",
    "glipizide-metformin",
    "glimepiride-pioglitazone",
    "metformin-rosiglitazone",
    "metformin-pioglitazone",
)
#: primary diagnoses between which the study compares what the measurement of HbA1c goes with
_COMPARED = ("diabetes", "circulatory", "respiratory")
_READ = (
    _ENCOUNTER,
    _PATIENT,
    "gender",
    "admission_type_id",
    "discharge_disposition_id",
    "admission_source_id",
    "medical_specialty",
    "diag_1",
    "diag_2",
    "diag_3",
    "max_glu_serum",
    "A1Cresult",
    "readmitted",
    *_OTHER_DRUGS,
)


def prepare(raw: pd.DataFrame) -> pd.DataFrame:
    """See :func:`dpsynth.datasets.preparations.prepared`."""
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
    """Each patient's encounter with the lowest number, in the order of the file.

    Raises
    ------
    DataError
        If a row says not whose it is, or two encounters have one number.
    """
    nobody = raw.index[raw[_PATIENT].isna() | raw[_ENCOUNTER].isna()]
    if len(nobody):
        raise DataError(f"row {nobody[0]}: {_PATIENT} or {_ENCOUNTER} is missing, so whose row it is unknown")
    number = numbers(raw[_ENCOUNTER])
    if number.duplicated().any():
        raise DataError(f"the {_ENCOUNTER} {raw[_ENCOUNTER][number.duplicated()].iloc[0]} stands twice")
    return raw.loc[number.groupby(raw[_PATIENT]).idxmin().sort_values()]


def diagnosis_group(code: str) -> str | None:
    """The group of an ICD-9 code in Table 2; None for the file's ``?``.

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
    """In whom HbA1c was measured: the primary diagnosis, or ``not measured``; an unknown one is other."""
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
