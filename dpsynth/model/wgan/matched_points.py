"""Points that match noisy gradients of random critics, without TensorFlow: their scale and their samples."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsynth.files.codec import record
from dpsynth.table.encoder import Encoder


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
