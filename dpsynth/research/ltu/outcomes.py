"""What an attack reached: privacy (4.9), all pairs of a score, single records, low false positive rates.

Everything is about the records and, unless the defender trains anew in each round, about this one model;
it is internal.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpsynth.attacks.bayes import lowest_fpr, membership_probability, tpr_at_fpr
from dpsynth.checks import in_range, whole
from dpsynth.evaluation.disclosure.distances import chance_tpr
from dpsynth.evaluation.estimates import Estimate, share
from dpsynth.research.ltu import learned, scores

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

#: false positive rates to report, of which those are left out that the sample cannot support
RATES = (0.1, 0.01, 0.001)


@dataclass(frozen=True)
class Privacy:
    """Global membership privacy: 1 where the attacker does no better than a coin, 0 where it is always right.

    Attributes
    ----------
    value : float
    error : float
        Standard error, 0 for an attack that was always right: the interval of the accuracy says more then.
    """

    value: float
    error: float


def privacy(accuracy: float, rounds: int) -> Privacy:
    """``min{2 (1 - A), 1} +- 2 sqrt(A (1 - A) / N)`` (Pedersen 2022, (4.9)).

    Examples
    --------
    >>> privacy(0.75, 300)
    Privacy(value=0.5, error=0.05)
    """
    a = in_range("accuracy", accuracy, 0.0, 1.0)
    error = 2.0 * float(np.sqrt(a * (1.0 - a) / whole("rounds", rounds)))
    return Privacy(min(2.0 * (1.0 - a), 1.0), error)


def accuracy_bound(epsilon: float, delta: float = 0.0) -> float:
    """``(e^epsilon + delta) / (1 + e^epsilon)``: the most that any attack reaches on a private trainer.

    Parameters
    ----------
    epsilon, delta : float
        For the *replacement* of one record, which is what both candidates differ by; a guarantee for adding
        or removing one record at epsilon is one for replacing one at 2 epsilon (Jia 2023; (5.10) for delta
        0).

    Examples
    --------
    >>> round(accuracy_bound(1.0), 4)
    0.7311
    """
    from scipy.special import expit

    in_range("epsilon", epsilon, 0.0, np.inf)
    in_range("delta", delta, 0.0, 1.0)
    return min(1.0, float(expit(epsilon)) + delta * float(expit(-epsilon)))


@dataclass(frozen=True)
class RoundsResult:
    """A strategy's guesses over the rounds.

    Attributes
    ----------
    strategy, theorem : str
    rounds, right, tied : int
        Ties are decided by a coin.
    accuracy : Estimate
        Clopper and Pearson's interval over rounds.
    privacy : Privacy
    """

    strategy: str
    theorem: str
    rounds: int
    right: int
    tied: int
    accuracy: Estimate
    privacy: Privacy


def rounds_result(
    strategy: str, theorem: str, guesses: Sequence[tuple[bool, bool]], level: float
) -> RoundsResult:
    """Sum up ``(right, tied)`` of each round."""
    right, tied = sum(one[0] for one in guesses), sum(one[1] for one in guesses)
    accuracy = share(right, len(guesses), level)
    found = privacy(accuracy.value, len(guesses))
    return RoundsResult(strategy, theorem, len(guesses), right, tied, accuracy, found)


@dataclass(frozen=True)
class LowRate:
    """A true positive rate at a false positive rate, beside what a score that knows nothing stays below.

    Attributes
    ----------
    fpr : float
        Asked for.
    tpr : Estimate
    chance : float
        At most so many in 95 of 100 experiments (or whatever the level) if the score says nothing.
    """

    fpr: float
    tpr: Estimate
    chance: float


@dataclass(frozen=True)
class PairsResult:
    """A score over all pairs of a defender's and a reserved record, and over single records.

    Attributes
    ----------
    strategy : str
    pairwise : Estimate
        Accuracy of the LTU attacker, DeLong's interval over records.
    per_record : Estimate
        Accuracy of the same attack on records one by one, as many of each side, by a threshold.
    privacy : float
        ``min{2 (1 - A), 1}``.
    individual : tuple of float
        Accuracy on each of the defender's records, against all reserved ones.
    individual_reserved : tuple of float
        Accuracy on each reserved record, against all of the defender's: its non-membership.
    low_rates : tuple of LowRate
        As low as the sample supports.
    p_in : tuple of float
        Predicted probability of membership of every record, the defender's first; empty for a score that is
        no log-odds.
    """

    strategy: str
    pairwise: Estimate
    per_record: Estimate
    privacy: float
    individual: tuple[float, ...]
    individual_reserved: tuple[float, ...]
    low_rates: tuple[LowRate, ...]
    p_in: tuple[float, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return asdict(self)


def pairs_result(
    strategy: str,
    score: ArrayLike,
    members: Bools,
    *,
    seed: int = 0,
    log_odds: bool = False,
    level: float = 0.95,
) -> PairsResult:
    """Judge a score that is larger for reserved records.

    Parameters
    ----------
    score : array_like of shape (n,)
        Of records of both sides, none learned from its own label.
    members : ndarray of bool, shape (n,)
    seed : int
        Of the folds on which thresholds are learned.
    log_odds : bool
        Whether the score is log-odds, whose threshold is 0; else the best on the other folds is used.
    """
    values = np.asarray(score, dtype=np.float64)
    d, r = values[members], values[~members]
    pairwise = scores.pair_accuracy(d, r, level)
    called = values < 0 if log_odds else learned.cross_fitted_threshold(values, members, seed)
    return PairsResult(
        strategy,
        pairwise,
        _balanced(called, members, level),
        min(2.0 * (1.0 - pairwise.value), 1.0),
        tuple(scores.individual_accuracy(d, r).tolist()),
        tuple(scores.individual_accuracy(-r, -d).tolist()),
        low_rates(-d, -r, level),
        tuple(membership_probability(-np.concatenate([d, r])).tolist()) if log_odds else (),
    )


def _balanced(called: Bools, members: Bools, level: float) -> Estimate:
    """Accuracy at even odds; the sides' intervals added as variances (Newcombe's squares)."""
    sides = [share(int((called == members)[of].sum()), int(of.sum()), level) for of in (members, ~members)]
    value = sum(side.value for side in sides) / 2
    ours, others = sides
    below = float(np.hypot(ours.value - ours.lower, others.value - others.lower)) / 2
    above = float(np.hypot(ours.upper - ours.value, others.upper - others.value)) / 2
    return Estimate(value, max(value - below, 0.0), min(value + above, 1.0))


def low_rates(members: Floats, others: Floats, level: float = 0.95) -> tuple[LowRate, ...]:
    """True positive rates of a score, larger for members, at those of :data:`RATES` that n supports."""
    found = []
    for rate in RATES:
        if rate < lowest_fpr(len(others)):
            continue
        chance = chance_tpr(len(members), len(others), rate, level)
        found.append(LowRate(rate, tpr_at_fpr(members, others, rate, level).tpr, float(chance or 0.0)))
    return tuple(found)


@dataclass(frozen=True)
class PrivacyLoss:
    """Effective privacy loss ``gamma(u)`` of the defender's records, (5.11); no differential privacy.

    Attributes
    ----------
    median, upper, largest : float
        Of the defender's records: middle, 95th percentile and largest.
    reserve_median : float
        Of reserved records.
    most_probable : float
        Largest ``P_IN = 1 / (1 + exp(-gamma))`` of a defender's record.
    """

    median: float
    upper: float
    largest: float
    reserve_median: float
    most_probable: float


def privacy_loss(gamma: Floats, members: Bools) -> PrivacyLoss:
    """Sum up the log-odds of records of both sides, shape (n,)."""
    ours = gamma[members]
    return PrivacyLoss(
        float(np.median(ours)),
        float(np.quantile(ours, 0.95)),
        float(ours.max()),
        float(np.median(gamma[~members])),
        float(membership_probability(ours.max())),
    )
