"""Best score function (Pedersen 2022, Theorem 4.2.1): guess that the smaller score was trained on.

Any function f of a record serves; the attacker is right as often as it is larger on the reserved side. Each
score here is larger where a model seems not to know a record.

References
----------
Song and Mittal (2021), "Systematic evaluation of privacy risks of machine learning models", for the modified
entropy. Yeom et al. (2018), "Privacy risk in machine learning", for the loss.

Bounded loss (Pedersen 2022, Theorem 4.2.2): guess "reserved" with the loss as probability.

The guess looks at the first record of the pair only. It turns the generalisation gap into accuracy, and
neither this strategy nor that of :mod:`~dpsynth.research.ltu.scores` is always the better one (Theorem
4.2.3).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpsynth.errors import InputError, of_records
from dpsynth.evaluation.estimates import Estimate, auc

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


#: probabilities are kept this far from 0 before a logarithm
CLIP = 1e-12


def loss(probabilities: Floats, labels: Ints) -> Floats:
    """Cross-entropy ``-log p_y`` of each record's label, shape (n,): the naive attacker's score."""
    found: Floats = -np.log(np.clip(_of_label(probabilities, labels), CLIP, 1.0))
    return found


def confidence(probabilities: Floats, labels: Ints) -> Floats:
    """``1 - max_k p_k``, shape (n,): how unsure the model is, whatever the label."""
    found: Floats = 1.0 - probabilities.max(axis=1)
    return found


def entropy(probabilities: Floats, labels: Ints) -> Floats:
    """``-sum_k p_k log p_k``, shape (n,), whatever the label."""
    found: Floats = -(probabilities * np.log(np.clip(probabilities, CLIP, 1.0))).sum(axis=1)
    return found


def modified_entropy(probabilities: Floats, labels: Ints) -> Floats:
    """``-(1 - p_y) log p_y - sum_{k != y} p_k log(1 - p_k)``, shape (n,) (Song and Mittal 2021, (6)).

    Unlike the entropy it is large for a record that is confidently misclassified.

    Examples
    --------
    >>> modified_entropy(np.array([[0.9, 0.1], [0.1, 0.9]]), np.array([0, 0])).round(3).tolist()
    [0.021, 4.145]
    """
    terms = -probabilities * np.log(np.clip(1.0 - probabilities, CLIP, 1.0))
    p = _of_label(probabilities, labels)
    rows = np.arange(len(labels))
    terms[rows, labels] = -(1.0 - p) * np.log(np.clip(p, CLIP, 1.0))
    found: Floats = terms.sum(axis=1)
    return found


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
    given: Floats = probabilities[np.arange(len(labels)), labels]
    return given


@dataclass(frozen=True)
class Favours:
    """How often a score favours each side over random pairs.

    Attributes
    ----------
    p_reserve, p_defender : float
        Probabilities (4.10) and (4.11) that f is larger on the reserved, or on the defender's, record.
    """

    p_reserve: float
    p_defender: float

    @property
    def accuracy(self) -> float:
        """``1/2 + (p_R - p_D) / 2``, ties by a coin (4.12).

        Examples
        --------
        >>> round(Favours(0.6, 0.3).accuracy, 3)
        0.65
        """
        return 0.5 + 0.5 * (self.p_reserve - self.p_defender)


def favours(defender: ArrayLike, reserve: ArrayLike) -> Favours:
    """Count all pairs of a defender's and a reserved record.

    Parameters
    ----------
    defender, reserve : array_like of shape (n,), (m,)
        Scores f; infinite ones allowed, NaN not.

    Raises
    ------
    InputError
        If a side is empty or a score is NaN.

    Examples
    --------
    >>> favours([0.1, 0.3, 0.6], [0.4, 0.7, 0.9])
    Favours(p_reserve=0.8888888888888888, p_defender=0.1111111111111111)
    """
    d, r = _checked(defender, reserve)
    ordered = np.sort(r)
    below, up_to = np.searchsorted(ordered, d, "left"), np.searchsorted(ordered, d, "right")
    pairs = len(d) * len(r)
    return Favours(float((len(r) - up_to).sum() / pairs), float(below.sum() / pairs))


def joint_favours(joint: ArrayLike) -> Favours:
    """The same from a joint distribution: rows are the defender's losses in rising order, columns reserved.

    Examples
    --------
    >>> joint_favours([[0.25, 0.25], [0.25, 0.25]])
    Favours(p_reserve=0.25, p_defender=0.25)
    """
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
    d, r = _checked(defender, reserve)
    ordered = np.sort(r)
    below, up_to = np.searchsorted(ordered, d, "left"), np.searchsorted(ordered, d, "right")
    above = len(r) - up_to
    accuracies: Floats = (above + 0.5 * (up_to - below)) / len(r)
    return accuracies


def _checked(defender: ArrayLike, reserve: ArrayLike) -> tuple[Floats, Floats]:
    d, r = (np.asarray(scores, dtype=np.float64).ravel() for scores in (defender, reserve))
    if not len(d) or not len(r):
        raise of_records(f"both sides must have scores, got {len(d)} and {len(r)}")
    if np.isnan(d).any() or np.isnan(r).any():
        raise InputError("a score is not a number; give one for each record")
    return d, r


def absolute_loss(probabilities: Floats, labels: Ints) -> Floats:
    """``1 - p_y``, shape (n,): a loss in [0, 1], half the absolute error of the predicted probabilities."""
    found: Floats = 1.0 - probabilities[np.arange(len(labels)), labels]
    return found


def gap(defender: ArrayLike, reserve: ArrayLike) -> float:
    """``e_R - e_D``, the difference of the mean losses, in [-1, 1].

    Raises
    ------
    InputError
        If a side is empty or a loss is outside [0, 1].
    """
    means = []
    for losses in (reserve, defender):
        given = np.asarray(losses, dtype=np.float64).ravel()
        if not len(given) or not ((given >= 0) & (given <= 1)).all():
            raise InputError("losses must lie in [0, 1], at least one on each side; scale them first")
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
