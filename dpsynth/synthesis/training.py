"""The training of a generator by private steps, or the matching of its points to noisy gradients."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpsynth.errors import InputError
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
from dpsynth.wgan.networks import ArrayOps, MatchedPoints, coordinate_scale, generator_pass
from dpsynth.wgan.settings import MatchingSettings, TrainingSettings

if TYPE_CHECKING:
    from dpsynth.synthesis.saved_fit import SavedFit
    from dpsynth.wgan.checkpoint import Interrupted
    from dpsynth.wgan.training import TrainingState

# Rows of the bank of public points that training gathers from.
_BANK_ROWS = 50_000
#: Seconds between checkpoints.
CHECKPOINT_SECONDS = 120.0


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
        The last row of the history.
    estimate : (float, float), optional
        Mean of the last estimates of the Wasserstein distance, and its standard error, if there are any.
    """

    step: int
    total: int
    metrics: dict[str, float]
    estimate: tuple[float, float] | None = None


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
        Folder for a private checkpoint, written every `CHECKPOINT_SECONDS` and when the training stops.
    log_dir : path, optional
        Folder for the history as scalars of TensorBoard.
    """

    model: GeneratorModel
    settings: Settings
    initial_rng: np.random.Generator
    saved: Callable[[GeneratorModel, TrainingHistory, Interrupted], SavedFit]
    checkpoint: str | Path | None = None
    progress: Callable[[Progress], None] | None = None
    log_dir: str | Path | None = None

    def release(self, plan: Plan, *, stage: Stage | None = None, state: Any = None) -> CriticRelease[Trained]:
        """The critic steps as a release, continued from ``state``."""

        def train(records: Records, plan: Plan, rng: np.random.Generator) -> Trained:
            return train_generator(records, plan, rng, self, state)

        words = default_rules.describe_sensitivity(self.settings, plan.noise_shape)
        resumed = state is not None
        patient = isinstance(self.settings, TrainingSettings) and self.settings.patience is not None
        return CriticRelease(
            plan=plan, sensitivity=words, train=train, stage=stage, resumed=resumed, may_stop=patient
        )


#: A model with a trained generator, and the history of its training.
Trained = tuple[GeneratorModel, TrainingHistory]


def train_generator(
    records: Records, plan: Plan, rng: np.random.Generator, training: Training, state: Any = None
) -> Trained:
    """The model with a generator or matched points, and its history. Arguments are `trained_state`'s."""
    if isinstance(training.settings, MatchingSettings):
        return _match(records, plan, rng, training, training.settings)
    return with_generator(
        training.model, trained_state(records, plan, rng, training, state), training.settings
    )


def with_generator(model: GeneratorModel, state: TrainingState, settings: TrainingSettings) -> Trained:
    """The model with the generator of a training."""
    made = Generated(state.generator, settings.latent, settings.latent_law)
    return dataclasses.replace(model, sampler=made), TrainingHistory.of(state.history, state.layers)


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
    return dataclasses.replace(training.model, sampler=Matched(found)), TrainingHistory.of(
        pd.DataFrame(history)
    )


def trained_state(
    records: Records, plan: Plan, rng: np.random.Generator, training: Training, state: Any = None
) -> TrainingState:
    """WGAN critic, generator and history after the plan's steps. ``rng`` is secret, ``state`` a start."""
    load_tensorflow_quietly()
    from dpsynth.wgan.checkpoint import Interrupted, recognised, write_checkpoint
    from dpsynth.wgan.training import TrainingRun, initial_state

    model, settings, checkpoint = training.model, training.settings, training.checkpoint
    if isinstance(settings, MatchingSettings):
        raise InputError("matched points have no trained WGAN critic: use DPWGANGP")
    start: str | None = generator_state(rng)
    # Read now: on an interrupt there may be no time, or no workers.
    table = {} if checkpoint is None else recognised(records)
    written = time.monotonic()

    def keep(current: TrainingState) -> None:
        nonlocal written
        if checkpoint is not None:
            left = Interrupted.of(current, plan, settings, table, start)
            history = TrainingHistory.of(current.history, current.layers)
            write_checkpoint(checkpoint, training.saved(model, history, left))
            written = time.monotonic()

    if state is None:
        probabilities = model.encoder.group_probabilities()
        state = initial_state(model.encoder.layout, settings, training.initial_rng, probabilities)
    with ExitStack() as held:
        log = held.enter_context(_scalars(training.log_dir))
        if checkpoint is not None:
            held.enter_context(parents_made(Path(checkpoint)))
            held.enter_context(locked(checkpoint))  # so that nobody goes on from it meanwhile
        keep(state)
        bank = None
        if settings.penalty == "public":
            bank = independent_points(model.encoder, _BANK_ROWS, rng)
        points = _encoded(records, model.encoder, rng)

        def on_chunk(current: TrainingState, total: int) -> None:
            if time.monotonic() - written >= CHECKPOINT_SECONDS:
                keep(current)
            log(current.history)
            if training.progress is not None:
                row = {str(name): float(value) for name, value in current.history.iloc[-1].items()}
                steps, most = (n * settings.critic_steps for n in (current.step, total))
                training.progress(Progress(steps, most, row, latest(current.history)))

        factors = coordinate_scale(model.encoder, settings.outcome_scale)
        scale = tuple(float(factor) for factor in factors) if settings.outcome_scale != 1.0 else None
        trainer = TrainingRun(points, model.encoder.layout, settings, plan, bank=bank, scale=scale)
        state = trainer.run(rng, state=state, on_chunk=on_chunk, on_stop=keep)
        state = trainer.replay(state)
        state = dataclasses.replace(state, layers=trainer.layer_bounds(state))
        start = None  # no noise is to come, so none is kept
        keep(state)
    return state


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
