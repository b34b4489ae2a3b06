"""Generators, attacked through a score: for instance their critic (Pedersen 2022, section 6.2).

A critic was trained to tell real records from generated ones, and may have learned its training records. A
generator reaches this attack as a function of a frame and a seed that trains it and returns a score of
records; how it does so is its own affair. The strategy is that of Theorem 4.2.1.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from dpsynth.attacks.attempt import Attempt
from dpsynth.checks import whole
from dpsynth.errors import InputError, RunError, of_records
from dpsynth.evaluation.estimates import Estimate, quantile
from dpsynth.files.rounds import OnRound, carry_out, silent
from dpsynth.research.ltu.outcomes import LowRate, PairsResult, pairs_result

#: a score of records, larger for those that were trained on
Score = Callable[[pd.DataFrame], ArrayLike]
#: a frame (n, columns) and a seed to a score
ScoreTrainer = Callable[[pd.DataFrame, int], Score]


@dataclass(frozen=True)
class GeneratorResult:
    """What a score of a generator gives away, over several trainings; internal.

    Attributes
    ----------
    name : str
    records : int
        On each side.
    trainings : tuple of PairsResult
        One a seed, each on another draw of both sides.
    accuracy : Estimate
        Median over trainings of the accuracy over all pairs, with the interval of order statistics, which is
        the whole range below six trainings.
    proved : float or None
    level : float
    """

    name: str
    records: int
    trainings: tuple[PairsResult, ...]
    accuracy: Estimate
    proved: float | None
    level: float

    def attempts(self) -> tuple[Attempt, ...]:
        """Median accuracy beside the bound."""
        return (
            Attempt(
                f"leave-two-unlabeled, {self.name}",
                "accuracy",
                self.accuracy,
                proved=self.proved,
                control=Estimate(0.5, 0.5, 0.5),
                about=f"{self.records} records, median of {len(self.trainings)} trainings, all pairs",
                closer="a score that is trained longer, with less noise, or on fewer records",
                level=self.level,
            ),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return asdict(self) | {"attempts": [one.to_dict() for one in self.attempts()], "internal": True}


@dataclass(frozen=True, eq=False)
class _Work:
    trainer: ScoreTrainer
    frame: pd.DataFrame
    records: int
    name: str
    level: float

    def __call__(self, seed: int) -> Mapping[str, Any]:
        chosen = np.random.default_rng(seed).permutation(len(self.frame))[: 2 * self.records]
        pool = self.frame.iloc[chosen].reset_index(drop=True)
        score = self.trainer(pool.iloc[: self.records].copy(), seed)
        values = np.asarray(score(pool), dtype=np.float64)
        if values.shape != (len(pool),) or np.isnan(values).any():
            raise RunError(f"the score must give one number a record, got shape {values.shape} or NaN")
        members = np.arange(len(pool)) < self.records
        found = pairs_result(self.name, -values, members, seed=seed, level=self.level)
        return found.to_dict()


def attack_scores(
    trainer: ScoreTrainer,
    frame: pd.DataFrame,
    *,
    records: int,
    seeds: int = 5,
    name: str = "critic",
    folder: str | Path | None = None,
    jobs: int = 1,
    on_round: OnRound = silent,
    proved: float | None = None,
    level: float = 0.95,
) -> GeneratorResult:
    """Train a score on random halves of a frame, and see whether it tells them from the others.

    Parameters
    ----------
    trainer : callable
        ``trainer(frame, seed)`` returns ``score(frame) -> array``, larger for records that it knows.
    frame : pandas.DataFrame (n, columns)
        Real records; at least ``2 * records``.
    records : int
        On each side: trained on, kept aside.
    seeds : int
        Trainings, each with another draw of both sides.
    name : str
        Of the score.
    folder, jobs, on_round
        As in :func:`dpsynth.files.rounds.carry_out`.
    proved : float, optional
        A bound on the accuracy over the trainer's randomness.

    Raises
    ------
    DataError
        If the frame has too few records.

    Examples
    --------
    >>> frame = pd.DataFrame({"x": np.arange(40.0)})
    >>> remembers = lambda train, seed: lambda asked: asked["x"].isin(train["x"])
    >>> attack_scores(remembers, frame, records=20, seeds=3).accuracy.value
    1.0
    """
    whole("records", records, 2)
    whole("seeds", seeds)
    if len(frame) < 2 * records:
        raise of_records(
            f"the frame has {len(frame)} records, two sides of {records} need {2 * records}; "
            f"ask for at most {len(frame) // 2}"
        )
    if not name:
        raise InputError("name must be a text that is not empty, not ''")
    done = carry_out(
        _Work(trainer, frame, records, name, level),
        {f"seed-{seed:03d}": seed for seed in range(seeds)},
        folder=folder,
        settings={"score": name, "records": records, "rows": len(frame), "level": level},
        jobs=jobs,
        on_round=on_round,
    )
    trainings = tuple(_restored(record) for record in done.values())
    accuracy = quantile([one.pairwise.value for one in trainings], 0.5, level)
    return GeneratorResult(name, records, trainings, accuracy, proved, level)


def _restored(record: Mapping[str, Any]) -> PairsResult:
    return PairsResult(
        strategy=record["strategy"],
        pairwise=Estimate(**record["pairwise"]),
        per_record=Estimate(**record["per_record"]),
        privacy=record["privacy"],
        individual=tuple(record["individual"]),
        individual_reserved=tuple(record["individual_reserved"]),
        low_rates=tuple(
            LowRate(low["fpr"], Estimate(**low["tpr"]), low["chance"]) for low in record["low_rates"]
        ),
    )
