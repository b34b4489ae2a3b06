"""How good predictions are, for many weightings of the test records at once.

Every score takes non-negative weights of shape (n, k) and returns k values: the score itself for a column of
ones, its bootstrap resamples for columns of counts. Records are sorted once for each prediction; a resample
then costs a few sums. With weights the scores are those of :mod:`sklearn.metrics` with ``sample_weight``.

* area under the ROC curve (AUC), average precision, Brier score, calibration (two categories);
* AUC and average precision of each category against the rest, averaged over the categories that occur in the
  test records; Brier score summed over categories, accuracy, log loss (more categories);
* R squared, root mean squared and mean absolute error in the outcome's unit, calibration slope (numbers).

Intervals of scores by the bootstrap over test records.

Test records are drawn with replacement, and every score of every model is computed on the same draws, so that
the difference of two models is resampled in pairs. The models are held fixed: an interval says how the score
would vary with other test records of the same population. It does not cover the randomness of training, nor
that of the synthetic table, whose rows may differ as much from one run of the generator to the next.

A draw in which a score is not defined (one outcome only) is left out of that score's interval.
See Efron and Tibshirani (1993), chapter 13 (percentile intervals). These are too short for few records: in
simulations with a third of positive outcomes, 95 % intervals of the scores of two categories held the truth
in 88 to 94 % of tables of 60 records, 91 to 94 % of 120 and 93 to 97 % of 500, calibration slope and average
precision the least often.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from dpsynth.evaluation.progress import Progress, silent
from dpsynth.evaluation.utility.calibration import CLIP, Recalibration
from dpsynth.evaluation.utility.outcomes import OutcomeKind
from dpsynth.evaluation.utility.predictions import Prediction

Floats = NDArray[np.float64]


#: from weights of shape (n, k) to each score's values of shape (k,), NaN where it is not defined
Scorer = Callable[[Floats], dict[str, Floats]]

#: the scores of each kind of outcome, with what they are in words
SCORES: dict[OutcomeKind, dict[str, str]] = {
    "binary": {
        "auc": "area under the ROC curve (1 perfect, 0.5 chance)",
        "average_precision": "average precision (1 perfect, the positive rate by chance)",
        "brier": "Brier score (0 perfect)",
        "calibration_slope": "calibration slope (1 ideal, below 1 too extreme)",
        "calibration_intercept": "calibration intercept at slope 1 (0 ideal, above 0 predicted too low)",
    },
    "categories": {
        "auc": "area under the ROC curve, mean of one category against the rest (1 perfect, 0.5 chance)",
        "average_precision": "average precision, mean of one category against the rest (1 perfect)",
        "brier": "Brier score, sum over categories (0 perfect, 2 worst)",
        "accuracy": "share of records whose most probable category is right",
        "log_loss": "log loss in nats (0 perfect), probabilities held above 1e-6",
    },
    "numeric": {
        "r2": "R squared (1 perfect, 0 no better than the mean)",
        "rmse": "root mean squared error in the outcome's unit",
        "mae": "mean absolute error in the outcome's unit",
        "calibration_slope": "slope of observed on predicted (1 ideal, below 1 too extreme)",
    },
}
#: scores that a mere ranking of the records has
RANKING = ("auc", "average_precision", "accuracy")


class Ranking:
    """Records sorted by a score, ready to tell any weighting's AUC and average precision.

    Parameters
    ----------
    y : ndarray of bool of shape (n,)
        Which records are positive.
    score : ndarray of shape (n,)
        Higher for records that are more likely positive; ``-inf`` is allowed.
    """

    def __init__(self, y: NDArray[np.bool_], score: Floats) -> None:
        self._order = np.argsort(score, kind="stable")
        ordered = score[self._order]
        self._starts = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
        self._positive = y[self._order].astype(np.float64)[:, None]

    def __call__(self, weights: Floats) -> tuple[Floats, Floats]:
        """Return AUC and average precision for each column of weights (n, k), NaN without both classes."""
        ordered = weights[self._order]
        positive = ordered * self._positive
        ordered -= positive
        negative = ordered
        if len(self._starts) < len(self._order):
            positive = np.add.reduceat(positive, self._starts, axis=0)
            negative = np.add.reduceat(negative, self._starts, axis=0)
        positives, negatives = positive.sum(axis=0), negative.sum(axis=0)
        below = np.cumsum(negative, axis=0)
        with np.errstate(divide="ignore", invalid="ignore"):
            # A pair counts 1 if the positive record ranks above the negative one, 1/2 if they are tied.
            wins = np.einsum("gk,gk->k", positive, below) - np.einsum("gk,gk->k", positive, negative) / 2
            auc = wins / (positives * negatives)
            # Precision among the records that rank at least as high, averaged over the positive ones.
            hits = positives - np.cumsum(positive, axis=0) + positive
            below -= negative
            called = hits + (negatives - below)
            np.divide(hits, called, out=hits, where=called > 0)
            precision = np.einsum("gk,gk->k", positive, hits) / positives
        both = (positives > 0) & (negatives > 0)
        return np.where(both, auc, np.nan), np.where(both, precision, np.nan)


def scorer(kind: OutcomeKind, y: NDArray[np.int64 | np.float64], prediction: Prediction) -> Scorer:
    """Prepare the scores of one prediction.

    Parameters
    ----------
    kind : {"binary", "categories", "numeric"}
    y : ndarray of shape (n,)
        Positions of categories, or numbers.
    prediction : Prediction
        Not a failed one. Where it only ranks the records, only the scores in :data:`RANKING` are given.

    Returns
    -------
    callable
        From weights of shape (n, k) to a mapping of score names to values of shape (k,).
    """
    values = prediction.predicted
    if values is None:
        raise ValueError("a failed prediction has no scores")
    if kind == "numeric":
        return _numeric(y.astype(np.float64), values)
    codes = y.astype(np.int64)
    if kind == "binary":
        return _binary(codes == 1, values[:, 1], prediction.probabilities)
    return _categories(codes, values, prediction.probabilities)


def _binary(y: NDArray[np.bool_], score: Floats, probabilities: bool) -> Scorer:
    ranking = Ranking(y, score)
    calibration = Recalibration(y, score) if probabilities else None
    squared = (score - y) ** 2 if probabilities else score

    def scores(weights: Floats) -> dict[str, Floats]:
        auc, precision = ranking(weights)
        found = {"auc": auc, "average_precision": precision}
        if calibration is not None:
            found["brier"] = squared @ weights / weights.sum(axis=0)
            found["calibration_slope"] = calibration.slope(weights)
            found["calibration_intercept"] = calibration.intercept(weights)
        return found

    return scores


def _categories(y: NDArray[np.int64], values: Floats, probabilities: bool) -> Scorer:
    rankings = [Ranking(y == code, values[:, code]) for code in np.unique(y).tolist()]
    right = (values.argmax(axis=1) == y).astype(np.float64)
    records = np.arange(len(y))
    per_record = [right]
    if probabilities:
        hot = np.zeros_like(values)
        hot[records, y] = 1.0
        per_record.append(((values - hot) ** 2).sum(axis=1))
        per_record.append(-np.log(np.clip(values[records, y], CLIP, 1.0)))
    stacked = np.stack(per_record)

    def scores(weights: Floats) -> dict[str, Floats]:
        ranked = np.array([ranking(weights) for ranking in rankings])
        # A category without weight, or with all of it, has no AUC and takes no part in the mean.
        occurs = ~np.isnan(ranked[:, 0])
        with np.errstate(invalid="ignore"):
            auc, precision = np.where(occurs[:, None], ranked, 0.0).sum(axis=0) / occurs.sum(axis=0)
        means = stacked @ weights / weights.sum(axis=0)
        found = {"auc": auc, "average_precision": precision, "accuracy": means[0]}
        return found | (dict(brier=means[1], log_loss=means[2]) if probabilities else {})

    return scores


def _numeric(y: Floats, predicted: Floats) -> Scorer:
    # Sums of squares about the means of all records keep their digits where the mean is large.
    a, b = y - y.mean(), predicted - predicted.mean()
    residual = y - predicted
    moments = np.stack([a, b, a * a, a * b, b * b, residual**2, np.abs(residual)])
    scale_a, scale_b = float((a * a).mean()), float((b * b).mean())
    flat_a, flat_b = _is_constant(y), _is_constant(predicted)

    def scores(weights: Floats) -> dict[str, Floats]:
        mean_a, mean_b, aa, ab, bb, squared, absolute = moments @ weights / weights.sum(axis=0)
        spread_a, spread_b = aa - mean_a**2, bb - mean_b**2
        # a resample of one record repeated varies by rounding only
        varies_a = (spread_a > 1e-12 * scale_a) & (not flat_a)
        varies_b = (spread_b > 1e-12 * scale_b) & (not flat_b)
        with np.errstate(divide="ignore", invalid="ignore"):
            r2 = np.where(varies_a, 1.0 - squared / spread_a, np.nan)
            slope = np.where(varies_b, (ab - mean_a * mean_b) / spread_b, np.nan)
        return {"r2": r2, "rmse": np.sqrt(squared), "mae": absolute, "calibration_slope": slope}

    return scores


def _is_constant(values: Floats) -> bool:
    return bool(np.ptp(values) <= 1e-12 * max(1.0, float(np.abs(values).max())))


@dataclass(frozen=True)
class RocCurve:
    """Points of a ROC curve, from (0, 0) to (1, 1).

    Attributes
    ----------
    fpr, tpr : tuple of float
        False and true positive rate, ascending.
    """

    fpr: tuple[float, ...]
    tpr: tuple[float, ...]


def roc_points(y: NDArray[np.bool_], score: Floats, points: int = 200) -> RocCurve:
    """ROC curve with at most ``points`` points, spread evenly along its length.

    Parameters
    ----------
    y : ndarray of bool of shape (n,)
        With both classes.
    score : ndarray of shape (n,)

    Returns
    -------
    RocCurve
        Of every point that is left out, one that is kept lies within ``2 / (points - 1)`` along the curve.
    """
    from sklearn.metrics import roc_curve

    fpr, tpr, _ = roc_curve(y, score, drop_intermediate=True)
    if len(fpr) > points:
        length = fpr + tpr  # from 0 to 2, the way along the axes
        kept = np.searchsorted(length, np.linspace(0.0, 2.0, points)[:-1])
        kept = np.unique(np.append(kept, len(fpr) - 1))
        fpr, tpr = fpr[kept], tpr[kept]
    return RocCurve(tuple(fpr.tolist()), tuple(tpr.tolist()))


Key = TypeVar("Key", bound=Hashable)

#: weights handled at once: small enough for the processor's cache, large enough for its vector units
_BLOCK = 400_000
#: with fewer test records, or fewer in the second most frequent category, resamples say nothing
FEWEST_RECORDS = 10
FEWEST_OF_A_CATEGORY = 5


def enough_records(y: NDArray[np.int64 | np.float64], kind: OutcomeKind) -> bool:
    """Whether there are enough test records for a bootstrap interval.

    At least 10, and for categories at least 5 in each of two of them: a resample of two records only repeats
    them, and its interval would be far too short.
    """
    if len(y) < FEWEST_RECORDS:
        return False
    if kind == "numeric":
        return True
    counts = np.sort(np.unique(y, return_counts=True)[1])
    return len(counts) > 1 and int(counts[-2]) >= FEWEST_OF_A_CATEGORY


def bootstrap(
    statistic: Callable[[Floats], dict[Key, Floats]],
    n: int,
    resamples: int,
    rng: np.random.Generator,
    progress: Progress = silent,
) -> dict[Key, Floats]:
    """Evaluate statistics on resamples of n records.

    Parameters
    ----------
    statistic : callable
        From counts of shape (n, k), how often each record was drawn in each of k resamples, to a mapping of
        names to values of shape (k,). Names are the same at every call.
    n : int
        Number of records.
    resamples : int
        At least 1.

    Returns
    -------
    dict of name to ndarray of shape (resamples,)
    """
    width = max(1, min(resamples, _BLOCK // n))
    parts: list[dict[Key, Floats]] = []
    for first in range(0, resamples, width):
        size = min(width, resamples - first)
        drawn = rng.integers(n, size=(size, n)) * size + np.arange(size)[:, None]
        counts = np.bincount(drawn.ravel(), minlength=n * size).reshape(n, size).astype(np.float64)
        parts.append(statistic(counts))
        progress((first + size) / resamples)
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def percentile_interval(values: Floats, level: float) -> tuple[float, float] | None:
    """Interval between the outer quantiles of resampled values, NaN where a resample has none.

    None if more than a tenth of the values are NaN: what is left would be a selection. ``level`` in (0, 1).
    """
    defined = values[~np.isnan(values)]
    if len(defined) < max(2, 0.9 * len(values)):
        return None
    lower, upper = np.quantile(defined, [0.5 - level / 2, 0.5 + level / 2])
    return float(lower), float(upper)
