"""Excess and its share of what was left to gain."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsynth.attacks.membership import _risk
from dpsynth.attacks.risk import Proved, mean_rate, mover_ratio, rate_of
from dpsynth.checks import Counted
from dpsynth.evaluation.estimates import share, share_difference
from dpsynth.privacy.events import gaussian_event
from dpsynth.privacy.profile import Profile


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 60), st.integers(1, 60), st.data())
def test_the_share_of_what_was_left_is_judged_as_the_difference_is(n, h, data):
    """A ratio whose interval excludes 0 where that of the difference does not, or the reverse."""
    a, b = data.draw(st.integers(0, n)), data.draw(st.integers(0, h))
    rates = share(a, n), share(b, h)
    risk, excess = mover_ratio(*rates), share_difference(*rates)
    assert 0 <= risk.lower <= risk.value + 1e-12
    assert risk.value <= risk.upper + 1e-12 <= 1 + 2e-12
    if abs(excess.lower) > 1e-9:
        assert (risk.lower > 1e-12) == (excess.lower > 0)


def test_the_share_is_anonymeters():
    """Another formula than (rate - control) / (1 - control), or one that is not cut off at 0."""
    assert mover_ratio(share(60, 100), share(20, 100)).value == pytest.approx(0.4 / 0.8)
    assert mover_ratio(share(20, 100), share(60, 100)).value == 0.0
    assert mover_ratio(share(100, 100), share(100, 100)).value == 0.0


@pytest.mark.parametrize(("p", "q"), [(0.6, 0.2), (0.98, 0.9), (0.3, 0.25)])
def test_the_interval_covers(p, q):
    """Intervals of the ratio that are too short: they must hold the truth in 95 % of samples."""
    rng, truth, inside = np.random.default_rng(0), (p - q) / (1 - q), 0
    for _ in range(300):
        risk = mover_ratio(rate_of(rng.random(120) < p), rate_of(rng.random(80) < q))
        inside += risk.lower <= truth <= risk.upper
    assert inside / 300 > 0.93


def test_means_of_shares_cover():
    """Student's interval of a mean of values in [0, 1], and its ends."""
    rng = np.random.default_rng(1)
    inside = 0
    for _ in range(300):
        found = mean_rate(rng.beta(2, 5, size=40))
        inside += found.lower <= 2 / 7 <= found.upper
    assert 0.92 < inside / 300 <= 1
    assert mean_rate(np.zeros(10)).upper == pytest.approx(share(0, 10).upper)


def test_bounds_are_those_of_the_profile():
    """A bound of another quantity, or one that takes an exchange of two records for one step."""
    profile = Profile([gaussian_event(2.0)])
    coins, exact = Proved(profile), Proved(profile, coins=False)
    assert coins.advantage == pytest.approx(profile.tv())
    assert exact.advantage == pytest.approx(2 * profile.tv())
    assert coins.accuracy == pytest.approx(profile.attack_accuracy())
    assert coins.pairs == pytest.approx(0.5 + profile.tv())
    assert coins.tpr(0.01) == pytest.approx(profile.tpr(0.01))
    assert exact.tpr(0.01) == pytest.approx(0.01 + 2 * profile.tv())
    nothing = Proved()
    assert (nothing.advantage, nothing.accuracy, nothing.pairs, nothing.tpr(0.1)) == (None,) * 4


def test_the_tpr_bound_is_for_the_largest_false_positive_rate():
    """Catches the bound at the rate aimed at: a threshold set by few records may have a larger one."""
    rng = np.random.default_rng(0)
    proved = Proved(Profile.promised(1.0, 0.0, 1.0))
    scores = rng.normal(size=(2, 200))
    risk = _risk("distance", "a record", *scores, proved, 0.95, Counted.RECORDS)
    found = next(attempt for attempt in risk.more if attempt.measure == "tpr")
    aimed = float(found.attack.split("rate of ")[1].split(" %")[0]) / 100
    largest = share(round(aimed * 200), 200, 0.998).upper
    assert found.proved == pytest.approx(proved.tpr(largest)) and found.proved > proved.tpr(aimed) + 0.01
