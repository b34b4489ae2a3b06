"""Trainers of which it is known how well they can be attacked, and scikit-learn's."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from known_models import RandomisedResponse, constant, memoriser, shuffler
from sklearn.linear_model import LogisticRegression, Perceptron, SGDClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from dpsynth.attacks.closed_forms import dp_accuracy
from dpsynth.errors import InputError
from dpsynth.research.ltu import retraining
from dpsynth.research.ltu.experiment import attack_trainer
from dpsynth.research.ltu.rounds import Design
from dpsynth.research.ltu.trainers import Sides, Trainer, class_probabilities, classifiers, parameters


def sides(n=40, d=3, classes=2, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(2 * n, d))
    y = (x[:, 0] + rng.normal(size=2 * n) > 0).astype(int)
    if classes > 2:
        y = rng.integers(0, classes, 2 * n)
    return Sides(x, y, n)


def by_strategy(found):
    return {one.strategy: one for one in found.rounds}


def test_a_memoriser_gives_everybody_away():
    """Catches a score, a retraining or a learned combination with a wrong sign: accuracy 1, privacy 0."""
    found = attack_trainer(
        memoriser, sides(), Design(scenario="unseeded", retrainings=2, splits=3), rounds=40
    )
    rounds = by_strategy(found)
    for name in (
        "loss",
        "learned",
        "retraining_predictions",
        "retraining_pair",
        "bayes_pair",
        "bayes_shadow",
    ):
        assert rounds[name].accuracy.value == 1.0, name
        assert rounds[name].privacy.value == 0.0, name
    pairs = {one.strategy: one for one in found.pairs}
    assert pairs["loss"].pairwise.value == pairs["loss"].per_record.value == 1.0
    assert set(pairs["loss"].individual) == {1.0}
    assert found.utility.trained.value == 1.0
    assert found.loss.most_probable > 0.99
    # 1 - p is 0 for members and 1/2 for the others: right in 1/2 + (1/2 - 0) / 2
    assert rounds["bounded_loss"].accuracy.lower < 0.75 < rounds["bounded_loss"].accuracy.upper


def test_a_constant_model_gives_nothing_away():
    """Catches a guess that looks at the label of membership, or ties that are always decided one way."""
    found = attack_trainer(constant, sides(), Design(retrainings=2, splits=2), rounds=100)
    rounds = by_strategy(found)
    for name in ("confidence", "entropy", "retraining_predictions", "retraining_pair", "bayes_pair"):
        assert rounds[name].tied == 100, name
        assert abs(rounds[name].right - 50) < 4 * 5, name
    for one in found.rounds:
        assert one.accuracy.lower < 0.6, one.strategy
    assert {one.strategy: one.pairwise.value for one in found.pairs}["entropy"] == 0.5


def test_randomised_response_is_attacked_up_to_its_bound():
    """Catches an attack above e^eps / (1 + e^eps), or one that does not come near it with many retrainings.

    Defender's records are even, reserved ones odd, so that each swap changes the true answer.
    """
    x = np.repeat([0.0, 1.0], 20)[:, None]
    pool = Sides(x, np.tile([0, 1], 20), 20)
    epsilon = math.log(3)
    bound = dp_accuracy(epsilon, 0.0)
    design = Design(scenario="unseeded", defender="anew", retrainings=24, seed=1)
    # several strategies are tried, and each interval must hold
    found = attack_trainer(RandomisedResponse(epsilon), pool, design, rounds=100, proved=bound, level=0.999)
    bayes = by_strategy(found)["bayes_pair"].accuracy
    assert bayes.lower <= bound <= bayes.upper
    assert bayes.value > 0.68
    assert {(attempt.proved, attempt.contradicts) for attempt in found.attempts()} == {(bound, False)}
    assert found.pairs == () and found.utility is None


def test_order_is_known_in_the_original_scenario_alone():
    """Catches scenarios that give the attacker too much: a trainer that looks at the first record only.

    With the order known, only pairs whose member comes first differ; without it, the attacker's two models
    differ by chance, and never tell more.
    """
    pool = sides(n=4)
    original = attack_trainer(shuffler, pool, Design(record=0), rounds=40)
    found = by_strategy(original)["retraining_predictions"]
    unlike = [np.sign(pool.x[0, 0]) != np.sign(row[0]) for row in pool.x[4:]]
    assert any(unlike) and found.tied < 40
    assert found.accuracy.value > 0.6
    others = attack_trainer(shuffler, pool, Design(record=1), rounds=40)
    assert by_strategy(others)["retraining_predictions"].tied == 40


def test_seed_is_known_in_all_but_one_scenario():
    """Catches a scenario that hands the attacker the seed, or keeps it back."""
    rng = np.random.default_rng(0)
    known = [retraining.attackers_procedure(s, 5, 17, rng) for s in ("original", "random", "unseeded")]
    assert [one.seed == 17 for one in known] == [True, True, False]
    assert [one.order is None for one in known] == [True, False, False]
    assert sorted(known[1].order) == list(range(5))


@pytest.mark.parametrize("scenario", ["original", "random", "unseeded"])
@pytest.mark.parametrize("name", ["logistic_regression", "ridge", "naive_bayes"])
def test_deterministic_trainers_have_no_privacy(name, scenario):
    """Catches a retraining attack that fails on what Theorem 4.2.4 says, whatever order and seed."""
    found = attack_trainer(classifiers()[name], sides(), Design(scenario=scenario), rounds=8)
    rounds = by_strategy(found)
    assert rounds["retraining_predictions"].accuracy.value == 1.0
    assert rounds["retraining_parameters"].accuracy.value == 1.0


@pytest.mark.parametrize("name", ["sgd", "perceptron", "mlp", "random_forest"])
def test_seeded_trainers_have_no_privacy_where_order_is_known(name):
    """Catches a trainer whose seed is not set everywhere: the same records in the same order, one model."""
    trainer = classifiers()[name]
    if name in ("mlp", "random_forest"):
        small = {"mlp": {"max_iter": 5}, "random_forest": {"n_estimators": 5}}[name]
        trainer = Trainer(trainer.estimator.set_params(**small))
    found = attack_trainer(trainer, sides(), rounds=10)
    assert by_strategy(found)["retraining_predictions"].accuracy.value >= 0.9
    same = [trainer(*_xy(sides()), 5) for _ in range(2)]
    assert retraining.parameter_distance(parameters(same[0]), parameters(same[1])) == 0.0


def _xy(pool):
    return pool.x[: pool.n_defender], pool.y[: pool.n_defender]


def test_every_seed_inside_a_pipeline_is_set():
    """Catches a random_state of a step that keeps its own randomness."""
    trainer = Trainer(make_pipeline(StandardScaler(), SGDClassifier()))
    x, y = _xy(sides())
    first, again, other = trainer(x, y, 3), trainer(x, y, 3), trainer(x, y, 4)
    assert len(parameters(first)) > 2
    assert retraining.parameter_distance(parameters(first), parameters(again)) == 0.0
    assert retraining.parameter_distance(parameters(first), parameters(other)) > 0.0


def test_ten_classifiers_speak_of_every_class():
    """Catches a classifier without probabilities, or one whose columns are not the classes' own."""
    pool = sides(classes=3)
    assert len(classifiers()) == 10
    x, y = _xy(pool)
    for name, trainer in classifiers().items():
        estimator = trainer.estimator
        if name == "mlp":
            estimator = estimator.set_params(max_iter=5)
        model = Trainer(estimator)(x[y != 1], y[y != 1], 0)
        found = class_probabilities(model, pool.x, 3)
        assert found.shape == (80, 3) and (found[:, 1] == 0).all(), name
        assert (found.argmax(axis=1) == model.predict(pool.x)).mean() > 0.99, name


def test_margins_become_probabilities():
    """Catches margins of a linear model with the classes exchanged."""
    x, y = _xy(sides())
    model = Perceptron(random_state=0).fit(x, y)
    assert (class_probabilities(model, x, 2).argmax(axis=1) == model.predict(x)).all()


def test_parameters_of_models():
    """Catches parameters that leave out what a model predicts with: trees, nested and plain ones."""
    x, y = _xy(sides())
    tree = DecisionTreeClassifier(random_state=0)
    for estimator in (tree, LogisticRegression(), make_pipeline(StandardScaler(), LogisticRegression())):
        one, two = (parameters(estimator.__sklearn_clone__().fit(x + shift, y)) for shift in (0.0, 0.1))
        assert 0 < retraining.parameter_distance(one, two) < np.inf
        assert retraining.parameter_distance(one, one) == 0.0
    stump = DecisionTreeClassifier(max_depth=1, random_state=0).fit(x, y)
    deep = tree.fit(x, y)
    assert retraining.parameter_distance(parameters(stump), parameters(deep)) == np.inf
    shown = parameters(KNeighborsClassifier().fit(x, y))
    assert max((len(array) for array in shown), default=0) < len(x)


def test_a_candidate_takes_the_place_of_the_missing_record():
    """Catches a candidate that is put at the end, where an order-minding trainer would give it away."""
    assert retraining.candidate_rows(4, 2, 9).tolist() == [0, 1, 9, 3]


def test_shadow_models_have_every_record_in_half_of_them():
    """Catches a shadow model that is trained on a record which is noted as left out."""
    pool = sides(n=5)
    rng = np.random.default_rng(0)
    logits, members = retraining.shadow_pair(memoriser, pool, "unseeded", 1, rng)
    assert (members.sum(axis=0) == 1).all() and members.sum(axis=1).tolist() == [5, 5]
    assert (np.abs(logits) > 1).tolist() == members.tolist()


def test_evidence_with_many_models_knows_each_spread():
    """Catches a Gaussian evidence with exchanged sides, against scipy's densities."""
    from scipy.stats import norm

    rng = np.random.default_rng(3)
    first, second = rng.normal([1, 0], [1, 2], (40, 2)), rng.normal([-1, 0], [0.5, 1], (40, 2))
    seen = np.array([0.2, -1.5])

    def density(outputs):
        return norm.logpdf(seen, outputs.mean(axis=0), outputs.std(axis=0, ddof=1)).sum()

    found = retraining.pair_evidence(seen, first, second)
    assert found == pytest.approx(density(first) - density(second))


def test_pairs_tell_more_than_single_records():
    """Catches pairwise and per-record accuracy exchanged: the same attack is better on pairs (figure 4.3)."""
    pool = sides(n=300, d=10)
    found = attack_trainer(
        Trainer(DecisionTreeClassifier(max_depth=6)), pool, Design(retrainings=0), rounds=5
    )
    best = found.strongest_pairs
    assert best.pairwise.value > best.per_record.value > 0.55
    assert np.mean(best.individual) == pytest.approx(best.pairwise.value)
    assert np.mean(best.individual_reserved) == pytest.approx(best.pairwise.value)
    assert len(best.individual_reserved) == pool.n_reserve
    assert [low.fpr for low in best.low_rates] == [0.1]


def test_rounds_go_on_in_a_folder(tmp_path):
    """Catches rounds that change when more of them are asked for."""
    trainer, pool = classifiers()["ridge"], sides()
    few = attack_trainer(trainer, pool, Design(splits=2), rounds=4, folder=tmp_path / "x")
    written = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "x" / "rounds").iterdir()}
    assert len(written) == 6
    more = attack_trainer(trainer, pool, Design(splits=3), rounds=8, folder=tmp_path / "x")
    kept = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "x" / "rounds").iterdir()}
    assert len(kept) == 11 and all(kept[name] == when for name, when in written.items())
    alone = attack_trainer(trainer, pool, Design(splits=3), rounds=8)
    assert alone.to_dict() == more.to_dict()
    assert by_strategy(few)["loss"].right <= by_strategy(more)["loss"].right
    json.dumps(more.to_dict())


def test_another_experiment_is_refused(tmp_path):
    """Catches rounds of other records or another scenario in one sum."""
    trainer, pool = classifiers()["ridge"], sides()
    attack_trainer(trainer, pool, rounds=1, folder=tmp_path / "x")
    for other in (
        lambda: attack_trainer(trainer, sides(seed=1), rounds=1, folder=tmp_path / "x"),
        lambda: attack_trainer(trainer, replace(pool, n_defender=39), rounds=1, folder=tmp_path / "x"),
        lambda: attack_trainer(trainer, pool, Design(scenario="random"), rounds=1, folder=tmp_path / "x"),
        lambda: attack_trainer(classifiers()["svc"], pool, rounds=1, folder=tmp_path / "x"),
    ):
        with pytest.raises(InputError, match="other settings"):
            other()


def test_bad_requests_are_told_before_work():
    """Catches a bound that is held against one given model, and settings that no round can obey."""
    pool = sides(n=4)
    with pytest.raises(InputError, match="anew"):
        attack_trainer(constant, pool, rounds=1, proved=0.7)
    with pytest.raises(InputError, match="record must be below 4"):
        attack_trainer(constant, pool, Design(record=4), rounds=1)
    for wrong in (
        {"scenario": "known"},
        {"splits": 1},
        {"retrainings": -1},
        {"splits": 2, "defender": "anew"},
    ):
        with pytest.raises(InputError, match=next(iter(wrong))):
            Design(**wrong)
    with pytest.raises(InputError, match="both sides"):
        Sides(np.zeros((3, 1)), np.zeros(3, dtype=int), 3)
    with pytest.raises(InputError, match="whole numbers"):
        Sides(np.zeros((3, 1)), np.array([0.0, 1.0, 0.0]), 2)
