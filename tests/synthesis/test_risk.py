"""A risk in place of epsilon: solved on the whole fit's loss, kept by the fit, said on the page."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpsynth import DPWGANGP, Column, DPCriticMatching, DPMarginals, PatientSchema, Schema, Studies
from dpsynth.errors import InputError, PrivacyError
from dpsynth.privacy.risk import RiskLimit
from dpsynth.runs import pipeline
from dpsynth.runs.config import RunConfig
from dpsynth.synthesis.risk import epsilon_for, fit_profile

COLUMNS = (
    Column(name="age", kind="integer", lower=18, upper=90),
    Column(name="pressure", kind="integer", lower=60, upper=200),
    Column(name="died", kind="binary", categories=("no", "yes")),
)
SCHEMA = Schema(columns=COLUMNS, n_public=400, outcome="died")
UNKNOWN = Schema(columns=COLUMNS, outcome="died")
RISKS: list[dict[str, float]] = [{"advantage": 0.15}, {"tpr": 0.06, "fpr": 0.01}]


def frame(n: int = 400) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    age = rng.integers(18, 91, n)
    died = np.where(rng.random(n) < age / 120, "yes", "no")
    return pd.DataFrame({"age": age, "pressure": rng.integers(60, 201, n), "died": died})


@pytest.mark.parametrize("bound", RISKS)
@pytest.mark.parametrize("schema", [SCHEMA, UNKNOWN], ids=["public number", "private number"])
def test_a_fit_keeps_its_risk_and_uses_it(bound: dict[str, float], schema: Schema) -> None:
    """A fit that allows more than was asked for, or that leaves a tenth of it unused."""
    model = DPMarginals.for_risk(schema, **bound)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(frame(), schema=schema)
    spent = model.ledger_.profile()
    if "advantage" in bound:
        reached, most = spent.tv(), bound["advantage"]
    else:
        reached, most = float(spent.tpr(bound["fpr"])), bound["tpr"]
    assert reached <= most
    if schema.n_public is not None:
        assert reached > 0.98 * most


@pytest.mark.parametrize("also", [False, True])
@pytest.mark.parametrize("bound", RISKS)
def test_it_is_the_largest_epsilon(bound: dict[str, float], also: bool) -> None:
    """An epsilon rounded up beyond the bound, far below it, or solved without the studies of the fit."""
    risk, options = RiskLimit(**bound), DPMarginals().validate()
    parts = [Studies(["died ~ age"])] if also else []
    epsilon = epsilon_for(risk, SCHEMA, options, parts)
    for factor, kept in ((1.0, True), (1.004, False)):
        at = options.model_copy(update={"epsilon": factor * epsilon})
        assert risk.kept(fit_profile(SCHEMA, at, parts)) is kept


@pytest.mark.parametrize("generator", [DPMarginals, DPWGANGP, DPCriticMatching])
@pytest.mark.parametrize("schema", [SCHEMA, UNKNOWN], ids=["public number", "private number"])
def test_each_generator_takes_one(generator: Any, schema: Schema) -> None:
    """A generator whose critic steps are left out of what is solved."""
    model = generator.for_risk(schema, advantage=0.15, delta=1e-6)
    assert model.delta == 1e-6 and 0.5 < model.epsilon < 4
    profile = fit_profile(schema, model.validate())
    assert profile.tv() <= 0.15 and profile.epsilon(1e-6) == pytest.approx(model.epsilon, rel=1e-3)


def test_patients_take_one() -> None:
    """Rows of patients that are left out of what is solved."""
    columns = (*COLUMNS[1:], Column(name="day", kind="integer", lower=0, upper=100))
    fields: dict[str, Any] = {"unit": "id", "order": "day", "most": 4, "per_patient": ("died",)}
    schema = PatientSchema(columns=columns, n_public=500, **fields)
    model = DPMarginals.for_risk(schema, advantage=0.2)
    assert fit_profile(schema, model.validate()).tv() == pytest.approx(0.2, rel=0.01)


@pytest.mark.parametrize(
    ("bound", "said"),
    [
        ({}, "give advantage, or both tpr and fpr"),
        ({"advantage": 0.1, "tpr": 0.1}, "give advantage, or both tpr and fpr"),
        ({"tpr": 0.1}, "fpr is missing"),
        ({"fpr": 0.1}, "tpr is missing"),
        ({"tpr": 0.1, "fpr": 0.1}, "tpr must exceed fpr, 0.1"),
        ({"advantage": 1.5}, "advantage must be less than 1"),
        ({"advantage": math.nan}, "advantage"),
    ],
)
def test_bounds_that_are_none(bound: dict[str, float], said: str) -> None:
    """A bound that is no bound, taken for one."""
    with pytest.raises(InputError, match=said):
        DPMarginals.for_risk(SCHEMA, **bound)


def test_bounds_out_of_reach() -> None:
    """A search that ends nowhere, and epsilon beside a risk."""
    with pytest.raises(PrivacyError, match=r"needs an epsilon below 0\.002"):
        DPMarginals.for_risk(SCHEMA, advantage=1e-6, delta=1e-9)
    with pytest.raises(PrivacyError, match="is no protection"):
        DPMarginals.for_risk(SCHEMA, advantage=0.99999)
    with pytest.raises(InputError, match="give epsilon, or a risk in its place"):
        DPMarginals.for_risk(SCHEMA, advantage=0.1, epsilon=1.0)


def test_a_run_that_allows_more_is_refused(tmp_path: Any) -> None:
    """A risk in a configuration that nobody keeps, and one that no page says."""
    frame(800).to_csv(tmp_path / "t.csv", index=False)
    SCHEMA.with_n_public(800).to_yaml(tmp_path / "s.yaml")
    epsilon = DPMarginals.for_risk(SCHEMA, advantage=0.15).epsilon
    record: dict[str, Any] = {
        "data": {"path": str(tmp_path / "t.csv"), "schema": str(tmp_path / "s.yaml")},
        "model": {"epsilon": 2 * epsilon},
        "risk": {"advantage": 0.15},
        "evaluate": {"enabled": False},
    }
    with pytest.raises(InputError, match=r"risk: epsilon .* allows more than an advantage of at most 0\.15"):
        pipeline.run(RunConfig.from_dict(record), tmp_path / "out")
    assert not (tmp_path / "out").exists() and not (tmp_path / "out.ledger").exists()
    record["model"] = {"epsilon": epsilon}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        done = pipeline.run(RunConfig.from_dict(record), tmp_path / "out")
    page = (done.out / "report.html").read_text(encoding="utf-8")
    assert "Of every attack, an advantage of at most 0.15. This guarantee keeps it." in page
