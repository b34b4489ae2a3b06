import numpy as np
import pytest

from dpsynth.errors import ConfigError
from dpsynth.marginals.binning import Binning
from dpsynth.marginals.statistics import pair_scores
from dpsynth.privacy import exponential_mechanism
from dpsynth.privacy.exponential_mechanism import SCORE_STEP, choose


@pytest.mark.slow
def test_law_of_the_exponential_mechanism():
    """A factor other than epsilon / 2: the exact law must fit, those of 2/3 and 3/2 epsilon not."""
    scores, epsilon, draws = np.array([0.0, 1.0, 2.5, 4.0]), 0.9, 10_000
    rng = np.random.default_rng(0)
    counts = np.bincount([choose(scores, epsilon, rng) for _ in range(draws)], minlength=4)

    def chi_squared(eps):
        law = np.exp(eps * scores / 2)
        expected = draws * law / law.sum()
        return ((counts - expected) ** 2 / expected).sum()

    assert chi_squared(epsilon) < 21  # 3 degrees of freedom, p = 1e-4
    assert min(chi_squared(epsilon * 2 / 3), chi_squared(epsilon * 3 / 2)) > 100


def test_every_one_of_many_candidates_can_be_chosen():
    """A choice among the first 4,096: of 8,200 equal ones, as many as are drawn at once lie beyond."""
    rng, count = np.random.default_rng(2), 2 * exponential_mechanism._CANDIDATES + 8
    chosen = [choose(np.zeros(count), 1.0, rng) for _ in range(20)]
    assert min(chosen) < exponential_mechanism._CANDIDATES < max(chosen) < count


def test_privacy_loss_is_at_most_epsilon():
    """A law whose ratio between neighbouring scores exceeds exp(epsilon)."""
    rng = np.random.default_rng(1)
    for _ in range(200):
        scores = rng.normal(0, 5, 6)
        moved = scores + rng.uniform(-1, 1, 6)
        laws = [np.exp(0.7 * s / 2) / np.exp(0.7 * s / 2).sum() for s in (scores, moved)]
        assert np.abs(np.log(laws[0] / laws[1])).max() <= 0.7 + 1e-9


def test_bad_arguments():
    """Noise of scale zero, or a choice among nothing."""
    rng = np.random.default_rng(0)
    assert choose([3.0, 9.0], None, rng) == 1
    with pytest.raises(ConfigError, match="selection_epsilon is 0"):
        choose([1.0], 0.0, rng)
    with pytest.raises(ConfigError, match="no candidate"):
        choose([], 1.0, rng)


@pytest.mark.parametrize("height", [4, 8, 36, 200])
def test_no_candidate_is_excluded(height, monkeypatch):
    """A chance that is cut off: a candidate that scores far below the best is then never chosen."""
    lead = height * 2.0 / 0.25  # an exponent of exactly the height
    geometric = lambda size, rng: np.full(size, height)  # noqa: E731
    monkeypatch.setattr("dpsynth.privacy.exponential_mechanism.geometric", geometric)
    rng = np.random.default_rng(2)
    assert {choose([0.0, lead], 0.25, rng) for _ in range(40)} == {0, 1}
    assert {choose([0.0, lead + 4], 0.25, rng) for _ in range(40)} == {0, 1}
    assert {choose([0.0, lead + 8], 0.25, rng) for _ in range(40)} == {1}


def test_scores_are_whole_numbers_of_a_step():
    """Scores in floating point, whose sum depends on the order: one record then moves them by more than 1."""
    tables = {(0, 1): np.array([[3, 4], [5, 6]]), (0, 2): np.array([[7, 0, 1], [2, 2, 6]])}
    binnings = [Binning(np.arange(len(p)), np.array(p)) for p in ([0.3, 0.7], [0.1, 0.9], [0.2, 0.3, 0.5])]
    scores = pair_scores(tables.items(), binnings, 18.7)
    assert np.array_equal(scores / SCORE_STEP, np.rint(scores / SCORE_STEP)) and scores[0, 1] > 0
    more = pair_scores(
        [(key, table + (np.arange(table.size) == 1).reshape(table.shape)) for key, table in tables.items()],
        binnings,
        18.7,
    )
    assert abs(more - scores).max() == 1.0
