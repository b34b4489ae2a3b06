"""Sources of the random numbers of a training program.

On the host (default without an accelerator): NumPy draws normals in float64 from a generator seeded by the
operating system. It draws a chunk of steps ahead in a background thread and feeds them to the program. In the
program (on an accelerator): stateless Philox draws in float64 from 128-bit seeds that the same host generator
supplies. Poisson samples always come from the host. Latent inputs and interpolation weights are not secret,
they only follow the same route.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dpsynth.mechanism.noise import standard_normals
from dpsynth.mechanism.sampling import poisson_batches
from dpsynth.model.wgan.settings import TrainingSettings

Chunk = dict[str, np.ndarray]


@dataclass(frozen=True)
class DrawShapes:
    """Sizes of what one training step draws.

    ``n_parameters``: entries of the critic's gradient.
    ``n_records``: rows that may be sampled (secret).
    ``capacity``: initial width of the index array.
    ``n_bank``: rows of the bank of public points, 0 where there is none.
    """

    steps: int
    batch: int
    n_parameters: int
    n_records: int
    sampling_prob: float
    capacity: int
    n_bank: int


@dataclass(frozen=True)
class HostDraws:
    """All random numbers drawn by NumPy, a chunk of steps at a time."""

    shapes: DrawShapes
    settings: TrainingSettings
    noisy: bool

    def draw(self, rng: np.random.Generator) -> Chunk:
        """Arrays for one chunk, with generator step and critic step as leading axes."""
        s, n_critic = self.shapes, self.settings.critic_steps
        chunk = self._batches(rng)
        if self.noisy:
            chunk["noise"] = standard_normals(rng, (s.steps, n_critic, s.n_parameters))
        chunk["latent"] = self._latent(rng, (s.steps, n_critic + 1, s.batch, self.settings.latent))
        return chunk

    def _batches(self, rng: np.random.Generator) -> Chunk:
        s, n_critic = self.shapes, self.settings.critic_steps
        batches = poisson_batches(rng, s.n_records, s.sampling_prob, s.steps * n_critic, s.capacity)
        chunk: Chunk = {"records": batches.reshape(s.steps, n_critic, -1)}
        if self.settings.penalty == "public":
            chunk["pair"] = rng.integers(0, s.n_bank, (s.steps, n_critic, s.batch), dtype=np.int32)
            chunk["mix"] = rng.random((s.steps, n_critic, s.batch), dtype=np.float32)
        if self.settings.penalty == "data":
            # Every record has partners of its own, so that removing one record moves no other's.
            shape = chunk["records"].shape
            chunk["mix"] = rng.random(shape, dtype=np.float32)
            chunk["pair_latent"] = self._latent(rng, (*shape, self.settings.latent))
        return chunk

    def _latent(self, rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        if self.settings.latent_law == "uniform":
            return rng.random(shape, dtype=np.float32)
        return rng.standard_normal(shape, dtype=np.float32)

    def noise(self, chunk: dict[str, Any], step: Any, critic_step: Any) -> Any:
        """Standard normals for one critic step, shape (n_parameters,)."""
        return chunk["noise"][step, critic_step]

    def latent(self, chunk: dict[str, Any], step: Any, slot: Any) -> Any:
        """Latent inputs, shape (batch, n_latent), with the generator step's in the last slot."""
        return chunk["latent"][step, slot]


@dataclass(frozen=True)
class GraphDraws(HostDraws):
    """Noise and latents drawn inside the program from 128-bit seeds, for accelerators."""

    def draw(self, rng: np.random.Generator) -> Chunk:
        """Index arrays and seeds for one chunk."""
        chunk = self._batches(rng)
        n_critic = self.settings.critic_steps
        high = np.iinfo(np.int64)
        for name, slots in (("noise_seed", n_critic), ("latent_seed", n_critic + 1)):
            size = (self.shapes.steps, slots, 2)
            chunk[name] = rng.integers(high.min, high.max, size, dtype=np.int64, endpoint=True)
        return chunk

    def noise(self, chunk: dict[str, Any], step: Any, critic_step: Any) -> Any:
        """Standard normals for one critic step, drawn in float64 and cast, shape (n_parameters,)."""
        import tensorflow as tf

        seed = chunk["noise_seed"][step, critic_step]
        wide = tf.random.stateless_normal([self.shapes.n_parameters], seed, dtype=tf.float64)
        return tf.cast(wide, tf.float32)

    def latent(self, chunk: dict[str, Any], step: Any, slot: Any) -> Any:
        """Latent inputs, shape (batch, n_latent)."""
        import tensorflow as tf

        seed = chunk["latent_seed"][step, slot]
        shape = [self.shapes.batch, self.settings.latent]
        if self.settings.latent_law == "uniform":
            return tf.random.stateless_uniform(shape, seed)
        return tf.random.stateless_normal(shape, seed)
