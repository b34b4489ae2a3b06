"""Soft targets for regression: from what models without the record predict, towards its value, so far.

The thesis names regression as future work; this is the nearest counterpart of (5.15). A logit has no end,
so there the label's side is one standard deviation away whatever the mean is; a number has one, the record's
value, which is never passed.

References
----------
Pedersen (2022), thesis, sections 5.3 and 6.2.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, RegressorMixin, clone

from dpsynth.checks import in_range, whole
from dpsynth.errors import InputError, NotFittedError
from dpsynth.files.rounds import carry_out

Floats = NDArray[np.float64]


def soft_values(mean: ArrayLike, std: ArrayLike, values: ArrayLike, alpha: float) -> Floats:
    """Move from the leave-out mean towards each value by at most ``alpha`` standard deviations.

    Parameters
    ----------
    mean, std : array_like of shape (n,)
        Of predictions by models without the record.
    values : array_like of shape (n,)
    alpha : float
        At least 0: with 0 the targets are the means, without end the values.

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
        At least 0; see :func:`soft_values`.
    splits : int
        Random splits in halves, at least 2; each trains two models.
    random_state : int, optional
        None: from the operating system.
    jobs : int
        Splits at a time.

    Attributes
    ----------
    targets_ : ndarray of shape (n,)
        What the final model was trained on. As private as the records.
    model_ : scikit-learn regressor

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
        seeds = np.random.SeedSequence(self.random_state).spawn(self.splits + 1)
        tasks = {f"{number:04d}": child for number, child in enumerate(seeds[1:])}
        found = carry_out(partial(_one_split, self.regressor, features, values), tasks, jobs=self.jobs)
        outside = np.array([split["out"] for split in found.values()])
        self.targets_ = soft_values(outside.mean(axis=0), outside.std(axis=0, ddof=1), values, self.alpha)
        self.model_ = _fitted(self.regressor, features, self.targets_, np.random.default_rng(seeds[0]))
        self.n_features_in_ = features.shape[1]
        return self

    def predict(self, X: ArrayLike) -> Floats:
        """Predictions of shape (n,)."""
        if not hasattr(self, "model_"):
            raise NotFittedError("call fit before predict")
        predicted: Floats = self.model_.predict(np.asarray(X, dtype=np.float64))
        return predicted


def _one_split(regressor: Any, X: Floats, values: Floats, seeds: np.random.SeedSequence) -> dict[str, Any]:
    rng = np.random.default_rng(seeds)
    order = rng.permutation(len(values))
    parts = order[: len(values) // 2], order[len(values) // 2 :]
    outside = np.empty(len(values))
    for mine, others in (parts, parts[::-1]):
        outside[others] = _fitted(regressor, X[mine], values[mine], rng).predict(X[others])
    return {"out": outside.tolist()}


def _fitted(regressor: Any, X: Floats, values: Floats, rng: np.random.Generator) -> Any:
    model = clone(regressor)
    seed = int(rng.integers(2**31))
    model.set_params(**{k: seed for k in model.get_params() if k.split("__")[-1] == "random_state"})
    return model.fit(X, values)
