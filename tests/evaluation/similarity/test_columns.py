"""Distances of columns against scipy, their intervals and chance values against simulation; histograms."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import ks_2samp
from scipy.stats import wasserstein_distance as scipy_wasserstein

from dpsynth.errors import InputError
from dpsynth.evaluation.similarity.columns import compare_column, ks_distance, wasserstein_distance
from dpsynth.evaluation.similarity.marginal import marginal
from dpsynth.evaluation.similarity.resemblance import one_way_tvd
from dpsynth.table.schema import Column, Schema

AGE = Column(name="age", kind="integer", lower=0, upper=100, unit="years")
GRADE = Column(name="grade", kind="ordinal", categories=("low", "mid", "high"), missing=True)

samples = st.lists(st.integers(0, 6).map(lambda x: x / 4), min_size=1, max_size=15)


@settings(max_examples=50, deadline=None)
@given(samples, samples)
def test_distances_equal_scipy(a: list[float], b: list[float]) -> None:
    """Would catch distribution functions read on the wrong side of a tie."""
    x, y = np.array(a), np.array(b)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the p-value, which nobody reads here
        statistic = ks_2samp(x, y, method="exact").statistic
    assert ks_distance(x, y) == pytest.approx(statistic, abs=1e-12)
    assert wasserstein_distance(x, y) == pytest.approx(scipy_wasserstein(x, y), abs=1e-12)


def test_total_variation_is_the_one_reported_so_far() -> None:
    """Would catch cells that differ from those of one_way_tvd."""
    rng = np.random.default_rng(0)
    column = Column(name="x", kind="continuous", lower=0, upper=9, missing=True)
    real, made = pd.Series(rng.exponential(1, 300).clip(0, 9)), pd.Series(rng.exponential(2, 200).clip(0, 9))
    made[:20] = np.nan
    found = compare_column(real, made, column, rng=rng)
    assert found.tvd.estimate.value == pytest.approx(one_way_tvd(real, made, column), abs=1e-12)


def test_ordinal_columns_compare_by_rank() -> None:
    """Would catch ranks not scaled to [0, 1], or missing values taken for a rank."""
    real = pd.Series(["low", "low", None, None], dtype=object)
    made = pd.Series(["high", "mid", "high", None], dtype=object)
    found = compare_column(real, made, GRADE, rng=np.random.default_rng(0))
    assert found.ks is not None and found.ks.estimate.value == 1.0
    assert found.wasserstein is not None
    assert found.wasserstein.estimate.value == pytest.approx((1 + 0.5 + 1) / 3)
    assert (found.missing_real, found.missing_synthetic) == (0.5, 0.25)
    assert found.missing_difference is not None and found.missing_difference.value == -0.25


@pytest.mark.slow
@pytest.mark.parametrize("shift", [0.0, 0.15])
def test_intervals_cover_and_chance_is_the_mean(shift: float) -> None:
    """Would catch a radius for one table only, or a chance value of the wrong sizes."""
    rng = np.random.default_rng(1)
    column = Column(name="x", kind="continuous", lower=0, upper=2)
    inside, ks, w, chance = 0, [], [], []
    for _ in range(60):
        real, made = pd.Series(rng.random(150)), pd.Series(shift + rng.random(100))
        found = compare_column(real, made, column, rng=rng)
        assert found.ks is not None and found.wasserstein is not None
        end = found.wasserstein.estimate
        # the true distances are shift, and shift over the range of 2
        inside += (end.lower <= shift / 2 <= end.upper) and (
            found.ks.estimate.lower <= shift <= found.ks.estimate.upper
        )
        ks.append(found.ks.estimate.value)
        w.append(end.value)
        chance.append([found.ks.chance, found.wasserstein.chance])
    assert inside >= 55
    if shift == 0.0:
        assert np.mean(chance, axis=0) == pytest.approx([np.mean(ks), np.mean(w)], rel=0.1)


def test_different_columns_are_told_apart() -> None:
    """Would catch an interval so wide that it never excludes 0."""
    rng = np.random.default_rng(2)
    real, made = pd.Series(rng.integers(0, 50, 500)), pd.Series(rng.integers(20, 70, 500))
    found = compare_column(real, made, AGE, rng=rng)
    for entry in (found.tvd, found.ks, found.wasserstein):
        assert entry is not None and entry.estimate.lower > 0.05 > entry.chance / 3


def test_missing_and_constant_columns() -> None:
    """Would catch a division by no values, or a distance of nothing to something."""
    column = Column(name="x", kind="continuous", lower=0, upper=1, missing=True)
    empty, full = pd.Series([np.nan] * 3), pd.Series([0.5] * 4)
    found = compare_column(empty, full, column, rng=np.random.default_rng(0))
    assert found.ks is None and found.wasserstein is None and found.tvd.estimate.value == 1.0
    same = compare_column(full, full, column, rng=np.random.default_rng(0))
    assert same.ks is not None and same.ks.estimate.value == 0.0 and same.ks.chance == 0.0
    both = compare_column(empty, empty, column, rng=np.random.default_rng(0))
    assert both.tvd.estimate.value == 0.0 and both.missing_difference is not None
    with pytest.raises(InputError, match="got 0 and 4"):
        compare_column(full[:0], full, column, rng=np.random.default_rng(0))


COLUMNS = [
    AGE,
    GRADE,
    Column(name="few", kind="continuous", lower=-0.2, upper=0.2, decimals=1, missing=True),
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
    schema = Schema(columns=(column,))
    frame = schema.conform(pd.DataFrame({column.name: values})).frame
    found = marginal(frame, column, "synthetic")
    other = marginal(frame.iloc[:5], column, "train")
    data = found.data
    assert not found.internal and other.internal
    assert sum(data["share"]) + (data["missing"] or 0.0) == pytest.approx(1.0)
    assert data["missing"] == (0.1 if column.missing else None)
    if column.is_numeric:
        assert data["edges"] == other.data["edges"]
        assert len(data["edges"]) == len(data["share"]) + 1 <= 41
        assert np.all(np.diff(data["edges"]) > 0)
        assert data["edges"][0] <= column.lower and data["edges"][-1] >= column.upper
        present = frame[column.name].dropna().to_numpy(dtype=float)
        counted = np.histogram(present, data["edges"])[0] / len(frame)
        assert data["share"] == pytest.approx(
            counted.tolist(), abs=0.02
        )  # rounding of edges on the log scale
        assert not data["log"] or data["edges"][0] > 0
    else:
        assert data["labels"] == ["low", "mid", "high"]
