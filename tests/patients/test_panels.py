"""Panels: rows at the times of a survey alone, and one row a person and time."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsynth import DPMarginals
from dpsynth.errors import SchemaError
from dpsynth.patients.courses.times import nearest_time
from dpsynth.patients.histories import patient_table, unused_rows
from dpsynth.patients.schema import PatientSchema
from dpsynth.table.schema import Column

YEARS = (1968.0, 1969.0, 1970.0, 1971.0, 1972.0, 1973.0, 1975.0, 1977.0, 1978.0, 1980.0, 1982.0, 1985.0)
PANEL = PatientSchema(
    unit="person",
    order="year",
    most=10,
    times=YEARS,
    unique=True,
    columns=(
        Column(name="year", kind="integer", lower=1968, upper=1988),
        Column(name="union", kind="binary", categories=("no", "yes")),
        Column(name="wage", kind="continuous", lower=0, upper=10, decimals=2),
    ),
)


def panel(n: int, seed: int = 0) -> pd.DataFrame:
    """Persons in some of the years, some of whom are asked twice in one."""
    rng = np.random.default_rng(seed)
    there = rng.random((n, len(YEARS))) < rng.uniform(0.2, 0.8, n)[:, None]
    there[:, 3] |= ~there.any(axis=1)
    person, year = np.nonzero(there)
    frame = pd.DataFrame({"person": person, "year": np.array(YEARS, dtype=int)[year]})
    frame["union"] = rng.choice(["no", "yes"], len(frame))
    frame["wage"] = (2 + rng.normal(0, 0.5, n)[person] + 0.03 * year).clip(0, 10).round(2)
    return pd.concat([frame, frame.sample(frac=0.05, random_state=seed)], ignore_index=True)


def test_a_second_row_of_a_year_is_not_used() -> None:
    """A person who counts twice in a year, and a row that depends on other persons."""
    frame = panel(300, seed=1)
    twice = int(frame.duplicated(["person", "year"]).sum())
    several = PANEL.model_copy(update={"most": 12})
    assert unused_rows(frame, several) == {"after a terminal row, or at the time of another row": twice}
    rows = patient_table(frame, several)["rows"].to_numpy()
    counts = frame.drop_duplicates(["person", "year"]).groupby("person").size()
    assert (rows == counts.loc[frame["person"].unique()].to_numpy()).all()


def test_which_row_of_a_year_is_used_reads_no_other_person() -> None:
    """A person's row that another person's row at the same time takes away."""
    frame = panel(40, seed=3)
    whole, names = patient_table(frame, PANEL), frame["person"].unique()
    assert len(whole) == 40
    for place in (0, 7, 39):
        alone = patient_table(frame[frame["person"] == names[place]], PANEL)
        pd.testing.assert_frame_equal(alone, whole.iloc[[place]].reset_index(drop=True))


def test_synthetic_persons_have_years_of_the_survey_once() -> None:
    """A row in a year without a survey, and two rows of one year."""
    real = panel(2000, seed=2)
    schema = PANEL.model_copy(update={"n_public": 2000})
    made = DPMarginals(epsilon=3.0, random_state=0).fit(real, schema=schema).sample(2000, random_state=0)
    assert set(made["year"]) <= set(YEARS) and not made.duplicated(["person", "year"]).any()
    assert (made.groupby("person")["year"].diff().dropna() > 0).all()
    before, after = (
        table.drop_duplicates(["person", "year"])["year"].value_counts(normalize=True)
        for table in (real, made)
    )
    assert 0.5 * (before - after.reindex(before.index, fill_value=0)).abs().sum() < 0.15


@given(st.lists(st.integers(-50, 50), min_size=1, max_size=8, unique=True), st.floats(-80, 80))
@settings(deadline=None)
def test_the_nearest_time_is_the_nearest(known: list[int], value: float) -> None:
    """A time that moves past a nearer one."""
    ahead = np.array(sorted(known), dtype=float)
    found = ahead[nearest_time(ahead, np.array([value]))[0]]
    assert abs(found - value) == min(abs(ahead - value))


def test_times_are_read_from_files_and_refused_where_wrong(tmp_path) -> None:
    """Dates that do not come back, and more rows than times."""
    assert PatientSchema.from_yaml(PANEL.to_yaml()) == PANEL
    text = """
unit: id
rows: {most: 2, order: seen, times: [2020-01-01, 2021-01-01], unique: true}
columns:
- {name: seen, kind: date, lower: 2019-01-01, upper: 2022-01-01}
- {name: ward, kind: binary, categories: [A, B]}
"""
    schema = PatientSchema.from_yaml(text)
    assert PatientSchema.from_yaml(schema.to_yaml()) == schema
    with pytest.raises(SchemaError, match="most must be at most 2, the number of times"):
        PatientSchema.from_yaml(text.replace("most: 2", "most: 3"))
    with pytest.raises(SchemaError, match="times must ascend within the bounds of 'seen'"):
        PatientSchema.from_yaml(text.replace("2020-01-01, 2021", "2021-01-01, 2020"))
    with pytest.raises(SchemaError, match="times must be a date"):
        PatientSchema.from_yaml(text.replace("2020-01-01, 2021", "soon, 2021"))
