"""The guide for OMOP: three tables of the common data model as files of one patient."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dpsynth import DPMarginals
from dpsynth.patients import infer_patient_schema
from dpsynth.patients.files import read_files
from dpsynth.privacy import Ledger
from dpsynth.table import CsvFormat

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "bring-in-a-table.md"
CONCEPTS = {
    8507: "MALE",
    8532: "FEMALE",
    201826: "Type 2 diabetes mellitus",
    316866: "Hypertensive disorder",
    3004249: "Systolic blood pressure",
    3004410: "Hemoglobin A1c",
}


def database(n: int = 150) -> dict[str, pd.DataFrame]:
    """A small made-up common data model."""
    rng = np.random.default_rng(0)
    ids = np.arange(1, n + 1)

    def rows(of: str, concepts: list[int]) -> pd.DataFrame:
        who = np.repeat(ids, rng.integers(1, 5, n))
        days = pd.to_timedelta(rng.integers(0, 1500, len(who)), unit="D")
        what = rng.choice(concepts, len(who))
        return pd.DataFrame(
            {"person_id": who, f"{of}_concept_id": what, "date": pd.Timestamp("2015-01-01") + days}
        )

    conditions = rows("condition", [201826, 316866]).rename(columns={"date": "condition_start_date"})
    labs = rows("measurement", [3004249, 3004410]).rename(columns={"date": "measurement_date"})
    pressure = labs["measurement_concept_id"] == 3004249
    labs["value_as_number"] = np.where(
        pressure, rng.normal(132, 15, len(labs)), rng.normal(6.5, 1, len(labs))
    ).round(1)
    persons = {"person_id": ids, "gender_concept_id": rng.choice([8507, 8532], n)}
    return {
        "person": pd.DataFrame({**persons, "year_of_birth": rng.integers(1930, 1995, n)}),
        "concept": pd.DataFrame({"concept_id": [*CONCEPTS], "concept_name": [*CONCEPTS.values()]}),
        "condition_occurrence": conditions,
        "measurement": labs,
    }


def test_the_guide_makes_a_folder_of_patients(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """SQL of the guide that does not run, or files that are not of one patient."""
    duckdb = pytest.importorskip("duckdb")
    found = re.search(r"```sql\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert found is not None
    monkeypatch.chdir(tmp_path)
    Path("omop").mkdir()
    with duckdb.connect() as connection:
        for name, frame in database().items():
            connection.register("made", frame)
            connection.execute(f"CREATE TABLE {name} AS SELECT * FROM made")
        connection.execute(found[1])
    tables = read_files(Path("omop"), CsvFormat())
    schema = infer_patient_schema(tables).schema
    assert (schema.unit, schema.order) == ("patient_id", "date")
    assert {"Hemoglobin A1c", "Systolic blood pressure", "diagnosis"} <= {*schema.names}
    assert {*schema.per_patient} == {"year_of_birth", "sex"}
    model = DPMarginals(epsilon=None, accept_unreviewed=True, random_state=0)
    from dpsynth.patients.reader import reader_of

    model.fit(reader_of(schema).read("omop"), schema=schema, ledger=Ledger())
    sample = model.sample(40, random_state=1)
    assert sample["patient_id"].nunique() == 40 and sample["Hemoglobin A1c"].notna().any()
