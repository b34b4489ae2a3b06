"""The critic's steps as a release: from a model without generator to one with a trained generator."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from dpsynth.accounting.contents import Stage
from dpsynth.files import storage
from dpsynth.mechanism.plan import Plan
from dpsynth.model.generator import GeneratorModel, independent_points
from dpsynth.model.wgan.quiet import load_tensorflow_quietly
from dpsynth.model.wgan.settings import TrainingSettings
from dpsynth.releases.critic import CriticRelease
from dpsynth.synthesis import default_rules

if TYPE_CHECKING:
    from dpsynth.model.wgan.training import TrainingState

# Rows of the bank of prior draws (or public points) that training gathers from.
_BANK_ROWS = 50_000


@dataclass(frozen=True)
class Progress:
    """What a progress bar may show: functions of released quantities only.

    Parameters
    ----------
    step, total : int
        Critic steps made and to be made.
    metrics : dict
        The last record of the history.
    """

    step: int
    total: int
    metrics: dict[str, float]


@dataclass(frozen=True)
class Training:
    """The training of a generator, but for its records, its plan and its noise.

    Parameters
    ----------
    model : GeneratorModel
        With marginals and prior, not trained.
    settings : TrainingSettings
    initial_rng : numpy.random.Generator
        Of the initial weights.
    record : dict
        What a checkpoint keeps beside the model and the state.
    checkpoint : path, optional
        Where an interrupt leaves a private checkpoint.
    progress : callable, optional
    """

    model: GeneratorModel
    settings: TrainingSettings
    initial_rng: np.random.Generator
    record: Callable[[], dict[str, Any]]
    checkpoint: str | Path | None = None
    progress: Callable[[Progress], None] | None = None

    def release(self, plan: Plan, *, stage: Stage | None = None, state: Any = None) -> CriticRelease[Trained]:
        """The critic's steps as a release; ``state`` is where to go on from."""

        def train(records: pd.DataFrame, plan: Plan, rng: np.random.Generator) -> Trained:
            return train_generator(records, plan, rng, self, state)

        words = default_rules.describe_sensitivity(self.settings, plan.noise_shape)
        return CriticRelease(plan=plan, sensitivity=words, train=train, stage=stage)


#: A model with a trained generator, and the history of its training.
Trained = tuple[GeneratorModel, list[dict[str, float]]]


def train_generator(
    records: pd.DataFrame, plan: Plan, rng: np.random.Generator, training: Training, state: Any = None
) -> Trained:
    """The model with a trained generator, and its history; arguments are those of `trained_state`."""
    trained = trained_state(records, plan, rng, training, state)
    return dataclasses.replace(training.model, weights=trained.generator), trained.history


def trained_state(
    records: pd.DataFrame, plan: Plan, rng: np.random.Generator, training: Training, state: Any = None
) -> TrainingState:
    """Critic and generator after the plan's steps, with the history.

    Parameters
    ----------
    records : DataFrame
        Conformed private records.
    plan : Plan
    rng : numpy.random.Generator
        Of the noise and samples (secret).
    training : Training
    state : TrainingState, optional
        Where to go on from.
    """
    load_tensorflow_quietly()
    from dpsynth.model.wgan.checkpoint import write_checkpoint
    from dpsynth.model.wgan.training import Trainer

    model, settings = training.model, training.settings
    bank = None
    if model.prior is not None:
        bank = model.prior.sample_points(_BANK_ROWS, model.encoder, rng)
    elif settings.penalty == "public":
        bank = independent_points(model.encoder, _BANK_ROWS, rng)

    def on_chunk(current: TrainingState, total: int) -> None:
        if training.progress is not None:
            scale = settings.critic_steps
            training.progress(Progress(current.step * scale, total * scale, current.history[-1]))

    def on_interrupt(current: TrainingState) -> None:
        if training.checkpoint is not None:
            meta, arrays = model.to_state()
            kept = {**training.record(), "model": meta}
            stored = storage.prefixed("model", arrays)
            write_checkpoint(training.checkpoint, kept, stored, current, plan, settings, records)

    trainer = Trainer(
        model.encoder.transform(records, rng),
        model.encoder.layout,
        settings,
        plan,
        bank=bank,
        with_prior=model.prior is not None,
    )
    return trainer.run(
        rng, initial_rng=training.initial_rng, state=state, on_chunk=on_chunk, on_interrupt=on_interrupt
    )
