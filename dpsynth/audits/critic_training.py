"""The critic's training under audit: canaries in its steps, and recorded noisy sums."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf
from numpy.typing import NDArray

from dpsynth.attacks.beliefs import Transcript
from dpsynth.audits.releases import Farthest, farthest
from dpsynth.audits.trials import Audited, Declared, judge_trials
from dpsynth.errors import InputError
from dpsynth.privacy.events import training_event
from dpsynth.privacy.noise import STEP
from dpsynth.privacy.profile import Profile
from dpsynth.privacy.release import Plan
from dpsynth.table.encoder import Layout
from dpsynth.wgan.algorithm import State, Step
from dpsynth.wgan.matching import ACTIVATION, GRID, Critics, GradientRelease
from dpsynth.wgan.networks import Weights, unflatten
from dpsynth.wgan.precision import full_precision_for
from dpsynth.wgan.settings import MatchingSettings, TrainingSettings
from dpsynth.wgan.training import build_step, initial_state

# ------------------------------------------------------------------------------------------------
# Audit of the critic's steps: a canary that attains the declared bound, in thousands of runs of one program.
#
# The tables are one record and none. A run releases T noisy sums at the weights of T steps that were made
# beforehand. The program's own updates made them, at a learning rate so large that only the projection keeps
# them within the bounds of the noise. At each of them the record's gradient is the farthest possible one
# (`dpsynth.audits.releases`), scaled by the program's weight of a record. Noise, sample, centre and weight
# are those of `dpsynth.wgan.algorithm`, compiled.
#
# With every record in every step (q = 1) the declared curve is Gaussian with mu = sqrt(T) / z.
#
# `MatchingAudit` does the same with gradients of random critics (`dpsynth.wgan.matching`).


Floats = NDArray[np.float64]
#: Noisy sums of a run, about; whole generator steps are made.
STEPS = 8
#: Adam moves every weight by about this much: spectral norms of several, before they are projected.
LARGE_RATE = 0.5
#: Public batch of the audited program; the noise of a sum does not depend on it.
BATCH = 8.0
#: Floats of one call's noise.
_CALL = 1 << 22


@dataclass(frozen=True)
class CanaryStep(Step):
    """A step in which one record's gradient is an auditor's: for audits of the program, never for a run.

    ``canary``, flat and shaped like the critic's arrays, replaces the gradient of the record in row 0. It is
    scaled by the step's coefficient of that record: a record that counts twice shows. Everything else is the
    step's own. Without a canary so is that gradient.
    """

    canary: tuple[Any, ...] = ()

    def sum_of_gradients(
        self, weights: Weights, inputs: list[Any], deltas: list[Any], coefficients: Any, index: Any
    ) -> list[Any]:
        """Weighted sum in which row 0 contributes the canary."""
        if not self.canary:
            return super().sum_of_gradients(weights, inputs, deltas, coefficients, index)
        mine = tf.cast(tf.equal(index, 0), coefficients.dtype)
        rows = index.shape[0]
        weight = tf.reduce_sum(coefficients[:rows] * mine)
        rest = coefficients * tf.concat([1.0 - mine, tf.ones_like(coefficients[rows:])], axis=0)
        others = super().sum_of_gradients(weights, inputs, deltas, rest, index)
        weight = tf.cast(weight, tf.float64)
        return [g + weight * tf.cast(c, tf.float64) for g, c in zip(others, self.canary, strict=True)]


class CriticAudit:
    """The audited program of one layout, settings and plan.

    The noise and its shape come from the plan. Sampling probability and steps, rounded to whole generator
    steps, are the audit's. ``rng`` draws initial weights and the updates before. ``attained`` is the least
    norm of a canary over the declared bound.
    """

    def __init__(
        self,
        layout: Layout,
        settings: TrainingSettings,
        plan: Plan,
        rng: np.random.Generator,
        *,
        steps: int = STEPS,
        sampling_prob: float = 1.0,
    ) -> None:
        self.noise_multiplier = _noise_of(plan)
        if settings.penalty == "data" or settings.clip_norm is not None:
            raise InputError("only steps whose bound is proved from the weights alone can be audited")
        full_precision_for(self)
        settings = dataclasses.replace(settings, critic_learning_rate=LARGE_RATE)
        self.generator_steps = max(round(steps / settings.critic_steps), 1)
        self.plan = dataclasses.replace(
            plan,
            sampling_prob=sampling_prob,
            expected_batch=BATCH,
            steps=self.generator_steps * settings.critic_steps,
        )
        self.layout, self.settings = layout, settings
        made = build_step(
            layout,
            settings,
            self.plan,
            n_records=1,
            n_bank=1 if settings.penalty == "public" else 0,
            in_graph=False,
            n_steps=self.generator_steps,
        )
        per_run = self.generator_steps * settings.critic_steps * made.draws.shapes.n_parameters
        self.runs_a_call = max(_CALL // per_run, 1)
        shapes = dataclasses.replace(made.draws.shapes, steps=self.runs_a_call * self.generator_steps)
        draws = dataclasses.replace(made.draws, shapes=shapes)
        fields = {f.name: getattr(made, f.name) for f in dataclasses.fields(made)}
        self.step = CanaryStep(**{**fields, "draws": draws})
        self._data = tf.zeros([1, layout.dim])
        self._bank = tf.zeros([1, layout.dim])
        arrays = initial_state(layout, settings, rng).arrays
        self._start: State = tf.nest.map_structure(tf.constant, arrays)
        self._latent = self.step.draws.draw(rng)["latent"][:1]
        self._critics, canaries, stds = self._worst(rng)
        self._offsets, self._stds = np.stack([canary.offset for canary in canaries]), np.stack(stds)
        self._canaries = [
            tf.constant(np.stack(arrays), tf.float32)
            for arrays in zip(*(canary.gradient for canary in canaries), strict=True)
        ]
        self.attained = float(min(map(np.linalg.norm, self._offsets / self._stds)))
        self._sums = tf.function(self._released, jit_compile=True, autograph=False)

    def scores(self, coins: NDArray[np.bool_], rng: np.random.Generator) -> Floats:
        """Log-likelihood ratio of each run, with the record by its coin, shape of ``coins``."""
        q = self.plan.sampling_prob
        directions = self._offsets / (self.noise_multiplier * self._stds) ** 2
        halves = 0.5 * (self._offsets * directions).sum(axis=1)
        critics = [tf.constant(np.stack(arrays)) for arrays in zip(*self._critics, strict=True)]
        tensors = (critics, self._canaries, tf.constant(directions, tf.float32))
        quiet = self._chunk(rng, np.zeros(self.runs_a_call, bool))
        quiet["noise"] = tf.zeros_like(quiet["noise"])
        base = self._sums(quiet, *tensors).numpy()[0].astype(np.float64)
        found: list[Floats] = []
        for start in range(0, len(coins), self.runs_a_call):
            part = coins[start : start + self.runs_a_call]
            present = np.zeros(self.runs_a_call, bool)
            present[: len(part)] = part
            seen = self._sums(self._chunk(rng, present), *tensors).numpy().astype(np.float64)
            # log((1 - q) + q e^s) of each step: the record is taken with probability q
            each = seen[: len(part)] - base - halves
            if q < 1.0:
                each = np.logaddexp(np.log1p(-q), np.log(q) + each)
            found.append(each.sum(axis=1))
        return np.concatenate(found)

    def _chunk(self, rng: np.random.Generator, present: NDArray[np.bool_]) -> dict[str, Any]:
        """Random numbers of a call, drawn as in a run. Generated records are always the same."""
        drawn = self.step.draws.draw(rng)
        steps = np.repeat(present, self.generator_steps)
        drawn["records"] = np.where(steps[:, None, None], drawn["records"], -1).astype(np.int32)
        drawn["latent"] = np.broadcast_to(self._latent, drawn["latent"].shape)
        if "mix" in drawn:  # points of the public penalty, likewise
            drawn["mix"] = np.zeros_like(drawn["mix"])
        chunk = {name: tf.constant(array) for name, array in drawn.items()}
        chunk["noise_multiplier"] = tf.constant(self.plan.noise_multiplier, tf.float32)
        return chunk

    def _released(self, chunk: dict[str, Any], critics: Any, canaries: Any, directions: Any) -> Any:
        """Inner products of the released sums with the directions, shape (runs a call, T)."""
        n_critic, steps = self.settings.critic_steps, self.plan.steps

        def body(k: Any, seen: Any) -> Any:
            t = k % steps
            step = dataclasses.replace(self.step, canary=tuple(c[t] for c in canaries))
            state = {**self._start, "critic": [c[t] for c in critics]}
            gradient, *_ = step.noisy_gradient(
                state, self._data, self._bank, chunk, k // n_critic, k % n_critic
            )
            flat = tf.concat([tf.reshape(g, [-1]) for g in gradient], axis=0)
            product = -self.step.expected_batch * tf.reduce_sum(flat * directions[t])
            return k + 1, tf.tensor_scatter_nd_update(seen, [[k]], [product])

        total = self.runs_a_call * steps
        _, seen = tf.while_loop(lambda k, _: k < total, body, (tf.constant(0), tf.zeros([total])))
        return tf.reshape(seen, [self.runs_a_call, steps])

    def _worst(
        self, rng: np.random.Generator
    ) -> tuple[list[list[NDArray[np.float32]]], list[Farthest], list[Floats]]:
        """The weights of T steps, made by the program's own updates, and the canary and stds at each of them.

        The latter, flat, are of the noise for noise multiplier 1.
        """
        plain = dataclasses.replace(self.step, canary=())
        shapes = dataclasses.replace(plain.draws.shapes, steps=self.plan.steps)
        plain = dataclasses.replace(plain, draws=dataclasses.replace(plain.draws, shapes=shapes))
        drawn = plain.draws.draw(rng)
        drawn["records"] = np.full_like(drawn["records"], -1)

        def advance(state: State, chunk: dict[str, Any]) -> Any:
            gradient, *_ = plain.noisy_gradient(state, self._data, self._bank, chunk, 0, 0)
            state = plain.updated_critic(state, gradient)
            weights = unflatten(state["critic"], output_bias=False)
            assert plain.noise_scales is not None  # refused by __init__
            _, stds = plain.noise_scales(weights)
            pairs = zip(stds, state["critic"], strict=True)
            return state, tf.concat([tf.reshape(tf.broadcast_to(s, w.shape), [-1]) for s, w in pairs], axis=0)

        state = {**self._start, "critic": plain.constrain(self._start["critic"])}
        critics, canaries, stds = [], [], []
        for t in range(self.plan.steps):
            chunk = {name: tf.constant(array[t : t + 1]) for name, array in drawn.items()}
            chunk["noise_multiplier"] = tf.constant(self.plan.noise_multiplier, tf.float32)
            state, unit = advance(state, chunk)
            arrays = [array.numpy() for array in state["critic"]]
            weights = unflatten([array.astype(np.float64) for array in arrays], output_bias=False)
            critics.append(arrays)
            stds.append(unit.numpy().astype(np.float64))
            canaries.append(
                farthest(
                    weights,
                    self.layout,
                    activation=self.settings.activation,
                    slope=self.settings.slope,
                    noise_shape=self.plan.noise_shape,
                )
            )
        return critics, canaries, stds


@dataclass(frozen=True, eq=False)
class CanaryRelease(GradientRelease):
    """A release in which each record's gradients are an auditor's, shape (T, P), instead of its own."""

    canary: Floats

    def sums(self, blocks: Iterable[NDArray[np.float32]]) -> tuple[NDArray[np.int64], int]:
        """Sum of the records' gradients in steps, and their number."""
        rows = sum(map(len, blocks))
        return rows * np.rint(self.canary / STEP).astype(np.int64), rows


class MatchingAudit:
    """The audited release of gradients at random critics: canary in the table, or an empty table.

    Noise and shape come from the plan. ``scale`` is that of the layout's coordinates, ``rng`` draws critics.
    """

    def __init__(
        self,
        layout: Layout,
        scale: NDArray[np.float32],
        settings: MatchingSettings,
        plan: Plan,
        rng: np.random.Generator,
        *,
        steps: int = STEPS,
    ) -> None:
        self.noise_multiplier = _noise_of(plan)
        self.plan = dataclasses.replace(plan, sampling_prob=1.0, expected_batch=BATCH, steps=steps)
        critics = Critics.draw(steps, layout.dim, settings, rng)
        canaries = [
            farthest(
                [(w.astype(np.float64), None if b is None else b.astype(np.float64)) for w, b in weights],
                layout,
                activation=ACTIVATION.kind,
                slope=ACTIVATION.slope,
                noise_shape=plan.noise_shape,
                scale=scale.astype(np.float64),
                step=GRID,
            )
            for weights in map(critics.weights, range(steps))
        ]
        canary = np.stack([np.concatenate([np.ravel(g) for g in found.gradient]) for found in canaries])
        self.release = CanaryRelease(critics, layout, scale, self.plan, canary)
        self._offsets = np.stack([found.offset for found in canaries])
        _, self._stds = self.release.centres_and_stds
        self._centres = canary - self._offsets
        self.attained = float(np.linalg.norm(self._offsets / self._stds, axis=1).min())

    def scores(self, coins: NDArray[np.bool_], rng: np.random.Generator) -> Floats:
        """Log-likelihood ratio of each run, with the record by its coin, shape of ``coins``."""
        directions = self._offsets / (self.noise_multiplier * self._stds) ** 2
        half = 0.5 * float((self._offsets * directions).sum())
        record = np.zeros((1, self.release.layout.dim), np.float32)
        found = np.empty(len(coins))
        for run, present in enumerate(coins):
            means = self.release([record] if present else [], rng).means
            # Without the record, the expected sum is the public batch times the centre.
            found[run] = (BATCH * (means - self._centres) * directions).sum() - half
        return found


def audit_matching(
    layout: Layout,
    scale: NDArray[np.float32],
    settings: MatchingSettings,
    plan: Plan,
    *,
    delta: float,
    trials: int,
    rng: np.random.Generator,
    steps: int = STEPS,
) -> Audited:
    """Audit the gradients at random critics with a plan's noise, by so many runs with or without a record."""
    start = time.perf_counter()
    return _judged(MatchingAudit(layout, scale, settings, plan, rng, steps=steps), trials, delta, rng, start)


def audit_critic(
    layout: Layout,
    settings: TrainingSettings,
    plan: Plan,
    *,
    delta: float,
    trials: int,
    rng: np.random.Generator,
    steps: int = STEPS,
    sampling_prob: float = 1.0,
) -> Audited:
    """Audit the critic's steps with a plan's noise, by so many runs with the record or without it."""
    start = time.perf_counter()
    audit = CriticAudit(layout, settings, plan, rng, steps=steps, sampling_prob=sampling_prob)
    return _judged(audit, trials, delta, rng, start)


def _judged(
    audit: CriticAudit | MatchingAudit, trials: int, delta: float, rng: np.random.Generator, start: float
) -> Audited:
    """Verdict on so many runs."""
    from scipy.special import ndtr

    coins = rng.random(trials) < 0.5
    scores = audit.scores(coins, rng)
    z, q, steps, attained = audit.noise_multiplier, audit.plan.sampling_prob, audit.plan.steps, audit.attained
    error = float(ndtr(-0.5 * min(attained, 1.0) * np.sqrt(steps) / z))
    return judge_trials(
        "WGAN critic steps",
        scores,
        coins,
        Declared(Profile([training_event(z, q, steps)]), delta),
        about=f"no record and one whose gradient is {attained:.3f} of the bound, {steps} steps, q = {q:g}, "
        f"z = {z:.4g}",
        expected=(error, error) if q == 1.0 else None,
        gaussian=q == 1.0,
        seconds=time.perf_counter() - start,
        attained=attained,
    )


def _noise_of(plan: Plan) -> float:
    if plan.noise_multiplier is None:
        raise InputError("noise_multiplier must be given: without noise nothing is declared")
    return float(plan.noise_multiplier)


# ------------------------------------------------------------------------------------------------
# A training run that an audit watches: the same steps as `Trainer`'s, with every noisy sum written down.
#
# The program is `dpsynth.wgan.algorithm.Step`, evaluated once as a run evaluates it. A second evaluation
# without noise gives the means that an adversary with both tables would compute. All that is written down is
# as secret as the records.


def public_points(layout: Layout, n: int = 1000) -> np.ndarray:
    """Uniform points of a layout, always the same, for a penalty at points without records: (n, dim)."""
    rng = np.random.default_rng(0)
    points = np.zeros((n, layout.dim), np.float32)
    points[:, : layout.n_numeric] = rng.random((n, layout.n_numeric))
    for start, stop in layout.groups:
        points[np.arange(n), rng.integers(start, stop, n)] = 1.0
    return points


class Watched:
    """Training runs on a table that holds the first or the second of two candidates, or none.

    Adjacency: with ``second`` None the tables differ by one record that is there or not, otherwise by one
    record in another's place. Nothing is posted: a watched run is an experiment of an auditor who holds the
    records, and its outcome is confidential.

    ``others``: encoded records that both tables have, in the unit cube.
    ``first``: the record of table D.
    ``second``: the record that D' has in its place.
    ``layout``, ``settings``, ``plan``, ``bank``: as for `dpsynth.wgan.training.TrainingRun`. Without a bank,
        `public_points`.
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
        full_precision_for(self)
        bank = public_points(layout) if bank is None else bank
        self.layout, self.settings, self.plan = layout, settings, plan
        self.n_others = len(others)
        self.n_steps = plan.steps // settings.critic_steps
        made = build_step(
            layout,
            settings,
            plan,
            n_records=self.n_others + 1,
            n_bank=len(bank),
            in_graph=False,
            n_steps=self.n_steps,
        )
        self.step = step(**vars(made))
        # Rows: the others, the first candidate, the second, if there is one.
        self._rows = (self.n_others, -1 if second is None else self.n_others + 1)
        last = [] if second is None else [second]
        table = np.concatenate([np.asarray(others, np.float32).reshape(-1, layout.dim), [first, *last]])
        self._data = tf.constant(table.astype(np.float32) - layout.center.astype(np.float32))
        self._bank = tf.constant(bank, tf.float32)
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

        gradient, *_ = step.noisy_gradient(state, data, bank, chunk, i, j)
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
