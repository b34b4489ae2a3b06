"""Categories that a patient has once: first times alone count, and no synthetic patient has one twice."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from visits import DIAGNOSES, diagnoses

from dpsynth import DPMarginals
from dpsynth.errors import SchemaError
from dpsynth.patients.histories import patient_table, unused_rows
from dpsynth.patients.schema import PatientSchema
from dpsynth.table.schema import Column

CODES = DIAGNOSES.column("code").categories


def first_times(frame: pd.DataFrame) -> pd.DataFrame:
    """Day of each patient's first row with each code."""
    known = frame.dropna(subset=["code"])
    found = known.pivot_table("day", "id", "code", aggfunc="min", observed=False)
    return found.reindex(range(frame["id"].max() + 1))[[*CODES]]


def test_levels_are_first_times_by_plain_pandas() -> None:
    """A second time that counts, and a time of another patient."""
    frame = diagnoses(200, seed=1).sample(frac=1, random_state=0)
    whole = DIAGNOSES.model_copy(update={"most": 20})
    own = frame.groupby("id")[["end", "age"]].first()
    assert not own.duplicated().any()
    levels = patient_table(frame, whole).set_index(["end", "age"]).loc[list(own.itertuples(index=False))]
    found = levels[[f"code first {code}" for code in CODES]]
    np.testing.assert_array_equal(found.to_numpy(float, na_value=np.nan), first_times(frame).to_numpy())
    later = frame.dropna(subset=["code"]).sort_values("day").duplicated(["id", "code"])
    bare = later[later].index.intersection(frame.index[frame["lab"].isna()])
    assert unused_rows(frame, whole) == {"without a value, or with one that came before": len(bare)}


@pytest.fixture(scope="module")
def made() -> tuple[pd.DataFrame, pd.DataFrame]:
    real = diagnoses(2000, seed=2)
    schema = DIAGNOSES.model_copy(update={"n_public": 2000})
    return real, DPMarginals(epsilon=30.0, random_state=0).fit(real, schema=schema).sample(
        3000, random_state=0
    )


def test_no_synthetic_patient_has_a_code_twice(made: tuple[pd.DataFrame, pd.DataFrame]) -> None:
    """A diagnosis that happens again, a row after the end, and rows out of order."""
    _, frame = made
    assert not frame.dropna(subset=["code"]).duplicated(["id", "code"]).any()
    assert (frame["day"] <= frame["end"]).all()
    assert (frame.groupby("id")["day"].diff().dropna() >= 0).all()


def test_who_has_a_code_when_is_kept(made: tuple[pd.DataFrame, pd.DataFrame]) -> None:
    """A first diagnosis that comes years after the first day, and codes that the young have as often."""
    real, frame = made
    index = {
        name: table.loc[table["code"] == "index", "day"] for name, table in (("real", real), ("made", frame))
    }
    assert index["made"].between(0, 20).mean() > 0.8 * index["real"].between(0, 20).mean()
    for code in CODES[1:]:
        shares, older = [], []
        for table in (real, frame):
            people = table.groupby("id")["age"].first()
            ever = people.index.isin(table.loc[table["code"] == code, "id"])
            shares.append(ever.mean())
            older.append(people[ever].mean() - people.mean())
        assert abs(shares[0] - shares[1]) < 0.06
        assert older[1] > 0.5 * older[0] > 0


def test_a_sentence_says_what_can_be_once() -> None:
    """Numbers, or columns with one value for each patient, that are said to be once."""
    day = Column(name="day", kind="integer", lower=0, upper=9)
    lab = Column(name="lab", kind="integer", lower=0, upper=9)
    with pytest.raises(SchemaError, match="column 'lab': only categories can be over_time: once"):
        PatientSchema(unit="id", order="day", most=3, columns=(day, lab), once=("lab",))
    with pytest.raises(SchemaError, match="column 'day': only columns that change from row to row"):
        PatientSchema(unit="id", order="day", most=3, columns=(day, lab), once=("day",))
    with pytest.raises(SchemaError, match="times and unique cannot stand beside over_time: once"):
        DIAGNOSES.with_fields(unique=True)


def test_no_diagnosis_comes_after_the_patients_end() -> None:
    """A first time of the levels that moves a row past the end of follow-up."""
    real = diagnoses(1500, seed=3)
    schema = DIAGNOSES.with_fields(n_public=1500, until="end", constraints=())
    made = DPMarginals(epsilon=2.0, random_state=0).fit(real, schema=schema).sample(1500, random_state=0)
    assert (made["day"] <= made["end"]).all()


def test_a_row_of_a_death_stays_the_last() -> None:
    """A diagnosis in the row of a death that takes this row to its own time."""
    rng = np.random.default_rng(0)
    who = np.repeat(np.arange(600), 4)
    frame = pd.DataFrame(
        {"id": who, "day": rng.integers(0, 1000, len(who)), "code": rng.choice([*"abcdef"], 2400)}
    )
    frame = frame.sort_values(["id", "day"], ignore_index=True).drop_duplicates(["id", "code"])
    last = ~frame.duplicated("id", keep="last")
    frame["died"] = np.where(last & (frame["id"] % 2 == 0), "yes", "no")
    schema = PatientSchema(
        unit="id",
        order="day",
        most=4,
        n_public=600,
        columns=(
            Column(name="day", kind="integer", lower=0, upper=1000),
            Column(name="code", kind="categorical", categories=tuple("abcdef"), missing=True),
            Column(name="died", kind="binary", categories=("no", "yes")),
        ),
        once=("code",),
        terminal=("died",),
    )
    made = DPMarginals(epsilon=5.0, random_state=0).fit(frame, schema=schema).sample(1000, random_state=0)
    assert (made["died"] == "yes").sum() > 200
    assert not (made["died"].eq("yes") & made.duplicated("id", keep="last")).any()
    assert (made.groupby("id")["day"].diff().dropna() >= 0).all()


def test_a_death_counts_in_a_row_with_a_code_that_came_before() -> None:
    """A death that is lost since its row repeats a diagnosis."""
    columns = (
        Column(name="day", kind="integer", lower=0, upper=9),
        Column(name="code", kind="categorical", categories=("a", "b")),
        Column(name="died", kind="binary", categories=("no", "yes")),
    )
    fields = {"unit": "id", "order": "day", "columns": columns, "once": ("code",), "terminal": ("died",)}
    frame = pd.DataFrame({"id": [1, 1], "day": [1, 5], "code": ["a", "a"], "died": ["no", "yes"]})
    levels = patient_table(frame, PatientSchema(most=2, **fields))
    assert levels[["rows", "died"]].to_numpy().tolist() == [[2, "yes"]]
    with pytest.raises(SchemaError, match="most must be at most 2, the number of categories of 'code'"):
        PatientSchema(most=3, **fields)
