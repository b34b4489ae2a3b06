"""Allocation of the noise to components: Theorem 3.1.2 of Pedersen (2022), and the smallest noise.

A diagonal Gaussian with stds ``sigma_k`` is a Gaussian mechanism of multiplier z iff
``max_g sum_k g_k^2 / sigma_k^2 <= 1 / z^2`` over a record's contributions g. For z = 1, half ranges r_k:

* ``spherical``: ``sigma_k = ||r||_2``.
* ``proportional`` (Theorem 3.1.2): ``sigma_k = sqrt(d) r_k``, the same total variance ``d ||r||^2``.
* ``optimal`` (by Lagrange, not in Pedersen): ``sigma_k^2 = r_k sum_j r_j``, total ``(sum r)^2``, which is at
  most ``d ||r||^2``.
* ``layerwise``: the optimal split between layers, spherical within a layer.

Let a ball of radius s bound a layer of n entries. ``optimal`` and ``layerwise`` treat it as n components of
half range ``s / sqrt(n)``: ``sum g_k^2 / (s S / sqrt n) <= s sqrt(n) / S``. The theorem's own formula for
epsilon holds for one use and epsilon < 1 only. Here z is accounted by the privacy-loss distribution.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from dpsynth.checks import one_of
from dpsynth.errors import InputError, PrivacyError
from dpsynth.mechanism.bounds import LayerBounds
from dpsynth.mechanism.gradient_boxes import UNIT
from dpsynth.mechanism.plan import NOISE_SHAPES

# Keeps every std positive, also squared in float32, where a component is constant or underflows.
_FLOOR = 2.0**-60


def _half_ranges(lo: Sequence[Any], hi: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """Centre and half range of every component of a box."""
    centers = [0.5 * (low + high) for low, high in zip(lo, hi, strict=True)]
    ranges = [tf.maximum(high - c, c - low) + _FLOOR for low, high, c in zip(lo, hi, centers, strict=True)]
    return centers, ranges


def _sum(arrays: Sequence[Any]) -> Any:
    return tf.add_n([tf.reduce_sum(a) for a in arrays])


def _choose(layer: LayerBounds, extra: Any | None, shape: str) -> tuple[list[Any], list[Any] | None, Any]:
    """Centres, half ranges (None for a ball) and radius of the smaller of a layer's two bounds."""
    zeros = [tf.zeros(s) for s in layer.shapes]
    ball = None if layer.radius is None else tf.cast(layer.radius, tf.float32) + _FLOOR
    if layer.lo is None or layer.hi is None:
        return zeros, None, ball if extra is None else ball + extra
    centers, ranges = _half_ranges(layer.lo, layer.hi)
    if shape == "proportional":
        return centers, ranges, None
    root = math.sqrt(layer.size)
    if shape == "optimal":
        if ball is None:
            return centers, ranges, None
        use_box = _sum(ranges) <= ball * root
        ranges = [tf.where(use_box, r, ball / root) for r in ranges]
        return [tf.where(use_box, c, 0.0) for c in centers], ranges, None
    radius = tf.sqrt(_sum([r * r for r in ranges]))
    if ball is not None:
        use_box = radius <= ball
        radius = tf.minimum(radius, ball)
        centers = [tf.where(use_box, c, 0.0) for c in centers]
    return centers, None, radius if extra is None else radius + extra


def allocate(
    bounds: Sequence[LayerBounds],
    shape: str,
    *,
    extra_radii: Sequence[Any] | None = None,
) -> tuple[list[Any], list[Any]]:
    """Centre and std for noise multiplier 1 of every array, so that the noise is ``z * std * N(0, 1)``.

    Adjacency: add or remove one record. The query is ``sum_i (g_i - c)``. Every record's ``sum_k (g_k -
    c_k)^2 / std_k^2`` is at most 1, rounding included. Under replace-one the sensitivity is twice that. Both
    outputs depend on released weights only. They come in the order W1, b1, W2 and so on. The centre is 0
    where a layer's ball is the smaller bound. A std is a scalar if a whole array has one.

    ``extra_radii`` bound, for each layer, the norm of a term added to a record's gradient beside the critic's
    term: lambda times `dpsynth.mechanism.bounds.penalty_radii`. The bounds add, since both terms move
    together. A penalty at private records has no componentwise bound, so componentwise shapes refuse it.

    Examples
    --------
    Pedersen (2022), section 3.1.3: 98 <= g_1 <= 100 and -50 <= g_2 <= 50.

    >>> box = LayerBounds(((2,),), (tf.constant([98.0, -50.0]),), (tf.constant([100.0, 50.0]),), None)
    >>> for shape in ("spherical", "proportional", "optimal"):
    ...     centers, stds = allocate([box], shape)
    ...     print(shape, *(f"{s:.2f}" for s in (stds[0] * tf.ones(2)).numpy()))
    spherical 50.01 50.01
    proportional 1.41 70.71
    optimal 7.14 50.50
    >>> centers[0].numpy().tolist()
    [99.0, 0.0]
    """
    one_of("noise_shape", shape, NOISE_SHAPES)
    if extra_radii is not None:
        if shape not in ("spherical", "layerwise"):
            raise PrivacyError(
                f"noise shape {shape!r} needs a box, and a penalty at private records has none: "
                "use 'spherical' or 'layerwise'"
            )
        if len(extra_radii) != len(bounds):
            raise InputError(
                f"extra_radii has {len(extra_radii)} entries, but there are {len(bounds)} layers"
            )
    if shape == "proportional" and any(layer.lo is None for layer in bounds):
        raise InputError("noise shape 'proportional' needs the box of every layer")
    extras = [None] * len(bounds) if extra_radii is None else list(extra_radii)
    choices = [_choose(layer, e, shape) for layer, e in zip(bounds, extras, strict=True)]
    centers = [c for chosen, _, _ in choices for c in chosen]
    total = sum(layer.size for layer in bounds)
    # Sums of `total` nonnegative float32 terms are off by a relative total * 2^-24 at most.
    outward = 1.0 + (total + 64) * UNIT
    if shape == "spherical":
        radius = tf.sqrt(tf.add_n([r * r for _, _, r in choices])) * outward
        return centers, [radius for _ in centers]
    if shape == "proportional":
        root = math.sqrt(total) * outward
        return centers, [root * r for _, ranges, _ in choices for r in ranges or ()]
    # layerwise and optimal: sigma_k^2 = r_k S with S = sum r_k; a ball stands for n ranges s / sqrt(n).
    sums, ranges_of = [], []
    for layer, (_, ranges, radius) in zip(bounds, choices, strict=True):
        root = math.sqrt(layer.size)
        sums.append(_sum(ranges) if ranges is not None else radius * root)
        ranges_of.append(ranges if ranges is not None else [radius / root for _ in layer.shapes])
    root_sum = tf.sqrt(tf.add_n(sums)) * outward
    return centers, [tf.sqrt(r) * root_sum for ranges in ranges_of for r in ranges]
