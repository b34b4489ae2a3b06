"""Spectral norms of matrices: upper bounds, Björck's orthonormalisation and projection."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

#: Unit roundoff of float32.
UNIT = 2.0**-24
#: Added to magnitudes so that products which underflow (and are flushed to zero) stay covered.
TINY = 2.0**-50


def widening(terms: int) -> float:
    """By how much dot products of ``terms`` terms widen a bound, relative to the size of the terms."""
    return 4.0 * (terms + 8) * UNIT


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
    rounding = widening(terms)
    # ||M||_2^2 = ||M^T M||_2 <= ||fl(M^T M)||_2 + widening ||M||_F^2 for any M, symmetric or not.
    slack = 1.02 * rounding * tf.reduce_sum(a * a)
    lengths = []
    for _ in range(iterations if side > 1 else 0):
        length = tf.maximum(tf.norm(gram), 2.0**-60)
        unit = gram / length  # ||unit||_F <= 1.01
        gram = tf.matmul(unit, unit, transpose_a=True)
        lengths.append(length)
    largest = tf.norm(gram) * (1.0 + widening(side * side))
    for length in reversed(lengths):
        largest = length * (tf.sqrt(largest + 1.05 * widening(side)) + 4.0 * UNIT) * (1.0 + 8.0 * UNIT)
    return scale * (tf.sqrt(largest + slack) * (1.0 + 8.0 * UNIT) + 2.0 * UNIT * np.sqrt(n_in * n_out))


def norm_bound_nearby(matrix: Any, start: Any, bound: Any) -> Any:
    """An upper bound of ``||W||_2`` from that of a matrix nearby: ``||V||_2 + ||W - V||_F`` (Weyl 1912).

    It costs no product of matrices. ``start`` is V, ``bound`` an upper bound of its norm.
    """
    move = matrix - start
    scale = tf.maximum(tf.reduce_max(tf.abs(move)), 2.0**-60)  # else squares underflow
    moved = scale * tf.norm(move / scale) * (1.0 + widening(move.shape[0] * move.shape[1]))
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
