"""Norm bounds of a critic's gradient, the gradient penalty's share, and all bounds of a layer together.

Norms (future work in Pedersen 2022, section 3.2). Let every ``||W||_2 <= 1``, and let the activation be
1-Lipschitz and map 0 to 0. A layer's gradient block is the rank-one matrix ``x delta^T`` (``delta`` for the
bias), so ``||x|| ||delta||`` bounds it. Compare Bethune et al. (2023), "DP-SGD without clipping". The
projection needs a *guaranteed* upper bound of ``||W||_2``: Gram iteration, widened for float32
(Delattre et al. 2023, "Efficient bound of Lipschitz constant for convolutional layers by Gram iteration").
Power iteration is a lower estimate and not safe.

Penalty (Pedersen 2022, Theorem 3.1.3). ``grad_x D`` is a product of the matrices and of diagonal 0/slope/1
matrices. Its gradient with respect to one matrix is therefore a rank-one matrix. Pedersen bounds the factors
by Frobenius norms, with ``||phi'||_F = sqrt(width)``. Spectral norms (1 for phi') hold as well. They are
smaller by four orders of magnitude for that architecture. Gradients with respect to biases are 0, because
phi'' is 0. For one record the critic's term and the penalty's move together, so their bounds *add*. Line 7 of
Algorithm 1 prints a root of squares, which under-states the sensitivity.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf

from dpsynth.errors import InputError
from dpsynth.mechanism.domain import Domain
from dpsynth.mechanism.gradient_boxes import (
    UNIT,
    GradientBox,
    Interval,
    Weights,
    check_weights,
    gamma,
    gradient_box,
)


def spectral_norm_bound(matrix: Any, *, iterations: int = 5) -> Any:
    """An upper bound of the largest singular value, valid although it is computed in float32.

    Without rounding it is ``||(W^T W)^(2^k)||_F^(1/2^(k+1))``, k being ``iterations``, at most
    ``r^(1/2^(k+2))`` times the norm for a matrix of rank r: 1.033 for r = 64 and k = 5 (Delattre et al. 2023,
    theorem 2). Rounding, bounded here, adds a relative ``4 r (n + 8) 2^-24`` at most for n rows or columns.
    """
    n_in, n_out = matrix.shape
    scale = tf.maximum(tf.reduce_max(tf.abs(matrix)), 2.0**-60)
    a = matrix / scale
    gram = tf.matmul(a, a, transpose_a=n_out <= n_in, transpose_b=n_out > n_in)
    side, terms = min(n_in, n_out), max(n_in, n_out)
    rounding = gamma(terms)
    # ||M||_2^2 = ||M^T M||_2 <= ||fl(M^T M)||_2 + gamma ||M||_F^2 for any M, symmetric or not.
    slack = 1.02 * rounding * tf.reduce_sum(a * a)
    lengths = []
    for _ in range(iterations if side > 1 else 0):
        length = tf.maximum(tf.norm(gram), 2.0**-60)
        unit = gram / length  # ||unit||_F <= 1.01
        gram = tf.matmul(unit, unit, transpose_a=True)
        lengths.append(length)
    largest = tf.norm(gram) * (1.0 + gamma(side * side))
    for length in reversed(lengths):
        largest = length * (tf.sqrt(largest + 1.05 * gamma(side)) + 4.0 * UNIT) * (1.0 + 8.0 * UNIT)
    return scale * (tf.sqrt(largest + slack) * (1.0 + 8.0 * UNIT) + 2.0 * UNIT * np.sqrt(n_in * n_out))


def norm_bound_nearby(matrix: Any, start: Any, bound: Any) -> Any:
    """An upper bound of ``||W||_2`` from that of a matrix nearby: ``||V||_2 + ||W - V||_F`` (Weyl 1912).

    It costs no product of matrices. ``start`` is V, ``bound`` an upper bound of its norm.
    """
    move = matrix - start
    scale = tf.maximum(tf.reduce_max(tf.abs(move)), 2.0**-60)  # else squares underflow
    moved = scale * tf.norm(move / scale) * (1.0 + gamma(move.shape[0] * move.shape[1]))
    return (bound + moved) * (1.0 + 4.0 * UNIT)


def bjorck(matrix: Any, *, steps: int) -> Any:
    """``W <- W (3/2 I - 1/2 W^T W)``: singular values in (0, sqrt 3) move towards 1.

    Bjorck and Bowie (1971); Anil, Lucas and Grosse (2019), section 4.2.1.
    """
    n_in, n_out = matrix.shape
    for _ in range(steps):
        if n_in >= n_out:
            matrix = 1.5 * matrix - 0.5 * tf.matmul(matrix, tf.matmul(matrix, matrix, transpose_a=True))
        else:
            matrix = 1.5 * matrix - 0.5 * tf.matmul(tf.matmul(matrix, matrix, transpose_b=True), matrix)
    return matrix


def project(matrix: Any, *, bjorck_steps: int = 0) -> Any:
    """Scale a matrix down until its spectral norm is at most 1, rounding included.

    A matrix within the bound is left unchanged. Björck's orthonormalising steps come first and scale the
    matrix to norm 1, also upward. It is a function of released weights: post-processing.
    """
    # fl(W / c) differs from W / c by 2u per entry, hence by at most 2u sqrt(rank) ||W||_2 / c in norm.
    margin = 1.0 + 4.0 * UNIT * np.sqrt(min(matrix.shape))
    if bjorck_steps:
        bound = spectral_norm_bound(matrix)
        matrix = bjorck(matrix / tf.maximum(bound, 2.0**-60), steps=bjorck_steps)
    bound = spectral_norm_bound(matrix)
    return tf.where(bound > 1.0, matrix / (bound * margin), matrix)


def _norm(interval: Interval) -> Any:
    """Upper bound of the norm of any vector in the interval."""
    magnitude = interval.magnitude
    return tf.norm(magnitude) * (1.0 + gamma(int(magnitude.shape[0])))


def layer_radii(
    weights: Weights, norms: Sequence[Any], domain: Domain, box: GradientBox | None = None
) -> list[Any]:
    """Bounds ``s_l`` of the norm of a record's gradient with respect to layer l's matrix and bias together.

    ``s_l^2 = (||x^(l-1)||^2 + 1) ||delta^l||^2`` (without the 1 where there is no bias), with

    * ``||x^l|| <= ||W^l||_2 ||x^(l-1)|| + ||b^l||`` from the domain's radius on,
    * ``||delta^l|| <= ||W^(l+1)||_2 ||delta^(l+1)||`` from ``delta = 1`` at the output.

    The norm of the box replaces either one where it is smaller. ``norms`` are upper bounds of every
    ``||W||_2``: 1 after `project`, else `spectral_norm_bound`. Valid for gradients computed in float32.

    Examples
    --------
    >>> weights = [(tf.eye(2), tf.zeros(2)), (tf.constant([[0.6], [0.8]]), None)]
    >>> radii = layer_radii(weights, [1.0, 1.0], Domain([-1, -1], [1, 1], (), radius=1.0))
    >>> [round(float(r), 3) for r in radii]  # sqrt(1 + 1) and 1
    [1.414, 1.0]
    """
    # A computed product W x is off by gamma || |W| |x| ||, and || |W| ||_2 <= ||W||_F <= sqrt(rank) ||W||_2.
    forward = [1.0 + gamma(w.shape[0]) * np.sqrt(min(w.shape)) for w, _ in weights]
    backward = [1.0 + gamma(w.shape[1]) * np.sqrt(min(w.shape)) for w, _ in weights]
    norms = [tf.cast(norm, tf.float32) for norm in norms]
    x = tf.constant(domain.radius, tf.float32)
    xs = []
    for layer, (matrix, bias) in enumerate(weights):
        if box is not None:
            x = tf.minimum(x, _norm(box.inputs[layer]))
        xs.append(x)
        x = norms[layer] * forward[layer] * x
        if bias is not None:
            x = (x + tf.norm(bias)) * (1.0 + gamma(matrix.shape[0] + matrix.shape[1]))
    delta = tf.ones([])
    radii: list[Any] = []
    for layer in range(len(weights) - 1, -1, -1):
        matrix, bias = weights[layer]
        if box is not None:
            delta = tf.minimum(delta, _norm(box.deltas[layer]))
        ones = 0.0 if bias is None else 1.0
        radii.insert(0, tf.sqrt(xs[layer] ** 2 + ones) * delta * (1.0 + gamma(8)))
        delta = norms[layer] * backward[layer] * delta
    return radii


def _product_without(factors: Sequence[Any], left_out: int) -> Any:
    total = tf.ones([])
    for layer, factor in enumerate(factors):
        if layer != left_out:
            total = total * factor
    return total


def published_penalty_radii(weights: Weights, input_gradient_norm: float) -> list[Any]:
    """The bound as printed, ``2 max(||grad_x D|| - 1, 1) prod_{k != l} ||W^k||_F prod ||phi'^k||_F`` (3.34).

    It bounds the gradient of ``(||grad_x D|| - 1)^2`` with respect to each matrix. It is right but far too
    large, and kept for comparison. ``input_gradient_norm`` is an upper bound of ``||grad_x D(x)||``.

    Examples
    --------
    >>> weights = [(tf.ones([2, 4]), None), (tf.ones([4, 1]), None)]
    >>> [round(float(r), 3) for r in published_penalty_radii(weights, 1.0)]  # 2 * 2 * 2, 2 * sqrt(8) * 2
    [8.0, 11.314]
    """
    frobenius = [tf.norm(matrix) for matrix, _ in weights]
    derivative = math.sqrt(math.prod(matrix.shape[1] for matrix, _ in weights[:-1]))
    factor = 2.0 * max(input_gradient_norm - 1.0, 1.0) * derivative
    return [factor * _product_without(frobenius, layer) for layer in range(len(weights))]


def penalty_radii(weights: Weights, norms: Sequence[Any]) -> list[Any]:
    """The tight bound ``C_l = 2 max(prod ||W||_2 - 1, 1) prod_{k != l} ||W^k||_2``, widened for float32.

    It bounds the gradient with respect to each matrix. Multiply it by lambda. ``norms`` are upper bounds of
    every ``||W||_2``. If all are at most 1, so is half of every C_l. It holds for one interpolated point per
    record and for penalties written with ``sqrt(sum of squares + small)`` (Theorem 3.1.3, spectral norms).
    """
    norms = [tf.cast(norm, tf.float32) for norm in norms]
    # Four passes through every matrix: two to reach grad_x D, two to differentiate its norm.
    widening = 1.0
    for matrix, _ in weights:
        widening *= (1.0 + gamma(max(matrix.shape)) * float(np.sqrt(min(matrix.shape)))) ** 4
    whole = _product_without(norms, -1)
    # The factor is 2 | ||grad_x D|| - 1 |, and ||grad_x D|| lies between 0 and the product of all norms.
    factor = 2.0 * tf.maximum(whole * widening - 1.0, 1.0) * widening
    return [factor * _product_without(norms, layer) for layer in range(len(weights))]


@dataclass(frozen=True, eq=False)
class LayerBounds:
    """Bounds of one record's gradient with respect to a layer's arrays: a box, a ball around 0, or both.

    ``shapes`` are those of the layer's arrays, ``(W.shape,)`` or ``(W.shape, b.shape)``. ``lo`` and ``hi``
    bound each array componentwise. ``radius`` bounds the Euclidean norm of all of them together.
    """

    shapes: tuple[tuple[int, ...], ...]
    lo: tuple[Any, ...] | None
    hi: tuple[Any, ...] | None
    radius: Any | None

    def __post_init__(self) -> None:
        if self.lo is None and self.radius is None:
            raise InputError("a layer needs a box (lo, hi) or a radius")

    @property
    def size(self) -> int:
        """Number of entries."""
        return sum(math.prod(shape) for shape in self.shapes)


def gradient_bounds(
    weights: Weights,
    domain: Domain,
    *,
    norms: Sequence[Any] | None = None,
    activation: str = "leaky_relu",
    slope: float = 0.2,
) -> list[LayerBounds]:
    """Bounds of ``grad_W D(x)`` for every record x, a layer at a time.

    `dpsynth.mechanism.allocation` derives from them the sensitivity of the sum of gradients to adding or
    removing one record. The function may stand inside ``tf.function(jit_compile=True)``.

    Parameters
    ----------
    weights : sequence of (W (n_in, n_out), b (n_out,) or None)
        Released weights of the critic, float32. The last layer has one output.
    domain : Domain
        Box that contains every record.
    norms : sequence of scalars, optional
        Upper bounds of every ``||W||_2`` (1 after `dpsynth.mechanism.bounds.project`). Without them there are
        no balls.
    activation : {"relu", "leaky_relu", "maxmin"}
        Activation between the layers.
    slope : float
        Negative slope of ``leaky_relu``, in [0, 1].

    Raises
    ------
    InputError
        If the weights do not fit each other, the domain or the norms.

    Examples
    --------
    >>> weights = [(tf.eye(2), tf.zeros(2)), (tf.constant([[0.6], [0.8]]), None)]
    >>> bounds = gradient_bounds(weights, Domain.box([-0.5, -0.5], [0.5, 0.5]), norms=[1.0, 1.0])
    >>> [layer.size for layer in bounds]
    [6, 2]
    """
    check_weights(weights, domain.dim)
    if norms is not None and len(norms) != len(weights):
        raise InputError(f"norms has {len(norms)} entries, but there are {len(weights)} layers")
    region = gradient_box(weights, domain, activation=activation, slope=slope)
    radii = [None] * len(weights) if norms is None else layer_radii(weights, norms, domain, region)
    bounds = []
    for layer, (matrix, bias) in enumerate(weights):
        shapes = tuple(tuple(int(n) for n in a.shape) for a in (matrix, bias) if a is not None)
        intervals = [i for i in (region.matrices[layer], region.biases[layer]) if i is not None]
        lo, hi = tuple(i.lo for i in intervals), tuple(i.hi for i in intervals)
        bounds.append(LayerBounds(shapes, lo, hi, radii[layer]))
    return bounds
