"""Weights of fully connected networks, and the generator of Algorithm 1 (Pedersen 2022, section 3.3).

One function serves training (with `TensorOps`) and sampling (with `ArrayOps`). A saved model is therefore
sampled without loading TensorFlow.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.special import expit, softmax

from dpsynth.table.layout import Layout

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
