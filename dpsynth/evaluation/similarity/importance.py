"""Which columns give synthetic records away: what the discriminator loses when one of them is shuffled.

Permutation importance (Breiman 2001, "Random forests", Machine Learning 45, section 10) on records that the
model has not seen: one column is shuffled over real and synthetic records alike, which breaks its tie to
everything else; the fall of the AUC is what the model owed to it, alone or with others. Columns that say the
same thing stand in for one another, so that each of them may cost little.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsynth.evaluation.estimates import Estimate, delong

Floats = NDArray[np.float64]


def shuffled_losses(
    model: Any, points: Floats, label: NDArray[np.int64], scores: Floats, rng: np.random.Generator
) -> Floats:
    """Fall of a fitted model's AUC when each column in turn is shuffled.

    Parameters
    ----------
    points : ndarray of shape (n, columns)
        Records that the model was not trained on.
    label : ndarray of shape (n,)
        1 for synthetic, 0 for real.
    scores : ndarray of shape (n,)
        What the model gives to the records as they are.

    Returns
    -------
    ndarray of shape (columns,)
    """
    whole = _auc(scores, label)
    losses = np.empty(points.shape[1])
    for column in range(points.shape[1]):
        changed = points.copy()
        changed[:, column] = rng.permutation(changed[:, column])
        losses[column] = whole - _auc(model.predict_proba(changed)[:, 1], label)
    return losses


def over_folds(losses: Floats, level: float = 0.95) -> list[Estimate]:
    """Mean loss of each column over at least two folds of a cross-fit; ``losses`` of shape (folds, columns).

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
    return delong(scores[label == 1], scores[label == 0]).auc
