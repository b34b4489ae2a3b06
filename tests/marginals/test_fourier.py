"""Random Fourier features, and the reweighting that is fitted to their means, against formulas."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsynth.marginals.binning import Binning
from dpsynth.marginals.features import DEVIATION, FourierFeatures, bin_numbers
from dpsynth.marginals.gibbs import FourierReweighting, fourier_reweighting
from dpsynth.privacy.noise import STEP

RNG = np.random.default_rng
BINS = 12
EVEN = Binning(np.arange(BINS), np.full(BINS, 1 / BINS))
#: two ordered columns and one of three categories
TABLES = (
    bin_numbers(EVEN, ordered=True, apart=0),
    bin_numbers(EVEN, ordered=True, apart=0),
    bin_numbers(Binning(np.arange(3), np.array([0.5, 0.3, 0.2])), ordered=False, apart=0),
)
SIZES = [len(table) for table in TABLES]


def draws_of(m: int, seed: int) -> np.ndarray:
    return RNG(seed).integers(0, SIZES, (m, len(SIZES)))


def features(seed: int = 0) -> FourierFeatures:
    return FourierFeatures.of(TABLES, RNG(seed))


def point(record: np.ndarray) -> np.ndarray:
    """The numbers of one record, one after the other."""
    return np.concatenate([table[bin] for table, bin in zip(TABLES, record, strict=True)]).astype(float)


def few(fourier: int = 6, seed: int = 0) -> FourierFeatures:
    of = features(seed)
    return replace(of, frequencies=of.frequencies[:, :fourier])


def on_a_ring(draws: np.ndarray) -> np.ndarray:
    """Which records lie on a ring in the first two columns."""
    radius = np.hypot(*(draws[:, :2] - (BINS - 1) / 2).T)
    return (radius > 3.2) & (radius < 5.2)


def ring(n: int, seed: int) -> np.ndarray:
    draws = draws_of(6 * n, seed)
    return draws[on_a_ring(draws)][:n]


def test_features_are_cosines_and_sines() -> None:
    """A wave of other columns, or blocks that are mixed up; in single precision and in the sum."""
    of, draws = few(), draws_of(9000, 1)
    values = of.values(draws)
    for row in (0, 4095, 4096, 8999):
        angles = [float(point(draws[row]) @ w) for w in of.frequencies.T.astype(float)]
        wanted = [f(a) / np.sqrt(6) for f in (np.cos, np.sin) for a in angles]
        np.testing.assert_allclose(values[row], wanted, atol=1e-5)
    exact = np.stack([of.total(draws[row : row + 1]) * STEP for row in range(len(draws))])
    np.testing.assert_allclose(exact, values, atol=1e-5)
    np.testing.assert_allclose(of.total(draws) * STEP, exact.sum(axis=0), atol=1e-9)
    assert np.array_equal(of.total(draws[:0]) * STEP, np.zeros(12))


@settings(max_examples=30)
@given(seed=st.integers(0, 2**31))
def test_a_record_has_length_one(seed: int) -> None:
    """A record that adds more than the sensitivity, or less than is paid for."""
    of = features(seed)
    for record in draws_of(20, seed):
        assert 1 >= np.linalg.norm(of.total(record[None]) * STEP) == pytest.approx(1.0, abs=1e-5)


def test_products_are_a_gaussian_kernel() -> None:
    """Frequencies of another law than a Gaussian one (Rahimi and Recht 2007, Bochner's theorem)."""
    draws = draws_of(300, 2)
    points = np.stack([point(record) for record in draws])
    distances = ((points[:, None] - points[None]) ** 2).sum(axis=2)
    kernel = np.exp(-(DEVIATION**2) * distances / 2)
    near = (distances < 2) & (distances > 0)
    values = [features(seed).values(draws) for seed in range(8)]
    products = np.mean([vectors @ vectors.T for vectors in values], axis=0)
    np.testing.assert_allclose(products, kernel, atol=0.1)
    assert np.mean(products[near] - kernel[near]) == pytest.approx(0, abs=0.01) and near.sum() > 100


def test_a_tilt_is_the_exponential_of_a_sum_of_waves() -> None:
    """Sines and cosines exchanged where both are put together to one wave; a bound that is lost."""
    of, draws = few(), draws_of(5000, 3)
    coefficients = RNG(0).normal(size=of.size).astype(np.float32)
    reweighting = FourierReweighting(of, coefficients, 0.3)
    np.testing.assert_allclose(
        reweighting.of(draws), np.exp(of.values(draws) @ coefficients - 0.3), rtol=1e-4
    )
    assert reweighting.of(draws[:0]).shape == (0,)
    far = FourierReweighting(of, 100 * coefficients, 0.0).of(draws)
    assert far.min() == pytest.approx(1 / 50) and far.max() == pytest.approx(50)


def tilted_mean(reweighting: FourierReweighting, draws: np.ndarray, weights: np.ndarray) -> np.ndarray:
    counted = weights * reweighting.of(draws)
    return counted @ reweighting.features.values(draws) / counted.sum()


def test_without_noise_draws_have_the_released_means() -> None:
    """A tilt of the wrong sign or size: means of the records that the draws do not have, before and after."""
    of, draws = few(), draws_of(20_000, 4)
    even = np.ones(len(draws))
    wanted = of.total(ring(100_000, 5)) * STEP / 100_000
    reweighting = fourier_reweighting(of, wanted, 0.0, 1e9, draws, even)
    before = np.abs(of.values(draws).mean(axis=0) - wanted).max()
    assert np.abs(tilted_mean(reweighting, draws, even) - wanted).max() < 0.001 < 0.02 < before


def test_a_weak_tilt_is_the_posterior_mean() -> None:
    """Shrinkage by another formula than that of a Gaussian process, which the linear problem has exactly."""
    of, draws, n, noise = few(40), draws_of(40_000, 6), 40_000.0, 0.001
    values = of.values(draws).astype(float)
    center, covariance = values.mean(axis=0), np.cov(values.T, bias=True)
    slope = RNG(1).normal(size=of.size)
    slope *= 0.1 / np.std(values @ slope)
    gap = covariance @ slope + noise * RNG(2).normal(size=of.size)
    reweighting = fourier_reweighting(of, center + gap, noise, n, draws, np.ones(len(draws)))
    known = noise**2 * np.eye(of.size) + covariance * (1 / n + 1 / len(draws))

    def surprise(variance: float) -> float:
        of_gap = variance * covariance @ covariance + known
        return float(gap @ np.linalg.solve(of_gap, gap) + np.linalg.slogdet(of_gap)[1])

    variance = min(np.exp(np.linspace(-12, 8, 400)), key=surprise)
    gain = variance * covariance @ np.linalg.inv(variance * covariance @ covariance + known)
    posterior = (values - center) @ (gain @ gap)
    found = np.log(reweighting.of(draws))
    assert 0.05 < np.std(posterior) < 0.1
    assert np.corrcoef(found, posterior)[0, 1] > 0.99 and np.std(found) == pytest.approx(
        np.std(posterior), rel=0.1
    )


def test_noise_alone_is_no_tilt() -> None:
    """Waves of noise that draws are weighed by, on tables where there is nothing to tell; of five draws."""
    of, draws = few(60), draws_of(5000, 7)
    found = []
    for seed in range(5):
        mean = of.total(draws_of(2000, 100 + seed)) * STEP / 2000 + 0.01 * RNG(seed).normal(size=of.size)
        found.append(fourier_reweighting(of, mean, 0.01, 2000.0, draws, np.ones(len(draws))) is None)
    assert sum(found) >= 4


def test_a_ring_is_kept() -> None:
    """Waves that are bought and tell nothing: of even draws two in five are on a ring, of records all."""
    of, draws, n, noise = few(60), draws_of(20_000, 8), 5000, 0.002
    mean = of.total(ring(n, 9)) * STEP / n + noise * RNG(0).normal(size=of.size)
    even = np.ones(len(draws))
    counted = fourier_reweighting(of, mean, noise, float(n), draws, even).of(draws)
    on = on_a_ring(draws)
    assert 0.3 < on.mean() < 0.4 and counted[on].sum() / counted.sum() > 0.6


def test_a_small_square_is_found() -> None:
    """Bounds of what a draw counts for that are not about the mean: a strong tilt is cut down to none."""
    tables = (bin_numbers(Binning(np.arange(24), np.full(24, 1 / 24)), ordered=True, apart=0),) * 2
    of, n = FourierFeatures.of(tables, RNG(0)), 8000
    of = replace(of, frequencies=of.frequencies[:, :120])
    draws = RNG(5).integers(0, 24, (8000, 2))
    inside = (np.abs(draws - 11.5) < 2).all(axis=1)
    records = draws[inside][RNG(6).integers(0, inside.sum(), n)]
    mean = of.total(records) * STEP / n + 4 / n * RNG(7).normal(size=of.size)
    counted = fourier_reweighting(of, mean, 4 / n, float(n), draws, np.ones(len(draws))).of(draws)
    assert inside.mean() < 0.03 and counted[inside].sum() / counted.sum() > 0.7
    assert counted.mean() == pytest.approx(1, abs=0.3)


@pytest.mark.parametrize("noise", [0.0, 0.01])
def test_draws_that_are_all_the_same_have_no_tilt(noise: float) -> None:
    """Rounding that is taken for structure, or a division by zero, where every column is constant."""
    of = few(60)
    for draws in (np.zeros((1, 3), dtype=np.int64), np.ones((5000, 3), dtype=np.int64)):
        for records in (draws, draws_of(500, 1)):
            mean = of.total(records) * STEP / len(records) + noise * RNG(0).normal(size=of.size)
            assert fourier_reweighting(of, mean, noise, 500.0, draws, np.ones(len(draws))) is None


def test_weights_that_draws_have_are_counted_in() -> None:
    """What groups gave is counted twice: draws that have the released means need no reweighting."""
    of, draws, n = few(60), draws_of(20_000, 8), 5000
    mean = of.total(ring(n, 9)) * STEP / n + 0.002 * RNG(0).normal(size=of.size)
    known = np.where(on_a_ring(draws), 1.0, 0.0)
    assert fourier_reweighting(of, mean, 0.002, float(n), draws, known) is None
