"""Norm of the gradient of the gradient penalty (Pedersen 2022, Theorem 3.1.3), as published and tight.

``grad_x D`` is a product of the matrices and of diagonal 0/slope/1 matrices, so its gradient with respect
to one matrix is a rank-one matrix. The thesis bounds the factors by Frobenius norms, with
``||phi'||_F = sqrt(width)``; spectral norms (1 for phi') hold as well and are smaller by four orders of
magnitude at the thesis's architecture. Gradients with respect to biases are 0, because phi'' is.

For one record the critic's term and the penalty's move together, so their bounds *add*; line 7 of
Algorithm 1 prints a root of squares, which under-states the sensitivity.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from dpsynth.mechanism.bounds.gradient_boxes import Weights
from dpsynth.mechanism.bounds.rounding import gamma


def _product_without(factors: Sequence[Any], left_out: int) -> Any:
    total = tf.ones([])
    for layer, factor in enumerate(factors):
        if layer != left_out:
            total = total * factor
    return total


def published_penalty_radii(weights: Weights, input_gradient_norm: float) -> list[Any]:
    """The bound as printed, ``2 max(||grad_x D|| - 1, 1) prod_{k != l} ||W^k||_F prod ||phi'^k||_F`` (3.34).

    Kept for comparison: it is right but of no use.

    Parameters
    ----------
    weights : sequence of (W, b or None)
    input_gradient_norm : float
        An upper bound of ``||grad_x D(x)||``; for values up to 2 the maximum is 1.

    Returns
    -------
    list of scalar tensors
        For the gradient of ``(||grad_x D|| - 1)^2`` with respect to each matrix.

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

    At most 2 for every layer where all norms are at most 1. It holds for one interpolated point per record
    and for penalties written with ``sqrt(sum of squares + small)``.

    Parameters
    ----------
    weights : sequence of (W, b or None)
    norms : sequence of scalars
        Upper bounds of every ``||W||_2``.

    Returns
    -------
    list of scalar tensors
        For the gradient with respect to each matrix; multiply by lambda.

    References
    ----------
    Pedersen (2022), Theorem 3.1.3, with spectral norms.

    Examples
    --------
    >>> weights = [(tf.ones([2, 4]), None), (tf.ones([4, 1]), None)]
    >>> [round(float(r), 2) for r in penalty_radii(weights, [1.0, 1.0])]
    [2.0, 2.0]
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
