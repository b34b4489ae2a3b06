"""The training of a generator by private steps, or the matching of its points to noisy gradients."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dpsynth.errors import InputError, RunError
from dpsynth.files.codec import record
from dpsynth.lazy import load_tensorflow_quietly
from dpsynth.parallel import in_blocks
from dpsynth.privacy.records import Records
from dpsynth.privacy.release import CriticRelease, Plan
from dpsynth.privacy.stages import Stage
from dpsynth.synthesis import default_rules
from dpsynth.synthesis.model import GeneratorModel, independent_points
from dpsynth.synthesis.sampler import Sampler
from dpsynth.synthesis.sampling import Codes, Places, calibrated_records
from dpsynth.table.encoder import Encoder
from dpsynth.wgan.networks import ArrayOps, MatchedPoints, coordinate_scale, generator_pass
from dpsynth.wgan.settings import MatchingSettings, TrainingSettings

if TYPE_CHECKING:
    from dpsynth.synthesis.saved_fit import SavedFit
    from dpsynth.wgan.checkpoint import Interrupted
    from dpsynth.wgan.training import TrainingState

# Rows of the bank of public points that training gathers from.
_BANK_ROWS = 50_000


#: What a training run is made with.
Settings = TrainingSettings | MatchingSettings


@dataclass(frozen=True)
class Progress:
    """State of a training for a progress bar, from released quantities only.

    Parameters
    ----------
    step, total : int
        Critic steps made and to be made. With matched points, these are random critics, in proportion to the
        iterations.
    metrics : dict
        The last record of the history.
    """

    step: int
    total: int
    metrics: dict[str, float]


@dataclass(frozen=True)
class Training:
    """The training of a generator, or the matching of its points, without records, plan and noise.

    Parameters
    ----------
    initial_rng : Generator
        Public: of the initial weights, or of the random critics and the points.
    saved : callable
        Returns what a checkpoint keeps, from model, history and unfinished training.
    checkpoint : path, optional
        Folder for a private checkpoint after an interrupt.
    """

    model: GeneratorModel
    settings: Settings
    initial_rng: np.random.Generator
    saved: Callable[[GeneratorModel, list[dict[str, float]], Interrupted], SavedFit]
    checkpoint: str | Path | None = None
    progress: Callable[[Progress], None] | None = None

    def release(self, plan: Plan, *, stage: Stage | None = None, state: Any = None) -> CriticRelease[Trained]:
        """The critic steps as a release, continued from ``state``."""

        def train(records: Records, plan: Plan, rng: np.random.Generator) -> Trained:
            return train_generator(records, plan, rng, self, state)

        words = default_rules.describe_sensitivity(self.settings, plan.noise_shape)
        resumed = state is not None
        return CriticRelease(plan=plan, sensitivity=words, train=train, stage=stage, resumed=resumed)


#: A model with a trained generator, and the history of its training.
Trained = tuple[GeneratorModel, list[dict[str, float]]]


def train_generator(
    records: Records, plan: Plan, rng: np.random.Generator, training: Training, state: Any = None
) -> Trained:
    """The model with a generator or matched points, and its history. Arguments are `trained_state`'s."""
    if isinstance(training.settings, MatchingSettings):
        return _match(records, plan, rng, training, training.settings)
    trained = trained_state(records, plan, rng, training, state)
    made = Generated(trained.generator, training.settings.latent, training.settings.latent_law)
    return dataclasses.replace(training.model, sampler=made), trained.history


# Rows that go through the generator at once: its layers then stay in the processor's cache.
_ROWS = 4_096


@record
@dataclass(frozen=True)
class Generated(Sampler):
    """Records that the points of a trained generator stand for.

    ``weights``: matrix and bias of each layer of the generator.
    ``latent``, ``latent_law``: length and distribution of its input.
    """

    weights: list[tuple[NDArray[np.float32], NDArray[np.float32]]]
    latent: int
    latent_law: str

    def draw(self, encoder: Encoder, n: int, rng: np.random.Generator) -> tuple[list[Codes], list[Places]]:
        """Fine cells of n records and places within them."""
        made = np.empty((n, encoder.layout.dim), np.float32)

        def fill(part: slice, own: np.random.Generator) -> None:
            draw = own.random if self.latent_law == "uniform" else own.standard_normal
            latent = draw((part.stop - part.start, self.latent), dtype=np.float32)
            made[part] = generator_pass(self.weights, latent, encoder.layout, ArrayOps)

        in_blocks(fill, n, _ROWS, rng)
        return calibrated_records(made, encoder, rng)


@record
@dataclass(frozen=True)
class Matched(Sampler):
    """Records that matched points stand for (`dpsynth.wgan.matching`)."""

    points: MatchedPoints

    def draw(self, encoder: Encoder, n: int, rng: np.random.Generator) -> tuple[list[Codes], list[Places]]:
        """Fine cells of n records and places within them."""
        return calibrated_records(self.points.sample(n, encoder.layout.n_numeric, rng), encoder, rng)


# Records whose gradients are summed at once.
_BLOCK = 50_000


def _encoded(records: Records, encoder: Encoder, rng: np.random.Generator) -> NDArray[np.float32]:
    """Private points of the records, in a file if the records are in parts and many."""
    return records.rows(partial(encoder.transform_rows, seed=int(rng.integers(2**63))))


def _match(
    records: Records,
    plan: Plan,
    rng: np.random.Generator,
    training: Training,
    settings: MatchingSettings,
) -> Trained:
    """The model with points that match gradients at random critics, and the history of the matching."""
    load_tensorflow_quietly()
    from dpsynth.wgan.matching import Critics, GradientRelease, matched

    encoder, public = training.model.encoder, training.initial_rng
    critics = Critics.draw(plan.steps, encoder.layout.dim, settings, public)
    release = GradientRelease(
        critics, encoder.layout, coordinate_scale(encoder, settings.outcome_scale), plan
    )
    points = _encoded(records, encoder, rng)
    released = release((points[i : i + _BLOCK] for i in range(0, len(points), _BLOCK)), rng)
    history: list[dict[str, float]] = []

    def on_chunk(iterations: int, difference: float) -> None:
        history.append({"step": iterations, "difference": difference})
        if training.progress is not None:
            done = plan.steps * iterations // settings.iterations
            training.progress(Progress(done, plan.steps, history[-1]))

    try:
        found, _ = matched(
            released, encoder.layout, encoder.group_probabilities(), settings, public, on_chunk
        )
    except KeyboardInterrupt:
        raise KeyboardInterrupt(
            "The noisy gradients had used privacy budget before the interrupt, see the ledger. They were not "
            "kept, so the fit cannot go on. Another fit uses privacy budget again"
        ) from None
    return dataclasses.replace(training.model, sampler=Matched(found)), history


def trained_state(
    records: Records, plan: Plan, rng: np.random.Generator, training: Training, state: Any = None
) -> TrainingState:
    """WGAN critic, generator and history after the plan's steps. ``rng`` is secret, ``state`` a start."""
    load_tensorflow_quietly()
    from dpsynth.wgan.checkpoint import Interrupted, recognised, write_checkpoint
    from dpsynth.wgan.training import TrainingRun, initial_state

    model, settings = training.model, training.settings
    if isinstance(settings, MatchingSettings):
        raise InputError("matched points have no trained WGAN critic: use DPWGANGP")
    bank = None
    if settings.penalty == "public":
        bank = independent_points(model.encoder, _BANK_ROWS, rng)

    def on_chunk(current: TrainingState, total: int) -> None:
        if training.progress is not None:
            scale = settings.critic_steps
            training.progress(Progress(current.step * scale, total * scale, current.history[-1]))

    # Read now: on an interrupt there may be no time, or no workers.
    table = {} if training.checkpoint is None else recognised(records)

    def on_interrupt(current: TrainingState) -> None:
        if training.checkpoint is not None:
            left = Interrupted.of(current, plan, settings, table)
            write_checkpoint(training.checkpoint, training.saved(model, current.history, left))

    layout = model.encoder.layout
    if state is None:
        state = initial_state(layout, settings, training.initial_rng)
    try:
        points = _encoded(records, model.encoder, rng)
    except (KeyboardInterrupt, RunError):
        on_interrupt(state)
        raise
    trainer = TrainingRun(points, layout, settings, plan, bank=bank)
    return trainer.run(rng, state=state, on_chunk=on_chunk, on_interrupt=on_interrupt)
