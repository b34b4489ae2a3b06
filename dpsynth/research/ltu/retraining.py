"""Retraining (Pedersen 2022, Theorem 4.2.4): train with each of the two records and compare the models.

The attacker knows every record of the defender but one, and that one is one of two. For a trainer that is
deterministic, does not mind the order and learns another model from another record, one of the two models
*is* the defender's. Where order or seed are unknown, the nearer one is guessed; a coin decides ties.

Models are compared by what they say of all records of both sides, by what they say of the two records alone
(a projection as in (5.13)), or by their parameters.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from dpsynth.research.ltu.samples import Sides
from dpsynth.research.ltu.trainers import Train, parameters, probabilities

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: what the attacker knows of the defender's randomness: its order and seed; its seed; nothing
Scenario = Literal["original", "random", "unseeded"]
SCENARIOS: tuple[str, ...] = get_args(Scenario)


@dataclass(frozen=True, eq=False)
class Fingerprint:
    """A model, as far as it is compared.

    Attributes
    ----------
    outputs : ndarray of shape (n, classes)
        Probabilities for every record of both sides.
    parameters : tuple of ndarray
    """

    outputs: Floats
    parameters: tuple[Floats, ...] = ()

    @classmethod
    def of(cls, model: Any, sides: Sides) -> Fingerprint:
        """Ask a model about every record, and read its parameters."""
        return cls(probabilities(model, sides.x, sides.n_classes), parameters(model))


@dataclass(frozen=True)
class Procedure:
    """How a model was trained, or how the attacker trains one: in which order, with which seed.

    Parameters
    ----------
    order : tuple of int or None
        Permutation of the defender's positions; None for the original order.
    seed : int
    """

    order: tuple[int, ...] | None
    seed: int

    def train(self, trainer: Train, sides: Sides, rows: Ints) -> Any:
        """Train on these rows of the pool."""
        ordered = rows if self.order is None else rows[np.asarray(self.order)]
        return trainer(sides.x[ordered], sides.y[ordered], self.seed)


def attackers_procedure(
    scenario: Scenario, n_defender: int, defender_seed: int, rng: np.random.Generator
) -> Procedure:
    """The order and seed that the attacker trains with: the defender's, as far as it knows them.

    Both candidates are trained in the same order with the same seed, which takes some chance out of their
    comparison.
    """
    if scenario == "original":
        return Procedure(None, defender_seed)
    order = tuple(rng.permutation(n_defender).tolist())
    seed = defender_seed if scenario == "random" else int(rng.integers(2**31 - 1))
    return Procedure(order, seed)


def candidate_rows(n_defender: int, missing: int, candidate: int) -> Ints:
    """The defender's rows with a candidate in the place of the record whose label is missing.

    Examples
    --------
    >>> candidate_rows(3, 1, 4).tolist()
    [0, 4, 2]
    """
    rows = np.arange(n_defender)
    rows[missing] = candidate
    return rows


def output_distance(first: Floats, second: Floats) -> float:
    """Root of the sum of squared differences of what two models say; 0 for equal models."""
    return float(np.sqrt(((first - second) ** 2).sum()))


def parameter_distance(first: tuple[Floats, ...], second: tuple[Floats, ...]) -> float:
    """Root of the sum of squared differences of parameters; infinite for models of different shapes.

    Examples
    --------
    >>> parameter_distance((np.array([0.0, 3.0]),), (np.array([4.0, 3.0]),))
    4.0
    """
    if len(first) != len(second) or any(a.shape != b.shape for a, b in zip(first, second, strict=True)):
        return float("inf")
    squares = 0.0
    for a, b in zip(first, second, strict=True):
        difference = np.where(np.isnan(a) & np.isnan(b), 0.0, a - b)
        squares += float((difference**2).sum())
    return float(np.sqrt(squares))


def distances(released: Fingerprint, candidate: Fingerprint, pair: tuple[int, int]) -> dict[str, float]:
    """How far a candidate's model is from the released one, by each comparison."""
    rows = list(pair)
    return {
        "retraining_predictions": output_distance(released.outputs, candidate.outputs),
        "retraining_pair": output_distance(released.outputs[rows], candidate.outputs[rows]),
        "retraining_parameters": parameter_distance(released.parameters, candidate.parameters),
    }
