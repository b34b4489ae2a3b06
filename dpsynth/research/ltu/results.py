"""Results of an attack: privacy (4.9), all pairs of a score, single records, low false positive rates.

Also the result of an experiment, as attempts for a report and as text for a terminal. Everything is about the
records and, unless the defender trains anew in each round, about this one model. It is confidential.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpsynth.attacks.attempt import COIN, Attempt
from dpsynth.attacks.bayes import lowest_fpr, membership_probability, tpr_at_fpr
from dpsynth.checks import in_range, whole
from dpsynth.evaluation.distances import chance_tpr
from dpsynth.evaluation.estimates import Estimate, share
from dpsynth.research.ltu import scores
from dpsynth.research.ltu.rounds import STRATEGIES, Design

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

#: false positive rates to report, of which those are left out that the sample cannot support
RATES = (0.1, 0.01, 0.001)


@dataclass(frozen=True)
class Privacy:
    """Global membership privacy: 1 if the attacker does no better than a coin, 0 if it is always right.

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
    """A strategy's guesses over the rounds, ties by a coin. The interval is Clopper and Pearson's."""

    strategy: str
    theorem: str
    rounds: int
    right: int
    tied: int
    accuracy: Estimate
    privacy: Privacy


@dataclass(frozen=True)
class TprAtFpr:
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
    probability of membership of every record, the defender's first. It is empty for a score that is no
    log-odds.
    """

    strategy: str
    pairwise: Estimate
    per_record: Estimate
    privacy: float
    individual: tuple[float, ...]
    individual_reserved: tuple[float, ...]
    low_rates: tuple[TprAtFpr, ...]
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
    """Accuracy at even odds, with the sides' intervals added as variances (Newcombe's squares)."""
    sides = [share(int((called == members)[of].sum()), int(of.sum()), level) for of in (members, ~members)]
    value = sum(side.value for side in sides) / 2
    ours, others = sides
    below = float(np.hypot(ours.value - ours.lower, others.value - others.lower)) / 2
    above = float(np.hypot(ours.upper - ours.value, others.upper - others.value)) / 2
    return Estimate(value, max(value - below, 0.0), min(value + above, 1.0))


def low_rates(members: Floats, others: Floats, level: float = 0.95) -> tuple[TprAtFpr, ...]:
    """Return true positive rates of a score, larger for members, at the :data:`RATES` that n supports."""
    return tuple(
        TprAtFpr(
            rate,
            tpr_at_fpr(members, others, rate, level).tpr,
            float(chance_tpr(len(members), len(others), rate, level) or 0.0),
        )
        for rate in RATES
        if rate >= lowest_fpr(len(others))
    )


@dataclass(frozen=True)
class PrivacyLoss:
    """Effective privacy loss ``gamma(u)`` of the defender's records, (5.11). It is no differential privacy.

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


#: an attacker of each scenario, among attempts and in a sentence
_KNOWS = {
    "original": ("the attacker knows order and seed", "knows the order of the records and the seed"),
    "random": (
        "the attacker knows the seed, not the order",
        "knows the seed, but not the order of the records",
    ),
    "unseeded": (
        "the attacker knows neither order nor seed",
        "knows neither the order of the records nor the seed",
    ),
}


@dataclass(frozen=True)
class Utility:
    """Shares of records of either side that the model classifies right, and that of the commonest class."""

    trained: Estimate
    reserved: Estimate
    commonest: float


@dataclass(frozen=True)
class LtuResult:
    """Results of the leave-two-unlabeled attacker on one trainer. Confidential.

    Attributes
    ----------
    trainer : str
        The trainer in words.
    design : Design
        Work of each round.
    n_defender, n_reserve : int
        Number of records on each side.
    utility : Utility or None
        None if the defender trains anew in each round.
    rounds : tuple of RoundsResult
        By strategy, over the rounds.
    pairs : tuple of PairsResult
        Scores of the one model over all pairs. Empty if the defender trains anew.
    loss : PrivacyLoss or None
        Effective privacy loss, with shadow models.
    proved : float or None
        Bound of the accuracy.
    level : float
        Level of the intervals.
    """

    trainer: str
    design: Design
    n_defender: int
    n_reserve: int
    utility: Utility | None
    rounds: tuple[RoundsResult, ...]
    pairs: tuple[PairsResult, ...]
    loss: PrivacyLoss | None
    proved: float | None
    level: float

    @property
    def strongest(self) -> RoundsResult:
        """The strategy that was right most often. The largest of several is a little too large by chance."""
        return max(self.rounds, key=lambda found: found.right)

    @property
    def strongest_pairs(self) -> PairsResult | None:
        """The score with the highest accuracy over all pairs."""
        return max(self.pairs, key=lambda found: found.pairwise.value, default=None)

    def attempts(self) -> tuple[Attempt, ...]:
        """Return every strategy beside the bound, and the strongest score at the lowest false positive rate.

        Each interval has its level by itself. If a trainer reaches its bound, one of twelve strategies passes
        it by chance now and then.
        """
        design = self.design
        model = "a model trained anew in each" if design.defender == "anew" else "one model"
        about = f"{self.trainer}, {self.n_defender} records, {self.strongest.rounds} rounds on {model}"
        knows, level = _KNOWS[design.scenario][0], self.level
        found = [
            Attempt(
                _attack(one.strategy),
                "accuracy",
                one.accuracy,
                self.proved,
                COIN,
                f"{about}; {knows}",
                _CLOSER.get(one.strategy.partition("_")[0], _FITTED),
                level,
            )
            for one in self.rounds
        ]
        best = self.strongest_pairs
        if best is not None and best.low_rates:
            low = best.low_rates[-1]
            chance, at = Estimate(low.fpr, 0.0, low.chance), f"at a false positive rate of {low.fpr:g}"
            name = _attack(best.strategy)
            found.append(Attempt(name, "tpr", low.tpr, None, chance, f"{about}, {at}", _FITTED, level))
        return tuple(found)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        names = {"loss": "effective_privacy_loss", "proved": "proved_accuracy"}
        plain = {names.get(name, name): value for name, value in asdict(self).items()}
        return plain | {"attempts": [one.to_dict() for one in self.attempts()], "internal": True}


_FITTED = "a model that fits its own records better than others (less regularisation, fewer records)"
#: by the first word of the strategies that are no scores
_CLOSER = {
    "retraining": "less randomness in the trainer, or an attacker who knows more of its order and seed",
    "bayes": "more retrainings, and a projection of the model that loses less than the records' own outputs",
}


def _attack(strategy: str) -> str:
    return f"leave-two-unlabeled, {strategy.replace('_', ' ')}"


#: beyond it log-odds are those of a Gaussian's far tail, of which few models say nothing
_MOST = 20


def _words(strategy: str) -> str:
    return STRATEGIES[strategy][1]


def share_with_interval(estimate: Estimate) -> str:
    """A share with its interval.

    Examples
    --------
    >>> share_with_interval(Estimate(0.75, 0.7, 0.8))
    '75.0 % (70.0 to 80.0)'
    """
    return f"{100 * estimate.value:.1f} % ({100 * estimate.lower:.1f} to {100 * estimate.upper:.1f})"


def sentence(result: LtuResult) -> str:
    """The strongest strategy in one plain sentence."""
    best = result.strongest
    if best.accuracy.lower <= 0.5:
        verdict = "no strategy is clearly better than a coin, which is right in 50 %"
    elif best.accuracy.value == 1.0:
        verdict = "the model gives away who it was trained on; a coin is right in 50 %"
    else:
        verdict = "a coin is right in 50 %"
    knows = _KNOWS[result.design.scenario][1]
    return (
        f"An attacker who {knows}, and everything but two labels, names the record "
        f"that was trained on in {share_with_interval(best.accuracy)} of {best.rounds} pairs by "
        f"{_words(best.strategy)}: {verdict}."
    )


def result_text(result: LtuResult) -> str:
    """Return everything as text, a line a strategy."""
    lines = [f"Leave-two-unlabeled attack on {result.trainer}"]
    sizes = f"{result.n_defender:,} records trained on, {result.n_reserve:,} kept aside"
    if result.utility is None:
        lines.append(f"{sizes}; the defender trains anew in each round")
    else:
        worth = result.utility
        lines.append(
            f"{sizes}; the model classifies {100 * worth.trained.value:.1f} % of its own records right and "
            f"{100 * worth.reserved.value:.1f} % of the others "
            f"(the commonest class: {100 * worth.commonest:.1f} %)"
        )
    if result.design.record is not None:
        lines.append(f"every pair holds record {result.design.record}: its individual score")
    lines += ["", f"{'strategy':<52} {'right':<24} {'privacy (4.9)':<14} ties"]
    for one in result.rounds:
        hidden = f"{one.privacy.value:.2f} ± {one.privacy.error:.2f}"
        lines.append(
            f"{_words(one.strategy):<52} {share_with_interval(one.accuracy):<24} {hidden:<14} {one.tied}"
        )
    if result.pairs:
        lines += ["", "The same model, all pairs and single records:"]
        for score in result.pairs:
            pairs, single = share_with_interval(score.pairwise), share_with_interval(score.per_record)
            lines.append(f"{_words(score.strategy):<52} pairs {pairs:<24} single records {single}")
    best = result.strongest_pairs
    if best is not None:
        lines += ["", _worst_off(best), *_low_lines(best)]
    if result.loss is not None:
        loss = result.loss
        largest = f"{loss.largest:.2f}" if loss.largest <= _MOST else f"over {_MOST}"
        lines.append(
            f"Effective privacy loss of the records trained on: median {loss.median:.2f}, 95th percentile "
            f"{loss.upper:.2f}, largest {largest} (median of the others {loss.reserve_median:.2f}); "
            "no guarantee follows from it."
        )
    if result.proved is not None:
        lines.append(f"Proved: no attack is right in more than {100 * result.proved:.1f} %.")
    return "\n".join([*lines, "", sentence(result), "These results are confidential."])


def _worst_off(best: PairsResult) -> str:
    scores = sorted(best.individual, reverse=True)
    exposed = sum(score >= 0.9 for score in scores)
    return (
        f"By {_words(best.strategy)}, {exposed} of {len(scores)} records are told from the others in at "
        f"least 90 % of their pairs; the most exposed in {100 * scores[0]:.1f} %, the median in "
        f"{100 * scores[len(scores) // 2]:.1f} %."
    )


def _low_lines(best: PairsResult) -> list[str]:
    if not best.low_rates:
        return ["Too few records to say how many are named at a low false positive rate."]
    return [
        f"At a false positive rate of {100 * low.fpr:g} % it names {share_with_interval(low.tpr)} of them "
        f"(by chance at most {100 * low.chance:.1f} %)."
        for low in best.low_rates
    ]
