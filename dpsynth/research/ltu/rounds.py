"""Carry out one round: two records without labels, every strategy's guess.

Samples of a round follow from the experiment's seed and its number. More rounds never change earlier ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from dpsynth.attacks.bayes import label_logit
from dpsynth.checks import one_of, whole
from dpsynth.errors import InputError
from dpsynth.research.ltu import retraining, scores
from dpsynth.research.ltu.retraining import SCENARIOS, Fingerprint, Scenario, TrainingOrder
from dpsynth.research.ltu.trainers import Sides, Train

Floats = NDArray[np.float64]

#: streams of random numbers: the defender, the rounds, the shadow models, the folds of learned scores
DEFENDER, ROUND, SPLIT, FOLDS = range(4)

#: strategies: the theorems or equations that they come from, and in words
STRATEGIES: dict[str, tuple[str, str]] = {
    "loss": ("Theorem 4.2.1", "the model's loss"),
    "confidence": ("Theorem 4.2.1", "the model's confidence"),
    "entropy": ("Theorem 4.2.1", "entropy"),
    "modified_entropy": ("Theorem 4.2.1", "modified entropy"),
    "learned": ("Theorem 4.2.1", "scores combined by what is known of the others"),
    "bounded_loss": ("Theorem 4.2.2", "a guess in proportion to the loss"),
    "retraining_predictions": ("Theorem 4.2.4", "retraining on both, all predictions compared"),
    "retraining_pair": ("Theorem 4.2.4 and (5.12)", "retraining on both, predictions of the two compared"),
    "retraining_parameters": ("Theorem 4.2.4", "retraining on both, parameters compared"),
    "bayes_pair": ("(5.8)", "Bayes, retraining on both many times"),
    "bayes_shadow": ("(5.13)", "Bayes, shadow models on random halves"),
}


@dataclass(frozen=True)
class Design:
    """Work of each round of an experiment.

    Parameters
    ----------
    scenario : {"original", "random", "unseeded"}
        Whether the attacker knows order and seed of the defender's training, the seed, or neither.
    defender : {"once", "anew"}
        One model for all rounds, as in Pedersen (2022), or a training for each. Only with the second is the
        accuracy an average over the trainer's randomness, which differential privacy bounds.
    retrainings : int
        How often the attacker trains with each candidate. 0: not at all. From 2 on the Bayes attack (5.8) is
        tried beside the comparison of Theorem 4.2.4.
    splits : int
        Pairs of shadow models on random halves, for (5.13): 0, or at least 2.
    record : int, optional
        One of the defender's records (from 0), which is shown in every round: its individual score.
    seed : int
        Seed of the experiment. It decides about samples and protects nobody.

    Raises
    ------
    InputError
        If a value is outside its range, naming it.
    """

    scenario: Scenario = "original"
    defender: Literal["once", "anew"] = "once"
    retrainings: int = 1
    splits: int = 0
    record: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        one_of("scenario", self.scenario, SCENARIOS)
        one_of("defender", self.defender, ("once", "anew"))
        whole("retrainings", self.retrainings, 0)
        whole("splits", self.splits, 0)
        whole("seed", self.seed, 0)
        if self.splits == 1:
            raise InputError("splits must be 0, or at least 2 to fit a Gaussian to each record, not 1")
        if self.splits and self.defender == "anew":
            raise InputError("splits goes with one model for all rounds, not with a defender anew in each")
        if self.record is not None:
            whole("record", self.record, 0)

    def rng(self, *stream: int) -> np.random.Generator:
        """Random numbers of one stream of the experiment."""
        return np.random.default_rng([self.seed, *stream])

    def defender_seed(self, *number: int) -> int:
        """Return the seed of the defender's training: always the same, or that of a round."""
        return int(self.rng(DEFENDER, *number).integers(2**31 - 1))


@dataclass(frozen=True, eq=False)
class Work:
    """Work for a task ``("round", number)`` or ``("split", number)``. Its record is plain data."""

    sides: Sides
    trainer: Train
    design: Design
    released: Fingerprint | None

    def __call__(self, task: tuple[str, int]) -> Mapping[str, Any]:
        """Carry out a task."""
        kind, number = task
        return self._round(number) if kind == "round" else self._split(number)

    def _split(self, number: int) -> Mapping[str, Any]:
        design = self.design
        rng = design.rng(SPLIT, number)
        pair = retraining.shadow_pair(self.trainer, self.sides, design.scenario, design.defender_seed(), rng)
        return {"logits": pair[0].tolist(), "members": pair[1].astype(int).tolist()}

    def _round(self, number: int) -> Mapping[str, Any]:
        sides, design = self.sides, self.design
        rng = design.rng(ROUND, number)
        drawn, reserve = int(rng.integers(sides.n_defender)), int(rng.integers(sides.n_reserve))
        pair = (drawn if design.record is None else design.record, sides.n_defender + reserve)
        seed, released = design.defender_seed(), self.released
        if released is None:
            seed = design.defender_seed(number)
            model = TrainingOrder(None, seed).train(self.trainer, sides, np.arange(sides.n_defender))
            released = Fingerprint.of(model, sides)
        favour = self._score_differences(released, pair, rng)
        if design.retrainings:
            favour |= self._retraining_differences(released, pair, seed, rng)
        guesses = {}
        for name, value in favour.items():
            tied = value == 0 or np.isnan(value)
            guesses[name] = {"right": bool(rng.random() < 0.5 if tied else value > 0), "tied": bool(tied)}
        return {"defender": pair[0], "reserve": pair[1], "guesses": guesses}

    def _score_differences(
        self, released: Fingerprint, pair: tuple[int, int], rng: np.random.Generator
    ) -> dict[str, float]:
        """Return how far each strategy that needs the model alone favours the right guess. 0 is a tie."""
        sides, rows = self.sides, list(pair)
        outputs, labels = released.outputs[rows], sides.y[rows]
        favour = {name: _difference(score(outputs, labels)) for name, score in scores.SCORES.items()}
        points = scores.features(released.outputs, sides.y)
        others = np.delete(np.arange(len(sides)), rows)
        odds = scores.reserved_log_odds(points[others], sides.members[others], points[rows])
        favour["learned"] = _difference(odds)
        # the pair in random order, of which only the first is looked at
        first = int(rng.integers(2))
        bounded = float(scores.absolute_loss(outputs, labels)[first])
        said_reserved = scores.guess_reserved(bounded, rng)
        favour["bounded_loss"] = 1.0 if said_reserved == bool(first) else -1.0
        return favour

    def _retraining_differences(
        self, released: Fingerprint, pair: tuple[int, int], seed: int, rng: np.random.Generator
    ) -> dict[str, float]:
        sides, design, rows = self.sides, self.design, list(pair)
        found: list[list[Floats]] = [[], []]
        first: list[dict[str, float]] = []
        for repetition in range(design.retrainings):
            procedure = retraining.attackers_procedure(design.scenario, sides.n_defender, seed, rng)
            for side, candidate in enumerate(pair):
                candidates = retraining.candidate_rows(sides.n_defender, pair[0], candidate)
                printed = Fingerprint.of(procedure.train(self.trainer, sides, candidates), sides)
                if repetition == 0:
                    first.append(retraining.distances(released, printed, pair))
                found[side].append(label_logit(printed.outputs[rows], sides.y[rows]))
        with np.errstate(invalid="ignore"):  # models of other shapes than both: nan, a tie
            favour = {name: float(np.subtract(first[1][name], first[0][name])) for name in first[0]}
        if design.retrainings > 1:
            observed = label_logit(released.outputs[rows], sides.y[rows])
            favour["bayes_pair"] = retraining.pair_evidence(observed, np.stack(found[0]), np.stack(found[1]))
        return favour


def _difference(values: Floats) -> float:
    """Score of the reserved record less that of the defender's: above 0 the guess is right (4.12)."""
    return float(values[1] - values[0])
