"""From the published files to one row a patient."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsynth import datasets
from dpsynth.datasets.files import table_of
from dpsynth.datasets.preparations import _OTHER_DRUGS, diagnosis_group, first_encounters
from dpsynth.errors import DataError

CARD = datasets.card("diabetes130")
DRUGS = ("metformin", "glimepiride", "glipizide", "glyburide", "pioglitazone", "rosiglitazone", "insulin")


def encounter(number: int, patient: int, **cells: str | None) -> dict[str, str | None]:
    """A row of the published file."""
    usual = {
        "encounter_id": str(number),
        "patient_nbr": str(patient),
        "race": "Caucasian",
        "gender": "Female",
        "age": "[70-80)",
        "admission_type_id": "1",
        "discharge_disposition_id": "1",
        "admission_source_id": "7",
        "time_in_hospital": "3",
        "medical_specialty": "?",
        "num_lab_procedures": "40",
        "num_procedures": "0",
        "num_medications": "12",
        "number_outpatient": "0",
        "number_emergency": "0",
        "number_inpatient": "0",
        "number_diagnoses": "9",
        "diag_1": "428",
        "diag_2": "250.01",
        "diag_3": "?",
        "max_glu_serum": None,
        "A1Cresult": None,
        **dict.fromkeys((*DRUGS, *_OTHER_DRUGS), "No"),
        "change": "No",
        "diabetesMed": "No",
        "readmitted": "NO",
    }
    return usual | cells


def table(rows: list[dict[str, str | None]]) -> pd.DataFrame:
    return table_of(CARD, pd.DataFrame(rows, dtype=object)).frame


ENCOUNTERS = st.lists(
    st.tuples(
        st.integers(0, 5),  # patient
        st.sampled_from(["1", "6", "11", "13"]),  # how it ended
        st.sampled_from(["<30", ">30", "NO"]),
        st.integers(1, 14),
    ),
    min_size=1,
    max_size=25,
)


@pytest.mark.slow
@given(ENCOUNTERS, st.randoms(use_true_random=False), st.integers(0, 5))
@settings(max_examples=25, deadline=None)
def test_a_patient_is_at_most_one_row(rows, order, patient) -> None:
    """Encounters kept as rows, or a patient whose absence changes somebody else's row.

    Then a guarantee about one row, which the ledger says is one patient, would be about less.
    """
    made = [
        encounter(number, who, discharge_disposition_id=end, readmitted=again, time_in_hospital=str(days))
        for number, (who, end, again, days) in enumerate(rows)
    ]
    order.shuffle(made)  # the file's order is not that of time
    without = [row for row in made if row["patient_nbr"] != str(patient)]
    whole = list(map(tuple, table(made).astype(object).to_numpy())) if made else []
    fewer = list(map(tuple, table(without).astype(object).to_numpy())) if without else []
    more, other = Counter(map(str, whole)), Counter(map(str, fewer))
    assert (more - other).total() <= 1 and not other - more


def test_the_first_encounter_decides() -> None:
    """The last encounter or the first line of the file taken, or a death of a later stay that counts."""
    made = table(
        [
            encounter(9, 1, time_in_hospital="9"),
            encounter(2, 1, time_in_hospital="2", readmitted="<30"),
            encounter(10, 1, discharge_disposition_id="11"),
            encounter(3, 2, discharge_disposition_id="13"),  # a hospice: no row, whatever came later
            encounter(4, 2),
            encounter(100, 3, time_in_hospital="5", readmitted=">30"),  # before 20 only as text
            encounter(20, 3, time_in_hospital="4"),
        ]
    )
    assert made["time_in_hospital"].tolist() == [2, 4]
    assert made["readmitted"].tolist() == ["yes", "no"]


def test_who_cannot_come_back_is_left_out() -> None:
    """Deaths and hospices among those at risk of a readmission."""
    for end in ["11", "13", "14", "19", "20", "21"]:
        assert len(table([encounter(1, 1), encounter(2, 2, discharge_disposition_id=end)])) == 1


def test_words_of_the_file() -> None:
    """A test that was not done read as missing, a ``?`` as a category, an unknown sex as one."""
    row = encounter(
        1,
        1,
        gender="Unknown/Invalid",
        race="?",
        admission_type_id="5",
        A1Cresult=">8",
        medical_specialty="Surgery-Vascular",
        discharge_disposition_id="3",
        admission_source_id="17",
    )
    made = table([row]).iloc[0]
    assert made[["gender", "race", "admission_type", "third_diagnosis"]].isna().all()
    assert made[["max_glu_serum", "A1Cresult"]].tolist() == ["not measured", ">8"]
    assert made[["specialty", "discharge", "admission_source"]].tolist() == ["surgery", "other", "other"]
    assert made[["primary_diagnosis", "second_diagnosis"]].tolist() == ["circulatory", "diabetes"]
    assert made["other_drug"] == "No" and table([row | {"acarbose": "Down"}])["other_drug"].tolist() == [
        "Yes"
    ]


GROUPS = {
    "circulatory": "390 459.9 785",
    "respiratory": "460 519 786",
    "digestive": "520 579 787",
    "diabetes": "250.6",
    "injury": "800 999",
    "musculoskeletal": "710 739",
    "genitourinary": "580 629 788",
    "neoplasms": "140 239",
    "other": "389 249 251 709 630 139 784 38 V57 E885",
    None: "?",
}


def test_diagnosis_groups() -> None:
    """A range of the study's Table 2 that ends one code early or late."""
    for group, codes in GROUPS.items():
        assert {code: diagnosis_group(code) for code in codes.split()} == dict.fromkeys(codes.split(), group)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"patient_nbr": None}, "whose row it is unknown"),
        ({"encounter_id": "8"}, "the encounter_id 8 stands twice"),
        ({"encounter_id": "x"}, "'x' is not a number"),
    ],
)
def test_a_file_that_does_not_say_whose_rows_they_are(change: dict[str, str | None], words: str) -> None:
    """Rows without a patient taken as one patient's, or as nobody's."""
    with pytest.raises(DataError, match=words):
        first_encounters(pd.DataFrame([encounter(8, 1), encounter(9, 2) | change]))


def test_a_patient_in_two_spellings_has_one_row() -> None:
    """A patient who is two rows, and so two persons of the guarantee, by a number written in two ways."""
    rows = pd.DataFrame([encounter(9, 7), encounter(8, 7) | {"patient_nbr": "7.0"}, encounter(6, 5)])
    assert first_encounters(rows)["encounter_id"].tolist() == ["8", "6"]


def test_a_column_the_card_knows_of_is_gone() -> None:
    """A leaking column under another name, which nobody would look for."""
    with pytest.raises(DataError, match=r"diabetic_data\.csv: the column 'race' that .* needs is absent"):
        table([{k: v for k, v in encounter(1, 1).items() if k != "race"}])


@pytest.mark.slow
def test_diabetes130_is_the_studys_table(loaded: Callable[[str], datasets.Table]) -> None:
    """Another choice of rows or groups than in Strack et al. 2014, by the figures that they printed.

    Their abstract: HbA1c was measured in 18.4 % of almost 70,000 encounters. Their Table 2: 30.6 % of the
    primary diagnoses are circulatory, 17.3 % other.
    """
    frame = loaded("diabetes130").frame
    assert abs(len(frame) / 69_984 - 1) < 2e-4
    assert abs((frame["A1Cresult"] != "not measured").mean() - 0.184) < 0.001
    shares = frame["primary_diagnosis"].value_counts(normalize=True)
    assert abs(shares["circulatory"] - 0.306) < 0.001 and abs(shares["other"] - 0.173) < 0.001
    assert not any(rule.broken(frame).any() for rule in CARD.table.rules)


def test_physionet2012_has_no_impossible_value(loaded: Callable[[str], datasets.Table]) -> None:
    """The challenge's -1 for unknown, or a pressure of 0, kept as measured."""
    frame = loaded("physionet2012").frame
    assert frame["systolic"].min() >= 20 and frame["temperature"].min() >= 25
    assert frame["gender"].isna().sum() == 3
    assert np.isclose(frame["death"].astype(int).mean(), 554 / 4000)  # as the organisers say
    assert frame["icu"].value_counts().to_dict() == {
        "medical": 1481, "surgical": 1068, "cardiac surgery": 874, "coronary": 577,
    }  # fmt: skip
