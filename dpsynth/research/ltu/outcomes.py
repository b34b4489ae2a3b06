"""What an attack reached: privacy (4.9), all pairs of a score, single records, low false positive rates.

Everything is about the records and, unless the defender trains anew in each round, about this one model.
It is internal.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpsynth.attacks.bayes import lowest_fpr, membership_probability, tpr_at_fpr
from dpsynth.checks import in_range, whole
from dpsynth.evaluation.disclosure.membership_distance import chance_tpr
from dpsynth.evaluation.estimates import Estimate, share
from dpsynth.research.ltu import scores

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

#: false positive rates to report, of which those are left out that the sample cannot support
RATES = (0.1, 0.01, 0.001)


@dataclass(frozen=True)
class Privacy:
    """Global membership privacy: 1 where the attacker does no better than a coin, 0 where it is always right.

    ``error`` is the standard error. It is 0 for an attack that was always right: see the accuracy's interval
    then.
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


@dataclass(frozen=True)
class RoundsResult:
    """A strategy's guesses over the rounds, ties by a coin; the interval is Clopper and Pearson's."""

    strategy: str
    theorem: str
    rounds: int
    right: int
    tied: int
    accuracy: Estimate
    privacy: Privacy


@dataclass(frozen=True)
class LowRate:
    """A true positive rate at a false positive rate.

    ``chance`` is the rate that a score without information passes with probability 1 - level only.
    """

    fpr: float
    tpr: Estimate
    chance: float


@dataclass(frozen=True)
class PairsResult:
    """A score over all pairs of a defender's and a reserved record, and over single records.

    ``pairwise`` is the accuracy of the LTU attacker with DeLong's interval over records, ``privacy`` ``min{2
    (1 - A), 1}`` of it. ``per_record`` is that of the same attack on records one by one, as many of each
    side, by a threshold. ``individual`` and ``individual_reserved`` are the accuracies on each record of one
    side against all of the other. ``low_rates`` go as low as the sample supports. ``p_in`` has the predicted
    probability of membership of every record, the defender's first; it is empty for a score that is no
    log-odds.
    """

    strategy: str
    pairwise: Estimate
    per_record: Estimate
    privacy: float
    individual: tuple[float, ...]
    individual_reserved: tuple[float, ...]
    low_rates: tuple[LowRate, ...]
    p_in: tuple[float, ...] = ()


def pairs_result(
    strategy: str,
    score: ArrayLike,
    members: Bools,
    *,
    seed: int = 0,
    log_odds: bool = False,
    level: float = 0.95,
) -> PairsResult:
    """Judge a score that is larger for reserved records, none of which was learned from its own label.

    ``seed`` decides the folds on which thresholds are learned. ``log_odds`` says that the score's threshold
    is 0.
    """
    values = np.asarray(score, dtype=np.float64)
    d, r = values[members], values[~members]
    pairwise = scores.pair_accuracy(d, r, level)
    called = values < 0 if log_odds else scores.cross_fitted_threshold(values, members, seed)
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
    """Return true positive rates of a score, larger for members, at the :data:`RATES` that n supports."""
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

    ``upper`` is the 95th percentile, ``most_probable`` the largest ``P_IN = 1 / (1 + exp(-gamma))``.
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
