"""Attack by retraining (Pedersen 2022, Theorem 4.2.4) and by Bayes' rule on outputs ((5.8), (5.13)).

*Retraining* trains with each of the two records. A trainer may be deterministic, ignore the order and learn
another model from another record. Then one of the two models *is* the defender's. If order or seed are
unknown, the nearer one is guessed. Models are compared by their outputs for all records, by those for the two
records alone (a projection as in (5.13)), or by their parameters.

The *Bayes attack* trains candidates with each of the two records many times. This is (5.8) itself, projected
on the outputs for the pair. Or it trains shadow models on random halves of all records (section 5.4).
Gaussians fitted to their outputs give each record's effective privacy loss gamma(u), (5.11).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from dpsynth.attacks.bayes import Gaussians, fit_gaussians, label_logit
from dpsynth.research.ltu.trainers import Sides, Train, class_probabilities, parameters

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

#: with fewer models on each side, one standard deviation is fitted to all records (Carlini et al. 2022)
FEW_MODELS = 32
#: what the attacker knows of the defender's randomness: its order and seed; its seed; nothing
Scenario = Literal["original", "random", "unseeded"]
SCENARIOS: tuple[str, ...] = get_args(Scenario)


@dataclass(frozen=True, eq=False)
class Fingerprint:
    """Compared parts of a model: its probabilities (n, classes) for all records, and its parameters."""

    outputs: Floats
    parameters: tuple[Floats, ...] = ()

    @classmethod
    def of(cls, model: Any, sides: Sides) -> Fingerprint:
        """Ask a model about every record, and read its parameters."""
        return cls(class_probabilities(model, sides.x, sides.n_classes), parameters(model))


@dataclass(frozen=True)
class TrainingOrder:
    """Order of the defender's positions in a training (None: the original one), and its seed."""

    order: tuple[int, ...] | None
    seed: int

    def train(self, trainer: Train, sides: Sides, rows: Ints) -> Any:
        """Train on these rows of the pool."""
        ordered = rows if self.order is None else rows[np.asarray(self.order)]
        return trainer(sides.x[ordered], sides.y[ordered], self.seed)


def attackers_procedure(
    scenario: Scenario, n_defender: int, defender_seed: int, rng: np.random.Generator
) -> TrainingOrder:
    """Return order and seed of both candidates' training: the defender's, as far as they are known."""
    if scenario == "original":
        return TrainingOrder(None, defender_seed)
    order = tuple(rng.permutation(n_defender).tolist())
    seed = defender_seed if scenario == "random" else int(rng.integers(2**31 - 1))
    return TrainingOrder(order, seed)


def candidate_rows(n_defender: int, missing: int, candidate: int) -> Ints:
    """Return the defender's rows with a candidate in the place of the record whose label is missing."""
    rows = np.arange(n_defender)
    rows[missing] = candidate
    return rows


def parameter_distance(first: tuple[Floats, ...], second: tuple[Floats, ...]) -> float:
    """Root of the sum of squared differences of parameters. Infinite for models of different shapes."""
    if [a.shape for a in first] != [b.shape for b in second]:
        return float("inf")
    differences = (
        np.where(np.isnan(a) & np.isnan(b), 0.0, a - b) for a, b in zip(first, second, strict=True)
    )
    return float(np.sqrt(sum(float((difference**2).sum()) for difference in differences)))


def distances(released: Fingerprint, candidate: Fingerprint, pair: tuple[int, int]) -> dict[str, float]:
    """Distance of a candidate's model from the published one, by each comparison."""
    squares = (released.outputs - candidate.outputs) ** 2
    return {
        "retraining_predictions": float(np.sqrt(squares.sum())),
        "retraining_pair": float(np.sqrt(squares[list(pair)].sum())),
        "retraining_parameters": parameter_distance(released.parameters, candidate.parameters),
    }


def shadow_pair(
    trainer: Train, sides: Sides, scenario: Scenario, defender_seed: int, rng: np.random.Generator
) -> tuple[Floats, Bools]:
    """Train on both random halves of the pool. Return logits of all records' labels, and the members.

    The defender's order means nothing for other records. Its seed is used if the attacker has it. Both arrays
    have shape (2, n).
    """
    order = rng.permutation(len(sides))
    logits, members = [], []
    for half in (order[: len(order) // 2], order[len(order) // 2 :]):
        seed = int(rng.integers(2**31 - 1)) if scenario == "unseeded" else defender_seed
        model = TrainingOrder(None, seed).train(trainer, sides, half)
        logits.append(label_logit(class_probabilities(model, sides.x, sides.n_classes), sides.y))
        members.append(np.isin(np.arange(len(sides)), half))
    return np.stack(logits), np.stack(members)


def pair_evidence(released: Floats, first: Floats, second: Floats) -> float:
    """``gamma(u_1, u_2)``, (5.8): log-odds that the first record was trained on.

    ``released`` is the projection g(m) of (5.12) of the defender's model, shape (k,). ``first`` and
    ``second`` are those of models trained with either record, shape (models, k), at least two each. The k
    numbers are taken as independent given the record, their spread as one where models are few.
    """
    outputs = np.vstack([first, second])
    trained = np.arange(len(outputs)) < len(first)
    members = np.repeat(trained[:, None], outputs.shape[1], axis=1)
    fitted = fit_gaussians(outputs, members, "record")
    if len(first) < FEW_MODELS:
        # one spread for both candidates of each number: with few models their ratio would be mostly noise
        common = np.sqrt((fitted.std_in**2 + fitted.std_out**2) / 2)
        fitted = Gaussians(fitted.mean_in, common, fitted.mean_out, common)
    return float(fitted.log_odds(released).sum())
