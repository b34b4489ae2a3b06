"""One-way distances and correlations against naive counts."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsynth.errors import InputError
from dpsynth.evaluation.features import distance_features
from dpsynth.evaluation.similarity.resemblance import (
    _correlations,
    correlation_error,
    one_way_tvd,
    resemblance,
)
from dpsynth.table.schema import Column, Schema

GRADE = Column(name="grade", kind="categorical", categories=("a", "b", "c"), missing=True)
SCORE = Column(name="score", kind="continuous", lower=0, upper=1, missing=True)
SCHEMA = Schema(columns=(GRADE, SCORE))

grades = st.lists(st.sampled_from(["a", "b", "c", None]), min_size=1, max_size=20)


@settings(max_examples=60, deadline=None)
@given(grades, grades)
def test_tvd_of_categories_equals_naive_counts(real: list[str | None], made: list[str | None]) -> None:
    """Would catch a forgotten half, a missing cell or shares by the wrong total."""
    naive = 0.5 * sum(
        abs(real.count(cell) / len(real) - made.count(cell) / len(made)) for cell in ("a", "b", "c", None)
    )
    value = one_way_tvd(pd.Series(real, dtype=object), pd.Series(made, dtype=object), GRADE)
    assert value == pytest.approx(naive, abs=1e-12)


@pytest.mark.parametrize("kind", ["integer", "stepped"])
def test_tvd_of_few_numbers_uses_every_number(kind: str) -> None:
    """Would catch bins that merge neighbouring declared values."""
    column = (
        Column(name="x", kind="integer", lower=-2, upper=2)
        if kind == "integer"
        else Column(name="x", kind="continuous", lower=-0.2, upper=0.2, decimals=1)
    )
    scale = 1 if kind == "integer" else 10
    real, made = pd.Series([-2, -1, 0, 1, 2]) / scale, pd.Series([-2, -2, 0, 0, 2]) / scale
    assert one_way_tvd(real, made, column) == pytest.approx(0.4)


def test_tvd_of_real_numbers_by_quantile_cells() -> None:
    """Would catch equal-width cells, blind on a skewed column: all mass lies in the first thousandth here."""
    rng = np.random.default_rng(0)
    column = Column(name="x", kind="continuous", lower=0, upper=1000)
    real, made = pd.Series(rng.random(4000)), pd.Series(rng.random(4000) ** 2)
    # exact distance of U and U^2: sup |F - G| = max(sqrt(x) - x) = 1/4
    assert one_way_tvd(real, made, column) == pytest.approx(0.25, abs=0.03)
    assert one_way_tvd(real, real, column) == 0.0


def test_tvd_sees_values_outside_the_real_range_and_missing_values() -> None:
    """Would catch synthetic values beyond the outermost quantile, or missing ones, dropped from the count."""
    real = pd.Series(np.linspace(0.4, 0.6, 100))
    assert one_way_tvd(real, pd.Series([0.0, 1.0]), SCORE) == pytest.approx(0.9)
    assert one_way_tvd(real, pd.Series([np.nan, np.nan]), SCORE) == 1.0
    assert one_way_tvd(pd.Series([np.nan, np.nan]), real, SCORE) == 1.0
    assert one_way_tvd(pd.Series([np.nan]), pd.Series([np.nan]), SCORE) == 0.0


def test_correlation_error_equals_numpy() -> None:
    """Would catch a diagonal in the mean or a wrong normalisation."""
    rng = np.random.default_rng(1)
    schema = Schema(
        columns=(
            *(Column(name=name, kind="continuous", lower=-9, upper=9) for name in "xyz"),
            Column(name="sex", kind="binary", categories=(0, 1)),
        )
    )
    mix = rng.normal(size=(3, 3))
    real = pd.DataFrame(rng.normal(size=(200, 3)) @ mix, columns=list("xyz")).assign(
        sex=rng.integers(0, 2, 200)
    )
    made = pd.DataFrame(rng.normal(size=(150, 3)), columns=list("xyz")).assign(sex=rng.integers(0, 2, 150))
    a, b = (np.corrcoef(distance_features(frame, schema).points.T) for frame in (real, made))
    off = ~np.eye(len(a), dtype=bool)
    assert correlation_error(real, made, schema) == pytest.approx(np.abs(a - b)[off].mean())
    assert correlation_error(real, real, schema) == 0.0


def test_constant_columns_have_no_correlation() -> None:
    """Would catch NaN (or noise of rounding divided by itself) from a column without variance."""
    schema = Schema(columns=tuple(Column(name=name, kind="continuous", lower=0, upper=3) for name in "xy"))
    constant = pd.DataFrame({"x": [0.1] * 7, "y": np.linspace(0, 1, 7)})
    tied = pd.DataFrame({"x": np.linspace(0, 1, 7), "y": np.linspace(0, 1, 7)})
    assert correlation_error(constant, constant, schema) == 0.0
    assert correlation_error(tied, constant, schema) == pytest.approx(1.0)


def test_resemblance_gathers_all_columns() -> None:
    """Would catch a mean over the wrong columns."""
    real = pd.DataFrame({"grade": ["a", "b", None, "a"], "score": [0.1, 0.2, 0.3, np.nan]})
    made = pd.DataFrame({"grade": ["a", "a", "a", "a"], "score": [0.1, 0.2, 0.3, np.nan]})
    result = resemblance(real, made, SCHEMA)
    assert result.tvd == {"grade": 0.5, "score": 0.0}
    assert result.tvd_mean == 0.25


def test_empty_tables_and_bins_are_refused() -> None:
    """Would catch a division by zero records."""
    frame = pd.DataFrame({"grade": ["a"], "score": [0.1]})
    with pytest.raises(InputError, match="must have records, got 1 and 0"):
        resemblance(frame, frame.iloc[:0], SCHEMA)
    with pytest.raises(InputError, match="bins must be at least 2, got 1"):
        resemblance(frame, frame, SCHEMA, bins=1)


def test_correlations_of_a_large_table_are_numpys_in_little_memory() -> None:
    """Would catch copies of a table of one-hot columns: each is as large as the table is."""
    values = np.random.default_rng(0).random((20_000, 97))
    values[:, 5] = 0.3
    expected = np.corrcoef(np.delete(values, 5, axis=1), rowvar=False)
    tracemalloc.start()
    found = _correlations(values)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert np.allclose(np.delete(np.delete(found, 5, axis=0), 5, axis=1), expected)
    assert not found[5].any() and peak < 0.5 * values.nbytes
