"""Rows of synthetic patients: they have the drawn levels, and what is released of rows comes back."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from visits import VISITS, visits

from dpsynth.accounting import Ledger
from dpsynth.model.trajectories import Trajectories, conditional
from dpsynth.releases.records import FrameRecords
from dpsynth.releases.visits import VisitsRelease, weighted_counts
from dpsynth.table.histories import Histories, patient_table
from dpsynth.table.patients import SHARE_CLASSES
from dpsynth.table.visits import cells, visit_tables


def exact(frame):
    """Trajectories from tables without noise, and the levels of the table's own patients."""
    records = Histories.of(frame, VISITS, np.random.default_rng(0)).to_frame(VISITS)
    release = VisitsRelease(noise_multiplier=None, schema=VISITS)
    tables = Ledger().run(release, FrameRecords(records), np.random.default_rng(0))
    return Trajectories.of(VISITS, tables, 0.0), patient_table(frame, VISITS)


@pytest.fixture(scope="module")
def drawn():
    model, levels = exact(visits(3000, seed=3))
    rows = model.rows(levels, np.random.default_rng(1))
    return levels, rows, patient_table(rows, VISITS)


def test_a_synthetic_patient_has_the_drawn_levels(drawn):
    """Catches rows of another patient's levels, values at the wrong rows, and a line that is not met."""
    levels, rows, found = drawn
    assert rows["id"].drop_duplicates().tolist() == list(range(1, len(levels) + 1))
    assert rows.groupby("id")["day"].apply(lambda day: day.is_monotonic_increasing).all()
    for name in ("rows", "sex", "day first"):
        assert (found[name] == levels[name]).all()
    both = (levels["rows"] > 1).to_numpy()
    assert np.abs(found["day span"] - levels["day span"])[both].max() <= 1
    for name in ("none", "all"):
        same = (found["lab measured"] == name) == (levels["lab measured"] == name)
        # One row of few is all of them.
        assert same.mean() > (0.99 if name == "none" else 0.9)
    enough = (rows.groupby("id")["weight"].count() >= 4).to_numpy()
    for name in ("weight mean", "weight sd", "weight trend"):
        away = (found[name] - levels[name])[enough].abs()
        assert away.quantile(0.95) < 0.05, name
    together = found.loc[enough, ["weight roughness"]].assign(drawn=levels["weight roughness"])
    assert together.corr().iloc[0, 1] > 0.8


def test_rows_follow_the_released_tables(drawn):
    """Catches axes that change places, and chains that start or go on wrongly."""
    _, rows, _ = drawn
    first = Histories.of(visits(3000, seed=3), VISITS, np.random.default_rng(0))
    second = Histories.of(rows, VISITS, np.random.default_rng(0))
    for table in visit_tables(VISITS):
        if table.kind == "residual":  # moved to the levels after they are drawn
            continue
        counts = [
            weighted_counts(cells(table, histories, VISITS), int(np.prod(table.shape)))
            for histories in (first, second)
        ]
        one, other = (count / count.sum() for count in counts)
        assert np.abs(one - other).sum() / 2 < 0.2, table  # sampling alone gives up to .1


def test_a_lab_remembers_its_patient(drawn):
    """Catches values that are drawn row by row, without the patient's own level."""
    _, rows, _ = drawn
    lab = rows.dropna(subset=["lab"])
    last = lab.groupby("id")["lab"].shift(3)
    real = visits(3000, seed=3).sort_values(["id", "day"]).dropna(subset=["lab"])
    before = real.groupby("id")["lab"].shift(3)
    assert lab["lab"].astype(float).corr(last.astype(float)) == pytest.approx(
        real["lab"].corr(before), abs=0.05
    )


def test_noisy_tables_are_shrunk_and_exact_ones_kept():
    """Catches noise that is taken for structure, structure that is smoothed away, and a wrong axis."""
    rng = np.random.default_rng(0)
    truth = np.array([[0.7, 0.2, 0.1], [0.1, 0.1, 0.8]])
    counts = truth * np.array([[400.0], [100.0]])
    np.testing.assert_allclose(conditional(counts, 0.0), truth)
    pooled = counts.sum(axis=0) / counts.sum()
    np.testing.assert_allclose(conditional(counts, 1.0), truth, atol=0.02)
    noise = conditional(pooled * np.array([[30.0], [20.0]]) + 20 * rng.standard_normal((2, 3)), 20.0)
    np.testing.assert_allclose(noise[0], noise[1])
    assert (noise >= 0).all() and noise.sum(axis=1) == pytest.approx(1.0)


def test_a_model_of_no_patient_draws_nobody():
    """Catches a crash where no patient is asked for."""
    model, levels = exact(visits(50))
    rows = model.rows(levels.iloc[:0], np.random.default_rng(0))
    assert len(rows) == 0 and list(rows.columns) == ["id", *VISITS.names]


def test_unmeasured_variables_stay_unmeasured():
    """Catches a value for a patient of whom none was drawn."""
    frame = visits(200).assign(lab=np.nan)
    model, levels = exact(frame)
    assert (levels["lab measured"] == SHARE_CLASSES[0]).all()
    assert pd.isna(model.rows(levels, np.random.default_rng(0))["lab"]).all()
