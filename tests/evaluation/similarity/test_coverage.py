"""Coverage of categories and ranges by hand, chance values and invented categories by simulation."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from dpsynth.errors import InputError
from dpsynth.evaluation.similarity.columns import category_coverage, covered, range_coverage, ranges_covered
from dpsynth.table.schema import Column, Schema

SITE = Column(name="site", kind="categorical", categories=("A", "B", "C", "D"), missing=True)
AGE = Column(name="age", kind="integer", lower=0, upper=99)
SCHEMA = Schema(columns=(SITE, AGE))


def sites(**counts: int) -> pd.DataFrame:
    values = [name if name != "missing" else None for name, times in counts.items() for _ in range(times)]
    return pd.DataFrame({"site": pd.Series(values, dtype=object), "age": np.arange(len(values)) % 90})


def test_shares_by_hand() -> None:
    """Would catch missing values among the categories, or weights of the wrong table."""
    real, made = sites(A=900, B=95, C=5, missing=50), sites(A=10, C=1, D=3)
    found = category_coverage(real, made, SCHEMA)
    assert found[0].real == pytest.approx([0.9, 0.095, 0.005, 0.0])
    plain, weighted, rare = (covered(found, **choice) for choice in ({}, {"weighted": True}, {"rare": True}))
    assert plain is not None and (plain.value, plain.categories) == (2 / 3, 3)
    assert weighted is not None and weighted.value == pytest.approx(0.905)
    assert rare is not None and (rare.value, rare.categories) == (1.0, 1)


@pytest.mark.slow
def test_chance_is_the_mean_over_fresh_draws() -> None:
    """Would catch the size of the wrong table: fourteen records rarely hold one in two hundred."""
    rng = np.random.default_rng(0)
    real = sites(A=900, B=95, C=5)
    values = []
    for _ in range(400):
        drawn = real.iloc[rng.integers(0, len(real), 14)]
        entry = covered(category_coverage(real, drawn, SCHEMA))
        assert entry is not None
        values.append(entry.value)
    assert entry.chance == pytest.approx(np.mean(values), abs=0.02)


def test_invented_categories() -> None:
    """Would catch a category of the synthetic table alone passed over, or ordinary luck called invention."""
    found = category_coverage(sites(A=500, B=10), sites(A=450, B=12, D=30), SCHEMA)
    assert found[0].invented == (("D", 0, 30),)
    rng = np.random.default_rng(1)
    probabilities = [0.7, 0.2, 0.09, 0.01]
    alarms = 0
    for _ in range(200):
        real, made = (
            pd.DataFrame({"site": rng.choice(["A", "B", "C", "D"], n, p=probabilities), "age": 0})
            for n in (200, 500)
        )
        alarms += bool(category_coverage(real, made, SCHEMA)[0].invented)
    assert alarms <= 14  # of 200; 10 are expected at most


def test_ranges_by_hand() -> None:
    """Would catch a range counted beyond the real one, or a negative share of a range that lies elsewhere."""
    real = pd.Series([10.0, 20.0, np.nan])
    assert range_coverage(real, pd.Series([0.0, 15.0])) == 0.5
    assert range_coverage(real, pd.Series([50.0, 90.0])) == 0.0
    assert range_coverage(real, pd.Series([0.0, 90.0])) == 1.0
    assert range_coverage(pd.Series([7.0]), pd.Series([7.0])) == 1.0
    assert range_coverage(pd.Series([7.0]), pd.Series([8.0])) == 0.0
    assert range_coverage(pd.Series([np.nan]), real) is None


def test_no_categories_and_no_values() -> None:
    """Would catch a share of nothing."""
    assert covered([]) is None
    empty = category_coverage(sites(missing=3), sites(A=2), SCHEMA)
    assert covered(empty) is None and empty[0].invented == ()
    none_made = category_coverage(sites(A=3), sites(missing=2), SCHEMA)
    entry = covered(none_made)
    assert entry is not None and (entry.value, entry.chance) == (0.0, 0.0)
    with pytest.raises(InputError, match="got 0 and 3"):
        ranges_covered(sites(), sites(A=3), SCHEMA)
