"""The critic of Algorithm 1 (Pedersen 2022, section 3.3) and the gradients it needs.

The last layer has one output and no bias. The gradient with respect to an output bias would be 1 for every
record and carry no information. Every function can stand inside ``tf.function(jit_compile=True)``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf

from dpsynth.model.wgan.networks import Weights


@dataclass(frozen=True)
class Activation:
    """A critic activation and its transposed derivative.

    ``maxmin`` sorts neighbouring pairs and returns ``[maxima, minima]``, which keeps norms. ``slope`` is the
    negative slope of ``leaky_relu``.
    """

    kind: str
    slope: float = 0.2

    def forward(self, s: Any) -> tuple[Any, Any]:
        """Outputs and the mask that `backward` needs, for ``s`` of shape (n, width)."""
        if self.kind == "maxmin":
            a, b = s[:, 0::2], s[:, 1::2]
            return tf.concat([tf.maximum(a, b), tf.minimum(a, b)], axis=1), a > b
        slope = 0.0 if self.kind == "relu" else self.slope
        mask = tf.where(s > 0, tf.ones_like(s), tf.fill(tf.shape(s), np.float32(slope)))
        return s * mask, mask

    def backward(self, upstream: Any, mask: Any) -> Any:
        """Gradient with respect to ``s`` from the gradient with respect to the outputs, both (n, width)."""
        if self.kind == "maxmin":
            half = mask.shape[1]
            high, low = upstream[:, :half], upstream[:, half:]
            pair = tf.stack([tf.where(mask, high, low), tf.where(mask, low, high)], axis=2)
            return tf.reshape(pair, [-1, 2 * half])
        return upstream * mask


def critic_pass(weights: Weights, x: Any, activation: Activation) -> tuple[Any, list[Any], list[Any]]:
    """Scores, layer inputs and layer deltas of a batch, from which every gradient follows.

    For record i and layer l the gradient is the outer product ``inputs[l][i] deltas[l][i]^T`` for the matrix
    and ``deltas[l][i]`` for the bias. So a weighted sum over records is one matrix product, without any
    per-record gradient.
    """
    inputs, masks = [x], []
    s = x
    for layer, (matrix, bias) in enumerate(weights):
        s = tf.matmul(inputs[-1], matrix)
        if bias is not None:
            s = s + bias
        if layer < len(weights) - 1:
            out, mask = activation.forward(s)
            inputs.append(out)
            masks.append(mask)
    deltas = [tf.ones_like(s)]
    for layer in range(len(weights) - 1, 0, -1):
        upstream = tf.matmul(deltas[0], weights[layer][0], transpose_b=True)
        deltas.insert(0, activation.backward(upstream, masks[layer - 1]))
    return s[:, 0], inputs, deltas


def weighted_gradient(inputs: list[Any], deltas: list[Any], coefficients: Any, weights: Weights) -> list[Any]:
    """``sum_i coefficients[i] * grad D(x_i)``, flat order, one matrix product a layer, coefficients (n,)."""
    gradient = []
    for x, delta, (_, bias) in zip(inputs, deltas, weights, strict=True):
        scaled = delta * coefficients[:, None]
        gradient.append(tf.matmul(x, scaled, transpose_a=True))
        if bias is not None:
            gradient.append(tf.reduce_sum(scaled, axis=0))
    return gradient


def squared_gradient_norms(inputs: list[Any], deltas: list[Any], weights: Weights) -> Any:
    """Squared norm of every record's gradient without forming it ("ghost norms"), shape (n,)."""
    total = 0.0
    for x, delta, (_, bias) in zip(inputs, deltas, weights, strict=True):
        ones = 0.0 if bias is None else 1.0
        total += (tf.reduce_sum(x * x, axis=1) + ones) * tf.reduce_sum(delta * delta, axis=1)
    return total
