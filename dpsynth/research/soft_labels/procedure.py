"""The defender's whole procedure: label models on halves, soft labels, the final model.

Everything that depends on the records is inside, so that an attacker who is given the procedure is given all
of it ("any attempt for the defender to have the last move" only overstates the privacy).

References
----------
Pedersen (2022), thesis, sections 5.3 and 5.4.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpsynth.checks import whole
from dpsynth.errors import InputError
from dpsynth.research.soft_labels.classifiers import Classifier, FittedClassifier
from dpsynth.research.soft_labels.label_models import LeaveOut, leave_out
from dpsynth.research.soft_labels.targets import Scheme, one_hot

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]


@dataclass(frozen=True)
class Procedure:
    """A way to train a model on soft labels.

    Parameters
    ----------
    classifier : Classifier
        Trains the final model.
    label_classifier : Classifier, optional
        Trains the models on halves; the same by default. A network may want more epochs there, because half
        the records make half the steps.
    splits : int
        Number of random splits, at least 2; each trains two models.
    recursions : int
        How often the labels are computed: above 1, the models on halves are trained again, on the soft
        labels of the round before. An experiment; the thesis leaves it to future work.
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
        """Train one final model for each scheme.

        The schemes share the models on halves of the first recursion, as one would who tries several.

        Parameters
        ----------
        X : ndarray of shape (n, d)
        labels : ndarray of int, shape (n,)
            In [0, classes).
        classes : int
        schemes : sequence of Scheme
            Of different names.
        seed : int
        jobs : int
            Splits at a time.

        Returns
        -------
        dict of str to FittedClassifier
            By the scheme's name.
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
        shared: LeaveOut | None = None
        if any(scheme.needs_label_models for scheme in schemes):
            shared = self.leave_out(X, labels, classes, one_hot(labels, classes), seed, jobs)
        made: dict[str, Floats] = {}
        for scheme in schemes:
            targets = scheme.targets(labels, classes, shared)
            for number in range(1, self.recursions if scheme.needs_label_models else 1):
                again = self.leave_out(X, labels, classes, targets, derived(seed, number), jobs)
                targets = scheme.targets(labels, classes, again)
            made[scheme.name] = targets
        return made

    def leave_out(
        self, X: Floats, labels: Codes, classes: int, targets: Floats, seed: int, jobs: int = 1
    ) -> LeaveOut:
        """What the models on halves say, trained on ``targets`` of shape (n, classes)."""
        classifier = self.label_classifier or self.classifier
        return leave_out(classifier, X, targets, labels, splits=self.splits, seed=seed, jobs=jobs)

    def plain(self) -> Mapping[str, object]:
        """What the procedure is, as text and numbers, for the folder of an attack."""
        return {
            "classifier": repr(self.classifier),
            "label_classifier": repr(self.label_classifier),
            "splits": self.splits,
            "recursions": self.recursions,
        }


def derived(seed: int, number: int) -> int:
    """Another seed that follows from a seed and a number."""
    return int(np.random.SeedSequence((seed, number)).generate_state(1)[0])
