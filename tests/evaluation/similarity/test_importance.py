"""Which columns give records away: against scikit-learn, and on tables whose fault is known."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from dpsynth.evaluation.similarity.discriminator import discriminate, over_folds, shuffled_losses
from dpsynth.table.schema import Column, Schema

SCHEMA = Schema(
    columns=tuple(Column(name=name, kind="continuous", lower=-9, upper=9) for name in ("a", "b", "c"))
)


def table(n: int, seed: int, shift: float = 0.0, together: float = 0.0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    a, noise, c = rng.normal(size=(3, n))
    b = together * a + np.sqrt(1 - together**2) * noise
    return pd.DataFrame({"a": a, "b": b, "c": c + shift})


def losses(real: pd.DataFrame, made: pd.DataFrame) -> dict[str, float]:
    found = discriminate(real, made, SCHEMA, rng=np.random.default_rng(0))
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
    found = losses(table(600, 0), table(600, 1, shift=1.5))
    assert found["c"] > 0.2 and abs(found["a"]) < 0.03 and abs(found["b"]) < 0.03


def test_columns_that_go_together_wrongly_are_found() -> None:
    """What no single column shows: each has its distribution, but two do not go together as they should."""
    found = losses(table(900, 2, together=0.95), table(900, 3))
    assert found["a"] > 0.05 and found["b"] > 0.05 and abs(found["c"]) < 0.03


@pytest.mark.slow
def test_nothing_is_found_where_nothing_is() -> None:
    """An interval that excludes 0 for two samples of one distribution."""
    found = discriminate(table(900, 4), table(900, 5), SCHEMA, rng=np.random.default_rng(0)).importance
    assert sum(estimate.lower > 0 for estimate in found.values()) == 0


def test_other_numbers_stay_as_they_are() -> None:
    """Shuffling that moves the seeds of the classifiers, so that every other number of a report changes."""
    rng, other = np.random.default_rng(0), np.random.default_rng(0)
    discriminate(table(100, 6), table(100, 7), SCHEMA, rng=rng)
    other.permutation(100), other.permutation(100)
    other.integers(2**31 - 1)
    assert rng.bit_generator.state == other.bit_generator.state


def test_intervals_over_folds() -> None:
    """An interval as if folds were independent, which is too short by half."""
    (found,) = over_folds(np.array([[0.1], [0.2], [0.3], [0.2], [0.2]]), 0.95)
    # std .0707107, t of 4 degrees 2.7764451, sqrt(1/5 + 1/4) = .6708204
    assert (found.lower, found.upper) == pytest.approx((0.2 - 0.1316988, 0.2 + 0.1316988), abs=1e-6)
