"""A training run that an audit watches: the same steps as `Trainer`'s, with every noisy sum written down.

The program is `dpsynth.wgan.algorithm.Step`, evaluated once as a run evaluates it. A second evaluation
without noise gives the means that an adversary with both tables would compute. All that is written down is as
secret as the records.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

from dpsynth.attacks.trials import Transcript
from dpsynth.errors import InputError
from dpsynth.privacy.release import Plan
from dpsynth.table.encoder import Layout
from dpsynth.wgan.algorithm import State, Step
from dpsynth.wgan.networks import unflatten
from dpsynth.wgan.settings import TrainingSettings
from dpsynth.wgan.training import build_step, initial_state


class Watched:
    """Training runs on a table that holds the first or the second of two candidates, or none.

    Adjacency: with ``second`` None the tables differ by one record that is there or not, otherwise by one
    record in another's place. Nothing is posted: a watched run is an experiment of an auditor who holds the
    records, and its outcome is confidential.

    ``others``: encoded records that both tables have, in the unit cube.
    ``first``: the record of table D.
    ``second``: the record that D' has in its place.
    ``layout``, ``settings``, ``plan``, ``bank``: as for `dpsynth.wgan.training.TrainingRun`.
    ``step``: A subclass of Step, for what an audit injects.
    """

    def __init__(
        self,
        others: np.ndarray,
        first: np.ndarray,
        second: np.ndarray | None,
        layout: Layout,
        settings: TrainingSettings,
        plan: Plan,
        *,
        bank: np.ndarray | None = None,
        step: type[Step] = Step,
    ) -> None:
        if plan.noise_multiplier is None:
            raise InputError("noise_multiplier must be given: without noise there is nothing to infer")
        if settings.penalty == "data":
            raise InputError("penalty must be 'none' or 'public' in a run that is watched, got 'data'")
        tf.config.experimental.enable_tensor_float_32_execution(False)
        self.layout, self.settings, self.plan = layout, settings, plan
        self.n_others = len(others)
        self.n_steps = plan.steps // settings.critic_steps
        made = build_step(
            layout,
            settings,
            plan,
            n_records=self.n_others + 1,
            n_bank=0 if bank is None else len(bank),
            in_graph=False,
            n_steps=self.n_steps,
        )
        self.step = step(**vars(made))
        # Rows: the others, the first candidate, the second, if there is one.
        self._rows = (self.n_others, -1 if second is None else self.n_others + 1)
        last = [] if second is None else [second]
        table = np.concatenate([np.asarray(others, np.float32).reshape(-1, layout.dim), [first, *last]])
        self._data = tf.constant(table.astype(np.float32) - layout.center.astype(np.float32))
        self._bank = tf.constant(np.zeros((1, layout.dim), np.float32) if bank is None else bank, tf.float32)
        self._program = tf.function(self._written_down, jit_compile=True, autograph=False)

    def run(self, world: int, rng: np.random.Generator, initial_rng: np.random.Generator) -> Transcript:
        """Train once and write down what is released.

        ``rng``: of noise and samples.
        ``initial_rng``: of the initial weights, which the adversary has.

        Returns Transcript: of ``plan.steps`` steps, whole generator iterations.
        """
        arrays: State = initial_state(self.layout, self.settings, initial_rng).arrays
        arrays = tf.nest.map_structure(tf.constant, arrays)
        arrays = {**arrays, "critic": self.step.constrain(arrays["critic"])}
        parts: list[np.ndarray] = []
        done = 0
        while done < self.n_steps:
            drawn = self.step.draws.draw(rng)
            index = drawn.pop("records")
            candidate = index == self.n_others
            chunk = {name: tf.constant(a) for name, a in drawn.items()}
            chunk["noise_multiplier"] = tf.constant(self.plan.noise_multiplier, tf.float32)
            chunk["records"] = tf.constant(np.where(candidate, self._rows[world], index).astype(np.int32))
            chunk["others"] = tf.constant(np.where(candidate, -1, index).astype(np.int32))
            limit = min(self.step.draws.shapes.steps, self.n_steps - done)
            arrays, seen = self._program(arrays, self._data, self._bank, chunk, tf.constant(limit))
            parts.append(seen.numpy()[:limit].astype(np.float64))
            done += limit
        self.last_ = arrays
        # (steps, critic steps, 5, P) -> (5, T, P)
        seen = np.concatenate(parts)
        columns = seen.reshape(-1, *seen.shape[2:]).transpose(1, 0, 2)
        released, others, first, second, stds = columns
        return Transcript(released, others, np.stack([first, second]), stds, self.plan.sampling_prob)

    def _written_down(self, state: State, data: Any, bank: Any, chunk: dict[str, Any], limit: Any) -> Any:
        shapes, n_critic = self.step.draws.shapes, self.settings.critic_steps

        def loop(i: Any, state: State, seen: Any) -> Any:
            started = self.step.starting_from(state)

            def critic_loop(j: Any, state: State, seen: Any) -> Any:
                state, row = self._critic_step(started, state, data, bank, chunk, i, j)
                return j + 1, state, tf.tensor_scatter_nd_update(seen, [tf.stack([i, j])], row[None])

            start = (tf.constant(0), state, seen)
            _, state, seen = tf.while_loop(lambda j, *_: j < n_critic, critic_loop, start)
            return i + 1, self.step.updated_generator(state, chunk, i), seen

        room = tf.zeros([shapes.steps, n_critic, 5, shapes.n_parameters])
        _, state, seen = tf.while_loop(lambda i, *_: i < limit, loop, (tf.constant(0), state, room))
        return state, seen

    def _critic_step(
        self, step: Step, state: State, data: Any, bank: Any, chunk: dict[str, Any], i: Any, j: Any
    ) -> tuple[State, Any]:
        """State after critic step j of generator step i, and the five rows of the transcript."""
        batch = step.expected_batch
        quiet = {**chunk, "noise": tf.zeros_like(chunk["noise"])}

        def total(index: Any) -> Any:
            return -batch * _flat(
                step.noisy_gradient(state, data, bank, {**quiet, "records": index}, i, j)[0]
            )

        gradient, _, _ = step.noisy_gradient(state, data, bank, chunk, i, j)
        nobody = tf.fill([*chunk["noise"].shape[:2], 1], -1)
        base = total(nobody)
        moved = [
            total(tf.fill(nobody.shape, row)) - base if row >= 0 else tf.zeros_like(base)
            for row in self._rows
        ]
        weights = unflatten(state["critic"], output_bias=False)
        assert step.noise_scales is not None  # refused by __init__
        _, unit = step.noise_scales(weights)
        stds = [tf.broadcast_to(u, g.shape) for u, g in zip(unit, gradient, strict=True)]
        row = tf.stack(
            [
                -batch * _flat(gradient),
                total(chunk["others"]),
                *moved,
                chunk["noise_multiplier"] * _flat(stds),
            ]
        )
        return step.updated_critic(state, gradient), row


def _flat(arrays: list[Any]) -> Any:
    return tf.concat([tf.reshape(a, [-1]) for a in arrays], axis=0)
