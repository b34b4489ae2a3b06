"""Run the defender's whole procedure: models on random halves of the records, soft labels, the final model.

Everything that depends on the records is inside. So an attacker who is given the procedure is given all of
it. "Any attempt for the defender to have the last move" only overstates the privacy.

A classifier here learns from probabilities of the classes. Classifiers that take labels only are given a
weighted copy of each record for each class. The weighted log-loss of the copies is the cross-entropy of the
probabilities.

References
----------
Pedersen (2022), thesis, section 5.3 (the leave-out average, logits centred) and 5.4 (25 splits).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dpsynth.attacks.bayes import SMALLEST_STD, centred_logits
from dpsynth.checks import whole
from dpsynth.errors import InputError
from dpsynth.files.storage import carry_out
from dpsynth.research.ltu.trainers import class_probabilities, fitted
from dpsynth.research.soft_labels.targets import LeaveOut, Scheme, hard_targets

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]

#: how often a split is drawn again because a half has not every class
TRIES = 1000


class FittedClassifier(Protocol):
    """A trained model."""

    def predict_proba(self, X: Floats) -> Floats:
        """Return probabilities of shape (n, classes) for features of shape (n, d)."""


class Classifier(Protocol):
    """A way to train a model."""

    def fit(self, X: Floats, targets: Floats, seed: int) -> FittedClassifier:
        """Train on features of shape (n, d) and target probabilities of shape (n, classes)."""


@dataclass(frozen=True)
class WeightedCopies:
    """A scikit-learn classifier trained on a copy of each record for each class, weighted by its probability.

    Copies of weight 0 are left out, so that one-hot targets give exactly the ordinary fit.

    Parameters
    ----------
    estimator : scikit-learn classifier
        With ``predict_proba`` and a ``fit`` that takes ``sample_weight``, or a pipeline whose last step has
        them. Never fitted itself. Its ``random_state``, if any, is set from the seed.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> X, targets = np.array([[0.0], [1.0]]), np.array([[0.8, 0.2], [0.2, 0.8]])
    >>> WeightedCopies(LogisticRegression(C=1e6)).fit(X, targets, seed=0).predict_proba(X).round(2).tolist()
    [[0.8, 0.2], [0.2, 0.8]]
    """

    estimator: Any

    def __post_init__(self) -> None:
        from sklearn.utils.validation import has_fit_parameter

        name = type(self.estimator).__name__
        if not hasattr(self.estimator, "predict_proba"):
            raise InputError(f"estimator must have predict_proba, which {name} has not")
        if not has_fit_parameter(_last(self.estimator)[1], "sample_weight"):
            raise InputError(f"estimator must take sample_weight in fit, which {name} does not")

    def fit(self, X: Floats, targets: Floats, seed: int) -> FittedClassifier:
        """Train on weighted copies, see :class:`Classifier`."""
        record, label = np.nonzero(targets > 0.0)
        weights = {f"{_last(self.estimator)[0]}sample_weight": targets[record, label]}
        return _AllClasses(fitted(self.estimator, seed, X[record], label, **weights), targets.shape[1])


@dataclass(frozen=True)
class _AllClasses:
    """A scikit-learn model with a probability for each class, also for those that it was not trained on."""

    model: Any
    classes: int

    def predict_proba(self, X: Floats) -> Floats:
        return class_probabilities(self.model, X, self.classes)


def _last(estimator: Any) -> tuple[str, Any]:
    """The last step of a pipeline, with the prefix of its parameters. Else the estimator itself."""
    steps = getattr(estimator, "steps", None)
    return (f"{steps[-1][0]}__", steps[-1][1]) if steps else ("", estimator)


def leave_out(
    classifier: Classifier,
    X: Floats,
    targets: Floats,
    labels: Codes,
    *,
    splits: int = 25,
    seed: int = 0,
    jobs: int = 1,
) -> LeaveOut:
    """Train models on both halves of random splits and collect their logits.

    Parameters
    ----------
    classifier : Classifier
        Trains the models.
    X : ndarray of shape (n, d)
        Features.
    targets : ndarray of shape (n, classes)
        Targets of the models: one-hot labels, or soft ones if labels are updated recursively.
    labels : ndarray of int, shape (n,)
        Each class at least twice. A split is drawn again if a half lacks one.
    splits : int
        At least 2.
    seed : int
        Seed of the splits and the models.
    jobs : int
        Splits at a time.

    Raises
    ------
    InputError
        If a class has fewer than two records, or no split gives every class to both halves.
    """
    whole("splits", splits, 2)
    tasks = {f"{i:04d}": child for i, child in enumerate(np.random.SeedSequence(seed).spawn(splits))}
    counts = np.bincount(labels)
    if len(counts) < 2 or (counts[counts > 0] < 2).any() or (counts > 0).sum() < 2:
        raise InputError("labels must have at least two classes with at least two records each")
    found = carry_out(partial(_one_split, classifier, X, targets, labels), tasks, jobs=jobs)
    inside, outside = (np.array([found[label][side] for label in tasks]) for side in ("in", "out"))
    logits, label = centred_logits(outside), np.arange(len(labels))
    mean, std = logits.mean(axis=0), logits.std(axis=0, ddof=1)
    shift = (centred_logits(inside).mean(axis=0) - mean)[label, labels]
    return LeaveOut(mean, std, outside.mean(axis=0), shift / np.maximum(std[label, labels], SMALLEST_STD))


def halves(labels: Codes, rng: np.random.Generator) -> tuple[Codes, Codes]:
    """Split record numbers at random into n // 2 and n - n // 2 records, both with every class."""
    classes = len(np.unique(labels))
    for _ in range(TRIES):
        order = rng.permutation(len(labels))
        first, second = order[: len(labels) // 2], order[len(labels) // 2 :]
        if len(np.unique(labels[first])) == len(np.unique(labels[second])) == classes:
            return first, second
    raise InputError(f"no random split gave both halves all {classes} classes. Leave out the rarest class")


def _one_split(
    classifier: Classifier, X: Floats, targets: Floats, labels: Codes, seeds: np.random.SeedSequence
) -> Mapping[str, Any]:
    rng = np.random.default_rng(seeds)
    parts = halves(labels, rng)
    said = {side: np.empty_like(targets) for side in ("in", "out")}
    for mine, others in (parts, parts[::-1]):
        model = classifier.fit(X[mine], targets[mine], int(rng.integers(2**31)))
        said["in"][mine] = model.predict_proba(X[mine])
        said["out"][others] = model.predict_proba(X[others])
    return {side: values.tolist() for side, values in said.items()}


@dataclass(frozen=True)
class Procedure:
    """A way to train a model on soft labels.

    Parameters
    ----------
    classifier : Classifier
        Trains the final model.
    label_classifier : Classifier, optional
        Trains the models on halves. The same by default. A network may want more epochs there, because half
        the records make half the steps.
    splits : int
        Number of random splits, at least 2, of two models each.
    recursions : int
        How often the labels are computed: above 1, the models on halves are trained again, on the soft labels
        of the round before. This is an experiment, which Pedersen (2022) leaves to future work.
    """

    classifier: Classifier
    label_classifier: Classifier | None = None
    splits: int = 25
    recursions: int = 1

    def __post_init__(self) -> None:
        whole("splits", self.splits, 2)
        whole("recursions", self.recursions)

    def train(
        self, X: Floats, labels: Codes, classes: int, schemes: Sequence[Scheme], seed: int, jobs: int = 1
    ) -> dict[str, FittedClassifier]:
        """Train one final model for each scheme, by its name. ``labels`` lie in [0, classes).

        The schemes share the models on halves of the first recursion, as one would who tries several.
        """
        found = self.soft_targets(X, labels, classes, schemes, seed, jobs)
        return {
            name: self.classifier.fit(X, targets, derived(seed, self.recursions + number))
            for number, (name, targets) in enumerate(found.items())
        }

    def soft_targets(
        self, X: Floats, labels: Codes, classes: int, schemes: Sequence[Scheme], seed: int, jobs: int = 1
    ) -> dict[str, Floats]:
        """Target probabilities of shape (n, classes) of each scheme, by its name."""
        if len({scheme.name for scheme in schemes}) < len(schemes):
            raise InputError("schemes must have different names")
        classifier = self.label_classifier or self.classifier

        def known(targets: Floats, seed: int) -> LeaveOut:
            return leave_out(classifier, X, targets, labels, splits=self.splits, seed=seed, jobs=jobs)

        shared: LeaveOut | None = None
        if any(scheme.needs_label_models for scheme in schemes):
            shared = known(hard_targets(labels, classes), seed)
        made: dict[str, Floats] = {}
        for scheme in schemes:
            targets = scheme.targets(labels, classes, shared)
            for number in range(1, self.recursions if scheme.needs_label_models else 1):
                targets = scheme.targets(labels, classes, known(targets, derived(seed, number)))
            made[scheme.name] = targets
        return made


def derived(seed: int, number: int) -> int:
    """Another seed that follows from a seed and a number."""
    return int(np.random.SeedSequence((seed, number)).generate_state(1)[0])
