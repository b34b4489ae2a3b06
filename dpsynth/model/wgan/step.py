"""One generator iteration of Algorithm 1 (Pedersen 2022, section 3.2), corrected, as tensor functions.

The only quantity that reads private records is ``sum_i grad_W D(x_i)`` over the Poisson sample (plus its
penalty term when ``penalty='data'``). It is released as

    ``R = sum_i (g_i - c) + B c + z * std * N(0, 1)``

with the centre ``c`` and the stds from `dpsynth.mechanism.allocation`, both functions of released weights,
and ``B`` the public expected batch size. Adam, the projection and the generator step are post-processing.

Deviations from the printed algorithm: the bounds of critic and penalty add (line 7 prints a root of squares).
The noise is proportional to the step's sensitivity (line 14 prints a constant), so the noise multiplier z is
one number for the whole run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import tensorflow as tf

from dpsynth.mechanism.bounds import project
from dpsynth.model.wgan.critic import Activation, critic_pass, squared_gradient_norms, weighted_gradient
from dpsynth.model.wgan.networks import Weights, flatten, generator_pass, unflatten
from dpsynth.model.wgan.randomness import HostDraws
from dpsynth.model.wgan.sensitivity import NoiseScales, starting_from
from dpsynth.model.wgan.settings import TrainingSettings
from dpsynth.table.layout import Layout

State = dict[str, Any]
METRICS = ("noise_std", "gradient_norm", "score_generated")


class TensorOps:
    """The operations that `generator_pass` needs, in TensorFlow."""

    concat = staticmethod(lambda parts: tf.concat(parts, axis=1))
    relu = staticmethod(tf.nn.relu)
    sigmoid = staticmethod(tf.sigmoid)

    @staticmethod
    def softmax(logits: Any, sizes: Sequence[int]) -> Any:
        """Softmax of each of the neighbouring groups of columns.

        Sums of groups are products with a matrix of zeros and ones: a softmax a group would make dozens of
        kernels, each compiled for itself.
        """
        parts = tf.split(tf.stop_gradient(logits), sizes, axis=1)
        largest = tf.stack([tf.reduce_max(part, axis=1) for part in parts], axis=1)
        member = tf.constant(np.repeat(np.eye(len(sizes), dtype=np.float32), sizes, axis=0))
        powers = tf.exp(logits - tf.matmul(largest, member, transpose_b=True))
        return powers / tf.matmul(tf.matmul(powers, member), member, transpose_b=True)


def adam(
    values: list[Any],
    gradient: list[Any],
    moments: State,
    rate: Any,
    betas: tuple[float, float],
    epsilon: float = 1e-8,
) -> tuple[list[Any], State]:
    """One Adam update (Kingma and Ba 2015, algorithm 1) of a flat list of arrays."""
    count = moments["count"] + 1.0
    b1, b2 = betas
    first = [b1 * m + (1 - b1) * g for m, g in zip(moments["first"], gradient, strict=True)]
    second = [b2 * v + (1 - b2) * g * g for v, g in zip(moments["second"], gradient, strict=True)]
    scale_1, scale_2 = 1.0 - tf.pow(b1, count), 1.0 - tf.pow(b2, count)
    values = [
        x - rate * (m / scale_1) / (tf.sqrt(v / scale_2) + epsilon)
        for x, m, v in zip(values, first, second, strict=True)
    ]
    return values, {"count": count, "first": first, "second": second}


def adam_start(values: list[Any]) -> State:
    """Averages of zero for the first update of `adam`, NumPy arrays."""
    zeros = [np.zeros_like(v) for v in values]
    return {"count": np.float32(0.0), "first": zeros, "second": [z.copy() for z in zeros]}


@dataclass(frozen=True)
class Step:
    """One generator iteration: `TrainingSettings.critic_steps` critic updates, then one of the generator.

    ``noise_scales``: centre and unit std of the released sum for given critic weights. None adds no noise.
    ``expected_batch``: public B = q * n.
    """

    layout: Layout
    settings: TrainingSettings
    draws: HostDraws
    noise_scales: NoiseScales | None
    expected_batch: float

    @property
    def activation(self) -> Activation:
        """The critic's activation."""
        return Activation(self.settings.activation, self.settings.slope)

    def __call__(
        self, state: State, data: Any, bank: Any, chunk: dict[str, Any], step: Any
    ) -> tuple[State, Any]:
        """State after one iteration and its `METRICS` (released quantities only), shape (3,)."""

        n_critic = self.settings.critic_steps
        started = self.starting_from(state)

        # A loop rather than n_c copies: the program compiles in a fraction of the time and runs as fast.
        def critic_loop(j: Any, state: State, _: Any) -> Any:
            return j + 1, *started._critic_update(state, data, bank, chunk, step, j)

        start = (tf.constant(0), state, tf.zeros([len(METRICS)]))
        _, state, metrics = tf.while_loop(lambda j, *_: j < n_critic, critic_loop, start)
        return self.updated_generator(state, chunk, step), metrics

    def starting_from(self, state: State) -> Self:
        """This step with noise scales whose norms of matrices are found once, at the state's critic."""
        weights = unflatten(state["critic"], output_bias=False)
        return replace(self, noise_scales=starting_from(self.noise_scales, weights))

    def generate(self, weights: Weights, chunk: dict[str, Any], step: Any, slot: Any) -> Any:
        """Generated points, centred, shape (batch, dim)."""
        latent = self.draws.latent(chunk, step, slot)
        return generator_pass(weights, latent, self.layout, TensorOps) - self._center

    @property
    def _center(self) -> np.ndarray:
        return self.layout.center.astype(np.float32)

    def noisy_gradient(
        self, state: State, data: Any, bank: Any, chunk: dict[str, Any], step: Any, j: Any
    ) -> tuple[list[Any], Any, Any]:
        """Noisy gradient of the critic's step ``j``: ``-R / B`` with R as in the module's docstring.

        The gradient at generated and at public points, post-processing, is added to it.

        Returns gradient : list of tensor: flat, shaped like the critic's arrays. Also noise_std : scalar
        tensor: of the whole gradient, and score : scalar tensor: mean score of the generated records.
        """
        settings, batch = self.settings, self.expected_batch
        weights = unflatten(state["critic"], output_bias=False)
        index = chunk["records"][step, j]
        sampled = tf.cast(index >= 0, tf.float32)
        real = tf.gather(data, tf.maximum(index, 0))
        fake = self.generate(unflatten(state["generator"], output_bias=True), chunk, step, j)

        scores, inputs, deltas = critic_pass(weights, tf.concat([real, fake], axis=0), self.activation)
        n_real, n_fake = index.shape[0], fake.shape[0]
        coefficients = self.coefficients(weights, inputs, deltas, sampled)
        gradient = self.sum_of_gradients(weights, inputs, deltas, coefficients, index)

        noise_std = tf.zeros([])
        if settings.penalty == "data":
            penalty = self._data_penalty(state, weights, real, sampled, chunk, step, j)
            gradient = [g + p / batch for g, p in zip(gradient, penalty, strict=True)]
        count = tf.reduce_sum(sampled)
        if self.noise_scales is not None:
            noise = self.draws.noise(chunk, step, j)
            centers, stds = self.noise_scales(weights)
            z = chunk["noise_multiplier"]
            pieces = tf.split(noise, [int(np.prod(g.shape)) for g in gradient])
            # -R / B with R as in the module's docstring; the sign of the noise does not matter.
            gradient = [
                g + ((count - batch) * c + z * s * tf.reshape(e, g.shape)) / batch
                for g, c, s, e in zip(gradient, centers, stds, pieces, strict=True)
            ]
            # A scalar std stands for a whole array.
            variance = sum(
                tf.reduce_sum(s * s) * float(np.prod(g.shape) / np.prod(s.shape))
                for s, g in zip(stds, gradient, strict=True)
            )
            noise_std = z * tf.sqrt(variance) / batch
        if settings.penalty == "public":
            mix = chunk["mix"][step, j][:, None]
            points = mix * fake + (1.0 - mix) * (tf.gather(bank, chunk["pair"][step, j]) - self._center)
            ones = tf.fill([n_fake], np.float32(1.0 / n_fake))
            penalty = self._penalty_gradient(weights, points, ones)
            gradient = [g + p for g, p in zip(gradient, penalty, strict=True)]

        return gradient, noise_std, tf.reduce_mean(scores[n_real:])

    def coefficients(self, weights: Weights, inputs: list[Any], deltas: list[Any], sampled: Any) -> Any:
        """Coefficient of each row's gradient: -1 / B for a sampled record, 1 / n for a generated point.

        Clipping shortens both kinds alike. The critic of equal distributions then stays where it is.
        """
        n_fake = inputs[0].shape[0] - sampled.shape[0]
        generated = tf.fill([n_fake], np.float32(1.0 / n_fake))
        plain = tf.concat([-sampled / self.expected_batch, generated], axis=0)
        if self.settings.clip_norm is None:
            return plain
        norms = squared_gradient_norms(inputs, deltas, weights)
        return plain * tf.minimum(1.0, self.settings.clip_norm / tf.sqrt(norms + 1e-12))

    def sum_of_gradients(
        self, weights: Weights, inputs: list[Any], deltas: list[Any], coefficients: Any, index: Any
    ) -> list[Any]:
        """Weighted sum over sampled records, whose rows ``index`` names, and then generated ones."""
        return weighted_gradient(inputs, deltas, coefficients, weights)

    def _critic_update(
        self, state: State, data: Any, bank: Any, chunk: dict[str, Any], step: Any, j: Any
    ) -> tuple[State, Any]:
        gradient, noise_std, score = self.noisy_gradient(state, data, bank, chunk, step, j)
        norm = tf.sqrt(sum(tf.reduce_sum(g * g) for g in gradient))
        return self.updated_critic(state, gradient), tf.stack([noise_std, norm, score])

    def updated_critic(self, state: State, gradient: list[Any]) -> State:
        """State after Adam and the projection, which read released quantities only."""
        critic, moments = adam(
            state["critic"],
            gradient,
            state["critic_adam"],
            self.settings.critic_learning_rate,
            (self.settings.beta_1, self.settings.beta_2),
        )
        return {**state, "critic": self.constrain(critic), "critic_adam": moments}

    def constrain(self, critic: list[Any]) -> list[Any]:
        """Critic arrays with every matrix projected to spectral norm at most 1 where that is asked for."""
        if self.settings.critic_constraint == "none":
            return critic
        weights = unflatten(critic, output_bias=False)
        return flatten([(project(w, bjorck_steps=self.settings.bjorck_steps), b) for w, b in weights])

    def _penalty_gradient(self, weights: Weights, points: Any, coefficients: Any) -> list[Any]:
        """Gradient of ``lambda * sum_i coefficients_i (||grad_x D(x_i)|| - 1)^2``, flat."""
        flat = flatten(weights)
        with tf.GradientTape() as tape:
            tape.watch(flat)
            watched = unflatten(flat, output_bias=False)
            _, _, deltas = critic_pass(watched, points, self.activation)
            slope = tf.matmul(deltas[0], watched[0][0], transpose_b=True)
            norm = tf.sqrt(tf.reduce_sum(slope * slope, axis=1) + 1e-12)
            loss = self.settings.penalty_weight * tf.reduce_sum(coefficients * tf.square(norm - 1.0))
        return tape.gradient(loss, flat, unconnected_gradients=tf.UnconnectedGradients.ZERO)

    def _data_penalty(
        self,
        state: State,
        weights: Weights,
        real: Any,
        sampled: Any,
        chunk: dict[str, Any],
        step: Any,
        j: Any,
    ) -> list[Any]:
        """Penalty summed over the sampled records, each with a generated partner of its own (line 11)."""
        generator = unflatten(state["generator"], output_bias=True)
        partner = generator_pass(generator, chunk["pair_latent"][step, j], self.layout, TensorOps)
        mix = chunk["mix"][step, j][:, None]
        points = mix * real + (1.0 - mix) * (partner - self._center)
        return self._penalty_gradient(weights, points, sampled)

    def updated_generator(self, state: State, chunk: dict[str, Any], step: Any) -> State:
        """State after a step of the generator against the released critic."""
        settings = self.settings
        critic = unflatten(state["critic"], output_bias=False)
        flat = state["generator"]
        slot = settings.critic_steps
        with tf.GradientTape() as tape:
            tape.watch(flat)
            points = self.generate(unflatten(flat, output_bias=True), chunk, step, slot)
            loss = -tf.reduce_mean(critic_pass(critic, points, self.activation)[0])
        gradient = tape.gradient(loss, flat)
        betas = (settings.beta_1, settings.beta_2)
        flat, moments = adam(flat, gradient, state["generator_adam"], settings.generator_learning_rate, betas)
        keep = settings.average
        average = [keep * a + (1.0 - keep) * g for a, g in zip(state["average"], flat, strict=True)]
        return {**state, "generator": flat, "generator_adam": moments, "average": average}
