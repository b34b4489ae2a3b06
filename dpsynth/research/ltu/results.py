"""Results of an attack: privacy (4.9), all pairs of a score, single records, low false positive rates.

Also the result of an experiment, as attempts for a report and as a page. Everything is about the
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
from dpsynth.research.writing import (
    ResultsPage,
    Sheet,
    SheetCell,
    SheetGroup,
    lone_number,
    share_with_interval,
)

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


def _conclusion(result: LtuResult) -> str:
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
        f"that was trained on in {share_with_interval(best.accuracy).text} of {best.rounds} pairs by "
        f"{_words(best.strategy)}: {verdict}."
    )


def ltu_page(result: LtuResult) -> ResultsPage:
    """Return everything as a page: a row a strategy, a row a score, shares of records, and the conclusion."""
    best, loss, shares = result.strongest_pairs, result.loss, dict[str, Estimate]()
    facts = {"Records": f"{result.n_defender:,} trained on, {result.n_reserve:,} kept aside"}
    if result.design.record is not None:
        facts["Pairs"] = f"every pair holds record {result.design.record}: its individual score"
    if result.utility is None:
        facts["Model"] = "the defender trains anew in each round"
    else:
        facts["Commonest class"] = f"{100 * result.utility.commonest:.1f} % of the records kept aside"
        shares["records trained on that the model classifies right"] = result.utility.trained
        shares["records kept aside that the model classifies right"] = result.utility.reserved
    if best is not None:
        told = sorted((100 * score for score in best.individual), reverse=True)
        facts["Most exposed"] = (
            f"by {_words(best.strategy)} {sum(score >= 90 for score in told)} of {len(told)} records are "
            f"told from the others in at least 90 % of their pairs, the first in {told[0]:.1f} %, the "
            f"median in {told[len(told) // 2]:.1f} %"
        )
        for low in best.low_rates:
            chance = f"by chance at most {100 * low.chance:.1f} %"
            shares[f"named at a false positive rate of {100 * low.fpr:g} % ({chance})"] = low.tpr
    if loss is not None:
        largest = f"{loss.largest:.2f}" if loss.largest <= _MOST else f"over {_MOST}"
        facts["Effective privacy loss"] = (
            f"median {loss.median:.2f}, 95th percentile {loss.upper:.2f}, largest {largest} (median of the "
            f"others {loss.reserve_median:.2f}); no guarantee follows from it"
        )
    if result.proved is not None:
        facts["Proved"] = f"no attack is right in more than {100 * result.proved:.1f} %"
    guesses: list[list[str | SheetCell]] = [
        [
            _words(one.strategy),
            share_with_interval(one.accuracy),
            SheetCell(f"{one.privacy.value:.2f} ± {one.privacy.error:.2f}", asdict(one.privacy)),
            lone_number(one.tied, str),
        ]
        for one in result.rounds
    ]
    by_score: list[list[str | SheetCell]] = [
        [_words(p.strategy), *map(share_with_interval, (p.pairwise, p.per_record))] for p in result.pairs
    ]
    sheets = (
        Sheet.of("strategies", "Guesses", ("strategy", "right", "privacy (4.9)", "ties"), guesses),
        Sheet.of("scores", "All pairs, one model", ("score", "pairs", "single records"), by_score),
        Sheet.of(
            "shares", "Shares", ("of", "share"), [[of, share_with_interval(e)] for of, e in shares.items()]
        ),
    )
    return ResultsPage(
        title=f"Leave-two-unlabeled attack on {result.trainer}",
        said=(_conclusion(result),),
        facts=tuple(facts.items()),
        groups=(SheetGroup("attack", "The attack", tuple(sheet for sheet in sheets if sheet.rows)),),
        record=result.to_dict(),
    )
