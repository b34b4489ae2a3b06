"""What a classifier is for the soft-label procedure, and scikit-learn's classifiers as such.

A classifier learns from probabilities of the classes, not from labels. Classifiers that take labels only are
given a weighted copy of each record for each class: the weighted log-loss of the copies is the cross-entropy
of the probabilities, so that for models that minimise the log-loss the two are the same problem.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dpsynth.errors import InputError

Floats = NDArray[np.float64]


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
        With ``predict_proba`` and a ``fit`` that takes ``sample_weight``; a pipeline if its last step does.
        Never fitted itself. Its ``random_state``, where it has one, is set from the seed.

    Raises
    ------
    InputError
        If the estimator has no ``predict_proba`` or takes no weights.

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
        """Train on weighted copies; see :class:`Classifier`."""
        from sklearn.base import clone
        from sklearn.exceptions import ConvergenceWarning

        model = clone(self.estimator)
        model.set_params(**{k: seed for k in model.get_params() if k.split("__")[-1] == "random_state"})
        record, label = np.nonzero(targets > 0.0)
        prefix = _last(model)[0]
        weights = {f"{prefix}sample_weight": targets[record, label]}
        with warnings.catch_warnings():
            # a fixed number of iterations is part of the procedure, as with a network's epochs
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(X[record], label, **weights)
        return _AllClasses(model, targets.shape[1])


@dataclass(frozen=True)
class _AllClasses:
    """A scikit-learn model whose probabilities have a column for each class, also for those it never saw."""

    model: Any
    classes: int

    def predict_proba(self, X: Floats) -> Floats:
        found = np.zeros((len(X), self.classes))
        found[:, self.model.classes_] = self.model.predict_proba(X)
        return found


def _last(estimator: Any) -> tuple[str, Any]:
    """The last step of a pipeline, with the prefix of its parameters; else the estimator itself."""
    steps = getattr(estimator, "steps", None)
    return (f"{steps[-1][0]}__", steps[-1][1]) if steps else ("", estimator)
