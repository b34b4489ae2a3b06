"""Scores of records: strategies of Theorems 4.2.1 and 4.2.2 (Pedersen 2022).

*Best score function* (Theorem 4.2.1): guess that the record with the smaller score was trained on. Any
function f of a record serves. The attacker is right as often as f is larger on the reserved side. Each score
here is larger if a record seems not to be a training record. The learned combination (section 4.2.2) is a
logistic regression on the scores, their ranks and the record's class. It is fitted to the records whose
labels the attacker has.

*Bounded loss* (Theorem 4.2.2): look at the first record of the pair only, and guess "reserved" with its loss
as probability. Neither strategy is always the better one (Theorem 4.2.3).

References
----------
Song and Mittal (2021), "Systematic evaluation of privacy risks of machine learning models", for the modified
entropy. Yeom et al. (2018), "Privacy risk in machine learning", for the loss.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpsynth.errors import InputError, of_records
from dpsynth.evaluation.estimates import Estimate, auc

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

#: probabilities are kept this far from 0 before a logarithm
CLIP = 1e-12


def loss(probabilities: Floats, labels: Ints) -> Floats:
    """Cross-entropy ``-log p_y`` of each record's label, shape (n,): the naive attacker's score."""
    return -np.log(np.clip(_of_label(probabilities, labels), CLIP, 1.0))


def confidence(probabilities: Floats, labels: Ints) -> Floats:
    """``1 - max_k p_k``, shape (n,): how unsure the model is, whatever the label."""
    return 1.0 - probabilities.max(axis=1)


def entropy(probabilities: Floats, labels: Ints) -> Floats:
    """``-sum_k p_k log p_k``, shape (n,), whatever the label."""
    return -(probabilities * np.log(np.clip(probabilities, CLIP, 1.0))).sum(axis=1)


def modified_entropy(probabilities: Floats, labels: Ints) -> Floats:
    """``-(1 - p_y) log p_y - sum_{k != y} p_k log(1 - p_k)``, shape (n,) (Song and Mittal 2021, (6)).

    Unlike the entropy it is large for a record that is confidently misclassified.
    """
    terms = -probabilities * np.log(np.clip(1.0 - probabilities, CLIP, 1.0))
    p = _of_label(probabilities, labels)
    rows = np.arange(len(labels))
    terms[rows, labels] = -(1.0 - p) * np.log(np.clip(p, CLIP, 1.0))
    return terms.sum(axis=1)


#: by name; each takes probabilities (n, classes) and labels (n,)
SCORES: dict[str, Callable[[Floats, Ints], Floats]] = {
    "loss": loss,
    "confidence": confidence,
    "entropy": entropy,
    "modified_entropy": modified_entropy,
}


def all_scores(probabilities: Floats, labels: Ints) -> Floats:
    """Every score of :data:`SCORES`, shape (n, scores)."""
    return np.stack([score(probabilities, labels) for score in SCORES.values()], axis=1)


def _of_label(probabilities: Floats, labels: Ints) -> Floats:
    return probabilities[np.arange(len(labels)), labels]


class Favours(NamedTuple):
    """Probabilities (4.10), (4.11) that f is larger on a pair's reserved, or the defender's, record."""

    p_reserve: float
    p_defender: float

    @property
    def accuracy(self) -> float:
        """``1/2 + (p_R - p_D) / 2``, ties by a coin (4.12)."""
        return 0.5 + 0.5 * (self.p_reserve - self.p_defender)


def favours(defender: ArrayLike, reserve: ArrayLike) -> Favours:
    """Count all pairs of scores f, infinite ones allowed. InputError for NaN or an empty side.

    Examples
    --------
    >>> favours([0.1, 0.3, 0.6], [0.4, 0.7, 0.9])
    Favours(p_reserve=0.8888888888888888, p_defender=0.1111111111111111)
    """
    below, above, reserved = _compared(*_checked(defender, reserve))
    pairs = len(below) * reserved
    return Favours(float(above.sum() / pairs), float(below.sum() / pairs))


def joint_favours(joint: ArrayLike) -> Favours:
    """Return the same from a joint distribution: the defender's losses in rising order by reserved ones."""
    table = np.asarray(joint, dtype=np.float64)
    return Favours(float(np.triu(table, 1).sum()), float(np.tril(table, -1).sum()))


def pair_accuracy(defender: ArrayLike, reserve: ArrayLike, level: float = 0.95) -> Estimate:
    """Accuracy over all pairs, with DeLong's interval over records of both sides, the model held fixed."""
    d, r = _checked(defender, reserve)
    return auc(r, d, level)


def individual_accuracy(defender: ArrayLike, reserve: ArrayLike) -> Floats:
    """Accuracy on each defender's record, against every reserved one (section 4.2.1), shape (n,).

    Examples
    --------
    >>> individual_accuracy([0.1, 0.8], [0.4, 0.8]).tolist()
    [1.0, 0.25]
    """
    below, above, reserved = _compared(*_checked(defender, reserve))
    return (above + 0.5 * (reserved - above - below)) / reserved


def _compared(d: Floats, r: Floats) -> tuple[Ints, Ints, int]:
    """How many reserved scores are below and above each of the defender's, and how many there are."""
    ordered = np.sort(r)
    return np.searchsorted(ordered, d, "left"), len(r) - np.searchsorted(ordered, d, "right"), len(r)


def _checked(defender: ArrayLike, reserve: ArrayLike) -> tuple[Floats, Floats]:
    d, r = (np.asarray(scores, dtype=np.float64).ravel() for scores in (defender, reserve))
    if not len(d) or not len(r):
        raise of_records(f"both sides must have scores, got {len(d)} and {len(r)}")
    if np.isnan(d).any() or np.isnan(r).any():
        raise InputError("a score is not a number. Give one for each record")
    return d, r


def absolute_loss(probabilities: Floats, labels: Ints) -> Floats:
    """``1 - p_y``, shape (n,): a loss in [0, 1], half the absolute error of the predicted probabilities."""
    return 1.0 - _of_label(probabilities, labels)


def gap(defender: ArrayLike, reserve: ArrayLike) -> float:
    """``e_R - e_D``, the difference of the mean losses. InputError if a loss is outside [0, 1]."""
    means = []
    for losses in (reserve, defender):
        given = np.asarray(losses, dtype=np.float64).ravel()
        if not len(given) or not ((given >= 0) & (given <= 1)).all():
            raise InputError("losses must lie in [0, 1], at least one on each side. Scale them first")
        means.append(float(given.mean()))
    return means[0] - means[1]


def accuracy(defender: ArrayLike, reserve: ArrayLike) -> float:
    """Accuracy of the strategy over all pairs: ``1/2 + (e_R - e_D) / 2``, (4.13) with equality (4.16).

    Examples
    --------
    >>> round(accuracy([0.0, 0.5], [0.3, 0.4]), 3)
    0.55
    """
    return 0.5 + 0.5 * gap(defender, reserve)


def joint_gap(joint: ArrayLike, losses: ArrayLike) -> float:
    """``e_R - e_D`` of a joint distribution, rows the defender's losses, columns the reserved ones."""
    table, values = np.asarray(joint, dtype=np.float64), np.asarray(losses, dtype=np.float64)
    return float(table.sum(axis=0) @ values - table.sum(axis=1) @ values)


def guess_reserved(first_loss: float, rng: np.random.Generator) -> bool:
    """Whether the first record of the pair is said to be reserved: with probability ``first_loss``."""
    return bool(rng.random() < first_loss)


def features(probabilities: Floats, labels: Ints) -> Floats:
    """Return features of the combination: ranks of scores in [0, 1], the class, and their products.

    Ranks are among all records of both sides, which the attacker holds without their labels too.
    """
    from scipy.stats import rankdata

    scores = all_scores(probabilities, labels)
    ranks = (np.apply_along_axis(rankdata, 0, scores) - 0.5) / len(scores)
    one_hot = (labels[:, None] == np.arange(probabilities.shape[1])).astype(np.float64)
    products = (ranks[:, :, None] * one_hot[:, None, :]).reshape(len(ranks), -1)
    return np.hstack([ranks, (ranks - 0.5) ** 2, one_hot, products])


def reserved_log_odds(known: Floats, members: Bools, asked: Floats) -> Floats:
    """Return log-odds that ``asked`` records are reserved, learned from ``known`` ones of both sides."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression

    if members.all() or not members.any():
        return np.zeros(len(asked))
    learner = LogisticRegression(max_iter=200, class_weight="balanced")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # it need not be the best combination
        learner.fit(known, ~members)
    return np.asarray(learner.decision_function(asked), dtype=np.float64)


def _folds(members: Bools, seed: int) -> Iterator[tuple[Ints, Ints]]:
    """Known and asked positions of ten folds, or fewer. None if a side has one record."""
    from sklearn.model_selection import StratifiedKFold

    fewest = int(min(members.sum(), (~members).sum()))
    if fewest >= 2:
        yield from StratifiedKFold(min(10, fewest), shuffle=True, random_state=seed).split(members, members)


def cross_fitted(points: Floats, members: Bools, seed: int) -> Floats:
    """Return log-odds of every record by a combination that was learned without its label, shape (n,)."""
    found = np.zeros(len(points))
    for known, asked in _folds(members, seed):
        found[asked] = reserved_log_odds(points[known], members[known], points[asked])
    return found


def cross_fitted_threshold(scores: Floats, members: Bools, seed: int) -> Bools:
    """Return whether each record is called a member, by the best threshold on the other folds' scores."""
    called = np.zeros(len(scores), dtype=bool)
    for known, asked in _folds(members, seed):
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
