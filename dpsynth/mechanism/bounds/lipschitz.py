"""Norm bounds of the gradient of a spectrally constrained critic (thesis future work, section 3.2).

With every ``||W||_2 <= 1`` and an activation that is 1-Lipschitz and maps 0 to 0, the gradient block of a
layer is the rank-one matrix ``x delta^T`` (and ``delta`` for the bias), so ``||x|| ||delta||`` bounds it; cf.
Bethune et al. (2023), "DP-SGD without clipping". The projection needs a *guaranteed* upper bound of
``||W||_2``: Gram iteration (Delattre et al. 2023, "Efficient bound of Lipschitz constant for convolutional
layers by Gram iteration"), widened for float32. Power iteration is a lower estimate and not safe.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from dpsynth.mechanism.bounds.activations import Interval
from dpsynth.mechanism.bounds.domain import Domain
from dpsynth.mechanism.bounds.gradient_boxes import GradientBox, Weights
from dpsynth.mechanism.bounds.rounding import UNIT, gamma


def spectral_norm_bound(matrix: Any, *, iterations: int = 5) -> Any:
    """An upper bound of the largest singular value, valid although it is computed in float32.

    Without rounding it is ``||(W^T W)^(2^k)||_F^(1/2^(k+1))``, at most ``r^(1/2^(k+2))`` times the norm for
    a matrix of rank r: 1.033 for r = 64 and the default k = 5. Rounding adds a relative ``4 r (n + 8) 2^-24``
    at most for n rows or columns.

    ``matrix`` is float32 of shape (n_in, n_out); ``iterations`` is the number k of squarings of the Gram
    matrix.

    References
    ----------
    Delattre et al. (2023), theorem 2; the rounding is bounded here.
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


def bjorck(matrix: Any, *, steps: int) -> Any:
    """``W <- W (3/2 I - 1/2 W^T W)``: singular values in (0, sqrt 3) move towards 1.

    References
    ----------
    Bjorck and Bowie (1971); Anil, Lucas and Grosse (2019), section 4.2.1.
    """
    n_in, n_out = matrix.shape
    for _ in range(steps):
        if n_in >= n_out:
            matrix = 1.5 * matrix - 0.5 * tf.matmul(matrix, tf.matmul(matrix, matrix, transpose_a=True))
        else:
            matrix = 1.5 * matrix - 0.5 * tf.matmul(tf.matmul(matrix, matrix, transpose_b=True), matrix)
    return matrix


def project(matrix: Any, *, iterations: int = 5, bjorck_steps: int = 0) -> Any:
    """The matrix scaled down so that its spectral norm is at most 1; one within the bound is left as it is.

    Parameters
    ----------
    matrix : tensor (n_in, n_out), float32
    iterations : int
        Of `spectral_norm_bound`.
    bjorck_steps : int
        Orthonormalising steps before the projection. They scale the matrix to norm 1 first, also upward.

    Returns
    -------
    tensor (n_in, n_out)
        With spectral norm at most 1, rounding included. A function of released weights: post-processing.
    """
    # fl(W / c) differs from W / c by 2u per entry, hence by at most 2u sqrt(rank) ||W||_2 / c in norm.
    margin = 1.0 + 4.0 * UNIT * np.sqrt(min(matrix.shape))
    if bjorck_steps:
        bound = spectral_norm_bound(matrix, iterations=iterations)
        matrix = bjorck(matrix / tf.maximum(bound, 2.0**-60), steps=bjorck_steps)
    bound = spectral_norm_bound(matrix, iterations=iterations)
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
    * ``||delta^l|| <= ||W^(l+1)||_2 ||delta^(l+1)||`` from ``delta = 1`` at the output,

    and the norm of the box in place of either where that is smaller.

    Parameters
    ----------
    weights : sequence of (W, b or None)
    norms : sequence of scalars
        Upper bounds of every ``||W||_2``: 1 after `project`, else `spectral_norm_bound`.
    domain : Domain
    box : GradientBox, optional
        Componentwise bounds of the same critic on the same domain.

    Returns
    -------
    list of scalar tensors
        Valid for gradients computed in float32.

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
