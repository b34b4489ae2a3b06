"""A fit codes each column of the records once, whichever and however many noisy statistics read it."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pandas as pd
import pytest
from chosen_statistics import dp_marginals
from dask_workers import threads
from visits import VISITS, visits

from dpsynth import DPWGANGP, Column, DPCriticMatching, Schema, TrainingSettings
from dpsynth.privacy.records import FrameRecords, GridAxis, PartitionedRecords
from dpsynth.table.coded import Codes
from dpsynth.table.grid import make_grids
from dpsynth.table.parquet import ParquetTable

pytestmark = pytest.mark.usefixtures("projected")
SCHEMA = Schema(
    columns=(
        Column(name="age", kind="integer", lower=18, upper=90, missing=True),
        Column(name="cost", kind="continuous", lower=0, upper=1e5, decimals=2, missing=True),
        Column(name="lab", kind="continuous", lower=0, upper=50, missing=True),
        Column(name="seen", kind="date", lower="2020-01-01", upper="2021-12-31", cycles=("weekday", "month")),
        Column(name="died", kind="binary", categories=("no", "yes")),
    ),
    outcome="died",
    n_public=300,
)
SMALL = TrainingSettings(critic_hidden=(4,), generator_hidden=(4,), latent=2, replay=10)
N = 300


def table() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "age": rng.integers(18, 91, N).astype(float),
            "cost": rng.uniform(0, 1e5, N).round(2),
            "lab": rng.uniform(0, 50, N),
            "seen": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 700, N), "D"),
            "died": rng.choice(["no", "yes"], N),
        }
    )
    return frame.mask(rng.random(frame.shape) < np.array([0.2, 0.2, 0.2, 0.0, 0.0]))


@pytest.fixture
def coded(monkeypatch) -> Counter[tuple[str, int]]:
    """How often columns were coded, by name and number of values."""
    found: Counter[tuple[str, int]] = Counter()
    of = Codes.of.__func__

    def counted(cls, column, series):
        found[column.name, len(series)] += 1
        return of(cls, column, series)

    monkeypatch.setattr(Codes, "of", classmethod(counted))
    return found


@pytest.mark.parametrize(
    "model",
    [
        dp_marginals(1.0, 1e-5, pairwise_statistics=True),
        DPWGANGP(1.0, 1e-5, steps=2, training=SMALL),
        DPCriticMatching(1.0, 1e-5, critics=2),
    ],
    ids=["marginals", "wgan-gp", "matching"],
)
@pytest.mark.usefixtures("eager_steps", "roughly_matched", "unrefined")
def test_a_fit_codes_each_column_once(model, coded):
    """Catches an axis, features or an encoder that begins again from the values of the records."""
    model.fit(table(), schema=SCHEMA)
    assert {name: times for (name, n), times in coded.items() if n == N} == dict.fromkeys(SCHEMA.names, 1)


def test_a_fit_of_patients_codes_each_level_once(coded, unrefined):
    """The same where a record is a patient, whose rows are read as numbers beside the levels."""
    schema = VISITS.model_copy(update={"n_public": N})
    dp_marginals(3.0, 1e-5, pairwise_statistics=True).fit(visits(N, seed=4), schema=schema)
    assert {name: times for (name, n), times in coded.items() if n == N} == dict.fromkeys(
        schema.levels.names, 1
    )


def test_a_part_is_coded_once_a_reading(coded, tmp_path):
    """Catches a part whose columns are coded for each table of counts, and other counts than in memory."""
    frame = SCHEMA.conform(table()).frame
    for k in range(3):
        frame.iloc[100 * k : 100 * (k + 1)].to_parquet(tmp_path / f"{k}.parquet", index=False)
    axes = [GridAxis(grid) for grid in make_grids(SCHEMA)]
    tables = [(a, b) for a in axes for b in axes if a is not b]
    with threads() as client:
        parts = PartitionedRecords(ParquetTable(tmp_path), SCHEMA, client)
        with parts.opened():
            found = parts.counts(tables)
    assert {name: times for (name, n), times in coded.items() if n == 100} == dict.fromkeys(SCHEMA.names, 3)
    with (whole := FrameRecords(frame)).opened():
        for one, other in zip(found, whole.counts(tables), strict=True):
            np.testing.assert_array_equal(one, other)
