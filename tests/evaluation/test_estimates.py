"""Intervals against scipy, statsmodels and brute force."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest
from sklearn.metrics import roc_auc_score

from dpsynth.errors import InputError
from dpsynth.evaluation.estimates import auc, auc_interval, delong, quantile, share, share_difference

scores = st.lists(st.integers(0, 4).map(float), min_size=1, max_size=12)


@pytest.mark.parametrize(("successes", "trials"), [(0, 1), (1, 1), (3, 10), (10, 10), (7, 2000)])
@pytest.mark.parametrize("level", [0.8, 0.95])
def test_share_equals_scipy(successes: int, trials: int, level: float) -> None:
    """Would catch a wrong tail or swapped beta parameters."""
    reference = binomtest(successes, trials).proportion_ci(level, method="exact")
    found = share(successes, trials, level)
    assert (found.lower, found.upper) == pytest.approx((reference.low, reference.high), abs=1e-12)


@settings(max_examples=50, deadline=None)
@given(scores, scores)
def test_delong_equals_the_naive_pairs(positive: list[float], negative: list[float]) -> None:
    """Would catch ties not counted as one half, in the area or in the variance."""
    x, y = np.array(positive), np.array(negative)
    psi = (x[:, None] > y) + 0.5 * (x[:, None] == y)
    v10, v01 = psi.mean(axis=1), psi.mean(axis=0)
    naive = sum(v.var(ddof=1) / len(v) if len(v) > 1 else 0.25 for v in (v10, v01))
    value, variance = delong(positive, negative)
    assert value == pytest.approx(psi.mean()) and variance == pytest.approx(naive, abs=1e-12)


def test_auc_equals_sklearn_and_takes_infinite_scores() -> None:
    """Would catch infinity minus infinity in the ranks."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(0.5, 1, 80), rng.normal(0, 1, 70)
    assert auc(x, y).value == pytest.approx(roc_auc_score([1] * 80 + [0] * 70, np.concatenate([x, y])))
    assert auc([np.inf, np.inf, 1.0], [np.inf, 0.0, -np.inf]).value == pytest.approx(7 / 9)


def test_delong_interval_covers() -> None:
    """Would catch a standard error that is off by a factor: 1.5 too small covers 81 %."""
    rng = np.random.default_rng(1)
    truth = 0.7602  # P(N(1, 1) > N(0, 1)) = Phi(1 / sqrt(2))
    found = [auc(rng.normal(1, 1, 60), rng.normal(0, 1, 40)) for _ in range(300)]
    assert 0.91 < np.mean([f.lower <= truth <= f.upper for f in found]) < 0.985


def test_interval_on_the_logit_scale() -> None:
    """Would catch one tail taken for two."""
    found = auc_interval(0.8, 0.0025, 99)
    reach = 1.959964 * 0.05 / 0.16
    ends = [1 / (1 + np.exp(-(np.log(4) + sign * reach))) for sign in (-1, 1)]
    assert (found.lower, found.upper) == pytest.approx(ends, abs=1e-6)


def test_perfect_separation_keeps_a_width() -> None:
    """Would catch an interval from 1 to 1, which twenty records cannot give."""
    assert auc_interval(1.0, 0.0, 20).lower == pytest.approx(0.025 ** (1 / 20))
    assert auc_interval(0.0, 0.0, 20).upper == pytest.approx(1 - 0.025 ** (1 / 20))


@pytest.mark.parametrize("q", [0.05, 0.5])
def test_quantile_interval_covers(q: float) -> None:
    """Would catch ranks off by one or a swapped tail."""
    rng = np.random.default_rng(2)
    found = [quantile(rng.random(150), q) for _ in range(400)]
    assert 0.94 <= np.mean([f.lower <= q <= f.upper for f in found]) < 0.995
    low = np.mean([q < f.lower for f in found])
    high = np.mean([f.upper < q for f in found])
    assert max(low, high) < 0.05


def test_share_difference_covers() -> None:
    """Would catch squares of the wrong sides added up."""
    rng = np.random.default_rng(3)
    inside = 0
    for _ in range(200):
        found = share_difference(share(rng.binomial(80, 0.3), 80), share(rng.binomial(60, 0.1), 60))
        inside += found.lower <= 0.2 <= found.upper
    assert inside / 200 > 0.92


def test_bad_arguments_are_one_sentence() -> None:
    """Would catch a number from no trial at all."""
    with pytest.raises(InputError, match="got 3, 2"):
        share(3, 2)
    with pytest.raises(InputError, match=r"level must lie in \(0, 1\), not 1"):
        share(1, 2, 1)
    with pytest.raises(InputError, match="got none"):
        quantile([], 0.5)
    with pytest.raises(InputError, match="got 0 positive and 1 negative"):
        delong([], [1.0])
