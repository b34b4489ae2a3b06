"""Box and ball of every layer's gradient together: what a noise allocation starts from."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dpsynth.errors import InputError
from dpsynth.mechanism.bounds.domain import Domain
from dpsynth.mechanism.bounds.gradient_boxes import Weights, check_weights, gradient_box
from dpsynth.mechanism.bounds.lipschitz import layer_radii


@dataclass(frozen=True, eq=False)
class LayerBounds:
    """Where one record's gradient with respect to a layer's arrays lies: a box, a ball around 0, or both.

    Parameters
    ----------
    shapes : tuple of shapes
        Of the layer's arrays: ``(W.shape,)`` or ``(W.shape, b.shape)``.
    lo, hi : tuple of tensors or None
        Componentwise bounds of each array.
    radius : scalar tensor or None
        Bound of the Euclidean norm of all the layer's arrays together.
    """

    shapes: tuple[tuple[int, ...], ...]
    lo: tuple[Any, ...] | None
    hi: tuple[Any, ...] | None
    radius: Any | None

    def __post_init__(self) -> None:
        if self.lo is None and self.radius is None:
            raise InputError("a layer needs a box (lo, hi) or a radius")

    @property
    def size(self) -> int:
        """Number of entries."""
        return sum(math.prod(shape) for shape in self.shapes)


def gradient_bounds(
    weights: Weights,
    domain: Domain,
    *,
    norms: Sequence[Any] | None = None,
    activation: str = "leaky_relu",
    slope: float = 0.2,
    box: bool = True,
) -> list[LayerBounds]:
    """Bounds of ``grad_W D(x)`` for every record x, a layer at a time.

    Sensitivity of the sum of gradients to adding or removing one record follows from them in
    `dpsynth.mechanism.allocation`. Can stand inside ``tf.function(jit_compile=True)``.

    Parameters
    ----------
    weights : sequence of (W (n_in, n_out), b (n_out,) or None)
    domain : Domain
    norms : sequence of scalars, optional
        Upper bounds of every ``||W||_2`` (1 after `dpsynth.mechanism.bounds.lipschitz.project`); without them
        there are no balls.
    activation : {"relu", "leaky_relu", "maxmin"}
    slope : float
    box : bool
        False leaves the boxes out, which saves their time where only balls are used.

    Raises
    ------
    InputError
        If the weights do not fit, or neither box nor norms are asked for.

    Examples
    --------
    >>> import tensorflow as tf
    >>> weights = [(tf.eye(2), tf.zeros(2)), (tf.constant([[0.6], [0.8]]), None)]
    >>> bounds = gradient_bounds(weights, Domain.box([-0.5, -0.5], [0.5, 0.5]), norms=[1.0, 1.0])
    >>> [layer.size for layer in bounds]
    [6, 2]
    """
    check_weights(weights, domain.dim)
    if norms is not None and len(norms) != len(weights):
        raise InputError(f"norms has {len(norms)} entries, but there are {len(weights)} layers")
    region = gradient_box(weights, domain, activation=activation, slope=slope) if box else None
    radii = [None] * len(weights) if norms is None else layer_radii(weights, norms, domain, region)
    bounds = []
    for layer, (matrix, bias) in enumerate(weights):
        shapes = tuple(tuple(int(n) for n in a.shape) for a in (matrix, bias) if a is not None)
        lo = hi = None
        if region is not None:
            intervals = [i for i in (region.matrices[layer], region.biases[layer]) if i is not None]
            lo, hi = tuple(i.lo for i in intervals), tuple(i.hi for i in intervals)
        bounds.append(LayerBounds(shapes, lo, hi, radii[layer]))
    return bounds
