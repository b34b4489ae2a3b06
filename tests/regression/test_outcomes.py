"""Outcomes that follow a regression, in records whose predictors are there already."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm

from dpsynth.regression.design import StudyDesign
from dpsynth.regression.families import Linear
from dpsynth.regression.outcomes import redrawn
from dpsynth.regression.study import Study
from dpsynth.table.schema import Column, Schema

SCHEMA = Schema(
    columns=(
        Column(name="x", kind="continuous", lower=-10, upper=10, missing=True),
        Column(name="sex", kind="binary", categories=("F", "M")),
        Column(name="days", kind="integer", lower=0, upper=1000),
        Column(name="crea", kind="continuous", lower=0.1, upper=20, decimals=1, scale="log"),
        Column(name="died", kind="binary", categories=("no", "yes"), missing=True),
    )
)


def table(n: int, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "x": np.where(rng.random(n) < 0.1, np.nan, rng.normal(0, 1, n)),
            "sex": rng.choice(["F", "M"], n),
            "days": rng.integers(1, 1001, n),
            "crea": np.exp(rng.normal(0, 0.4, n)),
            "died": rng.choice(np.array(["no", "yes"], dtype=object), n),
        }
    )
    frame.loc[rng.random(n) < 0.05, "died"] = None
    return SCHEMA.conform(frame).frame


def made(text: str, beta, **given) -> tuple[pd.DataFrame, pd.DataFrame, StudyDesign]:
    frame, study = table(40_000), Study(model=text, **given)
    design = StudyDesign.of(SCHEMA, study.effects(SCHEMA), frame, study.intervals)
    if design.model.kind == "linear":
        from dataclasses import replace

        design = replace(design, family=Linear(0.5))
    return frame, redrawn(design, np.asarray(beta), frame, np.random.default_rng(1)), design


def test_a_logistic_outcome_follows_the_coefficients():
    """Outcomes of another event, or by shifted coefficients."""
    beta = [-1.0, 0.8, 0.5]
    frame, new, design = made("logistic: died ~ x + sex", beta)
    known = new.dropna()
    terms = np.column_stack([known["x"], known["sex"] == "M"]).astype(float)
    fit = sm.Logit((known["died"] == "yes") * 1.0, sm.add_constant(terms)).fit(disp=False)
    expected = design.reported(np.asarray(beta), np.eye(3))[0]
    assert (np.abs(fit.params[1:] - expected) < 3 * fit.bse[1:]).all()
    untouched = frame.drop(columns="died")
    pd.testing.assert_frame_equal(new[untouched.columns], untouched)
    gaps = frame["x"].isna() | frame["died"].isna()
    pd.testing.assert_series_equal(new["died"][gaps], frame["died"][gaps])
    assert new.dtypes.equals(frame.dtypes)


def test_a_linear_outcome_lies_on_the_steps_and_in_the_bounds():
    """Values that the column cannot have, or on the logarithm's scale."""
    frame, new, design = made("linear: log(crea) ~ x", [0.0, 0.3])
    assert new["crea"].between(0.1, 20).all() and np.allclose(new["crea"] * 10, (new["crea"] * 10).round())
    known = new.dropna(subset="x")
    fit = sm.OLS(np.log(known["crea"]), sm.add_constant(known["x"])).fit()
    assert fit.params.iloc[1] == pytest.approx(
        design.reported(np.array([0.0, 0.3]), np.eye(2))[0][0], rel=0.05
    )
    assert len(frame) == len(new)


def test_survival_follows_the_hazard_ratios_and_keeps_the_ends_of_observation():
    """Times of another unit, events after the end of observation, or ends that are no longer the records'."""
    beta = [-1.0, -0.5, 0.0, 0.6, -0.4]
    frame, new, design = made("cox: (days, died) ~ x + sex", beta, intervals=(200.0, 600.0))
    known = new.dropna()
    terms = np.column_stack([known["x"], known["sex"] == "M"]).astype(float)
    fit = sm.PHReg(
        known["days"].astype(float), terms, status=(known["died"] == "yes") * 1, ties="breslow"
    ).fit()
    expected = design.reported(np.asarray(beta), np.eye(5))[0]
    assert (np.abs(fit.params - expected) < 3.5 * fit.bse).all()
    assert new["days"].between(0, 1000).all()
    # who is censored at t in the old table under no event at all: the law of ends is Kaplan and Meier's
    none = redrawn(
        design, np.array([-30.0, -30.0, -30.0, 0.0, 0.0]), frame, np.random.default_rng(2)
    ).dropna()
    assert (none["died"] == "no").all()
    from statsmodels.duration.survfunc import SurvfuncRight

    old = frame.dropna()
    ends = SurvfuncRight(old["days"].astype(float), (old["died"] == "no") * 1)
    for share in (0.25, 0.5, 0.75):
        assert none["days"].quantile(share) == pytest.approx(ends.quantile(share), abs=20)


def test_a_table_without_complete_records_stays_as_it_is():
    """A crash where every record lacks a value."""
    frame = table(20).assign(x=np.nan)
    design = StudyDesign.of(SCHEMA, Study(model="died ~ x").effects(SCHEMA), table(100))
    pd.testing.assert_frame_equal(redrawn(design, np.zeros(2), frame, np.random.default_rng(0)), frame)
