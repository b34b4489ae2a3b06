"""Bootstrap intervals against DeLong's, and how often they cover the truth."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm

from dpsynth.evaluation.utility import scores as module
from dpsynth.evaluation.utility.scores import Ranking, bootstrap, enough_records, percentile_interval


def delong(y: np.ndarray, *scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """AUCs and their covariance (DeLong et al. 1988, Biometrics 44), transcribed."""
    above, below = [], []
    for score in scores:
        gaps = score[y][:, None] - score[~y][None, :]
        wins = (gaps > 0) + 0.5 * (gaps == 0)
        above.append(wins.mean(axis=1))
        below.append(wins.mean(axis=0))
    v, w = np.array(above), np.array(below)
    covariance = np.atleast_2d(np.cov(v)) / v.shape[1] + np.atleast_2d(np.cov(w)) / w.shape[1]
    return v.mean(axis=1), covariance


def binormal(n: int, gap: float, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    y = rng.random(n) < 0.3
    return y, rng.normal(size=n) + gap * y


def auc_interval(
    y: np.ndarray, score: np.ndarray, rng: np.random.Generator, resamples: int
) -> tuple[float, float]:
    ranking = Ranking(y, score)
    drawn = bootstrap(lambda w: {"auc": ranking(w)[0]}, len(y), resamples, rng)
    interval = percentile_interval(drawn["auc"], 0.95)
    assert interval is not None
    return interval


def test_auc_interval_agrees_with_delong() -> None:
    """Would catch weights that do not belong to their records: the interval is then far too short."""
    rng = np.random.default_rng(0)
    y, score = binormal(600, 1.0, rng)
    lower, upper = auc_interval(y, score, rng, 2000)
    (auc,), covariance = delong(y, score)
    half = 1.96 * np.sqrt(covariance[0, 0])
    assert (upper - lower) / 2 == pytest.approx(half, rel=0.1)
    assert (lower + upper) / 2 == pytest.approx(auc, abs=0.2 * half)


def test_paired_difference_agrees_with_delong() -> None:
    """Would catch models resampled apart, whose difference varies several times as much."""
    rng = np.random.default_rng(1)
    y, score = binormal(500, 1.0, rng)
    other = score + 0.3 * rng.normal(size=500)
    rankings = Ranking(y, score), Ranking(y, other)
    drawn = bootstrap(lambda w: {"gap": rankings[0](w)[0] - rankings[1](w)[0]}, 500, 2000, rng)["gap"]
    aucs, covariance = delong(y, score, other)
    paired = np.sqrt(covariance[0, 0] + covariance[1, 1] - 2 * covariance[0, 1])
    assert drawn.std() == pytest.approx(paired, rel=0.1)
    assert drawn.std() < 0.5 * np.sqrt(covariance[0, 0] + covariance[1, 1])
    assert drawn.mean() == pytest.approx(aucs[0] - aucs[1], abs=paired / 5)


@pytest.mark.parametrize(("block", "n", "resamples"), [(400_000, 7, 30), (20, 7, 30), (1, 40, 3)])
def test_each_resample_draws_n_records(
    monkeypatch: pytest.MonkeyPatch, block: int, n: int, resamples: int
) -> None:
    """Would catch records drawn for the wrong resample, a lost last block, or draws that vary with blocks."""
    seen: list[np.ndarray] = []

    def watch(weights: np.ndarray) -> dict[str, np.ndarray]:
        assert weights.shape[0] == n
        seen.append(weights)
        return {"first": weights[0]}

    monkeypatch.setattr(module, "_BLOCK", block)
    done: list[float] = []
    found = bootstrap(watch, n, resamples, np.random.default_rng(5), done.append)["first"]
    counts = np.concatenate(seen, axis=1)
    drawn = np.random.default_rng(5).integers(n, size=(resamples, n))
    np.testing.assert_array_equal(counts.T, [np.bincount(row, minlength=n) for row in drawn])
    np.testing.assert_array_equal(found, counts[0])
    assert done[-1] == 1.0 and done == sorted(done)


def test_interval_needs_nearly_all_resamples() -> None:
    """Would catch an interval of the few resamples in which a score is defined."""
    values = np.arange(100.0)
    values[:10] = np.nan
    assert percentile_interval(values, 0.9) == pytest.approx((10 + 0.05 * 89, 10 + 0.95 * 89))
    values[10] = np.nan
    assert percentile_interval(values, 0.9) is None
    assert percentile_interval(np.full(5, np.nan), 0.9) is None
    assert percentile_interval(np.array([1.0]), 0.9) is None


@pytest.mark.parametrize(
    ("y", "kind", "enough"),
    [
        ([0, 1], "binary", False),
        ([0] * 5 + [1] * 4, "binary", False),
        ([0] * 5 + [1] * 5, "binary", True),
        ([0] * 100 + [1] * 4, "binary", False),
        ([0] * 100, "binary", False),
        ([0] * 5 + [1] * 1 + [2] * 5, "categories", True),
        ([0] * 5 + [1] * 3 + [2] * 3, "categories", False),
        (list(range(9)), "numeric", False),
        (list(range(10)), "numeric", True),
        ([], "numeric", False),
    ],
)
def test_few_records_have_no_interval(y: list[int], kind: str, enough: bool) -> None:
    """Would catch an interval of zero width from two records, or a traceback on none."""
    assert enough_records(np.array(y), kind) is enough


@pytest.mark.slow
@pytest.mark.parametrize(("n", "gap"), [(100, 1.0), (400, 0.3)])
def test_intervals_cover_the_true_auc(n: int, gap: float) -> None:
    """Would catch intervals that are too short: 95 % of them should hold the AUC of the population."""
    truth = norm.cdf(gap / np.sqrt(2))
    rng = np.random.default_rng(int(n))
    covered, by_delong = 0, 0
    for _ in range(600):
        y, score = binormal(n, gap, rng)
        lower, upper = auc_interval(y, score, rng, 400)
        covered += lower <= truth <= upper
        (auc,), covariance = delong(y, score)
        by_delong += abs(auc - truth) <= 1.96 * np.sqrt(covariance[0, 0])
    # the standard error of a coverage of 0.95 in 600 runs is 0.009
    assert 0.915 <= covered / 600 <= 0.98
    assert abs(covered - by_delong) / 600 < 0.03
