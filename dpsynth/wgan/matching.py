"""A generator without a base model: points that match noisy mean gradients of random critics.

T critics with one hidden layer are drawn from a public generator. Their weights depend on no record, so the
gradients ``g_i`` of all critics are released in one pass over the records. For each critic this is the
mechanism of Algorithm 1 (Pedersen 2022) with every record in the batch:

    ``R = sum_i (g_i - c) + B c + z * std * N(0, 1)``

with the centre ``c`` and the stds from `dpsynth.wgan.theorems`, and the public number of records B.
The sum is exact and so is the noise (`GradientRelease`). Everything after it is post-processing. A critic
finds a difference between two distributions only where the mean gradients at its weights differ. Therefore
points are moved until their mean gradients agree with ``R / B`` as closely as the noise allows. The mean
square of the differences, in units of the noise, is then about 1.

The outcome's coordinates are multiplied by a public factor before the critics see them, which gives the
associations with the outcome more weight. The domain of the bounds is multiplied likewise.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import tensorflow as tf
from numpy.typing import NDArray

from dpsynth.errors import RunError
from dpsynth.privacy.noise import STEP, check_exact, with_noise
from dpsynth.privacy.release import Plan
from dpsynth.table.encoder import Layout
from dpsynth.wgan.algorithm import (
    TensorOps,
    adam,
    adam_start,
    critic_pass,
    straight_through,
    weighted_gradient,
)
from dpsynth.wgan.networks import MatchedPoints, Weights, reflected, unit_cube
from dpsynth.wgan.norms import spectral_norm_bound
from dpsynth.wgan.precision import full_precision
from dpsynth.wgan.settings import MatchingSettings
from dpsynth.wgan.state import DivergedError, TrainingState, handed_over
from dpsynth.wgan.theorems import Activation, Domain, allocate, gradient_bounds

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
#: Step of the critics' weights and of a record's coordinates. A gradient is a whole number of its square.
GRID = STEP**0.5
#: Step of a sum in units of the stds, and the factor by which such a sum is made smaller, see `query`.
_FINE, _SMALLER = 2.0**-32, 1.0 - 2.0**-18
#: Longest record, and most records: beyond them a sum may have more digits than a float64.
_LONGEST, _MOST = 2.0**11, 2**29
#: Activation of the critics, which keeps norms.
ACTIVATION = Activation("maxmin")
#: Records of which gradients are summed at once: bounds the memory, whatever the length of the table is.
BLOCK = 2048
# Iterations of one call of the program, so that progress is visible.
_CHUNK = 50
# Adam's decays, its least divisor (gradients of single points are small), and the share of its iterations
# after which the rate falls.
_BETAS, _EPSILON, _FALLS = (0.9, 0.99), 1e-12, 0.5
# Least probability of a category at the start, and how far its logit favours one category.
_LEAST, _EVEN = 1e-3, 0.5
# What the seed of an iteration's second draw is moved by. Its first half is moved by 1 for the categories.
_SECOND = 2
# A seed of the jitter is kept in two halves: a state's arrays are float32, which holds either.
_HALF = 2**16


@dataclass(frozen=True, eq=False)
class Critics:
    """T critics of one hidden layer, float32, whole numbers of `GRID`.

    ``matrices`` (T, dim, h), ``biases`` (T, h) and ``outputs`` (T, h), the weights of the last layer.
    """

    matrices: NDArray[np.float32]
    biases: NDArray[np.float32]
    outputs: NDArray[np.float32]

    @classmethod
    def draw(cls, count: int, dim: int, settings: MatchingSettings, rng: np.random.Generator) -> Critics:
        """Normal weights divided by their spectral norm, and normal biases, from a public ``rng``."""
        h = settings.critic_width
        matrices = rng.standard_normal((count, dim, h))
        matrices /= np.linalg.norm(matrices, ord=2, axis=(1, 2), keepdims=True)
        biases = settings.bias_std * rng.standard_normal((count, h))
        outputs = rng.standard_normal((count, h))
        outputs /= np.linalg.norm(outputs, axis=1, keepdims=True)
        return cls(*((GRID * np.rint(a / GRID)).astype(np.float32) for a in (matrices, biases, outputs)))

    def weights(self, t: int) -> Weights:
        """Weights of critic t."""
        return [(self.matrices[t], self.biases[t]), (self.outputs[t][:, None], None)]

    def wide(self) -> list[NDArray[np.float32]]:
        """Arrays W1, b1, W2 of one critic whose score is the sum of all scores.

        Its gradient with respect to the weights of critic t is that of critic t. The activation puts all
        maxima before all minima, and so does W2.
        """
        count, dim, h = self.matrices.shape
        outputs = self.outputs.reshape(count, 2, h // 2).transpose(1, 0, 2)
        first = self.matrices.transpose(1, 0, 2).reshape(dim, count * h)
        return [first, self.biases.reshape(-1), outputs.reshape(-1, 1)]


def gradients(wide: Sequence[Any], count: int, x: Any, coefficients: Any) -> Any:
    """``sum_i coefficients[i] * grad D_t(x_i)`` of every critic t, flat W1, b1, W2, shape (count, P)."""
    weights = [(wide[0], wide[1]), (wide[2], None)]
    _, inputs, deltas = critic_pass(weights, x, ACTIVATION)
    first, bias, last = weighted_gradient(inputs, deltas, coefficients, weights)
    dim, h = wide[0].shape[0], wide[0].shape[1] // count
    first = tf.transpose(tf.reshape(first, [dim, count, h]), [1, 0, 2])
    last = tf.transpose(tf.reshape(last, [2, count, h // 2]), [1, 0, 2])
    return tf.concat([tf.reshape(a, [count, -1]) for a in (first, bias, last)], axis=1)


@dataclass(frozen=True, eq=False)
class Released:
    """Noisy mean gradients of all critics, and the noise in them: public.

    ``means`` and ``stds`` have shape (T, P). Without noise, ``stds`` are those of noise multiplier 1.
    """

    critics: Critics
    scale: NDArray[np.float32]
    means: Floats
    stds: Floats


@dataclass(frozen=True, eq=False)
class GradientRelease:
    """The noisy mean gradients of T critics over all records.

    Adjacency: add or remove one record. In units of the stds, one record's ``g_i - c`` has norm at most 1 for
    each critic. The cost is that of ``plan.event``, T Gaussian mechanisms with the plan's multiplier.

    A record's coordinates are rounded towards zero to whole numbers of `GRID`. They stay in the box that the
    bounds are proved for, and no record is longer. The weights are whole numbers of `GRID` as well.
    Scores, hidden units and gradients are sums of products of two such numbers: float64 holds each of them,
    and each partial sum, without rounding. So g_i depends on its own record alone, and the sum is the same in
    any order and in any blocks. The bounds' margins for float32 are more than it needs. The CPU makes the
    sums: a GPU may be set to emulate float64.

    ``layout``, ``scale``: shape of an encoded record, and the public factor of each coordinate.
    ``plan``: noise and event. It samples every record (q = 1), and its steps are the critics.
    """

    critics: Critics
    layout: Layout
    scale: NDArray[np.float32]
    plan: Plan

    def __post_init__(self) -> None:
        if self.plan.steps != len(self.critics.matrices) or self.plan.sampling_prob != 1.0:
            raise RunError(
                f"{len(self.critics.matrices)} WGAN critics on every record need a plan of as many steps "
                f"with q = 1, got {self.plan.steps} steps with q = {self.plan.sampling_prob:g}"
            )
        if any((array % GRID).any() for array in self.critics.wide()) or self.domain.radius > _LONGEST:
            raise RunError(
                "gradients cannot be summed exactly: random WGAN critics must hold whole numbers of 2^-12. "
                f"Encoded records may be at most {_LONGEST:g} long, got {self.domain.radius:g}"
            )

    def __call__(self, blocks: Iterable[NDArray[np.float32]], rng: np.random.Generator) -> Released:
        """Release the mean gradients of encoded records, given in blocks of shape (rows, dim).

        ``rng``: source of the noise, secret. The critics must not come from it.
        """
        centres, stds = self.centres_and_stds
        batch, z = self.plan.expected_batch, self.plan.noise_multiplier
        (noisy,) = with_noise([self.query(blocks)], _FINE, z or 0.0, rng)
        means = centres + stds * noisy / (_SMALLER * batch)
        return Released(self.critics, self.scale, means, (z or 1.0) * stds / batch)

    def query(self, blocks: Iterable[NDArray[np.float32]]) -> Ints:
        """``sum_i (g_i - c) / std`` in whole numbers of a public step, shape (T, P): private.

        One record moves it by a vector of norm 1 at most. The difference of the two exact terms is rounded
        once, the quotient and the product once each, and each number to a step. For n <= 2^29 records and
        P <= 2^26 weights a sum is at most n long. Two sums are then closer or farther by ``7 n 2^-53 +
        sqrt(P) 2^-32 < 2^-18``, and the sum is made smaller by a factor of ``1 - 2^-18`` before.
        """
        total, count = self.sums(blocks)
        centres, stds = self.centres_and_stds
        check_exact(total)
        if count > _MOST:
            raise RunError(f"gradients of at most {_MOST:,} records are summed exactly: fit a part of them")
        units = (total * STEP - count * centres) / stds
        return np.rint(units * (_SMALLER / _FINE)).astype(np.int64)

    def sums(self, blocks: Iterable[NDArray[np.float32]]) -> tuple[Ints, int]:
        """Exact sum of the records' gradients in steps, shape (T, P), and their number. Both are private."""
        wide = [tf.constant(a, tf.float64) for a in self.critics.wide()]
        summed = _program(gradients, *self.critics.matrices.shape)
        total, rows = np.zeros(self.centres_and_stds[1].shape, np.int64), 0
        for block in blocks:
            self.layout.check(block)
            rows += len(block)
            for start in range(0, len(block), BLOCK):
                # Always as many rows, so that the program is compiled once; those that are added count 0.
                part = block[start : start + BLOCK]
                x = np.zeros((BLOCK, self.layout.dim))
                x[: len(part)] = self.coordinates(part)
                here = (np.arange(BLOCK) < len(part)).astype(np.float64)
                with tf.device("CPU:0"):
                    found = summed(wide, len(self.critics.matrices), tf.constant(x), tf.constant(here))
                total += (found.numpy() / STEP).astype(np.int64)
        return total, rows

    def coordinates(self, points: NDArray[np.floating]) -> Floats:
        """Encoded records as the critics see them, in whole numbers of `GRID`, rounded towards zero."""
        exact = (np.asarray(points, np.float64) - self.layout.center) * self.scale
        return GRID * np.trunc(exact / GRID)

    @functools.cached_property
    def domain(self) -> Domain:
        """The box of these coordinates. No record is longer than before it was rounded."""
        around = Domain.from_layout(self.layout, self.scale)
        lo, hi = self.coordinates(np.stack([np.zeros(self.layout.dim), np.ones(self.layout.dim)]))
        return Domain(lo, hi, around.groups, around.radius)

    def contributions(self, points: NDArray[np.float32], t: int) -> Floats:
        """``(g_i - c) / std`` of each record at critic t, shape (n, P): private, for audits."""
        weights = [(np.float64(w), None if b is None else np.float64(b)) for w, b in self.critics.weights(t)]
        _, inputs, deltas = critic_pass(weights, self.coordinates(points), ACTIVATION)
        first = np.einsum("ni,nj->nij", inputs[0], deltas[0]).reshape(len(points), -1)
        centres, stds = self.centres_and_stds
        return (np.concatenate([first, deltas[0], inputs[1]], axis=1) - centres[t]) / stds[t]

    @functools.cached_property
    @full_precision()
    def centres_and_stds(self) -> tuple[Floats, Floats]:
        """Centre of a record's gradient and std for noise multiplier 1 of each component, shape (T, P)."""
        centres: list[Floats] = []
        stds: list[Floats] = []
        for t in range(len(self.critics.matrices)):
            weights = [
                (tf.constant(w), None if b is None else tf.constant(b)) for w, b in self.critics.weights(t)
            ]
            norms = [spectral_norm_bound(matrix) for matrix, _ in weights]
            bounds = gradient_bounds(weights, self.domain, norms=norms, activation=ACTIVATION.kind)
            found = allocate(bounds, self.plan.noise_shape)
            shapes = [shape for layer in bounds for shape in layer.shapes]
            for arrays, kept in zip(found, (centres, stds), strict=True):
                pairs = zip(arrays, shapes, strict=True)
                kept.append(np.concatenate([np.broadcast_to(a.numpy(), s).ravel() for a, s in pairs]))
        return np.stack(centres).astype(np.float64), np.stack(stds).astype(np.float64)


@functools.lru_cache(maxsize=8)
def _program(function: Callable[..., Any], *shape: int) -> Callable[..., Any]:
    """One XLA program of a function, compiled once for all fits of one shape."""
    return tf.function(function, jit_compile=True, autograph=False)


def starting_state(
    count: int,
    layout: Layout,
    probabilities: Sequence[Floats],
    settings: MatchingSettings,
    rng: np.random.Generator,
) -> TrainingState:
    """Random critics, points to start from, and the seed of their jitter: all from a public ``rng``.

    ``count``: number of critics.
    ``probabilities``: released, of each one-hot group, where the points start.
    """
    critics = Critics.draw(count, layout.dim, settings, rng)
    points = _start(layout, probabilities, settings.points, rng)
    arrays = {
        "critics": [critics.matrices, critics.biases, critics.outputs],
        "points": points,
        "adam": adam_start([points]),
        "seed": np.array(divmod(int(rng.integers(2**31)), _HALF), np.float32),  # both halves are exact
    }
    return TrainingState(arrays)


def critics_of(state: TrainingState) -> Critics:
    """The random critics of a state."""
    return Critics(*(np.asarray(a) for a in state.arrays["critics"]))


def with_released(state: TrainingState, released: Released) -> TrainingState:
    """The state with the released gradients. What is left to do reads no record."""
    found = {"means": released.means.astype(np.float32), "stds": released.stds.astype(np.float32)}
    return replace(state, arrays={**state.arrays, **found}, awaits_noise=False)


def points_of(state: TrainingState, layout: Layout, settings: MatchingSettings) -> MatchedPoints:
    """The points of a state."""
    return MatchedPoints(_points(tf.constant(state.arrays["points"]), layout).numpy(), settings.jitter)


@full_precision()
def matched(
    state: TrainingState,
    layout: Layout,
    scale: NDArray[np.float32],
    settings: MatchingSettings,
    on_chunk: Callable[[TrainingState], None] | None = None,
    on_stop: Callable[[TrainingState], None] | None = None,
) -> TrainingState:
    """Move points until their mean gradients agree with the released ones: post-processing.

    Numeric coordinates are moved as logits and jittered in every iteration. Categories are drawn from each
    point's probabilities, and the gradient passes the draw unchanged (straight-through, Bengio, Léonard and
    Courville 2013).

    ``state``: where to go on, with released gradients. Its iterations are numbered, and so is their jitter.
    ``scale``: the public factor of each coordinate.
    ``on_chunk``: called with the state after each 50 iterations. The last row of its history has the mean
        squared difference per number in units of the noise.
    ``on_stop``: called with the last state if anything fails. The exception is raised again.

    Raises RunError if the points diverge.
    """
    critics, kept = critics_of(state), state.arrays
    targets = {
        "means": tf.constant(kept["means"]),
        "stds": tf.constant(kept["stds"]),
        "scale": tf.constant(scale),
        "wide": [tf.constant(a) for a in critics.wide()],
    }
    moved = (kept["points"], kept["adam"], np.float32(0.0))
    moved = tf.nest.map_structure(tf.constant, moved)
    high, low = kept["seed"]
    seed = tf.constant([int(high) * _HALF + int(low)], tf.int32)
    program = _program(_Matching(layout, settings, len(critics.matrices)))
    with handed_over(lambda: state, on_stop):
        while state.step < settings.iterations:
            stop = min(state.step + _CHUNK, settings.iterations)
            moved = program(moved, targets, seed, tf.constant(state.step), tf.constant(stop))
            left = float(moved[2])
            if not np.isfinite(left):
                raise DivergedError(
                    f"the points diverged before iteration {stop}: the noisy gradients cannot be matched. "
                    "Please report this with the schema"
                )
            points, adam = tf.nest.map_structure(lambda t: t.numpy(), moved[:2])
            row = pd.DataFrame({"step": [stop], "difference": [left]})
            history = pd.concat([state.history, row], ignore_index=True) if len(state.history) else row
            arrays = {**kept, "points": points, "adam": adam}
            state = replace(state, arrays=arrays, step=stop, history=history)
            if on_chunk is not None:
                on_chunk(state)
    return state


def _start(
    layout: Layout, probabilities: Sequence[Floats], n: int, rng: np.random.Generator
) -> NDArray[np.float32]:
    """Logits of uniform numbers, and of released probabilities that lean to one drawn category."""
    u = rng.random((n, layout.n_numeric)).clip(0.01, 0.99)
    parts = [np.log(u / (1.0 - u))]
    for (start, stop), p in zip(layout.groups, probabilities, strict=True):
        drawn = np.eye(stop - start)[rng.choice(stop - start, size=n, p=p)]
        parts.append(np.log(_EVEN * np.clip(p, _LEAST, 1.0) + (1.0 - _EVEN) * drawn))
    return np.concatenate(parts, axis=1).astype(np.float32)


def _points(logits: Any, layout: Layout) -> Any:
    """Points of the unit cube: numeric coordinates, then group probabilities."""
    k = layout.n_numeric
    return unit_cube(logits[:, :k], logits[:, k:], layout, TensorOps)


@dataclass(frozen=True)
class _Matching:
    """Adam's iterations on the logits of all points, as one program."""

    layout: Layout
    settings: MatchingSettings
    count: int

    def __call__(self, state: Any, targets: dict[str, Any], seed: Any, done: Any, stop: Any) -> Any:
        def body(i: Any, x: Any, moments: Any, _: Any) -> Any:
            with tf.GradientTape() as tape:
                tape.watch(x)
                left = self._difference(x, targets, tf.concat([seed, [i]], axis=0))
            gradient = tape.gradient(left, x)
            (x,), moments = adam([x], [gradient], moments, self._rate(i), _BETAS, _EPSILON)
            return i + 1, x, moments, left

        _, *state = tf.while_loop(lambda i, *_: i < stop, body, (done, *state))
        return tuple(state)

    def _rate(self, i: Any) -> Any:
        """Adam's rate: constant for one half of the iterations, then falling to almost 0."""
        left = 1.0 - tf.cast(i, tf.float32) / self.settings.iterations
        return self.settings.learning_rate * tf.minimum(1.0, left / (1.0 - _FALLS) + 0.01)

    def _difference(self, x: Any, targets: dict[str, Any], seed: Any) -> Any:
        """Mean squared difference of the mean gradients in units of the noise.

        Points are drawn twice, and the differences of both draws are multiplied. The square of one would
        also hold the variance of its jitter and categories, which is least for points that depend on nothing.
        """
        points = _points(x, self.layout)
        seeds = (seed, seed + tf.constant([_SECOND, 0]))
        one, other = (self._from_targets(points, targets, each) for each in seeds)
        return tf.reduce_mean(one * other)

    def _from_targets(self, points: Any, targets: dict[str, Any], seed: Any) -> Any:
        """Difference of the mean gradients from the released ones in units of the noise, for one draw."""
        n, center = self.settings.points, self.layout.center.astype(np.float32)
        centred = (self._drawn(points, seed) - center) * targets["scale"]
        means = gradients(targets["wide"], self.count, centred, tf.fill([n], np.float32(1.0 / n)))
        return (means - targets["means"]) / targets["stds"]

    def _drawn(self, points: Any, seed: Any) -> Any:
        """Jittered numeric coordinates and drawn categories, through which gradients pass."""
        layout, n = self.layout, self.settings.points
        k = layout.n_numeric
        noise = self.settings.jitter * tf.random.stateless_normal([n, k], seed)
        numeric = reflected(points[:, :k] + noise, tf)
        u = tf.random.stateless_uniform([n, len(layout.groups)], seed + tf.constant([1, 0]))
        return straight_through(tf.concat([numeric, points[:, k:]], axis=1), u, layout)
