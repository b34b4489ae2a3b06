"""Declared studies in a fit: what they cost, what is refused, and what a user reads."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from chosen_statistics import beside, dp_marginals

import dpsynth
from dpsynth import Column, Schema
from dpsynth.errors import InputError, RejectionError
from dpsynth.studies.study import Study
from dpsynth.synthesis.model import GeneratorModel
from dpsynth.synthesis.study_forecast import expected_widening

SCHEMA = Schema(
    columns=(
        Column(name="age", kind="integer", lower=18, upper=99),
        Column(name="urea", kind="continuous", lower=1, upper=200, scale="log"),
        Column(name="sex", kind="binary", categories=("F", "M")),
        Column(name="died", kind="binary", categories=("no", "yes")),
    ),
    outcome="died",
    n_public=800,
)
TEXT = "logistic: died ~ age + urea + sex"


def cohort(n: int = 800, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    age, urea = rng.integers(18, 100, n), np.exp(rng.normal(2, 0.7, n)).clip(1, 200)
    p = 1 / (1 + np.exp(1 - 0.04 * (age - 60) - 0.5 * np.log2(urea / 8)))
    return pd.DataFrame(
        {
            "age": age,
            "urea": urea,
            "sex": rng.choice(["F", "M"], n),
            "died": np.where(rng.random(n) < p, "yes", "no"),
        }
    )


def fitted(**given) -> dpsynth.DPMarginals:
    also = beside(given.pop("studies", [TEXT]), given.pop("share", 0.3))
    options = {"epsilon": 3.0, "delta": 1e-5, "pairwise_statistics": False} | given
    return dp_marginals(**options).fit(cohort(), schema=SCHEMA, also=also)


@pytest.mark.parametrize("studies", [[TEXT], [TEXT, {"model": "linear: age ~ urea + sex", "name": "age"}]])
def test_the_whole_fit_costs_what_was_asked(studies):
    """Readings of studies that the calibration forgets, or that leave budget unused."""
    model = fitted(studies=studies)
    assert 0.98 * 3.0 < model.ledger_.epsilon(1e-5) <= 3.0
    names = [entry.name for entry in model.ledger_.entries]
    assert len(names) == 3 + 3 * len(studies)
    for label in [estimates.study for estimates in model.estimates_]:
        kinds = [name.split()[0] for name in names if name.endswith(f"of study {label}")]
        assert kinds == ["information", "score", "score"]
    assert {entry.sensitivity.split()[0] for entry in model.ledger_.entries[3:]} == {"1"}
    assert model.guarantee().private


def test_a_survival_study_buys_its_curve_within_its_share(few_draws):
    """A life table on top of the budget, paid for by other studies too, or a width told with all of it."""
    survival = Study(model="cox: (urea, died) ~ age", name="urea")
    model = fitted(studies=[TEXT, survival])
    assert 0.98 * 3.0 < model.ledger_.epsilon(1e-5) <= 3.0
    noise = {"died": [], "urea": []}
    for entry in model.ledger_.entries[3:]:
        noise[entry.name.split()[-1]].append(entry.event.noise_multiplier)
    whole = [float(np.sum(np.power(each, -2.0))) for each in noise.values()]
    assert whole[0] == pytest.approx(whole[1])
    assert np.power(noise["urea"], -2.0) / whole[1] == pytest.approx([0.18, 0.36, 0.36, 0.1])
    # six coefficients (five intervals, one term) of 800 records are as two of 800 / 3; nine tenths for them
    alike = expected_widening(Study(model="died ~ age"), SCHEMA, 800 / 3, (0.9 * whole[1]) ** -0.5)
    assert expected_widening(survival, SCHEMA, 800, whole[1] ** -0.5) == pytest.approx(alike)
    assert model.study("died").survival is None
    curve = model.study("urea").survival
    assert curve.times[-1] == 200.0 and ((curve.upper - curve.lower)[:10] > 0).all()


def test_studies_leave_the_rest_in_proportion():
    """A share of the studies that is taken from the tables alone."""
    plain, declared = fitted(studies=[]), fitted(share=0.36)
    for before, after in zip(plain.ledger_.entries, declared.ledger_.entries[:3], strict=True):
        if "multiplier" in str(before.event):
            ratio = after.event.noise_multiplier / before.event.noise_multiplier
            assert ratio == pytest.approx(1 / np.sqrt(0.64), rel=0.02)


def test_the_effects_are_found():
    """Effects of another sign or size; age and urea are strong here, sex has none."""
    told = {row["term"]: row for row in fitted(random_state=1).estimates_[0].effects()}
    assert told["age"]["lower"] > 1.0 and told["age"]["lower"] < np.exp(0.04) < told["age"]["upper"]
    assert told["urea (per doubling)"]["lower"] < np.exp(0.5) < told["urea (per doubling)"]["upper"]
    assert told["sex: M vs F"]["lower"] < 1 < told["sex: M vs F"]["upper"]


def test_the_expected_widening_is_near():
    """A width told beforehand that has nothing to do with what comes out."""
    model = fitted(epsilon=1.0, random_state=0)
    study = model.model_.studies[0].declared
    scores = [
        entry.event.noise_multiplier for entry in model.ledger_.entries if entry.name.startswith("score")
    ]
    whole = float(np.sum([z**-2.0 for z in scores]) / 0.8) ** -0.5
    expected = expected_widening(study, SCHEMA, 800, whole)
    assert 0.6 * expected < model.estimates_[0].widening < 1.6 * expected


def test_the_expected_widening_is_what_a_benchmark_saw():
    """A lower bound that is told as an expectation: 1.07 where 1.35 to 1.72 came out.

    Multipliers are those that were planned for studies of `benchmarks/study_cases.py` at epsilon 1 and 3.
    """
    for multiplier, n, terms, seen in [
        (7.17, 4000, 8, 1.48),
        (2.65, 4000, 8, 1.14),
        (7.18, 4000, 8, 1.35),
        (7.18, 4000, 8, 1.72),
        (7.18, 4000, 4, 1.49),
        (2.65, 4000, 4, 1.09),
        (5.50, 299, 4, 3.71),
        (2.14, 299, 4, 1.35),
        (6.43, 1176, 8, 2.09),
        (2.42, 1176, 8, 1.31),
    ]:
        names = [f"x{k}" for k in range(terms)]
        columns = [Column(name=name, kind="continuous", lower=0, upper=1) for name in names]
        schema = Schema(columns=(*columns, Column(name="died", kind="binary", categories=(0, 1))))
        study = Study(model="died ~ " + " + ".join(names))
        assert 0.78 < seen / expected_widening(study, schema, n, multiplier) < 1.25


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["died ~ bmi"], "'bmi' is not a column"),
        (["logistic: age ~ sex"], "must have two categories"),
        ([TEXT, "died ~ age"], "died"),
    ],
)
def test_what_is_wrong_is_said_in_a_sentence(given, said):
    """A mistake in a declaration that is found when the budget is spent, or as a traceback."""
    model = dp_marginals(epsilon=3.0)
    with pytest.raises(InputError, match=said) as problem:
        model.fit(cohort(), schema=SCHEMA, also=beside(given))
    assert "\n" not in str(problem.value) and not getattr(model, "ledger_", dpsynth.privacy.Ledger()).entries


def combined(model: dpsynth.DPMarginals, m: int, n: int | None = None) -> dpsynth.studies.combining.Combined:
    import statsmodels.api as sm

    fits = []
    for table in model.sample_many(m, n, study="died", random_state=0):
        terms = np.column_stack([table["age"], np.log2(table["urea"]), table["sex"] == "M"]).astype(float)
        fits.append(sm.Logit((table["died"] == "yes") * 1.0, sm.add_constant(terms)).fit(disp=False))
    return dpsynth.combine([fit.params[1:] for fit in fits], [fit.bse[1:] ** 2 for fit in fits])


@pytest.mark.slow
def test_combining_a_studys_tables_gives_its_estimates_back():
    """Tables without the noise, or with the sampling counted twice: intervals of another length."""
    model = fitted(epsilon=2.0, random_state=0)
    told, found = model.estimates_[0], combined(model, 60, 4000)
    assert np.abs((found.estimate - told.coefficients) / told.std_errors).max() < 0.5
    np.testing.assert_allclose(found.std_error, told.std_errors, rtol=0.3)


def test_tables_for_a_study_differ_and_obey_the_schema():
    """One table m times, or values that the schema does not know."""
    model = fitted(random_state=0)
    first, second = model.sample_many(2, 200, study="died", random_state=3)
    assert not first.equals(second)
    for table in (first, second):
        assert table.equals(SCHEMA.conform(table).frame) and len(table) == 200
    with pytest.raises(InputError, match="not declared before the fit"):
        model.sample_many(2, study="survival")


def test_constraints_that_the_draws_break_lose_nothing(monkeypatch):
    """A fit whose tables are paid for, and whose study then ends it because no draw obeys a rule."""
    draw = GeneratorModel.sample

    def sample(self, *given, **named):
        if self.schema.rules:
            raise RejectionError("constraint 'age < 60': nearly impossible")
        return draw(self, *given, **named)

    monkeypatch.setattr(GeneratorModel, "sample", sample)
    schema = SCHEMA.model_copy(update={"constraints": ("age < 60",)})
    model = dp_marginals(1.0, 1e-5, pairwise_statistics=False)
    model.fit(cohort(), schema=schema, also=beside(["died ~ urea"]))
    assert len(model.ledger_.entries) == 6 and model.estimates_
