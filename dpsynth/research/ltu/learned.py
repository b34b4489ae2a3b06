"""Learned combination of scores: the attacker mines the records whose labels it knows (section 4.2.2).

A logistic regression on the scores of :mod:`~dpsynth.research.ltu.scores`, their ranks and the record's class
learns from the labelled records what tells both sides apart. It is the strategy of Theorem 4.2.1 with an f
that is chosen for this model.
"""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import NDArray

from dpsynth.research.ltu.scores import all_scores

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


def features(probabilities: Floats, labels: Ints) -> Floats:
    """What the combination is learned from, shape (n, k): scores as ranks in [0, 1], by class, and the class.

    Ranks are among all records of both sides, which the attacker holds without their labels too.
    """
    from scipy.stats import rankdata

    scores = all_scores(probabilities, labels)
    ranks = (np.apply_along_axis(rankdata, 0, scores) - 0.5) / len(scores)
    one_hot = (labels[:, None] == np.arange(probabilities.shape[1])).astype(np.float64)
    products = (ranks[:, :, None] * one_hot[:, None, :]).reshape(len(ranks), -1)
    return np.hstack([ranks, (ranks - 0.5) ** 2, one_hot, products])


def reserved_log_odds(known: Floats, members: Bools, asked: Floats) -> Floats:
    """Log-odds that records are reserved, learned from labelled ones.

    Parameters
    ----------
    known : ndarray of shape (n, k)
    members : ndarray of bool, shape (n,)
        Whether each known record is the defender's.
    asked : ndarray of shape (m, k)

    Returns
    -------
    ndarray of shape (m,)
        Larger for the reserved side: a score f. 0 for all if only one side is known.
    """
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression

    if members.all() or not members.any():
        return np.zeros(len(asked))
    learner = LogisticRegression(max_iter=200, class_weight="balanced")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # it need not be the best combination
        learner.fit(known, ~members)
    odds: Floats = np.asarray(learner.decision_function(asked), dtype=np.float64)
    return odds


def cross_fitted(points: Floats, members: Bools, seed: int, folds: int = 10) -> Floats:
    """Log-odds of every record by a combination that was learned without its label, shape (n,)."""
    from sklearn.model_selection import StratifiedKFold

    fewest = int(min(members.sum(), (~members).sum()))
    found = np.zeros(len(points))
    if fewest < 2:
        return found
    splits = StratifiedKFold(min(folds, fewest), shuffle=True, random_state=seed).split(points, members)
    for known, asked in splits:
        found[asked] = reserved_log_odds(points[known], members[known], points[asked])
    return found


def cross_fitted_threshold(scores: Floats, members: Bools, seed: int, folds: int = 10) -> Bools:
    """Whether each record is called a member, by the best threshold on the other folds' scores.

    Parameters
    ----------
    scores : ndarray of shape (n,)
        Larger for the reserved side.
    members : ndarray of bool, shape (n,)

    Returns
    -------
    ndarray of bool, shape (n,)
    """
    from sklearn.model_selection import StratifiedKFold

    called = np.zeros(len(scores), dtype=bool)
    fewest = int(min(members.sum(), (~members).sum()))
    if fewest < 2:
        return called
    points = scores[:, None]
    for known, asked in StratifiedKFold(min(folds, fewest), shuffle=True, random_state=seed).split(
        points, members
    ):
        called[asked] = scores[asked] <= best_threshold(scores[known], members[known])
    return called


def best_threshold(scores: Floats, members: Bools) -> float:
    """Call a record a member at or below it: the threshold of the best balanced accuracy.

    Examples
    --------
    >>> best_threshold(np.array([0.1, 0.2, 0.9]), np.array([True, True, False]))
    0.2
    """
    order = np.argsort(scores, kind="stable")
    ordered, sides = scores[order], members[order]
    right = np.cumsum(sides) / max(sides.sum(), 1) - np.cumsum(~sides) / max((~sides).sum(), 1)
    # of tied scores all or none are below the threshold
    last = np.append(ordered[1:] > ordered[:-1], True)
    place = int(np.argmax(np.where(last, right, -np.inf)))
    return float(ordered[place]) if right[place] > 0 else float("-inf")
