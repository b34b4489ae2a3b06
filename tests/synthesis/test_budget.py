"""The total budget is met, never exceeded, and shared as told."""

from __future__ import annotations

import math

import mpmath
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsynth.errors import InputError
from dpsynth.privacy import Profile
from dpsynth.privacy.gaussian_loss import analytic_sigma
from dpsynth.privacy.release import Plan
from dpsynth.synthesis.fit import _left
from dpsynth.synthesis.marginals import DPMarginals
from dpsynth.synthesis.options import Shares
from dpsynth.synthesis.parts.base_model import BaseModel
from dpsynth.synthesis.parts.columns import Columns
from dpsynth.synthesis.parts.critic import Critic
from dpsynth.synthesis.parts.part import Parts
from dpsynth.table.schema import Column, Schema
from dpsynth.wgan.settings import TrainingSettings

SCHEMA = Schema(
    columns=tuple(Column(name=f"x{i}", kind="binary", categories=(0, 1)) for i in range(6)), outcome="x0"
)


def planned(*, epsilon, delta, base_model, steps, sampling_prob, counted=False):
    plan = Plan(sampling_prob, 100.0, steps, None) if steps else None
    own = [Columns(SCHEMA, 400.0, share=0.2)]
    if base_model != "none":
        own.append(BaseModel(SCHEMA, base_model, 1 / 13, share=0.65))
    if plan is not None:
        own.append(Critic(plan, TrainingSettings(), share=None))
    return Parts(tuple(own), (), delta).with_noise(epsilon, delta, counted=counted)


@pytest.mark.slow
@settings(max_examples=6, deadline=None)
@given(
    epsilon=st.floats(0.2, 12),
    delta=st.sampled_from([1e-4, 1e-6]),
    base_model=st.sampled_from(["none", "tree", "tan"]),
    steps=st.sampled_from([0, 50, 400]),
    q=st.sampled_from([0.02, 0.3, 1.0]),
)
def test_total_is_met_and_never_exceeded(epsilon, delta, base_model, steps, q):
    """Catches a run that costs more than asked for, or wastes a tenth of its budget."""
    releases = planned(epsilon=epsilon, delta=delta, base_model=base_model, steps=steps, sampling_prob=q)
    total = Profile(releases.events).epsilon(delta)
    assert 0.97 * epsilon <= total <= epsilon


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-6), (3.0, 1e-5), (9.6, 1e-6)])
def test_a_noisy_count_and_the_rest_never_add_up_to_more(epsilon, delta):
    """A ledger that says 3.000000000000002 of 3: by rounding the count costs more than its part."""
    schema = Schema(columns=SCHEMA.columns[:2])
    frame = pd.DataFrame({"x0": [0, 1] * 50, "x1": [0, 0, 1, 1] * 25})
    ledger = DPMarginals(epsilon, delta).fit(frame, schema=schema).ledger_
    assert 0.97 * epsilon < ledger.epsilon(delta) <= epsilon and ledger.delta <= delta


def test_what_is_left_adds_up_to_the_whole_at_most():
    """A difference that rounding makes larger, so that the sum is above the budget by its last digit."""
    for total, spent in ((10.01, 0.1472310725152708), (7.19, 0.6618463242043133), (3.0, 0.06)):
        left = _left(total, spent)
        assert math.fsum((spent, left)) <= total and left >= (total - spent) * (1 - 1e-15)


def test_gaussian_mu_solves_the_dual():
    """Catches a wrong sign in the (epsilon, delta) curve of Gaussian DP, against mpmath."""
    mpmath.mp.dps = 40
    for epsilon, delta in ((1e-9, 1e-6), (1e-4, 1e-6), (0.1, 1e-6), (1, 1e-5), (10, 1e-9), (50, 1e-5)):
        mu = mpmath.mpf(1 / analytic_sigma(epsilon, delta))
        value = mpmath.ncdf(-epsilon / mu + mu / 2) - mpmath.e**epsilon * mpmath.ncdf(-epsilon / mu - mu / 2)
        assert abs(value / delta - 1) < 1e-6


@pytest.mark.parametrize("shares", [{"marginals": 0}, {"tables": 1.5}, {"tables": 0.6, "selection": 0.5}])
def test_shares_that_do_not_add_up_are_refused(shares):
    """Catches shares that leave nothing for training."""
    with pytest.raises(InputError, match=r"marginals|tables|shares"):
        Shares(**shares)


def plan(**changes):
    given = {"epsilon": 2.94, "delta": 9.8e-7, "base_model": "tan", "steps": 200, "sampling_prob": 0.25}
    return planned(**{**given, **changes})


@pytest.mark.slow
def test_what_a_count_decides_stays_within_what_was_promised_before_it():
    """Catches a total variation that is promised by one count and exceeded by another."""
    plans = {q: plan(sampling_prob=q, counted=True) for q in (0.003, 0.25, 1.0)}
    assert len({releases.stage.tv for releases in plans.values()}) == 1
    for releases in plans.values():
        profile, stage = Profile(releases.events), releases.stage
        assert profile.tv() <= stage.tv and 2.9 < profile.epsilon(9.8e-7) <= 2.94 == stage.epsilon
    assert stage.tv < 0.75  # epsilon and delta alone allow 0.9
    assert plan(counted=True, steps=0).stage.tv == releases.stage.tv  # a count may choose the statistics
    assert plan().stage.tv is None is plan().stage.epsilon and plan().stage.delta == 9.8e-7


def test_a_large_share_for_edges_keeps_the_promised_total_variation():
    """Catches noise for epsilon alone: choices of edges have a larger total variation than Gaussian noise."""
    own = Columns(SCHEMA, 400.0, share=0.1), BaseModel(SCHEMA, "tree", 5 / 6, share=0.6)
    parts = Parts(own, (), 1e-6)
    public, counted = (parts.with_noise(1.0, 1e-6, counted=counted) for counted in (False, True))
    assert Profile(counted.events).tv() <= counted.stage.tv < 0.95 * Profile(public.events).tv()


@pytest.mark.parametrize(
    ("epsilon", "delta", "base_model"),
    [
        (1e-9, 1e-6, "none"),
        (1e-4, 1e-6, "none"),
        (1e4, 1e-6, "none"),
        pytest.param(98, 1e-3, "tan", marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize("counted", [pytest.param(False, marks=pytest.mark.slow), True])
def test_extreme_epsilons_are_planned(epsilon, delta, base_model, counted):
    """Catches a root finder's text where there is no bracket, and a total variation near 1 as a target."""
    releases = plan(
        epsilon=epsilon, delta=delta, steps=4, sampling_prob=1.0, base_model=base_model, counted=counted
    )
    assert Profile(releases.events).epsilon(delta) <= epsilon
