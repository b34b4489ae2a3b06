"""Trainers that the attacker can run: any scikit-learn classifier; what a trained model says and holds.

A trainer is a function ``trainer(x, y, seed) -> model`` of records in an order and a seed, the defender's
whole procedure: what is chosen by the records belongs to it (Pedersen 2022, section 5.1). A model has
``predict_proba``, ``decision_function`` or ``predict``, and ``classes_`` unless its columns are all classes.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsynth.checks import one_of

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
#: features (n, d), classes (n,) and a seed to a model
Train = Callable[[Floats, Ints, int], Any]

#: largest seed that scikit-learn takes
LARGEST_SEED = 2**31 - 1


@dataclass(frozen=True)
class Trainer:
    """A scikit-learn classifier, or a pipeline that ends with one, as a trainer.

    Parameters
    ----------
    estimator : classifier
        Not fitted; copied for each training. Every ``random_state`` in it, nested ones too, is the seed.

    Examples
    --------
    >>> from sklearn.linear_model import Perceptron
    >>> model = Trainer(Perceptron())(np.array([[0.0], [1.0]]), np.array([0, 1]), seed=1)
    >>> model.get_params()["random_state"]
    1
    """

    estimator: Any

    def __call__(self, x: Floats, y: Ints, seed: int) -> Any:
        """Train a copy; warnings of an optimiser that has not converged are part of the procedure."""
        from sklearn.base import clone
        from sklearn.exceptions import ConvergenceWarning

        model = clone(self.estimator)
        names = [name for name in model.get_params() if name.split("__")[-1] == "random_state"]
        if names:
            model.set_params(**{name: seed % (LARGEST_SEED + 1) for name in names})
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            return model.fit(x, y)

    @property
    def description(self) -> str:
        """The estimator with the parameters that are not its defaults."""
        return " ".join(repr(self.estimator).split())


def classifiers() -> dict[str, Trainer]:
    """Ten classifiers of scikit-learn with its default parameters, as in figure 4.2.

    The thesis's text names the first seven; the bars of the figure are a picture, and the last three stand in
    for those that the text leaves out.
    """
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.linear_model import LogisticRegression, Perceptron, RidgeClassifier, SGDClassifier
    from sklearn.naive_bayes import GaussianNB
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.neural_network import MLPClassifier
    from sklearn.svm import SVC, LinearSVC

    estimators = {
        "logistic_regression": LogisticRegression(),
        "ridge": RidgeClassifier(),
        "naive_bayes": GaussianNB(),
        "svc": SVC(),
        "nearest_neighbours": KNeighborsClassifier(),
        "sgd": SGDClassifier(),
        "perceptron": Perceptron(),
        "linear_svc": LinearSVC(),
        "mlp": MLPClassifier(),
        "random_forest": RandomForestClassifier(),
    }
    return {name: Trainer(estimator) for name, estimator in estimators.items()}


def classifier(name: str) -> Trainer:
    """One of :func:`classifiers`; raise InputError with the names of all for another."""
    known = classifiers()
    one_of("model", name, known)
    return known[name]


def probabilities(model: Any, x: Floats, n_classes: int) -> Floats:
    """What a model says of records: a probability for each class.

    Parameters
    ----------
    model : object
        With ``predict_proba``; else ``decision_function``, whose values go through the logistic function (or
        softmax for several classes); else ``predict``.
    x : ndarray of shape (n, d)
    n_classes : int

    Returns
    -------
    ndarray of shape (n, n_classes)
        0 for a class that the training set did not hold.
    """
    if hasattr(model, "predict_proba"):
        found = np.asarray(model.predict_proba(x), dtype=np.float64)
    elif hasattr(model, "decision_function"):
        found = _squashed(np.asarray(model.decision_function(x), dtype=np.float64))
    else:
        return np.asarray(model.predict(x)[:, None] == np.arange(n_classes), dtype=np.float64)
    classes = np.asarray(getattr(model, "classes_", np.arange(found.shape[1])), dtype=np.int64)
    placed = np.zeros((len(found), n_classes))
    placed[:, classes] = found
    return placed


def _squashed(margins: Floats) -> Floats:
    from scipy.special import expit, softmax

    if margins.ndim == 1:
        return np.stack([expit(-margins), expit(margins)], axis=1)
    squashed: Floats = softmax(margins, axis=1)
    return squashed


#: of the course of the training, whose lengths differ, so that nothing could be compared
_COURSE = ("n_iter_", "t_", "loss_curve_")


def parameters(model: Any) -> tuple[Floats, ...]:
    """The numbers that a fitted scikit-learn model holds, in the order of their names.

    Public fitted attributes (``coef_``, ``support_vectors_``, ...), those of nested estimators, and the nodes
    of trees. A nearest-neighbour classifier holds none: its records are private attributes, which whoever
    ships the object ships too.
    """
    found: list[Floats] = []
    for name, value in sorted(getattr(model, "__dict__", {}).items()):
        if name.endswith("_") and not name.startswith("_") and name not in _COURSE:
            found += _numbers(value)
    if hasattr(model, "steps"):
        found += [array for _, step in model.steps for array in parameters(step)]
    return tuple(found)


def _numbers(value: Any) -> list[Floats]:
    if hasattr(value, "threshold") and hasattr(value, "feature"):  # a scikit-learn tree
        parts = (value.feature, value.threshold, value.value)
        return [np.asarray(part, dtype=np.float64).ravel() for part in parts]
    if hasattr(value, "get_params"):
        return list(parameters(value))
    if isinstance(value, list | tuple):
        return [array for entry in value for array in _numbers(entry)]
    if isinstance(value, np.ndarray) and value.dtype == object:
        return [array for entry in value.ravel() for array in _numbers(entry)]
    try:
        array = np.asarray(value)
    except (TypeError, ValueError):
        return []
    return [array.astype(np.float64).ravel()] if array.dtype.kind in "iuf" else []
