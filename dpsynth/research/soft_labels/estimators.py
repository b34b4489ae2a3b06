"""The soft-label procedure as a scikit-learn classifier, and soft targets for a regressor.

Pedersen (2022) names regression as future work. :func:`soft_values` is the nearest counterpart of (5.15). A
logit has no end: there the label's side is one standard deviation away whatever the mean is. A number has an
end, the record's value, which is never passed.

References
----------
Pedersen (2022), thesis, section 5.3, 5.5 for the choice of a global alpha by validation accuracy, and 6.2.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.model_selection import KFold, cross_val_predict, train_test_split

from dpsynth.checks import in_range, inside, whole
from dpsynth.errors import InputError, NotFittedError, of_records
from dpsynth.research.ltu.trainers import fitted, seeded
from dpsynth.research.soft_labels.procedure import (
    FittedClassifier,
    Procedure,
    WeightedCopies,
    derived,
)
from dpsynth.research.soft_labels.targets import OptimallySoft, Scheme

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]


class SoftLabelClassifier(ClassifierMixin, BaseEstimator):
    """A classifier trained on optimally soft labels: a defence **without a formal guarantee**.

    Parameters
    ----------
    classifier : scikit-learn classifier or Classifier
        Trains the final model. :class:`WeightedCopies` lists requirements of scikit-learn's.
    alpha : float, optional
        How far towards the label, in standard deviations of the logits of models without the record. None:
        chosen among ``alphas`` by validation.
    alphas : sequence of float
        From the most private. The first of equally accurate ones is taken.
    scheme : callable
        ``scheme(alpha)`` makes the targets: ``OptimallySoft`` (5.15), ``Interpolated`` (5.14) or
        ``PerRecord``.
    label_classifier : scikit-learn classifier or Classifier, optional
        Trains the models on halves. The same by default.
    splits : int
        Random splits in halves, of two models each.
    recursions : int
        See :class:`Procedure`.
    validation_fraction : float
        Share of the records held out for the choice if ``fit`` is given none, in (0, 1). The final model is
        then trained on all records.
    random_state : int, optional
        None: from the operating system.
    jobs : int
        Splits at a time.

    Attributes
    ----------
    classes_ : ndarray
        Class names, sorted.
    alpha_ : float
        Given or chosen.
    validation_accuracy_ : dict of float to float
        By alpha, empty if alpha was given. Confidential.
    targets_ : ndarray of shape (n, classes)
        Targets of the final model. As private as the records: keep them secret, or delete them.
    model_ : FittedClassifier
        The final model.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(80, 3))
    >>> y = np.where(X[:, 0] + rng.normal(size=80) > 0, "ill", "well")
    >>> model = SoftLabelClassifier(LogisticRegression(), alpha=1.0, splits=5, random_state=0).fit(X, y)
    >>> model.predict_proba(X).shape, bool(model.score(X, y) > 0.6)
    ((80, 2), True)
    """

    def __init__(
        self,
        classifier: Any,
        *,
        alpha: float | None = None,
        alphas: Sequence[float] = (0.0, 0.25, 0.5, 1.0),
        scheme: Callable[[float], Scheme] = OptimallySoft,
        label_classifier: Any = None,
        splits: int = 25,
        recursions: int = 1,
        validation_fraction: float = 0.2,
        random_state: int | None = None,
        jobs: int = 1,
    ) -> None:
        self.classifier = classifier
        self.alpha = alpha
        self.alphas = alphas
        self.scheme = scheme
        self.label_classifier = label_classifier
        self.splits = splits
        self.recursions = recursions
        self.validation_fraction = validation_fraction
        self.random_state = random_state
        self.jobs = jobs

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        X_validation: ArrayLike | None = None,
        y_validation: ArrayLike | None = None,
    ) -> SoftLabelClassifier:
        """Train the models on halves, choose alpha if it is not given, and train the final model.

        Parameters
        ----------
        X : array_like of shape (n, d)
            Finite numbers.
        y : array_like of shape (n,)
            At least two classes with two records each.
        X_validation, y_validation : array_like, optional
            Records for the choice of alpha.

        Raises
        ------
        InputError
            If arrays do not fit, an alpha is out of range, or validation labels are not among the classes.
        """
        features, given = _features("X", X), np.asarray(y)
        if given.shape != (len(features),):
            raise InputError(f"y must have one label a row of X ({len(features)}), got shape {given.shape}")
        self.classes_, labels = np.unique(given, return_inverse=True)
        procedure = Procedure(
            _classifier(self.classifier), _classifier(self.label_classifier), self.splits, self.recursions
        )
        seed = int(np.random.SeedSequence(self.random_state).generate_state(1)[0])
        self.validation_accuracy_: dict[float, float] = {}
        if self.alpha is None:
            held_out = self._validation(features, labels, X_validation, y_validation, seed)
            self.alpha_ = self._choose(procedure, *held_out, seed)
        else:
            self.alpha_ = self.alpha
        final = self.scheme(self.alpha_)
        targets = procedure.soft_targets(features, labels, len(self.classes_), [final], seed, self.jobs)
        self.targets_ = targets[final.name]
        self.model_: FittedClassifier = procedure.classifier.fit(features, self.targets_, derived(seed, 1))
        self.n_features_in_ = features.shape[1]
        return self

    def predict_proba(self, X: ArrayLike) -> Floats:
        """Probabilities of shape (n, classes), in the order of ``classes_``."""
        if not hasattr(self, "model_"):
            raise NotFittedError("call fit before predict_proba")
        features = _features("X", X)
        if features.shape[1] != self.n_features_in_:
            raise InputError(f"X must have {self.n_features_in_} columns, got {features.shape[1]}")
        return self.model_.predict_proba(features)

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """The most probable class of each row."""
        p = self.predict_proba(X)
        return self.classes_[p.argmax(axis=1)]

    def _validation(
        self, X: Floats, labels: Codes, X_given: ArrayLike | None, y_given: ArrayLike | None, seed: int
    ) -> tuple[Floats, Codes, Floats, Codes]:
        """Records to train on and records to choose by."""
        if X_given is not None and y_given is not None:
            known = np.asarray(y_given)
            if not np.isin(known, self.classes_).all():
                raise InputError("y_validation must hold only classes that y holds")
            return X, labels, _features("X_validation", X_given), np.searchsorted(self.classes_, known)
        if X_given is not None or y_given is not None:
            raise InputError("X_validation and y_validation must be given together")
        inside("validation_fraction", self.validation_fraction, 0.0, 1.0)
        X_mine, X_held, mine, held = train_test_split(
            X, labels, test_size=self.validation_fraction, random_state=seed % 2**32, stratify=labels
        )
        return X_mine, mine, X_held, held

    def _choose(
        self, procedure: Procedure, X: Floats, labels: Codes, X_held: Floats, held: Codes, seed: int
    ) -> float:
        if not len(self.alphas):
            raise InputError("alphas must hold at least one number, or give alpha")
        schemes = [self.scheme(alpha) for alpha in self.alphas]
        trained = procedure.train(X, labels, len(self.classes_), schemes, derived(seed, 0), self.jobs)
        for alpha, scheme in zip(self.alphas, schemes, strict=True):
            guessed = trained[scheme.name].predict_proba(X_held).argmax(axis=1)
            self.validation_accuracy_[alpha] = float((guessed == held).mean())
        return max(self.alphas, key=lambda alpha: self.validation_accuracy_[alpha])


def _classifier(given: Any) -> Any:
    """Make a scikit-learn classifier take probabilities, and leave ours as it is."""
    return WeightedCopies(given) if hasattr(given, "get_params") else given


def _features(name: str, values: ArrayLike) -> Floats:
    try:
        features = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{name} must hold numbers. Encode categories first") from None
    if features.ndim != 2:
        raise InputError(f"{name} must have shape (n, columns), got {features.shape}")
    if not np.isfinite(features).all():
        row, column = np.argwhere(~np.isfinite(features))[0]
        raise of_records(f"{name} must be finite, row {row}, column {column} is {features[row, column]}")
    return features


def soft_values(mean: ArrayLike, std: ArrayLike, values: ArrayLike, alpha: float) -> Floats:
    """Move from the leave-out mean towards each value by at most ``alpha`` standard deviations.

    Examples
    --------
    >>> soft_values([10.0, 10.0], [2.0, 2.0], [20.0, 11.0], 1.0).tolist()
    [12.0, 11.0]
    """
    centre, reach = np.asarray(mean, dtype=np.float64), alpha * np.asarray(std, dtype=np.float64)
    return centre + np.clip(np.asarray(values, dtype=np.float64) - centre, -reach, reach)


class SoftTargetRegressor(RegressorMixin, BaseEstimator):
    """A regressor trained on soft targets: a defence **without a formal guarantee**.

    Parameters
    ----------
    regressor : scikit-learn regressor
        Never fitted itself.
    alpha : float
        At least 0. See :func:`soft_values`.
    splits, random_state, jobs
        As in :class:`SoftLabelClassifier`, with at least two splits.

    Attributes
    ----------
    targets_ : ndarray of shape (n,)
        Targets of the final model. As private as the records.

    Examples
    --------
    >>> from sklearn.linear_model import LinearRegression
    >>> X = np.arange(20.0)[:, None]
    >>> soft = SoftTargetRegressor(LinearRegression(), splits=4, random_state=0).fit(X, 3 * X[:, 0])
    >>> round(float(soft.predict([[10.0]])[0]), 6)
    30.0
    """

    def __init__(
        self,
        regressor: Any,
        *,
        alpha: float = 1.0,
        splits: int = 25,
        random_state: int | None = None,
        jobs: int = 1,
    ) -> None:
        self.regressor = regressor
        self.alpha = alpha
        self.splits = splits
        self.random_state = random_state
        self.jobs = jobs

    def fit(self, X: ArrayLike, y: ArrayLike) -> SoftTargetRegressor:
        """Train models on halves, and the final model on the soft targets.

        Raises
        ------
        InputError
            If arrays do not fit, there are fewer than four records, or alpha is negative.
        """
        in_range("alpha", self.alpha, 0.0, 1e6)
        whole("splits", self.splits, 2)
        features, values = np.asarray(X, dtype=np.float64), np.asarray(y, dtype=np.float64)
        if features.ndim != 2 or values.shape != (len(features),) or len(values) < 4:
            raise InputError(
                "X must have shape (n, columns) and y (n,), with n at least 4, "
                f"got {features.shape} and {values.shape}"
            )
        own, *seeds = np.random.SeedSequence(self.random_state).generate_state(self.splits + 1) // 2
        outside = np.array(
            Parallel(n_jobs=self.jobs)(
                delayed(_outside)(self.regressor, features, values, int(seed)) for seed in seeds
            )
        )
        self.targets_ = soft_values(outside.mean(axis=0), outside.std(axis=0, ddof=1), values, self.alpha)
        self.model_ = fitted(self.regressor, int(own), features, self.targets_)
        self.n_features_in_ = features.shape[1]
        return self

    def predict(self, X: ArrayLike) -> Floats:
        """Predictions of shape (n,)."""
        if not hasattr(self, "model_"):
            raise NotFittedError("call fit before predict")
        return self.model_.predict(np.asarray(X, dtype=np.float64))


def _outside(regressor: Any, X: Floats, values: Floats, seed: int) -> Floats:
    """Predictions of each half by a model of the other."""
    halves = KFold(2, shuffle=True, random_state=seed + 1)
    return cross_val_predict(seeded(regressor, seed), X, values, cv=halves)
