"""Profiles where numbers overflow, vanish or have atoms: none may be understated, and each is an answer."""

import math

import pytest
from scipy.stats import norm

from dpsynth.errors import DataError, InputError
from dpsynth.privacy import Ledger, Profile
from dpsynth.privacy.events import (
    epsilon_delta_event,
    gaussian_event,
    laplace_event,
    training_event,
)
from dpsynth.privacy.gaussian_loss import GaussianLoss


@pytest.mark.parametrize(
    ("events", "exact"),
    [
        ([gaussian_event(0.01), epsilon_delta_event(1e-9)], GaussianLoss(100.0).epsilon(1e-5)),
        ([training_event(0.02, 0.5, 1)], 1453.7199),
    ],
)
def test_epsilons_beyond_the_largest_float_are_not_understated(events, exact):
    """Would catch e^epsilon overflowing: 709 was told where 5,425 and 1,454 are true."""
    assert exact <= Profile(events).epsilon(1e-5) * (1 + 1e-6) <= exact * 1.001


def test_exceedance_of_a_loss_with_atoms_is_an_upper_bound():
    """Would catch the grid moving half of an atom below the level: .4 was told where the probability is .5.

    The exact probability, by the negative part's complement: all ``count`` losses are at their largest with
    probability 2^-count, and just below that level nothing else counts.
    """
    for count in [1, 3, 40]:
        for epsilon in [0.9, 0.123, 1.7]:
            profile = Profile([laplace_event(1 / epsilon, count=count)])
            level = count * epsilon * (1 - 1e-9)
            assert profile.exceedance(level) >= max(2.0**-count, 1e-12) * (1 - 1e-9)
            assert profile.loss_quantile(2.0**-count * 0.999) >= level


def test_exceedance_of_an_atom_under_a_narrow_smooth_loss():
    """Would catch the grid's split of the smooth part moving the atom of the other below the level."""
    profile = Profile([laplace_event(1.0), training_event(1000, 1e-4, 10_000)])
    assert profile.exceedance(0.9999) >= 0.4999
    assert profile.loss_quantile(0.45) >= 0.99992


def test_quantile_next_to_zero_ends():
    """Would catch the endless search for the last digit at a level that is not positive."""
    assert 0.0 <= GaussianLoss(2.643488266054919).quantile(0.9068733163613955) < 1e-9


def test_precision_at_tiny_false_positive_rates():
    """Would catch 1 - fnr losing all digits: a precision of 0 was told, below the prior."""
    profile = Profile([gaussian_event(10.0)])
    assert profile.ppv(1e-17, 0.5) == profile.ppv(0.0, 0.5) == 1.0  # the limit
    bounded = Profile([laplace_event(1.0)])
    assert bounded.ppv(0.0, 0.01) == pytest.approx(math.e * 0.01 / (math.e * 0.01 + 0.99))
    assert bounded.ppv(1e-17, 0.01) == bounded.ppv(0.0, 0.01) >= bounded.ppv(1e-3, 0.01)
    assert profile.tpr(1e-17) == pytest.approx(norm.cdf(norm.ppf(1e-17) + 0.1), rel=1e-9)


@pytest.mark.parametrize(
    "events",
    [
        [gaussian_event(2e-150, count=10**11), laplace_event(1.0)],
        [gaussian_event(1e200), laplace_event(1.0)],
        [training_event(1e20, 0.5, 1)],
        [training_event(1e20, 1e-6, 10**6)],
        [training_event(1000, 1e-12, 1000)],
    ],
)
@pytest.mark.parametrize("adjacency", ["add/remove", "replace-one"])
def test_extremes_give_numbers(events, adjacency):
    """Would catch overflow, 0 / 0 and NaN where noise is almost nothing or almost endless."""
    profile = Profile(events, adjacency=adjacency)
    numbers = [profile.tv(), profile.delta(0.1), profile.exceedance(1.0), profile.tpr(0.01)]
    assert all(0.0 <= number <= 1.0 for number in numbers)
    assert not math.isnan(profile.epsilon(1e-5))


def test_too_many_applications_are_refused():
    """Would catch an hour of waiting."""
    with pytest.raises(InputError, match=r"applied 1,000,000,000 times, but at most 100,000,000"):
        Profile([training_event(100.0, 1e-4, 10**9)])


def test_a_ledger_nested_without_end_is_refused(tmp_path):
    """Would catch a RecursionError from a hostile file."""
    (tmp_path / "ledger.json").write_text("[" * 100_000)
    with pytest.raises(DataError, match="nested too deeply"):
        Ledger.load(tmp_path / "ledger.json")
