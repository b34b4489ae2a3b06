"""The gradient that lies as far out as is proved possible, computed a second time: NumPy, float64, LAPACK.

Nothing of `dpsynth.mechanism` is used. Spectral norms are singular values of the weights in use, not those
that a projection promises. A critic that was not projected has a gradient here that lies beyond the noise.

Pedersen (2022), Theorem 3.1.1, gives the box, and Bethune et al. (2023) the ball. The smaller of the two is
used in each layer, as the noise's shape measures it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpsynth.table.layout import Layout

Floats = NDArray[np.float64]
Interval = tuple[Floats, Floats]
Weights = Sequence[tuple[Floats, Floats | None]]


@dataclass(frozen=True, eq=False)
class Farthest:
    """A gradient on the edge of what is possible, and the centre of the box that was used (zeros for a ball).

    Flat arrays in the order W1, b1, W2, ..., shaped like the critic's.
    """

    gradient: list[Floats]
    centre: list[Floats]

    @property
    def offset(self) -> Floats:
        """Gradient minus centre as one vector: contribution of one record to the released sum."""
        pairs = zip(self.gradient, self.centre, strict=True)
        return np.concatenate([np.ravel(g - c) for g, c in pairs])


def farthest(
    weights: Weights,
    layout: Layout,
    *,
    activation: str,
    slope: float,
    noise_shape: str,
    scale: Floats | None = None,
    step: float | None = None,
) -> Farthest:
    """The gradient for which the proved sensitivity is attained.

    ``weights`` are pairs W (n_in, n_out), b (n_out,) or None. The layout's records are centred, and
    multiplied by ``scale`` (dim,) and rounded towards zero to a ``step`` if they are given.
    """
    ends = layout.lo, layout.hi
    if scale is not None:
        ends = ends[0] * scale, ends[1] * scale
    if step is not None:
        ends = step * np.trunc(ends[0] / step), step * np.trunc(ends[1] / step)
    inputs, deltas = _intervals(weights, layout, activation, slope, ends)
    radii = _radii(weights, _radius(layout, ends), inputs, deltas)
    gradient: list[Floats] = []
    centres: list[Floats] = []
    for (matrix, bias), x, delta, radius in zip(weights, inputs, deltas, radii, strict=True):
        shapes = [matrix.shape] if bias is None else [matrix.shape, bias.shape]
        boxes = [_outer(x, delta)] if bias is None else [_outer(x, delta), delta]
        middles = [0.5 * (low + high) for low, high in boxes]
        corners = [high for _, high in boxes]
        ranges = np.concatenate([np.ravel(c - m) for c, m in zip(corners, middles, strict=True)])
        size = len(ranges)
        if noise_shape == "proportional":
            ball = False
        elif noise_shape == "optimal":
            ball = radius * math.sqrt(size) < float(np.abs(ranges).sum())
        else:
            ball = radius < float(np.linalg.norm(ranges))
        if ball:
            corners = [np.full(shape, radius / math.sqrt(size)) for shape in shapes]
            middles = [np.zeros(shape) for shape in shapes]
        gradient += corners
        centres += middles
    return Farthest(gradient, centres)


def _intervals(
    weights: Weights, layout: Layout, activation: str, slope: float, ends: Interval
) -> tuple[list[Interval], list[Interval]]:
    """Bounds of every layer's input and of the gradient with respect to its sum."""
    inputs: list[Interval] = [ends]
    sums: list[Interval] = []
    for layer, (matrix, bias) in enumerate(weights[:-1]):
        low, high = _first(matrix, layout, ends) if layer == 0 else _times(inputs[-1], matrix)
        shift = 0.0 if bias is None else bias
        sums.append((low + shift, high + shift))
        inputs.append(_forward(sums[-1], activation, slope))
    deltas: list[Interval] = [(np.ones(1), np.ones(1))]
    for layer in range(len(weights) - 1, 0, -1):
        upstream = _times(deltas[0], weights[layer][0].T)
        deltas.insert(0, _backward(sums[layer - 1], upstream, activation, slope))
    return inputs, deltas


def _times(x: Interval, matrix: Floats) -> Interval:
    up, down = np.maximum(matrix, 0.0), np.minimum(matrix, 0.0)
    return x[0] @ up + x[1] @ down, x[1] @ up + x[0] @ down


def _first(matrix: Floats, layout: Layout, ends: Interval) -> Interval:
    """Bounds of records: numbers by their signs, a one-hot group by its extreme entry."""
    numbers = slice(0, layout.n_numeric)
    low, high = _times((ends[0][numbers], ends[1][numbers]), matrix[numbers])
    for start, stop in layout.groups:
        rows = _entries(ends, start, stop) @ matrix[start:stop]
        low, high = low + rows.min(axis=0), high + rows.max(axis=0)
    return low, high


def _entries(ends: Interval, start: int, stop: int) -> Floats:
    """A group's coordinates, one row for each category that a record may have."""
    low, high = ends[0][start:stop], ends[1][start:stop]
    return np.where(np.eye(stop - start, dtype=bool), high, low)


def _forward(s: Interval, activation: str, slope: float) -> Interval:
    if activation == "maxmin":
        low, high = (
            np.concatenate([np.maximum(end[0::2], end[1::2]), np.minimum(end[0::2], end[1::2])]) for end in s
        )
        return low, high
    flat = 0.0 if activation == "relu" else slope
    return np.where(s[0] > 0, s[0], flat * s[0]), np.where(s[1] > 0, s[1], flat * s[1])


def _backward(s: Interval, upstream: Interval, activation: str, slope: float) -> Interval:
    if activation != "maxmin":
        flat = 0.0 if activation == "relu" else slope
        ends = [np.where(end > 0, 1.0, flat) for end in s]
        corners = np.stack([d * u for d in ends for u in upstream])
        return corners.min(axis=0), corners.max(axis=0)
    half = len(s[0]) // 2
    low, high = np.empty(2 * half), np.empty(2 * half)
    for pair in range(half):
        first, second = 2 * pair, 2 * pair + 1
        # the larger of a pair feeds the maximum, the other one the minimum
        above = (s[0][first] > s[1][second], s[0][second] > s[1][first])
        for place, other in ((0, 1), (1, 0)):
            routes = [pair] if above[place] else [pair + half] if above[other] else [pair, pair + half]
            low[first + place] = min(upstream[0][r] for r in routes)
            high[first + place] = max(upstream[1][r] for r in routes)
    return low, high


def _outer(x: Interval, delta: Interval) -> Interval:
    corners = np.stack([np.outer(a, b) for a in x for b in delta])
    return corners.min(axis=0), corners.max(axis=0)


def _radius(layout: Layout, ends: Interval) -> float:
    """Largest norm of a record: numbers at an end, and any one entry of a group."""
    numbers = np.maximum(abs(ends[0]), abs(ends[1]))[: layout.n_numeric]
    squared = float(numbers @ numbers)
    for start, stop in layout.groups:
        squared += float((_entries(ends, start, stop) ** 2).sum(axis=1).max())
    return math.sqrt(squared)


def _radii(weights: Weights, radius: float, inputs: list[Interval], deltas: list[Interval]) -> list[float]:
    """Norm of each layer's gradient at most: ``sqrt(|x|^2 + 1) |delta|``, no 1 without a bias."""
    norms = [float(np.linalg.svd(matrix, compute_uv=False)[0]) for matrix, _ in weights]
    x = radius
    xs: list[float] = []
    for (_, bias), bound, norm in zip(weights, inputs, norms, strict=True):
        x = min(x, _norm(bound))
        xs.append(x)
        x = norm * x + (0.0 if bias is None else float(np.linalg.norm(bias)))
    delta = 1.0
    radii: list[float] = []
    for layer in range(len(weights) - 1, -1, -1):
        delta = min(delta, _norm(deltas[layer]))
        ones = 0.0 if weights[layer][1] is None else 1.0
        radii.insert(0, math.sqrt(xs[layer] ** 2 + ones) * delta)
        delta *= norms[layer]
    return radii


def _norm(bound: Interval) -> float:
    return float(np.linalg.norm(np.maximum(np.abs(bound[0]), np.abs(bound[1]))))
