"""What a privacy officer reads."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from attacked_tables import copying, fresh
from hypothesis import given
from hypothesis import strategies as st

from dpsynth.attacks.risk import Proved, Risk
from dpsynth.attacks.shadow import Shadow
from dpsynth.attacks.suite import Effort, attack_tables, in_words, verdict
from dpsynth.evaluation.estimates import Estimate, share, sure_end
from dpsynth.privacy.profile import Profile

SMALL = Effort(descriptions=60, work=1e8)


@pytest.fixture(scope="module")
def attacked():
    tables = copying(100), fresh((100, 100, 100), 0)
    return [attack_tables(each, rng=np.random.default_rng(0), effort=SMALL) for each in tables]


def test_the_verdict_says_what_was_found(attacked):
    """A verdict that does not follow from the numbers."""
    assert "Memorisation of training records" in verdict(attacked[0])
    assert all(
        risk in verdict(attacked[0]) for risk in ("singling out", "linkability", "inference", "membership")
    )
    assert verdict(attacked[1]).startswith("No attack succeeds more often")
    assert "That is no proof" in verdict(attacked[1])


def test_every_risk_is_told_with_its_three_rates(attacked):
    """A risk that is left out, or a bound claimed where there is none."""
    text = in_words(attacked[1])
    assert text.startswith("Attacks on the synthetic table (confidential: ")
    for title in ("SINGLING OUT", "LINKABILITY", "INFERENCE", "MEMBERSHIP"):
        assert title in text
    assert text.count("without table") == text.count("people held out") == text.count("training people") == 7
    assert "No bound is proved for singling out" in text
    assert "Differential privacy does not prevent it" in text
    assert "proved           " not in text, "nothing is known of this table's ledger"


def test_a_passed_bound_comes_first():
    """A broken proof hidden behind the usual sentence."""
    proved = Proved(Profile.promised(0.1, 0.0, 1.0))
    risks = attack_tables(copying(100), rng=np.random.default_rng(0), effort=SMALL, proved=proved)
    assert verdict(risks).startswith("An attack passed its proved bound")


def test_shadow_models_count(attacked):
    """A generator that gives its canaries away beside a table that happens not to; a bound that it passed."""
    caught = Shadow(Estimate(0.9, 0.85, 0.95), 400, 20, 20, proved=0.95)
    assert "with an accuracy of 90.0 % (85.0 to 95.0), of at most 95.0 %" in verdict(attacked[1], caught)
    assert verdict(attacked[1], caught).startswith("No attack succeeds more often")
    assert "at most 95.0 %" in in_words(attacked[1], caught)
    broken = Shadow(Estimate(0.9, 0.85, 0.95), 400, 20, 20, proved=0.6)
    assert verdict(attacked[1], broken).startswith("An attack passed its proved bound")


def test_one_attack_of_many_is_not_enough(attacked):
    """A verdict on every tenth blameless table, since each of eight attacks has an interval of its own."""
    one = replace(attacked[1][0], excess=Estimate(0.1, 0.005, 0.2))
    sure = replace(attacked[1][0], excess=Estimate(0.3, 0.2, 0.4))
    assert one.found
    assert not one.found_among(8)
    assert sure.found_among(8)
    assert "chance explains it among so many" in verdict((one, *attacked[1][1:]))
    assert "Memorisation of training records" in verdict((sure, *attacked[1][1:]))


@given(st.integers(1, 400), st.integers(0, 400), st.integers(1, 60))
def test_an_end_for_many_tests_is_on_the_safe_side(trials, successes, tests):
    """Catches 16 intervals of 95 % that pass a bound by chance: an end above Clopper and Pearson's exact one.

    An error of 0.005 for all tests together is 0.005 / tests on one side of each.
    """
    successes = min(successes, trials)
    exact = share(successes, trials, 1 - 0.01 / tests)
    end = sure_end(share(successes, trials, 0.95), 0.95, tests)
    assert end <= exact.lower + 1e-9
    assert end >= 3 * exact.lower - 2 * exact.value  # and not so far that nothing is ever found


def test_a_risk_is_found_by_the_end_for_all_attacks():
    """Catches an excess that is called memorisation by its own interval, whatever else was tried."""
    half = Estimate(0.5, 0.5, 0.5)
    risk = Risk("inference", "x", "y", half, half, half, Estimate(0.06, 0.03, 0.09), half, (1, 1))
    assert risk.found and risk.found_among(1) and not risk.found_among(20)
