"""Replay: the generator is fitted to the released gradients of many critics at once, after the alternation.

A critic's step releases ``R / B``, the noisy mean gradient of the records at the critic's weights
(`dpsynth.wgan.algorithm`). The alternating training uses it once, to move the critic. It stays true of those
weights. So the last critics are kept with their noisy mean gradients. At the end the generator starts once
more, and is moved until its own mean gradients agree with all of them as closely as the noise allows. A
critic finds a difference between two distributions only where their mean gradients at its weights differ.

Everything here is a function of released gradients, released weights, public bounds and public random
numbers: post-processing. No record is read.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf

from dpsynth.errors import RunError
from dpsynth.wgan.algorithm import NoiseScales, State, Step, TensorOps, adam, adam_start, straight_through
from dpsynth.wgan.networks import Weights, generator_pass, unflatten
from dpsynth.wgan.theorems import Activation

# Critics of an iteration, and generated points that their mean gradients are of.
_AT_ONCE, _POINTS = 8, 1024
# Adam's first rate and decays, its least divisor (gradients of few weights are small), the share of its
# iterations after which the rate falls, and the decay of the average that is kept.
_RATE, _BETAS, _EPSILON, _FALLS, _AVERAGE = 0.05, (0.9, 0.99), 1e-12, 0.5, 0.98
# Iterations of one call of the program, so that an interrupt is heard.
_CHUNK = 50


def stacked_gradients(weights: Weights, x: Any, activation: Activation) -> Any:
    """Mean gradients over points x (n, dim) of T critics, flat in the order W1, b1, W2, ..., shape (T, P).

    ``weights``: matrices of shape (T, n_in, n_out) and biases of shape (T, n_out), None for the last one.
    The formulas are those of `dpsynth.wgan.algorithm.critic_pass`, for all critics in one product.
    """
    count, n = weights[0][0].shape[0], x.shape[0]
    inputs, masks = [tf.broadcast_to(x, [count, *x.shape])], []

    def rows(of: Callable[..., Any], *arrays: Any) -> Any:
        """An activation of the rows of all critics, (T, n, width) as (T n, width) and back."""
        flat = [tf.reshape(a, [count * n, a.shape[2]]) for a in arrays]
        return of(*flat)

    for matrix, bias in weights[:-1]:
        s = tf.matmul(inputs[-1], matrix) + bias[:, None]
        out, mask = rows(activation.forward, s)
        inputs.append(tf.reshape(out, [count, n, out.shape[1]]))
        masks.append(mask)
    deltas = [tf.ones([count, n, 1])]
    for (matrix, _), mask in zip(weights[:0:-1], masks[::-1], strict=True):
        upstream = tf.matmul(deltas[0], matrix, transpose_b=True)
        delta = activation.backward(tf.reshape(upstream, [count * n, upstream.shape[2]]), mask)
        deltas.insert(0, tf.reshape(delta, [count, n, delta.shape[1]]))
    parts = []
    for given, delta, (_, bias) in zip(inputs, deltas, weights, strict=True):
        parts.append(tf.reshape(tf.matmul(given, delta, transpose_a=True), [count, -1]))
        if bias is not None:
            parts.append(tf.reduce_sum(delta, axis=1))
    return tf.concat(parts, axis=1) / n


def squared_difference(weights: Weights, points: Any, means: Any, stds: Any, activation: Activation) -> Any:
    """Mean over T critics and P weights of ``(mean gradient - means)^2 / stds^2``, estimated without bias.

    ``points``: independent, shape (n, dim), n even. The differences of both halves are multiplied, as of two
    independent samples (the U-statistic of Gretton et al. 2012, lemma 6, does so for all pairs). The result
    may be negative.
    ``weights``: as for `stacked_gradients`. ``means``, ``stds``: shape (T, P).
    """
    first, second = (
        (stacked_gradients(weights, half, activation) - means) / stds for half in tf.split(points, 2)
    )
    return tf.reduce_mean(first * second)


@dataclass(frozen=True)
class _Replay:
    """Adam's iterations on the generator, as one program."""

    step: Step
    shapes: tuple[tuple[int, ...], ...]

    def __call__(self, state: Any, kept: dict[str, Any], seed: Any, done: Any, stop: Any) -> Any:
        def body(i: Any, generator: Any, moments: Any, average: Any, _: Any) -> Any:
            with tf.GradientTape() as tape:
                tape.watch(generator)
                left = self._difference(generator, kept, tf.concat([seed, [i]], axis=0))
            gradient = tape.gradient(left, generator)
            generator, moments = adam(generator, gradient, moments, self._rate(i), _BETAS, _EPSILON)
            average = [_AVERAGE * a + (1.0 - _AVERAGE) * g for a, g in zip(average, generator, strict=True)]
            return i + 1, generator, moments, average, left

        _, *state = tf.while_loop(lambda i, *_: i < stop, body, (done, *state))
        return tuple(state)

    def _rate(self, i: Any) -> Any:
        left = 1.0 - tf.cast(i, tf.float32) / self.step.settings.replays
        return _RATE * tf.minimum(1.0, left / (1.0 - _FALLS) + 0.01)

    def _difference(self, generator: Any, kept: dict[str, Any], seed: Any) -> Any:
        """Mean squared difference of the mean gradients of some critics, in units of the noise, estimated."""
        step, settings = self.step, self.step.settings
        count = kept["critics"].shape[0]
        order = tf.argsort(tf.random.stateless_uniform([count], seed))[: min(_AT_ONCE, count)]
        critics, means, stds = (tf.gather(kept[name], order) for name in ("critics", "means", "stds"))
        latent_of = (
            tf.random.stateless_uniform if settings.latent_law == "uniform" else tf.random.stateless_normal
        )
        latent = latent_of([_POINTS, settings.latent], seed + tf.constant([1, 0]))
        points = generator_pass(unflatten(generator, output_bias=True), latent, step.layout, TensorOps)
        u = tf.random.stateless_uniform([_POINTS, len(step.layout.groups)], seed + tf.constant([2, 0]))
        points = step.centred(straight_through(points, u, step.layout))
        sizes = [int(np.prod(shape)) for shape in self.shapes]
        arrays = [
            tf.reshape(part, [part.shape[0], *shape])
            for part, shape in zip(tf.split(critics, sizes, axis=1), self.shapes, strict=True)
        ]
        weights = unflatten(arrays, output_bias=False)
        return squared_difference(weights, points, means, stds, step.activation)


@functools.lru_cache(maxsize=8)
def _compiled(replay: _Replay) -> Callable[..., Any]:
    return tf.function(replay, jit_compile=True, autograph=False)


@functools.lru_cache(maxsize=8)
def _stds_program(scales: NoiseScales, shapes: tuple[tuple[int, ...], ...]) -> Callable[..., Any]:
    """Stds for noise multiplier 1 of a critic given as its flat arrays, shape (P,)."""

    def stds(*critic: Any) -> Any:
        _, found = scales(unflatten(list(critic), output_bias=False))
        parts = [tf.reshape(tf.broadcast_to(s, shape), [-1]) for s, shape in zip(found, shapes, strict=True)]
        return tf.concat(parts, axis=0)

    return tf.function(stds, jit_compile=True, autograph=False)


def replayed(arrays: State, step: Step, noise_multiplier: float) -> list[Any]:
    """The generator's arrays after the replay, from a training's state, NumPy arrays.

    The random numbers have a fixed seed, so that a training that goes on from a checkpoint gives the same.

    Raises RunError if the generator diverges.
    """
    settings, shapes = step.settings, tuple(tuple(np.shape(a)) for a in arrays["critic"])
    count = min(int(arrays["critic_adam"]["count"]), len(arrays["replay"]["critics"]))
    critics, means = (np.asarray(arrays["replay"][name])[:count] for name in ("critics", "means"))
    ends = np.cumsum([int(np.prod(shape)) for shape in shapes])[:-1]
    stds = np.ones_like(means)
    if step.noise_scales is not None:
        program = _stds_program(step.noise_scales, shapes)
        for t, critic in enumerate(critics):
            parts = [
                tf.constant(part.reshape(shape))
                for part, shape in zip(np.split(critic, ends), shapes, strict=True)
            ]
            stds[t] = program(*parts).numpy() * (noise_multiplier / step.expected_batch)
    kept = {name: tf.constant(a) for name, a in (("critics", critics), ("means", means), ("stds", stds))}
    start = [tf.constant(a) for a in arrays["replay"]["start"]]
    moments = tf.nest.map_structure(tf.constant, adam_start([a.numpy() for a in start]))
    state = (start, moments, start, tf.constant(0.0))
    program = _compiled(_Replay(step, shapes))
    seed = tf.constant([0])
    for done in range(0, settings.replays, _CHUNK):
        stop = min(done + _CHUNK, settings.replays)
        state = program(state, kept, seed, tf.constant(done), tf.constant(stop))
        if not np.isfinite(float(state[3])):
            raise RunError(
                f"the generator diverged in the replay before iteration {stop}. Set training.replay to 0, "
                "and report this with the schema"
            )
    return [np.asarray(a) for a in state[2]]
