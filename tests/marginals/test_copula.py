"""Normal scores within bins: the correlation that bins tell of, and records that follow it."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import multivariate_normal
from stored import read_back

from dpsynth.marginals.binning import Binning
from dpsynth.marginals.network import Copula, _cells


def drawn(rho: float, *cuts: list[float], n: int = 60_000) -> tuple[np.ndarray, np.ndarray]:
    """Pairs of normal numbers with this correlation, and their bins between quantiles."""
    rng = np.random.default_rng(0)
    first = rng.standard_normal(n)
    values = np.stack([first, rho * first + np.sqrt(1 - rho**2) * rng.standard_normal(n)], axis=1)
    bins = [np.searchsorted(np.quantile(v, cut), v) for v, cut in zip(values.T, cuts, strict=True)]
    return values, np.stack(bins, axis=1)


def binnings(bins: np.ndarray) -> list[Binning]:
    shares = [np.bincount(column) / len(bins) for column in bins.T]
    return [Binning(np.arange(len(p)), p) for p in shares]


@pytest.mark.parametrize("rho", [0.5, 0.97, -0.8])
def test_bins_tell_the_correlation_of_what_was_cut(rho):
    """Catches a correlation of the bins' numbers, which is too small: .97 cut in 3 bins has .90."""
    _, bins = drawn(rho, [0.3, 0.7], [0.1, 0.2, 0.6, 0.9])
    copula = Copula.of(binnings(bins), [3, 5], bins)
    assert copula.correlation[0, 1] == pytest.approx(rho, abs=0.012)


def test_a_few_records_far_away_do_not_weaken_a_strong_correlation():
    """Catches the mean product's correlation, .92: what noise leaves in far cells then blurs all others."""
    _, bins = drawn(0.99, [i / 8 for i in range(1, 8)], [i / 6 for i in range(1, 6)])
    bins[:2000, 0] = np.random.default_rng(3).permutation(bins[:2000, 0])
    copula = Copula.of(binnings(bins), [8, 6], bins)
    assert copula.correlation[0, 1] == pytest.approx(0.99, abs=0.006)


def test_what_noise_explains_is_not_coupled():
    """Catches columns that are coupled because noise made their tables unequal."""
    _, bins = drawn(0.5, [0.3, 0.7], [0.5])
    made = binnings(bins)
    assert Copula.of(made, [3, 2], bins, 0.05).columns and not Copula.of(made, [3, 2], bins, 0.08).columns


def test_scores_stay_in_their_bins_and_follow_each_other():
    """Catches scores that are independent within bins, and scores that leave them."""
    values, bins = drawn(0.97, [0.3, 0.7], [0.5])
    copula = Copula.of(binnings(bins), [3, 2], bins)
    known = [np.ones(len(bins), dtype=bool)] * 2
    found = copula.scores(list(bins.T), known, np.random.default_rng(1))
    for j, ends in enumerate(copula.ends):
        assert (found[j] >= ends[bins[:, j]]).all() and (found[j] <= ends[bins[:, j] + 1]).all()
    both = (bins == [1, 0]).all(axis=1)
    real = np.corrcoef(values[both].T)[0, 1]
    assert real > 0.5  # of the uncut numbers in this cell
    assert np.corrcoef(found[0][both], found[1][both])[0, 1] == pytest.approx(real, abs=0.08)


@pytest.mark.parametrize("rho", [-0.95, 0.3, 0.998])
def test_probabilities_of_pairs_of_bins_are_scipys(rho):
    """Catches a formula that fails for a range that ends at 0, or below 0 on one side only."""
    rows, columns = np.array([-8.0, -1.0, 0.0, 8.0]), np.array([-8.0, 0.0, 0.7, 8.0])
    law = multivariate_normal(cov=[[1, rho], [rho, 1]])
    below = np.array([[law.cdf([h, k]) for k in columns] for h in rows])
    np.testing.assert_allclose(_cells(rows, columns, rho), np.diff(np.diff(below, axis=0), axis=1), atol=1e-6)


def test_a_missing_value_has_no_part():
    """Catches a bin of missing values that counts as the largest, or a record without scores."""
    _, bins = drawn(0.9, [0.3, 0.7], [0.5])
    lacking = np.arange(len(bins)) % 3 == 0
    bins[lacking, 1] = 2
    copula = Copula.of(binnings(bins), [3, 2], bins)
    assert copula.correlation[0, 1] == pytest.approx(0.9, abs=0.02)
    found = copula.scores(list(bins.T), [~lacking | lacking, ~lacking], np.random.default_rng(0))
    assert np.isfinite(found[1]).all()
    assert np.corrcoef(found[0][lacking], found[1][lacking])[0, 1] == pytest.approx(0.9, abs=0.05)


def test_empty_bins_and_one_column_are_no_fault():
    """Catches ends beyond the normal distribution where rounding makes the shares more than 1."""
    shares = np.append(np.full(49, 1 / 49), [0.0, 0.0])
    bins = np.random.default_rng(0).integers(0, 49, (5000, 1)).repeat(2, axis=1)
    copula = Copula.of([Binning(np.arange(51), shares)] * 2, [51, 51], bins)
    assert np.isfinite(copula.correlation).all() and copula.correlation[0, 1] > 0.98
    assert all(np.isfinite(ends).all() for ends in copula.ends)
    assert not Copula.of([Binning(np.arange(51), shares)], [51], bins[:, :1]).columns
    assert not Copula.of([Binning(np.arange(51), shares)] * 2, [0, 51], bins).columns


def test_columns_that_are_weakly_coupled_are_left_alone():
    """Catches time spent on scores that follow nothing."""
    _, bins = drawn(0.1, [0.3, 0.7], [0.5])
    assert not Copula.of(binnings(bins), [3, 2], bins).columns


def test_state_round_trip():
    """Catches a model whose file forgets the copula."""
    _, bins = drawn(0.8, [0.3, 0.7], [0.5])
    copula = Copula.of(binnings(bins), [3, 2], bins)
    again = read_back(copula)
    assert again.columns == copula.columns
    np.testing.assert_array_equal(again.correlation, copula.correlation)
    for one, other in zip(again.ends, copula.ends, strict=True):
        np.testing.assert_array_equal(one, other)
