"""The exact sampler against its law and another package's draws, and what float noise reveals."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from dpsynth.errors import ConfigError, PrivacyError
from dpsynth.privacy import noise as exact_draws
from dpsynth.privacy.noise import (
    below,
    discrete_gaussian,
    exponential_trial,
    geometric,
    in_steps,
    secure_generator,
    with_noise,
)

RNG = np.random.default_rng
OPENDP = json.loads((Path(__file__).parent / "opendp_values.json").read_text())


def law(scale: float, ends: int) -> np.ndarray:
    """Probabilities of -ends to ends, by the definition."""
    weights = np.exp(-(np.arange(-ends, ends + 1) ** 2) / (2 * scale**2))
    return weights / weights.sum()


def of_values(draws: np.ndarray, ends: int) -> np.ndarray:
    """How often each of -ends to ends was drawn, what lies beyond with the last."""
    return np.bincount(np.clip(draws, -ends, ends) + ends, minlength=2 * ends + 1)


@pytest.mark.parametrize("scale", [1, 2, 3, 7])
def test_small_scales_have_the_declared_law(scale: int) -> None:
    """A sign, a whole part or a trial that is drawn with another probability; zero counted twice."""
    draws, ends = discrete_gaussian(scale, 100_000, RNG(scale)), 3 * scale
    expected = law(scale, 60 * scale)
    inner = expected[57 * scale : 63 * scale + 1].copy()
    inner[0] += expected[: 57 * scale].sum()
    inner[-1] += expected[63 * scale + 1 :].sum()
    assert stats.chisquare(of_values(draws, ends), inner * len(draws)).pvalue > 1e-4


@pytest.mark.parametrize("scale", OPENDP["scales"])
def test_draws_are_those_of_opendp(scale: int) -> None:
    """A law that differs from that of another package's exact sampler."""
    stored = np.array(OPENDP["counts"][str(scale)])
    ends = len(stored) // 2
    own = of_values(discrete_gaussian(scale, int(stored.sum()), RNG(1)), ends)
    both = np.stack([stored, own])
    common = both.sum(axis=0) > 20
    table = np.column_stack([both[:, common], both[:, ~common].sum(axis=1)])
    assert stats.chi2_contingency(table[:, table.sum(axis=0) > 0]).pvalue > 1e-4


@pytest.mark.parametrize("scale", [2**30 + 12_345, 2**56])
def test_large_scales_are_normal_down_to_the_last_bit(scale: int) -> None:
    """Draws through floating point: of 2^50 steps its last bits would be zeros."""
    draws = discrete_gaussian(scale, 50_000, RNG(4))
    assert stats.kstest(draws / scale, "norm").pvalue > 1e-4
    for bits in (draws & 255, (draws >> 8) & 255):
        assert stats.chisquare(np.bincount(bits, minlength=256)).pvalue > 1e-4


def test_tails_are_there() -> None:
    """Trials that end after three standard deviations."""
    draws = abs(discrete_gaussian(2**30, 400_000, RNG(5)) / 2**30)
    for z in (2.0, 3.0, 4.0):
        expected = 2 * stats.norm.sf(z)
        assert stats.binomtest(int((draws > z).sum()), len(draws), expected).pvalue > 1e-4


@pytest.mark.parametrize(("size", "block"), [(2000, 64), (700_001, None)])
def test_no_draw_comes_twice(size: int, block: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Noise that repeats from the second or third block of a large draw on: differences are then exact.

    Two of 700,001 draws would be equal by chance once in a million times.
    """
    if block is not None:
        monkeypatch.setattr(exact_draws, "_BLOCK", block)
    draws = discrete_gaussian(2**56, size, RNG(9))
    assert len(draws) == len(np.unique(abs(draws))) == size > 2 * exact_draws._BLOCK


@pytest.mark.slow
def test_trials_have_their_probabilities() -> None:
    """A trial of exp(-f) that stops a turn early, or whole numbers below a bound that are not even."""
    rng, times = RNG(6), 8_000
    for numerator, denominator in ((0, 1), (1, 3), (7, 2**80 // 11), (2**80, 2**80 + 1), (1, 1)):
        wins = sum(exponential_trial(numerator, denominator, rng) for _ in range(times))
        p = float(np.exp(-numerator / denominator))
        assert stats.binomtest(wins, times, min(p, 1.0)).pvalue > 1e-4
    counts = np.bincount(geometric(times, rng), minlength=12)[:12]
    chance = np.exp(-np.arange(12)) * (1 - np.exp(-1))
    assert stats.chisquare(counts, chance / chance.sum() * counts.sum()).pvalue > 1e-4
    assert stats.chisquare(np.bincount([below(5, rng) for _ in range(times)])).pvalue > 1e-4
    large = [below(3 * 2**70, rng) >> 70 for _ in range(times)]
    assert stats.chisquare(np.bincount(large, minlength=3)).pvalue > 1e-4 and below(1, rng) == 0


def test_runs_go_on_over_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that ends with the block of trials in which it began, or one that is counted twice."""
    sequence = RNG(7).random(4_000) < 0.95
    used = 0

    def trials(numerator: np.ndarray, denominator: int, rng: np.random.Generator) -> np.ndarray:
        nonlocal used
        used += len(numerator)
        return sequence[used - len(numerator) : used]

    monkeypatch.setattr(exact_draws, "_exponential", trials)
    found = geometric(60, RNG(0))
    assert used > 5 * 112
    naive = "".join("s" if success else " " for success in sequence).split(" ")
    assert found.tolist() == [len(run) for run in naive[:60]]


def test_bad_scales_and_bad_sums() -> None:
    """Noise of no scale, or exact sums that are fractions or have lost their last digits."""
    for scale in (0, 2**57):
        with pytest.raises(ConfigError, match=f"scale is {scale}"):
            discrete_gaussian(scale, 1, RNG(0))
    with pytest.raises(PrivacyError, match="whole numbers"):
        with_noise([np.array([1.5])], 1.0, 2.0, RNG(0))
    with pytest.raises(PrivacyError, match="not exact"):
        with_noise([np.array([2**53])], 1.0, 2.0, RNG(0))
    assert with_noise([np.array([3, -2])], 0.5, 0.0, RNG(0))[0].tolist() == [1.5, -1.0]
    assert discrete_gaussian(5, 0, RNG(0)).shape == (0,)


@pytest.mark.parametrize("scale", [64, 512])
def test_one_draw_is_as_likely_as_rounded_gaussian_noise(scale: int) -> None:
    """The factor of the guarantee: at most (t^2 + 1) / (24 s^2) in the logarithm, at t deviations."""
    t = np.arange(0, 7 * scale + 1)
    discrete = -(t**2) / (2 * scale**2) - np.log(law(scale, 40 * scale)[40 * scale] ** -1)
    rounded = np.log(stats.norm.sf((t - 0.5) / scale) - stats.norm.sf((t + 0.5) / scale))
    apart = abs(discrete - rounded)
    allowed = ((t / scale) ** 2 + 1) / (24 * scale**2)
    assert (apart <= 1.05 * allowed + 1e-9).all() and apart.max() > 0.5 * allowed.max()


def certain(answers: np.ndarray) -> int:
    """How many answers cannot be 1 plus noise in floating point: they have digits below 2^-53."""
    finest = answers * 2.0**53
    return int((finest != np.rint(finest)).sum())


def test_last_digits_reveal_no_count() -> None:
    """A table without the patient told from one with the patient, for sure, by digits of one noisy count."""
    std, times, rng = 10.0, 20_000, RNG(7)
    noise = std * rng.standard_normal(times)
    assert certain(0.0 + noise) > 50 and certain(1.0 + noise) == 0
    for count in (0, 1):
        (answers,) = with_noise([np.full(times, count)], 1.0, std, rng)
        assert certain(answers) == 0
        assert abs(answers.mean() - count) < 5 * std / np.sqrt(times)
        assert answers.std() == pytest.approx(std, rel=0.03)


def test_no_vector_becomes_longer_in_steps() -> None:
    """Rounding to the nearest step: a vector of length 1 then moves a sum by more than the sensitivity."""
    vectors = RNG(8).standard_normal((2000, 7))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    whole = [[int(step) for step in row] for row in in_steps(vectors)]
    assert all(sum(step * step for step in row) <= 2**48 for row in whole)


def test_no_two_generators_draw_the_same() -> None:
    """A key that is not drawn anew."""
    one, other = (with_noise([np.zeros(20, np.int64)], 1.0, 3.0, secure_generator())[0] for _ in range(2))
    assert not (one == other).any()
