"""What a privacy officer reads."""

from __future__ import annotations

from dataclasses import astuple, replace

import numpy as np
import pytest
from attacked_tables import copying, fresh

from dpsynth.accounting.profile import Profile
from dpsynth.attacks.synthetic.risk import Proved, Risk
from dpsynth.attacks.synthetic.shadow import Shadow
from dpsynth.attacks.synthetic.suite import Effort, attack_tables
from dpsynth.attacks.synthetic.words import in_words, verdict
from dpsynth.evaluation.estimates import Estimate, share, share_difference

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


def test_an_interval_for_many_is_that_of_bonferroni():
    """Another correction than the one that is named: for shares far from 0 and 1 intervals are normal."""
    found, wide = (
        share_difference(share(2100, 4000, level), share(2000, 4000, level)) for level in (0.95, 1 - 0.05 / 8)
    )
    half = Estimate(0.5, 0.5, 0.5)
    for shift in np.linspace(-0.03, 0.01, 41):
        moved = Estimate(*(end + shift for end in astuple(found)))
        if abs(wide.lower + shift) > 5e-4:
            risk = Risk("inference", "x", "y", half, half, half, moved, half, (1, 1))
            assert risk.found_among(8) == (wide.lower + shift > 0)
