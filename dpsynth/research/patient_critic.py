"""A WGAN critic on windows of consecutive rows of a patient, and weights of synthetic patients by it.

A window is a row with the ``width - 1`` rows before it, and the patient's levels. A patient's first row has
missing values before it. So each row is the end of one window, and all windows have one public layout. The
critic's score of a patient is the mean score of their windows. The mean of gradients that each lie in a
convex set lies in it. The boxes and balls of :mod:`dpsynth.wgan.theorems` are convex, so the bound of one
window holds for a patient with any number of rows. Poisson sampling takes patients, with all their windows.

Synthetic patients have weights in proportion to ``exp(scale * score)``. The critic's parameters maximise the
mean log weight of real patients, whose gradient is the difference that a WGAN critic follows. Weights need no
generator, and the real patients enter by the noisy sum of gradients alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
import tensorflow as tf
from numpy.typing import NDArray

from dpsynth.marginals.columns import estimate_marginals
from dpsynth.marginals.statistics import MarginalsRelease
from dpsynth.patients.histories import Histories
from dpsynth.patients.schema import PatientSchema
from dpsynth.privacy.noise import standard_normals
from dpsynth.privacy.records import FrameRecords, Records
from dpsynth.privacy.release import CriticRelease, Plan
from dpsynth.privacy.sampling import poisson_batches
from dpsynth.table.encoder import Encoder
from dpsynth.table.kinds.category import categories_at
from dpsynth.table.schema import Schema
from dpsynth.wgan.algorithm import ProvedScales, adam, adam_start, critic_pass, weighted_gradient
from dpsynth.wgan.networks import Weights, flatten, glorot, unflatten
from dpsynth.wgan.norms import project
from dpsynth.wgan.settings import TrainingSettings
from dpsynth.wgan.theorems import Activation

Floats = NDArray[np.float64]
SETTINGS = TrainingSettings(activation="leaky_relu", bjorck_steps=0)
_ACTIVATION = Activation(SETTINGS.activation, SETTINGS.slope)
_BETAS = (0.9, 0.99)
#: Part of the steps, at the end, whose weights are averaged.
_AVERAGED = 0.3
#: Factor of the last layer's first weights.
_START = np.float32(0.01)


def window_schema(schema: PatientSchema, width: int) -> Schema:
    """The columns of a window: the patient's levels, then the variables of its rows, the last row first."""
    rows = [
        column.model_copy(update={"name": f"{column.name}, {lag} before", "missing": True})
        for lag in range(width)
        for column in schema.variables
    ]
    return Schema(columns=(*schema.levels.columns, *rows))


def windows(
    patients: pd.DataFrame, schema: PatientSchema, width: int
) -> tuple[pd.DataFrame, NDArray[np.int64]]:
    """The windows of patients, one for each row, and the patient's place of each.

    ``patients``: N rows of :meth:`~dpsynth.patients.histories.Histories.to_frame`.
    """
    histories = Histories.from_frame(patients, schema)
    patient, place = np.nonzero(np.arange(schema.most) < histories.rows[:, None])
    columns: dict[str, Any] = {name: patients[name].to_numpy()[patient] for name in schema.levels.names}
    for lag in range(width):
        for column in schema.variables:
            values = histories.numbers[column.name][patient, np.maximum(place - lag, 0)]
            values = np.where(place >= lag, values, np.nan)
            if not column.is_numeric:
                values = categories_at(column, values)
            columns[f"{column.name}, {lag} before"] = values
    return window_schema(schema, width).conform(pd.DataFrame(columns)).frame, patient


@dataclass(frozen=True, eq=False)
class Points:
    """Encoded, centred windows (W, dim), and the patient's place of each, below ``patients``."""

    points: Any
    patient: NDArray[np.int64]
    patients: int

    @cached_property
    def counts(self) -> NDArray[np.int64]:
        """Windows of each patient."""
        return np.bincount(self.patient, minlength=self.patients)

    def gradient(self, critic: Weights, weights: Floats) -> list[Any]:
        """Sum over patients of their weight times the mean gradient of their windows, flat, in float64."""
        shares = (weights / self.counts)[self.patient]
        _, *both = critic_pass(critic, self.points, _ACTIVATION)
        inputs, deltas = ([tf.cast(a, tf.float64) for a in arrays] for arrays in both)
        return weighted_gradient(inputs, deltas, tf.constant(shares, tf.float64), critic)

    def scores(self, critic: Weights) -> Floats:
        """Mean score of each patient's windows, shape (patients,)."""
        each, _, _ = critic_pass(critic, self.points, _ACTIVATION)
        return np.bincount(self.patient, each.numpy(), minlength=self.patients) / self.counts


@dataclass(frozen=True, eq=False)
class WindowEncoder:
    """Windows of patients as points, numbers by their rank among synthetic windows."""

    schema: PatientSchema
    width: int
    encoder: Encoder

    @classmethod
    def of(cls, synthetic: pd.DataFrame, schema: PatientSchema, width: int) -> WindowEncoder:
        """``synthetic``: as the patients of `windows`. They are public, so ranks among them are."""
        frame, _ = windows(synthetic, schema, width)
        counts = MarginalsRelease(schema=window_schema(schema, width), n=len(frame), noise_multiplier=None)
        with (records := FrameRecords(frame)).opened():
            marginals = estimate_marginals(counts, counts(records, np.random.default_rng(0)))
        return cls(schema, width, Encoder(counts.schema, marginals))

    def __call__(self, patients: pd.DataFrame) -> Points:
        """The points of patients' windows. A number is the middle of its cell, or 1/2 where it is missing."""
        frame, patient = windows(patients, self.schema, self.width)
        grids = self.encoder.grids
        cells = np.stack([grid.encode(frame[grid.column.name]) for grid in grids], axis=1)
        middle = np.full(cells.shape, 0.5)
        points = self.encoder.points_of_cells(cells, middle, np.random.default_rng(0))
        for j, grid in enumerate(grids):
            if (at := self.encoder.coordinate[j]) is not None:
                points[cells[:, j] >= grid.present, at] = 0.5
        centred = points - self.encoder.layout.center.astype(np.float32)
        return Points(tf.constant(centred), patient, len(patients))


@dataclass(frozen=True, eq=False)
class PatientCritic:
    """A critic of windows. ``scale``: of the scores, in the weights of synthetic patients."""

    encoder: WindowEncoder
    weights: Weights
    scale: float

    def log_weights(self, patients: pd.DataFrame) -> Floats:
        """Logarithm of each patient's weight, up to a constant. Confidential for real patients."""
        return self.scale * self.encoder(patients).scores(self.weights)


def noisy_sum(
    real: Points, critic: Weights, scales: ProvedScales, plan: Plan, rng: np.random.Generator
) -> list[Any]:
    """One step's noisy sum ``sum (g_i - c) + B c + z std N(0, 1)`` over sampled patients, a flat list."""
    (batch,) = poisson_batches(rng, real.patients, plan.sampling_prob, steps=1, capacity=1)
    taken = np.bincount(batch[batch >= 0], minlength=real.patients).astype(np.float64)
    centres, stds = scales(critic)
    total = real.gradient(critic, taken)
    found = []
    for array, centre, std in zip(total, centres, stds, strict=True):
        found.append(array + (plan.expected_batch - taken.sum()) * tf.cast(centre, tf.float64))
        if plan.noise_multiplier is not None:
            noise = standard_normals(rng, tuple(array.shape))
            found[-1] += tf.cast(np.float32(plan.noise_multiplier) * std * noise, tf.float64)
    return [tf.cast(array, tf.float32) for array in found]


@dataclass(frozen=True, kw_only=True)
class CriticFit:
    """How a critic is trained beside synthetic patients.

    ``synthetic``: patients as `windows` takes them, made of earlier noisy statistics.
    ``hidden``: units of the one hidden layer. ``rate``: Adam's first step size, which falls to 0.
    """

    schema: PatientSchema
    synthetic: pd.DataFrame
    width: int = 2
    hidden: int = 32
    scale: float = 20.0
    rate: float = 0.01

    def release(self, plan: Plan) -> CriticRelease[PatientCritic]:
        """The steps as a release on patients, as `windows` takes them. The plan samples patients."""
        words = "proved from the critic's weights in each step, for a patient with all rows"
        return CriticRelease(plan=plan, sensitivity=words, train=self.train)

    def train(self, records: Records, plan: Plan, rng: np.random.Generator) -> PatientCritic:
        """The critic after the plan's steps, its weights averaged over the last of them."""
        tf.config.experimental.enable_tensor_float_32_execution(False)
        encoder = WindowEncoder.of(self.synthetic, self.schema, self.width)
        layout = encoder.encoder.layout
        real, synthetic = encoder(records.frame()), encoder(self.synthetic)
        scales = ProvedScales(layout, SETTINGS, plan.noise_shape)
        start = glorot(np.random.default_rng(0), (layout.dim, self.hidden, 1), output_bias=False)
        # A last layer near 0, so that all synthetic patients begin with nearly the same weight.
        *first, last = flatten(start)
        values = projected([tf.constant(array) for array in (*first, _START * last)])
        moments, kept = adam_start([value.numpy() for value in values]), []
        for step in range(plan.steps):
            critic = unflatten(values, output_bias=False)
            noisy = noisy_sum(real, critic, scales, plan, rng)
            powers = np.exp(self.scale * (scores := synthetic.scores(critic)) - self.scale * scores.max())
            drawn = synthetic.gradient(critic, powers / powers.sum())
            pairs = zip(drawn, noisy, strict=True)
            gradient = [tf.cast(own, tf.float32) - array / plan.expected_batch for own, array in pairs]
            rate = np.float32(self.rate * min(1.0, 2.0 * (1.0 - step / plan.steps)))
            values, moments = adam(values, gradient, moments, rate, _BETAS)
            values = projected(values)
            if step >= (1.0 - _AVERAGED) * (plan.steps - 1):
                kept.append([value.numpy() for value in values])
        means = [tf.constant(np.mean(arrays, axis=0)) for arrays in zip(*kept, strict=True)]
        return PatientCritic(encoder, unflatten(means, output_bias=False), self.scale)


def projected(values: list[Any]) -> list[Any]:
    """Arrays of a critic with matrices of spectral norm 1 at most."""
    return [project(value) if len(value.shape) == 2 else value for value in values]
