"""The brute force of `benchmarks/sensitivities.py` is awake, on a very small domain."""

from __future__ import annotations

import math

import numpy as np
import pytest
import sensitivities
from sensitivities import TINY, TINY_RECORDS, VISIT_PATIENTS, VISIT_ROWS, VISITS, Found, Posted

from dpsynth.marginals.statistics import MarginalsRelease
from dpsynth.privacy import Ledger
from dpsynth.privacy.release import CountRelease
from dpsynth.synthesis.parts.rows import VisitsRelease

SHORT = VISITS.model_copy(update={"most": 2})


@pytest.fixture(scope="module")
def short():
    """Patients with every sequence of up to three rows of two kinds, and three releases that read them."""
    rng = np.random.default_rng(0)
    domain = sensitivities.patient_tables(
        "short", SHORT, VISIT_ROWS.iloc[:2], VISIT_PATIENTS, rng, tables=0, large=5, again=1
    )
    (_, more, _), *_ = domain.pairs()
    releases = (
        CountRelease(noise_multiplier=2.0),
        MarginalsRelease(schema=SHORT.levels.modelled, n=20.0, noise_multiplier=3.0),
        VisitsRelease(schema=SHORT, noise_multiplier=0.5),
    )
    ledger = Ledger()
    with sensitivities.posting("here") as posted:
        for release in releases:
            ledger.run(release, more, rng)
    return posted, domain


@pytest.mark.slow
def test_faults_are_reported(short):
    """A sensitivity that is 5 % too low, or a record that counts twice, and nobody says so."""
    checked = sensitivities.self_check(*short)
    assert len(checked) == 3 and sensitivities.awake(checked)
    (*_, count), (*_, marginals), (*_, rows) = checked
    assert (count, marginals) == (pytest.approx(1 / 0.95), pytest.approx(1 / 0.95))
    assert rows > 1.1


@pytest.mark.parametrize(
    "checked",
    [[("", "", 1.0, 1.0)], [("", "", 1.01, 2.0)], [("", "", math.nan, 2.0)], [("", "", 1.0, math.nan)]],
)
def test_a_check_that_sleeps_is_noticed(checked):
    """A fault that is not seen, or something that is seen without one."""
    assert not sensitivities.awake(checked)


def test_what_is_posted_and_shown(short):
    """Words of the ledger that are read as another number, or a record that is not the farthest."""
    posted, domain = short
    found = sensitivities.largest(posted, domain)
    assert [one.posted.bound for one in found] == [one.release.l2_sensitivity for one in posted]
    assert not any(one.too_far for one in found) and found[0].ratio == pytest.approx(1.0)
    assert all(one.record.startswith("rows ") for one in found)
    words = {"sqrt(3 + 4/3) for 3": math.sqrt(13 / 3), "1 a score, 2 choices": 1.0, "proved each step": 1.0}
    for said, number in words.items():
        assert Posted(None, "", said, None, "").bound == pytest.approx(number)


def test_no_number_is_too_far():
    """A change that is no number, which compares with nothing."""
    found = Found(Posted(None, "a", "1", None, ""), "row", "")
    for ratio in (0.5, math.nan, 0.7):
        found.see(ratio, lambda: "one")
    assert found.too_far and math.isnan(found.ratio)


def test_every_record_meets_every_small_table():
    """A record or a table that is left out."""
    raw = sensitivities.every_record(TINY_RECORDS)
    domain = sensitivities.row_tables("tiny", TINY, raw, np.random.default_rng(0), most=1)
    pairs = list(domain.pairs())
    assert len(pairs) == 12 + 12 * 12 and "13 tables" in domain.words and "all 12 records" in domain.words
    assert len({label() for _, _, label in pairs}) == 12
