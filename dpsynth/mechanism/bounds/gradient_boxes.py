"""Componentwise bounds of the critic's gradient (Pedersen 2022, Theorem 3.1.1), by interval propagation.

Corrections to the printed theorem: (3.9) and (3.10) omit the bias; (3.14), (3.23) and (3.24) print the
gradient with respect to the activation where the activation itself belongs; (3.21) and (3.22) sum over the
wrong index. The product with a matrix is written by midpoint and half range, ``W m -+ |W| r``, which is the
same interval as W's positive and negative parts give. One-hot groups enter the first layer by the largest
and smallest weight of the group instead of the sums of the signs. Every interval is widened outward so
that gradients computed in float32 lie inside (`dpsynth.mechanism.bounds.rounding`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from dpsynth.errors import InputError
from dpsynth.mechanism.bounds.activations import Interval, interval_activation, product
from dpsynth.mechanism.bounds.domain import Domain
from dpsynth.mechanism.bounds.rounding import TINY, UNIT, gamma

Weights = Sequence[tuple[Any, Any]]


class GradientBox(NamedTuple):
    """Bounds of ``grad D(x)`` for every record x, and of what it is made of; lists over layers.

    ``matrices[l]`` bounds the gradient with respect to W (n_in, n_out), ``biases[l]`` that with respect to b
    (n_out,) or is None where the layer has none; ``inputs[l]`` bounds the layer's input (n_in,) and
    ``deltas[l]`` the gradient with respect to its sum ``x W + b`` (n_out,).
    """

    matrices: list[Interval]
    biases: list[Interval | None]
    inputs: list[Interval]
    deltas: list[Interval]


def check_weights(weights: Weights, dim: int) -> None:
    """Check that layers fit each other, ``dim`` inputs and one output.

    Raises
    ------
    InputError
        Naming the layer and its shape.
    """
    width = dim
    if not weights:
        raise InputError("weights must hold at least one layer")
    for layer, (matrix, bias) in enumerate(weights):
        shape = tuple(matrix.shape)
        if len(shape) != 2 or shape[0] != width:
            raise InputError(f"layer {layer} has a matrix of shape {shape}, but {width} inputs")
        width = shape[1]
        if bias is not None and tuple(bias.shape) != (width,):
            raise InputError(f"layer {layer} has {width} outputs, but a bias of shape {tuple(bias.shape)}")
    if width != 1:
        raise InputError(f"the critic must have one output, but the last layer has {width}")


def _spread(matrix: Any, half_range: Any, magnitude: Any) -> tuple[Any, Any]:
    """``(|W|^T r, |W|^T m)`` for W (n_in, n_out): half range of a linear map and the size of its terms."""
    both = tf.matmul(tf.stack([half_range, magnitude + TINY]), tf.abs(matrix) + TINY)
    return both[0], both[1]


def _affine(x: Interval, matrix: Any, bias: Any) -> Interval:
    """Bounds of ``x W + b``, (3.9) and (3.10) with the bias."""
    middle, half_range = 0.5 * (x.lo + x.hi), 0.5 * (x.hi - x.lo)
    center = tf.linalg.matvec(matrix, middle, transpose_a=True)
    spread, size = _spread(matrix, half_range, x.magnitude)
    if bias is not None:
        center, size = center + bias, size + tf.abs(bias)
    half = spread + gamma(matrix.shape[0]) * size
    return Interval(center - half, center + half)


def _first_affine(domain: Domain, matrix: Any, bias: Any) -> Interval:
    """Bounds of ``x W + b`` for records: a one-hot group contributes ``[min_c W_cj, max_c W_cj]``."""
    lo, hi = domain.lo.astype(float), domain.hi.astype(float)
    middle, half_range = 0.5 * (lo + hi), 0.5 * (hi - lo)
    for start, stop in domain.groups:  # a group is its values for 0, plus one weight times (hi - lo)
        middle[start:stop], half_range[start:stop] = lo[start:stop], 0.0
    magnitude = np.maximum(np.abs(lo), np.abs(hi))
    center = tf.linalg.matvec(matrix, tf.constant(middle, tf.float32), transpose_a=True)
    spread, size = _spread(matrix, tf.constant(half_range, tf.float32), tf.constant(magnitude, tf.float32))
    if domain.groups:
        rows = tf.gather(tf.constant((hi - lo), tf.float32)[:, None] * matrix, _group_rows(domain.groups))
        low, high = tf.reduce_min(rows, axis=1), tf.reduce_max(rows, axis=1)
        center += 0.5 * tf.reduce_sum(high + low, axis=0)
        spread += 0.5 * tf.reduce_sum(high - low, axis=0)
    if bias is not None:
        center, size = center + bias, size + tf.abs(bias)
    half = spread + gamma(matrix.shape[0]) * size
    return Interval(center - half, center + half)


def _group_rows(groups: Sequence[tuple[int, int]]) -> np.ndarray:
    """Rows of each group, (groups, longest); short groups repeat their last row, which moves no extreme."""
    longest = max(stop - start for start, stop in groups)
    return np.array([[min(start + i, stop - 1) for i in range(longest)] for start, stop in groups], np.int32)


def _transposed(matrix: Any, delta: Interval) -> Interval:
    """Bounds of ``W delta``, (3.21) and (3.22) with the sum over the outputs."""
    middle, half_range = 0.5 * (delta.lo + delta.hi), 0.5 * (delta.hi - delta.lo)
    center = tf.linalg.matvec(matrix, middle)
    spread, size = _spread(tf.transpose(matrix), half_range, delta.magnitude)
    half = spread + gamma(matrix.shape[1]) * size
    return Interval(center - half, center + half)


def _scaled_outward(interval: Interval) -> Interval:
    """Widened by a few roundings, for a gradient that is scaled before it is summed."""
    margin = 8.0 * UNIT * interval.magnitude
    return Interval(interval.lo - margin, interval.hi + margin)


def gradient_box(
    weights: Weights, domain: Domain, *, activation: str = "leaky_relu", slope: float = 0.2
) -> GradientBox:
    """Bounds of every component of ``grad_W D(x)`` that hold for all records of the domain.

    Equal ends of the domain give the gradient itself up to the widening for float32; elsewhere interval
    arithmetic is loose. Can stand inside ``tf.function(jit_compile=True)``.

    Parameters
    ----------
    weights : sequence of (W (n_in, n_out), b (n_out,) or None)
        Of the critic, float32, released; the last layer has one output.
    domain : Domain
    activation : {"relu", "leaky_relu", "maxmin"}
    slope : float
        Negative slope of ``leaky_relu``, in [0, 1].

    Raises
    ------
    InputError
        If the layers do not fit each other or the domain, or the activation is unknown.

    References
    ----------
    Pedersen (2022), Theorem 3.1.1.
    """
    check_weights(weights, domain.dim)
    phi = interval_activation(activation, slope)
    x = Interval(tf.constant(domain.lo), tf.constant(domain.hi))
    inputs: list[Interval] = [x]
    sums: list[Interval] = []
    for layer, (matrix, bias) in enumerate(weights[:-1]):
        if activation == "maxmin" and matrix.shape[1] % 2:
            raise InputError(f"layer {layer} has {matrix.shape[1]} outputs, but maxmin needs an even number")
        s = _affine(inputs[-1], matrix, bias) if layer else _first_affine(domain, matrix, bias)
        sums.append(s)
        inputs.append(phi.forward(s))
    one = tf.ones([1])
    deltas = [Interval(one, one)]
    for layer in range(len(weights) - 1, 0, -1):
        upstream = _transposed(weights[layer][0], deltas[0])
        deltas.insert(0, phi.backward(sums[layer - 1], upstream))  # (3.19), (3.20)
    matrices, biases = [], []
    for x, delta, (_, bias) in zip(inputs, deltas, weights, strict=True):
        column, row = Interval(x.lo[:, None], x.hi[:, None]), Interval(delta.lo[None], delta.hi[None])
        matrices.append(_scaled_outward(product(column, row)))  # (3.23), (3.24) with the activation
        biases.append(None if bias is None else _scaled_outward(delta))
    return GradientBox(matrices, biases, inputs, deltas)
