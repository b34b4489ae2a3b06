import numpy as np
import pytest

from dpsynth.errors import ConfigError
from dpsynth.releases.structure import choose


def test_law_of_the_exponential_mechanism():
    """A Gumbel scale other than 2 / epsilon: the exact law must fit, those of 2/3 and 3/2 epsilon not."""
    scores, epsilon, draws = np.array([0.0, 1.0, 2.5, 4.0]), 0.9, 30_000
    rng = np.random.default_rng(0)
    counts = np.bincount([choose(scores, epsilon, rng) for _ in range(draws)], minlength=4)

    def chi_squared(eps):
        law = np.exp(eps * scores / 2)
        expected = draws * law / law.sum()
        return ((counts - expected) ** 2 / expected).sum()

    assert chi_squared(epsilon) < 21  # 3 degrees of freedom, p = 1e-4
    assert min(chi_squared(epsilon * 2 / 3), chi_squared(epsilon * 3 / 2)) > 100


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


class Far(np.random.Generator):
    """Gumbel noise that lifts the first candidate so many times its scale above all others."""

    def __init__(self, height):
        super().__init__(np.random.PCG64(0))
        self.height = height

    def gumbel(self, loc=0.0, scale=1.0, size=None):
        noise = np.zeros(size)
        noise[0] = self.height * scale
        return noise


@pytest.mark.parametrize("height", [4.0, 8.0, 16.0, 36.0])
def test_gumbel_noise_is_not_cut(height):
    """Noise that ends somewhere: a candidate that scores far below the best is then never chosen.

    36 is where uniform numbers of 53 bits end.
    """
    epsilon = 0.3
    lead = height * 2.0 / epsilon
    assert choose([0.0, 0.99 * lead, 0.0], epsilon, Far(height)) == 0
    assert choose([0.0, 1.01 * lead, 0.0], epsilon, Far(height)) == 1
