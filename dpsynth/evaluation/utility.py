"""What a synthetic table is good for: train on synthetic, test on real (TSTR).

Three classifiers of different kinds learn the outcome from the synthetic records and are scored by the area
under the ROC curve (AUC) on real records that no generator has seen; the same classifiers trained on the real
training records are the reference. See Pedersen (2022), section 3.4.2. Scores on real records
are not paid for: internal.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpsynth.errors import InputError
from dpsynth.evaluation.features import ClassifierEncoding, category_codes
from dpsynth.table.schema import Schema

Seed = int


def _logistic_regression(seed: Seed) -> Any:
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))


def _hist_gradient_boosting(seed: Seed) -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier

    # Early stopping would hold out a stratified part, which fails where a class has a single record.
    return HistGradientBoostingClassifier(early_stopping=False, random_state=seed)


def _random_forest(seed: Seed) -> Any:
    from sklearn.ensemble import RandomForestClassifier

    return RandomForestClassifier(n_estimators=200, random_state=seed)


#: name -> (factory, whether missing numbers must be imputed)
CLASSIFIERS: dict[str, tuple[Callable[[Seed], Any], bool]] = {
    "logistic_regression": (_logistic_regression, True),
    "hist_gradient_boosting": (_hist_gradient_boosting, False),
    "random_forest": (_random_forest, True),
}


@dataclass(frozen=True)
class Utility:
    """AUC of each classifier on one test table.

    Attributes
    ----------
    auc : dict of str to float or None
        By classifier. None where the test records hold one class only: no AUC is defined then.
    auc_mean : float or None
        Mean over the classifiers.
    n_train, n_test : int
        Records with a known outcome on each side.
    one_class : bool
        Whether the training records hold one class only. Nothing can be learned from them; every AUC is then
        0.5 by convention.
    note : str
        What is unusual about the result, in one sentence; empty if nothing is.
    """

    auc: dict[str, float | None]
    auc_mean: float | None
    n_train: int
    n_test: int
    one_class: bool
    note: str


def train_and_test(
    train: pd.DataFrame,
    test: pd.DataFrame,
    schema: Schema,
    outcome: str,
    *,
    rng: np.random.Generator,
) -> Utility:
    """Train three classifiers on one conformed frame and score them on another.

    Parameters
    ----------
    train : pandas.DataFrame of shape (n, columns)
        Synthetic records, or real ones for the reference.
    test : pandas.DataFrame of shape (m, columns)
        Real records.
    schema : Schema
        With at least one column besides the outcome.
    outcome : str
        A binary, ordinal or categorical column. The last declared category is the positive one; with more
        than two categories the AUC is the mean of one category against the rest, over the categories that
        occur in the test records.
    rng : numpy.random.Generator
        Seeds the classifiers.

    Returns
    -------
    Utility

    Raises
    ------
    InputError
        If the outcome is not such a column, or if either frame has no record with a known outcome.

    Notes
    -----
    Records whose outcome is missing take no part. Predictors are encoded by
    :class:`~dpsynth.evaluation.features.ClassifierEncoding`.
    """
    check_outcome(schema, outcome)
    column = schema.column(outcome)
    y_train, y_test = (category_codes(column, frame[outcome]) for frame in (train, test))
    train, y_train = train[y_train >= 0], y_train[y_train >= 0]
    test, y_test = test[y_test >= 0], y_test[y_test >= 0]
    for name, codes in (("training", y_train), ("test", y_test)):
        if not len(codes):
            raise InputError(f"the {name} table has no record with a known outcome {outcome!r}")

    def result(auc: dict[str, float | None], one_class: bool, note: str) -> Utility:
        scores = [value for value in auc.values() if value is not None]
        mean = float(np.mean(scores)) if len(scores) == len(auc) else None
        return Utility(auc, mean, len(y_train), len(y_test), one_class, note)

    if len(np.unique(y_test)) < 2:
        only = column.categories[int(y_test[0])]
        note = f"every test record has {outcome} = {only!r}: no AUC is defined"
        return result(dict.fromkeys(CLASSIFIERS), False, note)
    if len(np.unique(y_train)) < 2:
        only = column.categories[int(y_train[0])]
        note = f"every training record has {outcome} = {only!r}: nothing to learn, AUC 0.5 by convention"
        return result(dict.fromkeys(CLASSIFIERS, 0.5), True, note)

    # comes with scikit-learn, without type hints
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    encoding = ClassifierEncoding.fit(train, schema, outcome)
    auc: dict[str, float | None] = {}
    for name, (make, impute) in CLASSIFIERS.items():
        model = make(int(rng.integers(2**31 - 1)))
        # One thread: on tables of this size several cost more than they save, far more on a busy machine.
        with warnings.catch_warnings(), threadpool_limits(limits=1):
            warnings.simplefilter("ignore")  # convergence and constant columns do not concern the reader
            model.fit(encoding.transform(train, impute=impute), y_train)
            scores = model.predict_proba(encoding.transform(test, impute=impute))
        auc[name] = _auc(y_test, scores, np.asarray(model.classes_), len(column.categories))
    return result(auc, False, "")


def check_outcome(schema: Schema, outcome: str) -> None:
    """Refuse an outcome that is no column of categories, or that nothing is left to predict from."""
    column = schema.column(outcome)
    if column.is_numeric:
        raise InputError(f"outcome {outcome!r} must be binary, ordinal or categorical, got {column.kind!r}")
    if len(schema) < 2:
        raise InputError(f"outcome {outcome!r} is the only column: there is nothing to predict it from")


def positive_rate(frame: pd.DataFrame, schema: Schema, outcome: str) -> float | None:
    """Share of the last declared category of the outcome among the records where it is known.

    Examples
    --------
    >>> from dpsynth.table.schema import Column
    >>> schema = Schema(columns=(Column(name="died", kind="binary", categories=(0, 1)),))
    >>> positive_rate(pd.DataFrame({"died": [0, 1, 0, 0]}), schema, "died")
    0.25
    """
    column = schema.column(outcome)
    codes = category_codes(column, frame[outcome])
    known = codes[codes >= 0]
    return float(np.mean(known == len(column.categories) - 1)) if len(known) else None


def _auc(
    y: NDArray[np.int64], scores: NDArray[np.float64], classes: NDArray[np.int64], n_categories: int
) -> float:
    """AUC of the last category, or the mean over categories against the rest when there are more than two."""
    from sklearn.metrics import roc_auc_score

    targets = [1] if n_categories == 2 else sorted(set(y.tolist()))
    column_of = {int(label): position for position, label in enumerate(classes)}
    values = []
    for target in targets:
        # A category that the training records lack has the same score, 0, everywhere: AUC 0.5.
        score = scores[:, column_of[target]] if target in column_of else np.zeros(len(y))
        values.append(float(roc_auc_score(y == target, score)))
    return float(np.mean(values))
