"""The attack that runs the whole procedure, on classifiers of known answer."""

from __future__ import annotations

import numpy as np
import pytest
from known_classifiers import Constant, IgnoresLabels, Memoriser

from dpsynth.attacks.attempt import Attempt
from dpsynth.errors import InputError
from dpsynth.research.soft_labels.attack import LabelledFeatures, attack_procedure
from dpsynth.research.soft_labels.procedure import Procedure
from dpsynth.research.soft_labels.targets import Hard, Interpolated, OptimallySoft

BOTH = (Hard(), OptimallySoft(0.0))


def records(n=60):
    rng = np.random.default_rng(0)
    return LabelledFeatures(rng.normal(size=(n, 2)), np.arange(n) % 2)


def attacked(classifier, schemes=BOTH, rounds=4, **how):
    return attack_procedure(
        Procedure(classifier, splits=2), schemes, records(), classes=2, rounds=rounds, **how
    )


def test_memoriser_is_caught_with_hard_labels_and_not_with_leave_out_labels():
    """Catches an attack that does not see what it must, and a defence that trains on the labels.

    A memoriser says 1/2 of records that it has not seen, so its leave-out labels are 1/2, and then it says
    1/2 of all. In the probability form with alpha 1 the labels are the hard ones again.
    """
    found = attacked(Memoriser(), (Hard(), OptimallySoft(0.0), OptimallySoft(1.0), Interpolated(1.0)))
    aucs = {name: found.aucs(name).tolist() for name in found.logits}
    coins, certain = [0.5] * 8, [1.0] * 8
    assert aucs == {"hard": certain, "soft 0": coins, "soft 1": coins, "interpolated 1": certain}
    inside, outside = found.membership("hard")
    assert inside.min() > 0.99 and outside.max() < 0.01


def test_constant_model_gives_a_coin():
    """Catches evidence made of nothing: log-odds 0 everywhere, exactly."""
    found = attacked(Constant())
    assert not found.log_odds("hard").any() and found.aucs("soft 0").tolist() == [0.5] * 8


def test_model_that_ignores_labels_is_near_a_coin():
    """Catches a target model among its own shadows: over 20 rounds AUROC is 1/2."""
    found = attacked(IgnoresLabels(), (Hard(),), rounds=20)
    assert found.aucs("hard").mean() == pytest.approx(0.5, abs=0.03)


def test_every_record_is_in_one_model_of_each_round():
    """Catches halves that overlap, and members that are noted for the wrong model."""
    found = attacked(Memoriser())
    np.testing.assert_array_equal(found.members[0::2], ~found.members[1::2])
    np.testing.assert_array_equal(found.rounds, [0, 0, 1, 1, 2, 2, 3, 3])
    # a memoriser's logits show who was in
    np.testing.assert_array_equal(np.abs(found.logits["hard"]) > 1, found.members)


@pytest.mark.parametrize("jobs", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_rounds_resume_and_are_the_same_side_by_side(jobs, tmp_path):
    """Catches rounds that depend on how many run at a time, or are lost when more are asked for."""
    few = attacked(Memoriser(), rounds=3, folder=tmp_path / "kept")
    more = attacked(Memoriser(), rounds=5, folder=tmp_path / "kept", jobs=jobs)
    alone = attacked(Memoriser(), rounds=5)
    np.testing.assert_array_equal(more.members, alone.members)
    np.testing.assert_array_equal(few.logits["hard"], alone.logits["hard"][:6])
    with pytest.raises(InputError, match="other settings or records"):
        attacked(Constant(), rounds=3, folder=tmp_path / "kept")


def test_errors_are_of_the_records_left_out():
    """Catches errors measured on the training half: a memoriser has none there, and 1/2 elsewhere."""
    true = LabelledFeatures(records().X, records().labels, 1 - records().labels)
    found = attack_procedure(
        Procedure(Memoriser(), splits=2), [Hard()], true, classes=2, rounds=3, validation=true
    )
    # ties go to the first class, which half of the labels are
    for test, validation in zip(
        found.errors["hard"]["test"], found.errors["hard"]["validation"], strict=True
    ):
        assert 0.2 < test < 0.8 and 0.1 < validation < 0.4
    np.testing.assert_allclose(
        found.errors["hard"]["validation true"], 1 - found.errors["hard"]["validation"]
    )


def test_attempts_are_records_for_the_report():
    """Catches a result that the report cannot hold, or that claims a bound: nothing is proved here."""
    attempts = attacked(Memoriser()).attempts()
    assert [Attempt.from_dict(attempt.to_dict()) for attempt in attempts] == list(attempts)
    assert {attempt.proved for attempt in attempts} == {None} and all(a.internal for a in attempts)
    accuracy = {a.attack: a.found.value for a in attempts if a.measure == "accuracy"}
    assert accuracy == {"Bayes attack on hard labels": 1.0, "Bayes attack on soft 0 labels": 0.5}
