"""Normal scores of ordered columns: the correlation that bins tell of, and states that follow it."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import multivariate_normal
from stored import read_back

from dpsynth.marginals.coupling import (
    Marks,
    Scored,
    _cells,
    coupled,
    normal_scores,
    score_correlations,
    score_ends,
)
from dpsynth.marginals.terms import DrawnColumns


def drawn(rho: float, *cuts: list[float], n: int = 60_000) -> tuple[np.ndarray, np.ndarray]:
    """Pairs of normal numbers with this correlation, and their bins between quantiles."""
    rng = np.random.default_rng(0)
    first = rng.standard_normal(n)
    values = np.stack([first, rho * first + np.sqrt(1 - rho**2) * rng.standard_normal(n)], axis=1)
    bins = [np.searchsorted(np.quantile(v, cut), v) for v, cut in zip(values.T, cuts, strict=True)]
    return values, np.stack(bins, axis=1)


def correlation(bins: np.ndarray, sizes: tuple[int, int], noise: float = 0.0) -> float:
    scored = [
        Scored.of(np.bincount(column[column < size], minlength=size) / len(bins))
        for column, size in zip(bins.T, sizes, strict=True)
    ]
    marks = Marks.empty(2, len(bins))
    for j, one in enumerate(scored):
        marks.put(j, one, bins[:, j])
    found, tells = score_correlations(1, [0], scored, marks, noise)
    return float(found[0]) if tells[0] else 0.0


@pytest.mark.parametrize("rho", [0.5, 0.97, -0.8])
def test_bins_tell_the_correlation_of_what_was_cut(rho):
    """Catches a correlation of the bins' numbers, which is too small: .97 cut in 3 bins has .90."""
    _, bins = drawn(rho, [0.3, 0.7], [0.1, 0.2, 0.6, 0.9])
    assert correlation(bins, (3, 5)) == pytest.approx(rho, abs=0.012)


def test_a_few_records_far_away_do_not_weaken_a_strong_correlation():
    """Catches the mean product's correlation, .92: what noise leaves in far cells then blurs all others."""
    _, bins = drawn(0.99, [i / 8 for i in range(1, 8)], [i / 6 for i in range(1, 6)])
    bins[:2000, 0] = np.random.default_rng(3).permutation(bins[:2000, 0])
    assert correlation(bins, (8, 6)) == pytest.approx(0.99, abs=0.006)


def test_records_without_a_place_have_no_part():
    """Catches a bin of missing values that counts as the largest."""
    _, bins = drawn(0.9, [0.3, 0.7], [0.5])
    bins[::3, 1] = 2
    assert correlation(bins, (3, 2)) == pytest.approx(0.9, abs=0.02)
    assert correlation(bins[:150], (3, 2)) == 0.0  # too few


def test_empty_bins_are_no_fault():
    """Catches ends beyond the normal distribution where rounding makes the shares more than 1."""
    shares = np.append(np.full(49, 1 / 49), [0.0, 0.0])
    bins = np.random.default_rng(0).integers(0, 49, 5000)
    found = correlation(np.stack([bins, bins], axis=1), (51, 51))
    assert np.isfinite(score_ends(shares)).all() and found > 0.98


@pytest.mark.parametrize("rho", [-0.95, 0.3, 0.998])
def test_probabilities_of_pairs_of_bins_are_scipys(rho):
    """Catches a formula that fails for a range that ends at 0, or below 0 on one side only."""
    rows, columns = np.array([-8.0, -1.0, 0.0, 8.0]), np.array([-8.0, 0.0, 0.7, 8.0])
    law = multivariate_normal(cov=[[1, rho], [rho, 1]])
    below = np.array([[law.cdf([h, k]) for k in columns] for h in rows])
    np.testing.assert_allclose(_cells(rows, columns, rho), np.diff(np.diff(below, axis=0), axis=1), atol=1e-6)


def test_what_is_weak_or_noise_is_not_coupled():
    """Catches columns that are coupled because noise made their tables unequal."""
    rng = np.random.default_rng(0)
    _, bins = drawn(0.1, [0.3, 0.7], [0.5])
    assert correlation(bins, (3, 2)) == 0.0
    noise, coupled_by_noise = 0.02, 0
    for _ in range(200):  # tables of independent columns, one of them rare, with noise in their shares
        table = np.outer([0.4, 0.3, 0.3], [0.9, 0.1]) + noise * rng.standard_normal((3, 2))
        cells = rng.choice(6, 20_000, p=np.maximum(table, 0).ravel() / np.maximum(table, 0).sum())
        coupled_by_noise += correlation(np.stack(np.divmod(cells, 2), axis=1), (3, 2), noise) != 0.0
    assert coupled_by_noise <= 6
    assert correlation(drawn(0.8, [0.3, 0.7], [0.9])[1], (3, 2), noise) > 0.7


def test_states_have_the_probabilities_of_a_normal_distribution_given_two_others():
    """Catches a mean or a variance of another distribution, and a state without a place that is moved."""
    full = np.array([[1.0, 0.5, 0.7], [0.5, 1.0, 0.6], [0.7, 0.6, 1.0]])
    p = np.array([0.1, 0.4, 0.3, 0.2])
    coupling = coupled([2, 0], full, score_ends(p), 5)
    rng = np.random.default_rng(0)
    values = rng.multivariate_normal(np.zeros(3), full, 400_000)
    near = values[(abs(values[:, 0] - 1) < 0.1) & (abs(values[:, 1] + 0.5) < 0.1), 2]
    rows = DrawnColumns.empty(3, 1)
    rows.scores[2], rows.scores[0] = 1.0, -0.5
    logits = coupling.logits(rows)[:, 0]
    share = p * np.exp(logits[:4])
    assert logits[4] == 0.0 and share.sum() == pytest.approx(1.0, abs=1e-4)
    bins = np.searchsorted(score_ends(p)[1:-1], near)
    np.testing.assert_allclose(share, np.bincount(bins, minlength=4) / len(near), atol=0.03)
    again = read_back(coupling)
    np.testing.assert_array_equal(again.logits(rows), coupling.logits(rows))


def test_scores_stay_in_their_states_and_missing_ones_follow_the_others():
    """Catches scores that leave their states, and a missing value's score that tells nothing."""
    ends = score_ends(np.full(4, 0.25))
    rows = DrawnColumns.empty(2, 9000)
    rng = np.random.default_rng(1)
    rows.scores[0] = rng.standard_normal(9000)
    states = rng.integers(0, 5, 9000)
    coupling = coupled([0], np.array([[1, 0.9], [0.9, 1]]), ends, 5)
    scores = normal_scores(states, ends, coupling, rows, rng)
    known = states < 4
    assert (scores[known] >= ends[states[known]] - 1e-5).all()
    assert (scores[known] <= ends[states[known] + 1] + 1e-5).all()
    assert np.corrcoef(scores[~known], rows.scores[0][~known])[0, 1] == pytest.approx(0.9, abs=0.03)


def test_scores_within_a_state_follow_the_others():
    """Catches values of a tight pair that are independent in the long ranges at the ends."""
    ends = score_ends(np.array([0.1, 0.8, 0.1]))
    rows, rng = DrawnColumns.empty(2, 60_000), np.random.default_rng(1)
    rows.scores[0] = rng.standard_normal(60_000)
    truth = 0.98 * rows.scores[0] + np.sqrt(1 - 0.98**2) * rng.standard_normal(60_000)
    states = np.searchsorted(ends[1:-1], truth)
    scores = normal_scores(states, ends, coupled([0], np.array([[1, 0.98], [0.98, 1]]), ends, 3), rows, rng)
    for state in range(3):
        own = states == state
        one, other = (np.corrcoef(rows.scores[0][own], values[own])[0, 1] for values in (scores, truth))
        assert one == pytest.approx(other, abs=0.01)
    # a state that the other columns hardly let expect
    rows.scores[0] = 6.0
    far = normal_scores(
        np.zeros(60_000, int), ends, coupled([0], np.array([[1, 0.998], [0.998, 1]]), ends, 3), rows, rng
    )
    assert np.isfinite(far).all() and (far <= ends[1] + 1e-5).all()
