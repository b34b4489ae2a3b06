"""Attack a trainer in many rounds, kept in a folder, and sum up the results."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsynth.attacks.bayes import Spread, fit_gaussians, label_logit
from dpsynth.checks import in_range, whole
from dpsynth.errors import InputError
from dpsynth.evaluation.estimates import share
from dpsynth.files.storage import OnRound, carry_out, print_nothing
from dpsynth.research.ltu import scores
from dpsynth.research.ltu.results import (
    LtuResult,
    PairsResult,
    RoundsResult,
    Utility,
    pairs_result,
    privacy,
    privacy_loss,
)
from dpsynth.research.ltu.retraining import FEW_MODELS, Fingerprint, TrainingOrder
from dpsynth.research.ltu.rounds import FOLDS, STRATEGIES, Design, Work
from dpsynth.research.ltu.scores import SCORES
from dpsynth.research.ltu.trainers import Sides, Train

Floats = NDArray[np.float64]


def attack_trainer(
    trainer: Train,
    sides: Sides,
    design: Design | None = None,
    *,
    rounds: int = 100,
    name: str | None = None,
    folder: str | Path | None = None,
    jobs: int = 1,
    on_round: OnRound = print_nothing,
    proved: float | None = None,
    level: float = 0.95,
) -> LtuResult:
    """Attack a trainer in many rounds.

    Parameters
    ----------
    trainer : callable
        ``trainer(x, y, seed) -> model``. With several jobs it must be picklable.
    sides : Sides
        The records of both sides.
    design : Design, optional
        Work of each round.
    rounds : int
        At least 1. A folder may hold fewer from before.
    name : str, optional
        The trainer in words. A folder that was begun with another is refused.
    folder : path, optional
        Folder of the rounds, see :func:`dpsynth.files.storage.carry_out`.
    jobs : int
        Rounds at a time.
    on_round : callable, optional
        Called after each round.
    proved : float, optional
        A bound on the accuracy over the trainer's randomness, for a defender that trains anew only. For the
        replacement of a record :func:`dpsynth.attacks.closed_forms.dp_accuracy` gives one.
    level : float
        Level of the intervals.

    Raises
    ------
    InputError
        If ``record`` is no record of the defender, or ``proved`` is given for one model.

    Examples
    --------
    >>> import numpy as np
    >>> from dpsynth.research.ltu.trainers import classifier
    >>> rng = np.random.default_rng(0)
    >>> x, y = rng.normal(size=(60, 3)), rng.integers(0, 2, 60)
    >>> sides = Sides.of(x[:30], y[:30], x[30:], y[30:])
    >>> found = attack_trainer(classifier("logistic_regression"), sides, rounds=10)
    >>> found.strongest.strategy, found.strongest.accuracy.value, found.strongest.privacy.value
    ('retraining_predictions', 1.0, 0.0)
    """
    design = Design() if design is None else design
    whole("rounds", rounds)
    in_range("level", level, 0.0, 1.0, low_open=True, high_open=True)
    if design.record is not None and design.record >= sides.n_defender:
        raise InputError(
            f"record must be below {sides.n_defender}, the number of the defender's records, "
            f"not {design.record}"
        )
    if proved is not None and design.defender == "once":
        raise InputError("proved goes with a defender that trains anew: no bound holds for one given model")
    label = name or getattr(trainer, "description", None) or type(trainer).__name__
    released = None
    if design.defender == "once":
        procedure = TrainingOrder(None, design.defender_seed())
        released = Fingerprint.of(procedure.train(trainer, sides, np.arange(sides.n_defender)), sides)
    # what rounds depend on; the number of shadow models may grow, as that of rounds
    begun = {key: value for key, value in asdict(design).items() if key != "splits"}
    tasks = {f"split-{i:04d}": ("split", i) for i in range(design.splits)}
    tasks |= {f"round-{i:05d}": ("round", i) for i in range(rounds)}
    kept = carry_out(
        Work(sides, trainer, design, released),
        tasks,
        folder=folder,
        settings={"trainer": label, "records": sides.fingerprint(), **begun},
        jobs=jobs,
        on_round=on_round,
    )
    gamma = _gamma(released, sides, kept)
    return LtuResult(
        trainer=label,
        design=design,
        n_defender=sides.n_defender,
        n_reserve=sides.n_reserve,
        utility=None if released is None else _utility(released, sides, level),
        rounds=_by_strategy(kept, gamma, design, level),
        pairs=() if released is None else _all_pairs(released, sides, design, gamma, level),
        loss=None if gamma is None else privacy_loss(gamma, sides.members),
        proved=proved,
        level=level,
    )


def _utility(released: Fingerprint, sides: Sides, level: float) -> Utility:
    right, n = released.outputs.argmax(axis=1) == sides.y, sides.n_defender
    trained, reserved = (share(int(part.sum()), len(part), level) for part in (right[:n], right[n:]))
    return Utility(trained, reserved, float(np.bincount(sides.y[n:]).max() / sides.n_reserve))


def _gamma(
    released: Fingerprint | None, sides: Sides, kept: Mapping[str, Mapping[str, Any]]
) -> Floats | None:
    """Log-odds of membership of every record from the shadow models, if there are any."""
    splits = [record for label, record in kept.items() if label.startswith("split")]
    if released is None or not splits:
        return None
    logits = np.concatenate([np.asarray(record["logits"]) for record in splits])
    members = np.concatenate([np.asarray(record["members"], dtype=bool) for record in splits])
    spread: Spread = "pooled" if len(logits) // 2 < FEW_MODELS else "record"
    return fit_gaussians(logits, members, spread).log_odds(label_logit(released.outputs, sides.y))


def _all_pairs(
    released: Fingerprint, sides: Sides, design: Design, gamma: Floats | None, level: float
) -> tuple[PairsResult, ...]:
    seed = int(design.rng(FOLDS).integers(2**31 - 1))
    members, outputs = sides.members, released.outputs
    values = {name: score(outputs, sides.y) for name, score in SCORES.items()}
    values["learned"] = scores.cross_fitted(scores.features(outputs, sides.y), members, seed)
    if gamma is not None:
        values["bayes_shadow"] = -gamma
    return tuple(
        pairs_result(name, score, members, seed=seed, log_odds=name not in SCORES, level=level)
        for name, score in values.items()
    )


def _by_strategy(
    kept: Mapping[str, Mapping[str, Any]], gamma: Floats | None, design: Design, level: float
) -> tuple[RoundsResult, ...]:
    rounds = [record for label, record in kept.items() if label.startswith("round")]
    guesses: dict[str, list[tuple[bool, bool]]] = {}
    for record in rounds:
        for name, guess in record["guesses"].items():
            guesses.setdefault(name, []).append((guess["right"], guess["tied"]))
    if gamma is not None:
        coins = design.rng(FOLDS, 1).random(len(rounds)) < 0.5
        for record, coin in zip(rounds, coins, strict=True):
            evident = float(gamma[record["defender"]] - gamma[record["reserve"]])
            guess_ = (bool(coin) if evident == 0 else evident > 0, evident == 0)
            guesses.setdefault("bayes_shadow", []).append(guess_)
    found = []
    for name, (theorem, _) in STRATEGIES.items():
        if name in guesses:
            right, tied = (sum(column) for column in zip(*guesses[name], strict=True))
            accuracy = share(right, len(rounds), level)
            hidden = privacy(accuracy.value, len(rounds))
            found.append(RoundsResult(name, theorem, len(rounds), right, tied, accuracy, hidden))
    return tuple(found)
