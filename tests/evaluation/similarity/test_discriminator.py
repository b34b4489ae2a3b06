"""The discriminator: what it must see, what it must not, and pMSE against statsmodels and simulation."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm

import dpsynth.evaluation.similarity.discriminator as module
from dpsynth.errors import InputError
from dpsynth.evaluation.features import distance_features
from dpsynth.evaluation.similarity.discriminator import BOOSTING, LOGISTIC, discriminate
from dpsynth.evaluation.utility.models import CLASSIFIERS
from dpsynth.table.schema import Column, Schema

SCHEMA = Schema(
    columns=(
        Column(name="x", kind="continuous", lower=-5, upper=5, missing=True),
        Column(name="y", kind="continuous", lower=-5, upper=5),
        Column(name="site", kind="categorical", categories=("A", "B", "C")),
    )
)


def draw(rng: np.random.Generator, n: int, shift: float = 0.0) -> pd.DataFrame:
    x = rng.normal(size=n)
    y = (x + rng.normal(size=n) + shift).clip(-5, 5)
    x = np.where(rng.random(n) < 0.1, np.nan, x.clip(-5, 5))
    return SCHEMA.conform(pd.DataFrame({"x": x, "y": y, "site": rng.choice(["A", "B", "C"], n)})).frame


def test_a_shift_is_seen_by_both_models_and_by_pmse() -> None:
    """Would catch labels out of step with rows, or scores of the wrong class."""
    rng = np.random.default_rng(0)
    found = discriminate(draw(rng, 300), draw(rng, 280, shift=1.5), SCHEMA, rng=rng)
    assert found.size == 280
    assert all(entry.lower > 0.6 for entry in found.auc.values())
    assert found.propensity is not None
    assert found.propensity.ratio > 10 and found.propensity.standardised > 5


@pytest.mark.slow
def test_lost_dependence_is_seen_by_trees_only() -> None:
    """Would catch trees that get no raw columns: linear scores cannot see how columns go together."""
    rng = np.random.default_rng(1)
    real, made = draw(rng, 1000), draw(rng, 1000)
    made["y"] = rng.permutation(made["y"].to_numpy())
    found = discriminate(real, made, SCHEMA, rng=rng)
    assert found.auc[BOOSTING].lower > 0.55
    assert found.auc[LOGISTIC].lower < 0.5 < found.auc[LOGISTIC].upper


def test_copies_fall_below_one_half() -> None:
    """Would catch folds that score a model on its own training records."""
    rng = np.random.default_rng(2)
    real = draw(rng, 200)
    found = discriminate(real, real, SCHEMA, rng=rng)
    assert found.auc[BOOSTING].value < 0.5


@pytest.mark.slow
def test_a_fresh_draw_is_not_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """Would catch an interval too narrow for overlapping folds (17 % of alarms without the correction), and a
    null expectation of pMSE that is off by Snoke's factor two."""
    monkeypatch.setattr(module, "_boosting", lambda nominal, seed: CLASSIFIERS[LOGISTIC].make(0))
    monkeypatch.setattr(module, "_tree_features", lambda part, schema: distance_features(part, schema).points)
    monkeypatch.setattr(module, "shuffled_losses", lambda *given: np.zeros(len(SCHEMA)))
    rng = np.random.default_rng(3)
    alarms, ratios, standardised = 0, [], []
    for _ in range(150):
        found = discriminate(draw(rng, 100), draw(rng, 100), SCHEMA, rng=rng)
        estimate = found.auc[LOGISTIC]
        alarms += not estimate.lower <= 0.5 <= estimate.upper
        assert found.propensity is not None
        ratios.append(found.propensity.ratio)
        standardised.append(found.propensity.standardised)
    assert alarms <= 12
    assert np.mean(ratios) == pytest.approx(1.0, abs=0.2)
    assert np.std(standardised) == pytest.approx(1.0, abs=0.25)


def test_pmse_equals_statsmodels() -> None:
    """Would catch a penalty left in the fit, or parameters counted with the collinear ones."""
    rng = np.random.default_rng(4)
    real, made = draw(rng, 150), draw(rng, 150, shift=0.5)
    found = discriminate(real, made, SCHEMA, rng=rng).propensity
    both = pd.concat([real, made])
    # x, present/missing, y and two of three sites, with an intercept
    design = np.column_stack(
        [
            np.ones(300),
            both["x"].fillna(0.0),
            both["x"].isna(),
            both["y"],
            both["site"] == "A",
            both["site"] == "B",
        ]
    ).astype(float)
    label = np.repeat([0.0, 1.0], 150)
    fitted = sm.Logit(label, design).fit(disp=0).predict(design)
    assert found is not None and found.parameters == 6
    assert found.pmse == pytest.approx(np.mean((fitted - 0.5) ** 2), rel=1e-6)
    assert found.expected == pytest.approx(5 / 4 / 300)


def test_separated_tables_give_finite_numbers() -> None:
    """Would catch coefficients that overflow where a line separates the tables."""
    rng = np.random.default_rng(5)
    real, made = draw(rng, 100), draw(rng, 100)
    real["y"], made["y"] = -4.0 + 0.1 * rng.random(100), 4.0 + 0.1 * rng.random(100)
    found = discriminate(real, made, SCHEMA, rng=rng)
    assert found.propensity is not None and found.propensity.pmse == pytest.approx(0.25, abs=1e-3)
    assert found.auc[LOGISTIC].value == 1.0 and found.auc[LOGISTIC].lower < 1.0


def test_constant_missing_and_tiny_tables() -> None:
    """Would catch a failing bin search on columns without values, or a singular design."""
    rng = np.random.default_rng(6)
    frame = draw(rng, 40)
    frame["x"], frame["y"], frame["site"] = np.nan, 1.0, "A"
    found = discriminate(frame, frame, SCHEMA, rng=rng)
    assert {entry.value for entry in found.auc.values()} == {0.5}
    assert found.propensity is not None and found.propensity.ratio == 1.0
    small = draw(rng, 5)
    assert discriminate(small, small, SCHEMA, rng=rng).propensity is None
    with pytest.raises(InputError, match=r"at least 5 records each .* got 4"):
        discriminate(small.iloc[:4], small, SCHEMA, rng=rng)
