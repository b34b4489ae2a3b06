"""Simulated tables fit their schema, and their outcome depends on the other columns as declared."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from dpsynth.runs.simulated_tables import _steepness, simulated_table
from dpsynth.table.schema import Column, Schema

SCHEMA = Schema(
    columns=(
        Column(name="age", kind="integer", lower=18, upper=90, missing=True),
        Column(name="urea", kind="continuous", lower=0.5, upper=300, scale="log"),
        Column(name="lab", kind="continuous", lower=0, upper=20, decimals=1, scale="log", special=(-9,)),
        Column(name="grade", kind="ordinal", categories=("low", "middle", "high")),
        Column(name="ward", kind="categorical", categories=("a", "b", "c", "d"), missing=True),
        Column(name="bmi", kind="continuous", lower=0, upper=1e4, derived="age / urea", missing=True),
        Column(name="outcome", kind="binary", categories=("no", "yes")),
    ),
    outcome="outcome",
)


@pytest.mark.parametrize("seed", range(5))
def test_tables_fit_their_schema(seed):
    """Catches a simulated value outside bounds, steps or categories, or missing where none may be."""
    train, test = simulated_table(SCHEMA, 300, 200, 0.8, np.random.default_rng(seed))
    for frame, size in ((train, 300), (test, 200)):
        assert len(frame) == size
        conformed = SCHEMA.modelled.conform(frame)
        assert not any(conformed.clipped.values())
        assert frame["outcome"].nunique() == 2
    lab = train["lab"]
    assert (lab == -9).any()
    assert np.allclose(lab, lab.round(1))


@pytest.mark.parametrize("auc", [0.6, 0.75, 0.9])
@pytest.mark.parametrize("share", [0.1, 0.5])
def test_the_true_risk_has_the_declared_auc(auc, share):
    """Catches an outcome that depends more or less on the risk than declared."""
    rng = np.random.default_rng(3)
    risk = rng.standard_normal(200_000)
    score = _steepness(risk, share, auc) * risk
    drawn = score + rng.logistic(size=len(score))
    found = roc_auc_score(drawn > np.quantile(drawn, 1 - share), score)
    assert found == pytest.approx(auc, abs=0.015)


def test_tables_differ_by_seed_alone():
    """Catches a table that another draw of the same seed does not repeat."""
    first, again, other = (
        simulated_table(SCHEMA, 50, 50, 0.8, np.random.default_rng(seed))[0] for seed in (0, 0, 1)
    )
    assert first.equals(again)
    assert not first.equals(other)
