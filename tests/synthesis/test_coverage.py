"""Simulation checks of a study: valid where the truth is known, free, and the same for a saved model."""

from __future__ import annotations

import json
from functools import cache

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import dpsynth
from dpsynth import DPWGANGP, Column, Schema
from dpsynth.errors import InputError
from dpsynth.model.base_model.network import BayesianNetwork
from dpsynth.synthesis.coverage import Coverage, Population

SCHEMA = Schema(
    columns=(
        Column(name="age", kind="integer", lower=18, upper=99),
        Column(name="urea", kind="continuous", lower=1, upper=200, scale="log", decimals=1),
        Column(name="sex", kind="binary", categories=("F", "M")),
        Column(name="days", kind="integer", lower=0, upper=1000),
        Column(name="died", kind="binary", categories=("no", "yes")),
    ),
    outcome="died",
    n_public=1500,
)
STUDIES = [
    "died ~ age + urea + sex",
    {"model": "linear: log(urea) ~ age + sex", "name": "urea"},
    {"model": "cox: (days, died) ~ age + sex", "name": "days", "intervals": [300]},
]


def cohort(n: int = 1500, seed: int = 0) -> pd.DataFrame:
    """Age and urea go together and pull death to both sides, which a tree of pairs does not know."""
    rng = np.random.default_rng(seed)
    age = rng.normal(60, 15, n)
    urea = np.exp(2 + 0.6 * ((age - 60) / 15 + 0.7 * rng.standard_normal(n)))
    p = 1 / (1 + np.exp(0.3 - 0.08 * (age - 60) + 0.9 * (np.log(urea) - 2)))
    return pd.DataFrame(
        {
            "age": age.clip(18, 99).round().astype(int),
            "urea": urea.clip(1, 200).round(1),
            "sex": rng.choice(["F", "M"], n),
            "days": rng.exponential(600, n).clip(0, 1000).astype(int),
            "died": np.where(rng.random(n) < p, "yes", "no"),
        }
    )


@cache
def fitted(epsilon: float | None = 2.0) -> DPWGANGP:
    options = {"base_model": "tree", "training_steps": 0, "neighbour_histogram": False}
    options["pairwise_statistics"] = epsilon is None
    model = DPWGANGP(epsilon, 1e-5, studies=STUDIES, random_state=0, **options)
    return model.fit(cohort(), schema=SCHEMA)


@pytest.mark.parametrize(
    "name", ["died", *(pytest.param(name, marks=pytest.mark.slow) for name in ("urea", "days"))]
)
def test_a_check_of_valid_intervals_says_so(name):
    """A check without the noise, or whose outcomes are not those of the released coefficients."""
    repetitions = {"died": 16, "urea": 30, "days": 8}[name]
    found = fitted().coverage(name, repetitions=repetitions, random_state=1)
    size = len(found.held)
    low, high = stats.binom.ppf([1e-3, 1 - 1e-3], repetitions * size, 0.95) / (repetitions * size)
    assert low <= found.share <= high
    # the sum of squares of standard normal numbers, and their mean
    least, most = stats.chi2.ppf([1e-4, 1 - 1e-4], repetitions) / repetitions
    assert ((found.squared > least) & (found.squared < most)).all()
    assert (np.abs(found.bias) < 4 / np.sqrt(repetitions)).all()
    # read with the noise of the study: intervals are as long as the released ones
    assert ((found.width > 0.8) & (found.width < 1.2)).all()
    assert fitted().study(name).widening > 1.25


def test_a_share_in_a_subgroup_is_checked():
    """Simulated tables whose records are all in the subgroup: intervals that are too short."""
    options = {"base_model": "tree", "training_steps": 0, "pairwise_statistics": False}
    model = DPWGANGP(2.0, 1e-5, studies=["died ~ 1 where sex == 'F'"], random_state=0, **options)
    model.fit(cohort(), schema=SCHEMA)
    found = model.coverage("died", repetitions=16, random_state=1)
    assert found.held[0] > 0.6 and 0.8 < found.width[0] < 1.2


def test_tables_have_the_records_predictors_and_the_released_effects(monkeypatch):
    """Predictors of the draws as they are, or another regression than the study's."""
    monkeypatch.setattr(
        BayesianNetwork, "coupled", lambda base_model, *_: base_model
    )  # there is more to mend
    model = fitted(None)
    rng = np.random.default_rng(0)
    draws, population = model.sample(20_000, random_state=0), {}
    # some draws without the dependence, of which fine bins lose little
    draws.loc[:499, "urea"] = draws["urea"].to_numpy()[499::-1]
    for name in ("died", "urea", "days"):
        study = model.model_.study(name)
        rows = 3000 if name == "days" else 20_000  # Cox takes long
        population[name] = Population.of(study, draws, rng).table(rows, rng).to_numpy()
    study = model.model_.study("died")
    records = study.design.read(SCHEMA.conform(cohort()).frame)[0]
    apart = np.corrcoef(study.design.read(draws)[0].T)[0, 1]
    together, mended = (np.corrcoef(x[:, :2].T)[0, 1] for x in (records, population["died"]))
    # over eight seeds of the fit .026 to .034, and .045 to .048
    assert abs(mended - together) < 0.04 < abs(apart - together)

    import statsmodels.api as sm

    table = population["died"]
    logit = sm.Logit(table[:, -1], sm.add_constant(table[:, :-1])).fit(disp=False)
    assert (np.abs(logit.params - study.beta) < 4 * logit.bse).all()
    study, table = model.model_.study("urea"), population["urea"]
    line = sm.OLS(table[:, -1], sm.add_constant(table[:, :-1])).fit()
    assert (np.abs(line.params - study.beta) < 4 * line.bse).all()
    study, table = model.model_.study("days"), population["days"]
    cox = sm.PHReg(np.abs(table[:, -1]), table[:, :-1], status=table[:, -1] < 0).fit()
    assert (np.abs(cox.params - study.beta[2:]) < 4 * cox.bse).all()
    # as many last seen without the event as in the draws, nearly
    seen = (draws["died"] == "no").mean()
    assert (table[:, -1] > 0).mean() == pytest.approx(seen, abs=0.05)


def test_a_saved_model_checks_the_same_and_spends_nothing(tmp_path):
    """Noise or mending that a file loses, or a simulated reading that is posted as one of the records."""
    model = fitted()
    before = model.ledger_.to_dict()
    found = model.coverage("died", repetitions=3, random_state=5)
    assert model.ledger_.to_dict() == before
    model.save(tmp_path / "m")
    again = dpsynth.load(tmp_path / "m")
    assert again.coverage("died", repetitions=3, random_state=5).to_dict() == found.to_dict()
    assert again.ledger_.to_dict() == before
    # table k hangs on the seed and on k alone: the first three of four
    more = model.coverage("died", repetitions=4, random_state=5)
    left = 4 * more.held - 3 * found.held
    np.testing.assert_allclose(left, left.round(), atol=1e-9)
    assert ((4 * more.squared - 3 * found.squared) > 0).all() and set(left.round()) <= {0.0, 1.0}
    record = found.to_dict()
    assert json.loads(json.dumps(record)) == record and record["sentence"] in str(found)
    assert record["share"] == pytest.approx(np.mean(record["held"]))


def test_intervals_of_another_length_are_named():
    """A share of short intervals that is read as one of the long interval that was released."""
    (estimates,) = (one for one in fitted().estimates_ if one.study == "died")
    numbers = np.full((3, 3), 1.0)
    plain = Coverage(estimates, 10, *numbers, np.array([1.2, 0.8, 1.0]))
    assert plain.remarks == () and plain.chance == (0.8, 1.0)
    other = Coverage(estimates, 10, *numbers, np.array([1.0, 0.1, 1.0]))
    assert other.remarks[0].startswith("Intervals of urea (per doubling) had another length")
    assert other.remarks[0] in str(other) and other.remarks[0] in other.to_dict()["remarks"]


@pytest.mark.parametrize(
    ("name", "repetitions", "message"),
    [
        ("sex", 10, r"study 'sex' was not declared before the fit \(declared were: died, urea, days\)"),
        ("died", 0, "repetitions must be a whole number of at least 1, not 0"),
        ("died", 2.5, "repetitions must be a whole number of at least 1"),
    ],
)
def test_what_cannot_be_checked_is_refused_in_a_sentence(name, repetitions, message):
    """A check of another study, or of none."""
    with pytest.raises(InputError, match=message):
        fitted().coverage(name, repetitions=repetitions)


@pytest.mark.parametrize("seed", [-1, "a"])
def test_a_seed_that_is_none_is_refused_in_a_sentence(seed):
    """A ValueError out of NumPy's Cython for a negative seed."""
    with pytest.raises(InputError, match="random_state must be a whole number of at least 0"):
        fitted().coverage("died", random_state=seed)
    with pytest.raises(InputError, match="random_state must be a whole number of at least 0"):
        fitted().sample_many(2, random_state=seed)
    with pytest.raises(InputError, match="random_state must be a whole number of at least 0"):
        fitted().sample(2, random_state=seed)
