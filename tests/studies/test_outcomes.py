"""Outcomes that follow a regression, in records whose predictors are there already."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm

from dpsynth.studies.estimation import Linear, StudyDesign, mode, redrawn
from dpsynth.studies.study import Study
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


def test_records_outside_the_subgroup_keep_their_outcome():
    """Outcomes of a whole table drawn from the regression of a part of it."""
    frame, new, _ = made("died ~ 1 where sex == 'F' and days > 500", [2.0])
    inside = ((frame["sex"] == "F") & (frame["days"] > 500)).to_numpy()
    pd.testing.assert_frame_equal(new[~inside], frame[~inside])
    share = (new["died"][inside].dropna() == "yes").mean()
    assert share == pytest.approx(1 / (1 + np.exp(-2.0)), abs=0.02) and 8000 < inside.sum() < 12_000


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


def test_an_outcome_by_the_logarithm_of_one_more():
    """Values that come back as 1 + x, or zeros that are no longer possible."""
    _, new, design = made("linear: log1p(crea) ~ x", [0.0, 0.3])
    known = new.dropna(subset="x")
    fit = sm.OLS(np.log1p(known["crea"]), sm.add_constant(known["x"])).fit()
    expected = design.reported(np.array([0.0, 0.3]), np.eye(2))[0][0]
    assert fit.params.iloc[1] == pytest.approx(expected, rel=0.05)
    middle = np.log1p(known["crea"]).median()
    assert middle == pytest.approx(design.outcome[0], abs=0.1)


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


WIDE = Column(name="stay", kind="continuous", lower=0, upper=60, decimals=2)


def skewed(n: int, seed: int, upper: float = 60.0) -> tuple[pd.DataFrame, StudyDesign]:
    """A lognormal outcome near its lower bound, and its design."""
    rng = np.random.default_rng(seed)
    age = rng.uniform(0, 10, n).round(1)
    stay = np.exp(0.15 * (age - 5) + rng.normal(0, 0.9, n)).clip(0, upper)
    columns = (Column(name="age", kind="continuous", lower=0, upper=10, decimals=1), WIDE)
    schema = Schema(columns=columns).conform(pd.DataFrame({"age": age, "stay": stay}))
    design = StudyDesign.of(
        Schema(columns=columns), Study(model="stay ~ age").effects(Schema(columns=columns)), schema.frame
    )
    return schema.frame, mode(design, *design.read(schema.frame), 1.0)[1]


@pytest.mark.parametrize(("place", "slope"), [(0.2, 0.4), (0.4, 0.4), (0.4, -0.4), (0.1, 0.0)])
def test_bounds_and_skew_do_not_flatten_a_slope(place, slope):
    """Residuals cut at a bound, or normal ones in place of a long tail."""
    frame, design = skewed(40_000, 0)
    beta = np.array([place, slope])
    new = redrawn(design, beta, frame, np.random.default_rng(1))
    assert new["stay"].between(0, 60).all()
    fit = sm.OLS(new["stay"], sm.add_constant(frame["age"])).fit(cov_type="HC1")
    expected = design.reported(beta, np.eye(2))[0][0]
    assert abs(fit.params["age"] - expected) < 3.5 * fit.bse["age"]
    assert (new["stay"] - fit.fittedvalues).skew() > 1.5


def test_a_line_that_leaves_the_bounds_is_told():
    """Effects that are smaller than the study's, and nobody is told."""
    frame, design = skewed(5000, 1)
    with pytest.warns(UserWarning, match="'stay' leaves the column's declared bounds in about [0-9]+ %"):
        redrawn(design, np.array([-1.0, 1.5]), frame, np.random.default_rng(0))
