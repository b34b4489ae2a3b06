"""Bayes attack on outputs of models (Pedersen 2022, (5.8) and (5.13)): evidence instead of a comparison.

Two forms. *Shadow models* are trained as the defender's, on random halves of the records of both sides, with
no label of membership (section 5.4): every record is in half of them, and Gaussians fitted to what they say
of it give its effective privacy loss gamma(u), (5.11). *Candidates* are trained on the defender's known
records and each of the two in question, many times, which is (5.8) itself, projected on what the models say
of the pair.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dpsynth.attacks.bayes import Gaussians, Spread, fit_gaussians, label_logit
from dpsynth.research.ltu.retraining import Procedure, Scenario
from dpsynth.research.ltu.samples import Sides
from dpsynth.research.ltu.trainers import Train, probabilities

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

#: with fewer models on each side, one standard deviation is fitted to all records (Carlini et al. 2022)
FEW_MODELS = 32


def shadow_pair(
    trainer: Train, sides: Sides, scenario: Scenario, defender_seed: int, rng: np.random.Generator
) -> tuple[Floats, Bools]:
    """Train on both random halves of the pool.

    The defender's order means nothing for other records; its seed is used where the attacker knows it. With
    sides of one size a half is as large as the defender's table.

    Returns
    -------
    logits : ndarray of shape (2, n)
        Of each model for each record's label.
    members : ndarray of bool, shape (2, n)
        Whether the record was trained on.
    """
    order = rng.permutation(len(sides))
    logits, members = [], []
    for half in (order[: len(order) // 2], order[len(order) // 2 :]):
        seed = int(rng.integers(2**31 - 1)) if scenario == "unseeded" else defender_seed
        model = Procedure(None, seed).train(trainer, sides, half)
        logits.append(label_logit(probabilities(model, sides.x, sides.n_classes), sides.y))
        members.append(np.isin(np.arange(len(sides)), half))
    return np.stack(logits), np.stack(members)


def spread_for(models: int) -> Spread:
    """Whether so many models with a record and without it can fit a standard deviation for it alone."""
    return "pooled" if models < FEW_MODELS else "record"


def shadow_gaussians(logits: Floats, members: Bools) -> Gaussians:
    """IN and OUT distributions of every record from all shadow models, both of shape (models, n)."""
    return fit_gaussians(logits, members, spread_for(len(logits) // 2))


def pair_evidence(released: Floats, first: Floats, second: Floats) -> float:
    """``gamma(u_1, u_2)``, (5.8): log-odds that the first record was trained on.

    Parameters
    ----------
    released : ndarray of shape (k,)
        What the defender's model says: the projection g(m) of (5.12), for instance both records' logits.
    first, second : ndarray of shape (models, k)
        What models say that were trained with the first, or the second, record; at least two each.

    Notes
    -----
    The k numbers are taken as independent given the record, their spread as one where models are few.

    Examples
    --------
    >>> first, second = np.array([[2.0], [4.0]]), np.array([[-2.0], [0.0]])
    >>> round(pair_evidence(np.array([3.0]), first, second), 6)
    4.0
    """
    outputs = np.vstack([first, second])
    trained = np.arange(len(outputs)) < len(first)
    members = np.repeat(trained[:, None], outputs.shape[1], axis=1)
    if len(first) >= FEW_MODELS:
        return float(fit_gaussians(outputs, members, "record").log_odds(released).sum())
    # one spread for both candidates of each number: with few models their ratio would be mostly noise
    fitted = fit_gaussians(outputs, members, "record")
    common = np.sqrt((fitted.std_in**2 + fitted.std_out**2) / 2)
    shared = Gaussians(fitted.mean_in, common, fitted.mean_out, common)
    return float(shared.log_odds(released).sum())
