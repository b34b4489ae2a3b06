"""Interval forms of the critic's activations and of their derivatives (Pedersen 2022, section 3.1.2).

MaxMin is not in the thesis (sorted pairs; Anil, Lucas and Grosse 2019). It has slope 1 in every direction
and permutes its inputs, so its derivative is exact wherever the order of a pair is certain. A critic must
route a tie by *one* comparison for both outputs; TensorFlow's own gradients of ``maximum`` and ``minimum``
send both to the same input, which no permutation does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import tensorflow as tf

from dpsynth.checks import in_range
from dpsynth.errors import InputError


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

    Examples
    --------
    >>> y, z = Interval(tf.constant(-1.0), tf.constant(2.0)), Interval(tf.constant(3.0), tf.constant(4.0))
    >>> [float(end) for end in product(y, z)]
    [-4.0, 8.0]
    """
    corners = (y.lo * z.lo, y.lo * z.hi, y.hi * z.lo, y.hi * z.hi)
    low = tf.minimum(tf.minimum(corners[0], corners[1]), tf.minimum(corners[2], corners[3]))
    high = tf.maximum(tf.maximum(corners[0], corners[1]), tf.maximum(corners[2], corners[3]))
    return Interval(low, high)


class IntervalActivation(Protocol):
    """Bounds of an activation that is 1-Lipschitz and maps 0 to 0."""

    def forward(self, s: Interval) -> Interval:
        """Bounds of ``phi(s)``, vectors."""

    def backward(self, s: Interval, upstream: Interval) -> Interval:
        """Bounds of ``phi'(s)^T upstream``, vectors."""


@dataclass(frozen=True)
class LeakyReLU:
    """``s`` where s > 0, ``slope * s`` elsewhere (3.5); slope 0 is ReLU.

    ``slope`` is in [0, 1].
    """

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
    """Maxima of neighbouring pairs, then their minima; the width must be even."""

    def forward(self, s: Interval) -> Interval:
        """Bounds of the outputs, ``[max(s_0, s_1), max(s_2, s_3), ..., min(s_0, s_1), ...]``."""
        return Interval(
            *(
                tf.concat([tf.maximum(end[0::2], end[1::2]), tf.minimum(end[0::2], end[1::2])], axis=0)
                for end in s
            )
        )

    def backward(self, s: Interval, upstream: Interval) -> Interval:
        """The gradients swapped back where the order of a pair is certain, else the hull of both."""
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


def interval_activation(kind: str, slope: float = 0.2) -> IntervalActivation:
    """The interval form of the activation called ``kind``.

    Raises
    ------
    InputError
        For another name, or a slope outside [0, 1].
    """
    if kind == "relu":
        return LeakyReLU(0.0)
    if kind == "leaky_relu":
        return LeakyReLU(slope)
    if kind == "maxmin":
        return MaxMin()
    raise InputError(f"activation must be 'relu', 'leaky_relu' or 'maxmin', got {kind!r}")
