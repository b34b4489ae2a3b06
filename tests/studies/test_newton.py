"""From scores to coefficients: the maximum of statsmodels without noise, the prior where noise drowns."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm

from dpsynth.studies.estimation import (
    SLOPE_PRIOR,
    Observation,
    StudyDesign,
    _spread,
    mode,
    posterior,
    prior_precision,
)
from dpsynth.studies.study import Study
from dpsynth.table.schema import Column, Schema

SCHEMA = Schema(
    columns=(
        Column(name="age", kind="integer", lower=18, upper=99),
        Column(name="urea", kind="continuous", lower=1, upper=200, scale="log", missing=True),
        Column(name="group", kind="categorical", categories=("a", "b", "c")),
        Column(name="days", kind="continuous", lower=0, upper=100),
        Column(name="died", kind="binary", categories=("no", "yes")),
    ),
    outcome="died",
)


def cohort(n: int, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    age, group = rng.integers(18, 100, n), rng.integers(0, 3, n)
    urea = np.exp(rng.normal(2, 0.7, n)).clip(1, 200)
    eta = -1 + 0.02 * (age - 60) + 0.5 * np.log2(urea / 8) + 0.4 * (group == 1) - 0.3 * (group == 2)
    time = rng.exponential(30 * np.exp(-0.5 * eta))
    end = rng.uniform(5, 100, n)
    frame = pd.DataFrame(
        {
            "age": age,
            "urea": np.where(rng.random(n) < 0.05, np.nan, urea),
            "group": np.array(["a", "b", "c"])[group],
            "days": np.minimum(time, end),
            "died": np.where(time <= end, "yes", "no"),
        }
    )
    return SCHEMA.conform(frame).frame


def design_of(text: str, frame: pd.DataFrame, **given) -> StudyDesign:
    study = Study(model=text, **given)
    return StudyDesign.of(SCHEMA, study.effects(SCHEMA), frame, study.intervals)


def test_the_mode_of_a_logistic_study_is_statsmodels():
    """A step of another likelihood, a design with shifted columns, or slopes in other units."""
    frame = cohort(5000)
    design = design_of("logistic: died ~ age + urea + group", frame, units={"age": 10})
    x, y = design.read(frame)
    beta, _ = mode(design, x, y, 1e6)  # the prior is nothing beside so many records
    known = frame.dropna()
    terms = pd.DataFrame(
        {
            "age": known["age"] / 10,
            "urea": np.log2(known["urea"]),
            "b": (known["group"] == "b") * 1.0,
            "c": (known["group"] == "c") * 1.0,
        }
    )
    fit = sm.Logit((known["died"] == "yes") * 1.0, sm.add_constant(terms)).fit(disp=False)
    np.testing.assert_allclose(
        design.reported(beta, np.eye(design.size))[0], fit.params.iloc[1:], rtol=1e-4, atol=1e-5
    )
    assert [t.name for t in design.terms] == [
        "age (per 10)",
        "urea (per doubling)",
        "group: b vs a",
        "group: c vs a",
    ]
    rows = design.rows(x)[:, 0]
    p = 1 / (1 + np.exp(-rows @ beta))
    inverse = np.linalg.inv((rows * (p * (1 - p))[:, None]).T @ rows)
    np.testing.assert_allclose(
        np.sqrt(np.diag(design.reported(beta, inverse)[1])), fit.bse.iloc[1:], rtol=1e-4
    )


def test_the_mode_of_a_linear_study_is_near_least_squares():
    """Another unit of the outcome, or a spread that is not the residual's."""
    frame = cohort(20_000)
    rng = np.random.default_rng(1)
    frame["days"] = (40 + 0.2 * (frame["age"] - 60) + rng.normal(0, 5, len(frame))).clip(0, 100)
    design = design_of("linear: days ~ age + group", frame)
    x, y = design.read(frame)
    beta, design = mode(design, x, y, 1.0)
    terms = np.column_stack([frame["age"], frame["group"] == "b", frame["group"] == "c"]).astype(float)
    fit = sm.OLS(frame["days"], sm.add_constant(terms)).fit()
    np.testing.assert_allclose(design.reported(beta, np.eye(4))[0], fit.params.iloc[1:], atol=3 * 0.1)
    assert design.family.spread * design.outcome[1] == pytest.approx(np.sqrt(fit.scale), rel=0.02)


LAWS = {
    "normal": lambda rng, n: rng.normal(size=n),
    "two heaps": lambda rng, n: rng.choice([-1.0, 1.0], n) + 0.05 * rng.normal(size=n),
    "uneven heaps": lambda rng, n: np.where(rng.random(n) < 0.3, 1.4, -0.6) + 0.05 * rng.normal(size=n),
    "long tails": lambda rng, n: rng.standard_t(3, n),
}


@pytest.mark.parametrize("law", LAWS)
def test_standard_errors_of_a_linear_study_are_honest(law):
    """A spread that takes any outcome for normal: a fifth too short for two heaps, and so every interval."""
    schema = Schema(columns=(Column(name="x", kind="continuous", lower=-5, upper=5), SCHEMA.column("days")))
    away = []
    for k in range(300):
        rng = np.random.default_rng([2, k])
        x = rng.normal(size=200).clip(-5, 5)
        frame = pd.DataFrame({"x": x, "days": 50 + 2 * x + 4 * LAWS[law](rng, 200)})
        design = StudyDesign.of(schema, Study(model="days ~ x").effects(schema), frame)
        x, y = design.read(frame)
        beta, design = mode(design, x, y, 1.0)
        rows = design.rows(x)[:, 0]
        covariance = design.family.spread**2 * np.linalg.inv(rows.T @ rows)
        slope, told = design.reported(beta, covariance)
        away.append((slope[0] - 2) / np.sqrt(told[0, 0]))
    # a chi-squared of 300 degrees over 300 has a standard deviation of 0.08; the old spread gave 1.6 in heaps
    assert np.mean(np.square(away)) == pytest.approx(1.0, abs=0.3)
    assert 0.915 <= np.mean(np.abs(away) < 1.96) <= 0.985


def test_a_spread_of_residuals_that_are_nearly_all_zero():
    """A search that finds no scale, or a division by zero."""
    assert _spread(np.zeros(9)) == 1.0
    assert 0 < _spread(np.r_[np.zeros(99), 1.0]) <= 1.0
    assert _spread(np.full(50, -2.0)) == pytest.approx(2.0, rel=0.01)
    assert _spread(1e6 * np.random.default_rng(0).normal(size=10**5)) == pytest.approx(1e6, rel=0.01)


def test_the_mode_of_a_survival_study_is_cox():
    """A hazard ratio that depends on the intervals, or time counted in other units than the intervals'."""
    frame = cohort(8000)
    known = frame.dropna()
    design = design_of("cox: (days, died) ~ age + urea + group", frame)
    beta, _ = mode(design, *design.read(frame), 1.0)
    terms = np.column_stack(
        [known["age"], np.log2(known["urea"]), known["group"] == "b", known["group"] == "c"]
    ).astype(float)
    fit = sm.PHReg(known["days"], terms, status=(known["died"] == "yes") * 1, ties="breslow").fit()
    values, _ = design.reported(beta, np.eye(design.size))
    assert np.abs((values - fit.params) / fit.bse).max() < 0.5


def test_a_poisson_regression_says_the_same():
    """Residuals or exposures of another interval: the piecewise exponential model is Poisson with offsets."""
    frame = cohort(3000).dropna()
    design = design_of("cox: (days, died) ~ age + group", frame, intervals=(10.0, 30.0, 60.0))
    assert design.boundaries.tolist() == [10, 30, 60, 100]
    beta, _ = mode(design, *design.read(frame), 1e6)
    pieces, start = [], np.r_[0.0, design.boundaries]
    for j in range(4):
        seen = (frame["days"].clip(upper=start[j + 1]) - start[j]).clip(lower=0) / (start[j + 1] - start[j])
        fell = (frame["died"] == "yes") & (frame["days"] > start[j]) & (frame["days"] <= start[j + 1])
        pieces.append(
            pd.DataFrame(
                {"j": j, "seen": seen, "fell": fell * 1.0, "age": frame["age"], "group": frame["group"]}
            )
        )
    long = pd.concat(pieces)[lambda part: part["seen"] > 0]
    terms = np.column_stack(
        [*(long["j"] == j for j in range(4)), long["age"], long["group"] == "b", long["group"] == "c"]
    ).astype(float)
    fit = sm.GLM(long["fell"], terms, family=sm.families.Poisson(), exposure=long["seen"]).fit()
    np.testing.assert_allclose(design.reported(beta, np.eye(7))[0], fit.params.iloc[4:], rtol=1e-3, atol=1e-4)


def observation(beta, score, information, std) -> Observation:
    size = len(beta)
    return Observation(np.asarray(beta), np.asarray(score), np.asarray(information), std**2 * np.eye(size))


def test_two_scores_are_weighed_by_their_noise():
    """Weights by standard deviations, or the sampling error counted twice; by least squares, naively."""
    rng = np.random.default_rng(0)
    root = rng.normal(size=(3, 3))
    information, prior = root @ root.T + 5 * np.eye(3), np.eye(3) / 4
    truth, points = rng.normal(size=3), rng.normal(size=(2, 3))
    stds, draws = (2.0, 1.0), []
    for _ in range(4000):
        start = rng.multivariate_normal(np.zeros(3), np.linalg.inv(prior))
        sampling = rng.multivariate_normal(np.zeros(3), information)
        seen = [
            observation(b, information @ (start - b) + sampling + s * rng.normal(size=3), information, s)
            for b, s in zip(points, stds, strict=True)
        ]
        mean, covariance = posterior(seen, prior)
        draws.append((start - mean) @ np.linalg.inv(covariance) @ (start - mean))
    # the posterior is calibrated: Mahalanobis distances are chi-squared with 3 degrees of freedom
    assert np.mean(draws) == pytest.approx(3.0, rel=0.05)
    assert np.mean(np.array(draws) > 7.81) == pytest.approx(0.05, abs=0.012)
    assert truth.shape == (3,)


def test_without_information_the_prior_remains():
    """A singular or drowned score that gives an interval of its own."""
    prior = np.eye(2) / SLOPE_PRIOR**2
    singular = np.array([[1.0, 1.0], [1.0, 1.0]]) * 1e6
    mean, covariance = posterior([observation([0.0, 0.0], [1e6, 1e6], singular, 1.0)], prior)
    along, across = np.array([1, 1]) / np.sqrt(2), np.array([1, -1]) / np.sqrt(2)
    assert across @ covariance @ across == pytest.approx(SLOPE_PRIOR**2, rel=1e-3)
    assert along @ covariance @ along < 1e-5 and mean.sum() == pytest.approx(1.0, rel=1e-3)
    drowned = posterior([observation([0.0, 0.0], [5.0, -3.0], np.eye(2), 1e8)], prior)[1]
    np.testing.assert_allclose(drowned, np.eye(2) * SLOPE_PRIOR**2, rtol=1e-6)


def test_no_record_is_enough():
    """Draws that all lack a value of the model, or share one outcome: no estimate, and no NaN."""
    frame = cohort(50)
    design = design_of("died ~ age + group", frame)
    beta, _ = mode(design, np.empty((0, 3)), np.empty(0), 1.0)
    assert not beta.any()
    x, y = design.read(frame)
    beta, _ = mode(design, x, np.zeros(len(y)), 1.0)
    assert np.isfinite(beta).all() and beta[0] < -2
    assert np.isfinite(prior_precision(design, x[:1])).all()


def test_the_prior_is_of_combinations_of_predictors():
    """A prior on each coefficient by itself: it claims that effects of collinear predictors are small."""
    frame = cohort(400)
    design = design_of("died ~ age + group", frame)
    x = design.read(frame)[0]
    x[:, 1] = x[:, 0] + 0.1 * x[:, 1]
    size, j = x.shape[1], design.family.baseline
    covariance = np.linalg.inv(prior_precision(design, x))[j:, j:]
    # eta of every principal component has the standard deviation of the prior
    values, vectors = np.linalg.eigh(np.cov(x.T))
    spread = np.sqrt(values * np.diag(vectors.T @ covariance @ vectors))
    np.testing.assert_allclose(spread, SLOPE_PRIOR * np.ones(size), rtol=0.15)
