"""All attacks on tables whose answer is known: copies, records never seen, and anonymeter's counts."""

from __future__ import annotations

import json
from collections import Counter

import numpy as np
import pytest
from attacked_tables import copying, fresh, half_copied
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from table_strategies import random_frame, schemas

from dpsynth.attacks.attempt import Attempt
from dpsynth.attacks.attribute_inference import guess
from dpsynth.attacks.linkability import link_people
from dpsynth.attacks.risk import Proved
from dpsynth.attacks.singling_out import codes, matches, of_one_column
from dpsynth.attacks.suite import (
    ATTACKS,
    Effort,
    affordable,
    attack_tables,
    in_words,
    quick,
    verdict,
)
from dpsynth.evaluation.evaluators import evaluate
from dpsynth.evaluation.tables import Tables
from dpsynth.files.storage import dump_json
from dpsynth.privacy.profile import Profile

SMALL = Effort(descriptions=100, work=1e8)


@pytest.fixture(scope="module")
def caught():
    return attack_tables(copying(), rng=np.random.default_rng(0), effort=SMALL)


def test_every_risk_is_caught_in_a_copy_of_the_training_table(caught):
    """An attack that looks at the wrong table, or compares the wrong way round."""
    assert {risk.risk for risk in caught} == {attack.risk for attack in ATTACKS}
    means = [risk for risk in caught if risk.risk != "inference" or risk.attack.startswith("mean")]
    for risk in means:
        assert risk.found, (risk.risk, risk.attack)
        # sex, stage and ward together are few cells, in which a part of a person is not alone
        assert risk.normalised.value > (0.2 if risk.risk == "linkability" else 0.6), (risk.risk, risk.attack)


def test_copies_are_told_from_others_with_certainty(caught):
    """A membership attack that misses what lies at distance 0."""
    distance, density = (risk for risk in caught if risk.risk == "membership")
    for risk in (distance, density):
        assert risk.rate.value > 0.97
        assert risk.more[0].measure == "accuracy"
        assert risk.more[0].found.value > 0.97


def test_a_copied_column_is_given_away_whatever_its_kind(caught):
    """Inference that fails for numbers, or for a column with missing values."""
    columns = {risk.attack: risk for risk in caught if risk.risk == "inference"}
    assert columns["crp"].found
    assert columns["age"].found
    assert columns["ward"].found
    # 3 % are positive: the best constant guess is nearly always right, and no interval can exclude 0
    assert columns["rare"].without.value > 0.9


@pytest.mark.slow
@pytest.mark.parametrize("sizes", [(60, 60, 60), (300, 200, 80)])
def test_fresh_records_raise_no_alarm(sizes):
    """Intervals that treat descriptions, columns or tied records as independent, and cry wolf."""
    tables, alarms = 30, Counter()
    for seed in range(tables):
        found = attack_tables(fresh(sizes, seed), rng=np.random.default_rng(seed), effort=SMALL)
        columns = [risk for risk in found if risk.risk == "inference" and not risk.attack.startswith("mean")]
        alarms["columns"] += any(risk.found for risk in columns if "worst-off" not in risk.attack)
        alarms["columns, worst-off"] += any(risk.found for risk in columns if "worst-off" in risk.attack)
        alarms["the verdict"] += "Memorisation" in verdict(found)
        for risk in set(found) - set(columns):
            alarms[f"{risk.risk}, {risk.attack}"] += risk.found
    # at a true rate of 5 % more than 5 of 30 happen once in 300 times; attacks are meant to stay below
    assert max(alarms.values()) <= 5, alarms
    assert sum(alarms.values()) <= 0.05 * tables * len(alarms), alarms


def test_fresh_records_have_no_excess_on_average():
    """An attack that favours training records, such as a threshold chosen with their labels."""
    found: dict[str, list[float]] = {}
    for seed in range(5):
        for risk in attack_tables(fresh((100, 100, 50), seed), rng=np.random.default_rng(seed), effort=SMALL):
            if risk.risk != "inference" or risk.attack == "mean of the columns":
                found.setdefault(f"{risk.risk}, {risk.attack}", []).append(risk.excess.value)
    for name, values in found.items():
        error = np.std(values, ddof=1) / np.sqrt(len(values))
        assert abs(np.mean(values)) < 4 * error + 0.01, name


def test_counts_are_those_of_anonymeter():
    """Another definition where ours is meant to be anonymeter's: univariate descriptions, links, guesses.

    Stored from anonymeter 1.1.0 (SinglingOutEvaluator(n_attacks=10000).evaluate("univariate"),
    LinkabilityEvaluator(aux_cols=(["a", "b"], ["c", "d"])), InferenceEvaluator(secret="group"), 80 attacks
    each) on the same tables, in which nothing is tied, no record twice, and both scales are one.
    """
    tables, rng = half_copied(), np.random.default_rng(0)
    descriptions = of_one_column(codes(tables.synthetic, tables.schema), tables.schema, 10_000, rng)
    assert len(descriptions) == 328
    for frame, theirs in ((tables.train, 120), (tables.test, 2)):
        assert int((matches(descriptions, codes(frame, tables.schema)).sum(axis=1) == 1).sum()) == theirs
    linked = link_people(tables, (["a", "b"], ["c", "d"]), rng=rng)
    assert round(80 * linked.rate.value) == 37
    assert round(80 * linked.held_out.value) == 14
    guessed = guess(tables, "group", rng)
    assert (int(guessed.right[:80].sum()), int(guessed.right[80:].sum())) == (80, 75)


def test_membership_agrees_with_the_evaluation():
    """A second distance or a second ROC curve beside that of the disclosure evaluator."""
    tables = half_copied()
    options = {"train": tables.train, "test": tables.test, "schema": tables.schema, "seed": 0}
    measured = evaluate(tables.synthetic, **options)["membership_auc"]
    distance = attack_tables(tables, rng=np.random.default_rng(0), effort=SMALL)[-2]
    assert distance.more[0].found.value == pytest.approx(measured.value, abs=1e-12)
    assert distance.more[0].found.lower == pytest.approx(measured.lower, abs=1e-12)


def test_bounds_stand_where_they_are_proved_and_nowhere_else():
    """A bound beside an inference rate or singling out, which differential privacy does not bound."""
    proved = Proved(Profile.promised(1.0, 0.0, 1.0))
    found = attack_tables(half_copied(), rng=np.random.default_rng(0), effort=SMALL, proved=proved)
    for risk in found:
        bounded = risk.risk != "singling out" and "worst-off" not in risk.attack
        assert (risk.proved is not None) == bounded, risk.attack
        assert risk.attempts()[0].proved is None, "the rate itself has no bound"
    # a copy of the training table: that no epsilon of 1 allows, and the attempt says so
    copied = attack_tables(copying(), rng=np.random.default_rng(0), effort=SMALL, proved=proved)
    passed = {attempt.attack for risk in copied for attempt in risk.attempts() if attempt.passes}
    assert {"membership, distance, beyond held-out records", "membership, distance, one of two"} <= passed


def test_the_quick_attacks_are_few_and_internal():
    """A report flooded by columns, or numbers of real records that are not marked."""
    found = quick(half_copied(), rng=np.random.default_rng(0))
    assert len(found) == len({attempt.attack for attempt in found})
    assert len(found) <= 20
    assert all(attempt.internal for attempt in found)
    tables = half_copied()
    alone = Tables.of(tables.synthetic, train=tables.train, schema=tables.schema)
    assert quick(alone, rng=np.random.default_rng(0)) == ()


def test_tables_are_cut_to_the_effort():
    """A large table whose comparisons are not bounded."""
    effort = Effort(descriptions=20, counted=50, targets=120, work=1.0)
    found = attack_tables(copying(200), rng=np.random.default_rng(0), effort=effort)
    # however small the budget, a hundred records are attacked
    assert {risk.tries for risk in found if risk.risk == "linkability"} == {(100, 100)}
    assert found[3].tries == (600, 600), "six columns"
    for searches in (1, 6):
        real, synthetic = affordable(copying(200), searches, Effort(targets=120, work=1e7))
        assert real <= 120
        assert 2 * real * synthetic * searches * 15 <= 1e7, "15 coordinates in all"


@pytest.mark.slow
@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(schemas(), st.lists(st.integers(2, 12), min_size=3, max_size=3), st.integers(0, 99))
def test_tables_of_any_kind_and_size_can_be_attacked(schema, sizes, seed):
    """A crash, or a rate outside [0, 1], on few rows, constant columns or missing values."""
    made, train, test = (random_frame(schema, size, seed + i) for i, size in enumerate(sizes))
    tables = Tables.of(made, train=train, test=test, schema=schema)
    tiny = Effort(descriptions=10, work=1e6)
    found = attack_tables(tables, rng=np.random.default_rng(seed), effort=tiny)
    assert {"inference", "membership"} <= {risk.risk for risk in found}
    for risk in found:
        for rate in (risk.rate, risk.without, risk.held_out, risk.normalised):
            assert 0 <= rate.lower <= rate.value <= rate.upper <= 1
        assert -1 <= risk.excess.lower <= risk.excess.value <= risk.excess.upper <= 1
        assert json.loads(dump_json(risk.to_dict()))["risk"] == risk.risk
        assert [Attempt.from_dict(attempt.to_dict()) for attempt in risk.attempts()]
    assert in_words(found)
