"""Spectral norms of matrices: upper bounds, Björck's orthonormalisation and projection."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

#: Unit roundoff of float32.
UNIT = 2.0**-24
#: Added to magnitudes so that products which underflow (and are flushed to zero) stay covered.
TINY = 2.0**-50
# Squarings that bound a norm before Björck's steps: at most r^(1/16) times the norm, 1.3 for rank 64.
_ROUGH = 2


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

    One bound by Gram iteration is made. With Björck's steps a rough one will do, for they are a projection
    themselves: a step maps a singular value s to ``f(s) = (3 s - s^3) / 2``, whose greatest value on [0, 2]
    is f(1) = 1 and whose least is f(2) = -1. So norms of at most 2 become at most 1, however loose the bound
    was, and only rounding is left to be bounded (`_norm_after_step`).
    """
    # fl(W / c) differs from W / c by 2u per entry, hence by at most 2u sqrt(rank) ||W||_2 / c in norm.
    margin = 1.0 + 4.0 * UNIT * np.sqrt(min(matrix.shape))
    if not bjorck_steps:
        bound = spectral_norm_bound(matrix)
        return tf.where(bound > 1.0, matrix / (bound * margin), matrix)
    matrix = matrix / tf.maximum(spectral_norm_bound(matrix, iterations=_ROUGH), 2.0**-60)
    bound = tf.constant(margin, tf.float64)
    for _ in range(bjorck_steps):
        bound = _norm_after_step(matrix, bound)
        matrix = bjorck(matrix, steps=1)
    return matrix / tf.cast(bound * margin, tf.float32)


def _norm_after_step(matrix: Any, bound: Any) -> Any:
    """Upper bound of the norm of ``bjorck(matrix, steps=1)`` as computed. ``bound`` is one of the matrix's.

    Without rounding it is ``max(1, |f(bound)|)``. A product of n terms is off by ``gamma = n u / (1 - n u)``
    of the product of the absolute values, in any order (Higham 2002, section 3.1), and so is its Frobenius
    norm. With G the computed ``W^T W`` and H the computed ``W G``, the norm is off by at most half of
    ``||W||_2 ||G - W^T W||_F + ||H - W G||_F``, and by two roundings of ``1.5 W - 0.5 H``. In float64, where
    sums of squares of any size are exact enough.
    """
    short, long = (1.01 * (n + 2) * UNIT for n in sorted(matrix.shape))  # gamma, for n < 2^16
    square = tf.reduce_sum(tf.square(tf.cast(matrix, tf.float64)))
    frobenius = tf.sqrt(square)
    gram = bound * frobenius + long * square  # ||G||_F
    rounding = bound * long * square + short * frobenius * gram
    cube = bound * gram + short * frobenius * gram  # ||H||_F
    last = 2.1 * UNIT * (1.5 * frobenius + 0.5 * cube)
    exact = tf.maximum(tf.ones_like(bound), 0.5 * bound * (tf.square(bound) - 3.0))
    return (exact + 0.5 * rounding + last) * (1.0 + 4.0 * UNIT) + TINY
