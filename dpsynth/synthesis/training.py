"""The training of a generator by private steps: checkpoints, progress and logs, whatever the trainer is."""

from __future__ import annotations

import dataclasses
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpsynth.files.codec import record
from dpsynth.files.storage import locked, make_folder, parents_made
from dpsynth.lazy import load_tensorflow_quietly
from dpsynth.parallel import in_blocks
from dpsynth.privacy.noise import generator_state
from dpsynth.privacy.records import Records
from dpsynth.privacy.release import CriticRelease, Plan
from dpsynth.privacy.stages import Stage
from dpsynth.synthesis import default_rules
from dpsynth.synthesis.model import GeneratorModel, independent_points
from dpsynth.synthesis.sampler import Sampler
from dpsynth.synthesis.sampling import Codes, Places, calibrated_records
from dpsynth.table.encoder import Encoder
from dpsynth.wgan.history import TrainingHistory, latest
from dpsynth.wgan.networks import ArrayOps, coordinate_scale, generator_pass
from dpsynth.wgan.settings import TrainingSettings
from dpsynth.wgan.snapshots import take_snapshot
from dpsynth.wgan.state import TrainingState

if TYPE_CHECKING:
    from dpsynth.synthesis.saved_fit import SavedFit
    from dpsynth.wgan.checkpoint import Interrupted

# Rows of the bank of public points that training gathers from.
_BANK_ROWS = 50_000
#: Seconds between checkpoints.
CHECKPOINT_SECONDS = 120.0


@dataclass(frozen=True)
class Progress:
    """State of a training for a progress bar, from released quantities only.

    Parameters
    ----------
    step, total : int
        Critic steps made and to be made. With matched points, these are random critics, in proportion to the
        iterations.
    metrics : dict
        The last row of the history.
    estimate : (float, float), optional
        Mean of the last estimates of the Wasserstein distance, and its standard error, if there are any.
    """

    step: int
    total: int
    metrics: dict[str, float]
    estimate: tuple[float, float] | None = None


@dataclass(frozen=True)
class Course:
    """What a trainer works with, beside the state that it goes on from.

    ``plan``: noise and event of its steps.
    ``rng``: source of the noise, secret.
    ``points``: encodes the records, private. Called once, if any are read.
    ``on_chunk``: called with the state whenever there is something to show.
    ``keep``: writes a checkpoint of a state, at once.
    """

    encoder: Encoder
    plan: Plan
    rng: np.random.Generator
    points: Callable[[], NDArray[np.float32]]
    on_chunk: Callable[[TrainingState], None]
    keep: Callable[[TrainingState], None]


class CriticTrainer(ABC):
    """How a generator learns from noisy gradients of critics, as a saved fit keeps it.

    Checkpoints, progress and logs are common code. A trainer is a dataclass that is marked with `record`.

    ``settings``: public constants of architecture and optimiser, a record.
    """

    settings: Any

    @property
    def may_stop(self) -> bool:
        """Whether it may stop before the plan's last step, by a rule on noisy statistics alone."""
        return False

    @abstractmethod
    def sensitivity(self, noise_shape: str) -> str:
        """Source of a step's sensitivity, as one phrase for the ledger."""

    @abstractmethod
    def start(self, encoder: Encoder, plan: Plan, rng: np.random.Generator) -> TrainingState:
        """The state before the first step. ``rng`` is public: the model may disclose what it draws."""

    @abstractmethod
    def run(self, state: TrainingState, course: Course) -> TrainingState:
        """Go on from a state to the end. Whatever stops it, the last state is handed to ``course.keep``.

        The same state, records and generator give the same result, bit for bit on one computer.
        """

    @abstractmethod
    def sampler(self, state: TrainingState, encoder: Encoder) -> Sampler:
        """Where records come from after the last step."""

    @abstractmethod
    def progress(self, state: TrainingState, plan: Plan) -> Progress:
        """The last row of the history, for a progress bar."""


@dataclass(frozen=True)
class Training:
    """The training of a generator, without records, plan and noise.

    Parameters
    ----------
    initial_rng : Generator
        Public: of the initial weights, or of the random critics and the points.
    saved : callable
        Returns what a checkpoint keeps, from model, history and unfinished training.
    checkpoint : path, optional
        Folder for a private checkpoint, written every `CHECKPOINT_SECONDS` and when the training stops.
    log_dir : path, optional
        Folder for the history as scalars of TensorBoard.
    """

    model: GeneratorModel
    trainer: CriticTrainer
    initial_rng: np.random.Generator
    saved: Callable[[GeneratorModel, TrainingHistory, Interrupted], SavedFit]
    checkpoint: str | Path | None = None
    progress: Callable[[Progress], None] | None = None
    log_dir: str | Path | None = None

    def release(self, plan: Plan, *, stage: Stage | None = None, state: Any = None) -> CriticRelease[Trained]:
        """The critic steps as a release, continued from ``state``."""

        def train(records: Records, plan: Plan, rng: np.random.Generator) -> Trained:
            return train_generator(records, plan, rng, self, state)

        return CriticRelease(
            plan=plan,
            sensitivity=self.trainer.sensitivity(plan.noise_shape),
            train=train,
            stage=stage,
            resumed=state is not None,
            may_stop=self.trainer.may_stop,
        )


#: A model with a trained generator, and the history of its training.
Trained = tuple[GeneratorModel, TrainingHistory]


def train_generator(
    records: Records, plan: Plan, rng: np.random.Generator, training: Training, state: Any = None
) -> Trained:
    """The model with a trained generator, and its history. Arguments are `trained_state`'s."""
    return with_generator(
        training.model, training.trainer, trained_state(records, plan, rng, training, state)
    )


def with_generator(model: GeneratorModel, trainer: CriticTrainer, state: TrainingState) -> Trained:
    """The model with the generator of a training."""
    made = dataclasses.replace(model, sampler=trainer.sampler(state, model.encoder))
    return made, TrainingHistory.of(state.history, state.layers, state.snapshots)


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
class Alternating(CriticTrainer):
    """Critic and generator in turn, by Algorithm 1 (`dpsynth.wgan.training`)."""

    settings: TrainingSettings

    @property
    def may_stop(self) -> bool:
        """With ``patience``."""
        return self.settings.patience is not None

    def sensitivity(self, noise_shape: str) -> str:
        """Proved from the critic's weights, or clipping."""
        return default_rules.describe_sensitivity(self.settings, noise_shape)

    def start(self, encoder: Encoder, plan: Plan, rng: np.random.Generator) -> TrainingState:
        """Initial weights."""
        from dpsynth.wgan.training import initial_state

        return initial_state(encoder.layout, self.settings, rng, encoder.group_probabilities())

    def run(self, state: TrainingState, course: Course) -> TrainingState:
        """Make the plan's steps."""
        from dpsynth.wgan.training import TrainingRun

        encoder, bank = course.encoder, None
        if self.settings.penalty == "public":
            bank = independent_points(encoder, _BANK_ROWS, course.rng)
        scale = None
        if self.settings.outcome_scale != 1.0:
            scale = tuple(map(float, coordinate_scale(encoder, self.settings.outcome_scale)))
        trainer = TrainingRun(
            course.points(), encoder.layout, self.settings, course.plan, bank=bank, scale=scale
        )
        look = partial(take_snapshot, settings=self.settings, encoder=encoder)
        state = trainer.run(
            course.rng,
            state=state,
            look=look,
            on_chunk=lambda current, _: course.on_chunk(current),
            on_stop=course.keep,
        )
        state = trainer.replay(state, look)
        return dataclasses.replace(state, layers=trainer.layer_bounds(state), awaits_noise=False)

    def sampler(self, state: TrainingState, encoder: Encoder) -> Sampler:
        """The averaged generator."""
        from dpsynth.wgan.training import generator_of

        return Generated(generator_of(state), self.settings.latent, self.settings.latent_law)

    def progress(self, state: TrainingState, plan: Plan) -> Progress:
        """Critic steps."""
        each = self.settings.critic_steps
        most = plan.steps // each * each
        return Progress(state.step * each, most, last_row(state.history), latest(state.history))


def _encoded(records: Records, encoder: Encoder, rng: np.random.Generator) -> NDArray[np.float32]:
    """Private points of the records, in a file if the records are in parts and many."""
    return records.rows(partial(encoder.transform_rows, seed=int(rng.integers(2**63))))


def trained_state(
    records: Records, plan: Plan, rng: np.random.Generator, training: Training, state: Any = None
) -> TrainingState:
    """The state after the plan's steps. ``rng`` is secret, ``state`` a start."""
    load_tensorflow_quietly()
    from dpsynth.wgan.checkpoint import Interrupted, recognised, write_checkpoint

    model, trainer, checkpoint = training.model, training.trainer, training.checkpoint
    start = generator_state(rng)
    # Read now: on an interrupt there may be no time, or no workers.
    table = {} if checkpoint is None else recognised(records)
    written = time.monotonic()

    def keep(current: TrainingState, *, ended: bool = False) -> None:
        nonlocal written
        if checkpoint is not None:
            left = Interrupted.of(current, plan, table, start, ended=ended)
            history = TrainingHistory.of(current.history, current.layers, current.snapshots)
            write_checkpoint(checkpoint, training.saved(model, history, left))
            written = time.monotonic()

    if state is None:
        state = trainer.start(model.encoder, plan, training.initial_rng)
    with ExitStack() as held:
        log = held.enter_context(_scalars(training.log_dir))
        if checkpoint is not None:
            held.enter_context(parents_made(Path(checkpoint)))
            held.enter_context(locked(checkpoint))  # so that nobody goes on from it meanwhile
        keep(state)

        def on_chunk(current: TrainingState) -> None:
            if time.monotonic() - written >= CHECKPOINT_SECONDS:
                keep(current)
            log(current.history)
            if training.progress is not None:
                training.progress(trainer.progress(current, plan))

        points = partial(_encoded, records, model.encoder, rng)
        state = trainer.run(state, Course(model.encoder, plan, rng, points, on_chunk, keep))
        keep(state, ended=True)
    return state


def last_row(history: pd.DataFrame) -> dict[str, float]:
    """The last row of a history."""
    return {str(name): float(value) for name, value in history.iloc[-1].items()}


@contextmanager
def _scalars(folder: str | Path | None) -> Iterator[Callable[[pd.DataFrame], None]]:
    """Give what writes a history's new rows for TensorBoard, for their owner alone, if there is a folder."""
    if folder is None:
        yield lambda history: None
        return
    import tensorflow as tf

    make_folder(Path(folder))
    writer, done = tf.summary.create_file_writer(str(folder)), 0
    # what `tf.summary.scalar` writes, which needs TensorBoard itself
    plugin = tf.compat.v1.SummaryMetadata.PluginData(plugin_name="scalars")
    metadata = tf.compat.v1.SummaryMetadata(plugin_data=plugin)

    def write(history: pd.DataFrame) -> None:
        nonlocal done
        with writer.as_default():
            for row in history.iloc[done:].to_dict("records"):
                for name, value in row.items():
                    if name != "step":
                        scalar = tf.constant(value, tf.float32)
                        tf.summary.write(str(name), scalar, step=int(row["step"]), metadata=metadata)
        done = len(history)
        writer.flush()

    try:
        yield write
    finally:
        writer.close()
