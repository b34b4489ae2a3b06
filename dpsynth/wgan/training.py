"""The loop of Algorithm 1 (Pedersen 2022), lines 1 and 3: one XLA program of many steps, called in chunks.

Private state (weights, Adam's averages, the noise's generator) leaves the program only at chunk boundaries.
The history holds functions of released quantities (`METRICS`). The critic's loss is read off the noisy
gradient. Losses on real batches and realised batch sizes are never kept.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, Literal, cast

import numpy as np
import pandas as pd
import tensorflow as tf

from dpsynth.errors import RunError
from dpsynth.privacy.noise import NoiseStream, generator_at, generator_state
from dpsynth.privacy.release import Plan
from dpsynth.table.encoder import Layout
from dpsynth.wgan.algorithm import (
    METRICS,
    Chunk,
    DrawShapes,
    GraphDraws,
    HostDraws,
    ProvedScales,
    State,
    Step,
    adam_start,
    centred,
    critic_pass,
    noise_scales,
)
from dpsynth.wgan.device import runs_on_gpu
from dpsynth.wgan.history import BEYOND, LayerBound, quiet
from dpsynth.wgan.networks import ArrayOps, Weights, flatten, generator_pass, glorot, unflatten
from dpsynth.wgan.precision import full_precision
from dpsynth.wgan.settings import TrainingSettings
from dpsynth.wgan.snapshots import Snapshot, snapshot_iterations
from dpsynth.wgan.state import DivergedError, TrainingState, handed_over
from dpsynth.wgan.theorems import LayerBounds

# Bytes of points that the program holds. Of more, each chunk has those that it samples.
_HELD = 1 << 30
# Numbers that the host draws for one chunk (16 MiB; the first chunk is waited for, so not many), and
# generator steps at most, so that progress is visible.
_CHUNK_NUMBERS = 1 << 22
_CHUNK_STEPS = 250
# Critics that are kept for the replay, and their numbers, at most.
_KEPT, _KEPT_NUMBERS = 256, 1 << 23
# Least probability of a category at the start, and standard deviations of logits: sigmoids of normal numbers
# are about uniform at the first.
_LEAST, _NUMBER_SPREAD, _CATEGORY_SPREAD = 1e-3, 1.7, 0.5
# Generated points at which the bounds are compared with gradients.
_LOOKED_AT = 1000


def generator_of(state: TrainingState) -> Weights:
    """The averaged generator of a state, NumPy arrays."""
    return unflatten([np.asarray(a) for a in state.arrays["average"]], output_bias=True)


def initial_state(
    layout: Layout,
    settings: TrainingSettings,
    rng: np.random.Generator,
    probabilities: Sequence[np.ndarray] = (),
) -> TrainingState:
    """Line 1: Glorot weights and Adam averages of zero.

    ``probabilities``: released, of each one-hot group. The generator's last bias starts at their logarithms.
    A generator without a hidden layer starts with numbers that are about uniform, and categories that depend
    little on its input.
    """
    critic = glorot(rng, (layout.dim, *settings.critic_hidden, 1), output_bias=False)
    generator = glorot(rng, (settings.latent, *settings.generator_hidden, layout.dim), output_bias=True)
    flat_c, flat_g = flatten(critic), flatten(generator)
    for (start, stop), p in zip(layout.groups, probabilities, strict=False):
        flat_g[-1][start:stop] = np.log(np.maximum(p, _LEAST))
    if not settings.generator_hidden:
        spread = np.full(layout.dim, _CATEGORY_SPREAD, np.float32)
        spread[: layout.n_numeric] = _NUMBER_SPREAD
        flat_g[0] *= spread / np.linalg.norm(flat_g[0], axis=0)
    arrays: State = {
        "critic": flat_c,
        "critic_adam": adam_start(flat_c),
        "generator": flat_g,
        "generator_adam": adam_start(flat_g),
        "average": [g.copy() for g in flat_g],
    }
    if settings.replays:
        size = sum(c.size for c in flat_c)
        kept = np.zeros((max(min(_KEPT, _KEPT_NUMBERS // size), 1), size), np.float32)
        begun = [g.copy() for g in flat_g]
        arrays["replay"] = {"critics": kept, "means": kept.copy(), "start": begun}
    return TrainingState(arrays)


def build_step(
    layout: Layout,
    settings: TrainingSettings,
    plan: Plan,
    *,
    n_records: int,
    n_bank: int,
    in_graph: bool,
    n_steps: int,
    scale: tuple[float, ...] | None = None,
) -> Step:
    """The step function of a run and the shapes of its random numbers."""
    batch = max(round(plan.expected_batch), 1)
    # Matrices and biases, without the output's bias.
    widths = (layout.dim, *settings.critic_hidden, 1)
    n_parameters = sum((n_in + 1) * n_out for n_in, n_out in pairwise(widths)) - 1
    shapes = DrawShapes(
        steps=1,
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
    chunks = max(-(-n_steps // _CHUNK_STEPS), -(-n_steps * draws.numbers // _CHUNK_NUMBERS), 1)
    draws = replace(draws, shapes=replace(shapes, steps=-(-n_steps // chunks)))
    scales = noise_scales(layout, settings, plan, scale) if noisy else None
    return Step(layout, settings, draws, scales, float(plan.expected_batch) or 1.0, scale)


@functools.lru_cache(maxsize=8)
def compile_loop(step: Step) -> Callable[..., Any]:
    """``loop(state, data, bank, chunk, limit) -> (state, metrics, done)`` as one XLA program.

    It goes on from iteration ``chunk["first"]`` of the chunk to ``limit``, or stops before if the settings
    have a ``patience``: ``chunk["quiet"]`` iterations went before without an estimate beyond twice its error.
    The rule reads released numbers alone.

    Runs that differ only in their records, noise multiplier or seed share one program. So a second fit of the
    same shape compiles nothing. Runs share a program if their steps are equal (all their parts are frozen).
    """
    rows, patience = step.draws.shapes.steps, step.settings.patience
    estimate, error = METRICS.index("wasserstein"), METRICS.index("wasserstein_error")

    @tf.function(jit_compile=True, autograph=False)
    def loop(state: State, data: Any, bank: Any, chunk: dict[str, Any], limit: Any) -> Any:
        def body(i: Any, state: State, metrics: Any, calm: Any) -> Any:
            state, row = step(state, data, bank, chunk, i)
            calm = tf.where(row[estimate] > BEYOND * row[error], 0, calm + 1)
            return i + 1, state, tf.tensor_scatter_nd_update(metrics, [[i]], row[None]), calm

        def goes_on(i: Any, _: Any, __: Any, calm: Any) -> Any:
            return i < limit if patience is None else (i < limit) & (calm < patience)

        start = (chunk["first"], state, tf.zeros([rows, len(METRICS)]), chunk["quiet"])
        done, state, metrics, _ = tf.while_loop(goes_on, body, start)
        return state, metrics, done

    return loop


def _intervals(layer: LayerBounds) -> list[tuple[Any, Any]]:
    return list(zip(layer.lo or (), layer.hi or (), strict=True))


def has_ended(state: TrainingState, plan: Plan, settings: TrainingSettings) -> bool:
    """Whether a training has made the plan's steps, or stopped early by its ``patience``."""
    if settings.patience is not None and quiet(state.history) >= settings.patience:
        return True
    return state.step >= plan.steps // settings.critic_steps


class TrainingRun:
    """A training run under a plan: compiled once, run from a state to the plan's last step.

    Adjacency and sensitivity are the plan's. Its event is the cost of a run, whether or not it ends early.

    ``points``: encoded private records in the unit cube, shape (n, dim), in memory or in a file.
    ``plan``: sampler, noise and event. ``plan.steps`` critic steps are made.
    ``bank``: points made without private records, for ``penalty='public'``. None for other penalties.
    ``in_graph``: draw noise inside the program, by default only on a GPU.
    ``scale``: public factor of each coordinate before the critic sees it.
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
        scale: tuple[float, ...] | None = None,
    ) -> None:
        if in_graph is None:
            in_graph = runs_on_gpu()
        self.layout, self.settings, self.plan, self.scale = layout, settings, plan, scale
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
            scale=scale,
        )
        self._loop = compile_loop(self.step)
        # An empty table is sampled from nowhere, but a tensor needs a row.
        held = points.nbytes <= _HELD
        row = np.zeros((1, layout.dim), np.float32)
        self._data = tf.constant(self._centred(points) if len(points) else row) if held else None
        self._points = points if self._data is None else None
        self._bank = tf.constant(row if bank is None else bank, tf.float32)

    @full_precision()  # the first projection too
    def run(
        self,
        rng: np.random.Generator,
        *,
        initial_rng: np.random.Generator | None = None,
        state: TrainingState | None = None,
        look: Callable[[int, Weights], Snapshot] | None = None,
        on_chunk: Callable[[TrainingState, int], None] | None = None,
        on_stop: Callable[[TrainingState], None] | None = None,
    ) -> TrainingState:
        """Train to the plan's end, or until the settings' ``patience`` is at its end.

        ``rng``: source of noise and Poisson samples, secret.
        ``initial_rng``: source of the initial weights. Never ``rng``: after few steps they can be read off a
            released generator, and would show outputs of the generator that draws the noise.
        ``state``: where to continue. Its noise goes on where it stopped, so the result is that of a run
            without a stop, bit for bit on the same computer.
        ``look``: takes a snapshot of the generator after so many critic steps. What it reads is released.
        ``on_chunk``: called after every chunk with the state and the total number of generator steps.
        ``on_stop``: called with the last finished state when the user interrupts or anything else fails, also
            in ``on_chunk``. The exception is raised again.
        """
        if state is None:
            start = initial_rng if initial_rng is not None else np.random.default_rng()
            state = initial_state(self.layout, self.settings, start)
        if state.noise is None:
            state = replace(state, noise=generator_state(rng))
        else:
            rng = generator_at(state.noise)
        arrays = tf.nest.map_structure(tf.constant, state.arrays)
        if state.step == 0:
            arrays = {**arrays, "critic": self.step.constrain(arrays["critic"])}
        elif self.settings.critic_constraint == "spectral":
            self._check_projected(state.arrays["critic"])
        with handed_over(lambda: cast("TrainingState", state), on_stop):
            each = self.step.draws.shapes.steps
            chunks = -(-(self.n_steps - state.step) // each)
            state = self._looked_at(replace(state, arrays=arrays), look)
            with NoiseStream(self._drawn, rng, chunks) as stream:
                while not has_ended(state, self.plan, self.settings):  # line 3
                    limit = min(each, self.n_steps - state.step)
                    state = self._after_chunk(state, *next(stream), limit, look)
                    if on_chunk is not None:
                        on_chunk(state, self.n_steps)
        state = self._looked_at(state, look, at_the_end=True)
        return replace(state, arrays=tf.nest.map_structure(lambda t: t.numpy(), state.arrays))

    def _after_chunk(
        self,
        state: TrainingState,
        drawn: Chunk,
        noise: str,
        limit: int,
        look: Callable[[int, Weights], Snapshot] | None,
    ) -> TrainingState:
        """State after ``limit`` iterations with a chunk's random numbers. ``noise``: generator's state after.

        The program is called once, and once more for each snapshot within. Nobody else sees the states
        between: the generator of the noise has no state that belongs to them.
        """
        chunk = {name: tf.constant(a) for name, a in drawn.items()}
        chunk["noise_multiplier"] = tf.constant(self.noise_multiplier, tf.float32)
        data, start, first = chunk.pop("data", self._data), state.step, 0
        between = [at - start for at in snapshot_iterations(self.n_steps) if 0 < at - start < limit]
        for last in (*between, limit) if look is not None else (limit,):
            chunk["first"] = tf.constant(first)
            chunk["quiet"] = tf.constant(quiet(state.history), tf.int32)
            arrays, metrics, done = self._loop(state.arrays, data, self._bank, chunk, tf.constant(last))
            state = self._advance(state, arrays, metrics.numpy()[first : int(done)], noise)
            state, first = self._looked_at(state, look), last
            if has_ended(state, self.plan, self.settings):
                break
        return state

    def _looked_at(
        self,
        state: TrainingState,
        look: Callable[[int, Weights], Snapshot] | None,
        *,
        at_the_end: bool = False,
    ) -> TrainingState:
        """The state with a snapshot, if it is the time for one and there is none."""
        step = state.step * self.settings.critic_steps
        due = at_the_end or state.step in snapshot_iterations(self.n_steps)
        if look is None or not due or step in [snapshot.step for snapshot in state.snapshots]:
            return state
        return replace(state, snapshots=(*state.snapshots, look(step, generator_of(state))))

    @full_precision()
    def replay(
        self, state: TrainingState, look: Callable[[int, Weights], Snapshot] | None = None
    ) -> TrainingState:
        """The state after the replay of the released gradients, if there is one. No record is read.

        ``look``: as for `run`. Its last snapshot is taken again, of the generator that is kept.
        """
        if not self.settings.replays or state.step == 0:
            return state
        from dpsynth.wgan.replay import replayed

        made = replayed(state.arrays, self.step, self.noise_multiplier)
        step = state.step * self.settings.critic_steps
        before = tuple(snapshot for snapshot in state.snapshots if snapshot.step != step)
        state = replace(state, arrays={**state.arrays, "average": made}, snapshots=before)
        return self._looked_at(state, look, at_the_end=True)

    def layer_bounds(self, state: TrainingState) -> tuple[LayerBound, ...]:
        """Both bounds of each layer at the state's critic, and how far gradients at generated points reach.

        Neither reads a record. A layer's noise is that of the bound whose centre `allocate` takes: that of a
        ball is 0.
        """
        settings, layout, scales = (
            self.settings,
            self.layout,
            noise_scales(self.layout, self.settings, self.plan, self.scale),
        )
        if not isinstance(scales, ProvedScales):
            return ()
        weights = unflatten([tf.constant(a) for a in state.arrays["critic"]], output_bias=False)
        bounds = scales.bounds(weights, scales.norms(weights))
        centers = iter(scales(weights)[0])
        draw = np.random.default_rng(0)  # public
        latent = (draw.random if settings.latent_law == "uniform" else draw.standard_normal)(
            (_LOOKED_AT, settings.latent), dtype=np.float32
        )
        points = centred(generator_pass(generator_of(state), latent, layout, ArrayOps), layout, self.scale)
        _, inputs, deltas = critic_pass(weights, tf.constant(points, tf.float32), self.step.activation)
        found = []
        for layer, x, delta in zip(bounds, inputs, deltas, strict=True):
            x, delta = x.numpy().astype(float), delta.numpy().astype(float)
            own = [np.broadcast_to(next(centers), shape).astype(float) for shape in layer.shapes]
            # ||x delta^T - C||^2 without the outer products, and the bias beside it
            square = (x**2).sum(1) * (delta**2).sum(1) - 2 * np.einsum("ni,ij,nj->n", x, own[0], delta)
            square += (own[0] ** 2).sum() + sum(((delta - c) ** 2).sum(1) for c in own[1:])
            half = [(np.asarray(hi, float) - np.asarray(lo, float)) / 2 for lo, hi in _intervals(layer)]
            box = float(np.sqrt(sum((h**2).sum() for h in half)))
            ball = -1.0 if layer.radius is None else float(layer.radius)
            used: Literal["box", "ball"] = "box" if ball < 0 or any(c.any() for c in own) else "ball"
            reached = float(np.sqrt(max(square.max(), 0.0))) / (box if used == "box" else ball)
            found.append(LayerBound(layer.size, box, ball, used, reached))
        return tuple(found)

    def _check_projected(self, critic: list[Any]) -> None:
        """Refuse a critic to go on from whose matrices the bounds do not cover."""
        matrices = (np.asarray(w, np.float64) for w, _ in unflatten(critic, output_bias=False))
        if not all(np.isfinite(w).all() and np.linalg.norm(w, 2) <= 1.0 for w in matrices):
            raise RunError(
                "the WGAN critic leaves the set for which the noise is proved. Perhaps its checkpoint was "
                "damaged. Fit again, and report this if it is said again"
            )

    def _drawn(self, rng: np.random.Generator) -> tuple[Chunk, str]:
        """Random numbers of a chunk, with points if the program does not hold all, and the state after it."""
        chunk = self.step.draws.draw(rng)
        if self._points is not None:
            index = chunk["records"]
            sampled = index >= 0
            distinct, places = np.unique(index[sampled], return_inverse=True)  # read once, in order
            chunk["data"] = np.zeros((min(index.size, len(self._points)), self.layout.dim), np.float32)
            chunk["data"][: distinct.size] = self._centred(self._points[distinct])
            chunk["records"] = np.full(index.shape, -1, np.int32)
            chunk["records"][sampled] = places
        return chunk, generator_state(rng)

    def _centred(self, points: np.ndarray) -> np.ndarray:
        points = np.asarray(points, np.float32)
        self.layout.check(points)
        return np.asarray(centred(points, self.layout, self.scale))

    def _advance(self, state: TrainingState, arrays: State, rows: np.ndarray, noise: str) -> TrainingState:
        """State after a chunk. ``rows``: `METRICS` of its iterations, ``noise``: the generator's state."""
        settings = self.settings
        steps = (state.step + np.arange(1, len(rows) + 1)) * settings.critic_steps
        if not np.isfinite(rows).all():
            raise DivergedError(
                f"training diverged before step {steps[-1]} of the WGAN critic: "
                "lower `critic_learning_rate` or set `critic_constraint` to 'spectral'"
            )
        made = pd.DataFrame(rows.astype(np.float64), columns=list(METRICS))[list(self.step.recorded)]
        made.insert(0, "step", steps)
        made["critic_learning_rate"] = settings.critic_learning_rate
        made["generator_learning_rate"] = settings.generator_learning_rate
        history = pd.concat([state.history, made], ignore_index=True) if len(state.history) else made
        return replace(state, arrays=arrays, step=state.step + len(rows), history=history, noise=noise)
