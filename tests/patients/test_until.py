"""Rows that end before a patient's own end: the time left is kept, and no row comes after it."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from dpsynth import DPMarginals
from dpsynth.errors import SchemaError
from dpsynth.patients.histories import patient_table
from dpsynth.patients.schema import PatientSchema

TEXT = """
unit: id
rows: {most: 8, order: seen, until: end}
columns:
- {name: seen, kind: date, lower: 2010-01-01, upper: 2019-12-31}
- {name: end, kind: date, lower: 2010-01-01, upper: 2021-12-31, per: patient}
- {name: lab, kind: integer, lower: 0, upper: 99}
constraints: [seen <= end]
"""
SCHEMA = PatientSchema.from_yaml(TEXT)


def followed(n: int, seed: int = 0) -> pd.DataFrame:
    """Patients whose last row comes shortly before their end, and whose rows begin years before it."""
    rng = np.random.default_rng(seed)
    end = np.datetime64("2012-01-01") + rng.integers(0, 3200, n).astype("timedelta64[D]")
    count = rng.integers(1, 9, n)
    who = np.repeat(np.arange(n), count)
    left = np.clip(rng.exponential(60, n), 0, 700).astype(int)
    ago = np.concatenate([np.r_[0, np.sort(rng.integers(1, 600, k - 1))][::-1] for k in count])
    seen = end[who] - (left[who] + ago).astype("timedelta64[D]")
    seen = np.maximum(seen, np.datetime64("2010-01-01"))
    frame = pd.DataFrame({"id": who, "seen": seen, "end": end[who], "lab": rng.integers(0, 100, len(who))})
    return frame[frame["seen"] <= np.datetime64("2019-12-31")].reset_index(drop=True)


def left_of(frame: pd.DataFrame) -> pd.Series:
    """Days from each patient's last row to the end."""
    rows = frame.groupby("id")
    return (pd.to_datetime(rows["end"].first()) - pd.to_datetime(rows["seen"].max())).dt.days


def test_the_level_is_the_time_left_by_plain_pandas() -> None:
    """A time to the end from the first row, or in seconds."""
    frame = followed(200, seed=1)
    assert PatientSchema.from_yaml(SCHEMA.to_yaml()) == SCHEMA
    levels = patient_table(frame, SCHEMA)
    assert "seen span" not in levels
    np.testing.assert_array_equal(levels["seen left"].to_numpy(float), left_of(frame).to_numpy(float))


def test_synthetic_rows_come_as_near_to_the_end_as_real_ones() -> None:
    """A last row that comes years before the end, or after it."""
    real = followed(2500, seed=2)
    schema = SCHEMA.model_copy(update={"n_public": real["id"].nunique()})
    found = {}
    for until in (None, "end"):
        own = schema.model_copy(update={"until": until})
        made = DPMarginals(epsilon=10.0, random_state=0).fit(real, schema=own).sample(2500, random_state=0)
        assert (made["seen"] <= made["end"]).all()
        found[until] = float(left_of(made).median())
    wanted = float(left_of(real).median())
    assert abs(found["end"] / wanted - 1) < 0.35
    assert abs(found["end"] - wanted) < abs(found[None] - wanted)


@pytest.mark.parametrize("name", ["lab", "seen", "nobody"])
def test_an_end_is_a_date_of_the_patient(name: str) -> None:
    """An end that changes from row to row, or that is no date."""
    with pytest.raises(SchemaError, match="until must name a column per patient that is a date"):
        PatientSchema.from_yaml(TEXT.replace("until: end", f"until: {name}"))
