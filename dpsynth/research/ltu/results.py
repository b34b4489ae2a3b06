"""What an experiment found: utility, every strategy over rounds and pairs, and the attempts for a report."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from dpsynth.attacks.attempt import Attempt
from dpsynth.evaluation.estimates import Estimate
from dpsynth.research.ltu.outcomes import PairsResult, PrivacyLoss, RoundsResult
from dpsynth.research.ltu.rounds import Design

CHANCE = Estimate(0.5, 0.5, 0.5)
_ABOUT = {
    "original": "the attacker knows order and seed",
    "random": "the attacker knows the seed, not the order",
    "unseeded": "the attacker knows neither order nor seed",
}


@dataclass(frozen=True)
class Utility:
    """What the defender's model is worth.

    Attributes
    ----------
    trained, reserved : Estimate
        Share of the defender's, and of the reserved, records that it classifies right.
    commonest : float
        Share of the most frequent class among the reserved records.
    """

    trained: Estimate
    reserved: Estimate
    commonest: float


@dataclass(frozen=True)
class LtuResult:
    """What the leave-two-unlabeled attacker reached on one trainer; internal.

    Attributes
    ----------
    trainer : str
        In words.
    design : Design
    n_defender, n_reserve : int
    utility : Utility or None
        None where the defender trains anew in each round.
    rounds : tuple of RoundsResult
        By strategy, over the rounds.
    pairs : tuple of PairsResult
        Scores of the one model over all pairs; empty where the defender trains anew.
    loss : PrivacyLoss or None
        Effective privacy loss, with shadow models.
    proved : float or None
        Bound of the accuracy.
    level : float
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
        """The strategy that was right most often; of several the largest is a little too large by chance."""
        return max(self.rounds, key=lambda found: found.right)

    @property
    def strongest_pairs(self) -> PairsResult | None:
        """The score with the highest accuracy over all pairs."""
        return max(self.pairs, key=lambda found: found.pairwise.value, default=None)

    def attempts(self) -> tuple[Attempt, ...]:
        """Every strategy beside the bound, and the strongest score at the lowest false positive rate.

        Each interval has its level by itself: of twelve strategies on a trainer that reaches its bound, one
        passes it by chance now and then.
        """
        design = self.design
        model = "a model trained anew in each" if design.defender == "anew" else "one model"
        about = f"{self.trainer}, {self.n_defender} records, {self.strongest.rounds} rounds on {model}"
        found = [
            Attempt(
                f"leave-two-unlabeled, {one.strategy.replace('_', ' ')}",
                "accuracy",
                one.accuracy,
                proved=self.proved,
                control=CHANCE,
                about=f"{about}; {_ABOUT[design.scenario]}",
                closer=_CLOSER[_kind(one.strategy)],
                level=self.level,
            )
            for one in self.rounds
        ]
        best = self.strongest_pairs
        if best is not None and best.low_rates:
            low = best.low_rates[-1]
            found.append(
                Attempt(
                    f"leave-two-unlabeled, {best.strategy.replace('_', ' ')}",
                    "tpr",
                    low.tpr,
                    control=Estimate(low.fpr, 0.0, low.chance),
                    about=f"{about}, at a false positive rate of {low.fpr:g}",
                    closer=_CLOSER["score"],
                    level=self.level,
                )
            )
        return tuple(found)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return {
            "trainer": self.trainer,
            "design": self.design.to_dict(),
            "n_defender": self.n_defender,
            "n_reserve": self.n_reserve,
            "utility": None if self.utility is None else asdict(self.utility),
            "rounds": [asdict(one) for one in self.rounds],
            "pairs": [one.to_dict() for one in self.pairs],
            "effective_privacy_loss": None if self.loss is None else asdict(self.loss),
            "proved_accuracy": self.proved,
            "level": self.level,
            "attempts": [one.to_dict() for one in self.attempts()],
            "internal": True,
        }


_CLOSER = {
    "score": "a model that fits its own records better than others (less regularisation, fewer records)",
    "retraining": "less randomness in the trainer, or an attacker who knows more of its order and seed",
    "bayes": "more retrainings, and a projection of the model that loses less than the records' own outputs",
}


def _kind(strategy: str) -> str:
    return next((kind for kind in ("retraining", "bayes") if strategy.startswith(kind)), "score")
