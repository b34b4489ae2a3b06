"""The adversary against trainings of ours: which records differ, rounds that resume, labels that stay."""

from __future__ import annotations

import json

import numpy as np
import pytest

from dpsynth import datasets
from dpsynth.audits import adversary as critic
from dpsynth.audits.adversary import Setting, quick_attempts
from dpsynth.errors import InputError
from dpsynth.privacy.profile import Profile
from dpsynth.privacy.release import Plan
from dpsynth.research.adversary import dp_sgd
from dpsynth.research.adversary.dp_sgd import DpSgd, LabelledPoints
from dpsynth.research.adversary.playing import play
from dpsynth.table.encoder import Layout
from dpsynth.wgan.settings import TrainingSettings

RNG = np.random.default_rng(0)
TRAIN = LabelledPoints(RNG.random((40, 3)), RNG.integers(2, size=40))
POOL = LabelledPoints(RNG.random((30, 3)), RNG.integers(2, size=30))
LAYOUT = Layout(3, ((3, 5),))


def of_classifier(**change):
    told = Setting(**({"steps": 10, "noise_multiplier": 4.0} | change))
    return dp_sgd.classifier_subject("toy", TRAIN, POOL, 2, DpSgd(), told)


def of_critic(**change):
    told = Setting(**({"steps": 6, "noise_multiplier": 3.0} | change))
    training = TrainingSettings(critic_hidden=(8, 6), generator_hidden=(5,), latent=3)
    points = np.hstack([RNG.random((40, 3)), np.eye(2)[RNG.integers(2, size=40)]])
    return critic.critic_subject("toy", points, points[::-1] * 1.0, LAYOUT, training, told)


def test_the_worst_case_moves_more_than_any_record():
    """Catches a made-up record that is weaker than real ones, or a part of the bound above 1."""
    moved = {
        (neighbour, choice): play(
            of_classifier(neighbour=neighbour, choice=choice, noise_multiplier=8.0), belief=0.9, runs=10
        ).moved.mean()
        for neighbour in ("removed", "replaced")
        for choice in ("dataset", "gradient", "worst-case")
    }
    for neighbour in ("removed", "replaced"):
        worst = moved[neighbour, "worst-case"]
        assert worst >= 0.97 * max(moved[neighbour, choice] for choice in ("dataset", "gradient"))
        assert 0.9 < worst <= 1 + 1e-9


def test_the_differing_record_is_in_one_table_alone():
    """Catches a record that both tables hold, or two records that differ."""
    subject = of_classifier()
    assert len(subject.others) == len(TRAIN) - 1
    assert not (subject.others.points == subject.first.points).all(axis=1).any()
    assert subject.second is None
    replaced = of_classifier(neighbour="replaced")
    assert (POOL.points == replaced.second.points).all(axis=1).any()
    assert len(of_classifier(choice="worst-case").others) == len(TRAIN) - 1
    near, far = (of_classifier(neighbour="replaced", rank=rank) for rank in (-1, 0))
    assert near.distance < far.distance


def test_rounds_go_on_where_they_stopped(tmp_path):
    """Catches rounds that are carried out twice, or runs of another number or seed than asked for."""
    seen = []
    first = play(
        of_classifier(), belief=0.9, runs=60, folder=tmp_path / "a", on_round=lambda *r: seen.append(r[2])
    )
    assert seen == ["runs-000000-000050", "runs-000050-000060"]
    seen.clear()
    more = play(
        of_classifier(), belief=0.9, runs=100, folder=tmp_path / "a", on_round=lambda *r: seen.append(r[2])
    )
    assert seen == ["runs-000050-000100"]
    np.testing.assert_array_equal(more.log_odds[:60], first.log_odds)
    assert len(np.unique(more.log_odds[:, -1])) == 100 and more.worlds.sum() == 50
    with pytest.raises(InputError, match="other settings"):
        play(of_classifier(noise_multiplier=5.0), belief=0.9, runs=100, folder=tmp_path / "a")
    with pytest.raises(InputError, match="other settings"):
        play(of_classifier(), belief=0.9, runs=100, seed=1, folder=tmp_path / "a")


def test_what_is_not_private_says_so_everywhere(tmp_path):
    """Catches noise scaled to two records in a result, a line or a report that does not say so."""
    played = play(of_classifier(noise="local"), belief=0.9, runs=20, folder=tmp_path / "a")
    assert all("NOT PRIVATE" in line for line in played.page().to_text().splitlines())
    record = played.to_dict()
    assert not record["private"] and "NOT PRIVATE" in record["label"] and "NOT PRIVATE" in record["attack"]
    assert played.attempts() == () and record["attempts"] == []
    for path in [tmp_path / "a" / "started.json", *(tmp_path / "a" / "rounds").iterdir()]:
        assert "NOT PRIVATE" in json.dumps(json.loads(path.read_text()))
    private = play(of_classifier(), belief=0.9, runs=20)
    assert "NOT PRIVATE" not in private.page().to_text() and len(private.attempts()) == 2


def test_the_accounting_is_of_the_setting():
    """Catches a replaced record accounted for as one more or less, or sampling left out."""
    removed, replaced = Setting(9, 6.0), Setting(9, 12.0, neighbour="replaced")
    assert removed.profile().tv() == pytest.approx(replaced.profile().tv())
    assert Setting(9, 6.0, sampling_prob=0.3).profile().tv() < removed.profile().tv()


def test_tables_of_the_registry_are_encoded():
    """Catches points outside the unit cube, on which the made-up records' bounds rest."""
    train, test = datasets.train_test(datasets.load("breast_cancer"))
    for records in dp_sgd.labelled_points(train, test)[:2]:
        assert records.points.min() >= 0.0 and records.points.max() <= 1.0
    points, _, layout = critic.encoded(train, test)
    assert points.shape == (285, layout.dim) and points.min() >= 0.0 and points.max() <= 1.0


@pytest.mark.slow
def test_the_critic_stays_within_its_bound(request):
    """Catches a critic whose records move a step by more than the accounting allows, or hardly at all."""
    made_up = play(of_critic(choice="worst-case", noise_multiplier=1.0), belief=0.9, runs=50)
    request.getfixturevalue("eager_steps")  # so few that to compile them takes longer
    replaced = play(of_critic(neighbour="replaced", noise_multiplier=2.0), belief=0.9, runs=2)
    for played in (made_up, replaced):
        assert played.moved.min() > 0.05 and played.moved.max() < 1 + 1e-4
        assert not any(attempt.contradicts for attempt in played.attempts(0.999))
    # the beliefs' own reckoning and what is reached agree: the log-odds are those of the release
    reached, reckoned = made_up.game.advantage(0.999), made_up.game.reckoned_advantage()
    assert reached.lower > 0.1 and reached.lower < reckoned.value < reached.upper


@pytest.mark.slow
@pytest.mark.usefixtures("eager_steps", "few_trials")
def test_a_quick_look_has_the_worst_case_and_this_table(monkeypatch):
    """Catches a run's report whose adversary plays another plan, or a simulation marked as about records."""
    points = np.hstack([RNG.random((40, 3)), np.eye(2)[RNG.integers(2, size=40)]])
    training = TrainingSettings(critic_hidden=(8, 6), generator_hidden=(5,), latent=3)
    plan = Plan(sampling_prob=0.5, expected_batch=20.0, steps=100, noise_multiplier=8.0)
    monkeypatch.setattr(critic, "WATCHED_STEPS", 5)
    advantage, passed, real = quick_attempts(plan, training, LAYOUT, points, name="toy")
    assert advantage.proved == pytest.approx(Profile([plan.event]).tv())
    assert not (advantage.internal or passed.internal) and real.internal
    assert advantage.found.lower < advantage.proved < advantage.found.upper
    assert not advantage.contradicts and not passed.contradicts
    assert 0.02 < real.found.value < real.proved == advantage.proved
    silent = Plan(sampling_prob=0.5, expected_batch=20.0, steps=100, noise_multiplier=None)
    assert quick_attempts(silent, training, LAYOUT, points, name="toy") == ()
