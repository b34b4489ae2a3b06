"""Label models and the whole procedure: a naive transcription, and classifiers of known answer."""

from __future__ import annotations

import numpy as np
import pytest
from known_classifiers import Constant, Memoriser
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from dpsynth.errors import InputError
from dpsynth.research.soft_labels.procedure import Procedure, WeightedCopies, derived, halves, leave_out
from dpsynth.research.soft_labels.targets import Hard, OptimallySoft, PerRecord, hard_targets


def records(n=40, classes=2, seed=0):
    rng = np.random.default_rng(seed)
    labels = np.arange(n) % classes
    return rng.normal(size=(n, 3)) + labels[:, None], labels


def test_leave_out_is_its_naive_transcription():
    """Catches a record whose own model counts as leave-out, logits that are not centred, wrong moments.

    The transcription trains on the same halves, keeps a list of the logits of each record from models that
    had not seen it, and takes mean and standard deviation of the list with numpy.
    """
    X, labels = records(classes=3, n=42)
    model, targets = WeightedCopies(GaussianNB()), hard_targets(labels, 3)
    fast = leave_out(model, X, targets, labels, splits=6, seed=5)
    out: list[list] = [[] for _ in labels]
    for child in np.random.SeedSequence(5).spawn(6):
        first, second = halves(labels, np.random.default_rng(child))
        for mine, others in ((first, second), (second, first)):
            fitted = GaussianNB().fit(X[mine], labels[mine])
            for i in others:
                out[i].append(fitted.predict_proba(X[[i]])[0])
    for i in range(len(labels)):
        assert len(out[i]) == 6
        logits = np.log(np.maximum(out[i], 1e-6))
        logits = logits - logits.mean(axis=1, keepdims=True)
        np.testing.assert_allclose(fast.mean[i], logits.mean(axis=0), atol=1e-9)
        np.testing.assert_allclose(fast.std[i], logits.std(axis=0, ddof=1), atol=1e-9)
        np.testing.assert_allclose(fast.mean_probability[i], np.mean(out[i], axis=0))


def test_constant_models_have_no_spread():
    """Catches spread made of nothing: the soft labels of a constant model are its answer, for every alpha."""
    X, labels = records()
    known = leave_out(Constant(), X, hard_targets(labels, 2), labels, splits=4)
    np.testing.assert_allclose(known.std, 0.0, atol=1e-12)
    np.testing.assert_allclose(known.exposure, 0.0, atol=1e-12)
    targets = Procedure(Constant(), splits=4).soft_targets(X, labels, 2, [OptimallySoft(5.0)], 0)
    np.testing.assert_allclose(targets["soft 5"], np.tile([1 / 3, 2 / 3], (40, 1)))


def test_own_label_is_not_in_the_leave_out_mean():
    """Catches a record in a model of its own leave-out mean: a memoriser would give its label away."""
    X, labels = records()
    known = leave_out(Memoriser(), X, hard_targets(labels, 2), labels, splits=5)
    np.testing.assert_array_equal(known.mean_probability, np.full((40, 2), 0.5))
    assert (known.exposure > 100).all()


def test_halves_are_halves_with_every_class():
    """Catches a half without the rare class, or a record in both or neither."""
    labels = np.array([0] * 19 + [1] * 2)
    for seed in range(20):
        first, second = halves(labels, np.random.default_rng(seed))
        assert sorted([*first, *second]) == list(range(21)) and len(first) == 10
        assert labels[first].sum() == labels[second].sum() == 1


def test_one_hot_targets_give_the_ordinary_fit():
    """Catches copies of weight 0 that count, as they would for a tree's smallest leaf."""
    X, labels = records(60)
    tree = DecisionTreeClassifier(min_samples_leaf=7, random_state=3)
    ours = WeightedCopies(tree).fit(X, hard_targets(labels, 2), seed=3)
    np.testing.assert_array_equal(ours.predict_proba(X), tree.fit(X, labels).predict_proba(X))


def test_weighted_copies_minimise_the_cross_entropy_of_the_targets():
    """Catches weights at the wrong class: the cross-entropy's gradient vanishes at scikit-learn's fit."""
    X, _labels = records(200)
    targets = np.random.default_rng(1).dirichlet([1, 1], size=200)
    model = WeightedCopies(LogisticRegression(C=1e9, tol=1e-10, max_iter=2000)).fit(X, targets, seed=0)
    gradient = (model.predict_proba(X)[:, 1] - targets[:, 1]) @ np.c_[X, np.ones(200)]
    np.testing.assert_allclose(gradient, 0.0, atol=1e-4)


def test_pipelines_are_weighted_and_missing_classes_have_a_column():
    """Catches a pipeline that loses its weights, and probabilities whose columns move up."""
    X, _labels = records()
    pipeline = make_pipeline(StandardScaler(), LogisticRegression())
    p = WeightedCopies(pipeline).fit(X, np.tile([0.0, 0.5, 0.5], (40, 1)), seed=0).predict_proba(X)
    assert p.shape == (40, 3)
    np.testing.assert_allclose(p, np.tile([0.0, 0.5, 0.5], (40, 1)), atol=1e-6)


@pytest.mark.parametrize(
    ("estimator", "words"),
    [(KNeighborsClassifier(), "must take sample_weight"), (StandardScaler(), "must have predict_proba")],
)
def test_estimators_that_cannot_are_refused_by_name(estimator, words):
    """Catches weights that are dropped in silence."""
    with pytest.raises(InputError, match=words):
        WeightedCopies(estimator)


def test_final_models_learn_from_their_own_scheme():
    """Catches targets that are swapped between schemes, or a final model trained on the hard labels."""
    X, labels = records()
    procedure, schemes = Procedure(Memoriser(), splits=3), [Hard(), OptimallySoft(1.0), PerRecord(1.0)]
    trained = procedure.train(X, labels, 2, schemes, seed=1)
    np.testing.assert_array_equal(trained["hard"].predict_proba(X), hard_targets(labels, 2))
    np.testing.assert_allclose(trained["soft 1"].predict_proba(X), 0.5)


def test_recursion_trains_label_models_on_soft_labels():
    """Catches recursions that repeat the first: two by hand are two in one call."""
    X, labels = records()
    model, scheme = WeightedCopies(GaussianNB()), OptimallySoft(0.5)
    once = Procedure(model, splits=4).soft_targets(X, labels, 2, [scheme], 7)["soft 0.5"]
    again = leave_out(model, X, once, labels, splits=4, seed=derived(7, 1))
    twice = Procedure(model, splits=4, recursions=2).soft_targets(X, labels, 2, [scheme], 7)["soft 0.5"]
    np.testing.assert_allclose(twice, scheme.targets(labels, 2, again))
    assert np.abs(twice - once).max() > 1e-3


def test_faults_are_named():
    """Catches a class of one record, which no split can put into both halves."""
    X, labels = records()
    labels[labels == 1] = 0
    labels[0] = 1
    with pytest.raises(InputError, match="at least two records each"):
        leave_out(Constant(), X, hard_targets(labels, 2), labels)
    with pytest.raises(InputError, match="splits must be a whole number of at least 2"):
        Procedure(Constant(), splits=1)
    with pytest.raises(InputError, match="different names"):
        Procedure(Constant(), splits=2).soft_targets(*records(), 2, [Hard(), Hard()], 0)
