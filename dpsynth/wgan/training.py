"""The loop of Algorithm 1 (Pedersen 2022), lines 1 and 3: one XLA program of many steps, called in chunks.

Private state (weights, Adam's averages) leaves the program only at chunk boundaries. The history holds
functions of released quantities: the noise's scale, the norm of the noisy gradient and the critic's mean
score of generated records. Losses on real batches and realised batch sizes are never kept.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
import tensorflow as tf

from dpsynth.errors import RunError
from dpsynth.privacy.noise import NoiseStream
from dpsynth.privacy.release import Plan
from dpsynth.table.encoder import Layout
from dpsynth.wgan.algorithm import (
    METRICS,
    MOST_GENERATED,
    Chunk,
    DrawShapes,
    GraphDraws,
    HostDraws,
    State,
    Step,
    adam_start,
    noise_scales,
)
from dpsynth.wgan.networks import Weights, flatten, glorot, unflatten
from dpsynth.wgan.settings import TrainingSettings

# Bytes of points that the program holds. Of more, each chunk has those that it samples.
_HELD = 1 << 30
# Floats drawn for one chunk (16 MiB; the first chunk is waited for, so not many), and generator steps at
# most, so that progress is visible.
_CHUNK_FLOATS = 1 << 22
_CHUNK_STEPS = 250


@dataclass
class TrainingState:
    """Everything needed to continue, private except for its released weights, so it stays with the data.

    ``arrays``: critic, generator, their Adam averages, and the generator's average.
    ``history``: one record a chunk: ``step`` (critic steps so far) and the means of `METRICS`.
    """

    arrays: State
    step: int = 0
    history: list[dict[str, float]] = field(default_factory=list)

    @property
    def generator(self) -> Weights:
        """The averaged generator, NumPy arrays."""
        return unflatten([np.asarray(a) for a in self.arrays["average"]], output_bias=True)


def initial_state(layout: Layout, settings: TrainingSettings, rng: np.random.Generator) -> TrainingState:
    """Line 1: Glorot weights and Adam averages of zero."""
    critic = glorot(rng, (layout.dim, *settings.critic_hidden, 1), output_bias=False)
    generator = glorot(rng, (settings.latent, *settings.generator_hidden, layout.dim), output_bias=True)
    flat_c, flat_g = flatten(critic), flatten(generator)

    return TrainingState(
        {
            "critic": flat_c,
            "critic_adam": adam_start(flat_c),
            "generator": flat_g,
            "generator_adam": adam_start(flat_g),
            "average": [g.copy() for g in flat_g],
        }
    )


def build_step(
    layout: Layout,
    settings: TrainingSettings,
    plan: Plan,
    *,
    n_records: int,
    n_bank: int,
    in_graph: bool,
    n_steps: int,
) -> Step:
    """The step function of a run and the shapes of its random numbers."""
    batch = max(round(plan.expected_batch), 1)
    # Matrices and biases, without the output's bias.
    widths = (layout.dim, *settings.critic_hidden, 1)
    n_parameters = sum((n_in + 1) * n_out for n_in, n_out in pairwise(widths)) - 1
    made = min(batch, MOST_GENERATED)
    per_step = (
        settings.critic_steps * (n_parameters + batch) + (settings.critic_steps + 1) * made * settings.latent
    )
    chunks = max(-(-n_steps // _CHUNK_STEPS), -(-n_steps * per_step // _CHUNK_FLOATS), 1)
    shapes = DrawShapes(
        steps=-(-n_steps // chunks),
        batch=batch,
        n_parameters=n_parameters,
        n_records=n_records,
        sampling_prob=plan.sampling_prob,
        # Wide enough that growing (a new compilation) is rare; a wider sample is never cut.
        capacity=int(batch + 6 * np.sqrt(batch) + 8),
        n_bank=n_bank,
    )
    noisy = plan.noise_multiplier is not None
    draws = (GraphDraws if in_graph else HostDraws)(shapes, settings, noisy=noisy)
    scales = noise_scales(layout, settings, plan) if noisy else None
    return Step(layout, settings, draws, scales, float(plan.expected_batch) or 1.0)


@functools.lru_cache(maxsize=8)
def compile_loop(step: Step) -> Callable[..., Any]:
    """``loop(state, data, bank, chunk, limit) -> (state, metrics)`` as one XLA program.

    Runs that differ only in their records, noise multiplier or seed share one program. So a second fit of the
    same shape compiles nothing. Runs share a program if their steps are equal (all their parts are frozen).
    """
    rows = step.draws.shapes.steps

    @tf.function(jit_compile=True, autograph=False)
    def loop(state: State, data: Any, bank: Any, chunk: dict[str, Any], limit: Any) -> Any:
        def body(i: Any, state: State, metrics: Any) -> Any:
            state, row = step(state, data, bank, chunk, i)
            return i + 1, state, tf.tensor_scatter_nd_update(metrics, [[i]], row[None])

        start = (tf.constant(0), state, tf.zeros([rows, len(METRICS)]))
        _, state, metrics = tf.while_loop(lambda i, *_: i < limit, body, start)
        return state, metrics

    return loop


class TrainingRun:
    """A training run under a plan: compiled once, run from a state to the plan's last step.

    Adjacency and sensitivity are the plan's. Its event is the cost of a run, whether or not it ends early.

    ``points``: encoded private records in the unit cube, shape (n, dim), in memory or in a file.
    ``plan``: sampler, noise and event. ``plan.steps`` critic steps are made.
    ``bank``: points made without private records, for ``penalty='public'``. None for other penalties.
    ``in_graph``: draw noise inside the program, by default only if there is a GPU.
    """

    def __init__(
        self,
        points: np.ndarray,
        layout: Layout,
        settings: TrainingSettings,
        plan: Plan,
        *,
        bank: np.ndarray | None,
        in_graph: bool | None = None,
    ) -> None:
        if in_graph is None:
            in_graph = bool(tf.config.list_physical_devices("GPU"))
        # TF32 products round at 1e-3, outside what the bounds are widened for.
        tf.config.experimental.enable_tensor_float_32_execution(False)
        self.layout, self.settings = layout, settings
        self.noise_multiplier = plan.noise_multiplier if plan.noise_multiplier is not None else 0.0
        # The plan's steps are whole generator iterations; a remainder makes fewer steps than the ledger has
        # (deviation 14 of `dpsynth.wgan.algorithm`).
        self.n_steps = plan.steps // settings.critic_steps
        self.step = build_step(
            layout,
            settings,
            plan,
            n_records=len(points),
            n_bank=0 if bank is None else len(bank),
            in_graph=in_graph,
            n_steps=self.n_steps,
        )
        self._loop = compile_loop(self.step)
        # An empty table is sampled from nowhere, but a tensor needs a row.
        held = points.nbytes <= _HELD
        row = np.zeros((1, layout.dim), np.float32)
        self._data = tf.constant(self._centred(points) if len(points) else row) if held else None
        self._points = points if self._data is None else None
        self._bank = tf.constant(row if bank is None else bank, tf.float32)

    def run(
        self,
        rng: np.random.Generator,
        *,
        initial_rng: np.random.Generator | None = None,
        state: TrainingState | None = None,
        on_chunk: Callable[[TrainingState, int], None] | None = None,
        on_interrupt: Callable[[TrainingState], None] | None = None,
    ) -> TrainingState:
        """Train to the plan's end.

        ``rng``: source of noise and Poisson samples, secret.
        ``initial_rng``: source of the initial weights. Never ``rng``: after few steps they can be read off a
            released generator, and would show outputs of the generator that draws the noise.
        ``state``: where to continue.
        ``on_chunk``: called after every chunk with the state and the total number of generator steps.
        ``on_interrupt``: called with the last finished state when the user interrupts. The interrupt is
            raised again.
        """
        if state is None:
            start = initial_rng if initial_rng is not None else np.random.default_rng()
            state = initial_state(self.layout, self.settings, start)
        arrays = tf.nest.map_structure(tf.constant, state.arrays)
        if state.step == 0:
            arrays = {**arrays, "critic": self.step.constrain(arrays["critic"])}
        elif self.settings.critic_constraint == "spectral":
            self._check_projected(state.arrays["critic"])
        try:
            with NoiseStream(self._drawn, rng) as stream:
                while state.step < self.n_steps:  # line 3
                    limit = min(self.step.draws.shapes.steps, self.n_steps - state.step)
                    chunk = {name: tf.constant(a) for name, a in next(stream).items()}
                    chunk["noise_multiplier"] = tf.constant(self.noise_multiplier, tf.float32)
                    data = chunk.pop("data", self._data)
                    arrays, metrics = self._loop(arrays, data, self._bank, chunk, tf.constant(limit))
                    state = self._advance(state, arrays, metrics[:limit].numpy().mean(axis=0), limit)
                    if on_chunk is not None:
                        on_chunk(state, self.n_steps)
        except (KeyboardInterrupt, RuntimeError) as problem:
            # TensorFlow turns an interrupt into its own error while it compiles
            if not isinstance(problem, KeyboardInterrupt) and "KeyboardInterrupt" not in str(problem):
                raise
            if on_interrupt is not None:
                on_interrupt(state)
            raise KeyboardInterrupt from None
        return TrainingState(tf.nest.map_structure(lambda t: t.numpy(), arrays), state.step, state.history)

    def _check_projected(self, critic: list[Any]) -> None:
        """Refuse a critic to go on from whose matrices the bounds do not cover."""
        matrices = (np.asarray(w, np.float64) for w, _ in unflatten(critic, output_bias=False))
        if not all(np.isfinite(w).all() and np.linalg.norm(w, 2) <= 1.0 for w in matrices):
            raise RunError(
                "the WGAN critic leaves the set for which the noise is proved. Perhaps its checkpoint was "
                "damaged. Fit again, and report this if it is said again"
            )

    def _drawn(self, rng: np.random.Generator) -> Chunk:
        """Random numbers of a chunk, with the points that it samples if the program does not hold all."""
        chunk = self.step.draws.draw(rng)
        if self._points is not None:
            index = chunk["records"]
            sampled = index >= 0
            places = np.arange(index.size).reshape(index.shape)
            chunk["data"] = np.zeros((index.size, self.layout.dim), np.float32)
            chunk["data"][places[sampled]] = self._centred(self._points[index[sampled]])
            chunk["records"] = np.where(sampled, places, -1).astype(np.int32)
        return chunk

    def _centred(self, points: np.ndarray) -> np.ndarray:
        points = np.asarray(points, np.float32)
        self.layout.check(points)
        return points - self.layout.center.astype(np.float32)

    def _advance(self, state: TrainingState, arrays: State, means: np.ndarray, limit: int) -> TrainingState:
        done = state.step + limit
        if not np.isfinite(means).all():
            raise RunError(
                f"training diverged before step {done * self.settings.critic_steps} of the WGAN critic: "
                "lower `critic_learning_rate` or set `critic_constraint` to 'spectral'"
            )
        record: dict[str, float] = {"step": done * self.settings.critic_steps}
        record |= {name: float(value) for name, value in zip(METRICS, means, strict=True)}
        return TrainingState(arrays, done, [*state.history, record])
