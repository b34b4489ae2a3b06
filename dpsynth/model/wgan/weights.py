"""Weights of a fully connected network: a list of ``(W, b)``; no TensorFlow."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

Weights = list[tuple[Any, Any]]


def glorot(rng: np.random.Generator, widths: Sequence[int], *, output_bias: bool) -> Weights:
    """Glorot-uniform weights and zero biases for layers of the given widths.

    ``widths`` is ``(n_in, hidden..., n_out)``; each layer is (W (n_in, n_out), b (n_out,)) in float32, with
    None for the last b unless ``output_bias``.

    References
    ----------
    Glorot and Bengio (2010), equation 16.
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
