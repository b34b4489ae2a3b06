"""A mean of many values spreads less than one of few, whatever the model of levels says of it."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from visits import histories_of

from dpsynth.patients.histories import patient_table
from dpsynth.patients.schema import PatientSchema
from dpsynth.privacy import Ledger
from dpsynth.privacy.records import FrameRecords
from dpsynth.synthesis.parts.rows import VisitsRelease
from dpsynth.synthesis.rows import Trajectories, draw_rows, learned_of
from dpsynth.table.schema import Column

BETWEEN, WITHIN = 10.0, 15.0
SCHEMA = PatientSchema(
    unit="id",
    order="day",
    most=20,
    columns=(
        Column(name="day", kind="integer", lower=0, upper=400),
        Column(name="sbp", kind="integer", lower=0, upper=300, missing=True),
    ),
)


def spreads(rows: pd.DataFrame) -> pd.Series:
    """Standard deviation of patients' means by their number of values."""
    values = rows.dropna(subset=["sbp"]).groupby("id")["sbp"]
    return values.mean().groupby(values.size().clip(upper=10)).std()


@pytest.fixture(scope="module")
def real() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    count = rng.integers(1, 21, 6000)
    who = np.repeat(np.arange(6000), count)
    day = np.concatenate([np.sort(rng.choice(400, n, replace=False)) for n in count])
    sbp = 140 + BETWEEN * rng.standard_normal(6000)[who] + WITHIN * rng.standard_normal(len(who))
    frame = pd.DataFrame({"id": who, "day": day, "sbp": sbp.round()})
    return frame


def test_means_spread_as_their_count_says(real: pd.DataFrame) -> None:
    """Means of one value that spread as little as those of ten, from a model that does not know counts."""
    levels = patient_table(real, SCHEMA)
    rng = np.random.default_rng(1)
    # Means that know nothing of the number of rows, as a model of levels without this pair has them.
    forgot = levels.assign(**{"sbp mean": rng.permutation(levels["sbp mean"].to_numpy())})
    found = {}
    release = VisitsRelease(noise_multiplier=None, schema=SCHEMA)
    sums = Ledger().run(release, FrameRecords(histories_of(real, SCHEMA)), np.random.default_rng(0))
    for name, learned in (("before", {}), ("after", learned_of(SCHEMA, forgot))):
        model = Trajectories.of(SCHEMA, sums, 0.0, {}, learned)
        found[name] = spreads(draw_rows(model, forgot, np.random.default_rng(2)))
    expected = np.sqrt(BETWEEN**2 + WITHIN**2 / found["after"].index.to_numpy())
    assert abs(found["before"].iloc[0] / expected[0] - 1) > 0.25
    assert (abs(found["after"].iloc[:-1] / expected[:-1] - 1) < 0.12).all()


def test_right_means_stay(real: pd.DataFrame) -> None:
    """A correction of means that are right already."""
    learned = learned_of(SCHEMA, patient_table(real, SCHEMA))
    assert np.allclose(learned["sbp"][:, 1], 1.0, atol=0.08)


def test_few_patients_are_not_corrected(real: pd.DataFrame) -> None:
    """A spread of ten patients that changes all others."""
    few = patient_table(real[real["id"] < 40], SCHEMA)
    assert (learned_of(SCHEMA, few)["sbp"][:, 1] == 1.0).all()
