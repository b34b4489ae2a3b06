"""Distances of columns against naive counts, their intervals against simulation; histograms."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsynth.evaluation.resemblance import (
    category_coverage,
    compare_column,
    marginal,
    range_coverage,
)
from dpsynth.table.schema import Column, Schema

AGE = Column(name="age", kind="integer", lower=0, upper=100, unit="years")
GRADE = Column(name="grade", kind="ordinal", categories=("low", "mid", "high"), missing=True)


SITE = Column(name="site", kind="categorical", categories=("a", "b", "c"), missing=True)
SCORE = Column(name="score", kind="continuous", lower=0, upper=1, missing=True)


def tvd(real: pd.Series, made: pd.Series, column: Column) -> float:
    return compare_column(real, made, column, rng=np.random.default_rng(0)).tvd.estimate.value


grades = st.lists(st.sampled_from(["a", "b", "c", None]), min_size=1, max_size=20)


@settings(max_examples=60, deadline=None)
@given(grades, grades)
def test_tvd_of_categories_equals_naive_counts(real: list[str | None], made: list[str | None]) -> None:
    """Would catch a forgotten half, a missing cell or shares by the wrong total."""
    naive = 0.5 * sum(
        abs(real.count(cell) / len(real) - made.count(cell) / len(made)) for cell in ("a", "b", "c", None)
    )
    value = tvd(pd.Series(real, dtype=object), pd.Series(made, dtype=object), SITE)
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
    assert tvd(real, made, column) == pytest.approx(0.4)


def test_tvd_of_real_numbers_by_quantile_cells() -> None:
    """Would catch equal-width cells, blind on a skewed column: all mass lies in the first thousandth here."""
    rng = np.random.default_rng(0)
    column = Column(name="x", kind="continuous", lower=0, upper=1000)
    real, made = pd.Series(rng.random(4000)), pd.Series(rng.random(4000) ** 2)
    # exact distance of U and U^2: sup |F - G| = max(sqrt(x) - x) = 1/4
    assert tvd(real, made, column) == pytest.approx(0.25, abs=0.03)
    assert tvd(real, real, column) == 0.0


def test_tvd_sees_values_outside_the_real_range_and_missing_values() -> None:
    """Would catch synthetic values beyond the outermost quantile, or missing ones, dropped from the count."""
    real = pd.Series(np.linspace(0.4, 0.6, 100))
    assert tvd(real, pd.Series([0.0, 1.0]), SCORE) == pytest.approx(0.9)
    assert tvd(real, pd.Series([np.nan, np.nan]), SCORE) == 1.0
    assert tvd(pd.Series([np.nan, np.nan]), real, SCORE) == 1.0
    assert tvd(pd.Series([np.nan]), pd.Series([np.nan]), SCORE) == 0.0


def test_total_variation_is_half_the_difference_of_the_cells() -> None:
    """Would catch cells of one table only, or missing values left out."""
    rng = np.random.default_rng(0)
    column = Column(name="x", kind="continuous", lower=0, upper=9, missing=True)
    real, made = pd.Series(rng.exponential(1, 300).clip(0, 9)), pd.Series(rng.exponential(2, 200).clip(0, 9))
    made[:20] = np.nan
    edges = np.quantile(real, np.linspace(0, 1, 21)[1:-1])
    p, q = (
        np.append(np.bincount(np.searchsorted(edges, x.dropna(), side="right"), minlength=20), x.isna().sum())
        for x in (real, made)
    )
    found = compare_column(real, made, column, rng=rng)
    expected = 0.5 * np.abs(p / p.sum() - q / q.sum()).sum()
    assert found.tvd.estimate.value == pytest.approx(expected, abs=1e-12)


def test_missing_values_are_a_cell_and_a_rate() -> None:
    """Would catch missing values taken for a rank, or a difference of the wrong sign."""
    real = pd.Series(["low", "low", None, None], dtype=object)
    made = pd.Series(["high", "mid", "high", None], dtype=object)
    found = compare_column(real, made, GRADE, rng=np.random.default_rng(0))
    assert found.tvd.estimate.value == 0.75
    assert (found.missing_real, found.missing_synthetic) == (0.5, 0.25)
    assert found.missing_difference is not None and found.missing_difference.value == -0.25


@pytest.mark.slow
@pytest.mark.parametrize("shift", [0.0, 0.15])
def test_intervals_cover_and_chance_is_the_mean(shift: float) -> None:
    """Would catch a radius for one table only, or a chance value of the wrong sizes."""
    rng = np.random.default_rng(1)
    column = Column(name="x", kind="continuous", lower=0, upper=2)
    inside, values, chance = 0, [], []
    for _ in range(60):
        real, made = pd.Series(rng.random(150)), pd.Series(shift + rng.random(100))
        found = compare_column(real, made, column, rng=rng)
        # the true distance is the part of one uniform distribution that the other does not cover
        inside += found.tvd.estimate.lower <= shift <= found.tvd.estimate.upper
        values.append(found.tvd.estimate.value)
        chance.append(found.tvd.chance)
    assert inside >= 55
    if shift == 0.0:
        assert np.mean(chance) == pytest.approx(np.mean(values), rel=0.1)


def test_different_columns_are_told_apart() -> None:
    """Would catch an interval so wide that it never excludes 0."""
    rng = np.random.default_rng(2)
    real, made = pd.Series(rng.integers(0, 50, 500)), pd.Series(rng.integers(20, 70, 500))
    found = compare_column(real, made, AGE, rng=rng)
    assert found.tvd.estimate.lower > 0.05 > found.tvd.chance / 3


def test_missing_and_constant_columns() -> None:
    """Would catch a division by no values, or a distance of nothing to something."""
    column = Column(name="x", kind="continuous", lower=0, upper=1, missing=True)
    empty, full = pd.Series([np.nan] * 3), pd.Series([0.5] * 4)
    found = compare_column(empty, full, column, rng=np.random.default_rng(0))
    assert found.tvd.estimate.value == 1.0
    same = compare_column(full, full, column, rng=np.random.default_rng(0))
    assert same.tvd.estimate.value == 0.0 and same.tvd.chance == 0.0
    both = compare_column(empty, empty, column, rng=np.random.default_rng(0))
    assert both.tvd.estimate.value == 0.0 and both.missing_difference is not None


COLUMNS = [
    AGE,
    GRADE,
    Column(name="few", kind="continuous", lower=-0.2, upper=0.2, decimals=1, missing=True),
    Column(name="coded", kind="integer", lower=0, upper=90, special=(-1, 999)),
    Column(name="both", kind="integer", lower=0, upper=90, special=(-1, 999), missing=True),
    Column(name="lab", kind="continuous", lower=0.01, upper=20, scale="log"),
    Column(name="stepped", kind="continuous", lower=0.1, upper=20, decimals=1, scale="log", cells=64),
]


@pytest.mark.parametrize("column", COLUMNS, ids=lambda column: column.name)
def test_histograms_are_whole_and_public(column: Column) -> None:
    """Would catch bins cut from records, values that fall outside all bins, or shares of present values."""
    rng = np.random.default_rng(3)
    if column.is_numeric:
        values = rng.uniform(column.lower or 0, column.upper or 0, 400)
        values = np.round(values, 0 if column.kind == "integer" else 1)
        values[:2] = column.lower, column.upper
    else:
        values = rng.choice(np.array(column.categories, dtype=object), 400)
    if column.missing:
        values = values.astype(object)
        values[10:50] = None
    if column.special:
        values[50:70], values[70:80] = column.special
    schema = Schema(columns=(column,))
    frame = schema.conform(pd.DataFrame({column.name: values})).frame
    found = marginal(frame, column, "synthetic")
    other = marginal(frame.iloc[:5], column, "train")
    shares = {cell: [row["share"] for row in found if row["cell"] == cell] for cell in ("missing", "special")}
    bars = [row for row in found if row["cell"] in ("bin", "zero", "category")]
    assert {row["table"] for row in found} == {"synthetic"} and {row["table"] for row in other} == {"train"}
    assert sum(row["share"] for row in found) == pytest.approx(1.0)
    assert shares["special"] == ([pytest.approx(0.075)] if column.special else [])
    assert shares["missing"] == ([0.1] if column.missing else [])
    if column.is_numeric:
        edges = [row["lower"] for row in bars] + [bars[-1]["upper"]]
        assert [(row["lower"], row["upper"]) for row in other][: len(bars)] == [*pairwise(edges)]
        assert len(bars) <= 40 and np.all(np.diff(edges) > 0)
        assert edges[0] <= column.lower and edges[-1] >= column.upper
        present = frame[column.name].dropna().to_numpy(dtype=float)
        present = present[~np.isin(present, column.special)]
        counted = np.histogram(present, edges)[0] / len(frame)
        # rounding of edges on the log scale
        assert [row["share"] for row in bars] == pytest.approx(counted.tolist(), abs=0.02)
        assert bars[0]["scale"] != "log" or edges[0] > 0
    else:
        assert [row["label"] for row in bars] == ["low", "mid", "high"]


WARD = Column(name="site", kind="categorical", categories=("A", "B", "C", "D"), missing=True)
YEARS = Column(name="age", kind="integer", lower=0, upper=99)
COVERED = Schema(columns=(WARD, YEARS))


def sites(**counts: int) -> pd.DataFrame:
    values = [name if name != "missing" else None for name, times in counts.items() for _ in range(times)]
    return pd.DataFrame({"site": pd.Series(values, dtype=object), "age": np.arange(len(values)) % 90})


def test_shares_by_hand() -> None:
    """Would catch missing values among the categories, or categories that no real record has."""
    found = category_coverage(sites(A=900, B=95, C=5, missing=50), sites(A=10, C=1, D=3), COVERED)
    assert found is not None and (found.value, found.categories) == (pytest.approx(2 / 3), 3)


@pytest.mark.slow
def test_chance_is_the_mean_over_fresh_draws() -> None:
    """Would catch the size of the wrong table: fourteen records rarely hold one in two hundred."""
    rng = np.random.default_rng(0)
    real = sites(A=900, B=95, C=5)
    values = []
    for _ in range(400):
        drawn = real.iloc[rng.integers(0, len(real), 14)]
        entry = category_coverage(real, drawn, COVERED)
        assert entry is not None
        values.append(entry.value)
    assert entry.chance == pytest.approx(np.mean(values), abs=0.02)


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
    assert category_coverage(sites(A=2), sites(A=2), COVERED.select(["age"])) is None
    for real, made, categories in ((sites(missing=3), sites(A=2), 0), (sites(A=3), sites(missing=2), 1)):
        found = category_coverage(real, made, COVERED)
        assert found is not None and (found.value, found.chance, found.categories) == (0.0, 0.0, categories)
