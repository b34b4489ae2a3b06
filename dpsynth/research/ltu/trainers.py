"""The records of both sides, and trainers that the attacker can run: any scikit-learn classifier.

One pool holds both sides, the defender's records first. A training set is a list of positions in it. A
trainer is a function ``trainer(x, y, seed) -> model`` of records in an order and a seed: the defender's whole
procedure (Pedersen 2022, section 5.1). A model has ``predict_proba``, ``decision_function`` or ``predict``,
and ``classes_`` unless its columns are all classes.
"""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpsynth.checks import one_of
from dpsynth.errors import InputError, of_records

if TYPE_CHECKING:
    from dpsynth.datasets.table import Table


Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def digest(*parts: NDArray[Any] | None) -> str:
    """A text that differs for other arrays, and says nothing else about them. None is an absent one."""
    found = hashlib.blake2b(digest_size=16)
    for part in parts:
        found.update(b"-" if part is None else np.ascontiguousarray(part).tobytes())
    return found.hexdigest()


@dataclass(frozen=True, eq=False)
class Sides:
    """Defender and Reserve records of a classification.

    Parameters
    ----------
    x : ndarray of shape (n_defender + n_reserve, d)
        Features, the defender's records first. No feature of a record depends on other records.
    y : ndarray of int, shape (n_defender + n_reserve,)
        Classes 0, 1, ...
    n_defender : int
        Number of the defender's records.
    names : tuple of str
        Names of the classes.

    Raises
    ------
    InputError
        If shapes differ, a side has no record, or a class is not a whole number from 0.
    """

    x: Floats
    y: Ints
    n_defender: int
    names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.x.ndim != 2 or self.y.shape != (len(self.x),):
            raise InputError(f"x must be a matrix and y have its rows, got {self.x.shape} and {self.y.shape}")
        if not 0 < self.n_defender < len(self.x):
            raise InputError(f"both sides must have records, got {self.n_defender} of {len(self.x)} records")
        if self.y.dtype.kind not in "iu" or self.y.min() < 0:
            raise InputError("y must hold whole numbers from 0")

    @classmethod
    def of(
        cls,
        x_defender: ArrayLike,
        y_defender: ArrayLike,
        x_reserve: ArrayLike,
        y_reserve: ArrayLike,
    ) -> Sides:
        """Join both sides' features (n, d) and classes (n,).

        Examples
        --------
        >>> sides = Sides.of([[0.0], [1.0]], [0, 1], [[2.0]], [1])
        >>> len(sides), sides.n_defender, sides.n_classes, sides.members.tolist()
        (3, 2, 2, [True, True, False])
        """
        parts = [np.asarray(x, dtype=np.float64) for x in (x_defender, x_reserve)]
        if any(part.ndim != 2 for part in parts) or parts[0].shape[1] != parts[1].shape[1]:
            raise InputError(f"features of both sides must have one width, got {[p.shape for p in parts]}")
        return cls(
            np.vstack(parts),
            np.concatenate([np.asarray(y_defender), np.asarray(y_reserve)]),
            len(parts[0]),
        )

    def __len__(self) -> int:
        return len(self.x)

    @property
    def n_reserve(self) -> int:
        """Number of reserved records."""
        return len(self.x) - self.n_defender

    @property
    def n_classes(self) -> int:
        """Number of classes, at least two."""
        return max(int(self.y.max()) + 1, len(self.names), 2)

    @property
    def members(self) -> NDArray[np.bool_]:
        """Whether each record is the defender's, shape (n_defender + n_reserve,)."""
        return np.arange(len(self.x)) < self.n_defender

    def fingerprint(self) -> str:
        """A text that differs for other records or another split, and says nothing else about them."""
        return digest(self.x, self.y, np.array([self.n_defender]))


def sides_of_table(table: Table, records: int, seed: int) -> Sides:
    """Draw the records of both sides from a table, without replacement.

    Features are the predictors on public bounds and declared categories
    (:func:`dpsynth.evaluation.tables.distance_features`). Records without an outcome are left out.

    Parameters
    ----------
    table : Table
        With an outcome that has categories.
    records : int
        Number of records on each side.
    seed : int
        Seed of the draw.

    Raises
    ------
    InputError
        If the schema has no outcome, or it is a number.
    DataError
        If the table has too few records.
    """
    from dpsynth.evaluation.tables import distance_features
    from dpsynth.table.kinds.category import category_codes

    schema = table.schema
    if schema.outcome is None:
        raise InputError(f"{table.name} has no outcome to classify. Name one in its schema")
    outcome = schema[schema.outcome]
    if outcome.is_numeric:
        raise InputError(
            f"the outcome {schema.outcome!r} is a number, a classifier needs categories. "
            "Declare it as binary or categorical"
        )
    codes = category_codes(outcome, table.frame[schema.outcome])
    known = np.flatnonzero(codes >= 0)
    if len(known) < 2 * records:
        raise of_records(
            f"{table.name} has {len(known)} records with an outcome, two sides of {records} need "
            f"{2 * records}. Ask for at most {len(known) // 2}"
        )
    chosen = np.random.default_rng(seed).permutation(known)[: 2 * records]
    predictors = schema.select(name for name in schema.names if name != schema.outcome)
    points = distance_features(table.frame.iloc[chosen], predictors)
    return Sides(points, codes[chosen], records, tuple(str(name) for name in outcome.categories))


#: features (n, d), classes (n,) and a seed to a model
Train = Callable[[Floats, Ints, int], Any]

#: largest seed that scikit-learn takes
LARGEST_SEED = 2**31 - 1


def seeded(estimator: Any, seed: int) -> Any:
    """Copy a scikit-learn estimator, and set every ``random_state`` in it, nested ones too."""
    from sklearn.base import clone

    model = clone(estimator)
    names = [name for name in model.get_params() if name.split("__")[-1] == "random_state"]
    return model.set_params(**dict.fromkeys(names, seed))


def fitted(estimator: Any, seed: int, *records: Any, **options: Any) -> Any:
    """Fit a seeded copy of a scikit-learn estimator to records.

    Warnings of an optimiser that has not converged are part of the procedure: a fixed number of iterations.
    """
    from sklearn.exceptions import ConvergenceWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return seeded(estimator, seed).fit(*records, **options)


@dataclass(frozen=True)
class Trainer:
    """A scikit-learn classifier, or a pipeline that ends with one, as a trainer.

    Parameters
    ----------
    estimator : classifier
        Not fitted. Copied for each training. Every ``random_state`` in it, nested ones too, is the seed.

    Examples
    --------
    >>> from sklearn.linear_model import Perceptron
    >>> model = Trainer(Perceptron())(np.array([[0.0], [1.0]]), np.array([0, 1]), seed=1)
    >>> model.get_params()["random_state"]
    1
    """

    estimator: Any

    def __call__(self, x: Floats, y: Ints, seed: int) -> Any:
        """Train a copy."""
        return fitted(self.estimator, seed % (LARGEST_SEED + 1), x, y)

    @property
    def description(self) -> str:
        """The estimator with the parameters that are not its defaults."""
        return " ".join(repr(self.estimator).split())


def classifiers() -> dict[str, Trainer]:
    """Return ten classifiers of scikit-learn with its default parameters, as in figure 4.2, by name.

    The text of Pedersen (2022) names the first seven. The last three stand in for those left out.
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
    """Return one of :func:`classifiers`. InputError with the names of all for another."""
    known = classifiers()
    one_of("model", name, known)
    return known[name]


def class_probabilities(model: Any, x: Floats, n_classes: int) -> Floats:
    """Return a model's probability for each record and class, shape (n, n_classes).

    A model without ``predict_proba`` gives its decision values through the logistic function (softmax for
    several classes), or else its predicted class. A class that the training set did not hold has 0.
    """
    from scipy.special import expit, softmax

    if hasattr(model, "predict_proba"):
        found = np.asarray(model.predict_proba(x), dtype=np.float64)
    elif hasattr(model, "decision_function"):
        margins = np.asarray(model.decision_function(x), dtype=np.float64)
        two = margins.ndim == 1
        found = np.stack([expit(-margins), expit(margins)], axis=1) if two else softmax(margins, axis=1)
    else:
        return np.asarray(model.predict(x)[:, None] == np.arange(n_classes), dtype=np.float64)
    classes = np.asarray(getattr(model, "classes_", np.arange(found.shape[1])), dtype=np.int64)
    placed = np.zeros((len(found), n_classes))
    placed[:, classes] = found
    return placed


#: of the course of the training, whose lengths differ, so that nothing could be compared
_COURSE = ("n_iter_", "t_", "loss_curve_")


def parameters(model: Any) -> tuple[Floats, ...]:
    """Return the numbers that a fitted scikit-learn model holds, in the order of their names.

    These are public fitted attributes (``coef_``, ``support_vectors_``, ...), those of nested estimators, and
    the nodes of trees. A nearest-neighbour classifier holds none: its records are private attributes.
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
