import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from dpsynth.datasets import load
from dpsynth.marginals.density import DensityDesign, denoise, fit_density, start
from dpsynth.table.column import Column
from dpsynth.table.grid import Grid, intervals
from dpsynth.table.simplex import norm_sub


def integers(upper, **more):
    return Grid.from_column(Column(name="x", kind="integer", lower=0, upper=upper, **more), max_values=2000)


def spread(counts):
    at = np.arange(len(counts))
    mean = (at * counts).sum() / counts.sum()
    return np.sqrt(((at - mean) ** 2 * counts).sum() / counts.sum())


def noisy_versions(true, std, seeds=7):
    for seed in range(seeds):
        yield true + std * np.random.default_rng(seed).standard_normal(len(true))


def median_over(function, true, std):
    return float(np.median([function(noisy) for noisy in noisy_versions(true, std)]))


def test_tails_are_not_the_positive_half_of_the_noise():
    """A laboratory value in a wide range: plain norm-sub makes its deviation several times the true one."""
    grid = integers(199)
    true = 4000 * stats.gamma.pdf(np.arange(200) + 0.5, 9, scale=1.2)
    plain = median_over(lambda y: spread(norm_sub(y, 4000)) / spread(true), true, 10.0)
    ours = median_over(lambda y: spread(denoise(grid, y, 10.0, 4000)[1]) / spread(true), true, 10.0)
    assert plain > 3  # the fault
    assert 0.8 < ours < 1.25  # the aim


@pytest.mark.parametrize("law", ["normal", "bimodal", "exponential", "uniform"])
def test_estimates_are_nearer_to_the_truth_than_the_projection(law):
    """An estimate that forces one shape on every column."""
    at = (np.arange(64) + 0.5) / 64
    true = {
        "normal": stats.norm.pdf(at, 0.4, 0.1),
        "bimodal": stats.norm.pdf(at, 0.2, 0.05) + 0.5 * stats.norm.pdf(at, 0.7, 0.08),
        "exponential": stats.expon.pdf(at, scale=0.15),
        "uniform": np.ones(64),
    }[law]
    true = 2000 * true / true.sum()
    grid = integers(63)
    plain = median_over(lambda y: np.abs(norm_sub(y, 2000) - true).sum(), true, 8.0)
    ours = median_over(lambda y: np.abs(denoise(grid, y, 8.0, 2000)[1] - true).sum(), true, 8.0)
    assert ours < 0.6 * plain


def test_heaped_values_keep_their_heaps():
    """A smooth curve through blood pressures that are mostly written down in tens."""
    at = np.arange(201)
    true = stats.norm.pdf(at, 120, 20)
    true = 20_000 * (0.6 * true / true.sum() + 0.4 * np.where(at % 10 == 0, true, 0) / true[::10].sum())
    grid = integers(200)
    heap = true[::10].sum()
    for noisy in noisy_versions(true, 12.0):
        assert denoise(grid, noisy, 12.0, 20_000)[1][::10].sum() == pytest.approx(heap, rel=0.05)


def test_habits_are_found_where_single_cells_drown():
    """A residue's factor pools its cells: each cell alone would be lost in the noise."""
    at = np.arange(301)
    smooth = stats.norm.pdf(at, 150, 40)
    true = 3000 * smooth * np.where(at % 4 == 0, 2.5, 0.5) / (smooth * np.where(at % 4 == 0, 2.5, 0.5)).sum()
    grid = integers(300)
    ours = median_over(lambda y: denoise(grid, y, 10.0, 3000)[1][::4].sum(), true, 10.0)
    assert ours == pytest.approx(true[::4].sum(), rel=0.1)
    # Counted from zero, not from the column's lower bound.
    shifted = Grid.from_column(Column(name="x", kind="integer", lower=1, upper=300), max_values=2000)
    ours = median_over(lambda y: denoise(shifted, y, 10.0, 3000)[1][3::4].sum(), true[1:], 10.0)
    assert ours == pytest.approx(true[::4].sum(), rel=0.1)


def test_a_point_mass_keeps_its_share_and_leaves_its_neighbours_alone():
    """70 % zeros that a smooth curve spreads over their neighbours."""
    true = 4000 * 0.3 * stats.norm.pdf(np.arange(100), 50, 12)
    true[0] += 2800
    for noisy in noisy_versions(true, 15.0):
        counts = denoise(integers(99), noisy, 15.0, 4000)[1]
        assert counts[0] / 4000 == pytest.approx(0.7, abs=0.02)
        assert counts[1:20].sum() < 150


def counted(x, upper, step, std, seed=0, lower=0):
    """Estimate of a column of many values: its grid and counts, from intervals and values with noise."""
    column = Column(name="x", kind="continuous", lower=lower, upper=upper, step=step)
    grid, rng = intervals(column, 64), np.random.default_rng(seed)
    number = np.rint((x - lower) / step).astype(int)
    values = np.bincount(number, minlength=column.n_values).astype(float)
    coarse = np.add.reduceat(values, grid.starts[:-1])
    noisy = [count + std * rng.standard_normal(len(count)) for count in (coarse, values)]
    return denoise(grid, noisy[0], std, len(x), noisy[1])


def drawn(grid, counts, n=20_000, seed=0):
    rng = np.random.default_rng(seed)
    return grid.decode(rng.choice(grid.size, n, p=counts / counts.sum()), rng.random(n)).to_numpy(float)


@pytest.mark.parametrize("upper", [30, 1000, 10_000])
def test_wide_bounds_leave_a_column_where_it_is(upper):
    """Catches intervals that spread a column over its bounds, and a tail made of noise."""
    real = np.exp(np.random.default_rng(0).normal(0.4, 0.6, 4000)).round(1)
    for seed in range(5):
        made = drawn(*counted(real, upper, 0.1, 21.0, seed))
        assert np.median(made) == pytest.approx(np.median(real), abs=0.15)
        assert 0.75 < made.std() / real.std() < 1.3


@pytest.mark.parametrize("excess", [0.0, 1.5])
def test_a_narrow_column_within_wide_bounds_keeps_its_mean(excess):
    """A flat tail of what noise may add far out (0.3 deviations a cell), or wide cells of uneven density."""
    grid = intervals(Column(name="x", kind="integer", lower=0, upper=100_000), 64)
    values = 8000 * np.diff(stats.norm.cdf(np.arange(100_002) - 0.5, 5000, 1000))
    far = grid.starts[:-1] >= 10_000
    counts = np.add.reduceat(values, grid.starts[:-1]) + excess * far
    found, counts = denoise(grid, counts, 5.0, 8000 + excess * far.sum(), values)
    middle = (found.starts[:-1] + found.starts[1:] - 1) / 2
    assert counts[middle > 12_000].sum() < 1  # of 105 in excess
    assert counts @ middle / counts.sum() == pytest.approx(5000, abs=5)  # 0.005 of the spread


def test_point_masses_keep_their_share_among_many_values():
    """Catches limits and zeros that are spread over their interval: two masses in 4,001 values."""
    rng = np.random.default_rng(1)
    real = rng.choice([0, 474, -1], 8000, p=[0.42, 0.13, 0.45])
    real = np.where(real < 0, rng.integers(1, 4001, 8000), real).astype(float)
    grid, counts = counted(real, 4000, 1, 21.0)
    made = drawn(grid, counts)
    for value, share in ((0, 0.42), (474, 0.13)):
        assert (made == value).mean() == pytest.approx(share, rel=0.1)
        cell = grid.encode(pd.Series([value]))[0]
        assert grid.values_per_cell[cell] == 1


def test_zeros_in_intervals_alone_leave_the_density_where_it_is():
    """Catches pack-years whose zeros alone stand out, so that all others were spread over the bounds."""
    rng = np.random.default_rng(3)
    real = np.where(rng.random(3000) < 0.5, 0.0, rng.gamma(2, 12, 3000)).round().clip(0, 400)
    grid = intervals(Column(name="x", kind="integer", lower=0, upper=400), 64)
    true = np.bincount(grid.encode(pd.Series(real)), minlength=grid.size)
    ratios = []
    for noisy in noisy_versions(true, 60.0):
        found, counts = denoise(grid, noisy, 60.0, 3000)
        made = drawn(found, counts)
        assert (made == 0).mean() == pytest.approx(0.5, abs=0.08)
        ratios.append(made.std() / real.std())
    assert 0.6 < np.median(ratios) < 1.6 and max(ratios) < 4  # 5 and more where the density is flat


@pytest.mark.slow
def test_point_masses_found_last_are_fitted_too():
    """Catches cells that change after the last fit: two of these eight fits died on RAND HIE's incentives."""
    real = load("randhie").frame["incentive"].to_numpy(float)[:10_000]
    for std in (0.1, 1.0):
        for seed in range(4):
            grid, counts = counted(real, 2000, 1, std, seed)
            assert counts.shape == (grid.size,)


@settings(max_examples=12, deadline=None)
@given(st.integers(130, 5000), st.floats(0.0, 1e4), st.integers(1, 10**5), st.integers(0, 2**32 - 1))
def test_any_noise_in_two_counts_gives_counts(values, std, n, seed):
    """NaN, negative counts or another total, where both counts are of nothing but noise."""
    rng = np.random.default_rng(seed)
    real = np.full(n, float(rng.integers(values)))
    grid, counts = counted(real, values - 1, 1, std, seed)
    assert counts.shape == (grid.size,) and np.isfinite(counts).all() and (counts >= 0).all()
    assert counts.sum() == pytest.approx(n)


def test_zeros_below_a_logarithmic_scale_and_missing_values_stand_apart():
    """A density that runs through the cell of zeros or of missing values."""
    column = Column(name="x", kind="integer", lower=0, upper=1000, scale="log", missing=True)
    grid = Grid.from_column(column, 64, 32)
    true = np.zeros(grid.size)
    true[0], true[-1] = 900.0, 600.0
    true[1:-1] = 1500 * stats.norm.pdf(np.linspace(0, 1, grid.present - 1), 0.5, 0.15)
    true[1:-1] *= 1500 / true[1:-1].sum()
    _, counts = denoise(grid, true + 9 * np.random.default_rng(0).standard_normal(grid.size), 9.0, 3000)
    assert counts[0] == pytest.approx(900, abs=40) and counts[-1] == pytest.approx(600, abs=40)
    assert counts.sum() == pytest.approx(3000)


@settings(max_examples=20, deadline=None)
@given(
    st.integers(8, 90),
    st.floats(1e-3, 1e4),
    st.floats(1.0, 1e6),
    st.integers(0, 2**32 - 1),
    st.sampled_from(["linear", "log"]),
    st.booleans(),
)
def test_any_noise_gives_counts(cells, std, n, seed, scale, missing):
    """NaN, negative counts or another total for extreme noise, few records or one full cell."""
    rng = np.random.default_rng(seed)
    column = Column(name="x", kind="integer", lower=1, upper=cells, scale=scale, missing=missing)
    grid = Grid.from_column(column)
    true = np.zeros(grid.size)
    true[rng.integers(grid.size)] = n
    _, counts = denoise(grid, true + std * rng.standard_normal(grid.size), std, n)
    assert counts.shape == (grid.size,) and np.isfinite(counts).all() and (counts >= 0).all()
    assert counts.sum() == pytest.approx(n)


def test_curvature_and_fit_agree_with_a_general_minimiser():
    """A Newton step towards another objective than the penalised one that the docstring states."""
    from scipy.optimize import minimize

    rng = np.random.default_rng(1)
    places = (np.arange(20) + 0.5) / 20
    true = 500 * stats.norm.pdf(places, 0.5, 0.15) / 20
    counts, variance = true + 5 * rng.standard_normal(20), np.full(20, 25.0)
    design = DensityDesign.of(places, np.full(20, 0.05), np.full(20, 25.0))
    assert not design.tails
    fitted = fit_density(
        design,
        counts,
        variance,
        (500.0, 30.0),
        start(design, np.maximum(true, 1.0)),
        smoothness=np.array([2.0]),
    )
    third = np.diff(np.eye(design.size), 3, axis=0)

    def loss(b):
        means = np.exp(np.clip(design.basis @ b + design.offset, -40, 30))
        return (
            ((counts - means) ** 2 / variance).sum() / 2
            + (means.sum() - 500.0) ** 2 / 60.0
            + (2.0 * ((third @ b) ** 2).sum() + 1e-4 * (b**2).sum()) / 2
        )

    best = minimize(loss, fitted.coefficients, method="BFGS")
    assert loss(fitted.coefficients) <= best.fun + 1e-2


@pytest.mark.parametrize("scale", ["linear", "log"])
@pytest.mark.parametrize("decimals", [3, 9])
def test_a_column_of_very_many_values_is_estimated(scale, decimals):
    """Memory for each of 10^15 values, and equations that a narrow column in wide bounds makes singular.

    An estimate is off by a tenth of the records, and in one of 150 draws of the noise by up to four fifths.
    Without a density it would be off by all of them.
    """
    column = Column(name="x", kind="continuous", lower=0, upper=1e6, decimals=decimals, scale=scale)
    grid = intervals(column, 64)
    rng, off = np.random.default_rng(), []
    for first in range(12):
        true = np.zeros(grid.size)
        true[first : first + 6] = [50, 100, 150, 100, 60, 40]
        _, counts = denoise(grid, true + 5 * rng.standard_normal(grid.size), 5.0, 500)
        off.append(np.abs(counts - true).sum() / 500)
    assert np.median(off) < 0.2 and max(off) < 1.0
