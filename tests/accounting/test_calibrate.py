import math

import numpy as np
import pytest

from dpsynth.accounting import REPLACE_ONE, Profile, calibrate
from dpsynth.accounting.events import epsilon_delta_event, gaussian_event, training_event
from dpsynth.errors import InputError, PrivacyError


def run_of(z):
    return [gaussian_event(10.0), training_event(z, 0.05, 2000), epsilon_delta_event(0.02, count=20)]


@pytest.mark.parametrize("seed", range(3))
def test_never_exceeds_a_random_target_and_is_tight(seed):
    """A root on the wrong side, or noise more than 1e-3 above the smallest."""
    rng = np.random.default_rng(seed)
    epsilon, delta = float(10 ** rng.uniform(-1, 1)), float(10 ** rng.uniform(-8, -3))
    q, steps = float(10 ** rng.uniform(-2.5, -1.0)), int(rng.integers(1, 100))

    def events_of(z):
        return [gaussian_event(60.0), training_event(z, q, steps)]

    z = calibrate(events_of, epsilon=epsilon, delta=delta)
    assert Profile(events_of(z)).epsilon(delta) <= epsilon
    assert Profile(events_of(z / 1.0011)).epsilon(delta) > epsilon * (1 - 1e-6)


@pytest.mark.parametrize("epsilon", [1e-3, 0.5, 8.0, 500.0])
def test_exact_gaussians(epsilon):
    """A search that stops early, far from its start or near it."""
    z = calibrate(lambda z: [gaussian_event(z)], epsilon=epsilon, delta=1e-6)
    tight = calibrate(lambda z: [gaussian_event(z)], epsilon=epsilon, delta=1e-6, rtol=1e-5, start=z)
    assert tight * (1 - 1e-5) <= z <= tight * (1 + 1e-3)
    assert Profile([gaussian_event(tight)]).epsilon(1e-6) == pytest.approx(epsilon, rel=1e-4)


def test_a_whole_run_needs_few_evaluations():
    """A bisection, which needs 30 evaluations for 2,000 steps with selections and histograms."""
    tried = []

    def events_of(z):
        tried.append(z)
        return run_of(z)

    z = calibrate(events_of, epsilon=3.0, delta=1e-5)
    assert len(tried) <= 14
    assert z == pytest.approx(3.2749, rel=1e-3)


def test_replace_one_needs_twice_the_noise():
    """Adjacency lost between the search and the profile."""
    one = calibrate(lambda z: [gaussian_event(z)], epsilon=1.0, delta=1e-5)
    two = calibrate(lambda z: [gaussian_event(z)], epsilon=1.0, delta=1e-5, adjacency=REPLACE_ONE)
    assert two / one == pytest.approx(2.0, rel=2e-3)


def test_root_beside_the_plateau():
    """Divergence where the other events have used almost all of the budget."""
    rest = Profile([gaussian_event(10.0), epsilon_delta_event(0.02, count=20)]).epsilon(1e-5)
    target = 1.02 * rest
    z = calibrate(run_of, epsilon=target, delta=1e-5)
    assert 0.99 * target < Profile(run_of(z)).epsilon(1e-5) <= target


def test_impossible_budgets_are_refused():
    """A multiplier returned although the rest alone, or delta = 0, makes the target impossible."""
    with pytest.raises(PrivacyError, match=r"other events alone cost 0\.46"):
        calibrate(run_of, epsilon=0.3, delta=1e-5)
    with pytest.raises(PrivacyError, match="no noise multiplier"):
        calibrate(lambda z: [gaussian_event(z)], epsilon=1.0, delta=0.0)
    with pytest.raises(InputError, match="nothing to calibrate"):
        calibrate(lambda z: [gaussian_event(10.0)], epsilon=5.0, delta=1e-5)


@pytest.mark.parametrize(
    "bad",
    [
        {"epsilon": 0.0},
        {"epsilon": math.inf},
        {"epsilon": math.nan},
        {"delta": 1.0},
        {"delta": -1e-6},
        {"rtol": 0.0},
        {"start": 0.0},
        {"adjacency": "both"},
    ],
    ids=str,
)
def test_bad_arguments_are_named(bad):
    """An argument out of range that starts a search."""
    with pytest.raises(InputError, match=next(iter(bad))):
        calibrate(lambda z: [gaussian_event(z)], **({"epsilon": 1.0, "delta": 1e-5} | bad))
