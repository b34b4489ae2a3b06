"""Columns that give the outcome away, and columns that do not."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from dpsynth.table.draft import find_leaks

N = 600


def table(seed: int, classes: int = 2) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    y = rng.integers(0, classes, N)
    twin = np.where(rng.random(N) < 0.02, rng.integers(0, classes, N), y)
    some = (y == 1) & (rng.random(N) < 0.4)
    return pd.DataFrame(
        {
            "twin": [f"code {value}" for value in twin],
            "u_shaped": np.where(y == 1, rng.choice([-3.0, 3.0], N), 0.0) + rng.normal(0, 0.5, N),
            "days_to_death": np.where(some, rng.integers(1, 99, N), np.nan),
            "age": rng.integers(18, 90, N) + 5 * y,
            "ward": rng.choice([f"ward {i}" for i in range(250)], N),
            "name": [f"n{i}" for i in range(N)],
            "rare": np.where(np.arange(N) < 5, 1.0, np.nan),
            "empty": np.full(N, np.nan),
            "y": y,
        }
    )


@pytest.mark.parametrize("seed", range(5))
def test_what_gives_the_outcome_away_and_what_does_not(seed: int) -> None:
    """A column missed because it is not monotone, or 250 wards that fit the outcome by chance."""
    found = {leak.column: leak for leak in find_leaks(table(seed), "y")}
    assert list(found) == ["twin", "u_shaped", "days_to_death"]
    assert found["twin"].auc > 0.97 and not found["twin"].only
    assert found["days_to_death"].only and str(found["days_to_death"]) == "only with one outcome"


def test_each_value_of_the_outcome_is_looked_at() -> None:
    """An outcome of three values of which a column tells one."""
    frame = table(0, classes=3)
    assert [leak.column for leak in find_leaks(frame, "y")][:2] == ["twin", "u_shaped"]


def test_cases_and_controls_in_turns() -> None:
    """Halves taken by turns from pairs of a case and a control: one half without any case."""
    y = np.tile([0, 1], 100)
    frame = pd.DataFrame({"ward": np.where(y, "morgue", "icu"), "age": np.arange(200) // 2 % 50, "y": y})
    assert [str(leak) for leak in find_leaks(frame, "y")] == ["AUC 1.00"]


@pytest.mark.parametrize("y", [np.zeros(50), np.arange(50), np.arange(50) < 3])
def test_outcomes_that_say_nothing(y: np.ndarray) -> None:
    """A leak claimed of a constant, of numbers, or of three cases."""
    assert find_leaks(pd.DataFrame({"x": np.arange(50.0), "y": y}), "y") == ()


def test_a_date_of_the_outcome_is_found() -> None:
    """Catches dates taken as words, of which each occurs once and predicts nothing."""
    died = np.arange(400) % 2
    day = pd.Timestamp("2010-01-01") + pd.to_timedelta(np.arange(400) + 400 * died, unit="D")
    table = pd.DataFrame({"day": day, "died": died})
    assert [leak.column for leak in find_leaks(table, "died")] == ["day"]
