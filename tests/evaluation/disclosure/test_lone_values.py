"""Values that one real person alone has: found where one column is copied, silent where nothing is."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from dpsynth.evaluation.disclosure.copies import lone_value_shares


def table(n: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "time": rng.integers(0, 50_000, n),
            "age": rng.integers(20, 90, n),
            "sex": rng.choice(["F", "M"], n),
            "lab": np.where(rng.random(n) < 0.3, np.nan, rng.integers(0, 3000, n)),
        }
    )


def found(made, train, test, seed=0):
    return lone_value_shares(made, train, test, rng=np.random.default_rng(seed))


def test_one_copied_column_is_found_among_fresh_ones() -> None:
    """A column of times that gives its patients away while whole records are nobody's."""
    train, test, made = table(800, 0), table(800, 1), table(3000, 2)
    assert all(e.lower <= 0.5 <= e.upper for e in found(made, train, test).values())
    made["time"] = train["time"].sample(3000, replace=True, random_state=0).to_numpy()
    result = found(made, train, test)
    assert result["time"].lower > 0.9 and result["lab"].lower < 0.5 < result["lab"].upper


def test_columns_without_lone_values_are_absent() -> None:
    """A share of two categories, or of missing values, which say nothing about one person."""
    result = found(table(500, 3), table(500, 4), table(500, 5))
    assert "sex" not in result and "age" not in result
    nothing = pd.DataFrame({"lab": np.full(300, np.nan)})
    assert found(nothing, nothing, nothing) == {}


def test_sizes_do_not_matter() -> None:
    """Twice as many training records, whose values are then found twice as often by chance."""
    result = found(table(4000, 6), table(1600, 7), table(800, 8))
    assert result["lab"].lower <= 0.5 <= result["lab"].upper


def test_the_naive_count_agrees() -> None:
    """Values counted once, or those of two real records counted as lone."""
    train, test, made = table(300, 9), table(300, 10), table(6000, 11)
    values = [*train["time"], *test["time"]]
    hits = [0, 0]
    for value in made["time"]:
        if values.count(value) == 1:
            hits[value in set(test["time"])] += 1
    assert sum(hits) > 30
    assert found(made, train, test)["time"].value == pytest.approx(hits[0] / sum(hits))


@pytest.mark.slow
def test_alarms_are_as_rare_as_said() -> None:
    """An interval too short: of 300 tables without memory, at most 5 % may be accused, in any column."""
    alarms = 0
    for seed in range(300):
        made, train, test = (table(n, 1000 * seed + n) for n in (900, 301, 302))
        alarms += any(e.lower > 0.5 for e in found(made, train, test, seed).values())
    assert alarms <= 16  # 2.5 % are expected on this side, and 16 are exceeded once in a thousand times
