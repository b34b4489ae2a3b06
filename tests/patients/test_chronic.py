"""Categories that a patient keeps: each row has one of them, none comes before its first time."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from dpsynth import Column, DPMarginals, PatientSchema
from dpsynth.errors import SchemaError
from dpsynth.patients.histories import patient_table
from dpsynth.synthesis.rows import draw_rows

CODES = ("diabetes", "hypertension", "copd", "renal")
#: how often each is there
SHARES = (0.3, 0.5, 0.2, 0.1)


def schema(n: int = 3000) -> PatientSchema:
    columns = (
        Column(name="day", kind="integer", lower=0, upper=4000, unit="days"),
        Column(name="code", kind="categorical", categories=CODES),
    )
    return PatientSchema(unit="id", order="day", most=8, n_public=n, columns=columns, chronic=("code",))


def visits(n: int, seed: int = 0) -> pd.DataFrame:
    """Patients with one to four diseases, one of which is coded at each of four to eight visits."""
    rng = np.random.default_rng(seed)
    rows = []
    for patient in range(n):
        own = np.flatnonzero(rng.random(4) < SHARES)
        own = own if len(own) else np.array([1])
        days = np.sort(rng.choice(4000, rng.integers(4, 9), replace=False))
        shown = np.r_[own, rng.choice(own, 8)][: len(days)]
        rng.shuffle(shown)
        rows += [(patient, day, CODES[code]) for day, code in zip(days, shown, strict=True)]
    return pd.DataFrame(rows, columns=["id", "day", "code"])


def diseases(rows: pd.DataFrame) -> pd.DataFrame:
    """Who has which."""
    return (pd.crosstab(rows["id"], rows["code"]) > 0).reindex(columns=list(CODES), fill_value=False)


def test_levels_are_first_times_and_repeats_count_as_rows() -> None:
    """A repeat that is left out, or a time that is not the first."""
    frame = visits(50)
    levels = patient_table(frame, schema())
    found = frame.pivot_table("day", "id", "code", aggfunc="min").reindex(columns=list(CODES))
    given = levels[[f"code first {code}" for code in CODES]].to_numpy(float, na_value=np.nan)
    both = [sorted(map(tuple, np.nan_to_num(table, nan=-1.0))) for table in (given, found.to_numpy())]
    assert both[0] == both[1]
    assert sorted(levels["rows"]) == sorted(frame.groupby("id").size())


def test_rows_have_what_the_levels_say() -> None:
    """A disease that the levels do not have, or one that is coded before it begins."""
    own = schema()
    model = DPMarginals(epsilon=20.0, random_state=0).fit(visits(3000), schema=own).model_
    levels = pd.DataFrame({name: pd.Series(dtype=float) for name in own.levels.names}, index=range(400))
    levels = levels.assign(rows=6, **{"day first": 0, "day span": 3000})
    levels["code first diabetes"], levels["code first hypertension"] = 0, 1500
    made = draw_rows(model.trajectories, levels, np.random.default_rng(0))
    assert set(made["code"]) == {"diabetes", "hypertension"} and len(made) == 6 * 400
    days = made["day"].to_numpy().reshape(400, 6)
    codes = made["code"].to_numpy().reshape(400, 6)
    assert (codes[:, 0] == "diabetes").all()
    begins = (codes == "hypertension").argmax(axis=1)
    nearest = np.abs(days - 1500).argmin(axis=1)
    np.testing.assert_array_equal(begins, np.maximum(nearest, 1))
    assert made.duplicated(["id", "code"]).groupby(made["id"]).any().all()


def test_patients_keep_their_diseases() -> None:
    """Patients who have diseases of others, or too many, and gaps that the diseases move."""
    real, own = visits(3000, seed=1), schema()
    made = DPMarginals(epsilon=10.0, random_state=0).fit(real, schema=own).sample(3000, random_state=0)
    several = [diseases(rows).sum(axis=1) for rows in (real, made)]
    assert abs(several[1].mean() - several[0].mean()) < 0.1
    assert abs((several[1] == 1).mean() - (several[0] == 1).mean()) < 0.1
    assert (diseases(made).mean() - diseases(real).mean()).abs().max() < 0.05
    gaps = [rows.groupby("id")["day"].diff().median() for rows in (real, made)]
    assert abs(gaps[1] - gaps[0]) < 0.15 * gaps[0]


def test_a_sentence_says_what_can_be_chronic() -> None:
    """A number, or times that two courses would set."""
    lab = Column(name="lab", kind="integer", lower=0, upper=9)
    fields = {"unit": "id", "order": "day", "most": 3}
    with pytest.raises(SchemaError, match="column 'lab': only categories can be over_time: chronic"):
        PatientSchema(columns=(*schema().columns, lab), chronic=("lab",), **fields)
    with pytest.raises(SchemaError, match="times and unique cannot stand beside over_time: chronic"):
        schema().with_fields(unique=True)
    given = schema().to_dict()
    assert PatientSchema.from_dict(given) == schema() and given["columns"][1]["over_time"] == "chronic"
