"""The discriminator: what it must see, and what it must not."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

import dpsynth.evaluation.discriminator as module
from dpsynth.evaluation.discriminator import (
    BOOSTING,
    LOGISTIC,
    _shifted,
    discriminate,
    over_folds,
    separate_single_columns,
    shuffled_losses,
)
from dpsynth.evaluation.models import CLASSIFIERS
from dpsynth.evaluation.tables import distance_features
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


def test_a_shift_is_seen_by_both_models() -> None:
    """Would catch labels out of step with rows, or scores of the wrong class."""
    rng = np.random.default_rng(0)
    found = discriminate(draw(rng, 300), draw(rng, 280, shift=1.5), SCHEMA, rng=rng)
    assert found.size == 280
    assert all(entry.lower > 0.6 for entry in found.auc.values())


@pytest.mark.slow
@pytest.mark.parametrize("categories", [254, 255, 300])
def test_many_categories_are_told_apart(categories: int) -> None:
    """Would catch an error of boosting, which takes 255 codes, one of them for missing values."""
    names = tuple(f"c{k:03d}" for k in range(categories))
    code = Column(name="code", kind="categorical", categories=names, missing=True)
    schema, rng = Schema(columns=(code,)), np.random.default_rng(3)
    real = pd.DataFrame({"code": [*names, None] * 6})
    made = pd.DataFrame({"code": [*names[: categories // 2], None] * 12})
    found = discriminate(*(schema.conform(frame).frame for frame in (real, made)), schema, rng=rng)
    assert found.auc[BOOSTING].lower > 0.55 and found.importance["code"].lower > 0.02


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
    """Would catch an interval too narrow for overlapping folds (17 % of alarms without the correction).

    Of 100 comparisons, more than 10 alarm with a probability of 1.1 % at a rate of 5 %, and of 97 % at 17 %.
    """
    monkeypatch.setattr(module, "_boosting", lambda nominal, seed: CLASSIFIERS[LOGISTIC].make(0))
    monkeypatch.setattr(module, "_tree_features", lambda part, schema: distance_features(part, schema))
    monkeypatch.setattr(module, "shuffled_losses", lambda *given: np.zeros(len(SCHEMA)))
    rng = np.random.default_rng(3)
    alarms = 0
    for _ in range(100):
        found = discriminate(draw(rng, 100), draw(rng, 100), SCHEMA, rng=rng)
        estimate = found.auc[LOGISTIC]
        alarms += not estimate.lower <= 0.5 <= estimate.upper
    assert alarms <= 10


def test_separated_tables_give_finite_numbers() -> None:
    """Would catch coefficients that overflow where a line separates the tables."""
    rng = np.random.default_rng(5)
    real, made = draw(rng, 100), draw(rng, 100)
    real["y"], made["y"] = -4.0 + 0.1 * rng.random(100), 4.0 + 0.1 * rng.random(100)
    found = discriminate(real, made, SCHEMA, rng=rng)
    assert found.auc[LOGISTIC].value == 1.0 and found.auc[LOGISTIC].lower < 1.0


def test_constant_missing_and_tiny_tables() -> None:
    """Would catch a failing bin search on columns without values."""
    rng = np.random.default_rng(6)
    frame = draw(rng, 40)
    frame["x"], frame["y"], frame["site"] = np.nan, 1.0, "A"
    found = discriminate(frame, frame, SCHEMA, rng=rng)
    assert {entry.value for entry in found.auc.values()} == {0.5}


TOGETHER = Schema(
    columns=tuple(Column(name=name, kind="continuous", lower=-9, upper=9) for name in ("a", "b", "c"))
)


def shifted_table(n: int, seed: int, shift: float = 0.0, together: float = 0.0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    a, noise, c = rng.normal(size=(3, n))
    b = together * a + np.sqrt(1 - together**2) * noise
    return pd.DataFrame({"a": a, "b": b, "c": c + shift})


def losses(real: pd.DataFrame, made: pd.DataFrame) -> dict[str, float]:
    found = discriminate(real, made, TOGETHER, rng=np.random.default_rng(0))
    assert all(e.lower <= e.value <= e.upper for e in found.importance.values())
    return {name: estimate.value for name, estimate in found.importance.items()}


def test_equals_permutation_importance_of_scikit_learn() -> None:
    """An AUC of the wrong class, a column that is not put back, or the whole score in place of its fall."""
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.inspection import permutation_importance

    rng = np.random.default_rng(1)
    points, label = rng.normal(size=(3000, 3)), np.repeat([0, 1], 1500)
    points[label == 1] += [1.0, 0.3, 0.0]
    model = HistGradientBoostingClassifier(random_state=0, max_iter=30).fit(points[::2], label[::2])
    held, kind = points[1::2], label[1::2]
    direct = permutation_importance(model, held, kind, scoring="roc_auc", n_repeats=20, random_state=0)
    scores = model.predict_proba(held)[:, 1]
    found = np.mean([shuffled_losses(model, held, kind, scores, rng) for _ in range(20)], axis=0)
    assert found == pytest.approx(direct.importances_mean, abs=0.01)


def test_the_shifted_column_is_found() -> None:
    """A column named that is like the real one, or none where one alone gives everything away."""
    found = losses(shifted_table(600, 0), shifted_table(600, 1, shift=1.5))
    assert found["c"] > 0.2 and abs(found["a"]) < 0.03 and abs(found["b"]) < 0.03


def test_columns_that_go_together_wrongly_are_found() -> None:
    """What no single column shows: each has its distribution, but two do not go together as they should."""
    found = losses(shifted_table(900, 2, together=0.95), shifted_table(900, 3))
    assert found["a"] > 0.05 and found["b"] > 0.05 and abs(found["c"]) < 0.03


@pytest.mark.slow
def test_nothing_is_found_where_nothing_is() -> None:
    """An interval that excludes 0 for two samples of one distribution."""
    found = discriminate(
        shifted_table(900, 4), shifted_table(900, 5), TOGETHER, rng=np.random.default_rng(0)
    ).importance
    assert sum(estimate.lower > 0 for estimate in found.values()) == 0


def test_other_numbers_stay_as_they_are() -> None:
    """Shuffling that moves the seeds of the classifiers, so that every other number of a report changes."""
    rng, other = np.random.default_rng(0), np.random.default_rng(0)
    discriminate(shifted_table(100, 6), shifted_table(100, 7), TOGETHER, rng=rng)
    other.permutation(100), other.permutation(100)
    other.integers(2**31 - 1)
    assert rng.bit_generator.state == other.bit_generator.state


def test_intervals_over_folds() -> None:
    """An interval as if folds were independent, which is too short by half."""
    (found,) = over_folds(np.array([[0.1], [0.2], [0.3], [0.2], [0.2]]), 0.95)
    # std .0707107, t of 4 degrees 2.7764451, sqrt(1/5 + 1/4) = .6708204
    assert (found.lower, found.upper) == pytest.approx((0.2 - 0.1316988, 0.2 + 0.1316988), abs=1e-6)


SBP = Column(name="sbp", kind="integer", lower=0, upper=300, unit="mmHg", missing=True)
PRESSURES = Schema(columns=(SBP,))


def pressure(rng: np.random.Generator, n: int, heaped: float, mean: float = 130.0) -> pd.DataFrame:
    """Systolic pressure, a share of it written down on tens."""
    exact = rng.normal(mean, 20, n)
    values = np.where(rng.random(n) < heaped, 10 * np.rint(exact / 10), np.rint(exact)).clip(0, 300)
    return PRESSURES.conform(pd.DataFrame({"sbp": values})).frame


@pytest.mark.parametrize(("n", "heaped"), [(600, 0.4), (4000, 0.2), (4000, 0.7)])
def test_heaping_is_found_as_well_as_can_be(n: int, heaped: float) -> None:
    """Would catch a comparison of smooth shapes only: Kolmogorov and Smirnov see next to nothing here.

    Tens hold a share h + (1 - h) / 10 of heaped values and 1 / 10 of others: the best score is whether a
    value is a ten, with an AUC of 1/2 + 0.45 h.
    """
    rng = np.random.default_rng(0)
    found = [
        separate_single_columns(pressure(rng, n, heaped), pressure(rng, n, 0.0), PRESSURES, rng=rng)[0]
        for _ in range(5)
    ]
    best = 0.5 + 0.45 * heaped
    assert np.mean([f["auc"] for f in found]) == pytest.approx(best, abs=0.02)
    assert np.mean([f["last_digits"] for f in found]) == pytest.approx(best, abs=0.02)
    assert all(f["lower"] > 0.5 for f in found)


def test_a_shift_is_found_as_well_as_can_be_and_not_by_digits() -> None:
    """Would catch a score that sees habits only, or blames last digits for a difference of shape."""
    rng = np.random.default_rng(1)
    real, made = pressure(rng, 4000, 0.5, 130), pressure(rng, 4000, 0.5, 140)
    (found,) = separate_single_columns(real, made, PRESSURES, rng=rng)
    assert found["auc"] == pytest.approx(norm.cdf(0.5 / np.sqrt(2)), abs=0.02)
    assert found["last_digits"] < 0.53


@pytest.mark.parametrize("n", [50, 1000])
def test_two_samples_of_one_distribution_are_a_coin(n: int) -> None:
    """Would catch scores from the records themselves, which tell any two tables apart."""
    rng = np.random.default_rng(2)
    found = [
        separate_single_columns(pressure(rng, n, 0.4), pressure(rng, n, 0.4), PRESSURES, rng=rng)[0]
        for _ in range(60)
    ]
    assert np.mean([f["auc"] for f in found]) == pytest.approx(0.5, abs=0.025)
    assert np.mean([f["lower"] <= 0.5 <= f["upper"] for f in found]) > 0.9


def test_decimals_that_only_one_table_has_are_found() -> None:
    """Would catch blindness to 1.2 beside 1.1999514, where the schema declares no step."""
    rng = np.random.default_rng(3)
    schema = Schema(columns=(Column(name="crea", kind="continuous", lower=0, upper=30),))
    real, made = (pd.DataFrame({"crea": np.exp(rng.normal(0, 0.5, 500))}) for _ in range(2))
    (found,) = separate_single_columns(real.round(1), made, schema, rng=rng)
    assert found["lower"] > 0.95 and found["last_digits"] > 0.95


def test_sizes_missing_values_and_the_limit() -> None:
    """Would catch missing values taken for numbers, unequal parts, and columns of four values judged."""
    rng = np.random.default_rng(4)
    real, made = pressure(rng, 300, 0.4), pressure(rng, 200, 0.0)
    real.loc[::2, "sbp"] = pd.NA
    assert separate_single_columns(real, made, PRESSURES, rng=rng)[0]["size"] == 150
    assert separate_single_columns(real, made, PRESSURES, rng=rng, limit=40)[0]["size"] == 40
    assert separate_single_columns(real[:8], made, PRESSURES, rng=rng) == []
    few = Schema(columns=(Column(name="sbp", kind="integer", lower=0, upper=300, step=30, missing=True),))
    assert separate_single_columns(real, made, few, rng=rng)[0]["last_digits"] is None


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
