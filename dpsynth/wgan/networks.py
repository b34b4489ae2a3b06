"""Weights of fully connected networks, and the generator of Algorithm 1 (Pedersen 2022, section 3.3).

One function serves training (with `TensorOps`) and sampling (with `ArrayOps`). A saved model is therefore
sampled without loading TensorFlow.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, softmax

from dpsynth.files.codec import record
from dpsynth.table.encoder import Encoder, Layout

Weights = list[tuple[Any, Any]]


def glorot(rng: np.random.Generator, widths: Sequence[int], *, output_bias: bool) -> Weights:
    """Glorot-uniform weights and zero biases for layers of the given widths.

    ``widths`` is ``(n_in, hidden..., n_out)``. Each layer is (W (n_in, n_out), b (n_out,)) in float32, with
    None for the last b unless ``output_bias``.

    Source: Glorot and Bengio (2010), equation 16.
    """
    weights: Weights = []
    last = len(widths) - 2
    for layer, (n_in, n_out) in enumerate(pairwise(widths)):
        limit = np.sqrt(6.0 / (n_in + n_out))
        matrix = rng.uniform(-limit, limit, (n_in, n_out)).astype(np.float32)
        bias = np.zeros(n_out, np.float32) if layer < last or output_bias else None
        weights.append((matrix, bias))
    return weights


def flatten(weights: Weights) -> list[Any]:
    """The arrays of a weight list in order ``W1, b1, W2, b2, ...`` without the missing biases."""
    return [array for pair in weights for array in pair if array is not None]


def unflatten(arrays: Sequence[Any], *, output_bias: bool) -> Weights:
    """Inverse of `flatten`."""
    arrays = list(arrays)
    if not output_bias:
        arrays = [*arrays, None]
    return list(zip(arrays[0::2], arrays[1::2], strict=True))


def generator_pass(weights: Weights, latent: Any, layout: Layout, xp: Any) -> Any:
    """Points of the unit cube from latent noise.

    Hidden ReLU layers, a sigmoid for every numeric coordinate and a softmax for every one-hot group. With no
    groups this is the generator of Pedersen (2022).

    ``xp``: `TensorOps` inside a training program, `ArrayOps` for sampling without TensorFlow.

    Returns array (n, dim): numeric coordinates in (0, 1), then group probabilities that sum to one.
    """
    h = latent
    for layer, (matrix, bias) in enumerate(weights):
        h = h @ matrix + bias
        if layer < len(weights) - 1:
            h = xp.relu(h)
    k = layout.n_numeric
    return unit_cube(h[:, :k], h[:, k:], layout, xp)


def unit_cube(numeric: Any, logits: Any, layout: Layout, xp: Any) -> Any:
    """Points of the unit cube: the sigmoid of each number, and a softmax for each one-hot group."""
    if not layout.groups:
        return xp.sigmoid(numeric)
    return xp.concat(
        [xp.sigmoid(numeric), xp.softmax(logits, [stop - start for start, stop in layout.groups])]
    )


class ArrayOps:
    """The few operations of `generator_pass` in NumPy."""

    concat = staticmethod(lambda parts: np.concatenate(parts, axis=1))
    relu = staticmethod(lambda x: np.maximum(x, 0))
    sigmoid = staticmethod(expit)

    @staticmethod
    def softmax(logits: Any, sizes: Sequence[int]) -> Any:
        """Softmax of each of the neighbouring groups of columns."""
        ends = np.cumsum(sizes)[:-1]
        return np.concatenate([softmax(part, axis=1) for part in np.split(logits, ends, axis=1)], axis=1)


# ------------------------------------------------------------------------------------------------
# Points that match noisy gradients of random critics, without TensorFlow: their scale and their samples.


@record
@dataclass(frozen=True, eq=False)
class MatchedPoints:
    """Released points of the unit cube, from which any number of points is drawn.

    ``points``: numeric coordinates and group probabilities, shape (N, dim), float32.
    ``jitter``: standard deviation of the noise on the numeric coordinates of a drawn point.
    """

    points: NDArray[np.float32]
    jitter: float

    def sample(self, n: int, n_numeric: int, rng: np.random.Generator) -> NDArray[np.float32]:
        """Draw ``n`` points with replacement, jittered, shape (n, dim)."""
        drawn = self.points[rng.integers(len(self.points), size=n)]
        noise = rng.standard_normal((n, n_numeric), dtype=np.float32)
        drawn[:, :n_numeric] = reflected(drawn[:, :n_numeric] + np.float32(self.jitter) * noise, np)
        return drawn


def reflected(u: Any, xp: Any) -> Any:
    """Numbers within one of the unit interval reflected into it, others clipped. ``xp``: NumPy or TensorFlow.

    >>> reflected(np.array([-0.25, 0.5, 1.25, 9.0]), np).tolist()
    [0.25, 0.5, 0.75, 0.0]
    """
    return xp.maximum(1.0 - xp.abs(1.0 - xp.abs(u)), 0.0)


def coordinate_scale(encoder: Encoder, factor: float) -> NDArray[np.float32]:
    """The public factor of each coordinate, shape (dim,): ``factor`` for the outcome's, 1 for all others."""
    scale = np.ones(encoder.layout.dim, np.float32)
    if encoder.schema.outcome is not None:
        j = encoder.schema.names.index(encoder.schema.outcome)
        at, group = encoder.coordinate[j], encoder.group[j]
        if at is not None:
            scale[at] = factor
        if group is not None:
            scale[slice(*group)] = factor
    return scale
