"""Real-versus-synthetic classifiers, of all columns or of one alone.

Real and synthetic records, as many of each, are labelled and mixed. Scores come from models that were not
trained on the record (cross-fitting). A fresh sample therefore gives an AUC of 1/2.

Permutation importance (Breiman 2001, "Random forests", Machine Learning 45, section 10) uses records outside
the training part. One column is shuffled over real and synthetic records alike. The fall of the AUC is the
column's part in it, alone or with others. Columns with the same information replace one another.

People write numbers down by habit: blood pressures on tens, heights converted from inches. The best score of
one value is the ratio of its probabilities in both tables. Three steps estimate it. Pseudo-records shrink
each towards the one before. First comes the share of synthetic records in an interval between quantiles. The
value's last digits then shift it: its number of steps modulo 20, which holds twos, fours, fives and tens.
Without a declared step, it is the number of decimals. Last comes the share at the value itself. All steps are
counts of distinct values: the time is that of sorting a column.

References
----------
Nadeau, Bengio (2003), "Inference for the generalization error", Machine Learning 52.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpsynth.evaluation.estimates import Estimate, auc_interval, delong
from dpsynth.evaluation.models import CLASSIFIERS, Estimator
from dpsynth.evaluation.results import Row
from dpsynth.evaluation.tables import distance_features, unit_values
from dpsynth.table.column import Column
from dpsynth.table.kinds.category import category_codes
from dpsynth.table.schema import Schema
from dpsynth.table.values import numeric_values

Floats = NDArray[np.float64]

#: Numbers that a model reads at once where columns are shuffled.
_TOGETHER = 1 << 22


def shuffled_losses(
    model: Any, points: Floats, label: NDArray[np.int64], scores: Floats, rng: np.random.Generator
) -> Floats:
    """Fall of a fitted model's AUC when each column in turn of new records is shuffled.

    ``scores`` are the model's scores of the records as they are.
    """
    whole = _auc(scores, label)
    n, columns = points.shape
    # a call of the model for many columns at once: on few records most of its time is the call's own
    together = max(_TOGETHER // max(points.size, 1), 1)
    losses: list[float] = []
    for start in range(0, columns, together):
        shuffled = range(start, min(start + together, columns))
        changed = np.tile(points, (len(shuffled), 1, 1))
        for copy, column in zip(changed, shuffled, strict=True):
            copy[:, column] = rng.permutation(copy[:, column])
        found = model.predict_proba(changed.reshape(-1, columns))[:, 1].reshape(-1, n)
        losses += [whole - _auc(own, label) for own in found]
    return np.array(losses)


def over_folds(losses: Floats, level: float = 0.95) -> list[Estimate]:
    """Mean loss of each column over at least two folds of a cross-fit. ``losses``: shape (folds, columns).

    The interval is Student's t over folds, widened for training parts that overlap (Nadeau and Bengio 2003).
    """
    from scipy import stats

    folds = len(losses)
    # test over training size of a fold, added to 1 / folds
    error = losses.std(axis=0, ddof=1) * np.sqrt(1.0 / folds + 1.0 / (folds - 1))
    half = float(stats.t.ppf(0.5 + level / 2, folds - 1)) * error
    means = losses.mean(axis=0)
    return [Estimate(float(m), float(m - h), float(m + h)) for m, h in zip(means, half, strict=True)]


def _auc(scores: Floats, label: NDArray[np.int64]) -> float:
    return delong(scores[label == 1], scores[label == 0])[0]


FOLDS = 5
LOGISTIC, BOOSTING = "logistic_regression", "hist_gradient_boosting"

#: codes that histogram gradient boosting takes, one of them for missing values
_MOST_CATEGORIES = 255


@dataclass(frozen=True)
class Discrimination:
    """Accuracy of real-versus-synthetic classifiers.

    The AUC is a mean over folds. The interval takes DeLong's variance within folds, over records taken as
    independent. Nadeau and Bengio's correction for overlapping training parts widens it. The AUC is below 1/2
    if synthetic records are copies: their originals, labelled real, mislead the model. ``importance`` is the
    loss in AUC of boosting when a column is shuffled.
    """

    auc: dict[str, Estimate]
    size: int  # records of each table
    importance: dict[str, Estimate] = field(default_factory=dict)


def discriminate(
    real: pd.DataFrame,
    synthetic: pd.DataFrame,
    schema: Schema,
    *,
    rng: np.random.Generator,
    limit: int = 10_000,
    level: float = 0.95,
) -> Discrimination:
    """Train real-versus-synthetic classifiers, with at least five records of each.

    A random part of each table is used, as large as the smaller one and at most ``limit`` records.
    """
    # Only thread pools that are loaded by then are limited: scikit-learn comes first.
    from sklearn.model_selection import PredefinedSplit, cross_validate

    # comes with scikit-learn, without type hints
    from threadpoolctl import threadpool_limits

    size = min(len(real), len(synthetic), limit)
    parts = [frame.iloc[rng.permutation(len(frame))[:size]] for frame in (real, synthetic)]
    linear = np.vstack([distance_features(part, schema) for part in parts])
    trees = np.vstack([_tree_features(part, schema) for part in parts])
    # Rows are in random order within each table: every fifth row of a table is a stratified random fold.
    fold = np.concatenate([np.arange(size) % FOLDS] * 2)
    label = np.repeat([0, 1], size)
    nominal = [c.is_categorical and len(c.categories) < _MOST_CATEGORIES for c in schema.columns]
    models = {
        LOGISTIC: (CLASSIFIERS[LOGISTIC].make(0), linear),  # nothing in it is random
        BOOSTING: (_boosting(nominal, int(rng.integers(2**31 - 1))), trees),
    }
    auc: dict[str, Estimate] = {}
    (shuffles,) = rng.spawn(1)  # which leaves the draws of the other generator as they are
    losses: list[Floats] = []
    with warnings.catch_warnings(), threadpool_limits(limits=1):
        warnings.simplefilter("ignore")  # convergence and constant columns do not concern the reader
        for name, (model, points) in models.items():
            crossed = cross_validate(model, points, label, cv=PredefinedSplit(fold), return_estimator=True)
            scores = np.empty(len(label))
            for k, fitted in enumerate(crossed["estimator"]):
                out = fold == k
                scores[out] = fitted.predict_proba(points[out])[:, 1]
                if name == BOOSTING:  # whose points have one coordinate a column
                    losses.append(shuffled_losses(fitted, points[out], label[out], scores[out], shuffles))
            auc[name] = within_folds(scores, label, fold, level)
    importance = dict(zip(schema.names, over_folds(np.stack(losses), level), strict=True))
    return Discrimination(auc, size, importance)


def within_folds(scores: Floats, label: NDArray[np.int64], fold: NDArray[np.int64], level: float) -> Estimate:
    """Mean of the folds' AUC: scores of different folds come from different models."""
    made, real = label == 1, label == 0
    parts = [delong(scores[made & (fold == k)], scores[real & (fold == k)]) for k in range(FOLDS)]
    mean = float(np.mean([auc for auc, _ in parts]))
    # Nadeau and Bengio: models of overlapping parts err together; add test / training size to 1 / folds.
    within = sum(variance for _, variance in parts) / FOLDS
    variance = within * (1.0 / FOLDS + 1.0 / (FOLDS - 1))
    return auc_interval(mean, variance, int(made.sum()), level)


def _boosting(nominal: list[bool], seed: int) -> Estimator:
    return CLASSIFIERS[BOOSTING].make(seed).set_params(categorical_features=nominal if any(nominal) else None)


def _tree_features(frame: pd.DataFrame, schema: Schema) -> Floats:
    """One coordinate a column: numbers and ranks in [0, 1], codes of categories.

    Missing values get a value of their own, because histogram binning fails if a fold holds NaN alone.
    """
    blocks = []
    for column in schema.columns:
        if column.is_categorical:
            codes = category_codes(column, frame[column.name])
            blocks.append(np.where(codes < 0, len(column.categories), codes).astype(np.float64))
        else:
            unit = unit_values(column, frame[column.name])
            unit = np.where(np.isnan(unit), -1.0, unit)
            for code, number in enumerate(column.special):
                unit[(frame[column.name] == number).to_numpy(dtype=bool, na_value=False)] = -2.0 - code
            blocks.append(unit)
    return np.column_stack(blocks)


#: intervals between quantiles; last digits told apart, in steps or in decimals
_INTERVALS, _MODULUS, _MOST_DECIMALS = 30, 20, 6
#: records of each table that an estimate's parent counts for
_PSEUDO = 5.0


def separate_single_columns(
    real: pd.DataFrame,
    synthetic: pd.DataFrame,
    schema: Schema,
    *,
    rng: np.random.Generator,
    limit: int = 10_000,
    level: float = 0.95,
) -> list[Row]:
    """Separate synthetic from real records by the present values of each numeric column alone, a row each.

    ``last_digits`` is the AUC of the last digits alone. It is near ``auc`` if habits of recording separate
    the column, and None if the column has too few values. ``size`` is the number of records of each table.

    A random part of each table is used, as many values as the table with fewer has, at most ``limit``.
    Columns with fewer present values than folds are left out.
    """
    found = []
    for column in (column for column in schema.columns if column.is_numeric):
        parts = [numeric_values(column, frame[column.name]) for frame in (real, synthetic)]
        parts = [values[~np.isnan(values)] for values in parts]
        size = min(*map(len, parts), limit)
        if size >= FOLDS:
            a, b = (values[rng.permutation(len(values))[:size]] for values in parts)
            found.append(_tell(a, b, column, level))
    return found


def _tell(real: Floats, synthetic: Floats, column: Column, level: float) -> Row:
    size = len(real)
    values, place = np.unique(np.concatenate([real, synthetic]), return_inverse=True)
    # Rows are in random order: every fifth row of a table is a random fold.
    fold, label = np.tile(np.arange(size) % FOLDS, 2), np.repeat([0, 1], size)
    counts = np.zeros((2, FOLDS, len(values)))
    np.add.at(counts, (label, fold, place), 1.0)
    # what the other folds hold
    others = counts.sum(axis=1, keepdims=True) - counts
    nothing, digits = np.full((FOLDS, len(values)), 0.5), _last_digits(values, column)
    by_digits = _shifted(nothing, others, digits)
    shape = _shifted(nothing, others, _intervals(counts.sum(axis=(0, 1))))
    scores = _shifted(_shifted(shape, others, digits), others, np.arange(len(values)))

    def told(score: Floats) -> Estimate:
        return within_folds(score[fold, place], label, fold, level)

    enough = column.rhythm is None and (column.n_values is None or column.n_values >= 2 * _MODULUS)
    last_digits = told(by_digits).value if enough else None
    auc = told(scores)
    ends = {"auc": auc.value, "lower": auc.lower, "upper": auc.upper}
    return {"column": column.name, **ends, "last_digits": last_digits, "size": size}


def _shifted(parent: Floats, counts: Floats, group: NDArray[np.int64]) -> Floats:
    """Share of synthetic records at each value, shape (folds, values), corrected group by group.

    In each group the odds of the parent are multiplied by found over expected records of both tables. Both
    sides have equally many pseudo-records. A group that the parent explains is therefore unchanged.
    """
    n_groups = int(group.max()) + 1
    total = counts.sum(axis=0)

    def by_group(weights: Floats) -> Floats:
        return np.stack([np.bincount(group, row, minlength=n_groups) for row in weights])

    synthetic, expected = by_group(counts[1]), by_group(parent * total)
    real, expected_real = by_group(counts[0]), by_group((1.0 - parent) * total)
    factor = (synthetic + _PSEUDO) / (expected + _PSEUDO) * (expected_real + _PSEUDO) / (real + _PSEUDO)
    odds = parent / (1.0 - parent) * factor[:, group]
    return odds / (1.0 + odds)


def _intervals(count: Floats) -> NDArray[np.int64]:
    """The interval of each value in ascending order, with equally many records in each if possible."""
    middle = np.cumsum(count) - 0.5 * count
    return np.unique((middle / count.sum() * _INTERVALS).astype(np.int64), return_inverse=True)[1]


def _last_digits(values: Floats, column: Column) -> NDArray[np.int64]:
    if column.rhythm is not None:  # habits of dates are weekdays and hours
        length, places = column.rhythm
        return np.mod(np.floor(values / length), places).astype(np.int64)
    if column.resolution is not None:
        return np.mod(np.rint(values / column.resolution), _MODULUS).astype(np.int64)
    # 1.25 has 2 decimals; beyond the most, digits are no habit
    scaled = np.outer(values, 10.0 ** np.arange(_MOST_DECIMALS))
    whole = np.abs(scaled - np.rint(scaled)) <= 1e-9 * np.maximum(np.abs(scaled), 1.0)
    return np.where(whole.any(axis=1), whole.argmax(axis=1), _MOST_DECIMALS)
