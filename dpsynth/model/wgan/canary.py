"""A critic step in which one record's gradient is an auditor's: for audits of the program, never for a run.

Everything but that gradient is `dpsynth.model.wgan.step.Step`: sample, weight of the record, centre, noise.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import tensorflow as tf

from dpsynth.model.wgan.step import Step
from dpsynth.model.wgan.weights import Weights


@dataclass(frozen=True)
class CanaryStep(Step):
    """A step that takes a given array for the gradient of the record in row 0.

    The array is scaled by the very coefficient that the step gives to that record, so that a record that
    counts twice shows.

    Parameters
    ----------
    canary : tuple of tensor
        Flat, shaped like the critic's arrays; empty for the record's own gradient.
    """

    canary: tuple[Any, ...] = ()

    def sum_of_gradients(
        self, weights: Weights, inputs: list[Any], deltas: list[Any], coefficients: Any, index: Any
    ) -> list[Any]:
        """Weighted sum in which row 0 contributes the canary."""
        if not self.canary:
            return super().sum_of_gradients(weights, inputs, deltas, coefficients, index)
        mine = tf.cast(tf.equal(index, 0), tf.float32)
        rows = index.shape[0]
        weight = tf.reduce_sum(coefficients[:rows] * mine)
        rest = coefficients * tf.concat([1.0 - mine, tf.ones_like(coefficients[rows:])], axis=0)
        others = super().sum_of_gradients(weights, inputs, deltas, rest, index)
        return [g + weight * c for g, c in zip(others, self.canary, strict=True)]
