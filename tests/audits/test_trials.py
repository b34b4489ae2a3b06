"""The verdict on trials of a known mechanism: how often it is wrong, and what it says in plain data."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from dpsynth.attacks.attempt import Attempt
from dpsynth.audits.trials import MEANING, SURE, Audited, Declared, judge_trials
from dpsynth.errors import InputError
from dpsynth.privacy.events import gaussian_event
from dpsynth.privacy.profile import Profile

DELTA = 1e-5


@cache
def declared_of(mu: float) -> Declared:
    return Declared(Profile([gaussian_event(1 / mu)]), DELTA)


def judged(mu: float, true_mu: float, trials: int, seed: int) -> Audited:
    rng = np.random.default_rng(seed)
    coins = rng.random(trials) < 0.5
    scores = mu * (rng.normal(size=trials) + true_mu * coins) - mu**2 / 2
    return judge_trials("a count", scores, coins, declared_of(mu), about="made up")


@pytest.mark.slow
@pytest.mark.parametrize("mu", [0.3, 1.0])
def test_verdicts_are_seldom_wrong(mu):
    """Catches a verdict whose several tests add up to many false alarms, or that lets half the noise pass.

    Of correct mechanisms fewer than 1 in 100 may fail, whether trials are many or few; all of half the noise
    must. Of 60 with many trials, two fail with a probability of 0.2 % at a rate of 1 in 1,000, and of 99 % at
    1 in 10.
    """
    right = Counter(judged(mu, mu, 4000, seed).verdict for seed in range(60))
    assert right["contradicted"] <= 1 and right["asleep"] == 0 and right["pass"] >= 36, right
    few = Counter(judged(mu, mu, 100, seed).verdict for seed in range(100))
    assert few["contradicted"] <= 2 and few["asleep"] <= 1, few
    wrong = Counter(judged(mu, 2 * mu, 4000, seed).verdict for seed in range(15))
    assert wrong["contradicted"] >= 13, wrong
    deaf = Counter(judged(mu, 0.0, 4000, seed).verdict for seed in range(15))
    assert deaf["asleep"] >= 13, deaf


def test_a_verdict_is_plain_data():
    """Catches an audit that is another one after it was kept, or infinite numbers in JSON."""
    audited = judged(0.9, 50.0, 4000, 1)  # no error at all: infinite as a value
    kept = Audited.from_record(json.loads(json.dumps(audited.to_record())))
    assert kept == audited and audited.verdict == "contradicted"
    plain = json.loads(json.dumps(audited.to_dict(), allow_nan=False))
    assert plain["epsilon"]["value"] is None and plain["lower"] > plain["declared"]["epsilon"]
    assert set(MEANING) == {"pass", "contradicted", "asleep", "too few trials"}
    for attempt in audited.attempts():
        assert attempt.contradicts and Attempt.from_dict(attempt.to_dict()).proved == attempt.proved


def test_what_cannot_be_judged_is_refused():
    """Catches a verdict on one table alone."""
    declared = Declared(Profile([gaussian_event(1.0)]), DELTA)
    with pytest.raises(InputError, match="each kind of table"):
        judge_trials("a", [0.0, 1.0], [True, True], declared, about="")


def test_a_pass_means_that_half_the_noise_would_be_noticed():
    """Catches a pass of so few trials that most lies pass as well, and a bound without the SURE level."""
    few, many = judged(0.2, 0.2, 2000, 0), judged(0.2, 0.2, 20_000, 0)
    assert few.verdict == "too few trials" and not few.power and many.verdict == "pass"
    caught = sum(judged(0.2, 0.4, 20_000, seed).verdict == "contradicted" for seed in range(10))
    assert caught >= 9
    for attempt in many.attempts():
        assert attempt.level == SURE
    sure = replace(many, level=SURE)
    assert [a.found for a in many.attempts()][:2] == [sure.tv, sure.epsilon] != [many.tv, many.epsilon]
