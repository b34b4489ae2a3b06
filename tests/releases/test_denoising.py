import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from dpsynth.releases.denoising import denoise, scaled_cells
from dpsynth.releases.logspline import Design, fit, start
from dpsynth.releases.projection import norm_sub
from dpsynth.table.column import Column
from dpsynth.table.grid import Grid


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
    ours = median_over(lambda y: spread(denoise(grid, y, 10.0, 4000)) / spread(true), true, 10.0)
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
    ours = median_over(lambda y: np.abs(denoise(grid, y, 8.0, 2000) - true).sum(), true, 8.0)
    assert ours < 0.6 * plain


def test_heaped_values_keep_their_heaps():
    """A smooth curve through blood pressures that are mostly written down in tens."""
    at = np.arange(201)
    true = stats.norm.pdf(at, 120, 20)
    true = 20_000 * (0.6 * true / true.sum() + 0.4 * np.where(at % 10 == 0, true, 0) / true[::10].sum())
    grid = integers(200)
    heap = true[::10].sum()
    for noisy in noisy_versions(true, 12.0):
        assert denoise(grid, noisy, 12.0, 20_000)[::10].sum() == pytest.approx(heap, rel=0.05)


def test_habits_are_found_where_single_cells_drown():
    """A residue's factor pools its cells: each cell alone would be lost in the noise."""
    at = np.arange(301)
    smooth = stats.norm.pdf(at, 150, 40)
    true = 3000 * smooth * np.where(at % 4 == 0, 2.5, 0.5) / (smooth * np.where(at % 4 == 0, 2.5, 0.5)).sum()
    grid = integers(300)
    ours = median_over(lambda y: denoise(grid, y, 10.0, 3000)[::4].sum(), true, 10.0)
    assert ours == pytest.approx(true[::4].sum(), rel=0.1)
    # Counted from zero, not from the column's lower bound.
    shifted = Grid.from_column(Column(name="x", kind="integer", lower=1, upper=300), max_values=2000)
    ours = median_over(lambda y: denoise(shifted, y, 10.0, 3000)[3::4].sum(), true[1:], 10.0)
    assert ours == pytest.approx(true[::4].sum(), rel=0.1)


def test_a_point_mass_keeps_its_share_and_leaves_its_neighbours_alone():
    """70 % zeros that a smooth curve spreads over their neighbours."""
    true = 4000 * 0.3 * stats.norm.pdf(np.arange(100), 50, 12)
    true[0] += 2800
    for noisy in noisy_versions(true, 15.0):
        counts = denoise(integers(99), noisy, 15.0, 4000)
        assert counts[0] / 4000 == pytest.approx(0.7, abs=0.02)
        assert counts[1:20].sum() < 150


def test_zeros_below_a_logarithmic_scale_and_missing_values_stand_apart():
    """A density that runs through the cell of zeros or of missing values."""
    column = Column(name="x", kind="integer", lower=0, upper=1000, scale="log", missing=True)
    grid = Grid.from_column(column, 64, 32)
    true = np.zeros(grid.size)
    true[0], true[-1] = 900.0, 600.0
    true[1:-1] = 1500 * stats.norm.pdf(np.linspace(0, 1, grid.present - 1), 0.5, 0.15)
    true[1:-1] *= 1500 / true[1:-1].sum()
    counts = denoise(grid, true + 9 * np.random.default_rng(0).standard_normal(grid.size), 9.0, 3000)
    assert counts[0] == pytest.approx(900, abs=40) and counts[-1] == pytest.approx(600, abs=40)
    assert counts.sum() == pytest.approx(3000)
    places, widths = scaled_cells(grid)
    assert len(places) == grid.present - 1 and widths.sum() == pytest.approx(1.0) and widths.min() > 0


def test_without_noise_without_order_or_with_few_cells_it_is_the_projection():
    rng = np.random.default_rng(0)
    names = Grid.from_column(Column(name="g", kind="categorical", categories=tuple("abcdefghij")))
    for grid, std in ((integers(99), 0.0), (names, 5.0), (integers(6), 5.0)):
        noisy = 10 * rng.standard_normal(grid.size)
        np.testing.assert_array_equal(denoise(grid, noisy, std, 50.0), norm_sub(noisy, 50.0))


@settings(max_examples=40, deadline=None)
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
    counts = denoise(grid, true + std * rng.standard_normal(grid.size), std, n)
    assert counts.shape == (grid.size,) and np.isfinite(counts).all() and (counts >= 0).all()
    assert counts.sum() == pytest.approx(n)


def test_curvature_and_fit_agree_with_a_general_minimiser():
    """A Newton step towards another objective than the penalised one that the docstring states."""
    from scipy.optimize import minimize

    rng = np.random.default_rng(1)
    places = (np.arange(20) + 0.5) / 20
    true = 500 * stats.norm.pdf(places, 0.5, 0.15) / 20
    counts, variance = true + 5 * rng.standard_normal(20), np.full(20, 25.0)
    design = Design.of(places, np.full(20, 0.05), 500.0, (0, 19))
    free = tuple(np.zeros_like(part) for part in design.tails)
    design = dataclasses.replace(design, tails=free)
    fitted = fit(
        design,
        counts,
        variance,
        (500.0, 30.0),
        start(design, np.maximum(true, 1.0)),
        smoothness=np.array([2.0]),
        sameness=np.ones(1),
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
