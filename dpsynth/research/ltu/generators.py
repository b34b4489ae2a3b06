"""Attack generators through a score, for instance their critic (Pedersen 2022, section 6.2).

A critic was trained to separate real from generated records, and may have learned its training records. A
generator reaches this attack as a function of a frame and a seed that trains it and returns a score of
records. The strategy is that of Theorem 4.2.1.

`CriticTrainer` is such a function for our own synthesizer. The critic's weights are made from noisy sums
alone: publishing them costs nothing beyond the ledger. Its scores of *real* records read these without using
privacy budget. They are confidential.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from dpsynth.accounting.ledger import Ledger
from dpsynth.attacks.attempt import Attempt
from dpsynth.checks import whole
from dpsynth.errors import InputError, RunError, of_records
from dpsynth.evaluation.estimates import Estimate, quantile
from dpsynth.files.rounds import OnRound, carry_out, silent
from dpsynth.mechanism.plan import Plan
from dpsynth.model.generator import GeneratorModel
from dpsynth.model.wgan.networks import Weights, unflatten
from dpsynth.model.wgan.quiet import load_tensorflow_quietly
from dpsynth.model.wgan.settings import TrainingSettings
from dpsynth.releases.critic import CriticRelease
from dpsynth.research.ltu.results import LowRate, PairsResult, pairs_result
from dpsynth.synthesis import default_rules
from dpsynth.synthesis.check_inputs import conformed, record_provenance, records_of
from dpsynth.synthesis.fit import Training, fit_releases, plan_fit, trained_state
from dpsynth.synthesis.synthesizer import DPWGANGP
from dpsynth.table.schema import Schema

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
                control=Estimate(0.5, 0.5, 0.5),
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
    lows = tuple(LowRate(**{**low, "tpr": Estimate(**low["tpr"])}) for low in record["low_rates"])
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
    on_round: OnRound = silent,
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
        As in :func:`dpsynth.files.rounds.carry_out`.
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


@dataclass(frozen=True, eq=False)
class CriticScore:
    """A trained critic, larger for records that it takes for real.

    ``model`` is what `DPWGANGP.fit` would have published, ``critic`` a list of (W, b), ``ledger`` that of the
    training.
    """

    model: GeneratorModel
    critic: Weights
    settings: TrainingSettings
    ledger: Ledger

    def __call__(self, frame: pd.DataFrame) -> NDArray[np.float64]:
        """Scores of records of the schema, shape (n,). Confidential if the records are real."""
        load_tensorflow_quietly()
        import tensorflow as tf

        from dpsynth.model.wgan.critic import Activation, critic_pass

        records = conformed(self.model.encoder.schema, frame)
        # where a value lies in its cell is drawn; the same for every call
        points = self.model.encoder.transform(records, np.random.default_rng(0))
        centred = points - self.model.encoder.layout.center.astype(np.float32)
        activation = Activation(self.settings.activation, self.settings.slope)
        weights = [(tf.constant(w), None if b is None else tf.constant(b)) for w, b in self.critic]
        scores, _, _ = critic_pass(weights, tf.constant(centred, tf.float32), activation)
        return np.asarray(scores, dtype=np.float64)


@dataclass(frozen=True, eq=False)
class CriticTrainer:
    """Train a synthesizer and keep its critic, for :func:`attack_scores`.

    Parameters
    ----------
    estimator : DPWGANGP
        Not fitted, with critic steps and no pre-specified regressions.
    schema : Schema
        Its public number of records is set to that of the frame that is trained on.
    """

    estimator: DPWGANGP
    schema: Schema

    def __call__(self, frame: pd.DataFrame, seed: int) -> CriticScore:
        """Train on a frame as ``fit`` does with this ``random_state``.

        Raises
        ------
        InputError
            If the synthesizer has no critic steps, or has pre-specified regressions.
        """
        own = type(self.estimator)(**{**self.estimator.get_params(deep=False), "random_state": seed})
        options = own.validate()
        if not options.steps or options.studies:
            raise InputError("the synthesizer must have training_steps above 0 and no studies")
        if options.has_matching:
            raise InputError(
                "the synthesizer trains no WGAN critic without a base model: give training=TrainingSettings()"
            )
        schema = self.schema.with_n_public(len(frame))
        records = records_of(frame, schema, options, accept_n_public=True)
        ledger = Ledger()
        # the streams of DPWGANGP's own fit, so that it is the same synthesizer that is attacked
        rng = np.random.Generator(np.random.PCG64DXSM([seed, 0]))
        record_provenance(ledger, schema, options, rng, {})
        plan = plan_fit(records, schema, options, rng, ledger)
        released = fit_releases(records, plan, rng, ledger)
        releases, settings = plan.releases, plan.blueprint.training
        assert isinstance(settings, TrainingSettings)  # others are refused above
        if releases.plan is None:
            raise InputError("no budget is left for WGAN critic steps. Give more epsilon or fewer statistics")
        training = Training(released, settings, np.random.default_rng([seed]), dict)

        def train(own: pd.DataFrame, plan: Plan, noise: np.random.Generator) -> CriticScore:
            state = trained_state(own, plan, noise, training)
            critic = unflatten([np.asarray(a) for a in state.arrays["critic"]], output_bias=False)
            whole = dataclasses.replace(released, weights=state.generator)
            return CriticScore(whole, critic, settings, ledger)

        words = default_rules.describe_sensitivity(settings, releases.plan.noise_shape)
        steps: CriticRelease[CriticScore] = CriticRelease(
            plan=releases.plan, sensitivity=words, train=train, stage=releases.stage
        )
        score = ledger.run(steps, records, rng)
        ledger.end_stage()
        return score
