"""Attack generators through a score, for instance their critic (Pedersen 2022, section 6.2).

A critic was trained to separate real from generated records, and may have learned its training records. A
generator reaches this attack as a function of a frame and a seed that trains it and returns a score of
records. The strategy is that of Theorem 4.2.1.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from dpsynth.attacks.attempt import COIN, Attempt
from dpsynth.checks import whole
from dpsynth.errors import InputError, RunError, of_records
from dpsynth.evaluation.estimates import Estimate, quantile
from dpsynth.files.storage import OnRound, carry_out, print_nothing
from dpsynth.research.ltu.results import PairsResult, TprAtFpr, pairs_result

#: a score of records, larger for those that were trained on
Score = Callable[[pd.DataFrame], ArrayLike]
#: a frame (n, columns) and a seed to a score
ScoreTrainer = Callable[[pd.DataFrame, int], Score]


@dataclass(frozen=True)
class GeneratorResult:
    """Results of a generator's score over trainings on other samples of both sides. Confidential.

    ``accuracy`` is the median over trainings of the accuracy over all pairs. Its interval is that of order
    statistics, the whole range below six trainings. ``records`` is their number on each side.
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
                control=COIN,
                about=f"{self.records} records, median of {len(self.trainings)} trainings, all pairs",
                closer="a score that is trained longer, with less noise, or on fewer records",
                level=self.level,
            ),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return asdict(self) | {"attempts": [one.to_dict() for one in self.attempts()], "internal": True}


def _one_training(
    trainer: ScoreTrainer, frame: pd.DataFrame, records: int, name: str, level: float, seed: int
) -> Mapping[str, Any]:
    chosen = np.random.default_rng(seed).permutation(len(frame))[: 2 * records]
    pool = frame.iloc[chosen].reset_index(drop=True)
    score = trainer(pool.iloc[:records].copy(), seed)
    values = np.asarray(score(pool), dtype=np.float64)
    if values.shape != (len(pool),) or np.isnan(values).any():
        raise RunError(f"the score must give one number a record, got shape {values.shape} or NaN")
    members = np.arange(len(pool)) < records
    return asdict(pairs_result(name, -values, members, seed=seed, level=level))


def _restored(record: Mapping[str, Any]) -> PairsResult:
    lows = tuple(TprAtFpr(**{**low, "tpr": Estimate(**low["tpr"])}) for low in record["low_rates"])
    estimates = {key: Estimate(**record[key]) for key in ("pairwise", "per_record")}
    lists = {key: tuple(record[key]) for key in ("individual", "individual_reserved", "p_in")}
    return PairsResult(**{**record, **estimates, **lists, "low_rates": lows})


def attack_scores(
    trainer: ScoreTrainer,
    frame: pd.DataFrame,
    *,
    records: int,
    seeds: int = 5,
    name: str = "critic",
    folder: str | Path | None = None,
    jobs: int = 1,
    on_round: OnRound = print_nothing,
    proved: float | None = None,
    level: float = 0.95,
) -> GeneratorResult:
    """Train a score on random halves of a frame, and measure how well it separates them from the others.

    Parameters
    ----------
    trainer : callable
        ``trainer(frame, seed)`` returns ``score(frame) -> array``, larger for members.
    frame : pandas.DataFrame (n, columns)
        Real records, at least ``2 * records``.
    records : int
        Number on each side: trained on, kept aside.
    seeds : int
        Trainings, each with another sample of both sides.
    name : str
        Name of the score.
    folder, jobs, on_round
        As in :func:`dpsynth.files.storage.carry_out`.
    proved : float, optional
        A bound on the accuracy over the trainer's randomness.
    level : float
        Level of the intervals.

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
            f"the frame has {len(frame)} records, two sides of {records} need {2 * records}. "
            f"Ask for at most {len(frame) // 2}"
        )
    if not name:
        raise InputError("name must be a text that is not empty, not ''")
    done = carry_out(
        partial(_one_training, trainer, frame, records, name, level),
        {f"seed-{seed:03d}": seed for seed in range(seeds)},
        folder=folder,
        settings={"score": name, "records": records, "rows": len(frame), "level": level},
        jobs=jobs,
        on_round=on_round,
    )
    trainings = tuple(_restored(record) for record in done.values())
    accuracy = quantile([one.pairwise.value for one in trainings], 0.5, level)
    return GeneratorResult(name, records, trainings, accuracy, proved, level)
