from functools import partial

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from releases import release_marginals

from dpsynth.marginals.columns import denoise_blocks
from dpsynth.privacy.records import ResidueAxis
from dpsynth.table.coded import CodedTable
from dpsynth.table.column import Column
from dpsynth.table.grid import Counting, Grid
from dpsynth.table.schema import Schema

COST = Column(name="x", kind="continuous", lower=0, upper=100_000, decimals=2)
ENDED = Column(name="x", kind="date", lower="1900-01-01", upper="9999-12-31")


def drawn(values, column: Column, noise: float, seed: int = 0, size: int = 20_000) -> pd.Series:
    """Samples of a column, from its noisy counts."""
    schema, rng = Schema(columns=(column,)), np.random.default_rng(seed)
    frame = schema.conform(pd.DataFrame({"x": values})).frame
    released = release_marginals(frame, schema, n=len(frame), noise_multiplier=noise, rng=rng)
    (grid,), (p,) = released.grids, released.probabilities
    assert grid.habit is None or grid.habit.min() > 0
    return grid.decode(rng.choice(grid.size, size, p=p), rng.random(size))


def median_of(share, values, column, noise, seeds=3):
    return float(np.median([share(drawn(values, column, noise, seed)) for seed in range(seeds)]))


@pytest.mark.slow
@pytest.mark.parametrize("n", [2000, 20_000])
def test_frequent_values_keep_their_share(n):
    """Catches spikes among ten million values that no sample holds, or that are taken for each other."""
    rng, prices = np.random.default_rng(n), [99.0, 1234.56, 50_000.0]
    costs = np.exp(rng.normal(6.5, 1.2, n)).round(2).clip(0, 100_000)
    costs = np.where(rng.random(n) < 0.6, rng.choice(prices, n), costs)
    made = [drawn(costs, COST, 14.0, seed) for seed in range(3)]
    for price in prices:
        assert np.median([np.isclose(own, price).mean() for own in made]) == pytest.approx(0.2, abs=0.03)
    middle = np.median([np.log(own[~own.isin(prices) & (own > 0)]).mean() for own in made])
    assert middle == pytest.approx(6.5, abs=0.4)


@pytest.mark.slow
def test_placeholders_leave_dates_where_they_are():
    """Catches dates anywhere in 8,100 years, where those that are not placeholders lie within 15."""
    rng, n = np.random.default_rng(0), 5000
    days = np.datetime64("2010-01-01") + rng.integers(0, 5479, n)
    days = np.where(rng.random(n) < 0.1, np.datetime64("1900-01-01"), days)
    days = np.where(rng.random(n) < 0.1, np.datetime64("9999-12-31"), days)
    real = pd.Series(days.astype("datetime64[s]"))

    def shares(made: pd.Series, which: str) -> float:
        year = made.dt.year
        held = made.isin(pd.to_datetime(["1900-01-01"])) | (made == np.datetime64("9999-12-31", "s"))
        return float((held if which == "held" else ~held & ~year.between(2010, 2024)).mean())

    held = median_of(partial(shares, which="held"), real, ENDED, 14.0)
    assert held == pytest.approx(shares(real, "held"), abs=0.03)
    assert median_of(partial(shares, which="impossible"), real, ENDED, 14.0) < 0.12  # 0.99 without blocks


@pytest.mark.slow
@pytest.mark.parametrize("value", [987_654_321_012_345, 2**51])
def test_a_frequent_value_is_found_in_any_range(value):
    """Catches places that are told up to some range only: three kinds of residues tell one of 2^51 values."""
    column = Column(name="x", kind="integer", lower=0, upper=2**51)
    rng, n = np.random.default_rng(1), 4000
    values = np.where(rng.random(n) < 0.25, value, rng.integers(0, 2**51, n))
    share = median_of(lambda made: (made == value).mean(), values, column, 14.0, seeds=3)
    assert share == pytest.approx(0.25, abs=0.03)


def test_noise_alone_makes_no_value_frequent():
    """Catches single values among even records that samples repeat."""
    rng, n = np.random.default_rng(2), 4000
    values = rng.uniform(0, 100_000, n).round(2)
    for seed in range(5):
        assert drawn(values, COST, 14.0, seed).value_counts(normalize=True).max() < 0.01


@pytest.mark.slow
def test_midnights_are_told_from_one_midnight():
    """Catches a placeholder at midnight that is lost among the midnights of all days, or takes them all."""
    column = Column(name="x", kind="datetime", lower="1990-01-01", upper="2030-01-01")
    rng, n = np.random.default_rng(3), 20_000
    minute = rng.integers(0, 10 * 365, n) * 1440 + np.where(rng.random(n) < 0.5, 0, rng.integers(0, 1440, n))
    seen = pd.Series(pd.Timestamp("2012-01-01") + pd.to_timedelta(minute, unit="m"))
    seen[rng.random(n) < 0.1] = pd.Timestamp("1990-01-01")
    first = lambda made: (made == pd.Timestamp("1990-01-01")).mean()  # noqa: E731
    midnight = lambda made: (made == made.dt.normalize()).mean()  # noqa: E731
    assert median_of(first, seen, column, 14.0) == pytest.approx(0.1, abs=0.02)
    assert median_of(midnight, seen, column, 14.0) == pytest.approx(midnight(seen), abs=0.04)


def parts(upper: int = 1500) -> tuple[Column, Grid, Grid, ResidueAxis]:
    column = Column(name="x", kind="integer", lower=0, upper=upper)
    counting = Counting(cells=8, values=20, blocks=200, wide=1000)
    ((inner, modulus),) = counting.residues(column)
    width, values = counting.width(column), upper + 1
    blocks = Grid(column, np.append(np.arange(0, values, width), values), None)
    return column, counting.grid(column), blocks, ResidueAxis(column, inner, modulus)


@settings(deadline=None, max_examples=40)
@given(
    st.lists(st.integers(0, 1500), max_size=40),
    st.sampled_from([0.0, 0.3, 5.0, 300.0]),
    st.integers(0, 2**32),
)
def test_any_noise_gives_counts(values, std, seed):
    """NaN, negative counts, another total or values outside of the bounds, for any noise and few records."""
    column, grid, blocks, axis = parts()
    frame, rng, n = pd.DataFrame({"x": values}, dtype="int64"), np.random.default_rng(seed), len(values) + 1
    cells = (grid.encode(frame["x"]), blocks.encode(frame["x"]), axis.cells(CodedTable(frame)))
    noisy = [
        np.bincount(own, minlength=size) + std * rng.standard_normal(size)
        for own, size in zip(cells, (grid.size, blocks.size, axis.size), strict=True)
    ]
    found, counts = denoise_blocks(grid, noisy[0], (blocks, noisy[1]), [(axis, noisy[2])], std, float(n))
    assert np.isfinite(counts).all() and counts.min() >= 0 and counts.sum() == pytest.approx(n)
    assert found.starts[0] == 0 and found.starts[-1] == column.n_values and (np.diff(found.starts) > 0).all()


def test_without_noise_frequent_values_are_exact():
    """Catches a place that is one step off, or a share that its block's other records are part of."""
    _, grid, blocks, axis = parts()
    values = np.repeat([3, 700, 1500, *range(100, 500)], [50, 80, 60, *[1] * 400])
    frame = pd.DataFrame({"x": values})
    coarse, blocked, residues = (
        np.bincount(own, minlength=size).astype(float)
        for own, size in (
            (grid.encode(frame["x"]), grid.size),
            (blocks.encode(frame["x"]), blocks.size),
            (axis.cells(CodedTable(frame)), axis.size),
        )
    )
    found, estimate = denoise_blocks(grid, coarse, (blocks, blocked), [(axis, residues)], 0.0, len(values))
    for value, number in ((3, 50), (700, 80), (1500, 60)):
        cell = found.encode(pd.Series([value]))[0]
        assert found.values_per_cell[cell] == 1 and estimate[cell] == pytest.approx(number, abs=5)
