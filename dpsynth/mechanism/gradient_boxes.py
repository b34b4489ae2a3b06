"""Componentwise bounds of the critic's gradient (Pedersen 2022, Theorem 3.1.1), by interval propagation.

Corrections to the printed theorem:

* (3.9) and (3.10) omit the bias.
* (3.14), (3.23) and (3.24) print the gradient with respect to the activation. The activation belongs there.
* (3.21) and (3.22) sum over the wrong index.

The product with a matrix is written by midpoint and half range, ``W m -+ |W| r``. The positive and negative
parts of W give the same interval. One-hot groups enter the first layer by the largest and smallest weight of
the group instead of the sums of the signs.

MaxMin sorts pairs (Anil, Lucas and Grosse 2019, not in Pedersen). It has slope 1 in every direction and
permutes its inputs. Its derivative is therefore exact wherever the order of a pair is certain. A critic must
route a tie by *one* comparison for both outputs. TensorFlow's own gradients of ``maximum`` and ``minimum``
send both to the same input, which no permutation does.

Rounding. Take a dot product of n terms, in any order, with or without fused multiply-add. Then ``|fl(x.w) -
x.w| <= gamma_n sum |x_i||w_i|`` with ``gamma_n = n u / (1 - n u)``, ``u = 2^-24`` (Higham 2002, *Accuracy and
Stability of Numerical Algorithms*, section 3.1). Both the critic and the bound round. Every bound is
therefore widened outward by ``4 (n + 8) u`` times that sum. The critic needs n of it. The bound's own two dot
products need up to 2n. The rest covers sums over one-hot groups, the bias, halving, and second-order terms (n
< 2^16).

Two things are not covered. Products in TF32 or bfloat16 must be switched off on a GPU
(``tf.config.experimental.enable_tensor_float_32_execution(False)``). The rounding of the *sum* over a batch
of a training step is not linear in its records (floating-point attacks, Mironov 2012).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from dpsynth.checks import in_range
from dpsynth.errors import InputError
from dpsynth.mechanism.domain import Domain

#: Unit roundoff of float32.
UNIT = 2.0**-24
#: Added to magnitudes so that products which underflow (and are flushed to zero) stay covered.
TINY = 2.0**-50

Weights = Sequence[tuple[Any, Any]]


def gamma(terms: int) -> float:
    """Relative widening of a bound that goes through dot products of ``terms`` terms."""
    return 4.0 * (terms + 8) * UNIT


class Interval(NamedTuple):
    """Componentwise bounds ``lo <= value <= hi``, tensors of one shape."""

    lo: Any
    hi: Any

    @property
    def magnitude(self) -> Any:
        """Largest absolute value of each component."""
        return tf.maximum(tf.abs(self.lo), tf.abs(self.hi))


def product(y: Interval, z: Interval) -> Interval:
    """Interval of the elementwise product, with broadcasting, (3.15)-(3.18).

    Rounding is monotone, so the products of the rounded ends also bound the rounded product: no widening.
    """
    corners = (y.lo * z.lo, y.lo * z.hi, y.hi * z.lo, y.hi * z.hi)
    low = tf.minimum(tf.minimum(corners[0], corners[1]), tf.minimum(corners[2], corners[3]))
    high = tf.maximum(tf.maximum(corners[0], corners[1]), tf.maximum(corners[2], corners[3]))
    return Interval(low, high)


@dataclass(frozen=True)
class LeakyReLU:
    """``s`` for s > 0, ``slope * s`` elsewhere (3.5), with ``slope`` in [0, 1]. Slope 0 is ReLU."""

    slope: float = 0.2

    def __post_init__(self) -> None:
        in_range("slope", self.slope, 0.0, 1.0)

    def forward(self, s: Interval) -> Interval:
        """Bounds of the outputs (3.11): the function is nondecreasing."""
        return Interval(*(tf.where(end > 0, end, self.slope * end) for end in s))

    def backward(self, s: Interval, upstream: Interval) -> Interval:
        """Bounds of the gradient with respect to ``s``, (3.19) and (3.20)."""
        derivative = Interval(*(tf.where(end > 0, tf.ones_like(end), self.slope) for end in s))
        return product(derivative, upstream)


@dataclass(frozen=True)
class MaxMin:
    """Maxima of neighbouring pairs, then their minima. The width must be even."""

    def forward(self, s: Interval) -> Interval:
        """Bounds of the outputs, ``[max(s_0, s_1), max(s_2, s_3), ..., min(s_0, s_1), ...]``."""
        return Interval(
            *(
                tf.concat([tf.maximum(end[0::2], end[1::2]), tf.minimum(end[0::2], end[1::2])], axis=0)
                for end in s
            )
        )

    def backward(self, s: Interval, upstream: Interval) -> Interval:
        """Swap the gradients back if the order of a pair is certain, else take the hull of both."""
        half = s.lo.shape[0] // 2
        first_above = s.lo[0::2] > s.hi[1::2]
        second_above = s.lo[1::2] > s.hi[0::2]
        ends = []
        for end, widest in zip(upstream, (tf.minimum, tf.maximum), strict=True):
            high, low = end[:half], end[half:]
            hull = widest(high, low)
            first = tf.where(first_above, high, tf.where(second_above, low, hull))
            second = tf.where(first_above, low, tf.where(second_above, high, hull))
            ends.append(tf.reshape(tf.stack([first, second], axis=1), [2 * half]))
        return Interval(*ends)


def interval_activation(kind: str, slope: float = 0.2) -> LeakyReLU | MaxMin:
    """The interval form of the activation called ``kind``."""
    if kind == "relu":
        return LeakyReLU(0.0)
    if kind == "leaky_relu":
        return LeakyReLU(slope)
    if kind == "maxmin":
        return MaxMin()
    raise InputError(f"activation must be 'relu', 'leaky_relu' or 'maxmin', got {kind!r}")


class GradientBox(NamedTuple):
    """Bounds of ``grad D(x)`` and of its parts for every record x, as lists over layers.

    ``matrices[l]`` bounds the gradient with respect to W (n_in, n_out). ``biases[l]`` bounds that with
    respect to b (n_out,), or is None for a layer without bias. ``inputs[l]`` bounds the layer's input
    (n_in,), and ``deltas[l]`` the gradient with respect to its sum ``x W + b`` (n_out,).
    """

    matrices: list[Interval]
    biases: list[Interval | None]
    inputs: list[Interval]
    deltas: list[Interval]


def check_weights(weights: Weights, dim: int) -> None:
    """Check that layers fit each other, ``dim`` inputs and one output."""
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
        raise InputError(f"the WGAN critic must have one output, but the last layer has {width}")


def _spread(matrix: Any, half_range: Any, magnitude: Any) -> tuple[Any, Any]:
    """``(|W|^T r, |W|^T m)`` for W (n_in, n_out): half range of a linear map, and size of its terms."""
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
    """Rows of each group, (groups, longest). Short groups repeat their last row, which moves no extreme."""
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
    """Bounds of every component of ``grad_W D(x)`` that hold for all records of the domain (Theorem 3.1.1).

    ``weights`` are the critic's, float32 and released. Equal ends of the domain give the gradient itself up
    to the widening for float32. Elsewhere interval arithmetic is loose. The function may stand inside
    ``tf.function(jit_compile=True)``.
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
