"""One column alone: heaping is found as well as it can be, chance is not, and counting is fast."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

from dpsynth.evaluation.similarity.discriminator import _shifted, single_columns
from dpsynth.table.schema import Column, Schema

SBP = Column(name="sbp", kind="integer", lower=0, upper=300, unit="mmHg", missing=True)
SCHEMA = Schema(columns=(SBP,))


def pressure(rng: np.random.Generator, n: int, heaped: float, mean: float = 130.0) -> pd.DataFrame:
    """Systolic pressure, a share of it written down on tens."""
    exact = rng.normal(mean, 20, n)
    values = np.where(rng.random(n) < heaped, 10 * np.rint(exact / 10), np.rint(exact)).clip(0, 300)
    return SCHEMA.conform(pd.DataFrame({"sbp": values})).frame


@pytest.mark.parametrize(("n", "heaped"), [(600, 0.4), (4000, 0.2), (4000, 0.7)])
def test_heaping_is_found_as_well_as_can_be(n: int, heaped: float) -> None:
    """Would catch a comparison of smooth shapes only: Kolmogorov and Smirnov see next to nothing here.

    Tens hold a share h + (1 - h) / 10 of heaped values and 1 / 10 of others: the best score is whether a
    value is a ten, with an AUC of 1/2 + 0.45 h.
    """
    rng = np.random.default_rng(0)
    found = [
        single_columns(pressure(rng, n, heaped), pressure(rng, n, 0.0), SCHEMA, rng=rng)[0] for _ in range(5)
    ]
    best = 0.5 + 0.45 * heaped
    assert np.mean([f.auc.value for f in found]) == pytest.approx(best, abs=0.02)
    assert np.mean([f.last_digits for f in found]) == pytest.approx(best, abs=0.02)
    assert all(f.beyond_chance and f.auc.lower > 0.5 for f in found)


def test_a_shift_is_found_as_well_as_can_be_and_not_by_digits() -> None:
    """Would catch a score that sees habits only, or blames last digits for a difference of shape."""
    rng = np.random.default_rng(1)
    real, made = pressure(rng, 4000, 0.5, 130), pressure(rng, 4000, 0.5, 140)
    (found,) = single_columns(real, made, SCHEMA, rng=rng)
    assert found.auc.value == pytest.approx(norm.cdf(0.5 / np.sqrt(2)), abs=0.02)
    assert found.last_digits < 0.53


@pytest.mark.parametrize("n", [50, 1000])
def test_two_samples_of_one_distribution_are_a_coin(n: int) -> None:
    """Would catch scores from the records themselves, which tell any two tables apart."""
    rng = np.random.default_rng(2)
    found = [
        single_columns(pressure(rng, n, 0.4), pressure(rng, n, 0.4), SCHEMA, rng=rng)[0] for _ in range(60)
    ]
    assert np.mean([f.auc.value for f in found]) == pytest.approx(0.5, abs=0.025)
    assert np.mean([f.auc.lower <= 0.5 <= f.auc.upper for f in found]) > 0.9
    assert np.mean([f.beyond_chance for f in found]) < 0.1


def test_decimals_that_only_one_table_has_are_found() -> None:
    """Would catch blindness to 1.2 beside 1.1999514, where the schema declares no step."""
    rng = np.random.default_rng(3)
    schema = Schema(columns=(Column(name="crea", kind="continuous", lower=0, upper=30),))
    real, made = (pd.DataFrame({"crea": np.exp(rng.normal(0, 0.5, 500))}) for _ in range(2))
    (found,) = single_columns(real.round(1), made, schema, rng=rng)
    assert found.auc.lower > 0.95 and found.last_digits > 0.95


def test_sizes_missing_values_and_the_limit() -> None:
    """Would catch missing values taken for numbers, unequal parts, and columns of four values judged."""
    rng = np.random.default_rng(4)
    real, made = pressure(rng, 300, 0.4), pressure(rng, 200, 0.0)
    real.loc[::2, "sbp"] = pd.NA
    assert single_columns(real, made, SCHEMA, rng=rng)[0].size == 150
    assert single_columns(real, made, SCHEMA, rng=rng, limit=40)[0].size == 40
    assert single_columns(real[:8], made, SCHEMA, rng=rng) == ()
    few = Schema(columns=(Column(name="sbp", kind="integer", lower=0, upper=300, step=30, missing=True),))
    assert single_columns(real, made, few, rng=rng)[0].last_digits is None


def test_a_correction_is_what_counting_gives() -> None:
    """Would catch odds turned round, or records of the fold itself counted: against plain loops."""
    rng = np.random.default_rng(5)
    counts = rng.integers(0, 9, (2, 3, 6)).astype(float)
    parent = rng.uniform(0.2, 0.8, (3, 6))
    group = np.array([0, 1, 0, 2, 1, 0])
    found = _shifted(parent, counts, group)
    for fold in range(3):
        for value in range(6):
            members = [k for k in range(6) if group[k] == group[value]]
            made = sum(counts[1, fold, k] for k in members)
            real = sum(counts[0, fold, k] for k in members)
            hoped = sum(parent[fold, k] * counts[:, fold, k].sum() for k in members)
            rest = sum((1 - parent[fold, k]) * counts[:, fold, k].sum() for k in members)
            odds = parent[fold, value] / (1 - parent[fold, value])
            odds *= (made + 5) / (hoped + 5) * (rest + 5) / (real + 5)
            assert found[fold, value] == pytest.approx(odds / (1 + odds))
