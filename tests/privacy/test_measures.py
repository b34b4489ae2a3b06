"""The sentences for one patient say something at the ends of every scale too."""

import math
import re

import pytest

from dpsynth.privacy import Profile, measures_of
from dpsynth.privacy.events import gaussian_event, non_private_event
from dpsynth.privacy.guarantee import round_up
from dpsynth.privacy.profile import meanings


@pytest.mark.parametrize(
    ("event", "delta"),
    [
        (gaussian_event(0.01), 1e-5),
        (gaussian_event(1.0), 0.0),
        (non_private_event(), 1e-5),
        (gaussian_event(0.2), 1e-5),
        (gaussian_event(1e6), 1e-5),
    ],
)
def test_no_sentence_ends_in_infinity_or_a_hundred_in_a_hundred(event, delta):
    """Catches "at most inf times as probable", "100 times in 100" and "-0"."""
    cost = measures_of(Profile([event]), delta)
    for name, value, meaning in meanings(cost):
        assert "inf" not in meaning and "100 times in 100" not in meaning, name
        assert "100 points in 100" not in meaning, name
        assert not re.search(r"(?<!e)-0", f"{value} {meaning}"), name


def test_bounds_are_rounded_against_the_guarantee():
    """Catches 99.96 told as 100 less a little, or a negative zero."""
    assert round_up(-0.0) == "0" and round_up(math.inf) == "inf"
    cost = measures_of(Profile([gaussian_event(1.0)]), 1e-5)
    sentences = {name: meaning for name, _, meaning in meanings(cost)}
    assert (
        "is right at most 69.2 times in 100. Without the output it is right 50 times in 100."
        in sentences["attack accuracy"]
    )
    assert "79.62 times as probable" in sentences["epsilon"]
